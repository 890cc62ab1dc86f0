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
from harness import Workshop, equal

WRITERS, APPENDS = 8, 4


class Server:
    """`tarn serve` on a free port, over a catalog of its own."""

    def __init__(self, shop, *options, catalog="sqlite:tarn.db", before=None, env=None):
        env = {**os.environ, "ASAN_OPTIONS": "detect_leaks=1", **(env or {})}
        before = ("-c", catalog) if before is None else before
        self.process = subprocess.Popen([harness.binary(), *before, "serve", "--listen", "127.0.0.1:0", *options],
                                        cwd=shop.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        self.url = self.process.stdout.readline().strip()
        assert self.url.startswith(("http://127.0.0.1:", "https://127.0.0.1:")), self.process.communicate()[1]

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        _, err = self.process.communicate(timeout=harness.SECONDS)
        assert self.process.returncode == 0, "it ended with %d: %s" % (self.process.returncode, err)

    def catalog(self):
        from pyiceberg.catalog.rest import RestCatalog
        return RestCatalog("rest", uri=self.url)

    def connection(self):
        return http.client.HTTPConnection(self.url.split("//")[1], timeout=harness.SECONDS)

    def ask(self, method, path, body=None, **headers):
        connection = self.connection()
        text = body if isinstance(body, (str, bytes)) or body is None else json.dumps(body)
        connection.request(method, path, text, headers)
        answer = connection.getresponse()
        out = answer.read()
        connection.close()
        return answer.status, json.loads(out) if out else None, dict(answer.getheaders())

    def ask_text(self, path, token):
        connection = http.client.HTTPConnection(self.url.split("//")[1], timeout=harness.SECONDS)
        connection.request("GET", path, headers={"Authorization": "Bearer " + token})
        return connection.getresponse().read().decode()


def rows(*values):
    import pyarrow as pa
    return pa.table({"id": pa.array(values, pa.int64()), "s": pa.array(["row %d" % v for v in values], pa.string())})


def a_whole_life():
    with Workshop() as shop, Server(shop) as server:
        catalog = server.catalog()
        catalog.create_namespace("ns", {"owner": "me"})
        equal(catalog.load_namespace_properties("ns"), {"owner": "me", "location": shop.path("warehouse", "ns")})
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


def b40():
    """Each path is decoded once: a plus is a plus, an encoded slash stays within its name."""
    with open(os.path.join(harness.ROOT, "tests", "fixtures", "bugs", "B40", "names.json"), encoding="utf-8") as file:
        names = [name for name in json.load(file) if "config" not in name and name["namespace"] != ["a.b"]]  # no other separator is advertised
    schema = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}
    with Workshop() as shop, Server(shop) as server:
        made = []
        for name in names:
            for depth in range(1, len(name["namespace"]) + 1):
                made.append(name["namespace"][:depth])
                equal(server.ask("POST", "/v1/namespaces", {"namespace": made[-1]})[0], 200)
            space, table = name["path"].split("/tables/")[0], name.get("table", "t")
            equal(server.ask("GET", space)[1]["namespace"], name["namespace"])
            equal(server.ask("POST", space + "/tables", {"name": table, "schema": schema})[0], 200)
            listed = [{"namespace": name["namespace"], "name": table}]
            equal(server.ask("GET", space + "/tables")[1]["identifiers"], listed)
            path = name["path"] if "table" in name else space + "/tables/t"
            equal(server.ask("GET", path)[1]["metadata"]["schemas"][0]["fields"][0]["name"], "id")
            equal(server.ask("HEAD", path)[0], 204)
        equal(server.ask("GET", "/v1/namespaces/a+b")[1]["namespace"], ["a+b"])
        status, refused, _ = server.ask("POST", "/v1/namespaces", {"namespace": ["a.b"]})
        equal((status, "dot" in refused["error"]["message"]), (400, True))  # SQL catalogs join levels by it
        catalog = server.catalog()
        for name in names:
            equal(catalog.load_table((*name["namespace"], name.get("table", "t"))).schema().fields[0].name, "id")
            path = name["path"] if "table" in name else name["path"] + "/tables/t"
            equal(server.ask("DELETE", path)[0], 204)
        for space in reversed(made):
            catalog.drop_namespace(tuple(space))
        equal(catalog.list_namespaces(), [])


