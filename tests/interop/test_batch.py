#!/usr/bin/env python3
"""Goal: batch commit: write results that clients send are in the table once, whoever sends them how often, over kills of the
server and lost answers; what is not true of them is refused; `tarn ingest` uses it by itself.
Method: files made by pyarrow are sent by many threads; the server is killed while it commits and clients send again; a proxy loses
answers; wrong requests differ from a good one in one thing. Tables are read back by PyIceberg and the command.

usage: test_batch.py [CASE ...]    BATCH_KILLS: how often the server is killed (default 12)"""
import concurrent.futures
import http.client
import json
import os
import random
import socket
import sys
import threading
import time
import uuid

import harness
from harness import Workshop, equal
from test_serve import Server

KILLS = int(os.environ.get("BATCH_KILLS", "12"))
FIELDS = [{"id": 1, "name": "id", "required": False, "type": "long"}, {"id": 2, "name": "s", "required": False, "type": "string"}]
TABLE = "/v1/namespaces/ns/tables/t"
RESULTS = TABLE + "/write-results"


def make_table(server, **more):
    server.ask("POST", "/v1/namespaces", {"namespace": ["ns"]})
    schema = {"type": "struct", "schema-id": 0, "fields": FIELDS}
    status, answer, _ = server.ask("POST", "/v1/namespaces/ns/tables", dict({"name": "t", "schema": schema}, **more))
    equal(status, 200)
    return answer["metadata"]["location"]


def make_file(location, values, partition=()):
    import pyarrow as pa
    import pyarrow.parquet as pq
    path = "%s/data/%s.parquet" % (location, uuid.uuid4())
    os.makedirs(os.path.dirname(path), exist_ok=True)
    schema = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"}),
                        pa.field("s", pa.string(), metadata={"PARQUET:field_id": "2"})])
    pq.write_table(pa.table({"id": values, "s": ["row %d" % v for v in values]}, schema=schema), path)
    return {"content": "data", "file-path": path, "file-format": "parquet", "spec-id": 0, "partition": list(partition),
            "record-count": len(values), "file-size-in-bytes": os.path.getsize(path)}


def append(file, commit_id, **more):
    return dict({"kind": "append", "commit-id": commit_id, "share": True, "data-files": [file]}, **more)


def ids(server):
    return sorted(server.catalog().load_table("ns.t").scan().to_arrow()["id"].to_pylist())


def once_each():
    """Together, again, and again after a restart: once; those that waited together share snapshots."""
    with Workshop() as shop:
        with Server(shop) as server:
            location = make_table(server)
            bodies = [append(make_file(location, [i]), "commit-%d" % i) for i in range(60)]
            with concurrent.futures.ThreadPoolExecutor(20) as pool:
                first = list(pool.map(lambda b: server.ask("POST", RESULTS, b), bodies))
                second = list(pool.map(lambda b: server.ask("POST", RESULTS, b), bodies))
            equal({a[0] for a in first + second}, {200})
            assert not any(a[1]["repeated"] for a in first) and all(a[1]["repeated"] for a in second)
            snapshots = [a[1]["snapshot-id"] for a in first]
            body = {k: v for k, v in bodies[7].items() if k != "commit-id"}
            status, answer, _ = server.ask("POST", RESULTS, body, **{"Idempotency-Key": "commit-7"})
            equal((status, answer["snapshot-id"]), (200, snapshots[7]))
            equal(server.ask("POST", RESULTS, body, **{"Idempotency-Key": "two words"})[0], 400)
            equal([a[1]["snapshot-id"] for a in second], snapshots)
            assert len(set(snapshots)) < 60, "no two appends shared a snapshot"
            equal(ids(server), list(range(60)))
            equal(sorted(r["id"] for r in shop.cat("ns.t").rows), list(range(60)))
        with Server(shop) as server:
            for i in (0, 30, 59):
                status, answer, _ = server.ask("POST", RESULTS, bodies[i])
                equal((status, answer["repeated"], answer["snapshot-id"]), (200, True, snapshots[i]))
                status, answer, _ = server.ask("POST", RESULTS + "?resent=true", bodies[i])
                equal((status, answer["snapshot-id"]), (200, snapshots[i]))
            equal(ids(server), list(range(60)))


def others_meet_them():
    """PyIceberg appends at the same time; unshared appends have a snapshot each."""
    with Workshop() as shop, Server(shop) as server:
        import pyarrow as pa
        location = make_table(server)
        theirs = server.catalog()

        def write(i):
            if i % 10 == 0:
                theirs.load_table("ns.t").append(pa.table({"id": [i], "s": ["theirs"]}))
                return None
            return server.ask("POST", RESULTS, append(make_file(location, [i]), "c-%d" % i, share=False))

        with concurrent.futures.ThreadPoolExecutor(10) as pool:
            answers = [a for a in pool.map(write, range(40)) if a is not None]
        equal({a[0] for a in answers}, {200})
        equal(len({a[1]["snapshot-id"] for a in answers}), len(answers))
        equal(ids(server), list(range(40)))


