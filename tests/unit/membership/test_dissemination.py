"""Rumours: how often each is told, and which goes first."""

from mesh.core.ids import NodeId
from mesh.membership import dissemination
from mesh.membership.dissemination import Dissemination, retransmit_limit
from tests.unit.membership.pump import node_id


def test_limit_grows_with_the_logarithm_of_the_mesh() -> None:
    assert [retransmit_limit(4.0, size) for size in (1, 9, 99, 999)] == [2, 4, 8, 12]


def test_rumour_rests_once_told_often_enough() -> None:
    news = Dissemination(4.0)
    news.add(node_id(1), b"x" * 20)
    told = 0
    while news.take(1000, 99):
        told += 1
    assert told == retransmit_limit(4.0, 99)
    assert len(news) == 0


def test_newer_news_of_a_member_replaces_older_and_is_told_anew() -> None:
    news = Dissemination(4.0)
    news.add(node_id(1), b"old")
    news.take(100, 9)
    news.add(node_id(1), b"new")
    assert news.take(100, 9) == [b"new"]
    assert len(news) == 1


def test_rumours_told_less_often_come_first() -> None:
    news = Dissemination(4.0)
    news.add(node_id(1), b"a" * 30)
    news.take(30, 9)
    news.add(node_id(2), b"b" * 30)
    assert news.take(30, 9) == [b"b" * 30]


def test_newest_of_the_fresh_rumours_comes_first() -> None:
    news = Dissemination(4.0)
    for number in range(1, 5):
        news.add(node_id(number), bytes([number]) * 30)
    assert news.take(60, 9) == [b"\x04" * 30, b"\x03" * 30]


def test_rumours_together_never_exceed_the_room_given() -> None:
    news = Dissemination(4.0)
    for number in range(1, 300):
        news.add(node_id(number), bytes(20 + number))
    for room in (0, 19, 21, 100, 1382):
        assert sum(map(len, news.take(room, 300))) <= room


def test_rumour_that_is_on_board_already_is_not_told_twice() -> None:
    news = Dissemination(4.0)
    news.add(node_id(1), b"one")
    assert news.take(100, 9, but=node_id(1)) == []
    assert news.take(100, 9) == [b"one"]


def test_full_queue_gives_up_what_was_told_most_and_counts_it() -> None:
    news = Dissemination(4.0)
    news.add(node_id(1), b"told" * 5)
    news.take(100, 99)
    for number in range(2, dissemination.RUMOURS_MAX + 2):
        news.add(NodeId(number), b"rumour")
    assert len(news) == dissemination.RUMOURS_MAX
    assert news.dropped == 1
    taken = news.take(10**9, 10**6)
    assert b"told" * 5 not in taken


def test_what_was_told_once_is_not_fresh() -> None:
    news = Dissemination(4.0)
    news.add(node_id(1), b"old")
    news.take(100, 9)
    assert not news.has_fresh


def test_what_rides_along_does_not_count_as_told() -> None:
    news = Dissemination(4.0)
    for number in range(1, 6):
        news.add(NodeId(number), bytes([number]) * 20)
    assert news.riders(70) == [bytes([number]) * 20 for number in (5, 4, 3)]
    assert news.take(70, 8) == [bytes([number]) * 20 for number in (5, 4, 3)]
    assert news.riders(70) == [bytes([number]) * 20 for number in (2, 1, 5)]
    assert Dissemination(4.0).riders(70) == []


def test_a_long_queue_is_not_searched_for_what_still_fits_and_yet_all_get_their_turn() -> None:
    news = Dissemination(4.0)
    news.add(NodeId(1), b"s" * 20)
    for number in range(2, 2000):
        news.add(NodeId(number), b"l" * 100)
    assert news.take(50, 8) == []
    packets = 0
    while b"s" * 20 not in news.take(1334, 8):
        packets += 1
    assert packets <= 2000 * 100 / 1300 + 1


def test_what_all_were_told_is_not_fresh_and_is_told_all_the_same() -> None:
    news = Dissemination(4.0)
    news.add(node_id(1), b"a" * 20, is_told=True)
    assert not news.has_fresh
    assert news.take(100, 8) == [b"a" * 20]
    news.add(node_id(2), b"b" * 20)
    assert news.has_fresh
