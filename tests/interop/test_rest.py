#!/usr/bin/env python3
"""Goal: `tarn -c http://...` says the truth whatever the server and the network do: what it calls done is done once, what it refuses
is not done, and what nobody can know it calls unknown. Method: a REST catalog over PyIceberg plays each fault at each kind of
request; after it the catalog itself is asked what is there.

usage: test_rest.py [CASE ...]
"""
import json
import os
import sys

import harness
from harness import Workshop, case, equal, must_refuse

sys.path.insert(0, os.path.join(harness.ROOT, "tests", "support"))
harness.need("pyiceberg", "pyarrow")
from rest_server import Fault, Server  # noqa: E402

TABLE = r"/tables/t$"
NAMESPACES = r"/namespaces$"
UNKNOWN, CONFLICT, DENIED, IO, CORRUPT, UNSUPPORTED, NOT_FOUND = 5, 4, 11, 7, 6, 12, 3
COMMON = {"TARN_REST_TOKEN": "", "TARN_REST_CREDENTIAL": ""}


class Shop(Workshop):
    """A server with one table of three rows."""

    def __init__(self, filled=True):
        super().__init__()
        self.server = Server(self.path("server"))
        self.filled = filled

    def __enter__(self):
        self.server.__enter__()
        if self.filled:
            self.write("rows.ndjson", "".join('{"id": %d, "name": "n%d"}\n' % (i, i) for i in range(3)))
            self.run("create", "a.t", "id long, name string")
            self.run("ingest", "a.t", "rows.ndjson")
            self.server.requests.clear()
        return self

    def __exit__(self, *unused):
        self.server.__exit__()
        super().__exit__(*unused)

    def run(self, *arguments, **more):
        env = {"TARN_CATALOG": self.server.url, **more.pop("env", {})}
        return self.tarn(*arguments, env=env, **more)

    def count(self):
        return self.server.catalog.load_table("a.t").scan().to_arrow().num_rows

    def plan(self, *fault, **more):
        self.server.faults.append(Fault(*fault, **more))


def commands():
    with Shop() as s:
        equal(s.count(), 3)
        equal(len(s.run("cat", "a.t", "--format", "ndjson").rows), 3)
        s.run("alter", "a.t", "add-column", "price", "double")
        s.run("delete", "a.t", "--where", "id = 1")
        s.run("set", "a.t", "k=v")
        equal(s.count(), 2)
        equal(s.server.catalog.load_table("a.t").properties["k"], "v")
        equal([f.name for f in s.server.catalog.load_table("a.t").schema().fields], ["id", "name", "price"])
        s.run("rename", "a.t", "a.u")
        where = s.server.catalog.load_table("a.u").metadata_location
        s.run("register", "a.again", where)
        for i in range(5):
            s.run("create", "a.b.more%d" % i, "id long")
        equal(s.run("ls", "a.b").out.split(), ["a.b.more%d" % i for i in range(5)])  # pages of two
        s.run("drop", "a.again")
        s.run("drop", "a.u", "--purge")
        equal([t[-1] for t in s.server.catalog.list_tables("a")], [])
        must_refuse(s.run("cat", "a.none", check=False), "a.none")


def commit_faults():
    """Every way in which the answer of a commit goes wrong: the rows are there once, and the command knows it."""
    for what in ("lose-before", "lose-after", "500-before", "500-after", "502-after", "503-before", "429-before", "unknown-after",
                 "cut-after", "junk-after", "html-after", "empty-after"):
        with Shop() as s:
            s.plan("POST", TABLE, what)
            answer = s.run("ingest", "a.t", "rows.ndjson", check=False)
            assert answer.status == 0, "%s: %s" % (what, answer)
            equal((what, s.count()), (what, 6))
            s.plan("POST", TABLE, what)
            s.run("set", "a.t", "k=v")
            equal(s.server.catalog.load_table("a.t").properties["k"], "v")
            s.plan("POST", TABLE, what)
            s.run("alter", "a.t", "add-column", "x", "int")
            equal(len(s.server.catalog.load_table("a.t").schema().fields), 3)


