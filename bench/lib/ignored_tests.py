"""Measurements that are ignored tests of `real`, because these tests have the clusters."""

import json
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def measure(test, many):
    """The lines of JSON that an ignored test prints."""
    done = subprocess.run(
        ["cargo", "test", "--quiet", "--test", "real", "--", "--ignored", "--exact", "--nocapture",
         test],
        cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "STAYPUT_ROUNDS": str(many),
             "STAYPUT_MEASURED_BIN": os.environ["BENCH_STAYPUT"],
             "STAYPUT_MEASURED_RECONCILER_BIN": os.environ["BENCH_RECONCILER"],
             "STAYPUT_STATIC_BIN": os.environ["BENCH_STAYPUT"],
             "STAYPUT_STATIC_RECONCILER_BIN": os.environ["BENCH_RECONCILER"],
             "STAYPUT_STATIC_ENGINE_BIN": os.environ["BENCH_ENGINE"]})
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        raise RuntimeError(f"{test} measured nothing:\n{done.stdout}")
    return lines
