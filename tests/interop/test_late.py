#!/usr/bin/env python3
"""Goal: what arrives late, twice, or from a process that is believed dead changes no table wrongly: no row is lost or there twice, no
table that was dropped comes back, no file goes that is a table's. Method: processes are stopped (SIGSTOP) right before a call that
changes a name (kill_at.c), and requests are held on their way to `tarn serve`, while others do what makes them late; then they go on.

usage: test_late.py [CASE ...]    environment: KILL_SHIM (the built kill_at)
"""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys

import harness
from harness import Workshop, equal, must_refuse, wait_for


def ids(shop, *before, table="ns.t"):
    return sorted(row["id"] for row in shop.tarn(*before, "cat", table, "--format", "ndjson").rows)


def put(shop, name, *numbers):
    return shop.write(name, "".join('{"id": %d}\n' % n for n in numbers))


def whole(shop, *before, table="ns.t"):
    """All files that the table names are there, and agree with it."""
    shop.tarn(*before, "check", table, "--deep")


class Late:
    """A command that has stopped right before a call (later: that will), and goes on when it is woken."""

    def __init__(self, shop, at, *arguments, stdin=subprocess.DEVNULL, later=None):
        more = {"LD_PRELOAD": os.environ["KILL_SHIM"], "STOP_AT": at or later, "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0"}
        self.process = subprocess.Popen([harness.binary(), *arguments], cwd=shop.folder, stdin=stdin, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=dict(os.environ, **(more if at or later else {})))
        if at:
            self.wait_stopped()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()

    def is_stopped(self):
        assert self.process.poll() is None, "it ended: %s" % (self.process.communicate(),)
        with open("/proc/%d/stat" % self.process.pid) as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "T"

    def wait_stopped(self):
        wait_for(self.is_stopped)

    def wake(self, said=None):
        """What it said as it ended."""
        self.process.send_signal(signal.SIGCONT)
        out, err = self.process.communicate(said, timeout=harness.SECONDS)
        return harness.Answer(self.process.args[1:], subprocess.CompletedProcess([], self.process.returncode, out, err))


class Kept(harness.Relay):
    """A proxy that keeps the requests that begin with these words, whose bodies are not longer than a piece."""

    def __init__(self, to, words):
        self.words, self.kept = words, []
        super().__init__(to)

    def passes(self, data, state, is_client):
        if is_client and (data.startswith(self.words) or state.get("kept")):
            whole = data.startswith(self.words)
            self.kept = self.kept + [data] if whole else self.kept[:-1] + [self.kept[-1] + data]
            state["kept"] = True
        return True

    def again(self):
        """The status that the last one is answered with when it comes once more."""
        with socket.create_connection(("127.0.0.1", self.to)) as server:
            server.sendall(self.kept[-1])
            return int(server.makefile("rb").readline().split()[1])


def others_in_a_new_table():
    """A job that made the table fails; what another put into it meanwhile stays."""
    with Workshop() as shop:
        put(shop, "b.ndjson", 1, 2)
        with Late(shop, None, "ingest", "ns.t", "-", "--format", "ndjson", "--create", "--schema", "id long", stdin=subprocess.PIPE) as first:
            wait_for(lambda: shop.tarn("describe", "ns.t", check=False).status == 0)
            shop.tarn("ingest", "ns.t", "b.ndjson")
            must_refuse(first.wake('{"id": "x"}\n'))
        equal(ids(shop), [1, 2])
        whole(shop)


def taken_over_before_its_first_commit():
    """A job that made the table is stopped in its first commit, another goes on with its state; woken, it takes nothing back."""
    for kind, options in (("append", []), ("upsert", ["--upsert", "--key", "id", "--deletes", "equality"])):
        with Workshop() as shop:
            put(shop, "in.ndjson", *range(10))
            command = ["ingest", "ns.t", "in.ndjson", "--create", "--schema", "id long not null", "--state", "st", *options]
            with Late(shop, "rename checkpoint-", *command) as first:
                shop.tarn(*command)
                must_refuse(first.wake(), "taken over")
            equal(ids(shop), list(range(10)))
            whole(shop)
            put(shop, "in.ndjson", *range(15))
            shop.tarn(*command)
            equal(ids(shop), list(range(15)))


