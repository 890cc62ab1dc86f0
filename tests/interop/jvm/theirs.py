"""The command reads what Spark wrote, and adds to it."""
from data import numbers
from both import values
from harness import equal, same
from reads import meta

COLUMNS = "id bigint, k int, s string, d double, at timestamp_ntz"
EVERYTHING = ("id bigint, bo boolean, i int, f float, d double, de decimal(9,2), big decimal(38,10), da date, ts timestamp_ntz, tz timestamp, "
              "s string, b binary, st struct<x: int, y: string, z: struct<q: double>>, l array<int>, m map<string, bigint>, "
              "ls array<struct<a: int, b: array<string>>>, mm map<int, map<string, date>>")
ROWS = """
select 1L, true, -2147483648, cast(1.5 as float), 0.1d, cast(-1234567.89 as decimal(9,2)), cast('9999999999999999999999999999.9999999999' as decimal(38,10)),
  date '1969-12-31', timestamp_ntz '1969-12-31 23:59:59.999999', timestamp '2024-02-29 12:34:56.789012', 'grüße 😀', X'', named_struct('x', 1, 'y', 'z',
  'z', named_struct('q', -2.5d)), array(1, null, 3), map('a', 1L, 'b', null), array(named_struct('a', 1, 'b', array('p', null)), null), map(1, map('k', date '1582-10-04'), 2, null)
union all select 2L, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null
union all select 3L, false, 2147483647, cast('NaN' as float), cast('-Infinity' as double), 0, -0.0000000001, date '9999-12-31',
  timestamp_ntz '0001-01-01 00:00:00', timestamp '1970-01-01 00:00:00', '', X'ff00', named_struct('x', null, 'y', null, 'z', null), array(), map(), array(), map()
union all select 4L, true, 0, cast('-0.0' as float), cast('-0.0' as double), 1, 1, date '0001-01-01', timestamp_ntz '9999-12-31 23:59:59.999999',
  timestamp '0001-01-01 00:00:00', 'x', X'00', named_struct('x', 1, 'y', '', 'z', named_struct('q', cast('NaN' as double))), array(cast(null as int)), map('', -1L),
  array(null), map(0, map())
"""


def create(shop, columns, rows=None, rest="", **properties):
    table = shop.new()
    given = ", ".join("'%s'='%s'" % item for item in properties.items())
    shop.sql("create table {} (%s) using iceberg %s %s" % (columns, rest, "tblproperties (%s)" % given if given else ""), table)
    if rows:
        shop.sql("insert into {} " + rows, table)
    return table


def all_types(shop):
    """Every type Spark has, in both format versions and every form of file we read; then rows of ours beside them."""
    kinds = ({"format-version": "1"}, {"format-version": "2"}, {"write.parquet.page-version": "v2"}, {"write.format.default": "avro"},
             {"write.parquet.compression-codec": "gzip"}, {"write.parquet.compression-codec": "snappy"}, {"write.parquet.compression-codec": "lz4"},
             {"write.parquet.compression-codec": "uncompressed"}, {"write.parquet.dict-size-bytes": "64"},
             {"write.metadata.compression-codec": "gzip"})
    for kind in kinds if shop.where == "tarn" else kinds[:2] + kinds[-1:]:
        table = create(shop, EVERYTHING, ROWS, **kind)
        found = shop.agree(table)
        equal(len(found), 4)
        shop.ingest(table, found)
        shop.agree(table, found + found)
        if kind in kinds[:2]:
            meta(shop, table)


all_types.catalogs = ("tarn", "files")


def partitions(shop):
    """Tables partitioned by every transform: values, pruning, and files of ours among Spark's."""
    for transform in ("bucket(8, id)", "truncate(2, s)", "truncate(10, id)", "k", "s", "years(at)", "months(at)", "days(at)", "hours(at)",
                      "bucket(4, s)", "d", "bucket(3, at)"):
        table = create(shop, COLUMNS, values(numbers(60)), "partitioned by (%s)" % transform)
        shop.agree(table, numbers(60))
        shop.ingest(table, numbers(60, 60))
        shop.agree(table, numbers(120))
        shop.filters_hold(table, "id = 33", "s = 's3'", "s is null", "at < timestamp_ntz '2024-01-04 00:00:00'", "d > 20.5")
        distinct = shop.spark.sql("select count(*), count(distinct partition) from %s.files" % shop.quoted(table)).collect()[0]
        parts = shop.cat(table + ".partitions").rows
        equal((transform, len(parts)), (transform, distinct[1]))
        meta(shop, table, ("files", "partitions"))


