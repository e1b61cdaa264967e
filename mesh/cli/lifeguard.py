"""`sim --experiment lifeguard`: many runs, in several processes if wanted, kept as they end.

The runs are independent and each depends on its seed alone: their order, and so the result, is the
same whatever the number of processes. A journal has one line of JSON for each run, so that a sweep
that was interrupted goes on where it stopped. It is for one version of the program: what was run
under another is not told apart.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

from mesh.cli.arguments import user_path
from mesh.cli.stdio import complain
from mesh.cli.text import print_json
from mesh.errors import ConfigError
from mesh.sim.comparison import compare, to_text
from mesh.sim.variants import Job, Run, jobs_of, perform, recall


def run_lifeguard(options: argparse.Namespace) -> int:
    """Run the sweep, or what the journal does not have of it, and print what it came to."""
    seeds = (options.seed,) if options.seeds is None else options.seeds
    jobs = jobs_of(seeds, is_quick=options.quick)
    path = None if options.journal is None else user_path("--journal", options.journal)
    found = {} if path is None else _read(path, jobs)
    todo = [job for job in jobs if job not in found]
    progress = complain if sys.stderr.isatty() else None
    with ExitStack() as stack:
        journal = None if path is None else stack.enter_context(path.open("a", encoding="utf-8"))
        for run in perform_all(todo, options.jobs):
            found[run.job] = run
            _keep(journal, run)
            if progress is not None:
                progress(f"{len(found)} of {len(jobs)} runs: {run.job}")
    runs = [found[job] for job in jobs]
    comparison = compare(runs)
    if options.json:
        print_json({**comparison.to_json(), "runs": [run.to_json() for run in runs]})
    else:
        print(to_text(comparison))
    return 0


def perform_all(jobs: Sequence[Job], processes: int) -> Iterator[Run]:
    """Yield the runs in the order of the jobs, each as soon as it and those before it are done."""
    if processes == 1 or len(jobs) < 2:
        yield from map(perform, jobs)
        return
    context = multiprocessing.get_context("spawn")
    with context.Pool(min(processes, len(jobs)), _leave_ctrl_c_to_the_parent) as pool:
        yield from pool.imap(perform, jobs)


def _leave_ctrl_c_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _keep(journal: TextIO | None, run: Run) -> None:
    if journal is not None:
        journal.write(f"{json.dumps(run.to_json())}\n")
        journal.flush()


def _read(path: Path, jobs: Sequence[Job]) -> dict[Job, Run]:
    """Return the wanted runs that a journal has. A last line that was cut off is taken away.

    Raises:
        ConfigError: something else stands in the file.
    """
    if not path.exists():
        return {}
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    try:
        found = recall(jobs, map(json.loads, whole.splitlines()))
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"--journal expects a run of the experiment in each line of {path}, found another line "
            f"({type(error).__name__}: {error}); name another file"
        ) from error
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    return found
