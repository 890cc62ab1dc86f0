#!/usr/bin/env python3
"""Makes fuzz/seeds/<target>/: small inputs that reach deep, written by other implementations (pyarrow, fastavro, PyIceberg).
Files named crash-* are inputs that once broke something; they are not touched.

usage: .venv/bin/python fuzz/make_seeds.py [TARGET...]
"""
import datetime
import decimal
import glob
import gzip
import io
import json
import os
import shutil
import struct
import sys
import tempfile
import uuid
import zlib

SEEDS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "seeds")


def put(target, name, data):
    folder = os.path.join(SEEDS, target)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


def make_json():
    put("json", "kinds", '{"a": [1, -2.5e10, 0.1, 1E-7], "b": {"c": null, "d": true}, "e": "\\u00e9\\ud83d\\ude00\\n\\"", "": []}')
    put("json", "deep", "[" * 150 + "]" * 150)
    put("json", "deeper", "[" * 250 + "]" * 250)
    put("json", "utf8", '["grüße", "日本", "😀", "\u0000"]'.replace("\u0000", "\\u0000"))
    put("json", "numbers", "[9223372036854775807, -9223372036854775808, 1e400, 0.30000000000000004, -0]")
    put("json", "duplicate", '{"a": 1, "a": 2}')


def make_type():
    for number, text in enumerate([
            "int\n-2147483648", "long\n9223372036854775807", "float\n1e-45", "double\n-inf", "boolean\ntrue",
            "decimal(38, 10)\n-1234567890123456789012345678.0123456789", "decimal(9,2)\n1E+2", "date\n-0001-12-31", "date\n12024-02-29",
            "time\n23:59:59.999999", "timestamp\n1969-12-31T23:59:59.999999", "timestamptz\n2024-02-29T12:00:00.5+05:30",
            "timestamp_ns\n1677-09-21T00:12:43.145224193", "timestamptz_ns\n2262-04-11T23:47:16.854775807Z", "string\ngrüße \U0001F600",
            "uuid\nf79c3e09-677c-4bbd-a479-3f349cb785e7", "fixed[4]\n00ff10AB", "binary\nDEADbeef",
            "struct<a: int, b: struct<c: list<map<string, decimal(4,1)>>>, `d e`: timestamp>", "list<list<list<string>>>",
            "map<string, map<int, struct<x: binary>>>", "geometry(OGC:CRS84)", "unknown", "variant"]):
        put("type", "%02d" % number, text)


def make_variant():
    names = bytes.fromhex("11030001020361") + b"bc"
    values = ["00", "04", "08", "0cfb", "102c01", "1400000080", "18ffffffffffffff7f", "1c00000000000002c0", "1c000000000000f87f",
              "2002d2040000", "2409ffffffffffffffff", "282615cd5b07000000000000000000000000", "2c79ce0000", "30d5c9e6b7f1050000",
              "340000000000000080", "380000c03f", "3c030000000102ff", "40020000006869", "44ffffffff00000000", "480100000000000000",
              "4cffffffffffffffff", "50f79c3e09677c4bbda4793f349cb785e7", "0d22c3a9", "0302000102" "0408", "1f0100000000000000010000" "0004",
              "0203000102" "04020006" "0c030c020c01", "0202020200" "0204" "0c010c02", "7e0100000002000000" "00000000" "01000000" "00",
              "030100" "06" "030100" "03" "030000", "0302000001" "04"]
    for number, value in enumerate(values):
        put("variant", "%02d" % number, bytes([0, len(names)]) + names + bytes.fromhex(value))
    for name, text in (("numbers", "[-0, 128, 40000, 3000000000, 9223372036854775808, 1.50, 1e-5, 1e400, 0.%s1]" % ("0" * 40)),
                       ("object", '{"b": {"b": 1, "a": "\u00e9"}, "a": [], "": {"c": [true, false, null]}}'),
                       ("twice", '{"a": 1, "a": 2}'), ("string", '"%s"' % ("long " * 20)), ("deep", "[" * 200 + "]" * 200)):
        put("variant", name, b"\x01" + text.encode())


