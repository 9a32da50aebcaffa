"""Keeps other programs of a shared machine out of short timings."""

import os
import resource

from lib.report import say

# A program that computes for so long without a pause is in an endless loop, and would use its
# processor for ever: the kernel ends it.
PAUSE_WITHIN = 10_000_000  # microseconds


def undisturbed():
    """From here on this program and all it starts, ours and peers, go before everything else.

    Niceness would not do: with autogroups it counts only within a session, and an engine has its
    own.
    """
    try:
        resource.setrlimit(resource.RLIMIT_RTTIME, (PAUSE_WITHIN, PAUSE_WITHIN))
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    except PermissionError:
        say("not root: other programs disturb these timings")