def commit_stays_open():
    """A server that answers no more after a commit was sent: unknown, and no file is removed."""
    for what, there in (("500-before", 3), ("500-after", 6)):
        with Shop() as s:
            s.plan("POST", TABLE, what, times=99)
            s.plan("GET", TABLE, "500-before", times=0)
            # every load after the first
            gets = {"n": 0}
            take = s.server.take_fault

            def take_fault(method, path):
                if method == "GET" and path.endswith("/tables/t") and s.server.sent("POST", TABLE):
                    return Fault("GET", TABLE, "500-before")
                return take(method, path)
            s.server.take_fault = take_fault
            answer = s.run("ingest", "a.t", "rows.ndjson", check=False)
            equal((what, answer.status), (what, UNKNOWN))
            s.server.take_fault = take
            s.server.faults.clear()
            equal((what, s.count()), (what, there))
            del gets


def others_first(s, fault, sent):
    """Somebody else appends a row right before our commit number `sent`, whose answer is that fault."""
    take = s.server.take_fault

    def take_fault(method, path):
        if method == "POST" and path.endswith("/tables/t") and len(s.server.sent("POST", TABLE)) == sent:
            import pyarrow as pa
            s.server.lock.release()
            try:
                s.server.catalog.load_table("a.t").append(pa.table({"id": [9], "name": ["theirs"]}))
            finally:
                s.server.lock.acquire()
            return fault()
        return take(method, path)
    s.server.take_fault = take_fault


def conflict_after_loss():
    """Our commit was lost before it was done, and another came first: a conflict that is retried to an end."""
    with Shop() as s:
        others_first(s, lambda: Fault("POST", TABLE, "500-before"), sent=1)
        s.run("ingest", "a.t", "rows.ndjson")
        equal(s.count(), 7)


def reads():
    """A load is asked for again; what never comes right is an error that says what it was."""
    for what, status in (("lose-before", IO), ("500-before", IO), ("503-before", IO), ("junk-after", CORRUPT), ("html-after", CORRUPT),
                         ("cut-after", IO)):
        with Shop() as s:
            s.plan("GET", TABLE, what, times=2)
            equal((what, len(s.run("cat", "a.t", "--format", "ndjson").rows)), (what, 3))
            s.plan("GET", TABLE, what, times=99)
            equal((what, s.run("cat", "a.t", check=False).status), (what, status))
    with Shop() as s:
        s.plan("GET", TABLE, "empty-after", times=99)
        equal(s.run("cat", "a.t", check=False).status, CORRUPT)
    with Shop() as s:
        s.plan("GET", TABLE, "redirect-before")
        answer = s.run("cat", "a.t", check=False)
        must_refuse(answer, "redirect", "127.0.0.1:1/stolen")
        assert "token=1" not in answer.err, answer
    with Shop() as s:
        s.plan("GET", TABLE, "slow-after", seconds=2 * harness.SECONDS)
        answer = s.run("cat", "a.t", "--catalog-property", "rest.client.socket-timeout-ms=3000")
        equal(len(answer.rows), 3)


def huge():
    with Shop() as s:
        s.plan("GET", TABLE, "huge-before", times=99)
        answer = s.run("cat", "a.t", check=False)
        must_refuse(answer, "more than")


def names_once():
    """Creating, renaming and dropping with a lost answer comes to what was asked for."""
    for what in ("lose-after", "500-after", "cut-after", "lose-before", "500-before"):
        with Shop() as s:
            s.plan("POST", NAMESPACES, what)
            s.plan("POST", r"/tables$", what)
            answer = s.run("create", "new.t", "id long", check=False)
            equal((what, answer.status, answer.err), (what, 0 if what.endswith("after") else answer.status, answer.err))
            if answer.status:
                s.run("create", "new.t", "id long")
            s.server.catalog.load_table("new.t")
            s.plan("POST", "/tables/rename", what)
            answer = s.run("rename", "new.t", "new.u", check=False)
            if what.endswith("after"):
                equal((what, answer.status), (what, 0))
                s.server.catalog.load_table("new.u")
            else:
                s.run("rename", "new.t", "new.u")
            s.plan("DELETE", "/tables/u$", what)
            s.run("drop", "new.u")
            equal(s.server.catalog.list_tables("new"), [])


