#!/usr/bin/env python3
"""Goal: with `tarn.compact-before-commit` the small files of commits that wait together are never in the table: it has few files, every
row is there once, and the originals are gone, but only once it is certain that nobody needs them.
Method: many writers send small files of pyarrow and of the command; tables are read back by PyIceberg, DuckDB and the command, and their
folders are looked at; the server is killed while it works and clients send again.

usage: test_compact.py [CASE ...]    COMPACT_KILLS: how often the server is killed (default 8)"""
import concurrent.futures
import glob
import os
import random
import sys
import threading
import time
import uuid

import harness
from harness import Workshop, equal
from test_batch import FIELDS, RESULTS, append, ids, make_file, send_until_taken
from test_serve import Server

KILLS = int(os.environ.get("COMPACT_KILLS", "8"))
POLICY = {"tarn.compact-before-commit": "true", "tarn.compact-before-commit.max-ms": "600000"}  # the time it has is no matter here
PARTS = 4


def make_table(server, partitioned=False, name="t", before="true", **properties):
    server.ask("POST", "/v1/namespaces", {"namespace": ["ns"]})
    body = {"name": name, "schema": {"type": "struct", "schema-id": 0, "fields": FIELDS},
            "properties": dict(POLICY if before else {}, **{"tarn.compact-before-commit." + k.replace("_", "-"): v for k, v in properties.items()})}
    if partitioned:
        body["partition-spec"] = {"spec-id": 0, "fields": [{"source-id": 1, "field-id": 1000, "transform": "truncate[1000]", "name": "p"}]}
    status, answer, _ = server.ask("POST", "/v1/namespaces/ns/tables", body)
    equal(status, 200)
    return answer["metadata"]["location"]


def send_together(server, bodies, threads=64):
    """While one commit is at work the others wait, and so make groups."""
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        answers = list(pool.map(lambda b: server.ask("POST", RESULTS, b), bodies))
    equal({a[0] for a in answers}, {200})
    return [a[1] for a in answers]


def files_in(location):
    return set(glob.glob(location + "/data/**/*.parquet", recursive=True) + glob.glob(location + "/data/**/*.avro", recursive=True))


def live_files(server):
    return {t.file.file_path for t in server.catalog().load_table("ns.t").scan().plan_files()}


def compacted(server):
    return sum(int(s.summary.additional_properties.get("tarn.compacted-files", 0)) for s in server.catalog().load_table("ns.t").snapshots())


def many_writers():
    """64 writers, four partitions: few files, every row once, no original left, told by metrics and summaries."""
    with Workshop() as shop:
        with Server(shop) as server:
            location = make_table(server, True)
            n = 64 * 4
            bodies = [append(make_file(location, [i % PARTS * 1000 + i], [i % PARTS * 1000 + i - (i % 1000)]), "w-%d" % i) for i in range(n)]
            sent = {b["data-files"][0]["file-path"] for b in bodies}
            answers = send_together(server, bodies)
            want = sorted(b for i in range(n) for b in [i % PARTS * 1000 + i])
            equal(ids(server), want)
            live = live_files(server)
            commits = len({a["snapshot-id"] for a in answers})
            assert len(live) <= PARTS * commits and len(live) < n, "%d files of %d commits" % (len(live), commits)
            equal(files_in(location), live)
            equal(compacted(server), len(sent - live))
            metadata = server.catalog().load_table("ns.t").metadata_location
            text = server.ask_text("/metrics", "")
            assert 'tarn_compacted_files_total{side="in"} %d\n' % len(sent - live) in text, text
            assert 'tarn_compacted_files_total{side="out"} %d\n' % len(live - sent) in text, text
            again = send_together(server, bodies)
            assert all(a["repeated"] for a in again)
            equal([a["snapshot-id"] for a in again], [a["snapshot-id"] for a in answers])
        got = harness.duckdb_connection().execute("select id from iceberg_scan(?)", [metadata]).fetchall()
        equal(sorted(r[0] for r in got), want)
        with Server(shop) as server:
            for body in bodies[::50]:
                status, answer, _ = server.ask("POST", RESULTS, body)
                equal((status, answer["repeated"]), (200, True))
        shop.tarn("check", "--deep", "ns.t")


def several_tables():
    """Leaders of several tables merge at the same time."""
    with Workshop() as shop, Server(shop) as server:
        names = ["t%d" % i for i in range(6)]
        places = {name: make_table(server, name=name) for name in names}
        work = [(names[i % 6], append(make_file(places[names[i % 6]], [i]), "s-%d" % i)) for i in range(180)]
        with concurrent.futures.ThreadPoolExecutor(48) as pool:
            answers = list(pool.map(lambda w: server.ask("POST", RESULTS.replace("/t/", "/%s/" % w[0]), w[1]), work))
        equal({a[0] for a in answers}, {200})
        for k, name in enumerate(names):
            table = server.catalog().load_table("ns." + name)
            equal(sorted(table.scan().to_arrow()["id"].to_pylist()), list(range(k, 180, 6)))
            equal(files_in(places[name]), {t.file.file_path for t in table.scan().plan_files()})
            shop.tarn("check", "--deep", "ns." + name)


