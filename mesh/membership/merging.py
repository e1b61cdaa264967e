"""What another member knows, learned by anti-entropy: merged with less faith than what is told as news.

    unknown here, alive there      ► met
    unknown here, gone there       ► ignored: a rumour adds nobody; a tombstone is kept, which nobody sees
    living here, gone there        ► a suspicion, unless there is proof; a short one if it is said to have crashed
    gone here, forgotten there     ► forgotten
    forgotten here, gone there     ► forgotten, if it went before it was forgotten; else its death is believed

A death is only a suspicion here, unless there is proof of it: after a partition each side has declared the
other dead, and whoever is still there must get the chance to say so. To be forgotten is no proof either.

Source: the treatment of deaths follows the push/pull of [memberlist].
"""

from __future__ import annotations

from dataclasses import replace

from mesh.core.events import EvidenceKind as Kind
from mesh.core.ids import NodeId
from mesh.membership.clues import clue
from mesh.membership.dissemination import Dissemination
from mesh.membership.member import Member
from mesh.membership.profile import SwimConfig
from mesh.membership.rumours import Rumours
from mesh.membership.table import MemberTable
from mesh.wire.packet import encode_message
from mesh.wire.records import Cause, Standing, State, is_proof
from mesh.wire.swim_messages import Alive, Dead, Forget, Left, Suspect, Verdict


class Merging:
    """Applies standings that another member offered."""

    def __init__(
        self, *, config: SwimConfig, table: MemberTable, rumours: Rumours, news: Dissemination
    ) -> None:
        self._config = config
        self._table = table
        self._rumours = rumours
        self._news = news

    def merge(self, now: float, sender: NodeId, members: tuple[Standing, ...]) -> None:
        """Apply what a member knows."""
        for standing in members:
            node_id = standing.subject.node_id
            known = self._table.get(node_id)
            if standing.state < State.DEAD:
                self._merge_word(now, sender, node_id, standing)
            elif known is None:
                self._keep_tombstone(now, standing)
            elif standing.boot > known.boot and node_id == self._rumours.own_id:
                self._rumours.refutation.on_ended(now, standing.boot)
            elif self._is_here(known) or State.FORGOTTEN not in {known.state, standing.state}:
                self._merge_death(now, sender, known, standing)
            elif standing.rank > known.rank:
                self._merge_gone(now, sender, known, standing)

    def _is_here(self, member: Member) -> bool:
        return member.is_living or member.node_id == self._rumours.own_id

    def _merge_word(self, now: float, sender: NodeId, node_id: NodeId, standing: Standing) -> None:
        self._rumours.on_alive(now, sender, Alive(standing.card))
        self._merge_verdict(now, sender, node_id, standing)

    def _merge_death(self, now: float, sender: NodeId, known: Member, standing: Standing) -> None:
        """Somebody who lives here, or is not forgotten on either side, is gone there."""
        if standing.boot <= known.boot:
            self._merge_word(now, sender, known.node_id, standing)
        elif is_proof(standing.state, standing.cause):
            # A later session than the known one has come and gone meanwhile.
            change = self._table.apply(now, standing)
            if change is not None:
                farewell = Left(known.node_id, standing.boot, standing.incarnation)
                self._news.add(known.node_id, encode_message(farewell))
                self._rumours.note(now, change, (clue(Kind.FAREWELL),))
        elif known.is_living:
            self._merge_word(now, sender, known.node_id, standing)

    def _merge_verdict(
        self, now: float, sender: NodeId, node_id: NodeId, standing: Standing
    ) -> None:
        boot, incarnation, state, cause = standing.rank
        if state is State.LEFT:
            self._rumours.on_left(now, sender, Left(node_id, boot, incarnation))
        elif state is State.FORGOTTEN and node_id == self._rumours.own_id:
            forget = Forget(node_id, boot, incarnation, standing.by, standing.age_s)
            self._rumours.on_forget(now, sender, forget)
        elif is_proof(state, cause):
            self._rumours.on_dead(now, sender, Dead(node_id, boot, incarnation, cause, sender))
        elif cause is Cause.CRASHED:
            # What was seen of its host was seen there: who is still alive says so within a moment.
            death = Dead(node_id, boot, incarnation, cause, sender)
            self._rumours.on_dead(now, sender, death, is_news=False)
        elif state is not State.ALIVE:
            self._rumours.on_suspect(now, sender, Suspect(node_id, boot, incarnation, sender))

    def _keep_tombstone(self, now: float, standing: Standing) -> None:
        """Nobody here knows that member, nor is anybody to meet it: keep its tombstone while it lasts."""
        lasts = standing.age_s < self._config.forgotten_retention_s
        if standing.state is State.FORGOTTEN and lasts:
            change = self._table.apply(now, standing)
            if change is not None:
                self._rumours.note(now, change, ())

    def _merge_gone(self, now: float, sender: NodeId, known: Member, standing: Standing) -> None:
        """A member that is gone on both sides, and forgotten on one at least, is known better there.

        Forgotten here, and told gone under a later word: if it went before it was forgotten, that word
        was meant too. Else it was alive after all, and its death is a death, which is believed, since
        there is nobody to protect from it.
        """
        is_same = known.state is State.FORGOTTEN and standing.boot == known.boot
        went_before = now - standing.age_s <= known.since
        if is_same and standing.state is not State.FORGOTTEN and went_before:
            forget = replace(known.tombstone(now), incarnation=standing.incarnation)
            self._rumours.on_forget(now, sender, forget)
            return
        change = self._table.apply(now, standing)
        if change is not None:
            self._news.add(known.node_id, encode_message(self._verdict_on(now, known)))
            is_forgotten = known.state is State.FORGOTTEN
            kind = Kind.FORGET_ASKED if is_forgotten else Kind.LEARNED
            teller = self._rumours.name_of((is_forgotten and known.by) or sender)
            self._rumours.note(now, change, (clue(kind, teller),))

    def _verdict_on(self, now: float, member: Member) -> Verdict:
        """Return what to tell others of a member that is gone."""
        if member.state is State.FORGOTTEN:
            return member.tombstone(now)
        if member.state is State.LEFT:
            return Left(member.node_id, member.boot, member.incarnation)
        return member.verdict(member.cause, self._rumours.own_id)
