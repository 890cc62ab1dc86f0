#!/usr/bin/env python3
"""Goal: what tarn writes is what others read, and what others add tarn reads. Method: tables made by the command in a SQLite
catalog are read by PyIceberg and DuckDB, partition values and metrics are compared with those that PyIceberg works out, and
PyIceberg appends to and alters the same tables.

usage: test_written.py [case...]
"""
import datetime
import decimal
import json
import os
import sys
import uuid

import harness
from harness import case, equal, same

TYPES = ("id long, bo boolean, i int, f float, d double, de decimal(9,2), big decimal(38,10), da date, ti time, ts timestamp, "
         "tz timestamptz, s string, u uuid, fx fixed[3], b binary, st struct<x: int, y: string>, l list<int>, m map<string, long>")
ALL_TYPES = [
    {"id": 1, "bo": True, "i": -2147483648, "f": 1.5, "d": 0.1, "de": "-1234567.89", "big": "9999999999999999999999999999.9999999999",
     "da": "1969-12-31", "ti": "23:59:59.999999", "ts": "1969-12-31T23:59:59.999999", "tz": "2024-02-29T12:34:56.789012+00:00",
     "s": "grüße 😀", "u": "f79c3e09-677c-4bbd-a479-3f349cb785e7", "fx": "00ff7f", "b": "", "st": {"x": 1, "y": "z"},
     "l": [1, None, 3], "m": {"keys": ["a", "b"], "values": [1, None]}},
    {"id": 2, **dict.fromkeys("bo i f d de big da ti ts tz s u fx b st l m".split())},
    {"id": 3, "bo": False, "i": 2147483647, "f": "NaN", "d": "-Infinity", "de": "0.00", "big": "-0.0000000001", "da": "9999-12-31",
     "ti": "00:00:00.000000", "ts": "0001-01-01T00:00:00.000000", "tz": "1970-01-01T00:00:00.000000+00:00", "s": "",
     "u": "00000000-0000-0000-0000-000000000000", "fx": "000000", "b": "ff00", "st": {"x": None, "y": None}, "l": [],
     "m": {"keys": [], "values": []}},
]


def ndjson(found):
    return "".join(json.dumps(row) + "\n" for row in found)


def numbers(count, start=0):
    return [{"id": i, "k": i % 7, "s": None if i % 5 == 0 else "s%d" % (i % 11), "d": i / 3,
             "at": "2024-01-%02dT%02d:00:00.000000" % (i % 28 + 1, i % 24)} for i in range(start, start + count)]


NUMBERS = "id long, k int, s string, d double, at timestamp"


def make(shop, found, types=NUMBERS, *options):
    shop.tarn("create", "ns.t", types, *options)
    shop.write("rows.ndjson", ndjson(found))
    shop.tarn("ingest", "ns.t", "rows.ndjson")


def entries(shop, name="ns.t"):
    loaded = shop.catalog().load_table(name)
    return [entry for manifest in loaded.current_snapshot().manifests(loaded.io)
            for entry in manifest.fetch_manifest_entry(loaded.io)]


def all_types():
    """Every type, read back by us, PyIceberg and DuckDB."""
    with harness.Workshop() as shop:
        make(shop, ALL_TYPES, TYPES)
        same(shop.cat("ns.t").rows, ALL_TYPES)
        # PyIceberg's Arrow reader shows nothing of null lists, maps and structs that differs from empty ones in some versions.
        same(shop.pyiceberg_rows("ns.t", row_filter="id != 2"), [ALL_TYPES[0], ALL_TYPES[2]])
        without = [{k: v for k, v in row.items() if k not in ("fx", "b")} for row in ALL_TYPES]
        got = [{k: v for k, v in row.items() if k not in ("fx", "b")} for row in shop.duckdb_rows("ns.t")]
        same(got, without)


def partition_values():
    """Each transform on each type gives the value that PyIceberg works out."""
    specs = {"bucket(16, {})": "i id de s u da ti ts tz b fx", "truncate(3, {})": "i id de s b", "{}": "bo i id de da ti ts tz s u b",
             "year({})": "da ts tz", "month({})": "da ts tz", "day({})": "da ts tz", "hour({})": "ts tz"}
    for text, columns in specs.items():
        for column in columns.split():
            with harness.Workshop() as shop:
                source = [row for row in ALL_TYPES if not (text.startswith("truncate") and column == "i" and row["id"] == 1)]
                make(shop, source, TYPES, "--partition-by", text.format(column))
                loaded = shop.catalog().load_table("ns.t")
                field = loaded.spec().fields[0]
                kind = loaded.schema().find_type(field.source_id)
                function = field.transform.transform(kind)
                want = sorted(repr(function(python_value(kind, row[column]))) for row in source)
                got = sorted(repr(file.data_file.partition[0]) for file in entries(shop) for _ in range(file.data_file.record_count))
                equal((text, column, got), (text, column, want))
                same(shop.cat("ns.t").rows, source)


