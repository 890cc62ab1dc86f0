#!/usr/bin/env python3
"""Goal: `tarn ingest` of a real Kafka broker's topics holds every message once, while the command is killed, the broker is killed and
comes back, partitions are added, and transactions are committed or aborted; the consumer group is told. Members of a group share a
topic of which partitions move, as they start, stop, freeze and are killed, and the broker too.
Method: kcat produces; the command runs with --follow and a short checkpoint interval; the engine's tools change the topic.

environment: KAFKA_ENGINE (the tool that starts a broker; default ../shared/engines/engine). SKIPPED without kcat, the tool, or Java."""
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402  (the folder above is no package)
from harness import SECONDS, case, equal  # noqa: E402
from harness import wait_for as until  # noqa: E402

ENGINE = os.environ.get("KAFKA_ENGINE") or os.path.join(harness.SHARED, "engines", "engine")


class Broker:
    def __init__(self, folder, port=""):
        done = subprocess.run([ENGINE, "kafka", "start", folder] + ([port] if port else []), capture_output=True, text=True, timeout=400,
                              env={**os.environ, "KAFKA_PARTITIONS": "6"})
        if done.returncode != 0:
            print("SKIPPED: no broker could be started: %s" % done.stderr[-300:])
            sys.exit(harness.SKIPPED)
        values = dict(line.split("=", 1) for line in done.stdout.split() if "=" in line)
        self.folder, self.url, self.port, self.process = folder, values["URL"], values["PORT"], int(values["PID"])

    def produce(self, topic, ids, *options):
        text = "".join(json.dumps({"id": i}) + "\n" for i in ids)
        subprocess.run(["kcat", "-b", self.url, "-t", topic, "-P", *options], input=text, text=True, check=True, timeout=SECONDS)

    def kill(self):
        os.kill(self.process, signal.SIGKILL)
        until(lambda: not self.listens())

    def listens(self):
        try:
            socket.create_connection(self.url.rsplit(":", 1), 5).close()
            return True
        except OSError:
            return False

    def again(self):
        self.__init__(self.folder, self.port)

    def stop(self):
        subprocess.run([ENGINE, "kafka", "stop", self.folder], capture_output=True, timeout=SECONDS)


def ids(shop, name):
    return sorted(row["id"] for row in shop.cat(name).rows)


def job(shop, broker, topic, *options):
    command = [harness.binary(), "ingest", "ns." + topic, "kafka://%s/%s" % (broker.url, topic), "--state", "st-" + topic, "-q", *options]
    return subprocess.Popen(command, cwd=shop.folder, stderr=subprocess.PIPE, text=True)


def killed_commands(shop, broker):
    rng = random.Random(11)
    broker.produce("a", range(100))
    shop.tarn("ingest", "ns.a", "kafka://%s/a" % broker.url, "--create", "--state", "st-a")
    for run in range(6):
        process = job(shop, broker, "a", "--follow", "--checkpoint-interval", "50ms")
        broker.produce("a", range(100 + run * 100, 200 + run * 100))
        time.sleep(rng.random())
        process.kill()
        process.wait()
    process = job(shop, broker, "a")
    equal((process.wait(SECONDS), process.stderr.read()), (0, ""))
    equal(ids(shop, "ns.a"), list(range(700)))
    # and what was committed is the group's
    told = subprocess.run(["kcat", "-b", broker.url, "-G", "tarn-ns.a", "-e", "a"], capture_output=True, text=True, timeout=SECONDS).stdout
    equal(told, "")


def killed_brokers(shop, broker):
    broker.produce("b", range(100))
    shop.tarn("ingest", "ns.b", "kafka://%s/b" % broker.url, "--create", "--state", "st-b")
    process = job(shop, broker, "b", "--follow", "--checkpoint-interval", "100ms")
    broker.produce("b", range(100, 200))
    until(lambda: len(ids(shop, "ns.b")) == 200)
    broker.kill()
    broker.again()
    broker.produce("b", range(200, 300))
    until(lambda: len(ids(shop, "ns.b")) == 300)
    process.send_signal(signal.SIGTERM)
    equal(process.wait(SECONDS), 0)
    equal(ids(shop, "ns.b"), list(range(300)))


def transactions(shop, broker):
    """Of transactions, the control records take offsets, and the last message may be one."""
    broker.produce("c", range(10), "-X", "transactional.id=t1")
    broker.produce("c", range(10, 20), "-X", "transactional.id=t1")
    shop.tarn("ingest", "ns.c", "kafka://%s/c" % broker.url, "--create", "--state", "st-c")
    equal(ids(shop, "ns.c"), list(range(20)))
    broker.produce("c", range(20, 30), "-X", "transactional.id=t1")
    process = job(shop, broker, "c")
    equal(process.wait(SECONDS), 0)
    equal(ids(shop, "ns.c"), list(range(30)))


def member(shop, broker, topic, *options):
    command = [harness.binary(), "ingest", "ns." + topic, "kafka://%s/%s" % (broker.url, topic), "--kafka-balance", "--kafka-group", "g",
               "--kafka-property", "session.timeout.ms=6000", "--kafka-property", "heartbeat.interval.ms=500", "-q", *options]
    return subprocess.Popen(command, cwd=shop.folder, stderr=subprocess.PIPE, text=True)


def ended(process, status):
    """It may have told of the broker that was gone, and of rows that were another's; or was asked to end before it listened."""
    _, said = process.communicate(timeout=SECONDS)
    assert process.returncode in (status, -signal.SIGTERM) and "Sanitizer" not in said, "%d: %s" % (process.returncode, said)


def groups(shop, broker):
    rng = random.Random(5)
    follow = ("--follow", "--checkpoint-interval", "200ms")
    sent = 0
    for partition in range(6):
        broker.produce("g", range(sent, sent + 50), "-p", str(partition))
        sent += 50
    shop.tarn("create", "ns.g", "id long")
    members = [member(shop, broker, "g", *follow) for _ in range(2)]
    until(lambda: len(ids(shop, "ns.g")) == sent)
    for what in ("start", "freeze", "kill", "broker", "start", "wake", "stop", "kill", "start"):
        broker.produce("g", range(sent, sent + 60), "-p", str(rng.randrange(6)))
        sent += 60
        if what == "start":
            members.append(member(shop, broker, "g", *follow))
        elif what == "freeze":
            frozen = members.pop(0)
            frozen.send_signal(signal.SIGSTOP)
        elif what == "wake":
            frozen.send_signal(signal.SIGCONT)
            members.append(frozen)
        elif what == "broker":
            broker.kill()
            broker.again()
        else:
            gone = members.pop(rng.randrange(len(members)))
            gone.send_signal(signal.SIGKILL if what == "kill" else signal.SIGTERM)
            ended(gone, -9 if what == "kill" else 0)
        time.sleep(rng.choice([1, 3, 7]))
    until(lambda: len(ids(shop, "ns.g")) == sent)
    for process in members:
        process.send_signal(signal.SIGTERM)
        ended(process, 0)
    equal(ids(shop, "ns.g"), list(range(sent)))


CASES = [killed_commands, killed_brokers, transactions, groups]


def main():
    if shutil.which("kcat") is None or not os.path.exists(ENGINE) or shutil.which("java") is None:
        print("SKIPPED: no kcat, no Java, or no tool that starts a broker")
        return harness.SKIPPED
    with harness.Workshop() as shop:
        broker = Broker(shop.path("kafka"))
        try:
            for fn in CASES:
                case(fn.__name__.replace("_", " "), fn, shop, broker)
        finally:
            broker.stop()
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