def delete_files(shop):
    """Merge-on-read tables: position deletes of either granularity, on many files, branches and after evolution."""
    properties = {"write.delete.mode": "merge-on-read", "write.update.mode": "merge-on-read", "format-version": "2"}
    for form in ("parquet", "avro"):
        table = create(shop, COLUMNS, values(numbers(100)), "partitioned by (k)", **properties, **{"write.format.default": form})
        shop.sql("insert into {} %s" % values(numbers(100, 100)), table)
        shop.sql("delete from {} where id % 5 = 2", table)
        shop.sql("alter table {} add partition field bucket(2, id)", table)
        shop.sql("insert into {} %s" % values(numbers(50, 200)), table)
        shop.sql("delete from {} where id % 11 = 3", table)
        shop.sql("update {} set s = 'new' where k = 4", table)
        shop.sql("alter table {} rename column s to t", table)
        shop.sql("delete from {} where t = 's1'", table)
        shop.filters_hold(table, "id < 20", "t = 'new' and id > 100", "k = 4", "t is null")
        shop.agree(table)
        shop.tarn("delete", table, "--where", "id > 150")
        shop.ingest(table, [{"id": 7, "k": 4, "t": "back", "d": 0.5, "at": "2024-01-01T00:00:00.000000"}])
        shop.agree(table)
        for snapshot in shop.cat(table + ".snapshots").rows:
            number = snapshot["snapshot_id"]
            same(shop.spark_rows(table, rest="version as of %d" % number), shop.cat(table, "--snapshot-id", number).rows)
        meta(shop, table)


def imported(shop):
    """Plain Parquet files of Spark's, taken over without field ids: read through the name mapping."""
    for partitioned in (False, True):
        source = shop.path("plain%d" % partitioned)
        frame = shop.spark.sql(values(numbers(40)))
        frame = frame.selectExpr("cast(id as bigint) id", "s", "d", "at", "named_struct('a', id, 'b', array(s)) st", "k")
        (frame.write.partitionBy("k") if partitioned else frame.write).parquet(source)
        table = create(shop, "id bigint, s string, d double, at timestamp_ntz, st struct<a: int, b: array<string>>, k int",
                       rest="partitioned by (k)" if partitioned else "")
        shop.spark.sql("call %s.system.add_files(table => '%s', source_table => '`parquet`.`%s`')" % (shop.where, table, source))
        found = shop.agree(table)
        equal(len(found), 40)
        shop.sql("alter table {} rename column s to t", table)
        shop.sql("alter table {} rename column st.a to aa", table)
        shop.agree(table)
        shop.ingest(table, [{"id": 1, "t": "x", "d": 1.0, "at": None, "st": {"aa": 1, "b": []}, "k": 3}])
        shop.agree(table)
        shop.filters_hold(table, "t = 's3'", "id < 5", "k = 3")
        shop.tarn("delete", table, "--where", "id < 20")
        shop.agree(table)


def big(shop):
    """Many row groups, pages and dictionaries that overflow; filters find what a full read finds."""
    table = create(shop, "id bigint, r int, s string, u string, l array<int>", rest="", **{
        "write.parquet.row-group-size-bytes": "65536", "write.parquet.page-size-bytes": "4096", "write.parquet.dict-size-bytes": "8192",
        "write.parquet.bloom-filter-enabled.column.u": "true"})
    shop.sql("insert into {} select /*+ coalesce(1) */ id, cast(id % 1000 as int), concat('s', cast(id % 5000 as string)), sha2(cast(id as string), 256), "
             "if(id % 3 = 0, null, array(cast(id as int), null)) from range(30000)", table)
    shop.agree(table)
    shop.filters_hold(table, "id = 17777", "r = 999 and id > 20000", "s = 's4999'", "u < '000f'", "id between 100 and 105")


def namespaces(shop):
    """Namespaces with properties and below others, and tables in them; what one drops is gone for the other."""
    shop.spark.sql("create namespace %s.theirs with properties ('note'='it is')" % shop.where)
    shop.spark.sql("create namespace %s.theirs.deep" % shop.where)
    shop.spark.sql("create table %s.theirs.deep.`a b` (a int) using iceberg" % shop.where)
    assert "theirs.deep.`a b`" in shop.tarn("ls").out.split("\n"), shop.tarn("ls").out
    assert "theirs.deep" in shop.tarn("ls", "-n").out.split("\n"), shop.tarn("ls", "-n").out
    shop.ingest("theirs.deep.`a b`", [{"a": 1}])
    equal(shop.spark.sql("select a from %s.theirs.deep.`a b`" % shop.where).collect()[0].a, 1)
    shop.spark.sql("drop table %s.theirs.deep.`a b`" % shop.where)
    assert "theirs.deep.`a b`" not in shop.tarn("ls").out.split("\n"), shop.tarn("ls").out
    shop.spark.sql("drop namespace %s.theirs.deep" % shop.where)
    assert "theirs.deep" not in shop.tarn("ls", "-n").out.split("\n"), shop.tarn("ls", "-n").out
    if shop.where == "tarn":
        shop.tarn("create", "ours", "--namespace", "-p", "k=v w")
        shown = {r[0]: r[1] for r in shop.spark.sql("describe namespace extended %s.ours" % shop.where).collect()}
        assert "k" in str(shown) and "v w" in str(shown), shown


namespaces.catalogs = ("tarn",)

CASES = [all_types, partitions, delete_files, imported, big, namespaces]
