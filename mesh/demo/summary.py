"""What came of the demo: every result checked, and the story in a few lines."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from mesh.demo.job import Digest
from mesh.demo.survey import Survey

PROBLEMS_SHOWN_MAX: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What happened beside the work."""

    victim: str
    interrupted: int  # tasks that the victim ran when it was killed
    cut_off: int  # tasks that were cancelled for want of time; they count nowhere else
    notices_ms: dict[str, float | None]  # by survivor; None: never noticed
    accused: tuple[str, ...]  # the living that somebody held to be dead
    took_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The outcome. `problems` holds a sentence for everything that is not as it should be."""

    story: Story
    files: int
    bytes: int
    compressed_bytes: int
    tasks: int
    attempts: int
    reruns: tuple[str, ...]
    problems: tuple[str, ...]

    @property
    def is_good(self) -> bool:
        """Say whether there are results, every one is right, and every survivor noticed the death."""
        notices = self.story.notices_ms.values()
        return self.files > 0 and not self.problems and bool(notices) and None not in notices


def judge(
    work: Survey,
    digests: Sequence[Digest],
    tasks: Sequence[dict[str, Any]],
    story: Story,
    *,
    problems: Sequence[str] = (),
) -> Verdict:
    """Check every result against the files themselves and return the verdict."""
    found = list(problems)
    counted = Counter(digest.name for digest in digests)
    found += [
        f"{name} has {counted[name]} results, not one" for name in work.names if counted[name] != 1
    ]
    found += [f"{name} was never asked for" for name in counted.keys() - set(work.names)]
    found += [
        f"{digest.name} is said to have sha256 {digest.sha256[:12]}… and {digest.bytes} bytes, which is wrong"
        for digest in digests
        if (digest.sha256, digest.bytes) != _hash(work.root / digest.name)
    ]
    found += [
        f"task {task['id']} is {task['state']} with exit code {(task['result'] or {}).get('exit_code')}: {task['cause']}"
        for task in tasks
        if task["state"] != "done"
    ]
    return Verdict(
        story=story,
        files=len(digests),
        bytes=sum(digest.bytes for digest in digests),
        compressed_bytes=sum(digest.compressed_bytes for digest in digests),
        tasks=len(tasks),
        attempts=sum(len(task["attempts"]) for task in tasks),
        reruns=tuple(_reruns(tasks)),
        problems=tuple(found),
    )


def summary_text(verdict: Verdict) -> str:
    """Return the verdict as lines for people."""
    small, story = verdict.compressed_bytes, verdict.story
    ratio = verdict.bytes / max(small, 1)
    noticed = ", ".join(
        f"{name} {'NOT' if ms is None else f'after {ms:.0f} ms'}"
        for name, ms in story.notices_ms.items()
    )
    cut = f"cut short    {story.cut_off} tasks, so that the demo ends soon: name fewer files with --files"
    whole = f" of {verdict.tasks + story.cut_off}" if story.cut_off else ""
    lines = [
        f"files        {verdict.files}, {verdict.bytes / 1e6:.1f} MB to {small / 1e6:.1f} MB (ratio {ratio:.1f})",
        f"tasks        {verdict.tasks}{whole}, in {verdict.attempts} attempts",
        f"killed       {story.victim}, which interrupted {story.interrupted or 'no'} tasks",
        f"noticed by   {noticed}",
        f"also accused {', '.join(story.accused) or 'nobody'}",
        f"run again    {len(verdict.reruns) or 'nothing'}",
        *(f"             {rerun}" for rerun in verdict.reruns),
        *([cut] if story.cut_off else []),
        f"time         {story.took_s:.1f} s",
        f"results      {_results_text(verdict)}",
        *(f"             {problem}" for problem in verdict.problems[:PROBLEMS_SHOWN_MAX]),
    ]
    return "\n".join(lines)


def _results_text(verdict: Verdict) -> str:
    if verdict.problems:
        return f"{len(verdict.problems)} problems:"
    return "every one is right" if verdict.files else "none: no task ended in time"


def _reruns(tasks: Sequence[dict[str, Any]]) -> list[str]:
    return [
        f"{task['id']} on {after['node']}, because {before['node']} was lost ({after['cause']})"
        for task in tasks
        for before, after in pairwise(task["attempts"])
    ]


def _hash(path: Path) -> tuple[str, int]:
    """Return the digest and size of one file as this process reads it."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest(), path.stat().st_size
    except OSError:
        return "", -1
