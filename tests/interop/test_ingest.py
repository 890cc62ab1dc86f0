#!/usr/bin/env python3
"""Goal: `tarn ingest` of streams: change streams end in the state that a dictionary has, whatever kind of deletes; a killed, stopped
or restarted command goes on with nothing lost or doubled, bad rows set aside once too; followed files and folders are read as they
grow; tables evolve; metrics are told; Kafka topics are read over restarts. Bad input ends with an error that names it.
Method: small generated inputs; rows are read back by the command (and DuckDB where merge-on-read is its own).

usage: test_ingest.py [CASE ...]    KAFKA_ENGINE: the tool that starts a mock cluster (default ../shared/engines/engine)"""
import http.server
import importlib.util
import io
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import harness
from harness import SECONDS, Workshop, case, equal, must_refuse, wait_for

ENGINE = os.environ.get("KAFKA_ENGINE") or os.path.join(harness.SHARED, "engines", "engine")


def changes(n, keys, seed):
    """n changes of rows {id, v} over keys, each (op, before, after), and the end state."""
    rng = random.Random(seed)
    state = {}
    out = []
    for i in range(n):
        key = rng.randrange(keys)
        before = state.get(key)
        if before is None:
            after = {"id": key, "v": "v%d" % i}
            out.append(("c", None, after))
        elif rng.random() < 0.3:
            after = None
            out.append(("d", before, None))
        else:
            after = {"id": key, "v": "v%d" % i}
            out.append(("u", before, after))
        if after is None:
            del state[key]
        else:
            state[key] = after
    return out, sorted(state.values(), key=lambda r: r["id"])


def lines(rows):
    return "".join(json.dumps(r) + "\n" for r in rows)


def envelopes(stream):
    return lines({"before": b, "after": a, "op": op, "source": {"ts_ms": 1, "x": [1, 2]}} for op, b, a in stream)


def with_op(stream, words):
    return lines(dict(a or b, op=words[op]) for op, b, a in stream)


def write(shop, name, text, mode="w"):
    with open(shop.path(name), mode) as file:
        file.write(text)


def table(shop, name, *options):
    return sorted(shop.cat(name, *options).rows, key=lambda r: r["id"])


def change_streams():
    stream, end = changes(400, 40, 1)
    with Workshop() as shop:
        write(shop, "d.json", envelopes(stream))
        write(shop, "o.ndjson", with_op(stream, {"c": "I", "u": "U", "d": "D"}))
        write(shop, "p.ndjson", with_op(stream, {"c": "c", "u": "+U", "d": "-D"}))
        for deletes in ("equality", "position", "vector"):
            for name, options in (("d.json", ["--format", "debezium-json"]), ("o.ndjson", ["--op-column", "op", "--upsert"]),
                                  ("p.ndjson", ["--op-column", "op", "--upsert"])):
                t = "%s.%s" % (deletes, name[0])
                shop.tarn("ingest", t, name, "--create", "--key", "id", "--deletes", deletes, "--checkpoint-rows", "90", "--state",
                          "st-" + t, *options)
                equal(table(shop, t), end)
                described = json.loads(shop.tarn("describe", t, "--json").out)
                equal(described["properties"]["tarn.row-deletes"], deletes)


def upserts():
    with Workshop() as shop:
        write(shop, "a.csv", "id,v\n1,a\n2,b\n1,c\n")
        write(shop, "b.csv", "id,v\n2,d\n3,e\n")
        shop.tarn("ingest", "ns.t", "a.csv", "--create", "--upsert", "--key", "id", "--deletes", "vector", "--state", "st")
        shop.tarn("ingest", "ns.t", "b.csv", "--upsert", "--state", "st2")
        equal(table(shop, "ns.t"), [{"id": 1, "v": "c"}, {"id": 2, "v": "d"}, {"id": 3, "v": "e"}])


def killed_and_started_again():
    """Killed at random times; every row once, every bad row set aside once."""
    rng = random.Random(7)
    with Workshop() as shop:
        os.mkdir(shop.path("in"))
        want = []
        for i in range(40):
            rows = [{"id": i * 1000 + k, "v": "x" * 50} for k in range(1000)]
            want += [r["id"] for r in rows]
            write(shop, "in/%02d.ndjson" % i, lines(rows[:500]) + "bad %d\n" % i + lines(rows[500:]))
        command = [harness.binary(), "ingest", "ns.t", "in", "--create", "--state", "st", "--checkpoint-rows", "3000", "--rejects", "bad.ndjson", "-q",
                   "--no-sync"]
        ended = False
        for _ in range(29):
            process = subprocess.Popen(command, cwd=shop.folder, stderr=subprocess.PIPE)
            time.sleep(rng.random() * 0.5)
            if process.poll() is not None:
                assert process.returncode == 0, process.stderr.read()
                ended = True
                break
            process.kill()
            process.wait()
        if not ended:
            shop.tarn(*command[1:])
        equal(sorted(r["id"] for r in shop.cat("ns.t").rows), want)
        with open(shop.path("bad.ndjson")) as file:
            equal(sorted(json.loads(line)["row"] for line in file), sorted("bad %d" % i for i in range(40)))


def follow():
    with Workshop() as shop:
        write(shop, "log", lines({"id": i} for i in range(5)))
        shop.tarn("ingest", "ns.t", "log", "--create", "--format", "ndjson", "--schema", "id long")
        shop.tarn("delete", "ns.t", "--where", "id >= 0")
        command = [harness.binary(), "ingest", "ns.t", "log", "--format", "ndjson", "--follow", "--state", "st", "--checkpoint-interval", "200ms"]
        process = subprocess.Popen(command, cwd=shop.folder, stderr=subprocess.PIPE, text=True)
        count = lambda: len(shop.cat("ns.t").rows)
        wait_for(lambda: count() == 5)
        write(shop, "log", lines([{"id": 5}]) + '{"id"', "a")
        wait_for(lambda: count() == 6)
        write(shop, "log", ":6}\n", "a")
        os.rename(shop.path("log"), shop.path("log.1"))
        write(shop, "log.1", lines([{"id": 7}]), "a")
        wait_for(lambda: count() == 8)
        write(shop, "log", lines([{"id": 8}]))
        wait_for(lambda: count() == 9)
        write(shop, "log", lines([{"id": 9}]), "a")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=SECONDS)
        equal(process.returncode, 0)
        write(shop, "log", lines([{"id": 10}]), "a")
        process = subprocess.Popen(command, cwd=shop.folder, stderr=subprocess.PIPE, text=True)
        wait_for(lambda: count() == 11)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=SECONDS)
        equal(sorted(r["id"] for r in shop.cat("ns.t").rows), list(range(11)))


