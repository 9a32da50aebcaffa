"""A manager with everything on: TLS, JWT, socket, journal, config. And the same for a client."""

import socket
import ssl
import subprocess

from lib.manager import STAYPUT, Manager


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Secure:
    """Keys, certificate, token and port in `workdir`."""

    def __init__(self, workdir):
        self.certificate, self.token_file = workdir / "tls.pem", workdir / "token"
        self.key, secret = workdir / "tls.key", workdir / "jwt.key"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
             "-nodes", "-days", "1", "-subj", "/CN=localhost", "-addext",
             "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE",
             "-keyout", self.key, "-out", self.certificate],
            check=True, capture_output=True)
        secret.write_bytes(b"0123456789abcdef0123456789abcdef")
        secret.chmod(0o600)
        self.token = subprocess.run(
            [STAYPUT, "token", "--key", secret, "--scope", "read", "--audience", "bench",
             "--ttl", "1h"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        self.token_file.write_text(self.token)
        self.address = f"127.0.0.1:{free_port()}"
        (workdir / "config").mkdir()
        (workdir / "config" / "elasticsearch.yml").write_text("cluster.name: bench\n")
        self.options = ["--listen", self.address, "--tls-cert", self.certificate, "--tls-key", self.key,
                        "--jwt-key", secret, "--jwt-audience", "bench",
                        "--config", workdir / "config"]

    def manager(self, workdir, program=STAYPUT):
        return Manager(workdir, *self.options, program=program)

    def requests(self, count):
        """This many requests, each on a new connection."""
        context = ssl.create_default_context(cafile=self.certificate)
        host, _, port = self.address.partition(":")
        request = (f"GET /es/status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                   f"Authorization: Bearer {self.token}\r\n\r\n").encode()
        for _ in range(count):
            with context.wrap_socket(socket.create_connection((host, int(port))),
                                     server_hostname="localhost") as stream:
                stream.sendall(request)
                answer = stream.recv(65536)
                assert answer.startswith(b"HTTP/1.1 200"), answer
