#!/usr/bin/env python3
"""Goal: `tarn serve` is a REST catalog to Iceberg's own library. Method: Iceberg's REST compatibility kit, of which no test may fail;
Spark makes, changes and reads tables and views through the service, and the command reads what came of it.

Needs the script that starts servers for tests (TARN_ENGINE, or shared/engines/engine beside this tree) and Java; says SKIPPED without.
environment: TARN; usage: test_serve_engines.py [CASE ...]
"""
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402
from harness import Workshop, case, equal  # noqa: E402
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
call rest.system.expire_snapshots(table => 'ns.c', older_than => timestamp'2040-01-01 00:00:00');
call rest.system.rewrite_data_files(table => 'ns.t', options => map('min-input-files','2'));
show views in rest.ns;
select * from rest.ns.w;
select a from rest.ns.c;
select count(*) as n, sum(id) as total from rest.ns.t;
"""


def engine(*arguments, **env):
    done = subprocess.run([ENGINE, *arguments], capture_output=True, text=True, timeout=900, env={**os.environ, **env})
    return done.returncode, done.stdout + done.stderr


def compatibility_kit():
    with Workshop() as shop, Server(shop) as server:
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


CASES = [compatibility_kit, spark]


def main():
    if not os.path.exists(ENGINE) or shutil.which("java") is None:
        print("SKIPPED: no %s or no Java" % ENGINE)
        return harness.SKIPPED
    for check in CASES:
        if len(sys.argv) == 1 or check.__name__ in sys.argv[1:]:
            case(check.__name__, check)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