def rotated_and_rotated():
    """A followed file that is rotated more than once between two looks, or was cut before, is read to its end, and so are those between."""
    def rotate(shop, log, by_date):
        """As logrotate does it: numbers move up, dates are added."""
        if by_date:
            os.rename(shop.path(log), shop.path("%s-20260101-%d" % (log, len(os.listdir(shop.folder)))))
            return
        n = 1
        while os.path.exists(shop.path("%s.%d" % (log, n))):
            n += 1
        for i in range(n, 0, -1):
            os.rename(shop.path("%s.%d" % (log, i - 1) if i > 1 else log), shop.path("%s.%d" % (log, i)))

    for stopped, cut, link, by_date in ((True, False, False, False), (True, True, False, True), (False, False, False, True), (False, True, True, False),
                                        (True, False, True, False)):
        with Workshop() as shop:
            shop.tarn("create", "ns.t", "id long")
            n = 0

            def more(count=3):
                nonlocal n
                write(shop, log, lines({"id": i} for i in range(n, n + count)), "a")
                n += count
                time.sleep(0.02)  # file systems tell times by ticks

            log = "app.log"
            write(shop, log + ".1", lines([{"id": 1000}]))  # of before
            write(shop, log + ".gz", "no rows")
            write(shop, log + "-notes", "no rows")
            time.sleep(0.02)
            if link:
                os.mkdir(shop.path("d"))
                log = "d/app.log"
                write(shop, log, "")
                os.symlink("d/app.log", shop.path("app.log"))
            command = [harness.binary(), "ingest", "ns.t", "app.log", "--format", "ndjson", "--follow", "--state", "st", "--checkpoint-interval", "100ms"]
            start = lambda: subprocess.Popen(command, cwd=shop.folder, stderr=subprocess.PIPE, text=True)
            ids = lambda: [r["id"] for r in shop.cat("ns.t").rows]
            more(10)
            process = start()
            wait_for(lambda: len(ids()) == n)
            if cut:
                write(shop, log, "")
                time.sleep(0.5)
                more()
                wait_for(lambda: len(ids()) == n)
            if stopped:
                process.send_signal(signal.SIGINT)
                equal((process.communicate(timeout=SECONDS)[1].count("error"), process.returncode), (0, 0))
            else:
                process.send_signal(signal.SIGSTOP)  # its looks are far apart
            more()
            for _ in range(3):
                rotate(shop, log, by_date)
                more()
            process.send_signal(signal.SIGCONT)
            process = start() if stopped else process
            wait_for(lambda: process.poll() is not None or len(ids()) >= n)
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=SECONDS)[1]
            equal(process.returncode, 0)
            equal(sorted(ids()), list(range(n)))


