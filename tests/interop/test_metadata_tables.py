#!/usr/bin/env python3
"""Goal: the metadata tables files, entries and manifests say what the manifests of Spark, Iceberg Java, Flink, PyIceberg and
DuckDB hold. Method: each table below ROOT that has files.ndjson and manifests.ndjson (made from the manifests by an independent
reader) is listed by `tarn cat --metadata-table` and compared file by file, manifest by manifest.

usage: test_metadata_tables.py [--root DIR] [namespace/table...]
"""
import glob
import os
import sys

import harness
import rows

PLACE = "/tarn-fixtures/iceberg"
SAME = ("content", "spec_id", "record_count", "file_size_in_bytes", "sort_order_id", "split_offsets", "equality_ids")
MAPS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")


def as_map(value):
    """Maps come as {"keys", "values"}; absent ones and empty ones are one."""
    if not value:
        return {}
    if set(value) == {"keys", "values"}:
        return {str(k): v for k, v in zip(value["keys"], value["values"])}
    return value


def as_list(value):
    return value if value else None


class Table:
    def __init__(self, root, name):
        self.folder = os.path.join(root, "expected", name)
        self.name, self.about = name, harness.read_json(self.folder, "about.json")
        self.moved = PLACE + "=" + root
        self.metadata = root + self.about["metadata"][len(PLACE):]

    def listing(self, metadata_table):
        answer = harness.cat(self.metadata, "--metadata-table", metadata_table, moved=self.moved, check=False)
        assert answer.status == 0, answer
        return answer.rows

    def expected(self, name):
        return rows.load(os.path.join(self.folder, name))

    def files(self):
        # a file may be in two manifests after careless writers: compare as lists in a stable order
        def key(row):
            return (row["file_path"], row["record_count"], str(as_map(row["lower_bounds"])))
        got, want = sorted(self.listing("files"), key=key), sorted(self.expected("files.ndjson"), key=key)
        harness.equal([f["file_path"] for f in got], [f["file_path"] for f in want])
        for ours, theirs in zip(got, want):
            harness.equal(ours["file_format"].lower(), theirs["file_format"].lower())
            for name in SAME:
                harness.equal((name, as_list(ours[name]) if name.endswith("s") else ours[name]),
                              (name, as_list(theirs[name]) if name.endswith("s") else theirs[name]))
            for name in MAPS:
                harness.equal((name, as_map(ours[name])), (name, as_map(theirs[name])))

    def entries(self):
        got = {e["data_file"]["file_path"]: e for e in self.listing("entries") if e["status"] != 2}
        for theirs in self.expected("files.ndjson"):
            ours = got[theirs["file_path"]]
            harness.equal(ours["sequence_number"], theirs["data_sequence_number"])
            harness.equal(ours["file_sequence_number"], theirs["file_sequence_number"])

    def manifests(self):
        got = {m["path"]: m for m in self.listing("manifests")}
        want = self.expected("manifests.ndjson")
        harness.equal(sorted(got), sorted(m["path"] for m in want))
        for theirs in want:
            ours, kind = got[theirs["path"]], "delete" if theirs["content"] == 1 else "data"
            harness.equal((ours["content"], ours["length"], ours["partition_spec_id"], ours["added_snapshot_id"]),
                          (theirs["content"], theirs["length"], theirs["spec_id"], theirs["added_snapshot_id"]))
            for what in ("added", "existing", "deleted"):
                harness.equal((what, ours["%s_%s_files_count" % (what, kind)]), (what, theirs[what + "_files"]))
            for a, b in zip(ours["partition_summaries"] or [], theirs["partitions"] or []):
                harness.equal((a["contains_null"], a["contains_nan"]), (b["contains_null"], b["contains_nan"]))


def main(arguments):
    root = os.path.join(harness.SHARED, "fixtures", "iceberg")
    if arguments[:1] == ["--root"]:
        root = os.path.abspath(arguments[1])
        arguments = arguments[2:]
    names = arguments or sorted(os.path.relpath(os.path.dirname(p), os.path.join(root, "expected"))
                                for p in glob.glob(os.path.join(root, "expected", "*", "*", "manifests.ndjson")))
    if not names:
        print("SKIPPED: no tables below %s" % root)
        return harness.SKIPPED
    for name in names:
        table = Table(root, name)
        if "metadata" not in table.about:
            continue
        for what in ("files", "entries", "manifests"):
            harness.case("%s %s" % (name, what), getattr(table, what))
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
