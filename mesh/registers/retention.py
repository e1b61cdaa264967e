"""What is over for long enough is purged: by all voters of a register, its first voter last.

    first voter ── ASK: may these go? ─────► the others: just this value is held, is final, and has been for a while
                   all of them agreed
                ── DROP, no promise above n ► they drop it, durably, and begin nothing below n any more
                   all of them said so, and then so long that nothing shipped before is taken any more
                ── AGAIN ──────────────────► once more, for one that was shipped it meanwhile
                   all of them, at about one time: it has been gone from here for just as long
                   it drops it as well

While anybody might still hold something older, nothing is dropped: else that would be found, and what is over would
begin again. A voter that is away so keeps all others from purging what it votes on.

The first voter is last because it alone creates without asking (n = 0): while anybody still holds the old value,
which would outrank the new one, it holds it too, and asks. From DROP on it ships it to nobody. What was on its way
to one from another may come after DROP, and be shipped on; so AGAIN is asked for until nobody has had it for as long
as anything may be on its way.

What an owner or asker of long ago still sends is below n, and begins nothing (voter.py). Where anything does not
fit, all stays as it is, and is tried again later. Nothing of this is durable but that something is gone: a session
that ends half way leaves what is final, at some voters, which is shipped to the others, and purged another time.

Rosters are never purged.

Source: our own.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final

from mesh.core.ageing import take_aged
from mesh.core.ids import NodeId
from mesh.core.timers import Timers
from mesh.registers.digests import Digests
from mesh.registers.finals import Finals, is_over
from mesh.registers.record import Record
from mesh.registers.seating import Seating
from mesh.registers.upkeep import CERTAIN_S, Expires, UpkeepMove, UpkeepTimes
from mesh.registers.voter import Forget, Voter
from mesh.wire.repair_messages import PURGE_MAX, Item, Purge, Purged, Stage

BATCHES_MAX: Final = 32
"""So many purges are under way at once."""

START_S: Final = 0.25
"""Between the starts of two."""

IDLE_S: Final = 1.0
"""Between two attempts to begin one, while none can be begun."""

RESEND_S: Final = 1.0
"""Also: so far apart are two answers to one AGAIN at most."""

GIVE_UP_S: Final = 10.0
"""Who has not answered for so long is away: nothing more is begun for a while."""

AWAY_S: Final = 30.0
DROPPED_S: Final = 60.0
"""So long a voter remembers when it dropped something: longer than a purge takes."""


@dataclass(slots=True)
class _Batch:
    """Registers of the same voters that are purged together."""

    epoch: int
    others: tuple[NodeId, ...]
    items: dict[bytes, Item]
    stage: Stage = Stage.ASK
    n: int = 0
    sent: tuple[Item, ...] = ()
    answers: dict[NodeId, bytes] = field(default_factory=dict)
    gives_up_at: float = 0.0
    is_waiting: bool = False
    """All have dropped it, and nothing is sent for a while."""


class Retention:
    """One voter's side of it. It looks at the voter and never changes it."""

    def __init__(
        self,
        own_id: NodeId,
        *,
        voter: Voter,
        seating: Seating,
        digests: Digests,
        times: UpkeepTimes,
        expires: Expires,
        rng: random.Random,
        now: float,
    ) -> None:
        """Begin with what the voter holds: for how long it has been final is not known, so it counts from now."""
        self._own_id = own_id
        self._voter = voter
        self._seating = seating
        self._digests = digests
        self._finals = Finals(voter=voter, seating=seating, times=times, expires=expires, now=now)
        self._tag = rng.getrandbits(48) << 15
        self._going: dict[bytes, int] = {}
        self._batches: dict[int, _Batch] = {}
        self._timers: Timers[int] = Timers()
        self._start_at: float | None = None
        self._began = now
        self._dropped: dict[bytes, float] = {}
        """When what is purged by others went from here, the latest last."""

        self._paused: dict[tuple[NodeId, ...], float] = {}
        self.purged = 0
        """Registers that this node, as their first voter, has purged."""

    def __len__(self) -> int:
        return len(self._finals)

    def note(self, now: float, key: bytes, record: Record) -> None:
        """Take what is held of a register from now on; NOTHING: it is gone."""
        if self._finals.note(now, key, record):
            self._leave(key)

    def adopt(self, now: float) -> None:
        """Look at everything anew: it may be other voters' now. O(what is final)."""
        for key in list(self._going):
            self._leave(key)
            self._digests.show(key)
        self._paused.clear()
        self._finals.adopt(now)

    def handle(self, now: float, sender: NodeId, message: Purge | Purged) -> list[UpkeepMove]:
        """Take a message of another voter of the epoch that this node votes in; all others' change nothing."""
        roster = self._seating.roster
        if roster is None or self._voter.epoch != roster.epoch or message.epoch != roster.epoch:
            return []
        if isinstance(message, Purge):
            return self._on_purge(now, sender, message)
        return self._on_purged(now, sender, message)

    def next_deadline(self) -> float | None:
        """Return when something is due."""
        deadlines = (self._finals.next_deadline(), self._timers.next_deadline(), self._start_at)
        return min((at for at in deadlines if at is not None), default=None)

    def handle_timeout(self, now: float) -> list[UpkeepMove]:
        """Ask again, go on, and begin what is due."""
        out: list[UpkeepMove] = []
        for tag in self._timers.take_due(now):
            batch = self._batches[tag]
            if batch.is_waiting:
                out += self._send(now, tag, batch, Stage.AGAIN)
            elif now >= batch.gives_up_at:
                if not self._is_agreed(batch):
                    self._paused[batch.others] = now + AWAY_S
                self._end(now, tag, batch)
            elif batch.stage is Stage.AGAIN:
                out += self._ask_again(now, tag, batch)
            else:
                out += self._resend(now, tag, batch)
        self._finals.handle_timeout(now)
        if self._finals.ready and (self._start_at is None or now >= self._start_at):
            begun = self._begin(now)
            self._start_at = now + (START_S if begun else IDLE_S)
            out += begun
        if not self._finals.ready:
            self._start_at = None
        return out

    def check_invariants(self) -> None:
        """Raise AssertionError if something is under way that is not final here, or is under way twice. O(finals)."""
        under_way = [key for batch in self._batches.values() for key in batch.items]
        assert sorted(under_way) == sorted(self._going)
        assert all(key in self._batches[tag].items for key, tag in self._going.items())
        assert set(self._timers) == set(self._batches)
        self._finals.check_invariants(under_way)

    def _is_exact(self, item: Item) -> bool:
        record = self._voter.record(item.key)
        is_it = (record.ballot, record.seq) == (item.ballot, item.seq)
        return is_it and is_over(item.key, record)

    # The first voter's side.

    def _begin(self, now: float) -> list[UpkeepMove]:
        """Begin the next purge: of what is ready and has the same voters, none of which is away."""
        roster = self._seating.roster
        if roster is None or self._voter.epoch != roster.epoch or len(self._batches) >= BATCHES_MAX:
            return []
        items: dict[bytes, Item] = {}
        others: tuple[NodeId, ...] | None = None
        for key in self._finals.ready:
            voters = self._seating.seats(key).voters[1:]
            if others is None and now >= self._paused.get(voters, now):
                others = voters
            if others == voters:
                items[key] = self._finals.item(key)
            if len(items) >= PURGE_MAX:
                break
        if others is None:
            return []
        self._tag += 1
        for key in items:
            del self._finals.ready[key]
            self._going[key] = self._tag
        batch = self._batches[self._tag] = _Batch(roster.epoch, others, items)
        return self._send(now, self._tag, batch, Stage.ASK)

    def _send(self, now: float, tag: int, batch: _Batch, stage: Stage) -> list[UpkeepMove]:
        batch.stage, batch.is_waiting = stage, False
        batch.sent, batch.answers = tuple(batch.items.values()), {}
        batch.gives_up_at = now + GIVE_UP_S
        if not batch.others:
            return self._on_all(now, tag, batch)
        return self._resend(now, tag, batch)

    def _resend(self, now: float, tag: int, batch: _Batch) -> list[UpkeepMove]:
        self._timers.set(tag, now + RESEND_S)
        purge = Purge(batch.epoch, tag, batch.stage, batch.n, batch.sent)
        return [(other, purge) for other in batch.others if other not in batch.answers]

    def _ask_again(self, now: float, tag: int, batch: _Batch) -> list[UpkeepMove]:
        """Begin another round, to which no answer to the one before counts."""
        del self._batches[tag]
        self._tag += 1
        self._batches[self._tag] = batch
        for key in batch.items:
            self._going[key] = self._tag
        batch.sent, batch.answers = tuple(batch.items.values()), {}
        return self._resend(now, self._tag, batch)

    def _on_purged(self, now: float, sender: NodeId, answer: Purged) -> list[UpkeepMove]:
        batch = self._batches.get(answer.tag)
        if batch is None or batch.is_waiting or answer.stage is not batch.stage:
            return []
        if sender not in batch.others or len(answer.flags) != len(batch.sent):
            return []
        if answer.stage is Stage.ASK and sender not in batch.answers:
            batch.n = max(batch.n, answer.n)
        batch.answers[sender] = answer.flags
        return self._on_all(now, answer.tag, batch) if self._is_agreed(batch) else []

    def _is_agreed(self, batch: _Batch) -> bool:
        """Say whether all others have answered: who has not may hold something older."""
        return len(batch.answers) == len(batch.others)

    def _on_all(self, now: float, tag: int, batch: _Batch) -> list[UpkeepMove]:
        """Go on with what all have said yes to."""
        if batch.stage is Stage.AGAIN:
            return self._on_gone(now, batch)
        if batch.stage is Stage.ASK:
            own = (self._voter.record(key).promised.n for key in batch.items)
            batch.n = max(batch.n, *own)
        for place, item in enumerate(batch.sent):
            if item.key in batch.items and not self._may_go_on(batch, place, item):
                self._put_back(now, item.key)
        if not batch.items:
            self._end(now, tag, batch)
            return []
        if not batch.others:
            return self._finish(now, [*batch.items], batch.n)
        if batch.stage is Stage.ASK:
            for key in batch.items:
                self._digests.hide(key)
            return self._send(now, tag, batch, Stage.DROP)
        batch.is_waiting = True
        self._timers.set(tag, now + CERTAIN_S)
        return []

    def _may_go_on(self, batch: _Batch, place: int, item: Item) -> bool:
        is_agreed = all(flags[place] for flags in batch.answers.values())
        is_below = self._voter.record(item.key).promised.n <= batch.n
        return is_agreed and is_below and self._is_exact(item)

    def _on_gone(self, now: float, batch: _Batch) -> list[UpkeepMove]:
        """Drop what all others have not had for long enough; the rest is asked for again until the batch is given up."""
        gone = [
            item.key
            for place, item in enumerate(batch.sent)
            if item.key in batch.items and self._may_go_on(batch, place, item)
        ]
        return self._finish(now, gone, batch.n)

    def _finish(self, now: float, keys: list[bytes], n: int) -> list[UpkeepMove]:
        self.purged += len(keys)
        for key in keys:
            # No longer under way; it goes for good as soon as the voter has dropped it.
            self._put_back(now, key)
        return [Forget(tuple(keys), n)] if keys else []

    def _end(self, now: float, tag: int, batch: _Batch) -> None:
        for key in list(batch.items):
            self._put_back(now, key)
        self._batches.pop(tag, None)
        self._timers.cancel(tag)

    def _put_back(self, now: float, key: bytes) -> None:
        """Try it again later, after others."""
        self._leave(key)
        self._digests.show(key)
        self._finals.put_back(now, key)

    def _leave(self, key: bytes) -> None:
        tag = self._going.pop(key, None)
        if tag is None:
            return
        batch = self._batches[tag]
        del batch.items[key]
        if not batch.items:
            del self._batches[tag]
            self._timers.cancel(tag)

    # The others' side.

    def _on_purge(self, now: float, sender: NodeId, message: Purge) -> list[UpkeepMove]:
        flags = bytearray()
        gone: list[bytes] = []
        n = 0
        take_aged(self._dropped, now, DROPPED_S)
        for item in message.items:
            voters = self._seating.seats(item.key).voters
            may_go = sender == voters[0] != self._own_id and self._own_id in voters
            if may_go and message.stage is Stage.ASK:
                may_go = self._is_exact(item) and self._finals.has_stood(now, item.key)
                n = max(n, self._voter.record(item.key).promised.n if may_go else 0)
            elif may_go and self._voter.holds(item.key):
                promised = self._voter.record(item.key).promised
                may_go = self._is_exact(item) and promised.n <= message.n
                if may_go:
                    gone.append(item.key)
                    self._dropped.pop(item.key, None)
                    self._dropped[item.key] = now
                may_go = may_go and message.stage is Stage.DROP
            elif may_go and message.stage is Stage.AGAIN:
                may_go = now >= self._dropped.get(item.key, self._began) + CERTAIN_S
            flags.append(may_go)
        answer = Purged(message.epoch, message.tag, message.stage, bytes(flags), n)
        out: list[UpkeepMove] = []
        if message.stage is not Stage.ASK and (gone or any(flags)):
            out.append(Forget(tuple(gone), message.n))
        return [*out, (sender, answer)]