def a_slow_pipe_is_committed_meanwhile():
    with Workshop() as shop:
        process = subprocess.Popen([harness.binary(), "ingest", "ns.t", "-", "--format", "ndjson", "--create", "--checkpoint-interval", "100ms"],
                                   cwd=shop.folder, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        process.stdin.write(lines({"id": i, "text": "x" * 100} for i in range(3)))
        process.stdin.flush()
        wait_for(lambda: shop.tarn("cat", "ns.t", check=False).out.count("\n") == 3)
        process.stdin.write(lines([{"id": 3, "text": "y"}]))
        process.communicate(timeout=SECONDS)
        equal(process.returncode, 0)
        equal(len(shop.cat("ns.t").rows), 4)


def evolve():
    with Workshop() as shop:
        write(shop, "a.ndjson", lines([{"id": 1, "s": {"x": 1}}]))
        shop.tarn("ingest", "ns.t", "a.ndjson", "--create", "--schema", "id int, s struct<x: int>")
        write(shop, "b.ndjson", lines([{"id": 2}, {"id": 3, "more": "m", "s": {"x": 2, "y": [1.5]}}, {"id": 3000000000}]))
        must_refuse(shop.tarn("ingest", "ns.t", "b.ndjson", check=False), "more", "line 2")
        shop.tarn("ingest", "ns.t", "b.ndjson", "--evolve")
        write(shop, "c.csv", "id,extra\n5,2024-01-01\n")
        shop.tarn("ingest", "ns.t", "c.csv", "--evolve")
        equal(table(shop, "ns.t"), [
            {"id": 1, "s": {"x": 1, "y": None}, "more": None, "extra": None}, {"id": 2, "s": None, "more": None, "extra": None},
            {"id": 3, "s": {"x": 2, "y": [1.5]}, "more": "m", "extra": None}, {"id": 5, "s": None, "more": None, "extra": "2024-01-01"},
            {"id": 3000000000, "s": None, "more": None, "extra": None}])


def evolve_everywhere():
    """Types widen and members come wherever they are, from each format; what holds a value only nearly stays."""
    import pyarrow.parquet
    schema = ("id int, f float, d decimal(5, 2), l list<int>, ls list<struct<x: int>>, m map<string, int>, ms map<string, struct<x: int>>, "
              "s struct<f: float>, k map<int, int>, ks map<int, struct<x: int>>")
    first = {"id": 1, "f": 0.1, "d": 1.25, "l": [1], "ls": [{"x": 1}], "m": {"a": 1}, "ms": {"a": {"x": 1}}, "s": {"f": 1.5}, "k": {"keys": [1], "values": [2]},
             "ks": {"keys": [1], "values": [{"x": 1}]}}
    big = 6000000000
    more = {"id": 2, "f": 1e300, "d": 123456.75, "l": [None, big], "ls": [{"x": big, "y": "n"}], "m": {"b": big}, "ms": {"b": {"x": big, "z": [1.5]}},
            "s": {"f": 1e100, "g": {"h": True}}, "k": {"keys": [3], "values": [big]},
            "ks": {"keys": [1], "values": [{"x": big, "y": 1}]}}
    with Workshop() as shop:
        write(shop, "a.ndjson", lines([first]))
        write(shop, "b.ndjson", lines([more]))
        for name in ("ns.t", "ns.u"):
            shop.tarn("ingest", name, "a.ndjson", "--create", "--schema", schema)
        shop.tarn("ingest", "ns.t", "b.ndjson", "--evolve")
        rows = table(shop, "ns.t")
        pairs = lambda d: {"keys": list(d), "values": list(d.values())}
        equal(rows[1], dict(more, d="123456.75", m=pairs(more["m"]), ms=pairs(more["ms"])))
        equal((rows[0]["f"], rows[0]["l"], rows[0]["ms"]), (0.10000000149011612, [1], pairs({"a": {"x": 1, "z": None}})))
        found = shop.catalog().load_table("ns.t")
        types = {f.name: str(f.field_type) for f in found.schema().fields}
        equal((types["f"], types["d"], types["l"], types["m"], types["k"]),
              ("double", "decimal(8, 2)", "list<long>", "map<string, long>", "map<int, long>"))
        equal([r["ls"] for r in sorted(found.scan().to_arrow().to_pylist(), key=lambda r: r["id"])],
              [[{"x": 1, "y": None}], [{"x": big, "y": "n"}]])
        pyarrow.parquet.write_table(found.scan().to_arrow(), shop.path("b.parquet"))  # the same from a file with types of its own
        shop.tarn("ingest", "ns.u", "b.parquet", "--evolve")
        equal(table(shop, "ns.u")[1:], rows)
        # text in columns
        shop.tarn("create", "ns.c", "id int, f float, d decimal(5, 2), g float, v int")
        write(shop, "c.csv", "id,f,d,g,v\n1,1,1,1,1\n3000000000,1e300,12345.5,0.1,2\n2,3,4,5,6\n")
        shop.tarn("ingest", "ns.c", "c.csv", "--evolve")
        equal([(r["id"], r["f"], r["d"]) for r in table(shop, "ns.c")], [(1, 1, "1.00"), (2, 3, "4.00"), (3000000000, 1e300, "12345.50")])
        types = [str(f.field_type) for f in shop.catalog().load_table("ns.c").schema().fields]
        equal(types, ["long", "double", "decimal(7, 2)", "float", "int"])
        # names with points in them
        write(shop, "e.ndjson", lines([{"id": 1, "v": 1, "a.b": 1, "s": {"x": 1}}]) + lines([{"id": 1, "v": 1, "a.b": big, "s": {"c.d": {"e.f": 1}}}]))
        shop.tarn("ingest", "ns.c", "e.ndjson", "--evolve")
        equal([(r["a.b"], r["s"]) for r in shop.cat("ns.c", "--where", "v = 1 and s is not null").rows],
              [(1, {"x": 1, "c.d": None}), (big, {"x": None, "c.d": {"e.f": 1}})])
        # far behind in a file, and in envelopes with schemas, the first of which lacks them
        write(shop, "g.ndjson", lines({"id": i} for i in range(30000)) + lines([{"id": -1, "late": {"x": 1}}]) + lines([{"id": -2, "later": [1]}]))
        shop.tarn("create", "ns.g", "id long")
        shop.tarn("ingest", "ns.g", "g.ndjson", "--evolve")
        equal(table(shop, "ns.g", "--where", "id <= 0"), [{"id": -2, "late": None, "later": [1]}, {"id": -1, "late": {"x": 1}, "later": None},
                                                          {"id": 0, "late": None, "later": None}])

        def envelope(row, **fields):
            row_type = {"type": "struct", "optional": True,
                        "fields": [dict({"type": of[0], "optional": of[1], "field": name}, **(of[2] if len(of) > 2 else {})) for name, of in fields.items()]}
            said = {"type": "struct", "fields": [dict(row_type, field="before"), dict(row_type, field="after"), {"type": "string", "field": "op"}]}
            return {"schema": said, "payload": {"before": None, "after": row, "op": "c"}}

        ident, date = ("int32", False), ("int32", True, {"name": "io.debezium.time.Date"})
        write(shop, "h.ndjson", lines([envelope({"id": 1}, id=ident), envelope({"id": 2, "d": 19000}, id=ident, d=date), envelope({"id": 1}, id=ident),
                                       envelope({"id": 3, "e": "x"}, id=ident, e=("string", True)), envelope({"id": big}, id=("int64", False))]))
        for made in ("ns.h", "ns.i"):
            if made == "ns.h":
                shop.tarn("create", made, "id int not null", "--identifier", "id")
            shop.tarn("ingest", made, "h.ndjson", "--create", "--format", "debezium-json", "--key", "id", "--deletes", "equality", "--evolve")
            equal([(r["id"], r["d"], r["e"]) for r in table(shop, made)][-3:], [(2, "2022-01-08", None), (3, None, "x"), (big, None, None)])
        # a pipe that tells the table's columns, and more of them later
        rows = [{"id": 1, "x": 1}] * 9 + [{"id": 2, "x": big, "y": {"z": 1}}]
        shop.tarn("ingest", "ns.p", "-", "--create", "--schema", "id long, x int", "--format", "ndjson", "--evolve", stdin=lines(rows))
        shop.tarn("ingest", "ns.q", "-", "--create", "--format", "ndjson", "--evolve",
                  stdin=lines([{"id": i, "v": "v" * 250} for i in range(40000)] + rows[9:]))  # more than is looked at to find columns
        equal(shop.cat("ns.p", "--where", "y is not null").rows, rows[9:])
        equal(shop.cat("ns.q", "--where", "y is not null").rows, [{"id": 2, "v": None, "x": big, "y": {"z": 1}}])
        # keys of maps never change
        write(shop, "d.ndjson", lines([{"k": {"keys": [big], "values": [1]}}]))
        must_refuse(shop.tarn("ingest", "ns.t", "d.ndjson", "--evolve", check=False), "line 1", "out of the range of an int")


def metrics_and_log():
    with Workshop() as shop:
        write(shop, "a.ndjson", lines({"id": i} for i in range(10)) + "bad\n")
        answer = shop.tarn("ingest", "ns.t", "a.ndjson", "--create", "--on-bad-row", "skip", "--metrics", "m.txt", "--log", "json", "--checkpoint-rows", "4")
        said = [json.loads(line) for line in answer.err.splitlines()]
        equal(said[-1]["event"], "done")
        equal((said[-1]["rows"], said[-1]["rejected"], said[-1]["commits"]), (10, 1, 3))
        logged = [e for e in said if e["event"] == "checkpoint"]
        equal([e["rows"] for e in logged], [4, 4, 2])
        assert all(abs(e["time-ms"] / 1000 - time.time()) < 600 for e in logged), logged
        equal(logged[-1]["rows-total"], 10)
        with open(shop.path("m.txt")) as file:
            text = file.read()
        assert text.endswith("# EOF\n")
        values = dict(line.split(" ")[:2] for line in text.splitlines() if not line.startswith("#"))
        equal(values['tarn_ingest_rows_total{table="ns.t"}'], "10")
        equal(values['tarn_ingest_commits_total{table="ns.t"}'], "3")
        equal(values['tarn_ingest_rejected_rows_total{table="ns.t"}'], "1")
        # warnings, refusals and errors are such lines too: of options, of settings, of input, of a table that is there
        for options, status, event, words in (
                (["a.ndjson", "--create", "--schema", "id long", "--on-bad-row", "skip"], 0, "warning", "--create are not applied"),
                (["a.ndjson", "--bogus"], 2, "error", "--bogus"), (["a.ndjson", "--checkpoint-rows", "x"], 2, "error", "checkpoint-rows"),
                (["a.ndjson", "--deletes", "soft"], 2, "error", "soft"), (["none.ndjson"], 3, "error", "none.ndjson"),
                (["a.ndjson"], 2, "error", "line 11"), (["a.ndjson", "--checkpoint-rows", "4"], 2, "info", "stay")):
            answer = shop.tarn("ingest", "ns.t", "--log", "json", "--progress", *options, check=False)
            said = [json.loads(line) for line in answer.err.splitlines()]
            equal((options, answer.status), (options, status))
            assert any(e["event"] == event and words in e["message"] for e in said), (options, said)
        # a line is one write, so that those of several processes stay apart, and a kill leaves whole ones
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        with ours, theirs:
            equal(subprocess.run([harness.binary(), "ingest", "ns.t", "-", "--log", "json", "--checkpoint-rows", "4", "--format", "ndjson"],
                                 input=lines({"id": i} for i in range(10)).encode(), cwd=shop.folder, stderr=theirs, timeout=SECONDS).returncode, 0)
            ours.setblocking(False)
            equal([json.loads(ours.recv(1 << 16))["event"] for _ in range(4)], ["checkpoint"] * 3 + ["done"])


def changes_are_counted_as_they_came():
    """An update is one change in the result, in progress and in metrics, whatever it is made of; rows of files stay what they are."""
    stream, end = changes(300, 30, 8)
    with Workshop() as shop:
        write(shop, "d.json", envelopes(stream))
        answer = shop.tarn("ingest", "ns.t", "d.json", "--create", "--schema", "id long not null, v string", "--format", "debezium-json", "--key", "id",
                           "--deletes", "equality", "--metrics", "m.txt", "--checkpoint-rows", "100", "--json")
        equal(json.loads(answer.out)["rows"], 300)
        with open(shop.path("m.txt")) as file:
            values = dict(line.split(" ")[:2] for line in file if not line.startswith("#"))
        equal(int(values['tarn_ingest_rows_total{table="ns.t"}']), 300)
        equal(int(values['tarn_ingest_rows_written_total{table="ns.t"}']), sum(a is not None for _, _, a in stream))
        equal(table(shop, "ns.t"), end)


def an_absent_broker():
    """Without --follow an error that names broker and topic, within the time that was given; with it a wait that is told once."""
    with Workshop() as shop:
        shop.tarn("create", "ns.t", "id long")
        start = time.monotonic()
        answer = shop.tarn("ingest", "ns.t", "kafka://127.0.0.1:1/events", "--kafka-timeout", "4s", check=False)
        if "Kafka was not built in" in answer.err:
            return
        equal(answer.status, 7)
        must_refuse(answer, "127.0.0.1:1", "events", "refused")
        assert time.monotonic() - start < 45, "it took %.1f s" % (time.monotonic() - start)  # 60 where nothing is said
        must_refuse(shop.tarn("ingest", "ns.t", "kafka://127.0.0.1:1/events", "--kafka-timeout", "soon", check=False), "--kafka-timeout")
        process = subprocess.Popen([harness.binary(), "ingest", "ns.t", "kafka://127.0.0.1:1/events", "--follow"], cwd=shop.folder,
                                   stderr=subprocess.PIPE, text=True)
        first = process.stderr.readline()
        assert "warning" in first and "127.0.0.1:1" in first, first
        time.sleep(8)  # for what it may say more: longer than a question to a broker takes
        assert process.poll() is None, "it did not wait"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=SECONDS)
        assert "warning" not in err, err


