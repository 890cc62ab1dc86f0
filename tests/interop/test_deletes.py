#!/usr/bin/env python3
"""Goal: position delete files, deletion vectors and equality delete files of the writers are read by others as they were meant, and
files of a sorted table are sorted. Method: delete_rows (beside this file) deletes by position in tables that the command made; what
must be left is worked out from the data files alone; PyIceberg, DuckDB and the command itself are asked.

usage: test_deletes.py [case...]
"""
import json
import os
import subprocess
import sys

import harness
from harness import case, equal, same

NUMBERS = "id long, k int, s string, d double"


def numbers(count):
    return [{"id": i, "k": i % 3, "s": None if i % 5 == 0 else "s%d" % (i % 11), "d": i / 4} for i in range(count)]


def make(shop, found, *options):
    shop.tarn("create", "ns.t", NUMBERS, *options)
    shop.write("rows.ndjson", "".join(json.dumps(row) + "\n" for row in found))
    shop.tarn("ingest", "ns.t", "rows.ndjson")


def delete_rows(shop, *arguments):
    program = os.environ["DELETE_ROWS"]
    done = subprocess.run([program, shop.path("tarn.db"), shop.path("warehouse"), "ns", "t"] + [str(a) for a in arguments],
                          capture_output=True, text=True, cwd=shop.folder, timeout=60)
    assert done.returncode == 0, done.stderr


def files(shop, content=None):
    """Entries of live files as PyIceberg reads the manifests."""
    table = shop.catalog().load_table("ns.t")
    return [entry.data_file for manifest in table.current_snapshot().manifests(table.io)
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)
            if content is None or entry.data_file.content.value == content]


def raw_deletes(shop):
    """Entries of live delete files, as fastavro reads them from the manifests: all members of version 3."""
    import fastavro
    table = shop.catalog().load_table("ns.t")
    found = []
    for manifest in table.current_snapshot().manifests(table.io):
        with open(harness.local(manifest.manifest_path), "rb") as file:
            found += [e["data_file"] for e in fastavro.reader(file) if e["status"] != 2 and e["data_file"].get("content", 0) != 0]
    return found


def columns(path):
    """Rows of a data file, by pyarrow or fastavro."""
    path = harness.local(path)
    if path.endswith(".avro"):
        import fastavro
        with open(path, "rb") as file:
            return list(fastavro.reader(file))
    import pyarrow.parquet as parquet
    return parquet.ParquetFile(path).read().to_pylist()


def left(shop, deleted):
    """Rows of all data files without those whose position deleted(p)."""
    return [row for file in files(shop, 0) for position, row in enumerate(columns(file.file_path)) if not deleted(position)]


def ask_all(shop, want, avro=False):
    """PyIceberg and DuckDB read no position deletes in Avro; then the command alone is asked."""
    same(shop.cat("ns.t").rows, want)
    if not avro:
        same(shop.pyiceberg_rows("ns.t"), want)
        same(shop.duckdb_rows("ns.t"), want)


def position_deletes(*options):
    with harness.Workshop() as shop:
        make(shop, numbers(3000), "--property", "write.target-file-size-bytes=8000", *options)
        avro = "write.delete.format.default=avro" in options
        delete_rows(shop, "position", 7, 2)
        ask_all(shop, left(shop, lambda p: p % 7 == 2), avro)
        delete_rows(shop, "position", 5, 0)
        ask_all(shop, left(shop, lambda p: p % 7 == 2 or p % 5 == 0), avro)
        paths = {file.file_path for file in files(shop, 0)}
        for file in files(shop, 1):
            rows = columns(file.file_path)
            equal(rows, sorted(rows, key=lambda r: (r["file_path"], r["pos"])))
            assert {row["file_path"] for row in rows} <= paths
            equal(file.record_count, len(rows))
            equal(file.lower_bounds[2147483546].decode(), rows[0]["file_path"])
            equal(file.upper_bounds[2147483546].decode(), rows[-1]["file_path"])
            equal(file.sort_order_id, None)


def positions():
    """Position delete files, one for each data file."""
    position_deletes()


def positions_by_partition():
    """Position delete files, one for each partition."""
    position_deletes("--partition-by", "k", "--property", "write.delete.granularity=partition")


def positions_avro():
    """Position delete files in Avro."""
    position_deletes("--property", "write.delete.format.default=avro")


def vectors():
    """Deletion vectors, merged with those before; their Puffin files are what PyIceberg takes, and say what the manifest says."""
    from pyiceberg.table.puffin import PuffinFile
    for options in ((), ("--partition-by", "k")):
        with harness.Workshop() as shop:
            make(shop, numbers(3000), "--format-version", "3", "--property", "write.target-file-size-bytes=8000", *options)
            deleted = set()
            for modulus, rest in ((7, 2), (5, 0), (2, 1)):
                delete_rows(shop, "vector", modulus, rest)
                deleted.add((modulus, rest))
                ask_all(shop, left(shop, lambda p: any(p % m == r for m, r in deleted)))
            data = files(shop, 0)
            found = raw_deletes(shop)
            equal(len(found), len(data))  # one vector for each file
            for entry in found:
                with open(harness.local(entry["file_path"]), "rb") as file:
                    raw = file.read()
                equal(len(raw), entry["file_size_in_bytes"])
                puffin = PuffinFile(raw)
                assert puffin.footer.properties["created-by"].startswith("tarn")
                blobs = [b for b in puffin.footer.blobs if b.offset == entry["content_offset"]]
                equal([(b.length, b.type, b.compression_codec) for b in blobs], [(entry["content_size_in_bytes"], "deletion-vector-v1", None)])
                equal(blobs[0].properties, {"referenced-data-file": entry["referenced_data_file"], "cardinality": str(entry["record_count"])})


