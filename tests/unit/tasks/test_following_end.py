"""The end of what is followed: not before all that is still held, and not for ever where it cannot be had."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from mesh.core.ids import NodeId
from mesh.tasks.feed import PAUSE_S_MAX
from mesh.wire import task_messages as wire
from mesh.wire.task_messages import FollowEnd, FollowReason, Piece
from tests.unit.tasks import crew as crews
from tests.unit.tasks.crew import CONFIG, B, C, Crew
from tests.unit.tasks.followed import KIB, Client, Command, chatter, hear, running, write, wrote

P = NodeId(8)


def lose_output(crew: Crew, to: NodeId = B) -> None:
    """Let nothing that an owner says of output arrive at a node."""
    crew.loses = lambda node, message: node == to and isinstance(message, Piece | FollowEnd)


def lose_nothing(crew: Crew) -> None:
    crew.loses = lambda _to, _message: False


def follows(crew: Crew, own: NodeId, run_id: int) -> Client:
    """Return a client that has got the first of the output: it is not given the tails of all of it."""
    client = Client(crew, B, 1)
    client.follow()
    write(crew, own, run_id, b"first ")
    assert client.take() == 1
    return client


def lasts(client: Client) -> float:
    """Return how many seconds pass until the end comes; a minute at most."""
    before = client.crew.now
    client.take_all(60)
    return client.crew.now - before


def test_last_words_of_a_quiet_command_come_though_the_first_answers_are_lost() -> None:
    crew, own, run_id = running({P: 1})
    client = follows(crew, own, run_id)
    crew.wait(6 * PAUSE_S_MAX)  # it is asked as seldom as can be by now
    lose_output(crew)
    crew.exit(own, run_id, 0, b"last words")
    crew.wait(PAUSE_S_MAX / 2)
    lose_nothing(crew)
    assert lasts(client) < 1, "it is asked steadily once the attempt is over"
    assert client.output[1] == b"first last words"


@pytest.mark.parametrize("is_seen", [True, False], ids=["alive", "unseen"])
def test_node_that_stood_still_asks_before_it_gives_up(*, is_seen: bool) -> None:
    crew, own, run_id = running({P: 1})
    client = follows(crew, own, run_id)
    lose_output(crew)
    crew.exit(own, run_id, 0, b"last words")
    if not is_seen:
        crew.nodes[B].view.drop(own)
    lose_nothing(crew)
    crew.now += 60  # and no timeout was handled meanwhile
    client.take_all(1)
    assert client.output[1] == b"first last words"


@pytest.mark.parametrize("seed", range(8))
def test_owner_that_is_not_seen_alive_and_answers_is_waited_for_as_one_that_is(seed: int) -> None:
    crew, own, run_id = running({P: 1})
    client = Client(crew, B, 1)
    client.follow()
    lose_output(crew)
    output = chatter(60)
    command = Command(crew, own, run_id, output)
    command.go_on()
    crew.nodes[B].view.drop(own)
    lose_nothing(crew)
    crew.wait(0.3)
    assert client.take()
    rng = random.Random(seed)
    crew.loses = lambda _to, message: (
        isinstance(message, wire.Follow | Piece | FollowEnd) and rng.random() < 0.3
    )
    client.take_all(60)
    assert client.output == {1: wrote(output, 1), 2: wrote(output, 2)}


def test_owner_that_is_gone_is_waited_for_a_moment_and_one_that_is_silent_for_a_while() -> None:
    waited = []
    for is_seen in (False, True):
        crew, own, run_id = running({P: 1})
        crew.exit(own, run_id, 0, b"well\n")
        crew.away = {own}
        if not is_seen:
            crew.nodes[B].view.drop(own)
        client = Client(crew, B, 1)
        client.follow()
        waited.append(lasts(client))
        assert client.output[1] == b"well\n", "the tails"
    assert 1 <= waited[0] <= 2
    assert 10 <= waited[1] <= 12


@pytest.mark.parametrize("times", [1, 2], ids=["once", "doubled"])
def test_late_word_that_an_attempt_is_not_known_ends_nothing(times: int) -> None:
    crew, own, run_id = running({P: 1})
    client = follows(crew, own, run_id)
    lose_output(crew)
    crew.exit(own, run_id, 0, b"last words")
    for _ in range(times):  # from before its owner had heard that it is the owner
        hear(crew, B, own, FollowEnd("t", 1, 0, FollowReason.UNKNOWN))
    lose_nothing(crew)
    client.take_all(1)
    assert client.output[1] == b"first last words"


def test_owner_that_is_crowded_is_waited_for_until_it_is_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(crews, "CONFIG", replace(CONFIG, followers_max=1))
    crew, own, run_id = running({P: 1})
    Client(crew, C, 1).follow()
    write(crew, own, run_id, b"first ")
    crew.away = {C}  # and its place is kept for as long as anybody may be silent
    crew.exit(own, run_id, 0, b"second")
    client = Client(crew, B, 1)
    client.follow()
    assert wire.FOLLOW_SILENCE_S - 1 < lasts(client) < wire.FOLLOW_SILENCE_S + 3
    assert client.output[1] == b"first second"


def test_owner_that_stays_crowded_keeps_nobody_waiting_for_ever() -> None:
    crew, own, run_id = running({P: 1})
    crew.exit(own, run_id, 0, b"well\n")

    def crowds(to: NodeId, message: object) -> bool:
        """Turn questions to the owner away."""
        if to == own and isinstance(message, wire.Follow):
            turned_away.append(message)
            return True
        return False

    turned_away: list[wire.Follow] = []
    crew.loses = crowds
    client = Client(crew, B, 1)
    client.follow()
    until = crew.now + 60
    while client.task is None:
        if turned_away and turned_away.pop().pieces_max:
            hear(crew, B, own, FollowEnd("t", 1, 0, FollowReason.CROWDED))
        client.take()
        crew.wait(0.1)
        assert crew.now < until
    assert client.output[1] == b"well\n", "the tails"


def test_what_came_after_a_piece_that_is_lost_for_good_is_given_all_the_same() -> None:
    crew, own, run_id = running({P: 1})
    client = Client(crew, B, 1)
    client.follow()
    crew.loses = lambda _to, message: isinstance(message, Piece) and message.seq == 1
    write(crew, own, run_id, b"one ")
    write(crew, own, run_id, b"lost", stream=2)
    write(crew, own, run_id, b"three")
    crew.wait(1)
    assert client.take() == 1
    crew.exit(own, run_id)
    client.take_all(20)
    assert client.output == {1: b"one three", 2: b""}


def test_attempt_with_a_piece_that_is_lost_for_good_is_given_before_the_next_one() -> None:
    crew, own, run_id = running({P: 1}, retries=1)
    client = Client(crew, B, 1)
    client.follow()
    crew.loses = lambda _to, message: (
        isinstance(message, Piece) and (message.attempt, message.seq) == (1, 0)
    )
    write(crew, own, run_id, b"lost", stream=2)
    crew.exit(own, run_id, 1, b"first ")
    crew.wait(3)
    assert client.take() == 0
    (start,) = crew.nodes[own].starts()
    crew.exit(own, start.run_id, 0, b"second")
    client.take_all(30)
    assert client.output == {1: b"first second", 2: b""}


def test_last_output_of_a_stopped_command_waits_for_no_follower_that_is_behind() -> None:
    crew, own, run_id = running({P: 1})
    client, stalled = Client(crew, B, 1), Client(crew, C, 2)
    client.follow()
    stalled.follow()
    output = chatter(64, 64 * KIB)
    command = Command(crew, own, run_id, output)
    for _ in range(20):
        command.go_on()
        client.take()
        crew.wait(0.1)
    assert not command.has_ended, "it is held up"
    crew.exit(own, run_id, 143)  # killed: what it could not get rid of was not taken from it yet
    assert lasts(client) < 2
    written = output[: command.written]
    assert client.output == {1: wrote(written, 1), 2: wrote(written, 2)}
