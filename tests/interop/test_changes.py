#!/usr/bin/env python3
"""Goal: changes between snapshots are what reading both says. Method: tables made here by all ways of writing, and tables of
other writers; for every commit the rows before, less those deleted, plus those inserted, must be the rows after it, no row may
be both, and the same must hold for any two snapshots at once. What is followed is printed once.

usage: test_changes.py [--root DIR]
"""
import glob
import gzip
import importlib.util
import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter

import harness
from harness import case, equal

EXTRA = ("_change_type", "_change_ordinal", "_commit_snapshot_id")


def count(found):
    return Counter(json.dumps(row, sort_keys=True) for row in found)


def split(found, commit=None):
    """Deleted and inserted rows of one commit, or of all."""
    sides = {"DELETE": [], "INSERT": []}
    for row in found:
        kind = {"UPDATE_BEFORE": "DELETE", "UPDATE_AFTER": "INSERT"}.get(row["_change_type"], row["_change_type"])
        if commit in (None, row["_commit_snapshot_id"]):
            sides[kind].append({k: v for k, v in row.items() if k not in EXTRA})
    return count(sides["DELETE"]), count(sides["INSERT"])


def check(before, after, found, commit=None):
    deleted, inserted = split(found, commit)
    assert not deleted & inserted, "rows were both deleted and inserted: %s" % list(deleted & inserted)[:3]
    assert not deleted - before, "rows were deleted that were not there: %s" % list(deleted - before)[:3]
    harness.equal(before - deleted + inserted, after)


def check_history(read, changes, history):
    """history: snapshots, oldest first."""
    states = {0: Counter()}
    for snapshot in history:
        states[snapshot] = count(read(snapshot))
    every = changes("--to", history[-1])
    for before, after in zip([0] + history, history):
        check(states[before], states[after], every, after)
    for _ in range(6):
        i, k = sorted(random.sample(range(len(history) + 1), 2))
        before, after = ([0] + history)[i], ([0] + history)[k]
        check(states[before], states[after], changes("--from", before or "start", "--to", after, "--net"))


class Own:
    """A table made by the command."""

    def __init__(self, shop, name, *options):
        self.shop, self.name, self.next = shop, name, 0
        self.ingest(20, "--create", "--partition-by", "truncate(10, k)", *options)

    def ingest(self, n, *options):
        lines = "".join('{"id":%d,"k":%d,"s":"%s"}\n' % (self.next + i, (self.next + i) % 30, "v%d" % random.randrange(5))
                        for i in range(n))
        self.next += n
        self.shop.write("rows.ndjson", lines)
        self.shop.tarn("ingest", self.name, "rows.ndjson", *options)

    def step(self):
        draw = random.randrange(5)
        if draw == 0:
            self.ingest(random.randrange(1, 9))
        elif draw == 1:
            low = random.randrange(self.next)
            self.shop.tarn("delete", self.name, "--where", "id >= %d and id < %d" % (low, low + random.randrange(1, 6)))
        elif draw == 2:
            self.shop.tarn("update", self.name, "--set", "s = 'u%d'" % random.randrange(3), "--where", "id = %d" % random.randrange(self.next))
        elif draw == 3:
            self.shop.write("merge.ndjson", "".join('{"id":%d,"k":%d,"s":"m"}\n' % (i, i % 30)
                                                   for i in random.sample(range(self.next + 3), 4)))
            self.next += 3
            self.shop.tarn("merge", self.name, "merge.ndjson", "--key", "id")
        else:
            self.shop.tarn("delete", self.name, "--where", "k = %d" % random.randrange(30))

    def history(self):
        found = self.shop.cat(self.name + ".history").rows
        return [row["snapshot_id"] for row in sorted(found, key=lambda r: r["made_current_at"])]


def own(seed, *options):
    random.seed(seed)
    with harness.Workshop() as shop:
        table = Own(shop, "ns.t", *options)
        for _ in range(10):
            table.step()
        check_history(lambda s: shop.cat("ns.t", "--snapshot-id", s).rows,
                      lambda *o: shop.tarn("changes", "ns.t", "--format", "ndjson", *o).rows, table.history())
        keyed = shop.tarn("changes", "ns.t", "--key", "id").rows
        for commit in {row["_commit_snapshot_id"] for row in keyed}:
            kinds = Counter((row["id"], row["_change_type"]) for row in keyed if row["_commit_snapshot_id"] == commit)
            for (key, kind), n in kinds.items():
                other = {"UPDATE_BEFORE": "UPDATE_AFTER", "UPDATE_AFTER": "UPDATE_BEFORE"}.get(kind)
                assert other is None or kinds[(key, other)] == n, "%s of key %s without its other half" % (kind, key)
                assert kind != "DELETE" or (key, "INSERT") not in kinds, "key %s was deleted and inserted" % key