def python_value(kind, value):
    """A value of NDJSON as PyIceberg's transforms take it."""
    name = str(kind)
    if value is None:
        return None
    if name.startswith("decimal"):
        return decimal.Decimal(value)
    if name == "date":
        return (datetime.date.fromisoformat(value) - datetime.date(1970, 1, 1)).days
    if name == "time":
        t = datetime.time.fromisoformat(value)
        return ((t.hour * 60 + t.minute) * 60 + t.second) * 1000000 + t.microsecond
    if name.startswith("timestamp"):
        since = datetime.datetime.fromisoformat(value.removesuffix("+00:00")) - datetime.datetime(1970, 1, 1)
        return since // datetime.timedelta(microseconds=1)
    if name == "uuid":
        return uuid.UUID(value)
    if name == "binary" or name.startswith("fixed"):
        return bytes.fromhex(value)
    return value


def metrics():
    """Counts and bounds in manifests are those of the rows."""
    with harness.Workshop() as shop:
        make(shop, numbers(1000))
        entry, = entries(shop)
        file = entry.data_file
        equal(file.record_count, 1000)
        equal([file.value_counts[i] for i in range(1, 6)], [1000] * 5)
        equal([file.null_value_counts[i] for i in range(1, 6)], [0, 0, 200, 0, 0])
        equal(int.from_bytes(file.lower_bounds[1], "little", signed=True), 0)
        equal(int.from_bytes(file.upper_bounds[1], "little", signed=True), 999)
        equal([file.lower_bounds[3], file.upper_bounds[3]], [b"s0", b"s9"])
        equal(file.nan_value_counts.get(4, 0), 0)
        path = harness.local(file.file_path)
        path = path if os.path.isabs(path) else shop.path(path)
        equal(os.path.getsize(path), file.file_size_in_bytes)
        import pyarrow.parquet as pq
        groups = pq.ParquetFile(path).metadata
        offsets = [min(filter(None, (groups.row_group(g).column(0).dictionary_page_offset, groups.row_group(g).column(0).data_page_offset)))
                   for g in range(groups.num_row_groups)]
        equal(list(file.split_offsets), offsets)


def others_append():
    """PyIceberg appends to a partitioned table of ours; we go on."""
    import pyarrow as pa
    with harness.Workshop() as shop:
        make(shop, numbers(50), NUMBERS, "--partition-by", "month(at), bucket(4, k)")
        loaded = shop.catalog().load_table("ns.t")
        more = numbers(10, 50)
        schema = loaded.schema().as_arrow()
        loaded.append(pa.Table.from_pylist([{**r, "at": datetime.datetime.fromisoformat(r["at"])} for r in more]).cast(schema))
        same(shop.cat("ns.t").rows, numbers(60))
        shop.write("more.ndjson", ndjson(numbers(5, 60)))
        shop.tarn("ingest", "ns.t", "more.ndjson")
        for found in (shop.cat("ns.t").rows, shop.pyiceberg_rows("ns.t"), shop.duckdb_rows("ns.t")):
            same(found, numbers(65))
        equal(len(shop.cat("ns.t.snapshots").rows), 3)


def others_alter():
    """PyIceberg adds, renames, drops and moves columns; old and new files read as one."""
    from pyiceberg.types import LongType, StringType
    with harness.Workshop() as shop:
        make(shop, numbers(20))
        with shop.catalog().load_table("ns.t").update_schema() as update:
            update.add_column("note", StringType())
            update.rename_column("s", "text")
            update.update_column("k", LongType())
            update.delete_column("d")
            update.move_first("at")
        want = [{"at": r["at"], "id": r["id"], "k": r["k"], "text": r["s"], "note": None} for r in numbers(20)]
        found = shop.cat("ns.t").rows
        same(found, want)
        equal(list(found[0]), ["at", "id", "k", "text", "note"])
        shop.write("more.ndjson", '{"at": "2024-02-01T00:00:00", "id": 99, "k": 5000000000, "text": "t", "note": "n"}\n')
        shop.tarn("ingest", "ns.t", "more.ndjson")
        want.append({"at": "2024-02-01T00:00:00.000000", "id": 99, "k": 5000000000, "text": "t", "note": "n"})
        for found in (shop.cat("ns.t").rows, shop.pyiceberg_rows("ns.t"), shop.duckdb_rows("ns.t")):
            same(found, want)
        same(shop.cat("ns.t", "--where", "k > 3000000000").rows, want[-1:])