def commit_after_a_drop():
    """dir: a commit that was on its way while its table was dropped does not bring it back, nor into one that was made anew."""
    for again in (False, True):
        with Workshop() as shop:
            at = ("-c", "dir:wh")
            put(shop, "a.ndjson", 1)
            put(shop, "b.ndjson", 2)
            shop.tarn(*at, "create", "ns.t", "id long")
            shop.tarn(*at, "ingest", "ns.t", "a.ndjson")
            with Late(shop, "link v3.metadata.json", *at, "ingest", "ns.t", "a.ndjson") as first:
                shop.tarn(*at, "drop", "ns.t")
                if again:
                    shop.tarn(*at, "create", "ns.t", "id long")
                    shop.tarn(*at, "ingest", "ns.t", "b.ndjson")
                first.wake()
            if again:
                shop.tarn(*at, "ingest", "ns.t", "b.ndjson")
                equal(ids(shop, *at), [2, 2])
                whole(shop, *at)
            else:
                must_refuse(shop.tarn(*at, "cat", "ns.t", check=False), "ns.t")


def purge_after_a_table_was_made_anew():
    """dir: what a purge that was stopped removes is the old table's, not that of the new one with its place and names."""
    with Workshop() as shop:
        at = ("-c", "dir:wh")
        put(shop, "a.ndjson", 1)
        shop.tarn(*at, "create", "ns.t", "id long")
        shop.tarn(*at, "ingest", "ns.t", "a.ndjson")
        with Late(shop, "unlink .parquet", *at, "drop", "ns.t", "--purge") as first:
            shop.tarn(*at, "create", "ns.t", "id long")
            shop.tarn(*at, "ingest", "ns.t", "a.ndjson")
            first.wake()
        equal(ids(shop, *at), [1])
        whole(shop, *at)


def late_drop():
    """A drop (with purge) that was held on its way meets a table that was made anew, or files that another name has by now."""
    for move in (False, True):
        with Workshop() as shop, harness.Service(shop) as service:
            put(shop, "a.ndjson", 1)
            shop.tarn("create", "ns.t", "id long")
            shop.tarn("ingest", "ns.t", "a.ndjson")
            held = harness.Held(service.port, b"DELETE ")
            with Late(shop, None, "-c", "http://127.0.0.1:%d" % held.port, "drop", "ns.t", "--purge") as first:
                assert held.waits.wait(harness.SECONDS)
                shop.tarn(*(["rename", "ns.t", "ns.u"] if move else ["drop", "ns.t"]))
                shop.tarn("create", "ns.t", "id long")
                shop.tarn("ingest", "ns.t", "a.ndjson")
                held.go.set()
                must_refuse(first.wake(), "made anew")
            held.close()
            equal(ids(shop), [1])
            whole(shop)
            if move:
                equal(ids(shop, table="ns.u"), [1])
                whole(shop, table="ns.u")


def several_checkpoints_of_a_job_that_slept():
    """A job is stopped as its checkpoints, several at once, get their names; another takes its state over and commits others of these
    numbers; then the first goes on. What it leaves in the state is not taken for the stream by a third."""
    assert any(a_job_that_slept() for _ in range(60)), "its first commit never came before its second checkpoint"


def a_job_that_slept():
    """False: its second checkpoint got its name before its first commit was sent and all was written, as may be on a busy machine."""
    with Workshop() as shop, harness.Service(shop) as service:
        put(shop, "in.ndjson", *range(10))
        shop.tarn("create", "ns.t", "id long")
        held = harness.Held(service.port, b"write-results")
        command = ["ingest", "ns.t", "in.ndjson", "--state", "st", "--checkpoint-rows"]
        with Late(shop, None, "-c", "http://127.0.0.1:%d" % held.port, *command, "1", later="rename checkpoint-000000000002") as first:
            ready = lambda: held.waits.is_set() and len(os.listdir(shop.path("warehouse", "ns", "t", "data"))) >= 10
            wait_for(lambda: ready() or first.is_stopped())
            held.go.set()
            if not ready():
                held.close()
                return False
            first.wait_stopped()
            shop.tarn("-c", service.url, *command, "4")
            must_refuse(first.wake(), "taken over")
        held.close()
        equal(ids(shop), list(range(10)))
        left = [name for name in os.listdir(shop.path("st")) if name.startswith("checkpoint-")]
        assert len(left) > 4, left
        put(shop, "in.ndjson", *range(12))
        shop.tarn(*command, "4")
        equal(ids(shop), list(range(12)))
        equal([name for name in os.listdir(shop.path("st")) if name.startswith("checkpoint-")], [])
        whole(shop)
        return True


def late_create():
    """The request that made a table arrives once more, when the table was dropped."""
    with Workshop() as shop, harness.Service(shop) as service:
        kept = Kept(service.port, b"POST /v1/namespaces/ns/tables ")
        shop.tarn("-c", "http://127.0.0.1:%d" % kept.port, "create", "ns.t", "id long")
        shop.tarn("-c", service.url, "drop", "ns.t")
        equal(kept.again(), 200)
        kept.close()
        equal(shop.tarn("ls").out.split(), [])


