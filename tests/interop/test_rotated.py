#!/usr/bin/env python3
"""Goal: each row of a followed log is in the table once, however its file is rotated, packed, copied and cut, and whenever the command is
killed; what is missing is refused, or told where that is accepted.
Method: rows are written and the log is rotated as logrotate does it, several times between two looks, while `tarn ingest --follow` is
killed, stopped and started again, by a seed that is printed.

usage: test_rotated.py [CASE ...]    environment: ROTATED_SEED (default 1), ROTATED_ROUNDS (of each kind of rotation, default 7)"""
import atexit
import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import harness
from harness import Workshop, equal

SEED = int(os.environ.get("ROTATED_SEED", "1"))
ROUNDS = int(os.environ.get("ROTATED_ROUNDS", "7"))
COMMAND = ["ingest", "ns.t", "app.log", "--format", "ndjson", "--follow", "--state", "st", "--checkpoint-interval", "50ms"]


class Log:
    """Whoever writes app.log, with it open, and what rotates it."""

    def __init__(self, shop, kind):
        self.shop, self.kind, self.n, self.dates = shop, kind, 0, 0
        self.file = open(shop.path("app.log"), "a")

    def write(self, rows):
        self.file.write("".join('{"id":%d}\n' % i for i in range(self.n, self.n + rows)))
        self.file.flush()
        self.n += rows

    def move_up(self):
        """Numbers of those before grow by one, of packed ones too."""
        path = self.shop.path
        n = 1
        while any(os.path.exists(path("app.log.%d%s" % (n, end))) for end in ("", ".gz")):
            n += 1
        for i in range(n - 1, 0, -1):
            for end in ("", ".gz"):
                if os.path.exists(path("app.log.%d%s" % (i, end))):
                    os.rename(path("app.log.%d%s" % (i, end)), path("app.log.%d%s" % (i + 1, end)))

    def pack(self, name):
        """As gzip: the old one goes when the new one is whole, which keeps its time."""
        path = self.shop.path(name)
        if os.path.exists(path):
            with open(path, "rb") as old, gzip.open(path + ".gz", "wb") as new:
                shutil.copyfileobj(old, new)
            shutil.copystat(path, path + ".gz")
            os.unlink(path)

    def rotate(self, late):
        path = self.shop.path
        if self.kind == "dates":
            self.dates += 1
            os.rename(path("app.log"), path("app.log-202611%02d-%06d" % (1 + self.dates // 3, self.dates)))
        else:
            self.move_up()
        if self.kind == "copies":
            shutil.copyfile(path("app.log"), path("app.log.1"))
            os.truncate(path("app.log"), 0)
            return
        if self.kind != "dates":
            os.rename(path("app.log"), path("app.log.1"))
        open(path("app.log"), "w").close()
        self.write(late)  # to the one that was renamed
        self.file.close()
        self.file = open(path("app.log"), "a")
        if self.kind == "packed":
            self.pack("app.log.2")


def start(shop, *more):
    process = subprocess.Popen([harness.binary()] + COMMAND + list(more), cwd=shop.folder, stderr=subprocess.PIPE, text=True)
    atexit.register(process.kill)  # those of failed cases
    return process


def ids(shop):
    return sorted(r["id"] for r in shop.cat("ns.t").rows)


def wait_for(what, process):
    def done():
        there = what()
        assert there or process.poll() is None, process.communicate()[1][-2000:]
        return there
    harness.wait_for(done)


def end(process, how=signal.SIGINT):
    process.send_signal(how)
    said = process.communicate(timeout=harness.SECONDS)[1]
    ways = (0, -how) if how == signal.SIGINT else (-how,)  # it may not have begun
    assert process.returncode in ways, (process.returncode, said[-2000:])
    return said


def each_row_once(kind):
    rng = random.Random("%d %s" % (SEED, kind))
    with Workshop() as shop:
        shop.tarn("create", "ns.t", "id long")
        log = Log(shop, kind)
        log.write(3)
        process = start(shop)
        for _ in range(ROUNDS):
            wait_for(lambda: len(ids(shop)) > 0, process)
            how = rng.choice(["go on", "kill", "kill", "stop", "halt"])
            if how == "stop":
                end(process)
            if how == "halt":
                process.send_signal(signal.SIGSTOP)  # so that its looks are far apart
            for _ in range(rng.randrange(4)):
                log.write(rng.randrange(1, 5))
                log.rotate(rng.randrange(3))
                time.sleep(rng.choice([0, 0.005, 0.05]))
            log.write(rng.randrange(1, 5))
            if how == "kill":
                end(process, signal.SIGKILL)
                log.write(1)
                log.rotate(1)
                log.write(1)
            process.send_signal(signal.SIGCONT)
            if process.poll() is not None:
                process = start(shop)
        log.write(2)
        wait_for(lambda: len(ids(shop)) >= log.n, process)
        end(process)
        equal(ids(shop), list(range(log.n)))


def numbers():
    each_row_once("numbers")


def dates():
    each_row_once("dates")


def packed():
    each_row_once("packed")


def copies():
    each_row_once("copies")


def gaps():
    """A file that is missing is named, with what to do; accepted, it is told, and the rest is read."""
    with Workshop() as shop:
        shop.tarn("create", "ns.t", "id long")
        log = Log(shop, "numbers")
        log.write(2)
        process = start(shop)
        wait_for(lambda: len(ids(shop)) == 2, process)
        end(process)
        for _ in range(3):
            log.write(1)
            time.sleep(0.02)  # file systems tell times by ticks
            log.rotate(0)
        log.write(1)
        os.unlink(shop.path("app.log.2"))
        harness.must_refuse(shop.tarn(*COMMAND, check=False), "app.log.3", "number 2", "rows may be lost", "--accept-gap")
        equal(ids(shop), [0, 1])
        process = start(shop, "--accept-gap", "--log", "json")
        wait_for(lambda: len(ids(shop)) >= 5, process)
        said = [json.loads(line) for line in end(process).splitlines()]
        equal(ids(shop), [0, 1, 2, 4, 5])
        equal(len([1 for event in said if event["event"] == "warning" and "number 2" in event["message"]]), 1)
        harness.must_refuse(shop.tarn("ingest", "ns.t", "app.log", "--format", "ndjson", "--accept-gap", check=False), "--follow")


CASES = [numbers, dates, packed, copies, gaps]

if __name__ == "__main__":
    print("ROTATED_SEED=%d" % SEED)
    sys.exit(harness.run_cases(CASES))
