#!/usr/bin/env python3
"""Goal: tables fed by upserts and change streams read the same by others. Method: random streams over few keys go through
`tarn ingest` with a state and small checkpoints, each kind of deletes and several writers; the end state is known, and is held
against our own scan, DuckDB and, where it knows the kind of deletes, PyIceberg. What is followed is printed once.

usage: test_sink.py
"""
import collections
import importlib.util
import json
import random
import sys

import harness
from harness import case, same

KEYS = 40


def stream(n, upsert):
    """Lines with an op each, and the rows at the end."""
    state, lines = {}, []
    for i in range(n):
        key = random.randrange(KEYS)
        if key in state and random.random() < 0.25:
            lines.append({"op": "-D", **state.pop(key)})
            continue
        row = {"id": key, "day": i % 5, "v": "v%d" % i}
        if key in state and not upsert:
            lines.append({"op": "-U", **state[key]})
            lines.append({"op": "+U", **row})
        else:
            lines.append({"op": "+I", **row})
        state[key] = row
    return "".join(json.dumps(line) + "\n" for line in lines), list(state.values())


def fed(kind, version, partition_by, upsert, writers, sort_by=""):
    with harness.Workshop() as shop:
        shop.tarn("create", "ns.t", "id long not null, day int, v string", "--format-version", version,
                  *(["--partition-by", partition_by] if partition_by else []), *(["--sort-by", sort_by] if sort_by else []))
        text, rows = stream(1500, upsert)
        shop.write("in.ndjson", text)
        path = shop.path("in.ndjson")
        shop.tarn("ingest", "ns.t", path, "--op-column", "op", "--key", "id", "--deletes", kind, "--state", shop.path("state"),
                  "--checkpoint-rows", "200", "--writers", writers, *(["--upsert"] if upsert else []))
        same(shop.cat("ns.t").rows, rows)
        if importlib.util.find_spec("duckdb_extension_iceberg"):
            same(shop.duckdb_rows("ns.t"), rows)
        if kind == "position" or kind == "vector":
            same(shop.pyiceberg_rows("ns.t"), rows)
        shop.tarn("ingest", "ns.t", path, "--op-column", "op", "--key", "id", "--deletes", kind, "--state",
                  shop.path("state"), "--writers", writers, *(["--upsert"] if upsert else []))
        same(shop.cat("ns.t").rows, rows)  # nothing is read twice


def manifests(shop):
    """How many the newest snapshot has: data, deletes."""
    content = [row["content"] for row in shop.cat("ns.t.manifests").rows]
    return content.count(0), len(content) - content.count(0)


def merged():
    """Streams with more checkpoints than manifests may be: lists stay short, and the merged ones read the same everywhere."""
    for kind, version in (("append", 2), ("append", 3), ("equality", 2), ("position", 2), ("vector", 3)):
        with harness.Workshop() as shop:
            shop.tarn("create", "ns.t", "id long not null, day int, v string", "--format-version", version,
                      "--property", "commit.manifest.min-count-to-merge=5")
            text, rows = stream(1500, True)
            keyed = ["--op-column", "op", "--key", "id", "--upsert", "--deletes", kind]
            if kind == "append":
                rows = [{"id": i, "day": i % 5, "v": "v%d" % i} for i in range(1500)]
                text, keyed = "".join(json.dumps(row) + "\n" for row in rows), []
            shop.write("in.ndjson", text)
            shop.tarn("ingest", "ns.t", shop.path("in.ndjson"), "--state", shop.path("state"), "--checkpoint-rows", 40, *keyed)
            data, deletes = manifests(shop)
            assert data <= 5 and deletes <= 5, (kind, data, deletes)
            same(shop.cat("ns.t").rows, rows)
            same(shop.pyiceberg_rows("ns.t"), rows) if kind != "equality" else None
            if importlib.util.find_spec("duckdb_extension_iceberg"):
                same(shop.duckdb_rows("ns.t"), rows)
            shop.tarn("check", "ns.t", "--deep")


