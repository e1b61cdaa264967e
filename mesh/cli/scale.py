"""`sim --scale`: each size in a process of its own, so that the memory it took is its own."""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import signal
import sys
import time
from typing import Final

from mesh.cli.arguments import user_path
from mesh.cli.stdio import complain
from mesh.cli.text import print_json
from mesh.sim.scale import JOINED_MAX, Calm, measure_calm, measure_join
from mesh.sim.scale_report import Point, to_svg, to_text

_KIB_A_MIB: Final = 1024


def run_scale(options: argparse.Namespace) -> int:
    """Measure every size, the smallest first, and print the table."""
    joined_max = 0 if options.quick else JOINED_MAX
    context = multiprocessing.get_context("spawn")
    points: list[Point] = []
    for members in sorted(set(options.scale)):
        if sys.stderr.isatty():
            complain(f"{members} members")
        with context.Pool(1, signal.signal, (signal.SIGINT, signal.SIG_IGN)) as pool:
            calm, cpu_s, peak_mib = pool.apply(_measure, (options.seed, members))
        joined_s = None
        if members <= joined_max:
            with context.Pool(1, signal.signal, (signal.SIGINT, signal.SIG_IGN)) as pool:
                joined_s = pool.apply(measure_join, (options.seed, members))
        points.append(Point(calm=calm, joined_s=joined_s, cpu_s=cpu_s, peak_mib=peak_mib))
    if options.svg is not None:
        user_path("--svg", options.svg).write_text(to_svg(points), encoding="utf-8")
    if options.json:
        print_json([point.to_json() for point in points])
    else:
        print(to_text(points))
    return 0


def _measure(seed: int, members: int) -> tuple[Calm, float, float]:
    """Return what a converged mesh did, the processor time that took, and the most memory, in MiB."""
    began_s, before_mib = time.process_time(), _peak_mib()
    calm = measure_calm(seed, members)
    return calm, time.process_time() - began_s, _peak_mib() - before_mib


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KIB_A_MIB
