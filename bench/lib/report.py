"""One line per figure, for bench/run to gather; progress goes to stderr."""

import json
import os
import statistics
import sys

QUICK = bool(os.environ.get("BENCH_QUICK"))


def rounds(usual, quick):
    """How often to repeat."""
    return quick if QUICK else usual


def say(text):
    print(f"   {text}", file=sys.stderr, flush=True)


def row(figure, ours, peer="", *, ratio=None, target="", met=None):
    """Reports a figure. `met` None: it has no target of its own."""
    text = "" if ratio is None else f"{ratio:.2f}"
    print(json.dumps({"figure": figure, "ours": ours, "peer": peer, "ratio": text,
                      "target": target, "met": met}), flush=True)


def spread(values, unit):
    """Median and the extremes: on a shared machine the extremes show how reliable the median is."""
    low, high = min(values), max(values)
    return f"{statistics.median(values):.3g} {unit} ({low:.3g}–{high:.3g})"


def median(values):
    return statistics.median(values)
