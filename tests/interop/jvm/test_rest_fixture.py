#!/usr/bin/env python3
"""Goal: tarn is a good client of a REST catalog that is not ours: Iceberg's own fixture server. Method: the catalogs' conformance
suite runs against it; then the command makes and changes tables which PyIceberg's REST catalog reads and writes as well.

Needs the script that starts servers for tests (TARN_ENGINE, or shared/engines/engine beside this tree) and Java; says SKIPPED without.
environment: TARN, CONFORMANCE (the built catalog_conformance)
"""
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402
from harness import Workshop, case, equal, must_refuse  # noqa: E402

harness.need("pyiceberg", "pyarrow")
ENGINE = os.environ.get("TARN_ENGINE") or os.path.join(harness.SHARED, "engines", "engine")


class Fixture:
    """SQLite below it compares names in LIKE by case, and it asks for namespaces, as the suite expects of a catalog."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="tarn-rest-")
        env = {**os.environ, "CATALOG_URI": "jdbc:sqlite:%s/catalog.db?case_sensitive_like=true" % self.folder,
               "CATALOG_JDBC_SCHEMA__VERSION": "V1", "CATALOG_JDBC_STRICT__MODE": "true"}
        done = subprocess.run([ENGINE, "rest-fixture", "start", self.folder], capture_output=True, text=True, env=env)
        if done.returncode != 0:
            raise RuntimeError("the fixture did not start: %s" % done.stderr)
        told = dict(line.split("=", 1) for line in done.stdout.split("\n") if "=" in line)
        self.url, self.warehouse = told["URL"], told["WAREHOUSE"]
        return self

    def __exit__(self, *unused):
        subprocess.run([ENGINE, "rest-fixture", "stop", self.folder], capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def conformance(fixture):
    program = os.environ.get("CONFORMANCE")
    assert program, "set CONFORMANCE"
    done = subprocess.run([program], capture_output=True, text=True, timeout=600,
                          env={**os.environ, "TARN_TEST_REST": fixture.url, "TARN_TEST_REST_WAREHOUSE": fixture.warehouse})
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def commands(fixture):
    for version in (2, 3):
        one_version(fixture, version)


def one_version(fixture, version):
    import pyarrow as pa
    from pyiceberg.catalog.rest import RestCatalog
    with Workshop() as s:
        theirs = RestCatalog("fixture", uri=fixture.url)
        name = "shop%d.t" % version
        s.write("rows.ndjson", "".join('{"id": %d, "name": "n%d", "day": "2024-0%d-01"}\n' % (i, i, 1 + i % 3) for i in range(9)))

        def run(*arguments, **more):
            return s.tarn("-c", fixture.url, *arguments, **more)

        run("create", name, "id long not null, name string, day date", "--partition-by", "month(day), bucket(4, id)", "--sort-by",
            "id desc", "--format-version", str(version), "--property", "x=1")
        run("ingest", name, "rows.ndjson")
        table = theirs.load_table(name)
        equal(table.metadata.format_version, version)
        equal(table.properties["x"], "1")
        equal(sorted(table.scan().to_arrow()["id"].to_pylist()), list(range(9)))
        run("alter", name, "add-column", "price", "double")
        run("alter", name, "add-partition", "truncate(2, name)")
        run("alter", name, "sort-by", "name")
        run("alter", name, "branch", "b1")
        run("alter", name, "tag", "t1")
        run("delete", name, "--where", "id >= 7")
        run("set", name, "y=2")
        table.refresh()
        equal(sorted(table.scan().to_arrow()["id"].to_pylist()), list(range(7)))
        equal([f.name for f in table.schema().fields], ["id", "name", "day", "price"])
        equal(sorted(table.refs()), ["b1", "main", "t1"])
        equal(len(table.spec().fields), 3)
        if version == 2:
            import datetime
            row = pa.table({"id": pa.array([70], pa.int64()), "name": ["theirs"], "day": [datetime.date(2024, 5, 1)],
                            "price": pa.array([1.5])},
                           schema=pa.schema([pa.field("id", pa.int64(), False), pa.field("name", pa.string()),
                                             pa.field("day", pa.date32()), pa.field("price", pa.float64())]))
            table.append(row)
            equal(len(run("cat", name, "--format", "ndjson").rows), 8)
        run("alter", name, "drop-ref", "t1")
        where = theirs.load_table(name).metadata_location
        run("rename", name, name + "2")
        run("register", name, where)
        equal(sorted(t[-1] for t in theirs.list_tables("shop%d" % version)), ["t", "t2"])
        run("drop", name + "2")
        run("drop", name, "--purge")
        equal(theirs.list_tables("shop%d" % version), [])
        must_refuse(run("cat", name, check=False), "t")


CASES = [conformance, commands]


def main():
    if not os.path.exists(ENGINE) or not shutil.which("mvn"):
        print("SKIPPED: needs %s and Maven" % ENGINE)
        return harness.SKIPPED
    with Fixture() as fixture:
        for fn in CASES:
            case(fn.__name__, fn, fixture)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
