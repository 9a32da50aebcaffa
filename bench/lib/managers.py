"""Ten thousand managers in a few processes: at every address of 127/8 the status of a real one, with the
uid of the pod that has this address."""

import asyncio
import json
import os
import signal
import socket
import ssl

from lib.secure import free_port


class Managers:
    """Answers from `start` until the end, over TLS with this certificate."""

    def __init__(self, certificate, key, status):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate, key)
        self.status = status
        self.port = free_port()
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # All addresses of this machine; none can be reached from outside.
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo")
        self.listener.bind(("0.0.0.0", self.port))
        self.listener.listen(1024)
        self.pids = []

    def start(self, uids):
        """In separate processes, so that they do not slow down the interpreter that measures."""
        for _ in range(os.cpu_count()):
            pid = os.fork()
            if pid == 0:
                try:
                    asyncio.run(self.serve(uids))
                finally:
                    os._exit(1)
            self.pids.append(pid)
        self.listener.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pid in self.pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    async def serve(self, uids):
        async def answer(reader, writer):
            try:
                while await reader.readuntil(b"\r\n\r\n"):
                    uid = uids[writer.get_extra_info("sockname")[0]]
                    writer.write(self.answer(uid))
                    await writer.drain()
            except (asyncio.IncompleteReadError, OSError):
                pass  # it has its answer and goes
            writer.close()
        server = await asyncio.start_server(answer, sock=self.listener, ssl=self.context)
        await server.serve_forever()

    def answer(self, uid):
        """The random parts of a manager's status come from the pod's uid, so that no two are equal."""
        status = self.status
        own = uid.replace("-", "")[:16]
        manager = {**status["manager"], "boot_id": own, "pod": {**status["manager"]["pod"],
                                                                "uid": uid}}
        status_of_pod = {**status, "manager": manager, "cursor": f"{own}:7",
                "run": {**status["run"], "id": own}}
        body = json.dumps(status_of_pod).encode()
        return (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                % len(body)) + body
