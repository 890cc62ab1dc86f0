#!/usr/bin/env python3
"""Goal: files that are there already become a table's, read right by others, or are refused with the file's name. Method:
folders made with pyarrow (and the hive folder of B04) are imported; tarn, PyIceberg and DuckDB read the table, and the deep
check finds nothing wrong with it.
"""
import datetime
import json
import os
import shutil
import subprocess
import sys
import urllib.parse

import harness
from harness import case, equal, same

BUGS = os.path.join(harness.FIXTURES, "bugs")


def write(folder, path, columns, **options):
    import pyarrow
    import pyarrow.parquet
    place = os.path.join(folder, path)
    os.makedirs(os.path.dirname(place), exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.table(columns), place, **options)
    return place


def clean(shop, table):
    """The deep check finds neither error nor warning."""
    report = json.loads(shop.tarn("check", "--deep", "--json", table).out)
    assert report["errors"] == 0 and report["warnings"] == 0, report["findings"]


def b04():
    """Folder names of Hive: each value decoded once, the default partition null."""
    want = [v for v in ["11/12/13", "100%", "a b", "x:y", None] for _ in range(2)]
    with harness.Workshop() as shop:
        hive = os.path.join(shop.folder, "hive")
        shutil.copytree(os.path.join(BUGS, "B04", "hive"), hive)
        shop.tarn("import", "ns.t", hive, "--create")
        rows = shop.cat("ns.t").rows
        same([r["s"] for r in rows], want)
        for value in want:
            text = "s is null" if value is None else "s = '%s'" % value
            equal(len(shop.cat("ns.t", "--where", text).rows), 2)
        loaded = shop.catalog().load_table("ns.t")
        same([f.file.partition[0] for f in loaded.scan().plan_files()], sorted(set(want) - {None}) + [None])
        theirs = loaded.scan().to_arrow().to_pylist()
        same([[r["id"], r["s"]] for r in theirs], [[r["id"], r["s"]] for r in rows])
        clean(shop, "ns.t")


def union():
    """Columns of all files, widened; statistics by the ids that the table gave; keys typed by what they hold."""
    with harness.Workshop() as shop:
        import pyarrow
        data = os.path.join(shop.folder, "data")
        write(data, "y=2023/code=007/a.parquet", {"id": pyarrow.array([1, 2], pyarrow.int32()), "name": ["x", None]})
        write(data, "y=2024/code=12/b.parquet", {"id": pyarrow.array([3, 1 << 40], pyarrow.int64()), "more": [1.5, -2.5]})
        write(data, "y=2024/code=12/_hidden.parquet", {"other": [1]})
        shop.tarn("import", "ns.t", data, "--create")
        rows = shop.cat("ns.t").rows
        same([[r["id"], r["name"], r["more"], r["y"], r["code"]] for r in rows],
             [[1, "x", None, 2023, "007"], [2, None, None, 2023, "007"], [3, None, 1.5, 2024, "12"],
              [1 << 40, None, -2.5, 2024, "12"]])
        equal(len(shop.cat("ns.t", "--where", "id > 1000").rows), 1)
        theirs = shop.catalog().load_table("ns.t").scan().to_arrow().to_pylist()
        same([[r["id"], r["y"], r["code"]] for r in theirs], [[r["id"], r["y"], r["code"]] for r in rows])
        stats = shop.cat("ns.t.files").rows
        equal(sum(f["record_count"] for f in stats), 4)
        clean(shop, "ns.t")


def duckdb_reads():
    """DuckDB takes partition columns from the metadata."""
    with harness.Workshop() as shop:
        data = os.path.join(shop.folder, "data")
        write(data, "day=2024-02-29/a.parquet", {"id": [1, 2]})
        write(data, "day=2024-03-01/b.parquet", {"id": [3]})
        shop.tarn("import", "ns.t", data, "--create")
        same(shop.duckdb_rows("ns.t"), [{"id": 1, "day": "2024-02-29"}, {"id": 2, "day": "2024-02-29"},
                                        {"id": 3, "day": "2024-03-01"}])


