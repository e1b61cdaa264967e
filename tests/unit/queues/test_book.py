"""What a node knows of the queues in use: answered at once, asked of a majority now and then, and bounded."""

from __future__ import annotations

import random
from collections.abc import Hashable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.core.ballot import Ballot
from mesh.core.ids import NodeId
from mesh.queues import book as book_module
from mesh.queues.book import (
    BOOK,
    IN_USE_S,
    READ_S,
    READS_BURST,
    READS_S,
    REFRESH_S,
    QueueBook,
)
from mesh.queues.settings import QueueSettings, Strategy, queue_key, to_value
from mesh.registers import leases
from mesh.registers.asker import Done, Late, Outcome
from mesh.registers.reading import Seen
from mesh.registers.record import NOTHING, Record
from mesh.registers.voter import Voter
from mesh.wire.register_messages import Accept, Standing, Value
from tests.unit.queues.made import setting

OWN = NodeId(1)
DEFAULT, CONTEST, PULL = Strategy.RENDEZVOUS, Strategy.CONTEST, Strategy.PULL


def seen(settings_: QueueSettings | None) -> Seen:
    value = None if settings_ is None else to_value(settings_)
    return Seen(value, is_chosen=True, is_known=value is not None)


class Reader:
    """A book, the questions that it asks, and one clock."""

    def __init__(self) -> None:
        self.now = 100.0
        self.voter = Voter(OWN, leases.local(), epoch=1, now=self.now)
        self.asked: list[tuple[bytes, Hashable]] = []
        """Under way, the oldest first."""

        self.count = 0
        self.book = QueueBook(self, random.Random(3))
        self._n = 0

    def read(self, now: float, key: bytes, tag: Hashable, timeout_s: float) -> None:
        assert now == self.now
        assert timeout_s == READ_S
        self.asked.append((key, tag))
        self.count += 1

    def strategy(self, queue: str = "thumbs") -> Strategy:
        found = self.book.strategy_of(self.now, queue)
        self.look()
        return found

    def look(self) -> None:
        self.book.check_invariants()
        self.book.ask_due(self.now)
        self.book.check_invariants()

    def answer(self, outcome: Outcome) -> None:
        """End the oldest question."""
        _, tag = self.asked.pop(0)
        self.book.handle_done(self.now, Done(tag, outcome))
        self.look()

    def wait(self, seconds: float, said: QueueSettings | None = None) -> None:
        """Let time pass; every question is answered at once."""
        until = self.now + seconds
        while True:
            while self.asked:
                self.answer(seen(said))
            due = self.book.next_timeout()
            if due is None or due > until:
                break
            self.now = max(self.now, due)
            self.look()
        self.now = until

    def store(self, settings_: QueueSettings) -> None:
        """Let this node's own voter store a setting, and the book hear of it."""
        self._n += 1
        key, token = queue_key(settings_.queue), Ballot(1, 1, self._n, OWN)
        self.voter.handle(self.now, Accept(key, 1, token, 0, to_value(settings_)))
        self.book.handle_changed(key, self.voter.record(key))


def test_nothing_is_known_or_asked_at_first() -> None:
    reader = Reader()
    assert reader.book.next_timeout() is None
    assert not reader.book.ask_due(reader.now)
    assert reader.asked == []


def test_a_queue_that_nobody_set_has_the_default_and_a_majority_is_asked() -> None:
    reader = Reader()
    assert reader.strategy() is DEFAULT
    ((key, tag),) = reader.asked
    assert key == b"queue/thumbs"
    assert isinstance(tag, tuple)
    assert tag[0] == BOOK
    reader.answer(seen(None))
    assert reader.strategy() is DEFAULT


def test_what_a_majority_holds_is_known_once_it_answered() -> None:
    reader = Reader()
    assert reader.strategy() is DEFAULT
    reader.answer(seen(setting()))
    assert reader.strategy() is PULL


def test_what_nobody_has_said_yet_is_told_from_the_default() -> None:
    reader = Reader()
    assert reader.book.known(reader.now, "thumbs") is None
    reader.look()
    reader.answer(Late(may_be_chosen=False))  # of no majority
    assert reader.book.known(reader.now, "thumbs") is None
    reader.wait(REFRESH_S)
    assert reader.book.known(reader.now, "thumbs") is DEFAULT
    reader = Reader()
    reader.store(setting())  # by this node's own voter, before anybody was asked
    assert reader.book.known(reader.now, "thumbs") is PULL


