#!/usr/bin/env python3
"""Goal: whatever comes in, the command ends with one clear line that names the thing and the place and with the exit status of its
kind, the table is the old or the new one, and no file is left over. Method: inputs and surroundings that are wrong in one way each;
after each the table is read, its folder is compared with the files that its metadata name, and PyIceberg counts its rows.

usage: test_bad_input.py [CASE ...]
"""
import gzip
import json
import os
import random
import signal
import subprocess
import sys
import time

import harness
from harness import Workshop, case, equal, must_refuse

INVALID, NOT_FOUND, CONFLICT, CORRUPT, IO, LIMIT, DENIED, UNSUPPORTED, CANCELLED = 2, 3, 4, 6, 7, 8, 11, 12, 130
SCHEMA = "id long not null, n int, s string"


# ---- what must hold after everything ----

def refused(answer, status, *words):
    """One line on stderr with these words, and this status."""
    assert (answer.status, answer.out) == (status, ""), "not %d and nothing on stdout: %s" % (status, answer)
    lines = answer.err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("tarn"), "not one line: %s" % answer
    must_refuse(answer, *words)


def named_files(shop, table):
    """Every file that the table's metadata name, as paths."""
    seen = set()
    document = json.loads(shop.tarn("describe", table, "--json").out)
    seen.add(document["metadata-location"])
    seen.update(entry["metadata-file"] for entry in document.get("metadata-log", []))
    seen.update(snapshot["manifest-list"] for snapshot in document.get("snapshots", []))
    seen.update(row["path"] for row in shop.cat(table + ".all_manifests").rows)
    seen.update(row["file_path"] for row in shop.cat(table + ".all_files").rows)
    seen.update(row["data_file"]["file_path"] for row in shop.cat(table + ".all_entries").rows)
    return {os.path.realpath(harness.local(path)) for path in seen}


def folder_of(shop, table):
    return harness.local(json.loads(shop.tarn("describe", table, "--json").out)["location"])


