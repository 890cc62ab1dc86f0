#!/usr/bin/env python3
"""A REST catalog for tests that plays faults: the endpoints of the Iceberg REST specification over PyIceberg's SqlCatalog, on
127.0.0.1. Faults are planned as Fault(method, pattern of the path, what, times); what is one of WHATS.

usage: rest_server.py FOLDER   serves a catalog in FOLDER until it is killed, and prints URL=... WAREHOUSE=...
"""
import collections
import http.server
import json
import os
import re
import sys
import threading
import time
import urllib.parse

SEPARATOR = "\x1f"
# "before": nothing is done. "after": it is done, and the answer goes wrong.
WHATS = ("lose-before", "lose-after", "500-before", "500-after", "502-after", "503-before", "429-before", "unknown-after", "cut-after",
         "junk-after", "html-after", "empty-after", "huge-before", "slow-after", "redirect-before", "401-before", "raw-before", "raw-after")


class Fault:
    def __init__(self, method, pattern, what, times=1, seconds=3, raw=b""):
        assert what in WHATS, what
        self.method, self.pattern, self.what, self.times, self.seconds = method, re.compile(pattern), what, times, seconds
        self.raw = raw  # a whole answer, head and all


class Refusal(Exception):
    def __init__(self, status, kind, message):
        super().__init__(message)
        self.status, self.kind = status, kind


Request = collections.namedtuple("Request", "method path query headers body")


