#!/usr/bin/env python3
"""Goal: tables fed by upserts and change streams read the same by others. Method: random streams over few keys go through
`tarn ingest` with a state and small checkpoints, each kind of deletes and several writers; the end state is known, and is held
against our own scan, DuckDB and, where it knows the kind of deletes, PyIceberg. What is followed is printed once.

usage: test_sink.py
"""
import importlib.util
import json
import random
import sys

import harness
from harness import case, same

KEYS = 40


def stream(n, upsert):
    """Lines with an op each, and the rows at the end."""
    state, lines = {}, []
    for i in range(n):
        key = random.randrange(KEYS)
        if key in state and random.random() < 0.25:
            lines.append({"op": "-D", **state.pop(key)})
            continue
        row = {"id": key, "day": i % 5, "v": "v%d" % i}
        if key in state and not upsert:
            lines.append({"op": "-U", **state[key]})
            lines.append({"op": "+U", **row})
        else:
            lines.append({"op": "+I", **row})
        state[key] = row
    return "".join(json.dumps(line) + "\n" for line in lines), list(state.values())


def fed(kind, version, partition_by, upsert, writers):
    with harness.Workshop() as shop:
        shop.tarn("create", "ns.t", "id long not null, day int, v string", "--format-version", version,
                  *(["--partition-by", partition_by] if partition_by else []))
        text, rows = stream(1500, upsert)
        shop.write("in.ndjson", text)
        path = shop.path("in.ndjson")
        shop.tarn("ingest", "ns.t", path, "--op-column", "op", "--key", "id", "--deletes", kind, "--state", shop.path("state"),
                  "--checkpoint-rows", "200", "--writers", writers, *(["--upsert"] if upsert else []))
        same(shop.cat("ns.t").rows, rows)
        if importlib.util.find_spec("duckdb_extension_iceberg"):
            same(shop.duckdb_rows("ns.t"), rows)
        if kind == "position" or kind == "vector":
            same(shop.pyiceberg_rows("ns.t"), rows)
        shop.tarn("ingest", "ns.t", path, "--op-column", "op", "--key", "id", "--deletes", kind, "--state",
                  shop.path("state"), "--writers", writers, *(["--upsert"] if upsert else []))
        same(shop.cat("ns.t").rows, rows)  # nothing is read twice


def equality():
    for version, partition_by in ((2, ""), (2, "bucket(3, id)"), (3, "")):
        fed("equality", version, partition_by, random.random() < 0.5, random.choice((1, 3)))


def position():
    for partition_by in ("", "day"):
        for upsert in (True, False):
            fed("position", 2, partition_by, upsert, random.choice((1, 3)))


def vector():
    for partition_by in ("", "day"):
        for upsert in (True, False):
            fed("vector", 3, partition_by, upsert, random.choice((1, 3)))


CASES = [equality, position, vector]


def main():
    harness.need("pyiceberg", "pyarrow")
    seed = random.randrange(1 << 30)
    random.seed(seed)
    print("seed %d" % seed)
    for test in CASES:
        case(test.__name__, test)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
