#!/usr/bin/env python3
"""Goal: tables of Spark, Iceberg Java, Flink, PyIceberg and DuckDB read as those who made them say. Method: every table below
ROOT is read by `tarn cat` at its current state, each snapshot, branch and tag, and with filters; rows are compared with the
expected ones, row lineage too. What this version does not read (ORC) must be refused as unsupported, never read wrong.

usage: test_fixtures.py [--root DIR] [namespace/table...]
"""
import glob
import gzip
import json
import os
import sys
from decimal import Decimal

import harness
import rows
import variant

PLACE = "/tarn-fixtures/iceberg"
# Iceberg Java gave two rows of one Avro file the same _row_id, where the specification adds their positions.
ROW_IDS = {"java/v3_defaults_avro": {2: 1}}
OPERATORS = {"eq": "=", "not-eq": "!=", "lt": "<", "lt-eq": "<=", "gt": ">", "gt-eq": ">="}
WORDS = {"is-null": "is null", "not-null": "is not null", "is-nan": "is nan", "not-nan": "is not nan"}


def literal(value):
    if isinstance(value, str):
        return "'%s'" % value.replace("'", "''")
    return str(value).lower() if isinstance(value, bool) else str(value)


def filter_text(expression):
    """A filter of plans.ndjson as the command takes it. Iceberg's not-eq keeps nulls, SQL's does not."""
    kind, term = expression["type"], '"%s"' % expression.get("term")
    if kind in ("and", "or"):
        return "(%s) %s (%s)" % (filter_text(expression["left"]), kind, filter_text(expression["right"]))
    if kind == "not":
        return "not (%s)" % filter_text(expression["child"])
    if kind in WORDS:
        return "%s %s" % (term, WORDS[kind])
    if kind in ("in", "not-in"):
        text = "%s %s (%s)" % (term, kind.replace("-", " "), ", ".join(literal(v) for v in expression["values"]))
        return text if kind == "in" else "(%s or %s is null)" % (text, term)
    if kind == "starts-with":
        return "%s starts with %s" % (term, literal(expression["value"]))
    text = "%s %s %s" % (term, OPERATORS[kind], literal(expression["value"]))
    return text if kind != "not-eq" else "(%s or %s is null)" % (text, term)


class Table:
    def __init__(self, root, name):
        self.folder = os.path.join(root, "expected", name)
        self.name, self.about = name, harness.read_json(self.folder, "about.json")
        self.moved = PLACE + "=" + root
        self.metadata = root + self.about["metadata"][len(PLACE):]

    def cat(self, *options):
        answer = harness.cat(self.metadata, *options, moved=self.moved, check=False)
        if answer.status == harness.UNSUPPORTED and " is ORC" in answer.err:
            raise harness.Refused(answer.err.strip().splitlines()[-1][:160])
        assert answer.status == 0, answer
        return rows.parse(answer.out, Decimal)

    def lineage_columns(self):
        document = open(self.metadata, "rb").read()
        document = json.loads(gzip.decompress(document) if document[:2] == b"\x1f\x8b" else document)
        schema = next(s for s in document["schemas"] if s["schema-id"] == document["current-schema-id"])
        return ",".join([f["name"] for f in schema["fields"]] + ["_row_id", "_last_updated_sequence_number"])

    def read(self, what, read):
        options = []
        if "snapshot" in read:
            options = ["--snapshot-id", read["snapshot"]]
        elif "ref" in read:
            options = ["--ref", read["ref"]]
        if what.startswith("row_lineage"):
            options += ["--columns", self.lineage_columns()]
        got = self.cat(*options)
        harness.equal(len(got), read["rows"])
        if "file" in read:
            want = [variant.shown(row) for row in rows.load(os.path.join(self.folder, read["file"]))]
            for row in want if "--columns" in options else []:
                row["_row_id"] = ROW_IDS.get(self.name, {}).get(row.get("id"), row["_row_id"])
            harness.same(got, want)

    def filtered(self, plan):
        harness.equal(len(self.cat("--where", filter_text(plan["filter"]))), plan["rows"])

    def run(self):
        for what, read in self.about["reads"].items():
            harness.case("%s %s" % (self.name, what), self.read, what, read)
        plans = os.path.join(self.folder, "plans.ndjson")
        for plan in rows.load(plans) if os.path.exists(plans) else []:
            harness.case("%s where %s" % (self.name, filter_text(plan["filter"])), self.filtered, plan)


def main(arguments):
    root = os.path.join(harness.FIXTURES, "iceberg")
    if arguments[:1] == ["--root"]:
        root = os.path.abspath(arguments[1])
        arguments = arguments[2:]
    if not os.path.isdir(root):
        print("SKIPPED: no tables below %s" % root)
        return harness.SKIPPED
    names = arguments or sorted(os.path.relpath(os.path.dirname(p), os.path.join(root, "expected"))
                                for p in glob.glob(os.path.join(root, "expected", "*", "*", "about.json")))
    for name in names:
        table = Table(root, name)
        if "reads" in table.about:
            table.run()
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
