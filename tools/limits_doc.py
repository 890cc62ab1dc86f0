#!/usr/bin/env python3
"""docs/limits.md from src/base/limits.h, so that the two cannot differ.

usage: limits_doc.py             writes docs/limits.md
       limits_doc.py --check     exit 1 when docs/limits.md is not what would be written"""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DOC = os.path.join(ROOT, "docs", "limits.md")

HEAD = """# Limits
Made from `src/base/limits.h` by `tools/limits_doc.py`; a test compares.

Everything that grows with what comes from outside has a greatest size. Reaching one is an error of kind LIMIT (exit status 8 of the
command) whose message says what was too large, where, and the limit; nothing is committed. The numbers are compiled in. They are there to
stop damaged and hostile input, so that ordinary work stays far below them.

| limit | value | what it bounds |
|---|---|---|
"""

TAIL = """
Open partitions are the exception: at their limit nothing fails, the partition that was written to longest ago is closed, and begins
another file if rows for it come again.

## Set by the caller
| limit | where | when it is reached |
|---|---|---|
| all memory of an env | `memory_bytes` of `tarn_env_options`; no limit unless given | error of kind NOMEM |
| memory of the files that a sink has open | `memory_bytes` of `tarn_sink_options`, `--memory-mb` of `tarn ingest`; 128 MiB | files are closed early; rows of a table with a sort order wait in a temporary file |
| files that are done and not committed, some 3 KB of memory each | half of `--memory-mb` and what the batches on their way bring, with `--state`, `--checkpoint-rows` or `--checkpoint-interval`; no limit where all rows are one commit | a checkpoint is made early |
| rows of a table with a sort order that wait in a temporary file, of one writer | 32 times `write.target-file-size-bytes`, unpacked | files are written of what waits |
| worker threads | `threads` of `tarn_env_options`, `--threads`; one for each processor | work waits |
| attempts of a commit, and their time | table properties `commit.retry.num-retries` (20 more), `commit.retry.total-timeout-ms` (30 minutes) | error of kind CONFLICT |
"""


def value(text):
    """A constant expression of limits.h as people write it."""
    number = eval(re.sub(r"(?<=\d)[uUlL]+", "", text), {"__builtins__": {}})
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if "<<" in text and number % size == 0:
            return "%d %s" % (number // size, unit)
    return "{:,}".format(number)


def make():
    with open(os.path.join(ROOT, "src", "base", "limits.h"), encoding="utf-8") as file:
        text = file.read()
    found = re.findall(r"^#define (LIMIT_\w+)[ \t]+(\([^)]*\)|\w+)[ \t]*/\*\s*(.*?)\s*\*/", text, re.M | re.S)
    missing = set(re.findall(r"^#define (LIMIT_\w+)", text, re.M)) - {name for name, _, _ in found}
    if missing:
        sys.exit("src/base/limits.h: no value or no meaning beside %s" % ", ".join(sorted(missing)))
    rows = ["| `%s` | %s | %s |" % (name, value(size), " ".join(meaning.split())) for name, size, meaning in found]
    return HEAD + "\n".join(rows) + "\n" + TAIL


def main():
    text = make()
    if sys.argv[1:] == ["--check"]:
        if not os.path.exists(DOC) or open(DOC, encoding="utf-8").read() != text:
            sys.exit("docs/limits.md is not what tools/limits_doc.py writes: run it")
        return
    with open(DOC, "w", encoding="utf-8") as file:
        file.write(text)


main()
