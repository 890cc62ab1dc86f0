#!/usr/bin/env python3
"""Goal: inputs that other implementations got wrong come out right through the command. Method: one function for each case of
tests/fixtures/bugs; what is right stands in its expected.json, and where other readers judge, PyIceberg reads what we wrote.

usage: test_bugs.py [B01 ...]
"""
import glob
import json
import os
import shutil
import sys
import urllib.parse

import harness
from harness import case, equal, must_refuse, read_json, same

BUGS = os.path.join(harness.FIXTURES, "bugs")
MOVED = "/tarn-fixtures/bugs/open=" + BUGS


def table(*names):
    return os.path.join(BUGS, *names, "metadata", "v1.metadata.json")


def read(what, *options, **more):
    return harness.cat(what, *options, moved=MOVED, **more).rows


def column(found, name):
    return sorted(row[name] for row in found)


def data_files(shop, name):
    """Data files with their partitions and bounds, as PyIceberg sees them."""
    loaded = shop.catalog().load_table(name)
    return [entry.data_file for manifest in loaded.current_snapshot().manifests(loaded.io)
            for entry in manifest.fetch_manifest_entry(loaded.io)]


def b01():
    """Truncate near the minimum of a type."""
    equal(len(read(table("B01", "wrapped"), "--where", "x4 < 0")), 1)
    counts = {"x4": ("truncate(10000, x4)", "x4 < 0", 4, "x4 = -2147483648"),
              "x8": ("truncate(10, x8)", "x8 < 0", 5, "x8 = -9223372036854775808")}
    for name, (partition, negative, count, least) in counts.items():
        with harness.Workshop() as shop:
            written = shop.tarn("ingest", "ns.t", os.path.join(BUGS, "B01", "rows.parquet"), "--create", "--partition-by", partition,
                                check=False)
            if written.status != 0:
                must_refuse(written, "truncate", least.split()[-1])
                continue
            equal(len(shop.cat("ns.t", "--where", negative).rows), count)
            equal(len(shop.cat("ns.t", "--where", least).rows), 1)


def b02():
    """Times before 1970: partition values go down, never towards zero."""
    want = read_json(BUGS, "B02", "expected.json")["rows"]
    for unit in ("hour", "day", "month", "year"):
        with harness.Workshop() as shop:
            shop.tarn("ingest", "ns.t", os.path.join(BUGS, "B02", "rows.parquet"), "--create", "--partition-by", unit + "(ts)")
            values = sorted({file.partition[0] for file in data_files(shop, "ns.t")})
            equal(values, sorted({row[unit] for row in want}))
            every = shop.cat("ns.t").rows
            for row in every:
                for operator in ("=", "<", ">="):
                    where = "ts %s '%s'" % (operator, row["ts"])
                    found = shop.cat("ns.t", "--where", where).rows
                    right = [r for r in every if {"=": r["ts"] == row["ts"], "<": r["ts"] < row["ts"],
                                                  ">=": r["ts"] >= row["ts"]}[operator]]
                    same(found, right)


def b04():
    """Partition values with # % / and dots in paths."""
    with harness.Workshop() as shop:
        source = os.path.join(BUGS, "B04", "rows.parquet")
        shop.tarn("ingest", "ns.t", source, "--create", "--partition-by", '"my#str%col"')
        same(shop.cat("ns.t").rows, harness.cat(source).rows)
        seen = set()
        for file in data_files(shop, "ns.t"):
            path = harness.local(file.file_path)
            path = path if os.path.isabs(path) else shop.path(path)
            assert os.path.isfile(path), "no file at the path of the manifest: %r" % file.file_path
            segment = os.path.basename(os.path.dirname(path))
            name, _, value = segment.partition("=")
            equal(name, "my%23str%25col")
            assert segment not in (".", ".."), "path trick: %r" % file.file_path
            if file.partition[0] is not None:
                equal(urllib.parse.unquote_plus(value), file.partition[0])
            seen.add(file.partition[0])
        equal(len(seen), 9)
        same(shop.pyiceberg_rows("ns.t"), shop.cat("ns.t").rows)


