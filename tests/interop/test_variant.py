#!/usr/bin/env python3
"""Goal: JSON that is written into a variant column is the variant that parse_json makes of it elsewhere, and comes back as the
same JSON. Method: NDJSON and CSV are ingested; the data file is read by pyarrow as bytes and decoded by variant.py, types too,
and by DuckDB; then `tarn cat` shows the rows again. Rows that are no JSON, or whose variant was damaged, are told by name.

usage: test_variant.py [case...]
"""
import csv
import glob
import io
import json
import sys
from decimal import Decimal

import harness
import rows
import variant
from harness import Workshop, must_refuse, same

harness.need("pyarrow", "fastavro", "duckdb", "duckdb_extension_iceberg")
import fastavro  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

INT = {"int8": 1, "int16": -300, "int32": 70000, "int64": -5000000000}
VALUES = [
    (1, {"t": "object", "v": {"a": {"t": "int8", "v": 1}, "b": {"t": "array", "v": [
        {"t": "null", "v": None}, {"t": "boolean_true", "v": True}, {"t": "object", "v": {}}]}}}, '{"b": [null, true, {}], "a": 1}'),
    (2, {"t": "string", "v": "grüße"}, '"gr\\u00fc\\u00dfe"'),
    (3, {"t": "string", "v": "x" * 64}, '"%s"' % ("x" * 64)),
    (4, {"t": "boolean_false", "v": False}, "false"),
    (5, {"t": "decimal4", "v": "12.50"}, "12.50"),
    (6, {"t": "decimal8", "v": "-1234567890.12"}, "-1234567890.12"),
    (7, {"t": "decimal16", "v": "18446744073709551616"}, "18446744073709551616"),
    (8, {"t": "double", "v": 1.5e300}, "1.5e300"),
    (9, None, "null"),
    # Legitimate data, not the two texts of bytes that a variant is.
    (10, {"t": "object", "v": {"metadata": {"t": "string", "v": "010000"}, "value": {"t": "string", "v": "00"}}},
     '{"metadata": "010000", "value": "00"}'),
    (11, {"t": "array", "v": [{"t": "int16", "v": i} for i in range(1000, 1300)]}, json.dumps(list(range(1000, 1300)))),
    (12, {"t": "object", "v": {"k%03d" % i: {"t": "int8", "v": i % 100} for i in range(300)}},
     json.dumps({"k%03d" % i: i % 100 for i in range(299, -1, -1)})),
] + [(20 + i, {"t": kind, "v": value}, str(value)) for i, (kind, value) in enumerate(INT.items())]
SHOWN = [{"id": number, "v": variant.shown(value)} for number, value, _ in VALUES]


BAD = [('{"id": 1, "v": {"a": 1, "a": 2}}', 'the name "a" stood twice'), ('{"id": 1, "v": [1e400]}', "beyond a double"),
       ('{"id": 1, "v": {"a": }}', "a JSON value was expected"), ('{"id": 1, "v": %s1%s}' % ("[" * 201, "]" * 201), "nested deeper")]


def make(shop, *names):
    for name in names:
        shop.tarn("create", "app." + name, "id long, v variant", "--format-version", "3")


def data_file(shop, name):
    found = glob.glob(shop.path("warehouse", "app", name, "data", "**", "*.parquet"), recursive=True)
    harness.equal(len(found), 1)
    return found[0]


def decoded(path):
    """The rows of a file as variant.py, which knows nothing of the command, decodes their bytes."""
    out = []
    for row in pq.read_table(path).to_pylist():
        value = row["v"]
        row["v"] = value if value is None else variant.decode(variant.names(value["metadata"]), value["value"])
        out.append(row)
    return out


