"""A node asks itself, over TCP, whether it hears at all: whoever does not may not accuse others of silence.

    it hears nobody, and a verdict is due ──► it asks itself
        answered               it does hear: the others are dead, or it is cut off, and the verdict may fall
        no answer in time      what arrives here is not handled: the verdict waits, however long that lasts
        never answered before  some cannot reach their own address: that says nothing, and the verdict may fall;
                           the question is put again now and then

A blocked node and the last survivor of a mesh hear the same: nothing. No patience tells them apart, for a block
may outlast any; the question does. It goes the way of what others send: through the kernel, the node's own
inbox and its handling, and back. In good days it is put once at each address.

Source: our own.
"""

from __future__ import annotations

import errno
from typing import Final

from mesh.core.address import Address
from mesh.core.ids import low32
from mesh.errors import TransportError
from mesh.membership.identity import Identity
from mesh.membership.outbox import Outbox
from mesh.membership.profile import SwimConfig
from mesh.wire.packet import Packet
from mesh.wire.swim_messages import Ack, Ping

TAG: Final = "echo"
"""The tag of this machine's exchanges."""

FRESH_PERIODS: Final = 1.5
"""So long an answer counts: a verdict that waits is looked at once a period."""

PAUSE_PERIODS: Final = 0.5
"""The question is put no sooner again."""


LEARN_PERIODS: Final = 60
"""Where it was not answered the question is put again after so long: the packets of one may have been lost."""


class Echo:
    """Puts the question, and knows when it was answered."""

    __slots__ = (
        "_asked_at",
        "_config",
        "_has_missed",
        "_identity",
        "_is_known",
        "_is_open",
        "_learnt_at",
        "_outbox",
        "answered_at",
    )

    def __init__(self, *, config: SwimConfig, identity: Identity, outbox: Outbox) -> None:
        self._config = config
        self._identity = identity
        self._outbox = outbox
        self._learnt_at: Address | None = None  # where the question was put first
        self._is_known = False  # it was answered there
        self._is_open = False
        self._has_missed = False  # a question since the last answer
        self._asked_at = float("-inf")
        self.answered_at = float("-inf")

    def learn(self, now: float) -> None:
        """Find out, at each address of this node, whether it is answered there at all: once, and again while it is not."""
        again_at = self._asked_at + LEARN_PERIODS * self._config.probe_interval_s
        is_learnt = self._identity.address == self._learnt_at and (self._is_known or now < again_at)
        if is_learnt or self._is_open:
            return
        self._learnt_at = self._identity.address
        self._is_known = self._has_missed = False
        self._put(now, self._config.exchange_timeout_s)

    def ask(self, now: float) -> None:
        """Put the question, unless it was just put, or an answer would say nothing."""
        is_due = now - self._asked_at >= PAUSE_PERIODS * self._config.probe_interval_s
        if self._is_known and not self._is_open and is_due:
            self._put(now, self._config.probe_timeout_s)

    def is_heard(self, now: float) -> bool:
        """Say whether this node hears itself, or could not tell."""
        fresh_s = FRESH_PERIODS * self._config.probe_interval_s
        return not self._is_known or now - self.answered_at <= fresh_s

    def take_missed(self) -> bool:
        """Say whether this node has failed to hear itself since this was last asked."""
        has_missed, self._has_missed = self._has_missed, False
        return has_missed

    def handle_reply(self, now: float, reply: Packet | Exception) -> bool:
        """Take the outcome of a question; say whether it is an answer."""
        self._is_open = False
        if isinstance(reply, Packet):
            ack, own = reply.messages[0], self._identity
            is_own = reply.sender == own.node_id and isinstance(ack, Ack)
            is_answer = is_own and ack.boot == low32(own.card.boot)
        else:  # what the kernel says came in as well; a deadline, or a question not put, came in by no socket
            number = reply.errno if isinstance(reply, TransportError) else None
            was_put = isinstance(reply, TransportError) and not reply.is_own_shortage
            is_answer = self._is_known and was_put and number not in {None, errno.ETIMEDOUT}
        if is_answer:
            self._is_known, self.answered_at = True, now
        elif self._is_known:
            self._has_missed = True
        return is_answer

    def _put(self, now: float, timeout_s: float) -> None:
        self._asked_at, self._is_open = now, True
        ping = Ping(0, low32(self._identity.node_id), 0)
        self._outbox.ask(self._identity.address, ping, (TAG,), timeout_s)
