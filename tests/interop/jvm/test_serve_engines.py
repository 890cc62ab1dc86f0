#!/usr/bin/env python3
"""Goal: `tarn serve` is a REST catalog to Iceberg's own library. Method: Iceberg's REST compatibility kit, of which no test may fail;
Spark, Flink and Trino make, change and read tables and views through the service, and the command reads what came of it; 16 writers of
Spark and 16 of PyIceberg append to one table at once, and none may see a conflict; Spark merges and deletes rows beside PyIceberg's appends.

Needs the script that starts servers for tests (TARN_ENGINE, or shared/engines/engine beside this tree) and Java; says SKIPPED without.
environment: TARN; usage: test_serve_engines.py [CASE ...]
"""
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402
from harness import Workshop, equal  # noqa: E402
from test_serve import Server  # noqa: E402

ENGINE = os.environ.get("TARN_ENGINE") or os.path.join(harness.SHARED, "engines", "engine")
TESTS, MAY_ABORT = 149, 9  # what its own fixture server does: 9 tests ask for traits that it lacks

STATEMENTS = """
create namespace rest.ns;
create table rest.ns.t (id bigint, s string, d date) using iceberg partitioned by (days(d)) tblproperties (
  'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read');
insert into rest.ns.t select id, 'x', date_add(date'2024-01-01', int(id % 3)) from range(100);
delete from rest.ns.t where id = 2;
merge into rest.ns.t t using (select 3 as id, 'm' as s union all select 500, 'new') u on t.id = u.id
  when matched then update set t.s = u.s when not matched then insert (id, s, d) values (u.id, u.s, null);
alter table rest.ns.t add column extra int;
create view rest.ns.v as select id, s from rest.ns.t where s <> 'x';
create or replace view rest.ns.v (a comment 'first', b) comment 'doc' as select id, s from rest.ns.t where s <> 'x' and id > 3;
alter view rest.ns.v rename to rest.ns.w;
create table rest.ns.c using iceberg as select * from rest.ns.w;
create or replace table rest.ns.c using iceberg as select a + 1 as a from rest.ns.w;
create table rest.ns.r (id bigint, a int, s string) using iceberg partitioned by (s);
insert into rest.ns.r values (1, 2, 'x');
alter table rest.ns.r alter column a type bigint;
insert into rest.ns.r values (2, 3, 'y');
create or replace table rest.ns.r using iceberg as select cast(id as string) as id, s as a, true as s from rest.ns.r;
alter table rest.ns.r add column b int;
insert into rest.ns.r values ('2', 'again', false, 7);
call rest.system.expire_snapshots(table => 'ns.c', older_than => timestamp'2040-01-01 00:00:00');
call rest.system.rewrite_data_files(table => 'ns.t', options => map('min-input-files','2'));
create table rest.ns.v3 (id bigint, s string) using iceberg tblproperties ('write.delete.mode'='merge-on-read', 'write.merge.mode'='merge-on-read');
insert into rest.ns.v3 select id, 'two' from range(50);
insert into rest.ns.v3 select id + 50, 'two' from range(50);
alter table rest.ns.v3 set tblproperties ('format-version'='3');
insert into rest.ns.v3 select id + 100, 'three' from range(50);
delete from rest.ns.v3 where id % 10 = 3;
merge into rest.ns.v3 t using (select 4 as id union all select 1000) u on t.id = u.id
  when matched then update set t.s = 'm' when not matched then insert (id, s) values (u.id, 'new');
call rest.system.rewrite_manifests('ns.v3');
call rest.system.rewrite_data_files(table => 'ns.v3', options => map('rewrite-all','true'));
insert into rest.ns.v3 values (2000, 'last');
show views in rest.ns;
select * from rest.ns.w;
select a from rest.ns.c;
select count(*) as n, sum(id) as total from rest.ns.t;
"""

FLINK = """
SET 'execution.runtime-mode' = 'batch';
CREATE CATALOG ice WITH ('type'='iceberg','catalog-type'='rest','uri'='${ICE_REST}');
CREATE DATABASE ice.ns;
CREATE TABLE ice.ns.t (id BIGINT, s STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('format-version'='2','write.upsert.enabled'='true');
INSERT INTO ice.ns.t VALUES (1,'a'),(2,'b'),(3,'c');
INSERT INTO ice.ns.t VALUES (1,'new'),(4,'d');
CREATE TABLE ice.ns.u (id BIGINT, s STRING) PARTITIONED BY (s);
INSERT INTO ice.ns.u SELECT id, s FROM ice.ns.t;
ALTER TABLE ice.ns.u SET ('k'='v');
ALTER TABLE ice.ns.u RENAME TO w;
"""

