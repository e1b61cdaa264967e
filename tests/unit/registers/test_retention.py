"""What is over goes at all voters or at none, the first voter last, and nothing of it comes back."""

import pytest

from mesh.core.ids import NodeId
from mesh.registers.asker import Exists
from mesh.registers.digests import bucket_of
from mesh.registers.handover import Install
from mesh.registers.outbox import PURGED, Changed, Commit, Post
from mesh.registers.proposal import Chosen
from mesh.registers.record import NOTHING, Record
from mesh.registers.retention import DROPPED_S, GIVE_UP_S
from mesh.registers.roster import proposing, successor_key
from mesh.registers.upkeep import CERTAIN_S, UpkeepTimes
from mesh.wire.register_messages import Prepare, Value
from mesh.wire.repair_messages import PURGE_MAX, Item, Lack, Purge, Purged, Ship, Stage
from mesh.wire.roster_messages import Roster
from tests.unit.registers.asked import EPOCH, FINAL, KEY, OPEN, STRANGER, VOTERS, P, ballot
from tests.unit.registers.keepers import UPKEEP, Keepers, final, keeper

LIFE_S = UPKEEP.message_life_s
PURGED_S = LIFE_S + CERTAIN_S + 6.0
"""What may go is gone within this."""


def at_once(_key: bytes, _record: Record) -> float:
    return 0.0


FIRST, *OTHERS = Keepers().by_node[VOTERS[0]].seats(KEY).voters
"""The voters of the key."""


ITEM = Item(KEY, ballot(5), 0)


def record(n: int = 5, value: Value = FINAL, promised: int | None = None) -> Record:
    return Record(ballot(promised or n), ballot(n), 0, value)


# Three desks.


def test_what_is_final_is_kept_until_it_expires_and_then_goes_everywhere() -> None:
    desks = Keepers(expires=lambda key, record: 100.0)
    desks.put(KEY, FINAL, n=5)
    desks.wait(100.0 - 1)
    assert desks.held(KEY) == [FINAL] * 3
    desks.wait(CERTAIN_S + 6)
    assert not any(one.voter.holds(KEY) for one in desks.by_node.values())
    assert [one.voter.purged_n for one in desks.by_node.values()] == [5, 5, 5]
    desks.check()


def test_what_need_not_be_kept_is_kept_for_as_long_as_a_message_lives() -> None:
    desks = Keepers(expires=at_once)
    desks.put(KEY, FINAL)
    desks.wait(LIFE_S - 1)
    assert desks.held(KEY) == [FINAL] * 3
    desks.wait(PURGED_S - LIFE_S + 1)
    assert desks.held(KEY) == [None] * 3


def test_what_is_not_final_never_goes() -> None:
    desks = Keepers(expires=at_once)
    desks.put(KEY, OPEN)
    desks.wait(3 * PURGED_S)
    assert desks.held(KEY) == [OPEN] * 3


def test_rosters_never_go() -> None:
    desks = Keepers(expires=at_once)
    (roster,) = filter(None, [proposing(Roster(2, VOTERS))(None)])
    desks.put(successor_key(1), roster)
    desks.wait(3 * PURGED_S)
    assert desks.held(successor_key(1)) == [roster] * 3


@pytest.mark.parametrize("away", VOTERS)
def test_while_a_voter_is_away_nothing_goes_for_it_may_hold_something_older(away: NodeId) -> None:
    desks = Keepers(expires=at_once)
    desks.put(KEY, OPEN, n=1)
    desks.away = {away}
    desks.put(KEY, FINAL, *(node for node in VOTERS if node != away), n=5)
    desks.wait(3 * PURGED_S)
    assert desks.held(KEY).count(FINAL) == 2
    desks.away = set()
    desks.wait(2 * PURGED_S + GIVE_UP_S + 60)
    assert desks.held(KEY) == [None] * 3, "it was shipped to the third, and then it went"
    desks.check()


def test_a_voter_that_goes_away_half_way_has_the_first_keep_it() -> None:
    desks = Keepers(expires=at_once)
    desks.put(KEY, FINAL, n=5)
    while desks.by_node[OTHERS[0]].voter.holds(KEY):
        desks.wait(0.05)
    desks.away = {OTHERS[0]}
    desks.wait(CERTAIN_S + GIVE_UP_S + 5)
    assert desks.by_node[FIRST].voter.record(KEY).value == FINAL
    desks.away = set()
    desks.wait(3 * PURGED_S)
    assert desks.held(KEY) == [None] * 3
    desks.check()


