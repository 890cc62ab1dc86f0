#!/usr/bin/env python3
"""Goal: after a power cut at any moment, in which everything that was not synced may be lost, kept, or kept in part, nothing is wrong:
`tarn ingest` with a state folder goes on and ends with every input row once; what a command or a stream said was committed is there;
a command that was cut off did its whole change or none of it. Method: the command runs under kill_at.c with POWER_ROOT
(power_cut.h says what may be lost), cut at calls spread over a whole run, or right after it said that it was done. Most streams have a
disk whose syncs take long, so that several checkpoints become durable together; half of those are cut where a checkpoint gets or loses
its name. Tables are then read by the command and by an engine that is not ours.

usage: test_power_cut.py [CASE ...]    environment: KILL_SHIM (the built kill_at), POWER_RUNS (cuts of streams, default 30), POWER_SEED
"""
import glob
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys

import harness
import rows
import test_kill
from harness import Workshop, case, equal

SEED = int(os.environ.get("POWER_SEED", "1"))
RUNS = int(os.environ.get("POWER_RUNS", "30"))
PLACES = {"": {}, "slow syncs, ": {"SYNC_MS": "10"},
          "slow syncs, names of checkpoints, ": {"SYNC_MS": "10", "KILL_NAMED": "/checkpoint-", "POWER_NAMES": "1"}}


class Cut(Exception):
    pass


def under_power(shop, arguments, seed, **env):
    """The command's answer; Cut: the power went before it ended."""
    lost = shop.folder + ".lost"
    shutil.rmtree(lost, ignore_errors=True)
    os.mkdir(lost)
    environment = dict(os.environ, LD_PRELOAD=os.environ["KILL_SHIM"], ASAN_OPTIONS="verify_asan_link_order=0:detect_leaks=0",
                       POWER_ROOT=shop.folder, POWER_LOST=lost, POWER_SEED=str(seed), **env)
    try:
        done = subprocess.run([harness.binary()] + arguments, cwd=shop.folder, capture_output=True, text=True, env=environment,
                              timeout=harness.SECONDS)
    finally:
        shutil.rmtree(lost, ignore_errors=True)
    answer = harness.Answer(arguments, done)
    if done.returncode == -signal.SIGKILL:
        raise Cut(answer)
    assert done.returncode == 0, str(answer)
    return answer


# ---- streams ----

class Job(test_kill.Job):
    def __init__(self, kind, deletes, catalog=None, *more):
        super().__init__(kind, deletes)
        self.catalog, self.more = catalog, list(more)
        self.name = " ".join([kind, deletes] + ([catalog] if catalog else []) + self.more)
        self.counted = {}

    def base(self):
        return ["-c", self.catalog] if self.catalog else []

    def options(self):
        return [o for o in super().options() if o != "-q"] + ["--log", "json"] + self.base() + self.more

    def check(self, shop):
        if self.catalog is None:
            super().check(shop)
            return
        named = glob.glob(shop.path("warehouse", "ns", "t", "metadata", "v*.metadata.json"))
        newest = max(named, key=lambda path: int(os.path.basename(path)[1:].split(".")[0]))
        for found in (harness.duckdb_rows(newest), shop.cat("ns.t", *self.base()).rows):
            difference = rows.difference(found, self.wanted, False)
            assert difference is None, difference

    def count(self):
        """How many calls it has of each of PLACES."""
        for name, place in PLACES.items():
            with test_kill.fresh(self) as shop:
                under_power(shop, self.options(), 0, KILL_COUNT=shop.path("count"), **place)
                self.check(shop)
                with open(shop.path("count")) as file:
                    calls = int(file.read())
                assert calls > (10 if "KILL_NAMED" in place else 100), "%d calls were counted: nothing stands in for them" % calls
                self.counted[name] = calls


def promises(answer):
    """Snapshots that the stream said were committed."""
    events = [json.loads(line) for line in answer.err.splitlines() if line.startswith("{")]
    return [e["snapshot-id"] for e in events if e.get("snapshot-id") is not None]


