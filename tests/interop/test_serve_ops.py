#!/usr/bin/env python3
"""Goal: `tarn serve` can be run by others than its authors: told by files and the environment what to do, safe on a network, and in
bounds whatever clients do to it.
Method: the command is started in ways that are right or wrong in one point, and talked to over plain sockets where clients misbehave.

usage: test_serve_ops.py [CASE ...]
"""
import os
import sys

import harness
from harness import Workshop, case, equal
from test_serve import Server


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
                   "catalog-property = a=1\ncatalog-property = token=hidden\nno-sync = true\naccess-log = a # b = c\n")
        equal(settings(shop, "serve", "--config", "serve.conf"), {
            "listen": [("127.0.0.1:1", "file")], "timeout": [("7", "file")], "connections": [("9", "file")],
            "catalog": [("sqlite:of-file.db", "file")], "catalog-property": [("a", "file"), ("token", "file")],
            "no-sync": [("true", "file")], "access-log": [("a # b = c", "file")]})
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
                            ("no-sync = maybe", ["bad.conf:1", "true or false"]), ("config = x", ["bad.conf:1", "no option"]),
                            ("check-config = true", ["bad.conf:1"]), ("[serve]", ["bad.conf:1"]), ("= 5", ["bad.conf:1"]),
                            ("listen\0 = a:1", ["bad.conf:1", "NUL"])):
            shop.write("bad.conf", text)
            answer = shop.tarn("serve", "--config", "bad.conf", check=False)
            harness.must_refuse(answer, *words)
            equal(answer.status, 2)
        harness.must_refuse(shop.tarn("serve", "--config", "none.conf", check=False), "none.conf")
        harness.must_refuse(shop.tarn("serve", "--config", ".", check=False), "configuration .")
        harness.must_refuse(shop.tarn("serve", check=False, env={"TARN_SERVE_TIMEOUT": "x"}), "$TARN_SERVE_TIMEOUT", "number")


CASES = [options_of_three_places, wrong_configurations]


def main():
    harness.need("pyarrow", "pyiceberg")
    for check in CASES:
        if len(sys.argv) == 1 or check.__name__ in sys.argv[1:]:
            case(check.__name__, check)
    return harness.finish()


if __name__ == "__main__":
    sys.exit(main())
