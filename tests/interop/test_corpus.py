#!/usr/bin/env python3
"""Goal: public tables of other people's writers read as another reader reads them. Method: every table below ROOT with expected
rows is read by `tarn cat` at its newest metadata, its prefix moved to where it lies.

usage: test_corpus.py ROOT
"""
import glob
import gzip
import json
import os
import sys
import tempfile

import harness
import rows


RENAMED = {"uSeR_Id_1": "uSeR_Id"}  # the other reader tells no case apart, and renames


def newest(folder):
    found = glob.glob(os.path.join(folder, "metadata", "*.metadata.json"))
    return max(found, key=lambda p: (os.path.basename(p).lstrip("v").split("-")[0].split(".")[0].zfill(9), p))


def read(folder, root):
    metadata = newest(folder)
    with open(metadata, "rb") as f:
        text = f.read()
    document = json.loads(gzip.decompress(text) if text[:2] == b"\x1f\x8b" else text)
    location = document["location"]
    place = ("data/persistent", root) if location.startswith("data/persistent") else (os.path.basename(location), folder)
    if "9876543210123456789" in json.dumps(document):  # a snapshot id beyond a long: refused, and read with another one
        harness.must_refuse(harness.tarn("cat", metadata, check=False), "current-snapshot-id")
        with tempfile.TemporaryDirectory() as other:
            metadata = os.path.join(other, "v1.metadata.json")
            with open(metadata, "w", encoding="utf-8") as f:
                f.write(json.dumps(document).replace(": 9876543210123456789", ": 987654321012345678"))
            compare(folder, metadata, place, lambda row: row["id"] != 2)  # the other reader read the version before
        return
    compare(folder, metadata, place, lambda row: True)


def compare(folder, metadata, place, wanted):
    with gzip.open(os.path.join(folder, "expected.ndjson.gz"), "rt", encoding="utf-8") as f:
        want = [{RENAMED.get(k, k): v for k, v in row.items()} for row in rows.parse(f.read()) if wanted(row)]
    harness.same(harness.tarn("cat", metadata, "--format", "ndjson", "--moved", "%s=%s" % place).rows, want)


def main(arguments):
    root = os.path.abspath(arguments[0]) if arguments else os.path.join(harness.SHARED, "corpus", "iceberg", "persistent")
    if not os.path.isdir(root):
        print("SKIPPED: no tables below %s" % root)
        return harness.SKIPPED
    for path in sorted(glob.glob(os.path.join(root, "**", "expected.ndjson.gz"), recursive=True)):
        folder = os.path.dirname(path)
        harness.case(os.path.relpath(folder, root), read, folder, root)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
