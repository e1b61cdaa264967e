"""Taking the next turn of a hook: a change of its register that succeeds once a cool-down, whoever tries.

    a ── nothing, or a run of a cool-down ago ── writes its own ──► chosen: its own ──► a runs it
    b ── finds a's ────────────────── writes that back ───────────► chosen: a's ──────► b waits

Two that try at once do so under two ballots, and the one of the higher ballot finds what the other has written, or has
the other outbid: one run is chosen.

What is written is the time by which the run is **begun at the latest**, not when it was asked for: who took the turn
begins it until then or not at all, and the next one counts from there. So of two runs the second begins a cool-down after
the first or later, though the answer to the first came late.

A turn that its taker did not use (no majority answered in time, perhaps after it was written) is nobody else's: only the
taker knows that it was not used, and finds it by its mark. It takes that again as if nobody had run since.

Times are of the hosts' clocks. A run from further ahead than a cool-down was written by a clock that was wrong, and is
not believed: else it would hold up every run until then. So clocks that differ by more than a cool-down know of no
other's run; those that differ by less shorten or lengthen one by as much.

Source: our own.
"""

from __future__ import annotations

from dataclasses import dataclass

from mesh.errors import DecodeError
from mesh.hooks.latest import LatestRun, is_later_version, of_value, to_value
from mesh.wire.register_messages import Standing, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The change of a hook's register; it does nothing by itself, however often it is called."""

    now: float
    """Unix, when it is asked for."""

    begun_by: float
    """Unix: its run begins until then, or never. Less than `cool_down_s` after `now`."""

    cool_down_s: float
    by: str
    """The node that asks, as people know it."""

    mark: int
    """64 bits of the run that this is for; the same when a turn that was not used is taken again."""

    def __call__(self, found: Value | None) -> Value | None:
        """Return what to write in place of what a majority reports: what is there, if another's turn is not over.

        None: nothing may be written. Bytes that are nothing are replaced, those of a later version never.
        """
        latest = read(found)
        if latest is None:
            if found is not None and is_others(found):
                return None
        elif self.wait_s(latest) > 0:
            return found
        return to_value(LatestRun(begun_by=self.begun_by, by=self.by, mark=self.mark))

    def wait_s(self, latest: LatestRun | None) -> float:
        """Return how long after `now` the turn may be taken, by the latest run; 0: it may be now."""
        if latest is None or latest.mark == self.mark:
            return 0.0
        if latest.begun_by > self.now + self.cool_down_s:
            return 0.0
        return max(0.0, latest.begun_by + self.cool_down_s - self.now)


def read(found: Value | None) -> LatestRun | None:
    """Return the run that a register holds; None: none that this version can read."""
    try:
        return None if found is None else of_value(found)
    except DecodeError:
        return None


def is_others(found: Value) -> bool:
    """Say whether what cannot be read is for others to change: of a later version, or with an owner."""
    return found.standing is not Standing.OPEN or is_later_version(found.body)
