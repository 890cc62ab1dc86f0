#!/usr/bin/env python3
"""Goal: `tarn ingest` as people use it, who stop it, mistype, and give it what it did not expect: no row is lost or doubled silently, and
each message says what to do.
Method: the command is run as from a shell, and its table, status and messages are looked at.

usage: test_ingest_use.py [CASE ...]"""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import harness
from harness import Workshop, equal, must_refuse, same, wait_for

harness.need("pyarrow")


def lines(ids):
    return "".join(json.dumps({"id": i}) + "\n" for i in ids)


def ids(shop, name="ns.t"):
    return sorted(r["id"] for r in shop.cat(name).rows)


def start(shop, *arguments, **more):
    return subprocess.Popen([harness.binary(), "ingest", *arguments], cwd=shop.folder, stderr=subprocess.PIPE, text=True, **more)


def pipes_and_a_state():
    """A pipe that was stopped is gone on with or refused; one that begins otherwise than the one before, which ended, is read whole."""
    with Workshop() as shop:
        shop.tarn("create", "ns.t", "id long")
        again = ["ns.t", "-", "--state", "st"]
        process = start(shop, *again, "--checkpoint-interval", "100ms", stdin=subprocess.PIPE)
        process.stdin.write(lines(range(101, 106)))
        process.stdin.flush()
        wait_for(lambda: len(ids(shop)) == 5)
        process.send_signal(signal.SIGINT)
        wait_for(lambda: process.poll() is not None)
        process.communicate()
        equal(process.returncode, 130)
        must_refuse(shop.tarn("ingest", *again, stdin=lines(range(201, 211)), check=False), "standard input", "does not begin as", "--state")
        equal(ids(shop), list(range(101, 106)))
        for first, last, new in ((101, 108, True), (101, 108, False), (201, 211, True), (301, 303, True), (301, 305, False)):  # resent, grown
            told = "not read again" in shop.tarn("ingest", *again, stdin=lines(range(first, last))).err
            equal(told, not new)
        shop.tarn("ingest", *again, stdin="")
        equal(ids(shop), list(range(101, 108)) + list(range(201, 211)) + list(range(301, 305)))


def metrics(shop, name="m"):
    with open(shop.path(name), encoding="utf-8") as file:
        return {line.split("{")[0][len("tarn_ingest_"):]: float(line.split()[-1]) for line in file if not line.startswith("#")}


def metrics_are_of_this_run():
    """From its start, also where it fails, and with what it read itself; an overwrite is a commit too."""
    with Workshop() as shop:
        shop.tarn("create", "ns.t", "id long")
        shop.write("m", 'tarn_ingest_rows_total{table="ns.t"} 99\n')
        process = start(shop, "ns.t", "-", "--format", "ndjson", "--metrics", "m", "--checkpoint-interval", "1h", stdin=subprocess.PIPE)
        wait_for(lambda: metrics(shop)["rows_total"] == 0)
        equal(metrics(shop)["commits_total"], 0)
        process.communicate("")
        for first, last in ((0, 3), (3, 5)):
            with open(shop.path("a.ndjson"), "a", encoding="utf-8") as file:
                file.write(lines(range(first, last)))
            shop.tarn("ingest", "ns.t", "a.ndjson", "--state", "st", "--metrics", "m")
            found = metrics(shop)
            equal((found["rows_total"], found["read_total"], found["commits_total"]), (last - first, len(lines(range(first, last))), 1))
        must_refuse(shop.tarn("ingest", "ns.t", "-", "--format", "ndjson", "--metrics", "m", "--checkpoint-rows", "2", check=False,
                              stdin=lines(range(4)) + "bad\n"), "line 5")
        equal((metrics(shop)["commits_total"], metrics(shop)["data_files_total"]), (2, 2))
        shop.write("b.ndjson", lines([7]))
        done = json.loads(shop.tarn("ingest", "ns.t", "b.ndjson", "--mode", "overwrite", "--metrics", "m", "--json").out)
        equal((done["commits"], done["files"], metrics(shop)["rows_written_total"]), (1, 1, 1))