def vectors_of_two_sizes():
    """A long vector and a short one in one Puffin file: other readers take the right one for each data file."""
    import random
    for long_ones, short_ones in ((1000, 50), (900, 20), (2000, 400)):
        with harness.Workshop() as shop:
            chance = random.Random(long_ones)
            shop.tarn("create", "ns.t", "id long, f int", "--format-version", "3", "--property", "write.delete.mode=merge-on-read")
            for number in (0, 1):
                shop.write("in.ndjson", "".join('{"id": %d, "f": %d}\n' % (number * 3000 + i, number) for i in range(3000)))
                shop.tarn("ingest", "ns.t", "in.ndjson")
            gone = chance.sample(range(3000), long_ones) + [3000 + i for i in chance.sample(range(3000), short_ones)]
            shop.tarn("delete", "ns.t", "--where", "id in (%s)" % ",".join(map(str, gone)))
            want = sorted(set(range(6000)) - set(gone))
            for found in (shop.cat("ns.t").rows, shop.duckdb_rows("ns.t"), shop.pyiceberg_rows("ns.t")):
                equal(sorted(row["id"] for row in found), want)


def vectors_of_one_size():
    """Two manifests (of two partition specs) name vectors of one length in one Puffin file, those of the second lie before the last of the first."""
    with harness.Workshop() as shop:
        shop.tarn("create", "ns.t", "id long, f int", "--format-version", "3", "--property", "write.delete.mode=merge-on-read")
        for number in range(4):
            if number == 2:
                shop.tarn("alter", "ns.t", "partition-by", "f")
            shop.write("in.ndjson", "".join('{"id": %d, "f": %d}\n' % (number * 100 + i, number) for i in range(100)))
            shop.tarn("ingest", "ns.t", "in.ndjson")
        gone = [number * 100 + number * 7 + 3 * i for number in range(4) for i in range(9 if number == 1 else 4)]
        shop.tarn("delete", "ns.t", "--where", "id in (%s)" % ",".join(map(str, gone)))
        vectors = shop.cat("ns.t.delete_files").rows
        equal([len({row[name] for row in vectors}) for name in ("file_path", "content_size_in_bytes", "content_offset")], [1, 2, 4])
        want = sorted(set(range(400)) - set(gone))
        for found in (shop.cat("ns.t").rows, shop.duckdb_rows("ns.t"), shop.pyiceberg_rows("ns.t")):
            equal(sorted(row["id"] for row in found), want)


def equality():
    """Equality delete files: DuckDB and the command."""
    with harness.Workshop() as shop:
        make(shop, numbers(1000))
        delete_rows(shop, "equality", 100, 250)
        want = [row for row in numbers(1000) if not 100 <= row["id"] < 350]
        same(shop.cat("ns.t").rows, want)
        same(shop.duckdb_rows("ns.t"), want)
        equal([(file.record_count, file.equality_ids) for file in files(shop, 2)], [(250, [1])])


def sorted_files():
    """Every file of a table with a sort order is sorted, as DuckDB sorts, and its entry says by which order."""
    import duckdb
    for options in ((), ("--partition-by", "k")):
        with harness.Workshop() as shop:
            make(shop, numbers(5000)[::-1], "--sort-by", "s desc nulls first, d", *options)
            found = files(shop, 0)
            equal({file.sort_order_id for file in found}, {1})
            for file in found:
                path = harness.local(file.file_path)
                query = "select id from read_parquet('%s')" % path
                as_it_is = duckdb.sql(query).fetchall()
                equal(as_it_is, duckdb.sql(query + " order by s desc nulls first, d").fetchall())
            same(shop.pyiceberg_rows("ns.t"), numbers(5000))


def shown():
    """tarn file meta shows the footer of a Puffin file, packed or not, and refuses what is none."""
    folder = os.path.join(harness.FIXTURES, "puffin")
    want = harness.tarn("file", "meta", os.path.join(folder, "java.puffin")).out
    footer = json.loads(want)
    equal((len(footer["blobs"]), footer["blobs"][1]["properties"]["cardinality"]), (5, "2"))
    equal(harness.tarn("file", "meta", os.path.join(folder, "lz4_footer.puffin")).out, want)
    equal(harness.tarn("file", "cat", os.path.join(folder, "java.puffin")).out, want)
    bare = harness.tarn("file", "meta", os.path.join(folder, "b20_bare_blob.puffin"), check=False)
    harness.must_refuse(bare, "b20_bare_blob.puffin", "PFA1")


CASES = [positions, positions_by_partition, positions_avro, vectors, vectors_of_two_sizes, vectors_of_one_size, equality, sorted_files, shown]


def main(names):
    harness.need("pyiceberg", "duckdb", "fastavro", "pyarrow", "duckdb_extension_iceberg")
    for fn in CASES:
        if not names or fn.__name__ in names:
            case(fn.__name__, fn)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
