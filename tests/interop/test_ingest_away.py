#!/usr/bin/env python3
"""Goal: a stream waits for its catalog: when the service or the database goes away and comes back, `tarn ingest` says so once, goes on,
and every row is there once, whatever became of the commits that were on their way.
Method: `tarn serve` is killed and started again under streams that add, change by equality deletes and change by position deletes; a
proxy takes the answers of commits and goes away with them; PostgreSQL is crashed. PyIceberg or DuckDB reads the rows.

usage: test_ingest_away.py [CASE ...]"""
import glob
import json
import os
import signal
import subprocess
import sys
import time

import harness
from harness import Workshop, equal, must_refuse, wait_for

sys.path.insert(0, os.path.join(harness.ROOT, "tests", "support"))
harness.need("pyiceberg", "pyarrow", "duckdb")
import postgres  # noqa: E402

CONFLICT, IO = 4, 7


class Stream:
    """`tarn ingest` with its words in a file."""

    def __init__(self, shop, catalog, *arguments, **more):
        self.shop, self.words = shop, shop.path("words")
        self.process = subprocess.Popen([harness.binary(), "-c", catalog, *more.pop("before", ()), "ingest", *arguments], cwd=shop.folder,
                                        stderr=open(self.words, "ab"), **more)

    @property
    def said(self):
        with open(self.words, encoding="utf-8") as file:
            return file.read()

    def hears(self, words, times=1):
        def heard():
            assert self.process.poll() is None or self.said.count(words) >= times, "it ended: %s" % self.said
            return self.said.count(words) >= times
        wait_for(heard, lambda: self.said)

    def stop(self, status=0, sign=signal.SIGINT):
        if self.process.poll() is None:
            self.process.send_signal(sign)
        self.process.wait(timeout=harness.SECONDS)
        assert "Sanitizer" not in self.said and "assertion failed" not in self.said, self.said
        assert self.process.returncode == status, "it ended with %d: %s" % (self.process.returncode, self.said)


def put(shop, name, rows):
    with open(shop.path(name), "a", encoding="utf-8") as file:
        file.write("".join(json.dumps(row) + "\n" for row in rows))


def snapshots(shop, name="ns.t"):
    with open(shop.metadata(name), encoding="utf-8") as file:
        return json.load(file)["snapshots"] or []


def count(shop, name="ns.t"):
    return int(shop.tarn("cat", name, "--count").out)


FOLLOW = ["ns.t", "in.ndjson", "--follow", "--state", "st", "--checkpoint-interval", "100ms"]
KINDS = (("append", []), ("equality", ["--upsert", "--key", "id", "--deletes", "equality"]),
         ("position", ["--upsert", "--key", "id", "--deletes", "position"]))


def a_service_that_is_killed():
    """Killed at any moment, away long enough to be told of, and started again: rows are there once, by three kinds of deltas."""
    for kind, options in KINDS:
        with Workshop() as shop, harness.Service(shop) as service:
            shop.tarn("create", "ns.t", "id long not null, n long")
            put(shop, "in.ndjson", [{"id": i, "n": 0} for i in range(20)])
            stream = Stream(shop, service.url, *FOLLOW, *options)
            wait_for(lambda: count(shop) == 20, lambda: stream.said)
            for turn in range(1, 3):
                rows = [{"id": i, "n": turn} for i in range(20 * turn - 10, 20 * turn + 20)]
                rows = rows[10:] if kind == "append" else rows  # else ten are changed
                put(shop, "in.ndjson", rows[:5])
                time.sleep(0.07 * turn)  # a moment in the life of a checkpoint; any will do
                service.kill()
                put(shop, "in.ndjson", rows[5:])
                stream.hears("is away", turn)
                service.start()
                stream.hears("is back", turn)
                wait_for(lambda: count(shop) == 20 * turn + 20, lambda: stream.said)
            stream.stop()
            want = {i: 0 for i in range(60)}
            for turn in range(1, 3):
                want.update({i: turn for i in range(20 * turn - (0 if kind == "append" else 10), 20 * turn + 20)})
            got = shop.duckdb_rows("ns.t") if kind == "equality" else shop.pyiceberg_rows("ns.t")
            equal(sorted((r["id"], r["n"]) for r in got), sorted(want.items()))
            equal((stream.said.count("is away"), stream.said.count("is back")), (2, 2))


