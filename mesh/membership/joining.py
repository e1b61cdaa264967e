"""The way into a mesh: ask the seeds, or found one, and be told why not.

    no seeds, or --found ───────────────────────► found a mesh, unless the data directory names one
    seeds, or members remembered from before: each round, resolve and ask
        Welcome ──► take over the members, adopt the mesh id, announce this node
        Waiting ──► the seed seeks too; with --expect N, the lowest id of N that have met founds
        Refused ──► another mesh, version, name or session: stop and say it, or mend it and ask again
        nothing ──► say so, wait, start the next round

A node that belongs to a mesh already asks some of those that it remembers beside its seeds, others each
round. What they answer stops nobody: another mesh may live at an old address.

A refusal may be out of date: the name, or this very id, is held by a session that is dead but not yet
known to be. So before this node gives up it asks the holder itself; if nobody answers there, it
goes on.
"""

from __future__ import annotations

import random
from collections.abc import Hashable
from typing import Final

from mesh.core.address import Address
from mesh.core.effects import Emit, Persist, Resolve, Stop
from mesh.core.events import Event, EventKind
from mesh.core.ids import NO_MESH, MeshId, NodeId, format_id, low32, new_mesh_id
from mesh.core.limits import RECALLED_MAX, SEED_ADDRESSES_MAX
from mesh.errors import DecodeError, ForeignMeshError, TransportError, VersionError
from mesh.membership.founding import Founding
from mesh.membership.identity import Identity
from mesh.membership.outbox import Outbox
from mesh.membership.profile import SwimConfig
from mesh.membership.remembered import Remembered
from mesh.membership.table import MemberTable
from mesh.membership.wishes import Wishes
from mesh.wire.records import Card, decode_card
from mesh.wire.swim_messages import Ack, Join, Ping, Refused, Waiting, Welcome

ROUND_S_MAX: Final = 30.0
"""How long a round may take at most, beside its exchanges: resolving names is slow at times."""

REPEAT_S: Final = 30.0
"""How often the same reason for being outside is said again."""

FINAL_CODES: Final = ("foreign_mesh", "version")
"""Refusals that no waiting mends."""


