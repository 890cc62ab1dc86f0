#!/usr/bin/env python3
"""What the pages say of the tree is there: relative links of every .md file lead to a file (and a heading), and every test that
docs/support.md names exists. Says every breach as file:line: what; exit status 1 if any.

usage: tools/check_docs.py [--root DIR]

The last cell of a table row in docs/support.md names tests as code: a file below tests/ (or fuzz/), then cases of it, `unit/base/test_io.c`
`test_source`. A case is a name given to cmocka_unit_test, a function in a Python program's CASES, or, for test_fixtures.py, a table below
tests/fixtures/iceberg/expected. A row without any must say in its second cell that the feature is not there."""
import os
import re
import subprocess
import sys

SUPPORT = "docs/support.md"
FIXTURES = "interop/test_fixtures.py"


def files(root):
    """What is in the tree, without what git ignores."""
    if os.path.exists(os.path.join(root, ".git")):
        out = subprocess.run(["git", "-C", root, "-c", "safe.directory=*", "ls-files", "-z", "-co", "--exclude-standard"], capture_output=True)
        if out.returncode == 0:
            return sorted({n.decode() for n in out.stdout.split(b"\0") if n})
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [f for f in folders if f not in (".git", "build", ".venv", "__pycache__", "warehouse", "demo-out")]
        found += [os.path.relpath(os.path.join(folder, n), root) for n in names]
    return sorted(found)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def prose(text):
    """Text with fenced blocks and code spans as blanks; lines stay."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group(0))
    return re.sub(r"`[^`\n]+`", blank, re.sub(r"^```.*?^```", blank, text, flags=re.M | re.S))


def anchors(text):
    """Headings as they are linked to."""
    lines = re.findall(r"^#+ +(.+?) *$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}


def check_links(root, paths):
    for path in paths:
        if not path.endswith(".md") or not os.path.exists(os.path.join(root, path)):
            continue
        text = prose(read(root, path))
        for match in re.finditer(r"\]\(([^)\s]+)\)", text):
            target, _, anchor = match.group(1).partition("#")
            if re.match(r"[a-z][a-z0-9+.-]*:", target):
                continue
            line = text.count("\n", 0, match.start()) + 1
            place = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
            if not os.path.exists(os.path.join(root, place)):
                yield path, line, "there is no %s" % place
            elif anchor and place.endswith(".md") and anchor not in anchors(read(root, place)):
                yield path, line, "%s has no heading #%s" % (place, anchor)


def cases(root, path):
    """Names of the cases in a test file."""
    text = read(root, path)
    if path.endswith(FIXTURES):
        top = os.path.join(root, "tests", "fixtures", "iceberg", "expected")
        return {os.path.relpath(at, top) for at, _, names in os.walk(top) if "about.json" in names}
    if path.endswith(".py"):
        lists = re.findall(r"^CASES = \[(.*?)\]", text, re.M | re.S)
        return set(re.findall(r"\w+", " ".join(lists))) & set(re.findall(r"^def (\w+)\(", text, re.M))
    return set(re.findall(r"\bcmocka_unit_test\w*\(\s*(\w+)", text))


def check_support(root):
    if not os.path.exists(os.path.join(root, SUPPORT)):
        yield SUPPORT, 1, "is not there"
        return
    known = {}
    for number, line in enumerate(read(root, SUPPORT).splitlines(), 1):
        cells = [c.strip() for c in re.split(r"(?<!\\)\|", line.strip())[1:-1]]
        if len(cells) < 3 or set(cells[0]) <= set("-:") or cells[-1] == "test":
            continue
        path, n = None, 0
        for name in re.findall(r"`([^`]+)`", cells[-1]):
            n += 1
            if name.endswith((".c", ".py")):
                path = name if name.startswith("fuzz/") else "tests/" + name
                if not os.path.exists(os.path.join(root, path)):
                    yield SUPPORT, number, "there is no %s" % path
                    path = None
                else:
                    known.setdefault(path, cases(root, path))
            elif path is not None and name not in known[path]:
                yield SUPPORT, number, "%s has no case %s" % (path, name)
        if n == 0 and not cells[1].startswith("no"):
            yield SUPPORT, number, "no test shows %s" % cells[0]


def main(arguments):
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if arguments[:1] == ["--root"]:
        root = arguments[1]
    breaches = list(check_links(root, files(root))) + list(check_support(root))
    for path, line, text in breaches:
        print("%s:%d: docs: %s" % (path, line, text))
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
