#!/usr/bin/env python3
"""A PostgreSQL server of one test: on 127.0.0.1, with a password, sorting texts as people do and not by bytes.

usage: postgres.py PROGRAM [ARGUMENT...]   runs the program with TARN_TEST_POSTGRES set to the server's URI
Ends with 77 where no server is installed.
"""
import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from ports import free_port

PASSWORD = "s3cret-pw?&/x"
QUOTED = "s3cret-pw%3F%26%2Fx"
NOBODY = 65534
READY_SECONDS = 240


def find_bin():
    """The newest installed server's folder of programs; None: there is none."""
    found = glob.glob("/usr/lib/postgresql/*/bin/initdb")
    found.sort(key=lambda p: int(p.split("/")[4]) if p.split("/")[4].isdigit() else 0)
    if found:
        return os.path.dirname(found[-1])
    initdb = shutil.which("initdb")
    return os.path.dirname(initdb) if initdb else None


class Server:
    """with Server() as s: s.uri ... s.kill_backends(), s.crash(), s.start()."""

    def __init__(self):
        self.bin = find_bin()
        self.port = free_port()
        self.folder = tempfile.mkdtemp(prefix="tarn-pg-")
        self.data = os.path.join(self.folder, "data")
        self.process = None

    def as_server(self, arguments, **more):
        """PostgreSQL refuses to run as root."""
        if os.getuid() == 0:
            more.update(user=NOBODY, group=NOBODY, extra_groups=[])
        return subprocess.Popen(arguments, cwd=self.folder, stdin=subprocess.DEVNULL, start_new_session=True, **more)

    def __enter__(self):
        words = os.path.join(self.folder, "pw")
        with open(words, "w") as file:
            file.write(PASSWORD + "\n")
        if os.getuid() == 0:
            for path in (self.folder, words):
                os.chown(path, NOBODY, NOBODY)
        arguments = [os.path.join(self.bin, "initdb"), "-D", self.data, "-U", "tarn", "-A", "scram-sha-256", "--pwfile", words, "-E",
                     "UTF8", "--no-sync"]
        for words in (["--locale=C", "--locale-provider=icu", "--icu-locale=en-US"], ["--locale=C"]):
            shutil.rmtree(self.data, ignore_errors=True)
            log = self.as_server(arguments + words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            said = log.communicate()[0]
            if log.returncode == 0:
                break
        else:
            raise RuntimeError("initdb failed: %s" % said.decode(errors="replace"))
        self.start()
        return self

    def start(self):
        self.log = open(os.path.join(self.folder, "log"), "ab")
        self.process = self.as_server(
            [os.path.join(self.bin, "postgres"), "-D", self.data, "-c", "listen_addresses=127.0.0.1", "-c", "port=%d" % self.port, "-c",
             "unix_socket_directories=", "-c", "fsync=off", "-c", "jit=off", "-c", "shared_buffers=16MB", "-c", "max_connections=300"],
            stdout=self.log, stderr=self.log)
        ready = os.path.join(self.bin, "pg_isready")
        for _ in range(READY_SECONDS * 10):
            if subprocess.run([ready, "-q", "-h", "127.0.0.1", "-p", str(self.port)]).returncode == 0:
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        with open(os.path.join(self.folder, "log"), errors="replace") as file:
            raise RuntimeError("the server did not start: %s" % file.read()[-2000:])

    @property
    def uri(self):
        return "postgresql://tarn:%s@127.0.0.1:%d/postgres" % (QUOTED, self.port)

    def backends(self):
        """Process ids of the backends that serve clients."""
        out = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(self.process.pid)], capture_output=True, text=True).stdout
        return [int(line.split()[0]) for line in out.splitlines() if "127.0.0.1(" in line]

    def kill_backends(self):
        """kill -9: the server then ends all others and recovers."""
        for pid in self.backends():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def crash(self):
        """As if the machine had lost its power; start() recovers."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.crash()
        shutil.rmtree(self.folder, ignore_errors=True)


def main():
    if find_bin() is None:
        print("SKIPPED: no PostgreSQL server is installed (./dev setup installs it)")
        return 77
    with Server() as server:
        return subprocess.run(sys.argv[1:], env={**os.environ, "TARN_TEST_POSTGRES": server.uri}).returncode


if __name__ == "__main__":
    sys.exit(main())
