"""Three nodes, real work, one of them killed in the middle: the steps, one after the other, over one value.

    survey -> start -> submit -> kill -> witness -> collect -> verify -> summarise

The tasks are submitted to two nodes, which are asked how they went, and the third is killed with SIGKILL: what it ran
is run again, though it may have voted on it.

It is over within 45 seconds whatever it works on: work that is not done by then is cut short, and
said so. If the third node never got anything to do (there are fewer files than slots), it is killed
all the same, and the story says that nothing was interrupted.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from mesh.demo.display import Display, open_display
from mesh.demo.job import Digest, counted_lines
from mesh.demo.summary import Story, Verdict, judge, summary_text
from mesh.demo.survey import Survey, survey
from mesh.demo.witness import Collector, Witness
from mesh.errors import MeshError
from mesh.fleet.clearing import signals_as_exits
from mesh.fleet.fleet import Fleet, NodeProcess

KEEPERS: Final = ("alpha", "beta")
VICTIM: Final = "gamma"
SLOTS: Final = 2
KILL_AFTER_RATIO: Final = 0.3
KILL_BY_S: Final = 15.0
NOTICE_TIMEOUT_S: Final = 15.0
CUT_AFTER_S: Final = 34.0
"""Work that is not done so long after the start is cut short."""

CANCEL_TIMEOUT_S: Final = 5.0
PROGRESS_S: Final = 0.2


class DemoError(MeshError):
    """The demo could not be played to its end."""


@dataclass(slots=True, kw_only=True)
class Run:
    """Everything that one run of the demo knows; each step reads it and adds to it."""

    work: Survey
    fleet: Fleet
    display: Display
    started: float = field(default_factory=time.monotonic)
    keepers: list[NodeProcess] = field(default_factory=list)
    batch_of: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by task id
    collector: Collector | None = None
    witnesses: list[Witness] = field(default_factory=list)
    running_at_kill: list[str] = field(default_factory=list)
    cut_off: set[str] = field(default_factory=set)  # tasks that were cancelled for want of time
    killed_ns: int = 0
    notices: dict[str, dict[str, Any] | None] = field(default_factory=dict)  # by survivor
    digests: list[Digest] = field(default_factory=list)
    bad_lines: list[str] = field(default_factory=list)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    @property
    def tasks(self) -> Collector:
        """The collector, once work was submitted."""
        if self.collector is None:
            raise DemoError("no work was submitted")
        return self.collector


def run_demo(directory: Path | None, *, files_max: int | None = None, is_kept: bool = False) -> int:
    """Play the demo and return 0 if every result is right and all survivors noticed the death."""
    work = survey(directory, files_max)
    with signals_as_exits(), Fleet("local", is_kept=is_kept) as fleet, open_display() as display:
        run = Run(work=work, fleet=fleet, display=display)
        for step in (start_nodes, submit_work, kill_one, hear_witnesses, collect_results):
            step(run)
        verdict = verify(run)
        display.close()
        print(summary_text(verdict))
        if is_kept:
            print(f"kept         {fleet.home}")
    return 0 if verdict.is_good else 1


def start_nodes(run: Run) -> None:
    """Start three nodes and wait until all see each other."""
    work = run.work
    which = f"the first {len(work.names)}" if work.has_more else f"{len(work.names)}"
    pace = f", at least {work.pace_s:.1f} s for each file" if work.pace_s >= 0.1 else ""
    run.display.say(f"{which} files below {work.root} in {len(work.batches)} tasks{pace}")
    for name in (*KEEPERS, VICTIM):
        node = run.fleet.start(name, slots=SLOTS)
        run.display.say(f"{name} runs as process {node.pid}")
    run.fleet.wait_whole()
    run.keepers = [run.fleet.nodes[name] for name in KEEPERS]
    run.witnesses = [Witness(node) for node in run.keepers]
    run.display.watch([node.data for node in run.keepers])


def submit_work(run: Run) -> None:
    """Submit each batch as a command, by turns to the two nodes that will survive."""
    run.collector = Collector(run.keepers)
    for number, batch in enumerate(run.work.batches):
        node = run.keepers[number % len(run.keepers)]
        command = [sys.executable, "-m", "mesh.demo.job", f"{run.work.pace_s:.4f}"]
        command += [str(run.work.root), *batch]
        task_id = f"batch-{number + 1:03d}"
        node.call("submit", id=task_id, argv=command)
        run.batch_of[task_id] = batch
        run.collector.add(node, task_id)
    run.display.say(f"{len(run.work.batches)} tasks submitted to {' and '.join(KEEPERS)}")


def kill_one(run: Run) -> None:
    """Once part of the work is done and the victim is busy, end it with SIGKILL; busy or not, when it is late."""
    victim, total = run.fleet.nodes[VICTIM], len(run.work.batches)
    while True:
        done = _progress(run, 0.02)
        is_busy = done >= int(total * KILL_AFTER_RATIO) and victim.call("status")["used"]
        if is_busy or done == total or run.elapsed_s > KILL_BY_S:
            break
    run.running_at_kill = _running_on(run, VICTIM)
    run.killed_ns = victim.kill()
    doing = f" while it ran {', '.join(run.running_at_kill) or 'nothing'}"
    run.display.say(f"killed {VICTIM} (SIGKILL, process {victim.pid}){doing}")


def hear_witnesses(run: Run) -> None:
    """Wait until each survivor's own event stream says that the victim is dead."""
    deadline = time.monotonic() + NOTICE_TIMEOUT_S
    waiting = list(run.witnesses)
    while waiting:
        for witness in list(waiting):
            event = witness.wait_event("dead", VICTIM, run.killed_ns, PROGRESS_S)
            if event is not None or time.monotonic() > deadline:
                run.notices[witness.name] = event
                waiting.remove(witness)
                late = f"after {notice_ms(run, event):.0f} ms" if event else "NOT noticed"
                run.display.say(f"{witness.name} noticed the death of {VICTIM} {late}")
            _progress(run, 0.0)


