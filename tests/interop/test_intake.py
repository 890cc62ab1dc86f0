#!/usr/bin/env python3
"""Goal: rows that the service took are in their table exactly once, and what it could not take is told and changes nothing.
Method: clients send NDJSON under keys, again where no answer came; the server is stopped, killed at any time, killed at any call
that changes a file (kill_at.c, every second one in the middle of a write), also while it recovers, and its power is cut there, with
all that was not synced lost; the log is damaged, disks are full, syncs fail, tables change under it. Tables are read by PyIceberg
and by the command.

usage: test_intake.py [CASE ...]    environment: KILL_SHIM (the built kill_at), KILL_RUNS (kills in all, default 20; a third as many power cuts), KILL_SEED
"""
import concurrent.futures
import errno
import glob
import http.client
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid

import harness
from harness import SECONDS, Workshop, case, equal, wait_for
from test_serve import Server

ROWS = "/v1/namespaces/ns/tables/t/rows"
NDJSON = {"Content-Type": "application/x-ndjson"}
SCHEMA = "id long not null, s string"
SEED = int(os.environ.get("KILL_SEED", "1"))
RUNS = int(os.environ.get("KILL_RUNS", "20"))
CLIENTS, REQUESTS, EACH = 6, 4, 3


def lines(*ids):
    return "".join(json.dumps({"id": i, "s": "row %d" % i}) + "\n" for i in ids)


def make_table(shop, name="ns.t", schema=SCHEMA, *options):
    if name == "ns.t":
        shop.tarn("create", "ns", "--namespace")
    shop.tarn("create", name, schema, *options)


def take(shop, *options, interval=20, env=None):
    return Server(shop, "--intake", "log", "--intake-interval", str(interval), *options, env=env)


def send(server, body, key=None, path=ROWS, **headers):
    more = dict(NDJSON, **headers)
    if key is not None:
        more["Idempotency-Key"] = key
    return server.ask("POST", path, body, **more)


def committed(server, body, path=ROWS, key=None):
    """Asked again where the commit takes longer than an answer may."""
    key = key or str(uuid.uuid4())
    status, answer = 200, {"committed": False}
    while (status, answer["committed"]) == (200, False):
        status, answer, _ = send(server, body, key, path + "?wait=commit")
    equal(status, 200)
    return answer


def ids(shop, table="ns.t"):
    return sorted(row["id"] for row in shop.pyiceberg_rows(table))


def metrics(server):
    connection = http.client.HTTPConnection(server.url.split("//")[1], timeout=SECONDS)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    assert text.endswith("# EOF\n"), text[-100:]
    return {line.split()[0]: float(line.split()[1]) for line in text.splitlines() if not line.startswith("#")}


def taken_and_there():
    """Answers, positions, keys, and what the table has; once more after a restart."""
    with Workshop() as shop:
        make_table(shop)
        with take(shop) as server:
            equal(send(server, lines(1, 2), "k1")[:2], (200, {"rows": 2, "position": 0, "repeated": False}))
            equal(send(server, lines(1, 2), "k1")[:2], (200, {"rows": 2, "position": 0, "repeated": True}))
            status, answer, _ = send(server, lines(3), "k1")
            equal((status, "another request" in answer["error"]["message"]), (422, True))
            equal(send(server, lines(3))[1]["repeated"], False)
            equal(send(server, lines(3))[1]["repeated"], False)  # without a key it is another one
            snapshot = committed(server, lines(4) + "\n  \n" + lines(5), key="k2")["snapshot-id"]
            equal(ids(shop), [1, 2, 3, 3, 4, 5])
            equal(server.catalog().load_table("ns.t").current_snapshot().snapshot_id, snapshot)
            again = committed(server, lines(4) + "\n  \n" + lines(5), key="k2")
            equal((again["repeated"], again["rows"]), (True, 2))
            assert "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/rows" in server.ask("GET", "/v1/config")[1]["endpoints"]
            got = metrics(server)
            equal((got["tarn_intake_rows_total"], got["tarn_intake_rows_committed_total"]), (6, 6))
            equal((got["tarn_intake_requests_repeated_total"], got["tarn_intake_waiting_bytes"]), (2, 0))
        for _ in range(2):
            with take(shop) as server:
                equal(send(server, lines(1, 2), "k1")[1], {"rows": 2, "position": 0, "repeated": True})
                equal(send(server, lines(9), "k2")[0], 422)
        equal(ids(shop), [1, 2, 3, 3, 4, 5])
        shop.tarn("check", "ns.t")