def b41():
    """What is wrong with a commit is said by the status: 409 that the table is another by now, 400 that the request is none."""
    with Workshop() as shop, Server(shop) as server:
        server.catalog().create_namespace("ns")
        server.catalog().create_table("ns.t", schema=rows().schema)
        commit = lambda *requirements, updates=(): server.ask("POST", "/v1/namespaces/ns/tables/t", {
            "requirements": list(requirements), "updates": list(updates)})
        for requirement, update, status, kind in (
                ({"type": "assert-table-uuid", "uuid": "00000000-0000-4000-8000-000000000000"}, None, 409, "CommitFailedException"),
                ({"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 7}, None, 409, "CommitFailedException"),
                ({"type": "assert-the-weather"}, None, 400, "BadRequestException"),
                (None, {"action": "set-the-weather"}, 400, "BadRequestException"), (None, {"action": "set-location"}, 400, "BadRequestException")):
            got, answer, _ = commit(*filter(None, [requirement]), updates=filter(None, [update]))
            equal((requirement, update, got, answer["error"]["type"], answer["error"]["code"]), (requirement, update, status, kind, status))


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
        catalog.create_table("ns.t", schema=rows().schema, properties={"commit.retry.num-retries": "0"})

        def write(writer):
            mine = server.catalog()
            for i in range(APPENDS):
                table = mine.load_table("ns.t")
                if writer % 2:
                    table.append(rows(writer * 100 + i))
                else:  # two snapshots in one commit
                    with table.transaction() as both:
                        both.append(rows(writer * 100 + i))
                        both.append(rows(writer * 100 + i + 50))

        with concurrent.futures.ThreadPoolExecutor(WRITERS) as pool:
            for future in [pool.submit(write, writer) for writer in range(WRITERS)]:
                future.result()
        ids = sorted(catalog.load_table("ns.t").scan().to_arrow()["id"].to_pylist())
        equal(ids, sorted(w * 100 + i + more for w in range(WRITERS) for i in range(APPENDS) for more in ((0,) if w % 2 else (0, 50))))


def transactions_on_a_stale_head():
    """Several snapshots in one commit, made on a head that has gone: an overwrite (what it deletes, then what it adds) among them."""
    from pyiceberg.exceptions import CommitFailedException
    with Workshop() as shop, Server(shop) as server:
        catalog = server.catalog()
        catalog.create_namespace("ns")

        def done(change):
            try:
                change()
                return True
            except CommitFailedException:
                return False

        def append_both(table):
            with table.transaction() as both:
                both.append(rows(3))
                both.append(rows(4))

        for level, wanted in (("", (True, False)), ("serializable", (False, False)), ("snapshot", (True, True))):
            name = "ns.t" + level
            asked = {"write.%s.isolation-level" % what: level for what in ("delete", "update", "merge") if level}
            catalog.create_table(name, schema=rows().schema, properties={"commit.retry.num-retries": "0", **asked}).append(rows(1))
            late, twice = catalog.load_table(name), catalog.load_table(name)
            catalog.load_table(name).append(rows(2))
            equal((done(lambda: append_both(twice)), done(lambda: late.overwrite(rows(5), overwrite_filter="id < 3"))), wanted)
            equal(sorted(row["id"] for row in shop.cat(name).rows),
                  ([2] if wanted[1] else [1, 2]) + ([3, 4] if wanted[0] else []) + ([5] if wanted[1] else []))
            equal(len(catalog.load_table(name).snapshots()), 2 + 2 * wanted[0] + 2 * wanted[1])


class Restarts(harness.Service):
    """A service that can be killed and comes back at the same place."""
    connection, ask, catalog = Server.connection, Server.ask, Server.catalog


def files_are_added_once():
    """add_files asks that no file is in the table, of the head that its client saw. On a newer head nobody would have asked: it is refused
    where one of its files came since on that branch, wherever it went; all others follow."""
    import pyarrow.parquet as pq
    from pyiceberg.exceptions import CommitFailedException

    def plainly(server, table, files):
        table.add_files(files)

    def in_two_snapshots(server, table, files):
        with table.transaction() as both:
            both.append(rows(9))
            both.add_files(files)

    def with_another_table(server, table, files):
        sent, table._do_commit = {}, lambda updates, requirements: sent.update(updates=updates, requirements=requirements)
        table.add_files(files)
        change = {name: [json.loads(one.model_dump_json(by_alias=True)) for one in items] for name, items in sent.items()}
        change["identifier"] = {"namespace": ["ns"], "name": table.name()[1]}
        status, answer, _ = server.ask("POST", "/v1/transactions/commit", {"table-changes": [change, set_property("other", other, "1")]})
        if status == 409:
            raise CommitFailedException(answer["error"]["message"])
        equal(status, 204)

    def after_a_restart(server, table, files):
        server.kill()
        server.start()
        table.add_files(files)

    def to_a_branch(server, table, files):
        table.add_files(files, branch="b")

    def taken(way, server, table, files):
        try:
            way(server, table, files)
            return True
        except CommitFailedException as refused:
            assert "has added file " in str(refused), refused
            return False

    with Workshop() as shop, Restarts(shop) as server:
        catalog = server.catalog()
        catalog.create_namespace("ns")
        other = str(catalog.create_table("ns.other", schema=rows().schema).metadata.table_uuid)
        for way in (plainly, in_two_snapshots, with_another_table, after_a_restart, to_a_branch):
            name = "ns." + way.__name__
            table = catalog.create_table(name, schema=rows().schema, properties={"commit.retry.num-retries": "0"})
            files = ["%s/data/%d.parquet" % (table.location(), i) for i in range(5)]
            os.makedirs(os.path.dirname(harness.local(files[0])))
            for i, file in enumerate(files):
                pq.write_table(rows(100 + i), harness.local(file))
            table.append(rows(1))
            table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "b").commit()
            late = [catalog.load_table(name) for _ in range(4)]
            late[0].add_files(files[:1])
            equal(taken(way, server, late[1], files[1:2]), True)
            here = way is not to_a_branch
            equal(taken(way, server, late[2], [files[2], files[0]]), not here)
            catalog.load_table(name).delete("id = 100")
            equal(taken(way, server, late[3], [files[3], files[0]]), False)
            ids = sorted(catalog.load_table(name).scan().to_arrow()["id"].to_pylist())
            equal(ids, [1] + ([9] if way is in_two_snapshots else []) + ([101] if here else []))


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
            ("POST", "/v1/namespaces/ns/register", {"name": "t", "metadata-location": "warehouse/no.metadata.json"}, 403, None),
        ]
        for method, path, body, status, kind in cases:
            got, answer, _ = server.ask(method, path, body)
            assert got == status, "%s %s: %d, not %d: %s" % (method, path, got, status, answer)
            assert kind is None or answer["error"]["type"] == kind, "%s %s: %s" % (method, path, answer)
            equal(answer["error"]["code"], status)
        _, answer, headers = server.ask("DELETE", "/v1/namespaces")
        equal((headers["Allow"], answer["error"]["message"]), ("GET, POST", "This path takes GET, POST"))
        assert "1 MiB" in server.ask("POST", "/v1/namespaces", " " * (2 << 20))[1]["error"]["message"]
        equal(server.ask("POST", "/v1/namespaces/ns/tables", {"name": "t", "schema": schema})[0], 200)
        for path, body, words in (("", {"kind": "append", "data-filez": []}, "data-filez"),
                                  ("", {"kind": "append", "fence": {"of": {"a": "b"}, "number": "c", "at-most": 1, "tp": 1}}, "tp"),
                                  ("?resnt=true", {"kind": "append", "data-files": []}, "resnt"),
                                  ("", {"data-files": []}, "merge-append"), ("", {"kind": "apend"}, '"apend": it is one of append'),
                                  ("", {"kind": "append", "commit-id": "x" * 257}, "1 to 256 bytes")):
            status, answer, _ = server.ask("POST", "/v1/namespaces/ns/tables/t/write-results" + path, body)
            assert status == 400 and words in answer["error"]["message"], (status, answer)
        stale = {"requirements": [{"type": "assert-current-schema-id", "current-schema-id": 7}], "updates": []}
        status, answer, _ = server.ask("POST", "/v1/namespaces/ns/tables/t", stale)
        equal((status, answer["error"]["type"]), (409, "CommitFailedException"))


def view_version(sql, dialect="spark", version=1):
    from pyiceberg.view.metadata import SQLViewRepresentation, ViewVersion
    return ViewVersion(version_id=version, schema_id=0, timestamp_ms=1000 + version, summary={"engine-name": "test"},
                       representations=[SQLViewRepresentation(type="sql", sql=sql, dialect=dialect)], default_namespace=["ns"])


