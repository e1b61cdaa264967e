"""Pieces as they come to who follows: order, doubles, gaps, room, and when it is asked again."""

from __future__ import annotations

from mesh.core.ids import NodeId
from mesh.tasks.feed import (
    OVER_PAUSE_S_MAX,
    PATIENCE_S,
    PAUSE_S_MAX,
    QUIET_S_MAX,
    WORD_S,
    Feed,
)
from mesh.tasks.window import SIZE_MAX
from mesh.wire.task_messages import Follow, Piece

P = NodeId(8)


def feed_of(*watcher_ids: int) -> Feed:
    feed = Feed("t", 1, P)
    for watcher_id in watcher_ids or (1,):
        feed.join(0.0, watcher_id)
    return feed


def add(feed: Feed, seq: int, first_seq: int = 0, now: float = 0.0) -> bool:
    found = feed.add(now, Piece("t", 1, first_seq, seq, 1, b"%d " % seq), SIZE_MAX)
    feed.check_invariants()
    return found


def text(pieces: list[tuple[int, bytes]]) -> str:
    return b"".join(data for _, data in pieces).decode()


def test_pieces_are_taken_in_order_and_once() -> None:
    feed = feed_of()
    assert [add(feed, seq) for seq in (1, 0, 0, 3, 1)] == [True, True, False, True, False]
    assert text(feed.window.take(1)) == "0 1 "
    assert not feed.window.has_any(1)
    assert not add(feed, 0)
    add(feed, 2)
    assert text(feed.window.take(1)) == "2 3 "


def test_no_more_is_held_than_the_window() -> None:
    feed = feed_of()
    assert all(add(feed, seq) for seq in range(SIZE_MAX))
    assert not add(feed, SIZE_MAX)
    feed.window.take(1)
    assert add(feed, SIZE_MAX)


def test_what_is_held_no_more_is_passed_over_but_not_what_has_come() -> None:
    feed = feed_of()
    for seq in (0, 1, 3):
        add(feed, seq)
    assert text(feed.window.take(1)) == "0 1 "
    assert not add(feed, 900, first_seq=900), "it is too far from what was not taken"
    assert not add(feed, 2)
    assert text(feed.window.take(1)) == "3 "
    assert add(feed, 900, first_seq=900)
    assert text(feed.window.take(1)) == "900 "


def test_end_counts_once_everything_has_come() -> None:
    feed = feed_of()
    add(feed, 1)
    feed.end_at(0.0, 1)
    feed.end_at(0.0, 2)
    assert not feed.has_all(1), "the first word of its end was no possible one"
    assert not add(feed, 2)
    add(feed, 0)
    assert feed.has_all(1)
    assert feed.speak(1.0, SIZE_MAX) is None, "nothing was asked, so nothing is to be ended"


def test_who_has_asked_says_that_it_needs_no_more() -> None:
    feed = feed_of()
    assert feed.speak(0.0, SIZE_MAX) == Follow("t", 1, 0, SIZE_MAX)
    feed.end_at(0.0, 0)
    assert feed.speak(0.0, SIZE_MAX) == Follow("t", 1, 0, 0)
    assert feed.speak(9.0, SIZE_MAX) is None