def wrong_requests():
    """Refused with a reason, and nothing of them is taken."""
    with Workshop() as shop:
        make_table(shop)
        with take(shop, "--body-mb", "1") as server:
            for body, word in [("{\"id\": 1}\n{\"s\": \"x\"}\n", "line 2: column id"), ("{\"id\": 1, \"zz\": 2}\n", "zz"),
                               ("{\"id\": \"x\"}\n", "column id"), ("{\"id\": 1", "line 1"), ("[1]\n", "line 1"), ("", "no rows"),
                               ("\n\n", "no rows"), ("\x00", "line 1"), ("{\"id\": 1, \"s\": \"\xff\"}\n".encode("latin-1"), "line 1")]:
                status, answer, _ = send(server, body, "bad-%d" % hash(body))
                equal(status, 400)
                assert word in answer["error"]["message"], answer
            equal(send(server, lines(1), "bad key\x01 ")[0], 400)
            for query, word in (("?wait=longer", '"longer", and "commit"'), ("?wayt=commit", "wayt")):
                status, answer, _ = send(server, lines(1), path=ROWS + query)
                assert status == 400 and word in answer["error"]["message"], answer
            equal(send(server, lines(1), path=ROWS.replace("/t/", "/none/"))[0], 404)
            equal(server.ask("GET", ROWS)[0], 405)
            equal(server.ask("POST", ROWS, lines(1), **{"Content-Type": "text/csv"})[0], 415)
            equal(send(server, lines(1), **{"Content-Encoding": "gzip"})[0], 415)
            equal(send(server, lines(*range(60000)))[0], 413)
            # a key whose request was refused is free
            equal(send(server, lines(1), "bad-%d" % hash(""))[0], 200)
            committed(server, lines(2))
        equal(ids(shop), [1, 2])
        with Server(shop) as server:
            status, answer, _ = send(server, lines(3))
            equal((status, "--intake" in answer["error"]["message"]), (406, True))
            assert not any("/rows" in e for e in server.ask("GET", "/v1/config")[1]["endpoints"])
        with take(shop):
            refused = shop.tarn("serve", "--listen", "127.0.0.1:0", "--intake", "log", check=False)
            assert refused.status != 0 and "in use" in refused.err, str(refused)


def roles():
    access = {"tokens": [{"name": "w", "token": "write-ns", "grants": [{"namespace": "ns", "role": "write"}]},
                         {"name": "w2", "token": "write-ns-2", "grants": [{"namespace": "ns", "role": "write"}]},
                         {"name": "r", "token": "read-ns", "grants": [{"namespace": "ns", "role": "read"}]}]}
    with Workshop() as shop:
        make_table(shop)
        shop.write("access.json", json.dumps(access))
        with take(shop, "--access", "access.json") as server:
            equal(send(server, lines(1))[0], 401)
            equal(send(server, lines(1), Authorization="Bearer read-ns")[0], 403)
            equal(send(server, lines(1), "k", Authorization="Bearer write-ns")[0], 200)
            equal(send(server, lines(2), "k", Authorization="Bearer write-ns-2")[0], 200)  # keys are their callers'
            equal(send(server, lines(2), "k", Authorization="Bearer write-ns")[0], 422)
        equal(ids(shop), [1, 2])