def views():
    from pyiceberg import exceptions
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField
    schema = Schema(NestedField(1, "id", LongType(), required=False))
    with Workshop() as shop, Server(shop) as server:
        catalog = server.catalog()
        catalog.create_namespace("ns")
        catalog.create_table("ns.t", schema=rows().schema)
        made = catalog.create_view("ns.v", schema, view_version("select id from t"), properties={"comment": "c"})
        loaded = catalog.load_view("ns.v")
        equal((loaded.metadata.view_uuid, loaded.metadata.current_version_id, loaded.metadata.properties["comment"]),
              (made.metadata.view_uuid, 1, "c"))
        equal(loaded.metadata.versions[0].representations[0].root.sql, "select id from t")
        equal((catalog.list_views("ns"), catalog.list_tables("ns")), ([("ns", "v")], [("ns", "t")]))
        equal((catalog.view_exists("ns.v"), catalog.view_exists("ns.t"), catalog.table_exists("ns.v")), (True, False, False))
        for make in (lambda: catalog.create_view("ns.v", schema, view_version("x")), lambda: catalog.create_view("ns.t", schema, view_version("x")),
                     lambda: catalog.create_table("ns.v", schema=rows().schema)):
            try:
                make()
                raise AssertionError("a name was given twice")
            except (exceptions.ViewAlreadyExistsError, exceptions.TableAlreadyExistsError):
                pass
        path = "/v1/namespaces/ns/views/v"
        status, body, _ = server.ask("GET", path)
        location = body["metadata-location"]
        assert location.endswith(".gz.metadata.json") and status == 200, body
        version = {"version-id": 1, "schema-id": 0, "timestamp-ms": 5, "summary": {}, "default-namespace": ["ns"],
                   "representations": [{"type": "sql", "sql": "select 2", "dialect": "spark"}]}
        change = {"requirements": [{"type": "assert-view-uuid", "uuid": made.metadata.view_uuid}],
                  "updates": [{"action": "add-view-version", "view-version": version},
                              {"action": "set-current-view-version", "view-version-id": -1}]}
        status, body, _ = server.ask("POST", path, change)
        equal((status, body["metadata"]["current-version-id"], len(body["metadata"]["version-log"])), (200, 2, 2))
        def replace(i):
            mine = json.loads(json.dumps(change))
            mine["updates"][0]["view-version"]["representations"][0]["sql"] = "select %d" % (100 + i)
            return server.ask("POST", path, mine)[0]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            equal(list(pool.map(replace, range(8))), [200] * 8)
        equal(len(server.ask("GET", path)[1]["metadata"]["versions"]), 10)
        status, body, _ = server.ask("POST", path, dict(change, requirements=[{"type": "assert-view-uuid", "uuid": "other"}]))
        equal((status, body["error"]["type"]), (409, "CommitFailedException"))
        version["representations"][0]["dialect"] = "trino"
        status, body, _ = server.ask("POST", path, change)
        equal((status, "loss of view dialects" in body["error"]["message"]), (400, True))
        equal(server.ask("POST", "/v1/namespaces/ns/register-view", {"name": "r", "metadata-location": location})[0], 200)
        rename = {"source": {"namespace": ["ns"], "name": "r"}, "destination": {"namespace": ["ns"], "name": "t"}}
        status, body, _ = server.ask("POST", "/v1/views/rename", rename)
        equal((status, body["error"]["message"]), (409, "Cannot rename ns.r to ns.t. Table already exists"))
        rename["destination"]["name"] = "w"
        equal(server.ask("POST", "/v1/views/rename", rename)[0], 204)
        equal(sorted(name for _, name in catalog.list_views("ns")), ["v", "w"])
        catalog.drop_view("ns.w")
        equal(server.ask("DELETE", "/v1/namespaces/ns/views/w")[1]["error"]["type"], "NoSuchViewException")
        equal(shop.tarn("-c", "sqlite:tarn.db", "ls", "ns").out.split(), ["ns.t"])


def set_property(table, uuid, value):
    return {"identifier": {"namespace": ["ns"], "name": table}, "requirements": [{"type": "assert-table-uuid", "uuid": uuid}],
            "updates": [{"action": "set-properties", "updates": {"k": value}}]}


def several_tables_at_once():
    with Workshop() as shop, Server(shop) as server:
        catalog = server.catalog()
        catalog.create_namespace("ns")
        uuids = {name: str(catalog.create_table("ns." + name, schema=rows().schema).metadata.table_uuid) for name in "ab"}

        def commit(*changes):
            status, body, _ = server.ask("POST", "/v1/transactions/commit", {"table-changes": list(changes)})
            return status, body and body["error"]["type"]

        def values():
            return [catalog.load_table("ns." + name).properties.get("k") for name in "ab"]
        equal(commit(set_property("a", uuids["a"], "1"), set_property("b", uuids["b"], "1")), (204, None))
        equal(values(), ["1", "1"])
        equal(commit(set_property("a", uuids["a"], "2"), set_property("b", uuids["a"], "2")), (409, "CommitFailedException"))
        equal(commit(set_property("a", uuids["a"], "2"), set_property("c", uuids["a"], "2")), (404, "NoSuchTableException"))
        equal(commit(set_property("a", uuids["a"], "2"), set_property("a", uuids["a"], "3")), (400, "BadRequestException"))
        equal(commit(), (400, "BadRequestException"))
        equal(values(), ["1", "1"])
        with concurrent.futures.ThreadPoolExecutor(8) as pool:  # each pair of values stays a pair
            done = [pool.submit(commit, *[set_property(name, uuids[name], str(i)) for name in order])
                    for i, order in enumerate(["ab", "ba"] * 8)]
            equal({future.result()[0] for future in done}, {204})
        first, second = values()
        equal(first, second)
        status, body, _ = server.ask("POST", "/v1/namespaces/ns/tables/a/unregister", "")
        equal((status, body["metadata"]["table-uuid"], os.path.exists(body["metadata-location"])), (200, uuids["a"], True))
        equal([catalog.table_exists("ns.a"), catalog.table_exists("ns.b")], [False, True])
        catalog.register_table("ns.a", body["metadata-location"])
        equal(values(), [first, first])


