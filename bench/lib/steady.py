"""A steady load for a real engine: one client that writes and searches in turns on one connection."""

import http.client
import json
import os
import time
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
DOCUMENTS = 500
# The index begins anew after so many bulks: searches of a growing one take longer and longer.
BULKS_OF_AN_INDEX = 100
WORDS = [f"word{number}" for number in range(1000)]


class Steady:
    """How fast one engine does some work, when its compilers have little left to do."""

    def __init__(self, port, pid):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.pid, self.written = pid, 0

    def measure(self, warm_up, rounds):
        """Documents a second; documents for each second of the engine's processor time, without that of
        its compilers; how much these took of all in percent; the milliseconds of its bulk requests and
        of its searches, median and 99th percentile."""
        self.run(warm_up)
        used, compiled, began = cpu(self.pid), compilers(self.pid), time.monotonic()
        bulks, searches = self.run(rounds)
        took, documents = time.monotonic() - began, DOCUMENTS * rounds
        used, compiled = cpu(self.pid) - used, compilers(self.pid) - compiled
        return (documents / took, documents / (used - compiled), 100 * compiled / used,
                percentile(bulks, 50), percentile(bulks, 99),
                percentile(searches, 50), percentile(searches, 99))

    def run(self, rounds):
        bulks, searches = [], []
        for _ in range(rounds):
            if self.written % (BULKS_OF_AN_INDEX * DOCUMENTS) == 0:
                self.ask("DELETE", "/load?ignore_unavailable=true", "")
                self.ask("PUT", "/load", {"settings": {"number_of_shards": 1, "number_of_replicas": 0}})
            bulks.append(self.timed("POST", "/load/_bulk", self.bulk()))
            word = WORDS[self.written // DOCUMENTS % len(WORDS)]
            query = {"query": {"match": {"text": word}}, "aggs": {"n": {"avg": {"field": "number"}}}}
            searches += [self.timed("POST", "/load/_search", query) for _ in range(3)]
        return bulks, searches

    def bulk(self):
        lines = []
        for _ in range(DOCUMENTS):
            self.written += 1
            text = " ".join(WORDS[self.written * step % len(WORDS)] for step in range(1, 12))
            lines += ['{"index":{}}', json.dumps({"text": text, "number": self.written})]
        return "\n".join(lines) + "\n"

    def timed(self, method, path, body):
        body = body if isinstance(body, str) else json.dumps(body)
        began = time.monotonic()
        self.ask(method, path, body)
        return (time.monotonic() - began) * 1000

    def ask(self, method, path, body):
        body = body if isinstance(body, str) else json.dumps(body)
        self.connection.request(method, path, body, {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status >= 300 or b'"errors":true' in text:
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:200]}")


def cpu(pid):
    """Seconds of processor time of a process and of its children that have ended."""
    return spent(Path(f"/proc/{pid}/stat").read_text())


def compilers(pid):
    """Of it those of the compiler threads that live."""
    threads = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    return sum(spent(thread) for thread in threads if "CompilerThre" in thread)


def spent(stat):
    return sum(map(int, stat.rsplit(")", 1)[1].split()[11:15])) / TICKS


def percentile(values, percent):
    return sorted(values)[(len(values) - 1) * percent // 100]
