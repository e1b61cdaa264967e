"""Setting a queue's strategy and showing it, at any node: what a majority holds, and the truth about who set it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.core.effects import Answer
from mesh.core.ids import NodeId
from mesh.queues.book import REFRESH_S
from mesh.queues.commands import SetQueue, ShowQueue
from mesh.queues.settings import Strategy, of_value, queue_key
from mesh.registers.record import Record
from mesh.wire.register_messages import Accept, Owner, Standing, Value
from tests.unit.tasks.asked import DORA, error, hall_of, result
from tests.unit.tasks.crew import A, B, C, Crew
from tests.unit.tasks.hall import VOTERS, Desk, Hall
from tests.unit.tasks.made import ANNA, BERT, NOON, TOKEN

CONTEST, PULL = Strategy.CONTEST, Strategy.PULL
KEY = queue_key("thumbs")
BY_DEFAULT = {
    "cpu": 0.2,
    "distance": 0.05,
    "free_slots": 0.25,
    "history": 0.25,
    "lag": 0.05,
    "match": 0.05,
}


def set_to(strategy: Strategy, number: int = 1, queue: str = "thumbs") -> SetQueue:
    return SetQueue(number, queue, strategy)


def show(number: int = 2, queue: str = "thumbs") -> ShowQueue:
    return ShowQueue(number, queue)


def give(desk: Desk, command: SetQueue | ShowQueue) -> Answer | None:
    """Give a command, and wait a moment: whose ballot is outbid tries again."""
    if desk.give(command) is None:
        desk.wait(1.0)
    return desk.answers.pop(command.command_id, None)


def strategy(desk: Desk) -> str:
    return str(result(give(desk, show(90)))["strategy"])


def put(hall: Hall, value: Value, n: int = 90) -> None:
    """Have all voters accept a value, whatever wrote it."""
    for voter in VOTERS:
        hall.ask(voter, Accept(KEY, 1, TOKEN._replace(n=n), 0, value))


def test_a_queue_that_was_never_set_shows_the_default() -> None:
    _, desk = hall_of()
    assert result(give(desk, show())) == {
        "queue": "thumbs",
        "strategy": "rendezvous",
        "weights": BY_DEFAULT,
        "default_weights": True,
        "set_at": None,
        "set_by": None,
    }


def test_what_is_set_at_one_node_is_shown_at_another() -> None:
    hall, desk = hall_of()
    answer = result(give(desk, set_to(PULL)))
    at = NOON + hall.now - 100.0
    assert answer == {
        "queue": "thumbs",
        "strategy": "pull",
        "weights": BY_DEFAULT,
        "default_weights": True,
        "set_at": pytest.approx(at, abs=0.01),
        "set_by": "dora",
        "outcome": "set",
    }
    shown = result(give(Desk(hall, ANNA), show()))
    del answer["outcome"]
    assert shown == answer


def test_weights_are_set_without_the_strategy_shown_with_all_parts_and_reset() -> None:
    _, desk = hall_of()
    result(give(desk, set_to(PULL)))
    answer = result(give(desk, SetQueue(2, "thumbs", weights={"cpu": 3.0, "lag": 1.0})))
    assert (answer["strategy"], answer["outcome"]) == ("pull", "set")
    assert answer["weights"] == BY_DEFAULT | {"cpu": 3.0, "lag": 1.0}
    assert not answer["default_weights"]
    assert result(give(desk, set_to(CONTEST, 3)))["weights"]["cpu"] == 3.0
    others = {"cpu": 0.0, "lag": None} | dict.fromkeys(BY_DEFAULT.keys() - {"cpu", "lag"}, 0.0)
    answer = result(give(desk, SetQueue(4, "thumbs", weights=others)))
    assert answer["weights"] == dict.fromkeys(BY_DEFAULT, 0.0) | {"lag": BY_DEFAULT["lag"]}
    refused = give(desk, SetQueue(5, "thumbs", weights={"lag": 0.0}))
    assert refused is not None
    assert refused.error is not None
    assert "no part of a fitness would count any more" in refused.error
    reset = result(give(desk, SetQueue(6, "thumbs", weights={})))
    assert (reset["strategy"], reset["weights"]) == ("contest", BY_DEFAULT)
    assert reset["default_weights"]


def test_what_is_set_is_kept_by_a_majority_though_a_voter_is_away() -> None:
    hall, desk = hall_of()
    hall.cut.add(VOTERS[0])
    result(give(desk, set_to(PULL)))
    hall.cut = {VOTERS[2]}
    assert strategy(desk) == "pull"


def test_setting_what_holds_already_changes_nothing_and_says_so() -> None:
    hall, desk = hall_of()
    first = result(give(desk, set_to(PULL)))
    again = result(give(Desk(hall, ANNA), set_to(PULL)))
    assert again == first | {"outcome": "kept"}


def test_each_queue_has_its_own_setting() -> None:
    _, desk = hall_of()
    result(give(desk, set_to(PULL)))
    result(give(desk, set_to(CONTEST, 2, "other")))
    assert result(give(desk, show(3)))["strategy"] == "pull"
    assert result(give(desk, show(4, "other")))["strategy"] == "contest"
    long = "ü" * 128
    assert result(give(desk, set_to(CONTEST, 5, long)))["queue"] == long
    assert result(give(desk, show(6, long)))["strategy"] == "contest"


def test_of_two_that_set_it_at_once_the_later_wins_and_both_are_told_the_truth() -> None:
    hall, early = hall_of()
    late = Desk(hall, ANNA)
    # The early one's write comes to one voter of three, then it hears no more.
    hall.no_accepts = set(VOTERS[1:])
    assert early.give(set_to(PULL)) is None
    hall.no_accepts = set()
    answer = result(give(late, set_to(CONTEST)))
    assert answer["outcome"] == "set"
    early.wait(5.0)
    overtaken = result(early.answers.get(1))
    assert overtaken == answer | {"outcome": "overtaken"}
    assert strategy(early) == strategy(late) == "contest"


def test_of_two_that_set_it_at_once_the_one_that_nobody_knew_of_comes_after_the_other() -> None:
    hall, early = hall_of()
    late = Desk(hall, ANNA)
    hall.no_accepts = set(VOTERS)
    assert early.give(set_to(PULL)) is None
    hall.no_accepts = set()
    assert result(give(late, set_to(CONTEST)))["outcome"] == "set"
    early.wait(5.0)
    assert result(early.answers.get(1))["outcome"] == "set"
    assert strategy(early) == strategy(late) == "pull"


def test_without_a_majority_nothing_is_set_and_the_words_say_whether_it_may_be_yet() -> None:
    hall, desk = hall_of()
    hall.cut = set(VOTERS[1:])
    assert desk.give(set_to(PULL)) is None
    desk.wait(6.0)
    text = error(desk.answers.get(1))
    assert "2 of the queue's 3 voters (anna, bert, carl) is expected" in text
    assert "may have been set" not in text
    hall.cut.clear()
    hall.no_accepts = set(VOTERS[1:])
    assert desk.give(set_to(PULL, 2)) is None
    desk.wait(6.0)
    assert "It may have been set all the same: mesh queue show thumbs says so" in error(
        desk.answers.get(2)
    )
    hall.cut = set(VOTERS[1:])
    assert desk.give(show(3)) is None
    desk.wait(6.0)
    assert "of the queue's 3 voters" in error(desk.answers.get(3))


@pytest.mark.parametrize("ask", [lambda name: set_to(PULL, 1, name), lambda name: show(1, name)])
@pytest.mark.parametrize("name", ["", "q" * 129, "half \udc80"])
def test_a_name_that_no_task_can_have_is_refused(ask: Any, name: str) -> None:  # noqa: ANN401 - makes a command
    _, desk = hall_of()
    command: SetQueue | ShowQueue = ask(name)
    assert "a queue's name" in error(desk.give(command))


@pytest.mark.parametrize("body", [b"\x03 of a later version", b"\x01 rot", b"\x02 rot"])
def test_what_cannot_be_read_of_a_setting_is_left_as_it_is(body: bytes) -> None:
    hall, desk = hall_of()
    later = Value(Standing.OPEN, body)
    put(hall, later)
    assert "cannot be read by this version" in error(give(desk, show()))
    assert "stays as it is" in error(give(desk, set_to(PULL)))
    assert [hall.voters[voter].record(KEY).value for voter in VOTERS] == [later] * 3


def test_bytes_that_are_nothing_are_said_to_be_and_can_be_set_anew() -> None:
    hall, desk = hall_of()
    put(hall, Value(Standing.OPEN, b"\x00rot"))
    assert "cannot be read" in error(give(desk, show()))
    assert result(give(desk, set_to(PULL)))["outcome"] == "set"
    assert strategy(desk) == "pull"


def test_a_register_that_somebody_holds_is_not_set() -> None:
    hall, desk = hall_of()
    for voter in hall.voters.values():  # as one of an earlier version might have taken it
        voter._records[KEY] = voter.record(KEY)
        voter._store(KEY, leased(voter.record(KEY)))
        voter._arm(hall.now, KEY)
    assert desk.give(set_to(PULL)) is None
    desk.wait(6.0)
    assert error(desk.answers.get(1))
    assert hall.voters[VOTERS[0]].record(KEY).value == leased_value()


def leased_value() -> Value:
    return Value(Standing.LEASED, b"", Owner(NodeId(5), 1))


def leased(record: Record) -> Record:
    return replace(record, promised=TOKEN, ballot=TOKEN, value=leased_value())


CLIENTS = (ANNA, BERT, DORA)
SETS = st.lists(
    st.tuples(
        st.integers(0, len(CLIENTS) - 1),
        st.sampled_from(Strategy),
        st.sets(st.sampled_from(VOTERS), max_size=2),  # hear nothing
        st.sets(st.sampled_from(VOTERS)),  # hear no write
        st.sampled_from([0.0, 0.02, 0.3, 2.0]),
    ),
    max_size=8,
)


@settings(max_examples=60, deadline=None)
@given(SETS)
def test_whatever_is_lost_each_change_is_made_once_at_most_and_everybody_is_told_the_truth(
    sets: list[tuple[int, Strategy, set[NodeId], set[NodeId], float]],
) -> None:
    hall = Hall()
    desks = [Desk(hall, owner) for owner in CLIENTS]
    for number, (client, strategy_, cut, no_accepts, pause_s) in enumerate(sets):
        hall.cut, hall.no_accepts = set(cut), set(no_accepts)
        desks[client].give(set_to(strategy_, number))
        for desk in desks:
            desk.wait(pause_s)
    hall.cut, hall.no_accepts = set(), set()
    for desk in desks:
        desk.wait(6.0)
    told = {number: answer for desk in desks for number, answer in desk.answers.items()}
    assert told.keys() == set(range(len(sets)))
    shown = [result(give(desk, show(90))) for desk in desks]
    assert shown[0] == shown[1] == shown[2]
    held = [hall.voters[voter].record(KEY) for voter in VOTERS]
    latest = max(held, key=lambda one: (one.ballot, one.seq)).value
    marks = () if latest is None else of_value("thumbs", latest).marks
    assert (
        len(set(marks)) == len(marks) == (0 if latest is None else of_value("thumbs", latest).count)
    )
    ends = [None if told[number].error else result(told[number]) for number in told]
    assert sum(end is not None and end["outcome"] != "kept" for end in ends) <= len(marks)
    for number, end in zip(told, ends, strict=True):
        if end is not None and end["outcome"] != "overtaken":
            assert end["strategy"] == sets[number][1]


# Whole machines.


def ask(crew: Crew, own: NodeId, make: Any) -> dict[str, Any]:  # noqa: ANN401 - makes a command
    answer = crew.give(own, make)
    if answer is None:
        crew.wait(1.0)
    return result(crew.answer(own))


def known(crew: Crew, own: NodeId) -> Strategy:
    """Return what a node's steward would be told, which keeps the queue in use there."""
    node = crew.nodes[own]
    found = node.tasks._book.strategy_of(crew.now, "thumbs")
    crew.do(node, lambda tasks, now: tasks.handle_message(now, own))
    return found


