#!/usr/bin/env python3
"""Goal: every command does what its --help says. Method: each command and option once, as people use them; what comes out is
compared with what went in, and with PyIceberg where a table was changed.

usage: test_cli.py [CASE ...]
"""
import gzip
import json
import os
import pty
import subprocess
import sys
import time

import harness
from harness import Workshop, case, equal, must_refuse

ROWS = [{"id": i, "at": "2026-0%d-15T12:00:00.000000+00:00" % (1 + i % 3), "kind": ["click", "view", None][i % 3], "price": "%d.50" % i}
        for i in range(9)]
SCHEMA = "id long not null, at timestamptz, kind string, price decimal(9,2)"


def loaded(shop, *options, name="app.events"):
    """A table of ROWS."""
    shop.tarn("create", name, SCHEMA, *options)
    shop.write("rows.ndjson", "".join(json.dumps(row) + "\n" for row in ROWS))
    shop.tarn("ingest", name, "rows.ndjson")


def ids(answer):
    return sorted(row["id"] for row in answer.rows)


def lines(answer):
    return answer.out.splitlines()


def document(shop, name="app.events", *options):
    return json.loads(shop.tarn("describe", name, "--json", *options).out)


# ---- names ----

def create_and_describe():
    """create with everything that it takes; describe as text and as the metadata document."""
    with Workshop() as shop:
        answer = shop.tarn("create", "app.events", SCHEMA, "--partition-by", "day(at), bucket(8, id)", "--sort-by", "kind desc nulls last, id",
                           "--identifier", "id", "-p", "a=b", "--property", "c=d e", "--json")
        equal(json.loads(answer.out), {"table": "app.events", "created": True})
        equal(json.loads(shop.tarn("create", "app.events", "x int", "--if-not-exists", "--json").out), {"table": "app.events", "created": False})
        table = shop.catalog().load_table("app.events")
        equal([str(f.transform) for f in table.spec().fields], ["day", "bucket[8]"])
        equal((table.schema().identifier_field_ids, table.properties["c"], table.format_version), ([1], "d e", 2))
        equal([(f.source_id, f.direction.value, f.null_order.value) for f in table.sort_order().fields], [(3, "desc", "nulls-last"), (1, "asc", "nulls-first")])
        shown = shop.tarn("describe", "app.events").out
        for text in ("timestamptz", "decimal(9, 2)", "long not null", "day(at)", "bucket(8, id)", "kind desc nulls-last", "a = b", table.metadata_location.split("/")[-1]):
            assert text in shown, (text, shown)
        equal(document(shop)["table-uuid"], str(table.metadata.table_uuid))
        schema = {"type": "struct", "fields": [{"id": 7, "name": "x", "required": False, "type": {"type": "list", "element-id": 9, "element": "int", "element-required": True}}]}
        shop.tarn("create", "app.other", json.dumps(schema), "--location", shop.path("elsewhere"), "--format-version", "1")
        other = document(shop, "app.other")
        equal((other["format-version"], harness.local(other["location"])), (1, shop.path("elsewhere")))
        equal(json.loads(shop.tarn("create", "a.b.c", "--namespace", "--json", check=False).out or "null"), {"namespace": "a.b.c", "created": True})


def ls_rename_drop_register():
    """ls in its forms, and a table through all its names until it is purged."""
    for catalog in ("sqlite:tarn.db", "dir:house"):
        with Workshop() as shop:
            c = ("-c", catalog)
            loaded(shop, *c) if catalog.startswith("sqlite") else None
            if catalog.startswith("dir"):
                shop.tarn("create", "app.events", SCHEMA, *c)
            shop.tarn("create", "app.empty", "x int", *c)
            shop.tarn("create", "more", "--namespace", *c)
            equal(lines(shop.tarn("ls", *c)), ["app.empty", "app.events"])
            equal(lines(shop.tarn("ls", "app", *c)), ["app.empty", "app.events"])
            equal(lines(shop.tarn("ls", "more", *c)), [])
            equal(lines(shop.tarn("ls", "-n", *c)), ["app", "more"])
            equal([json.loads(line) for line in lines(shop.tarn("ls", "--json", *c))],
                  [{"name": "app.empty", "type": "table"}, {"name": "app.events", "type": "table"}])
            if catalog.startswith("dir"):
                equal(shop.tarn("rename", "app.empty", "app.x", *c, check=False).status, harness.UNSUPPORTED)
                shop.tarn("drop", "app.empty", *c)
            else:
                location = document(shop)["metadata-location"]
                equal(json.loads(shop.tarn("rename", "app.events", "more.events", "--json", *c).out), {"table": "more.events"})
                equal(ids(shop.cat("more.events")), list(range(9)))
                shop.tarn("drop", "more.events")
                assert os.path.exists(harness.local(location))
                equal(json.loads(shop.tarn("register", "back.again", harness.local(location), "--json").out), {"table": "back.again"})
                equal(ids(shop.cat("back.again")), list(range(9)))
                equal(json.loads(shop.tarn("drop", "back.again", "--purge", "--json").out), {"table": "back.again", "dropped": True})
                assert not os.path.exists(shop.path("warehouse", "app", "events"))
                equal(json.loads(shop.tarn("drop", "back.again", "--if-exists", "--json").out), {"table": "back.again", "dropped": False})
            shop.tarn("drop", "more", "--namespace", *c)
            assert "more" not in lines(shop.tarn("ls", "-n", *c))