def b05():
    """Null partition values before others."""
    want = read_json(BUGS, "B05", "expected.json")
    equal(len(read(table("B05", "tbl"))), want["rows"])
    equal(len(read(table("B05", "tbl"), "--where", "k is null")), want["k_is_null"])
    equal(column(read(table("B05", "tbl"), "--where", "k = 2"), "id"), want["k_eq_2"])
    equal(len(read(table("B05", "tbl"), "--where", "s is null")), want["s_is_null"])
    equal(column(read(table("B05", "tbl"), "--where", "s = ''"), "id"), want["s_empty"])
    with harness.Workshop() as shop:
        every = harness.cat(table("B05", "tbl"), moved=MOVED)
        shop.write("rows.ndjson", every.out)
        shop.tarn("ingest", "ns.t", "rows.ndjson", "--create", "--partition-by", "k, s")
        got = {(file.partition[0], file.partition[1]) for file in data_files(shop, "ns.t")}
        equal(got, {tuple(p) for p in want["partitions"]})


def b07():
    """A lower bound cut within a character."""
    want = read_json(BUGS, "B07", "expected.json")
    equal(len(read(table("B07", "tbl"))), want["rows"])
    for where, ids in want["filters"].items():
        equal(column(read(table("B07", "tbl"), "--where", where), "id"), ids)


def b08():
    """Upper bounds of cut text."""
    for name, want in read_json(BUGS, "B08", "expected.json")["files"].items():
        with harness.Workshop() as shop:
            shop.tarn("ingest", "ns.t", os.path.join(BUGS, "B08", name + ".parquet"), "--create")
            file, = data_files(shop, "ns.t")
            bounds = [(b or {}).get(1) for b in (file.lower_bounds, file.upper_bounds)]
            equal([name] + [b and b.hex() for b in bounds], [name, want["lower_bound_hex"], want["upper_bound_hex"]])


def b10():
    """Decimals: exponents, minimal bytes, padded bounds."""
    want = read_json(BUGS, "B10", "expected.json")
    equal(len(read(table("B10", "tbl"), "--where", "v < 0")), 1)
    with harness.Workshop() as shop:
        shop.tarn("create", "ns.t", "id long, v decimal(7,2)")
        shop.tarn("ingest", "ns.t", os.path.join(BUGS, "B10", "rows.jsonl"))
        equal([row["v"] for row in sorted(shop.cat("ns.t").rows, key=lambda r: r["id"])], want["values"])
        file, = data_files(shop, "ns.t")
        equal(file.lower_bounds[2].hex(), want["lower_bound_hex"])
        equal(file.upper_bounds[2].hex(), want["upper_bound_hex"])
        must_refuse(shop.tarn("ingest", "ns.t", os.path.join(BUGS, "B10", "bad.jsonl"), check=False), "v")
        equal(len(shop.cat("ns.t").rows), len(want["values"]))
        shop.tarn("ingest", "ns.t", os.path.join(BUGS, "B10", "bad.jsonl"), "--rejects", "bad.ndjson", check=False)
        with open(shop.path("bad.ndjson"), encoding="utf-8") as file:
            equal(len(file.read().splitlines()), 3)
        equal(len(shop.cat("ns.t").rows), len(want["values"]))


def b11():
    """Files without field ids: by the name mapping, or not at all."""
    want = read_json(BUGS, "B11", "expected.json")
    names = ["first", "renamed", "third", "n"]
    same(read(table("B11", "tbl")), [dict(zip(names, row)) for row in want["tbl"]])
    equal(len(read(table("B11", "tbl"), "--where", "renamed = 'bbb'")), 1)
    answer = harness.cat(table("B11", "tbl_no_mapping"), moved=MOVED, check=False)
    if answer.status == 0:
        same(answer.rows, [dict.fromkeys(names), dict(zip(names, want["tbl"][1]))])
    else:
        must_refuse(answer, "imported.parquet", "mapping")


