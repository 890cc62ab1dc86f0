#!/usr/bin/env python3
"""docs/cli.md from the command's own --help texts, so that the two cannot differ.

usage: cli_doc.py TARN            writes docs/cli.md
       cli_doc.py TARN --check    exit 1 when docs/cli.md is not what would be written"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DOC = os.path.join(ROOT, "docs", "cli.md")

HEAD = """# The command
Made from `tarn --help` and `tarn COMMAND --help` by `tools/cli_doc.py`; a test compares.

`tarn man` prints the man page, `tarn completion bash` the completion for bash (`eval "$(tarn completion bash)"`).

## Catalogs and tables
`-c` or `$TARN_CATALOG` names the catalog: `sqlite:PATH` (the JDBC catalog's tables, shared with PyIceberg's `SqlCatalog` and Iceberg's
`JdbcCatalog`), `dir:PATH` (Hadoop layout), `postgresql://user:password@host:port/db` or `postgresql:KEY=VALUE ...` (the same tables in
PostgreSQL; libpq's `$PGPASSWORD` and `~/.pgpass` count), `http://...` or `https://...` (an Iceberg REST catalog), or a name from PyIceberg's
`.pyiceberg.yaml` (looked for in `$PYICEBERG_HOME`, the home folder, and here). Without either it is `sqlite:./tarn.db`. New tables go to `--warehouse`, or to `warehouse` beside the database.
Tables of an SQLite database belong to a catalog name in it: `tarn`, or the name in `.pyiceberg.yaml`; other engines must use the same one.

A REST catalog takes `--catalog-property KEY=VALUE`, with PyIceberg's keys: `token`, or `credential` (`id:secret`) with `oauth2-server-uri`, `scope`,
`audience`, `resource`; `header.NAME`; `prefix`; `rest-page-size`; `ssl.cabundle`; `rest.client.connection-timeout-ms`,
`rest.client.socket-timeout-ms`. What is on a command line others can see: secrets are better in `$TARN_REST_TOKEN`, `$TARN_REST_TOKEN_FILE`,
`$TARN_REST_CREDENTIAL` or `.pyiceberg.yaml`. `--warehouse` is the name by which the server knows its warehouse.

A table is `ns.table`, levels separated by dots; a level with a dot, space or slash stands between backticks or double quotes. Reading commands also
take the path or `file:` URI of a table folder or metadata file, and `tarn cat` a single Parquet, Avro, NDJSON or CSV file. `--moved FROM=TO` reads a
table that was copied elsewhere.

## Filters
`=`, `==`, `!=`, `<>`, `<`, `<=`, `>`, `>=`, `in (..)`, `not in (..)`, `is null`, `is not null`, `is nan`, `is not nan`, `like 'abc%'` (prefixes),
`starts with 'abc'`, `between .. and ..`, `and`, `or`, `not`, parentheses, `true`, `false`.
Columns: `a`, `a.b` for nested ones, `"quoted name"`. Literals: `1`, `1.5`, `1e3`, `'text'` (`''` inside), `true`, `date '2026-01-31'`,
`timestamp '2026-01-31 12:00:00'`, `X'00ff'`; a text is read as the column's type, so `at >= '2026-01-31'` works for dates, times and timestamps.
Rows are kept where the filter is true: a comparison with null is not.

## Output
`--format ndjson | csv | table`; a table on a terminal, NDJSON in a pipe. Values follow the single-value JSON of the Iceberg specification:
decimals, dates, times, timestamps and uuids are strings (snapshot ids are 64-bit numbers, which jq before 1.7 rounds), binary is hexadecimal, maps are `{"keys": [..], "values": [..]}`.

Rows and results go to standard output, and nothing else does: progress, counts and errors go to standard error. With `--json` results are objects:

| command | object |
|---|---|
| ls | one a line: `name`, `type` |
| describe | the table metadata document with `metadata-location` |
| log | one a line: the snapshot, newest first |
| ingest | `rows`, `rejected`, `commits`, `files`, `snapshot-id` (null: nothing to commit), `seconds` |
| delete | `snapshot-id` (null: nothing to commit), `rows-deleted`, `rows-rewritten`, `files-removed` |
| update | `snapshot-id`, `rows-updated`, `rows-rewritten`, `files-added`, `files-removed`, `delete-files-added` |
| merge | the same with `rows-changed` and `rows-inserted` |
| check | `table`, `ok`, `errors`, `warnings`, numbers of what was looked at, `findings` |
| import | `files`, `skipped`, `rows`, `bytes`, `created`, `dry-run`, `snapshot-id` |
| alter, set | `table`, `committed`, `attempts` |
| create, drop | `table` or `namespace`, `created` or `dropped` |
| rename, register | `table` |

`ingest --log json` writes an object for each checkpoint, one a line, to standard error: `event` (`checkpoint`), `time-ms`, `table`, `checkpoint`,
`rows` (since the one before), `rows-total`, `rejected`, `rows-deleted`, `data-files`, `delete-files`, `bytes`, `commit-ms`, `attempts`, `writers`,
`open-files`, `memory-bytes`, `snapshot-id` (null: nothing was committed). With `--state` an event `committed` follows when a checkpoint is in the
table, with `checkpoint` and its own `rows` to `bytes`, `commit-ms`, `attempts`, `snapshot-id`, which its `checkpoint` event then lacks. `done`
(`rows`, `rejected`, `commits`, `files`, `snapshot-id`, `seconds`) is the last. Everything else that is said is such an object too: `event`
(`error`, `warning`, `info`), `time-ms`, `message`.

Bad rows set aside by `ingest --rejects` are objects too, one a line: `file`, `line`, `reason`, `row`, and `row-hex` where the row is not UTF-8.

A reader that closes standard output early (`| head -1`) ends the command quietly with 0. Ctrl-C ends it at the next safe point with 130 (with 0 where
the input is followed, and so has no end): committed checkpoints stay, and what is not committed is removed.

## Exit status
"""


def run(tarn, *args):
    return subprocess.run([tarn, *args], capture_output=True, text=True, check=True).stdout


def codes():
    header = open(os.path.join(ROOT, "include", "tarn", "error.h")).read()
    lines = ["| status | kind | meaning |", "|---|---|---|"]
    for name, number, text in re.findall(r'X\((\w+), (\d+), +"([^"]*)"', header):
        lines.append(f"| {130 if name == 'CANCELLED' else number} | {name} | {text} |")
    return "\n".join(lines)


def make(tarn):
    top = run(tarn, "--help")
    out = [HEAD + codes() + "\n\n## Commands\n```\n" + top + "```\n"]
    for name in re.findall(r"^  (\w+) +\S", top.split("Commands:")[1].split("\n\n")[0], re.M):
        text = run(tarn, name, "--help").split("\nOptions of every command:")[0].rstrip()
        out.append(f"### tarn {name}\n```\n{text}\n```\n")
    every = run(tarn, "ls", "--help").split("Options of every command:\n")[1]
    out.append("### Options of every command\n```\n" + every + "```\n")
    return "\n".join(out)


def main():
    text = make(sys.argv[1])
    if sys.argv[2:] == ["--check"]:
        if not os.path.exists(DOC) or open(DOC).read() != text:
            sys.exit("docs/cli.md is not what tools/cli_doc.py writes: run it")
        return
    with open(DOC, "w") as f:
        f.write(text)


main()
