"""What must never be seen of a register, whatever happened to its hosts.

Two owners sure at one true time; a token granted below an earlier one; two creations, or a final value that
was written over, among what a majority of disks ever held; and words that are not true: whoever says that it
is created, or final, must be right, and whoever finds nothing must not come after one who said it exists.
"""

from __future__ import annotations

from mesh.core.ballot import Ballot
from mesh.core.ids import NodeId
from mesh.registers.record import Record
from mesh.wire.register_messages import Standing, Value

Who = tuple[NodeId, int]


def creation(value: Value) -> bytes:
    """Return which creation a value goes back to."""
    return value.body.split(b",")[0]


class Judge:
    """Sees commits, words and trust; remembers the first thing that was wrong."""

    def __init__(self, majority: int, *, minds_clocks: bool) -> None:
        self.fault = ""
        self.final: Value | None = None
        self.grants = 0
        self._majority = majority
        self._minds_clocks = minds_clocks
        self._held: dict[tuple[Ballot, int, Value], set[NodeId]] = {}
        self._chosen: list[tuple[Ballot, int, Value]] = []
        self._exists: bytes | None = None
        self._known = 0
        self._sure: dict[Who, float] = {}
        self._granted: Ballot | None = None

    def committed(self, voter: NodeId, record: Record) -> None:
        """Take that a voter's disk holds this."""
        if record.value is None:
            return
        write = (record.ballot, record.seq, record.value)
        holders = self._held.setdefault(write, set())
        holders.add(voter)
        if len(holders) == self._majority and write not in self._chosen:
            self._chosen.append(write)
            for other in self._chosen:
                self._compare(*sorted((write, other), key=lambda one: one[:2]))

    def told(self, who: Who, value: Value) -> None:
        """Take that somebody was told that this is chosen."""
        if not any(value == chosen for _, _, chosen in self._chosen):
            self._blame(f"{who} was told of {value}, which is not chosen")
        if self._exists not in {None, creation(value)}:
            self._blame(f"{who} was told of another creation: {value}")
        self._exists = creation(value)
        if value.standing is Standing.FINAL:
            if self.final not in {None, value}:
                self._blame(f"{who} was told of another end: {value}, not {self.final}")
            self.final = value

    def exists(self) -> None:
        """Take that somebody was told that it exists, whatever it holds."""
        self._known += 1

    def absent(self, who: Who, asked_after: int) -> None:
        """Take that somebody found nothing, who began when so much was known."""
        if asked_after:
            self._blame(f"{who} found nothing of what was chosen before it asked")

    @property
    def known_count(self) -> int:
        """How often a write was chosen, or somebody was told that one was."""
        return len(self._chosen) + self._known

    def sure(self, now: float, who: Who, token: Ballot, until: float) -> None:
        """Take that an owner is sure from now until then, in true time."""
        if self._minds_clocks:
            for other, other_until in self._sure.items():
                if other != who and other_until > now + 1e-9:
                    self._blame(f"{who} is sure from {now:.3f}, {other} until {other_until:.3f}")
        if who not in self._sure or self._sure[who] == float("-inf"):
            self.grants += 1
        self._sure[who] = until

    def granted(self, who: Who, token: Ballot) -> None:
        """Take that a token is used for the first time."""
        if self._minds_clocks and self._granted is not None and token <= self._granted:
            self._blame(f"the token of {who} went back: {token} after {self._granted}")
        self._granted = max(token, self._granted or token)

    def let_go(self, who: Who) -> None:
        """Take that an owner trusts nothing any more."""
        if who in self._sure:
            self._sure[who] = float("-inf")

    def _compare(self, lower: tuple[Ballot, int, Value], higher: tuple[Ballot, int, Value]) -> None:
        if lower[:2] == higher[:2] and lower[2] != higher[2]:
            self._blame(f"two values under one number: {lower} and {higher}")
        if creation(lower[2]) != creation(higher[2]):
            self._blame(f"two creations: {lower} and {higher}")
        if lower[2].standing is Standing.FINAL and lower[2] != higher[2]:
            self._blame(f"a final value was written over: {lower} by {higher}")

    def _blame(self, text: str) -> None:
        self.fault = self.fault or text
