"""What voters do: each request that was ever sent, commits, restarts, leases that lapse, proofs."""

from __future__ import annotations

from collections.abc import Iterator

from mesh.core.ballot import Ballot
from mesh.core.ids import NodeId
from mesh.registers.record import Record
from mesh.registers.voter import Step, Store
from mesh.wire.register_messages import Accept, Accepted, Owner, Promised, Renew, Renewed
from tests.exhaustive.askers import Asked, Askers, Wants
from tests.exhaustive.cores import Cores, VoterAtWork, VoterStep
from tests.exhaustive.scenarios import EPOCH, KEY, Kind, Scenario, created
from tests.exhaustive.state import NOTHING_OUT, Out, Phase, Shared, VoterState


class Voters:
    """The voters of a scenario, each a real one."""

    def __init__(self, cores: Cores, scenario: Scenario, askers: Askers) -> None:
        self._cores = cores
        self._scenario = scenario
        self._askers = askers
        self._work = VoterAtWork(cores)
        self._steps: dict[object, VoterStep] = {}

    def start(self) -> VoterState:
        if not self._scenario.exists:
            return VoterState()
        before = self._askers.before
        record = Record(before.ballot, before.ballot, 0, before.value)
        return VoterState(record, record)

    def moves(
        self, shared: Shared, voter: VoterState, place: int
    ) -> Iterator[tuple[str, Shared, VoterState]]:
        """Yield what may happen at a voter: in words, and what it leads to."""
        for asked in self._askers.requests(shared):
            yield f"{{}} gets {asked.name}", shared, self._handle(shared, voter, asked)
        if voter.is_waiting:
            yield "{} commits", *self._commit(shared, voter)
        if self._scenario.restarts:
            yield from self._restart(shared, voter)
        if voter.is_live and self._may_lapse(shared, voter):
            yield "the lease lapses at {}", shared, voter._replace(is_live=False, armed=0)
        if self._scenario.proofs:
            yield from self._proofs(shared, voter)
        yield from self._creations(shared, voter, place)

    def trim(self, voter: VoterState, wants: Wants) -> VoterState:
        """Drop the answers that make no difference any more."""
        return voter._replace(
            waiting=self._trim(voter.waiting, wants), out=self._trim(voter.out, wants)
        )

    def fault(self, voter: VoterState) -> str:
        """Say whether a refused claimant left a trace where the lease lives."""
        record = voter.memory
        if not voter.is_live or record is None or record.promised == record.ballot:
            return ""
        owner = None if record.value is None else record.value.owner
        is_its_own = any(
            turn.ballot == record.promised and owner == (turn.node, turn.boot)
            for turn in self._askers.turns
        )
        return (
            "" if is_its_own else "a live lease cannot be renewed: a refused claimant left a trace"
        )

    # Inside.

    def _handle(self, shared: Shared, voter: VoterState, asked: Asked) -> VoterState:
        request = asked.request
        key = (voter.memory, voter.is_live, voter.proofs, request)
        step = self._steps.get(key)
        if step is None:
            step = self._steps[key] = self._work.handle(
                voter.memory, is_live=voter.is_live, proofs=voter.proofs, request=request
            )
        took = self._askers.took_bit(request) if isinstance(request, Accept) else 0
        out = self._out(asked.sender, step.steps, took)
        voter = self._armed(shared, voter, step)._replace(memory=step.memory)
        if not self._scenario.holds_back:
            return voter._replace(durable=step.memory, out=voter.out.joined(out))
        return self._held_back(voter, step, out, is_renewal=isinstance(request, Renew))

    def _out(self, asker: NodeId, steps: tuple[Step, ...], took: int) -> Out:
        promised: list[tuple[NodeId, Promised]] = []
        heard = 0
        for step in steps:
            if isinstance(step, Promised):
                promised.append((asker, step))
            elif isinstance(step, Accepted) or (isinstance(step, Renewed) and step.renewed):
                heard |= self._askers.heard_bit(asker, step)
        has_stored = any(isinstance(step, Store) for step in steps)
        return Out(tuple(promised), heard, took if has_stored else 0)

    def _held_back(
        self, voter: VoterState, step: VoterStep, out: Out, *, is_renewal: bool
    ) -> VoterState:
        """Let an answer wait for what its voter has not stored yet, be it its own or an earlier one's."""
        cores = self._cores
        stores = any(isinstance(one, Store) for one in step.steps)
        waits = cores.answers_wait if stores else voter.is_waiting
        if is_renewal:
            waits = waits and cores.renewals_wait
        elif not stores:
            waits = waits and cores.copies_wait
        if waits:
            return voter._replace(waiting=voter.waiting.joined(out))
        now, later = out._replace(took=0), Out(took=out.took)
        return voter._replace(waiting=voter.waiting.joined(later), out=voter.out.joined(now))

    def _armed(self, shared: Shared, voter: VoterState, step: VoterStep) -> VoterState:
        if not step.is_live:
            return voter._replace(is_live=False, armed=0)
        if not step.is_armed_anew:
            return voter._replace(is_live=True)
        ballot, owner = _lease(step.memory)
        times = self._askers.started(shared, ballot, owner)
        return voter._replace(is_live=True, armed=times.started - 1)

    def _commit(self, shared: Shared, voter: VoterState) -> tuple[Shared, VoterState]:
        for turn, accept in voter.waiting.sent:
            shared = self._askers.send_first(shared, turn, accept)
        left = voter.out.joined(voter.waiting._replace(sent=()))
        return shared, voter._replace(durable=voter.memory, waiting=NOTHING_OUT, out=left)

    def _restart(
        self, shared: Shared, voter: VoterState
    ) -> Iterator[tuple[str, Shared, VoterState]]:
        text = "{} restarts"
        if not self._cores.remembers:
            if shared.forgotten:
                return
            shared, text = shared._replace(forgotten=1), "{} restarts and has forgotten"
        step = self._work.restart(voter.durable)
        fresh = voter._replace(
            memory=step.memory, durable=step.memory, proofs=(), waiting=NOTHING_OUT
        )
        yield text, shared, self._armed(shared, fresh, step)

    def _may_lapse(self, shared: Shared, voter: VoterState) -> bool:
        if not self._cores.has_margin:
            return True
        times = self._askers.started(shared, *_lease(voter.memory))
        return times.ended > voter.armed

    def _proofs(
        self, shared: Shared, voter: VoterState
    ) -> Iterator[tuple[str, Shared, VoterState]]:
        for i, turn in enumerate(self._askers.turns):
            if not self._askers.is_past(shared, i):
                continue
            boot = turn.boot if self._cores.proofs_name_boots else turn.boot + 1
            proofs = (*(one for one in voter.proofs if one[0] != turn.node), (turn.node, boot))
            step = self._work.end(
                voter.memory, is_live=voter.is_live, proofs=voter.proofs, proof=(turn.node, boot)
            )
            after = self._armed(shared, voter._replace(proofs=proofs), step)
            yield f"{{}} is shown that {turn.name} is over", shared, after

    def _creations(
        self, shared: Shared, voter: VoterState, place: int
    ) -> Iterator[tuple[str, Shared, VoterState]]:
        for i, turn in enumerate(self._askers.turns):
            if turn.kind is not Kind.FIRST or turn.home != place:
                continue
            if shared.turns[i].phase is not Phase.ASKING or not self._askers.has_begun(shared, i):
                continue
            step = self._work.create(voter.memory, turn, created(i))
            if step is None:
                continue
            accept = Accept(KEY, EPOCH, turn.ballot, 0, created(i))
            if not self._cores.logs_first:
                text = "{} creates without asking, sends it before its own commit and restarts"
                yield text, self._askers.send_first(shared, i, accept), voter
                continue
            out = self._out(turn.node, step.steps, self._askers.took_bit(accept))
            out = out._replace(sent=((i, accept),))
            after = voter._replace(memory=step.memory, waiting=voter.waiting.joined(out))
            if self._scenario.holds_back:
                yield "{} creates without asking", shared, after
            else:
                yield "{} creates without asking", *self._commit(shared, after)

    def _trim(self, out: Out, wants: Wants) -> Out:
        promised = tuple(one for one in out.promised if (one[0], one[1].ballot) in wants.promises)
        return Out(promised, out.heard & wants.heard, out.took & ~wants.chosen, out.sent)


def _lease(record: Record | None) -> tuple[Ballot, Owner | None]:
    assert record is not None
    assert record.value is not None
    return record.ballot, record.value.owner
