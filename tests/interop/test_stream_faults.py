#!/usr/bin/env python3
"""Goal: a stream into a table that others change, on a disk that fills up, goes on or ends with an error that says why; nothing is lost,
nothing doubled. Method: a followed file feeds `tarn ingest`; between two of its writes a rival compacts or deletes, rolls back, drops
and makes the table again, or changes schema and spec. In the end the rows are those of a dictionary.

usage: test_stream_faults.py [CASE ...]"""
import atexit
import json
import os
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import harness
from harness import Workshop, case, equal, wait_for

KEYS = 50
KINDS = (("", "2"), ("equality", "2"), ("position", "2"), ("vector", "3"))  # of deletes, and the format version; none: appends


def keyed(kind):
    return ["--upsert", "--key", "id", "--deletes", kind] if kind else []


def for_each_kind(fn):
    def run():
        for kind, version in KINDS:
            try:
                fn(kind, version)
            except Exception as error:
                raise AssertionError("%s: %s" % (kind or "appends", error)) from error
    run.__name__, run.__doc__ = fn.__name__, fn.__doc__
    return run


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


class Stream:
    """`tarn ingest --follow` of a file, at work; what it holds of each key is known."""

    def __init__(self, shop, *options, name="in.ndjson", state="st", rows=KEYS):
        self.shop, self.name, self.want, self.rows, self.bad = shop, name, {}, rows, []
        self.command = [harness.binary(), "ingest", "ns.t", name, "--follow", "--checkpoint-interval", "1h", "--checkpoint-rows", str(rows), "--state",
                        state, "--metrics", state + ".prom", "--no-sync", *options]
        if not os.path.exists(shop.path(name)):
            shop.write(name, "")
        self.start()

    def highest(self):
        state = self.shop.path(self.command[self.command.index("--state") + 1])
        return max([name for name in os.listdir(state) if name.startswith("epoch-")], default="") if os.path.isdir(state) else ""

    def start(self):
        self.before = self.highest()
        metrics = self.shop.path(self.command[self.command.index("--metrics") + 1])
        if os.path.exists(metrics):
            os.remove(metrics)  # what the start before counted says nothing of this one
        self.process = subprocess.Popen(self.command, cwd=self.shop.folder, stderr=subprocess.PIPE, text=True)
        atexit.register(self.process.kill)  # those of failed cases

    def put(self, keys, value):
        rows = [{"id": key, "v": value} for key in keys]
        self.want.update((row["id"], row) for row in rows)
        text = lines(rows)
        if "--rejects" in self.command:
            self.bad.append("bad %d" % len(self.bad))
            text = self.bad[-1] + "\n" + text
        with open(self.shop.path(self.name), "a", encoding="utf-8") as file:
            file.write(text)

    def metric(self, name):
        try:
            with open(self.shop.path(self.command[self.command.index("--metrics") + 1]), encoding="utf-8") as file:
                for line in file:
                    if line.startswith("tarn_ingest_" + name):
                        return int(float(line.split()[-1]))
        except FileNotFoundError:
            pass
        return 0

    def committed(self, n):
        def done():
            assert self.process.poll() is None, self.process.stderr.read()
            return self.metric("commits") >= n
        wait_for(done)

    def stop(self):
        """Ends it with a checkpoint; what it said."""
        wait_for(lambda: self.highest() > self.before or self.process.poll() is not None)  # signals are listened to
        self.process.send_signal(signal.SIGINT)
        _, said = self.process.communicate(timeout=harness.SECONDS)
        assert self.process.returncode == 0, said
        return said

    def failed(self, *words):
        _, said = self.process.communicate(timeout=harness.SECONDS)
        assert self.process.returncode != 0, said
        for word in words:
            assert word in said, (word, said)
        return said


def table(shop, version="2", schema="id long not null, v string", *more):
    shop.tarn("create", "ns.t", schema, "--format-version", version, *more)


def rows_are(shop, want):
    key = lambda row: row["id"]
    equal(sorted(shop.cat("ns.t").rows, key=key), sorted(want, key=key))


def rewrite_with_pyiceberg(shop, stream):
    """All rows into new files, as a compaction."""
    found = shop.catalog().load_table("ns.t")
    found.overwrite(found.scan().to_arrow())


def rewrite_with_tarn(shop, stream):
    """A row that the stream never touches again goes, and the files that held it."""
    shop.tarn("delete", "ns.t", "--where", "id = 1000000")
    stream.want.pop(1000000, None)