def test_a_queue_is_asked_about_once_at_a_time_however_often_it_is_used() -> None:
    reader = Reader()
    for _ in range(5):
        reader.strategy()
    assert reader.count == 1
    reader.answer(seen(setting()))
    for _ in range(5):
        reader.strategy()
    assert reader.count == 1, "it is fresh"


def test_a_change_is_seen_within_the_refresh_while_the_queue_is_in_use() -> None:
    reader = Reader()
    reader.strategy()
    reader.wait(1.0, setting())
    assert reader.strategy() is PULL
    reader.wait(REFRESH_S, setting(strategy=CONTEST, count=4))
    assert reader.book.strategy_of(reader.now, "thumbs") is CONTEST


def test_no_two_nodes_ask_in_step() -> None:
    reader = Reader()
    for number in range(20):
        reader.strategy(f"q{number}")
    reader.wait(0.0)
    dues = {reader.book._refresh.deadline(f"q{number}") for number in range(20)}
    assert len(dues) == 20
    assert all(due is not None and 0.75 * REFRESH_S <= due - 100.0 <= REFRESH_S for due in dues)


def test_nothing_is_asked_about_a_queue_that_is_in_use_no_more() -> None:
    reader = Reader()
    reader.strategy()
    reader.wait(IN_USE_S + 2 * REFRESH_S, setting())
    count = reader.count
    assert count <= 1 + IN_USE_S / (0.75 * REFRESH_S)
    reader.wait(1000.0)
    assert reader.count == count
    assert reader.book.next_timeout() is None


def test_a_queue_that_is_used_again_is_answered_from_what_was_known_and_asked_about_at_once() -> (
    None
):
    reader = Reader()
    reader.strategy()
    reader.wait(1000.0, setting())
    count = reader.count
    assert reader.strategy() is PULL
    assert reader.count == count + 1
    reader.answer(seen(setting(strategy=CONTEST, count=4)))
    assert reader.strategy() is CONTEST


def test_what_is_known_stays_while_no_majority_answers_and_is_asked_no_faster() -> None:
    reader = Reader()
    reader.strategy()
    reader.wait(REFRESH_S, setting())
    reader.strategy()
    before = reader.count
    for _ in range(100):
        if reader.asked:
            reader.now += READ_S
            reader.answer(Late(may_be_chosen=False))
        reader.now += 1.0
        assert reader.strategy() is PULL
    assert reader.count - before <= 1 + (reader.now - 100.0) / REFRESH_S


def test_what_this_version_cannot_read_counts_as_the_default() -> None:
    reader = Reader()
    reader.strategy()
    later = Value(Standing.OPEN, b"\x03 of a later version")
    reader.answer(Seen(later, is_chosen=True, is_known=True))
    assert reader.strategy() is DEFAULT
    assert reader.book.unread == 1


# What a command here has found.


def test_what_was_set_here_is_known_at_once() -> None:
    reader = Reader()
    reader.book.learn(reader.now, "thumbs", setting())
    assert reader.strategy() is PULL
    assert reader.count == 0, "it is fresh"
    reader.wait(REFRESH_S, setting(strategy=CONTEST, count=4))
    assert reader.strategy() is CONTEST, "and kept fresh from its first use on"


def test_nothing_is_asked_about_what_was_only_set_here() -> None:
    reader = Reader()
    reader.book.learn(reader.now, "thumbs", setting())
    reader.look()
    reader.wait(100.0)
    assert reader.count == 0


def test_an_answer_from_before_it_was_set_here_changes_nothing() -> None:
    reader = Reader()
    reader.strategy()
    reader.book.learn(reader.now, "thumbs", setting(strategy=CONTEST, count=4))
    reader.answer(seen(setting()))
    assert reader.strategy() is CONTEST


def test_what_a_command_found_before_it_was_set_here_hides_nothing() -> None:
    reader = Reader()
    reader.book.learn(reader.now, "thumbs", setting(strategy=CONTEST, count=4))
    reader.book.learn(reader.now, "thumbs", setting())
    assert reader.strategy() is CONTEST
    reader.book.learn(reader.now, "thumbs", None)
    assert reader.strategy() is CONTEST


# What its own voter holds.


def test_a_voter_of_the_queue_knows_at_first_use_what_it_holds() -> None:
    reader = Reader()
    reader.store(setting())
    assert reader.strategy() is PULL
    assert reader.count == 1, "it may not be chosen: a majority is asked all the same"


def test_a_voter_of_the_queue_knows_of_a_change_when_it_stores_it() -> None:
    reader = Reader()
    reader.strategy()
    reader.wait(1.0, setting())
    reader.store(setting(strategy=CONTEST, count=4))
    assert reader.strategy() is CONTEST