def others_make():
    """A table that PyIceberg made in the same catalog: read, added to, travelled."""
    import pyarrow as pa
    with harness.Workshop() as shop:
        shop.tarn("create", "ns.first", "a int")
        table = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["a", None, "c"]})
        made = shop.catalog().create_table("ns.theirs", schema=table.schema)
        made.append(table)
        made.append(table.slice(0, 1))
        want = table.to_pylist()
        same(shop.cat("ns.theirs").rows, want + want[:1])
        first = made.history()[0].snapshot_id
        same(shop.cat("ns.theirs", "--snapshot-id", first).rows, want)
        same(shop.cat("ns.theirs", "--columns", "name", "--where", "id >= 2").rows, [{"name": None}, {"name": "c"}])
        shop.write("more.ndjson", '{"id": 4, "name": "d"}\n')
        shop.tarn("ingest", "ns.theirs", "more.ndjson")
        equal(len(shop.pyiceberg_rows("ns.theirs")), 5)
        equal(len(shop.duckdb_rows("ns.theirs", "id > 1")), 3)


def deletes():
    """Rows deleted by filter are gone for everybody, and only those."""
    with harness.Workshop() as shop:
        make(shop, numbers(200), NUMBERS, "--partition-by", "k")
        shop.tarn("delete", "ns.t", "--where", "id >= 50 and id < 100")
        shop.tarn("delete", "ns.t", "--where", "k = 3")
        want = [r for r in numbers(200) if not 50 <= r["id"] < 100 and r["k"] != 3]
        for found in (shop.cat("ns.t").rows, shop.pyiceberg_rows("ns.t"), shop.duckdb_rows("ns.t")):
            same(found, want)


def filters():
    """Filters give the rows that DuckDB gives, with and without partitions to prune by."""
    texts = ["id = 17", "id > 950 and k <> 2", "s is null", "s = 's3' or k in (1, 2)", "d >= 100.5 and d < 101", "not (k < 6)",
             "\"at\" >= '2024-01-20T00:00:00' and s like 's1%'", "s not in ('s1', 's2') and id between 10 and 40"]
    for partition in (None, "k", "day(at), truncate(2, s)", "bucket(8, id)"):
        with harness.Workshop() as shop:
            make(shop, numbers(1000), NUMBERS, *(["--partition-by", partition] if partition else []))
            for text in texts:
                same(shop.cat("ns.t", "--where", text).rows, shop.duckdb_rows("ns.t", text))


def codecs():
    """Every Parquet codec that others read."""
    for codec in ("zstd", "snappy", "gzip", "lz4_raw", "brotli", "uncompressed"):
        with harness.Workshop() as shop:
            make(shop, numbers(300), NUMBERS, "--property", "write.parquet.compression-codec=" + codec)
            same(shop.pyiceberg_rows("ns.t"), numbers(300))
            same(shop.duckdb_rows("ns.t"), numbers(300))



def altered():
    """Columns that we add, rename, widen, move and drop, as others see them."""
    with harness.Workshop() as shop:
        make(shop, numbers(20))
        for edit in (("add-column", "note", "string", "--after", "k"), ("rename-column", "s", "text"), ("update-type", "k", "long"),
                     ("move", "at", "--first"), ("drop-column", "d"), ("add-column", "more", "struct<x: int, y: list<string>>")):
            shop.tarn("alter", "ns.t", *edit)
        shop.write("more.ndjson", '{"at": "2024-02-01T00:00:00", "id": 99, "k": 5000000000, "more": {"x": 1, "y": ["z"]}}\n')
        shop.tarn("ingest", "ns.t", "more.ndjson")
        want = [{"at": r["at"], "id": r["id"], "k": r["k"], "note": None, "text": r["s"], "more": None} for r in numbers(20)]
        want.append({"at": "2024-02-01T00:00:00.000000", "id": 99, "k": 5000000000, "note": None, "text": None,
                     "more": {"x": 1, "y": ["z"]}})
        for found in (shop.cat("ns.t").rows, shop.pyiceberg_rows("ns.t"), shop.duckdb_rows("ns.t")):
            same(found, want)
            equal(list(found[0]), ["at", "id", "k", "note", "text", "more"])