def login():
    with Shop() as s:
        s.server.credential = "me:p:w&/s\u00e4cret"
        refused = s.run("ls", check=False)
        equal(refused.status, DENIED)
        wrong = s.run("ls", check=False, env={"TARN_REST_CREDENTIAL": "me:wr0ng-secret"})
        equal(wrong.status, DENIED)
        assert "wr0ng" not in wrong.err, wrong
        s.run("ls", env={"TARN_REST_CREDENTIAL": s.server.credential})
        form = s.server.sent("POST", "oauth")[-1]
        assert b"scope=catalog" in form.body, form
        # A token that the server forgot is had anew.
        s.server.token_seconds = 1
        s.plan("GET", TABLE, "401-before")
        s.run("cat", "a.t", env={"TARN_REST_CREDENTIAL": s.server.credential})
        s.server.tokens.add("given")
        s.run("cat", "a.t", env={"TARN_REST_TOKEN": "given"})
        s.write("token", "given\n")
        s.run("cat", "a.t", env={"TARN_REST_TOKEN_FILE": s.path("token")})
        bad = s.run("-v", "cat", "a.t", check=False, env={"TARN_REST_TOKEN": "bad-t0ken"})
        equal(bad.status, DENIED)
        assert "t0ken" not in bad.err, bad


def configuration():
    with Shop() as s:
        s.server.prefix = "ware/house"
        s.server.overrides = {"prefix": "ware/house"}
        s.server.defaults = {"header.X-Default": "d", "header.X-Both": "d"}
        s.run("cat", "a.t", "--catalog-property", "header.X-Both=mine", "--warehouse", "w 1")
        equal(s.server.sent("GET", "config")[-1].query, {"warehouse": "w 1"})
        headers = s.server.sent("GET", TABLE)[-1].headers
        equal((headers["x-default"], headers["x-both"]), ("d", "mine"))
        s.server.endpoints = ["GET /v1/{prefix}/namespaces/{namespace}/tables/{table}"]
        equal(len(s.run("cat", "a.t", "--format", "ndjson").rows), 3)
        answer = s.run("rename", "a.t", "a.u", check=False)
        equal(answer.status, UNSUPPORTED)
        must_refuse(answer, "tables/rename")
    with Shop() as s:
        s.write(".pyiceberg.yaml", "catalog:\n  far:\n    uri: %s\n    token: from-yaml\n    header.X-Y: z\n" % s.server.url)
        s.server.tokens.add("from-yaml")
        s.tarn("-c", "far", "cat", "a.t", env={"HOME": s.folder})
        equal(s.server.sent("GET", TABLE)[-1].headers["x-y"], "z")


def lent_credentials():
    with Shop() as s:
        table = s.server.catalog.load_table("a.t")
        real = s.server.loaded

        def loaded(t):
            status, answer = real(t)
            answer["metadata"]["location"] = "s3://bucket/a/t"
            answer["config"] = {"s3.access-key-id": "AKIA", "s3.secret-access-key": "sec"}
            return status, answer
        s.server.loaded = loaded
        answer = s.run("cat", "a.t", check=False)
        equal(answer.status, UNSUPPORTED)
        must_refuse(answer, "vended", "s3://bucket/a/t")
        del table


def repeated_loads():
    """Within one command a table that did not change is not sent twice."""
    with Shop() as s:
        s.run("ingest", "a.t", "rows.ndjson")
        loads = s.server.sent("GET", TABLE)
        assert all("snapshots" in r.query for r in loads), loads
        asked = [r for r in loads if "if-none-match" in r.headers]
        assert len(loads) < 2 or asked, [json.dumps(r.headers) for r in loads]


def nobody_home():
    with Workshop() as s:
        answer = s.tarn("ls", check=False, env={"TARN_CATALOG": "http://127.0.0.1:1/x"})
        equal(answer.status, IO)
        must_refuse(s.tarn("ls", check=False, env={"TARN_CATALOG": "http://user:hush@127.0.0.1:1/"}), "127.0.0.1:1")
        assert "hush" not in s.tarn("ls", check=False, env={"TARN_CATALOG": "http://user:hush@127.0.0.1:1/"}).err
        assert "hush" not in s.tarn("ls", check=False, env={"TARN_CATALOG": "mysql://user:hush@127.0.0.1:1/"}).err


def certificates():
    """A server whose certificate nobody vouches for is not spoken to; with ssl.cabundle it is."""
    import shutil
    import ssl
    import subprocess
    if not shutil.which("openssl"):
        print("certificates: no openssl here")
        return
    with Shop(filled=False) as s:
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", s.path("key"), "-out", s.path("cert"), "-days",
                        "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(s.path("cert"), s.path("key"))
        s.server.http.socket = context.wrap_socket(s.server.http.socket, server_side=True)
        uri = "https://localhost:%d" % s.server.http.server_port
        answer = s.tarn("-c", uri, "ls", check=False, env={"TARN_REST_TOKEN": "hush"})
        equal(answer.status, IO)
        must_refuse(answer, "certificate")
        equal(s.server.requests, [])
        s.tarn("-c", uri, "--catalog-property", "ssl.cabundle=" + s.path("cert"), "ls")
        wrong_name = uri.replace("localhost", "127.0.0.1")
        equal(s.tarn("-c", wrong_name, "--catalog-property", "ssl.cabundle=" + s.path("cert"), "ls", check=False).status, IO)