def test_many_go_in_batches() -> None:
    desks = Keepers(expires=at_once)
    keys = [b"task/%d" % n for n in range(1000)]
    for key in keys:
        desks.put(key, FINAL)
    desks.wait(PURGED_S + 5)
    assert [len(one.voter) for one in desks.by_node.values()] == [0, 0, 0]
    desks.check()


def test_beyond_a_number_the_oldest_go_first_though_they_have_not_expired() -> None:
    times = UpkeepTimes(compare_s=2, settle_s=1, message_life_s=30, finals_max=20)
    desks = Keepers(times=times, expires=lambda key, record: 1e9)
    keys = [b"task/%d" % n for n in range(60)]
    for key in keys:
        desks.put(key, FINAL)
        desks.wait(0.1)
    desks.wait(2 * PURGED_S)
    left = [key for key in keys if desks.held(key) == [FINAL] * 3]
    assert 15 <= len(left) <= 20
    assert sum(desks.held(key) == [None] * 3 for key in keys) == 60 - len(left)
    assert sum(key in keys[30:] for key in left) >= len(left) - 4, "about the oldest"
    desks.check()


def test_a_voter_that_starts_again_counts_anew() -> None:
    desks = Keepers(expires=at_once)
    desks.put(KEY, FINAL)
    desks.wait(LIFE_S - 5)
    restarted = OTHERS[0]
    voter = desks.by_node[restarted].voter
    desks.by_node[restarted] = keeper(restarted, list(voter), expires=at_once, now=desks.now)
    desks.wait(LIFE_S - 5)
    assert desks.held(KEY) == [FINAL] * 3
    desks.wait(2 * PURGED_S)
    assert desks.held(KEY) == [None] * 3


def test_a_session_that_ends_half_way_leaves_what_is_final_and_it_goes_another_time() -> None:
    desks = Keepers(expires=at_once)
    desks.put(KEY, FINAL, n=5)
    while any(desks.by_node[node].voter.holds(KEY) for node in OTHERS):
        desks.wait(0.05)
    records = list(desks.by_node[FIRST].voter)
    desks.by_node[FIRST] = keeper(FIRST, records, expires=at_once, now=desks.now)
    desks.wait(3 * UPKEEP.compare_s)
    assert desks.held(KEY) == [FINAL] * 3, "the first shipped it"
    desks.wait(LIFE_S + PURGED_S)  # it has to have stood at all of them
    assert desks.held(KEY) == [None] * 3
    desks.check()


def test_a_register_may_be_made_anew_by_its_first_voter_in_one_round_once_all_have_purged_it() -> (
    None
):
    desks = Keepers(expires=at_once)
    desks.put(KEY, FINAL, n=5)
    desks.wait(PURGED_S)
    anew = final(b"again")
    desks.by_node[FIRST].create(desks.now, KEY, anew, "create", 5)
    outcome = desks.outcome(FIRST, "create")
    assert isinstance(outcome, Chosen)
    assert outcome.ballot.n == 0
    assert desks.held(KEY) == [anew] * 3


@pytest.mark.parametrize("asker", VOTERS)
def test_who_makes_it_anew_half_way_either_hears_of_its_end_or_has_it_for_good(
    asker: NodeId,
) -> None:
    desks = Keepers(expires=at_once)
    desks.put(KEY, FINAL, n=5)
    while any(desks.by_node[node].voter.holds(KEY) for node in OTHERS):
        desks.wait(0.05)
    assert desks.by_node[FIRST].voter.holds(KEY)
    anew = final(b"again")
    desks.by_node[asker].create(desks.now, KEY, anew, "create", 5)
    outcome = desks.outcome(asker, "create", 5)
    assert isinstance(outcome, Chosen | Exists)
    assert outcome.value in {anew, FINAL}
    desks.wait(CERTAIN_S + 5)
    assert desks.held(KEY).count(outcome.value) >= 2, "nothing else was found there"
    desks.wait(2 * PURGED_S)
    assert desks.held(KEY) == [None] * 3
    desks.check()


class First:
    """The first voter, which has asked the others for a stage of purging the key."""

    def __init__(self, stage: Stage) -> None:
        self.desk = keeper(FIRST, [(KEY, record())], expires=at_once)
        self.desk.handle_timeout(LIFE_S)
        self.tag = self.asked()[0].tag
        self.say(Stage.ASK, LIFE_S)
        if stage is Stage.AGAIN:
            self.say(Stage.DROP, LIFE_S)
            self.desk.take()
            self.desk.handle_timeout(LIFE_S + CERTAIN_S)
        assert {one.stage for one in self.asked()[-len(OTHERS) :]} == {stage}

    def asked(self) -> list[Purge]:
        posts = [one for one in self.desk.take() if isinstance(one, Post)]
        return [one for post in posts for one in post.messages if isinstance(one, Purge)]

    def say(self, stage: Stage, now: float, *others: NodeId, tag: int | None = None) -> None:
        """Have these of the others, or all, say yes."""
        answer = Purged(EPOCH, self.tag if tag is None else tag, stage, b"\1", 5)
        for other in others or OTHERS:
            self.desk.handle(now, other, answer)


