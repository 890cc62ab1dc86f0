#!/usr/bin/env python3
"""tarn beside pyarrow, DuckDB and PyIceberg on the same work in one run; medians of several rounds, alternating.

usage: compare.py [--build DIR] [--rounds N] [--data DIR] [--flights FILE] [NAME...]
NAME: write read flights ndjson append plan memory (default: all)

Data is made once under --data: TPC-H lineitem at scale 1 (tpchgen-cli), the flights as NDJSON. Times are wall seconds; both sides of
a comparison use the same number of threads."""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from libtarn import Tarn  # noqa: E402

ROOT = os.path.dirname(HERE)
results = []


def report(name, ours, theirs, who, goal, unit="s"):
    ratio = ours / theirs if theirs else float("nan")
    results.append({"name": name, "tarn": ours, "peer": theirs, "who": who, "ratio": ratio, "goal": goal, "unit": unit})
    print(f"{name:46} tarn {ours:10.3f} {unit}   {who} {theirs:10.3f} {unit}   ratio {ratio:6.2f}   goal {goal}", flush=True)


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def race(rounds, ours, *theirs):
    """Medians of each, run in turn so that a noisy minute hits all."""
    times = [[] for _ in range(1 + len(theirs))]
    for _ in range(rounds):
        for i, work in enumerate((ours,) + theirs):
            times[i].append(timed(work))
    return [statistics.median(t) for t in times]


def lineitem(data):
    path = os.path.join(data, "lineitem.parquet")
    if not os.path.exists(path):
        subprocess.run([os.path.join(os.path.dirname(sys.executable), "tpchgen-cli"), "parquet", "-s", "1",
                        "--tables", "lineitem", "--output-dir", data], check=True)
    return path


def flights_table(args):
    return pa.csv.read_csv(args.flights, convert_options=pa.csv.ConvertOptions(null_values=["NA"], strings_can_be_null=True))


def flights_ndjson(args, copies=1):
    path = os.path.join(args.data, f"flights-{copies}.ndjson")
    if not os.path.exists(path):
        table = flights_table(args)
        rows = table.to_pylist()
        with open(path, "w") as out:
            for _ in range(copies):
                for row in rows:
                    if not isinstance(row["time_hour"], str):
                        row = dict(row, time_hour=row["time_hour"].strftime("%Y-%m-%dT%H:%M:%SZ"))
                    out.write(json.dumps(row) + "\n")
    return path


def canonical(table):
    """lineitem with the types that an Iceberg table has (dictionary and view encodings undone)."""
    fields = []
    for f in table.schema:
        t = f.type
        t = pa.string() if pa.types.is_string_view(t) or pa.types.is_large_string(t) else t
        fields.append(pa.field(f.name, t))
    return table.cast(pa.schema(fields))


def bench_write(args):
    table = canonical(pq.read_table(lineitem(args.data)))
    batches = table.to_batches(max_chunksize=65536)
    ours, theirs = os.path.join(args.data, "ours.parquet"), os.path.join(args.data, "theirs.parquet")
    for codec, level in (("zstd", 1), ("snappy", None), ("uncompressed", None)):
        properties = {"write.parquet.compression-level": str(level)} if level else {}
        for threads in (1, args.threads):
            tarn = Tarn(args.library, threads)
            pa.set_cpu_count(threads)
            # pyarrow's writer encodes on one thread whatever the pool's size
            a, b = race(args.rounds,
                        lambda: tarn.write(ours, batches, table.schema, codec, json.dumps(properties)),
                        lambda: pq.write_table(table, theirs, compression="none" if codec == "uncompressed" else codec,
                                               compression_level=level, row_group_size=1 << 20))
            report(f"write lineitem, {codec}, {threads} thread(s)", a, b, "pyarrow", "<= 0.80")
            print(f"    sizes: tarn {os.path.getsize(ours) >> 20} MiB, pyarrow {os.path.getsize(theirs) >> 20} MiB")
    assert pq.read_table(ours).equals(table), "pyarrow reads something else"