TRINO = """
create schema ice.ns;
create table ice.ns.t (id bigint, s varchar, d date) with (partitioning = array['month(d)']);
insert into ice.ns.t values (1,'a',date '2024-01-01'),(2,'b',date '2024-02-01'),(3,'c',null);
delete from ice.ns.t where id = 2;
update ice.ns.t set s = 'new' where id = 1;
merge into ice.ns.t t using (values (3,'m'),(9,'n')) u(id, s) on t.id = u.id
  when matched then update set s = u.s when not matched then insert (id, s) values (u.id, u.s);
create view ice.ns.v as select id, s from ice.ns.t where id > 1;
alter view ice.ns.v rename to ice.ns.w;
create table ice.ns.c as select * from ice.ns.w;
alter table ice.ns.c add column x bigint;
alter table ice.ns.c execute optimize;
create or replace view ice.ns.w as select id + 1 as a from ice.ns.t;
drop table ice.ns.c;
select sum(a) as total from ice.ns.w;
"""

TRINO_FIRST = """
create schema if not exists ice.first;
create table if not exists ice.first.t (id bigint);
insert into ice.first.t values 1;
"""

WRITERS, APPENDS = 16, 3  # of each engine at once
# One session a writer, as so many applications would have; each says what kept it from appending.
APPENDERS = """
import os, threading
failed = []
def append(session, writer):
    for i in range(%d):
        try:
            session.sql("insert into rest.ns.t values (%%d, 'spark')" %% (writer * 100 + i))
        except Exception as error:
            failed.append(str(error)[:600])
spark.sql("select count(*) from rest.ns.t").collect()
open(os.environ["GO"], "w").close()
threads = [threading.Thread(target=append, args=(spark.newSession(), n)) for n in range(%d)]
[t.start() for t in threads]
[t.join() for t in threads]
print("failed: %%d" %% len(failed), *failed[:3], sep="\\n")
""" % (APPENDS, WRITERS)


ROUNDS, MAX_APPENDS = 4, 90  # row-level statements of each kind; appends of each PyIceberg writer beside them, at most
# Merges and deletes beside each other, of partitions of their own; each says what kept it from being done.
ROW_LEVEL = """
import os, threading
failed = []
def run(session, statement):
    for i in range(%d):
        try:
            session.sql(statement.replace("#", str(i)))
        except Exception as error:
            failed.append(str(error)[:600])
merge = ("merge into rest.ns.%%s t using (select # as id union all select 50 + #) u on t.part = 1 and t.id = u.id "
         "when matched then update set s = 'merged' when not matched then insert (part, id, s) values (1, u.id, 'new')")
delete = "delete from rest.ns.%%s where part = 2 and id = 100 + #"
spark.sql("select count(*) from rest.ns.cow").collect()
open(os.environ["GO"], "w").close()
threads = [threading.Thread(target=run, args=(spark.newSession(), statement %% table))
           for table in ("cow", "mor") for statement in (merge, delete)]
[t.start() for t in threads]
[t.join() for t in threads]
for table in ("cow", "mor"):
    print("rows of %%s: %%d" %% (table, spark.sql("select count(*) from rest.ns." + table).collect()[0][0]))
print("failed: %%d" %% len(failed), *failed[:3], sep="\\n")
""" % ROUNDS


def engine(*arguments, **env):
    done = subprocess.run([ENGINE, *arguments], capture_output=True, text=True, timeout=900, env={**os.environ, **env})
    return done.returncode, done.stdout + done.stderr


def compatibility_kit():
    with Workshop() as shop, Server(shop, "--allow-location", "/") as server:
        status, out = engine("rck", "run", server.url, "file:" + shop.path("warehouse"), RCK_FLAGS="-Drck.requires-namespace-create=true")
        counts = {word: int(n) for n, word in re.findall(r"\[ *(\d+) tests (\w+) *\]", out)}
        print("kit: %s" % counts)
        assert counts, "the kit did not run: %s" % out[-3000:]
        equal((counts["found"], counts["failed"]), (TESTS, 0))
        assert counts["aborted"] <= MAY_ABORT, counts