def bad_input():
    with Workshop() as shop:
        write(shop, "a.ndjson", lines([{"id": 1, "v": "a"}]))
        write(shop, "short.ndjson", lines({"id": i, "v": "x" * 100} for i in range(100)))
        shop.tarn("ingest", "ns.t", "a.ndjson", "--create", "--upsert", "--key", "id", "--deletes", "equality")
        refuse = lambda *arguments: shop.tarn("ingest", "ns.t", *arguments, check=False)
        cases = [
            ('{"v":"a","op":"D"}\n', ["--op-column", "op"], "id"), ('{"id":null,"v":"a","op":"I"}\n', ["--op-column", "op"], "id"),
            ('{"id":1,"v":"a","op":"Z"}\n', ["--op-column", "op"], "no kind of row"), ('{"id":1,"v":"a"}\n', ["--op-column", "op"], "kind of the row"),
            ('{"op":"u","before":null,"after":null}\n', ["--format", "debezium-json"], "op \"u\""),
            ('{"op":"d","before":null}\n', ["--format", "debezium-json"], "delete without the row"),
            ('{"op":"t"}\n', ["--format", "debezium-json"], "truncate"), ('{"id":1}\n', ["--format", "debezium-json"], "no change envelope"),
        ]
        for text, options, words in cases:
            write(shop, "bad.ndjson", text)
            must_refuse(refuse("bad.ndjson", *options), words)
        equal(table(shop, "ns.t"), [{"id": 1, "v": "a"}])
        # an update without its image, and a delete of a key never seen, are no faults
        write(shop, "ok.ndjson", '{"op":"u","after":{"id":2,"v":"b"}}\n{"op":"d","before":{"id":77}}\n')
        shop.tarn("ingest", "ns.t", "ok.ndjson", "--format", "debezium-json")
        equal(table(shop, "ns.t"), [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}])
        for kind in ("equality", "position", "vector"):
            for i, more in enumerate(([], ["--upsert"])):
                write(shop, "ok.ndjson", '{"op":"c","after":{"id":1,"v":"a"}}\n{"op":"c","after":{"id":2,"v":"a"}}\n')
                take = ["ingest", "ns.%s%d" % (kind, i), "ok.ndjson", "--format", "debezium-json", "--key", "id", "--deletes", kind, "--state",
                        "%s%d" % (kind, i), *more]
                shop.tarn(*take, "--create")
                with open(shop.path("ok.ndjson"), "a") as file:
                    file.write('{"op":"u","after":{"id":2,"v":"b"}}\n{"op":"d","before":{"id":77}}\n{"op":"d","before":{"id":1}}\n'
                               '{"op":"d","before":{"id":1}}\n{"op":"u","after":{"id":3,"v":"c"}}\n')
                shop.tarn(*take)
                equal((kind, more, table(shop, take[1])), (kind, more, [{"id": 2, "v": "b"}, {"id": 3, "v": "c"}]))
        # a row without its key is set aside with its line, though the table lets the column be null
        shop.tarn("create", "ns.k", "id long, v string")
        write(shop, "keys.ndjson", '{"id":1,"v":"a"}\n{"id":null,"v":"b"}\n{"v":"c"}\n')
        shop.tarn("ingest", "ns.k", "keys.ndjson", "--upsert", "--key", "id", "--deletes", "equality", "--rejects", "set_aside.ndjson")
        equal(table(shop, "ns.k"), [{"id": 1, "v": "a"}])
        with open(shop.path("set_aside.ndjson")) as file:
            equal([json.loads(line)["line"] for line in file], [2, 3])
        # a state folder of another table, of other inputs, of a file that is not the same
        shop.tarn("ingest", "ns.u", "short.ndjson", "--create", "--state", "st")
        must_refuse(refuse("short.ndjson", "--state", "st"), "table")
        must_refuse(shop.tarn("ingest", "ns.u", "a.ndjson", "--state", "st", check=False), "other inputs")
        write(shop, "short.ndjson", lines([{"id": 1, "v": "z"}]))
        must_refuse(shop.tarn("ingest", "ns.u", "short.ndjson", "--state", "st", check=False), "short.ndjson", "shorter")
        must_refuse(refuse("kafka://127.0.0.1:1"), "no topic")
        must_refuse(refuse("a.ndjson", "kafka://127.0.0.1:1/t"), "alone")
        for options, words in (["--checkpoint-interval", "soon"], "time"), (["--deletes", "soft"], "equality, position or vector"), (
                ["--log", "xml"], "json"), (["--follow", "--mode", "overwrite"], "--follow"), (["--evolve", "--ignore-unknown"], "--evolve"):
            must_refuse(refuse("a.ndjson", *options), words)


