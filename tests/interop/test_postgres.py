#!/usr/bin/env python3
"""Goal: a catalog in PostgreSQL is the one that PyIceberg sees, keeps names as they are, gives no password away, and loses no commit
and doubles none, whatever becomes of the connection and the server. Method: a real server on 127.0.0.1; a proxy in front of it that
breaks connections at chosen statements; backends and the whole server killed while commands commit.

usage: test_postgres.py [CASE ...]    environment: KILL_RUNS (kills of the server's processes, default 12)
"""
import os
import random
import subprocess
import sys
import time

import harness
from harness import Workshop, case, equal, must_refuse

sys.path.insert(0, os.path.join(harness.ROOT, "tests", "support"))
harness.need("pyiceberg", "pyarrow", "psycopg2")
import postgres  # noqa: E402

RUNS = int(os.environ.get("KILL_RUNS", "12"))
DENIED, INVALID, NOT_FOUND, IO = 11, 2, 3, 7


class Proxy(harness.Relay):
    """Breaks both ends when the client sends what holds words: before it reaches the server, or once the answer is there."""

    def __init__(self, port, words, after, times=1):
        self.words, self.after, self.times, self.broken = words, after, times, 0
        super().__init__(port)

    def uri(self, uri):
        return uri.replace(":%d/" % self.to, ":%d/" % self.port)

    def passes(self, data, state, is_client):
        if is_client and self.broken < self.times and self.words in data:
            self.broken += 1
            state["hit"] = self.after
            return self.after
        return is_client or not state["hit"]  # the server has answered: it is done


class Shop(Workshop):
    """A catalog of its own in the one server."""
    server = None
    made = 0

    def __init__(self):
        super().__init__()
        Shop.made += 1
        database = "shop%d" % Shop.made
        self.sql("create database " + database, "postgres")
        self.database = database
        self.uri = Shop.server.uri.replace("/postgres", "/" + database)
        self.write("rows.ndjson", "".join('{"id": %d, "name": "n%d"}\n' % (i, i) for i in range(3)))

    def sql(self, text, database=None, *arguments):
        import psycopg2
        connection = psycopg2.connect(Shop.server.uri.replace("/postgres", "/" + (database or self.database)))
        try:
            connection.autocommit = True
            cursor = connection.cursor()
            cursor.execute(text, arguments)
            return cursor.fetchall() if cursor.description else []
        finally:
            connection.close()

    def run(self, *arguments, uri=None, **more):
        env = {"TARN_CATALOG": uri or self.uri, **more.pop("env", {})}
        answer = self.tarn("--warehouse", self.path("warehouse"), *arguments, env=env, **more)
        for secret in (postgres.PASSWORD, postgres.QUOTED):
            assert secret not in answer.out + answer.err, "the password was shown: %s" % answer
        return answer

    def catalog(self):
        from pyiceberg.catalog.sql import SqlCatalog
        return SqlCatalog("tarn", uri=self.uri.replace("postgresql:", "postgresql+psycopg2:"),
                          warehouse="file://" + self.path("warehouse"))

    def count(self, name="a.t"):
        return self.catalog().load_table(name).scan().to_arrow().num_rows


def commands():
    with Shop() as s:
        s.run("create", "a.t", "id long, name string")
        s.run("ingest", "a.t", "rows.ndjson")
        equal(sorted(s.catalog().load_table("a.t").scan().to_arrow()["id"].to_pylist()), [0, 1, 2])
        import pyarrow as pa
        s.catalog().load_table("a.t").append(pa.table({"id": [7], "name": ["theirs"]}))
        equal(sorted(r["id"] for r in s.run("cat", "a.t", "--format", "ndjson").rows), [0, 1, 2, 7])
        s.run("alter", "a.t", "add-column", "price", "double")
        s.run("delete", "a.t", "--where", "id = 1")
        equal(s.count(), 3)
        s.run("rename", "a.t", "a.u")
        equal(s.catalog().list_tables("a"), [("a", "u")])
        s.catalog().create_namespace("theirs", {"owner": "x"})
        equal(s.run("ls", "theirs").out, "")
        s.run("drop", "a.u", "--purge")
        must_refuse(s.run("cat", "a.u", check=False), "a.u")
        equal(s.sql("select count(*) from iceberg_tables"), [(0,)])


def addresses():
    """Every way of saying where it is."""
    with Shop() as s:
        s.run("create", "a.t", "id long, name string")
        keywords = "postgresql:host=127.0.0.1 port=%d user=tarn dbname=%s" % (Shop.server.port, s.database)
        for uri in (s.uri.replace("postgresql:", "postgres:"), s.uri.replace("postgresql:", "postgresql+psycopg2:"),
                    keywords + " password='%s'" % postgres.PASSWORD):
            equal(s.run("ls", "a", uri=uri).out.strip(), "a.t")
        equal(s.run("ls", "a", uri=keywords, env={"PGPASSWORD": postgres.PASSWORD}).out.strip(), "a.t")
        s.write(".pyiceberg.yaml", "catalog:\n  tarn:\n    uri: %s\n" % s.uri.replace("postgresql:", "postgresql+psycopg2:"))
        equal(s.run("ls", "a", uri="tarn", env={"HOME": s.folder}).out.strip(), "a.t")


def secrets():
    with Shop() as s:
        wrong = s.uri.replace(postgres.QUOTED, "wr0ng-secret")
        answer = s.run("-v", "ls", uri=wrong, check=False)
        equal(answer.status, DENIED)
        assert "wr0ng" not in answer.err, answer
        for uri in (s.uri.replace("127.0.0.1", "127.0.0.1 bad"), s.uri.replace("postgresql://", "postgresql://[x"),
                    s.uri + "?nonsense=1", s.uri.replace("@", "@@"), "postgresql:password=%s=" % postgres.PASSWORD,
                    s.uri.replace(":%d/" % Shop.server.port, ":1/"), s.uri.replace(s.database, "nowhere")):
            answer = s.run("-v", "ls", uri=uri, check=False)
            assert answer.status in (INVALID, IO, NOT_FOUND, DENIED), answer