def b14():
    """Rows and deletes of one key in one checkpoint: whatever takes the rows away, and with more keys than fit."""
    equal(column(read(table("B14", "bad_writer")), "id"), [1, 2])
    for deletes in ("equality", "position", "vector"):
        with harness.Workshop() as shop:
            take = lambda name, path: shop.tarn(
                "ingest", name, path, "--create", "--schema", "id long not null, v string", "--op-column", "op", "--upsert", "--key", "id", "--deletes",
                deletes, "--state", name + ".state", "--property", "format-version=%d" % (3 if deletes == "vector" else 2), "--memory-mb", "8")
            take("ns.t", os.path.join(BUGS, "B14", "events.jsonl"))
            equal(sorted((r["id"], r["v"]) for r in shop.cat("ns.t").rows), [(1, "a2"), (3, "c2")])
            equal(sorted((r["id"], r["v"]) for r in shop.duckdb_rows("ns.t")), [(1, "a2"), (3, "c2")])
            keys = 30000
            shop.write("many.ndjson", "".join('{"op":"c","id":%d,"v":"x"}\n' % i for i in range(keys))
                       + "".join('{"op":"u","id":%d,"v":"y"}\n' % i for i in range(100)))
            take("ns.m", "many.ndjson")
            equal(int(shop.tarn("cat", "ns.m", "--count").out), keys)
            equal(column(shop.cat("ns.m", "--where", "v = 'y'").rows, "id"), list(range(100)))


def b22():
    """Partition field names that Avro does not allow."""
    want = read_json(BUGS, "B22", "expected.json")
    every = read(table("B22", "raw_names"))
    equal(len(every), want["rows"])
    for variant in ("sanitized", "sanitized_no_property"):
        same(read(table("B22", variant)), every)
    for number, value in enumerate(want["partition"].values()):
        where = "c%d is null" % number if value is None else "c%d = '%s'" % (number, value)
        for variant in ("raw_names", "sanitized", "sanitized_no_property"):
            equal(len(read(table("B22", variant), "--where", where)), want["rows"])
    with harness.Workshop() as shop:
        shop.write("rows.ndjson", json.dumps(want["partition"]) + "\n")
        spec = ", ".join('"%s"' % name for name in want["partition"])
        shop.tarn("create", "ns.t", ", ".join('"%s" string' % name for name in want["partition"]), "--partition-by", spec)
        shop.tarn("ingest", "ns.t", "rows.ndjson")
        same(shop.cat("ns.t").rows, [want["partition"]])
        same(shop.pyiceberg_rows("ns.t"), [want["partition"]])
        same(shop.duckdb_rows("ns.t"), [want["partition"]])
        import fastavro
        loaded = shop.catalog().load_table("ns.t")
        path = harness.local(loaded.current_snapshot().manifests(loaded.io)[0].manifest_path)
        with open(path, "rb") as file:
            reader = fastavro.reader(file)
            list(reader)
            named = fields_of(reader.writer_schema, "partition")
        equal({f.get("iceberg-field-name", f["name"]): f["name"] for f in named}, want["sanitized"])


def fields_of(schema, name):
    """The fields of the record that a field of this name has, anywhere below schema."""
    if isinstance(schema, list):
        return next(filter(None, (fields_of(s, name) for s in schema)), None)
    if not isinstance(schema, dict):
        return None
    for field in schema.get("fields", []):
        if field["name"] == name:
            return field["type"]["fields"]
    return next(filter(None, (fields_of(f["type"], name) for f in schema.get("fields", []))), None)


def b23():
    """Manifest headers as found in the field."""
    want = [tuple(row) for row in read_json(BUGS, "B23", "expected.json")["rows"]]
    for path in sorted(glob.glob(os.path.join(BUGS, "B23", "*", "metadata", "v1.metadata.json"))):
        name = path.split(os.sep)[-3]
        answer = harness.cat(path, moved=MOVED, check=False)
        if name == "no_field_ids" and answer.status != 0:
            must_refuse(answer, "field id", ".avro")
            continue
        assert answer.status == 0, "%s: %s" % (name, answer)
        equal((name, sorted(tuple(row.values()) for row in answer.rows)), (name, want))


