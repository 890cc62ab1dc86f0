#!/usr/bin/env python3
"""Goal: files of a table with a sort order are wholly sorted where memory does not hold their rows, and only sorted files name the
order. Method: random rows through `tarn ingest` with the least memory; each file is read by DuckDB and held against its rows sorted
by DuckDB, PyIceberg says how many files there are and which order they name, and the rows are what went in. Upserts of each kind of
deletes into such a table end as a dictionary of the same changes does. A folder for temporary files that is not there is told, and
nothing stays of the run.

usage: test_sorted.py [CASE ...]
"""
import json
import os
import random
import sys

import harness
from harness import equal, same

SCHEMA = "id long not null, part int, word string, ratio double, ts timestamp"
WORDS = [None, "", "a", "ab", "b", "straße", "zebra", "zebra crossing with a longer text"]


def random_rows(n):
    draw = random.Random(8)
    return [{"id": i, "part": draw.randrange(3), "word": draw.choice(WORDS), "ratio": draw.choice([None, -1.5, 0.0, 2.25, 1e300]),
             "ts": "2024-%02d-%02dT%02d:00:00" % (draw.randint(1, 12), draw.randint(1, 28), draw.randint(0, 23))}
            for i in range(n)]


def write(shop, name, rows):
    shop.write(name, "".join(json.dumps(row) + "\n" for row in rows))
    return shop.path(name)


def files(shop):
    table = shop.catalog().load_table("ns.t")
    return [task.file for task in table.scan().plan_files()]


def is_sorted(path, order_by):
    import duckdb
    query = "select id from (select *, row_number() over () as n from read_parquet('%s'))" % harness.local(path)
    equal(duckdb.sql(query + " order by n").fetchall(), duckdb.sql(query + " order by %s, n" % order_by).fetchall())


ORDERS = [("word desc nulls last, ratio", "word desc nulls last, ratio asc nulls first"),
          ("day(ts), truncate(1, word) desc nulls first, id desc",
           "date_trunc('day', ts) asc nulls first, left(word, 1) desc nulls first, id desc"),
          ("ratio desc nulls first, word nulls last, ts", "ratio desc nulls first, word asc nulls last, ts asc nulls first")]


def ingested(order, order_by, partition_by, writers):
    with harness.Workshop() as shop:
        rows = random_rows(40000)
        shop.tarn("create", "ns.t", SCHEMA, "--sort-by", order, *(["--partition-by", partition_by] if partition_by else []))
        os.mkdir(shop.path("tmp"))
        shop.tarn("ingest", "ns.t", write(shop, "in.ndjson", rows), "--memory-mb", "1", "--writers", writers,
                  env={"TMPDIR": shop.path("tmp")})
        equal(os.listdir(shop.path("tmp")), [])
        found = files(shop)
        equal(len(found), (3 if partition_by else 1) * writers)
        equal({file.sort_order_id for file in found}, {1})
        for file in found:
            is_sorted(file.file_path, order_by)
        same(shop.cat("ns.t").rows, shop.duckdb_rows("ns.t"))
        equal(sorted(row["id"] for row in shop.cat("ns.t").rows), list(range(40000)))


def ingests():
    """Files are as few as without a sort order."""
    for order, order_by in ORDERS:
        ingested(order, order_by, None, 1)
    ingested(*ORDERS[0], "part", 1)
    ingested(*ORDERS[0], "part", 2)


def upserts():
    """Deletes of rows that came in the same checkpoint, and before, meet the right rows."""
    for kind, version in (("equality", 2), ("position", 2), ("vector", 3)):
        with harness.Workshop() as shop:
            draw = random.Random(9)
            shop.tarn("create", "ns.t", SCHEMA, "--format-version", version, "--sort-by", ORDERS[0][0])
            lines, state = [], {}
            for row in random_rows(30000):
                row["id"] = draw.randrange(9000)
                gone = row["id"] in state and draw.random() < 0.2
                lines.append({"op": "d", **state.pop(row["id"])} if gone else {"op": "u", **row})
                if not gone:
                    state[row["id"]] = row
            shop.tarn("ingest", "ns.t", write(shop, "in.ndjson", lines), "--memory-mb", "1", "--op-column", "op", "--upsert",
                      "--key", "id", "--deletes", kind, "--state", shop.path("state"), "--checkpoint-rows", "16000")
            want = [{**row, "ts": row["ts"] + ".000000"} for row in state.values()]
            same(shop.cat("ns.t").rows, want)
            same(shop.duckdb_rows("ns.t"), want)
            found = [row for row in shop.cat("ns.t.files").rows if row["content"] == 0]
            equal(len(found), 2)  # checkpoints
            equal({row["sort_order_id"] for row in found}, {1})
            for row in found:
                is_sorted(row["file_path"], ORDERS[0][1])


def no_folder():
    with harness.Workshop() as shop:
        shop.tarn("create", "ns.t", SCHEMA, "--sort-by", "word")
        path = write(shop, "in.ndjson", random_rows(40000))
        answer = shop.tarn("ingest", "ns.t", path, "--memory-mb", "1", check=False, env={"TMPDIR": shop.path("nowhere")})
        harness.must_refuse(answer, "TMPDIR", shop.path("nowhere"))
        equal(shop.cat("ns.t").rows, [])
        data = [name for _, _, names in os.walk(shop.path()) for name in names if name.endswith(".parquet")]
        equal(data, [])


CASES = [ingests, upserts, no_folder]

if __name__ == "__main__":
    harness.need("pyiceberg", "duckdb", "pyarrow", "duckdb_extension_iceberg")
    sys.exit(harness.run_cases(CASES))