def an_idle_pipe_is_stopped():
    """SIGINT and SIGTERM end a stream whose pipe says nothing, and whose named pipe has no writer yet."""
    with Workshop() as shop:
        os.mkfifo(shop.path("ff"))
        for i, (name, sign) in enumerate((("-", signal.SIGINT), ("-", signal.SIGTERM), ("ff", signal.SIGINT))):
            process = start(shop, "ns.t%d" % i, name, "--create", "--schema", "id long", "--state", "st%d" % i, stdin=subprocess.PIPE)
            wait_for(lambda: os.path.exists(shop.path("st%d" % i)))
            time.sleep(0.3)  # so that it waits for rows, where the machine is quiet; it must end in any case
            process.send_signal(sign)
            wait_for(lambda: process.poll() is not None)
            equal(process.returncode, 130)
            process.communicate()


def compressed_pipes():
    """What came of one is read while it is idle, one signal ends it, and it is known again by all of what was unpacked."""
    import pyarrow
    import random
    import zlib
    chance = random.Random(7)
    words = lambda n: "".join('{"id": %d, "s": "%x"}\n' % (i, chance.getrandbits(256)) for i in range(n)).encode()
    first, second, other = words(200), words(200), words(200)
    for codec in ("gzip", "zstd"):
        pack = lambda data: pyarrow.compress(data, codec=codec, asbytes=True)
        assert len(pack(first)) > 4096
        with Workshop() as shop:
            shop.tarn("create", "ns.t", "id long, s string")
            again = ["ns.t", "-", "--format", "ndjson", "--state", "st", "--checkpoint-interval", "100ms"]
            process = start(shop, *again, stdin=subprocess.PIPE)
            if codec == "gzip":  # what was flushed, in the middle of a member
                packer = zlib.compressobj(wbits=31)
                process.stdin.buffer.write(packer.compress(first) + packer.flush(zlib.Z_SYNC_FLUSH))
            else:
                process.stdin.buffer.write(pack(first))
            process.stdin.flush()
            wait_for(lambda: len(ids(shop)) == 200)
            process.send_signal(signal.SIGINT)
            wait_for(lambda: process.poll() is not None)
            process.communicate()
            equal(process.returncode, 130)

            big = start(shop, "ns.big", "-", "--create", "--schema", "id long, s string", "--format", "ndjson", "--state", "st2", "--checkpoint-interval",
                        "100ms", stdin=subprocess.PIPE)
            big.stdin.buffer.write(pack(first + b'{"id": 5}\n' * 100000))  # much more than is unpacked at once, of few bytes
            big.stdin.flush()
            wait_for(lambda: shop.tarn("cat", "ns.big", "--count", check=False).out.strip() == "100200")
            big.communicate()

            def ingest(*parts):
                data = b"".join(pack(part) for part in parts)
                return subprocess.run([harness.binary(), "ingest", *again], cwd=shop.folder, input=data, capture_output=True)
            if codec == "zstd":  # the other was flushed at another place, so it began otherwise
                equal(ingest(first, second).returncode, 0)
                equal(ids(shop), sorted(list(range(200)) * 2))
                refused = ingest(first, other)
                assert refused.returncode != 0 and b"are not the same" in refused.stderr, refused
                equal(ingest(first, second, other).returncode, 0)
                equal(ids(shop), sorted(list(range(200)) * 3))
            else:
                refused = ingest(other)
                assert refused.returncode != 0 and b"does not begin as" in refused.stderr, refused


def a_file_that_is_not_read_to_its_end():
    """A stream over a file that a signal ends early says so, by its status too; the same command reads the rest, and then it is 0."""
    with Workshop() as shop:
        for n in (400000, 1600000):  # more, where it came to its end first
            name = "ns.t%d" % n
            shop.write("a.ndjson", lines(range(n)))
            command = [name, "a.ndjson", "--create", "--state", name, "--checkpoint-rows", "2000"]
            process = start(shop, *command, stdin=subprocess.DEVNULL)
            wait_for(lambda: shop.tarn("cat", name, "--count", check=False).out.strip() not in ("", "0"))
            process.send_signal(signal.SIGINT)
            _, said = process.communicate()
            if process.returncode != 0:
                break
        equal((process.returncode, "before the end" in said, "the same command goes on" in said), (130, True, True))
        assert 0 < len(ids(shop, name)) < n
        shop.tarn("ingest", *command)
        equal(ids(shop, name), list(range(n)))


