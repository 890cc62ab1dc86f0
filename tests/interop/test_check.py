#!/usr/bin/env python3
"""Goal: the check finds what is wrong with a table and nothing else. Method: tables of real engines (tests/fixtures, and all of
the project's where they lie beside the tree) give no errors but the ones known here; a good table of ours is damaged in one
place at a time, each found by its rule; warnings and errors set the exit status.

usage: test_check.py [--root DIR]
"""
import glob
import json
import os
import sys

import harness
from harness import case, equal

PLACE = "/tarn-fixtures/iceberg"
# Faults that are there: Iceberg's ORC writer kept bounds of nanosecond columns as microseconds.
KNOWN = {"java/v3_types_orc": {"partition-bounds"}}
BORNE = {"manifest-schema-id", "file-not-checked", "summary"}  # what many writers do


def report(folder, *arguments):
    answer = harness.tarn("check", "--json", *arguments, folder=folder, check=False)
    assert answer.status in (0, 6), answer
    found = json.loads(answer.out)
    equal(answer.status == 6, found["errors"] > 0)
    equal(found["errors"] + found["warnings"], len(found["findings"]))
    return found


def engine_table(root, name):
    about = harness.read_json(root, "expected", name, "about.json")
    metadata = root + about["metadata"][len(PLACE):]
    if "view" in harness.tarn("check", metadata, "--moved", PLACE + "=" + root, check=False).err:
        return
    found = report(None, "--deep", metadata, "--moved", PLACE + "=" + root)
    wrong = {f["rule"] for f in found["findings"] if f["rule"] not in BORNE}
    equal(wrong, KNOWN.get(name, set()))


# ---- damage ----

def good(shop):
    """Two snapshots of a partitioned table in a folder catalog, whose files are easy to find."""
    shop.write("a.ndjson", "".join('{"id":%d,"day":"2024-02-%02d","name":"n%d"}\n' % (i, 1 + i % 3, i) for i in range(30)))
    shop.write("b.ndjson", "".join('{"id":%d,"day":"2024-03-%02d","name":"m%d"}\n' % (i, 1 + i % 2, i) for i in range(10)))
    shop.tarn("-c", "dir:w", "create", "ns.t", "id long, day date, name string", "--partition-by", "day(day), truncate(10, id)")
    for name in ("a.ndjson", "b.ndjson"):
        shop.tarn("-c", "dir:w", "ingest", "ns.t", name)
    found = report(shop.folder, "-c", "dir:w", "--deep", "ns.t")
    equal(found["findings"], [])
    return shop.path("w", "ns", "t")


def newest(table):
    return max(glob.glob(table + "/metadata/v*.metadata.json"), key=lambda p: int(os.path.basename(p)[1:].split(".")[0]))


def edit_metadata(change):
    def damage(table):
        path = newest(table)
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        change(document)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file)
    return damage


def rewrite(path, change):
    """An Avro file with its records changed, its header kept."""
    import fastavro
    with open(path, "rb") as file:
        reader = fastavro.reader(file)
        records, schema = list(reader), reader.writer_schema
        header = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
    change(records)
    with open(path, "wb") as file:
        fastavro.writer(file, schema, records, codec="deflate", metadata=header)


def first_list(table):
    return sorted(glob.glob(table + "/metadata/snap-*.avro"), key=os.path.getmtime)[-1]


def first_manifest(table):
    return sorted((p for p in glob.glob(table + "/metadata/*.avro") if "snap-" not in p), key=os.path.getmtime)[0]


def edit_list(change):
    return lambda table: rewrite(first_list(table), change)


def edit_entry(change):
    return lambda table: rewrite(first_manifest(table), lambda records: change(records[0]["data_file"]))


def set_bound(which, key, value):
    def change(entry):
        for item in entry[which]:
            if item["key"] == key:
                item["value"] = value
    return edit_entry(change)


def set_count(which, key, value):
    return set_bound(which, key, value)


def set_member(name, value):
    return edit_entry(lambda entry: entry.__setitem__(name, value))


def in_partition(name, value):
    return edit_entry(lambda entry: entry["partition"].__setitem__(name, value))


def twice(table):
    rewrite(first_manifest(table), lambda records: records.append(records[0]))


def lose(pattern):
    return lambda table: os.remove(sorted(glob.glob(table + pattern, recursive=True))[0])


def grow(pattern):
    def damage(table):
        with open(sorted(glob.glob(table + pattern, recursive=True))[0], "ab") as file:
            file.write(b"x")
    return damage


def cut_data(table):
    """Same length, but no Parquet any more."""
    path = sorted(glob.glob(table + "/data/**/*.parquet", recursive=True))[0]
    size = os.path.getsize(path)
    with open(path, "wb") as file:
        file.write(bytes(size))


