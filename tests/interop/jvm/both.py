"""Spark and the command take turns on one table."""
import json
import os

from data import NUMBERS, numbers
from harness import equal, same
from reads import FEW, meta

CATALOGS = ("tarn", "files")


def values(found):
    """Rows of numbers() as a query."""
    def one(r):
        text = "null" if r["s"] is None else "'%s'" % r["s"]
        return "(%d, %d, %s, cast('%r' as double), timestamp_ntz '%s')" % (r["id"], r["k"], text, r["d"], r["at"].replace("T", " "))
    return "select * from values %s as n(id, k, s, d, at)" % ", ".join(one(r) for r in found)


def appends(shop):
    """Appends in turn, then overwrites in turn."""
    found = numbers(60)
    table = shop.make(found[:10], NUMBERS, "--partition-by", "bucket(3, id), day(at)")
    for start in range(10, 60, 20):
        shop.sql("insert into {} %s" % values(found[start:start + 10]), table)
        shop.agree(table, found[:start + 10])
        shop.ingest(table, found[start + 10:start + 20])
        shop.agree(table, found[:start + 20])
    equal(len(shop.cat(table + ".snapshots").rows), 6 + (60 - 10) // 20 - 2)
    shop.sql("insert overwrite {} %s" % values(found[:5]), table)
    shop.agree(table, found[:5])
    shop.ingest(table, found[5:9], "--mode", "replace-partitions")
    shop.agree(table)
    meta(shop, table, FEW)


appends.catalogs = CATALOGS


def row_changes(shop):
    """Spark deletes, updates and merges by rewriting files; we read, append and delete after each."""
    table, want = changed_rows(shop, "copy-on-write", "file")
    meta(shop, table, FEW)


def row_deletes(shop):
    """The same by delete files of either granularity; more of them after we went on."""
    for granularity in ("file", "partition"):
        table, want = changed_rows(shop, "merge-on-read", granularity)
        shop.sql("delete from {} where s = 'merged'", table)
        shop.agree(table, [r for r in want if r["s"] != "merged"])
        shop.ingest(table, numbers(2), "--mode", "overwrite")
        shop.agree(table, numbers(2))
        meta(shop, table, FEW)


def changed_rows(shop, mode, granularity):
    found = numbers(90)
    properties = ["write.%s.mode=%s" % (what, mode) for what in ("delete", "update", "merge")] + ["write.delete.granularity=" + granularity]
    table = shop.make(found[:60], NUMBERS, "--partition-by", "truncate(3, k)", *[w for p in properties for w in ("-p", p)])
    shop.sql("delete from {} where id % 4 = 1", table)
    want = [r for r in found[:60] if r["id"] % 4 != 1]
    shop.agree(table, want)
    shop.ingest(table, found[60:70])
    want += found[60:70]
    shop.sql("update {} set s = 'updated', d = d + 1 where k = 2", table)
    want = [{**r, "s": "updated", "d": r["d"] + 1} if r["k"] == 2 else r for r in want]
    shop.agree(table, want)
    shop.sql("merge into {} t using (%s) n on t.id = n.id when matched and n.id < 65 then delete "
             "when matched then update set s = 'merged' when not matched then insert *" % values(found[62:75]), table)
    want = [{**r, "s": "merged"} if 65 <= r["id"] < 70 else r for r in want if not 62 <= r["id"] < 65] + found[70:75]
    shop.agree(table, want)
    shop.filters_hold(table, "id = 68", "s = 'merged' and k > 2", "s is null")
    shop.tarn("delete", table, "--where", "id >= 10 and id < 30")
    want = [r for r in want if not 10 <= r["id"] < 30]
    shop.agree(table, want)
    shop.ingest(table, found[75:])
    want += found[75:]
    shop.agree(table, want)
    shop.tarn("delete", table, "--where", "k = 2")
    want = [r for r in want if r["k"] != 2]
    shop.agree(table, want)
    for snapshot in shop.cat(table + ".snapshots").rows:
        number = snapshot["snapshot_id"]
        same(shop.spark_rows(table, rest="version as of %d" % number), shop.cat(table, "--snapshot-id", number).rows)
    return table, want


def evolution(shop):
    """Schema and partitioning altered in turn."""
    for version in ("1", "2"):
        table = shop.make(numbers(10), NUMBERS, "--format-version", version)
        shop.sql("alter table {} add column note string comment 'n' after k", table)
        shop.ingest(table, [{**r, "note": "x"} for r in numbers(5, 10)])
        shop.agree(table)
        shop.sql("alter table {} rename column s to text", table)
        shop.sql("alter table {} alter column k type bigint", table)
        shop.sql("alter table {} add column st struct<a: int, b: array<string>>", table)
        shop.tarn("alter", table, "add-column", "st.c", "date")
        shop.sql("alter table {} drop column st.b", table)
        shop.tarn("alter", table, "rename-column", "st.a", "aa")
        shop.sql("alter table {} add partition field bucket(4, id)", table)
        shop.ingest(table, [{"id": 100, "k": 3000000000, "note": None, "text": "t", "d": 1.0, "at": "2024-01-01T00:00:00.000000",
                             "st": {"aa": 1, "c": "2020-02-02"}}])
        shop.agree(table)
        shop.tarn("alter", table, "add-partition", "day(at)")
        shop.sql("insert into {} select id + 1000, k, note, text, d, at, st from {}", table, table)
        equal(len(shop.agree(table)), 32)
        shop.sql("alter table {} drop partition field bucket(4, id)", table)
        shop.tarn("alter", table, "drop-column", "note")
        shop.sql("alter table {} write ordered by k desc, id", table)
        shop.ingest(table, [{"id": 2000, "k": 1}])
        equal(len(shop.agree(table)), 33)
        shop.filters_hold(table, "id = 100", "id > 1000 and k = 3", "at >= timestamp_ntz '2024-01-05 00:00:00'", "st.aa = 1", "text = 's3'")
        if version == "1":
            shop.tarn("alter", table, "upgrade", "2")
            shop.sql("delete from {} where id % 3 = 0", table)
            shop.agree(table)
        meta(shop, table, FEW)


evolution.catalogs = CATALOGS


def lineage(shop, table):
    """Row ids as both see them: the same, and no two rows with one; by id."""
    columns = "id, _row_id, _last_updated_sequence_number"
    theirs = sorted(tuple(r) for r in shop.sql("select %s from {}" % columns, table).collect())
    ours = sorted((r["id"], r["_row_id"], r["_last_updated_sequence_number"]) for r in shop.cat(table, "--columns", columns).rows)
    equal(ours, theirs)
    found = {row: row_id for row, row_id, _ in ours}
    equal(len(set(found.values())), len(ours))
    assert None not in found.values(), ours
    return found


def version_3(shop):
    """Row ids over appends in turn, merged manifests, deletion vectors and an upgrade."""
    found = numbers(100)
    for version in ("3", "2"):
        table = shop.make(found[:20], NUMBERS, "--partition-by", "k", "--format-version", version, "-p", "write.delete.mode=merge-on-read")
        if version == "2":
            shop.ingest(table, found[20:25])
            shop.tarn("alter", table, "upgrade", "3")
        shop.ingest(table, found[25:30])
        first = lineage(shop, table)
        shop.sql("insert into {} %s" % values(found[30:40]), table)
        second = lineage(shop, table)
        equal({i: second[i] for i in first}, first)
        shop.ingest(table, found[40:60], "--merge-append")
        shop.agree(table)
        third = lineage(shop, table)
        equal({i: third[i] for i in second}, second)
        shop.sql("delete from {} where id % 7 = 1", table)
        shop.agree(table)
        shop.ingest(table, found[60:70])
        shop.tarn("delete", table, "--where", "k = 2")
        want = [r for r in shop.agree(table) if r["k"] == 2]
        equal(want, [])
        fourth = lineage(shop, table)
        equal({i: r for i, r in fourth.items() if i in third}, {i: r for i, r in third.items() if i in fourth})
        shop.sql("insert into {} %s" % values(found[70:80]), table)
        lineage(shop, table)
        shop.tarn("alter", table, "add-column", "extra", "int", "--default", "5")
        shop.ingest(table, [{**r, "extra": 6} for r in found[80:90]])
        shop.agree(table)
        equal(sorted({r["extra"] for r in shop.cat(table).rows}), [5, 6])
        lineage(shop, table)


version_3.catalogs = CATALOGS


def our_row_deletes(shop):
    """Row deletes of ours by position deletes and by vectors, in turn with Spark's."""
    found = numbers(90)
    modes = [w for what in ("delete", "update", "merge") for w in ("-p", "write.%s.mode=merge-on-read" % what)]
    for version, form, content in (("2", "parquet", "PARQUET"), ("2", "avro", "AVRO"), ("3", "parquet", "PUFFIN")):
        table = shop.make(found[:60], NUMBERS, "--partition-by", "truncate(3, k)", "--format-version", version, "-p", "write.format.default=" + form, *modes)
        before = lineage(shop, table) if version == "3" else {}
        shop.tarn("delete", table, "--where", "id in (1, 5, 9, 13, 17, 21)")
        want = [r for r in found[:60] if r["id"] not in (1, 5, 9, 13, 17, 21)]
        shop.agree(table, want)
        formats = [r["file_format"] for r in shop.cat(table + ".files").rows if r["content"] != 0]
        equal(sorted(set(formats)), [content])
        shop.sql("delete from {} where id in (2, 6, 10)", table)
        want = [r for r in want if r["id"] not in (2, 6, 10)]
        shop.agree(table, want)
        shop.tarn("update", table, "--set", "s = 'ours'", "--where", "id in (3, 7, 30)")
        want = [{**r, "s": "ours"} if r["id"] in (3, 7, 30) else r for r in want]
        shop.agree(table, want)
        shop.ingest(table, found[60:])
        shop.tarn("delete", table, "--where", "id in (4, 8, 62)")
        want = [r for r in want + found[60:] if r["id"] not in (4, 8, 62)]
        shop.agree(table, want)
        if version == "3":
            equal(len({r["referenced_data_file"] for r in shop.cat(table + ".delete_files").rows}), len(shop.cat(table + ".delete_files").rows))
            after = lineage(shop, table)
            kept = [i for i in before if i in after and i not in (3, 7, 30)]
            equal({i: after[i] for i in kept}, {i: before[i] for i in kept})
        meta(shop, table, FEW)


def our_row_changes(shop):
    """We delete, update and merge in both modes and versions, Spark reads, and goes on by delete files and vectors; then we again."""
    found = numbers(60)
    for version in ("2", "3"):
        for mode in ("copy-on-write", "merge-on-read"):
            properties = [w for what in ("delete", "update", "merge") for w in ("-p", "write.%s.mode=%s" % (what, mode))]
            table = shop.make(found[:40], NUMBERS, "--partition-by", "k", "--format-version", version, *properties)
            first = lineage(shop, table) if version == "3" else None
            shop.tarn("delete", table, "--where", "id in (1, 5, 9, 13)")
            want = [r for r in found[:40] if r["id"] not in (1, 5, 9, 13)]
            shop.agree(table, want)
            shop.tarn("update", table, "--set", "s = 'ours', k = k + 1", "--where", "id >= 10 and id < 20")
            want = [{**r, "s": "ours", "k": r["k"] + 1} if 10 <= r["id"] < 20 else r for r in want]
            shop.agree(table, want)
            shop.sql("delete from {} where id in (2, 12, 22)", table)
            want = [r for r in want if r["id"] not in (2, 12, 22)]
            shop.agree(table, want)
            shop.tarn("delete", table, "--where", "id in (3, 14, 23)")
            want = [r for r in want if r["id"] not in (3, 14, 23)]
            shop.agree(table, want)
            shop.write("merge.ndjson", "".join(json.dumps({"id": i, "s": "merged", "k": 2, "at": found[i]["at"], "d": None}) + "\n" for i in range(30, 50)))
            shop.tarn("merge", table, "merge.ndjson", "--key", "id")
            want = [r for r in want if r["id"] < 30] + [{**found[i], "s": "merged", "k": 2, "d": None} for i in range(30, 50)]
            shop.agree(table, want)
            shop.sql("update {} set s = 'theirs' where id < 12 or id = 45", table)
            want = [{**r, "s": "theirs"} if r["id"] < 12 or r["id"] == 45 else r for r in want]
            shop.agree(table, want)
            shop.tarn("update", table, "--set", "s = s || '!'", "--where", "s = 'theirs'")
            want = [{**r, "s": "theirs!"} if r["s"] == "theirs" else r for r in want]
            shop.agree(table, want)
            shop.filters_hold(table, "id = 45", "s = 'merged' and k = 2", "k = 1")
            if version == "3":
                last = lineage(shop, table)
                equal({i: last[i] for i in last if i in first}, {i: first[i] for i in first if i in last})
            meta(shop, table, FEW)


our_row_changes.catalogs = CATALOGS


def branches(shop):
    """Branches and tags made by one and used by the other."""
    found = numbers(50)
    table = shop.make(found[:10], NUMBERS)
    shop.sql("alter table {} create branch b1", table)
    shop.ingest(table, found[10:20], "--branch", "b1")
    shop.spark.sql("insert into %s.branch_b1 %s" % (shop.quoted(table), values(found[20:30])))
    same(shop.cat(table, "--ref", "b1").rows, found[:30])
    same(shop.spark_rows(table + ".branch_b1"), found[:30])
    shop.agree(table, found[:10])
    shop.sql("alter table {} create tag t1 retain 100 days", table)
    shop.tarn("alter", table, "branch", "b2", "--max-ref-age-ms", "1000000000")
    shop.spark.sql("delete from %s.branch_b2 where id < 5" % shop.quoted(table))
    same(shop.cat(table, "--ref", "b2").rows, found[5:10])
    shop.spark.sql("call %s.system.fast_forward('%s', 'main', 'b1')" % (shop.where, table))
    shop.agree(table, found[:30])
    shop.spark.sql("call %s.system.rollback_to_snapshot('%s', %d)" % (shop.where, table, shop.cat(table + ".snapshots").rows[0]["snapshot_id"]))
    shop.agree(table, found[:10])
    shop.ingest(table, found[30:])
    shop.agree(table, found[:10] + found[30:])
    same(shop.cat(table + ".refs").rows, shop.spark_rows(table + ".refs"))
    meta(shop, table)


def maintenance(shop):
    """Spark compacts, rewrites manifests and expires snapshots of our table; we go on, and it goes on after us."""
    found = numbers(80)
    table = shop.make(found[:10], NUMBERS, "--partition-by", "k")
    for start in range(10, 50, 10):
        shop.ingest(table, found[start:start + 10])
    shop.sql("delete from {} where id = 7", table)
    want = [r for r in found[:50] if r["id"] != 7]
    call = "call %s.system." % shop.where
    shop.spark.sql(call + "rewrite_data_files(table => '%s', options => map('rewrite-all', 'true'))" % table)
    shop.agree(table, want)
    shop.spark.sql(call + "rewrite_manifests('%s')" % table)
    shop.agree(table, want)
    shop.spark.sql(call + "expire_snapshots(table => '%s', older_than => timestamp '2999-01-01 00:00:00', retain_last => 1)" % table)
    shop.agree(table, want)
    shop.ingest(table, found[50:60], "--merge-append")
    shop.tarn("delete", table, "--where", "k = 1 or id < 20")
    want = [r for r in want + found[50:60] if r["k"] != 1 and r["id"] >= 20]
    shop.agree(table, want)
    shop.spark.sql(call + "rewrite_data_files(table => '%s', strategy => 'sort', sort_order => 'id desc', options => map('rewrite-all', 'true'))" % table)
    shop.sql("insert into {} %s" % values(found[60:70]), table)
    shop.ingest(table, found[70:])
    shop.agree(table, want + found[60:])
    orphans = shop.spark.sql(call + "remove_orphan_files(table => '%s', older_than => timestamp '2001-01-01 00:00:00', dry_run => true)" % table)
    equal(orphans.count(), 0)
    meta(shop, table, FEW)


maintenance.catalogs = CATALOGS


def changes(shop):
    """Incremental reads and changelogs by Spark over our commits and its own."""
    found = numbers(30)
    table = shop.make(found[:10], NUMBERS, "--partition-by", "k")
    shop.ingest(table, found[10:20])
    shop.sql("insert into {} %s" % values(found[20:]), table)
    ids = [s["snapshot_id"] for s in shop.cat(table + ".snapshots").rows]
    for start in (0, 1):
        frame = shop.spark.read.format("iceberg").option("start-snapshot-id", str(ids[start])).option("end-snapshot-id", str(ids[2])).load(
            "%s.%s" % (shop.where, table))
        equal(sorted(r.id for r in frame.collect()), [r["id"] for r in found[10 * start + 10:]])
    shop.tarn("delete", table, "--where", "id between 5 and 12")
    shop.spark.sql("call %s.system.create_changelog_view(table => '%s', changelog_view => 'log', identifier_columns => array('id'))" % (shop.where, table))
    log = [(r.id, r._change_type) for r in shop.spark.sql("select id, _change_type from log").collect()]
    equal(sorted(log), sorted([(i, "INSERT") for i in range(30)] + [(i, "DELETE") for i in range(5, 13)]))


def properties(shop):
    """Properties, identifiers, locations and order set by one are the other's too."""
    table = shop.make(numbers(5), "id long not null, k int not null, s string, d double, at timestamp", "--identifier", "id,k", "--sort-by",
                      "k desc nulls last, id", "-p", "note=made by us", "-p", "said=o'x\"y")
    shown = {r.key: r.value for r in shop.sql("show tblproperties {}", table).collect()}
    equal([shown["note"], shown["said"], shown["identifier-fields"]], ["made by us", "o'x\"y", "[id,k]"])
    equal(shown["sort-order"], "k DESC NULLS LAST, id ASC NULLS FIRST")
    shop.sql("alter table {} set tblproperties ('a.b'='c=d', 'write.parquet.compression-codec'='gzip')", table)
    shop.sql("alter table {} set identifier fields id", table)
    shop.tarn("set", table, "mine=1", "--unset", "note")
    document = json.loads(shop.tarn("describe", table, "--json").out)
    equal([document["properties"].get(k) for k in ("a.b", "mine", "note", "said")], ["c=d", "1", None, "o'x\"y"])
    shown = {r.key: r.value for r in shop.sql("show tblproperties {}", table).collect()}
    equal([shown.get("mine"), shown.get("note"), shown["identifier-fields"]], ["1", None, "[id]"])
    shop.ingest(table, numbers(5, 5))
    shop.agree(table, numbers(10))
    if shop.where == "tarn":
        shop.sql("alter table {} rename to %s_renamed" % table, table)
        shop.agree(table + "_renamed", numbers(10))
        shop.tarn("rename", table + "_renamed", table + "_again")
        shop.agree(table + "_again", numbers(10))
        table += "_again"
    shop.tarn("drop", table)
    assert not shop.spark.catalog.tableExists("%s.%s" % (shop.where, table))


properties.catalogs = CATALOGS

def imported_ids(shop):
    """Files of a table that was changed become another's, with their field ids; both engines read and go on with it."""
    old = shop.make([{"a": 1, "b": "x", "s": {"p": 1, "q": [1, 2]}}], "a int, b string, s struct<p: int, q: list<int>>")
    shop.tarn("alter", old, "drop-column", "a")
    shop.tarn("alter", old, "rename-column", "b", "name")
    shop.ingest(old, [{"name": "y", "s": {"p": 2, "q": []}}])
    folder, new = shop.path(old + ".files"), shop.new()
    os.makedirs(folder)
    shop.tarn("cat", old, "--output", os.path.join(folder, "all.parquet"))
    shop.tarn("import", new, folder, "--create")
    shop.agree(new, shop.cat(old).rows)
    shop.sql("alter table {} add column later int", new)
    shop.sql("insert into {} values ('z', named_struct('p', 3, 'q', array(3)), 5)", new)
    equal(sorted((r["name"], r["later"]) for r in shop.agree(new)), [("x", None), ("y", None), ("z", 5)])


CASES = [appends, row_changes, row_deletes, evolution, version_3, our_row_changes, our_row_deletes, branches, maintenance, changes, properties, imported_ids]
