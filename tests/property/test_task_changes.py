"""One task, several clients and owners, voters that are cut off: whatever the order, the task's history holds.

Voters and askers are the real ones (`tests.unit.tasks.hall`). Owners write under their tokens by themselves, so
that they also write what they ought not to any more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.core.ballot import NO_BALLOT, Ballot
from mesh.registers.asker import Exists
from mesh.registers.proposal import Chosen
from mesh.tasks import changes as ch
from mesh.tasks.body import Body, End, Result, task_key
from mesh.tasks.form import of_value
from mesh.wire.register_messages import Accept, Accepted, Owner, Renew, Standing, Value
from mesh.wire.task_messages import TaskState
from tests.unit.tasks.hall import VOTERS, Clerk, Hall
from tests.unit.tasks.made import ANNA, BERT, CARL, NOON, SPEC, new

KEY = task_key(SPEC.task_id)
SESSIONS = (ANNA, BERT, CARL)
MAJORITY = 2
RETRIES = 1


@dataclass
class Party:
    """One node: it asks as a client, and owns what it was granted."""

    clerk: Clerk
    owner: Owner
    claim: ch.Claim | None = None  # under way, or its outcome unheard
    token: Ballot = NO_BALLOT
    value: Value | None = None
    seq: int = 0


@dataclass
class World:
    """The hall, its parties, and what was promised to anybody so far."""

    hall: Hall = field(default_factory=Hall)
    parties: list[Party] = field(default_factory=list)
    is_acknowledged: bool = False
    final: Value | None = None  # as anybody was told, or a majority holds it
    grants: dict[int, tuple[Owner, float]] = field(default_factory=dict)  # by attempt
    tokens: list[Ballot] = field(default_factory=list)
    latest: tuple[Ballot, int, Body] | None = None  # of what a majority has held

    def __post_init__(self) -> None:
        self.parties = [Party(Clerk(self.hall, owner), owner) for owner in SESSIONS]

    @property
    def at(self) -> float:
        return NOON + self.hall.now

    # What may happen.

    def submit(self, who: int) -> None:
        party = self.parties[who]
        party.clerk.create(self.hall.now, KEY, new(RETRIES), ("submit", who), 2.0)

    def claim(self, who: int) -> None:
        party = self.parties[who]
        if party.value is None:
            party.claim = party.claim or ch.Claim(self.at, party.owner, "node")
            tag = ("claim", who, party.claim)
            party.clerk.claim(self.hall.now, KEY, party.claim, tag, 2.0)

    def cancel(self, who: int) -> None:
        party = self.parties[who]
        if party.value is None and party.claim is None:
            change = ch.Cancel(self.at)
            party.clerk.propose(self.hall.now, KEY, change, ("cancel", who), 2.0)

    def end(self, who: int, heard_by: list[int], code: int) -> None:
        party = self.parties[who]
        outcome = Result(exit_code=code)
        self.write(
            party,
            heard_by,
            lambda n: ch.Finish(self.at, party.owner, n, party.token, outcome, 0.5),
        )

    def release(self, who: int, heard_by: list[int]) -> None:
        party = self.parties[who]
        self.write(
            party,
            heard_by,
            lambda n: ch.Release(self.at, party.owner, n, party.token, "it is leaving"),
        )

    def mark(self, who: int, heard_by: list[int]) -> None:
        party = self.parties[who]
        self.write(
            party, heard_by, lambda n: ch.MarkCancelled(self.at, party.owner, n, party.token)
        )

    def write(self, party: Party, heard_by: list[int], change: Callable[[int], ch.Change]) -> None:
        """Write under the token, lease or no lease, heard by some; what a majority takes counts."""
        if party.value is None:
            return
        value = change(of_value(party.value).attempt)(party.value)
        if value is None:
            return
        party.seq += 1
        accepted = 0
        for voter in (VOTERS[place] for place in heard_by):
            request = Accept(KEY, 1, party.token, party.seq, value)
            accepted += any(isinstance(one, Accepted) for one in self.hall.ask(voter, request))
        party.value = value if value.standing is Standing.LEASED else None
        if accepted >= MAJORITY and value.standing is Standing.FINAL:
            self.note_final(value)

    def renew(self, who: int) -> None:
        party = self.parties[who]
        if party.value is not None:
            for voter in VOTERS:
                self.hall.ask(voter, Renew(1, 1, ((KEY, party.token),)))

    def restart(self, who: int) -> None:
        """Begin a new session of a node, whose last one is proved to be over."""
        party = self.parties[who]
        owner = Owner(party.owner.node_id, party.owner.boot + 1)
        for voter in self.hall.voters.values():
            voter.end(party.owner.node_id, party.owner.boot)
        numbers = 10_000 * owner.boot  # set aside by sessions before
        self.parties[who] = Party(Clerk(self.hall, owner, numbers), owner)

    def cut(self, who: int) -> None:
        self.hall.cut ^= {VOTERS[who]}

    def wait(self, seconds: float) -> None:
        end = self.hall.now + seconds
        while self.hall.now < end:
            dues = [party.clerk.asker.next_deadline() for party in self.parties]
            due = min((due for due in dues if due is not None), default=end)
            self.hall.now = min(max(due, self.hall.now), end)
            for party in self.parties:
                party.clerk.handle_timeout()

    # What must hold.

    def look(self) -> None:
        """Take what the askers were told, and compare it, and what the voters hold, with all that was before."""
        for who, party in enumerate(self.parties):
            while party.clerk.done:
                done = party.clerk.done.popleft()
                assert isinstance(done.tag, tuple)
                if isinstance(done.outcome, Chosen | Exists):
                    self.is_acknowledged = True
                    if done.outcome.value.standing is Standing.FINAL:
                        self.note_final(done.outcome.value)
                if done.tag[0] == "claim" and party.claim is done.tag[2]:
                    self.on_claimed(who, done.outcome)
        held: dict[tuple[Ballot, int], list[Value]] = {}
        for voter in self.hall.voters.values():
            record = voter.record(KEY)
            if record.value is not None:
                of_value(record.value)  # consistent, everywhere and always
                held.setdefault((record.ballot, record.seq), []).append(record.value)
        if self.is_acknowledged:
            assert sum(map(len, held.values())) >= MAJORITY, "an acknowledged task was lost"
        for (ballot, seq), values in held.items():
            assert all(value == values[0] for value in values)
            if len(values) >= MAJORITY:
                self.on_chosen(ballot, seq, values[0])

    def on_claimed(self, who: int, outcome: object) -> None:
        party = self.parties[who]
        if not isinstance(outcome, Chosen):
            if not getattr(outcome, "may_be_chosen", False):
                party.claim = None  # refused, for good: the next is another claim
            return
        value, claim = outcome.value, party.claim
        party.claim = None
        if value.standing is not Standing.LEASED or value.owner != party.owner:
            return
        assert claim is not None
        assert self.final is None, "granted after its end"
        body = of_value(value)
        granted = (party.owner, claim.at)
        assert self.grants.setdefault(body.attempt, granted) == granted, "one number, two owners"
        assert body.attempt == max(self.grants), "an earlier number was granted again"
        assert all(outcome.ballot > token for token in self.tokens)
        self.tokens.append(outcome.ballot)
        party.token, party.value, party.seq = outcome.ballot, value, 0

    def on_chosen(self, ballot: Ballot, seq: int, value: Value) -> None:
        body = of_value(value)
        if self.latest is not None:
            before = self.latest[2]
            assert (ballot, seq) >= self.latest[:2]
            assert body.attempt >= before.attempt
            assert body.retries_left <= before.retries_left
            assert body.is_cancel_requested or not before.is_cancel_requested
            assert body.spec == before.spec
            known = {one.number: one.end for one in before.attempts if one.ended is not None}
            now = {one.number: one.end for one in body.attempts}
            assert known.items() <= now.items(), "what an attempt came to was changed"
        if not body.state.is_terminal:
            failures = sum(one.end is End.VERDICT for one in body.attempts)
            assert body.retries_left == RETRIES - failures, "a retry was spent, or given"
        self.latest = (ballot, seq, body)
        if value.standing is Standing.FINAL:
            self.note_final(value)
        else:
            assert self.final is None, "open again after its end"

    def note_final(self, value: Value) -> None:
        assert self.final in {None, value}, "two ends"
        self.final = value


PARTIES = st.integers(0, len(SESSIONS) - 1)
HEARD_BY = st.sampled_from([[0, 1, 2], [0, 1], [2], []])
STEPS = st.one_of(
    st.tuples(st.sampled_from(["claim", "claim", "renew"]), PARTIES),
    st.tuples(st.sampled_from(["submit", "cancel", "restart", "cut", "cut"]), PARTIES),
    st.tuples(st.sampled_from(["release", "mark"]), PARTIES, HEARD_BY),
    st.tuples(st.just("end"), PARTIES, HEARD_BY, st.sampled_from([0, 1, 1])),
    st.tuples(st.just("wait"), st.sampled_from([0.1, 1.0, 2.5, 5.0, 20.0])),
)


@settings(max_examples=200)
@given(steps=st.lists(STEPS, min_size=5, max_size=40))
def test_the_history_of_a_task_holds_in_any_order_of_events(
    steps: list[tuple[Any, ...]],
) -> None:
    world = World()
    world.submit(0)
    for name, *values in steps:
        getattr(world, name)(*values)
        world.look()
    # Once the voters are back and nobody renews, whoever claims gets it, or it has ended.
    world.hall.cut.clear()
    for who in range(len(SESSIONS)):
        world.restart(who)
    world.submit(0)
    world.wait(30.0)
    world.look()
    for _ in range(20):
        world.wait(2.0)
        world.look()
        if world.final is None and world.parties[0].value is None:
            world.claim(0)
            world.look()
    assert world.final is not None or world.parties[0].value is not None


def test_the_steps_reach_every_state() -> None:
    """The world is able to see what it looks for: tasks end in every way in it."""
    ends: dict[TaskState, World] = {}
    for code, cancels in ((0, False), (1, False), (0, True)):
        world = World()
        world.submit(0)
        world.look()
        if cancels:
            world.cancel(1)
        for _ in range(2):
            world.claim(2)
            world.look()
            world.end(2, [0, 1, 2], code)
            world.look()
            world.wait(20.0)
            world.look()
        assert world.final is not None
        ends[of_value(world.final).state] = world
    assert set(ends) == {TaskState.DONE, TaskState.FAILED, TaskState.CANCELLED}
    assert ends[TaskState.FAILED].grants.keys() == {1, 2}
