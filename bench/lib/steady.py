"""The same load for real engines: a client that writes and searches in turns on one connection."""

import http.client
import json
import time

# Documents of one bulk, and bulks of one index: searches of a growing one take longer and longer.
DOCUMENTS, BULKS = 500, 100
WORDS = [f"word{number}" for number in range(1000)]


def bulk(first):
    lines = []
    for number in range(first, first + DOCUMENTS):
        text = " ".join(WORDS[number * step % len(WORDS)] for step in range(1, 12))
        lines += ['{"index":{}}', json.dumps({"text": text, "number": number})]
    return "\n".join(lines) + "\n"


# Each index gets the same, made before, so that the client is not what is measured.
OF_AN_INDEX = [bulk(number * DOCUMENTS) for number in range(BULKS)]


class Client:
    """One connection to one engine, and the milliseconds of its bulk requests and searches."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self.bulks, self.searches = [], []

    def fill_an_index(self):
        """All bulks into a new index, with three searches after each."""
        self.ask("DELETE", "/load?ignore_unavailable=true", "")
        self.ask("PUT", "/load", json.dumps({"settings": {"number_of_shards": 1, "number_of_replicas": 0}}))
        for documents, word in zip(OF_AN_INDEX, WORDS):
            self.bulks.append(self.ask("POST", "/load/_bulk", documents))
            query = json.dumps({"query": {"match": {"text": word}}, "aggs": {"n": {"avg": {"field": "number"}}}})
            self.searches += [self.ask("POST", "/load/_search", query) for _ in range(3)]

    def ask(self, method, path, body):
        """Milliseconds until its answer has been read."""
        began = time.monotonic()
        self.connection.request(method, path, body, {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status >= 300 or b'"errors":true' in text:
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:200]}")
        return (time.monotonic() - began) * 1000
