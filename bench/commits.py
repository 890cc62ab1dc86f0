#!/usr/bin/env python3
"""Commits of many writers: K writers of one-file appends to one table, tarn beside PyIceberg and Iceberg Java.

usage: commits.py [--build DIR] [--work DIR] [--writers K,...] [--commits N] [--rounds N] [--only WAY,...] [--classpath CP]
                  [--crowd CLIENTS] [--growth SNAPSHOTS] [--compact] [--json FILE]
ways: batch        tarn's batch commit: `tarn serve` over SQLite, clients of bench_batch
      sqlite       tarn without a service on SQLite (bench_writers)
      postgresql   the same on a PostgreSQL started for this (tests/support/postgres.py); left out where none is installed
      pyiceberg    PyIceberg's SQL catalog on SQLite, a process a writer (no more than 16), add_files
      java         Iceberg's JDBC catalog on that PostgreSQL, a thread and a catalog a writer (JdbcWriters.java); CP holds Iceberg's
                   Spark runtime, PostgreSQL's JDBC driver and Hadoop's client (Spark's jars folder); left out without
--crowd adds that many batch clients at once; --growth a table that grows to that many snapshots, with the policy that expires all but 100
of them at each commit. --compact has the same batch clients with and without tarn.compact-before-commit, and reads what they made.
Ways run in turn; medians of the rounds. A way that fails commits says so; its rate counts those acknowledged."""
import argparse
import json
import logging
import multiprocessing
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "support"))
WAYS = ["batch", "sqlite", "postgresql", "pyiceberg", "java"]
LINE = re.compile(r"(\d+) commits in ([\d.]+) s.*?median ([\d.]+), p99 ([\d.]+).*?(\d+) failed")
TABLE_PATH = "/v1/namespaces/n/tables/t"
MOST_PROCESSES = 16  # of PyIceberg: 64 interpreters say nothing of the catalog


def result(commits, seconds, p50, p99, failed, snapshots):
    return {"rate": (commits - failed) / seconds, "p50": p50, "p99": p99, "failed": failed, "snapshots": snapshots, "seconds": seconds}


def folder(args, name):
    where = os.path.join(args.work, name)
    shutil.rmtree(where, ignore_errors=True)
    os.makedirs(where)
    return where