# One voter alone.


def test_a_single_voter_purges_by_itself_and_says_so_when_it_is_durable() -> None:
    desk = keeper(FIRST, [(KEY, record(promised=7))], expires=at_once)
    assert desk.keeping is not None
    desk.adopt(0.0, Roster(EPOCH + 1, (FIRST,)))
    desk.carry_out(0.0, [Install(EPOCH + 1, {KEY: (record(promised=7), False)})])
    desk.take()
    desk.committed(0.0, 1)
    desk.take()
    desk.handle_timeout(LIFE_S)
    commit, *rest = desk.take()
    assert commit == Commit(2, (), {PURGED: 7}, None, (KEY,))
    assert Changed(KEY, NOTHING) not in rest
    desk.committed(LIFE_S, 2)
    assert Changed(KEY, NOTHING) in desk.take()
    assert len(desk.keeping.retention) == 0


def asked_of_other(
    held: Record | None,
    purge: Purge,
    *,
    now: float = LIFE_S,
    sender: NodeId = FIRST,
    key: bytes = KEY,
) -> tuple[bytes, tuple[bytes, ...], int]:
    """Return what another voter answers, forgets, and how high nothing begins there any more."""
    desk = keeper(OTHERS[0], [] if held is None else [(key, held)], expires=at_once)
    desk.handle(now, sender, purge)
    forgotten: tuple[bytes, ...] = ()
    flags = b""
    outputs = desk.take()
    for output in outputs:
        if isinstance(output, Commit):
            forgotten = output.forget
            desk.committed(now, output.number)
            outputs += desk.take()
        elif isinstance(output, Post):
            (answer,) = [one for one in output.messages if isinstance(one, Purged)]
            flags = answer.flags
    return flags, forgotten, desk.voter.purged_n


def purge(stage: Stage, n: int = 9, asked: Item | None = None) -> Purge:
    return Purge(EPOCH, 77, stage, 0 if stage is Stage.ASK else n, (asked or ITEM,))


def test_it_may_go_where_just_this_value_is_final_and_has_stood() -> None:
    assert asked_of_other(record(), purge(Stage.ASK)) == (b"\1", (), 0)


@pytest.mark.parametrize(
    ("held", "now"),
    [
        (record(), LIFE_S - 0.1),
        (record(4), LIFE_S),
        (record(6), LIFE_S),
        (record(5, OPEN), LIFE_S),
        (None, LIFE_S),
        (Record(ballot(3)), LIFE_S),
    ],
    ids=["too young", "older", "newer", "not final", "nothing", "a promise alone"],
)
def test_it_may_not_go_where_anything_else_is_held(held: Record | None, now: float) -> None:
    assert asked_of_other(held, purge(Stage.ASK), now=now) == (b"\0", (), 0)


@pytest.mark.parametrize("sender", [OTHERS[1], STRANGER])
@pytest.mark.parametrize("stage", list(Stage))
def test_nobody_but_the_first_voter_purges(sender: NodeId, stage: Stage) -> None:
    flags, forgotten, n = asked_of_other(record(), purge(stage), sender=sender)
    assert not any(flags)
    assert (forgotten, n) == ((), 0)


@pytest.mark.parametrize("stage", list(Stage))
def test_a_roster_is_not_purged_whoever_asks(stage: Stage) -> None:
    key = successor_key(2)
    first = Keepers().by_node[OTHERS[0]].seats(key).voters[0]
    asked = purge(stage, asked=Item(key, ballot(5), 0))
    assert asked_of_other(record(), asked, sender=first, key=key)[1] == ()


def test_what_all_agreed_to_is_dropped_with_its_numbers() -> None:
    assert asked_of_other(record(), purge(Stage.DROP)) == (b"\1", (KEY,), 9)


def test_what_is_gone_already_counts_as_dropped_and_its_numbers_begin_nothing() -> None:
    assert asked_of_other(None, purge(Stage.DROP)) == (b"\1", (), 9)