def b25():
    """Key metadata of files and manifests stay; what cannot keep it is refused."""
    with harness.Workshop() as shop:
        shutil.copytree(os.path.join(BUGS, "B25", "tbl"), shop.path("B25", "tbl"))
        moved = "/tarn-fixtures/bugs/open=" + shop.folder
        shop.tarn("register", "ns.t", shop.path("B25", "tbl", "metadata", "v1.metadata.json"))
        before = keys(shop, moved)
        equal([len(before[0]), len(before[1])], [3, 2])
        shop.write("one.ndjson", '{"id": 99}\n')
        for options in ((), ("--merge-append",)):
            shop.tarn("ingest", "ns.t", "one.ndjson", "--moved", moved, *options)
            equal(keys(shop, moved), before)
            shop.tarn("set", "ns.t", "commit.manifest.min-count-to-merge=2", "--moved", moved)
        equal(len(shop.cat("ns.t.manifests", moved=moved).rows), 3)  # the two with a key, and one of all others
        must_refuse(shop.tarn("delete", "ns.t", "--where", "id = 0", "--moved", moved, check=False), "m0.avro", "key metadata")
        shop.tarn("delete", "ns.t", "--where", "id = 99", "--moved", moved)
        equal(keys(shop, moved), before)
        equal(column(shop.cat("ns.t", moved=moved).rows, "id"), [0, 1, 2])


def keys(shop, moved):
    """Key metadata of a table's data files and of its manifests, those that have any."""
    files = {row["file_path"]: row["key_metadata"] for row in shop.cat("ns.t.files", moved=moved).rows}
    current = json.loads(shop.tarn("describe", "ns.t", "--json", "--moved", moved).out)
    listed, = [s["manifest-list"] for s in current["snapshots"] if s["snapshot-id"] == current["current-snapshot-id"]]
    path = harness.local(listed).replace("/tarn-fixtures/bugs/open", shop.folder)
    manifests = {row["manifest_path"]: row["key_metadata"] for row in shop.tarn("file", "cat", path).rows}
    return [{path: key for path, key in found.items() if key} for found in (files, manifests)]


def b26():
    """Optional members of table metadata, absent or null."""
    import gzip
    for name, want in read_json(BUGS, "B26", "expected.json")["rows_or_error"].items():
        path = os.path.join(BUGS, "B26", name + ".metadata.json")
        with harness.Workshop() as shop:
            with open(path, "rb") as file:
                packed = gzip.compress(file.read())
            copies = [path]
            for ending in (".gz.metadata.json", ".metadata.json.gz"):
                copies.append(shop.path(name + ending))
                with open(copies[-1], "wb") as file:
                    file.write(packed)
            for copy in copies:
                answer = harness.cat(copy, moved=MOVED, check=False)
                if isinstance(want, int):
                    assert answer.status == 0, "%s: %s" % (os.path.basename(copy), answer)
                    equal((name, len(answer.rows)), (name, want))
                elif name == "v2_ref_differs":
                    assert answer.status == 0 or "main" in answer.err, answer
                else:
                    must_refuse(answer, "9" if name == "v9_future" else "4242")


def b43():
    """Avro times with and without zones, wherever the reader lives."""
    want = read_json(BUGS, "B43", "expected.json")
    for variant in ("spec", "no_property", "millis", "local", "plain_long"):
        ids = "millis" if variant == "millis" else "ts"
        for zone in ("UTC", "America/Chicago", "Asia/Kolkata"):
            answer = harness.cat(table("B43", variant), moved=MOVED, env={"TZ": zone}, check=False)
            if answer.status != 0 and variant in ("local", "plain_long"):
                must_refuse(answer, "ts")
                continue
            assert answer.status == 0, answer
            found = sorted(answer.rows, key=lambda row: row["id"])
            times = [t + ".000000" if "." not in t else t.ljust(26, "0") for t in want[ids]]
            equal((variant, zone, [row["ts"] for row in found]), (variant, zone, times))
            equal((variant, zone, [row["tz"] for row in found]), (variant, zone, [t + "+00:00" for t in times]))
            where = "tz = '2023-06-04T19:59:59.999999-04:00'"
            hits = read(table("B43", variant), "--where", where, env={"TZ": zone})
            equal((variant, column(hits, "id")), (variant, [] if variant == "millis" else [0]))