class Joining:
    """Seeks until a mesh is found or founded. `is_done` says that nothing is left to ask."""

    def __init__(
        self,
        *,
        config: SwimConfig,
        identity: Identity,
        outbox: Outbox,
        rng: random.Random,
        wishes: Wishes,
        founding: Founding,
        table: MemberTable,
        remembered: Remembered,
    ) -> None:
        self._config = config
        self._identity = identity
        self._outbox = outbox
        self._rng = rng
        self._seeds = wishes.seeds
        self._founding = founding
        self._table = table
        self._remembered = remembered
        self._recalled: dict[str, None] = {}  # remembered members asked this round
        self._silent: dict[str, str] = {}  # those of them that did not let this node in, and why
        self._is_name_given = wishes.is_name_given
        self._deadline: float | None = None
        self._replaces = 0
        self._round = 0
        self._is_open = False  # a round is under way: its end is not decided yet
        self._pending: dict[Hashable, str] = {}  # resolutions and exchanges of this round
        self._asked: dict[Address, None] = {}
        self._failures: dict[str, str] = {}
        self._strangers: dict[str, None] = {}  # seeds that answered what no mesh node says
        self._last_said: tuple[str, float] = ("", float("-inf"))
        self.is_done = False
        self.reasons = ""
        """Why nobody let this node in last time, for people."""

        self.let_in_by = ""
        """Whoever let this node in, as people know it."""

    def start(self, now: float, *, is_founder: bool) -> None:
        """Found a mesh, or begin to ask."""
        if self._identity.mesh_id == NO_MESH and (is_founder or not self._seeds):
            self.found()
        elif self._seeds or len(self._remembered):
            self._begin_round(now)
        else:
            self._enter_again(
                "no seeds, and nobody known from before: waits until the others find it"
            )

    def stop(self) -> None:
        """Ask no more."""
        self._deadline = None
        self._is_open = False
        self._pending.clear()
        self.is_done = True

    def found(self) -> None:
        """Draw a mesh id: this node is a mesh of its own now."""
        self._identity.has_founded = True
        self._adopt(new_mesh_id(self._rng), EventKind.FOUND, "founded mesh")
        self.stop()

    def next_deadline(self) -> float | None:
        """Return when the next round begins."""
        return self._deadline

    def handle_timeout(self, now: float) -> None:
        """Begin the next round if it is due."""
        if self._deadline is not None and now >= self._deadline:
            self._begin_round(now)

    def handle_resolved(self, now: float, seed: str, addresses: tuple[Address, ...]) -> None:
        """Ask a seed's addresses, or note that it has none."""
        if self._pending.pop(("resolve", seed), None) is None:
            return
        if not addresses:
            self._failures[seed] = "was not found (is the name right?)"
        for address in addresses[:SEED_ADDRESSES_MAX]:
            self._ask(address, seed)
        self._end_round(now)

    def handle_reply(self, now: float, sender: NodeId, tag: Hashable, reply: object) -> None:
        """Take a seed's (or a name holder's) reply, or the error that came instead.

        A `Welcome` is not handled here: see `on_welcome`.
        """
        seed = self._pending.pop(tag, None)
        if seed is None or self.is_done or not isinstance(tag, tuple):
            return
        if tag[0] == "verify":
            is_there = isinstance(reply, Ack) and sender == tag[2].node_id
            self._on_verified(now, tag[1], tag[2], is_there=is_there)
        elif isinstance(reply, Waiting):
            self._fail(seed, "belongs to no mesh yet either")
            self._on_waiting(now, sender, reply)
        elif isinstance(reply, Refused):
            self._on_refused(now, seed, sender, reply)
        elif isinstance(reply, VersionError | ForeignMeshError) and seed not in self._recalled:
            self._stop_other(seed, reply)
        else:
            if isinstance(reply, DecodeError) and seed not in self._recalled:
                self._strangers[seed] = None
            self._fail(seed, _failure(reply))
        self._end_round(now)

    def on_welcome(self, now: float, tag: Hashable, mesh_id: MeshId, reply: Welcome) -> bool:
        """Adopt the mesh that let this node in; say whether to take over its members.

        A later session of this node's id is outranked first: the boot is raised, stored, and the
        seed asked again, before anybody was told the lower one.
        """
        seed = self._pending.pop(tag, None)
        if seed is None or self.is_done or not isinstance(tag, tuple):
            return False
        is_foreign = self._identity.mesh_id not in {NO_MESH, mesh_id}
        if is_foreign and seed not in self._recalled:
            self._stop_foreign(seed, mesh_id)
            return False
        is_outranked = reply.known_boot > self._identity.card.boot
        is_useless = is_foreign or mesh_id == NO_MESH
        if is_useless or (is_outranked and not self._identity.raise_boot(reply.known_boot)):
            self._fail(seed, _failure(reply))
            self._end_round(now)
            return False
        if is_outranked:
            self._outbox.do(Persist({"boot": self._identity.card.boot}))
            self._asked.pop(tag[1], None)
            self._ask(tag[1], seed)
            return False
        detail = f"joined mesh {format_id(mesh_id)} through {seed}"
        if self._identity.mesh_id == NO_MESH:
            self._adopt(mesh_id, EventKind.ENTER, detail)
        else:
            self._emit(EventKind.ENTER, detail)
        self.let_in_by = seed
        self.stop()
        return True

    def on_join(self, now: float, message: Join, mesh_id: MeshId) -> Waiting | Refused:
        """Answer another node that seeks, while this one seeks too.

        `mesh_id` is the asker's: one that belongs to a mesh founds no other, but can let this one in.
        """
        card = decode_card(message.card)
        if card.node_id == self._identity.node_id:
            if card.address == self._identity.address:
                return Refused("self", "the seed is this node itself")
            text = f"node id {format_id(card.node_id)} runs here already"
            return Refused("same_id", text, self._identity.card_bytes)
        if mesh_id == NO_MESH:
            self._founding.heard(now, card)
        else:
            self._founding.heard_of(card)
        return Waiting(self._founding.cards(self._identity.card_bytes))

    def try_founding(self, now: float) -> bool:
        """Found if enough have met and this node has the lowest id; say whether it did."""
        if self.is_done or not self._founding.is_mine(now, self._identity.node_id):
            return False
        self.found()
        return True

    # Inside.

    def _begin_round(self, now: float) -> None:
        # Every resolution and exchange is answered; should one not be, the search goes on all the same.
        self._deadline = now + ROUND_S_MAX + 3 * self._config.exchange_timeout_s
        self._is_open = True
        self._round += 1
        self._pending.clear()
        self._failures.clear()
        self._asked.clear()
        self._strangers.clear()
        self._recalled.clear()
        self._silent.clear()
        for seed in self._seeds:
            self._pending[("resolve", seed)] = seed
            self._outbox.do(Resolve(seed))
        for card in self._founding.known():
            self._ask(card.address, str(card.address))
        for known in self._remembered.next_strangers(self._rng, RECALLED_MAX):
            text = f"{known.name} at {known.address}"
            self._recalled[text] = None
            self._ask(known.address, text)
        self._end_round(now)

    def _ask(self, address: Address, seed: str) -> None:
        if address == self._identity.address or address in self._asked:
            return
        self._asked[address] = None
        met = self._founding.cards(self._identity.card_bytes)
        message = Join(self._identity.card_bytes, self._founding.expect, self._replaces, met)
        tag = ("join", address, self._round)
        self._pending[tag] = seed
        self._outbox.ask(
            address, message, tag, self._config.exchange_timeout_s, may_be_foreign=True
        )

    def _end_round(self, now: float) -> None:
        """When every answer of the round is in and none let this node in: say so and wait."""
        if self._pending or self.is_done or not self._is_open:
            return
        if self._identity.mesh_id != NO_MESH and self._table.living:
            self._enter_again("found by the others")
            return
        self._is_open = False
        self.reasons = reasons = self._why()
        has_only_strangers = self._strangers and self._strangers.keys() == self._failures.keys()
        if has_only_strangers and self._identity.mesh_id == NO_MESH:
            text = f"no seed is a mesh node ({reasons}): check the addresses"
            self._outbox.do(Stop(1, text))
            return
        if self._identity.mesh_id == NO_MESH:  # else that it is alone is said elsewhere
            self._say(now, reasons)
        jitter = 0.75 + 0.5 * self._rng.random()
        self._deadline = now + self._config.join_retry_s * jitter

    def _why(self) -> str:
        """Return why nobody let this node in, as one line."""
        reasons = [f"{seed} {self._failures[seed]}" for seed in sorted(self._failures)]
        if self._silent:
            each = {why: seed for seed, why in self._silent.items()}
            some = "; ".join(f"{each[why]} {why}" for why in sorted(each)[:2])
            reasons.append(
                f"of those known from before {len(self._silent)} were asked in vain: {some}"
            )
        return "; ".join(reasons)

    def _fail(self, seed: str, reason: str) -> None:
        failures = self._silent if seed in self._recalled else self._failures
        failures[seed] = reason

    def _hurry(self, now: float) -> None:
        """Something was mended: ask again now; what is still under way counts no more."""
        self._is_open = False
        self._deadline = now

    def _enter_again(self, how: str) -> None:
        self._emit(
            EventKind.ENTER, f"member of mesh {format_id(self._identity.mesh_id)} again, {how}"
        )
        self.stop()

    def _say(self, now: float, reasons: str) -> None:
        """Tell people why no seed has let this node in: when the reasons change, and now and then.

        Without reasons there was nobody to ask.
        """
        said, at = self._last_said
        if reasons != said or now - at >= REPEAT_S:
            self._last_said = (reasons, now)
            text = f"no seed has let this node in yet, trying again: {reasons}"
            alone = "the only seed is this node itself; --found founds a mesh"
            self._emit(EventKind.SEEK, text if reasons else alone)

    def _on_waiting(self, now: float, sender: NodeId, reply: Waiting) -> None:
        for data in reply.met:
            card = decode_card(data)
            if card.node_id == sender:
                self._founding.heard(now, card)
            elif card.node_id != self._identity.node_id:
                self._founding.heard_of(card)
                self._ask(card.address, str(card.address))

    def _on_refused(self, now: float, seed: str, sender: NodeId, reply: Refused) -> None:
        if reply.code == "self":
            return  # as good as not asked
        self._fail(seed, f"refused: {reply.text}")
        if reply.code in FINAL_CODES:
            if seed in self._recalled:
                return
            self._outbox.do(Stop(1, f"seed {seed} refused: {reply.text}"))
            return
        if reply.code not in {"name_taken", "same_id"} or reply.about is None:
            return
        holder = decode_card(reply.about)
        if holder.node_id == sender and reply.code == "name_taken":
            self._on_conflict(now, reply.code, holder)  # the holder itself has just answered
            return
        tag = ("verify", reply.code, holder)
        self._pending[tag] = seed
        ping = Ping(self._round, low32(holder.node_id), 0)
        timeout_s = self._config.probe_timeout_s
        self._outbox.ask(holder.address, ping, tag, timeout_s, may_be_foreign=True)

    def _on_verified(self, now: float, code: str, holder: Card, *, is_there: bool) -> None:
        if is_there:
            self._on_conflict(now, code, holder)
        elif code == "same_id":
            self._replaces = holder.boot
            self._hurry(now)

    def _on_conflict(self, now: float, code: str, holder: Card) -> None:
        mine = self._identity
        if code == "name_taken" and holder.name != mine.card.name:
            return  # another seed said so too, and this node has taken another name since
        if code == "name_taken" and not self._is_name_given:
            mine.rename()
            self._is_name_given = True
            self._hurry(now)
            return
        if code == "name_taken":
            text = f"the name {holder.name} is taken by a living member at {holder.address}: choose another --name"
        else:
            text = (
                f"a node with this data directory's id runs at {holder.address} already: "
                "each node needs a data directory of its own (--data)"
            )
        self._outbox.do(Stop(1, text))

    def _stop_other(self, seed: str, reply: VersionError | ForeignMeshError) -> None:
        if isinstance(reply, ForeignMeshError):
            self._stop_foreign(seed, reply.theirs)
        else:
            self._outbox.do(Stop(1, f"seed {seed} cannot be joined: {reply}"))

    def _stop_foreign(self, seed: str, theirs: int) -> None:
        ours = format_id(self._identity.mesh_id)
        self._outbox.do(
            Stop(
                1,
                f"seed {seed} belongs to mesh {format_id(theirs)}, but this node's data directory to mesh "
                f"{ours}: check the seeds, or join with another --data",
            )
        )

    def _adopt(self, mesh_id: MeshId, kind: EventKind, detail: str) -> None:
        self._identity.mesh_id = mesh_id
        # Whoever founded a mesh is its first voter, whenever it ends and begins again.
        founder = {"founder": 1} if kind is EventKind.FOUND else {}
        self._outbox.do(Persist({"mesh_id": mesh_id, **founder}))
        text = f"{detail} {format_id(mesh_id)}" if kind is EventKind.FOUND else detail
        self._emit(kind, text)

    def _emit(self, kind: EventKind, detail: str) -> None:
        card = self._identity.card
        event = Event(kind=kind, member_id=card.node_id, member=card.name, detail=detail)
        self._outbox.do(Emit(event))


def _failure(reply: object) -> str:
    """Return what a seed did in place of letting this node in, as a predicate."""
    if isinstance(reply, TransportError):
        return str(reply)
    if isinstance(reply, Exception):
        return f"answered what no node says: {reply}"
    return "answered what makes no sense"