def appends():
    """Rows between snapshots, and as they come."""
    with harness.Workshop() as shop:
        table = Own(shop, "ns.t")
        table.ingest(5)
        table.ingest(7)
        first, second, third = table.history()
        equal(len(shop.cat("ns.t", "--from", "start", "--to", first).rows), 20)
        equal(len(shop.cat("ns.t", "--from", first, "--to", second).rows), 5)
        equal(sorted(r["id"] for r in shop.cat("ns.t", "--from", first).rows), list(range(20, 32)))
        equal(shop.cat("ns.t", "--from", third).rows, [])
        equal(len(shop.cat("ns.t", "--from", first, "--where", "id = 31").rows), 1)
        harness.must_refuse(shop.cat("ns.t", "--from", third, "--to", first, check=False), "no ancestor", third)
        harness.must_refuse(shop.cat("ns.t", "--from", 12345, check=False), "no snapshot 12345")
        harness.must_refuse(shop.cat("ns.t", "--from", "x", check=False), "--from")
        shop.tarn("delete", "ns.t", "--where", "id = 3")
        harness.must_refuse(shop.cat("ns.t", "--from", first, check=False), "changed rows")


def chosen():
    """Columns, a filter and a limit take of the changes what they would take of a table of them."""
    with harness.Workshop() as shop:
        table = Own(shop, "ns.t", "--property", "write.delete.mode=merge-on-read")
        random.seed(4)
        for _ in range(6):
            table.step()
        read = lambda *o: shop.tarn("changes", "ns.t", "--key", "id", *o).rows
        whole = read()
        assert len({row["_change_type"] for row in whole}) > 2, whole
        equal(read("--where", "id < 7 and _change_type <> 'INSERT'"), [r for r in whole if r["id"] < 7 and r["_change_type"] != "INSERT"])
        commit = whole[-1]["_commit_snapshot_id"]
        equal(read("--where", "_commit_snapshot_id = %d" % commit), [r for r in whole if r["_commit_snapshot_id"] == commit])
        equal(read("--columns", "_change_type,id"), [{"_change_type": r["_change_type"], "id": r["id"]} for r in whole])
        equal(read("--columns", "id", "--where", "_change_type = 'DELETE'"), [{"id": r["id"]} for r in whole if r["_change_type"] == "DELETE"])
        for n in (0, 1, 2, len(whole) - 1, len(whole), len(whole) + 1):
            equal(read("--limit", n), whole[:n])
        equal(read("--limit", 3, "--where", "id > 2", "--columns", "id"), [{"id": r["id"]} for r in whole if r["id"] > 2][:3])
        harness.must_refuse(shop.tarn("changes", "ns.t", "--where", "nothing = 1", check=False), "nothing")
        harness.must_refuse(shop.tarn("changes", "ns.t", "--columns", "nothing", check=False), "nothing")


def lines_of(shop):
    """Of the file out, which is written meanwhile."""
    with open(shop.path("out"), encoding="utf-8") as file:
        return sum(line.endswith("\n") for line in file)


def follow():
    """Every appended row once, while they are appended."""
    with harness.Workshop() as shop:
        table = Own(shop, "ns.t")
        with open(shop.path("out"), "w", encoding="utf-8") as out:
            reader = subprocess.Popen([harness.binary(), "cat", "ns.t", "--from", "start", "--follow", "--poll", "20"],
                                      cwd=shop.folder, stdout=out)
            for _ in range(5):
                table.ingest(6)
            harness.wait_for(lambda: lines_of(shop) >= 50)
            reader.send_signal(signal.SIGINT)
            equal(reader.wait(harness.SECONDS), 130)
        with open(shop.path("out"), encoding="utf-8") as out:
            equal(sorted(json.loads(line)["id"] for line in out), list(range(50)))