def test_arrival_is_told_a_moment_later_and_at_once_where_room_runs_short() -> None:
    feed = feed_of()
    feed.speak(0.0, SIZE_MAX)
    add(feed, 0)
    assert feed.speak(0.0, SIZE_MAX) is None
    assert feed.due == WORD_S
    assert feed.speak(WORD_S, SIZE_MAX) == Follow("t", 1, 1, SIZE_MAX - 1)
    for seq in range(1, SIZE_MAX // 2):
        add(feed, seq)
    feed.window.take(1)
    half = SIZE_MAX // 2
    assert feed.speak(WORD_S, SIZE_MAX) == Follow("t", 1, half, SIZE_MAX)


def test_full_window_is_told_of_when_something_was_taken() -> None:
    feed = feed_of()
    feed.speak(0.0, 2)
    add(feed, 0)
    add(feed, 1)
    assert feed.speak(1.0, 2) is None
    assert feed.due == 1.0 + WORD_S
    assert feed.speak(PAUSE_S_MAX, 2) == Follow("t", 1, 2, 1), "somebody is still there"
    feed.window.take(1)
    assert feed.speak(PAUSE_S_MAX + WORD_S, 2) == Follow("t", 1, 2, 2)


def test_the_same_is_asked_again_more_and_more_seldom() -> None:
    feed = feed_of()
    now, asked = 0.0, []
    for _ in range(9):
        assert feed.speak(now, SIZE_MAX) is not None
        asked.append(feed.due - now)
        now = feed.due
    assert asked[0] == PATIENCE_S
    assert asked == sorted(asked)
    assert asked[-1] == PAUSE_S_MAX


def test_piece_that_comes_twice_was_asked_for_too_early() -> None:
    feed = feed_of()
    for now in (0.0, PATIENCE_S):
        feed.speak(now, SIZE_MAX)
    add(feed, 0, now=1.0)
    add(feed, 0, now=1.0)
    add(feed, 1, now=1.0)
    feed.speak(2.0, SIZE_MAX)
    assert feed.due == 2.0 + 2 * PATIENCE_S


def test_who_was_turned_away_waits_longer_each_time_and_says_nothing_meanwhile() -> None:
    feed = feed_of()
    pauses = []
    now = 0.0
    for _ in range(9):
        assert feed.speak(now, SIZE_MAX) is not None
        feed.turned_away(now, 0.1)
        assert feed.speak(now, SIZE_MAX) is None
        pauses.append(feed.due - now)
        now = feed.due
    assert pauses[0] == 0.1
    assert max(pauses) <= QUIET_S_MAX + 1e-9
    assert pauses == sorted(pauses)


def test_late_watcher_gets_all_from_the_first_and_the_early_one_nothing_twice() -> None:
    feed = feed_of(1)
    for seq in range(20):
        add(feed, seq)
        feed.window.take(1)
    add(feed, 20)
    feed.join(1.0, 2)
    message = feed.speak(1.0, SIZE_MAX)
    assert message is not None
    assert message.from_seq == 0
    late = []
    for seq in range(21):
        add(feed, seq)
        late += feed.window.take(2)
    assert text(late) == "".join(f"{seq} " for seq in range(21))
    assert text(feed.window.take(1)) == "20 "
    feed.end_at(1.0, 21)
    assert feed.has_all(1)
    assert feed.has_all(2)


def test_what_a_watcher_leaves_is_not_held_for_nobody() -> None:
    feed = feed_of(1)
    for seq in range(40):
        add(feed, seq)
        if seq < 30:
            feed.window.take(1)
    feed.join(1.0, 2)
    feed.window.leave(1)
    feed.check_invariants()
    assert [seq for seq in range(SIZE_MAX) if add(feed, seq)] == list(range(SIZE_MAX))


def test_owner_of_what_is_over_is_asked_at_once_and_then_steadily() -> None:
    feed = feed_of()
    for now in (0.0, 0.25, 0.75, 1.75, 3.75):
        assert feed.speak(now, SIZE_MAX) is not None
    assert feed.due > 4.0
    now, pauses = 4.0, []
    feed.note_over(now)
    for times in range(9):
        assert feed.speak(now, SIZE_MAX) is not None
        assert feed.times_in_vain == times
        pauses.append(feed.due - now)
        now = feed.due
    assert pauses == [PATIENCE_S] + 8 * [OVER_PAUSE_S_MAX]
    add(feed, 0, now=now)
    assert feed.times_in_vain == 0


def test_room_that_changes_makes_no_answer_of_silence() -> None:
    feed = feed_of()
    for times in range(9):
        assert feed.speak(100.0 * times, SIZE_MAX - times % 2) is not None
        assert feed.times_in_vain == times


def test_piece_that_comes_again_long_after_it_was_asked_for_again_says_nothing() -> None:
    feed = feed_of()
    for now in (0.0, PATIENCE_S):
        feed.speak(now, SIZE_MAX)
    add(feed, 0, now=1.0)
    add(feed, 0, now=PATIENCE_S + PAUSE_S_MAX + 0.1)
    add(feed, 1, now=20.0)
    feed.speak(21.0, SIZE_MAX)
    assert feed.due == 21.0 + PATIENCE_S


def test_owner_is_believed_that_says_twice_that_it_knows_nothing_of_what_is_over() -> None:
    feed = feed_of()
    for now in (0.0, 1.0, 2.0):
        feed.speak(now, SIZE_MAX)
        feed.note_unknown(now, 0.1)
    assert not feed.is_given_up, "it may not have heard yet"
    feed.note_over(3.0)
    for now, is_given_up in ((3.0, False), (3.1, True)):
        assert feed.speak(now, SIZE_MAX) is not None
        feed.note_unknown(now, 0.1)
        assert feed.is_given_up is is_given_up


def test_piece_between_two_words_that_nothing_is_known_makes_the_first_a_late_one() -> None:
    feed = feed_of()
    feed.note_over(0.0)
    for seq, now in enumerate((0.0, 1.0, 2.0)):
        feed.speak(now, SIZE_MAX)
        feed.note_unknown(now, 0.1)
        add(feed, seq, now=now)
    assert not feed.is_given_up


def test_pieces_are_passed_over_in_order_by_who_expects_no_more() -> None:
    feed = feed_of()
    for seq in (5, 0, 2, 3):
        add(feed, seq)
    window = feed.window
    assert text(window.take(1)) == "0 "
    assert not window.has_any(1)
    assert window.has_any(1, pass_over=True)
    assert text(window.take(1, pass_over=True)) == "2 3 5 "
    assert not window.has_any(1, pass_over=True)
    feed.join(1.0, 2)
    assert [add(feed, seq) for seq in (0, 1, 5)] == [True, True, True]
    assert text(window.take(2)) == "0 1 "
    assert not window.has_any(1, pass_over=True), "nothing twice, and nothing out of order"


def test_word_of_an_owner_after_the_end_counts_for_who_joins_later_too() -> None:
    feed = feed_of()
    feed.note_over(1.0)
    add(feed, 0, now=1.1)
    feed.join(2.0, 2)
    feed.note_over(2.0)
    assert feed.was_heard_since_over


def test_word_of_an_owner_before_the_end_says_nothing_of_it_afterwards() -> None:
    feed = feed_of()
    add(feed, 0)
    feed.note_over(1.0)
    assert not feed.was_heard_since_over