class Thief(harness.Relay):
    """A proxy that takes the answer to the next POST, once the service gave it, and is away until it is let in again."""

    def __init__(self, port):
        self.port, self.armed, self.took = harness.free_port(), False, 0
        super().__init__(port, self.port)

    def passes(self, data, state, is_client):
        if is_client and self.armed and data.startswith(b"POST"):
            self.armed, state["hit"] = False, True
        if not is_client and state["hit"]:
            self.close()
            self.took += 1
            return False
        return True


def answers_that_are_lost():
    """The commit is in the table, its answer is lost, and nothing can be asked for a while: it is known when the service is back."""
    for kind, options in KINDS[::2]:
        with Workshop() as shop, harness.Service(shop) as service:
            thief = Thief(service.port)
            shop.tarn("create", "ns.t", "id long not null")
            put(shop, "in.ndjson", [{"id": 0}])
            stream = Stream(shop, "http://127.0.0.1:%d" % thief.port, *FOLLOW, *options)
            wait_for(lambda: count(shop) == 1, lambda: stream.said)
            for turn in range(1, 3):
                thief.armed = True
                put(shop, "in.ndjson", [{"id": turn}])
                wait_for(lambda: thief.took == turn, lambda: stream.said)
                stream.hears("is away", turn)
                thief.open()
                stream.hears("is back", turn)
            stream.stop()
            equal(sorted(r["id"] for r in shop.pyiceberg_rows("ns.t")), [0, 1, 2])
            equal(len(snapshots(shop)), 3)
            thief.close()


def without_a_state():
    """A stream without a state waits too; a file that is read once does not, and fails as before."""
    with Workshop() as shop, harness.Service(shop) as service:
        shop.tarn("create", "ns.t", "id long")
        put(shop, "in.ndjson", [{"id": 1}])
        stream = Stream(shop, service.url, "ns.t", "in.ndjson", "--follow", "--checkpoint-interval", "100ms")
        wait_for(lambda: count(shop) == 1, lambda: stream.said)
        service.kill()
        put(shop, "in.ndjson", [{"id": 2}])
        stream.hears("is away")
        service.start()
        wait_for(lambda: count(shop) == 2, lambda: stream.said)
        stream.stop()
        equal(sorted(r["id"] for r in shop.pyiceberg_rows("ns.t")), [1, 2])
        once = Stream(shop, service.url, "ns.t", "-", "--format", "ndjson", "--checkpoint-interval", "100ms", stdin=subprocess.PIPE)
        once.process.stdin.write(b'{"id": 3}\n')
        once.process.stdin.flush()
        wait_for(lambda: count(shop) == 3 or once.process.poll() is not None, lambda: once.said)
        service.kill()
        once.process.stdin.write(b'{"id": 4}\n')
        once.process.stdin.close()
        once.process.wait(timeout=harness.SECONDS)
        equal(once.process.returncode, IO)
        equal(once.said.count("is away"), 1)  # the stream's


def a_time_limit():
    """--catalog-timeout ends the wait with the error that there was; the same command goes on."""
    with Workshop() as shop, harness.Service(shop) as service:
        must_refuse(shop.tarn("ingest", "ns.t", "in.ndjson", "--catalog-timeout", "soon", check=False), "--catalog-timeout", "soon")
        shop.tarn("create", "ns.t", "id long")
        put(shop, "in.ndjson", [{"id": 1}])
        stream = Stream(shop, service.url, *FOLLOW, "--catalog-timeout", "1500ms")
        wait_for(lambda: count(shop) == 1, lambda: stream.said)
        service.kill()
        put(shop, "in.ndjson", [{"id": 2}])
        stream.process.wait(timeout=harness.SECONDS)
        stream.stop(IO)
        assert "is away" in stream.said and "127.0.0.1:%d" % service.port in stream.said.splitlines()[-2], stream.said
        service.start()
        stream = Stream(shop, service.url, *FOLLOW)
        wait_for(lambda: count(shop) == 2, lambda: stream.said)
        stream.stop()
        equal(sorted(r["id"] for r in shop.pyiceberg_rows("ns.t")), [1, 2])