def by_age():
    """Vectors of more data files than one delete manifest takes: old ones lie apart, where commits leave them, and all read the same."""
    with harness.Workshop() as shop:
        shop.tarn("create", "ns.t", "id long not null, day int, v string", "--format-version", 3)
        lines = [{"id": random.randrange(400), "day": i % 5, "v": "v%d" % i} for i in range(2400)]
        shop.write("in.ndjson", "".join(json.dumps(line) + "\n" for line in lines))
        shop.tarn("--no-sync", "ingest", "ns.t", shop.path("in.ndjson"), "--key", "id", "--upsert", "--deletes", "vector", "--state",
                  shop.path("state"), "--checkpoint-rows", 4)
        rows = list({line["id"]: line for line in lines}.values())
        old = [row["existing_delete_files_count"] for row in shop.cat("ns.t.manifests").rows if row["content"] == 1]
        assert len(old) <= 100 and len([n for n in old if n > 100]) > 1, old
        same(shop.cat("ns.t").rows, rows)
        same(shop.pyiceberg_rows("ns.t"), rows)
        if importlib.util.find_spec("duckdb_extension_iceberg"):
            same(shop.duckdb_rows("ns.t"), rows)
        shop.tarn("check", "ns.t", "--deep")


def not_merged():
    """A table that wants no merging has a manifest a checkpoint."""
    with harness.Workshop() as shop:
        shop.tarn("create", "ns.t", "id long not null", "--property", "commit.manifest-merge.enabled=false")
        shop.write("in.ndjson", "".join('{"id":%d}\n' % i for i in range(120)))
        shop.tarn("--no-sync", "ingest", "ns.t", shop.path("in.ndjson"), "--state", shop.path("state"), "--checkpoint-rows", 1)
        same(manifests(shop), (120, 0))


def equality():
    for version, partition_by in ((2, ""), (2, "bucket(3, id)"), (3, "")):
        fed("equality", version, partition_by, random.random() < 0.5, random.choice((1, 3)))


def position():
    for partition_by in ("", "day"):
        for upsert in (True, False):
            fed("position", 2, partition_by, upsert, random.choice((1, 3)))


def vector():
    for partition_by in ("", "day"):
        for upsert in (True, False):
            fed("vector", 3, partition_by, upsert, random.choice((1, 3)))


def sorted_tables():
    """Rows go where they are sorted to, after they were changed."""
    for kind, version in (("equality", 2), ("position", 2), ("vector", 3)):
        for partition_by in ("", "bucket(3, id)" if kind == "equality" else "day"):
            fed(kind, version, partition_by, random.random() < 0.5, random.choice((1, 3)), random.choice(("v desc", "day, v")))


