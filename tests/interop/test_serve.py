#!/usr/bin/env python3
"""Goal: `tarn serve` is an Iceberg REST catalog to a client that is not ours, and commits that come at the same time all get in.
Method: PyIceberg's REST catalog makes, changes, lists, renames and drops; many threads commit at once; requests that are wrong in one
way each get the specification's error.

usage: test_serve.py [CASE ...]
"""
import concurrent.futures
import http.client
import json
import os
import signal
import subprocess
import sys

import harness
from harness import Workshop, case, equal

WRITERS, APPENDS = 8, 4


class Server:
    """`tarn serve` on a free port, over a catalog of its own."""

    def __init__(self, shop, *options):
        env = dict(os.environ, ASAN_OPTIONS="detect_leaks=1")
        self.process = subprocess.Popen([harness.binary(), "-c", "sqlite:tarn.db", "serve", "--listen", "127.0.0.1:0", *options],
                                        cwd=shop.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        self.url = self.process.stdout.readline().strip()
        assert self.url.startswith("http://127.0.0.1:"), self.process.communicate()[1]

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        _, err = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, "it ended with %d: %s" % (self.process.returncode, err)

    def catalog(self):
        from pyiceberg.catalog.rest import RestCatalog
        return RestCatalog("rest", uri=self.url)

    def ask(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection(self.url.split("//")[1], timeout=30)
        text = body if isinstance(body, (str, bytes)) or body is None else json.dumps(body)
        connection.request(method, path, text, headers)
        answer = connection.getresponse()
        out = answer.read()
        connection.close()
        return answer.status, json.loads(out) if out else None, dict(answer.getheaders())

    def ask_text(self, path, token):
        connection = http.client.HTTPConnection(self.url.split("//")[1], timeout=30)
        connection.request("GET", path, headers={"Authorization": "Bearer " + token})
        return connection.getresponse().read().decode()


def rows(*values):
    import pyarrow as pa
    return pa.table({"id": pa.array(values, pa.int64()), "s": pa.array(["row %d" % v for v in values], pa.string())})


def a_whole_life():
    with Workshop() as shop, Server(shop) as server:
        catalog = server.catalog()
        catalog.create_namespace("ns", {"owner": "me"})
        equal(catalog.load_namespace_properties("ns"), {"owner": "me"})
        done = catalog.update_namespace_properties("ns", removals={"owner", "nothing"}, updates={"a": "1"})
        equal((done.removed, done.updated, done.missing), (["owner"], ["a"], ["nothing"]))
        table = catalog.create_table("ns.t", schema=rows().schema)
        table.append(rows(1, 2))
        table.append(rows(3))
        table.delete("id = 2")
        with table.update_schema() as change:
            change.rename_column("s", "text")
        equal(sorted(catalog.load_table("ns.t").scan().to_arrow()["id"].to_pylist()), [1, 3])
        equal(sorted(row["id"] for row in shop.cat("ns.t").rows), [1, 3])
        catalog.rename_table("ns.t", "ns.u")
        equal(catalog.list_tables("ns"), [("ns", "u")])
        catalog.drop_table("ns.u")
        catalog.drop_namespace("ns")
        equal(catalog.list_namespaces(), [])


def staged_tables_appear_with_their_rows():
    with Workshop() as shop, Server(shop) as server:
        catalog = server.catalog()
        catalog.create_namespace("ns")
        with catalog.create_table_transaction("ns.t", schema=rows().schema) as transaction:
            equal(catalog.table_exists("ns.t"), False)
            transaction.append(rows(1))
        equal(catalog.load_table("ns.t").scan().to_arrow().num_rows, 1)


def names_of_all_kinds():
    with Workshop() as shop, Server(shop) as server:
        catalog = server.catalog()
        for name in ("a b", "ü", "per%cent", "q?x=1", "sl/ash", "plus+"):
            equal(server.ask("POST", "/v1/namespaces", {"namespace": [name]})[0], 200)
        equal(server.ask("POST", "/v1/namespaces", {"namespace": ["ü", "inner"]})[0], 200)
        equal(server.ask("GET", "/v1/namespaces?parent=%C3%BC")[1]["namespaces"], [["ü", "inner"]])
        equal(server.ask("GET", "/v1/namespaces/%C3%BC%1Finner")[1]["namespace"], ["ü", "inner"])
        equal(server.ask("GET", "/v1/namespaces/sl%2Fash")[1]["namespace"], ["sl/ash"])
        equal(len(catalog.list_namespaces()), 6)


def pages():
    with Workshop() as shop, Server(shop) as server:
        for i in range(7):
            server.ask("POST", "/v1/namespaces", {"namespace": ["n%d" % i]})
        got, token = [], ""
        while token is not None:
            status, body, _ = server.ask("GET", "/v1/namespaces?pageSize=3&pageToken=" + token)
            equal(status, 200)
            got += [n[0] for n in body["namespaces"]]
            token = body["next-page-token"]
        equal(got, ["n%d" % i for i in range(7)])
        equal(server.ask("GET", "/v1/namespaces?pageSize=0")[0], 400)


def unchanged_tables_are_not_sent_again():
    with Workshop() as shop, Server(shop) as server:
        catalog = server.catalog()
        catalog.create_namespace("ns")
        table = catalog.create_table("ns.t", schema=rows().schema)
        table.append(rows(1))
        table.append(rows(2))
        status, body, headers = server.ask("GET", "/v1/namespaces/ns/tables/t")
        equal((status, len(body["metadata"]["snapshots"])), (200, 2))
        equal(server.ask("GET", "/v1/namespaces/ns/tables/t", **{"If-None-Match": headers["ETag"]})[0], 304)
        status, body, _ = server.ask("GET", "/v1/namespaces/ns/tables/t?snapshots=refs", **{"If-None-Match": headers["ETag"]})
        equal((status, len(body["metadata"]["snapshots"])), (200, 1))
        table.append(rows(3))
        equal(server.ask("GET", "/v1/namespaces/ns/tables/t", **{"If-None-Match": headers["ETag"]})[0], 200)


def many_writers():
    with Workshop() as shop, Server(shop) as server:
        catalog = server.catalog()
        catalog.create_namespace("ns")
        catalog.create_table("ns.t", schema=rows().schema)

        def write(writer):
            mine = server.catalog()
            for i in range(APPENDS):
                mine.load_table("ns.t").append(rows(writer * 100 + i))

        with concurrent.futures.ThreadPoolExecutor(WRITERS) as pool:
            for future in [pool.submit(write, writer) for writer in range(WRITERS)]:
                future.result()
        ids = sorted(catalog.load_table("ns.t").scan().to_arrow()["id"].to_pylist())
        equal(ids, sorted(w * 100 + i for w in range(WRITERS) for i in range(APPENDS)))


def wrong_requests():
    with Workshop() as shop, Server(shop, "--body-mb", "1") as server:
        server.ask("POST", "/v1/namespaces", {"namespace": ["ns"]})
        schema = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}
        cases = [
            ("GET", "/", None, 404, "NotFoundException"),
            ("GET", "/v1/namespaces/ns/tables/" + "x/" * 30, None, 404, "NotFoundException"),
            ("PATCH", "/v1/namespaces", None, 405, "BadRequestException"),
            ("GET", "/v1/namespaces/nope", None, 404, "NoSuchNamespaceException"),
            ("GET", "/v1/namespaces/ns/tables/nope", None, 404, "NoSuchTableException"),
            ("GET", "/v1/namespaces/n%zz", None, 400, "BadRequestException"),
            ("GET", "/v1/namespaces/n%00", None, 400, "BadRequestException"),
            ("GET", "/v1/namespaces/%FF", None, 400, "BadRequestException"),
            ("POST", "/v1/namespaces", None, 400, "BadRequestException"),
            ("POST", "/v1/namespaces", "{", 400, "BadRequestException"),
            ("POST", "/v1/namespaces", "[]", 400, "BadRequestException"),
            ("POST", "/v1/namespaces", {"namespace": "ns"}, 400, "BadRequestException"),
            ("POST", "/v1/namespaces", {"namespace": []}, 400, "BadRequestException"),
            ("POST", "/v1/namespaces", {"namespace": ["ns"]}, 409, "AlreadyExistsException"),
            ("POST", "/v1/namespaces", {"namespace": ["x"], "properties": {"a": 1}}, 400, "BadRequestException"),
            ("POST", "/v1/namespaces", " " * (2 << 20), 413, "BadRequestException"),
            ("POST", "/v1/namespaces/ns/properties", {"updates": {"a": "1"}, "removals": ["a"]}, 422, "UnprocessableEntityException"),
            ("POST", "/v1/namespaces/nope/tables", {"name": "t", "schema": schema}, 404, "NoSuchNamespaceException"),
            ("POST", "/v1/namespaces/ns/tables", {"name": "t"}, 400, "BadRequestException"),
            ("POST", "/v1/namespaces/ns/tables", {"name": "t", "schema": {"type": "struct", "fields": [{}]}}, 400, "BadRequestException"),
            ("POST", "/v1/namespaces/ns/tables/nope", {"requirements": [], "updates": []}, 404, "NoSuchTableException"),
            ("POST", "/v1/namespaces/ns/register", {"name": "t", "metadata-location": "/no/such.metadata.json"}, 404, None),
        ]
        for method, path, body, status, kind in cases:
            got, answer, _ = server.ask(method, path, body)
            assert got == status, "%s %s: %d, not %d: %s" % (method, path, got, status, answer)
            assert kind is None or answer["error"]["type"] == kind, "%s %s: %s" % (method, path, answer)
            equal(answer["error"]["code"], status)
        equal(server.ask("POST", "/v1/namespaces/ns/tables", {"name": "t", "schema": schema})[0], 200)
        stale = {"requirements": [{"type": "assert-current-schema-id", "current-schema-id": 7}], "updates": []}
        status, answer, _ = server.ask("POST", "/v1/namespaces/ns/tables/t", stale)
        equal((status, answer["error"]["type"]), (409, "CommitFailedException"))


ACCESS = {"token-seconds": 1000,
          "clients": [{"id": "writer", "secret": "s3cret&+%", "grants": [{"namespace": "a", "role": "write"}]}],
          "tokens": [{"name": "ops", "token": "ops-token", "grants": [{"namespace": "*", "role": "admin"}]},
                     {"name": "reader", "token": "reader-token", "grants": [{"namespace": "a.b", "role": "read"}]}]}


def roles_and_tokens():
    with Workshop() as shop:
        shop.write("access.json", json.dumps(ACCESS))
        with Server(shop, "--access", "access.json", "--access-log", "log.ndjson") as server:
            def ask(token, method, path, body=None):
                return server.ask(method, path, body, **({"Authorization": "Bearer " + token} if token else {}))[0]
            equal(server.ask("GET", "/healthz")[0], 200)
            for path in ("/v1/config", "/v1/namespaces", "/metrics"):
                equal(ask(None, "GET", path), 401)
                equal(ask("reader-toke", "GET", path), 401)
                if path != "/metrics":
                    equal(ask("reader-token", "GET", path), 200)
            for ns in (["a"], ["a", "b"], ["a", "c"], ["z"]):
                equal(ask("reader-token", "POST", "/v1/namespaces", {"namespace": ns}), 404 if ns == ["z"] or ns == ["a", "c"] else 403)
                equal(ask("ops-token", "POST", "/v1/namespaces", {"namespace": ns}), 200)
            equal(server.ask("GET", "/v1/namespaces", Authorization="Bearer reader-token")[1]["namespaces"], [["a"]])
            equal(ask("reader-token", "GET", "/v1/namespaces/a%1Fb"), 200)
            equal(ask("reader-token", "GET", "/v1/namespaces/a"), 403)
            equal(ask("reader-token", "GET", "/v1/namespaces/z"), 404)
            equal(ask("reader-token", "DELETE", "/v1/namespaces/a%1Fb"), 403)
            form = "grant_type=client_credentials&client_id=writer&client_secret="
            kind = {"Content-Type": "application/x-www-form-urlencoded"}
            equal(server.ask("POST", "/v1/oauth/tokens", form + "wrong", **kind)[0], 401)
            equal(server.ask("POST", "/v1/oauth/tokens", "grant_type=password", **kind)[0], 400)
            status, answer, _ = server.ask("POST", "/v1/oauth/tokens", form + "s3cret%26%2B%25", **kind)
            equal((status, answer["token_type"], answer["expires_in"]), (200, "bearer", 1000))
            token = answer["access_token"]
            schema = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}
            equal(ask(token, "POST", "/v1/namespaces/a/tables", {"name": "t", "schema": schema}), 200)
            equal(ask(token, "POST", "/v1/namespaces/z/tables", {"name": "t", "schema": schema}), 404)
            equal(ask(token, "DELETE", "/v1/namespaces/a"), 403)
            rename = {"source": {"namespace": ["a"], "name": "t"}, "destination": {"namespace": ["z"], "name": "t"}}
            equal(ask(token, "POST", "/v1/tables/rename", rename), 404)
            equal(ask("reader-token", "GET", "/v1/namespaces/a/tables/t"), 403)
            from pyiceberg.catalog.rest import RestCatalog
            theirs = RestCatalog("rest", uri=server.url, credential="writer:s3cret&+%")
            theirs.load_table("a.t").append(rows(7).select(["id"]))
            equal(theirs.load_table("a.t").scan().to_arrow()["id"].to_pylist(), [7])
            counters = server.ask_text("/metrics", "ops-token")
            assert 'tarn_commits_total{outcome="committed"} 1' in counters and counters.endswith("# EOF\n"), counters
        with open(shop.path("log.ndjson")) as file:
            text = file.read()
        lines = [json.loads(line) for line in text.splitlines()]
        assert len(lines) > 30 and any(line.get("caller") == "writer" for line in lines), text
        for secret in ("s3cret", "ops-token", token):
            assert secret not in text, "the log tells a secret"


def wrong_starts():
    with Workshop() as shop:
        shop.write("empty.json", "")
        shop.write("nobody.json", "{}")
        shop.write("role.json", json.dumps({"tokens": [{"name": "x", "token": "hidden", "grants": [{"namespace": "a", "role": "boss"}]}]}))
        for options, words in ((("--listen", "localhost:x"), ["HOST:PORT"]), (("--listen", "0.0.0.0:0"), ["--access"]),
                               (("--listen", "127.0.0.1:99999"), ["HOST:PORT"]), (("--access", "no.json"), ["no.json"]),
                               (("--access", "empty.json"), ["empty.json"]), (("--access", "nobody.json"), ["nobody"]),
                               (("--access", "role.json"), ["boss"])):
            answer = shop.tarn("serve", *options, check=False)
            harness.must_refuse(answer, *words)
            assert "hidden" not in answer.err


def main():
    harness.need("pyarrow", "pyiceberg")
    for check in (a_whole_life, staged_tables_appear_with_their_rows, names_of_all_kinds, pages, unchanged_tables_are_not_sent_again,
                  many_writers, wrong_requests, roles_and_tokens, wrong_starts):
        if len(sys.argv) == 1 or check.__name__ in sys.argv[1:]:
            case(check.__name__, check)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