def files_below(folder):
    return {os.path.realpath(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names}


def is_whole(shop, table, rows):
    """The table has these many rows for us and for PyIceberg, and nothing else lies in its folder."""
    equal(int(shop.tarn("cat", table, "--count").out), rows)
    equal(shop.catalog().load_table(table).scan().to_arrow().num_rows, rows)
    extra = {path for path in files_below(folder_of(shop, table)) - named_files(shop, table) if "version-hint" not in path}
    assert not extra, "left over: %s" % sorted(extra)


def table_of_two(shop, *options, schema=SCHEMA):
    shop.tarn("create", "ns.t", schema, *options)
    shop.write("two.ndjson", '{"id": 1, "s": "one"}\n{"id": 2, "s": "two"}\n')
    shop.tarn("ingest", "ns.t", "two.ndjson")


def write_bytes(shop, name, data):
    with open(shop.path(name), "wb") as file:
        file.write(data)
    return name


# ---- rows ----

BAD_RECORDS = [  # bytes of the record, words of the error
    (b'{"id":"x"}', "column id"), (b'{"id":1.5}', "column id"), (b'{"id":9223372036854775808}', "column id"), (b'{"n":1}', "column id"),
    (b'{"id":null}', "column id"), (b'{"id":1,"n":2147483648}', "column n"), (b'{"id":1,"n":-2147483649}', "column n"),
    (b'{"id":1,"s":5}', "column s"), (b'{"id":1,"s":"\xff"}', "UTF-8"), (b'{"id":1,"s":"\xed\xa0\x80"}', "UTF-8"),
    (b'{"id":1,"s":"\\ud800"}', "column s"), (b'{"id":1,"s":"a\x01"}', "column s"), (b'{"id":1,"id":2}', "twice"), (b'{"id":1', "ended"),
    (b'{"id":1} {"id":2}', "byte"), (b"[1]", "object"), (b"nonsense", "object"), (b'{"id":01}', "column id"), (b'{"id":1,"other":2}', "other"),
    (b'{"id":1,"s":' + b"[" * 5000 + b"]" * 5000 + b"}", "column s"), (b"\x00\x01\x02", "line 3"), (b'{"id":NaN}', "column id"),
]


def beyond_timestamps():
    """Parquet rows whose INT96 no timestamp can say: named, or left out and told; never another value."""
    path = os.path.join(harness.FIXTURES, "parquet", "int96_beyond.parquet")
    with harness.Workshop() as shop:
        answer = shop.tarn("file", "cat", path, check=False)
        equal(answer.status, 6)
        assert "column a of row group 0 had a value out of range" in answer.err, answer
        answer = shop.tarn("file", "cat", path, "--on-bad-row", "skip")
        equal([row["n"] for row in answer.rows], [1, 4, 6])
        equal(answer.err.count("was left out"), 3)
        refused = shop.tarn("ingest", "ns.t", path, "--create", check=False)
        assert refused.status != 0 and "out of range" in refused.err, refused
        shop.tarn("ingest", "ns.t", path, "--create", "--rejects", "bad.ndjson")
        equal(sorted(row["n"] for row in shop.cat("ns.t").rows), [1, 4, 6])
        with open(shop.path("bad.ndjson"), encoding="utf-8") as file:
            told = [json.loads(line) for line in file]
        equal(sorted(one["line"] for one in told), [2, 3, 5])
        assert all("out of range" in one["reason"] for one in told), told


def bad_records():
    """NDJSON records that are no rows: line and reason, and nothing of the file is in the table."""
    with Workshop() as shop:
        table_of_two(shop)
        for record, words in BAD_RECORDS:
            write_bytes(shop, "in.ndjson", b'{"id":10}\n\n' + record + b'\n{"id":11}\n')
            refused(shop.tarn("ingest", "ns.t", "in.ndjson", "--json", check=False), INVALID, "in.ndjson line 3", words)
        is_whole(shop, "ns.t", 2)


BAD_TYPED = {  # type: texts that are none of it
    "boolean": ["yes", ""], "int": ["1.5", "a", "2147483648"], "float": ["1e39", "x"], "decimal(5,2)": ["1234.5", "1.234", "x"],
    "date": ["2020-13-01", "2020-02-30", "1"], "time": ["25:00:00", "x"], "timestamp": ["2020-01-01T24:01:00", "2020-01-01T00:00:00Z"],
    "timestamptz": ["2020-01-01T00:00:00+99:00", "x"], "uuid": ["f79c3e09", "g79c3e09-677c-4bbd-a479-3f349cb785e7"],
    "fixed(2)": ["abcdef", "zz"], "binary": ["abc", "xy"],
}


def bad_values():
    """Values out of their type's range, in CSV and NDJSON."""
    for kind, texts in BAD_TYPED.items():
        with Workshop() as shop:
            shop.tarn("create", "ns.t", "id long, v " + kind)
            for text in texts:
                shop.write("in.ndjson", json.dumps({"id": 1, "v": text}) + "\n")
                refused(shop.tarn("ingest", "ns.t", "in.ndjson", check=False), INVALID, "in.ndjson line 1", "column v")
                if text:
                    shop.write("in.csv", "id,v\n1,%s\n" % text)
                    refused(shop.tarn("ingest", "ns.t", "in.csv", check=False), INVALID, "in.csv line 2", "column v")
            is_whole(shop, "ns.t", 0)


BAD_CSV = [
    (b"id,n,s\n1,2\n", "line 2"), (b"id,n,s\n1,2,a,b\n", "line 2"), (b"id,id,s\n1,2,a\n", "id was there twice"), (b"id,other\n1,2\n", "other"),
    (b"n,s\n1,a\n", "column id"), (b'id,n,s\n1,2,"open\n', "quote"), (b'id,n,s\n1,2,"a"b\n', "quote"), (b"id,n,s\n1,2,\xff\n", "UTF-8"),
    (b"id,n,s\n,2,a\n", "column id"), (b"id;n;s\n1;2;a\n", "id;n;s"), (b"id,n,s\n1,0x10,a\n", "column n"), (b"id,n,s\n1,2147483648,a\n", "column n"),
]


def bad_csv():
    """CSV files that do not fit the table."""
    with Workshop() as shop:
        table_of_two(shop)
        for text, words in BAD_CSV:
            write_bytes(shop, "in.csv", text)
            refused(shop.tarn("ingest", "ns.t", "in.csv", check=False), INVALID, "in.csv line", words)
        is_whole(shop, "ns.t", 2)


def bad_columns():
    """Parquet files whose columns do not fit the table: the column and the file are named."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    with Workshop() as shop:
        table_of_two(shop)
        wrong = {"text": {"id": pa.array(["x"])}, "null": {"id": pa.array([1, None], pa.int64())}, "missing": {"s": pa.array(["a"])},
                 "double": {"id": pa.array([1.5])}, "wide": {"id": pa.array([1]), "n": pa.array([1], pa.int64())},
                 "list": {"id": pa.array([1]), "s": pa.array([["a"]])}, "extra": {"id": pa.array([1]), "extra": pa.array([1])}}
        for name, columns in wrong.items():
            pq.write_table(pa.table(columns), shop.path(name + ".parquet"))
            column = {"wide": "n", "list": "s", "extra": "extra"}.get(name, "id")
            refused(shop.tarn("ingest", "ns.t", name + ".parquet", check=False), INVALID, "column " + column, name + ".parquet")
        is_whole(shop, "ns.t", 2)
        shop.tarn("ingest", "ns.t", "extra.parquet", "--ignore-unknown")
        is_whole(shop, "ns.t", 3)


def bad_rows_set_aside():
    """--on-bad-row stop, skip, reject: good rows once, bad ones with line and reason, byte for byte."""
    with Workshop() as shop:
        table_of_two(shop)
        bad = [b'{"id":"x"}', b"no json", b'{"id":5,"s":"\xff\xfe"}', b'{"id":7,"n":99999999999}']
        lines = [b'{"id":10}', bad[0], b'{"id":11}', bad[1], bad[2], b'{"id":12}', bad[3]]
        write_bytes(shop, "in.ndjson", b"\n".join(lines))
        refused(shop.tarn("ingest", "ns.t", "in.ndjson", "--on-bad-row", "stop", check=False), INVALID, "in.ndjson line 2", "column id")
        is_whole(shop, "ns.t", 2)
        result = json.loads(shop.tarn("ingest", "ns.t", "in.ndjson", "--on-bad-row", "skip", "--json").out)
        equal((result["rows"], result["rejected"]), (3, 4))
        result = json.loads(shop.tarn("ingest", "ns.t", "in.ndjson", "--rejects", "bad.ndjson", "--checkpoint-rows", "1", "--json").out)
        equal((result["rows"], result["rejected"], result["commits"]), (3, 4, 3))
        with open(shop.path("bad.ndjson"), encoding="utf-8") as file:
            rejects = [json.loads(line) for line in file]
        equal([r["line"] for r in rejects], [2, 4, 5, 7])
        equal([bytes.fromhex(r["row-hex"]) if "row-hex" in r else r["row"].encode() for r in rejects], bad)
        assert all(r["file"] == "in.ndjson" and r["reason"] for r in rejects)
        is_whole(shop, "ns.t", 8)
        refused(shop.tarn("ingest", "ns.t", "in.ndjson", "--on-bad-row", "reject", check=False), INVALID, "--rejects")
        refused(shop.tarn("ingest", "ns.t", "in.ndjson", "--rejects", "./in.ndjson", check=False), INVALID, "in.ndjson", "overwrite")
        refused(shop.tarn("ingest", "ns.t", "in.ndjson", "--rejects", "/dev/full", check=False), IO, "/dev/full", "space")
        refused(shop.tarn("ingest", "ns.t", "in.ndjson", "--rejects", "none/bad.ndjson", check=False), NOT_FOUND, "none/bad.ndjson")
        with open(shop.path("in.ndjson"), "rb") as file:
            equal(file.read(), b"\n".join(lines))
        is_whole(shop, "ns.t", 8)


# ---- files ----

def samples(shop):
    """One good file of each kind."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    rows = [{"id": i, "n": i % 5, "s": "text %d" % i} for i in range(300)]
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("n", pa.int32()), pa.field("s", pa.string())])
    pq.write_table(pa.Table.from_pylist(rows, schema), shop.path("f.parquet"), row_group_size=100)
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    write_bytes(shop, "f.ndjson.gz", gzip.compress(text, mtime=0))
    import fastavro
    parsed = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}, {"name": "n", "type": ["null", "int"], "default": None},
                                                        {"name": "s", "type": ["null", "string"], "default": None}]}
    with open(shop.path("f.avro"), "wb") as file:
        fastavro.writer(file, parsed, rows, codec="deflate")
    shop.write("f.csv", "id,n,s\n" + "".join("%(id)d,%(n)d,%(s)s\n" % row for row in rows))
    return ["f.parquet", "f.ndjson.gz", "f.avro", "f.csv"]