def run(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    return done.stdout + done.stderr


def read_line(out, snapshots):
    found = LINE.search(out)
    if not found:
        sys.exit("a run failed:\n" + out[-3000:])
    commits, seconds, p50, p99, failed = found.groups()
    return result(int(commits), float(seconds), float(p50), float(p99), int(failed), snapshots)


class Service:
    """`tarn serve` over SQLite with the table n.t and one data file of it."""

    def __init__(self, args, name, *properties):
        self.args, self.where = args, folder(args, name)
        tarn = [os.path.join(args.build, "tarn"), "-c", "sqlite:%s/t.db" % self.where]
        rows = os.path.join(self.where, "row.ndjson")
        with open(rows, "w") as file:
            file.write('{"id":1}\n')
        more = [word for p in properties for word in ("--property", p)]
        made = run([*tarn, "create", "n.t", "id long", *more]) + run([*tarn, "-q", "ingest", "n.t", rows])
        self.process = subprocess.Popen([*tarn, "serve", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        self.data = os.path.join(self.table()["metadata"]["location"].removeprefix("file://"), "data")
        files = [os.path.join(at, f) for at, _, names in os.walk(self.data) for f in names if f.endswith(".parquet")]
        if not files:
            sys.exit("no data file was made: " + made)
        self.file = files[0]

    def table(self):
        with urllib.request.urlopen(self.url + TABLE_PATH) as answer:
            return json.load(answer)

    def clients(self, n, commits):
        before = self.table()["metadata"]["last-sequence-number"]
        out = run([os.path.join(self.args.build, "bench_batch"), self.url.rsplit(":", 1)[1].strip("/"), TABLE_PATH, self.file, self.data,
                   str(n), str(commits), "merge-append"])
        return read_line(out, self.table()["metadata"]["last-sequence-number"] - before)

    def stop(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.where, ignore_errors=True)


def run_batch(args, writers):
    service = Service(args, "batch")
    try:
        return service.clients(writers, args.commits)
    finally:
        service.stop()


def run_optimistic(args, database, writers):
    where = folder(args, "optimistic")
    uri = database or "sqlite:%s/t.db" % where
    out = run([os.path.join(args.build, "bench_writers"), uri, os.path.join(where, "warehouse"), str(writers), str(args.commits)])
    got = read_line(out, 0)
    got["snapshots"] = writers * args.commits - got["failed"]
    shutil.rmtree(where, ignore_errors=True)
    return got


def append_files(where, uri, writer, commits, ready, go, told):
    logging.disable(logging.CRITICAL)
    from pyiceberg.catalog.sql import SqlCatalog
    catalog = SqlCatalog("bench", uri=uri, warehouse="file://" + where)
    ms, failed = [], 0
    table = catalog.load_table("n.t")
    ready.release()
    go.wait()
    for i in range(commits):
        began = time.perf_counter()
        try:
            table.add_files(["%s/f-%d-%d.parquet" % (where, writer, i)], check_duplicate_files=False)
        except Exception:
            failed += 1
            table = catalog.load_table("n.t")
        ms.append((time.perf_counter() - began) * 1e3)
    told.put((ms, failed))


def run_pyiceberg(args, writers):
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyiceberg.catalog.sql import SqlCatalog
    where = folder(args, "pyiceberg")
    uri = "sqlite:///%s/t.db" % where
    catalog = SqlCatalog("bench", uri=uri, warehouse="file://" + where)
    catalog.create_namespace("n")
    catalog.create_table("n.t", pa.schema([("id", pa.int64())]))
    first = os.path.join(where, "row.parquet")
    pq.write_table(pa.table({"id": [1]}), first)
    n = min(writers, MOST_PROCESSES)
    context = multiprocessing.get_context("spawn")
    ready, go, told = context.Semaphore(0), context.Event(), context.Queue()
    for w in range(n):
        for i in range(args.commits):
            os.link(first, "%s/f-%d-%d.parquet" % (where, w, i))
    processes = [context.Process(target=append_files, args=(where, uri, w, args.commits, ready, go, told)) for w in range(n)]
    for p in processes:
        p.start()
    for _ in processes:
        ready.acquire()
    began = time.perf_counter()
    go.set()
    answers = [told.get() for _ in processes]
    seconds = time.perf_counter() - began
    for p in processes:
        p.join()
    ms = sorted(x for times, _ in answers for x in times)
    snapshots = len(catalog.load_table("n.t").snapshots())
    shutil.rmtree(where, ignore_errors=True)
    return result(len(ms), seconds, ms[len(ms) // 2], ms[len(ms) * 99 // 100], sum(f for _, f in answers), snapshots)


def run_java(args, server, writers):
    from postgres import PASSWORD
    where = folder(args, "java")
    psql(server, "DROP TABLE IF EXISTS iceberg_tables, iceberg_namespace_properties")
    url = "jdbc:postgresql://127.0.0.1:%d/postgres" % server.port
    out = run(["java", "-cp", args.classpath, os.path.join(HERE, "JdbcWriters.java"), url, "tarn", PASSWORD, where, str(writers),
               str(args.commits)])
    line = [text for text in out.splitlines() if text.startswith('{"commits"')]
    if not line:
        sys.exit("Java failed:\n" + out[-3000:])
    shutil.rmtree(where, ignore_errors=True)
    return result(**json.loads(line[0]))


def psql(server, statement):
    subprocess.run([os.path.join(server.bin, "psql"), server.uri, "-q", "-c", statement], check=True, capture_output=True)


def run_postgresql(args, server, writers):
    psql(server, "DROP TABLE IF EXISTS iceberg_tables, iceberg_namespace_properties")
    return run_optimistic(args, server.uri, writers)


def median(results):
    return {key: statistics.median(r[key] for r in results) for key in results[0]}


def tell(name, got):
    print("| %s | %.1f | %.1f | %.1f | %d | %d | %.1f |" % (name, got["rate"], got["p50"], got["p99"], got["failed"], got["snapshots"],
                                                        got["snapshots"] / got["seconds"]), flush=True)


def grow(args):
    """Commits a second of one client while the table grows, by fifths."""
    service = Service(args, "growth", "tarn.expire-on-commit=true", "history.expire.max-snapshot-age-ms=0",
                      "history.expire.min-snapshots-to-keep=100")
    rates = []
    try:
        service.clients(1, 100)
        for _ in range(5):
            rates.append(service.clients(1, args.growth // 5)["rate"])
    finally:
        service.stop()
    print("\ngrowth to %d snapshots, 100 kept, one client: %s commits a second" % (args.growth, ", ".join("%.0f" % r for r in rates)))
    return rates


def read_all(args, service):
    """Milliseconds to read the whole table by the command, the best of five."""
    tarn = [os.path.join(args.build, "tarn"), "-c", "sqlite:%s/t.db" % service.where, "cat", "n.t"]
    best = None
    for _ in range(5):
        began = time.perf_counter()
        rows = run(tarn).count("\n")
        ms = (time.perf_counter() - began) * 1e3
        best = ms if best is None else min(best, ms)
    return best, rows


def run_compact(args, wanted, writers):
    service = Service(args, "compact", "tarn.compact-before-commit=" + wanted)
    try:
        got = service.clients(writers, args.commits)
        summary = service.table()["metadata"]["snapshots"][-1]["summary"]
        got["files"] = int(summary["total-data-files"])
        got["read"], rows = read_all(args, service)
        if rows != writers * args.commits - got["failed"] + 1:
            sys.exit("%d rows where %d were sent" % (rows - 1, writers * args.commits))
        return got
    finally:
        service.stop()


def compare_compact(args):
    said = {}
    print("\n| compact-before-commit, writers | commits/s | p99 ms | failed | snapshots | data files | read ms |\n|---|---|---|---|---|---|---|")
    for writers in [int(w) for w in args.writers.split(",")]:
        rounds = {"false": [], "true": []}
        for _ in range(args.rounds):
            for wanted, results in rounds.items():
                results.append(run_compact(args, wanted, writers))
        for wanted, results in rounds.items():
            got = said["compact %s %d" % (wanted, writers)] = median(results)
            print("| %s, %d | %.1f | %.1f | %d | %d | %d | %.1f |" % (wanted, writers, got["rate"], got["p99"], got["failed"], got["snapshots"],
                                                                   got["files"], got["read"]), flush=True)
    return said


def measure(args, server):
    ways = {"batch": lambda w: run_batch(args, w), "sqlite": lambda w: run_optimistic(args, None, w),
            "pyiceberg": lambda w: run_pyiceberg(args, w)}
    if server is not None:
        ways["postgresql"] = lambda w: run_postgresql(args, server, w)
        if args.classpath:
            ways["java"] = lambda w: run_java(args, server, w)
    said = {}
    print("| way, writers | commits/s | p50 ms | p99 ms | failed | snapshots | snapshots/s |\n|---|---|---|---|---|---|---|")
    for writers in [int(w) for w in args.writers.split(",")]:
        rounds = {way: [] for way in WAYS if way in ways and way in args.only.split(",")}
        for _ in range(args.rounds):
            for way in rounds:
                rounds[way].append(ways[way](writers))
        for way, results in rounds.items():
            said["%s %d" % (way, writers)] = median(results)
            tell("%s, %d" % (way, writers), median(results))
    if args.crowd:
        said["batch %d" % args.crowd] = run_batch(args, args.crowd)
        tell("batch, %d" % args.crowd, said["batch %d" % args.crowd])
    if args.growth:
        said["growth"] = grow(args)
    if args.compact:
        said.update(compare_compact(args))
    return said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(HERE, "..", "build", "release"))
    parser.add_argument("--work", default=os.path.join(HERE, "..", "build", "bench-commits"))
    parser.add_argument("--writers", default="1,8,64")
    parser.add_argument("--commits", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=",".join(WAYS))
    parser.add_argument("--classpath", default="")
    parser.add_argument("--crowd", type=int, default=0)
    parser.add_argument("--growth", type=int, default=0)
    parser.add_argument("--compact", action="store_true")
    parser.add_argument("--json")
    args = parser.parse_args()
    args.build, args.work = os.path.abspath(args.build), os.path.abspath(args.work)
    from postgres import Server, find_bin
    if find_bin() is None:
        said = measure(args, None)
    else:
        with Server() as server:
            said = measure(args, server)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(said, file, indent=1)


if __name__ == "__main__":
    main()