def transforms():
    """Partition values of transforms: from a folder named as Iceberg names it, or from bounds that leave one value."""
    import pyarrow
    day = lambda d: pyarrow.array([datetime.datetime(2024, 2, d, h) for h in (1, 23)], pyarrow.timestamp("us"))
    with harness.Workshop() as shop:
        data = os.path.join(shop.folder, "data")
        write(data, "a.parquet", {"ts": day(28), "k": [1, 1]})
        write(data, "b.parquet", {"ts": day(29), "k": [2, 2]})
        shop.tarn("import", "ns.t", data, "--create", "--partition-by", "day(ts), bucket(4, k)")
        files = shop.cat("ns.t.files").rows
        same([f["partition"]["ts_day"] for f in files], ["2024-02-28", "2024-02-29"])
        clean(shop, "ns.t")
        later = os.path.join(shop.folder, "later")
        write(later, "ts_month=2024-02/a.parquet", {"ts": day(1)})
        write(later, "ts_month=2024-02/b.parquet", {"ts": day(2)})
        shop.tarn("import", "ns.u", later, "--create", "--partition-by", "month(ts)")
        equal(len(shop.cat("ns.u", "--where", "ts < '2024-02-02'").rows), 2)
        clean(shop, "ns.u")
        wide = os.path.join(shop.folder, "wide")
        write(wide, "a.parquet", {"ts": pyarrow.concat_arrays([day(1), day(2)])})
        refused(shop, "a.parquet", "ns.v", wide, "--create", "--partition-by", "day(ts)")


def refused(shop, says, *arguments):
    before = shop.tarn("ls", check=False).out
    answer = shop.tarn("import", *arguments, check=False)
    assert answer.status not in (0, 9) and says in answer.err, answer
    equal(shop.tarn("ls", check=False).out, before)


def bad_files():
    """What cannot be the table's is refused by name, and nothing is committed."""
    with harness.Workshop() as shop:
        place = lambda name: os.path.join(shop.folder, name)
        write(place("good"), "k=1/a.parquet", {"id": [1]})
        shop.tarn("import", "ns.t", place("good"), "--create")
        snapshots = len(shop.cat("ns.t.snapshots").rows)
        refused(shop, "is in the table already", "ns.t", place("good"))
        answer = shop.tarn("import", "ns.t", place("good"), "--if-exists", "skip", "--json")
        assert '"skipped":1' in answer.out and '"files":0' in answer.out, answer
        write(place("type"), "k=1/a.parquet", {"id": ["text"]})
        refused(shop, "k=1/a.parquet", "ns.t", place("type"))
        write(place("column"), "k=1/a.parquet", {"id": [1], "extra": [1]})
        refused(shop, '"extra"', "ns.t", place("column"))
        write(place("nokey"), "a.parquet", {"id": [1]})
        refused(shop, '"k"', "ns.t", place("nokey"))
        write(place("key"), "k=1/z=2/a.parquet", {"id": [1]})
        refused(shop, '"z"', "ns.t", place("key"))
        write(place("value"), "k=one/a.parquet", {"id": [1]})
        refused(shop, "k=one", "ns.t", place("value"))
        for name, content, says in [("orc", b"ORC" + bytes(100), "ORC"), ("text", b"a,b\n1,2\n", "neither Parquet nor Avro"),
                                    ("cut", b"PAR1" + bytes(100), "k=1/f")]:
            os.makedirs(os.path.join(place(name), "k=1"))
            with open(os.path.join(place(name), "k=1", "f"), "wb") as file:
                file.write(content)
            refused(shop, says, "ns.t", place(name))
        write(place("mixed"), "k=1/a.parquet", {"id": [1]})
        write(place("mixed"), "b.parquet", {"id": [1]})
        refused(shop, "b.parquet", "ns.new", place("mixed"), "--create")
        write(place("clash"), "a.parquet", {"id": [1]})
        write(place("clash"), "b.parquet", {"id": ["x"]})
        refused(shop, "b.parquet", "ns.new", place("clash"), "--create")
        os.makedirs(place("empty"))
        refused(shop, "no files", "ns.new", place("empty"), "--create")
        equal(len(shop.cat("ns.t.snapshots").rows), snapshots)
        shop.tarn("import", "ns.dry", place("type"), "--create", "--dry-run")
        assert "dry" not in shop.tarn("ls", "ns").out