def damaged(data, chance):
    """Cuts and changed bytes, the same ones each time."""
    for at in [0, 1, 4, len(data) // 3, len(data) - 9, len(data) - 1]:
        yield data[:at]
    for _ in range(14):
        out = bytearray(data)
        for _ in range(chance.choice([1, 1, 8, 64])):
            out[chance.randrange(len(out))] = chance.randrange(256)
        yield bytes(out)


def damaged_files():
    """Truncated and corrupt files: an error or other values, never a crash; all rows or none in the table."""
    chance = random.Random(5)
    with Workshop() as shop:
        table_of_two(shop)
        expected = 2
        for name in samples(shop):
            with open(shop.path(name), "rb") as file:
                data = file.read()
            for broken in damaged(data, chance):
                path = write_bytes(shop, "broken" + name[1:], broken)
                before = int(shop.tarn("cat", "ns.t", "--count").out)
                equal(before, expected)
                answer = shop.tarn("ingest", "ns.t", path, "--json", check=False)
                if answer.status != 0:
                    assert answer.status in (INVALID, CORRUPT, UNSUPPORTED, LIMIT), answer
                    equal(len(answer.err.splitlines()), 1)
                    must_refuse(answer, path)
                else:
                    expected += json.loads(answer.out)["rows"]
                shown = shop.tarn("file", "meta", path, check=False)
                assert shown.status in (0, INVALID, CORRUPT, UNSUPPORTED, LIMIT), shown
        is_whole(shop, "ns.t", expected)


def damaged_tables():
    """Metadata, manifests and data files of a table, each damaged: reading says which file."""
    chance = random.Random(6)
    with Workshop() as shop:
        table_of_two(shop)
        for path in sorted(files_below(folder_of(shop, "ns.t")) & named_files(shop, "ns.t")):
            with open(path, "rb") as file:
                data = file.read()
            for broken in damaged(data, chance):
                with open(path, "wb") as file:
                    file.write(broken)
                answer = shop.tarn("cat", "ns.t", check=False)
                if answer.status != 0:
                    assert answer.status in (INVALID, CORRUPT, UNSUPPORTED, NOT_FOUND, LIMIT), answer
                    assert os.path.basename(path) in answer.err or "ns.t" in answer.err or "warehouse" in answer.err, answer
                shop.tarn("cat", "ns.t.entries", check=False)
                shop.tarn("file", "cat", path, check=False)
            with open(path, "wb") as file:
                file.write(data)
        is_whole(shop, "ns.t", 2)


def hostile_files():
    """Files that claim more than they hold."""
    with Workshop() as shop:
        table_of_two(shop)
        bomb = gzip.compress(b'{"id":1,"s":"' + b"a" * (64 << 20) + b'"}\n', 9, mtime=0)
        write_bytes(shop, "bomb.ndjson.gz", bomb)
        answer = shop.tarn("ingest", "ns.t", "bomb.ndjson.gz", check=False)
        assert answer.status in (0, LIMIT, INVALID), answer
        write_bytes(shop, "huge.parquet", b"PAR1" + b"\x15\x04" * 20 + b"\xff\xff\xff\x7fPAR1")
        refused(shop.tarn("ingest", "ns.t", "huge.parquet", check=False), CORRUPT, "huge.parquet")
        write_bytes(shop, "deep.ndjson", b'{"id":1,"s":' + b'{"a":' * 100000 + b"1" + b"}" * 100001 + b"\n")
        refused(shop.tarn("ingest", "ns.t", "deep.ndjson", check=False), INVALID, "deep.ndjson line 1")
        refused(shop.tarn("cat", "ns.t", "--where", "(" * 5000, check=False), LIMIT, "filter")
        write_bytes(shop, "deep.metadata.json", b"[" * 100000)
        must_refuse(shop.tarn("file", "cat", "deep.metadata.json", check=False), "deep.metadata.json")


def missing_things():
    """Files, tables, namespaces, catalogs that are not there; folders for files; and what is there already."""
    with Workshop() as shop:
        refused(shop.tarn("ls", check=False), NOT_FOUND, "tarn.db")
        refused(shop.tarn("cat", "ns.t", "-c", "dir:none", check=False), NOT_FOUND, "none")
        equal(os.listdir(shop.folder), [])
        table_of_two(shop)
        os.mkdir(shop.path("folder"))
        for answer, status, words in [
                (("ingest", "ns.t", "none.csv"), NOT_FOUND, "none.csv"), (("ingest", "ns.t", "two.ndjson", "none.csv"), NOT_FOUND, "none.csv"),
                (("ingest", "ns.t", "nofolder/"), NOT_FOUND, "nofolder"), (("file", "cat", "none.parquet"), NOT_FOUND, "none.parquet"),
                (("file", "cat", "folder"), INVALID, "folder"), (("ingest", "ns.other", "two.ndjson"), NOT_FOUND, "ns.other"),
                (("cat", "ns.other"), NOT_FOUND, "ns.other"), (("cat", "other.t"), NOT_FOUND, "other.t"), (("ls", "other"), NOT_FOUND, "other"),
                (("cat", "ns.t.nonsense"), NOT_FOUND, "nonsense"), (("drop", "ns.other"), NOT_FOUND, "ns.other"),
                (("drop", "other", "--namespace"), NOT_FOUND, "other"), (("drop", "ns", "--namespace"), CONFLICT, "ns"),
                (("create", "ns.t", "id long"), CONFLICT, "ns.t"), (("create", "ns", "--namespace"), CONFLICT, "ns"),
                (("rename", "ns.other", "ns.x"), NOT_FOUND, "ns.other"), (("register", "ns.x", "none.metadata.json"), NOT_FOUND, "none.metadata.json"),
                (("cat", "ns.t", "--snapshot-id", "5"), NOT_FOUND, "5"), (("cat", "ns.t", "--ref", "none"), NOT_FOUND, "none"),
                (("cat", "ns.t", "--as-of", "2001-01-01"), NOT_FOUND, "snapshot"), (("alter", "ns.t", "drop-ref", "none"), NOT_FOUND, "none"), (("alter", "ns.t", "drop-ref", "main"), INVALID, "main"),
                (("cat", "./folder"), NOT_FOUND, "folder"), (("cat", "none/v1.metadata.json"), NOT_FOUND, "v1.metadata.json"),
                (("ls", "-c", "sqlite:folder"), INVALID, "folder"), (("ls", "-c", "dir:two.ndjson"), INVALID, "two.ndjson"),
                (("ls", "-c", "sqlite:two.ndjson"), CORRUPT, "two.ndjson"), (("ls", "-c", "dir:"), INVALID, "dir:"),
                (("ls", "-c", "nonsense"), INVALID, "nonsense"), (("ls", "-c", "ftp:x"), INVALID, "ftp:...")]:
            refused(shop.tarn(*answer, check=False), status, words)
        is_whole(shop, "ns.t", 2)


def bad_arguments():
    """Commands, options, filters, schemas, partitions as people mistype them."""
    with Workshop() as shop:
        table_of_two(shop)
        for arguments, *words in [
                (("ingset",), "ingset", "ingest"), (("nonsense",), "nonsense"), (("cat", "ns.t", "--wheer", "x"), "--wheer", "--where"),
                (("cat",), "TABLE"), (("cat", "a.b", "c.d"), "TABLE"), (("cat", "ns.t", "--limit"), "--limit"), (("cat", "ns.t", "--limit", "-1"), "-1"),
                (("cat", "ns.t", "--limit", "many"), "many"), (("cat", "ns.t", "--format", "xml"), "xml"), (("cat", "ns.t", "--columns", "nope"), "nope"),
                (("cat", "ns.t", "--as-of", "noon"), "noon"), (("cat", "ns.t", "--as-of", "2020-01-01x"), "2020-01-01x"),
                (("cat", "ns.t", "--where", "id = "), "column 6"), (("cat", "ns.t", "--where", "id = 1 and"), "column 11"),
                (("cat", "ns.t", "--where", "nope = 1"), "nope"), (("cat", "ns.t", "--where", "id = 'x'"), "id", "x"),
                (("cat", "ns.t", "--where", "id = \x00".replace("\x00", "\x01")), "column 6"),
                (("delete", "ns.t"), "--where"), (("delete", "ns.t", "--where", "id == == 1"), "column 7"), (("alter", "ns.t", "explode"), "explode"),
                (("alter", "ns.t", "drop-column"), "1 argument"), (("alter", "ns.t", "drop-column", "nope"), "nope"),
                (("alter", "ns.t", "rollback", "x"), "x"), (("alter", "ns.t", "drop-column", "n", "--first"), "--first"),
                (("alter", "ns.t", "update-type", "s", "int"), "s", "int"), (("alter", "ns.t", "add-column", "id", "int"), "id"),
                (("set", "ns.t"), "KEY=VALUE"), (("set", "ns.t", "novalue"), "novalue"), (("create", "ns.u", "id lng"), "column 4", "lng"),
                (("create", "ns.u", "id long, id int"), "column", "id"), (("create", "ns.u", "id long, l list<int"), "column"), (("create", "ns.u", ""), "SCHEMA"),
                (("create", "ns.u", "{}"), "fields"), (("create", "ns.u"), "SCHEMA"), (("create", "ns.u", "id long", "--partition-by", "mnth(id)"), "mnth"),
                (("create", "ns.u", "id long", "--partition-by", "month(id)"), "month", "id"), (("create", "ns.u", "id long", "--partition-by", "bucket(0, id)"), "bucket"),
                (("create", "ns.u", "id long", "--partition-by", "id, id"), "id"), (("create", "ns.u", "id long", "--sort-by", "nope"), "nope"),
                (("create", "ns.u", "id long", "--identifier", "id"), "id"), (("create", "ns.u", "id long", "-p", "x"), "x"),
                (("create", "u", "id long"), "namespace"), (("create", "ns..u", "id long"), "empty"), (("create", "ns.`u", "id long"), "u"),
                (("create", "ns.u", "id long", "--format-version", "9"), "--format-version"),
                (("ingest", "ns.t", "two.ndjson", "--mode", "x"), "--mode", "x"), (("ingest", "ns.t", "two.ndjson", "--where", "id=1"), "--where"),
                (("ingest", "ns.t", "two.ndjson", "--format", "xml"), "xml"), (("ingest", "ns.t", "two.ndjson", "--delimiter", "ab"), "ab"),
                (("file", "look", "two.ndjson"), "look"), (("ls", "--moved", "x"), "--moved")]:
            refused(shop.tarn(*arguments, check=False), INVALID, *words)
        equal(shop.tarn("ls").out, "ns.t\n")
        equal(shop.tarn("ls", "-n").out, "ns\n")
        is_whole(shop, "ns.t", 2)


# ---- names ----

COLUMNS = ["a.b", "x y", "sl/ash", 'quo"te', "back`tick", "ünï", "日本", "per%cent", "#", "select", "-1", "A", "a", "=", "../up", "é́", "🙂"]


def strange_columns():
    """Columns by any name, partitioned by them, read by others."""
    row = {name: "v %d /%%.é" % number for number, name in enumerate(COLUMNS)}
    schema = ", ".join('"%s" string' % name.replace('"', '""') for name in COLUMNS)
    with Workshop() as shop:
        shop.tarn("create", "ns.t", schema, "--partition-by", ", ".join('"%s"' % name.replace('"', '""') for name in COLUMNS[:5]))
        shop.write("in.ndjson", json.dumps(row) + "\n")
        shop.tarn("ingest", "ns.t", "in.ndjson")
        equal(shop.cat("ns.t").rows, [row])
        harness.same(shop.pyiceberg_rows("ns.t"), [row])
        equal([list(found.values()) for found in shop.duckdb_rows("ns.t")], [list(row.values())])  # it has no "A" beside "a"
        for name, value in row.items():
            where = '"%s" = \'%s\'' % (name.replace('"', '""'), value)
            equal((name, int(shop.tarn("cat", "ns.t", "--count", "--where", where).out)), (name, 1))
        csv = shop.tarn("cat", "ns.t", "--format", "csv").out
        shop.write("in.csv", csv)
        shop.tarn("ingest", "ns.t", "in.csv")
        equal(shop.cat("ns.t").rows, [row, row])
        is_whole(shop, "ns.t", 2)


def strange_tables():
    """Tables and namespaces by any name, in both kinds of catalog."""
    for catalog in ("sqlite:tarn.db", "dir:house"):
        with Workshop() as shop:
            names = ["ns.plain", "ns.`x y`", "ns.ünï", "`na me`.t", "ns.`100%`", "ns.`a/b`", "ns.`qu\"ote`", "ns.`..`"]
            made = []
            for name in names:
                answer = shop.tarn("create", name, "id long", "-c", catalog, check=False)
                if answer.status == 0:
                    made.append(name)
                else:
                    refused(answer, INVALID, "")
            assert len(made) >= 4, made
            equal(sorted(shop.tarn("ls", "-c", catalog).out.replace("`", "").splitlines()), sorted(n.replace("`", "") for n in made))
            shop.write("in.ndjson", '{"id": 7}\n')
            for name in made:
                shop.tarn("ingest", name, "in.ndjson", "-c", catalog)
                equal(shop.cat(name, "-c", catalog).rows, [{"id": 7}])
                equal(len(shop.cat(name + ".snapshots", "-c", catalog).rows), 1)
            outside = [p for p in os.listdir(os.path.dirname(shop.folder)) if p == "metadata"]
            equal(outside, [])


def unknown_properties():
    """Properties nobody knows are kept and do nothing."""
    with Workshop() as shop:
        table_of_two(shop, "-p", "who.knows=what", "-p", "write.nonsense=é \"quoted\"")
        shop.tarn("set", "ns.t", "more=", "a=b=c")
        document = json.loads(shop.tarn("describe", "ns.t", "--json").out)["properties"]
        equal({key: document[key] for key in ("who.knows", "write.nonsense", "more", "a")},
              {"who.knows": "what", "write.nonsense": 'é "quoted"', "more": "", "a": "b=c"})
        shop.tarn("set", "ns.t", "write.target-file-size-bytes=many")
        refused(shop.tarn("ingest", "ns.t", "two.ndjson", check=False), INVALID, "write.target-file-size-bytes", "many")
        is_whole(shop, "ns.t", 2)


# ---- surroundings ----

def can_unshare():
    return subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0


def in_mount(shop, setup, *commands):
    """Runs shell commands in a mount namespace after setup; what each printed and its status."""
    script = "exec 3>&1\n" + setup + "\n" + "\n".join("(%s) 2>&1 >/dev/null; echo \"status $?\"" % command for command in commands)
    done = subprocess.run(["unshare", "-m", "bash", "-c", script], cwd=shop.folder, env={**os.environ, "T": harness.binary()},
                          capture_output=True, text=True, timeout=harness.SECONDS)
    assert "Sanitizer" not in done.stdout, done.stdout
    out, text = [], []
    for line in done.stdout.splitlines():
        if line.startswith("status "):
            out.append((int(line[7:]), "\n".join(text)))
            text = []
        else:
            text.append(line)
    assert len(out) == len(commands), "%s%s" % (done.stdout, done.stderr)
    return out


def many_rows(shop, name, count):
    chance = random.Random(7)
    shop.write(name, "".join('{"id":%d,"s":"%032x"}\n' % (i, chance.getrandbits(128)) for i in range(count)))


def full_disk():
    """No space: the error says so, the table is as it was or as the last checkpoint left it, and it is still read."""
    with Workshop() as shop:
        many_rows(shop, "many.ndjson", 60000)
        os.mkdir(shop.path("disk"))
        shop.write("one.ndjson", '{"id": 1}\n')
        count = "test $($T cat ns.t --count) = %d"
        check = "find warehouse -type f | sort > have; $T cat ns.t.all_files --format csv --columns file_path | grep -c parquet > named; " \
                "test $(grep -c parquet have) = $(cat named); ! grep -q tmp have"
        got = in_mount(shop, "mount -t tmpfs -o size=1m tmpfs disk; cd disk; $T create ns.t '%s'; $T ingest ns.t ../one.ndjson -q" % SCHEMA,
                       "$T ingest ns.t ../many.ndjson -q", count % 1, check,
                       "$T ingest ns.t ../many.ndjson -q --checkpoint-rows 3000", "test $($T cat ns.t --count) -gt 3000; $T log ns.t --json | wc -l > commits", check,
                       "dd if=/dev/zero of=fill bs=1k 2>/dev/null; $T ingest ns.t ../one.ndjson -q", "$T delete ns.t --where 'id = 1' -q", "$T set ns.t a=b",
                       "$T create ns.u 'id long'", "test $($T log ns.t --json | wc -l) = $(cat commits)", "$T ls", "$T describe ns.t",
                       "rm fill; " + check, "$T ingest ns.t ../one.ndjson -q")
        for position in (0, 3, 6, 7, 8, 9):
            equal((position, got[position][0]), (position, IO))
            assert "No space left on device" in got[position][1], got[position]
        for position in (1, 2, 4, 5, 10, 11, 12, 13, 14):
            equal((position,) + got[position], (position, 0, ""))


def small_files_only():
    """A limit on the size of files is an error of write too."""
    with Workshop() as shop:
        table_of_two(shop)
        many_rows(shop, "many.ndjson", 60000)
        done = subprocess.run(["bash", "-c", "ulimit -f 200; exec %s ingest ns.t many.ndjson -q" % harness.binary()], cwd=shop.folder,
                              capture_output=True, text=True)
        equal(done.returncode, IO)
        assert "File too large" in done.stderr, done.stderr
        is_whole(shop, "ns.t", 2)


def read_only_folder():
    """A table that cannot be written is read, and every change says that it was denied."""
    for catalog in ("sqlite:tarn.db", "dir:house"):
        with Workshop() as shop:
            os.mkdir(shop.path("disk"))
            shop.write("disk/one.ndjson", '{"id": 1}\n')
            setup = ("export TARN_CATALOG=%s; cd disk; $T create ns.t '%s'; $T ingest ns.t one.ndjson -q; "
                     "mount --bind . .; mount -o remount,ro,bind . ; cd ../disk" % (catalog, SCHEMA))
            got = in_mount(shop, setup, "test $($T cat ns.t --count) = 1", "$T ls", "$T ingest ns.t one.ndjson -q", "$T delete ns.t --where 'id = 1'",
                           "$T set ns.t a=b", "$T alter ns.t add-column x int", "$T drop ns.t", "$T create ns.u 'id long'", "$T create u --namespace",
                           "$T create ns.v 'id long' -c sqlite:new.db", "test $($T cat ns.t --count) = 1")
            for position in (0, 1, 10):
                equal((position,) + got[position], (position, 0, ""))
            for position in range(2, 10):
                equal((catalog, position, got[position][0], len(got[position][1].splitlines())), (catalog, position, DENIED, 1))
                assert "Read-only file system" in got[position][1] or "readonly database" in got[position][1], got[position]


def full_output():
    """Standard output that is full is an error; one that is closed early is none."""
    with Workshop() as shop:
        table_of_two(shop)
        many_rows(shop, "many.ndjson", 20000)
        shop.tarn("ingest", "ns.t", "many.ndjson")
        for command in ("cat ns.t", "ls", "describe ns.t", "log ns.t", "file cat many.ndjson", "describe ns.t --json", "--help", "cat --help",
                        "help cat", "--version", "man", "completion bash"):
            line = "%s %s" % (harness.binary(), command)
            done = subprocess.run(["bash", "-c", line + " > /dev/full"], cwd=shop.folder, capture_output=True, text=True)
            equal((command, done.returncode), (command, IO))
            assert "No space left" in done.stderr or "an earlier part of it was not taken" in done.stderr, done.stderr
            done = subprocess.run(["bash", "-o", "pipefail", "-c", line + " | head -n 1"], cwd=shop.folder, capture_output=True, text=True)
            equal((command, done.returncode, done.stderr), (command, 0, ""))
            equal(len(done.stdout.splitlines()), 1)


def interrupted():
    """Ctrl-C while rows come in: 130, committed checkpoints stay, nothing else does, and the next run works."""
    with Workshop() as shop:
        table_of_two(shop)
        many_rows(shop, "many.ndjson", 5000)
        with open(shop.path("many.ndjson"), "rb") as file:
            data = file.read()
        process = subprocess.Popen([harness.binary(), "ingest", "ns.t", "-", "--format", "ndjson", "--checkpoint-rows", "4000"], cwd=shop.folder,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        deadline = time.monotonic() + harness.SECONDS
        while int(shop.tarn("cat", "ns.t", "--count").out) == 2 and time.monotonic() < deadline:
            process.stdin.write(data)
            process.stdin.flush()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=harness.SECONDS)
        equal((process.returncode, out), (CANCELLED, b""))
        assert b"cancelled" in err and b"commit" in err, err
        count = int(shop.tarn("cat", "ns.t", "--count").out)
        assert count >= 4002, count
        is_whole(shop, "ns.t", count)
        shop.tarn("ingest", "ns.t", "two.ndjson")
        is_whole(shop, "ns.t", count + 2)


def many_writers():
    """Ten processes append to one table at once, each several times: every row is there once."""
    for catalog in ("sqlite:tarn.db", "dir:house"):
        with Workshop() as shop:
            shop.tarn("create", "ns.t", "w long, i long", "-c", catalog, "-p", "commit.retry.num-retries=100", "-p", "commit.retry.total-timeout-ms=600000")
            script = "for i in 1 2 3 4; do echo '{\"w\":'$1',\"i\":'$i'}' | %s ingest ns.t - --format ndjson -q -c %s || exit 1; done" % (harness.binary(), catalog)
            running = [subprocess.Popen(["bash", "-c", script, "writer", str(w)], cwd=shop.folder, stderr=subprocess.PIPE, text=True) for w in range(10)]
            for process in running:
                _, err = process.communicate(timeout=harness.SECONDS)
                equal((process.returncode, err), (0, ""))
            rows = sorted((row["w"], row["i"]) for row in shop.cat("ns.t", "-c", catalog).rows)
            equal(rows, [(w, i) for w in range(10) for i in range(1, 5)])
            equal(len(shop.cat("ns.t.snapshots", "-c", catalog).rows), 40)
            if catalog.startswith("sqlite"):
                is_whole(shop, "ns.t", 40)


def changed_while_read():
    """A reader sees the version that it began with, whatever is committed meanwhile."""
    with Workshop() as shop:
        shop.tarn("create", "ns.t", SCHEMA)
        many_rows(shop, "many.ndjson", 60000)
        for _ in range(3):
            shop.tarn("ingest", "ns.t", "many.ndjson")
        reader = subprocess.Popen([harness.binary(), "cat", "ns.t"], cwd=shop.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        first = reader.stdout.readline()  # the reader is under way, and waits for us to read on
        shop.tarn("delete", "ns.t", "--where", "id < 30000")
        shop.tarn("ingest", "ns.t", "many.ndjson")
        shop.tarn("alter", "ns.t", "rename-column", "s", "t")
        rest, err = reader.stdout.read(), reader.stderr.read()
        equal((reader.wait(), err, len((first + rest).splitlines())), (0, b"", 180000))
        assert b'"t"' not in rest
        equal(int(shop.tarn("cat", "ns.t", "--count").out), 90000 + 60000)


CASES = [beyond_timestamps, bad_records, bad_values, bad_csv, bad_columns, bad_rows_set_aside, damaged_files, damaged_tables, hostile_files, missing_things, bad_arguments,
         strange_columns, strange_tables, unknown_properties, full_disk, small_files_only, read_only_folder, full_output, interrupted,
         many_writers, changed_while_read]
NEED_MOUNTS = [full_disk, read_only_folder]


def main(names):
    harness.need("pyarrow", "pyiceberg", "fastavro", "duckdb", "duckdb_extension_iceberg")
    mounts = can_unshare()
    for function in CASES:
        if names and function.__name__ not in names:
            continue
        if function in NEED_MOUNTS and not mounts:
            print("skipped %s: no mount namespaces for this user" % function.__name__)
            continue
        case("%s: %s" % (function.__name__, function.__doc__), function)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
