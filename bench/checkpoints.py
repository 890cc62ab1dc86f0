#!/usr/bin/env python3
"""What a checkpoint costs, from the first to the thousandth: upserts of 200 rows over 20,000 keys, which come in any order, so that in
the end a checkpoint deletes rows of some 170 files. Told in spans: CPU of the command itself (without the kernel's, which a disk's state
blurs) a checkpoint, and the wall time of its commit, in milliseconds. The table is scratch (--no-sync).

usage: checkpoints.py [KIND ...]    append equality position vector    N, KEYS: checkpoints, keys    TARN: the command
"""
import json
import os
import random
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARN = os.environ.get("TARN", os.path.join(ROOT, "build", "release", "tarn"))
N = int(os.environ.get("N", 1000))
KEYS = int(os.environ.get("KEYS", 20000))
ROWS = 200
SPANS = 5


def user_ms(pid):
    with open("/proc/%d/stat" % pid, encoding="utf-8") as file:
        return int(file.read().rsplit(")", 1)[1].split()[11]) * 1000 / os.sysconf("SC_CLK_TCK")


def measure(kind):
    chance = random.Random(5)
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "in.ndjson"), "w", encoding="utf-8") as file:
            for i in range(N * ROWS):
                file.write('{"id":%d,"day":%d,"v":"v%d"}\n' % (chance.randrange(KEYS), i % 5, i))
        subprocess.run([TARN, "create", "ns.t", "id long not null, day int, v string", "--format-version", "3" if kind == "vector" else "2"],
                       cwd=folder, check=True, capture_output=True)
        keyed = [] if kind == "append" else ["--upsert", "--key", "id", "--deletes", kind]
        command = [TARN, "--no-sync", "-q", "ingest", "ns.t", "in.ndjson", "--state", "st", "--checkpoint-rows", str(ROWS), "--log", "json", *keyed]
        process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
        cpu, commit = [], []
        for line in process.stderr:
            found = json.loads(line) if line.startswith("{") else {}
            if found.get("event") == "committed":
                cpu.append(user_ms(process.pid))
                commit.append(found["commit-ms"])
        if process.wait() != 0:
            sys.exit("tarn failed with %d" % process.returncode)
    step = max(len(cpu) // SPANS, 2)
    for at in range(0, len(cpu) - step + 1, step):
        last = at + step - 1
        print("%-9s %4d-%-4d  cpu %5.1f ms  commit %5.1f ms" %
              (kind, at + 1, last + 1, (cpu[last] - cpu[at]) / (step - 1), sum(commit[at:last + 1]) / step), flush=True)


if __name__ == "__main__":
    for name in sys.argv[1:] or ["append", "equality", "position", "vector"]:
        measure(name)