def two_servers():
    """Two leaders on one database, and every request goes to both."""
    with Workshop() as shop, Server(shop) as one, Server(shop) as two:
        location = make_table(one)

        def write(i):
            first, second = (one, two) if i % 2 else (two, one)
            body = append(make_file(location, [i]), "t-%d" % i)
            status, answer, _ = first.ask("POST", RESULTS, body)
            equal(status, 200)
            status, again, _ = second.ask("POST", RESULTS + "?resent=true", body)
            equal((status, again["repeated"], again["snapshot-id"]), (200, True, answer["snapshot-id"]))

        with concurrent.futures.ThreadPoolExecutor(24) as pool:
            for done in [pool.submit(write, i) for i in range(96)]:
                done.result()
        equal(ids(one), list(range(96)))
        equal(files_in(location), live_files(two))
        assert compacted(one) > 0
        shop.tarn("check", "--deep", "ns.t")


def files_are_sent_once():
    """What comes again under another id is refused by name, by the server that took it, by another, after a restart, and where both are
    sent at once: rows are there once, and no file that the table names is gone."""
    with Workshop() as shop:
        with Server(shop) as server:
            location = make_table(server, before=None)
            old = [make_file(location, [i]) for i in range(4)]
            for i, file in enumerate(old[:2]):
                equal(server.ask("POST", RESULTS, append(file, "old-%d" % i))[0], 200)
            change = {"requirements": [], "updates": [{"action": "set-properties", "updates": POLICY}]}
            equal(server.ask("POST", "/v1/namespaces/ns/tables/t", change)[0], 200)
        with Server(shop) as one, Server(shop) as two:
            both = append(old[0], "new-0")
            both["data-files"].append(old[2])
            for server, body in ((one, both), (two, append(old[1], "new-1")), (two, append(dict(old[1], **{
                    "file-path": "file:" + old[1]["file-path"]}), "new-2", share=False))):
                status, answer, _ = server.ask("POST", RESULTS, body)
                assert status == 400 and body["data-files"][0]["file-path"] + " is in the table already" in answer["error"]["message"], answer
            equal(server.ask("POST", RESULTS, append(old[0], "old-0"))[1]["repeated"], True)
            together = append(old[2], "new-3")
            together["data-files"].append(old[3])
            equal(one.ask("POST", RESULTS, together)[0], 200)
            assert not os.path.exists(old[2]["file-path"])
            status, answer, _ = two.ask("POST", RESULTS, append(old[3], "new-4"))
            assert status == 400 and old[3]["file-path"] in answer["error"]["message"], answer
            files = [make_file(location, [i]) for i in range(4, 64)]
            work = [(server, append(file, name + file["file-path"][-20:])) for file in files for server, name in ((one, "x"), (two, "y"))]
            with concurrent.futures.ThreadPoolExecutor(40) as pool:
                answers = list(pool.map(lambda w: w[0].ask("POST", RESULTS, w[1])[0], work))
            for i in range(0, len(answers), 2):
                equal(sorted(answers[i:i + 2]), [200, 400])
            equal(ids(one), list(range(64)))
            equal(files_in(location), live_files(two))
            assert {f["file-path"] for f in old[:2]} <= live_files(two)
            assert compacted(one) > 2
        shop.tarn("check", "--deep", "ns.t")


def keyed_streams():
    """Upserts whose deletes name files by position, and by equality without a state, while others send small files that are merged: what
    comes with deletes is never merged, since they name its files, and every key has its last value."""
    with Workshop() as shop, Server(shop) as server:
        for kind, state in (("position", ["--state", "state"]), ("equality", [])):
            name = "k" + kind
            location = make_table(server, name=name)
            stop, sent = threading.Event(), []

            def send():
                while not stop.is_set():
                    files = [make_file(location, [1000 + len(sent) * 2 + k]) for k in range(2)]
                    body = append(files[0], "%s-%d" % (name, len(sent)))
                    body["data-files"].append(files[1])
                    equal(server.ask("POST", RESULTS.replace("/t/", "/%s/" % name), body)[0], 200)
                    sent.append(body)

            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                sender = pool.submit(send)
                for turn in range(3):
                    shop.write("in.ndjson", "".join('{"id": %d, "s": "%s %d"}\n' % (i % 40, "v%d" % turn, i) for i in range(120)))
                    shop.tarn("-c", server.url, "ingest", "ns." + name, "in.ndjson", "--upsert", "--key", "id", "--deletes", kind,
                              "--checkpoint-rows", "30", *(["--state", "state-%d" % turn] if state else []))
                stop.set()
                sender.result()
            rows = {r["id"]: r["s"] for r in shop.cat("ns." + name).rows}
            want = {i: "v2 %d" % (80 + i) for i in range(40)}
            want.update({1000 + i: "row %d" % (1000 + i) for i in range(2 * len(sent))})
            equal(rows, want)
            equal(shop.cat("ns." + name).rows.__len__(), len(want))
            if kind == "position":
                equal(sorted(server.catalog().load_table("ns." + name).scan().to_arrow()["id"].to_pylist()), sorted(want))
            assert not any(os.path.exists(f["file-path"]) for b in sent for f in b["data-files"])
            shop.tarn("check", "--deep", "ns." + name)


