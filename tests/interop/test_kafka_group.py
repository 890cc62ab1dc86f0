#!/usr/bin/env python3
"""Goal: several `tarn ingest --kafka-balance` in one consumer group share a topic's partitions, and whatever becomes of them - started,
stopped, killed at any time or at any call that changes a file, frozen until the group has given their partitions to others, and woken
again - every message is in the table exactly once, and an upsert table ends in the state that its messages mean.
Method: librdkafka's mock cluster in a process of its own (kafka_mock.c); members with short session timeouts; messages are produced
meanwhile. Tables are read by PyIceberg and DuckDB.

usage: test_kafka_group.py [CASE ...]    environment: KAFKA_MOCK (the built kafka_mock), KILL_SHIM (kill_at), BALANCE_STEPS (things that
happen to members in each random run, default 12), BALANCE_SEED"""
import json
import os
import random
import re
import select
import signal
import subprocess
import sys
import time

import harness
from harness import SECONDS, Workshop, case, equal, must_refuse
from harness import wait_for as until

STEPS = int(os.environ.get("BALANCE_STEPS", "6"))
SEED = int(os.environ.get("BALANCE_SEED", "1"))
SETTINGS = ["--kafka-balance", "--kafka-group", "g"]
# the mock cluster forgets members that are silent for longer than the session, also those that wait 3 s for others to join
for setting in ("session.timeout.ms=4000", "heartbeat.interval.ms=100", "topic.metadata.refresh.interval.ms=1000"):
    SETTINGS += ["--kafka-property", setting]


