"""A manager with an engine, and plain HTTP to its socket with as little code as possible."""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

from lib.procfs import children, until

STAYPUT = os.environ.get("BENCH_STAYPUT", "")
# tmpfs, because the time for an fsync on a disk is a figure of the disk.
GROUND = "/dev/shm"
# The smallest engine: prints a line when it starts and when it gets TERM. It reads from a pipe
# without a writer, because a `sleep` would be a second process; both ends of the pipe are its own.
ENGINE = ["/bin/sh", "-c", "trap 'echo bye; exit 143' TERM; echo up; while read line; do :; done"]


class Ground:
    """A temporary directory."""

    def __init__(self):
        self.path = Path(tempfile.mkdtemp(prefix="stayput-bench.", dir=GROUND))

    def __enter__(self):
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


# Makes the manager PID 1 of a namespace, as in a container: it sees only the engine's processes.
# Needs root.
CONTAINER = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "--"]


class ManagerEnded(Exception):
    """The manager ended before its API answered; with its log."""


class Manager:
    """`stayput run`, with its API on a unix socket and its journal in `workdir`."""

    def __init__(self, workdir, *options, engine=None, wrapper=(),
                 program=STAYPUT):
        self.socket = workdir / "s"
        (workdir / "state").mkdir(exist_ok=True)
        command = [*wrapper, program, "run", "--socket", self.socket, "--state-dir",
                   workdir / "state", *options, "--", *(engine or ENGINE)]
        with open(workdir / "log", "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=log)
        self.out = self.process.stdout
        until(lambda: self.process.poll() is not None or self.answers(), "the manager's socket")
        if self.process.poll() is not None:
            self.close()
            raise ManagerEnded((workdir / "log").read_text())
        self.pid = children(self.process.pid)[0] if wrapper else self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            try:
                os.kill(self.pid, signal.SIGTERM)
            except ProcessLookupError:
                pass  # only its wrapper is left, and that ends
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.close()

    def close(self):
        self.process.stdin.close()
        self.out.close()

    def answers(self):
        try:
            Client(self.socket).close()
            return True
        except OSError:
            return False

    def client(self):
        return Client(self.socket)


class Client:
    """One connection."""

    def __init__(self, path):
        self.stream = socket.socket(socket.AF_UNIX)
        self.stream.connect(str(path))
        self.rest = b""

    def close(self):
        self.stream.close()

    def send(self, method, path, body=None):
        body = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\n"
        if method == "POST":
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        self.stream.sendall(head.encode() + b"\r\n" + body)

    def read(self):
        """Waits for the answer: code and body."""
        while b"\r\n\r\n" not in self.rest:
            self.more()
        head, _, self.rest = self.rest.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        code = int(lines[0].split()[1])
        length = next((int(line.split(":")[1]) for line in lines
                       if line.lower().startswith("content-length:")), 0)
        while len(self.rest) < length:
            self.more()
        body, self.rest = self.rest[:length], self.rest[length:]
        return code, body

    def more(self):
        data = self.stream.recv(65536)
        if not data:
            raise ConnectionError("the manager closed the connection")
        self.rest += data

    def call(self, method, path, body=None):
        self.send(method, path, body)
        code, answer = self.read()
        return code, json.loads(answer) if answer else None

    def status(self):
        return self.call("GET", "/es/status")[1]