def requests_are_done_once():
    """Under one key: by the answer that is held, and after a restart by what a commit left."""
    import uuid
    schema = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}
    with Workshop() as shop:
        with Server(shop) as server:
            def ask(key, method, path, body=None):
                status, answer, _ = server.ask(method, path, body, **{"Idempotency-Key": str(key)})
                return status, answer
            equal(server.ask("GET", "/v1/config")[1]["idempotency-key-lifetime"], "PT30M")
            keys = [uuid.uuid4() for _ in range(8)]
            space, table = {"namespace": ["ns"]}, {"name": "t", "schema": schema}
            for _ in range(2):
                equal(ask(keys[0], "POST", "/v1/namespaces", space)[0], 200)
            equal(ask(keys[1], "POST", "/v1/namespaces", space)[0], 409)
            equal(ask(keys[0], "POST", "/v1/namespaces", {"namespace": ["other"]})[0], 400)
            equal(ask("no-key", "POST", "/v1/namespaces", space)[0], 400)
            made = [ask(keys[2], "POST", "/v1/namespaces/ns/tables", table) for _ in range(2)]
            equal([status for status, _ in made], [200, 200])
            equal(made[0][1]["metadata"], made[1][1]["metadata"])
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                done = [pool.submit(ask, keys[3], "POST", "/v1/namespaces/ns/tables", dict(table, name="u")) for _ in range(16)]
                equal({(f.result()[0], f.result()[1]["metadata"]["table-uuid"]) for f in done},
                      {(200, done[0].result()[1]["metadata"]["table-uuid"])})
            for _ in range(2):
                equal(ask(keys[4], "DELETE", "/v1/namespaces/ns/tables/u")[0], 204)
            equal(ask(keys[5], "DELETE", "/v1/namespaces/ns/tables/u")[0], 404)
            uid, place = made[0][1]["metadata"]["table-uuid"], made[0][1]["metadata"]["location"]
            server.catalog().load_table("ns.t").append(rows(1).select(["id"]))
            snapshot = server.ask("GET", "/v1/namespaces/ns/tables/t")[1]["metadata"]["snapshots"][0]
            commit = {"requirements": [{"type": "assert-table-uuid", "uuid": uid},
                                       {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}],
                      "updates": [{"action": "add-snapshot", "snapshot": snapshot},
                                  {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": snapshot["snapshot-id"]}]}
            create = {"requirements": [{"type": "assert-create"}],
                      "updates": [{"action": "assign-uuid", "uuid": str(uuid.uuid4())}, {"action": "upgrade-format-version", "format-version": 2},
                                  {"action": "add-schema", "schema": schema}, {"action": "set-current-schema", "schema-id": -1},
                                  {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}}, {"action": "set-default-spec", "spec-id": -1},
                                  {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
                                  {"action": "set-default-sort-order", "sort-order-id": -1},
                                  {"action": "set-location", "location": place + "2"}, {"action": "set-properties", "updates": {}}]}
            equal(ask(keys[6], "POST", "/v1/namespaces/ns/tables/w", create)[0], 200)
        with Server(shop) as server:
            equal(ask(keys[6], "POST", "/v1/namespaces/ns/tables/w", create)[0], 200)
            equal(server.ask("POST", "/v1/namespaces/ns/tables/w", create)[0], 409)
            status, answer = ask(keys[7], "POST", "/v1/namespaces/ns/tables/t", commit)
            equal((status, len(answer["metadata"]["snapshots"])), (200, 1))
            equal(server.ask("POST", "/v1/namespaces/ns/tables/t", commit)[0], 409)
            both = [dict(commit, identifier={"namespace": ["ns"], "name": "t"}), dict(create, identifier={"namespace": ["ns"], "name": "w"})]
            equal(ask(uuid.uuid4(), "POST", "/v1/transactions/commit", {"table-changes": both})[0], 204)
            equal(server.ask("POST", "/v1/transactions/commit", {"table-changes": both})[0], 409)


def a_dir_catalog_offers_less():
    """What it cannot do is in no list of endpoints, and is refused by name."""
    with Workshop() as shop:
        os.mkdir(shop.path("lake"))
        with Server(shop, catalog="dir:" + shop.path("lake")) as server:
            catalog = server.catalog()
            catalog.create_namespace("ns")
            uuids = [str(catalog.create_table("ns." + name, schema=rows().schema).metadata.table_uuid) for name in "ab"]
            catalog.load_table("ns.a").append(rows(1, 2))
            equal(catalog.load_table("ns.a").scan().to_arrow()["id"].to_pylist(), [1, 2])
            endpoints = server.ask("GET", "/v1/config")[1]["endpoints"]
            assert not [e for e in endpoints if "view" in e or "transactions" in e or "unregister" in e], endpoints
            both = {"table-changes": [set_property("a", uuids[0], "1"), set_property("b", uuids[1], "1")]}
            for method, path, body in (("GET", "/v1/namespaces/ns/views", None), ("GET", "/v1/namespaces/ns/views/v", None),
                                       ("POST", "/v1/transactions/commit", both), ("POST", "/v1/namespaces/ns/tables/a/unregister", "")):
                status, answer, _ = server.ask(method, path, body)
                equal((path, status, answer["error"]["type"]), (path, 406, "UnsupportedOperationException"))
            one = {"table-changes": both["table-changes"][:1]}
            equal(server.ask("POST", "/v1/transactions/commit", one)[0], 204)
            equal([catalog.load_table("ns." + name).properties.get("k") for name in "ab"], ["1", None])


def scans_are_planned():
    """Plans of the service and of the client name the same files, and give the same rows."""
    import pyiceberg.expressions as e
    from pyiceberg.catalog.rest import RestCatalog
    with Workshop() as shop, Server(shop) as server:
        server.catalog().create_namespace("ns")
        shop.write("rows.ndjson", "".join(
            '{"id": %d, "s": "%s%d", "d": "2024-01-0%d", "x": %s, "dec": "%d.25"}\n'
            % (i, "abcd"[i % 4], i, 1 + i % 5, i / 2 if i % 7 else "null", i) for i in range(200)))
        shop.tarn("create", "ns.t", "id long, s string, d date, x double, dec decimal(9,2)", "--partition-by", "d",
                  "--property", "write.delete.mode=merge-on-read")
        shop.tarn("ingest", "ns.t", "rows.ndjson")
        shop.tarn("delete", "ns.t", "--where", "id < 20")
        local, remote = (RestCatalog("rest", uri=server.url, **{"scan-planning-mode": mode}).load_table("ns.t")
                         for mode in ("client", "server"))
        assert remote.catalog.supports_server_side_planning()
        for row_filter in (
                e.AlwaysTrue(), e.AlwaysFalse(), e.EqualTo("id", 50), e.And(e.GreaterThan("id", 30), e.LessThan("id", 60)),
                e.In("s", ["a24", "b25", "zz"]), e.StartsWith("s", "c"), e.NotStartsWith("s", "a"), e.IsNull("x"), e.Not(e.IsNull("x")),
                e.EqualTo("d", "2024-01-03"), e.NotEqualTo("d", "2024-01-03"), e.Or(e.EqualTo("d", "2024-01-03"), e.EqualTo("dec", "77.25")),
                e.GreaterThan("x", 70.5), e.Not(e.Or(e.EqualTo("id", 7), e.GreaterThan("id", 100))), e.NotIn("id", [21, 22])):
            mine, theirs = remote.scan(row_filter=row_filter), local.scan(row_filter=row_filter)
            equal(sorted(mine.to_arrow()["id"].to_pylist()), sorted(theirs.to_arrow()["id"].to_pylist()))
            equal(mine.count(), theirs.count())
            equal(*[sorted((task.file.file_path, sorted(d.file_path for d in task.delete_files)) for task in scan.plan_files())
                    for scan in (mine, theirs)])
        path = "/v1/namespaces/ns/tables/t"
        status, plan, _ = server.ask("POST", path + "/plan", {"filter": {"type": "gt", "term": "id", "value": 5}})
        equal((status, plan["status"], len(plan["file-scan-tasks"]), len(plan["delete-files"]), plan["plan-tasks"]), (200, "completed", 5, 5, []))
        shop.tarn("delete", "ns.t", "--where", "d = '2024-01-02'")
        equal(server.ask("GET", path + "/plan/" + plan["plan-id"])[1], plan)  # its snapshot stays
        equal(server.ask("DELETE", path + "/plan/" + plan["plan-id"])[0], 204)
        part = dict(json.loads(bytes.fromhex(plan["plan-id"])), **{"tarn-from": 1, "tarn-to": 3})  # as plans of many files are cut
        status, tasks, _ = server.ask("POST", path + "/tasks", {"plan-task": json.dumps(part)})
        equal((status, tasks["file-scan-tasks"][1]["data-file"]), (200, plan["file-scan-tasks"][2]["data-file"]))
        equal((len(tasks["file-scan-tasks"]), [t["delete-file-references"] for t in tasks["file-scan-tasks"]]), (2, [[0], [1]]))
        for method, tail, body, status, kind in (
                ("GET", "/plan/7b7d", None, 404, "NoSuchPlanIdException"), ("DELETE", "/plan/zz", None, 404, "NoSuchPlanIdException"),
                ("POST", "/tasks", {"plan-task": "{}"}, 404, "NoSuchPlanTaskException"), ("POST", "/tasks", {}, 400, "BadRequestException"),
                ("POST", "/plan", {"filter": {"type": "eq", "term": "nope", "value": 1}}, 400, "BadRequestException"),
                ("POST", "/plan", {"select": ["nope"]}, 400, "BadRequestException"), ("POST", "/plan", {"snapshot-id": 5}, 400, None),
                ("POST", "/plan", {"start-snapshot-id": 5}, 400, "BadRequestException")):
            got, answer, _ = server.ask(method, path + tail, body)
            assert got == status and (kind is None or answer["error"]["type"] == kind), "%s %s: %d %s" % (method, tail, got, answer)
        equal(server.ask("POST", "/v1/namespaces/ns/tables/none/plan", {})[1]["error"]["type"], "NoSuchTableException")
        grown = server.catalog().create_table("ns.grown", schema=rows().schema)
        equal(server.ask("POST", "/v1/namespaces/ns/tables/grown/plan", {})[1]["file-scan-tasks"], [])
        for i in range(3):
            grown.append(rows(*range(i + 1)))
        ids = [s.snapshot_id for s in grown.refresh().snapshots()]

        def counts(**more):
            answer = server.ask("POST", "/v1/namespaces/ns/tables/grown/plan", {k.replace("_", "-"): v for k, v in more.items()})[1]
            return sorted(task["data-file"]["record-count"] for task in answer["file-scan-tasks"])
        equal(counts(), [1, 2, 3])
        equal(counts(snapshot_id=ids[1], use_snapshot_schema=True), [1, 2])
        equal(counts(start_snapshot_id=ids[0], end_snapshot_id=ids[2]), [2, 3])  # what was appended between
        equal(counts(end_snapshot_id=ids[1]), [1, 2])


def our_client_conforms():
    """The catalogs' conformance suite, over our REST client and this service."""
    program = os.environ.get("CONFORMANCE") or os.path.join(os.path.dirname(harness.binary()), "catalog_conformance")
    with Workshop() as shop, Server(shop) as server:
        done = subprocess.run([program], capture_output=True, text=True, timeout=harness.SECONDS,
                              env={**os.environ, "TARN_TEST_REST": server.url, "TARN_TEST_REST_WAREHOUSE": shop.path("warehouse")})
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]


def duckdb_attaches():
    with Workshop() as shop, Server(shop) as server:
        db = harness.duckdb_connection("httpfs")
        db.execute("attach '' as ice (type iceberg, endpoint '%s', authorization_type 'none')" % server.url)
        db.execute("create schema ice.ns")
        db.execute("create table ice.ns.t (id bigint, s varchar, d decimal(9,2), ts timestamp)")
        db.execute("insert into ice.ns.t select range, 'row ' || range, 1.5, timestamp '2024-01-01' from range(1000)")
        db.execute("delete from ice.ns.t where id >= 500")
        db.execute("update ice.ns.t set s = 'new' where id = 1")
        want = (500, 124750, "new")
        equal(db.execute("select count(*), sum(id), max(s) filter (id = 1) from ice.ns.t").fetchone(), want)
        ours = shop.cat("ns.t").rows
        equal((len(ours), sum(row["id"] for row in ours), next(row["s"] for row in ours if row["id"] == 1)), want)
        db.execute("create table ice.ns.u as select 7::bigint as x")
        db.execute("begin")  # two tables in one commit
        db.execute("insert into ice.ns.u values (8)")
        db.execute("insert into ice.ns.t values (1000, 'last', 0, null)")
        db.execute("commit")
        equal(db.execute("select sum(x) from ice.ns.u").fetchone(), (15,))
        shop.tarn("delete", "ns.t", "--where", "id < 500")
        equal(db.execute("select id, s from ice.ns.t").fetchall(), [(1000, "last")])
        db.execute("drop table ice.ns.u")
        equal(server.catalog().list_tables("ns"), [("ns", "t")])


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
                equal(ask("reader-token", "POST", "/v1/namespaces", {"namespace": ns}), 403)
                equal(ask("ops-token", "POST", "/v1/namespaces", {"namespace": ns}), 200)
            equal(server.ask("GET", "/v1/namespaces", Authorization="Bearer reader-token")[1]["namespaces"], [["a"]])
            equal(ask("reader-token", "GET", "/v1/namespaces/a%1Fb"), 200)
            equal(ask("reader-token", "GET", "/v1/namespaces/a"), 403)
            equal(ask("reader-token", "GET", "/v1/namespaces/z"), 404)
            status, answer, _ = server.ask("DELETE", "/v1/namespaces/a%1Fb", Authorization="Bearer reader-token")
            equal((status, answer["error"]["message"]), (403, "The caller reader may not do this: it takes the role admin in namespace a.b"))
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
            view = {"name": "v", "schema": schema, "properties": {}, "view-version": {
                "version-id": 1, "schema-id": 0, "timestamp-ms": 1, "summary": {}, "default-namespace": ["a"], "representations": []}}
            equal([ask(t, "POST", "/v1/namespaces/a%1Fb/views", view) for t in (None, "reader-token", token)], [401, 403, 200])
            equal(ask(token, "POST", "/v1/namespaces/z/views", view), 404)
            equal([ask("reader-token", method, "/v1/namespaces/a%1Fb/views/v") for method in ("GET", "HEAD", "DELETE")], [200, 204, 403])
            equal(ask("reader-token", "POST", "/v1/views/rename", {"source": {"namespace": ["a", "b"], "name": "v"},
                                                                  "destination": {"namespace": ["a", "b"], "name": "w"}}), 403)
            change = {"identifier": {"namespace": ["a"], "name": "t"}, "requirements": [], "updates": []}
            alien = dict(change, identifier={"namespace": ["z"], "name": "t"})
            equal([ask(token, "POST", "/v1/transactions/commit", {"table-changes": [change, other]}) for other in (alien, change)], [404, 400])
            equal(ask("reader-token", "POST", "/v1/transactions/commit", {"table-changes": [change]}), 403)
            equal(ask("reader-token", "POST", "/v1/namespaces/a/tables/t/plan", {}), 403)
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


def tables_stay_in_the_warehouse():
    """What a client names lies in the warehouse, or where the service was told."""
    schema = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}
    with Workshop() as shop:
        outside = shop.path("elsewhere")
        make = lambda server, name, **more: server.ask("POST", "/v1/namespaces/ns/tables", {"name": name, "schema": schema, **more})[0]
        with Server(shop) as server:
            equal(server.ask("POST", "/v1/namespaces", {"namespace": ["ns"]})[0], 200)
            home = shop.path("warehouse")
            for place in (outside, "file://" + outside, home + "/../elsewhere", "/etc", home + "x/t", "s3://bucket/t"):
                equal(make(server, "t", location=place), 403)
                equal(make(server, "t", properties={"write.data.path": place}), 403)
                equal(make(server, "t", **{"stage-create": True, "location": place}), 403)
                equal(server.ask("POST", "/v1/namespaces", {"namespace": ["x"], "properties": {"location": place}})[0], 403)
                equal(server.ask("POST", "/v1/namespaces/ns/register", {"name": "r", "metadata-location": place + "/m.metadata.json"})[0], 403)
            equal(make(server, "t", location="file://" + home + "/own/place"), 200)
            for update in ({"action": "set-location", "location": outside},
                           {"action": "set-properties", "updates": {"write.metadata.path": outside}}):
                sent = {"requirements": [], "updates": [update]}
                equal(server.ask("POST", "/v1/namespaces/ns/tables/t", sent)[0], 403)
                many = {"table-changes": [{"identifier": {"namespace": ["ns"], "name": "t"}, **sent}]}
                equal(server.ask("POST", "/v1/transactions/commit", many)[0], 403)
            assert not os.path.exists(outside)
            # what C texts would end at, and what no file system takes
            for place in (home + "/ns/a\0b", home + "/ns/a\nb", home + "/ns/" + "x" * 256, home + "/ns" + "/long" * 600):
                equal((place, make(server, "w", location=place)), (place, 400))
            equal([make(server, name) for name in ("a\0b", "x" * 300, "")], [400, 400, 400])
            equal(make(server, "w", properties={"write.data.path": ""}), 403)
            nowhere = {"requirements": [], "updates": [{"action": "set-location", "location": ""}]}
            equal(server.ask("POST", "/v1/namespaces/ns/tables/t", nowhere)[0], 403)
            for pair in ({"a": "b\0c"}, {"a\0b": "c"}):
                equal(make(server, "w", properties=pair), 400)
                equal(server.ask("POST", "/v1/namespaces/ns/properties", {"updates": pair})[0], 400)
                equal(server.ask("POST", "/v1/namespaces", {"namespace": ["nul"], "properties": pair})[0], 400)
                sent = {"requirements": [], "updates": [{"action": "set-properties", "updates": pair}]}
                equal(server.ask("POST", "/v1/namespaces/ns/tables/t", sent)[0], 400)
        with Server(shop, "--allow-location", "/nowhere, " + outside) as server:
            equal(make(server, "u", location=outside + "/u"), 200)
            equal(make(server, "v", location="/etc/v"), 403)


def files_of(shop, table):
    return [json.loads(line)["file_path"] for line in shop.tarn("cat", table + ".files").out.splitlines()]


def namespaces_are_safe_from_each_other():
    """Who may write one namespace cannot have the service remove, merge or name files of another's tables."""
    schema = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}
    access = {"tokens": [{"name": "w", "token": "of-a", "grants": [{"namespace": "a", "role": "admin"}]},
                         {"name": "o", "token": "of-all", "grants": [{"namespace": "*", "role": "admin"}]}]}
    with Workshop() as shop:
        shop.write("access.json", json.dumps(access))
        shop.write("rows.ndjson", '{"id": 1}\n')
        shop.tarn("create", "a.x", "id long")
        shop.tarn("create", "b.t", "id long")
        for _ in range(3):
            shop.tarn("ingest", "b.t", "rows.ndjson")
        home = shop.path("warehouse")
        theirs = json.loads(shop.tarn("describe", "b.t", "--json").out)
        with Server(shop, "--access", "access.json") as server:
            def ask(token, method, path, body=None):
                return server.ask(method, "/v1/namespaces/" + path, body, Authorization="Bearer " + token)[0]
            make = lambda token, name, **more: ask(token, "POST", "a/tables", {"name": name, "schema": schema, **more})
            for place in (theirs["location"], "file://" + theirs["location"], theirs["location"] + "/data", home, home + "/", home + "/a",
                          home + "/b", home + "/b/new", home + "/a/x", home + "/a/x/data", home + "//b/t", home + "/c/t"):
                equal((place, make("of-a", "evil", location=place)), (place, 403))
                equal((place, make("of-a", "evil", properties={"write.data.path": place})), (place, 403))
                equal((place, make("of-a", "evil", properties={"write.metadata.path": place})), (place, 403))
                equal((place, make("of-a", "evil", **{"stage-create": True, "location": place})), (place, 403))
                for update in ({"action": "set-location", "location": place}, {"action": "set-properties", "updates": {"write.data.path": place}}):
                    if not place.startswith(home + "/a/x"):
                        equal((place, ask("of-a", "POST", "a/tables/x", {"requirements": [], "updates": [update]})), (place, 403))
                if place not in (home + "/a", home + "/b/new", home + "/c/t"):
                    equal((place, make("of-all", "evil", location=place)), (place, 403))
                if not place.startswith(home + "/a"):
                    equal((place, ask("of-a", "POST", "a/properties", {"updates": {"location": place}})), (place, 403))
            equal(ask("of-a", "POST", "a/register", {"name": "reg", "metadata-location": theirs["metadata-location"]}), 403)
            equal([make("of-a", "mine"), make("of-a", "placed", location=home + "/a/deeper/placed"),
                   make("of-a", "again", location=home + "/a/again")], [200, 200, 200])
            same = {"requirements": [], "updates": [{"action": "set-location", "location": home + "/a/x/"}]}
            equal(ask("of-a", "POST", "a/tables/x", same), 200)
            # a snapshot of b.t in a table of a: its list would go with the snapshot
            sent = json.load(open(theirs["metadata-location"].removeprefix("file://")))["snapshots"][0]
            equal(ask("of-a", "POST", "a/tables/mine", {"requirements": [], "updates": [{"action": "add-snapshot", "snapshot": sent}]}), 400)
            # whoever may do everything may give a table another name: what is dropped under it is not removed
            equal(ask("of-all", "POST", "a/register", {"name": "reg", "metadata-location": theirs["metadata-location"]}), 200)
            equal(ask("of-a", "DELETE", "a/tables/reg?purgeRequested=true"), 204)
            for name in ("mine", "placed", "x"):
                equal(ask("of-a", "DELETE", "a/tables/" + name + "?purgeRequested=true"), 204)
        equal(shop.tarn("cat", "b.t", "--count").out.strip(), "3")
        assert all(os.path.exists(path.removeprefix("file://")) for path in files_of(shop, "b.t"))
        shop.tarn("check", "b.t")
        assert not os.path.exists(home + "/a/deeper/placed"), "a table's own files are left over"