DAMAGE = {
    "last column": ("last-column-id", edit_metadata(lambda m: m.update({"last-column-id": 1}))),
    "last partition": ("last-partition-id", edit_metadata(lambda m: m.update({"last-partition-id": 999}))),
    "last sequence": ("sequence-number", edit_metadata(lambda m: m.update({"last-sequence-number": 1}))),
    "same sequence": ("sequence-number", edit_metadata(lambda m: m["snapshots"][1].update({"sequence-number": 1}))),
    "spec source": ("partition-spec", edit_metadata(lambda m: m["partition-specs"][-1]["fields"][0].update({"source-id": 3}))),
    "snapshot time": ("snapshot-time", edit_metadata(lambda m: m["snapshots"][1].update({"timestamp-ms": 1 << 43}))),
    "snapshot log": ("log-order", edit_metadata(lambda m: m["snapshot-log"].reverse() or m["snapshot-log"][0].update(
        {"timestamp-ms": m["snapshot-log"][0]["timestamp-ms"] + 1000000}))),
    "totals": ("summary", edit_metadata(lambda m: m["snapshots"][-1]["summary"].update({"total-records": "41"}))),
    "list lost": ("manifest-list-unreadable", lambda t: os.remove(first_list(t))),
    "manifest lost": ("manifest-missing", lambda t: os.remove(first_manifest(t))),
    "manifest longer": ("manifest-length", edit_list(lambda r: r[0].update({"manifest_length": 17}))),
    "manifest garbage": ("manifest-unreadable", lambda t: open(first_manifest(t), "r+b").truncate(900)),
    "added count": ("manifest-counts", edit_list(lambda r: r[-1].update({"added_files_count": 77}))),
    "rows count": ("manifest-counts", edit_list(lambda r: r[0].update({"added_rows_count": 77}))),
    "summary bound": ("partition-summary", edit_list(lambda r: r[0]["partitions"][0].update({"lower_bound": b"\xff\xff\xff\x7f"}))),
    "sequence above": ("sequence-number", edit_list(lambda r: r[0].update({"sequence_number": 9}))),
    "kind of manifest": ("manifest-content", edit_list(lambda r: r[0].update({"content": 1}))),
    "no multiple": ("partition-value", in_partition("id_trunc", 7)),
    "other partition": ("partition-bounds", in_partition("id_trunc", 500)),
    "other day": ("partition-bounds", in_partition("day_day", 3)),
    "null partition": ("partition-bounds", in_partition("day_day", None)),
    "lower above upper": ("bounds", set_bound("lower_bounds", 3, b"zzz")),
    "bound cut": ("bounds", set_bound("lower_bounds", 1, b"\x01")),
    "nulls": ("column-counts", set_count("null_value_counts", 3, 1000)),
    "values": ("column-counts", set_count("value_counts", 3, 1)),
    "format": ("entry", set_member("file_format", "XML")),
    "split": ("entry-detail", set_member("split_offsets", [900000000])),
    "order": ("entry-detail", set_member("sort_order_id", 5)),
    "records": ("file-rows", set_member("record_count", 1)),
    "size": ("file-size", set_member("file_size_in_bytes", 1)),
    "tight bound": ("file-metrics", set_bound("upper_bounds", 1, (0).to_bytes(8, "little"))),
    "null count": ("file-metrics", set_count("null_value_counts", 3, 1)),
    "file twice": ("duplicate-file", twice),
    "file lost": ("file-missing", lose("/data/**/*.parquet")),
    "file longer": ("file-size", grow("/data/**/*.parquet")),
    "file garbage": ("file-unreadable", cut_data),
}


def damaged(rule, damage):
    with harness.Workshop() as shop:
        table = good(shop)
        damage(table)
        for crc in glob.glob(table + "/metadata/.*.crc"):
            os.remove(crc)
        found = report(shop.folder, "-c", "dir:w", "--deep", "ns.t")
        assert rule in {f["rule"] for f in found["findings"]}, found["findings"]
        assert all(f["place"] and f["section"] and f["message"] for f in found["findings"])


def text_and_status():
    """What people see; --strict; a table that is not there."""
    with harness.Workshop() as shop:
        table = good(shop)
        assert "0 errors, 0 warnings in 2 snapshots" in shop.tarn("-c", "dir:w", "check", "ns.t").out
        edit_metadata(lambda m: m["snapshots"][-1]["summary"].update({"total-records": "41"}))(table)
        answer = shop.tarn("-c", "dir:w", "check", "ns.t")
        assert "warning [summary]" in answer.out and "was 41 and its manifests have 40" in answer.out, answer
        equal(shop.tarn("-c", "dir:w", "check", "ns.t", "--strict", check=False).status, 6)
        lose("/data/**/*.parquet")(table)
        answer = shop.tarn("-c", "dir:w", "check", "ns.t", check=False)
        equal(answer.status, 6)
        assert "error [file-missing]" in answer.out, answer
        equal(shop.tarn("-c", "dir:w", "check", "ns.none", check=False).status, 3)


def engine_tables(root):
    """Tables of real engines."""
    for about in sorted(glob.glob(os.path.join(root, "expected", "*", "*", "about.json"))):
        name = "/".join(about.split(os.sep)[-3:-1])
        case(name, engine_table, root, name)


def damaged_tables(root):
    """One thing wrong at a time."""
    for name, (rule, damage) in DAMAGE.items():
        case(name, damaged, rule, damage)


def seen_by_people(root):
    """Text, status, --strict."""
    case("text_and_status", text_and_status)


CASES = [engine_tables, damaged_tables, seen_by_people]


def main():
    harness.need("fastavro")
    whole = not sys.argv[1:]
    root = os.path.join(harness.FIXTURES, "iceberg") if whole else sys.argv[2]
    for function in CASES if whole else CASES[:1]:
        function(root)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
