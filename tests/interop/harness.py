"""What the interop tests share: running the command, other readers and writers, and saying what failed.

A test program calls case() for each thing that must hold and ends with sys.exit(finish()). Environment: TARN (the command
under test), set by ctest. Exit status 77 says that something the whole program needs is not on this machine.
"""
import glob
import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback

import rows

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.append(os.path.join(ROOT, "tests", "support"))
from ports import free_port  # noqa: E402

FIXTURES = os.path.join(ROOT, "tests", "fixtures")
SHARED = os.path.join(os.path.dirname(ROOT), "shared")
SECONDS = 240  # until which one thing has to be done, on a machine that has ten times as much to do too; less than a test may take
SKIPPED = 77
UNSUPPORTED = 12  # the exit status is the number of tarn_code

results = {"passed": 0, "failed": 0, "refused": 0}


def need(*modules):
    """Leaves with 77 where the Python packages are not installed."""
    missing = [m for m in modules if importlib.util.find_spec(m) is None]
    if missing:
        print("SKIPPED: no Python package %s (./dev setup installs it)" % ", ".join(missing))
        sys.exit(SKIPPED)


def binary():
    path = os.environ.get("TARN") or os.path.join(ROOT, "build", "release", "tarn")
    if not os.path.exists(path):
        print("the command is not at %s; set TARN" % path)
        sys.exit(1)
    return path


def wait_for(condition, said=lambda: "", seconds=SECONDS):
    """Until the condition holds; said: what a failure tells."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in %d s. %s" % (seconds, said())
        time.sleep(0.05)


class Answer:
    def __init__(self, arguments, done):
        self.arguments, self.status, self.out, self.err = arguments, done.returncode, done.stdout, done.stderr

    @property
    def rows(self):
        return rows.parse(self.out)

    def __str__(self):
        return "tarn %s -> %d\n%s%s" % (" ".join(self.arguments), self.status, self.out[-1500:], self.err[-1500:])


def tarn(*arguments, folder=None, stdin=None, check=True, env=None, seconds=SECONDS):
    """Runs the command; fails unless it ends with 0 (check=False: gives the answer whatever it is)."""
    arguments = [str(a) for a in arguments]
    done = subprocess.run([binary()] + arguments, cwd=folder, input=stdin, capture_output=True, text=True, encoding="utf-8",
                          errors="surrogateescape", timeout=seconds, env={**os.environ, **(env or {})})
    answer = Answer(arguments, done)
    if done.returncode < 0 or "Sanitizer" in done.stderr or "assertion failed" in done.stderr:
        raise AssertionError("the command crashed: %s" % answer)
    if check and done.returncode != 0:
        raise AssertionError(str(answer))
    return answer


def cat(what, *options, moved=None, **more):
    """The rows of a table, a metadata file or a data file."""
    arguments = ["cat", what, "--format", "ndjson"] + (["--moved", moved] if moved else []) + list(options)
    return tarn(*arguments, **more)


class Refused(Exception):
    """What this version says it cannot read; never counted as passed."""


def must_refuse(answer, *words):
    """The command failed, and said each of words."""
    assert answer.status > 0, "was to fail: %s" % answer
    for word in words:
        assert str(word).lower() in answer.err.lower(), "the error does not say %r: %s" % (word, answer)


def same(ours, theirs, ordered=False):
    text = rows.difference(ours, theirs, ordered)
    assert text is None, text


def equal(got, want):
    if got == want:
        return
    said = "got %r, wanted %r" % (got, want)
    if len(said) > 2000 and isinstance(got, list) and isinstance(want, list):
        at = next((i for i, both in enumerate(zip(got, want)) if both[0] != both[1]), min(len(got), len(want)))
        said = "got %d, wanted %d, and from %d on got %r, wanted %r" % (len(got), len(want), at, got[at:at + 20], want[at:at + 20])
    raise AssertionError(said[:4000])


def case(name, fn, *arguments):
    """One thing that must hold."""
    try:
        fn(*arguments)
        results["passed"] += 1
    except Refused as refusal:
        results["refused"] += 1
        print("refused %s: %s" % (name, refusal))
    except Exception as error:  # whatever it is, the case failed and the others still run
        results["failed"] += 1
        text = str(error) if isinstance(error, AssertionError) and str(error) else traceback.format_exc()
        print("FAILED %s: %s" % (name, text))
    sys.stdout.flush()


def chosen(cases):
    """Those that the command line names, or all."""
    return [fn for fn in cases if len(sys.argv) == 1 or fn.__name__ in sys.argv[1:]]


def run_cases(cases):
    for fn in chosen(cases):
        case(fn.__name__, fn)
    return finish()


def finish():
    print("%(passed)d passed, %(refused)d refused, %(failed)d failed" % results)
    return 1 if results["failed"] or not results["passed"] else 0


class Workshop:
    """A folder of its own with a SQLite catalog and a warehouse, as the command makes them by default."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="tarn-interop-")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        shutil.rmtree(self.folder, ignore_errors=True)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def tarn(self, *arguments, **more):
        return tarn(*arguments, folder=self.folder, **more)

    def cat(self, what, *options, **more):
        return cat(what, *options, folder=self.folder, **more)

    def catalog(self):
        """PyIceberg on the same database."""
        from pyiceberg.catalog.sql import SqlCatalog
        return SqlCatalog("tarn", uri="sqlite:///" + self.path("tarn.db"), warehouse="file://" + self.path("warehouse"))

    def metadata(self, name):
        """Path of a table's current metadata file, from the database itself."""
        import sqlite3
        namespace, table = name.rsplit(".", 1)
        with sqlite3.connect(self.path("tarn.db")) as database:
            found = database.execute("select metadata_location from iceberg_tables where table_namespace = ? and table_name = ?",
                                     (namespace, table)).fetchone()
        assert found, "table %s is not in the database" % name
        path = local(found[0])
        return path if os.path.isabs(path) else self.path(path)

    def pyiceberg_rows(self, name, **scan):
        return rows.arrow_rows(self.catalog().load_table(name).scan(**scan).to_arrow())

    def duckdb_rows(self, name, where=""):
        return duckdb_rows(self.metadata(name), where)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return name


