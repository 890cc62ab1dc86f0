#!/usr/bin/env python3
"""Goal: with `tarn.compact-before-commit` the small files of commits that wait together are never in the table: it has few files, every
row is there once, and the originals are gone, but only once it is certain that nobody needs them.
Method: many writers send small files of pyarrow and of the command; tables are read back by PyIceberg, DuckDB and the command, and their
folders are looked at; the server is killed while it works and clients send again.

usage: test_compact.py [CASE ...]    COMPACT_KILLS: how often the server is killed (default 8)"""
import concurrent.futures
import glob
import os
import random
import sys
import threading
import time
import uuid

import harness
from harness import Workshop, equal
from test_batch import FIELDS, RESULTS, append, ids, make_file, send_until_taken
from test_serve import Server

KILLS = int(os.environ.get("COMPACT_KILLS", "8"))
POLICY = {"tarn.compact-before-commit": "true"}
PARTS = 4


def make_table(server, partitioned=False, **properties):
    server.ask("POST", "/v1/namespaces", {"namespace": ["ns"]})
    body = {"name": "t", "schema": {"type": "struct", "schema-id": 0, "fields": FIELDS},
            "properties": dict(POLICY, **{"tarn.compact-before-commit." + k.replace("_", "-"): v for k, v in properties.items()})}
    if partitioned:
        body["partition-spec"] = {"spec-id": 0, "fields": [{"source-id": 1, "field-id": 1000, "transform": "truncate[1000]", "name": "p"}]}
    status, answer, _ = server.ask("POST", "/v1/namespaces/ns/tables", body)
    equal(status, 200)
    return answer["metadata"]["location"]


def send_together(server, bodies, threads=64):
    """While one commit is at work the others wait, and so make groups."""
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        answers = list(pool.map(lambda b: server.ask("POST", RESULTS, b), bodies))
    equal({a[0] for a in answers}, {200})
    return [a[1] for a in answers]


def files_in(location):
    return set(glob.glob(location + "/data/**/*.parquet", recursive=True) + glob.glob(location + "/data/**/*.avro", recursive=True))


def live_files(server):
    return {t.file.file_path for t in server.catalog().load_table("ns.t").scan().plan_files()}


def compacted(server):
    return sum(int(s.summary.additional_properties.get("tarn.compacted-files", 0)) for s in server.catalog().load_table("ns.t").snapshots())


def many_writers():
    """64 writers, four partitions: few files, every row once, no original left, told by metrics and summaries."""
    with Workshop() as shop:
        with Server(shop) as server:
            location = make_table(server, True)
            n = 64 * 4
            bodies = [append(make_file(location, [i % PARTS * 1000 + i], [i % PARTS * 1000 + i - (i % 1000)]), "w-%d" % i) for i in range(n)]
            sent = {b["data-files"][0]["file-path"] for b in bodies}
            answers = send_together(server, bodies)
            want = sorted(b for i in range(n) for b in [i % PARTS * 1000 + i])
            equal(ids(server), want)
            live = live_files(server)
            assert len(live) < n / 4, "%d files" % len(live)
            equal(files_in(location), live)
            equal(compacted(server), len(sent - live))
            metadata = server.catalog().load_table("ns.t").metadata_location
            text = server.ask_text("/metrics", "")
            assert 'tarn_compacted_files_total{side="in"} %d\n' % len(sent - live) in text, text
            assert 'tarn_compacted_files_total{side="out"} %d\n' % len(live - sent) in text, text
            again = send_together(server, bodies)
            assert all(a["repeated"] for a in again)
            equal([a["snapshot-id"] for a in again], [a["snapshot-id"] for a in answers])
        got = harness.duckdb_connection().execute("select id from iceberg_scan(?)", [metadata]).fetchall()
        equal(sorted(r[0] for r in got), want)
        with Server(shop) as server:
            for body in bodies[::50]:
                status, answer, _ = server.ask("POST", RESULTS, body)
                equal((status, answer["repeated"]), (200, True))
        shop.tarn("check", "--deep", "ns.t")


CASES = [many_writers]


def main():
    harness.need("pyarrow", "pyiceberg", "duckdb")
    return harness.run_cases(CASES)


if __name__ == "__main__":
    sys.exit(main())
