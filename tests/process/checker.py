#!/usr/bin/env python3
"""Judge a real run of a mesh from outside: by what its tasks wrote, and by what its clients were told.

    checker.py LOG ACKS [--json] [--no-extra]       exit code 0: nothing is wrong, 1: something, 2: nothing to judge

It knows nothing of Mesh. Both files hold one JSON object a line, with `at_ns` of one clock (`recorder.py`):

    LOG     kind: start (with every_ns) | heartbeat | write | end | failed; task, token, run, node
    ACKS    kind: submitted | acknowledged, task;   told, task, state: done | failed | cancelled
            attempt, task, token, cause             what the mesh says it started, and why

What it accuses:

    lost            acknowledged, no run came to a good end, and nobody was told failed or cancelled
    duplicated      more than one run came to a good end, and no cause is on record for the second
    unexplained     a further run of a task without a cause on record (`first` is none)
    overlapping     two runs of a task provably ran at one time
    out_of_order    a start without a higher token than all before it, or a sign of life of a run after one
                    with a higher token had started
    stale_write     the same for a write
    unsubmitted     a run of a task that nobody submitted
    revived         a start after a client was told that the task is over
    contradicted    clients were told two different ends
    malformed       a line that is none, or that does not fit its run: the evidence is damaged

Further runs with a cause are counted, not accused: at least once is the promise. `--no-extra` accuses them,
too, for a run in which nothing was broken. A task whose client was told that it failed is not lost; where none
may fail, look at `told`. A last line without its end is reported and not accused: the log may still grow.

**Order** is the order of the log: that is how the lines reached the resource. **Time** is when a run was
seen to run, a moment before its line arrived. A run *provably ran* from one of its lines to the next, if no
more than twice the interval that it declared lies between them (a heartbeat may be late by one interval); in
a longer gap it may have been frozen, so nothing is claimed there. Two runs overlap if such a stretch, or a
single line, of one lies inside one of the other. So a freeze of less than twice the interval counts as
running: declare one of which the double is far below the shortest lawful takeover.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, NamedTuple

KINDS = (
    "lost", "duplicated", "unexplained", "overlapping", "out_of_order", "stale_write", "unsubmitted",
    "revived", "contradicted", "malformed",
)  # fmt: skip
LATE_FACTOR = 2
SHOWN_MAX = 20
_SIGNS = {"start", "heartbeat", "write", "end", "failed"}
_DAMAGE = (KeyError, TypeError, ValueError, OverflowError)
_NO_CAUSE = ("none", "first")
_STATES = {"done", "failed", "cancelled"}


class Line(NamedTuple):
    """A line of one of the files."""

    file: str
    number: int
    text: str


class Violation(NamedTuple):
    """Something that must not be, and the lines that show it."""

    kind: str
    task: str
    text: str
    lines: list[Line]


@dataclass(eq=False)
class Run:
    """One run of a task, as far as its lines tell."""

    task: str
    token: int
    name: str
    node: str
    every_ns: int
    lines: list[Line] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    late: list[int] = field(default_factory=list)
    """Which of its lines came after the start of a token that is not lower."""

    def __str__(self) -> str:
        return f"run {self.name} (token {self.token}, {self.node})"

    @property
    def has_ended_well(self) -> bool:
        return self.kinds[-1] == "end"

    def stretches(self) -> Iterator[tuple[int, int]]:
        """Yield from which line to which it provably ran."""
        begin = 0
        for index, (before, after) in enumerate(pairwise(self.times)):
            if after - before > LATE_FACTOR * self.every_ns:
                yield begin, index
                begin = index + 1
        yield begin, len(self.times) - 1


@dataclass
class Evidence:
    """What both files say."""

    runs: dict[str, list[Run]] = field(default_factory=lambda: defaultdict(list))
    submitted: set[str] = field(default_factory=set)
    acknowledged: dict[str, Line] = field(default_factory=dict)
    told: dict[str, list[tuple[int, str, Line]]] = field(default_factory=lambda: defaultdict(list))
    causes: dict[tuple[str, int], str] = field(default_factory=dict)
    torn: list[Line] = field(default_factory=list)
    damage: list[Violation] = field(default_factory=list)


def records(place: Path, evidence: Evidence) -> Iterator[tuple[Line, dict[str, Any]]]:
    """Yield the objects of a file; note what is none."""
    *whole, last = place.read_bytes().split(b"\n")
    for number, raw in enumerate([*whole, last] if last else whole, 1):
        line = Line(place.name, number, raw.decode(errors="replace"))
        try:
            record = json.loads(raw.decode())
        except (ValueError, RecursionError):
            record = None
        if isinstance(record, dict):
            yield line, record
        elif number > len(whole):
            evidence.torn.append(line)
        else:
            evidence.damage.append(Violation("malformed", "", "expected a JSON object", [line]))


def read_log(place: Path, evidence: Evidence) -> None:
    """Put the lines of the log together to runs."""
    by_name: dict[str, Run] = {}
    highest: dict[str, int] = {}
    for line, record in records(place, evidence):
        try:
            kind, at_ns, name = str(record["kind"]), int(record["at_ns"]), str(record["run"])
            task, token = str(record["task"]), int(record["token"])
            run = by_name.get(name)
            if kind == "start" and run is None:
                run = Run(task, token, name, str(record["node"]), int(record["every_ns"]))
        except _DAMAGE as error:
            what = f"expected a line of a run, found none: {error!r}"
            evidence.damage.append(Violation("malformed", "", what, [line]))
            continue
        if what := misfit(run, kind, (task, token), at_ns):
            evidence.damage.append(Violation("malformed", task, f"run {name}: {what}", [line]))
            continue
        assert run is not None
        if kind == "start":
            by_name[name] = run
            evidence.runs[task].append(run)
        seen = highest.get(task, -1)
        if token < seen or (kind == "start" and token == seen):
            run.late.append(len(run.lines))
        elif kind == "start":
            highest[task] = token
        run.lines.append(line)
        run.kinds.append(kind)
        run.times.append(at_ns)


def misfit(run: Run | None, kind: str, of: tuple[str, int], at_ns: int) -> str:
    """Say why a line does not fit what its run wrote before; "" if it does."""
    if kind not in _SIGNS:
        return f"{kind!r} is no kind of line"
    if run is None:
        return f"a {kind} without a start"
    if of != (run.task, run.token):
        return "it changed its task or its token"
    if kind == "start" and run.lines:
        return "it started twice"
    if run.kinds[-1:] in (["end"], ["failed"]):
        return f"a {kind} after its end"
    if run.times and at_ns < run.times[-1]:
        return "its clock went back"
    if run.every_ns <= 0:
        return f"its interval is {run.every_ns} ns"
    return ""


def read_acks(place: Path, evidence: Evidence) -> None:
    """Read what clients did and were told."""
    for line, record in records(place, evidence):
        try:
            kind, task, at_ns = str(record["kind"]), str(record["task"]), int(record["at_ns"])
            if kind == "told" and record["state"] in _STATES:
                evidence.told[task].append((at_ns, record["state"], line))
            elif kind == "attempt":
                evidence.causes[task, int(record["token"])] = str(record["cause"])
            elif kind == "acknowledged":
                evidence.acknowledged.setdefault(task, line)
            elif kind != "submitted":
                raise ValueError(f"{kind!r} is no kind of line, or has no good state")
        except _DAMAGE as error:
            what = f"expected what a client was told: {error!r}"
            evidence.damage.append(Violation("malformed", "", what, [line]))
            continue
        evidence.submitted.add(task)


def ended(runs: Iterable[Run]) -> list[Run]:
    """Return the runs that came to a good end."""
    return [run for run in runs if run.has_ended_well]


def judge_ends(evidence: Evidence) -> Iterator[Violation]:
    """Each acknowledged task ends, once, and everybody is told the same."""
    for task, line in evidence.acknowledged.items():
        runs, told = evidence.runs.get(task, []), evidence.told.get(task, [])
        states = {state for _, state, _ in told}
        if not ended(runs) and not states & {"failed", "cancelled"}:
            story = f"told {' and '.join(states) or 'nothing'}, {len(runs)} runs, none came to a good end"
            lines = [line, *(each for _, _, each in told), *(run.lines[-1] for run in runs)]
            yield Violation("lost", task, f"acknowledged, {story}", lines)
    for task, told in evidence.told.items():
        if len({state for _, state, _ in told}) > 1:
            states_told = ", then ".join(state for _, state, _ in told)
            yield Violation("contradicted", task, f"told {states_told}", [each[2] for each in told])


def judge_runs(evidence: Evidence, *, is_extra_wrong: bool) -> Iterator[Violation]:
    """Each run has a reason."""
    for task, runs in evidence.runs.items():
        if task not in evidence.submitted:
            starts = [run.lines[0] for run in runs]
            yield Violation(
                "unsubmitted", task, f"{len(runs)} runs, and nobody submitted it", starts
            )
        over = min(evidence.told.get(task, []), default=None)
        for run in runs:
            if over and run.times[0] > over[0]:
                text = f"{run} started after a client was told {over[1]}"
                yield Violation("revived", task, text, [over[2], run.lines[0]])
        first, *further = sorted(runs, key=lambda run: run.token)
        accused = [run for run in further if is_extra_wrong or cause(evidence, run) in _NO_CAUSE]
        for run in accused:
            text = f"{run} is extra, its cause on record: {cause(evidence, run)}"
            yield Violation("unexplained", task, text, [first.lines[0], run.lines[0]])
        good = ended([first, *further])
        if any(run in accused for run in good[1:]):
            text = f"{len(good)} runs came to a good end"
            yield Violation("duplicated", task, text, [run.lines[-1] for run in good])


def cause(evidence: Evidence, run: Run) -> str:
    """Return what the mesh has on record for why it started a run."""
    return evidence.causes.get((run.task, run.token), "none")


def judge_order(runs: Iterable[Run]) -> Iterator[Violation]:
    """Tokens rise with starts, and who has been replaced is silent."""
    for run in runs:
        signs: dict[str, list[Line]] = defaultdict(list)
        for index in run.late:
            kind = "stale_write" if run.kinds[index] == "write" else "out_of_order"
            signs[kind].append(run.lines[index])
        for kind, lines in signs.items():
            text = f"{run}: {len(lines)} lines after a token that is not lower had started"
            yield Violation(kind, run.task, text, lines)


def judge_overlap(runs: list[Run]) -> Iterator[Violation]:
    """No two runs of a task run at one time."""
    for one, other in combinations(runs, 2):
        for a, b in one.stretches():
            for c, d in other.stretches():
                begin = max(one.times[a], other.times[c])
                end = min(one.times[b], other.times[d])
                if one.times[a] < other.times[d] and other.times[c] < one.times[b]:
                    text = f"{one} and {other} both ran for {(end - begin) / 1e6:.3f} ms"
                    lines = [one.lines[a], one.lines[b], other.lines[c], other.lines[d]]
                    yield Violation("overlapping", one.task, text, lines)


def judge(evidence: Evidence, *, is_extra_wrong: bool = False) -> list[Violation]:
    """Return everything that must not be."""
    found = [*evidence.damage, *judge_ends(evidence)]
    found += judge_runs(evidence, is_extra_wrong=is_extra_wrong)
    for runs in evidence.runs.values():
        found += judge_order(runs)
        if len(runs) > 1:
            found += judge_overlap(runs)
    return sorted(found, key=lambda violation: KINDS.index(violation.kind))


def summary(evidence: Evidence, found: list[Violation]) -> dict[str, Any]:
    """Return all that is counted."""
    extra = {task: len(runs) - 1 for task, runs in evidence.runs.items() if len(runs) > 1}
    later = [
        run
        for runs in evidence.runs.values()
        for run in sorted(runs, key=lambda run: run.token)[1:]
    ]
    causes = Counter(cause(evidence, run) for run in later)
    counts = Counter(violation.kind for violation in found)
    return {
        "tasks": {"submitted": len(evidence.submitted), "acknowledged": len(evidence.acknowledged)},
        "told": dict(Counter(told[-1][1] for told in evidence.told.values())),
        "runs": sum(map(len, evidence.runs.values())),
        "ended": sum(len(ended(runs)) for runs in evidence.runs.values()),
        "extra_runs": {"count": len(later), "causes": dict(causes), "tasks": extra},
        "torn": [line._asdict() for line in evidence.torn],
        "counts": {kind: counts[kind] for kind in KINDS},
        "violations": [
            {**violation._asdict(), "lines": [line._asdict() for line in violation.lines]}
            for violation in found
        ],
    }


def tell(report: dict[str, Any]) -> None:
    """Print a report for people."""
    tasks, extra = report["tasks"], report["extra_runs"]
    told = "".join(f", {count} told {state}" for state, count in sorted(report["told"].items()))
    print(f"tasks: {tasks['submitted']} submitted, {tasks['acknowledged']} acknowledged{told}")
    print(f"runs: {report['runs']}, of which {report['ended']} came to a good end")
    causes = ", ".join(f"{cause} {count}" for cause, count in sorted(extra["causes"].items()))
    print(f"extra runs: {extra['count']} of {len(extra['tasks'])} tasks ({causes or 'none'})")
    for task, count in list(extra["tasks"].items())[:SHOWN_MAX]:
        print(f"    {task}: {count}")
    for line in report["torn"]:
        print(f"torn: {line['file']}:{line['number']} {line['text']}")
    print(", ".join(f"{kind} {count}" for kind, count in report["counts"].items()))
    shown: Counter[str] = Counter()
    for violation in report["violations"]:
        shown[violation["kind"]] += 1
        if shown[violation["kind"]] <= SHOWN_MAX:
            print(f"{violation['kind']}: {violation['task']}: {violation['text']}")
            for line in violation["lines"][:SHOWN_MAX]:
                print(f"    {line['file']}:{line['number']} {line['text']}")


def main(arguments: list[str]) -> int:
    """Judge two files."""
    parser = argparse.ArgumentParser(description="Judge a real run of a mesh from outside.")
    parser.add_argument("log", type=Path, help="what the tasks wrote")
    parser.add_argument("acks", type=Path, help="what the clients were told")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument("--no-extra", action="store_true", help="accuse every further run")
    wanted = parser.parse_args(arguments)
    evidence = Evidence()
    try:
        read_log(wanted.log, evidence)
        read_acks(wanted.acks, evidence)
    except OSError as error:
        print(f"expected a log and a file of acknowledgements: {error}", file=sys.stderr)
        return 2
    report = summary(evidence, judge(evidence, is_extra_wrong=wanted.no_extra))
    if wanted.json:
        print(json.dumps(report, indent=2))
    else:
        tell(report)
    if report["violations"]:
        return 1
    if not evidence.acknowledged:
        print("no task was acknowledged: there is nothing to judge", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