def a_table_that_was_taken_back():
    """It takes its state along, so that the mended command runs; where a state is another table's, the message says what to do."""
    with Workshop() as shop:
        for options in ([], ["--upsert", "--key", "id", "--deletes", "vector"]):
            command = ["ingest", "ns.t", "a.ndjson", "--create", "--schema", "id long not null", "--state", "st", *options]
            shop.write("a.ndjson", lines([1, 2]) + "bad\n")
            must_refuse(shop.tarn(*command, check=False), "line 3")
            must_refuse(shop.tarn("describe", "ns.t", check=False), "did not exist")
            shop.write("a.ndjson", lines([1, 2, 3]))
            shop.tarn(*command)
            equal(ids(shop), [1, 2, 3])
            shop.tarn("drop", "ns.t")
            must_refuse(shop.tarn(*command, check=False), "with uuid", "--state", "remove this one")
            shutil.rmtree(shop.path("st"))


def each_checkpoint_has_its_snapshot():
    """--log json: with a state an event of each commit, with the number of its checkpoint; without one the checkpoint's event says it."""
    with Workshop() as shop:
        shop.write("a.ndjson", lines(range(1000)))
        for name, options in (("ns.s", ["--state", "st"]), ("ns.n", [])):
            answer = shop.tarn("ingest", name, "a.ndjson", "--create", "--log", "json", "--checkpoint-rows", "90", *options)
            said = [json.loads(line) for line in answer.err.splitlines()]
            made = {e["checkpoint"]: e for e in said if e["event"] == "checkpoint" and e["rows"] > 0}
            told = [e for e in said if e["event"] == ("committed" if options else "checkpoint") and e["rows"] > 0]
            equal([(e["checkpoint"], e["rows"]) for e in told], [(n, e["rows"]) for n, e in made.items()])
            assert len(told) > 5, said
            with open(shop.metadata(name)) as file:
                equal([e["snapshot-id"] for e in told], [s["snapshot-id"] for s in json.load(file)["snapshots"]])
            with open(shop.metadata(name)) as file:
                summaries = [s["summary"] for s in json.load(file)["snapshots"]]
            for e, summary in zip(told, summaries):
                equal([str(e[key]) for key in ("data-files", "bytes", "rows-deleted", "delete-files")],
                      [summary[key] for key in ("added-data-files", "added-files-size")] + ["0", "0"])
                assert e["attempts"] == 1 and e["commit-ms"] >= 0, e
            if options:
                assert all(e["snapshot-id"] is None and "commit-ms" not in e and e["open-files"] >= 0 for e in made.values()), made
        # a checkpoint without rows has nothing of the one before
        os.mkdir(shop.path("d"))
        shop.write("d/1", lines([1, 2]))
        shop.tarn("create", "ns.k", "id long not null")
        keyed = ["ingest", "ns.k", "d", "--format", "ndjson", "--upsert", "--key", "id", "--deletes", "position", "--state", "st3", "--log", "json"]
        for ids_given in ([1, 2], [2, 3], []):
            shop.write("d/%d" % (len(os.listdir(shop.path("d"))) + 1), lines(ids_given))
            said = [json.loads(line) for line in shop.tarn(*keyed).err.splitlines()]
            for e in said:
                if e["event"] == "checkpoint" and e["rows"] == 0:
                    equal([e[key] for key in ("rows-deleted", "data-files", "delete-files", "bytes")], [0, 0, 0, 0])
            equal(sum(e["data-files"] for e in said if e["event"] == "checkpoint"), 1 if ids_given else 0)


def another_number_of_writers():
    """Key indexes that were of as many writers as there are no more go."""
    with Workshop() as shop:
        shop.tarn("create", "ns.t", "id long not null")
        os.mkdir(shop.path("d"))
        for n, writers in enumerate((3, 1, 2, 2)):
            shop.write("d/%d" % n, lines(range(n, n + 50)))
            shop.tarn("ingest", "ns.t", "d", "--format", "ndjson", "--upsert", "--key", "id", "--deletes", "position", "--state", "st", "--writers", str(writers))
            equal(sorted(name for name in os.listdir(shop.path("st")) if name.startswith("keys-")),
                  ["keys-%d-of-%d" % (i + 1, writers) for i in range(writers)])
            equal(ids(shop), list(range(n + 50)))