def follower(shop, out, begin):
    return subprocess.Popen([harness.binary(), "cat", "ns.t", "--from", begin, "--follow", "--poll", "20"], cwd=shop.folder, stdout=out,
                            stderr=subprocess.PIPE, text=True)


def undone():
    """A branch that is rolled back while it is followed is an error that names both snapshots, as is a table made anew: what was
    given once cannot be taken back."""
    def rolled_back(shop, table, first):
        shop.tarn("alter", "ns.t", "rollback", first)

    def made_anew(shop, table, first):
        shop.tarn("drop", "ns.t")
        Own(shop, "ns.t")

    for change, words in ((rolled_back, ("no ancestor",)), (made_anew, ("no snapshot", "did not exist"))):
        with harness.Workshop() as shop:
            table = Own(shop, "ns.t")
            table.ingest(6)
            first, second = table.history()
            with open(shop.path("out"), "w", encoding="utf-8") as out:
                reader = follower(shop, out, "start")
                harness.wait_for(lambda: lines_of(shop) >= 26)
                change(shop, table, first)
                _, err = reader.communicate(timeout=harness.SECONDS)
            assert reader.returncode not in (0, 130) and any(word in err for word in words), (reader.returncode, err)
            assert "did not exist" in err or str(second) in err, err
            with open(shop.path("out"), encoding="utf-8") as out:
                equal(sum(1 for _ in out), 26)


def expired():
    """Appends are told after a snapshot that was expired, if all after it are there; changes need the rows before. What is not
    there any more is named."""
    with harness.Workshop() as shop:
        table = Own(shop, "ns.t")
        for _ in range(3):
            table.ingest(5)
        history = table.history()
        path = shop.metadata("ns.t")  # as Java leaves it: snapshots still name their parents
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        document["snapshots"] = [s for s in document["snapshots"] if s["snapshot-id"] not in history[:2]]
        document["snapshot-log"] = [s for s in document["snapshot-log"] if s["snapshot-id"] not in history[:2]]
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file)
        equal(sorted(r["id"] for r in shop.cat("ns.t", "--from", history[1]).rows), list(range(25, 35)))
        equal(sorted(r["id"] for r in shop.cat("ns.t", "--from", history[2]).rows), list(range(30, 35)))
        equal(len(shop.tarn("changes", "ns.t", "--from", history[2]).rows), 5)
        for begin in (history[0], "start"):
            harness.must_refuse(shop.cat("ns.t", "--from", begin, check=False), "expired", history[1])
        harness.must_refuse(shop.tarn("changes", "ns.t", "--from", history[1], check=False), history[1], "expired")
        harness.must_refuse(shop.tarn("changes", "ns.t", "--from", history[0], check=False), history[1], "expired")
        with open(shop.path("out"), "w", encoding="utf-8") as out:
            reader = follower(shop, out, str(history[1]))
            table.ingest(5)
            harness.wait_for(lambda: lines_of(shop) >= 15)
            reader.send_signal(signal.SIGINT)
            equal((reader.wait(harness.SECONDS), reader.stderr.read()), (130, "tarn: the work was cancelled\n"))
        with open(shop.path("out"), encoding="utf-8") as out:
            equal(sorted(json.loads(line)["id"] for line in out), list(range(25, 40)))
        if importlib.util.find_spec("pyiceberg") is not None:  # which takes the parents' names away
            last = table.history()[-1]
            shop.catalog().load_table("ns.t").maintenance.expire_snapshots().by_ids(history[2:]).commit()
            for command in ("cat", "changes"):
                harness.must_refuse(shop.tarn(command, "ns.t", "--from", history[3], check=False), history[3], "expired")
            for command in ("cat", "changes"):  # and not: what is there now came with the oldest that is left
                harness.must_refuse(shop.tarn(command, "ns.t", "--from", "start", check=False), last, "expired")
            equal(Counter(r["_change_type"] for r in shop.tarn("changes", "ns.t", "--net").rows), Counter({"INSERT": 40}))


