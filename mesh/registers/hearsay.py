"""Whose word of a roster counts: a voter's, and only in answer to a question of this node's own.

    a roster is named ── by whom this node has just asked, and who votes ──► believed
                      └─ by anybody else, in any voter's name ──► a hint: the voters are asked
                              nobody of them says so, too ──► nothing has changed

A roster is followed for good, and its epoch only rises: one that does not exist, believed once, would stop all that
rests on voters. So one message is not enough, whoever seems to have sent it. Asked is one of the voters that this node knows of or, as
all of these may be gone, that are named; but not the one who names them. What comes to nothing is asked again, perhaps
of another, when it is named again. A node that knows no roster takes the word of any that is named, once it is asked:
there is nobody else.

Source: our own.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from mesh.core.ids import NodeId
from mesh.registers.proposal import RESEND_S

ANSWER_S: Final = 10.0
"""So long after the question an answer counts."""

HEARD_MAX: Final = 1_000
"""So many nodes are remembered as told, or asked, a moment ago."""


class Hearsay:
    """Whom this node has asked whose word counts, and when."""

    def __init__(self, own_id: NodeId, rng: random.Random) -> None:
        self._own_id = own_id
        self._rng = rng
        self._asked: dict[NodeId, float] = {}  # whose answer counts
        self._heard: dict[NodeId, float] = {}  # told, or asked, because of what it sent

    def note(self, now: float, node: NodeId) -> None:
        """Note that a node is being asked whose word counts."""
        _remember(self._asked, now, node)

    def is_answer(self, now: float, node: NodeId) -> bool:
        """Say whether what a node says answers a question, and counts."""
        return now < self._asked.get(node, float("-inf")) + ANSWER_S

    def is_new(self, now: float, node: NodeId) -> bool:
        """Say whether nothing was sent to a node for what it sent a moment ago; remember that something is now."""
        if now < self._heard.get(node, float("-inf")) + RESEND_S:
            return False
        _remember(self._heard, now, node)
        return True

    def better(self, now: float, sender: NodeId, known: Sequence[NodeId]) -> NodeId:
        """Return whom to ask in place of `sender`, who seems to know more: a voter, whose answer counts, if one answers."""
        voters = [node for node in known if node != self._own_id]
        if not voters or sender in voters or any(self.is_answer(now, node) for node in voters):
            return sender
        return self._rng.choice(voters)

    def ask(
        self, now: float, sender: NodeId, known: Sequence[NodeId], named: Sequence[NodeId]
    ) -> list[NodeId]:
        """Return whom to ask about the roster that `sender` names: one, or nobody if one was asked a moment ago.

        Args:
            now: this node's clock, in seconds.
            sender: who names it.
            known: the voters that this node knows of; none: it knows no roster.
            named: the voters of that roster.
        """
        others = [one for one in named if one not in known and (one != sender or not known)]
        there = [node for node in (*known, *others) if node != self._own_id]
        latest = max((self._asked.get(node, float("-inf")) for node in there), default=now)
        if now < latest + RESEND_S:
            return []
        voters = [node for node in there if node in known]
        is_known = bool(voters) and (len(voters) == len(there) or self._rng.random() < 0.5)
        node = self._rng.choice(voters if is_known else there[len(voters) :])
        self.note(now, node)
        return [node]

    def check_invariants(self) -> None:
        """Raise AssertionError if more is remembered than may be."""
        assert max(len(self._asked), len(self._heard)) <= HEARD_MAX


def _remember(when: dict[NodeId, float], now: float, node: NodeId) -> None:
    if len(when) >= HEARD_MAX:
        when.clear()
    when[node] = now