def bench_read(args):
    table = canonical(pq.read_table(lineitem(args.data)))
    path = os.path.join(args.data, "read.parquet")
    for codec in ("zstd", "snappy"):
        pq.write_table(table, path, compression=codec, row_group_size=1 << 20)
        tarn = Tarn(args.library, 1)
        pa.set_cpu_count(1)
        a, b = race(args.rounds, lambda: tarn.read(path, keep=True), lambda: pq.read_table(path, use_threads=False, pre_buffer=False))
        report(f"read lineitem, {codec}, all columns, 1 thread", a, b, "pyarrow", "<= 0.80")
        columns = ["l_orderkey", "l_extendedprice", "l_shipdate"]
        a, b = race(args.rounds, lambda: tarn.read(path, ",".join(columns), keep=True),
                    lambda: pq.read_table(path, columns=columns, use_threads=False, pre_buffer=False))
        report(f"read lineitem, {codec}, 3 columns, 1 thread", a, b, "pyarrow", "<= 0.80")


def bench_flights(args):
    table = flights_table(args)
    table = pa.concat_tables([table] * 4).combine_chunks()
    batches = table.to_batches(max_chunksize=65536)
    ours, theirs = os.path.join(args.data, "flights-ours.parquet"), os.path.join(args.data, "flights-theirs.parquet")
    tarn = Tarn(args.library, 1)
    pa.set_cpu_count(1)
    a, b = race(args.rounds, lambda: tarn.write(ours, batches, table.schema, "zstd", '{"write.parquet.compression-level": "1"}'),
                lambda: pq.write_table(table, theirs, compression="zstd", compression_level=1))
    report("write flights, zstd, 1 thread", a, b, "pyarrow", "<= 0.80")
    a, b = race(args.rounds, lambda: tarn.read(theirs, keep=True), lambda: pq.read_table(theirs, use_threads=False, pre_buffer=False))
    report("read flights, zstd, all columns, 1 thread", a, b, "pyarrow", "<= 0.80")