def names():
    """Keys with quotes and other marks, nested columns, Avro files."""
    with harness.Workshop() as shop:
        data = os.path.join(shop.folder, "data")
        key = 'my"str%col.x'
        write(data, urllib.parse.quote(key, safe="") + "=a%2Fb/a.parquet", {"s": [{"x": 1, "l": [1, 2]}, None]})
        shop.tarn("import", "ns.t", data, "--create")
        rows = shop.cat("ns.t").rows
        equal([r[key] for r in rows], ["a/b", "a/b"])
        equal(rows[0]["s"], {"x": 1, "l": [1, 2]})
        clean(shop, "ns.t")
        lines = os.path.join(shop.folder, "x.ndjson")
        with open(lines, "w") as file:
            file.write('{"a":1}\n{"a":2}\n')
        shop.tarn("ingest", "ns.a", lines, "--create")
        avro = os.path.join(shop.folder, "avro", "k=5")
        os.makedirs(avro)
        shop.tarn("cat", "ns.a", "--output", os.path.join(avro, "f.avro"))
        shop.tarn("import", "ns.b", os.path.join(shop.folder, "avro"), "--create")
        same([[r["a"], r["k"]] for r in shop.cat("ns.b").rows], [[1, 5], [2, 5]])
        clean(shop, "ns.b")


def with_ids(columns):
    """An Arrow table whose columns, given as name: (id, values), have field ids, those of structs below them too."""
    import pyarrow

    def mark(field, number):
        if pyarrow.types.is_struct(field.type):
            field = pyarrow.field(field.name, pyarrow.struct([mark(field.type.field(i), number + 1 + i) for i in range(field.type.num_fields)]))
        return field.with_metadata({"PARQUET:field_id": str(number)})

    table = pyarrow.table({name: values for name, (_, values) in columns.items()})
    schema = pyarrow.schema([mark(table.schema.field(name), number) for name, (number, _) in columns.items()])
    return pyarrow.table([column.cast(field.type) for column, field in zip(table.columns, schema)], schema=schema)


def write_ids(folder, path, columns):
    import pyarrow.parquet
    place = os.path.join(folder, path)
    os.makedirs(os.path.dirname(place), exist_ok=True)
    pyarrow.parquet.write_table(with_ids(columns), place)


