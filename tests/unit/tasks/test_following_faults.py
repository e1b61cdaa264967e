"""Following tasks' output where something goes wrong: lost messages, dead owners, slow takers, lies."""

from __future__ import annotations

import random

import pytest

from mesh.core.ids import NodeId
from mesh.wire import task_messages as wire
from mesh.wire.task_messages import FollowEnd, FollowReason, Notice, Piece, TaskState
from tests.unit.tasks.crew import CONFIG, TIMES, A, B, C, Crew
from tests.unit.tasks.followed import (
    ABSURD,
    KIB,
    Client,
    Command,
    chatter,
    hear,
    running,
    started,
    write,
    wrote,
)

P, Q = NodeId(8), NodeId(9)

ENDED_EARLY = (14, 25, 40, 49, 64, 68, 82, 99, 123, 135)
"""Seeds whose client once saw the end before the last output: too few questions were asked to hear of it."""


def test_client_that_goes_away_holds_nobody_up() -> None:
    crew, own, run_id = running({P: 1})
    client = Client(crew, B, 1)
    client.follow()
    command = Command(crew, own, run_id, chatter(64, 64 * KIB))
    command.go_on()
    client.leave()
    command.go_on()
    assert command.has_ended


def test_node_that_follows_and_dies_holds_nobody_up_for_long() -> None:
    crew, own, run_id = running({P: 1})
    Client(crew, B, 1).follow()
    command = Command(crew, own, run_id, chatter(64, 64 * KIB))
    command.go_on()
    crew.away = {B}
    crew.wait(wire.FOLLOW_SILENCE_S + 1)
    command.go_on()
    assert command.has_ended


def test_node_whose_client_is_slow_for_ever_holds_up_no_piece_longer_than_it_may() -> None:
    crew, own, run_id = running({P: 1})
    command = Command(crew, own, run_id, chatter(64, 64 * KIB))
    hear(crew, own, B, wire.Follow("t", 1, 0, 1))
    command.go_on()
    for _ in range(int(wire.FOLLOW_SILENCE_S) + 1):
        crew.wait(1)
        hear(crew, own, B, wire.Follow("t", 1, 0, 1))
    command.go_on()
    assert command.has_ended
    ends = [message for to, message in crew.heard if to == B and isinstance(message, FollowEnd)]
    assert FollowReason.SLOW in [end.reason for end in ends]


@pytest.mark.parametrize("seed", [*range(14), *ENDED_EARLY])
def test_messages_are_lost_and_doubled_and_all_output_comes_all_the_same(seed: int) -> None:
    crew, own, run_id = running({P: 1})
    rng = random.Random(seed)
    crew.loses = lambda _to, message: (
        isinstance(message, wire.Follow | Piece | FollowEnd | Notice) and rng.random() < 0.3
    )
    client = Client(crew, B, 1)
    client.follow()
    output = chatter(200)
    command = Command(crew, own, run_id, output)
    while client.task is None:
        command.go_on()
        if rng.random() < 0.5 and crew.heard:
            to, message = crew.heard[rng.randrange(len(crew.heard))]
            sender = own if to == B else B
            if isinstance(message, wire.Follow | Piece | FollowEnd):
                hear(crew, to, sender, message)
        client.take()
        crew.wait(0.2)
        assert crew.now < 400, "all output is expected in time"
    for stream in (1, 2):
        assert client.output[stream] == wrote(output, stream)


def test_owner_dies_and_the_output_goes_on_with_the_second_attempt() -> None:
    crew, first, run_id = running({P: 1, Q: 1})
    second = Q if first == P else P
    client = Client(crew, B, 1)
    client.follow()
    write(crew, first, run_id, b"first ")
    client.take()
    crew.away = {first}
    for node in crew.nodes.values():
        node.view.drop(first)
        crew.meet(node, first)
    crew.prove(first)
    crew.wait(TIMES.owner_s / 4)
    run_id = started(crew, second).run_id
    write(crew, second, run_id, b"second")
    crew.exit(second, run_id)
    client.take_all(20)
    assert client.output[1] == b"first second"
    assert client.task is not None
    assert [one["cause"] for one in client.task["attempts"]] == ["first", "crash"]


def test_no_majority_is_told_in_words() -> None:
    crew = Crew({P: 1})
    crew.submit("t")
    crew.away = {A, C}
    client = Client(crew, B, 1)
    assert client.follow() is None
    crew.wait(6)
    answer = crew.answer(B)
    assert answer is not None
    assert "an answer from 2 of the task's 3 voters" in str(answer.error)