def a_service_over_a_service():
    """Where tables go is the lower one's to say."""
    schema = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}
    with Workshop() as shop, Server(shop) as below, Server(shop, catalog=below.url) as server:
        equal(server.ask("POST", "/v1/namespaces", {"namespace": ["ns"]})[0], 200)
        equal(server.ask("POST", "/v1/namespaces/ns/tables", {"name": "t", "schema": schema})[0], 200)
        equal(server.ask("GET", "/v1/namespaces/ns/tables/t")[1], below.ask("GET", "/v1/namespaces/ns/tables/t")[1])


def places_of_the_wrong_kind():
    """Files where folders belong, folders and nothing where files do: the request is wrong, and no namespace or table is missing."""
    schema = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}
    version = {"version-id": 1, "schema-id": 0, "timestamp-ms": 1, "summary": {}, "default-namespace": ["ns"],
               "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}]}
    with Workshop() as shop, Server(shop) as server:
        home, file = shop.path("warehouse"), shop.path("warehouse", "file")
        os.makedirs(os.path.join(home, "ns"))
        os.makedirs(os.path.join(home, "folder"))
        for path in (file, os.path.join(home, "ns", "taken")):
            with open(path, "w") as out:
                out.write("x")
        equal([server.ask("POST", "/v1/namespaces", body)[0] for body in (
            {"namespace": ["ns"]}, {"namespace": ["in_file"], "properties": {"location": file}})], [200, 200])
        make = {"name": "t", "schema": schema}
        equal(server.ask("POST", "/v1/namespaces/ns/tables", dict(make, name="good"))[0], 200)
        view = {"name": "v", "schema": schema, "properties": {}, "view-version": version}
        move = {"requirements": [], "updates": [{"action": "set-location", "location": file}]}
        staged = {"requirements": [{"type": "assert-create"}], "updates": [
            {"action": "assign-uuid", "uuid": "5f9c2c8e-0000-4000-8000-000000000001"}, {"action": "upgrade-format-version", "format-version": 2},
            {"action": "add-schema", "schema": schema}, {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}}, {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}}, {"action": "set-default-sort-order", "sort-order-id": -1},
            {"action": "set-location", "location": file}]}
        is_file = file + " is a file"
        for path, body, words in (
                ("ns/tables", dict(make, location=file), is_file),
                ("ns/tables", dict(make, location=file + "/x/y"), is_file),
                ("ns/tables", dict(make, location=file, **{"stage-create": True}), is_file),
                ("ns/tables", dict(make, properties={"write.metadata.path": file}), is_file),
                ("ns/tables", dict(make, name="taken"), "taken is a file"),
                ("in_file/tables", make, is_file),
                ("ns/tables/good", move, is_file),
                ("ns/tables/t", staged, is_file),
                ("ns/views", dict(view, location=file), is_file),
                ("ns/views", dict(view, name="taken"), "taken is a file"),
                ("ns/register", {"name": "t", "metadata-location": home + "/folder"}, "folder was not a file"),
                ("ns/register", {"name": "t", "metadata-location": file + "/m.metadata.json"}, file + "/m.metadata.json"),
                ("ns/register", {"name": "t", "metadata-location": home + "/none.metadata.json"}, "none.metadata.json"),
                ("ns/register-view", {"name": "t", "metadata-location": home + "/folder"}, "folder was not a file"),
                ("ns/register-view", {"name": "t", "metadata-location": home + "/none.metadata.json"}, "none.metadata.json")):
            status, answer, _ = server.ask("POST", "/v1/namespaces/" + path, body)
            assert status == 400 and words in answer["error"]["message"], (path, body, status, answer)
        for what in ("register", "register-view"):
            status, answer, _ = server.ask("POST", "/v1/namespaces/nope/" + what, {"name": "t", "metadata-location": home + "/none"})
            equal((status, answer["error"]["type"]), (404, "NoSuchNamespaceException"))
        equal(server.ask("GET", "/v1/namespaces/ns/tables/good")[0], 200)
        equal(server.catalog().list_tables("ns"), [("ns", "good")])


