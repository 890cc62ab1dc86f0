#!/usr/bin/env python3
"""Goal: tables that delete, update and merge changed are read by others as they were meant, copy-on-write and merge-on-read, and the
commands say what is wrong. Method: a model of the rows in Python beside random commands; PyIceberg, DuckDB and the command itself
are asked after each; what no table can take must be refused and change nothing.

usage: test_row_changes.py [case...]
"""
import csv
import json
import random
import sys

import harness
from harness import case, equal, must_refuse, same

NUMBERS = "id long not null, k int, s string, d double"
OPERATIONS = ("delete", "update", "merge")


def numbers(count, start=0):
    return [{"id": i, "k": i % 3, "s": None if i % 5 == 0 else "s%d" % (i % 11), "d": i / 4} for i in range(start, start + count)]


def lines(found):
    return "".join(json.dumps(row) + "\n" for row in found)


def ingest(shop, found):
    shop.tarn("ingest", "ns.t", shop.write("rows.ndjson", lines(found)))


def make(shop, version, mode, *options):
    properties = [word for what in OPERATIONS for word in ("-p", "write.%s.mode=%s" % (what, mode))]
    shop.tarn("create", "ns.t", NUMBERS, "--format-version", str(version), *properties, *options)


def agree(shop, want, vectors):
    same(shop.cat("ns.t").rows, want)
    same(shop.pyiceberg_rows("ns.t"), want)
    same(shop.duckdb_rows("ns.t"), want)
    if vectors:
        deletes = shop.cat("ns.t.delete_files").rows
        named = [row["referenced_data_file"] for row in deletes]
        equal(len(named), len(set(named)))
        equal({row["file_format"] for row in deletes} - {"PUFFIN"}, set())