def respecified():
    """A table whose partitioning changes between writes."""
    with harness.Workshop() as shop:
        make(shop, numbers(30))
        for start, spec in ((30, "k"), (60, "bucket(4, id), day(at)"), (90, "")):
            shop.tarn("alter", "ns.t", "partition-by", spec)
            shop.write("more.ndjson", ndjson(numbers(30, start)))
            shop.tarn("ingest", "ns.t", "more.ndjson")
        for where in ("", "k = 3", "id in (5, 35, 65, 95)"):
            want = shop.duckdb_rows("ns.t", where)
            assert want
            same(shop.cat("ns.t", *(["--where", where] if where else [])).rows, want)
        same(shop.pyiceberg_rows("ns.t"), numbers(120))
        equal(sorted({file.data_file.spec_id for file in entries(shop)}), [0, 1, 2])


def refs():
    """Branches and tags of ours, read by PyIceberg and DuckDB; time travel."""
    with harness.Workshop() as shop:
        make(shop, numbers(10))
        shop.tarn("alter", "ns.t", "tag", "first")
        shop.tarn("alter", "ns.t", "branch", "dev")
        shop.write("more.ndjson", ndjson(numbers(5, 10)))
        shop.tarn("ingest", "ns.t", "more.ndjson")
        shop.write("dev.ndjson", ndjson(numbers(3, 100)))
        shop.tarn("ingest", "ns.t", "dev.ndjson", "--branch", "dev")
        loaded = shop.catalog().load_table("ns.t")
        for ref, want in (("first", numbers(10)), ("dev", numbers(10) + numbers(3, 100)), ("main", numbers(15))):
            same(shop.cat("ns.t", "--ref", ref).rows, want)
            same(shop.pyiceberg_rows("ns.t", snapshot_id=loaded.snapshot_by_name(ref).snapshot_id), want)
        first = loaded.history()[0]
        same(shop.cat("ns.t", "--as-of", first.timestamp_ms).rows, numbers(10))
        equal(len(loaded.history()), 2)


def checkpoints():
    """Each checkpoint is one snapshot; counts in summaries add up."""
    with harness.Workshop() as shop:
        shop.tarn("create", "ns.t", NUMBERS, "--partition-by", "k")
        shop.write("rows.ndjson", ndjson(numbers(1000)))
        shop.tarn("ingest", "ns.t", "rows.ndjson", "--checkpoint-rows", "250")
        history = shop.catalog().load_table("ns.t").snapshots()
        assert len(history) >= 3, len(history)
        equal(sum(int(s.summary["added-records"]) for s in history), 1000)
        equal(history[-1].summary["total-records"], "1000")
        equal(sum(int(s.summary["added-data-files"]) for s in history), int(history[-1].summary["total-data-files"]))
        equal([s.sequence_number for s in history], list(range(1, len(history) + 1)))
        same(shop.duckdb_rows("ns.t"), numbers(1000))


def modes():
    """Overwriting by filter and by partition."""
    with harness.Workshop() as shop:
        make(shop, numbers(70), NUMBERS, "--partition-by", "k")
        fresh = [{**r, "s": "new"} for r in numbers(70) if r["k"] in (1, 2)]
        shop.write("fresh.ndjson", ndjson(fresh))
        shop.tarn("ingest", "ns.t", "fresh.ndjson", "--mode", "replace-partitions")
        want = [r for r in numbers(70) if r["k"] not in (1, 2)] + fresh
        for found in (shop.cat("ns.t").rows, shop.pyiceberg_rows("ns.t"), shop.duckdb_rows("ns.t")):
            same(found, want)
        shop.write("other.ndjson", ndjson([{**numbers(1, 5)[0], "s": "other"}]))
        shop.tarn("ingest", "ns.t", "other.ndjson", "--mode", "overwrite", "--where", "k = 5")
        want = [r for r in want if r["k"] != 5] + [{**numbers(1, 5)[0], "s": "other"}]
        for found in (shop.cat("ns.t").rows, shop.pyiceberg_rows("ns.t"), shop.duckdb_rows("ns.t")):
            same(found, want)