def catalogs():
    """-c before and after the command, TARN_CATALOG, names of .pyiceberg.yaml, --warehouse, and the default."""
    with Workshop() as shop:
        home = {"HOME": shop.folder, "PYICEBERG_HOME": ""}
        shop.write(".pyiceberg.yaml", "catalog:\n  prod:\n    type: sql\n    uri: sqlite:///%s\n    warehouse: file://%s\n  far:\n    uri: thrift://localhost:1\n"
                   % (shop.path("prod.db"), shop.path("prod house")))
        shop.tarn("-c", "prod", "create", "ns.t", "id long", env=home)
        shop.write("rows.ndjson", '{"id": 1}\n')
        shop.tarn("ingest", "ns.t", "rows.ndjson", "-c", "prod", env=home)
        from pyiceberg.catalog.sql import SqlCatalog
        theirs = SqlCatalog("prod", uri="sqlite:///" + shop.path("prod.db"), warehouse="file://" + shop.path("prod house"))
        equal(theirs.load_table("ns.t").scan().to_arrow().to_pylist(), [{"id": 1}])
        assert os.path.isdir(shop.path("prod house", "ns", "t"))
        equal(shop.tarn("ls", env={"TARN_CATALOG": "prod", **home}).out, "ns.t\n")
        equal(shop.tarn("-c", "far", "ls", env=home, check=False).status, harness.UNSUPPORTED)
        must_refuse(shop.tarn("-c", "none", "ls", env=home, check=False), "none", ".pyiceberg.yaml")
        shop.tarn("create", "ns.u", "id long", "--warehouse", shop.path("ware"))
        assert os.path.isdir(shop.path("ware", "ns", "u")) and os.path.exists(shop.path("tarn.db"))
        shop.write(".pyiceberg.yaml", "catalog: [broken")
        must_refuse(shop.tarn("-c", "prod", "ls", env=home, check=False), ".pyiceberg.yaml")


def paths_and_moved():
    """Tables by folder, metadata file and URI, also compressed, and where they were copied to."""
    with Workshop() as shop:
        loaded(shop)
        file = harness.local(document(shop)["metadata-location"])
        folder = os.path.dirname(os.path.dirname(file))
        with open(file, "rb") as plain, open(shop.path("x.metadata.json.gz"), "wb") as packed:
            packed.write(gzip.compress(plain.read()))
        for name in (file, folder, "file://" + file, "file:" + folder, os.path.relpath(folder, shop.folder), "x.metadata.json.gz"):
            equal(ids(shop.cat(name)), list(range(9)))
        equal(len(shop.cat(folder, "--metadata-table", "snapshots").rows), 1)
        must_refuse(shop.tarn("ingest", folder, "rows.ndjson", check=False), "catalog")
        os.rename(shop.path("warehouse"), shop.path("moved"))
        equal(shop.tarn("cat", "app.events", check=False).status, 6)
        equal(ids(shop.cat("app.events", "--moved", "%s=%s" % (shop.path("warehouse"), shop.path("moved")))), list(range(9)))
        equal(ids(shop.cat(folder.replace("/warehouse/", "/moved/"), "--moved", "%s=%s" % (shop.path("warehouse"), shop.path("moved")))), list(range(9)))


# ---- rows ----