def names():
    """B38: names are not patterns; and order and sameness go by bytes, whatever the database sorts by."""
    with Shop() as s:
        for name in ("my_ns_112_1", "my_ns_1_2", "MY_NS_1_2", "a", "a-c", "A", "\u00e4"):
            s.run("create", "`%s`.t" % name, "id long")
        equal(s.run("ls", "my_ns_1_2").out.split(), ["my_ns_1_2.t"])
        s.run("create", "a.b.t", "id long")
        listed = [line.strip() for line in s.run("ls").out.splitlines()]
        for name in ("my_ns_112_1", "my_ns_1_2", "MY_NS_1_2", "a", "a-c", "A", "\u00e4"):
            assert any(name == line.strip("`").split(".")[0] for line in listed), listed
        s.run("drop", "my_ns_1_2.t")
        equal(s.run("ls", "MY_NS_1_2").out.split(), ["MY_NS_1_2.t"])


def old_schema():
    """Tables of schema V0, without iceberg_type."""
    with Shop() as s:
        s.sql("create table iceberg_tables (catalog_name varchar(255) not null, table_namespace varchar(255) not null, table_name "
              "varchar(255) not null, metadata_location varchar(1000), previous_metadata_location varchar(1000), primary key "
              "(catalog_name, table_namespace, table_name))")
        s.run("create", "a.t", "id long, name string")
        s.run("ingest", "a.t", "rows.ndjson")
        equal(len(s.run("cat", "a.t", "--format", "ndjson").rows), 3)
        equal(s.sql("select table_name, previous_metadata_location is not null from iceberg_tables"), [("t", True)])


def lost_answers():
    """The connection breaks at the swap, before or after it was done: the command finds out, and it is done once."""
    for words, arguments in ((b"UPDATE iceberg_tables", ("ingest", "a.t", "rows.ndjson")), (b"COMMIT\0", ("create", "a.n", "id long")),
                             (b"INSERT INTO iceberg_tables", ("create", "a.n", "id long")),
                             (b"SELECT metadata_location", ("ingest", "a.t", "rows.ndjson")),
                             (b"BEGIN;", ("create", "a.n", "id long"))):
        for after in (False, True):
            with Shop() as s:
                s.run("create", "a.t", "id long, name string")
                proxy = Proxy(Shop.server.port, words, after)
                answer = s.run(*arguments, uri=proxy.uri(s.uri), check=False)
                where = (words, after)
                equal((where, proxy.broken > 0), (where, True))
                if words.startswith(b"INSERT"):  # inside of a transaction that was not committed
                    assert answer.status in (0, IO), answer
                else:
                    equal((where, answer.status, answer.err[-300:]), (where, 0, answer.err[-300:]))
                if arguments[0] == "ingest":
                    equal((where, s.count()), (where, 3))
                elif answer.status == 0:
                    s.catalog().load_table("a.n")
                proxy.listener.close()


def start(s, *arguments):
    return subprocess.Popen([harness.binary(), "--warehouse", s.path("warehouse"), *arguments], cwd=s.folder,
                            env={**os.environ, "TARN_CATALOG": s.uri}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def race():
    """Processes that commit to one table at once."""
    with Shop() as s:
        s.run("create", "a.t", "id long, name string", "--property", "commit.retry.num-retries=40")
        running = [start(s, "ingest", "a.t", "rows.ndjson") for _ in range(8)]
        failed = [p.communicate()[1] for p in running if p.wait() != 0]
        equal(failed, [])
        equal(s.count(), 24)
        equal(len(s.catalog().load_table("a.t").metadata.snapshots), 8)


def killed():
    """kill -9 of the server's backends, and of the whole server, while commands commit: what was said is what is there."""
    chance = random.Random(7)
    with Shop() as s:
        s.run("create", "a.t", "id long, name string", "--property", "commit.retry.num-retries=20")
        sure = unsure = 0
        for i in range(RUNS):
            running = [start(s, "ingest", "a.t", "rows.ndjson") for _ in range(3)]
            time.sleep(chance.uniform(0.02, 0.35))
            if i % 3 == 2:
                Shop.server.crash()
                Shop.server.start()
            else:
                Shop.server.kill_backends()
            for p in running:
                err = p.communicate()[1]
                sure += p.returncode == 0
                unsure += p.returncode == 5
                assert p.returncode in (0, 4, 5, 7) and "Sanitizer" not in err, (p.returncode, err)
        for _ in range(100):
            try:
                there = s.count() // 3
                break
            except Exception:
                time.sleep(0.2)
        assert sure <= there <= sure + unsure, (sure, unsure, there)
        assert sure > 0
        s.run("ingest", "a.t", "rows.ndjson")
        equal(s.count(), 3 * there + 3)
        print("killed: %d of %d done, %d unknown" % (sure, 3 * RUNS, unsure))


CASES = [commands, addresses, secrets, names, old_schema, lost_answers, race, killed]


def main():
    if postgres.find_bin() is None:
        print("SKIPPED: no PostgreSQL server is installed (./dev setup installs it)")
        return harness.SKIPPED
    wanted = sys.argv[1:]
    with postgres.Server() as server:
        Shop.server = server
        for fn in CASES:
            if not wanted or fn.__name__ in wanted:
                case(fn.__name__, fn)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