def old_format():
    """Version 1 tables, and one that is upgraded between writes."""
    with harness.Workshop() as shop:
        make(shop, numbers(30), NUMBERS, "--format-version", "1", "--partition-by", "month(at)")
        equal(shop.catalog().load_table("ns.t").metadata.format_version, 1)
        same(shop.pyiceberg_rows("ns.t"), numbers(30))
        same(shop.duckdb_rows("ns.t"), numbers(30))
        shop.tarn("alter", "ns.t", "upgrade", "2")
        shop.write("more.ndjson", ndjson(numbers(30, 30)))
        shop.tarn("ingest", "ns.t", "more.ndjson")
        for found in (shop.cat("ns.t").rows, shop.pyiceberg_rows("ns.t"), shop.duckdb_rows("ns.t")):
            same(found, numbers(60))


def version_3():
    """Version 3 tables, from the start or upgraded: rows, defaults, and row ids that are nobody else's."""
    for version in ("1", "2", "3"):
        with harness.Workshop() as shop:
            make(shop, numbers(30), NUMBERS, "--partition-by", "k", "--format-version", version)
            if version != "3":
                shop.tarn("alter", "ns.t", "upgrade", "3")
            shop.write("more.ndjson", ndjson(numbers(30, 30)))
            shop.tarn("ingest", "ns.t", "more.ndjson", "--merge-append")
            shop.tarn("delete", "ns.t", "--where", "k = 3")
            want = [r for r in numbers(60) if r["k"] != 3]
            metadata = shop.catalog().load_table("ns.t").metadata
            equal(metadata.format_version, 3)
            for found in (shop.cat("ns.t").rows, shop.pyiceberg_rows("ns.t"), shop.duckdb_rows("ns.t")):
                same(found, want)
            ids = [r["_row_id"] for r in shop.cat("ns.t", "--columns", "_row_id").rows]
            assert len(set(ids)) == len(want) and None not in ids and max(ids) < metadata.next_row_id, (ids, metadata.next_row_id)
            shop.tarn("alter", "ns.t", "add-column", "extra", "int", "--default", "5")
            for found in (shop.cat("ns.t").rows, shop.pyiceberg_rows("ns.t")):
                same(found, [{**r, "extra": 5} for r in want])


def write_defaults():
    """Version 3: rows that lack a column are written with its default for writing, whatever they come as; a null that is said
    stays one. It stands in the files, so that a reader who knows no defaults finds it."""
    import pyarrow
    import pyarrow.parquet
    with harness.Workshop() as shop:
        shop.tarn("create", "ns.t", "id long not null", "--format-version", "3")
        shop.write("old.ndjson", '{"id": 0}\n')
        shop.tarn("ingest", "ns.t", "old.ndjson")
        shop.tarn("alter", "ns.t", "add-column", "k", "string", "--default", "zz")
        shop.tarn("alter", "ns.t", "add-column", "n", "decimal(5,2)", "--default", "1.50")
        shop.write("a.ndjson", '{"id": 1}\n{"id": 2, "k": null, "n": null}\n{"id": 3, "k": "c"}\n')
        shop.write("b.csv", "id,n\n4,2.25\n5,\n")
        pyarrow.parquet.write_table(pyarrow.table({"id": pyarrow.array([6], pyarrow.int64())}), shop.path("c.parquet"))
        shop.tarn("ingest", "ns.t", "a.ndjson", "b.csv")
        shop.tarn("ingest", "ns.t", "c.parquet")
        shop.write("d.ndjson", '{"id": 7}\n')
        shop.tarn("ingest", "ns.t", "d.ndjson", "--state", "state", "--checkpoint-rows", "1")
        found = {r["id"]: (r["k"], r["n"]) for r in shop.cat("ns.t").rows}
        want = {0: ("zz", "1.50"), 1: ("zz", "1.50"), 2: (None, None), 3: ("c", "1.50"), 4: ("zz", "2.25"), 5: ("zz", None),
                6: ("zz", "1.50"), 7: ("zz", "1.50")}
        equal(found, want)
        same(shop.pyiceberg_rows("ns.t"), shop.cat("ns.t").rows)
        del want[0]
        inside = [r for f in shop.cat("ns.t.files").rows
                  for r in pyarrow.parquet.read_table(f["file_path"], partitioning=None).to_pylist() if r["id"] > 0]
        equal({r["id"]: (r["k"], r["n"] and str(r["n"])) for r in inside}, want)
        shop.tarn("check", "ns.t", "--deep")


