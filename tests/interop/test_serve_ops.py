#!/usr/bin/env python3
"""Goal: `tarn serve` can be run by others than its authors: told by files and the environment what to do, safe on a network, and in
bounds whatever clients do to it.
Method: the command is started in ways that are right or wrong in one point, and talked to over plain sockets where clients misbehave.

usage: test_serve_ops.py [CASE ...]
"""
import concurrent.futures
import http.client
import json
import os
import random
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time

import harness
from harness import SECONDS, Workshop, equal, wait_for
from test_serve import ACCESS, Server, rows

for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"):  # Requests believes them more than what it is told
    os.environ.pop(name, None)


def raw(server):
    host, port = server.url.split("//")[1].rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=SECONDS)


def read_all(line):
    """What comes until the other side ends it."""
    got = b""
    try:
        while part := line.recv(65536):
            got += part
    except (ConnectionError, ssl.SSLError):
        pass
    return got


def send(line, data):
    try:
        line.sendall(data)
        return True
    except OSError:
        return False


def settings(shop, *options, **env):
    """What --check-config prints, as name -> [value, where it is from]."""
    answer = shop.tarn(*options, "--check-config", env=env)
    lines = answer.out.splitlines()
    found = {}
    for origin, line in zip(lines[::2], lines[1::2]):
        name, _, value = line.partition(" = ")
        found.setdefault(name, []).append((value, origin[2:]))
    return found


def options_of_three_places():
    """The command line comes before the environment, that before the file, for options of serve and of every command."""
    with Workshop() as shop:
        shop.write("serve.conf", "# a comment\n\n  listen = 127.0.0.1:1\r\ntimeout=7\nconnections = 9\ncatalog = sqlite:of-file.db\n"
                   "catalog-property = a=1\ncatalog-property = token=hidden\nno-sync = true # not yet\naccess-log = \"a # b = c\" # quoted\n"
                   "name = '127'\nallow-location = /a#b\t# tab\n")
        equal(settings(shop, "serve", "--config", "serve.conf"), {
            "listen": [("127.0.0.1:1", "file")], "timeout": [("7", "file")], "connections": [("9", "file")],
            "catalog": [("sqlite:of-file.db", "file")], "catalog-property": [("a", "file"), ("token", "file")],
            "no-sync": [("true", "file")], "access-log": [("a # b = c", "file")], "name": [("127", "file")],
            "allow-location": [("/a#b", "file")]})
        env = {"TARN_SERVE_CONFIG": "serve.conf", "TARN_SERVE_TIMEOUT": "8", "TARN_SERVE_BODY_MB": "3", "TARN_SERVE_NO_SYNC": "false",
               "TARN_SERVE_PORT": "tcp://10.0.0.1:80"}
        got = settings(shop, "-c", "postgresql://me:hidden@host/db?password=hidden", "serve", "--connections=5", **env)
        equal((got["timeout"], got["body-mb"], got["connections"], got["listen"], got["no-sync"], got["catalog"]),
              ([("8", "environment")], [("3", "environment")], [("5", "command line")], [("127.0.0.1:1", "file")],
               [("false", "environment")], [("postgresql:...", "command line")]))
        assert "hidden" not in str(got), got
        shop.write("serve.conf", "listen = 127.0.0.1:0\ncatalog = sqlite:of-file.db\n")
        with Server(shop, "--config", "serve.conf", "--listen", "127.0.0.1:0", before=()) as server:
            equal(server.ask("POST", "/v1/namespaces", {"namespace": ["ns"]})[0], 200)
        assert os.path.exists(shop.path("of-file.db")) and not os.path.exists(shop.path("tarn.db"))