def lies_are_refused():
    """What a commit or a registration names must be there, at home, and what it is said to be."""
    with Workshop() as shop, Server(shop) as server:
        catalog = server.catalog()
        catalog.create_namespace("ns")
        table = catalog.create_table("ns.t", schema=rows().schema)
        table.append(rows(1))
        head = server.ask("GET", "/v1/namespaces/ns/tables/t")[1]["metadata"]["snapshots"][0]
        shop.write("elsewhere.avro", "no Avro")
        junk = os.path.join(os.path.dirname(harness.local(head["manifest-list"])), "junk.avro")
        with open(junk, "w") as file:
            file.write("no Avro")

        def commit(**more):
            snapshot = {**head, "snapshot-id": 5, "parent-snapshot-id": head["snapshot-id"], "sequence-number": 2,
                        "timestamp-ms": head["timestamp-ms"] + 1, **more}
            status, body, _ = server.ask("POST", "/v1/namespaces/ns/tables/t", {"requirements": [], "updates": [
                {"action": "add-snapshot", "snapshot": snapshot},
                {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 5}]})
            return status, body["error"]["message"] if "error" in body else None
        for place, word in ((junk + "x", "does not exist"), (junk, "cannot be read"), (shop.path("elsewhere.avro"), "outside")):
            status, message = commit(**{"manifest-list": place})
            assert status == 400 and place in message and word in message, message
        equal(commit(**{"schema-id": 9})[0], 400)
        equal(commit(**{"parent-snapshot-id": 77})[0], 409)
        equal(server.ask("POST", "/v1/namespaces/ns/tables/t", {
            "identifier": {"namespace": ["ns"], "name": "u"}, "requirements": [], "updates": []})[0], 400)
        status, body, _ = server.ask("POST", "/v1/namespaces/ns/register", {"name": "r", "metadata-location": junk})
        assert status == 400 and "junk" in body["error"]["message"], body
        equal(catalog.load_table("ns.t").scan().to_arrow().num_rows, 1)