NO_KEYS = [  # name, options, text, the lines that are bad, the rows that stay
    ("d.ndjson", ["--format", "debezium-json"], """{"op":"c","after":{"id":1,"v":"a"}}
{"op":"d","before":{"id":null,"v":"a"}}
{"op":"d","before":{"v":"a"}}
{"op":"d","before":{}}
{"op":"c","after":{"id":null,"v":"a"}}
{"op":"u","before":{"id":null},"after":{"id":1,"v":"x"}}
{"op":"u","before":{"id":1},"after":{"v":"x"}}
{"op":"u","after":{"v":"x"}}
{"op":"d","before":{"id":"one"}}
{"op":"d","before":{"id":[1]}}
{"op":"d","before":7}
{"op":"d"}
null

{"op":"u","after":{"id":2,"v":"b"}}
{"schema":{"type":"struct","fields":[]},"payload":{"op":"d","before":{"id":null},"after":null}}
{"payload":{"op":"d","before":{"id":2}}}
""", [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 16], [{"id": 1, "v": "a"}]),
    ("o.ndjson", ["--op-column", "op"], """{"op":"c","id":1,"v":"a"}
{"op":"d","id":null}
{"op":"d","v":"a"}
{"op":"-U","v":"a"}
{"op":"u","v":"a"}
{"op":"d","id":"x"}
{"op":"d","id":7}
""", [2, 3, 4, 5, 6], [{"id": 1, "v": "a"}]),
    ("o.csv", ["--op-column", "op"], "op,id,v\nc,1,a\nd,,a\n-U,,\nd,x,\nd,7,\n", [3, 4, 5], [{"id": 1, "v": "a"}]),
    ("p.parquet", ["--op-column", "op"], [("c", 1, "a"), ("d", None, "a"), ("zz", 5, "a"), ("-U", None, None), ("d", 7, None)], [2, 3, 4],
     [{"id": 1, "v": "a"}]),
    ("a.avro", ["--op-column", "op"], [("c", 1, "a"), ("d", None, "a"), ("d", 7, None)], [2], [{"id": 1, "v": "a"}]),
    ("q.parquet", ["--upsert"], [("c", 1, "a"), ("c", None, "a"), ("c", 1, "b")], [2], [{"id": 1, "v": "b"}]),
]


def write_rows(shop, name, content):
    if isinstance(content, str):
        write(shop, name, content)
        return
    rows = [dict(zip(("op", "id", "v"), row)) for row in content]
    if name.startswith("q"):
        rows = [{"id": r["id"], "v": r["v"]} for r in rows]
    if name.endswith(".avro"):
        import fastavro
        kinds = {"op": "string", "id": "long", "v": "string"}
        schema = {"type": "record", "name": "r", "fields": [{"name": n, "type": ["null", kinds[n]]} for n in rows[0]]}
        with open(shop.path(name), "wb") as file:
            fastavro.writer(file, schema, rows)
        return
    import pyarrow.parquet
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), shop.path(name))


def rows_without_their_key():
    """Whatever they do and however they come: set aside with their place, skipped, or the end with an error that says place and column;
    whether the table requires the column or not, and with the key named or the table's own."""
    with Workshop() as shop:
        shop.tarn("create", "ns.own", "id long not null, v string", "--identifier", "id")
        for i, (name, options, content, bad, end) in enumerate(NO_KEYS):
            if name.endswith(".avro") and importlib.util.find_spec("fastavro") is None:
                continue
            write_rows(shop, name, content)
            for own in (False, True):
                target = "ns.t%d%d" % (i, own)
                shop.tarn("create", target, "id long%s, v string" % (" not null" if own else ""), *(["--identifier", "id"] if own else []))
                take = ["ingest", target, name, "--deletes", "equality", "--upsert", *options, *([] if own else ["--key", "id"])]
                stopped = shop.tarn(*take, check=False)
                must_refuse(stopped, name, "id", *([] if name.endswith(("parquet", "avro")) else ["line %d" % bad[0]]))
                equal(table(shop, target), [])
                rejects = target + ".bad"
                shop.tarn(*take, "--rejects", rejects)
                with open(shop.path(rejects)) as file:
                    told = [json.loads(line) for line in file]
                equal((name, [t["line"] for t in told]), (name, bad))
                assert all(t["reason"] and t["row"] for t in told), told
                equal((name, table(shop, target)), (name, end))
                shop.tarn(*take, "--on-bad-row", "skip")
                equal(table(shop, target), end)