def lies_are_refused():
    """What only reading shows: rows of another partition, and an Avro file with other rows than were said."""
    import fastavro
    with Workshop() as shop, Server(shop) as server:
        location = make_table(server, True)
        schema = {"type": "record", "name": "t", "fields": [
            {"name": "id", "type": ["null", "long"], "field-id": 1}, {"name": "s", "type": ["null", "string"], "field-id": 2}]}

        def make_avro(values, said):
            path = "%s/data/%s.avro" % (location, uuid.uuid4())
            with open(path, "wb") as file:
                fastavro.writer(file, schema, [{"id": v, "s": "avro"} for v in values])
            return {"content": "data", "file-path": path, "file-format": "avro", "spec-id": 0, "partition": [0], "record-count": said,
                    "file-size-in-bytes": os.path.getsize(path)}

        good = [append(dict(make_file(location, [i], [0]), **{"sort-order-id": 0}), "g-%d" % i) for i in range(2)]
        both = append(make_avro([10, 11], 2), "a")
        both["data-files"].append(make_avro([12], 1))
        good[0]["data-files"].append(make_file(location, [2], [0]))
        wrong = append(make_file(location, [1500], [0]), "w")
        wrong["data-files"].append(make_file(location, [3], [0]))
        short = append(make_avro([20], 2), "s")
        short["data-files"].append(make_avro([21], 1))
        for body, text in ((wrong, "partition"), (short, "1 rows")):
            status, answer, _ = server.ask("POST", RESULTS, body)
            assert status == 400 and text in answer["error"]["message"], answer
            assert all(os.path.exists(f["file-path"]) for f in body["data-files"])
        send_together(server, good + [both])
        equal(ids(server), [0, 1, 2, 10, 11, 12])
        assert not os.path.exists(both["data-files"][0]["file-path"])
        equal(server.ask("POST", RESULTS, append(make_file(location, [9], [0]), "x", summary={"tarn.compacted-files": "1"}))[0], 400)
        shop.tarn("check", "--deep", "ns.t")


def killed_servers():
    """The server dies again and again while it merges and commits; clients send again: rows are there once, nothing is missing."""
    with Workshop() as shop:
        rng = random.Random(11)
        with Server(shop) as server:
            location = make_table(server, True)
        stop, halt = threading.Event(), threading.Event()
        address, taken, n, lock = [None], [], [0], threading.Lock()
        deadline = time.monotonic() + max(150, 3 * KILLS)

        def write():
            while not stop.is_set():
                with lock:
                    i = n[0]
                    n[0] += 1
                body = append(make_file(location, [i], [i - i % 1000]), "k-%d" % i)
                status, answer = send_until_taken(address, body, halt)
                assert status == 200, answer
                with lock:
                    taken.append(i)

        server = Server(shop)
        address[0] = server.url.split("//")[1]
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            writers = [pool.submit(write) for _ in range(16)]
            for kill in range(KILLS):
                want = len(taken) + rng.randrange(5, 60)  # it dies at work
                while len(taken) < want and time.monotonic() < deadline:
                    time.sleep(0.01)
                server.process.kill()
                server.process.communicate()
                server = Server(shop)
                address[0] = server.url.split("//")[1]
                if time.monotonic() > deadline:
                    break
            stop.set()
            timer = threading.Timer(harness.SECONDS, halt.set)
            timer.start()
            for writer in writers:
                writer.result()
            timer.cancel()
        with server:
            equal(ids(server), list(range(n[0])))
            assert compacted(server) > 0
            assert live_files(server) <= files_in(location)
        equal(sorted(r["id"] for r in shop.cat("ns.t").rows), list(range(n[0])))
        shop.tarn("check", "--deep", "ns.t")


CASES = [many_writers, several_tables, two_servers, files_are_sent_once, keyed_streams, lies_are_refused, killed_servers]


def main():
    harness.need("pyarrow", "pyiceberg", "duckdb")
    return harness.run_cases(CASES)


if __name__ == "__main__":
    sys.exit(main())