def wrong_starts():
    with Workshop() as shop:
        shop.write("empty.json", "")
        shop.write("nobody.json", "{}")
        shop.write("words.json", '{"tokenz": []}')
        shop.write("cut.json", '{"tokens": [')
        shop.write("role.json", json.dumps({"tokens": [{"name": "x", "token": "hidden", "grants": [{"namespace": "a", "role": "boss"}]}]}))
        for options, words in ((("--listen", "localhost:x"), ["HOST:PORT"]), (("--listen", "0.0.0.0:0"), ["--access"]),
                               (("--listen", "127.0.0.1:99999"), ["HOST:PORT"]), (("--access", "no.json"), ["no.json"]),
                               (("--access", "empty.json"), ["empty.json"]), (("--access", "nobody.json"), ["nobody"]),
                               (("--access", "role.json"), ["role.json", "boss", "tokens[0]"]),
                               (("--access", "words.json"), ["words.json", "tokenz"]), (("--access", "cut.json"), ["cut.json", "line 1"]),
                               (("--listen", "foo"), ["foo is no HOST:PORT"]), (("extra",), ["no arguments"]),
                               (("--connections", "0"), ["--connections", "from 1"]), (("--body-mb", "0"), ["--body-mb"]),
                               (("--allow-location", "/x, rel"), ['"rel"'])):
            answer = shop.tarn("serve", *options, check=False)
            harness.must_refuse(answer, *words)
            assert "hidden" not in answer.err
            if options[0] != "extra":  # what needs no opening is found without
                looked = shop.tarn("serve", "--check-config", *options, check=False)
                equal((looked.status, looked.out, looked.err), (answer.status, "", answer.err))
        for options in (("--access", "none"), ("--config", "none"), ("--access-log", "none/x"), ("--intake", "/proc/none/x"),
                        ("--tls-cert", "none", "--tls-key", "none")):
            answer = shop.tarn("serve", "--listen", "127.0.0.1:0", *options, check=False)
            equal(answer.status, 3)
            harness.must_refuse(answer, "none", "no such file")
        harness.must_refuse(shop.tarn("serve", "--check-config", "-c", "nonsense", check=False), "nonsense", "no catalog")