def expired_before_a_rewrite():
    """Goal: what expired snapshots wrote is not told as inserted by the oldest that is left. Method: PyIceberg, which takes the parents' names away,
    expires all but the last of appends and a delete that rewrites a file, whose manifests are all its own."""
    with harness.Workshop() as shop:
        table = Own(shop, "ns.t", "-p", "commit.manifest.min-count-to-merge=2", "-p", "write.delete.mode=copy-on-write")
        for _ in range(2):
            table.ingest(5)
        shop.tarn("delete", "ns.t", "--where", "id in (21, 26)")
        history = table.history()
        for command in (("changes",), ("changes", "--from", "start")):
            equal(len(shop.tarn(command[0], "ns.t", *command[1:]).rows), 32)
        shop.catalog().load_table("ns.t").maintenance.expire_snapshots().by_ids(history[:-1]).commit()
        for command in (("changes",), ("changes", "--from", "start"), ("cat", "--from", "start")):
            harness.must_refuse(shop.tarn(command[0], "ns.t", *command[1:], check=False), history[-1], "expired")
        table.ingest(5)
        for command in ("changes", "cat"):
            equal(sorted(r["id"] for r in shop.tarn(command, "ns.t", "--from", history[-1]).rows), list(range(30, 35)))


def names_of_columns():
    """A table that has a column of the name of one of the three is refused by that name, since rows could not be told from it; renamed, it is read."""
    for name in EXTRA:
        with harness.Workshop() as shop:
            shop.write("a.ndjson", json.dumps({"id": 1, name: "x"}) + "\n")
            shop.tarn("ingest", "ns.t", "a.ndjson", "--create")
            for more in ((), ("--columns", "id"), ("--net",)):
                harness.must_refuse(shop.tarn("changes", "ns.t", *more, check=False), name, "renamed")
            shop.tarn("alter", "ns.t", "rename-column", name, "other")
            row, = shop.tarn("changes", "ns.t").rows
            equal((row["id"], row["other"], row["_change_type"]), (1, "x", "INSERT"))


def others(folder, place, root):
    about = harness.read_json(folder, "about.json")
    metadata = root + about["metadata"][len(place):]
    with open(metadata, "rb") as f:
        text = f.read()
    document = json.loads(gzip.decompress(text) if text[:2] == b"\x1f\x8b" else text)
    known = {s["snapshot-id"]: s for s in document.get("snapshots", [])}
    history, at = [], document.get("current-snapshot-id")
    while at in known:
        history.insert(0, at)
        at = known[at].get("parent-snapshot-id")
    schemas = {known[s].get("schema-id") for s in history} - {None}
    if not history or at not in (None, -1) or not schemas <= {document.get("current-schema-id")}:
        return
    moved = "%s=%s" % (place, root)

    begun = harness.tarn("changes", metadata, "--to", history[0], "--moved", moved, check=False)
    if "is the oldest that is left" in begun.err:  # it only seems to be the first, as its parent's name went with the parent
        harness.must_refuse(begun, history[0], "expired")
        assert known[history[0]].get("sequence-number", 2) > 1, known[history[0]]
        return

    def run(*options):
        answer = harness.tarn(*options, "--format", "ndjson", "--moved", moved, check=False)
        if answer.status == harness.UNSUPPORTED and " is ORC" in answer.err:
            raise harness.Refused(answer.err.strip()[:120])
        assert answer.status == 0, answer
        return answer.rows
    check_history(lambda s: run("cat", metadata, "--snapshot-id", s), lambda *o: run("changes", metadata, *o), history)


CASES = [undone, expired, expired_before_a_rewrite, names_of_columns, appends, chosen, follow, own, others]


def main(arguments):
    place = "/tarn-fixtures/iceberg"
    root = os.path.abspath(arguments[1]) if arguments[:1] == ["--root"] else os.path.join(harness.FIXTURES, "iceberg")
    for fn in CASES[:-2]:  # of the last two there are many
        case(fn.__name__, fn)
    modes = ["write.delete.mode", "write.update.mode", "write.merge.mode"]
    for mode in ("copy-on-write", "merge-on-read"):
        for version in ("2", "3"):
            options = [o for m in modes for o in ("--property", "%s=%s" % (m, mode))] + ["--property", "format-version=" + version]
            for seed in range(3):
                case("%s, version %s, seed %d" % (mode, version, seed), own, seed, *options)
    random.seed(1)
    for path in sorted(glob.glob(os.path.join(root, "expected", "*", "*", "about.json"))):
        folder = os.path.dirname(path)
        case(os.path.relpath(folder, root), others, folder, place, root)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
