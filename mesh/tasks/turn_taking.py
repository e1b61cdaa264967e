"""Taking the next turn of a hook (`mesh.hooks.turn`): a majority of the voters of the hook's register decides.

read ── another's turn is not over ──► waits: that disturbs nobody, however many ask
  └──── it may be taken ──► propose ──► chosen: its own ──► granted, if that is known in time
                                  └───► chosen: another's ► waits
"""

from __future__ import annotations

from mesh.hooks.commands import TakeTurn
from mesh.hooks.latest import hook_key
from mesh.hooks.turn import Turn, is_others, read
from mesh.registers.asker import Late, Outcome
from mesh.registers.proposal import Refused
from mesh.registers.reading import Seen
from mesh.tasks.means import Means, Step
from mesh.tasks.talk import Talk

_READ, _PROPOSE = range(2)


class TakingTurn(Talk):
    """`TakeTurn`."""

    def __init__(self, number: int, means: Means, command: TakeTurn) -> None:
        super().__init__(number, command.command_id, means, command.timeout_s)
        self._command = command
        self._key = hook_key(command.hook)
        self._begun_at = 0.0
        self._turn = Turn(now=0.0, begun_by=0.0, cool_down_s=0.0, by="", mark=0)

    def begin(self, now: float) -> list[Step]:
        """Read who has run it last."""
        command, unix = self._command, self._means.unix(now)
        self._begun_at = now
        self._turn = Turn(
            now=unix,
            begun_by=unix + self._timeout_s,
            cool_down_s=command.cool_down_s,
            by=self._means.card().name,
            mark=command.mark,
        )
        self._means.registers.read(now, self._key, self.tag(_READ), self._timeout_s)
        return []

    def on_outcome(self, now: float, part: int, outcome: Outcome) -> list[Step]:
        """Go on to take the turn, or answer."""
        left_s = self._begun_at + self._timeout_s - now
        if isinstance(outcome, Late) or left_s <= 0:
            return self.end(error=self._means.no_majority(self._key, self._timeout_s, "hook"))
        if isinstance(outcome, Refused):
            return self._unread()
        latest = read(outcome.value)
        if latest is None and outcome.value is not None and is_others(outcome.value):
            return self._unread()
        wait_s = self._turn.wait_s(latest)
        if latest is not None and wait_s > 0:
            return self.end(
                {
                    "outcome": "waits",
                    "wait_s": wait_s,
                    "by": latest.by,
                    "begun_by": latest.begun_by,
                }
            )
        if part == _READ:
            assert isinstance(outcome, Seen)
            self._means.registers.propose(now, self._key, self._turn, self.tag(_PROPOSE), left_s)
            return []
        return self.end({"outcome": "granted"})

    def _unread(self) -> list[Step]:
        return self.end(
            error=f"what a majority holds of the hook {self._command.hook} cannot be read by this version of Mesh, and "
            "stays as it is: upgrade this node"
        )
