"""A real engine with its own JVM options, with and without the archive of `stayput warm`: OpenSearch, or an
Elasticsearch 7.17 in its place.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

from lib.procfs import cpu_seconds_with_children
from lib.report import say
from lib.secure import free_port

HOME = Path(os.environ["STAYPUT_OPENSEARCH_HOME"])
[PROGRAM] = (path for path in map((HOME / "bin").joinpath, ("opensearch", "elasticsearch")) if path.exists())
# Engines refuse to run as root.
AS_ENGINE = ["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups"]


class Warmed:
    """Two configs of the engine in `folder`: one names the archive, which is made here; the other does not."""

    def __init__(self, folder):
        self.folder = folder
        warm, cold = folder / "warm", folder / "cold"
        options = warm / "jvm.options.d/warm.options"
        os.makedirs(options.parent)
        for name in ("jvm.options", "log4j2.properties"):
            text = (HOME / "config" / name).read_text()
            lines = [line.replace("=logs/", f"={folder}/").replace("Path=data", f"Path={folder}")
                     for line in text.splitlines() if "logs/gc.log" not in line]
            (warm / name).write_text("\n".join(lines) + "\n")
        # Elasticsearch would take half of the machine's memory, and touch all of it.
        (options.parent / "heap.options").write_text("-Xms1g\n-Xmx1g\n")
        settings = {"opensearch": "", "elasticsearch": "xpack.security.enabled: false\n"}[PROGRAM.name]
        (warm / f"{PROGRAM.name}.yml").write_text(settings)
        shutil.copytree(warm, cold)
        self.configs = {True: warm, False: cold}
        program = shutil.copy(os.environ["BENCH_STAYPUT"], folder / "stayput")
        subprocess.run(["chown", "-R", "1000:1000", folder], check=True)
        folder.chmod(0o755)
        done = subprocess.run(
            [*AS_ENGINE, program, "warm", "--archive", folder / "warm.jsa", "--options", options,
             "--", PROGRAM],
            env=self.environment(True), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            check=True)
        say(done.stdout.splitlines()[-2])

    def environment(self, warm):
        config = str(self.configs[warm])
        return {**os.environ, "OPENSEARCH_PATH_CONF": config, "ES_PATH_CONF": config, "TMPDIR": str(self.folder),
                "ES_JAVA_HOME": os.environ["JAVA_HOME"]}

    @contextmanager
    def running(self, warm):
        """An engine that has begun, and that is stopped at the end."""
        with tempfile.TemporaryDirectory(dir=self.folder) as data:
            os.chown(data, 1000, 1000)
            engine = Engine(self.environment(warm), data)
            try:
                yield engine
            finally:
                engine.stop()


class Engine:
    """One process of the engine, from its exec."""

    def __init__(self, environment, data):
        self.port, self.began, self.ending = free_port(), time.monotonic(), None
        self.process = subprocess.Popen(
            [*AS_ENGINE, PROGRAM, f"-Epath.data={data}/d", f"-Epath.logs={data}/l",
             f"-Ehttp.port={self.port}", f"-Etransport.port={free_port()}",
             "-Ediscovery.type=single-node"],
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.pid = self.process.pid

    def wait(self, warm):
        """Seconds to the first answer of its health, and processor seconds until then. The archive must
        be mapped, or not."""
        while not self.answers():
            if self.process.poll() is not None:
                raise RuntimeError(f"the engine ended with {self.process.returncode}")
            time.sleep(0.01)
        took, used = time.monotonic() - self.began, cpu_seconds_with_children(self.pid)
        mapped = "warm.jsa" in Path(f"/proc/{self.pid}/maps").read_text()
        if mapped != warm:
            raise RuntimeError("the archive is mapped" if mapped else "it is not mapped")
        return took, used

    def answers(self):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}/_cluster/health", timeout=30).read()
            return True
        except OSError:
            return False

    def stop(self):
        asked = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        # Seconds from TERM to its end.
        self.ending = time.monotonic() - asked