def wrong_configurations():
    """Each is refused by file and line, or by the variable's name, before anything starts."""
    with Workshop() as shop:
        for text, words in (("listen = a:1\nlisten = b:1", ["bad.conf:2", "listen", "before"]), ("listne = a:1", ["bad.conf:1", "did you mean listen"]),
                            ("\n\nnonsense", ["bad.conf:3", "name = value"]), ("listen =", ["bad.conf:1", "no value"]),
                            ("timeout = soon", ["bad.conf:1", "timeout", "number"]), ("timeout = -1", ["bad.conf:1", "number"]),
                            ("intake-interval = 86400001", ["intake-interval", "86400000"]),
                            ("no-sync = maybe", ["bad.conf:1", "true or false"]), ("config = x", ["bad.conf:1", "no option"]),
                            ("check-config = true", ["bad.conf:1"]), ("[serve]", ["bad.conf:1"]), ("= 5", ["bad.conf:1"]), ("listen = # none", ["bad.conf:1", "no value"]),
                            ("name = \"a", ["bad.conf:1", "quotes"]), ("name = \"a\" b", ["bad.conf:1", "quotes"]),
                            ("listen\0 = a:1", ["bad.conf:1", "NUL"])):
            shop.write("bad.conf", text)
            answer = shop.tarn("serve", "--config", "bad.conf", check=False)
            harness.must_refuse(answer, *words)
            equal(answer.status, 2)
        answer = shop.tarn("serve", "--check-config", env={"TARN_SERVE_BOGUS": "1", "TARN_SERVE_SERVICE_HOST": "10.0.0.1"})
        assert "$TARN_SERVE_BOGUS is no option" in answer.err and "HOST" not in answer.err, answer
        harness.must_refuse(shop.tarn("serve", "--config", "none.conf", check=False), "none.conf")
        harness.must_refuse(shop.tarn("serve", "--config", ".", check=False), "configuration .")
        harness.must_refuse(shop.tarn("serve", check=False, env={"TARN_SERVE_TIMEOUT": "x"}), "$TARN_SERVE_TIMEOUT", "number")


def make_certificates(shop):
    """Two authorities with a certificate each for 127.0.0.1: ca.pem cert.pem key.pem, and the same with 2 behind."""
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=shop.folder, check=True, capture_output=True)
    shop.write("names.ext", "subjectAltName = IP:127.0.0.1, DNS:localhost\n")
    for n in ("", "2"):
        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        openssl("req", "-x509", *curve, "-keyout", "ca-key%s.pem" % n, "-out", "ca%s.pem" % n, "-subj", "/CN=test authority " + n, "-days", "2")
        openssl("req", *curve, "-keyout", "key%s.pem" % n, "-out", "request.pem", "-subj", "/CN=127.0.0.1")
        openssl("x509", "-req", "-in", "request.pem", "-CA", "ca%s.pem" % n, "-CAkey", "ca-key%s.pem" % n, "-CAcreateserial",
                "-out", "cert%s.pem" % n, "-days", "2", "-extfile", "names.ext")
        os.chmod(shop.path("key%s.pem" % n), 0o600)


class TlsServer(Server):
    """The same over TLS, with the first of those certificates."""

    def __init__(self, shop, *options, **more):
        self.shop, self.trusted = shop, "ca.pem"
        super().__init__(shop, "--tls-cert", "cert.pem", "--tls-key", "key.pem", *options, **more)
        assert self.url.startswith("https://"), self.url

    def context(self):
        return ssl.create_default_context(cafile=self.shop.path(self.trusted))

    def connection(self):
        return http.client.HTTPSConnection(self.url.split("//")[1], timeout=SECONDS, context=self.context())

    def serial(self):
        """Of the certificate that new connections get."""
        context = ssl._create_unverified_context()
        with socket.create_connection(tuple(self.url.split("//")[1].split(":")), timeout=SECONDS) as line:
            with context.wrap_socket(line) as tls:
                return tls.getpeercert(True)