def goes_on(kind, version, rival):
    """A checkpoint that can't be committed is made again, without anybody's help."""
    with Workshop() as shop:
        table(shop, version)
        stream = Stream(shop, "--upsert", "--key", "id", "--deletes", kind, "--rejects", "bad.ndjson")
        stream.put(list(range(KEYS - 1)) + [1000000], "first")
        stream.committed(1)
        commits = 1
        for attempt in range(8):
            stream.put(range(KEYS // 2), "%d a" % attempt)  # waits in the sink, with deletes of rows in the table's files
            time.sleep(min(0.6 * 2 ** attempt, 20))  # longer and longer, until a slow machine too has read them
            rival(shop, stream)
            stream.put(range(KEYS // 2), "%d b" % attempt)
            commits += 1
            stream.committed(commits)
            if stream.metric("checkpoint_conflicts") > 0:
                break
            stream.put([1000000] + list(range(KEYS - 1)), "again %d" % attempt)
            commits += 1
            stream.committed(commits)
        else:
            raise AssertionError("no checkpoint ever conflicted")
        stream.put(range(10, 10 + KEYS), "last")
        stream.committed(commits + 1)
        said = stream.stop()
        equal(said.count("going on from the last committed checkpoint"), 1)
        rows_are(shop, stream.want.values())
        with open(shop.path("bad.ndjson"), encoding="utf-8") as file:
            equal([json.loads(line)["row"] for line in file], stream.bad)  # set aside once, though read again


def position_and_pyiceberg():
    goes_on("position", "2", rewrite_with_pyiceberg)


def position_and_delete():
    goes_on("position", "2", rewrite_with_tarn)


def vector_and_delete():
    goes_on("vector", "3", rewrite_with_tarn)


def upgrade(shop, stream):
    shop.tarn("alter", "ns.t", "upgrade", "3")


def equality_and_upgrade():
    """Format version 3 takes no position delete files, which a key that comes twice in a checkpoint is deleted by: it is made again."""
    goes_on("equality", "2", upgrade)


def position_and_upgrade():
    """The same where all deletes are by position: another kind has to be chosen, and then the state goes on."""
    with Workshop() as shop:
        table(shop)
        stream = Stream(shop, "--upsert", "--key", "id", "--deletes", "position")
        stream.put(range(KEYS), "first")
        stream.committed(1)
        stream.put(range(KEYS // 2), "a")
        time.sleep(0.6)
        upgrade(shop, stream)
        stream.put(range(KEYS // 2), "b")
        stream.failed('choose deletes "vector"')
        stream.command[stream.command.index("position")] = "vector"
        stream.start()  # which gives up what was durable before it reads again
        wait_for(lambda: any(row["v"] == "b" for row in shop.cat("ns.t").rows))
        stream.stop()
        rows_are(shop, stream.want.values())


def standard_input():
    """What can't be read again ends with the error; the state goes on with the next input."""
    with Workshop() as shop:
        table(shop)
        process = subprocess.Popen([harness.binary(), "ingest", "ns.t", "-", "--format", "ndjson", "--upsert", "--key", "id", "--deletes", "position",
                                    "--state", "st", "--checkpoint-rows", "10", "--progress"], cwd=shop.folder, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

        def put(keys, value):
            process.stdin.write(lines({"id": key, "v": value} for key in keys))
            process.stdin.flush()
        put(range(10), "a")
        wait_for(lambda: len(shop.cat("ns.t", check=False).rows) == 10)
        put(range(5), "b")
        said = ""

        def taken():
            nonlocal said
            while select.select([process.stderr], [], [], 0)[0] and process.poll() is None:
                said += os.read(process.stderr.fileno(), 65536).decode()
            return ": 15 rows" in said
        wait_for(taken)
        shop.tarn("delete", "ns.t", "--where", "id = 9")
        try:
            put(range(5, 10), "c")
            process.stdin.close()
        except BrokenPipeError:
            pass
        said += process.stderr.read()
        equal((process.wait(harness.SECONDS), "removed data file" in said or "must be opened again" in said), (4, True))
        rows_are(shop, [{"id": key, "v": "a"} for key in range(9)])


@for_each_kind
def rolled_back(kind, version):
    """The branch no longer holds what was committed: an error with both checkpoints, until it is accepted or moved back. What is
    deleted after it is what the branch holds, not what it held."""
    with Workshop() as shop:
        table(shop, version)
        stream = Stream(shop, *keyed(kind))
        for i in range(3):
            stream.put(range(i * KEYS, (i + 1) * KEYS), "v")
            stream.committed(i + 1)
        log = [s["snapshot_id"] for s in shop.cat("ns.t.snapshots").rows]
        shop.tarn("alter", "ns.t", "rollback", str(log[0]))
        stream.put(range(3 * KEYS, 4 * KEYS), "v")
        said = stream.failed("no longer holds checkpoint 3", str(log[2]), "checkpoint 1", str(log[0]), "--accept-rollback")
        assert "opened again" not in said, said
        equal(len(shop.cat("ns.t").rows), KEYS)
        stream.start()  # asked again, it says the same
        stream.failed("no longer holds checkpoint 3")
        stream.command.append("--accept-rollback")
        stream.start()
        wait_for(lambda: len(shop.cat("ns.t").rows) == 2 * KEYS)
        stream.stop()
        there = [*range(KEYS), *range(3 * KEYS, 4 * KEYS)]
        rows_are(shop, [stream.want[key] for key in there])
        stream.command.remove("--accept-rollback")
        stream.start()  # the state and the branch are at one again
        again = [0, KEYS, 3 * KEYS] if kind else []
        last = [*again, *range(7000, 7000 + KEYS - len(again))]
        stream.put(last, "w")
        wait_for(lambda: any(row["v"] == "w" for row in shop.cat("ns.t").rows))
        stream.stop()
        rows_are(shop, [stream.want[key] for key in {*there, *last}])


@for_each_kind
def moved_back(kind, version):
    """Rolled back and forward again while nothing was committed: nothing was missed."""
    with Workshop() as shop:
        table(shop, version)
        stream = Stream(shop, *keyed(kind))
        for i in range(2):
            stream.put(range(i * KEYS, (i + 1) * KEYS), "v")
            stream.committed(i + 1)
        log = [s["snapshot_id"] for s in shop.cat("ns.t.snapshots").rows]
        shop.tarn("alter", "ns.t", "rollback", str(log[0]))
        stream.put(range(2 * KEYS, 3 * KEYS), "v")
        stream.failed("no longer holds checkpoint 2")
        shop.tarn("alter", "ns.t", "branch", "main", "--replace", "--snapshot-id", str(log[1]))
        stream.start()
        wait_for(lambda: len(shop.cat("ns.t").rows) == 3 * KEYS)
        stream.stop()
        rows_are(shop, stream.want.values())


@for_each_kind
def dropped_and_remade(kind, version):
    """A table of the same name is not the stream's, whatever the state knows of the one before."""
    with Workshop() as shop:
        table(shop, version)
        stream = Stream(shop, *keyed(kind))
        stream.put(range(KEYS), "v")
        stream.committed(1)
        shop.tarn("drop", "ns.t")
        stream.put(range(KEYS), "w")
        stream.failed("ns.t")
        table(shop, version)
        stream.start()
        stream.failed("table")
        equal(shop.cat("ns.t").rows, [])
        shop.tarn("ingest", "ns.t", "in.ndjson", "--state", "st2", *keyed(kind))  # a new state reads the new table full
        equal(len(shop.cat("ns.t").rows), KEYS if kind else 2 * KEYS)


def damaged_index():
    """A key index that was damaged while nobody used it is made anew from the table, or refused by its name; it is never believed."""
    for kind, version in KINDS[2:]:
        for how in ("cut", "changed", "gone"):
            with Workshop() as shop:
                table(shop, version)
                stream = Stream(shop, *keyed(kind))
                for i in range(2):
                    stream.put(range(KEYS), "v%d" % i)
                    stream.committed(i + 1)
                stream.stop()
                folder = shop.path("st", [name for name in os.listdir(shop.path("st")) if name.startswith("keys-")][0])
                for name in os.listdir(folder):
                    path = os.path.join(folder, name)
                    with open(path, "rb") as file:
                        old = file.read()
                    new = old[:len(old) // 2] if how == "cut" else bytes(b ^ 0x5a for b in old)
                    if how == "gone" and not name.endswith((".sst", ".log")):
                        continue
                    os.remove(path)
                    if how != "gone":
                        with open(path, "wb") as file:
                            file.write(new)
                stream.start()
                stream.put(range(KEYS), "last")
                wait_for(lambda: stream.metric("commits") > 0 or stream.process.poll() is not None)
                if stream.process.poll() is None:
                    stream.stop()
                else:
                    stream.failed("keys-1-of-1")
                    shutil.rmtree(folder)  # as it says
                    stream.start()
                    stream.committed(1)
                    stream.stop()
                rows_are(shop, stream.want.values())


def schema_and_spec():
    """Changes that leave the rows' columns alone are followed; one that takes a column away is an error that names it."""
    for kind, version in KINDS:
        with Workshop() as shop:
            table(shop, version)
            stream = Stream(shop, *keyed(kind))
            commits = 0

            def more(value):
                nonlocal commits
                first = 0 if kind else commits * KEYS
                stream.put(range(first, first + KEYS), value)
                commits += 1
                stream.committed(commits)
            more("a")
            shop.tarn("alter", "ns.t", "add-column", "extra", "int")
            more("b")
            shop.tarn("alter", "ns.t", "partition-by", "bucket(4, id)")
            more("c")
            more("d")
            shop.tarn("alter", "ns.t", "partition-by", "bucket(2, id)" if kind else "truncate(1, v)")
            more("e")
            shop.tarn("alter", "ns.t", "rename-column", "extra", "other")
            more("f")
            stream.stop()
            rows_are(shop, [{**row, "other": None} for row in stream.want.values()])
            stream.start()
            shop.tarn("alter", "ns.t", "drop-column", "v") if kind else shop.tarn("alter", "ns.t", "rename-column", "v", "w")
            before = len(shop.cat("ns.t").rows)
            first = 10000

            def ended():  # a commit in the background is seen by the rows after it
                nonlocal first
                stream.put(range(first, first + KEYS), "g")
                first += KEYS
                time.sleep(0.3)
                return stream.process.poll() is not None
            wait_for(ended)
            stream.failed("v")
            equal(len(shop.cat("ns.t").rows) >= before, True)


@for_each_kind
def two_jobs(kind, version):
    """One sink id, two states: the second is told that the branch is ahead of it; taking over with the first's state fences the first.
    Where the first has the key index open the second is refused, and harms nothing, until the first is gone."""
    with Workshop() as shop:
        table(shop, version)
        stream = Stream(shop, "--sink-id", "job", *keyed(kind))
        stream.put(range(KEYS), "v")
        stream.committed(1)
        done = shop.tarn("ingest", "ns.t", "in.ndjson", "--state", "other", "--sink-id", "job", *keyed(kind), check=False)
        assert done.status == 4 and "checkpoint 0" in done.err and "checkpoint 1" in done.err, done
        equal(len(shop.cat("ns.t").rows), KEYS)
        shop.write("more.ndjson", lines([{"id": 5000, "v": "x"}]))
        if kind in ("position", "vector"):
            second = Stream(shop, "--sink-id", "job", *keyed(kind))
            second.failed("keys-1-of-1 is in use", "another job has this state folder")
            stream.put(range(KEYS), "w")
            stream.committed(2)
            stream.process.kill()
            stream.process.wait()
        second = Stream(shop, "--sink-id", "job", *keyed(kind))
        others = range(6000, 6000 + KEYS)
        second.put(others, "v")
        stream.want.update(second.want)
        # One that is stopped before it has read ends well too, and leaves the row to the next.
        wait_for(lambda: {"id": 6000, "v": "v"} in shop.cat("ns.t").rows)
        second.stop()
        stream.put(range(100, 100 + KEYS), "v")
        if stream.process.poll() is None:
            stream.failed("job")
        rows_are(shop, [stream.want[key] for key in [*range(KEYS), *others]])
        stream.start()
        wait_for(lambda: len(shop.cat("ns.t").rows) == 3 * KEYS)
        stream.stop()
        rows_are(shop, stream.want.values())


def second_start():
    """A job on a state folder whose key index another has open says so and takes nothing over: the first goes on, and ends with every row."""
    for kind, version in (("position", "2"), ("vector", "3")):
        with Workshop() as shop:
            table(shop, version)
            stream = Stream(shop, "--upsert", "--key", "id", "--deletes", kind)
            stream.put(range(KEYS), "a")
            stream.committed(1)
            stream.put(range(KEYS // 2), "b")  # in the middle of a checkpoint
            epoch = stream.highest()
            done = shop.tarn(*stream.command[1:], check=False)
            assert done.status != 0 and "is in use: another job has this state folder" in done.err, done
            equal(stream.highest(), epoch)
            stream.put(range(KEYS // 2, KEYS + 5), "c")
            stream.committed(2)
            stream.put(range(0, KEYS, 7), "d")
            stream.stop()
            shop.tarn(*[word for word in stream.command[1:] if word != "--follow"])  # the index is free again; what was not read yet is
            rows_are(shop, stream.want.values())


def made_and_failed():
    """A table that the command made goes with it where it failed before there were rows, and not when commits were on their way only."""
    for rows in (KEYS, 0):
        with Workshop() as shop:
            stream = Stream(shop, "--create", "--schema", "id long not null, v string")
            wait_for(lambda: shop.tarn("cat", "ns.t", check=False).status == 0 or stream.process.poll() is not None)
            db = sqlite3.connect(shop.path("tarn.db"), isolation_level=None)
            db.execute("BEGIN IMMEDIATE")  # the commit waits
            if rows > 0:
                stream.put(range(rows), "v")
                wait_for(lambda: stream.metric("checkpoints") == 1)
            with open(shop.path("in.ndjson"), "a", encoding="utf-8") as file:
                file.write('{"id":"no number"}\n')
            time.sleep(0.7)  # most likely it has failed by then, and waits for what is on its way
            db.execute("ROLLBACK")
            db.close()
            said = stream.failed("no number")
            equal("50 rows of 1 commit stay" in said, rows > 0)
            equal(shop.tarn("cat", "ns.t", "--count", check=False).status == 0, rows > 0)
            if rows > 0:
                rows_are(shop, stream.want.values())


class Watch(threading.Thread):
    """Reads a metrics file again and again: which counters were less than before."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.seen, self.fell, self.ended = path, {}, [], False
        self.start()

    def run(self):
        while not self.ended:
            with open(self.path, encoding="utf-8") as file:
                for name, value in (line.split()[:2] for line in file if not line.startswith("#") and "_total{" in line):
                    if float(value) < self.seen.get(name, 0):
                        self.fell.append((name, self.seen[name], value))
                    self.seen[name] = float(value)
            time.sleep(0.01)


def several_on_their_way():
    """A conflict takes back every checkpoint that is on its way. Their rows are counted once, as are bad ones that were set aside with them.

    The catalog's lock keeps commits waiting; when it goes, the table is at a version in which the files that they delete rows of are gone."""
    with Workshop() as shop:
        table(shop)
        stream = Stream(shop, "--upsert", "--key", "id", "--deletes", "position", "--rejects", "bad.ndjson", "--log", "json")
        stream.put(list(range(KEYS - 1)) + [1000000], "first")
        stream.committed(1)
        watch = Watch(shop.path("st.prom"))
        db = sqlite3.connect(shop.path("tarn.db"), isolation_level=None)
        where = lambda: db.execute("SELECT metadata_location FROM iceberg_tables").fetchone()[0]
        before = where()
        rewrite_with_tarn(shop, stream)
        after = where()
        db.execute("UPDATE iceberg_tables SET metadata_location = ?", (before,))
        db.execute("BEGIN IMMEDIATE")
        for i in range(4):
            stream.put(range(KEYS), "on its way %d" % i)
        wait_for(lambda: stream.metric("checkpoints") >= 5)
        db.execute("UPDATE iceberg_tables SET metadata_location = ?", (after,))
        db.execute("COMMIT")
        db.close()
        wait_for(lambda: stream.metric("checkpoint_conflicts") == 1)
        stream.put(range(10, 10 + KEYS), "last")
        wait_for(lambda: {"id": 10 + KEYS - 1, "v": "last"} in shop.cat("ns.t").rows)
        said = stream.stop()
        watch.ended = True
        watch.join()
        rows_are(shop, stream.want.values())
        read = 6 * KEYS
        events = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        done = events[-1]
        equal((done["event"], done["rows"], done["rejected"]), ("done", read, len(stream.bad)))
        last = [event for event in events if event["event"] != "done"][-1]
        equal((last["rows-total"], last["rejected"], stream.metric("rows"), stream.metric("rejected_rows")),
              (read, len(stream.bad), read, len(stream.bad)))
        snapshots = [(s["snapshot_id"], dict(zip(s["summary"]["keys"], s["summary"]["values"]))) for s in shop.cat("ns.t.snapshots").rows]
        ours = [s for s in snapshots if "tarn.sink-id" in s[1]]
        total = lambda key: sum(int(s[1].get(key, 0)) for s in ours)
        equal((done["commits"], done["files"], done["snapshot-id"]), (len(ours), total("added-data-files"), ours[-1][0]))
        equal([stream.metric(name + "_total") for name in ("commits", "data_files", "delete_files", "rows_written", "written_bytes")],
              [len(ours)] + [total("added-" + key) for key in ("data-files", "delete-files", "records", "files-size")])
        assert not watch.fell, "counters went down: %s" % watch.fell


def full_disk():
    """A disk that fills up at a checkpoint: the error says so, and once there is room the same command goes on, with every row once."""
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        raise harness.Refused("no mount namespaces")
    for kind, version, disk in (("", "2", "warehouse"), ("position", "2", "warehouse"), ("vector", "3", "warehouse"), ("equality", "2", "warehouse"),
                                ("vector", "3", "st"), ("equality", "2", "st"), ("position", "2", "st")):
        with Workshop() as shop:
            options = "--upsert --key id --deletes %s" % kind if kind else ""
            rows = [{"id": i % 1500 if kind else i, "v": "%08d" % (i * 7919 % 99999989)} for i in range(6000)]
            shop.write("in.ndjson", lines(rows))
            script = """
                set -e
                mkdir -p %(disk)s; mount -t tmpfs -o size=8m tmpfs %(disk)s
                $T create ns.t 'id long not null, v string' --format-version %(version)s
                head -n 2000 in.ndjson > part.ndjson; ln part.ndjson log.ndjson
                run() { $T ingest ns.t log.ndjson --state st --checkpoint-rows 500 -q %(options)s; }
                run
                cat in.ndjson > log.ndjson
                dd if=/dev/zero of=%(disk)s/fill bs=1k 2>/dev/null || true
                free=%(free)d
                status=0
                for i in 1 2 3 4 5 6 7 8; do
                    truncate -s -${free}k %(disk)s/fill
                    run 2>> said || status=$?
                    $T cat ns.t --count > count || exit 99
                    free=$((free * 2))
                done
                rm %(disk)s/fill
                run
                echo "status $status"
                $T cat ns.t --format ndjson > out
                $T check ns.t -q
            """ % {"disk": disk, "version": version, "options": options, "free": 4 if disk == "st" else 20}
            done = subprocess.run(["unshare", "-m", "bash", "-c", script], cwd=shop.folder, env={**os.environ, "T": harness.binary()},
                                  capture_output=True, text=True, timeout=harness.SECONDS)
            assert done.returncode == 0, (kind, disk, done.stdout[-500:], done.stderr[-1500:])
            with open(shop.path("said"), encoding="utf-8") as file:
                said = file.read()
            assert "No space left on device" in said, (kind, disk, said)
            want = {row["id"]: row for row in rows}
            with open(shop.path("out"), encoding="utf-8") as file:
                got = [json.loads(line) for line in file if line.startswith("{")]
            equal(len(got), len(want))
            equal(sorted(got, key=lambda r: r["id"]), sorted(want.values(), key=lambda r: r["id"]))


def full_state():
    """State folders with hardly any room, of many sizes: what ends the command is an error, never a crash; with room every row is there once."""
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        raise harness.Refused("no mount namespaces")
    with Workshop() as shop:
        shop.write("in.ndjson", lines([{"id": i % 500, "v": "%d" % i} for i in range(3000)]))
        script = """
            run() { $T ingest ns.t in.ndjson --upsert --key id --deletes position --state small/st -q "$@"; }
            mkdir small
            for size in 32 40 56 64 80; do
                mount -t tmpfs -o size=${size}k tmpfs small
                $T create ns.t 'id long not null, v string'
                for rows in 100 200 300; do
                    run --checkpoint-rows $rows 2>> said
                    echo $?
                done
                mount -o remount,size=50m small
                run && $T cat ns.t --count && $T drop ns.t
                umount small
            done"""
        done = subprocess.run(["unshare", "-m", "bash", "-c", script], cwd=shop.folder, env=dict(os.environ, T=harness.binary()), capture_output=True, text=True)
        said = [int(line) for line in done.stdout.split()]
        equal(len(said), 20)
        assert all(n == 500 for n in said[3::4]) and all(n in (0, 7) for i, n in enumerate(said) if i % 4 != 3), (said, done.stderr)
        assert 7 in said, said


CASES = [position_and_pyiceberg, position_and_delete, vector_and_delete, equality_and_upgrade, position_and_upgrade, standard_input, rolled_back,
         moved_back, dropped_and_remade, damaged_index, schema_and_spec, two_jobs, second_start, made_and_failed, several_on_their_way, full_disk, full_state]


def main(names):
    harness.need("pyiceberg", "pyarrow")
    for test in CASES:
        if not names or test.__name__ in names:
            case(test.__name__, test)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
