"""Spark reads what the command wrote."""
import json
import math

from data import FULL, KEYS, NUMBERS, TYPES, keys, numbers
from harness import equal, same
from rows import difference

BOTH = ("tarn", "files")


def all_types(shop):
    """Every type at its edges, both format versions, plain and vectorised reading."""
    for version in ("1", "2"):
        for vectorised in ("true", "false"):
            table = shop.make(FULL, TYPES, "--format-version", version, "-p", "read.parquet.vectorization.enabled=" + vectorised)
            shop.agree(table, FULL)
            zero = shop.spark.sql("select f, d from %s where i = 0" % shop.quoted(table)).collect()[0]
            equal([math.copysign(1, zero.f), math.copysign(1, zero.d)], [-1.0, -1.0])


all_types.catalogs = BOTH


def decimals(shop):
    """Every width of decimal that Parquet has a form for."""
    sizes = [(1, 0), (4, 4), (9, 0), (9, 2), (10, 10), (18, 6), (19, 0), (20, 19), (38, 0), (38, 38)]
    types = "id int, " + ", ".join("d%d_%d decimal(%d,%d)" % (p, s, p, s) for p, s in sizes)

    def row(number, value):
        return {"id": number, **{"d%d_%d" % (p, s): scaled(value(p), s) for p, s in sizes}}
    found = [row(1, lambda p: 10 ** p - 1), row(2, lambda p: 1 - 10 ** p), row(3, lambda p: 0), row(4, lambda p: 1), row(5, lambda p: -1),
             row(6, lambda p: None), row(7, lambda p: 10 ** p // 7), row(8, lambda p: -(10 ** p // 300))]
    for options in ((), ("-p", "write.parquet.dict-size-bytes=0"), ("-p", "write.format.default=avro")):
        table = shop.make(found, types, *options)
        shop.agree(table, found)
        for p, s in sizes:
            column = "d%d_%d" % (p, s)
            shop.filters_hold(table, "%s = %s" % (column, found[0][column]), "%s < 0" % column, "%s >= %s" % (column, found[6][column]))


def scaled(unscaled, scale):
    if unscaled is None:
        return None
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    text = digits[:len(digits) - scale] + ("." + digits[len(digits) - scale:] if scale else "")
    return ("-" if unscaled < 0 else "") + text


TRANSFORMS = {"bucket(16, {})": "id i de da ts tz s b u", "truncate(3, {})": "id i de s b", "{}": "bo id i de da ts tz s b u",
              "year({})": "da ts tz", "month({})": "da ts tz", "day({})": "da ts tz", "hour({})": "ts tz", "void({})": "s"}
FUNCTIONS = {"bucket": "bucket(16, {})", "truncate": "truncate(3, {})", "year": "years({})", "month": "months({})",
             "day": "days({})", "hour": "hours({})"}


def literal(column, value):
    if column in ("id", "i", "de", "f"):
        return str(value)
    if column == "bo":
        return "true" if value else "false"
    if column == "da":
        return "date '%s'" % value
    if column == "ts":
        return "timestamp_ntz '%s'" % value.replace("T", " ")
    if column == "tz":
        return "timestamp '%s'" % value.replace("T", " ")
    if column == "b":
        return "X'%s'" % value
    return "'%s'" % value


def partitions(shop):
    """Partition values are those of Iceberg's functions, and Spark's pruning by them finds every row."""
    source = keys()
    for transform, columns in TRANSFORMS.items():
        for column in columns.split():
            table = shop.make(source, KEYS, "--partition-by", transform.format(column))
            shop.agree(table, source)
            function = FUNCTIONS.get(transform.split("(")[0])
            if function and column != "u":
                wrong = shop.spark.sql("select count(*) from %s where not (_partition.`%s` <=> tarn.system.%s)" % (
                    shop.quoted(table), partition_name(shop, table), function.format(column))).collect()[0][0]
                equal((table, transform, column, wrong), (table, transform, column, 0))
            picked = [r for r in source if r[column] is not None]
            value = literal(column, picked[17][column])
            texts = ["%s in (%s, %s)" % (column, value, literal(column, picked[60][column])), "%s is null" % column]
            if column not in ("bo", "u"):
                texts += ["%s %s %s" % (column, "<" if len(transform) % 2 else ">=", value)]
            shop.filters_hold(table, *texts)


def partition_name(shop, table):
    spec, = [s for s in json.loads(shop.tarn("describe", table, "--json").out)["partition-specs"]]
    return spec["fields"][0]["name"]


def encodings(shop):
    """Codecs, page versions, dictionary and delta encodings, Avro data files."""
    kinds = []
    for codec in ("zstd", "snappy", "gzip", "lz4", "uncompressed"):
        kinds += [["write.parquet.compression-codec=" + codec, "write.parquet.page-version=" + page] for page in ("v1", "v2")]
    kinds += [["write.parquet.dict-size-bytes=0", "write.parquet.page-version=" + page] for page in ("v1", "v2")]
    kinds += [["write.parquet.page-size-bytes=512", "write.parquet.page-row-limit=100", "write.parquet.row-group-size-bytes=4096"]]
    kinds += [["write.parquet.encoding.column.id=delta", "write.parquet.encoding.column.k=delta", "write.parquet.page-version=" + page]
              for page in ("v1", "v2")]
    kinds += [["write.format.default=avro", "write.avro.compression-codec=" + codec] for codec in ("gzip", "zstd", "snappy", "uncompressed")]
    plain = [["write.parquet.encoding.column.s=delta", "write.parquet.encoding.column.d=byte-stream-split", "write.parquet.page-version=v2"],
             ["write.parquet.encoding.column.s=delta-length", "write.parquet.encoding.column.d=plain"]]
    found = numbers(700)
    for kind in kinds + [p + ["read.parquet.vectorization.enabled=false"] for p in plain]:
        table = shop.make(found, NUMBERS, *[word for p in kind for word in ("-p", p)])
        try:
            shop.agree(table, found)
            same(shop.spark_rows(table, "id between 333 and 335 or s = 's3' and k = 2"),
                 [r for r in found if 333 <= r["id"] <= 335 or (r["s"] == "s3" and r["k"] == 2)])
        except Exception as error:
            raise AssertionError("with %s: %s" % (kind, str(error)[:3000])) from error


def filters(shop):
    """Spark prunes row groups and pages by our statistics, dictionaries and bloom filters, and loses no row."""
    found = numbers(60000)
    options = ["write.parquet.row-group-size-bytes=65536", "write.parquet.page-row-limit=500",
               "write.parquet.bloom-filter-enabled.column.id=true", "write.parquet.bloom-filter-enabled.column.s=true",
               "write.parquet.bloom-filter-enabled.column.d=true", "write.parquet.bloom-filter-enabled.column.at=true"]
    table = shop.make(found, NUMBERS, *[word for p in options for word in ("-p", p)])
    groups = shop.spark_rows(table + ".files")
    assert sum(len(file["split_offsets"]) for file in groups) > 2, groups
    for text, want in (("id = 17", lambda r: r["id"] == 17), ("id > 59990 and k <> 2", lambda r: r["id"] > 59990 and r["k"] != 2),
                       ("s is null and id < 40", lambda r: r["s"] is None and r["id"] < 40), ("s = 's3'", lambda r: r["s"] == "s3"),
                       ("s = 'nothing'", lambda r: False), ("d = 12.0", lambda r: r["d"] == 12.0),
                       ("at = timestamp_ntz '2024-01-05 04:00:00'", lambda r: r["at"] == "2024-01-05T04:00:00.000000"),
                       ("k in (1, 99) and id < 100", lambda r: r["k"] == 1 and r["id"] < 100),
                       ("s like 's1%' and id >= 59900", lambda r: (r["s"] or "").startswith("s1") and r["id"] >= 59900)):
        same(shop.spark_rows(table, text), [r for r in found if want(r)])


def null_and_nan(shop):
    """Filters on columns of nulls and NaN alone, on empty files' absence, and on zeros of both signs."""
    found = [{"id": i, "f": "NaN" if i < 5 else None, "d": [-0.0, 0.0][i % 2], "n": None} for i in range(10)]
    table = shop.make(found, "id int, f float, d double, n string")
    shop.filters_hold(table, "f > 0", "f is null", "f is not null", "d = 0", "d < 0", "d >= 0", "n is null", "n is not null", "n = 'x'",
                      "f <> 1", "not f < 1", "id in (3, 7)")
    same(shop.spark_rows(table, "isnan(f)"), found[:5])
    same(shop.cat(table, "--where", "f is nan").rows, found[:5])
    empty = shop.make([], "id int", "--partition-by", "id")
    shop.agree(empty, [])


def evolved(shop):
    """Columns added, dropped, renamed, widened, moved by us, also nested, in files of every age."""
    types = "id int, f float, de decimal(5,2), s string, st struct<a: int, b: float>, l list<struct<x: int>>, m map<string, struct<v: int>>"
    row = {"id": 1, "f": 0.5, "de": "1.25", "s": "x", "st": {"a": 1, "b": 0.25}, "l": [{"x": 1}], "m": {"keys": ["k"], "values": [{"v": 1}]}}
    for form in ("parquet", "avro"):
        table = shop.make([row, {**dict.fromkeys(row), "id": 2}], types, "-p", "write.format.default=" + form)

        def alter(*words):
            shop.tarn("alter", table, *words)
        alter("add-column", "n", "string", "--after", "id", "--doc", "it's new")
        alter("add-column", "st.c", "decimal(3,1)", "--first")
        alter("add-column", "l.element.y", "date")
        alter("add-column", "m.value.w", "list<int>")
        shop.agree(table)
        newer = {"id": 3, "n": "n", "f": 1.5, "de": "2.50", "s": "y", "st": {"c": "1.5", "a": 2, "b": 0.5}, "l": [{"x": 2, "y": "2020-01-01"}],
                 "m": {"keys": ["k"], "values": [{"v": 2, "w": [1, 2]}]}}
        shop.ingest(table, [newer])
        alter("update-type", "id", "long")
        alter("update-type", "f", "double")
        alter("update-type", "de", "decimal(12,2)")
        alter("update-type", "st.a", "long")
        alter("update-type", "m.value.v", "long")
        alter("rename-column", "s", "text")
        alter("rename-column", "st.b", "bb")
        alter("rename-column", "l.element.x", "xx")
        alter("move", "text", "--first")
        alter("move", "st.bb", "--first")
        alter("drop-column", "st.c")
        alter("drop-column", "n")
        alter("add-column", "n", "int")
        shop.ingest(table, [{"text": "t", "id": 5000000000, "f": 0.1, "de": "1234567890.12", "n": 7, "st": {"bb": 1.5, "a": 6000000000},
                             "l": [{"xx": 4, "y": None}], "m": {"keys": ["k"], "values": [{"v": 7000000000, "w": None}]}}])
        found = shop.agree(table)
        equal(len(found), 4)
        equal(list(found[0]), shop.spark.table(shop.quoted(table)).columns)
        shop.filters_hold(table, "id = 3", "id > 3000000000", "f >= 0.5", "de = 1.25", "text is null", "n is null", "n = 7", "st.a = 2", "st.bb < 1")


def evolved_partitions(shop):
    """Specs that changed: files of every spec, pruned by each."""
    found = numbers(60)
    for version in ("1", "2"):
        table = shop.make(found[:20], NUMBERS, "--partition-by", "k", "--format-version", version)
        shop.tarn("alter", table, "add-partition", "bucket(4, id)", "--name", "shard")
        shop.ingest(table, found[20:30])
        shop.tarn("alter", table, "drop-partition", "k")
        shop.ingest(table, found[30:40])
        shop.tarn("alter", table, "partition-by", "day(at), truncate(2, s)")
        shop.ingest(table, found[40:50])
        shop.tarn("alter", table, "rename-partition", "at_day", "tag")
        shop.tarn("alter", table, "partition-by", "")
        shop.ingest(table, found[50:])
        shop.agree(table, found)
        shop.filters_hold(table, "k = 3", "k > 4", "id = 25", "id in (1, 21, 31, 41, 51)", "s = 's1'", "s is null",
                          "at >= timestamp_ntz '2024-01-20 00:00:00'")
        meta(shop, table, FEW)


def deleted(shop):
    """Deletes by metadata and by rewriting, overwrites, replaced partitions: the same rows at every snapshot."""
    found = numbers(100)
    for version, form in (("1", "parquet"), ("2", "parquet"), ("2", "avro")):
        table = shop.make(found[:50], NUMBERS, "--partition-by", "k", "--format-version", version, "-p", "write.format.default=" + form)
        shop.ingest(table, found[50:])
        shop.tarn("delete", table, "--where", "k = 3")
        shop.agree(table, [r for r in found if r["k"] != 3])
        shop.tarn("delete", table, "--where", "id >= 20 and id < 70")
        want = [r for r in found if r["k"] != 3 and not 20 <= r["id"] < 70]
        shop.agree(table, want)
        shop.ingest(table, numbers(3, 500), "--mode", "replace-partitions")
        new = {r["k"] for r in numbers(3, 500)}
        want = [r for r in want if r["k"] not in new] + numbers(3, 500)
        shop.agree(table, want)
        shop.ingest(table, [{**r, "id": -r["id"]} for r in numbers(20, 1) if r["k"] == 5], "--mode", "overwrite", "--where", "k = 5")
        want = [r for r in want if r["k"] != 5] + [{**r, "id": -r["id"]} for r in numbers(20, 1) if r["k"] == 5]
        shop.agree(table, want)
        shop.ingest(table, found[:1], "--mode", "overwrite")
        shop.agree(table, found[:1])
        shop.tarn("delete", table, "--where", "true")
        shop.agree(table, [])
        for snapshot in shop.cat(table + ".snapshots").rows:
            number = snapshot["snapshot_id"]
            same(shop.spark_rows(table, rest="version as of %d" % number), shop.cat(table, "--snapshot-id", number).rows)
        meta(shop, table, META if form == "avro" else FEW)


deleted.catalogs = BOTH


def refs(shop):
    """Branches, tags, times and rollbacks."""
    found = numbers(40)
    table = shop.make(found[:10], NUMBERS)
    shop.tarn("alter", table, "tag", "first")
    shop.ingest(table, found[10:20])
    second = shop.cat(table + ".refs").rows
    shop.tarn("alter", table, "branch", "side branch")
    shop.ingest(table, found[20:30], "--branch", "side branch")
    shop.ingest(table, found[30:])
    shop.tarn("delete", table, "--where", "id < 5", "--branch", "side branch")
    same(shop.spark_rows(table, rest="version as of 'first'"), found[:10])
    same(shop.spark_rows(table, rest="version as of 'side branch'"), found[5:30])
    same(shop.cat(table, "--ref", "side branch").rows, found[5:30])
    shop.agree(table, found[:20] + found[30:])
    snapshots = shop.cat(table + ".snapshots").rows
    for snapshot in snapshots:
        at = snapshot["committed_at"].replace("T", " ").replace("+00:00", "")
        same(shop.spark_rows(table, rest="timestamp as of '%s'" % at), shop.cat(table, "--as-of", at.replace(" ", "T")).rows)
    main, = [r["snapshot_id"] for r in second if r["name"] == "main"]
    shop.tarn("alter", table, "rollback", str(main))
    shop.agree(table, found[:20])
    shop.ingest(table, found[:1])
    shop.agree(table, found[:20] + found[:1])
    shop.tarn("alter", table, "drop-ref", "first")
    meta(shop, table)


META = ("snapshots", "history", "refs", "metadata_log_entries", "manifests", "files", "data_files", "delete_files", "entries", "partitions",
        "all_data_files", "all_delete_files", "all_files", "all_entries", "all_manifests")
FEW = ("manifests", "files", "partitions", "all_entries")


def meta(shop, table, names=META):
    """The metadata tables have the same rows and columns."""
    for name in names:
        try:
            theirs = shop.spark_rows("%s.%s" % (table, name))
        except Exception as error:
            raise AssertionError("Spark on %s.%s: %s" % (table, name, str(error)[:600])) from error
        ours = shop.cat("%s.%s" % (table, name)).rows
        for summary in [s for row in theirs for s in row.get("partition_summaries") or []]:
            for bound in ("lower_bound", "upper_bound"):  # Spark makes text of a bound that is not there
                summary[bound] = None if summary[bound] == "null" else summary[bound]
        try:
            same(ours, theirs)
        except AssertionError as error:
            raise AssertionError("metadata table %s.%s: %s" % (table, name, differing(ours, theirs) or str(error)[:4000])) from error


def differing(ours, theirs):
    """What differs, column by column, of rows that belong together."""
    def key(row):
        row = {**row, **(row.get("data_file") or {})}
        return json.dumps([row.get(k) for k in ("path", "file_path", "reference_snapshot_id", "snapshot_id", "status", "spec_id", "partition",
                                                "name", "file", "made_current_at")])
    told = []
    pairs = {key(r): r for r in theirs}
    for row in ours:
        other = pairs.get(key(row))
        if other is None:
            return None
        flat, wanted = ({**r, **{"data_file." + k: v for k, v in (r.get("data_file") or {}).items()}} for r in (row, other))
        told += ["%s: %r, wanted %r" % (k, flat.get(k, "nothing"), wanted.get(k, "nothing")) for k in sorted(set(flat) | set(wanted))
                 if k != "data_file" and difference([{"": flat.get(k, "nothing")}], [{"": wanted.get(k, "nothing")}])]
    return "; ".join(told)[:4000]


def metadata_tables(shop):
    """Metadata tables of tables with every type, nested metrics, partitions of every kind."""
    types = TYPES.replace("u uuid, ", "")  # Spark fails to show bounds of uuids
    meta(shop, shop.make([{k: v for k, v in row.items() if k != "u"} for row in FULL], types))
    plain = [{k: v for k, v in row.items() if k != "u"} for row in keys()]
    table = shop.make(plain, KEYS.replace(", u uuid", ""), "--partition-by", "bucket(2, id), truncate(40, i), year(da), bo")
    shop.tarn("delete", table, "--where", "id > 20000000")
    meta(shop, table)
    meta(shop, shop.make([], "a int"))
    for version in ("2", "3"):
        marked = shop.make(plain, KEYS.replace(", u uuid", ""), "--partition-by", "bucket(2, id)", "-p", "format-version=" + version, "-p",
                           "write.delete.mode=merge-on-read")
        meta(shop, marked, ("position_deletes",))
        shop.tarn("delete", marked, "--where", "id > 20000000")
        assert shop.cat(marked + ".position_deletes").rows
        meta(shop, marked, ("position_deletes", "delete_files"))


def names(shop):
    """Column names with dots, blanks, quotes and letters of all kinds, partitioned by and filtered on."""
    odd = ["a.b", "with blank", "qu'ote", 'dou"ble', "back`tick", "Größe", "日本", "😀", "a", "A", "9lives", "sel-ect", "sl/ash", "per%cent", "_x"]
    schema = {"type": "struct", "schema-id": 0, "fields": [
        {"id": i + 1, "name": name, "required": False, "type": "int"} for i, name in enumerate(odd)] + [
        {"id": 100, "name": "st", "required": False, "type": {"type": "struct", "fields": [
            {"id": 101 + i, "name": name, "required": False, "type": "string"} for i, name in enumerate(odd)]}}]}
    shop.spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        found = [{**{name: i * n for i, name in enumerate(odd)}, "st": {name: "%d%s" % (n, name) for name in odd}} for n in range(5)]
        for form in ("parquet", "avro"):
            table = shop.make(found, json.dumps(schema), "-p", "write.format.default=" + form)
            shop.agree(table, found)
            for i, name in enumerate(odd):
                quoted = "`%s`" % name.replace("`", "``")
                same(shop.spark_rows(table, "%s = %d" % (quoted, i)), [r for r in found if r[name] == i])
                same(shop.spark_rows(table, "st.%s = '3%s'" % (quoted, name.replace("'", "\\'"))), found[3:4])
        for name in odd[::2]:
            quoted = "`%s`" % name.replace("`", "``") if "`" not in name else '"%s"' % name
            table = shop.make(found, json.dumps(schema), "--partition-by", "truncate(2, %s)" % quoted)
            shop.agree(table, found)
            same(shop.spark_rows(table, "`%s` >= 6" % name.replace("`", "``")), [r for r in found if r[name] >= 6])
            shop.tarn("delete", table, "--where", "%s < 6" % quoted)
            shop.agree(table, [r for r in found if r[name] >= 6])
    finally:
        shop.spark.conf.set("spark.sql.caseSensitive", "false")


def table_names(shop):
    """Tables and namespaces of odd names, nested namespaces."""
    for namespace, name in (("odd", "Größe"), ("odd", "with blank"), ("odd", "dash-ed"), ("odd", "😀"), ("nested.deep", "t"), ("Upper", "CASE")):
        ours = "%s.`%s`" % (namespace, name)
        shop.make([{"a": 1}], "a int", name=ours)
        same([{"a": r.a} for r in shop.spark.sql("select a from %s" % shop.quoted(ours)).collect()], [{"a": 1}])
        same(shop.cat(ours).rows, [{"a": 1}])
    shown = sorted(r.tableName for r in shop.spark.sql("show tables in %s.odd" % shop.where).collect())
    equal(shown, sorted(["Größe", "with blank", "dash-ed", "😀"]))


table_names.catalogs = BOTH


def edges(shop):
    """Bounds cut off at 16 letters, with the greatest code points there are, lose no row of a filter."""
    top = "\U0010ffff"
    texts = [top * 20, top * 15 + "a" + top * 4, "a" * 15 + top * 3, "a" * 16, "a" * 17, "a" * 15 + "\ud7ff" + "zz", "\ud7ff" * 17, "\ufffd" * 17,
             "\uffff" * 16 + "x", "é" * 16, "é" * 17, "😀" * 16, "😀" * 17, "", "\u0000" * 17, "\u007f" * 16 + "!", "a" * 15 + "\U0010fffe" + "b"]
    for number, text in enumerate(texts):
        found = [{"id": 1, "s": text, "b": text.encode().hex()}, {"id": 2, "s": text + top, "b": "ff" * 20}, {"id": 3, "s": None, "b": "ff" * 15 + "fe01"}]
        table = shop.make(found, "id int, s string, b binary", *(["--partition-by", "truncate(15, s)"] if number % 2 else []))
        for value in (text, text[:16] + top):
            hexed = value.encode().hex()
            for operator in ("=", ">", "<"):
                for column, given in (("s", "cast(X'%s' as string)" % hexed), ("b", "X'%s'" % hexed)):
                    want = [r for r in found if r[column] is not None and compare(operator, r[column], value if column == "s" else hexed)]
                    same(shop.spark_rows(table, "%s %s %s" % (column, operator, given)), want)
                    if "\u0000" not in value:  # no argument of a command holds one
                        ours = "%s %s '%s'" % (column, operator, value if column == "s" else hexed)
                        same(shop.cat(table, "--where", ours).rows, want)
        same(shop.spark_rows(table, "startswith(s, cast(X'%s' as string))" % text[:16].encode().hex()),
             [r for r in found if r["s"] is not None and r["s"].startswith(text[:16])])


def compare(operator, a, b):
    a, b = a.encode(), b.encode()
    return {"=": a == b, ">": a > b, ">=": a >= b, "<": a < b, "<=": a <= b}[operator]


CASES = [all_types, decimals, partitions, encodings, filters, null_and_nan, evolved, evolved_partitions, deleted, refs, metadata_tables, names,
         table_names, edges]