def tls_for_every_client():
    """PyIceberg, tarn, curl and Python speak HTTPS to it by the authority they were given, and by no other."""
    from pyiceberg.catalog.rest import RestCatalog
    with Workshop() as shop:
        make_certificates(shop)
        with TlsServer(shop) as server:
            theirs = RestCatalog("rest", uri=server.url, **{"ssl": {"cabundle": shop.path("ca.pem")}})
            theirs.create_namespace("ns")
            theirs.create_table("ns.t", schema=rows().schema).append(rows(1, 2))
            ours = ["-c", server.url, "--catalog-property", "ssl.cabundle=" + shop.path("ca.pem")]
            equal(sorted(row["id"] for row in shop.tarn(*ours, "cat", "ns.t", "--format", "ndjson").rows), [1, 2])
            shop.write("more.ndjson", '{"id": 3, "s": "x"}\n')
            shop.tarn(*ours, "ingest", "ns.t", "more.ndjson")
            equal(sorted(theirs.load_table("ns.t").scan().to_arrow()["id"].to_pylist()), [1, 2, 3])
            curl = ["curl", "-s", "--max-time", str(SECONDS), server.url + "/healthz", "--cacert"]
            equal(subprocess.run(curl + ["ca.pem"], cwd=shop.folder, capture_output=True).stdout, b'{"status":"ok"}')
            assert subprocess.run(curl + ["ca2.pem"], cwd=shop.folder, capture_output=True).returncode == 60
            harness.must_refuse(shop.tarn("-c", server.url, "--catalog-property", "ssl.cabundle=" + shop.path("ca2.pem"), "ls", check=False),
                                "certificate")
            harness.must_refuse(shop.tarn("-c", server.url, "ls", check=False), "certificate")
            try:
                RestCatalog("rest", uri=server.url, **{"ssl": {"cabundle": shop.path("ca2.pem")}})
                raise AssertionError("an authority that did not sign was believed")
            except OSError as error:
                assert "CERTIFICATE_VERIFY_FAILED" in str(error), error
            for version, works in (("-tls1_1", False), ("-tls1_2", True), ("-tls1_3", True)):
                done = subprocess.run(["openssl", "s_client", "-connect", server.url.split("//")[1], version, "-cipher", "DEFAULT@SECLEVEL=0"],
                                      stdin=subprocess.DEVNULL, capture_output=True)
                equal((version, done.returncode == 0), (version, works))
            with raw(server) as line:  # HTTP where TLS is spoken
                send(line, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                assert b"HTTP/1" not in read_all(line)
            equal(server.ask("GET", "/healthz")[0], 200)


def wrong_certificates():
    """Each is refused at the start, and the file is named."""
    with Workshop() as shop:
        make_certificates(shop)
        shop.write("empty.pem", "")
        shop.write("junk.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
        shutil.copy(shop.path("key.pem"), shop.path("open.pem"))
        os.chmod(shop.path("open.pem"), 0o644)
        os.chmod(shop.path("junk.pem"), 0o600)
        os.chmod(shop.path("empty.pem"), 0o600)
        for options, words in ((("cert.pem", "open.pem"), ["open.pem", "everybody"]), (("none.pem", "key.pem"), ["none.pem"]),
                               (("cert.pem", "none.pem"), ["none.pem"]), (("empty.pem", "key.pem"), ["empty.pem"]),
                               (("junk.pem", "key.pem"), ["junk.pem", "the certificate"]), (("cert.pem", "junk.pem"), ["junk.pem", "the key"]),
                               (("cert.pem", "empty.pem"), ["empty.pem"]), (("key.pem", "cert2.pem"), ["key.pem"]),
                               (("cert.pem", "key2.pem"), ["cert.pem", "key2.pem", "not the certificate's"])):
            if options[1] == "cert2.pem":
                os.chmod(shop.path("cert2.pem"), 0o600)
            answer = shop.tarn("serve", "--listen", "127.0.0.1:0", "--tls-cert", options[0], "--tls-key", options[1], check=False)
            harness.must_refuse(answer, *words)
            assert "BEGIN" not in answer.err, answer.err
        harness.must_refuse(shop.tarn("serve", "--tls-cert", "cert.pem", check=False), "--tls-key")
        shop.write("access.json", json.dumps(ACCESS))
        harness.must_refuse(shop.tarn("serve", "--listen", "0.0.0.0:0", "--tls-cert", "cert.pem", "--tls-key", "key.pem", check=False), "--access")
        harness.must_refuse(shop.tarn("serve", "--listen", "0.0.0.0:0", "--access", "access.json", check=False), "--tls-cert", "--plain-http")


def files_read_again():
    """SIGHUP: new connections get the new certificate, requests the new roles, lines the new log; what is wrong changes nothing."""
    with Workshop() as shop:
        make_certificates(shop)
        shop.write("access.json", json.dumps(ACCESS))
        with TlsServer(shop, "--access", "access.json", "--access-log", "log.ndjson") as server:
            def ask(token):
                return server.ask("GET", "/v1/namespaces", Authorization="Bearer " + token)[0]

            def token_of(secret):
                form = "grant_type=client_credentials&client_id=writer&client_secret=" + secret
                return server.ask("POST", "/v1/oauth/tokens", form)[1].get("access_token")
            first, token = server.serial(), token_of("s3cret%26%2B%25")
            equal([ask("ops-token"), ask("reader-token"), ask(token)], [200, 200, 200])
            kept = server.connection()
            kept.request("GET", "/healthz")
            equal(kept.getresponse().read(), b'{"status":"ok"}')

            def reload_and_hear(words):
                server.process.send_signal(signal.SIGHUP)
                heard = ""
                while words not in heard:
                    line = server.process.stderr.readline()
                    assert line, "it said only: " + heard
                    heard += line
                return heard
            for bad in ({"tokens": []}, {"tokens": [{"name": "x", "token": "hidden", "grants": [{"namespace": "a", "role": "boss"}]}]}):
                shop.write("access.json", json.dumps(bad))
                shutil.copy(shop.path("cert2.pem"), shop.path("cert.pem"))
                shutil.copy(shop.path("key2.pem"), shop.path("key.pem"))
                assert "hidden" not in reload_and_hear("not read again")
                equal([server.serial() == first, ask("ops-token"), ask(token)], [True, 200, 200])
            shop.write("access.json", json.dumps(dict(ACCESS, tokens=ACCESS["tokens"][1:])))
            os.rename(shop.path("log.ndjson"), shop.path("log.1"))
            reload_and_hear("as they are now")
            server.trusted = "ca2.pem"
            equal([server.serial() == first, ask("ops-token"), ask("reader-token"), ask(token)], [False, 401, 200, 200])
            kept.request("GET", "/healthz")  # who was there goes on
            equal(kept.getresponse().read(), b'{"status":"ok"}')
            kept.close()
            wait_for(lambda: "/healthz" in open(shop.path("log.ndjson")).read())
            shop.write("access.json", json.dumps(dict(ACCESS, clients=[dict(ACCESS["clients"][0], secret="other")])))
            reload_and_hear("as they are now")
            equal([ask(token), ask("ops-token"), token_of("s3cret%26%2B%25")], [401, 200, None])
            equal(ask(token_of("other")), 200)
            shutil.copy(shop.path("key.pem"), shop.path("cert.pem"))
            reload_and_hear("not read again")
            equal(ask("ops-token"), 200)


HEAD = b"POST /v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n"


class Drippers:
    """Clients that bring a byte now and then, of heads and of bodies, and come again when they are cut; some have closed their half."""

    def __init__(self, server, count):
        self.server, self.count, self.cut, self.ends = server, count, 0, False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def connect(self, i):
        line = socket.socket()
        line.setblocking(False)
        host, port = self.server.url.split("//")[1].split(":")
        line.connect_ex((host, int(port)))
        return [line, 0, i % 2]

    def drip(self, entry):
        line, sent, with_body = entry
        try:
            if with_body and sent == 0:
                entry[1] += line.send(HEAD)
            else:
                entry[1] += line.send(b"x" if with_body else HEAD[sent % 40:sent % 40 + 1])
            if not with_body and sent == 10:
                line.shutdown(socket.SHUT_WR)
            return line.recv(1000) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def run(self):
        entries = [self.connect(i) for i in range(self.count)]
        while not self.ends:
            for i, entry in enumerate(entries):
                if not self.drip(entry):
                    self.cut += 1
                    entry[0].close()
                    entries[i] = self.connect(i)
            time.sleep(0.2)
        for entry in entries:
            entry[0].close()

    def end(self):
        self.ends = True
        self.thread.join()


def ask_until_served(server):
    """What a client does that is refused, or cut off before it got an answer."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        try:
            status = server.ask("GET", "/v1/config")[0]
        except (OSError, http.client.HTTPException):
            continue
        if status == 200:
            return True
        equal(status, 503)
        time.sleep(0.1)
    return False


def drippers():
    """200 of them keep nobody out of a service for 60, and it ends in time with them there."""
    with Workshop() as shop:
        with Server(shop, "--connections", "60", "--request-timeout", "3", "--timeout", "5") as server:
            slow = Drippers(server, 200)
            try:
                wait_for(lambda: slow.cut > 400, lambda: "%d were cut off" % slow.cut)
                with concurrent.futures.ThreadPoolExecutor(4) as pool:
                    equal(list(pool.map(lambda _: ask_until_served(server), range(12))), [True] * 12)
                server.process.send_signal(signal.SIGTERM)
                server.process.wait(SECONDS)
            finally:
                slow.end()


def slow_and_steady():
    """One that drips is cut off after the time for requests, also without others; one that brings much takes longer than that."""
    with Workshop() as shop, Server(shop, "--request-timeout", "2", "--timeout", "100", "--body-mb", "8") as server:
        for start, drop in ((b"GET /healthz HT", b"T"), (HEAD, b" ")):
            began = time.monotonic()
            with raw(server) as line:
                send(line, start)
                while send(line, drop) and time.monotonic() < began + SECONDS:
                    time.sleep(0.1)
                assert 1.5 < time.monotonic() - began < SECONDS
        began = time.monotonic()
        with raw(server) as line:  # nothing at all
            equal(read_all(line), b"")
            assert 1.5 < time.monotonic() - began < SECONDS

        def upload(name):
            with raw(server) as line:
                body = json.dumps({"namespace": [name], "properties": {"p": "x" * 4000000}}).encode()
                send(line, HEAD.replace(b"100000", str(len(body)).encode() + b"\r\nConnection: close"))
                for at in range(0, len(body), 200000):
                    if not send(line, body[at:at + 200000]):
                        return b""
                    time.sleep(0.15)
                return read_all(line)
        for i in range(10):  # where the machine stands still meanwhile it was no steady one
            answer = upload("big%d" % i)
            if answer:
                break
        assert answer.startswith(b"HTTP/1.1 200 ") and b'"big' in answer, "a steady upload was cut: %s" % answer[:300]


def one_too_many():
    """Over the limit a request is refused in words, with when to come again; afterwards there is room."""
    with Workshop() as shop, Server(shop, "--connections", "2") as server:
        wide = json.dumps({"namespace": ["x" * 30000]}).encode()

        def begin():
            line = raw(server)
            send(line, HEAD.replace(b"100000", b"30000000"))
            return line
        busy = [begin(), begin()]  # bodies that come quickly enough to stay
        send_all = threading.Event()

        def feed():
            while not send_all.is_set():
                for i, line in enumerate(busy):
                    if not send(line, wide[:20000]):  # it came too slowly, or is at its end
                        line.close()
                        busy[i] = begin()
                time.sleep(0.05)
        feeder = threading.Thread(target=feed)
        feeder.start()
        try:
            def refused():
                try:
                    status, answer, headers = server.ask("GET", "/v1/config")
                except (OSError, http.client.HTTPException):
                    return False
                return status == 503 and answer["error"]["type"] == "ServiceUnavailableException" and headers["Retry-After"] == "1"
            wait_for(refused)
            send_all.set()
        finally:
            send_all.set()
            feeder.join()
            for line in busy:
                line.close()
        assert ask_until_served(server)


def at_rest():
    """After some requests of several clients the release has less than 17 MB of memory (docs/PERFORMANCE.md; sanitizers take more)."""
    with open(harness.binary(), "rb") as file:
        sanitized = b"libasan" in file.read() or b"libtsan" in subprocess.run(["ldd", harness.binary()], capture_output=True).stdout
    if sanitized:
        return
    with Workshop() as shop, Server(shop) as server:
        equal(server.ask("POST", "/v1/namespaces", {"namespace": ["ns"]})[0], 200)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            equal(set(pool.map(lambda _: server.ask("GET", "/v1/config")[0], range(64))), {200})
        with open("/proc/%d/status" % server.process.pid) as file:
            kilobytes = next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))
        assert kilobytes < 17000, "%d KB" % kilobytes


def told_to_systemd():
    """It says when it is ready and when it ends, as a unit of type notify must; the unit is sound and its flags exist."""
    with Workshop() as shop:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
            line.bind(shop.path("notify"))
            line.settimeout(SECONDS)
            with Server(shop, env={"NOTIFY_SOCKET": shop.path("notify")}) as server:
                equal(line.recv(100), b"READY=1")
                equal(server.ask("GET", "/healthz")[0], 200)
            equal(line.recv(100), b"STOPPING=1")
        with open(os.path.join(harness.ROOT, "packaging", "systemd", "tarn-serve.service")) as file:
            unit = file.read().replace("@TARN_BINARY@", harness.binary())
        settings = dict(line.split("=", 1) for line in unit.splitlines() if "=" in line and line[0] != "#")
        equal(settings["Restart"], "on-failure")  # and fewer than five starts in ten seconds, after which systemd tries no more
        assert int(settings["RestartSec"]) > 2, settings
        away = shop.tarn("serve", "--catalog", "postgresql://u:secret@127.0.0.1:1/x", "--listen", "127.0.0.1:0", check=False)
        if away.status != harness.UNSUPPORTED:
            harness.must_refuse(away, "database", "127.0.0.1:1", "could not be reached")
            assert "secret" not in away.err, away.err
        start = next(line for line in unit.splitlines() if line.startswith("ExecStart=")).split("=", 1)[1].split()
        equal(start[:2], [harness.binary(), "serve"])
        text = shop.tarn("serve", "--help").out
        assert all(word + " " in text for word in start[2:] if word.startswith("--")), start
        shop.write("tarn-serve.service", unit)
        if shutil.which("systemd-analyze"):
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", shop.path("tarn-serve.service")], capture_output=True, text=True)
            assert "tarn-serve.service" not in done.stderr, done.stderr


def strange_heads():
    """Heads, methods and lines that are too long, too many or no HTTP are refused or cut off; the service goes on."""
    with Workshop() as shop, Server(shop) as server:
        get = b"GET /v1/config HTTP/1.1\r\nHost: x\r\n"
        post = b"POST /v1/namespaces/ns/tables/t/rows HTTP/1.1\r\nHost: x\r\n"  # 406 where its headers are good
        for sent, statuses in ((b"GET /" + b"a" * 200000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", (414, 431, 413, None)),
                               (get + b"A: " + b"b" * 200000 + b"\r\n\r\n", (431, 413, None)),
                               (get + b"".join(b"h%d: 1\r\n" % i for i in range(20000)) + b"\r\n", (431, 413, None)),
                               (b"POST /v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: nonsense\r\n\r\n{}", (400, None)),
                               (post + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ", (400,)),
                               (post + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", (400,)),
                               (post + b"Idempotency-Key: a\r\nIdempotency-Key: b\r\nContent-Length: 2\r\n\r\n{}", (400,)),
                               (post + b"Idempotency-Key: \xe4\xf6\r\nContent-Length: 2\r\n\r\n{}", (400,)),
                               (b"POST /v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n{}", (400, None)),
                               (b"POST /v1/namespaces HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", (400, None)),
                               (b"POST /v1/namespaces HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 9000000000\r\n\r\n", (413,)),
                               (b"FROB /v1/config HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", (405,)),
                               (b"\x16\x03\x01\x00\x05hello" * 10 + b"\r\n\r\n", (400, None)), (b"\0" * 5000 + b"\r\n\r\n", (400, 413, 414, 431, None))):
            with raw(server) as line:
                send(line, sent)
                try:
                    line.shutdown(socket.SHUT_WR)
                except OSError:
                    pass
                got = read_all(line)
            status = int(got.split()[1]) if got.startswith(b"HTTP/") else None
            assert status in statuses, "%r: %r" % (sent[:60], got[:200])
        equal(server.ask("GET", "/healthz")[0], 200)


def random_bytes():
    """Whatever comes, mutated from what is right, the service answers with a status below 500 or closes; it never falls."""
    chance = random.Random(int(os.environ.get("FUZZ_SEED", "20261130")))
    paths = ["/v1/config", "/v1/namespaces", "/v1/namespaces/ns", "/v1/namespaces/ns/tables", "/v1/namespaces/ns/tables/t", "/v1/oauth/tokens",
             "/v1/namespaces/ns/tables/t/write-results", "/v1/namespaces/ns/tables/t/plan", "/v1/transactions/commit", "/v1/namespaces/ns/views"]
    bodies = ['{"namespace":["a%d"],"properties":{"k":"v"}}' % i for i in range(3)] + [
        '{"name":"x","schema":{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":false,"type":"long"}]}}',
        '{"requirements":[{"type":"assert-table-uuid","uuid":"u"}],"updates":[{"action":"set-properties","updates":{"a":"b"}}]}',
        '{"kind":"append","commit-id":"c","data-files":[{"content":"data","file-path":"/x","file-format":"parquet","spec-id":0,"partition":[],'
        '"record-count":1,"file-size-in-bytes":9}]}', "grant_type=client_credentials&client_id=a&client_secret=b", '{"filter":{"type":"eq","term":"id","value":1}}']
    with Workshop() as shop, Server(shop, "--request-timeout", "20") as server:
        server.ask("POST", "/v1/namespaces", {"namespace": ["ns"]})
        server.catalog().create_table("ns.t", schema=rows().schema)
        end = time.monotonic() + 6
        n = 0
        while n < 200 or time.monotonic() < end:
            n += 1
            body = bytearray(chance.choice(bodies).encode())
            head = bytearray(("%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nIdempotency-Key: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (
                chance.choice(["GET", "POST", "POST", "POST", "DELETE", "HEAD"]), chance.choice(paths), len(body))).encode())
            for part in chance.choice([(head,), (body,), (body,), (head, body), ()]):
                for _ in range(chance.randrange(1, 6)):
                    at = chance.randrange(len(part))
                    part[at:at + chance.randrange(3)] = bytes(chance.randrange(256) for _ in range(chance.randrange(3))) or b"\0"
            with raw(server) as line:
                send(line, bytes(head + body))
                try:
                    line.shutdown(socket.SHUT_WR)
                except OSError:
                    pass
                got = read_all(line)
            if got.startswith(b"HTTP/"):
                assert int(got.split()[1]) < 500 or int(got.split()[1]) == 505, "%r: %r" % (bytes(head + body), got)
        equal(server.ask("GET", "/healthz")[0], 200)


def secrets_stay_secret():
    """Tokens and passwords are in no log, error, counter or printed setting; a token of another server, or of before, opens nothing."""
    with Workshop() as shop:
        shop.write("access.json", json.dumps(dict(ACCESS, **{"token-seconds": 1})))
        form = "grant_type=client_credentials&client_id=writer&client_secret=s3cret%26%2B%25"
        with Server(shop, "--access", "access.json", "--access-log", "log.ndjson") as server, Server(shop, "--access", "access.json") as other:
            def ask(at, token):
                return at.ask("GET", "/v1/namespaces", Authorization="Bearer " + token)[0]
            token = server.ask("POST", "/v1/oauth/tokens", form)[1]["access_token"]
            equal([ask(server, token[:-1]), ask(other, token)], [401, 401])
            wait_for(lambda: ask(server, token) == 401)
            server.ask("GET", "/v1/namespaces?token=ops-token&pageToken=ops-token", Authorization="Basic b3BzLXRva2Vu")
            server.ask("POST", "/v1/oauth/tokens", form.replace("writer", "nobody"))
            text = server.ask_text("/metrics", "ops-token") + open(shop.path("log.ndjson")).read()
        with Server(shop, "--access", "access.json") as server:
            equal(server.ask("GET", "/v1/namespaces", Authorization="Bearer " + token)[0], 401)
        for secret in ("s3cret", "ops-token", token):
            assert secret not in text, "%s is told: %s" % (secret, text[:3000])
        for uri in ("postgresql://me:hidden@127.0.0.1:1/db", "postgresql:host=127.0.0.1 port=1 password=hidden", "http://me:hidden@127.0.0.1:1/x?k=hidden",
                    "mysql://me:hidden@host/db"):
            answer = shop.tarn("-c", uri, "--catalog-property", "token=hidden", "serve", "--listen", "127.0.0.1:0", check=False)
            assert answer.status > 0 and "hidden" not in answer.err + answer.out, answer
            answer = shop.tarn("-c", uri, "--catalog-property", "token=hidden", "serve", "--check-config", check=False)
            assert "hidden" not in answer.err + answer.out, answer


CASES = [options_of_three_places, wrong_configurations, tls_for_every_client, wrong_certificates, files_read_again,
         drippers, slow_and_steady, one_too_many, strange_heads, random_bytes, secrets_stay_secret, at_rest, told_to_systemd]


def main():
    harness.need("pyarrow", "pyiceberg")
    return harness.run_cases(CASES)


if __name__ == "__main__":
    sys.exit(main())