def collect_results(run: Run) -> None:
    """Wait for every task's end, as long as there is time, and read what it printed."""
    while (done := _progress(run, PROGRESS_S)) < len(run.work.batches):
        if run.elapsed_s > CUT_AFTER_S and not run.cut_off:
            _cut_short(run)
        elif run.elapsed_s > CUT_AFTER_S + CANCEL_TIMEOUT_S:
            raise DemoError(f"only {done} of {len(run.work.batches)} tasks ended; see --keep")
    if run.cut_off:  # some may have ended before they were told to
        run.cut_off &= run.tasks.cancelled()
        run.display.say(f"{len(run.cut_off)} of {len(run.work.batches)} tasks cut short")
    for task_id in run.batch_of.keys() - run.cut_off:
        for line in counted_lines(run.tasks.output[task_id].decode("utf-8", "replace")):
            try:
                run.digests.append(Digest.from_line(line))
            except ValueError:
                run.bad_lines.append(f"{task_id} printed {line[:80]!r}")


def verify(run: Run) -> Verdict:
    """Compare every result with what this process reads itself, and gather the story."""
    notices_ms = {
        name: notice_ms(run, event) if event else None for name, event in run.notices.items()
    }
    accused = sorted(
        {
            f"{event['member']} by {witness.name}"
            for witness in run.witnesses
            for event in witness.events()
            if event["kind"] == "dead" and event["member"] != VICTIM
        }
    )
    counted = {i: batch for i, batch in run.batch_of.items() if i not in run.cut_off}
    names = tuple(name for batch in counted.values() for name in batch)
    story = Story(
        victim=VICTIM,
        interrupted=len(run.running_at_kill),
        cut_off=len(run.cut_off),
        notices_ms=notices_ms,
        accused=tuple(accused),
        took_s=run.elapsed_s,
    )
    return judge(
        replace(run.work, names=names, batches=tuple(counted.values())),
        run.digests,
        [run.tasks.finished[task_id] for task_id in counted],
        story,
        problems=run.bad_lines,
    )


def notice_ms(run: Run, event: dict[str, Any]) -> float:
    """Return how long after the kill this event was seen."""
    return float(event["at_ns"] - run.killed_ns) / 1e6


def _cut_short(run: Run) -> None:
    """Cancel what is not done: there is no more time."""
    run.cut_off = run.batch_of.keys() - run.tasks.finished.keys()
    run.display.say(
        f"no time for the last {len(run.cut_off)} tasks: cancelling what does not end by itself"
    )
    for number, task_id in enumerate(run.batch_of):
        if task_id in run.cut_off:
            run.keepers[number % len(run.keepers)].call("cancel", id=task_id)


def _running_on(run: Run, name: str) -> list[str]:
    """Return the tasks that run on a node, as those that keep them say."""
    tasks = run.keepers[0].call("tasks")["tasks"]
    return sorted(t["id"] for t in tasks if t["state"] == "leased" and t["owner"] == name)


def _progress(run: Run, wait_s: float) -> int:
    """Show how many tasks are done; return how many have ended. Wait up to `wait_s` for all of them."""
    ended = run.tasks.wait_count(len(run.work.batches), wait_s)
    if run.tasks.failures:
        raise DemoError(run.tasks.failures[0])
    run.display.progress(ended - len(run.tasks.cancelled()), len(run.work.batches))
    return ended