class Relay:
    """A proxy to a port of this machine: passes says of each piece whether it goes on, else both ends of its connection are broken."""

    def __init__(self, to, port=0):
        self.to, self.at, self.listener = to, port, None
        self.open()

    def open(self):
        self.listener = socket.create_server(("127.0.0.1", self.at))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def passes(self, data, state, is_client):
        raise NotImplementedError

    def accept(self, listener):
        while True:
            try:
                client, _ = listener.accept()
                server = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                return
            state = {"hit": False}
            threading.Thread(target=self.pump, args=(client, server, state, True), daemon=True).start()
            threading.Thread(target=self.pump, args=(server, client, state, False), daemon=True).start()

    def pump(self, source, to, state, is_client):
        try:
            while True:
                data = source.recv(1 << 16)
                if not data or not self.passes(data, state, is_client):
                    break
                to.sendall(data)
        except OSError:
            pass
        for end in (source, to):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Service:
    """`tarn serve` on one port, over the workshop's catalog, whose files are on the disk for others to read."""

    def __init__(self, shop, *before):
        self.shop, self.port, self.process, self.before = shop, free_port(), None, before or ("-c", "sqlite:tarn.db")
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.kill()

    def start(self):
        self.process = subprocess.Popen([binary(), *self.before, "serve", "--listen", "127.0.0.1:%d" % self.port],
                                        cwd=self.shop.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout.readline().startswith("http"), "the service did not start"

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.port


class Held(Relay):
    """A proxy in which the first piece with these words waits until it is let go."""

    def __init__(self, to, words):
        self.words, self.waits, self.go = words, threading.Event(), threading.Event()
        super().__init__(to)

    def passes(self, data, state, is_client):
        if is_client and self.words in data and not self.waits.is_set():
            self.waits.set()
            self.go.wait()
        return True


def local(location):
    """file:/x, file:///x and /x as a path."""
    if location.startswith("file:"):
        return "/" + location[5:].lstrip("/")
    return location


def duckdb_connection(*more):
    """DuckDB with the extension wheels duckdb-extension-avro and duckdb-extension-iceberg, and more of them."""
    import duckdb
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    connection.execute("set timezone='UTC'")
    for name in more + ("avro", "iceberg"):
        folder = os.path.dirname(importlib.util.find_spec("duckdb_extension_" + name).origin)
        connection.execute("load '%s'" % glob.glob(folder + "/**/%s.duckdb_extension" % name, recursive=True)[0])
    return connection


def duckdb_rows(metadata, where=""):
    table = duckdb_connection().execute("select * from iceberg_scan(?) %s" % (where and "where " + where), [metadata]).to_arrow_table()
    return rows.arrow_rows(table)


def read_json(*names):
    with open(os.path.join(*names), encoding="utf-8") as file:
        return json.load(file)