def test_an_answer_that_is_older_than_what_this_voter_stored_since_is_passed_by() -> None:
    reader = Reader()
    reader.strategy()
    reader.store(setting(strategy=CONTEST, count=4))
    reader.answer(seen(setting()))
    assert reader.strategy() is CONTEST


def test_what_this_voter_missed_does_not_hide_what_a_majority_holds() -> None:
    reader = Reader()
    reader.store(setting())
    assert reader.strategy() is PULL
    reader.answer(seen(setting(strategy=CONTEST, count=4)))
    assert reader.strategy() is CONTEST
    reader.store(setting(set_by="late"))
    assert reader.strategy() is CONTEST


def test_other_registers_and_bytes_that_are_nothing_are_passed_by() -> None:
    reader = Reader()
    reader.strategy()
    reader.answer(seen(setting()))
    token = Ballot(1, 1, 9, OWN)
    other = to_value(setting(strategy=CONTEST, count=9))
    rot = Value(Standing.OPEN, b"\x01rot")
    for key, value in (
        (b"task/thumbs", other),
        (queue_key("other"), other),
        (queue_key("thumbs"), rot),
    ):
        reader.book.handle_changed(key, Record(token, token, 0, value))
    reader.book.handle_changed(queue_key("thumbs"), NOTHING)
    assert reader.strategy() is PULL


# Bounds.


def test_questions_are_held_to_a_pace_and_none_is_forgotten() -> None:
    reader = Reader()
    for number in range(300):
        reader.book.strategy_of(reader.now, f"q{number}")
    reader.look()
    assert reader.count == READS_BURST
    assert reader.book.next_timeout() == pytest.approx(reader.now + 1 / READS_S)
    reader.wait((300 - READS_BURST) / READS_S + 0.1)
    assert reader.count == 300


def test_a_new_queue_goes_before_those_that_are_asked_about_again() -> None:
    reader = Reader()
    for number in range(1000):
        reader.book.strategy_of(reader.now, f"q{number}")
    reader.look()
    reader.wait(25.0)
    assert reader.book._old, "more are in use than the pace refreshes in time"
    reader.strategy("new")
    asked = reader.count
    reader.wait(2 / READS_S)
    assert reader.count <= asked + 3
    assert reader.book._known["new"].asked_at > float("-inf")


def test_so_many_are_asked_about_as_the_pace_allows_however_many_are_in_use() -> None:
    reader = Reader()
    for second in range(20):
        for number in range(1500):
            reader.book.strategy_of(reader.now, f"q{number}")
        reader.look()
        reader.wait(1.0)
        assert reader.count <= READS_BURST + READS_S * (second + 1) + 1


def test_the_queues_that_were_used_longest_ago_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(book_module, "QUEUES_MAX", 3)
    reader = Reader()
    for queue in "abc":
        reader.book.learn(reader.now, queue, setting(queue))
    assert [reader.strategy(queue) for queue in "abc"] == [PULL] * 3
    reader.strategy("a")
    reader.strategy("d")
    assert list(reader.book._known) == ["c", "a", "d"]
    ((key, _),) = reader.asked
    assert key == b"queue/d"
    reader.strategy("e")
    reader.strategy("f")
    reader.strategy("g")
    reader.answer(seen(setting("d")))  # nobody waits for that any more
    assert list(reader.book._known) == ["e", "f", "g"]
    assert len(reader.book) == 3


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["use", "use", "learn", "store", "answer", "late", "wait"]),
        st.sampled_from("abcd"),
        st.integers(1, 9),
    ),
    max_size=60,
)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_after_anything_a_queue_in_use_comes_to_what_a_majority_holds(
    steps: list[tuple[str, str, int]],
) -> None:
    reader = Reader()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(book_module, "QUEUES_MAX", 3)
        for what, queue, number in steps:
            said = setting(queue, strategy=[PULL, CONTEST, DEFAULT][number % 3], count=number)
            if what == "use":
                reader.strategy(queue)
            elif what == "learn":
                reader.book.learn(reader.now, queue, said)
            elif what == "store":
                reader.store(said)
            elif what == "wait":
                reader.now += number
            elif reader.asked and what == "late":
                reader.answer(Late(may_be_chosen=False))
            elif reader.asked:
                asked = reader.asked[0][0].decode().removeprefix("queue/")
                reader.answer(seen(setting(asked, count=number)))
            reader.look()
        reader.strategy("z")
        reader.wait(2 * REFRESH_S, setting("z", strategy=CONTEST, count=100))
        assert reader.strategy("z") is CONTEST
