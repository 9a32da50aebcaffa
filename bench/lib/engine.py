"""A stand-in engine for reads: a cluster of this many nodes, indices and shard copies. What does not
depend on the size was recorded from OpenSearch; the rest has the recorded form.
"""

import base64
import hashlib
import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from lib.secure import free_port

# What the reconciler asks of the cluster state, without the parameters.
ROUTING = "/_cluster/state/routing_table,blocks"
STATE = "/_cluster/state/version,master_node,nodes,metadata,blocks,customs/stayput-no-index"
MEMBERS = "/_cluster/state/version,master_node,nodes"
RECORDED = Path(__file__).resolve().parents[2] / "tests/fixtures/engines/opensearch-2.19.3"


def recorded(name):
    """The body of an answer."""
    return (RECORDED / f"{name}.http").read_text().split("\n", 3)[3].encode()


def engine_id(text):
    """22 characters, as the engine's own."""
    return base64.urlsafe_b64encode(hashlib.md5(text.encode()).digest()).decode().rstrip("=")


def dumps(value):
    return json.dumps(value, separators=(",", ":")).encode()


class Engine:
    """Answers at every address of 127/8 until the end. Its cluster state has a new version with each
    question while `changes` is set."""

    def __init__(self, names, shards_of_indices):
        self.names = {name: engine_id(name) for name in names}
        self.version, self.changes = 100, False
        # How many questions there were, and the bytes of the answers to them.
        self.asked, self.sent = {}, 0
        ids = list(self.names.values())
        at = iter(range(sum(shards_of_indices) * 2))
        copy = lambda primary: {"state": "STARTED", "primary": primary,
                                "node": ids[next(at) % len(ids)], "relocating_node": None}
        indices = {
            f".ds-logs-nginx.access-{number % 40:02}-2026.11.22-{number:06}":
            {"shards": {str(shard): [copy(True), copy(False)] for shard in range(shards)}}
            for number, shards in enumerate(shards_of_indices)}
        self.routing = dumps({"routing_table": {"indices": indices}})
        self.details = dumps({"nodes": {node: {
            "version": "2.19.3", "roles": ["cluster_manager", "data", "ingest"],
            "jvm": {"start_time_in_millis": 1763800000000}} for node in ids}})
        self.answers = {"/": recorded("root"), "/_nodes/_local/http": recorded("local"),
                        "/_cluster/settings": recorded("settings_unset"),
                        # Nothing is restarted while it is red.
                        "/_cluster/health": recorded("health").replace(b"yellow", b"red")}
        engine = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # One packet for head and body.
            wbufsize = -1

            def do_GET(self):
                body = engine.answer(self.path.partition("?")[0])
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.port = free_port()
        server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler, bind_and_activate=False)
        server.daemon_threads = True
        # All addresses of this machine; none can be reached from outside.
        server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo")
        server.socket.bind(("0.0.0.0", self.port))
        server.server_activate()
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def answer(self, path):
        self.asked[path] = self.asked.get(path, 0) + 1
        if path == ROUTING:
            body = self.routing
        elif path in (STATE, MEMBERS):
            body = self.state()
        elif path == "/_nodes/_all/settings,jvm":
            body = self.details
        else:
            body = self.answers[path]
        self.sent += len(body)
        return body

    def state(self):
        self.version += self.changes
        ids = list(self.names.values())
        node = lambda name: {"name": name, "ephemeral_id": engine_id(f"process of {name}"),
                             "transport_address": "127.0.0.1:9300",
                             "attributes": {"zone": "z0", "shard_indexing_pressure_enabled": "true"}}
        return dumps({"cluster_uuid": "HHHrgapGQyCXt6wo3163vQ", "version": self.version,
                      "master_node": ids[0],
                      "nodes": {of: node(name) for name, of in self.names.items()},
                      "metadata": {"cluster_coordination": {
                          "term": 2, "last_committed_config": ids[:3],
                          "last_accepted_config": ids[:3], "voting_config_exclusions": []}}})

    def copies_read(self):
        return self.asked.get(ROUTING, 0)

    def looks(self):
        """Some of its state was read; the list of nodes alone is another path."""
        return self.asked.get(STATE, 0)