def json_becomes_variants():
    with Workshop() as shop:
        make(shop, "n", "c")
        shop.write("in.ndjson", "".join('{"id": %d, "v": %s}\n' % (number, text) for number, _, text in VALUES))
        shop.tarn("ingest", "app.n", "in.ndjson")
        with open(shop.path("in.csv"), "w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([["id", "v"]] + [[number, "" if value is None else text] for number, value, text in VALUES])
        shop.tarn("ingest", "app.c", "in.csv")
        for name in ("n", "c"):
            same(decoded(data_file(shop, name)), [{"id": number, "v": value} for number, value, _ in VALUES])
            same(rows.parse(shop.cat("app." + name).out, Decimal), SHOWN)
        shown = list(csv.reader(io.StringIO(shop.tarn("cat", "app.n", "--format", "csv").out)))
        harness.equal(shown[0], ["id", "v"])
        same([{"id": int(i), "v": json.loads(v, parse_float=Decimal) if v else None} for i, v in shown[1:]], SHOWN)


def names_are_sorted_and_once():
    with Workshop() as shop:
        make(shop, "n")
        shop.write("in.ndjson", '{"id": 1, "v": {"b": [{"b": 1, "a": 2}, {"c": 3, "b": 4}]}}\n')
        shop.tarn("ingest", "app.n", "in.ndjson")
        value = pq.read_table(data_file(shop, "n")).to_pylist()[0]["v"]
        harness.equal(variant.names(value["metadata"]), ["a", "b", "c"])
        harness.equal(value["metadata"][0] >> 4 & 1, 1)


def duckdb_reads_them():
    with Workshop() as shop:
        make(shop, "n")
        shop.write("in.ndjson", "".join('{"id": %d, "v": %s}\n' % (number, text) for number, _, text in VALUES))
        shop.tarn("ingest", "app.n", "in.ndjson")
        found = harness.duckdb_connection().execute("select id, v::json::varchar from iceberg_scan(?)", [shop.metadata("app.n")]).fetchall()
        same([{"id": i, "v": None if v is None else json.loads(v, parse_float=Decimal)} for i, v in found], SHOWN)


def changes_show_them():
    with Workshop() as shop:
        make(shop, "n")
        shop.write("in.ndjson", '{"id": 1, "v": {"a": [1, "x"]}}\n')
        shop.tarn("ingest", "app.n", "in.ndjson")
        found = shop.tarn("changes", "app.n", "--from", "start", "--format", "ndjson").rows
        harness.equal([row["v"] for row in found], [{"a": [1, "x"]}])


def bad_rows_are_told():
    with Workshop() as shop:
        make(shop, "n")
        for number, (line, words) in enumerate(BAD):
            shop.write("bad%d.ndjson" % number, line + "\n")
            answer = shop.tarn("ingest", "app.n", "bad%d.ndjson" % number, check=False)
            must_refuse(answer, words)
            assert "column v" in answer.err, answer
        harness.equal(shop.cat("app.n").rows, [])


def merged_and_evolved():
    """What infers types first takes values of one kind, and names the column of others."""
    with Workshop() as shop:
        make(shop, "n")
        shop.write("in.ndjson", '{"id": 1, "v": {"a": 1}}\n{"id": 2, "v": {"b": [1.5]}}\n')
        shop.tarn("ingest", "app.n", "in.ndjson")
        shop.write("more.ndjson", '{"id": 2, "v": {"c": "x"}}\n{"id": 3, "v": {"d": null}}\n')
        shop.tarn("merge", "app.n", "more.ndjson", "--key", "id")
        shop.write("wide.ndjson", '{"id": 4, "v": [1], "w": 7}\n')
        shop.tarn("ingest", "app.n", "wide.ndjson", "--evolve")
        want = [(1, {"a": 1}, None), (2, {"c": "x"}, None), (3, {"d": None}, None), (4, [1], 7)]
        same(shop.cat("app.n").rows, [{"id": i, "v": v, "w": w} for i, v, w in want])
        shop.write("mixed.ndjson", '{"id": 5, "v": 1}\n{"id": 6, "v": {}}\n')
        must_refuse(shop.tarn("merge", "app.n", "mixed.ndjson", "--key", "id", check=False), "column v")
        shop.write("both.ndjson", '{"id": 5, "v": 1, "y": 1}\n{"id": 6, "v": {}}\n')
        must_refuse(shop.tarn("ingest", "app.n", "both.ndjson", "--evolve", check=False), "column v")
        shop.tarn("ingest", "app.n", "mixed.ndjson", "--evolve")
        harness.equal(len(shop.cat("app.n").rows), 6)


def damaged_bytes_are_told():
    """An Avro file of another writer, taken as it is, whose second row's value is cut off."""
    part = {"type": "record", "name": "r2", "logicalType": "variant", "fields": [{"name": n, "type": "bytes"} for n in ("metadata", "value")]}
    schema = {"type": "record", "name": "t", "fields": [{"name": "id", "type": "long"}, {"name": "v", "type": part}]}
    values = [b"\x0c\x05", b"\x61a string of some length"]  # of 24 bytes, it says
    with Workshop() as shop:
        make(shop, "n")
        with open(shop.path("in.avro"), "wb") as file:
            fastavro.writer(file, schema, [{"id": i + 1, "v": {"metadata": b"\1\0\0", "value": v}} for i, v in enumerate(values)])
        shop.tarn("ingest", "app.n", "in.avro")
        answer = shop.cat("app.n", check=False)
        must_refuse(answer, "cut off", "column v", "row 2")
        harness.equal(shop.cat("app.n", "--columns", "id").rows, [{"id": 1}, {"id": 2}])


CASES = [json_becomes_variants, names_are_sorted_and_once, duckdb_reads_them, changes_show_them, bad_rows_are_told, merged_and_evolved,
         damaged_bytes_are_told]

if __name__ == "__main__":
    sys.exit(harness.run_cases(CASES))