def cut_stream(job, at, again, seed, place):
    promised = []
    with test_kill.fresh(job) as shop:
        for n, k in enumerate([at, again]):
            if k is None:
                continue
            try:
                promised += promises(under_power(shop, job.options(), seed + n, KILL_AT=str(k), **place))
            except Cut as cut:
                promised += promises(cut.args[0])
            if promised:
                there = [r["snapshot-id"] for r in rows.parse(shop.tarn("log", "ns.t", "--json", *job.base()).out)]
                equal([p for p in promised if p not in there], [])
        shop.tarn(*job.options())
        shop.tarn(*job.options())  # all is there: once more adds nothing
        job.check(shop)
        shop.tarn("check", "ns.t", *job.base())


def streams():
    jobs = [Job(kind, deletes) for kind, deletes in (("append", "none"), ("upsert", "equality"), ("upsert", "vector"), ("changes", "equality"),
                                                     ("changes", "position"))]
    jobs += [Job("append", "none", "dir:./warehouse", "--writers", "3"), Job("changes", "vector", "dir:./warehouse")]
    chance = random.Random(SEED)
    for job in jobs:
        case(job.name + " unharmed", job.count)
    for i in range(RUNS):
        job = jobs[i % len(jobs)]
        turn, turns = i // len(jobs), -(-RUNS // len(jobs))
        name = list(PLACES)[(i + turn) % len(PLACES)]
        if name not in job.counted:
            continue
        calls = job.counted[name]
        at = 1 + (turn * calls) // turns + chance.randrange(max(1, calls // turns))
        again = chance.randrange(1, max(2, calls // 3)) if i % 4 == 3 else None
        seed = SEED * 100003 + i * 7
        case("%s %scut at call %d of %d%s, seed %d" % (job.name, name, at, calls, ", again at %s" % again if again else "", seed),
             cut_stream, job, at, again, seed, PLACES[name])


def bad_rows_set_aside(at, calls, seed):
    """Each bad row is in the rejects file once, whatever the cut took of it."""
    with Workshop() as shop:
        shop.write("in.ndjson", "".join('{"id":%s}\n' % (i if i % 5 else '"x%d"' % i) for i in range(600)))
        options = ["ingest", "ns.t", "in.ndjson", "--create", "--schema", "id long not null", "--state", "state", "--checkpoint-rows", "60", "--rejects",
                   "bad.ndjson", "-q"]
        if calls is None:
            under_power(shop, options, 0, KILL_COUNT=shop.path("count"))
            with open(shop.path("count")) as file:
                return int(file.read())
        try:
            under_power(shop, options, seed, KILL_AT=str(at), POWER_STDIO=os.path.realpath(shop.path("bad.ndjson")))
        except Cut:
            pass
        shop.tarn(*options)
        with open(shop.path("bad.ndjson")) as file:
            equal([json.loads(line)["line"] for line in file], list(range(1, 601, 5)))
        equal(sorted(r["id"] for r in shop.cat("ns.t").rows), [i for i in range(600) if i % 5])
    return None


def rejects():
    calls = bad_rows_set_aside(0, None, 0)
    n = max(4, RUNS // 6)
    for i in range(n):
        at = calls * (i + 1) // (n + 1)
        case("bad rows set aside, cut at call %d of %d" % (at, calls), bad_rows_set_aside, at, calls, SEED * 71 + i)


# ---- commands ----

def steps(catalog):
    """Commands, each with what must be so when it was done, and what was so before."""
    base = ["-c", catalog]
    table = lambda shop: sorted((r["id"], r["v"]) for r in shop.cat("ns.t", *base).rows)
    names = lambda shop: sorted(r["name"] for r in rows.parse(shop.tarn("ls", "ns", *base, "--json").out))
    columns = lambda shop: [f["name"] for f in json.loads(shop.tarn("describe", "ns.t", *base, "--json").out)["schemas"][-1]["fields"]]
    three = [(1, "a"), (2, "b"), (3, "c")]
    return [
        (["create", "ns.t", "id long not null, v string", "--identifier", "id", *base], table, []),
        (["ingest", "ns.t", "rows.ndjson", *base], table, three),
        (["ingest", "ns.t", "more.ndjson", *base, "--checkpoint-rows", "1"], table, three + [(4, "d"), (5, "e")]),
        (["delete", "ns.t", "--where", "id = 5", *base], table, three + [(4, "d")]),
        (["update", "ns.t", "--set", "v = 'z'", "--where", "id = 4", *base], table, three + [(4, "z")]),
        (["merge", "ns.t", "merge.ndjson", "--key", "id", *base], table, three + [(4, "y"), (6, "f")]),
        (["alter", "ns.t", "add-column", "w", "int", *base], columns, ["id", "v", "w"]),
        (["create", "ns.u", "id long", *base], names, ["ns.t", "ns.u"]),
        (["drop", "ns.u", *base], names, ["ns.t"]),
    ]


def prepare(shop):
    shop.write("rows.ndjson", "".join('{"id":%d,"v":"%s"}\n' % (i + 1, v) for i, v in enumerate("abc")))
    shop.write("more.ndjson", '{"id":4,"v":"d"}\n{"id":5,"v":"e"}\n')
    shop.write("merge.ndjson", '{"id":4,"v":"y"}\n{"id":6,"v":"f"}\n')


def look(state, shop):
    try:
        return state(shop)
    except AssertionError as error:  # there is no catalog or table yet
        if not any(words in str(error) for words in ("did not exist", "no catalog", "had no metadata")):
            raise
        return None


def sound(shop, catalog):
    if catalog.startswith("sqlite:") and os.path.exists(shop.path("tarn.db")):
        with sqlite3.connect(shop.path("tarn.db")) as database:
            equal(database.execute("pragma integrity_check").fetchall(), [("ok",)])


def done_is_done(catalog, seed):
    """The power goes right after each command said that it was done."""
    with Workshop() as shop:
        prepare(shop)
        for n, (arguments, state, want) in enumerate(steps(catalog)):
            under_power(shop, arguments, seed + n, POWER_AT_EXIT="1")
            sound(shop, catalog)
            equal((arguments[:2], state(shop)), (arguments[:2], want))
        if catalog.startswith("sqlite:"):
            equal(sorted(r["id"] for r in shop.pyiceberg_rows("ns.t")), [1, 2, 3, 4, 6])


def all_or_nothing(catalog, chance, seed):
    """The power goes somewhere in each command, which is then given again where its change is not there."""
    with Workshop() as shop:
        prepare(shop)
        for n, (arguments, state, want) in enumerate(steps(catalog)):
            before = look(state, shop)
            with Workshop() as other:  # how many calls it has, on a copy
                shutil.rmtree(other.folder)
                shutil.copytree(shop.folder, other.folder, symlinks=True)
                shutil.move(shop.folder, shop.folder + ".kept")
                shutil.move(other.folder, shop.folder)
                under_power(shop, arguments, 0, KILL_COUNT=shop.path("count"))
                with open(shop.path("count")) as file:
                    calls = int(file.read())
                shutil.rmtree(shop.folder)
                shutil.move(shop.folder + ".kept", shop.folder)
            try:
                under_power(shop, arguments, seed + n, KILL_AT=str(chance.randrange(1, calls + 1)))
                after = state(shop)
                equal((arguments[:2], after), (arguments[:2], want))
            except Cut:
                after = look(state, shop)
                possible = [before, want] + [sorted((before or []) + [r]) for r in ((4, "d"), (5, "e")) if "more.ndjson" in arguments]
                assert after in possible, "%s: %r, before %r, wanted %r" % (arguments[:2], after, before, want)
            sound(shop, catalog)
            if after != want and after == before:
                shop.tarn(*arguments)
            elif after != want:  # the first of two commits
                shop.write("rest.ndjson", "".join('{"id":%d,"v":"%s"}\n' % r for r in want if r not in after))
                shop.tarn("ingest", "ns.t", "rest.ndjson", "-c", catalog)
            equal((arguments[:2], state(shop)), (arguments[:2], want))
        shop.tarn("check", "ns.t", "-c", catalog)


def commands():
    chance = random.Random(SEED)
    for i in range(max(2, RUNS // 10)):
        catalog = ("sqlite:./tarn.db", "dir:./warehouse")[i % 2]
        seed = SEED * 1009 + i * 31
        case("%s done, seed %d" % (catalog, seed), done_is_done, catalog, seed)
        case("%s cut, seed %d" % (catalog, seed), all_or_nothing, catalog, chance, seed)


CASES = [streams, rejects, commands]


def main():
    harness.need("pyarrow", "pyiceberg", "duckdb", "duckdb_extension_iceberg")
    for fn in harness.chosen(CASES):
        fn()
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