def ingest_every_format():
    """The same rows as NDJSON, CSV, gzip and zstd of them, Parquet, Avro, from standard input, and made into new tables."""
    with Workshop() as shop:
        loaded(shop)
        want = shop.cat("app.events").rows
        csv = shop.tarn("cat", "app.events", "--format", "csv").out
        ndjson = shop.tarn("cat", "app.events", "--format", "ndjson").out
        shop.write("in.csv", csv)
        shop.write("in.ndjson", ndjson)
        shop.write("in.tsv", csv.replace(",", "\t"))
        shop.write("in.jsonl", ndjson)
        shop.write("mystery", ndjson)
        for name, data in (("in.csv.gz", csv), ("in.ndjson.gz", ndjson)):
            with gzip.open(shop.path(name), "wb") as file:
                file.write(data.encode())
        import pyarrow.parquet as pq
        pq.write_table(shop.catalog().load_table("app.events").scan().to_arrow(), shop.path("in.parquet"))
        for name in ("in.csv", "in.tsv", "in.ndjson", "in.jsonl", "mystery", "in.csv.gz", "in.ndjson.gz", "in.parquet"):
            shop.tarn("ingest", "app.events", name, "--mode", "overwrite")
            harness.same(shop.cat("app.events").rows, want)
        shop.tarn("ingest", "app.events", "-", "--format", "csv", "--mode", "overwrite", stdin=csv)
        harness.same(shop.cat("app.events").rows, want)
        shop.tarn("ingest", "app.events", "in.csv", "in.ndjson", "-", "-f", "ndjson", check=False)
        shop.tarn("ingest", "app.events", "-", "-f", "csv", "--delimiter", ";", "--quote", "'", "--null-text", "none", "--mode", "overwrite",
                  stdin="id;at;kind;price\n1;none;'a;b';2\n")
        equal(shop.cat("app.events").rows, [{"id": 1, "at": None, "kind": "a;b", "price": "2.00"}])
        shop.tarn("ingest", "app.events", "-", "-f", "csv", "--no-header", "--mode", "overwrite", stdin="7,,x,\n")
        equal(shop.cat("app.events").rows, [{"id": 7, "at": None, "kind": "x", "price": None}])
        shop.tarn("ingest", "app.events", "-", "-f", "ndjson", "--ignore-unknown", "--mode", "overwrite", stdin='{"id":8,"more":[1,{"x":2}]}\n')
        equal(ids(shop.cat("app.events")), [8])
        for name in ("in.csv", "in.ndjson", "in.parquet"):
            shop.tarn("ingest", "new." + name.split(".")[1], name, "--create", "--partition-by", "month(at)")
            equal(len(shop.cat("new." + name.split(".")[1]).rows), 9)
            equal(len(shop.cat("new.%s.partitions" % name.split(".")[1]).rows), 3)
        shop.tarn("ingest", "new.stdin", "-", "-f", "ndjson", "--create", "--partition-by", "kind", "-p", "x=y", stdin=ndjson)
        equal((len(shop.cat("new.stdin").rows), document(shop, "new.stdin")["properties"]["x"]), (9, "y"))
        done = subprocess.run(["bash", "-c", "%s ingest new.pipe <(cat in.ndjson.gz) --format ndjson --create -q" % harness.binary()], cwd=shop.folder)
        equal((done.returncode, len(shop.cat("new.pipe").rows)), (0, 9))
        shop.tarn("ingest", "new.schema", "in.csv", "--create", "--schema", SCHEMA, "--sort-by", "id", "--identifier", "id")
        harness.same(shop.cat("new.schema").rows, want)


def ingest_modes():
    """append, overwrite with and without --where, replace-partitions, branches, checkpoints, and the result as text and JSON."""
    with Workshop() as shop:
        loaded(shop, "--partition-by", "kind")
        shop.write("new.ndjson", '{"id": 100, "kind": "click"}\n')
        result = json.loads(shop.tarn("ingest", "app.events", "new.ndjson", "--json").out)
        equal({key: result[key] for key in ("rows", "rejected", "commits", "files")}, {"rows": 1, "rejected": 0, "commits": 1, "files": 1})
        equal(result["snapshot-id"], document(shop)["current-snapshot-id"])
        shop.tarn("ingest", "app.events", "new.ndjson", "--mode", "replace-partitions")
        equal(ids(shop.cat("app.events")), [1, 2, 4, 5, 7, 8, 100])
        shop.tarn("ingest", "app.events", "new.ndjson", "--mode", "overwrite", "--where", "kind = 'view' or id = 100")
        equal(ids(shop.cat("app.events")), [2, 5, 8, 100])
        shop.tarn("alter", "app.events", "branch", "draft")
        shop.tarn("ingest", "app.events", "new.ndjson", "--branch", "draft")
        equal((len(shop.cat("app.events").rows), len(shop.cat("app.events", "--ref", "draft").rows)), (4, 5))
        answer = shop.tarn("ingest", "app.events", "rows.ndjson", "--checkpoint-rows", "4", "--merge-append", "--memory-mb", "16", "--threads", "2", "--no-sync")
        assert answer.out == "" and "9 rows" in answer.err and "3 commits" in answer.err, answer
        equal(shop.tarn("ingest", "app.events", "rows.ndjson", "-q").err, "")
        many = "".join('{"id":%d}\n' % i for i in range(20000))
        shown = shop.tarn("ingest", "app.events", "-", "-f", "ndjson", "--checkpoint-rows", "500", "--branch", "draft", "--progress", stdin=many).err
        assert "standard input: " in shown and "rows/s" in shown and "\r" not in shown, shown
        equal(shop.catalog().load_table("app.events").scan().to_arrow().num_rows, 4 + 9 * 2)
        empty = json.loads(shop.tarn("ingest", "app.events", "-", "-f", "ndjson", "--json", stdin="").out)
        equal((empty["rows"], empty["commits"], empty["snapshot-id"]), (0, 0, None))


