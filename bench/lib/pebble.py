"""Canonical's Pebble with one service: the peer with an HTTP API."""

import os
import signal
import subprocess

from lib.manager import ENGINE
from lib.procfs import until

PEBBLE = os.environ.get("BENCH_PEBBLE", "")


class Pebble:
    """`pebble run` in `workdir`, its API on a unix socket and, with `http`, on a port."""

    def __init__(self, workdir, http=None):
        (workdir / "layers").mkdir()
        script = ENGINE[2].replace("read line", f"read line <{workdir}/engine")
        os.mkfifo(workdir / "engine")
        (workdir / "layers" / "001-bench.yaml").write_text(
            "services:\n  engine:\n    override: replace\n    startup: enabled\n"
            f"    command: /bin/sh {workdir}/engine.sh\n")
        (workdir / "engine.sh").write_text(script)
        self.socket = workdir / ".pebble.socket"
        extra = ["--http", http] if http else []
        self.process = subprocess.Popen(
            [PEBBLE, "run", "--verbose", *extra], env={**os.environ, "PEBBLE": str(workdir)},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.out = self.process.stdout
        self.pid = self.process.pid
        until(self.socket.exists, "Pebble's socket")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        self.out.close()
