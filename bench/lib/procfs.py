"""What the kernel shows about a process."""

import os
import time
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    """User and system time of all its threads, those that ended included."""
    return sum(times(Path(f"/proc/{pid}/stat"))[:2]) / TICKS


def cpu_seconds_with_children(pid):
    """The same with that of its children that it has reaped."""
    return sum(times(Path(f"/proc/{pid}/stat"))) / TICKS


def cpu_seconds_of_threads(pid, name):
    """That of its living threads whose names contain this."""
    ticks = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        try:
            if name in (thread / "comm").read_text():
                ticks += sum(times(thread / "stat")[:2])
        except (FileNotFoundError, ProcessLookupError):
            # It has ended meanwhile.
            continue
    return ticks / TICKS


def times(stat):
    """Ticks: user, system, and both of children that were reaped (for a thread, those of its process)."""
    return list(map(int, stat.read_text().rpartition(")")[2].split()[11:15]))


def context_switches(pid):
    """The context switches of all its threads."""
    total = 0
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        for line in status.read_text().splitlines():
            if "ctxt_switches" in line:
                total += int(line.split()[1])
    return total


def memory(pid):
    """The fields of smaps_rollup, in kB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    return {line.split(":")[0]: int(line.split()[1]) for line in lines}


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def children(pid):
    """Pids of its children, zombies included."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += map(int, (task / "children").read_text().split())
    return found


def state(pid):
    """R, S, Z…; None if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None


def until(condition, what, limit=30.0, pause=0.002):
    """Polls until the condition is true."""
    deadline = time.monotonic() + limit
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {limit} s for {what}")
        time.sleep(pause)