def test_every_node_that_uses_the_queue_knows_of_a_change_in_time() -> None:
    outsider = NodeId(7)
    crew = Crew({outsider: 1})
    nodes = (A, B, C, outsider)
    assert {known(crew, own) for own in nodes} == {Strategy.RENDEZVOUS}
    ask(crew, outsider, lambda number: set_to(PULL, number))
    assert known(crew, outsider) is PULL, "at once where it was set"
    assert [known(crew, own) for own in VOTERS] == [PULL] * 3, "and where it is stored"
    ask(crew, A, lambda number: set_to(CONTEST, number))
    assert known(crew, outsider) is PULL
    crew.wait(REFRESH_S)
    assert known(crew, outsider) is CONTEST


def test_what_a_node_cannot_read_is_counted_there_and_leaves_it_at_the_default() -> None:
    crew = Crew()
    later = Accept(KEY, 1, TOKEN, 0, Value(Standing.OPEN, b"\x03later"))
    for node in crew.nodes.values():
        crew.do(node, lambda tasks, now: tasks.handle_message(now, A, later))
    assert known(crew, B) is Strategy.RENDEZVOUS
    assert crew.nodes[B].tasks.view()["counters"]["unread_settings"] > 0
    assert crew.nodes[C].tasks.view()["counters"]["unread_settings"] == 0


def test_nothing_is_asked_while_nobody_uses_a_queue() -> None:
    crew = Crew()
    ask(crew, A, lambda number: set_to(PULL, number))
    crew.heard.clear()
    crew.wait(100.0)
    assert not [one for _, one in crew.heard if getattr(one, "key", b"") == KEY]


def test_the_tasks_of_a_voter_are_what_they_were_whatever_is_set() -> None:
    crew = Crew({A: 1})
    ask(crew, A, lambda number: set_to(PULL, number))
    crew.submit("t")
    assert crew.nodes[A].tasks.view()["counts"]["leased"] == 1
    assert sum(crew.nodes[B].tasks.view()["counts"].values()) == 1, "a setting is no task"