class Server:
    """with Server(folder) as s: s.url, s.faults, s.requests, s.credential, s.overrides..."""

    def __init__(self, folder, locked=True):
        from pyiceberg.catalog.sql import SqlCatalog
        os.makedirs(os.path.join(folder, "warehouse"), exist_ok=True)
        self.warehouse = "file://" + os.path.join(folder, "warehouse")
        self.catalog = SqlCatalog("rest", uri="sqlite:///" + os.path.join(folder, "rest.db"), warehouse=self.warehouse)
        self.faults, self.requests = [], []
        self.defaults, self.overrides, self.endpoints = {}, {}, None
        self.credential, self.tokens, self.token_seconds = None, set(), 3600
        self.prefix, self.page, self.separator = "", 2, SEPARATOR
        self.config = {}
        self.lock = threading.Lock()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do(self):
                outer.serve(self)

            do_GET = do_POST = do_DELETE = do_HEAD = do

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = "http://127.0.0.1:%d" % self.http.server_port

    def __enter__(self):
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()

    def sent(self, method, pattern):
        return [r for r in self.requests if r.method == method and re.search(pattern, r.path)]

    def take_fault(self, method, path):
        for fault in self.faults:
            if fault.times > 0 and fault.method == method and fault.pattern.search(path):
                fault.times -= 1
                return fault
        return None

    # ---- one request ----

    def serve(self, handler):
        url = urllib.parse.urlsplit(handler.path)
        length = int(handler.headers.get("Content-Length") or 0)
        body = handler.rfile.read(length)
        request = Request(handler.command, url.path, dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True)),
                          {k.lower(): v for k, v in handler.headers.items()}, body)
        with self.lock:
            self.requests.append(request)
            fault = self.take_fault(request.method, request.path)
        what = fault.what if fault else ""
        if what.endswith("-before"):
            return self.play(handler, what, 200, {}, fault)
        try:
            with self.lock:
                status, answer = self.answer(request)
        except Refusal as refusal:
            status, answer = refusal.status, {"error": {"message": str(refusal), "type": refusal.kind, "code": refusal.status}}
        if fault:
            return self.play(handler, what, status, answer, fault)
        self.reply(handler, status, answer)

    def reply(self, handler, status, answer, headers=(), kind="application/json"):
        data = answer if isinstance(answer, bytes) else b"" if answer is None else json.dumps(answer).encode()
        handler.send_response(status)
        if status not in (204, 304):
            handler.send_header("Content-Type", kind)
            handler.send_header("Content-Length", str(len(data)))
        if isinstance(answer, dict) and answer.get("metadata-location"):
            handler.send_header("ETag", '"%s"' % os.path.basename(answer["metadata-location"]))
        for name, value in headers:
            handler.send_header(name, value)
        handler.end_headers()
        if handler.command != "HEAD" and status not in (204, 304):
            handler.wfile.write(data)

    def play(self, handler, what, status, answer, fault):
        error = {"error": {"message": "planned", "type": "InternalServerError", "code": 500}}
        handler.close_connection = True
        number = what.split("-")[0]
        if number == "raw":
            handler.wfile.write(fault.raw)
        elif number == "lose":
            handler.connection.close()
        elif number == "503" or number == "429":
            self.reply(handler, int(number), error, [("Retry-After", "0")])
        elif number.isdigit():
            self.reply(handler, int(number), error)
        elif number == "unknown":
            error["error"]["type"] = "CommitStateUnknownException"
            self.reply(handler, 500, error)
        elif number == "cut":
            data = json.dumps(answer).encode()
            handler.send_response(status)
            handler.send_header("Content-Type", "application/json")
            handler.send_header("Content-Length", str(len(data)))
            handler.end_headers()
            handler.wfile.write(data[:len(data) // 2])
        elif number == "junk":
            self.reply(handler, status, b'{"metadata-location": "x", ')
        elif number == "html":
            self.reply(handler, status, b"<html>hello</html>", kind="text/html")
        elif number == "empty":
            self.reply(handler, status, {})
        elif number == "huge":
            handler.send_response(200)
            handler.send_header("Content-Type", "application/json")
            handler.end_headers()
            try:
                for _ in range(1 << 20):
                    handler.wfile.write(b"[" * 65536)
            except OSError:
                pass
        elif number == "slow":
            time.sleep(fault.seconds)
            try:
                self.reply(handler, status, answer)
            except OSError:
                pass
        elif number == "redirect":
            self.reply(handler, 307, None, [("Location", "http://127.0.0.1:1/stolen?token=1")])

    # ---- endpoints ----

    def check_token(self, request):
        if self.credential is None and not self.tokens:
            return
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme != "Bearer" or token not in self.tokens:
            raise Refusal(401, "NotAuthorizedException", "no valid token")

    def answer(self, request):
        if request.path == "/v1/oauth/tokens":
            return self.give_token(request)
        self.check_token(request)
        if request.path == "/v1/config":
            answer = {"defaults": self.defaults, "overrides": self.overrides}
            if self.endpoints is not None:
                answer["endpoints"] = self.endpoints
            return 200, answer
        start = "/v1/" + (self.prefix + "/" if self.prefix else "")
        if not request.path.startswith(start):
            raise Refusal(404, "", "no such path")
        parts = [urllib.parse.unquote(p) for p in request.path[len(start):].split("/")]
        body = json.loads(request.body) if request.body else {}
        from pyiceberg import exceptions as e
        try:
            return self.route(request, parts, body)
        except e.NoSuchTableError as error:
            raise Refusal(404, "NoSuchTableException", str(error))
        except e.NoSuchNamespaceError as error:
            raise Refusal(404, "NoSuchNamespaceException", str(error))
        except (e.TableAlreadyExistsError, e.NamespaceAlreadyExistsError) as error:
            raise Refusal(409, "AlreadyExistsException", str(error))
        except e.NamespaceNotEmptyError as error:
            raise Refusal(409, "NamespaceNotEmptyException", str(error))
        except e.CommitFailedException as error:
            raise Refusal(409, "CommitFailedException", str(error))

    def give_token(self, request):
        form = dict(urllib.parse.parse_qsl(request.body.decode()))
        given = ":".join(filter(None, [form.get("client_id"), form.get("client_secret")]))
        if form.get("grant_type") != "client_credentials" or given != self.credential:
            return 400, {"error": "invalid_client", "error_description": "unknown client"}
        token = "token-%d" % (len(self.requests))
        self.tokens.add(token)
        return 200, {"access_token": token, "token_type": "bearer", "expires_in": self.token_seconds}

    def paged(self, name, items, query):
        start = int(query.get("pageToken") or 0)
        answer = {name: items[start:start + self.page]}
        if start + self.page < len(items):
            answer["next-page-token"] = str(start + self.page)
        return 200, answer

    def route(self, request, parts, body):
        method, c = request.method, self.catalog
        if parts == ["tables", "rename"]:
            source, to = [tuple(body[k]["namespace"]) + (body[k]["name"],) for k in ("source", "destination")]
            c.rename_table(source, to)
            return 204, None
        if parts == ["namespaces"]:
            if method == "POST":
                c.create_namespace(tuple(body["namespace"]), body.get("properties") or {})
                return 200, body
            parent = tuple(filter(None, request.query.get("parent", "").split(self.separator)))
            return self.paged("namespaces", sorted(list(n) for n in c.list_namespaces(parent)), request.query)
        ns = tuple(parts[1].split(self.separator))
        if len(parts) == 2:
            if method == "DELETE":
                c.drop_namespace(ns)
                return 204, None
            return 200, {"namespace": list(ns), "properties": c.load_namespace_properties(ns)}
        if parts[2] == "properties":
            done = c.update_namespace_properties(ns, set(body.get("removals") or []), body.get("updates") or {})
            return 200, {"updated": done.updated, "removed": done.removed, "missing": done.missing}
        if parts[2] == "register":
            return self.loaded(c.register_table(ns + (body["name"],), body["metadata-location"]))
        if len(parts) == 3:
            if method == "POST":
                return self.create(ns, body)
            names = sorted(t[-1] for t in c.list_tables(ns))
            return self.paged("identifiers", [{"namespace": list(ns), "name": n} for n in names], request.query)
        return self.table(request, ns + (parts[3],), body)

    def table(self, request, ident, body):
        c = self.catalog
        if request.method == "DELETE":
            c.drop_table(ident)
            return 204, None
        if request.method == "POST":
            from pyiceberg.catalog.rest import CommitTableRequest
            commit = CommitTableRequest.model_validate({**body, "identifier": body.get("identifier") or
                                                        {"namespace": list(ident[:-1]), "name": ident[-1]}})
            done = c.commit_table(c.load_table(ident), commit.requirements, commit.updates)
            return 200, {"metadata-location": done.metadata_location, "metadata": json.loads(done.metadata.model_dump_json())}
        table = c.load_table(ident)
        if request.headers.get("if-none-match") == '"%s"' % os.path.basename(table.metadata_location):
            return 304, None
        return self.loaded(table)

    def loaded(self, table):
        return 200, {"metadata-location": table.metadata_location, "metadata": json.loads(table.metadata.model_dump_json()),
                     "config": self.config}

    def create(self, ns, body):
        from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
        from pyiceberg.schema import Schema
        from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortOrder
        spec, order = body.get("partition-spec"), body.get("write-order")
        location = body.get("location")
        if location is None and not body["name"].isalnum():  # PyIceberg would make a URL of the name
            location = "%s/%s" % (self.warehouse, "".join("%02x" % byte for byte in body["name"].encode()))
        return self.loaded(self.catalog.create_table(
            ns + (body["name"],), Schema.model_validate(body["schema"]), location,
            PartitionSpec.model_validate(spec) if spec else UNPARTITIONED_PARTITION_SPEC,
            SortOrder.model_validate(order) if order else UNSORTED_SORT_ORDER, body.get("properties") or {}))


def main():
    with Server(sys.argv[1]) as server:
        print("URL=%s WAREHOUSE=%s" % (server.url, server.warehouse), flush=True)
        while True:
            time.sleep(60)


if __name__ == "__main__":
    main()