def two_servers():
    """Two leaders on one database: what one committed the other knows, and neither loses anything."""
    with Workshop() as shop, Server(shop) as one, Server(shop) as two:
        location = make_table(one)

        def write(i):
            first, second = (one, two) if i % 2 else (two, one)
            body = append(make_file(location, [i]), "t-%d" % i, share=i % 3 != 0)
            status, answer, _ = first.ask("POST", RESULTS, body)
            equal(status, 200)
            status, again, _ = second.ask("POST", RESULTS + "?resent=true", body)
            equal((status, again["snapshot-id"]), (200, answer["snapshot-id"]))

        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            for done in [pool.submit(write, i) for i in range(80)]:
                done.result()
        equal(ids(one), list(range(80)))
        equal(ids(two), list(range(80)))


def lies_are_refused():
    with Workshop() as shop, Server(shop) as server:
        spec = {"spec-id": 0, "fields": [{"source-id": 1, "field-id": 1000, "transform": "bucket[4]", "name": "b"}]}
        location = make_table(server, **{"partition-spec": spec})
        good = make_file(location, [1], partition=[2])
        outside = dict(good, **{"file-path": shop.path("elsewhere.parquet")})
        with open(outside["file-path"], "wb") as file, open(good["file-path"], "rb") as bytes_:
            file.write(bytes_.read())
        bad_files = [
            outside, dict(good, **{"file-path": location + "/data/../../../../elsewhere.parquet"}),
            dict(good, **{"file-path": location + "/data/none.parquet"}), dict(good, **{"file-path": location + "-2/x.parquet"}),
            dict(good, **{"file-path": ""}), dict(good, **{"record-count": -1}), dict(good, **{"record-count": "1"}),
            dict(good, **{"file-size-in-bytes": good["file-size-in-bytes"] + 1}), dict(good, partition=[]), dict(good, partition=["x"]),
            dict(good, partition=[1, 2]), dict(good, content="position-deletes"), dict(good, content="nothing"),
            dict(good, **{"file-format": "other"}), dict(good, **{"equality-ids": [1]}),
            dict(good, **{"value-counts": {"keys": [77], "values": [1]}}), dict(good, **{"value-counts": {"keys": [1], "values": [-1]}}),
            dict(good, **{"value-counts": {"keys": [1, 2], "values": [1]}}), dict(good, **{"lower-bounds": {"keys": [1], "values": ["00"]}}),
            dict(good, **{"lower-bounds": {"keys": [1], "values": ["zz"]}}), dict(good, **{"lower-bounds": {"keys": [9], "values": ["00"]}}),
        ]
        bad = [append(f, "x") for f in bad_files] + [
            append(good, "x", kind="nothing"), append(good, ""), append(good, "two\nlines"), append(good, "x" * 300),
            append(good, "x", summary={"operation": "delete"}), append(good, "x", summary={"tarn.commit-id": "y"}),
            append(good, "x", summary={"a": 1}), append(good, "x", share="yes"), append(good, "x", fence={"of": {}}),
            append(good, "x", **{"data-files": {}}), append(good, "x", **{"delete-files": [good]}),
            append(good, "x", kind="row-delta", **{"base-snapshot-id": "x"})]
        other = make_file(location, [1], partition=[2])
        import pyarrow as pa
        import pyarrow.parquet as pq
        for name, kind, field in (("id", pa.string(), "1"), ("x", pa.int64(), "9"), ("s", pa.int32(), "2")):
            path = location + "/data/foreign-%s-%s.parquet" % (name, field)
            pq.write_table(pa.table({name: pa.array([None], kind)}, schema=pa.schema(
                [pa.field(name, kind, metadata={"PARQUET:field_id": field})])), path)
            bad.append(append(dict(other, **{"file-path": path, "file-size-in-bytes": os.path.getsize(path)}), "x"))
        with open(location + "/data/junk.parquet", "wb") as file:
            file.write(b"PAR1" + b"x" * 100 + b"PAR1")
        bad.append(append(dict(other, **{"file-path": location + "/data/junk.parquet", "file-size-in-bytes": 108}), "x"))
        bad.append(append(dict(other, **{"record-count": 2}), "x"))
        for body in bad:
            status, answer, _ = server.ask("POST", RESULTS, body)
            assert status == 400 and answer["error"]["type"] == "BadRequestException", "%s: %d %s" % (body, status, answer)
        for body in (append(dict(good, **{"spec-id": 5}), "x"), append(good, "x", **{"table-uuid": "another"})):
            equal(server.ask("POST", RESULTS, body)[0], 409)
        equal(server.ask("POST", "/v1/namespaces/ns/tables/none/write-results", append(good, "x"))[0], 404)
        equal(server.ask("POST", RESULTS, "{")[0], 400)
        equal(server.ask("POST", RESULTS, append(good, "x"))[0], 200)
        equal(ids(server), [1])