def field_ids():
    """A new table takes over the ids of files that have some, where all of them say the same; else the file is refused, as ever."""
    with harness.Workshop() as shop:
        # an export of a table that was changed: ids are no longer 1, 2, 3
        shop.write("a.ndjson", '{"a":1,"b":"x","c":1.5}\n')
        shop.tarn("ingest", "ns.t", "a.ndjson", "--create")
        shop.tarn("alter", "ns.t", "drop-column", "a")
        shop.tarn("alter", "ns.t", "rename-column", "b", "name")
        shop.tarn("alter", "ns.t", "add-column", "s", "struct<x: int, l: list<string>>")
        shop.write("b.ndjson", '{"name":"y","c":2.5,"s":{"x":7,"l":["p","q"]}}\n')
        shop.tarn("ingest", "ns.t", "b.ndjson")
        for form in ("parquet", "avro"):
            os.makedirs(shop.path(form))
            shop.tarn("cat", "ns.t", "--output", shop.path(form, "all." + form))
            target = "ns." + form
            shop.tarn("import", target, shop.path(form), "--create")
            same(shop.cat(target).rows, shop.cat("ns.t").rows)
            if form == "parquet":
                same(shop.pyiceberg_rows(target), shop.cat("ns.t").rows)
                same(shop.duckdb_rows(target), shop.cat("ns.t").rows)
                equal(len(shop.cat(target, "--where", "name = 'y'").rows), 1)
            clean(shop, target)
            shop.tarn("alter", target, "add-column", "later", "int")
            shop.write("c.ndjson", '{"name":"z","later":5}\n')
            shop.tarn("ingest", target, "c.ndjson")
            equal(sorted((r["name"], r["later"]) for r in shop.cat(target).rows), [("x", None), ("y", None), ("z", 5)])
        # several files, one without ids, and keys of folders, which get ids of their own
        data = shop.path("data")
        write_ids(data, "k=1/a.parquet", {"v": (7, ["a"]), "w": (3, [{"p": 1, "q": 2}])})
        write_ids(data, "k=2/b.parquet", {"u": (20, [5]), "v": (7, ["b"])})
        write(data, "k=3/c.parquet", {"v": ["c"]})
        shop.tarn("import", "ns.k", data, "--create")
        want = [{"v": "a", "w": {"p": 1, "q": 2}, "u": None, "k": 1}, {"v": "b", "w": None, "u": 5, "k": 2}, {"v": "c", "w": None, "u": None, "k": 3}]
        same(shop.cat("ns.k").rows, want)
        same(shop.pyiceberg_rows("ns.k"), want)
        same(shop.duckdb_rows("ns.k", "v <> ''"), want)
        fields = json.loads(shop.tarn("describe", "ns.k", "--json").out)
        equal({f["name"]: f["id"] for f in fields["schemas"][0]["fields"]}, {"v": 7, "w": 3, "u": 20, "k": 21})
        equal(fields["last-column-id"], 21)
        clean(shop, "ns.k")
        # ids that contradict each other, or are not one column's alone
        for name, files in {
                "swap": [{"v": (7, ["a"]), "u": (20, [1])}, {"v": (20, ["a"]), "u": (7, [1])}], "twice": [{"v": (7, ["a"])}, {"u": (7, [1])}],
                "below": [{"w": (1, [{"p": 1}])}, {"w": (1, [{"x": 1}])}], "reserved": [{"v": (2147483546, ["a"])}]}.items():
            for i, columns in enumerate(files):
                write_ids(shop.path(name), "%d.parquet" % i, columns)
            refused(shop, "field id", "ns.new", shop.path(name), "--create")


def taken_back():
    """A table that was made for files which its service then refuses is gone again, with its files."""
    import test_serve
    with harness.Workshop() as shop:
        for options in ((), ("--merge-append",)):
            with test_serve.Server(shop) as server:
                away = os.path.join(shop.folder, "away")
                write(away, "a.parquet", {"id": [1, 2]})
                answer = shop.tarn("-c", server.url, "import", "ns.t", away, "--create", *options, check=False)
                assert answer.status == 2 and "outside the warehouse" in answer.err, answer
                assert "ns.t" not in shop.tarn("-c", server.url, "ls", "ns").out
                equal([name for _, _, names in os.walk(shop.path("warehouse")) for name in names], [])
            with test_serve.Server(shop, "--allow-location", away) as server:
                shop.tarn("-c", server.url, "import", "ns.t", away, "--create", *options)
                equal(len(shop.cat("ns.t").rows), 2)
                shop.tarn("drop", "ns.t", "--purge")
                write(away, "a.parquet", {"id": [1, 2]})