def schemas_keep_rows_readable():
    """Goal: no client can set a schema by which rows that are there cannot be read, and each change that a client's own rules allow is taken. Method:
    what PyIceberg's schema update offers, on a table with rows; then schemas as a client without rules may send them, one wrong thing each, after which
    the table is as it was."""
    import pyarrow as pa
    from pyiceberg.exceptions import BadRequestError
    from pyiceberg.types import BinaryType, BooleanType, DecimalType, DoubleType, IntegerType, LongType, StringType
    with Workshop() as shop, Server(shop) as server:
        catalog = server.catalog()
        catalog.create_namespace("ns")
        arrow = pa.schema([pa.field("id", pa.int64(), nullable=False), ("i", pa.int32()), ("f", pa.float32()), ("d", pa.decimal128(9, 2)), ("s", pa.string()),
                           ("p", pa.string()), ("o", pa.int64()), ("n", pa.struct([("x", pa.int32()), ("y", pa.int32())])), ("gone", pa.int64())])
        shop.tarn("create", "ns.t", "id long not null, i int, f float, d decimal(9,2), s string, p string, o long, n struct<x: int, y: int>, gone long",
                  "--partition-by", "p", "--sort-by", "o", "--identifier", "id")
        row = {"id": 1, "i": 2, "f": 0.5, "d": None, "s": "text", "p": "a", "o": 3, "n": {"x": 4, "y": 5}, "gone": 6}
        table = catalog.load_table("ns.t")
        table.append(pa.Table.from_pylist([row], schema=arrow))
        with table.update_schema() as change:
            change.update_column("i", LongType()).update_column("f", DoubleType()).update_column("d", DecimalType(20, 2)).update_column(("n", "x"), LongType())
            change.delete_column("gone").rename_column("n", "nested").move_first("s").add_column("more", IntegerType(), "text of it")
        with table.update_schema() as change:
            change.add_column("gone", StringType()).update_column("s", BinaryType())
        with table.update_schema() as change:
            change.update_column("s", StringType()).make_column_optional("o")
        with table.update_schema(allow_incompatible_changes=True) as change:
            change.add_column("needed", BooleanType(), required=True).update_column("nested", required=True)
        with table.update_schema() as change:
            change.delete_column("needed").rename_column("nested", "n")
        with table.update_schema() as change:
            change.make_column_optional("n")
        with table.update_schema(allow_incompatible_changes=True) as change:
            change.set_identifier_fields()
            change.make_column_optional("id")
        with table.update_schema(allow_incompatible_changes=True) as change:
            change.update_column("id", required=True).set_identifier_fields("id")
        want = {"s": "text", "id": 1, "i": 2, "f": 0.5, "d": None, "p": "a", "o": 3, "n": {"x": 4, "y": 5}, "more": None, "gone": None}
        want = [want, {**want, "id": 2, "i": 2 ** 40, "gone": "x"}]
        shop.write("more.ndjson", json.dumps(want[1]) + "\n")
        shop.tarn("ingest", "ns.t", "more.ndjson")

        def unchanged():
            equal(sorted(shop.cat("ns.t").rows, key=lambda r: r["id"]), want)
            equal(sorted(catalog.load_table("ns.t").scan().to_arrow().to_pylist(), key=lambda r: r["id"]), want)
        unchanged()
        schema = catalog.load_table("ns.t").schema().model_dump(mode="json", by_alias=True)

        def changed(name, **members):
            out = json.loads(json.dumps(schema))
            out["fields"] = [f if f["name"] != name else {**f, **members} for f in out["fields"] if f["name"] != name or members]
            return out
        identity = {"type": "struct", "fields": [{"id": 10, "name": "x", "required": False, "type": "string"}]}
        for sent, word in ((changed("id", type="string"), "id"), (changed("i", type="int"), "int"), (changed("i", type="boolean"), "boolean"),
                           (changed("s", type="long"), "string"), (changed("n", type="string"), "struct"), (changed("n", type=identity), "x"),
                           (changed("d", type="decimal(9, 2)"), "decimal"), (changed("more", id=9, type="string"), "(id 9)"),
                           (changed("id"), "named no field"), (changed("p"), "partition"), (changed("o"), "sort")):
            status, answer, _ = server.ask("POST", "/v1/namespaces/ns/tables/t", {"requirements": [], "updates": [
                {"action": "add-schema", "schema": {**sent, "schema-id": 99}}, {"action": "set-current-schema", "schema-id": -1}]})
            equal((status, answer["error"]["type"]), (400, "BadRequestException"))
            assert word in answer["error"]["message"], (word, answer)
            unchanged()
        try:
            with table.update_schema(allow_incompatible_changes=True) as change:
                change.update_column("o", StringType())
        except BadRequestError as error:
            assert "long cannot become string" in str(error), error
        else:
            raise AssertionError("it was taken")
        unchanged()


def a_new_catalog_is_told():
    """Where there was no catalog one is made, and that is said once: its name may be mistyped."""
    with Workshop() as shop:
        for said in (True, False):
            with Server(shop, catalog="sqlite:new.db") as server:
                server.process.send_signal(signal.SIGTERM)
                err = server.process.stderr.read()
            equal("there was no catalog at new.db: a new one was made" in err, said)


CASES = [b40, b41, a_whole_life, staged_tables_appear_with_their_rows, names_of_all_kinds, pages, unchanged_tables_are_not_sent_again, many_writers,
         transactions_on_a_stale_head, files_are_added_once,
         views, several_tables_at_once, requests_are_done_once, a_dir_catalog_offers_less, scans_are_planned, our_client_conforms,
         duckdb_attaches, wrong_requests, roles_and_tokens, tables_stay_in_the_warehouse, namespaces_are_safe_from_each_other,
         a_service_over_a_service, places_of_the_wrong_kind, lies_are_refused, wrong_starts, schemas_keep_rows_readable,
         a_new_catalog_is_told]


def main():
    harness.need("pyarrow", "pyiceberg", "duckdb_extension_httpfs")
    return harness.run_cases(CASES)


if __name__ == "__main__":
    sys.exit(main())