def cat_options():
    """--columns, --where, --limit, --count, --stats, --case-insensitive, --no-prune, formats."""
    with Workshop() as shop:
        loaded(shop, "--partition-by", "kind")
        equal(sorted(shop.cat("app.events", "--columns", "kind, id", "--where", "id >= 6").rows, key=lambda r: r["id"]),
              [{"kind": row["kind"], "id": row["id"]} for row in ROWS[6:]])
        equal(len(shop.cat("app.events", "--limit", "4").rows), 4)
        equal(len(shop.cat("app.events", "-n", "0").rows), 0)
        equal(shop.tarn("cat", "app.events", "--count", "-w", "kind is null").out, "3\n")
        equal(shop.tarn("cat", "app.events", "--count", "-w", "KIND is null", "-i").out, "3\n")
        must_refuse(shop.tarn("cat", "app.events", "-w", "KIND is null", check=False), "KIND")
        pruned = shop.tarn("cat", "app.events", "-w", "kind = 'view'", "--stats")
        whole = shop.tarn("cat", "app.events", "-w", "kind = 'view'", "--stats", "--no-prune")
        equal(pruned.out, whole.out)
        assert "files 3 (2 skipped)" in pruned.err and "files 3 (0 skipped)" in whole.err, (pruned.err, whole.err)
        csv = shop.tarn("cat", "app.events", "--format", "csv", "--columns", "id,kind", "-w", "id in (0, 2)").out
        equal(sorted(csv.splitlines()), ["0,click", "2,", "id,kind"])
        table = lines(shop.tarn("cat", "app.events", "--format", "table", "--columns", "id,at,kind", "-w", "id = 2"))
        equal([line.split() for line in table[0:1] + table[2:]], [["id", "at", "kind"], ["2", "2026-03-15", "12:00:00Z", "NULL"]])
        equal(shop.tarn("cat", "app.events").out, shop.tarn("cat", "app.events", "--json").out)


def cat_into_files():
    """Rows written to a file of each format are those of the table, and pyarrow reads them; an unknown name leaves nothing."""
    import pyarrow.csv
    import pyarrow.parquet
    with Workshop() as shop:
        loaded(shop)
        rows = shop.cat("app.events").rows
        for name in ("out.parquet", "out.avro", "out.ndjson", "out.ndjson.zst", "out.csv.gz"):
            assert shop.tarn("cat", "app.events", "-o", name).out == ""
            equal(int(shop.tarn("cat", name, "--count").out), len(rows))
        equal(shop.cat("out.ndjson.zst").rows, [dict(row, at=row["at"]) for row in shop.cat("out.ndjson").rows])
        equal(pyarrow.parquet.read_table(shop.path("out.parquet")).column("id").to_pylist(), [row["id"] for row in rows])
        equal(pyarrow.csv.read_csv(shop.path("out.csv.gz")).num_rows, len(rows))
        must_refuse(shop.tarn("cat", "app.events", "-o", "out.foo", check=False), "out.foo")
        must_refuse(shop.tarn("cat", "app.events", "-o", "out.csv", "--count", check=False), "--output")
        assert not os.path.exists(shop.path("out.foo"))


