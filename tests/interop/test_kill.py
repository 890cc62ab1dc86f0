#!/usr/bin/env python3
"""Goal: `tarn ingest` with a state folder, killed at any call that changes a file or at any time, any number of times, and started
again, ends with every input row in the table exactly once. Method: the command runs under kill_at.c, which counts the calls of a
whole run; other runs are killed at calls spread over all of them (every second one in the middle of a write), at random times, and
some again while they recover. After each the table is read by an engine that is not ours and compared with what the input means.

usage: test_kill.py [CASE ...]    environment: KILL_SHIM (the built kill_at), KILL_RUNS (kills in all, default 40), KILL_SEED
"""
import json
import os
import random
import signal
import subprocess
import sys
import time

import harness
import rows
from harness import Workshop, case, equal

ROWS, STEP = 1200, 150
SCHEMA = "id long not null, n long, s string"
SEED = int(os.environ.get("KILL_SEED", "1"))
RUNS = int(os.environ.get("KILL_RUNS", "40"))


def append_input(chance):
    return [{"id": i, "n": chance.randrange(1000), "s": "row %d" % i} for i in range(ROWS)]


def upsert_input(chance):
    return [{"id": chance.randrange(ROWS // 6), "n": i, "s": "row %d" % i} for i in range(ROWS)]


def change_input(chance):
    """Envelopes in which keys come, change, go, and come again, also within one checkpoint."""
    now, out = {}, []
    for i in range(ROWS):
        key = chance.randrange(ROWS // 8)
        row = {"id": key, "n": i, "s": "row %d" % i}
        if key not in now:
            out.append({"op": "c", "before": None, "after": row})
        elif chance.random() < 0.3:
            out.append({"op": "d", "before": now.pop(key), "after": None})
            continue
        else:
            out.append({"op": "u", "before": now[key], "after": row})
        now[key] = row
    return out


def meaning(kind, events):
    """The rows that the table must end with."""
    if kind == "append":
        return events
    now = {}
    for event in events:
        row = event if kind == "upsert" else event["after"]
        if row is None:
            now.pop(event["before"]["id"])
        else:
            now[row["id"]] = row
    return list(now.values())


INPUTS = {"append": append_input, "upsert": upsert_input, "changes": change_input}


class Job:
    def __init__(self, kind, deletes):
        self.kind, self.deletes = kind, deletes
        self.events = INPUTS[kind](random.Random(SEED))
        self.wanted = meaning(kind, self.events)
        self.sorted = random.Random("%d %s %s" % (SEED, kind, deletes)).random() < 0.5
        self.calls = None

    def options(self):
        out = ["ingest", "ns.t", "in.ndjson", "--create", "--schema", SCHEMA, "--state", "state", "--checkpoint-rows", str(STEP), "-q"]
        if self.sorted:
            out += ["--sort-by", "n desc, id"]
        if self.kind != "append":
            out += ["--key", "id", "--deletes", self.deletes]
            out += ["--property", "format-version=%d" % (3 if self.deletes == "vector" else 2)]
        if self.kind == "upsert":
            out.append("--upsert")
        if self.kind == "changes":
            out += ["--format", "debezium-json"]
        return out

    def run(self, shop, seconds=None, **env):
        """True: it ended by itself, and well."""
        environment = dict(os.environ, LD_PRELOAD=os.environ["KILL_SHIM"],
                           ASAN_OPTIONS="verify_asan_link_order=0:detect_leaks=0", **env)
        process = subprocess.Popen([harness.binary()] + self.options(), cwd=shop.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=environment, text=True)
        try:
            _, err = process.communicate(timeout=seconds or harness.SECONDS)
        except subprocess.TimeoutExpired:
            assert seconds, "it did not end"
            process.kill()
            process.communicate()
            return False
        if process.returncode == -signal.SIGKILL:
            return False
        assert process.returncode == 0, "status %d: %s" % (process.returncode, err)
        return True

    def found(self, shop):
        if self.kind == "append" or self.deletes == "position":
            return shop.pyiceberg_rows("ns.t")
        return shop.duckdb_rows("ns.t")

    def check(self, shop):
        difference = rows.difference(self.found(shop), self.wanted, False)
        assert difference is None, difference
        own = rows.difference(shop.cat("ns.t").rows, self.wanted, False)
        assert own is None, "read by tarn: %s" % own
        pending = [name for name in os.listdir(shop.path("state")) if name.endswith(".tmp")]
        equal(pending, [])


def fresh(job):
    shop = Workshop()
    shop.write("in.ndjson", "".join(json.dumps(event) + "\n" for event in job.events))
    return shop


def count_calls(job):
    with fresh(job) as shop:
        count = shop.path("count")
        start = time.perf_counter()
        assert job.run(shop, KILL_COUNT=count)
        job.seconds = time.perf_counter() - start
        job.check(shop)
        with open(count) as file:
            calls = int(file.read())
        assert calls > 100, "%d calls were counted: nothing stands in for them" % calls
        job.calls = calls


def killed(job, first, again):
    """One history: killed as first says, then perhaps once more while it recovers, then left to end."""
    with fresh(job) as shop:
        done = job.run(shop, **first)
        if not done and again is not None:
            done = job.run(shop, **again)
        if not done:
            assert job.run(shop), "it did not end after the kills"
        assert job.run(shop)  # all is there: once more adds nothing
        job.check(shop)


def histories(job, n, chance):
    """Kills at calls spread over the run, and a third of them at random times."""
    for i in range(n):
        if i % 3 == 2:
            first = {"seconds": chance.uniform(0.01, job.seconds)}
            name = "at %.3f s" % first["seconds"]
        else:
            at = 1 + (i * job.calls) // n + chance.randrange(max(1, job.calls // n))
            first = {"KILL_AT": str(at)}
            if i % 2:
                first["KILL_TORN"] = "1"
            name = "at call %d of %d%s" % (at, job.calls, ", torn" if i % 2 else "")
        again = {"KILL_AT": str(chance.randrange(1, max(2, job.calls // 3)))} if i % 4 == 3 else None
        yield name + (", again at call %s" % again["KILL_AT"] if again else ""), first, again


def main():
    harness.need("pyarrow", "pyiceberg", "duckdb", "duckdb_extension_iceberg")
    jobs = [("append", "none"), ("upsert", "equality"), ("upsert", "position"), ("upsert", "vector"), ("changes", "equality"),
            ("changes", "position"), ("changes", "vector")]
    chosen = [j for j in jobs if len(sys.argv) == 1 or "-".join(j) in sys.argv[1:]]
    chance = random.Random(SEED)
    for kind, deletes in chosen:
        job = Job(kind, deletes)
        case("%s %s unharmed" % (kind, deletes), count_calls, job)
        if job.calls is None:
            continue
        for name, first, again in histories(job, -(-RUNS // len(chosen)), chance):
            case("%s %s killed %s" % (kind, deletes, name), killed, job, first, again)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