def a_signal_while_it_is_away():
    """It ends soon, and all checkpoints are in the state, also those that waited for the one before."""
    with Workshop() as shop, harness.Service(shop) as service:
        shop.tarn("create", "ns.t", "id long")
        again = ["ns.t", "-", "--format", "ndjson", "--state", "st", "--checkpoint-rows", "1"]
        stream = Stream(shop, service.url, *again, "--log", "json", stdin=subprocess.PIPE)

        def feed(*ids):
            stream.process.stdin.write("".join('{"id": %d}\n' % i for i in ids).encode())
            stream.process.stdin.flush()
        feed(1, 2)
        stream.hears('"event":"committed"', 2)  # it had the answers
        service.kill()
        feed(3, 4, 5)
        stream.hears("is away")
        stream.hears('"event":"checkpoint"', 5)
        stream.stop(IO, signal.SIGTERM)
        assert "same command" in stream.said, stream.said
        equal(len(glob.glob(shop.path("st", "checkpoint-*"))), 3)
        service.start()
        shop.tarn("-c", service.url, "ingest", *again, stdin="".join('{"id": %d}\n' % i for i in range(1, 6)))
        equal(sorted(r["id"] for r in shop.pyiceberg_rows("ns.t")), [1, 2, 3, 4, 5])


def a_database_that_is_crashed():
    """PostgreSQL goes away and comes back: under a stream of its own, and under the service of one."""
    if postgres.find_bin() is None:
        print("not tested: no PostgreSQL server is installed")
        return
    with postgres.Server() as server, Workshop() as shop:
        before = ["--warehouse", shop.path("warehouse")]
        shop.tarn("-c", server.uri, *before, "create", "ns.t", "id long")

        def table():
            from pyiceberg.catalog.sql import SqlCatalog
            return SqlCatalog("tarn", uri=server.uri.replace("postgresql:", "postgresql+psycopg2:")).load_table("ns.t")

        def ids():
            return sorted(table().scan().to_arrow()["id"].to_pylist())

        def outage(stream, first, turn):
            put(shop, "in.ndjson", [{"id": first}])
            wait_for(lambda: first in ids(), lambda: stream.said)
            put(shop, "in.ndjson", [{"id": first + 1}])
            server.crash()
            put(shop, "in.ndjson", [{"id": first + 2}])
            stream.hears("is away", turn)
            server.start()
            stream.hears("is back", turn)
            wait_for(lambda: first + 2 in ids(), lambda: stream.said)
            assert postgres.QUOTED not in stream.said and postgres.PASSWORD not in stream.said, "the password was shown"
            stream.stop()
        put(shop, "in.ndjson", [])
        outage(Stream(shop, server.uri, *FOLLOW, before=before), 0, 1)
        with harness.Service(shop, "-c", server.uri, *before) as service:
            outage(Stream(shop, service.url, *FOLLOW), 10, 2)
            equal(ids(), [0, 1, 2, 10, 11, 12])


def rolled_back_on_the_way():
    """A checkpoint's commit is on its way to the service while the branch is moved back behind the one before: it is refused as where the
    job sees it before it sends; what was taken back is told of, and gone on from where that is wanted."""
    with Workshop() as shop, harness.Service(shop) as service:
        shop.tarn("create", "ns.t", "id long")
        put(shop, "other.ndjson", [{"id": 0}])
        shop.tarn("ingest", "ns.t", "other.ndjson")
        once = ["ns.t", "in.ndjson", "--state", "st"]
        put(shop, "in.ndjson", [{"id": 1}])
        shop.tarn("-c", service.url, "ingest", *once)
        there = [s["snapshot-id"] for s in snapshots(shop)]
        put(shop, "in.ndjson", [{"id": 2}])
        held = harness.Held(service.port, b'"step-below"')
        late = Stream(shop, "http://127.0.0.1:%d" % held.port, *once)
        assert held.waits.wait(60)
        shop.tarn("-c", service.url, "alter", "ns.t", "rollback", str(there[0]))
        held.go.set()
        late.process.wait(harness.SECONDS)
        assert "no longer holds checkpoint 1 (snapshot %d)" % there[1] in late.said, late.said
        late.stop(CONFLICT)
        held.close()
        must_refuse(shop.tarn("-c", service.url, "ingest", *once, check=False), "no longer holds checkpoint 1", "--accept-rollback")
        shop.tarn("-c", service.url, "ingest", *once, "--accept-rollback")
        equal(sorted(row["id"] for row in shop.pyiceberg_rows("ns.t")), [0, 2])


CASES = [rolled_back_on_the_way, a_service_that_is_killed, answers_that_are_lost, without_a_state, a_time_limit, a_signal_while_it_is_away, a_database_that_is_crashed]
if __name__ == "__main__":
    sys.exit(harness.run_cases(CASES))
