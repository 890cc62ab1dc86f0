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
        self.root, self.folder = root, os.path.join(root, "expected", name)
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


    def position_deletes(self):
        """What the delete files and vectors hold, read by others."""
        version = self.about.get("format_version") or self.about.get("format-version")
        want = []
        if any(f["content"] == 1 and f["file_format"].lower() == "orc" for f in self.expected("files.ndjson")):
            answer = harness.cat(self.metadata, "--metadata-table", "position_deletes", moved=self.moved, check=False)
            harness.must_refuse(answer, "orc")
            raise harness.Refused(answer.err)
        for f in self.expected("files.ndjson"):
            if f["content"] != 1:
                continue
            path = os.path.join(self.root, os.path.relpath(f["file_path"].replace("file:", ""), PLACE))
            for where, position in positions_of(path, f):
                want.append((where, position, f["spec_id"], f["file_path"]))
        got = self.listing("position_deletes")
        harness.equal(sorted((r["file_path"], r["pos"], r["spec_id"], r["delete_file_path"]) for r in got), sorted(want))
        assert all(r["row"] is None for r in got)
        for r in got:
            harness.equal("content_offset" in r, "content_size_in_bytes" in r)
            assert version != 2 or "content_offset" not in r, r


def positions_of(path, file):
    """(data file, position) of a delete file."""
    if file["file_format"].lower() == "puffin":
        from pyiceberg.table.puffin import PuffinFile
        with open(path, "rb") as opened:
            vectors = PuffinFile(opened.read()).to_vector()
        mine = [where for where in vectors if where == file.get("referenced_data_file")] if file.get("referenced_data_file") else list(vectors)
        return [(where, position) for where in mine for position in vectors[where].to_pylist()]
    if file["file_format"].lower() == "avro":
        import fastavro
        with open(path, "rb") as opened:
            return [(r["file_path"], r["pos"]) for r in fastavro.reader(opened)]
    import pyarrow.parquet
    table = pyarrow.parquet.read_table(path, columns=["file_path", "pos"], partitioning=None)
    return list(zip(table["file_path"].to_pylist(), table["pos"].to_pylist()))


def own_deletes():
    """Tables of ours, more rows than one batch, a filter and a limit; nothing of it where there are no deletes, or only equality deletes."""
    import pyarrow.parquet
    with harness.Workshop() as shop:
        shop.write("a.ndjson", "".join('{"id":%d}\n' % i for i in range(60000)))
        for version in (2, 3):
            name = "ns.t%d" % version
            shop.tarn("create", name, "id long", "--partition-by", "bucket(2, id)", "--property", "format-version=%d" % version, "--property",
                      "write.delete.mode=merge-on-read")
            harness.equal(shop.cat(name + ".position_deletes").rows, [])
            shop.tarn("ingest", name, "a.ndjson")
            harness.equal(shop.cat(name + ".position_deletes").rows, [])
            shop.tarn("delete", name, "--where", "id >= 10000 and id < 59999")
            want = []
            for f in shop.cat(name + ".data_files").rows:
                ids = pyarrow.parquet.read_table(shop.path(harness.local(f["file_path"])), columns=["id"], partitioning=None)["id"].to_pylist()
                want += [(f["file_path"], i, f["partition"]["id_bucket"]) for i, number in enumerate(ids) if 10000 <= number < 59999]
            got = shop.cat(name + ".position_deletes").rows
            harness.equal(sorted((r["file_path"], r["pos"], r["partition"]["id_bucket"]) for r in got), sorted(want))
            deletes = {f["file_path"]: f for f in shop.cat(name + ".delete_files").rows}
            assert {r["delete_file_path"] for r in got} == set(deletes), deletes
            harness.equal(len(shop.cat(name + ".position_deletes", "--limit", 20000, "--columns", "pos").rows), 20000)
            harness.equal(len(shop.cat(name + ".position_deletes", "--where", "pos < 7000").rows), sum(p < 7000 for _, p, _ in want))
            if version == 3:
                places = {(f["content_offset"], f["content_size_in_bytes"]) for f in shop.cat(name + ".delete_files").rows}
                harness.equal({(r["content_offset"], r["content_size_in_bytes"]) for r in got}, places)
        shop.write("k.ndjson", '{"id":1}\n{"id":2}\n')
        for _ in range(2):
            shop.tarn("ingest", "ns.e", "k.ndjson", "--create", "--key", "id", "--upsert", "--deletes", "equality")
        harness.equal(shop.cat("ns.e.position_deletes").rows, [])


CASES = [own_deletes]


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
    for fn in CASES:
        harness.case(fn.__name__, fn)
    for name in names:
        table = Table(root, name)
        if "metadata" not in table.about:
            continue
        for what in ("files", "entries", "manifests", "position_deletes"):
            harness.case("%s %s" % (name, what), getattr(table, what))
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