def make_binary():
    kinds = [b"\1", struct.pack("<i", -7), struct.pack("<q", 1 << 40), struct.pack("<f", -0.0), struct.pack("<d", float("nan")),
             bytes.fromhex("f0c9a7"), struct.pack("<i", 19000), struct.pack("<q", 86399999999), struct.pack("<q", -1),
             struct.pack("<q", 1 << 50), "aé".encode(), uuid.UUID(int=5).bytes, b"12345", b"\0\xff", struct.pack("<q", -(1 << 63)),
             struct.pack("<q", (1 << 63) - 1), b"\x4b\x3b\x4c\xa8\x5a\x86\xc4\x7a\x09\x8a\x22\x3f\xff\xff\xff\xff", b"\x09"]
    for number, data in enumerate(kinds):
        put("binary", "%02d" % number, bytes([number]) + data)


def make_expr():
    for number, text in enumerate([
            "a = 1 and b <> 2 or not (c like 'x%' and d is not nan)", "a in (1, 2, 3) and c not in ('it''s', '')",
            "g >= date '2013-01-02' and h < timestamp '2013-01-01T00:00:00' and j = time '12:00:00'", "k between -1.50 and 1e2",
            'not ("a" is null) and `c` starts with \'ab\'', "l = 'f79c3e09-677c-4bbd-a479-3f349cb785e7' or m = X'00ff' or n <> X'01020304'",
            "s.x > 5 and s.y is not null", "true or false", "f = true and e is nan", "(" * 60 + "a = 1" + ")" * 60,
            "a > 99999999999999999999 and b >= -9223372036854775808", "i > '2024-01-01T00:00:00+01:00'"]):
        put("expr", "%02d" % number, text)