@pytest.mark.parametrize(
    "held", [record(6), record(5, OPEN), record(promised=10), Record(ballot(10))]
)
@pytest.mark.parametrize("stage", [Stage.DROP, Stage.AGAIN])
def test_what_has_changed_or_was_promised_above_stays(held: Record, stage: Stage) -> None:
    assert asked_of_other(held, purge(stage)) == (b"\0", (), 0)


def test_what_came_back_after_it_was_dropped_goes_again_and_is_no_yes_yet() -> None:
    assert asked_of_other(record(), purge(Stage.AGAIN)) == (b"\0", (KEY,), 9)


def test_it_is_gone_once_it_has_been_gone_for_as_long_as_anything_may_be_on_its_way() -> None:
    desk = keeper(OTHERS[0], [(KEY, record())], expires=at_once)

    def answer(now: float, stage: Stage) -> bytes:
        desk.handle(now, FIRST, purge(stage))
        outputs = desk.take()
        for output in outputs:
            if isinstance(output, Commit):
                desk.committed(now, output.number)
        outputs += desk.take()
        (post,) = [one for one in outputs if isinstance(one, Post)]
        (purged,) = post.messages
        assert isinstance(purged, Purged)
        return purged.flags

    began = 100.0
    assert answer(began, Stage.DROP) == b"\1"
    assert answer(began + CERTAIN_S - 0.1, Stage.AGAIN) == b"\0"
    assert answer(began + CERTAIN_S, Stage.AGAIN) == b"\1"
    desk.voter.fill(KEY, ballot(5), 0, FINAL)
    assert answer(began + CERTAIN_S + 1, Stage.AGAIN) == b"\0"
    assert answer(began + CERTAIN_S + 2, Stage.AGAIN) == b"\0"
    assert answer(began + 2 * CERTAIN_S + 1, Stage.AGAIN) == b"\1"
    assert answer(began + 2 * DROPPED_S, Stage.AGAIN) == b"\1"


def test_a_session_that_has_just_begun_does_not_know_whether_it_has_been_gone_for_long() -> None:
    assert asked_of_other(None, purge(Stage.AGAIN), now=CERTAIN_S - 0.1)[0] == b"\0"
    assert asked_of_other(None, purge(Stage.AGAIN), now=CERTAIN_S)[0] == b"\1"


def test_the_first_voter_ships_nothing_of_what_others_are_about_to_drop() -> None:
    desk = First(Stage.DROP).desk
    desk.handle(LIFE_S, OTHERS[0], Lack(EPOCH, 5, bucket_of(KEY), b"", b""))
    (post,) = desk.take()
    assert isinstance(post, Post)
    assert post.messages == (Ship(EPOCH, 5, (), is_last=True),)


def test_the_first_voter_keeps_what_it_promised_to_somebody_meanwhile() -> None:
    first = First(Stage.AGAIN)
    first.desk.handle(LIFE_S, P, Prepare(KEY, ballot(10), 1))
    first.say(Stage.AGAIN, LIFE_S + CERTAIN_S)
    first.desk.handle_timeout(LIFE_S + CERTAIN_S + GIVE_UP_S)
    assert first.desk.voter.record(KEY).value == FINAL


def test_the_first_voter_drops_it_when_all_have_not_had_it_for_long_enough() -> None:
    first = First(Stage.AGAIN)
    first.say(Stage.AGAIN, LIFE_S + CERTAIN_S)
    (commit,) = [one for one in first.desk.take() if isinstance(one, Commit)]
    assert commit.forget == (KEY,)


def test_answers_to_two_rounds_do_not_count_together() -> None:
    first, now = First(Stage.AGAIN), LIFE_S + CERTAIN_S
    first.say(Stage.AGAIN, now, OTHERS[0])
    first.desk.handle_timeout(now + 1.0)
    first.say(Stage.AGAIN, now + 1.0, OTHERS[1])
    first.say(Stage.AGAIN, now + 1.0, OTHERS[1], tag=first.tag + 1)
    assert first.desk.voter.holds(KEY)
    first.say(Stage.AGAIN, now + 1.5, OTHERS[0], tag=first.tag + 1)
    assert not first.desk.voter.holds(KEY)


def test_no_batch_is_larger_than_a_message_may_be() -> None:
    keys = [b"task/%d" % n for n in range(6000)]
    desk = keeper(FIRST, [(key, record()) for key in keys], expires=at_once)
    desk.handle_timeout(LIFE_S)
    posts = [post for post in desk.take() if isinstance(post, Post)]
    asked = [one for post in posts for one in post.messages if isinstance(one, Purge)]
    assert {len(one.items) for one in asked} == {PURGE_MAX}
