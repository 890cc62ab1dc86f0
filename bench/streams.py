#!/usr/bin/env python3
"""Streams of the 2013 flight events into a table, with 100 checkpoints: tarn beside Flink's Iceberg sink and PyIceberg.

usage: streams.py EVENTS [RUN...] [--build DIR] [--engine ENGINE] [--limit N] [--rounds N] [--work DIR]
RUN: append upsert changes (default: all)

EVENTS is the script that makes the events (flat rows with an "op" field, or with --envelope Debezium's envelopes); their end state is
known. ENGINE is a command that runs a Flink SQL file with Iceberg's runtime (`ENGINE flink-iceberg run FILE`); without it Flink is left
out. Flink's time is that of the job alone: the same script with one row is taken off. Its memory is the largest process's. Flink
commits at its checkpoints, which come by time (every 100 ms, as far as it keeps up); the number of snapshots of each is told. PyIceberg gets a tenth of the checkpoints, and for
upserts a fiftieth of the rows, since its upsert reads the whole table each time; rates are rows per second."""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

COLUMNS = [("year", "INT"), ("month", "INT"), ("day", "INT"), ("dep_time", "INT"), ("sched_dep_time", "INT"), ("dep_delay", "INT"),
           ("arr_time", "INT"), ("sched_arr_time", "INT"), ("arr_delay", "INT"), ("carrier", "STRING"), ("flight", "INT"),
           ("tailnum", "STRING"), ("origin", "STRING"), ("dest", "STRING"), ("air_time", "INT"), ("distance", "INT"), ("hour", "INT"),
           ("minute", "INT"), ("time_hour", "STRING")]
KEY = ["time_hour", "carrier", "flight", "origin", "dest", "sched_dep_time"]
CHECKPOINTS = 100


def measured(command, **more):
    """Wall seconds and the peak memory in MiB of the largest process."""
    start = time.perf_counter()
    with open(os.devnull, "w") as null:
        done = subprocess.run(["/usr/bin/time", "-f", "peak-kib %M", *command], stdout=null, stderr=subprocess.PIPE, text=True, **more)
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr[-4000:]}")
    peak = int(re.findall(r"peak-kib (\d+)", done.stderr)[-1]) / 1024
    return seconds, peak


def make_events(args):
    """NDJSON files: inserts only, upserts (flat c and u), envelopes; with their row counts."""
    paths = {run: os.path.join(args.work, run + ".ndjson") for run in ("append", "upsert", "changes")}
    for run, extra in (("append", []), ("changes", ["--envelope"])):
        with open(paths[run], "w") as out:
            limit = ["--limit", str(args.limit)] if args.limit else []
            subprocess.run([sys.executable, args.events, *limit, *extra], stdout=out, check=True)
    with open(paths["append"]) as flat, open(paths["upsert"], "w") as upsert, open(paths["append"] + ".tmp", "w") as plain:
        for line in flat:
            row = json.loads(line)
            op = row.pop("op")
            row.pop("ts_ms", None)
            text = json.dumps(row, separators=(",", ":")) + "\n"
            plain.write(text)
            if op != "d":
                upsert.write(text)
    os.replace(paths["append"] + ".tmp", paths["append"])
    counts = {run: sum(1 for _ in open(path)) for run, path in paths.items()}
    return paths, counts


def tarn_schema():
    types = {"INT": "int", "STRING": "string"}
    return ", ".join(f"{name} {types[kind]}{' not null' if name in KEY else ''}" for name, kind in COLUMNS)