def make_codec():
    import cramjam
    import zstandard
    text = b"a small deep lake, a small deep lake, and so on " * 6
    raw = zlib.compressobj(9, zlib.DEFLATED, -15)
    snappy = bytes(cramjam.snappy.compress_raw(text))
    lz4 = bytes(cramjam.lz4.compress_block(text, store_size=False))
    packed = [text[:100], raw.compress(text) + raw.flush(), zlib.compress(text), gzip.compress(text, mtime=0), snappy,
              zstandard.compress(text), lz4, struct.pack(">II", len(text), len(lz4)) + lz4, bytes(cramjam.brotli.compress(text))]
    for number, data in enumerate(packed):
        put("codec", "%02d" % number, bytes([number, len(text) // 4]) + data)
    put("codec", "two_gzip_members", bytes([3, 72]) + gzip.compress(text, mtime=0) + gzip.compress(b"end", mtime=0))
    put("codec", "two_zstd_frames", bytes([5, 72]) + zstandard.compress(text) + zstandard.compress(b"end"))
    put("codec", "zstd_no_size", bytes([5, 72]) + zstandard.ZstdCompressor(write_content_size=False).compress(text))


def make_puffin():
    folder = os.path.join(os.path.dirname(SEEDS), "..", "tests", "fixtures", "puffin")
    for name in ("java", "lz4_footer", "b20_framed", "b20_bare_blob"):
        with open(os.path.join(folder, name + ".puffin"), "rb") as file:
            data = file.read()
        put("puffin", name, (b"\1" if name == "b20_bare_blob" else b"\0") + data)
    put("puffin", "no_blobs", b'\0PFA1PFA1{"blobs":[]}' + struct.pack("<ii", 12, 0) + b"PFA1")
    array = struct.pack("<IIHHIHH", 12346, 1, 0, 1, 16, 3, 9)
    runs = struct.pack("<IBHHHHHHH", 12347, 1, 0, 10, 2, 3, 4, 65000, 5)
    bits = struct.pack("<IIHHI", 12346, 1, 7, 4999, 16) + (b"\xff" * 625).ljust(8192, b"\0")
    put("puffin", "bitmaps", b"\2" + struct.pack("<qI", 3, 0) + array + struct.pack("<I", 1) + runs + struct.pack("<I", 5) + array)
    put("puffin", "bitset", b"\2" + struct.pack("<qI", 1, 2147483646) + bits)


def make_create():
    schema = "struct<id: long not null, s: string, ts: timestamp, n: struct<x: decimal(9,2), `a b`: date>, l: list<int>>"
    put("create", "partitioned", schema + '\nbucket(16, id), month(ts) as m, truncate(2, s), day(n."a b")\nid desc nulls last, truncate(3, s)')
    put("create", "plain", "struct<a: int>\n\n")
    put("create", "identity", "struct<a: int, b: binary, u: uuid>\na, b, void(u)\na asc")
    put("create", "bad", "struct<a: int>\nhour(a), year(b)\nz")


def make_change():
    schema = {"type": "struct", "schema-id": 1, "fields": [{"id": 1, "name": "id", "required": False, "type": "long"},
                                                           {"id": 7, "name": "z", "required": False, "type": "uuid"}]}
    snapshot = {"snapshot-id": 5, "sequence-number": 4, "timestamp-ms": 2, "manifest-list": "/x/l.avro", "summary": {"operation": "append"},
                "schema-id": 0}
    put("change", "append", json.dumps({
        "requirements": [{"type": "assert-table-uuid", "uuid": "f79c3e09-677c-4bbd-a479-3f349cb785e7"},
                         {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}],
        "updates": [{"action": "add-snapshot", "snapshot": snapshot},
                    {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 5}]}))
    put("change", "schema", json.dumps({
        "requirements": [{"type": "assert-last-assigned-field-id", "last-assigned-field-id": 6},
                         {"type": "assert-current-schema-id", "current-schema-id": 0}],
        "updates": [{"action": "add-schema", "schema": schema, "last-column-id": 7}, {"action": "set-current-schema", "schema-id": -1},
                    {"action": "set-properties", "updates": {"a": "b"}}, {"action": "remove-properties", "removals": ["c"]},
                    {"action": "upgrade-format-version", "format-version": 2}, {"action": "set-location", "location": "/y"}]}))
    put("change", "spec", json.dumps({
        "requirements": [{"type": "assert-default-spec-id", "default-spec-id": 0}, {"type": "assert-default-sort-order-id", "default-sort-order-id": 0}],
        "updates": [{"action": "add-spec", "spec": {"spec-id": 1, "fields": [
                        {"source-id": 1, "field-id": 1004, "name": "b", "transform": "bucket[8]"}]}},
                    {"action": "set-default-spec", "spec-id": -1},
                    {"action": "add-sort-order", "sort-order": {"order-id": 1, "fields": [
                        {"source-id": 2, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}]}},
                    {"action": "set-default-sort-order", "sort-order-id": -1}, {"action": "remove-partition-specs", "spec-ids": [0]}]}))
    put("change", "create", json.dumps({
        "requirements": [{"type": "assert-create"}],
        "updates": [{"action": "assign-uuid", "uuid": "f79c3e09-677c-4bbd-a479-3f349cb785e7"}, {"action": "add-schema", "schema": schema},
                    {"action": "set-current-schema", "schema-id": -1}, {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
                    {"action": "set-default-spec", "spec-id": -1}, {"action": "set-location", "location": "/x"}]}))


AVRO = {
    "type": "record", "name": "r", "fields": [
        {"name": "id", "type": "long", "field-id": 1},
        {"name": "s", "type": ["null", "string"], "default": None, "field-id": 2},
        {"name": "b", "type": "bytes"}, {"name": "f", "type": "float"}, {"name": "d", "type": ["double", "null"]},
        {"name": "t", "type": {"type": "boolean"}}, {"name": "e", "type": {"type": "enum", "name": "en", "symbols": ["A", "B"]}},
        {"name": "x", "type": {"type": "fixed", "name": "fx", "size": 4}},
        {"name": "dec", "type": {"type": "fixed", "name": "dx", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "l", "type": {"type": "array", "items": ["null", "int"], "element-id": 20}},
        {"name": "m", "type": {"type": "map", "values": "long"}},
        {"name": "u", "type": ["null", "int", "string"]},
        {"name": "n", "type": ["null", {"type": "record", "name": "r2", "fields": [{"name": "y", "type": "int"}]}]},
    ]}


def avro_rows(count):
    return [{"id": i, "s": None if i % 3 == 0 else "s%d" % i, "b": b"\0" * (i % 4), "f": i / 2, "d": None if i % 2 else i * 1.5,
             "t": i % 2 == 0, "e": "AB"[i % 2], "x": b"abcd", "dec": decimal.Decimal("-1.50"),
             "ts": datetime.datetime(1969, 12, 31, 23, 59, 59, i, tzinfo=datetime.timezone.utc), "day": datetime.date(2024, 2, 29),
             "l": [1, None] * (i % 3), "m": {"k": i}, "u": [None, 5, "five"][i % 3], "n": None if i % 2 else {"y": i}}
            for i in range(count)]


def make_avro():
    import fastavro
    for codec in ("null", "deflate", "snappy", "zstandard"):
        out = io.BytesIO()
        fastavro.writer(out, AVRO, avro_rows(8), codec=codec, sync_marker=b"0123456789abcdef")
        put("avro", codec, out.getvalue())
    for name, schema, rows in [
            ("array_map", {"type": "record", "name": "r", "fields": [{"name": "m", "type": {
                "type": "array", "logicalType": "map", "items": {"type": "record", "name": "kv", "fields": [
                    {"name": "key", "type": "int", "field-id": 3}, {"name": "value", "type": "string", "field-id": 4}]}}}]},
             [{"m": [{"key": 1, "value": "x"}]}, {"m": []}]),
            ("empty", AVRO, []),
            ("long", "long", [1, 2, 3])]:
        out = io.BytesIO()
        fastavro.writer(out, schema, rows, codec="null", sync_marker=b"0123456789abcdef")
        put("avro", name, out.getvalue())


def arrow_table():
    import pyarrow as pa
    n = 12
    return pa.table({
        "i": pa.array([None if i % 5 == 0 else i - 3 for i in range(n)], pa.int32()),
        "l": pa.array([i * 10**12 for i in range(n)], pa.int64()),
        "f": pa.array([float("nan") if i == 3 else i / 3 for i in range(n)], pa.float32()),
        "d": pa.array([-0.0 if i == 0 else i / 7 for i in range(n)], pa.float64()),
        "s": pa.array(["v%d" % (i % 3) for i in range(n)], pa.string()),
        "b": pa.array([i % 2 == 0 for i in range(n)], pa.bool_()),
        "dec": pa.array([decimal.Decimal("%d.25" % (i - 4)) for i in range(n)], pa.decimal128(9, 2)),
        "big": pa.array([decimal.Decimal(10) ** 25 * i for i in range(n)], pa.decimal128(38, 2)),
        "day": pa.array([datetime.date(2024, 1, 1 + i) for i in range(n)], pa.date32()),
        "ts": pa.array([datetime.datetime(2024, 1, 1, i) for i in range(n)], pa.timestamp("us")),
        "fx": pa.array([b"%04d" % i for i in range(n)], pa.binary(4)),
        "li": pa.array([None if i % 4 == 0 else list(range(i % 3)) for i in range(n)], pa.list_(pa.int64())),
        "m": pa.array([[("k", i)] if i % 2 else [] for i in range(n)], pa.map_(pa.string(), pa.int32())),
        "st": pa.array([None if i % 6 == 0 else {"x": i, "y": "z"} for i in range(n)],
                       pa.struct([("x", pa.int32()), ("y", pa.string())])),
    })


def make_parquet():
    import pyarrow.parquet as pq
    table = arrow_table()
    narrow = table.select(["i", "s", "li"])
    for name, rows, options in [
            ("all_plain", table, {"use_dictionary": False, "compression": "NONE"}),
            ("all_snappy", table, {"compression": "snappy"}),
            ("narrow_zstd_v2", narrow, {"compression": "zstd", "data_page_version": "2.0", "write_page_index": True}),
            ("narrow_gzip_groups", narrow, {"compression": "gzip", "row_group_size": 5}),
            ("narrow_lz4", narrow, {"compression": "lz4"}),
            ("narrow_brotli_checksum", narrow, {"compression": "brotli", "write_page_checksum": True}),
            ("delta", table.select(["i", "l", "s", "fx"]), {
                "use_dictionary": False, "compression": "NONE", "column_encoding": {
                    "i": "DELTA_BINARY_PACKED", "l": "DELTA_BINARY_PACKED", "s": "DELTA_BYTE_ARRAY", "fx": "BYTE_STREAM_SPLIT"}}),
            ("delta_length", table.select(["s", "d"]), {
                "use_dictionary": False, "compression": "NONE",
                "column_encoding": {"s": "DELTA_LENGTH_BYTE_ARRAY", "d": "BYTE_STREAM_SPLIT"}}),
            ("int96", table.select(["ts"]), {"use_deprecated_int96_timestamps": True, "compression": "NONE"}),
            ("empty", narrow.slice(0, 0), {})]:
        out = io.BytesIO()
        pq.write_table(rows, out, store_schema=False, **options)
        put("parquet", name, out.getvalue())


def make_debezium():
    def field(kind, name, meaning=None, parameters=None):
        extra = {key: value for key, value in (("name", meaning), ("parameters", parameters)) if value}
        return {"type": kind, "optional": True, "field": name, **extra}

    time = "io.debezium.time."
    schema = {"type": "struct", "fields": [{"type": "struct", "field": "after", "fields": [
        field("int32", "a"), field("int32", "g", time + "Date"), field("int64", "h", time + "MicroTimestamp"), field("int64", "j", time + "MicroTime"),
        field("bytes", "k", "org.apache.kafka.connect.data.Decimal", {"scale": "2"}), field("bytes", "m"),
        field("struct", "d", "io.debezium.data.VariableScaleDecimal")]}]}
    payload = {"op": "u", "before": {"a": 1}, "after": {"a": 1, "g": 5, "h": 6, "j": 7, "k": "AQ==", "m": "AAH/", "d": {"scale": 1, "value": "AQ=="}}}
    put("debezium", "schema", (json.dumps({"schema": schema, "payload": payload}) + "\n") * 2)
    put("debezium", "plain", '{"before":null,"after":{"a":1,"c":"x"},"op":"c"}\n{"before":{"a":1},"after":{"a":2,"t":[1]},"op":"u"}\nnull\n'
        '{"op":"d","before":{"a":2}}\n{"op":"t"}\n')
    put("debezium", "key", '{"op":"d","before":null}\x1e{"a":1}\n{"op":"d"}\x1e{"payload":{"a":2}}\n{"op":"d"}\x1e7\n')
    put("debezium", "column", '{"a":1,"c":"I"}\n{"a":1,"c":"D"}\n{"a":1,"c":"+U","s":{"x":1}}\n{"c":"no"}\n{"a":2}\n')


def make_text():
    put("ndjson", "kinds", '{"a": 1, "b": -5000000000, "c": "x", "d": 1.5, "f": true, "g": "2024-02-29", "h": "2024-01-01T00:00:00"}\n'
        '{"a": null, "k": "1.50", "s": {"x": 1, "y": "z"}, "t": [1, null, 3], "l": "f79c3e09-677c-4bbd-a479-3f349cb785e7"}\n\n'
        '{"m": "00ff", "n": "01020304", "j": "12:30:00.000001", "i": "2024-01-01T00:00:00+00:00"}\n')
    put("ndjson", "bad", '{"a": 1}\n{"a": "x"}\n{"a": 99999999999}\n{"zz": 1}\n{"a": 1\n[1]\n{"c": "\xff"}\n'.encode("latin-1"))
    put("ndjson", "escapes", '{"c": "\\u00e9\\ud83d\\ude00\\t\\\\", "e": 1e39, "d": "NaN"}\r\n{"c": "no newline at the end"}')
    put("ndjson", "variants", '{"v": {"b": [1, 2.50, 1e9, "\\u00e9"], "a": {}}}\n{"v": -128}\n{"v": null}\n{"v": {"a": 1, "a": 2}}\n{"v": [1e400]}\n')
    put("csv", "variants", 'a,v\n1,"{""a"":[1,true]}"\n2,\n3,"""x"""\n4,x\n')
    put("csv", "kinds", "a,b,c,d,f,g,h,k\n1,2,x,1.5,true,2024-02-29,2024-01-01T00:00:00,1.50\n,,,,,,,\n-1,,\"q \"\"q\"\"\",NaN,false,,,-0.01\n")
    put("csv", "quotes", 'c,a\n"two\nlines",1\n"comma, inside",2\r\n"",3\nNA,4\n"open')
    put("csv", "ragged", "a,b,c\n1\n1,2,3,4\nx,2,3\n")


def make_iceberg():
    import pyarrow as pa
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, TruncateTransform
    from pyiceberg.types import IntegerType, ListType, LongType, NestedField, StringType, TimestampType
    folder = tempfile.mkdtemp()
    try:
        catalog = SqlCatalog("x", uri="sqlite:///%s/c.db" % folder, warehouse="file://%s/w" % folder)
        catalog.create_namespace("n")
        schema = Schema(NestedField(1, "id", LongType(), required=False), NestedField(2, "s", StringType(), required=False, doc="text"),
                        NestedField(3, "ts", TimestampType(), required=False),
                        NestedField(4, "t", StringType(), required=False),
                        NestedField(5, "l", ListType(6, IntegerType(), element_required=False), required=False))
        spec = PartitionSpec(PartitionField(1, 1000, BucketTransform(4), "id_bucket"), PartitionField(2, 1001, IdentityTransform(), "s"),
                             PartitionField(3, 1002, DayTransform(), "ts_day"), PartitionField(4, 1003, TruncateTransform(2), "t_trunc"))
        for version in ("1", "2"):
            table = catalog.create_table("n.t" + version, schema, partition_spec=spec, properties={
                "format-version": version, "schema.name-mapping.default": '[{"field-id": 1, "names": ["id", "key"]}]'})
            rows = pa.table({"id": pa.array([1, 2, None], pa.int64()), "s": ["a", None, "grüße"], "t": ["😀😀😀", "", None],
                             "ts": pa.array([datetime.datetime(1969, 12, 31)] * 3, pa.timestamp("us")),
                             "l": pa.array([[1], [], None], pa.list_(pa.int32()))})
            table.append(rows)
            table.append(rows.slice(0, 1))
            with table.update_schema() as update:
                update.add_column("later", StringType())
                update.rename_column("l", "list")
            table.manage_snapshots().create_tag(table.history()[0].snapshot_id, "first").commit()
            snapshot = table.current_snapshot()
            with open(table.metadata_location.removeprefix("file://"), "rb") as file:
                metadata = file.read().replace(folder.encode(), b"/x")
            put("metadata", "v%s" % version, metadata)
            if version == "2":
                put("metadata", "v2_gzip", gzip.compress(metadata, mtime=0))
            put("manifest_list", "v%s" % version, read(snapshot.manifest_list, folder))
            put("manifest", "v%s" % version, read(snapshot.manifests(table.io)[0].manifest_path, folder))
        put("metadata", "v1_least", json.dumps({"format-version": 1, "location": "/x", "last-updated-ms": 1, "last-column-id": 1, "schema": {
            "type": "struct", "fields": [{"id": 1, "name": "a", "required": False, "type": "int"}]}, "partition-spec": []}))
    finally:
        shutil.rmtree(folder)


def read(path, folder):
    with open(path.removeprefix("file://"), "rb") as file:
        return file.read()


def make_view():
    schema = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "x", "required": False, "type": "long"}]}
    version = {"version-id": 1, "schema-id": 0, "timestamp-ms": 5, "summary": {"engine-name": "e"}, "default-catalog": "c",
               "default-namespace": ["a", "b"], "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}]}
    view = {"view-uuid": "u", "format-version": 1, "location": "/v", "properties": {"version.history.num-entries": "2"}, "schemas": [schema],
            "current-version-id": 1, "versions": [version], "version-log": [{"timestamp-ms": 5, "version-id": 1}], "later": [None]}
    add = {"action": "add-view-version", "view-version": dict(version, **{"schema-id": -1})}
    create = [{"action": "assign-uuid", "uuid": "u"}, {"action": "set-location", "location": "/v"}, {"action": "add-schema", "schema": schema}, add,
              {"action": "set-current-view-version", "view-version-id": -1}]
    replace = [{"action": "set-properties", "updates": {"replace.drop-dialect.allowed": "true"}},
               {"action": "remove-properties", "removals": ["version.history.num-entries"]},
               {"action": "upgrade-format-version", "format-version": 1},
               {"action": "add-view-version", "view-version": dict(version, representations=[{"type": "sql", "sql": "s", "dialect": "trino"}])},
               {"action": "set-current-view-version", "view-version-id": -1}]
    put("view", "document", json.dumps({"view": view}))
    put("view", "create", json.dumps({"change": {"updates": create}}))
    put("view", "replace", json.dumps({"view": view, "change": {"requirements": [{"type": "assert-view-uuid", "uuid": "u"}], "updates": replace}}))


def make_filter():
    def leaf(kind, term, **more):
        return dict({"type": kind, "term": term}, **more)
    put("filter", "leaves", json.dumps({"type": "and", "left": leaf("gt-eq", "id", value=5), "right": {
        "type": "or", "left": leaf("in", "s", values=["a", "b", "a"]), "right": leaf("starts-with", "t", value="x")}}))
    put("filter", "not", json.dumps({"type": "not", "child": {"type": "or", "left": leaf("is-null", "s"), "right": {
        "type": "not", "child": leaf("lt", "ts", value="2024-01-02T03:04:05.000006")}}}))
    put("filter", "inexact", json.dumps({"type": "and", "left": leaf("not-eq", "id", value=1e30), "right": leaf(
        "eq", {"type": "transform", "transform": "day", "term": "ts"}, value=1)}))
    put("filter", "constant", "true")


MAKERS = {"json": make_json, "variant": make_variant, "view": make_view, "filter": make_filter, "type": make_type, "binary": make_binary, "expr": make_expr, "create": make_create, "change": make_change, "codec": make_codec, "puffin": make_puffin,
          "avro": make_avro,
          "parquet": make_parquet, "debezium": make_debezium, "text": make_text, "iceberg": make_iceberg}
FOLDERS = {"text": ["ndjson", "csv"], "iceberg": ["metadata", "manifest", "manifest_list"]}


def main(names):
    for name in names or MAKERS:
        for folder in FOLDERS.get(name, [name]):
            for old in glob.glob(os.path.join(SEEDS, folder, "*")):
                if not os.path.basename(old).startswith("crash-"):
                    os.unlink(old)
        MAKERS[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