def spark():
    with Workshop() as shop, Server(shop) as server:
        script = shop.path(shop.write("all.sql", STATEMENTS))
        status, out = engine("spark-iceberg", "run", script, ICE_REST=server.url, ICE_REST_WAREHOUSE="", SPARK_LOG="ERROR")
        assert status == 0, out[-4000:]
        got = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        total = sum(range(100)) - 2 + 500
        equal(got[-4:], [{"namespace": "ns", "viewName": "w", "isTemporary": False}, {"a": 500, "b": "new"}, {"a": 501},
                         {"n": 100, "total": total}])
        ours = shop.cat("ns.t").rows
        equal((len(ours), sum(row["id"] for row in ours)), (100, total))
        equal(sorted(row["s"] for row in ours if row["s"] != "x"), ["m", "new"])
        replaced = [{"id": "1", "a": "x", "s": True, "b": None}, {"id": "2", "a": "again", "s": False, "b": 7}, {"id": "2", "a": "y", "s": True, "b": None}]
        equal(sorted(shop.cat("ns.r").rows, key=lambda r: (r["id"], r["a"])), replaced)  # columns of the same names, whose ids have other types now
        third = shop.cat("ns.v3").rows
        equal((len(third), sum(row["id"] for row in third)), (137, sum(i for i in range(150) if i % 10 != 3) + 3000))
        shop.tarn("check", "ns.v3")


def flink():
    with Workshop() as shop, Server(shop) as server:
        status, out = engine("flink-iceberg", "run", shop.path(shop.write("all.sql", FLINK)), ICE_REST=server.url)
        assert status == 0, out[-4000:]
        want = [(1, "new"), (2, "b"), (3, "c"), (4, "d")]
        for name in ("ns.t", "ns.w"):
            equal(sorted((row["id"], row["s"]) for row in shop.cat(name).rows), want)
        equal(server.catalog().load_table("ns.w").properties["k"], "v")


def wait_for_nodes(shop, url):
    """Trino takes statements before it knows of a node that can work on the catalog's tables."""
    deadline = time.monotonic() + harness.SECONDS
    status, out = 1, ""
    while status != 0 and time.monotonic() < deadline:
        status, out = engine("trino", "run", shop.path(shop.write("first.sql", TRINO_FIRST)), TRINO_URL=url)
        assert status == 0 or "nodes is empty" in out, out[-3000:]


def trino():
    with Workshop() as shop, Server(shop) as server:
        status, out = engine("trino", "start", shop.path("trino"), ICE_REST=server.url, ICE_REST_WAREHOUSE="")
        assert status == 0, out[-3000:]
        told = dict(line.split("=", 1) for line in out.split("\n") if "=" in line)
        try:
            wait_for_nodes(shop, told["URL"])
            status, out = engine("trino", "run", shop.path(shop.write("all.sql", TRINO)), TRINO_URL=told["URL"])
        finally:
            engine("trino", "stop", told["DIR"])
        assert status == 0, out[-3000:]
        equal(json.loads([line for line in out.splitlines() if line.startswith("{")][-1]), {"total": 1 + 3 + 9 + 3})
        equal(sorted((row["id"], row["s"]) for row in shop.cat("ns.t").rows), [(1, "new"), (3, "m"), (9, "n")])
        equal((server.catalog().list_tables("ns"), server.catalog().list_views("ns")), ([("ns", "t")], [("ns", "w")]))


def wait_for(path):
    deadline = time.monotonic() + 300
    while not os.path.exists(path) and time.monotonic() < deadline:
        time.sleep(0.05)


def append_pyiceberg(server, go, writer):
    import pyarrow as pa
    wait_for(go)
    table = server.catalog().load_table("ns.t")
    for i in range(APPENDS):
        table.append(pa.table({"id": pa.array([10000 + writer * 100 + i], pa.int64()), "s": ["pyiceberg"]}))


def many_writers():
    """Unmodified writers of two engines append to one table at once. Nobody may try again, so that one conflict would be seen."""
    with Workshop() as shop, Server(shop) as server:
        shop.tarn("create", "ns.t", "id long, s string", "--property", "commit.retry.num-retries=0")
        script, go = shop.path(shop.write("all.py", APPENDERS)), shop.path("go")
        with concurrent.futures.ThreadPoolExecutor(WRITERS + 1) as pool:
            spark = pool.submit(engine, "spark-iceberg", "run", script, ICE_REST=server.url, ICE_REST_WAREHOUSE="", SPARK_LOG="OFF",
                                SPARK_MASTER="local[4]", GO=go)
            others = [pool.submit(append_pyiceberg, server, go, n) for n in range(WRITERS)]
            status, out = spark.result()
            assert status == 0 and "failed: 0" in out, out[-4000:]
            for other in others:
                other.result()
        want = sorted(first + writer * 100 + i for first in (0, 10000) for writer in range(WRITERS) for i in range(APPENDS))
        equal(sorted(row["id"] for row in shop.cat("ns.t").rows), want)
        shop.tarn("check", "ns.t")