def other_kinds():
    """The kind of deletes changes between the jobs of one state, and back; what a reader can't read it says. Then another key,
    and none, which are refused by name and change nothing."""
    for version, kinds in ((2, ("position", "equality", "position")), (3, ("vector", "equality", "vector"))):
        with harness.Workshop() as shop:
            shop.tarn("create", "ns.t", "id long not null, day int, v string", "--format-version", version)
            text, rows = stream(1500, True)
            lines = text.splitlines(True)
            keyed = ["--op-column", "op", "--key", "id", "--upsert", "--state", shop.path("state"), "--checkpoint-rows", "100"]
            for i, kind in enumerate(kinds):
                shop.write("in.ndjson", "".join(lines[:len(lines) * (i + 1) // len(kinds)]))
                shop.tarn("ingest", "ns.t", shop.path("in.ndjson"), *keyed, "--deletes", kind)
                same(shop.pyiceberg_rows("ns.t"), shop.cat("ns.t").rows) if i == 0 else None
                if importlib.util.find_spec("duckdb_extension_iceberg"):
                    same(shop.duckdb_rows("ns.t"), shop.cat("ns.t").rows)
            same(shop.cat("ns.t").rows, rows)
            for options, what in ((["--upsert", "--key", "id,day", "--deletes", kinds[0]], "by key (id), not by key (id, day)"),
                                  (["--upsert", "--key", "v", "--deletes", kinds[0]], "by key (id), not by key (v)"),
                                  ([], "only adds rows")):
                harness.must_refuse(shop.tarn("ingest", "ns.t", shop.path("in.ndjson"), *options, "--state", shop.path("state"),
                                              "--ignore-unknown", check=False), what)
            same(shop.cat("ns.t").rows, rows)


def keys_more_than_once():
    """A table that holds keys more than once before its stream, and gets more of them from PyIceberg beside it: a change takes all rows
    of its key, whatever the kind of deletes. Then another state, whose index is made of the table."""
    import pyarrow
    for kind, version in (("equality", 2), ("position", 2), ("vector", 3)):
        with harness.Workshop() as shop:
            shop.tarn("create", "ns.t", "id long not null, day int not null, v string", "--format-version", version)
            rows = [{"id": i % 30, "day": i % 2, "v": "a%d" % i} for i in range(100)]
            lines = [json.dumps(row) + "\n" for row in rows]
            for part in (lines[:60], lines[60:]):
                shop.write("plain.ndjson", "".join(part))
                shop.tarn("ingest", "ns.t", shop.path("plain.ndjson"))

            def upserted(state, some):
                nonlocal rows
                shop.write("in.ndjson", "".join(json.dumps(row) + "\n" for row in some))
                shop.tarn("ingest", "ns.t", "-", "--key", "day,id", "--upsert", "--deletes", kind, "--state", shop.path(state),
                          "--checkpoint-rows", 3, stdin=open(shop.path("in.ndjson"), encoding="utf-8").read())
                keys = {(row["id"], row["day"]) for row in some}
                rows = [row for row in rows if (row["id"], row["day"]) not in keys] + some
                same(shop.cat("ns.t").rows, rows)
                if importlib.util.find_spec("duckdb_extension_iceberg"):
                    same(shop.duckdb_rows("ns.t"), rows)
                if kind != "equality":
                    same(shop.pyiceberg_rows("ns.t"), rows)

            upserted("one", [{"id": i, "day": 0, "v": "b%d" % i} for i in range(10)])
            if version == 2:  # PyIceberg does not append to version 3
                more = [{"id": i % 12, "day": 0, "v": "c%d" % i} for i in range(24)]
                table = shop.catalog().load_table("ns.t")
                table.append(pyarrow.Table.from_pylist(more, schema=table.schema().as_arrow()))
            else:
                more = [{"id": i % 12, "day": 0, "v": "c%d" % i} for i in range(24)]
                shop.write("plain.ndjson", "".join(json.dumps(row) + "\n" for row in more))
                shop.tarn("ingest", "ns.t", shop.path("plain.ndjson"))
            rows += more
            upserted("one", [{"id": i, "day": 0, "v": "d%d" % i} for i in range(4, 12)])
            upserted("two", [{"id": i, "day": i % 2, "v": "e%d" % i} for i in range(25)])


def many_keys_more_than_once():
    """Goal: all rows of a key are known where so many are read at once that the index writes them in order (dml/key_index_load.c).
    Method: two files that share 20,000 of their 40,000 keys, and a stream that changes some keys of each kind."""
    for kind, version in (("position", 2), ("vector", 3)):
        with harness.Workshop() as shop:
            shop.tarn("create", "ns.t", "id long not null, v string", "--format-version", version)
            count = collections.Counter()
            for first in (0, 20000):
                shop.write("plain.ndjson", "".join('{"id":%d,"v":"a%d"}\n' % (i, first) for i in range(first, first + 40000)))
                shop.tarn("ingest", "ns.t", shop.path("plain.ndjson"))
                count.update(range(first, first + 40000))
            changed = list(range(0, 60000, 97))
            shop.write("in.ndjson", "".join('{"id":%d,"v":"b"}\n' % i for i in changed))
            shop.tarn("ingest", "ns.t", shop.path("in.ndjson"), "--key", "id", "--upsert", "--deletes", kind, "--state", shop.path("st"))
            count.update({i: 1 - count[i] for i in changed})
            rows = shop.cat("ns.t").rows
            assert collections.Counter(row["id"] for row in rows) == count
            assert {row["id"] for row in rows if row["v"] == "b"} == set(changed)
            if importlib.util.find_spec("duckdb_extension_iceberg"):
                assert collections.Counter(row["id"] for row in shop.duckdb_rows("ns.t")) == count


CASES = [keys_more_than_once, many_keys_more_than_once, other_kinds, merged, by_age, not_merged, equality, position, vector, sorted_tables]


def main():
    harness.need("pyiceberg", "pyarrow")
    seed = random.randrange(1 << 30)
    random.seed(seed)
    print("seed %d" % seed)
    for test in harness.chosen(CASES):
        case(test.__name__, test)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