def clean_paths():
    """A folder is one whichever way it is named: the table has its files by the plain path, so that a service takes them, and
    knows them again; where ".." goes back over a link it is the folder that the system makes of it."""
    import test_serve
    with harness.Workshop() as shop:
        data = os.path.join(shop.folder, "data")
        place = write(data, "a.parquet", {"id": [1]})
        os.makedirs(shop.path("warehouse", "deep"))
        os.symlink(shop.path("warehouse", "deep"), shop.path("link"))
        inside = write(shop.path("warehouse"), "in/b.parquet", {"id": [2]})
        shop.tarn("import", "ns.t", shop.path("warehouse", "..", ".", "data//"), "--create")
        equal([f["file_path"] for f in shop.cat("ns.t.files").rows], [place])
        refused(shop, "is in the table already", "ns.t", "./warehouse/../data")
        with test_serve.Server(shop) as server:
            shop.tarn("-c", server.url, "import", "ns.u", "link/../in", "--create")
        equal([f["file_path"] for f in shop.cat("ns.u.files").rows], [os.path.realpath(inside)])
        shop.tarn("create", "ns.v", "id long", "--location", "warehouse/deep/../v/.")
        equal(shop.catalog().load_table("ns.v").location(), shop.path("warehouse", "v"))
        shop.tarn("alter", "ns.v", "location", "warehouse/../warehouse//w/")
        equal(shop.catalog().load_table("ns.v").location(), shop.path("warehouse", "w"))
        refused(shop, "nofolder did not exist", "ns.w", "nofolder", "--create")


def looks_without_a_catalog():
    """--dry-run tells what an import would do where there is no catalog yet, and makes none; also of a table that would be made in one."""
    with harness.Workshop() as shop:
        data = shop.path("data")
        write(data, "k=1/a.parquet", {"id": [1, 2]})
        write(shop.path("bad"), "a.parquet", {"id": [1]})
        write(shop.path("bad"), "b.parquet", {"id": ["x"]})
        for options in ([], ["-c", "dir:" + shop.path("house")], ["-c", "sqlite:" + shop.path("other.db")]):
            before = sorted(os.listdir(shop.folder))
            report = json.loads(shop.tarn("import", "ns.t", data, "--create", "--dry-run", "--json", *options).out)
            equal((report["files"], report["rows"], report["dry-run"]), (1, 2, True))
            harness.must_refuse(shop.tarn("import", "ns.t", shop.path("bad"), "--create", "--dry-run", *options, check=False), "b.parquet")
            harness.must_refuse(shop.tarn("import", "ns.t", data, "--dry-run", *options, check=False), "no catalog")
            equal(sorted(os.listdir(shop.folder)), before)
        shop.tarn("import", "ns.t", data, "--create")
        harness.must_refuse(shop.tarn("import", "ns.t", data, "--create", "--dry-run", check=False), "in the table already")


def at_once():
    """Two imports of one file through a service: the one that arrives late is not put on the other."""
    with harness.Workshop() as shop, harness.Service(shop) as service:
        write(shop.path("warehouse/data"), "a.parquet", {"id": [1, 2]})
        shop.tarn("-c", service.url, "create", "ns.t", "id long")
        held = harness.Held(service.port, b"add-snapshot")
        first = subprocess.Popen([harness.binary(), "-c", "http://127.0.0.1:%d" % held.port, "import", "ns.t", "warehouse/data"], cwd=shop.folder,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        assert held.waits.wait(harness.SECONDS)
        shop.tarn("-c", service.url, "import", "ns.t", "warehouse/data")
        held.go.set()
        assert "added to the table by somebody else" in first.communicate(timeout=harness.SECONDS)[1]
        assert first.returncode != 0
        held.close()
        equal(sorted(row["id"] for row in shop.pyiceberg_rows("ns.t")), [1, 2])


CASES = [at_once, looks_without_a_catalog, b04, union, duckdb_reads, transforms, bad_files, names, field_ids, taken_back, clean_paths]


def main(chosen):
    harness.need("pyarrow", "pyiceberg", "duckdb")
    for function in CASES:
        if not chosen or function.__name__ in chosen:
            case("%s: %s" % (function.__name__, function.__doc__), function)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