def send_until_taken(address, body, stop):
    """As a client should: the same body until an answer is clear."""
    resent = ""
    while not stop.is_set():
        try:
            connection = http.client.HTTPConnection(address[0], timeout=60)
            connection.request("POST", RESULTS + resent, json.dumps(body))
            answer = connection.getresponse()
            text = answer.read()
            connection.close()
            if answer.status < 500:
                return answer.status, json.loads(text)
        except (OSError, http.client.HTTPException):
            time.sleep(0.05)
        resent = "?resent=true"
    raise AssertionError("it was never taken")


def killed_servers():
    """The server dies again and again in the middle of groups; every commit that was acknowledged is there once."""
    with Workshop() as shop:
        rng = random.Random(7)
        with Server(shop) as server:
            location = make_table(server)
        stop = threading.Event()
        address = [None]
        taken, n, lock = [], [0], threading.Lock()
        deadline = time.monotonic() + 200

        def write():
            while not stop.is_set():
                with lock:
                    i = n[0]
                    n[0] += 1
                body = append(make_file(location, [i]), "k-%d" % i, share=i % 5 != 0)
                status, answer = send_until_taken(address, body, halt)
                equal(status, 200)
                with lock:
                    taken.append((i, answer["snapshot-id"]))

        halt = threading.Event()
        server = Server(shop)
        address[0] = server.url.split("//")[1]
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            writers = [pool.submit(write) for _ in range(12)]
            for _ in range(KILLS):
                time.sleep(rng.uniform(0.05, 0.6))
                server.process.kill()
                server.process.communicate()
                server = Server(shop)
                address[0] = server.url.split("//")[1]
                if time.monotonic() > deadline:
                    break
            time.sleep(0.3)
            stop.set()
            timer = threading.Timer(harness.SECONDS, halt.set)
            timer.start()
            for writer in writers:
                writer.result()
            timer.cancel()
        with server:
            equal(ids(server), sorted(i for i, _ in taken))
            equal(len(taken), n[0])
        equal(sorted(r["id"] for r in shop.cat("ns.t").rows), list(range(n[0])))
        shop.tarn("check", "ns.t")


class LossyProxy:
    """Forwards to a server, and drops the first answers to write results: before, or after it asked."""

    def __init__(self, address, losses):
        self.address, self.losses, self.lock = address, list(losses), threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.lost = 0
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.relay, args=(client,), daemon=True).start()

    def relay(self, client):
        try:
            file = client.makefile("rb")
            while True:
                head = []
                while not head or head[-1] != b"\r\n":
                    line = file.readline()
                    if not line:
                        return
                    head.append(line)
                length = next((int(h.split(b":")[1]) for h in head if h.lower().startswith(b"content-length:")), 0)
                body = file.read(length)
                method, path, _ = head[0].decode().split()
                loss = None
                if "write-results" in path:
                    with self.lock:
                        loss = self.losses.pop(0) if self.losses else None
                        self.lost += loss is not None
                if loss == "request":
                    return
                connection = http.client.HTTPConnection(self.address, timeout=harness.SECONDS)
                headers = dict(h.decode().rstrip().split(": ", 1) for h in head[1:-1])
                connection.request(method, path, body or None, headers)
                answer = connection.getresponse()
                text = answer.read()
                if loss == "answer":
                    return
                out = "HTTP/1.1 %d X\r\n" % answer.status
                out += "".join("%s: %s\r\n" % h for h in answer.getheaders() if h[0].lower() not in ("content-length", "connection"))
                client.sendall(out.encode() + b"Content-Length: %d\r\n\r\n" % len(text) + text)
        finally:
            client.close()


def ingest_by_itself():
    """`tarn ingest` sends its checkpoints as write results; lost requests and answers change nothing."""
    with Workshop() as shop, Server(shop, "--access-log", "log.ndjson") as server:
        make_table(server)
        proxy = LossyProxy(server.url.split("//")[1], ["answer", "request", None, "answer", "answer", None, "request"])
        shop.write("in.ndjson", "".join('{"id": %d, "s": "x"}\n' % i for i in range(200)))
        shop.tarn("-c", proxy.url, "ingest", "ns.t", "in.ndjson", "--state", "state", "--checkpoint-rows", "40")
        equal(proxy.lost, 5)
        equal(ids(server), list(range(200)))
        equal(len(server.catalog().load_table("ns.t").snapshots()), 5)
        with open(shop.path("log.ndjson")) as file:
            paths = [json.loads(line)["path"] for line in file]
        assert RESULTS in paths and paths.count(TABLE) > 0, paths


CASES = [once_each, others_meet_them, two_servers, lies_are_refused, killed_servers, ingest_by_itself]


def main():
    harness.need("pyarrow", "pyiceberg")
    return harness.run_cases(CASES)


if __name__ == "__main__":
    sys.exit(main())
