"""A node that is kept for a queue takes that queue's tasks first, and nothing else.

    while it has slots   its queue's tasks one after the other        all begin there
    when it is full      more of them at once than it has slots       the others take the rest
    of other queues      more at once than the others have slots      none begins there

Under each strategy, all of them with one set of nodes.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from bench.contests.finding import Finding
from bench.contests.orders import begun_at, set_strategy, submit
from bench.contests.site import Seat, Site
from mesh.bench.progress import Progress

STRATEGIES: Final = ("rendezvous", "contest", "round_robin", "pull")
NODES: Final = 5
SLOTS: Final = 2
SINGLES: Final = 20
BURST: Final = 30
BURST_MIN: Final = 15
SHORT_S: Final = 0.02
LONG_S: Final = 0.4
KEPT: Final = "kept"


def play(scale: float, progress: Progress) -> list[Finding]:
    """Play all three under each strategy."""
    *names, kept = [f"n{number}" for number in range(1, NODES + 1)]
    queues = {strategy: f"{KEPT}-{strategy}" for strategy in STRATEGIES}
    words = ("--class", "dedicated", *(w for queue in queues.values() for w in ("--queue", queue)))
    seats = [*(Seat(name=name, slots=SLOTS) for name in names)]
    seats.append(Seat(name=kept, slots=SLOTS, options=words))
    findings = []
    with Site(seats) as site:
        for strategy, queue in queues.items():
            progress.task(f"dedicated: {strategy}")
            set_strategy(site, queue, strategy)
            set_strategy(site, f"other-{strategy}", strategy)
            singly = _singly(site, queue, max(4, round(SINGLES * scale)))
            burst = max(BURST_MIN, round(BURST * scale))
            full = _at_once(site, queue, burst)
            other = _at_once(site, f"other-{strategy}", burst)
            findings.append(_finding(strategy, kept, singly, full, other))
            progress.say(f"dedicated, {strategy}: {findings[-1].found}")
    return findings


def _singly(site: Site, queue: str, count: int) -> Counter[str]:
    """Run tasks one after the other, through one node after the other; return where each began."""
    found: Counter[str] = Counter()
    for number in range(count):
        with site.client(site.names[number % len(site.names)]) as client:
            ids = submit(client, [{"argv": site.diary.argv(SHORT_S), "queue": queue}])
        found += begun_at(site, ids)
        site.wait_free()
    return found


def _at_once(site: Site, queue: str, count: int) -> Counter[str]:
    """Run tasks that are submitted at once; return where they began."""
    tasks: list[dict[str, Any]] = [
        {"argv": site.diary.argv(LONG_S), "queue": queue} for _ in range(count)
    ]
    with site.client(site.names[0]) as client:
        ids = submit(client, tasks)
    found = begun_at(site, ids)
    site.wait_free()
    return found


def _finding(
    strategy: str, kept: str, singly: Counter[str], full: Counter[str], other: Counter[str]
) -> Finding:
    elsewhere = full.total() - full[kept]
    return Finding(
        experiment="dedicated",
        asked=f"by {strategy}: a dedicated node takes its queue's tasks while it has slots, others when it is full, and "
        "no task of another queue",
        found=f"while it had slots {singly[kept]} of {singly.total()}; of {full.total()} at once {full[kept]}, the others "
        f"{elsewhere}; of another queue's {other.total()} {other[kept]}",
        holds=singly[kept] == singly.total()
        and full[kept] >= SLOTS
        and elsewhere > 0
        and other[kept] == 0,
        figures={
            "strategy": strategy,
            "kept": kept,
            "singly": dict(singly),
            "at_once": dict(full),
            "of_another_queue": dict(other),
        },
    )