def on_a_terminal(shop, *arguments):
    """What the command writes to a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([harness.binary(), *arguments], cwd=shop.folder, stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL)
    os.close(theirs)
    out = b""
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:
            data = b""
        if not data:
            break
        out += data
    os.close(ours)
    equal(process.wait(), 0)
    return out.decode()


def terminals():
    """Tables and progress on a terminal, rows and silence in a pipe."""
    with Workshop() as shop:
        loaded(shop)
        assert "──" in on_a_terminal(shop, "cat", "app.events")
        assert "──" in on_a_terminal(shop, "file", "cat", "rows.ndjson")
        assert '"id":0' in on_a_terminal(shop, "cat", "app.events", "--json")
        shop.write("many.ndjson", "".join('{"id":%d}\n' % i for i in range(20000)))
        shown = on_a_terminal(shop, "ingest", "app.events", "many.ndjson", "--checkpoint-rows", "500")
        assert "\rmany.ndjson: " in shown and shown.count("\n") == 1, shown
        equal(on_a_terminal(shop, "ingest", "app.events", "rows.ndjson", "-q"), "")
        equal(len(shop.tarn("ingest", "app.events", "rows.ndjson").err.splitlines()), 1)


METADATA_TABLES = ["snapshots", "history", "refs", "manifests", "files", "data_files", "delete_files", "entries", "partitions", "metadata_log_entries",
                   "all_data_files", "all_files", "all_delete_files", "all_manifests", "all_entries"]


def metadata_tables():
    """Each of them by name and by option, in every format."""
    with Workshop() as shop:
        loaded(shop, "--partition-by", "month(at)")
        shop.tarn("delete", "app.events", "--where", "id = 1")
        for name in METADATA_TABLES:
            rows = shop.cat("app.events." + name).rows
            equal(rows, shop.cat("app.events", "--metadata-table", name).rows)
            equal(len(rows), int(shop.tarn("cat", "app.events." + name, "--count").out))
            shop.tarn("cat", "app.events." + name, "--format", "table")
            shop.tarn("cat", "app.events." + name, "--format", "csv")
            assert rows or "delete_files" in name, name
        theirs = shop.catalog().load_table("app.events")
        equal([row["snapshot_id"] for row in shop.cat("app.events.snapshots").rows], theirs.inspect.snapshots()["snapshot_id"].to_pylist())
        equal(sorted(row["file_path"] for row in shop.cat("app.events.files", "--columns", "file_path").rows),
              sorted(theirs.inspect.files()["file_path"].to_pylist()))
        equal(len(shop.cat("app.events.files", "--where", "record_count > 2").rows), 2)


def time_travel():
    """--snapshot-id, --as-of in its forms, --ref; rollback."""
    with Workshop() as shop:
        loaded(shop)
        first = document(shop)["current-snapshot-id"]
        time.sleep(0.02)
        between = int(time.time() * 1000)
        time.sleep(0.02)
        shop.tarn("delete", "app.events", "--where", "id < 5")
        shop.tarn("alter", "app.events", "tag", "old", "--snapshot-id", first)
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(between / 1000)) + ".%03d" % (between % 1000)
        local = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(between / 1000 + 5400)) + ".%03d+01:30" % (between % 1000)
        for options in (("--snapshot-id", first), ("--as-of", between), ("--as-of", stamp), ("--as-of", stamp + "Z"), ("--as-of", local), ("--ref", "old")):
            equal((options, ids(shop.cat("app.events", *map(str, options)))), (options, list(range(9))))
        equal(ids(shop.cat("app.events", "--ref", "main")), [5, 6, 7, 8])
        shop.tarn("alter", "app.events", "rollback", first)
        equal(ids(shop.cat("app.events")), list(range(9)))


def delete_rows():
    """Whole files by metadata, others rewritten, nothing at all; on a branch; --json."""
    with Workshop() as shop:
        loaded(shop, "--partition-by", "kind")
        shop.tarn("alter", "app.events", "branch", "draft")
        equal({k: v for k, v in json.loads(shop.tarn("delete", "app.events", "-w", "kind = 'click'", "--json").out).items() if k != "snapshot-id"},
              {"rows-deleted": 3, "rows-rewritten": 0, "files-removed": 1, "delete-files-added": 0})
        answer = shop.tarn("delete", "app.events", "-w", "id = 1")
        assert answer.out == "" and "1 row deleted, 2 rewritten" in answer.err, answer
        nothing = json.loads(shop.tarn("delete", "app.events", "-w", "id = 1", "--json").out)
        equal((nothing["snapshot-id"], nothing["rows-deleted"]), (None, 0))
        shop.tarn("delete", "app.events", "-w", "true", "--branch", "draft", "-q")
        equal((ids(shop.cat("app.events")), shop.cat("app.events", "--ref", "draft").rows), ([2, 4, 5, 7, 8], []))
        equal(shop.catalog().load_table("app.events").scan().to_arrow().num_rows, 5)


def log():
    """Newest first, the current one marked, --limit, --json."""
    with Workshop() as shop:
        loaded(shop)
        shop.tarn("delete", "app.events", "-w", "id = 1")
        text = lines(shop.tarn("log", "app.events"))
        assert len(text) == 3 and text[1].startswith("* ") and text[2].startswith("  "), text
        assert "overwrite" in text[1] and "append" in text[2], text
        found = [json.loads(line) for line in lines(shop.tarn("log", "app.events", "--json"))]
        equal([s["snapshot-id"] for s in found], [s["snapshot-id"] for s in reversed(document(shop)["snapshots"])])
        equal(len(lines(shop.tarn("log", "app.events", "-n", "1", "--json"))), 1)
        shop.tarn("set", "app.events", "write.delete.mode=merge-on-read")
        shop.tarn("delete", "app.events", "-w", "id = 2")
        head, newest = lines(shop.tarn("log", "app.events", "-n", "1"))
        assert "row deletes" in head and newest.split()[8] == "1", newest


# ---- alter and set ----

def alter_everything():
    """Every edit of alter, as PyIceberg sees the table afterwards."""
    with Workshop() as shop:
        shop.tarn("create", "ns.t", "id int not null, s struct<x: int, y: float>, d decimal(5,2), gone string, at timestamp")
        shop.write("in.ndjson", '{"id":1,"s":{"x":1,"y":0.5},"d":"1.25","at":"2026-01-01T00:00:00"}\n')
        shop.tarn("ingest", "ns.t", "in.ndjson")
        first = document(shop, "ns.t")["current-snapshot-id"]

        def alter(*arguments):
            answer = json.loads(shop.tarn("alter", "ns.t", *arguments, "--json").out)
            equal((answer["table"], answer["committed"]), ("ns.t", True))
            return shop.catalog().load_table("ns.t")

        table = alter("add-column", "note", "string", "--doc", "what it says", "--after", "id")
        equal(([f.name for f in table.schema().fields][:3], table.schema().find_field("note").doc), (["id", "note", "s"], "what it says"))
        equal([f.name for f in alter("add-column", "zero", "long", "--first").schema().fields][0], "zero")
        equal([f.name for f in alter("add-column", "s.w", "string", "--before", "y").schema().find_field("s").field_type.fields], ["x", "w", "y"])
        equal([f.name for f in alter("move", "s.y", "--first").schema().find_field("s").field_type.fields], ["y", "x", "w"])
        equal([f.name for f in alter("move", "zero", "--after", "id").schema().fields][:2], ["id", "zero"])
        assert "gone" not in [f.name for f in alter("drop-column", "gone").schema().fields]
        equal(alter("rename-column", "d", "price").schema().find_field("price").field_id, 3)
        equal(str(alter("update-type", "id", "long").schema().find_field("id").field_type), "long")
        equal(str(alter("update-type", "s.y", "double").schema().find_field("s.y").field_type), "double")
        equal(str(alter("update-type", "price", "decimal(9,2)").schema().find_field("price").field_type), "decimal(9, 2)")
        equal(alter("update-doc", "price", "in euro").schema().find_field("price").doc, "in euro")
        equal(alter("set-identifiers", "id").schema().identifier_field_ids, [1])
        equal(alter("set-identifiers", "").schema().identifier_field_ids, [])
        equal(alter("make-optional", "id").schema().find_field("id").required, False)
        equal([str(f.transform) for f in alter("partition-by", "bucket(4, id)").spec().fields], ["bucket[4]"])
        equal([(f.name, str(f.transform)) for f in alter("add-partition", "day(at)", "--name", "d").spec().fields][-1], ("d", "day"))
        equal([f.name for f in alter("rename-partition", "d", "the_day").spec().fields][-1], "the_day")
        equal(len(alter("drop-partition", "the_day").spec().fields), 1)
        equal([f.direction.value for f in alter("sort-by", "id desc, at").sort_order().fields], ["desc", "asc"])
        equal(alter("sort-by", "").sort_order().fields, [])
        shop.tarn("ingest", "ns.t", "-", "-f", "ndjson", stdin='{"id":2,"zero":0,"price":"12345.67","s":{"w":"w"}}\n')
        equal(shop.cat("ns.t", "--where", "id = 1").rows,
              [{"id": 1, "zero": None, "note": None, "s": {"y": 0.5, "x": 1, "w": None}, "price": "1.25", "at": "2026-01-01T00:00:00.000000"}])
        harness.same(shop.pyiceberg_rows("ns.t"), shop.cat("ns.t").rows)
        refs = alter("branch", "b").metadata.refs
        equal((refs["b"].snapshot_ref_type.value, refs["b"].snapshot_id), ("branch", document(shop, "ns.t")["current-snapshot-id"]))
        refs = alter("tag", "v1", "--snapshot-id", str(first), "--max-ref-age-ms", "86400000").metadata.refs
        equal((refs["v1"].snapshot_ref_type.value, refs["v1"].snapshot_id, refs["v1"].max_ref_age_ms), ("tag", first, 86400000))
        must_refuse(shop.tarn("alter", "ns.t", "branch", "v1", check=False), "v1 is a tag already")
        must_refuse(shop.tarn("alter", "ns.t", "tag", "v1", check=False), "not asked to be replaced")
        alter("tag", "v1", "--replace", "--snapshot-id", str(first))
        assert "b" not in alter("drop-ref", "b").metadata.refs
        equal(alter("rollback", str(first)).current_snapshot().snapshot_id, first)
        equal(harness.local(alter("location", shop.path("new place")).location()), shop.path("new place"))
        shop.tarn("ingest", "ns.t", "-", "-f", "ndjson", stdin='{"id":3}\n')
        equal(ids(shop.cat("ns.t")), [1, 3])
        shop.tarn("create", "ns.old", "id long", "--format-version", "1")
        shop.tarn("alter", "ns.old", "upgrade", "2")
        equal(document(shop, "ns.old")["format-version"], 2)


def set_properties():
    """set KEY=VALUE and --unset."""
    with Workshop() as shop:
        loaded(shop)
        equal(json.loads(shop.tarn("set", "app.events", "a=1", "b=x=y", "--json").out)["committed"], True)
        shop.tarn("set", "app.events", "c=", "--unset", "a", "--unset", "none")
        properties = document(shop)["properties"]
        equal({key: properties.get(key) for key in "abc"}, {"a": None, "b": "x=y", "c": ""})


# ---- files ----

def errors_name_their_table():
    """What is asked of a table that it has not is told with the table, and a missing table with the catalog."""
    with harness.Workshop() as shop:
        shop.tarn("create", "app.t", "id long")
        for arguments, words in (
                (("cat", "app.t", "--columns", "zz"), "there is no column zz (table app.t)"),
                (("cat", "app.t", "--where", "zz = 1"), "(table app.t)"), (("cat", "app.t", "--ref", "zz"), "no branch or tag zz (table app.t)"),
                (("cat", "app.t", "--snapshot-id", "12"), "no snapshot 12 (table app.t)"),
                (("alter", "app.t", "drop-column", "zz"), '(table app.t)'), (("delete", "app.t", "--where", "zz = 1"), "(table app.t)"),
                (("changes", "app.t", "--from", "12"), "(table app.t)"), (("cat", "app.nk"), "app.nk did not exist (catalog sqlite:./tarn.db)"),
                (("drop", "app.nk", "-c", "sqlite:tarn.db"), "app.nk did not exist (catalog sqlite:tarn.db)"),
                (("serve", "extra"), "takes options and no arguments")):
            harness.must_refuse(shop.tarn(*arguments, check=False), words)


def file_command():
    """file cat, schema and meta of every kind of file, with filters, limits and formats."""
    with Workshop() as shop:
        loaded(shop)
        table = shop.catalog().load_table("app.events")
        data = harness.local(shop.cat("app.events.files").rows[0]["file_path"])
        metadata = harness.local(table.metadata_location)
        snapshot = table.current_snapshot()
        manifest = harness.local(snapshot.manifests(table.io)[0].manifest_path)
        shop.tarn("create", "app.avro", SCHEMA, "-p", "write.format.default=avro")
        shop.tarn("ingest", "app.avro", "rows.ndjson")
        avro = harness.local(shop.cat("app.avro.files").rows[0]["file_path"])
        shop.write("rows.csv", shop.tarn("cat", "app.events", "--format", "csv").out)
        for path in (data, avro, "rows.ndjson"):
            equal(ids(shop.tarn("file", "cat", path)), list(range(9)))
            equal(ids(shop.tarn("file", "cat", path, "--where", "id > 6")), [7, 8])
            equal(len(shop.tarn("file", "cat", path, "--limit", "2").rows), 2)
            equal(shop.tarn("file", "cat", path, "--count").out, "9\n")
            equal(shop.tarn("file", "cat", path, "--columns", "kind,id", "--limit", "1").rows, [{"kind": "click", "id": 0}])
            equal(shop.cat(path).rows, shop.tarn("file", "cat", path).rows)
            equal(len(lines(shop.tarn("file", "cat", path, "--format", "csv"))), 10)
            equal(len(lines(shop.tarn("file", "cat", path, "--format", "table"))), 11)
        equal(len(shop.tarn("file", "cat", "rows.csv", "rows.ndjson").rows), 18)
        equal(len(shop.tarn("file", "cat", "-", "--input-format", "csv", stdin="a,b\n1,2\n").rows), 1)
        with open(metadata, encoding="utf-8") as file:
            equal(json.loads(shop.tarn("file", "cat", metadata).out), json.load(file))
        equal(json.loads(shop.tarn("file", "schema", metadata).out)["fields"][0]["name"], "id")
        entries = shop.tarn("file", "cat", manifest).rows
        equal([entry["data_file"]["record_count"] for entry in entries], [9])
        equal([m["manifest_path"] for m in shop.tarn("file", "cat", harness.local(snapshot.manifest_list)).rows], [snapshot.manifests(table.io)[0].manifest_path])
        meta = json.loads(shop.tarn("file", "meta", data).out)
        equal((meta["rows"], meta["format"], len(meta["row-groups"])), (9, "parquet", 1))
        assert "message" in shop.tarn("file", "schema", data).out
        equal(json.loads(shop.tarn("file", "schema", avro).out)["type"], "record")
        equal(json.loads(shop.tarn("file", "meta", manifest).out)["metadata"]["content"], "data")
        shop.tarn("file", "schema", "rows.csv")
        shop.tarn("file", "meta", "rows.ndjson")


# ---- the command itself ----

def help_texts():
    """--help of all, the man page without a warning, completion that bash takes, --version."""
    with Workshop() as shop:
        top = shop.tarn("--help").out
        names = [line.split()[0] for line in top.split("Commands:\n")[1].split("\n\n")[0].splitlines()]
        assert len(names) >= 13, names
        manual = shop.tarn("man").out
        for name in names:
            text = shop.tarn(name, "--help").out
            equal(text, shop.tarn("help", name).out)
            assert text.startswith("tarn %s - " % name) and "Options of every command:" in text
            assert "tarn %s" % name in manual
        equal(shop.tarn("--version").out.split()[0], "tarn")
        equal(shop.tarn(check=False).status, 2)
        if subprocess.run(["sh", "-c", "command -v groff"], capture_output=True).returncode == 0:
            done = subprocess.run(["groff", "-man", "-ww", "-Tutf8"], input=manual, capture_output=True, text=True)
            equal((done.returncode, done.stderr), (0, ""))
        shop.write("completion", shop.tarn("completion", "bash").out)
        script = "source completion; COMP_WORDS=(tarn %s); COMP_CWORD=%d; _tarn; echo ${COMPREPLY[@]}"
        for words, position, want in (("ing", 1, "ingest"), ("ingest --parti", 2, "--partition-by"), ("cat --quie", 2, "--quiet")):
            done = subprocess.run(["bash", "-c", script % (words, position)], cwd=shop.folder, capture_output=True, text=True)
            equal((done.stdout.strip(), done.stderr), (want, ""))


def numbers_out_of_range():
    """Goal: a number that an option cannot hold is refused by name, never cut to one that it can. Method: every option of a number, of every command,
    is given one beyond 64 bits, and those that are kept in less one beyond that."""
    huge = "99999999999999999999"
    with Workshop() as shop:
        loaded(shop)
        names = [line.split()[0] for line in shop.tarn("--help").out.split("Commands:\n")[1].split("\n\n")[0].splitlines()]
        options = [(name, line.split("--")[1].split()[0]) for name in names for line in shop.tarn(name, "--help").out.splitlines()
                   if line.lstrip().startswith("-") and line.split("--")[1].split()[1:2] and line.split("--")[1].split()[1] in ("N", "ID", "MS", "SECONDS", "MIB")]
        assert len(options) > 40 and ("changes", "from") in options and ("serve", "intake-mb") in options, options
        for name, option in options:
            must_refuse(shop.tarn(name, "app.events", "rows.ndjson", "--" + option, huge, check=False), "--" + option, huge)
        for name, option, text in (("cat", "as-of", huge), ("ingest", "checkpoint-interval", huge), ("ingest", "kafka-timeout", "1e400s"),
                                   ("ingest", "writers", "4294967297"), ("ingest", "empty-commit-every", "4294967297"),
                                   ("ingest", "memory-mb", "17592186044417"), ("ingest", "memory-mb", "-1"), ("cat", "limit", " 1"), ("cat", "limit", "1e3"),
                                   ("cat", "from", "0"), ("changes", "from", "12x")):
            words = ["app.events"] + ([] if name != "ingest" else ["rows.ndjson"])
            must_refuse(shop.tarn(name, *words, "--" + option, text, check=False), "--" + option, text)
        must_refuse(shop.tarn("cat", "app.events", "--threads", "1025", check=False), "threads", "1025", "1024")
        for edit, text in (("rollback", huge), ("rollback", "12x"), ("upgrade", huge), ("upgrade", "4294967298"), ("upgrade", "")):
            must_refuse(shop.tarn("alter", "app.events", edit, text, check=False), "alter " + edit, '"%s"' % text)
        must_refuse(shop.tarn("create", "app.more", "x int", "--format-version", "4294967298", check=False), "--format-version", "4294967298")
        equal(len(shop.cat("app.events", "--threads", "1024", "--limit", "9223372036854775807").rows), len(ROWS))


CASES = [create_and_describe, ls_rename_drop_register, catalogs, paths_and_moved, ingest_every_format, ingest_modes, cat_options, cat_into_files, terminals,
         metadata_tables, time_travel, delete_rows, log, alter_everything, set_properties, errors_name_their_table, file_command,
         help_texts, numbers_out_of_range]


def main(names):
    harness.need("pyarrow", "pyiceberg")
    for function in CASES:
        if not names or function.__name__ in names:
            case("%s: %s" % (function.__name__, function.__doc__), function)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