def append_beside(server, go, name, writer, over):
    """Appends that may not try again, whatever the table says, as long as rows are changed: to a partition of their own, and to one
    whose rows are merged. Gives what was appended."""
    import pyarrow as pa
    wait_for(go)
    table, rows = server.catalog().load_table("ns." + name), []
    while len(rows) < MAX_APPENDS and not over():
        rows.append((1 if len(rows) % 2 else 3, 10000 + writer * 100 + len(rows), "appended"))
        table.metadata.properties["commit.retry.num-retries"] = "0"
        table.append(pa.table({"part": pa.array([rows[-1][0]], pa.int32()), "id": pa.array([rows[-1][1]], pa.int64()), "s": [rows[-1][2]]}))
        time.sleep(0.2)
    return rows


def row_changes_beside_appends():
    """Spark merges and deletes, copy-on-write and merge-on-read, while PyIceberg appends. Spark's snapshots are made anew where they
    could not follow; appends always follow."""
    writers = 3
    levels = [word for what in ("delete", "update", "merge") for word in ("--property", "write.%s.isolation-level=snapshot" % what)]
    start = [{"part": 1, "id": i, "s": "old"} for i in range(10)] + [{"part": 2, "id": 100 + i, "s": "old"} for i in range(10)]
    with Workshop() as shop, Server(shop) as server:
        shop.write("start.ndjson", "".join(json.dumps(row) + "\n" for row in start))
        for name, mode in (("cow", "copy-on-write"), ("mor", "merge-on-read")):
            modes = [word for what in ("delete", "update", "merge") for word in ("--property", "write.%s.mode=%s" % (what, mode))]
            shop.tarn("create", "ns." + name, "part int, id long, s string", "--partition-by", "part", *levels, *modes,
                      "--property", "commit.retry.num-retries=60", "--property", "commit.retry.min-wait-ms=20")
            shop.tarn("ingest", "ns." + name, "start.ndjson")
        script, go = shop.path(shop.write("rows.py", ROW_LEVEL)), shop.path("go")
        with concurrent.futures.ThreadPoolExecutor(2 * writers + 1) as pool:
            rows = pool.submit(engine, "spark-iceberg", "run", script, ICE_REST=server.url, ICE_REST_WAREHOUSE="", SPARK_LOG="OFF",
                               SPARK_MASTER="local[4]", GO=go)
            rows.add_done_callback(lambda _: open(go, "a").close())  # nobody waits for what does not come
            others = {name: [pool.submit(append_beside, server, go, name, n, rows.done) for n in range(writers)] for name in ("cow", "mor")}
            status, out = rows.result()
            assert status == 0 and "failed: 0" in out, out[-4000:]
            appended = {name: sum((other.result() for other in others[name]), []) for name in others}
        want = [(1, i, "merged" if i < ROUNDS else "old") for i in range(10)] + [(1, 50 + i, "new") for i in range(ROUNDS)] \
            + [(2, 100 + i, "old") for i in range(ROUNDS, 10)]
        for name in ("cow", "mor"):
            equal(sorted((row["part"], row["id"], row["s"]) for row in shop.cat("ns." + name).rows), sorted(want + appended[name]))
            kinds = "".join("a" if s.summary.operation.value == "append" else "c" for s in server.catalog().load_table("ns." + name).snapshots())
            assert re.search("ca+c", kinds) and kinds.count("c") == 2 * ROUNDS, kinds  # they were beside each other
            shop.tarn("check", "ns." + name)


CASES = [compatibility_kit, spark, flink, trino, many_writers, row_changes_beside_appends]


def main():
    if not os.path.exists(ENGINE) or shutil.which("java") is None:
        print("SKIPPED: no %s or no Java" % ENGINE)
        return harness.SKIPPED
    return harness.run_cases(CASES)


if __name__ == "__main__":
    sys.exit(main())