class Mock:
    def __init__(self, topic, partitions):
        self.process = subprocess.Popen([os.environ["KAFKA_MOCK"], topic, str(partitions)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = "kafka://%s/%s" % (self.process.stdout.readline().strip(), topic)
        self.partitions = partitions
        self.sent = 0

    def say(self, words):
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()
        equal(self.process.stdout.readline(), "ok\n")

    def produce(self, n, keys=0):
        """The next n messages to each partition."""
        for partition in range(self.partitions):
            self.say("produce %d %d %d %d" % (partition, self.sent, self.sent + n, keys))
            self.sent += n

    def close(self):
        self.process.stdin.close()
        self.process.wait(SECONDS)


class Members:
    """Processes of one group."""

    def __init__(self, shop, mock):
        self.shop, self.mock, self.options, self.running, self.frozen = shop, mock, (), [], []
        self.said = {}

    def start(self, *more, env=None):
        command = [harness.binary(), "ingest", "ns.t", self.mock.url, *SETTINGS, *self.options, *more]
        process = subprocess.Popen(command, cwd=self.shop.folder, stderr=subprocess.PIPE, text=True, env={**os.environ, **(env or {})})
        self.running.append(process)
        return process

    def follow(self, interval="200ms", *options, **more):
        return self.start("--follow", "--checkpoint-interval", interval, *options, **more)

    def end(self, process):
        """It was killed, or asked to end before it listened, or ends by itself, well."""
        self.running.remove(process)
        _, rest = process.communicate(timeout=SECONDS)
        said = self.said.pop(process, "") + rest
        assert process.returncode in (0, -signal.SIGKILL, -signal.SIGTERM), "status %d: %s" % (process.returncode, said)
        assert "Sanitizer" not in said, said
        return said

    def heard(self, process):
        """What it has said on stderr by now."""
        while select.select([process.stderr], [], [], 0)[0]:
            text = os.read(process.stderr.fileno(), 65536).decode()
            self.said[process] = self.said.get(process, "") + text
            if not text:
                break
        return self.said.get(process, "")

    def stop(self, process, number=signal.SIGTERM):
        if process in self.frozen:
            self.frozen.remove(process)
            process.send_signal(signal.SIGCONT)
        process.send_signal(number)
        return self.end(process)

    def freeze(self, process):
        process.send_signal(signal.SIGSTOP)
        self.frozen.append(process)

    def wake(self, process):
        self.frozen.remove(process)
        process.send_signal(signal.SIGCONT)

    def drain(self):
        """What is left is read to the end, by one alone."""
        for process in list(self.running):
            self.stop(process)

        def read_on():
            self.end(self.start())
            return stands(self.shop) == self.mock.sent
        until(read_on)  # partitions of the killed are given to others when the group has forgotten those
        self.end(self.start())  # adds nothing

    def close(self):
        for process in list(self.running):
            process.kill()
            process.communicate()


def create(shop, *more):
    shop.tarn("create", "ns.t", "id long", *more)


def ids(shop):
    return sorted(row["id"] for row in shop.pyiceberg_rows("ns.t"))


def stands(shop):
    """Messages before which the table stands, of all partitions."""
    snapshots = shop.catalog().load_table("ns.t").snapshots()
    known = [s.summary["tarn.offsets.g"] for s in snapshots if s.summary["tarn.offsets.g"]]
    return sum(json.loads(known[-1])["kafka"]["t"].values()) if known else 0


def in_group(fn, partitions=4):
    with Workshop() as shop:
        mock = Mock("t", partitions)
        members = Members(shop, mock)
        try:
            fn(shop, mock, members)
        finally:
            members.close()
            mock.close()


def away(shop, mock, members):
    """The service of the catalog is killed under two members, and under a stream of another group's, and comes back."""
    create(shop)
    shop.tarn("create", "ns.u", "id long")
    with harness.Service(shop) as service:
        at = {"TARN_CATALOG": service.url}
        mock.produce(50)
        both = [members.follow(env=at), members.follow(env=at)]
        alone = subprocess.Popen([harness.binary(), "ingest", "ns.u", mock.url, "--follow", "--state", "st", "--checkpoint-interval", "200ms"],
                                 cwd=shop.folder, stderr=subprocess.PIPE, text=True, env={**os.environ, **at})
        members.running.append(alone)
        seen = lambda: (len(ids(shop)), len(shop.pyiceberg_rows("ns.u")))
        until(lambda: seen() == (mock.sent, mock.sent))
        service.kill()
        mock.produce(50)
        until(lambda: all("the catalog is away" in members.heard(process) for process in both[:1] + [alone]) or
              all("the catalog is away" in members.heard(process) for process in both[1:] + [alone]))
        service.start()
        mock.produce(50)
        until(lambda: seen() == (mock.sent, mock.sent))
        for process in both + [alone]:
            members.stop(process)
        equal(ids(shop), list(range(mock.sent)))
        equal(sorted(row["id"] for row in shop.pyiceberg_rows("ns.u")), list(range(mock.sent)))


def late(shop, mock, members):
    """A commit waits on its way to the catalog's service until its partitions are another's, who commits their messages; then it arrives."""
    create(shop)
    mock.produce(50)
    with harness.Service(shop) as service:
        held = harness.Held(service.port, b"add-snapshot")
        first = members.follow(env={"TARN_CATALOG": "http://127.0.0.1:%d" % held.port})
        assert held.waits.wait(SECONDS)
        members.freeze(first)
        members.follow(env={"TARN_CATALOG": service.url})
        until(lambda: len(ids(shop)) == mock.sent)
        held.go.set()
        members.wake(first)
        mock.produce(50)
        until(lambda: stands(shop) == mock.sent)
        for process in list(members.running):
            members.stop(process)
        held.close()
    equal(ids(shop), list(range(mock.sent)))


def rows_said(said):
    return int(said.strip().rsplit("\n", 1)[-1].split(" row")[0].replace(",", ""))


def shared(shop, mock, members):
    """Two members read about a half each; one goes, and the other has all."""
    create(shop)
    mock.produce(100)
    first, second = members.follow("200ms", "--progress"), members.follow("200ms", "--progress")
    until(lambda: len(ids(shop)) == mock.sent)

    def both_read():
        mock.produce(20)
        until(lambda: len(ids(shop)) == mock.sent)
        return all(re.search(r": [1-9]\d* rows", members.heard(process)) for process in (first, second))
    until(both_read)
    before = mock.sent
    said = members.stop(first)
    mock.produce(100)
    until(lambda: len(ids(shop)) == mock.sent)
    assert 0 < rows_said(said) < before, said
    equal(rows_said(said) + rows_said(members.stop(second)), mock.sent)
    equal(ids(shop), list(range(mock.sent)))


def zombie(shop, mock, members):
    """A member sleeps with rows that it read and did not commit; another takes over; then it wakes."""
    create(shop)
    mock.produce(50)
    sleeper = members.follow("1h", "--progress")
    until(lambda: re.search(r": [1-9]\d* rows", members.heard(sleeper)))
    members.freeze(sleeper)
    members.follow()
    until(lambda: len(ids(shop)) == 200)
    members.wake(sleeper)
    until(lambda: "another process has taken it over" in members.heard(sleeper))
    mock.produce(50)
    members.stop(sleeper)
    members.drain()
    equal(ids(shop), list(range(400)))


def happen(shop, mock, members, seed, keys):
    rng = random.Random(seed)
    if keys:
        shop.tarn("create", "ns.t", "key long not null, n long", "--identifier", "key")
    else:
        create(shop)
    mock.produce(100, keys)
    members.follow()
    for step in range(STEPS):
        awake = [m for m in members.running if m not in members.frozen]
        what = rng.choice(["start", "stop", "kill", "freeze", "wake", "call", "rest"])
        if what == "start" and len(members.running) < 3 or not awake:
            members.follow(rng.choice(["50ms", "300ms", "1s"]))
        elif what == "call" and len(members.running) < 3 and "KILL_SHIM" in os.environ:
            at = {"KILL_AT": str(rng.randrange(1, 120)), "LD_PRELOAD": os.environ["KILL_SHIM"]}
            members.follow("100ms", env=dict(at, ASAN_OPTIONS="verify_asan_link_order=0:detect_leaks=0"))
        elif what in ("stop", "kill"):
            members.stop(rng.choice(members.running), signal.SIGTERM if what == "stop" else signal.SIGKILL)
        elif what == "freeze" and len(members.frozen) < 2:
            members.freeze(rng.choice(awake))
        elif what == "wake" and members.frozen:
            members.wake(rng.choice(members.frozen))
        mock.produce(rng.randrange(1, 100), keys)
        time.sleep(rng.choice([0.1, 0.5, 1, 2.5]))
        for process in [m for m in members.running if m.poll() is not None]:
            members.end(process)
    members.drain()
    if keys:
        check_keys(shop, mock, keys)
    else:
        equal(ids(shop), list(range(mock.sent)))
        equal(sorted(row["id"] for row in shop.duckdb_rows("ns.t")), list(range(mock.sent)))


def chance(shop, mock, members):
    """What happens to members is drawn by lot."""
    happen(shop, mock, members, SEED, 0)


def chance_again(shop, mock, members):
    happen(shop, mock, members, SEED + 1, 0)


def chance_upsert(shop, mock, members):
    members.options = ("--upsert", "--key", "key", "--deletes", "equality")
    happen(shop, mock, members, SEED + 2, 7)


def check_keys(shop, mock, keys):
    """The last message of each key, which the broker's own order gives."""
    told = {}
    with Workshop() as other:
        other.tarn("ingest", "ns.all", mock.url, "--create", "--schema", "key long, n long")
        for row in other.cat("ns.all").rows:
            told[row["key"]] = max(told.get(row["key"], -1), row["n"])
    found = shop.duckdb_rows("ns.t")
    equal(len(found), len(told))
    equal({row["key"]: row["n"] for row in found}, told)
    equal({row["key"]: row["n"] for row in shop.cat("ns.t").rows}, told)


def rejects(shop, mock, members):
    """Bad messages move the offsets too, and are told once."""
    create(shop)
    mock.produce(10)
    mock.say("bad 1")
    members.end(members.start("--rejects", "bad.ndjson"))
    with open(shop.path("bad.ndjson")) as file:
        equal(len(file.readlines()), 1)
    mock.say("bad 2")
    members.end(members.start("--rejects", "bad2.ndjson"))
    members.end(members.start("--rejects", "bad3.ndjson"))
    with open(shop.path("bad2.ndjson")) as file:
        equal(json.loads(file.read())["reason"].split(":")[0], "topic t partition 2 offset 10")
    equal(os.path.getsize(shop.path("bad3.ndjson")), 0)
    equal(ids(shop), list(range(40)))


def latest(shop, mock, members):
    """Where the group begins is in the table from the first checkpoint on, of quiet partitions too."""
    create(shop)
    mock.produce(10)
    process = members.start("--follow", "-v", "--progress", "--kafka-property", "auto.offset.reset=latest")
    until(lambda: "4 partitions were given" in members.heard(process))
    given = len(members.heard(process))
    until(lambda: members.heard(process)[given:].count(" rows/s") > 2)  # it has read on since, and so knows where they begin
    equal(stands(shop), 0)
    members.stop(process)
    equal(stands(shop), 40)
    mock.produce(10)
    members.end(members.start("--kafka-property", "auto.offset.reset=latest"))
    equal(ids(shop), list(range(40, 80)))


def expired(shop, mock, members):
    """Offsets that went with expired snapshots are not made up."""
    create(shop)
    mock.produce(10)
    members.end(members.start())
    shop.write("more.ndjson", '{"id": 1000}\n')
    shop.tarn("ingest", "ns.t", "more.ndjson")
    table = shop.catalog().load_table("ns.t")
    old = table.snapshots()[0].snapshot_id
    table.maintenance.expire_snapshots().by_id(old).commit()
    refused = shop.tarn("ingest", "ns.t", mock.url, *SETTINGS, check=False)
    must_refuse(refused, "have expired", "tarn.offsets.g")
    offsets = {"kafka": {"t": {str(p): 10 for p in range(4)}}}
    shop.tarn("set", "ns.t", "tarn.offsets.g=" + json.dumps(offsets))
    mock.produce(10)
    members.end(members.start())
    equal(ids(shop), list(range(80)) + [1000])


def refusals(shop, mock, members):
    create(shop)
    for options, words in ((["--state", "st"], ["--state"]), (["--deletes", "vector", "--key", "id"], ["vector", "equality"]),
                           (["--evolve"], ["--evolve"]), (["--mode", "replace-partitions"], ["append"]),
                           (["--kafka-property", "partition.assignment.strategy=cooperative-sticky"], ["cooperative"])):
        must_refuse(shop.tarn("ingest", "ns.t", mock.url, *SETTINGS, *options, check=False), *words)
    must_refuse(shop.tarn("ingest", "ns.t", "x.ndjson", "--kafka-balance", check=False), "kafka://")
    must_refuse(shop.tarn("ingest", "ns.new", mock.url, "--create", *SETTINGS, check=False), "--schema")
    shop.tarn("create", "ns.p", "id long not null", "--identifier", "id", "--property", "tarn.row-deletes=position")
    must_refuse(shop.tarn("ingest", "ns.p", mock.url, "--upsert", *SETTINGS, check=False), "index of keys", "equality")


CASES = [refusals, shared, zombie, rejects, latest, expired, away, late, chance, chance_again, chance_upsert]


def main():
    harness.need("pyarrow", "pyiceberg", "duckdb", "duckdb_extension_iceberg")
    for fn in harness.chosen(CASES):
        case(fn.__name__, in_group, fn)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