def test_owner_that_is_gone_with_all_it_wrote_leaves_the_tails() -> None:
    crew, own, run_id = running({P: 1})
    write(crew, own, run_id, b"oh\n", stream=2)
    crew.exit(own, run_id, 0, b"well\n")
    crew.away = {own}
    for node in crew.nodes.values():
        node.view.drop(own)
    client = Client(crew, B, 1)
    client.follow()
    client.take_all(3)
    assert client.output == {1: b"well\n", 2: b"oh\n"}


def test_owner_that_knows_nothing_any_more_leaves_the_tails_at_once() -> None:
    crew, own, run_id = running({P: 1})
    crew.exit(own, run_id, 0, b"well\n")
    crew.wait(CONFIG.output_keep_s + 1)
    client = Client(crew, B, 1)
    client.follow()
    client.take_all(0.5)
    assert client.output[1] == b"well\n"


def test_tails_are_not_given_to_who_got_output() -> None:
    crew, own, run_id = running({P: 1})
    client = Client(crew, B, 1)
    client.follow()
    write(crew, own, run_id, b"well\n")
    crew.loses = lambda to, message: to == B and isinstance(message, Piece | FollowEnd)
    crew.exit(own, run_id, 0, b"done\n")
    client.take_all(30)
    assert client.output[1] == b"well\n", "what came, and not the end of it again"


def test_end_is_seen_though_no_notice_of_it_comes() -> None:
    crew, own, run_id = running({P: 1})
    crew.loses = lambda _to, message: isinstance(message, Notice)
    client = Client(crew, B, 1)
    client.follow()
    crew.wait(40)
    crew.exit(own, run_id, 0, b"done\n")
    client.take_all(3)
    assert client.output[1] == b"done\n"


def test_what_strangers_say_and_absurd_numbers_change_nothing() -> None:
    crew, own, run_id = running({P: 1})
    client = Client(crew, B, 1)
    client.follow()
    write(crew, own, run_id, b"one ")
    said = [
        (Q, Piece("t", 1, 0, 1, 1, b"lie")),
        (C, Piece("t", 1, 0, 1, 1, b"lie")),
        (own, Piece("t", 2, 0, 1, 1, b"lie")),
        (own, Piece("u", 1, 0, 1, 1, b"lie")),
        (own, Piece("t", 1, 5, 1, 1, b"lie")),
        (own, Piece("t", 1, 0, 1, 3, b"lie")),
        (own, Piece("t", 1, 0, 1, 0, b"lie")),
        (own, Piece("t", 1, 0, 1, 1, b"")),
        (own, Piece("t", 1, 0, ABSURD, 1, b"lie")),
        (C, FollowEnd("t", 1, 1, FollowReason.ENDED)),
        (own, FollowEnd("t", 1, 0, FollowReason.ENDED)),
        (own, FollowEnd("t", 3, 0, FollowReason.ENDED)),
        (Q, Notice("t", crew.nodes[A].desk.voter.record(b"").ballot, 9, TaskState.DONE, 1, None)),
    ]
    for sender, message in said:
        hear(crew, B, sender, message)
    asked = [
        (NodeId(77), wire.Follow("t", 1, 0, 16)),
        (C, wire.Follow("t", 1, ABSURD, 255)),
        (B, wire.Follow("t", 1, ABSURD, 1)),
        (C, wire.Follow("t", ABSURD, 0, 255)),
        (NodeId(77), wire.Follow("t", 1, 0, 0)),
    ]
    before = len(crew.heard)
    for sender, message in asked:
        hear(crew, own, sender, message)
    assert not [one for _, one in crew.heard[before:] if isinstance(one, Piece)]
    crew.exit(own, run_id, 0, b"two")
    client.take_all(2)
    assert client.output == {1: b"one two", 2: b""}


def test_owner_that_lies_about_the_end_keeps_nobody_waiting_for_ever() -> None:
    crew, own, run_id = running({P: 1})
    client = Client(crew, B, 1)
    client.follow()
    write(crew, own, run_id, b"one")
    hear(crew, B, own, FollowEnd("t", 1, ABSURD, FollowReason.ENDED))
    crew.exit(own, run_id)
    client.take_all(12)
    assert client.output[1] == b"one"
