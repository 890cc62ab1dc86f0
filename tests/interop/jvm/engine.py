"""One Spark session for all cases, on the catalogs that the command uses, and Spark's rows in the form of harness.same.

Catalog `tarn` is the SQLite database of a workshop through Iceberg's JdbcCatalog, catalog `files` its folder `lake` through
HadoopCatalog. Neither caches tables, so what the command commits is seen at once.
"""
import os
import struct
import sys
from decimal import Decimal

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402  (the folder above is no package)

from pyspark.sql import SparkSession, functions as f, types as t  # noqa: E402

CATALOG = "org.apache.iceberg.spark.SparkCatalog"


class Engine(harness.Workshop):
    """A workshop with a Spark session on its two catalogs."""

    def __init__(self):
        super().__init__()
        self.folder = os.path.realpath(self.folder)
        os.mkdir(self.path("lake"))
        self.tarn("create", "start", "--namespace")
        conf = {
            "spark.driver.memory": "1g", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1",
            "spark.driver.extraClassPath": os.environ["SPARK_JARS"],
            "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
            "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false",
            "spark.sql.warehouse.dir": self.path("spark"),
            "spark.sql.shuffle.partitions": "1", "spark.sql.session.timeZone": "UTC",
            "spark.sql.autoBroadcastJoinThreshold": "-1",
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.tarn": CATALOG, "spark.sql.catalog.tarn.type": "jdbc",
            "spark.sql.catalog.tarn.uri": "jdbc:sqlite:" + self.path("tarn.db"),
            "spark.sql.catalog.tarn.warehouse": self.path("warehouse"),
            "spark.sql.catalog.tarn.jdbc.schema-version": "V1", "spark.sql.catalog.tarn.cache-enabled": "false",
            # Its check for the database's tables leaves a statement open, and with it a read lock for the life of the session:
            # nobody else could commit, or with a write-ahead log the session would see nothing of it.
            "spark.sql.catalog.tarn.jdbc.init-catalog-tables": "false",
            "spark.sql.catalog.files": CATALOG, "spark.sql.catalog.files.type": "hadoop",
            "spark.sql.catalog.files.warehouse": self.path("lake"), "spark.sql.catalog.files.cache-enabled": "false",
        }
        builder = SparkSession.builder.master("local[2]").appName("tarn")
        for key, value in conf.items():
            builder = builder.config(key, value)
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("OFF")
        self.where = "tarn"
        self.count = 0

    def __exit__(self, *unused):
        self.spark.stop()
        super().__exit__()

    def new(self):
        """A table name that no case had."""
        self.count += 1
        return "ns.t%d" % self.count

    # ---- the command ----

    def tarn(self, *arguments, **more):
        catalog = ["-c", "dir:" + self.path("lake")] if getattr(self, "where", "tarn") == "files" else []
        return super().tarn(*arguments, *catalog, **more)

    def cat(self, what, *options, **more):
        return self.tarn("cat", what, "--format", "ndjson", *options, **more)

    def make(self, found, types, *options, name=None):
        """A table of ours with these rows; its name."""
        name = name or self.new()
        self.tarn("create", name, types, *options)
        if found:
            self.ingest(name, found)
        return name

    def ingest(self, name, found, *options):
        self.tarn("ingest", name, self.write("rows.ndjson", ndjson(found)), *options)

    # ---- Spark ----

    def sql(self, text, *arguments):
        """A statement; {} stands for a table as Spark names it in the catalog in use."""
        return self.spark.sql(text.format(*[self.quoted(a) for a in arguments]))

    def quoted(self, name):
        return ".".join([self.where] + [part if part.startswith("`") else "`%s`" % part for part in name.split(".")])

    def spark_rows(self, name, where=None, rest=""):
        """Rows of a table or metadata table; rest: such as "version as of 1"."""
        return frame_rows(self.spark.sql("select * from %s %s %s" % (self.quoted(name), rest, "where " + where if where else "")))

    def agree(self, name, want=None):
        """The command and Spark see the same rows, those of want if given; the rows."""
        ours = self.cat(name).rows
        harness.same(self.spark_rows(name), ours)
        if want is not None:
            harness.same(ours, want)
        return ours

    def filters_hold(self, name, *texts):
        """Filters that Spark prunes by, and that the command prunes by, give the rows that no pruning gives."""
        flags = ", ".join("coalesce(%s, false) as __%d" % (text, number) for number, text in enumerate(texts))
        marked = frame_rows(self.spark.sql("select *, %s from (select * from %s limit 1000000000)" % (flags, self.quoted(name))))
        for number, text in enumerate(texts):
            want = [{k: v for k, v in row.items() if not k.startswith("__")} for row in marked if row["__%d" % number]]
            try:
                harness.same(self.spark_rows(name, text), want)
                harness.same(self.cat(name, "--where", own(text)).rows, want)
            except AssertionError as error:
                raise AssertionError("where %s: %s" % (text, error)) from error


def own(text):
    """A filter of Spark's in the command's words."""
    return text.replace("timestamp_ntz '", "timestamp '").replace("X'", "'")


def ndjson(found):
    import json
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in found)


# ---- rows ----


def encode(column, kind):
    """A column as one of text, numbers, and structs and lists of them. Python has no dates before year 1, so Spark makes the text."""
    if isinstance(kind, t.TimestampType):
        return f.concat(f.date_format(column, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"), f.lit("+00:00"))
    if isinstance(kind, t.TimestampNTZType):
        return f.date_format(column, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS")
    if isinstance(kind, t.DateType):
        return column.cast("string")
    if isinstance(kind, t.BinaryType):
        return f.lower(f.hex(column))
    if isinstance(kind, t.ArrayType):
        return f.transform(column, lambda e: encode(e, kind.elementType))
    if isinstance(kind, t.StructType):
        inner = [encode(column.getField(field.name), field.dataType).alias("f%d" % i) for i, field in enumerate(kind.fields)]
        return f.when(column.isNotNull(), f.struct(*inner))
    if isinstance(kind, t.MapType):
        keys = f.transform(f.map_keys(column), lambda e: encode(e, kind.keyType))
        values = f.transform(f.map_values(column), lambda e: encode(e, kind.valueType))
        return f.when(column.isNotNull(), f.struct(keys.alias("keys"), values.alias("values")))
    return column


def decode(value, kind):
    """A collected value of encode as a JSON value."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Decimal):
        return format(value, ".%df" % kind.scale)
    if isinstance(value, float):
        return float_value(value, isinstance(kind, t.FloatType))
    if isinstance(kind, t.StructType):
        return {field.name: decode(v, field.dataType) for field, v in zip(kind.fields, value)}
    if isinstance(kind, t.MapType):
        return {"keys": [decode(v, kind.keyType) for v in value["keys"]], "values": [decode(v, kind.valueType) for v in value["values"]]}
    return [decode(v, kind.elementType) for v in value]


def float_value(value, single):
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if single:
        for digits in range(1, 10):
            short = float("%.*g" % (digits, value))
            if struct.pack("<f", short) == struct.pack("<f", value):
                return short
    return value


def frame_rows(frame):
    fields = frame.schema.fields
    columns = [encode(frame["`%s`" % field.name.replace("`", "``")], field.dataType).alias("c%d" % i) for i, field in enumerate(fields)]
    return [{field.name: decode(v, field.dataType) for field, v in zip(fields, row)} for row in frame.select(*columns).collect()]