def b44():
    """Wrong offsets of row groups in Parquet."""
    for path in sorted(glob.glob(os.path.join(BUGS, "B44", "*.parquet"))):
        answer = harness.tarn("file", "cat", path, check=False)
        if "no_dict_offset" in path and answer.status != 0:
            must_refuse(answer, "row group")
            continue
        assert answer.status == 0, answer
        equal((path, len(answer.rows), sum(row["id"] for row in answer.rows)), (path, 300, 44850))


def b46():
    """INT96 before 1970 and far ahead."""
    want = read_json(BUGS, "B46", "expected.json")["timestamps_at_micros"]
    found = harness.tarn("file", "cat", os.path.join(BUGS, "B46", "int96.parquet")).rows
    values = [next(v for v in row.values() if isinstance(v, str)).removesuffix("+00:00") for row in found]
    equal(values, [t if "." in t else t + ".000000" for t in want])


def b47():
    """NaN and signed zeros in statistics."""
    for key, count in read_json(BUGS, "B47", "expected.json")["filters"].items():
        name, _, where = key.partition(": ")
        where = where.replace("is_nan(x)", "x is nan")
        found = harness.cat(os.path.join(BUGS, "B47", name + ".parquet"), "--where", where).rows
        equal((key, len(found)), (key, count))


def b49():
    """Counts that contradict each other."""
    want = read_json(BUGS, "B49", "expected.json")
    for name in want["errors"]:
        must_refuse(harness.tarn("file", "cat", os.path.join(BUGS, "B49", name + ".parquet"), check=False), name + ".parquet")
    for name in ("empty_row_group", "no_row_groups", "empty_in_the_middle"):
        found = harness.tarn("file", "cat", os.path.join(BUGS, "B49", name + ".parquet")).rows
        equal((name, [next(iter(row.values())) for row in found]), (name, want[name]))


def b50():
    """Plain pages after a dictionary."""
    want = read_json(BUGS, "B50", "expected.json")
    for path in sorted(glob.glob(os.path.join(BUGS, "B50", "*.parquet"))):
        equal([row["x"] for row in harness.tarn("file", "cat", path).rows], want["values"])
        for where, count in want["filters"].items():
            equal((path, where, len(harness.cat(path, "--where", where).rows)), (path, where, count))


def b53():
    """Blocks of Avro arrays and maps; damaged files."""
    want = read_json(BUGS, "B53", "expected.json")
    for name in list(want["ok"]) + ["negative_header_map"]:
        found = harness.tarn("file", "cat", os.path.join(BUGS, "B53", name + ".avro")).rows
        equal((name, [row["z"] for row in found]), (name, [5] if name == "negative_header_map" else [0, 1, 5, 266]))
        for row in found:
            equal((name, len(row["a"]), len(row["m"]["keys"])), (name, row["z"], row["z"]))
    for name in want["errors"]:
        must_refuse(harness.tarn("file", "cat", os.path.join(BUGS, "B53", name + ".avro"), check=False), name + ".avro")


CASES = [b01, b02, b04, b05, b07, b08, b10, b11, b14, b22, b23, b25, b26, b43, b44, b46, b47, b49, b50, b53]


def main(names):
    harness.need("pyarrow", "pyiceberg", "fastavro", "duckdb")
    for function in CASES:
        if not names or function.__name__.upper() in names:
            case("%s %s" % (function.__name__.upper(), function.__doc__), function)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