def step(shop, rng, want):
    """One random command, on the table and on the rows."""
    low = rng.randrange(120)
    high = low + rng.randrange(30)
    where = "id >= %d and id <= %d" % (low, high)
    what = rng.choice(("ingest", "delete", "update", "merge", "prune"))
    if what == "ingest":
        start = max([row["id"] for row in want], default=-1) + 1
        ingest(shop, numbers(15, start))
        return want + numbers(15, start)
    if what == "delete":
        shop.tarn("delete", "ns.t", "--where", where)
        return [row for row in want if not low <= row["id"] <= high]
    if what == "update":
        shop.tarn("update", "ns.t", "--set", "s = 'u%d', d = d + k, k = 2 - k" % low, "--where", where)
        return [{**row, "s": "u%d" % low, "d": row["d"] + row["k"], "k": 2 - row["k"]} if low <= row["id"] <= high else row for row in want]
    if what == "prune":
        shop.tarn("delete", "ns.t", "--where", "k = 1 and id < %d" % low)
        return [row for row in want if not (row["k"] == 1 and row["id"] < low)]
    source = [{"id": i, "s": "m%d" % i, "k": 1} for i in rng.sample(range(150), 12)]
    name = "m.ndjson"
    if rng.random() < 0.5:
        shop.write(name, lines(source))
    else:
        name = "m.csv"
        with open(shop.path(name), "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, ("s", "k", "id"))
            writer.writeheader()
            writer.writerows(source)
    by_id = {row["id"]: row for row in source}
    matched = rng.choice(("update", "delete", "ignore"))
    rest = rng.choice(("insert", "ignore"))
    shop.tarn("merge", "ns.t", name, "--key", "id", "--when-matched", matched, "--when-not-matched", rest)
    have = {row["id"] for row in want}
    if matched == "update":
        want = [{**row, **by_id.get(row["id"], {})} for row in want]
    elif matched == "delete":
        want = [row for row in want if row["id"] not in by_id]
    return want + [{"d": None, **row} for row in source if rest == "insert" and row["id"] not in have]


def changed(version, mode):
    for seed in range(3):
        rng = random.Random(seed)
        options = ("--partition-by", "k") if seed == 1 else ()
        if seed == 2:
            options = ("-p", "write.delete.granularity=partition")
        with harness.Workshop() as shop:
            make(shop, version, mode, *options)
            want = numbers(60)
            ingest(shop, want)
            for _ in range(9):
                want = step(shop, rng, want)
                agree(shop, want, version == 3)


def copy_on_write_2():
    """Rewritten files of version 2."""
    changed(2, "copy-on-write")


def copy_on_write_3():
    """Rewritten files of version 3."""
    changed(3, "copy-on-write")


def merge_on_read_2():
    """Position deletes."""
    changed(2, "merge-on-read")


def merge_on_read_3():
    """Deletion vectors."""
    changed(3, "merge-on-read")


def told():
    """What the commands say, as text and as JSON."""
    with harness.Workshop() as shop:
        make(shop, 2, "merge-on-read")
        ingest(shop, numbers(10))
        answer = json.loads(shop.tarn("update", "ns.t", "--set", "s = null", "--where", "id < 3", "--json").out)
        equal((answer["rows-updated"], answer["rows-rewritten"], answer["delete-files-added"]), (3, 0, 1))
        equal(answer["snapshot-id"], shop.catalog().load_table("ns.t").current_snapshot().snapshot_id)
        answer = json.loads(shop.tarn("delete", "ns.t", "--where", "id = 4", "--json").out)
        equal((answer["rows-deleted"], answer["delete-files-added"]), (1, 1))
        shop.write("m.ndjson", '{"id":4,"k":1}\n{"id":5,"k":1}\n')
        answer = json.loads(shop.tarn("merge", "ns.t", "m.ndjson", "--key", "id", "--json").out)
        equal((answer["rows-changed"], answer["rows-inserted"]), (1, 1))
        answer = shop.tarn("update", "ns.t", "--set", "k = 1", "--where", "id = 99")
        equal("0 rows updated" in answer.err and "nothing to commit" in answer.err, True)


def refused():
    """Bad input is named, and nothing changes."""
    with harness.Workshop() as shop:
        make(shop, 2, "merge-on-read")
        ingest(shop, numbers(10))
        before = shop.metadata("ns.t")
        say = lambda *words, **more: shop.tarn(*words, check=False, **more)  # noqa: E731
        must_refuse(say("update", "ns.t", "--set", "s = 1 +", "--where", "true"), "column", "missing")
        must_refuse(say("update", "ns.t", "--set", "x = 1", "--where", "true"), "x", "lacks")
        must_refuse(say("update", "ns.t", "--set", "k = 99999999999", "--where", "true"), "k")
        must_refuse(say("update", "ns.t", "--set", "id = null", "--where", "true"), "id", "required")
        must_refuse(say("update", "ns.t", "--set", "k = k / 0", "--where", "true"), "zero")
        shop.write("twice.ndjson", '{"id":1}\n{"id":2}\n{"id":1}\n')
        must_refuse(say("merge", "ns.t", "twice.ndjson", "--key", "id"), "id = 1", "rows 1 and 3")
        shop.write("null.ndjson", '{"id":1,"k":1}\n{"k":2}\n')
        must_refuse(say("merge", "ns.t", "null.ndjson", "--key", "id"), "id", "null", "line 2")
        shop.write("more.csv", "id,extra\n1,2\n")
        must_refuse(say("merge", "ns.t", "more.csv", "--key", "id"), "extra", "lacks")
        must_refuse(say("merge", "ns.t", "twice.ndjson"), "key", "identifier")
        must_refuse(say("merge", "ns.t", "twice.ndjson", "--key", "id", "--when-matched", "keep"), "when-matched", "keep")
        shop.write("bad.ndjson", '{"id":1}\n{"id":"x"}\n')
        must_refuse(say("merge", "ns.t", "bad.ndjson", "--key", "id"), "line 2")
        shop.tarn("set", "ns.t", "write.update.mode=sometimes")
        must_refuse(say("update", "ns.t", "--set", "k = 1", "--where", "true"), "write.update.mode", "sometimes")
        shop.tarn("set", "ns.t", "write.update.mode=merge-on-read")
        same(shop.cat("ns.t").rows, numbers(10))
        equal(shop.cat("ns.t.delete_files").rows, [])
        equal(len(shop.cat("ns.t.snapshots").rows), 1)
        equal(before.endswith("metadata.json"), True)


def types():
    """Every type is set by literals, by other columns and to null, as PyIceberg and DuckDB read it."""
    columns = ("id long, i int, f float, d double, de decimal(9,2), da date, ti time, ts timestamp, tz timestamptz, s string, u uuid, "
               "b binary, bo boolean, l list<int>, l2 list<int>, st struct<x: int>, st2 struct<x: int>")
    row = {"id": 1, "i": 7, "f": 0.5, "d": 2.5, "de": "1.25", "da": "2020-02-29", "ti": "01:02:03.000000", "ts": "2020-01-01T00:00:00.000000",
           "tz": "2020-01-01T00:00:00.000000+00:00", "s": "x", "u": "f79c3e09-677c-4bbd-a479-3f349cb785e7", "b": "00ff", "bo": True, "l": [1, 2],
           "l2": [3], "st": {"x": 1}, "st2": {"x": 2}}
    steps = [
        ("i = -5, f = 1.5, d = 1e3, de = 2.5 * 3, s = 'it''s'", {"i": -5, "f": 1.5, "d": 1000.0, "de": "7.50", "s": "it's"}),
        ("da = date '2021-01-01', ti = time '10:00:00', ts = timestamp '2021-01-02 03:04:05.5', tz = '2021-01-01T01:00:00+01:00', bo = false",
         {"da": "2021-01-01", "ti": "10:00:00.000000", "ts": "2021-01-02T03:04:05.500000", "tz": "2021-01-01T00:00:00.000000+00:00", "bo": False}),
        ("u = '00000000-0000-0000-0000-000000000001', l = l2, st = st2, l2 = null",
         {"u": "00000000-0000-0000-0000-000000000001", "l": [3], "st": {"x": 2}, "l2": None}),
        ("d = i, i = d, de = de - 0.25 + (id * 2), f = 1 / 4, `s` = \"s\" || '-' || s, id = id + 1",
         {"d": -5.0, "i": 1000, "de": "9.25", "f": 0.25, "s": "it's-it's", "id": 2}),
        ("ts = da, st = null, b = null", {"ts": "2021-01-01T00:00:00.000000", "st": None, "b": None}),
    ]
    for mode in ("copy-on-write", "merge-on-read"):
        with harness.Workshop() as shop:
            shop.tarn("create", "ns.t", columns, "-p", "write.update.mode=" + mode)
            ingest(shop, [row])
            want = row
            for text, change in steps:
                shop.tarn("update", "ns.t", "--set", text, "--where", "id > 0")
                want = {**want, **change}
                same(shop.cat("ns.t").rows, [want])
                plain = {k: v for k, v in want.items() if k not in ("b", "l2", "st")}
                same([{k: r[k] for k in plain} for r in shop.pyiceberg_rows("ns.t")], [plain])
                same([{k: r[k] for k in plain} for r in shop.duckdb_rows("ns.t")], [plain])


def evolved():
    """Schema and partitioning changed between the rows: files of old specs lose rows too, and rewritten rows lie in the new one."""
    for version in (2, 3):
        for mode in ("copy-on-write", "merge-on-read"):
            with harness.Workshop() as shop:
                make(shop, version, mode, "--partition-by", "k")
                ingest(shop, numbers(30))
                shop.tarn("alter", "ns.t", "add-partition", "bucket(4, id)")
                shop.tarn("alter", "ns.t", "add-column", "note", "string")
                shop.tarn("alter", "ns.t", "rename-column", "s", "text")
                renamed = lambda row: {"id": row["id"], "k": row["k"], "text": row["s"], "d": row["d"], "note": None}  # noqa: E731
                ingest(shop, [renamed(row) for row in numbers(30, 30)])
                shop.tarn("delete", "ns.t", "--where", "id in (3, 4, 33, 34)")
                shop.tarn("update", "ns.t", "--set", "note = text || '?', text = null", "--where", "k = 1 and d > 2")
                want = [renamed(row) for row in numbers(60) if row["id"] not in (3, 4, 33, 34)]
                want = [{**row, "note": row["text"] and row["text"] + "?", "text": None} if row["k"] == 1 and row["d"] > 2 else row
                        for row in want]
                agree(shop, want, version == 3)


def from_files():
    """Merges from files of every format, with columns of other widths and in another order."""
    import pyarrow
    import pyarrow.parquet
    with harness.Workshop() as shop:
        make(shop, 2, "merge-on-read")
        want = numbers(6)
        ingest(shop, want)
        table = pyarrow.table({"s": ["p1", "p9"], "id": pyarrow.array([1, 9], pyarrow.int32()), "d": pyarrow.array([0.5, 1.5], pyarrow.float32())})
        pyarrow.parquet.write_table(table, shop.path("m.parquet"))
        shop.tarn("merge", "ns.t", "m.parquet", "--key", "id")
        want[1].update(s="p1", d=0.5)
        want.append({"id": 9, "k": None, "s": "p9", "d": 1.5})
        agree(shop, want, False)
        shop.tarn("cat", "ns.t", "--where", "id = 9 or id = 2", "-o", "m.avro")
        shop.tarn("merge", "ns.t", "m.avro", "--key", "id", "--when-matched", "delete")
        want = [row for row in want if row["id"] not in (2, 9)]
        agree(shop, want, False)
        shop.write("m.csv", "d,id\n7.25,0\n,3\n")
        shop.tarn("merge", "ns.t", "m.csv", "--key", "id")
        want = [{**row, "d": {0: 7.25, 3: None}[row["id"]]} if row["id"] in (0, 3) else row for row in want]
        agree(shop, want, False)
        shop.tarn("merge", "ns.t", "m.csv", "--key", "id,d", "--when-not-matched", "ignore", check=False)
        agree(shop, want, False)


CASES = [copy_on_write_2, copy_on_write_3, merge_on_read_2, merge_on_read_3, types, evolved, from_files, told, refused]


def main(names):
    harness.need("pyiceberg", "duckdb", "fastavro", "pyarrow", "duckdb_extension_iceberg")
    for fn in CASES:
        if not names or fn.__name__ in names:
            case(fn.__name__, fn)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