def run_tarn(args, run, path, rows, deletes):
    where = os.path.join(args.work, f"tarn-{run}-{deletes}")
    shutil.rmtree(where, ignore_errors=True)
    os.makedirs(where)
    tarn = os.path.join(args.build, "tarn")
    command = [tarn, "-c", f"sqlite:{where}/t.db", "-q", "ingest", "db.t", path, "--create", "--schema", tarn_schema(),
               "--checkpoint-rows", str(-(-rows // CHECKPOINTS)), "--state", f"{where}/state"]
    if run != "append":
        command += ["--key", ",".join(KEY), "--deletes", deletes]
    if deletes == "vector":
        command += ["--property", "format-version=3"]
    if run == "upsert":
        command += ["--upsert"]
    if run == "changes":
        command += ["--format", "debezium-json"]
    seconds, peak = measured(command)
    count = subprocess.run([tarn, "-c", f"sqlite:{where}/t.db", "cat", "db.t", "--count"], capture_output=True, text=True, check=True)
    return seconds, peak, int(count.stdout), snapshots(where)


FLINK = """
SET 'parallelism.default' = '2';
SET 'execution.checkpointing.interval' = '100ms';
SET 'state.checkpoint-storage' = 'filesystem';
SET 'state.checkpoints.dir' = 'file://{where}-checkpoints';
CREATE CATALOG c WITH ('type'='iceberg', 'catalog-type'='hadoop', 'warehouse'='file://{where}');
CREATE DATABASE IF NOT EXISTS c.db;
CREATE TABLE c.db.t ({columns}{key}) WITH ('format-version'='2'{upsert});
CREATE TEMPORARY TABLE src ({columns}) WITH ('connector'='filesystem', 'path'='file://{path}', 'format'='{format}');
INSERT INTO c.db.t SELECT * FROM src;
"""


def run_flink(args, run, path):
    where = os.path.join(args.work, f"flink-{run}")
    shutil.rmtree(where, ignore_errors=True)
    keyed = run != "append"
    script = FLINK.format(
        where=where, path=path, columns=", ".join(f"`{name}` {kind}" for name, kind in COLUMNS),
        key=", PRIMARY KEY (" + ", ".join(f"`{k}`" for k in KEY) + ") NOT ENFORCED" if keyed else "",
        upsert=", 'write.upsert.enabled'='true'" if run == "upsert" else "",
        format="debezium-json" if run == "changes" else "json")
    file = os.path.join(args.work, f"flink-{run}.sql")
    with open(file, "w") as out:
        out.write(script)
    environment = dict(os.environ, ENGINES_HEAP="2g")
    seconds, peak = measured([args.engine, "flink-iceberg", "run", file], env=environment)
    return seconds, peak, snapshots(where)


def snapshots(where):
    """How many were made: each has one manifest list."""
    return sum(name.startswith("snap-") for _, _, names in os.walk(where) for name in names)


def run_pyiceberg(args, run, path, rows):
    import pyarrow.json as pj
    from pyiceberg.catalog.sql import SqlCatalog

    where = os.path.join(args.work, f"py-{run}")
    shutil.rmtree(where, ignore_errors=True)
    os.makedirs(where)
    data = pj.read_json(path)
    checkpoints = CHECKPOINTS // 10
    if run != "append":
        data = data.slice(0, max(checkpoints, rows // 50))
    catalog = SqlCatalog("b", uri=f"sqlite:///{where}/t.db", warehouse=f"file://{where}")
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", schema=data.schema)
    step = -(-data.num_rows // checkpoints)
    start = time.perf_counter()
    for first in range(0, data.num_rows, step):
        part = data.slice(first, step)
        if run == "append":
            table.append(part)
        else:  # it takes a key once a batch only: the last row of each
            last = {tuple(row[k] for k in KEY): i for i, row in enumerate(part.select(KEY).to_pylist())}
            table.upsert(part.take(sorted(last.values())), join_cols=KEY)
    return (time.perf_counter() - start), data.num_rows


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("events")
    parser.add_argument("runs", nargs="*", default=["append", "upsert", "changes"])
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--engine")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", default="/tmp/tarn-streams")
    args = parser.parse_args()
    os.makedirs(args.work, exist_ok=True)
    paths, counts = make_events(args)
    one = {}
    for run, path in paths.items():
        one[run] = path.replace(".ndjson", "-one.ndjson")
        with open(path) as src, open(one[run], "w") as out:
            out.write(src.readline())
    for run in args.runs:
        rows = counts[run]
        kinds = ["none"] if run == "append" else ["equality", "position", "vector"]
        if args.engine:
            empty = min(run_flink(args, run, one[run])[0] for _ in range(2))
            rounds = [run_flink(args, run, paths[run]) for _ in range(args.rounds)]
            seconds = statistics.median(r[0] for r in rounds) - empty
            flink_rate, flink_peak = rows / seconds, max(r[1] for r in rounds)
            print(f"{run:8} Flink          {flink_rate:10.0f} rows/s  {flink_peak:7.0f} MiB  {rounds[0][2]} snapshots (start {empty:.1f} s taken off)", flush=True)
        for deletes in kinds:
            rounds = [run_tarn(args, run, paths[run], rows, deletes) for _ in range(args.rounds)]
            rate, peak = rows / statistics.median(r[0] for r in rounds), max(r[1] for r in rounds)
            beside = f"  {rate / flink_rate:5.1f}x the rate, {peak / flink_peak:.3f}x the memory of Flink" if args.engine else ""
            print(f"{run:8} tarn {deletes:9} {rate:10.0f} rows/s  {peak:7.0f} MiB  {rounds[0][3]} snapshots  {rounds[0][2]} rows at the end{beside}", flush=True)
        if run != "changes":
            seconds, n = run_pyiceberg(args, run, paths[run], rows)
            print(f"{run:8} PyIceberg      {n / seconds:10.0f} rows/s  ({n} rows)", flush=True)


if __name__ == "__main__":
    main()