def fresh(args, name):
    folder = os.path.join(args.data, name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    return folder


def tarn_command(args, folder, *words):
    return subprocess.run([args.tarn, "-c", f"sqlite:{folder}/tarn.db", "--warehouse", f"{folder}/warehouse", *words],
                          check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


PYICEBERG_INGEST = """
import sys, pyarrow.json
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionSpec, PartitionField
from pyiceberg.transforms import MonthTransform, BucketTransform
path, folder = sys.argv[1:]
catalog = SqlCatalog("c", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}/w")
catalog.create_namespace("nyc")
data = pyarrow.json.read_json(path)
table = catalog.create_table("nyc.flights", data.schema)
with table.update_spec() as spec:
    spec.add_field("time_hour", MonthTransform(), "m")
    spec.add_field("carrier", BucketTransform(16), "b")
table.append(data)
"""

DUCKDB_COPY = """
import sys, duckdb
path, folder = sys.argv[1:]
duckdb.sql(f"COPY (SELECT *, month(time_hour::TIMESTAMP) AS m, hash(carrier) % 16 AS b FROM read_json('{path}')) "
           f"TO '{folder}/out' (FORMAT parquet, COMPRESSION zstd, PARTITION_BY (m, b))")
"""


def bench_ndjson(args):
    path = flights_ndjson(args, 3)

    def ours():
        folder = fresh(args, "ndjson-tarn")
        tarn_command(args, folder, "ingest", "nyc.flights", path, "--create", "--partition-by",
                     "month(time_hour), bucket(16, carrier)")

    def pyiceberg():
        subprocess.run([sys.executable, "-c", PYICEBERG_INGEST, path, fresh(args, "ndjson-pyiceberg")], check=True)

    def duckdb():
        subprocess.run([sys.executable, "-c", DUCKDB_COPY, path, fresh(args, "ndjson-duckdb")], check=True)

    a, b, d = race(args.rounds, ours, pyiceberg, duckdb)
    report("NDJSON to partitioned committed table", a, b, "PyIceberg", "<= 0.33")
    report("NDJSON to partitioned committed table", a, d, "DuckDB COPY", "<= 1.00")


def child_peak(command):
    """Wall seconds and peak memory (MiB) of one process, by GNU time: a child of this process would be charged with its memory."""
    done = subprocess.run(["/usr/bin/time", "-f", "%M", *command], capture_output=True, text=True, check=True)
    start = time.perf_counter()
    subprocess.run(command, capture_output=True, check=True)
    return time.perf_counter() - start, int(done.stderr.split()[-1]) / 1024


def shell_loop(command, rounds, runs=20):
    """Milliseconds of one run: the median over rounds of a shell's loop, since starting processes from here costs more than they do."""
    script = 'for i in $(seq %d); do "$@" >/dev/null 2>&1 || exit 1; done' % runs
    return statistics.median(timed(lambda: subprocess.run(["sh", "-c", script, "sh", *command], check=True)) / runs * 1000
                             for _ in range(rounds))


def bench_append(args):
    folder = fresh(args, "append")
    row = os.path.join(folder, "row.ndjson")
    with open(row, "w") as out:
        out.write('{"id": 1, "name": "larch"}\n')
    tarn_command(args, folder, "ingest", "a.t", row, "--create", "--schema", "id long, name string")
    command = [args.tarn, "-c", f"sqlite:{folder}/tarn.db", "ingest", "a.t", row]
    report("one-row append, whole process", shell_loop(command, args.rounds), 20, "goal", "< 20 ms", "ms")
    report("one-row append, peak memory", child_peak(command)[1], 20, "goal", "< 20 MiB", "MiB")
    probe = os.path.join(folder, "probe")
    syncs = []
    for i in range(50):
        with open(probe, "wb") as f:
            f.write(b"x" * 4096)
            start = time.perf_counter()
            os.fsync(f.fileno())
            syncs.append(time.perf_counter() - start)
    print(f"    one fsync here takes {statistics.median(syncs) * 1000:.1f} ms")
    command.insert(1, "--no-sync")
    print(f"    without syncs: {shell_loop(command, args.rounds):.1f} ms")


def bench_memory(args):
    small, large = flights_ndjson(args, 3), flights_ndjson(args, 12)
    for path in (small, large):
        folder = fresh(args, "memory")
        _, peak = child_peak([args.tarn, "-c", f"sqlite:{folder}/tarn.db", "ingest", "nyc.flights", path, "--create", "--partition-by",
                              "month(time_hour), bucket(16, carrier)"])
        report(f"peak memory of ingest, {os.path.getsize(path) >> 20} MiB of NDJSON", peak, 300, "goal", "< 300 MiB", "MiB")


def native(args, program, *words):
    """A C bench; it prints lines of "name value"."""
    out = subprocess.run([os.path.join(args.build, program), *words], check=True, capture_output=True, text=True).stdout
    print("".join("    " + line + "\n" for line in out.splitlines()), end="")
    return out


PYICEBERG_PLAN = """
import sys, time
from pyiceberg.table import StaticTable
table = StaticTable.from_metadata(sys.argv[1])
start = time.perf_counter()
n = sum(1 for _ in table.scan(row_filter="id = 12345").plan_files())
m = sum(1 for _ in table.scan().plan_files())
print(time.perf_counter() - start, n, m)
"""


def bench_plan(args):
    folder = fresh(args, "plan")
    if not os.path.exists(os.path.join(args.build, "bench_files")):
        return
    # a table of 100,000 file entries in 100 manifests; prints seconds of the last appends, of one large append, of planning
    out = native(args, "bench_files", folder, "100000", "100")
    ours = {line.split()[0]: float(line.split()[1]) for line in out.splitlines() if "-" in line.split()[0]}
    metadata = [line.split()[1] for line in out.splitlines() if line.startswith("metadata ")][0] if "metadata " in out else None
    times = [float(subprocess.run([sys.executable, "-c", PYICEBERG_PLAN, metadata], check=True, capture_output=True,
                                  text=True).stdout.split()[0]) for _ in range(3)]
    report("plan 100,000 files, filtered and whole", ours["plan-seconds"], statistics.median(times), "PyIceberg", "<= 0.10")
    report("append 100,000 file entries in one commit", ours["append-seconds"], 1, "goal", "< 1 s")
    report("manifest entries decoded a second, 1 thread", ours["decode-rate"] / 1e6, 1.5, "goal", ">= 1.5 million/s", "M/s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--data", default=os.path.join(ROOT, "build", "bench-data"))
    parser.add_argument("--flights", default=os.path.join(ROOT, "examples", "flights.csv.gz"))
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    args.tarn = os.path.join(args.build, "tarn")
    args.library = os.path.join(args.build, "libtarn.so")
    os.makedirs(args.data, exist_ok=True)
    for name, bench in (("write", bench_write), ("read", bench_read), ("flights", bench_flights), ("ndjson", bench_ndjson), ("append", bench_append),
                        ("plan", bench_plan), ("memory", bench_memory)):
        if not args.names or name in args.names:
            bench(args)
    with open(os.path.join(args.data, "results.json"), "w") as out:
        json.dump(results, out, indent=1)


if __name__ == "__main__":
    main()