def metrics_that_cannot_be_written():
    """An error before anything is made or committed, so that running it again doubles nothing."""
    with Workshop() as shop:
        shop.write("a.ndjson", lines([1, 2]))
        os.mkdir(shop.path("folder"))
        for path in ("none/m.txt", "folder"):
            must_refuse(shop.tarn("ingest", "ns.t", "a.ndjson", "--create", "--metrics", path, check=False), "metrics file", path)
            assert not os.path.exists(shop.path("tarn.db")), "a catalog was made"


def options_without_effect():
    """What would do nothing, or something else than was meant, is refused and says where it belongs."""
    with Workshop() as shop:
        shop.write("a.ndjson", lines([1, 2]))
        shop.tarn("create", "ns.t", "id long")
        for options, words in ((["--key", "id"], ["--key", "--upsert", "--op-column"]), (["--kafka-group", "g"], ["--kafka-group", "kafka://"]),
                               (["--kafka-timeout", "3s"], ["--kafka-timeout", "kafka://"]), (["--accept-rollback"], ["--accept-rollback", "--state"]),
                               (["--writers", "0"], ["--writers", "1 or more"]), (["--checkpoint-rows", "0"], ["--checkpoint-rows", "1 or more"])):
            must_refuse(shop.tarn("ingest", "ns.t", "a.ndjson", *options, check=False), *words)
        equal(ids(shop), [])


def messages_say_what_to_do():
    with Workshop() as shop:
        shop.write("a.ndjson", '{"id": 1, "op": "I"}\n')
        shop.write("a.csv", "id,op\n1,I\n")
        shop.tarn("create", "ns.t", "id long not null")
        for name in ("a.ndjson", "a.csv"):
            must_refuse(shop.tarn("ingest", "ns.t", name, check=False), "op was not in the schema", "--ignore-unknown", "--evolve")
            must_refuse(shop.tarn("ingest", "ns.t", name, "--op-column", "opx", "--key", "id", "--deletes", "equality", check=False), "opx")
        shop.write("b.ndjson", lines([1]))
        assert "branch mian" in shop.tarn("ingest", "ns.t", "b.ndjson", "--branch", "mian").err
        assert "branch mian" not in shop.tarn("ingest", "ns.t", "b.ndjson", "--branch", "mian").err
        shop.write("o.ndjson", '{"id": 1, "op": "insert"}\n{"id": 2, "op": null}\n')
        for path in ("o.ndjson", "-"):
            must_refuse(shop.tarn("ingest", "ns.o", path, "--format", "ndjson", "--create", "--op-column", "op", "--key", "id", "--deletes", "equality",
                                  stdin='{"id": 1, "op": "insert"}\n', check=False), "line 1", 'column op: "insert" was no kind of row')
        shop.write("none.ndjson", "")
        shop.tarn("create", "ns.m", "id long not null, v string", "--identifier", "id")
        equal(json.loads(shop.tarn("merge", "ns.m", "none.ndjson", "--json").out)["snapshot-id"], None)
        for said in (False, False, True):  # made, gone on with, and by another
            name = "st2" if said else "st"
            answer = shop.tarn("ingest", "ns.u", "b.ndjson", "--create", "--schema", "id long", "--state", name)
            equal("not applied" in answer.err, said)