def with_a_cluster(name, fn):
    if shutil.which("kcat") is None or not os.path.exists(ENGINE):
        print("%s: left out, there is no kcat or no tool that starts a mock cluster" % name)
        return
    with Workshop() as shop:
        out = subprocess.run([ENGINE, "kafka-mock", "start", shop.path("mock")], capture_output=True, text=True, timeout=SECONDS)
        if out.returncode != 0:
            print("%s: left out, no mock cluster could be started" % name)
            return
        broker = dict(line.split("=", 1) for line in out.stdout.split() if "=" in line)["URL"]
        try:
            fn(shop, broker)
        finally:
            subprocess.run([ENGINE, "kafka-mock", "stop", shop.path("mock")], capture_output=True, timeout=SECONDS)


def kafka():
    with_a_cluster("kafka", from_a_topic)


def a_bad_first_message():
    with_a_cluster("a bad first message", bad_first)


def bad_first(shop, broker):
    """Columns come of the messages that are good; bad ones before them are set aside, skipped, or the end, and make no table."""
    produce = lambda topic, text: subprocess.run(["kcat", "-b", broker, "-t", topic, "-P", "-p", "0"], input=text, text=True, check=True, timeout=SECONDS)
    take = lambda topic, *options, **more: shop.tarn("ingest", "ns." + topic, "kafka://%s/%s" % (broker, topic), "--create", *options, **more)
    produce("a", 'not json\n[1]\n{"id": 1, "v": "a"}\n{"id": 2, "v": "b"}\n')
    must_refuse(take("a", check=False), "topic a partition 0 offset 0")
    must_refuse(shop.cat("ns.a", check=False), "ns.a")
    take("a", "--rejects", "a.bad")
    equal(table(shop, "ns.a"), [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}])
    with open(shop.path("a.bad")) as file:
        equal([(r["line"], r["row"]) for r in map(json.loads, file)], [(0, "not json"), (1, "[1]")])
    produce("b", 'garbage\n{"op": "x"}\n{"op": "c", "after": {"id": 1, "v": "a"}}\n')
    take("b", "--format", "debezium-json", "--key", "id", "--deletes", "equality", "--rejects", "b.bad")
    equal(table(shop, "ns.b"), [{"id": 1, "v": "a"}])
    with open(shop.path("b.bad")) as file:
        equal([r["line"] for r in map(json.loads, file)], [0, 1])
    produce("c", 'not json\n')
    must_refuse(take("c", "--rejects", "c.bad", check=False), "columns")
    must_refuse(shop.cat("ns.c", check=False), "ns.c")
    take("a", "--on-bad-row", "skip")
    equal(len(table(shop, "ns.a")), 4)
    produce("d", 'not json\n')
    command = [harness.binary(), "ingest", "ns.d", "kafka://%s/d" % broker, "--create", "--follow", "--rejects", "d.bad", "--checkpoint-interval", "50ms"]
    process = subprocess.Popen(command, cwd=shop.folder, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: os.path.exists(shop.path("d.bad")))
    time.sleep(1)  # the bad message is most probably read before the good one is there
    produce("d", '{"id": 1}\n')
    wait_for(lambda: len(shop.cat("ns.d", check=False).out.splitlines()) == 1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=SECONDS)
    equal((process.returncode, table(shop, "ns.d")), (0, [{"id": 1}]))


def from_a_topic(shop, broker):
    """Produced to while the command is killed and started again; then changes with keys and tombstones."""
    rng = random.Random(3)

    def produce(topic, messages, *options):
        subprocess.run(["kcat", "-b", broker, "-t", topic, "-P", *options], input=messages, text=True, check=True, timeout=SECONDS)

    produce("t", lines({"id": i} for i in range(100)))
    shop.tarn("ingest", "ns.k", "kafka://%s/t" % broker, "--create", "--state", "st")
    command = [harness.binary(), "ingest", "ns.k", "kafka://%s/t" % broker, "--state", "st", "--follow", "--checkpoint-interval", "50ms", "-q"]
    for run in range(8):
        process = subprocess.Popen(command, cwd=shop.folder, stderr=subprocess.DEVNULL)
        produce("t", lines({"id": i} for i in range(100 + run * 100, 200 + run * 100)))
        time.sleep(rng.random() * 0.6)
        process.kill()
        process.wait()
    shop.tarn(*command[1:-4], "-q")  # up to the end, and then no more
    equal(sorted(r["id"] for r in shop.cat("ns.k").rows), list(range(900)))
    stream, end = changes(200, 20, 5)
    text = "".join("%s|%s\n" % (json.dumps({"id": (a or b)["id"]}), json.dumps({"before": None, "after": a, "op": op})) for op, b, a in stream)
    produce("c", text, "-K", "|", "-p", "0")
    shop.tarn("ingest", "ns.c", "kafka://%s/c" % broker, "--create", "--schema", "id long not null, v string", "--format", "debezium-json", "--upsert",
              "--key", "id", "--deletes", "equality")
    equal(table(shop, "ns.c"), end)
    # columns from the messages, then one more of them, beside the messages' keys
    take = ["ingest", "ns.e", "kafka://%s/c" % broker, "--format", "debezium-json", "--upsert", "--key", "id", "--deletes", "vector", "--state", "se"]
    shop.tarn(*take, "--create")
    equal(table(shop, "ns.e"), end)
    produce("c", '{"id": 7}|{"op": "r", "after": {"id": 7, "v": "new", "w": 1.5}}\n', "-K", "|", "-p", "0")
    shop.tarn(*take, "--evolve")
    equal([r for r in shop.cat("ns.e").rows if r["w"] is not None], [{"id": 7, "v": "new", "w": 1.5}])


AVRO = {1: {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}, {"name": "v", "type": ["null", "string"], "default": None},
                                                       {"name": "d", "type": {"type": "int", "connect.name": "io.debezium.time.Date"}}]}}
AVRO[2] = {"type": "record", "name": "r", "fields": AVRO[1]["fields"] + [{"name": "w", "type": ["null", "double"], "default": None}]}
AVRO[3] = {"type": "record", "name": "Envelope", "fields": [
    {"name": "before", "type": ["null", {"type": "record", "name": "Value", "fields": AVRO[1]["fields"]}], "default": None},
    {"name": "after", "type": ["null", "Value"], "default": None}, {"name": "op", "type": "string"}]}