def folders():
    """The dir catalog: Hadoop's layout, by path, hint and number."""
    from pyiceberg.table import StaticTable
    with harness.Workshop() as shop:
        catalog = ("-c", "dir:" + shop.path("lake"))
        shop.write("rows.ndjson", ndjson(numbers(40)))
        shop.tarn("ingest", "ns.t", "rows.ndjson", "--create", "--schema", NUMBERS, "--partition-by", "k", *catalog)
        shop.write("rows.ndjson", ndjson(numbers(40, 40)))
        shop.tarn("ingest", "ns.t", "rows.ndjson", *catalog)
        folder = shop.path("lake", "ns", "t")
        with open(os.path.join(folder, "metadata", "version-hint.text"), encoding="utf-8") as file:
            newest = os.path.join(folder, "metadata", "v%s.metadata.json" % file.read().strip())
        want = numbers(80)
        same(shop.cat("ns.t", *catalog).rows, want)
        same(shop.cat(folder).rows, want)
        import rows
        same(rows.arrow_rows(StaticTable.from_metadata(newest).scan().to_arrow()), want)
        same(harness.duckdb_rows(newest), want)


def avro_files():
    """Avro data files, which fastavro reads, and Avro files of fastavro's, which we take in."""
    import fastavro
    with harness.Workshop() as shop:
        make(shop, ALL_TYPES, TYPES, "--property", "write.format.default=avro")
        same(shop.cat("ns.t").rows, ALL_TYPES)
        entry, = entries(shop)
        with open(harness.local(entry.data_file.file_path), "rb") as file:
            found = list(fastavro.reader(file))
        equal([r["s"] for r in found], [r["s"] for r in ALL_TYPES])
        equal([None if r["de"] is None else format(r["de"], "f") for r in found], [r["de"] for r in ALL_TYPES])
        schema = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}, {"name": "s", "type": ["null", "string"]}]}
        with open(shop.path("in.avro"), "wb") as file:
            fastavro.writer(file, schema, [{"id": 1, "s": None}, {"id": 2, "s": "x"}], codec="deflate")
        shop.tarn("ingest", "ns.a", "in.avro", "--create")
        same(shop.pyiceberg_rows("ns.a"), [{"id": 1, "s": None}, {"id": 2, "s": "x"}])


def parquet_in():
    """Parquet of pyarrow's: encodings and types that Iceberg has not are taken in."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    n = 3000
    table = pa.table({
        "u8": pa.array([i % 256 for i in range(n)], pa.uint8()), "i16": pa.array([i - 1500 for i in range(n)], pa.int16()),
        "u32": pa.array([i + 2**31 for i in range(n)], pa.uint32()), "ms": pa.array([i * 1000 for i in range(n)], pa.timestamp("ms")),
        "dict": pa.array(["v%d" % (i % 9) for i in range(n)]).dictionary_encode(), "large": pa.array(["x" * (i % 50) for i in range(n)], pa.large_string()),
        "nested": pa.array([None if i % 4 == 0 else [{"a": i, "b": [str(i)] * (i % 3)}] for i in range(n)])})
    for options in ({}, {"use_dictionary": False, "compression": "zstd", "data_page_version": "2.0"}, {"row_group_size": 700, "compression": "gzip"}):
        with harness.Workshop() as shop:
            pq.write_table(table, shop.path("in.parquet"), **options)
            shop.tarn("ingest", "ns.t", "in.parquet", "--create")
            ours = shop.cat("ns.t").rows
            equal(len(ours), n)
            same(ours, shop.duckdb_rows("ns.t"))
            same([{k: r[k] for k in ("u8", "i16", "u32", "dict", "large", "nested")} for r in ours],
                 table.drop_columns(["ms"]).to_pylist())


CASES = [all_types, partition_values, metrics, others_append, others_alter, others_make, deletes, filters, codecs, altered,
         respecified, refs, checkpoints, modes, old_format, version_3, write_defaults, folders, avro_files, parquet_in]


def main(names):
    harness.need("pyarrow", "pyiceberg", "duckdb", "duckdb_extension_iceberg")
    for function in CASES:
        if not names or function.__name__ in names:
            case("%s: %s" % (function.__name__, function.__doc__), function)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