BUGS = os.path.join(harness.ROOT, "tests", "fixtures", "bugs")


def b40():
    """Namespaces and names are encoded once, whatever is in them, and levels are joined by what the server asks for: each can be
    made, listed, loaded and dropped, by the paths that are right."""
    with open(os.path.join(BUGS, "B40", "names.json"), encoding="utf-8") as file:
        names = json.load(file)
    quoted = lambda part: "`%s`" % part.replace("`", "``")
    for name in names:
        with Shop(filled=False) as s:
            s.server.overrides = name.get("config", {}).get("overrides", {})
            s.server.separator = {"%2E": "."}.get(s.server.overrides.get("namespace-separator"), s.server.separator)
            space, table = ".".join(quoted(n) for n in name["namespace"]), name.get("table", "t")
            s.write("one.ndjson", '{"id": 1}\n')
            s.run("create", space + "." + quoted(table), "id long")
            s.run("ingest", space + "." + quoted(table), "one.ndjson")
            equal(s.run("cat", space + "." + quoted(table), "--format", "ndjson").rows, [{"id": 1}])
            listed = s.run("ls", space).out.strip()
            equal(s.run("cat", listed, "--format", "ndjson").rows, [{"id": 1}])  # as it is shown it is taken
            s.run("drop", listed)
            equal(s.run("ls", space).out.strip(), "")
            wanted = name["path"].split(" or ")[0]
            paths = {r.path for r in s.server.requests}
            assert any(p == wanted or p.startswith(wanted + "/") for p in paths), (wanted, paths)
            # all that names it does so in the same way
            prefix = wanted.split("/tables/")[0]
            assert all(p.startswith(prefix) for p in paths if p.startswith("/v1/namespaces/")), (prefix, paths)


def b41():
    """Answers that say the wrong thing by their status: rows are there once or not at all, and the command knows which."""
    def answer(name):
        with open(os.path.join(BUGS, "B41", name + ".http"), "rb") as file:
            return file.read()

    for name, whats in (("unknown_as_400", ("raw-before", "raw-after")), ("html_502", ("raw-before", "raw-after")),
                        ("empty_503", ("raw-before",))):
        for what in whats:
            with Shop() as s:
                s.plan("POST", TABLE, what, raw=answer(name))
                s.run("ingest", "a.t", "rows.ndjson")
                equal((name, what, s.count()), (name, what, 6))
    for name in ("error_no_json", "code_mismatch"):  # a conflict, with what somebody else did just then
        with Shop() as s:
            others_first(s, lambda: Fault("POST", TABLE, "raw-before", raw=answer(name)), sent=1)
            s.run("ingest", "a.t", "rows.ndjson")
            equal((name, len(s.server.sent("POST", TABLE)), s.count()), (name, 2, 7))
    with Shop() as s:  # said to be unknown, and nobody can look: neither failed nor tried blindly
        s.plan("POST", TABLE, "raw-after", raw=answer("unknown_as_400"))
        take = s.server.take_fault
        s.server.take_fault = lambda method, path: Fault("GET", TABLE, "500-before") if (
            method == "GET" and path.endswith("/tables/t") and s.server.sent("POST", TABLE)) else take(method, path)
        equal(s.run("ingest", "a.t", "rows.ndjson", check=False).status, UNKNOWN)
        equal((len(s.server.sent("POST", TABLE)), s.count()), (1, 6))
    with Shop() as s:  # a conflict that is called a bad request
        s.plan("POST", TABLE, "raw-before", raw=answer("conflict_as_400"))
        must_refuse(s.run("ingest", "a.t", "rows.ndjson", check=False), "Commit validation failed. [ErrorCode: 2010]")
        equal(s.count(), 3)
        s.run("ingest", "a.t", "rows.ndjson")
        equal(s.count(), 6)


CASES = [b40, b41, commands, commit_faults, commit_stays_open, conflict_after_loss, reads, huge, names_once, login, configuration,
         lent_credentials, repeated_loads, certificates, nobody_home]


def main():
    for key in COMMON:
        os.environ.pop(key, None)
    wanted = sys.argv[1:]
    for fn in CASES:
        if not wanted or fn.__name__ in wanted:
            case(fn.__name__, fn)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