AVRO[4] = json.loads(json.dumps(AVRO[3]))
AVRO[4]["fields"][0]["type"][1]["fields"][0]["type"] = ["null", "long"]
for number, fields in ((5, [("id", "long")]), (6, [("id", ["null", "long"])]), (7, [("id", "string")]), (8, [("v", "string")]),
                       (9, [("more", "int"), ("v", "string"), ("id", "long")])):  # of messages' keys
    AVRO[number] = {"type": "record", "name": "Key", "fields": [{"name": name, "type": kind} for name, kind in fields]}
AVRO[10] = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "string"}]}
AVRO[11] = json.loads(json.dumps(AVRO[3]))
AVRO[11]["fields"][0]["type"][1]["fields"] += AVRO[2]["fields"][3:]
AWAY = {}  # how often a schema is not to be had


def registry():
    """A server of AVRO's schemas, and its URL."""
    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            number = int(self.path.rsplit("/", 1)[1])
            if AWAY.get(number, 0) > 0:
                AWAY[number] -= 1
                self.send_error(503)
                return
            body = json.dumps({"schema": json.dumps(AVRO[number])}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *unused):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, "http://127.0.0.1:%d" % server.server_port


def wire(number, record):
    import fastavro
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(AVRO[number]), record)
    return b"\0" + number.to_bytes(4, "big") + out.getvalue()


def avro_topics():
    if importlib.util.find_spec("fastavro") is None:
        print("avro topics: left out, there is no Python package fastavro")
        return
    with_a_cluster("avro topics", avro_from_topics)


def avro_from_topics(shop, broker):
    def produce(topic, messages):
        names = []
        for i, message in enumerate(messages):
            names.append(shop.path("%s-%03d" % (topic, i)))
            with open(names[-1], "wb") as file:
                file.write(message)
        subprocess.run(["kcat", "-b", broker, "-t", topic, "-P", "-p", "0"] + names, check=True, timeout=SECONDS)

    server, url = registry()
    row = lambda i, **more: {"id": i, "v": "v%d" % i, "d": i, **more}
    nobody = {"id": None, "v": "v", "d": 1}
    take = lambda topic, *options, **more: shop.tarn("ingest", "ns." + topic, "kafka://%s/%s" % (broker, topic), "--create", "--schema-registry", url, *options, **more)
    produce("a", [wire(1, row(i)) for i in range(20)] + [wire(2, row(i, w=1.5)) for i in range(20, 25)])
    take("a", "--format", "avro", "--evolve")
    rows = table(shop, "ns.a")
    equal([r["id"] for r in rows], list(range(25)))
    equal(rows[24], {"id": 24, "v": "v24", "d": "1970-01-25", "w": 1.5})
    produce("b", [wire(3, {"before": None, "after": row(1), "op": "c"}), wire(3, {"before": row(1), "after": {"id": 1, "v": "b", "d": 1}, "op": "u"}),
                  wire(3, {"before": None, "after": row(2), "op": "r"}), wire(3, {"before": row(2), "after": None, "op": "d"}),
                  wire(3, {"before": None, "after": None, "op": "d"}), wire(4, {"before": nobody, "after": None, "op": "d"}),
                  wire(4, {"before": row(1), "after": nobody, "op": "u"})])
    take("b", "--format", "debezium-avro", "--rejects", "b.bad", "--key", "id", "--deletes", "equality")
    with open(shop.path("b.bad")) as file:
        equal([json.loads(line)["line"] for line in file], [4, 5, 6])
    must_refuse(take("b", "--format", "debezium-avro", "--key", "id", check=False), "offset 4", "delete without")
    equal(table(shop, "ns.b"), [{"id": 1, "v": "b", "d": "1970-01-02"}])
    produce("c", [wire(1, row(1)), wire(1, row(2)) + b"x", b"hello", wire(1, row(3))])
    take("c", "--format", "avro", "--rejects", "c.bad")
    equal([r["id"] for r in table(shop, "ns.c")], [1, 3])
    with open(shop.path("c.bad")) as file:
        equal([json.loads(line)["line"] for line in file], [1, 2])
    # schemas that the table does not follow: their messages are bad ones, alone
    produce("e", [wire(1, row(1)), wire(2, row(2, w=1.5)), wire(10, {"id": "x"}), wire(1, row(3))])
    for made, options, bad, ids in (("e1", ["--rejects", "e1.bad"], [1, 2], [1, 3]), ("e2", ["--ignore-unknown", "--rejects", "e2.bad"], [2], [1, 2, 3])):
        shop.tarn("ingest", "ns." + made, "kafka://%s/e" % broker, "--create", "--schema", "id long, v string, d date", "--schema-registry", url,
                  "--format", "avro", *options)
        equal([r["id"] for r in table(shop, "ns." + made)], ids)
        with open(shop.path(made + ".bad")) as file:
            equal([json.loads(line)["line"] for line in file], bad)
    must_refuse(take("e", "--format", "avro", check=False), "topic e partition 0 offset 1", "field w was not in the schema")
    produce("f", [wire(3, {"before": None, "after": row(1), "op": "c"}), wire(11, {"before": None, "after": row(2, w=1.5), "op": "c"}),
                  wire(3, {"before": row(1), "after": None, "op": "d"})])
    take("f", "--format", "debezium-avro", "--key", "id", "--deletes", "equality", "--on-bad-row", "skip")
    equal(table(shop, "ns.f"), [])
    lost_deletes(shop, broker, take)
    deletes_by_key(shop, broker, take)
    server.shutdown()
    # a registry that is gone is waited for like a broker
    must_refuse(shop.tarn("ingest", "ns.z", "kafka://%s/a" % broker, "--create", "--schema", "id long", "--schema-registry", "http://127.0.0.1:1",
                          "--format", "avro", "--kafka-timeout", "1s", check=False), "registry", "127.0.0.1:1")