def many_clients():
    """Many connections, tables and keys sent twice at once: each once, few syncs, few snapshots."""
    with Workshop() as shop:
        tables = ["t", "u", "v"]
        make_table(shop)
        shop.tarn("create", "ns.u", SCHEMA, "--partition-by", "bucket(2, id)")
        shop.tarn("create", "ns.v", SCHEMA, "--format-version", "3")

        def run(i):
            table = tables[i % 3]
            return send(server, lines(10 * i, 10 * i + 1), "key-%d" % (i // 2 * 2 + i % 2), ROWS.replace("/t/", "/%s/" % table))

        with take(shop) as server:
            wanted = list(range(90))
            with concurrent.futures.ThreadPoolExecutor(16) as pool:
                answers = list(pool.map(run, wanted + wanted))
            equal({a[0] for a in answers}, {200})
            equal(sum(not a[1]["repeated"] for a in answers), 90)
            equal(sorted({a[1]["position"] for a in answers if not a[1]["repeated"]})[-1] >= 89, True)
            got = metrics(server)
        for n, table in enumerate(tables):
            equal(ids(shop, "ns." + table), sorted(v for i in wanted if i % 3 == n for v in (10 * i, 10 * i + 1)))
            shop.tarn("check", "ns." + table)
        assert got["tarn_intake_log_syncs_total"] <= got["tarn_intake_log_records_total"], got


def two_services():
    """Two take rows for one table at once, each with a log of its own; what a rollback takes away stays away."""
    with Workshop() as shop:
        make_table(shop)
        snapshot = None
        with take(shop) as one, Server(shop, "--intake", "other", "--intake-interval", "20") as two:
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                answers = list(pool.map(lambda i: send((one, two)[i % 2], lines(i), "k%d" % i, ROWS + "?wait=commit" * (i % 5 == 0)), range(60)))
            equal({a[0] for a in answers}, {200})
            snapshot = committed(one, lines(60))["snapshot-id"]
            for server in (one, two):
                wait_for(lambda s=server: metrics(s)["tarn_intake_waiting_bytes"] == 0)
            equal(ids(shop), list(range(61)))
            equal(sum(k.startswith("tarn.intake.") for k in two.catalog().load_table("ns.t").properties), 2)
            committed(two, lines(61))
            two.catalog().load_table("ns.t").manage_snapshots().rollback_to_snapshot(snapshot).commit()
            equal(send(one, lines(60 - 2), "k58")[1]["repeated"], True)
            committed(one, lines(62))
        equal([i for i in ids(shop) if i > 59], [60, 62])


def tables_change():
    """A column comes, goes, and becomes required to be there while rows wait; the table gets another name, goes, comes anew."""
    with Workshop() as shop:
        make_table(shop)
        with take(shop, interval=60000) as server:
            equal(send(server, lines(1, 2))[0], 200)
            shop.tarn("alter", "ns.t", "rename-column", "s", "text")
            equal(send(server, "{\"id\": 3, \"text\": \"x\"}\n")[0], 200)  # seen anew, since the old schema refused it
        # 1 and 2 no longer fit: they were acknowledged, so they are kept apart
        equal(ids(shop), [3])
        rejected = [json.loads(line) for name in glob.glob(shop.path("log", "rejected-*")) for line in open(name)]
        equal([json.loads(r["row"])["id"] for r in rejected], [1, 2])
        assert all(r["table"] == "ns.t" and "member s" in r["reason"] for r in rejected), rejected
        faults = Faults(shop)
        with take(shop, env=faults.env) as server, concurrent.futures.ThreadPoolExecutor(1) as pool:
            faults.set("write", errno.ENOSPC, "/warehouse/")  # the commit has to wait
            answer = pool.submit(send, server, "{\"id\": 7, \"text\": \"x\"}\n{\"id\": 8}\n", None, ROWS + "?wait=commit")
            wait_for(lambda: metrics(server)["tarn_intake_commits_failed_total"] > 0)
            shop.tarn("alter", "ns.t", "rename-column", "text", "txt")
            faults.clear()
            status, told, _ = answer.result()
            equal((status, told["committed"], told["rejected"]), (200, False, 1))
            shop.tarn("delete", "ns.t", "--where", "id = 8")
        with take(shop, interval=60000) as server:
            equal(send(server, "{\"id\": 4}\n")[0], 200)
            shop.tarn("alter", "ns.t", "add-column", "n", "int")
            shop.tarn("rename", "ns.t", "ns.other")
        equal(ids(shop, "ns.other"), [3, 4])
        with take(shop, interval=60000) as server:
            equal(send(server, "{\"id\": 5}\n", path=ROWS.replace("/t/", "/other/"))[0], 200)
            shop.tarn("drop", "ns.other")
            shop.tarn("create", "ns.other", SCHEMA)
        equal(ids(shop, "ns.other"), [])
        rejected = [json.loads(line) for name in glob.glob(shop.path("log", "rejected-*")) for line in open(name)]
        equal([r["row"] for r in rejected if "gone" in r["reason"]], ["{\"id\": 5}"])
        shop.tarn("check", "ns.other")


def renamed_beside_a_broken_one():
    """While it can't be told whether one of the tables is the one that rows wait for, they wait."""
    with Workshop() as shop:
        make_table(shop)
        shop.tarn("create", "ns.broken", SCHEMA)
        with take(shop, interval=60000) as server:
            equal(send(server, lines(1, 2))[0], 200)
            server.process.kill()
            server.process.wait()
            server.process.returncode = 0
        shop.tarn("rename", "ns.t", "ns.u")
        metadata = shop.path("warehouse", "ns", "broken", "metadata")
        os.rename(metadata, metadata + ".away")
        with take(shop) as server:
            wait_for(lambda: metrics(server)["tarn_intake_commits_failed_total"] > 1)
            equal((ids(shop, "ns.u"), glob.glob(shop.path("log", "rejected-*"))), ([], []))
            os.rename(metadata + ".away", metadata)
            wait_for(lambda: metrics(server)["tarn_intake_waiting_bytes"] == 0)
        equal(ids(shop, "ns.u"), [1, 2])
        equal(glob.glob(shop.path("log", "rejected-*")), [])


class Faults:
    """Calls of the server that fail, from one line on to the next."""

    def __init__(self, shop):
        self.path = shop.path("fault")
        self.env = {"LD_PRELOAD": os.environ["KILL_SHIM"], "FAULT_FILE": self.path, "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0"}

    def set(self, call, error, word):
        with open(self.path + ".new", "w") as file:
            file.write("%s %d %s" % (call, error, word))
        os.rename(self.path + ".new", self.path)

    def clear(self):
        os.unlink(self.path)


def log_cannot_be_written(call, error, status):
    """The disk of the log is full, or its sync fails: nothing is taken, and it goes on when that is over."""
    with Workshop() as shop:
        make_table(shop)
        faults = Faults(shop)
        with Server(shop, "--intake", "log", "--intake-interval", "60000", env=faults.env) as server:
            equal(send(server, lines(1), "k1")[0], 200)
            faults.set(call, error, "log/rows-")
            for i in range(3):
                got, answer, headers = send(server, lines(2), "k2")
                equal((got, headers.get("Retry-After")), (status, "1"))
                assert "log" in answer["error"]["message"], answer
                equal(send(server, lines(90 + i))[0], status)
            faults.clear()
            equal(send(server, lines(2), "k2")[1]["repeated"], False)
            equal(send(server, lines(3), "k3")[0], 200)
            equal(send(server, lines(2), "k2")[1]["repeated"], True)
            server.process.kill()
            server.process.wait()
            server.process.returncode = 0
        with take(shop) as server:
            for i in (1, 2, 3):
                equal(send(server, lines(i), "k%d" % i)[1]["repeated"], True)
            committed(server, lines(4))
        equal(ids(shop), [1, 2, 3, 4])


def table_cannot_be_written():
    """Its disk is full: rows are acknowledged, and wait. Its syncs fail: they wait for another process, as this one's store gives up."""
    with Workshop() as shop:
        make_table(shop)
        faults = Faults(shop)

        def fail_with(server, call, error, *sent):
            faults.set(call, error, "/warehouse/")
            for i in sent:
                before = metrics(server)["tarn_intake_commits_failed_total"]
                equal(send(server, lines(i), "k%d" % i)[0], 200)
                wait_for(lambda: metrics(server)["tarn_intake_commits_failed_total"] > before)
            faults.clear()

        with Server(shop, "--intake", "log", "--intake-interval", "20", env=faults.env) as server:
            fail_with(server, "write", errno.ENOSPC, 0, 1)
            wait_for(lambda: metrics(server)["tarn_intake_waiting_bytes"] == 0)
            equal(ids(shop), [0, 1])
            fail_with(server, "sync", errno.EIO, 2, 3)
            equal(send(server, lines(4), "k4")[0], 200)
        equal(ids(shop), [0, 1])
        with take(shop) as server:
            wait_for(lambda: metrics(server)["tarn_intake_waiting_bytes"] == 0)
        equal(ids(shop), [0, 1, 2, 3, 4])


def ends_while_somebody_waits():
    """Who waits for a commit is answered when the service ends: with it, or where it is not to be had, without."""
    with Workshop() as shop:
        make_table(shop)
        faults, sent = Faults(shop), 0

        def committed_at_the_end():
            nonlocal sent
            with Server(shop, "--intake", "log", "--intake-interval", "3600000", env=faults.env) as server, \
                    concurrent.futures.ThreadPoolExecutor(1) as pool:
                answer = pool.submit(send, server, lines(sent), None, ROWS + "?wait=commit")
                sent += 1
                wait_for(lambda: metrics(server)["tarn_intake_log_records_total"] > 0)
                server.process.send_signal(signal.SIGTERM)
                status, told, _ = answer.result()
            equal(status, 200)
            return told["committed"]

        assert any(committed_at_the_end() for _ in range(10)), "nobody was told"  # one may take longer than the service's end
        equal(ids(shop), list(range(sent)))
        faults.set("write", errno.ENOSPC, "/warehouse/")
        equal(committed_at_the_end(), False)
        equal(ids(shop), list(range(sent - 1)))
        faults.clear()
        with take(shop) as server:
            wait_for(lambda: metrics(server)["tarn_intake_waiting_bytes"] == 0)
        equal(ids(shop), list(range(sent)))


def too_much_waits():
    """What waits is bounded: 503 with Retry-After, until the catalog is there again."""
    with Workshop() as shop:
        make_table(shop)
        text = json.dumps({"id": 1, "s": "x" * 300000}) + "\n"
        with take(shop, "--intake-mb", "1", interval=2000) as server:
            equal(send(server, lines(0))[0], 200)
            lock = subprocess.Popen([sys.executable, "-c", "import sqlite3,sys; c=sqlite3.connect(sys.argv[1],isolation_level=None);"
                                     "c.execute('begin exclusive'); print('held', flush=True); sys.stdin.read()", shop.path("tarn.db")],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            equal(lock.stdout.readline().strip(), "held")
            answers = []
            while not answers or (answers[-1][0] == 200 and len(answers) < 12):
                answers.append(send(server, text))
            lock.communicate("")
            taken = sum(a[0] == 200 for a in answers)
            status, answer, headers = answers[-1]
            equal((status, headers.get("Retry-After"), taken), (503, "1", 3))
            assert "wait for their commits" in answer["error"]["message"], answer
            wait_for(lambda: metrics(server)["tarn_intake_waiting_bytes"] == 0)
            equal(send(server, text)[0], 200)
        equal(len(ids(shop)), taken + 2)


# ---- kills ----

class History:
    """One server after the other over one folder, and clients that send until they are answered."""

    def __init__(self, shop):
        self.shop, self.server, self.address = shop, None, None
        self.wrong, self.killed = [], 0

    def start(self, **env):
        """False: it was killed before it listened."""
        environment = dict(os.environ, LD_PRELOAD=os.environ["KILL_SHIM"], ASAN_OPTIONS="verify_asan_link_order=0:detect_leaks=0", **env)
        self.server = subprocess.Popen([harness.binary(), "-c", "sqlite:tarn.db", "serve", "--listen", "127.0.0.1:0", "--intake", "log",
                                        "--intake-interval", "15"], cwd=self.shop.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       env=environment, text=True)
        url = self.server.stdout.readline().strip()
        self.address = url.split("//")[1] if url else None
        return self.address is not None

    def end(self):
        """The server's status, after the kill it was made for or a request to end."""
        if self.address is not None and self.server.poll() is None:
            self.server.send_signal(signal.SIGTERM)
        _, err = self.server.communicate(timeout=SECONDS)
        self.address = None
        self.killed += self.server.returncode == -signal.SIGKILL
        if self.server.returncode not in (0, -signal.SIGKILL):
            self.wrong.append("status %d: %s" % (self.server.returncode, err))
        return self.server.returncode

    def client(self, c):
        for r in range(REQUESTS):
            body = lines(*range((c * REQUESTS + r) * EACH, (c * REQUESTS + r + 1) * EACH))
            until = time.monotonic() + SECONDS
            while not self.try_once(body, "key-%d-%d" % (c, r)):
                if time.monotonic() > until:
                    self.wrong.append("no answer to key-%d-%d" % (c, r))
                    return
                time.sleep(0.005)

    def try_once(self, body, key):
        address = self.address
        if address is None:
            return False
        try:
            connection = http.client.HTTPConnection(address, timeout=SECONDS)
            connection.request("POST", ROWS, body, dict(NDJSON, **{"Idempotency-Key": key}))
            answer = connection.getresponse()
            text = answer.read()
            connection.close()
        except (OSError, http.client.HTTPException):
            return False
        if answer.status not in (200, 503):
            self.wrong.append("%d: %s" % (answer.status, text))
        return answer.status != 503

    def run(self, kills):
        """kills: one server for each, then one that stays; seconds: killed then, from outside."""
        clients = [threading.Thread(target=self.client, args=(c,)) for c in range(CLIENTS)]
        for thread in clients:
            thread.start()
        for kill in kills:
            kill = dict(kill)
            seconds = kill.pop("seconds", None)
            if "POWER_LOST" in kill:
                os.mkdir(kill["POWER_LOST"])
            self.start(**kill)
            if seconds is None:  # as long as there is work for it
                wait_for(lambda: self.server.poll() is not None or not any(thread.is_alive() for thread in clients))
            else:
                try:
                    self.server.wait(timeout=seconds)
                except subprocess.TimeoutExpired:
                    self.server.kill()
            self.end()
        count = self.shop.path("count")
        began = time.perf_counter()
        assert self.start(KILL_COUNT=count), self.server.communicate()[1]
        for thread in clients:
            thread.join()
        self.end()
        self.seconds = time.perf_counter() - began
        equal(self.wrong, [])
        with open(count) as file:
            self.calls = int(file.read())

    def check(self):
        wanted = list(range(CLIENTS * REQUESTS * EACH))
        equal(ids(self.shop), wanted)
        equal(sorted(row["id"] for row in self.shop.cat("ns.t").rows), wanted)
        assert not glob.glob(self.shop.path("log", "rejected-*"))


def history(found, kills, power=None):
    """power: a seed; then the kills are power cuts."""
    with Workshop() as shop:
        make_table(shop)
        h = History(shop)
        if power is not None:
            kills = [dict(kill, POWER_ROOT=shop.folder, POWER_LOST="%s.lost%d" % (shop.folder, n), POWER_SEED=str(power + n))
                     for n, kill in enumerate(kills)]
        try:
            h.run(kills)
        finally:
            for name in glob.glob(shop.folder + ".lost*"):
                shutil.rmtree(name)
        h.check()
        found["killed"] += h.killed
        return h


def unharmed(found):
    h = history(found, [])
    found.update(calls=h.calls, seconds=h.seconds)


def happened(found, least):
    assert found["killed"] >= least, "%d of the kills happened, not %d" % (found["killed"], least)


def histories(found, n, chance, timed=True):
    """Kills at calls spread over a run, some of them again while it recovers, and a third of them at random times."""
    for i in range(n):
        if timed and i % 3 == 2:
            first = {"seconds": chance.uniform(0.02, found["seconds"])}
            name = "at %.3f s" % first["seconds"]
        else:
            at = 1 + (i * found["calls"]) // n + chance.randrange(max(1, found["calls"] // n))
            first = {"KILL_AT": str(at)}
            if i % 2:
                first["KILL_TORN"] = "1"
            name = "at call %d of %d%s" % (at, found["calls"], ", torn" if i % 2 else "")
        again = [{"KILL_AT": str(chance.randrange(1, max(2, found["calls"] // 3)))}] if i % 4 == 3 else []
        yield name + (", again at call %s" % again[0]["KILL_AT"] if again else ""), [first] + again


def memory_in_use(server, what="VmRSS:"):
    with open("/proc/%d/status" % server.process.pid) as file:
        return next(int(line.split()[1]) for line in file if line.startswith(what))


def rests_after_work():
    """Of the memory that much work took, most goes back to the system when there is no more (sanitizers keep it)."""
    with open(harness.binary(), "rb") as file:
        if b"libasan" in file.read() or b"libtsan" in subprocess.run(["ldd", harness.binary()], capture_output=True).stdout:
            return
    with Workshop() as shop:
        make_table(shop)
        with take(shop, interval=1000) as server:
            equal(send(server, lines(1))[0], 200)
            before = memory_in_use(server)
            busy, rows = before, 1
            while busy < before + 35000:  # how much waits at once is by chance; some 10 MB are never given back
                with concurrent.futures.ThreadPoolExecutor(8) as pool:
                    answers = list(pool.map(lambda i: send(server, lines(*range(20000 * i, 20000 * i + 20000)))[0], range(30)))
                equal(set(answers), {200})
                busy, rows = memory_in_use(server, "VmHWM:"), rows + 600000
            committed(server, lines(2))
            wait_for(lambda: memory_in_use(server) < before + (busy - before) // 2)
        equal(len(ids(shop)), rows + 1)


def damaged_log():
    """A byte of an acknowledged record that is changed is told with file and offset; what was cut off at the end is passed."""
    with Workshop() as shop:
        make_table(shop)
        with take(shop, interval=60000) as server:
            for i in range(3):
                equal(send(server, lines(i), "k%d" % i)[0], 200)
            server.process.kill()
            server.process.wait()
            server.process.returncode = 0
        name = sorted(glob.glob(shop.path("log", "rows-*.log")))[-1]
        with open(name, "rb") as file:
            good = file.read()
        with open(name, "wb") as file:
            file.write(good.replace(b'"row 0"', b'"row 9"'))
        refused = shop.tarn("serve", "--listen", "127.0.0.1:0", "--intake", "log", check=False)
        assert refused.status != 0 and "damaged at offset" in refused.err and "rows-" in refused.err, str(refused)
        with open(name, "wb") as file:
            file.write(good + good[-50:])
        with take(shop) as server:
            equal(send(server, lines(1), "k1")[1]["repeated"], True)
            server.process.terminate()
            told = server.process.stderr.read()
            assert "%s is cut at offset %d: 50 bytes" % (os.path.basename(name), len(good)) in told, told
        equal(ids(shop), [0, 1, 2])


def damaged_keys():
    """A log of keys that was changed, cut or removed, and one of rows that is gone beside it: told, and nothing is taken twice."""
    with Workshop() as shop:
        make_table(shop)
        with take(shop) as server:
            for i in range(8):
                equal(send(server, lines(i), "k%d" % i)[0], 200)
            committed(server, lines(8))
        with take(shop):  # the rows' log is let go, and its keys are in the log of keys
            wait_for(lambda: len(glob.glob(shop.path("log", "rows-*.log"))) == 1)
        name = {what: sorted(glob.glob(shop.path("log", what + "-*.log"))) for what in ("rows", "keys")}
        full = [path for path in name["keys"] if os.path.getsize(path) > 200]
        equal((len(full), len(name["rows"])), (1, 1))
        with open(full[0], "rb") as file:
            good = file.read()
        os.rename(shop.path("log"), shop.path("good"))
        for harm in ("flip head", "flip record", "flip end", "cut", "cut to the head", "empty", "remove", "remove all", "no rows", "empty rows"):
            shutil.rmtree(shop.path("log"), ignore_errors=True)
            shutil.copytree(shop.path("good"), shop.path("log"))
            paths = name["rows"] if "rows" in harm else name["keys"] if harm.endswith("all") else full
            at = {"flip head": 20, "flip record": 150, "flip end": len(good) - 3, "cut": len(good) - 20, "cut to the head": 88}.get(harm, 0)
            for path in paths:
                if harm.startswith(("remove", "no")):
                    os.unlink(path)
                else:
                    with open(path, "r+b") as file:
                        if harm.startswith("flip"):
                            file.seek(at)
                            file.write(bytes([good[at] ^ 1]))
                        else:
                            file.truncate(at)
            refused = shop.tarn("serve", "--listen", "127.0.0.1:0", "--intake", "log", check=False)
            assert refused.status != 0 and ("damaged" in refused.err), harm + ": " + str(refused)
            if harm == "cut":
                assert "%s is cut at offset" % os.path.basename(full[0]) in refused.err, str(refused)
        shutil.rmtree(shop.path("log"))
        os.rename(shop.path("good"), shop.path("log"))
        with take(shop) as server:
            for i in range(8):
                equal(send(server, lines(i), "k%d" % i)[1]["repeated"], True)
        equal(ids(shop), list(range(9)))


def killed():
    """Kills of a workload whose calls were counted; each is a case of its own."""
    chance, found = random.Random(SEED), {"killed": 0}
    case("unharmed", unharmed, found)
    if "calls" in found:
        for name, kills in histories(found, RUNS, chance):
            case("killed " + name, history, found, kills)
        case("kills happened", happened, found, RUNS // 2)


def powerless():
    """The same with power cuts."""
    chance, found = random.Random(SEED + 1), {"killed": 0}
    case("unharmed", unharmed, found)
    if "calls" in found:
        n = -(-RUNS // 3)
        for i, (name, kills) in enumerate(histories(found, n, chance, timed=False)):
            seed = SEED * 100019 + i * 7
            case("power cut %s, seed %d" % (name, seed), history, found, kills, seed)
        case("cuts happened", happened, found, n // 2)


def log_is_full():
    log_cannot_be_written("write", errno.ENOSPC, 507)


def log_is_not_synced():
    log_cannot_be_written("sync", errno.EIO, 503)


def full_disks():
    """A full disk frees itself: what is committed goes, also from the file that is written to; and a start finds its way with no byte left."""
    with Workshop() as shop:
        make_table(shop)
        faults = Faults(shop)
        big = b"".join(b'{"id": %d, "s": "%s"}\n' % (i, b"x" * 100) for i in range(1000))
        with Server(shop, "--intake", "log", "--intake-interval", "20", env=faults.env) as server:
            committed(server, big)
            faults.set("write", errno.ENOSPC, "log/rows-000000000000")
            equal(send(server, lines(1000), "k1")[0], 507)
            wait_for(lambda: send(server, lines(1000), "k1")[0] == 200)  # in another file
            assert not os.path.exists(shop.path("log", "rows-000000000000.log")), "what nobody needs fills the disk"
            committed(server, lines(1001))
            faults.clear()
        with Server(shop, "--intake", "log", "--intake-interval", "60000", env=faults.env) as server:
            equal(send(server, lines(1002), "k2")[0], 200)
            server.process.kill()
            server.process.wait()
            server.process.returncode = 0
        faults.set("write", errno.ENOSPC, "log/rows-")
        with Server(shop, "--intake", "log", "--intake-interval", "20", env=faults.env) as server:
            wait_for(lambda: metrics(server)["tarn_intake_rows_committed_total"] == 1)
            equal([server.ask("GET", "/v1/namespaces/ns/tables/t")[0], send(server, lines(1003), "k3")[0]], [200, 507])
            equal(send(server, lines(1002), "k2")[1]["repeated"], True)
            faults.clear()
            equal(send(server, lines(1003), "k3")[0], 200)
            committed(server, lines(1004))
        equal(ids(shop), list(range(1005)))


CASES = [taken_and_there, wrong_requests, roles, many_clients, two_services, tables_change, renamed_beside_a_broken_one, log_is_full, full_disks, log_is_not_synced,
         table_cannot_be_written, ends_while_somebody_waits, too_much_waits, rests_after_work, damaged_log, damaged_keys, killed,
         powerless]


def main():
    harness.need("pyarrow", "pyiceberg")
    for fn in harness.chosen(CASES):
        if fn in (killed, powerless):  # each kill is a case of its own
            fn()
        else:
            case(fn.__name__, fn)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
