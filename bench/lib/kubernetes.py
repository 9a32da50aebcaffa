"""A stand-in apiserver with a proxy in front of it that counts the requests of the reconciler;
and the reconciler."""

import collections
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import threading

import yaml

from lib.procfs import until
from lib.secure import free_port

# The first line of a request; bodies are JSON and contain no such line.
REQUEST = re.compile(rb"(GET|POST|PUT|PATCH|DELETE) (/\S*) HTTP/1\.1\r\n")
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CLUSTERS = "/apis/stayput.dev/v1alpha1/namespaces/default/searchclusters"
PODS = "/api/v1/namespaces/default/pods"
SECRETS = "/api/v1/namespaces/default/secrets"
READY = {"type": "Ready", "status": "True"}


class Apiserver:
    """The stand-in, with the SearchCluster's definition in it."""

    def __init__(self, workdir):
        self.process = subprocess.Popen([os.environ["BENCH_APISERVER"], workdir / "direct"],
                                        stdout=subprocess.PIPE, text=True)
        url = self.process.stdout.readline().split()[0]
        self.port = int(url.rpartition(":")[2])
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port)
        self.proxy = Proxy(self.port)
        self.kubeconfig = workdir / "kubeconfig"
        direct = (workdir / "direct").read_text()
        self.kubeconfig.write_text(direct.replace(str(self.port), str(self.proxy.port)))
        definition = subprocess.run([os.environ["BENCH_RECONCILER"], "crd"], check=True,
                                    stdout=subprocess.PIPE).stdout
        try:
            self.ask("POST", DEFINITIONS, yaml.safe_load(definition))
        except Exception:
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        self.process.stdout.close()

    def ask(self, method, path, body=None, kind="application/json"):
        """The answer, which has to be one of success."""
        data = body if isinstance(body, bytes) else json.dumps(body) if body else None
        self.connection.request(method, path, data, {"Content-Type": kind})
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:500]}")
        return json.loads(text)

    def patch(self, path, body):
        return self.ask("PATCH", path, body, "application/merge-patch+json")

    def pod(self, name, address, spec):
        """A pod that runs and is ready; its uid."""
        metadata = {"name": name, "namespace": "default", "labels": {"app": "logs"}}
        made = self.ask("POST", PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata,
                                       "spec": spec})
        self.patch(f"{PODS}/{name}/status",
                   {"status": {"phase": "Running", "podIP": address, "conditions": [READY]}})
        return made["metadata"]["uid"]

    def secret(self, name, data):
        metadata = {"name": name, "namespace": "default",
                    "annotations": {"stayput.dev/allow": "logs"}}
        self.ask("POST", SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": metadata,
                                   "stringData": data})

    def search_cluster(self, manager_port, engine_port=9200):
        """Over all pods, with one Secret as their config, and tokens of a service account."""
        account = {"apiVersion": "v1", "kind": "ServiceAccount",
                   "metadata": {"name": "reconciler", "namespace": "default"}}
        self.ask("POST", "/api/v1/namespaces/default/serviceaccounts", account)
        spec = {"pods": {"selector": {"matchLabels": {"app": "logs"}}},
                "engine": {"scheme": "http", "port": engine_port},
                "manager": {"port": manager_port, "serverName": "localhost", "caSecret": "ca",
                            "auth": {"serviceAccountToken": {}}},
                "config": {"sources": [{"secret": "config"}]}, "restart": {"drain": "0s"}}
        self.ask("POST", CLUSTERS, {"apiVersion": "stayput.dev/v1alpha1", "kind": "SearchCluster",
                                    "metadata": {"name": "logs", "namespace": "default"},
                                    "spec": spec})

    def status(self):
        return self.ask("GET", f"{CLUSTERS}/logs").get("status", {})


class Proxy:
    """Passes bytes on, and counts the requests in them by method and resource."""

    def __init__(self, port):
        self.target = port
        self.counts = collections.Counter()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(("127.0.0.1", self.target))
            for stream in client, server:
                stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for arguments in (client, server, True), (server, client, False):
                threading.Thread(target=self.pass_on, args=arguments, daemon=True).start()

    def pass_on(self, source, sink, is_request):
        try:
            while data := source.recv(1 << 16):
                if is_request:
                    self.count(data)
                elif data.startswith(b"HTTP/1.1 409"):
                    self.counts["409"] += 1
                sink.sendall(data)
        except OSError:
            pass  # the other side is gone
        for stream in source, sink:
            stream.close()

    def count(self, data):
        for method, path in REQUEST.findall(data):
            words = path.decode().partition("?")[0].strip("/").split("/")
            at = words.index("namespaces") + 2 if "namespaces" in words[:-1] else 3
            names = words[at:at + 1] + words[at + 2:at + 3]
            verb = "WATCH" if b"watch=" in path else method.decode()
            self.counts[f"{verb} {'/'.join(names)}"] += 1

    def writes(self):
        reads = ("GET ", "WATCH ", "409")
        return {kind: many for kind, many in self.counts.items() if not kind.startswith(reads)}


class Reconciler:
    """The program, on this kubeconfig."""

    def __init__(self, workdir, apiserver):
        self.listen = f"127.0.0.1:{free_port()}"
        with open(workdir / "reconciler.log", "ab") as log:
            self.process = subprocess.Popen(
                [os.environ["BENCH_RECONCILER"], "run", "--kubeconfig", apiserver.kubeconfig,
                 "--listen", self.listen, "--own-name", "bench",
                 "--own-namespace", "default", "--service-account", "reconciler",
                 "--no-election"],
                stdout=log, stderr=log)
        self.pid = self.process.pid
        try:
            until(lambda: "phase" in apiserver.status(), "a first status", limit=120, pause=0.1)
        except Exception:
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)

    def metrics(self):
        connection = http.client.HTTPConnection(self.listen)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        return text

    def reconciles(self):
        """How many have ended."""
        return int(re.search(r"^stayput_reconciles_total (\d+)", self.metrics(), re.MULTILINE)[1])

    def requests(self, outcome=r"\w+"):
        """By its own count: how many were sent to whom, and had this outcome."""
        total = collections.Counter()
        for labels, many in re.findall(r'_requests_total\{([^}]*)\} (\d+)', self.metrics()):
            if re.search(f'outcome="{outcome}"', labels):
                total[re.search(r'to="(\w+)"', labels)[1]] += int(many)
        return total