def lost_deletes(shop, broker, take):
    """A message without a value deletes its key in other consumers: here it is told where rows by key have no kind, and passed elsewhere."""
    for topic, form, make in (("tj", "ndjson", lambda i: b'{"id": %d, "v": "a"}' % i), ("ta", "avro", lambda i: wire(1, {"id": i, "v": "a", "d": 1}))):
        text = b"".join(b"%d|KEY|%s|END|" % (i, make(i) if i != 2 else b"") for i in (1, 2, 3))
        subprocess.run(["kcat", "-b", broker, "-t", topic, "-P", "-p", "0", "-Z", "-K", "|KEY|", "-D", "|END|"], input=text, check=True, timeout=SECONDS)
        keyed = ["--format", form, "--upsert", "--key", "id", "--deletes", "equality"]
        must_refuse(take(topic, *keyed, check=False), "topic %s partition 0 offset 1" % topic, "a key and no value")
        take(topic, *keyed, "--rejects", topic + ".bad")
        equal([r["id"] for r in table(shop, "ns." + topic)], [1, 3])
        with open(shop.path(topic + ".bad")) as file:
            equal([(r["line"], r["row"]) for r in map(json.loads, file)], [(1, "2")])
        shop.tarn("drop", "ns." + topic)
        take(topic, "--format", form)
        equal([r["id"] for r in table(shop, "ns." + topic)], [1, 3])


def deletes_by_key(shop, broker, take):
    """Deletes without a row before them take the row of their message's key away, of whatever schema that is, as those in JSON
    do; where the key does not say which row, the message is told. The registry may be away when a key is first looked at."""
    row = lambda i: {"id": i, "v": "v%d" % i, "d": i}
    gone = wire(3, {"before": None, "after": None, "op": "d"})

    def produce(topic, messages):
        text = b"".join(key + b"|KEY|" + value + b"|END|" for key, value in messages)
        subprocess.run(["kcat", "-b", broker, "-t", topic, "-P", "-p", "0", "-Z", "-K", "|KEY|", "-D", "|END|"], input=text, check=True, timeout=SECONDS)

    made = [(wire(5, {"id": i}), wire(3, {"before": None, "after": row(i), "op": "c"})) for i in range(40)]
    AWAY[5] = AWAY[9] = 2
    for kind in ("equality", "vector"):
        topic = "k" + kind
        produce(topic, made + [(wire(5, {"id": 3}), gone), (wire(5, {"id": 3}), b""), (wire(9, {"more": 1, "v": "x", "id": 4}), gone),
                               (wire(6, {"id": 5}), gone), (wire(5, {"id": 6}), wire(3, {"before": row(6), "after": None, "op": "d"})),
                               (wire(5, {"id": 7}), gone), (wire(5, {"id": 7}), made[7][1]), (wire(5, {"id": 99}), gone)] +
                [(wire(5, {"id": i}), gone) for i in range(10, 40)])
        take(topic, "--format", "debezium-avro", "--key", "id", "--deletes", kind, "--state", topic)
        equal([r["id"] for r in table(shop, "ns." + topic)], [0, 1, 2, 7, 8, 9])
        equal(AWAY, {5: 0, 9: 0})
    bad = [(b"", "there is none"), (b'{"id": 1}', "number of a schema"), (wire(6, {"id": None}), "column id is null"),
           (wire(7, {"id": "1"}), "another type"), (wire(8, {"v": "x"}), "no column id"), (wire(5, {"id": 1000})[:-1], "was damaged")]
    produce("kbad", made[:2] + [(key, gone) for key, _ in bad])
    take("kbad", "--format", "debezium-avro", "--key", "id", "--deletes", "equality", "--rejects", "k.bad")
    with open(shop.path("k.bad")) as file:
        told = [json.loads(line) for line in file]
    equal([t["line"] for t in told], list(range(2, 2 + len(bad))))
    for t, (_, word) in zip(told, bad):
        assert "a delete without the row before it" in t["reason"] and word in t["reason"], (t, word)
    equal([r["id"] for r in table(shop, "ns.kbad")], [0, 1])


def branches():
    """A branch that the first commit makes begins with main's rows: keys of them are found, whatever the deletes; main stays."""
    rows = [{"id": i, "v": "old"} for i in range(6)]
    new = [{"id": i, "v": "new"} for i in range(4, 8)]
    for kind, version in (("equality", "2"), ("position", "2"), ("vector", "3")):
        with Workshop() as shop:
            shop.tarn("create", "ns.t", "id long not null, v string", "--format-version", version)
            shop.write("a.ndjson", lines(rows))
            shop.tarn("ingest", "ns.t", "a.ndjson")
            shop.write("b.ndjson", lines(new))
            options = ["--upsert", "--key", "id", "--deletes", kind, "--branch", "b", "--state", "st"]
            assert "begins with main's rows" in shop.tarn("ingest", "ns.t", "b.ndjson", *options).err
            want = rows[:4] + new
            equal(table(shop, "ns.t", "--ref", "b"), want)
            equal(table(shop, "ns.t"), rows)
            shop.write("c.ndjson", lines([{"id": 9, "v": "c"}]))
            shop.tarn("ingest", "ns.t", "c.ndjson", "--mode", "overwrite", "--where", "id < 4", "--branch", "c")
            equal(table(shop, "ns.t", "--ref", "c"), rows[4:] + [{"id": 9, "v": "c"}])
            found = shop.catalog().load_table("ns.t")
            snapshots = {s.snapshot_id: s for s in found.metadata.snapshots}
            main = found.metadata.current_snapshot_id
            for name in "bc":
                equal(snapshots[found.metadata.refs[name].snapshot_id].parent_snapshot_id, main)
            if version == "2":
                read = found.scan(snapshot_id=found.metadata.refs["c"].snapshot_id).to_arrow().to_pylist()
                equal(sorted(read, key=lambda r: r["id"]), rows[4:] + [{"id": 9, "v": "c"}])
                if kind == "position":
                    read = found.scan(snapshot_id=found.metadata.refs["b"].snapshot_id).to_arrow().to_pylist()
                    equal(sorted(read, key=lambda r: r["id"]), want)
            shop.tarn("alter", "ns.t", "drop-ref", "b")  # it would begin anew, without what was committed to it
            must_refuse(shop.tarn("ingest", "ns.t", "b.ndjson", *options, check=False), "branch b no longer holds checkpoint 1")


CASES = [change_streams, branches, upserts, evolve_everywhere, killed_and_started_again, follow, rotated_and_rotated, a_slow_pipe_is_committed_meanwhile, evolve, metrics_and_log,
         changes_are_counted_as_they_came, bad_input, rows_without_their_key, an_absent_broker, a_bad_first_message, kafka, avro_topics]

if __name__ == "__main__":
    chosen = set(sys.argv[1:])
    for fn in CASES:
        if not chosen or fn.__name__ in chosen:
            case(fn.__name__.replace("_", " "), fn)
    sys.exit(harness.finish())