KINDS = (("append", []), ("equality", ["--upsert", "--key", "id", "--deletes", "equality"]),
         ("position", ["--upsert", "--key", "id", "--deletes", "position"]), ("vector", ["--upsert", "--key", "id", "--deletes", "vector"]),
         ("replace", ["--mode", "replace-partitions"]))


def taken_over(shop, at, kind, options, word):
    """A job with a state is stopped on its way to its second commit; the same command goes on with the state, and then it wakes."""
    shop.tarn(*at, "create", "ns.t", "id long not null, n long", *(["--format-version", "3"] if kind == "vector" else []))
    command = [*at, "ingest", "ns.t", "in.ndjson", "--state", "st", "--rejects", "bad.ndjson", *options]
    before = ['{"id": %d, "n": 1}\n' % i for i in range(6)] + ['{"id": "x"}\n']
    shop.write("in.ndjson", "".join(before))
    shop.tarn(*command)
    shutil.copytree(shop.path("st"), shop.path("copy"))
    shop.write("in.ndjson", "".join(before + ['{"id": %d, "n": 2}\n' % i for i in range(4, 9)] + ['{"id": "y"}\n']))
    with Late(shop, word, *command) as first:
        if kind in ("position", "vector"):  # the index of keys is one process's
            must_refuse(shop.tarn(*command, check=False))
            first.wake()
            shop.tarn(*command)
        else:
            shop.tarn(*command)
            answer = first.wake()
            assert answer.status in (0, 11), answer  # it found its commit done, or that it was taken over
    must_refuse(shop.tarn(*[shop.path("copy") if option == "st" else option for option in command], check=False))


def frozen_in_a_commit():
    """By each kind of delta, before the swap and before the state has it: rows are there once, bad rows are set aside once."""
    for at, word in (("dir:wh", "link v3.metadata.json"), ("sqlite:tarn.db", "link 00002-"), ("sqlite:tarn.db", "rename checkpoint-000000000002")):
        for kind, options in KINDS:
            with Workshop() as shop:
                taken_over(shop, ("-c", at), kind, options, word)
                old, new = [[i, 1] for i in range(6)], [[i, 2] for i in range(4, 9)]
                want = new if kind == "replace" else old + new if kind == "append" else old[:4] + new
                equal(sorted([row["id"], row["n"]] for row in shop.tarn("-c", at, "cat", "ns.t", "--format", "ndjson").rows), sorted(want))
                whole(shop, "-c", at)
                with open(shop.path("bad.ndjson")) as file:
                    equal([json.loads(line)["row"] for line in file], ['{"id": "x"}', '{"id": "y"}'])


def rows_for_a_table_that_was_made_anew():
    """A merge into an empty table is stopped in its commit, and the table is made anew with its columns in another order: what was
    written for the old one is not taken by the new one."""
    with Workshop() as shop:
        shop.write("in.ndjson", '{"id": 1, "n": 2}\n')
        shop.tarn("create", "ns.t", "id long not null, n long")
        with Late(shop, "link 00001-", "merge", "ns.t", "in.ndjson", "--key", "id") as first:
            shop.tarn("drop", "ns.t")
            shop.tarn("create", "ns.t", "n long, id long not null")
            first.wake()
        assert shop.cat("ns.t").rows in ([], [{"n": 2, "id": 1}]), shop.cat("ns.t").rows
        whole(shop)


def rejects_of_a_job_that_was_taken_over():
    """A job that was taken over sets a bad row aside before it learns of that: the newer job's bad rows stay as they are."""
    with Workshop() as shop:
        shop.tarn("create", "ns.t", "id long")
        command = ["ingest", "ns.t", "-", "--format", "ndjson", "--state", "st", "--rejects", "bad.ndjson"]
        with Late(shop, None, *command, stdin=subprocess.PIPE) as first:
            wait_for(lambda: os.path.exists(shop.path("st", "rejects")) and os.path.exists(shop.path("st", "epoch-00000001")))
            shop.tarn(*command, stdin='{"id": 1}\n{"id": "the newer job has this row set aside"}\n')
            must_refuse(first.wake('{"id": "x"}\n{"id": 2}\n'), "taken over")
        equal(ids(shop), [1])
        with open(shop.path("bad.ndjson")) as file:
            equal([json.loads(line)["row"] for line in file], ['{"id": "the newer job has this row set aside"}'])
        equal(sorted(name for name in os.listdir(shop.folder) if name.startswith("bad")), ["bad.ndjson"])


CASES = [rejects_of_a_job_that_was_taken_over, late_create, rows_for_a_table_that_was_made_anew, frozen_in_a_commit, several_checkpoints_of_a_job_that_slept, others_in_a_new_table, taken_over_before_its_first_commit, commit_after_a_drop, purge_after_a_table_was_made_anew, late_drop]

if __name__ == "__main__":
    sys.exit(harness.run_cases(CASES))