def bad_rows_of_others_stay():
    """A file of bad rows that the stream did not write is neither overwritten nor cut, whatever its state says; its own goes on."""
    with Workshop() as shop:
        shop.tarn("create", "ns.t", "id long")
        shop.write("a.ndjson", lines([1]) + "bad a\n")
        os.mkdir(shop.path("in"))
        again = ["in", "--state", "st", "--rejects"]

        def bad(name):
            with open(shop.path(name), encoding="utf-8") as file:
                return [json.loads(line)["row"] for line in file]

        def refused(*arguments):
            must_refuse(shop.tarn("ingest", "ns.t", *arguments, check=False), "is there already and is not overwritten")

        shop.tarn("ingest", "ns.t", "a.ndjson", "--rejects", "rej")
        refused("a.ndjson", "--rejects", "rej")
        shop.write("in/1.ndjson", lines([2]))
        refused(*again, "rej")  # a new state
        shop.tarn("ingest", "ns.t", *again[:-1])
        shop.write("in/2.ndjson", lines([3]) + "bad b\n")
        refused(*again, "rej")  # a state without bad rows
        shop.tarn("ingest", "ns.t", *again, "rej2")
        equal(bad("rej2"), ["bad b"])
        refused(*again, "rej")  # a state whose bad rows are in another file
        shop.tarn("ingest", "ns.t", *again, "rej3")
        equal([bad(name) for name in ("rej", "rej2", "rej3")], [["bad a"], ["bad b"], []])
        os.mkdir(shop.path("d"))
        shop.write("d/1.ndjson", "bad 1\n" + lines([11]))
        shop.tarn("ingest", "ns.t", "d", "--rejects", "own", "--state", "st2")
        shop.write("d/2.ndjson", "bad 2\n" + lines([12]))
        shop.tarn("ingest", "ns.t", "d", "--rejects", "./own", "--state", "st2")
        equal(bad("own"), ["bad 1", "bad 2"])
        open(shop.path("own"), "w", encoding="utf-8").close()  # they were taken care of
        shop.write("d/3.ndjson", "bad 3\n" + lines([13]))
        shop.tarn("ingest", "ns.t", "d", "--rejects", "own", "--state", "st2")
        equal(bad("own"), ["bad 3"])
        equal(ids(shop), [1, 2, 3, 11, 12, 13])


def more_files_than_memory():
    """Rows that go round many partitions close a file each: a stream commits those that are done before they fill its memory."""
    with Workshop() as shop:
        for writers, keys, n, options in ((1, 500, 40000, ("--upsert", "--key", "id", "--deletes", "equality")), (2, 600, 200000, ())):
            table = "ns.w%d" % writers
            rows = [{"id": i % keys, "v": i} for i in range(n)]
            shop.write("in.ndjson", "".join('{"id": %(id)d, "v": %(v)d}\n' % row for row in rows))
            shop.tarn("create", table, "id long not null, v long", "--partition-by", "id")
            shop.tarn("ingest", table, "in.ndjson", "--writers", str(writers), "--memory-mb", "1", "--state", table, "--no-sync", *options)
            same(shop.cat(table).rows, rows[-keys:] if options else rows)
            assert len(shop.cat(table + ".snapshots").rows) > 1


def killed_after_columns_were_added():
    """--evolve makes a checkpoint of what came before the new columns: the rows that have them are not in it, and come again after a kill. Bad rows too."""
    with Workshop() as shop:
        shop.tarn("create", "ns.t", "id long")
        os.mkdir(shop.path("in"))
        command = ["ingest", "ns.t", "in", "--state", "st", "--evolve", "--rejects", "bad.ndjson"]
        rows = [{"id": i} for i in range(10)] + [{"id": i, "more": i} for i in range(10, 20)]
        shop.write("in/a.ndjson", "".join(json.dumps(row) + "\n" for row in rows[:10]))
        shop.write("in/b.ndjson", "".join(json.dumps(row) + "\n" for row in rows[10:]) + "bad\n")
        process = subprocess.Popen([harness.binary(), *command, "--follow", "--checkpoint-interval", "1h"], cwd=shop.folder, stderr=subprocess.PIPE)
        try:
            wait_for(lambda: "more" in shop.tarn("describe", "ns.t").out or process.poll() is not None)
            assert process.poll() is None, process.stderr.read()
        finally:
            process.kill()
            process.communicate()
        equal(len(shop.cat("ns.t").rows), 10)
        shop.tarn(*command)
        same(shop.cat("ns.t").rows, [{"more": None, **row} for row in rows])
        with open(shop.path("bad.ndjson"), encoding="utf-8") as file:
            equal([json.loads(line)["row"] for line in file], ["bad"])


CASES = [killed_after_columns_were_added, more_files_than_memory, pipes_and_a_state, bad_rows_of_others_stay, an_idle_pipe_is_stopped, compressed_pipes, a_file_that_is_not_read_to_its_end,
         a_table_that_was_taken_back, each_checkpoint_has_its_snapshot, another_number_of_writers, metrics_that_cannot_be_written, metrics_are_of_this_run, options_without_effect, messages_say_what_to_do]

if __name__ == "__main__":
    sys.exit(harness.run_cases(CASES))
