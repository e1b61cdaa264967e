"""What attempts wrote, at their owner: limits, who is waited for and for how long, how long it is kept."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mesh.core.effects import ReadOutput
from mesh.core.ids import NodeId
from mesh.core.process import ProcessOutput
from mesh.tasks.config import TasksConfig
from mesh.tasks.effects import Step
from mesh.tasks.output import HeldOutput
from mesh.tasks.output_log import PIECE_BYTES
from mesh.wire.task_messages import (
    FOLLOW_SILENCE_S,
    PIECES_MAX,
    Follow,
    FollowEnd,
    FollowReason,
    Piece,
)
from mesh.wire.work_messages import OUTPUT_CHUNK_BYTES_MAX

P, Q, STRANGER = NodeId(8), NodeId(9), NodeId(77)
COST = 100 + PIECE_BYTES
SMALL = TasksConfig(
    output_bytes_max=4 * COST,
    output_total_bytes_max=10 * COST,
    followers_max=3,
    outputs_max=5,
    follow_grace_s=0.0,
)


class Owner:
    """An owner's output, and what is said to it."""

    def __init__(self, config: TasksConfig = SMALL) -> None:
        self.now = 0.0
        self.output = HeldOutput(lambda node_id: node_id != STRANGER, config)
        self._marks = 0

    def begin(self, task_id: str = "t", run_id: int = 1) -> None:
        self.output.open(task_id, 1, run_id)

    def write(self, data: bytes, run_id: int = 1, stream: int = 1) -> list[Step]:
        return self._after(self.output.write(self.now, ProcessOutput(run_id, stream, data)))

    def mark(self, run_id: int = 1) -> list[Step]:
        """Write a piece of COST that is like no other, on the other stream than the one before."""
        self._marks += 1
        return self.write(b"%04d" % self._marks * 25, run_id, 1 + self._marks % 2)

    def close(self, run_id: int = 1) -> list[Step]:
        return self._after(self.output.close(self.now, run_id))

    def hear(
        self, from_seq: int, pieces_max: int = 255, sender: NodeId = P, task_id: str = "t"
    ) -> list[Step]:
        message = Follow(task_id, 1, from_seq, pieces_max)
        return self._after(self.output.handle_message(self.now, sender, message))

    def wait(self, seconds: float) -> list[Step]:
        until, steps = self.now + seconds, []
        while (due := self.output.next_timeout()) is not None and due <= until:
            self.now = max(self.now, due)
            steps += self._after(self.output.handle_timeout(self.now))
        self.now = until
        return steps

    def _after(self, steps: list[Step]) -> list[Step]:
        self.output.check_invariants()
        return steps


def pieces(steps: list[Step], to: NodeId = P) -> list[Piece]:
    said = [step for step in steps if isinstance(step, tuple)]
    return [message for who, message in said if who == to and isinstance(message, Piece)]


def ends(steps: list[Step], to: NodeId = P) -> list[FollowEnd]:
    said = [step for step in steps if isinstance(step, tuple)]
    return [message for who, message in said if who == to and isinstance(message, FollowEnd)]


def reads(steps: list[Step]) -> int:
    return sum(isinstance(step, ReadOutput) for step in steps)


def test_without_a_follower_nothing_waits_and_the_oldest_goes() -> None:
    owner = Owner()
    owner.begin()
    assert all(reads(owner.mark()) == 1 for _ in range(20))
    found = pieces(owner.hear(0))
    assert [piece.seq for piece in found] == [16, 17, 18, 19]
    assert {piece.first_seq for piece in found} == {16}
    assert owner.output.dropped_bytes == 16 * 100


def test_command_that_begins_with_much_waits_a_moment_for_who_is_about_to_follow() -> None:
    owner = Owner(replace(SMALL, follow_grace_s=2.0))
    owner.begin()
    assert [reads(owner.mark()) for _ in range(5)] == [1, 1, 1, 1, 0]
    owner.wait(1.9)
    steps = owner.hear(0) + owner.hear(4)
    assert [one.seq for one in pieces(steps)] == [0, 1, 2, 3, 4]
    assert reads(steps) == 1
    assert owner.output.dropped(1) == 0


def test_command_that_nobody_came_to_follow_waits_no_more() -> None:
    owner = Owner(replace(SMALL, follow_grace_s=2.0))
    owner.begin()
    assert [reads(owner.mark()) for _ in range(5)] == [1, 1, 1, 1, 0]
    assert reads(owner.wait(2.1)) == 1
    assert all(reads(owner.mark()) == 1 for _ in range(9))
    assert owner.output.dropped(1) == 10 * 100


def test_small_writes_become_long_pieces_until_they_are_sent() -> None:
    owner = Owner(TasksConfig())
    owner.begin()
    for _ in range(1000):
        owner.write(b"a line\n")
    owner.write(b"oh\n", stream=2)
    found = pieces(owner.hear(0))
    assert [(piece.stream, piece.data) for piece in found] == [
        (1, b"a line\n" * 1000),
        (2, b"oh\n"),
    ]
    (more,) = pieces(owner.write(b"more", stream=2))
    assert (more.seq, more.data) == (2, b"more"), "what was sent is not changed"


def test_no_piece_is_longer_than_a_message_may_carry() -> None:
    owner = Owner(TasksConfig())
    owner.begin()
    for _ in range(3):
        owner.write(b"x" * (OUTPUT_CHUNK_BYTES_MAX - 1))
    assert [len(one.data) for one in pieces(owner.hear(0))] == [OUTPUT_CHUNK_BYTES_MAX - 1] * 3


def test_follower_gets_as_many_as_it_asks_for_and_more_as_they_arrive() -> None:
    owner = Owner()
    owner.begin()
    for _ in range(4):
        owner.mark()
    assert [one.seq for one in pieces(owner.hear(0, 2))] == [0, 1]
    assert [one.seq for one in pieces(owner.hear(1, 2))] == [2], (
        "what is on its way is not sent again"
    )
    assert [one.seq for one in pieces(owner.hear(1, 2))] == [1, 2], "unless it is asked for again"
    assert [one.seq for one in pieces(owner.hear(3, PIECES_MAX))] == [3]


def test_command_waits_for_a_follower_that_is_behind_and_goes_on_as_it_gets_on() -> None:
    owner = Owner()
    owner.begin()
    owner.hear(0, 1)
    assert [reads(owner.mark()) for _ in range(5)] == [1, 1, 1, 1, 0]
    assert reads(owner.hear(0, 1)) == 0
    steps = owner.hear(1, 9)
    assert reads(steps) == 1
    assert [one.seq for one in pieces(steps)] == [1, 2, 3, 4]


def test_silent_follower_is_forgotten_and_the_command_goes_on() -> None:
    owner = Owner()
    owner.begin()
    owner.hear(0, 1)
    for _ in range(5):
        owner.mark()
    assert owner.wait(FOLLOW_SILENCE_S - 0.1) == []
    assert reads(owner.wait(0.2)) == 1
    assert reads(owner.mark()) == 1


def test_follower_that_gets_on_with_nothing_is_told_and_holds_nothing_up_any_more() -> None:
    owner = Owner()
    owner.begin()
    owner.hear(0, 1)
    for _ in range(5):
        owner.mark()
    steps = []
    for _ in range(4):
        steps += owner.wait(10)
        steps += owner.hear(0, 1)
    assert [end.reason for end in ends(steps)] == [FollowReason.SLOW]
    assert reads(steps) == 1
    assert all(reads(owner.mark()) == 1 for _ in range(9))


def test_follower_that_has_got_everything_may_be_quiet_with_its_command() -> None:
    owner = Owner()
    owner.begin()
    owner.mark()
    owner.hear(0)
    steps = []
    for _ in range(10):
        steps += owner.hear(1) + owner.wait(10)
    assert ends(steps) == []
    assert len(pieces(owner.mark())) == 1


def test_end_is_told_after_the_last_piece_and_again_to_who_asks() -> None:
    owner = Owner()
    owner.begin()
    owner.mark()
    owner.mark()
    assert ends(owner.hear(0, 1)) == []
    assert ends(owner.close()) == [], "a piece was not sent yet"
    steps = owner.hear(1, 1)
    assert [one.seq for one in pieces(steps)] == [1]
    assert ends(steps) == ends(owner.hear(2)) == [FollowEnd("t", 1, 2, FollowReason.ENDED)]
    assert owner.hear(2, 0) == []


def test_what_is_pending_at_the_end_is_sent_before_it() -> None:
    owner = Owner()
    owner.begin()
    owner.hear(0, 1)
    for _ in range(5):
        owner.mark()
    assert owner.close() == []
    assert owner.output.held_bytes == 5 * COST, "beyond the limit: nobody waits for room any more"
    steps = owner.hear(3)
    assert [one.seq for one in pieces(steps)] == [3, 4]
    assert ends(steps) == [FollowEnd("t", 1, 5, FollowReason.ENDED)]
    assert reads(steps) == 0, "there is nothing to read any more"


def test_all_output_together_has_a_limit_and_what_ended_first_goes_first() -> None:
    owner = Owner()
    for run_id, task_id in enumerate("abc", start=1):
        owner.begin(task_id, run_id)
        for _ in range(3):
            owner.mark(run_id)
        if task_id != "c":
            owner.close(run_id)
    owner.begin("d", 4)
    owner.mark(4)
    owner.mark(4)
    assert owner.output.held_bytes <= SMALL.output_total_bytes_max
    assert [end.reason for end in ends(owner.hear(0, task_id="a"))] == [FollowReason.UNKNOWN]
    assert len(pieces(owner.hear(0, task_id="b"))) == 3


def test_ended_output_that_somebody_is_getting_goes_after_that_of_nobody() -> None:
    owner = Owner()
    for run_id, task_id in enumerate("abc", start=1):
        owner.begin(task_id, run_id)
        for _ in range(3):
            owner.mark(run_id)
        owner.close(run_id)
    owner.hear(0, 1, task_id="a")
    owner.begin("d", 4)
    owner.mark(4)
    owner.mark(4)
    assert len(pieces(owner.hear(1, task_id="a"))) == 2
    assert [end.reason for end in ends(owner.hear(0, task_id="b"))] == [FollowReason.UNKNOWN]


def test_room_is_taken_from_others_that_run_and_nobody_follows() -> None:
    owner = Owner()
    for run_id, task_id in enumerate("abc", start=1):
        owner.begin(task_id, run_id)
        assert [reads(owner.mark(run_id)) for _ in range(4)] == [1] * 4
    assert owner.output.dropped_bytes == 2 * 100


def test_command_that_nobody_follows_goes_on_where_all_room_is_held_for_others() -> None:
    owner = Owner(replace(SMALL, output_total_bytes_max=8 * COST))
    for run_id, task_id in enumerate("ab", start=1):
        owner.begin(task_id, run_id)
        owner.hear(0, 1, task_id=task_id)
        for _ in range(4):
            owner.mark(run_id)
    owner.begin("c", 3)
    assert reads(owner.mark(3)) == 1
    assert owner.output.dropped_bytes == 100
    owner.hear(4, 1, task_id="a")
    owner.hear(4, 0, task_id="a")
    owner.mark(3)
    (piece,) = pieces(owner.hear(0, task_id="c"))
    assert (piece.first_seq, piece.seq) == (1, 1), "what was passed over is missed"


def test_ended_output_of_which_nothing_is_left_is_known_no_more_but_to_who_has_it() -> None:
    owner = Owner(replace(SMALL, output_total_bytes_max=4 * COST))
    owner.begin("a", 1)
    owner.hear(0, 1, task_id="a")
    owner.begin("c", 3)
    steps = [owner.mark(run_id) for run_id in (1, 1, 1, 1, 3)]
    assert [reads(one) for one in steps] == [1] * 5
    owner.close(3)
    assert ends(owner.hear(0, task_id="c")) == [FollowEnd("c", 1, 0, FollowReason.UNKNOWN)]
    assert ends(owner.hear(1, task_id="c")) == [FollowEnd("c", 1, 1, FollowReason.ENDED)]


def test_output_is_kept_for_a_while_after_the_end_and_then_goes() -> None:
    owner = Owner()
    owner.begin()
    owner.mark()
    owner.close()
    owner.wait(SMALL.output_keep_s - 1)
    assert len(pieces(owner.hear(0))) == 1
    owner.wait(SMALL.output_keep_s)  # it was followed, and is kept anew
    assert len(pieces(owner.hear(0))) == 1
    owner.wait(2 * SMALL.output_keep_s + FOLLOW_SILENCE_S)
    assert [end.reason for end in ends(owner.hear(0))] == [FollowReason.UNKNOWN]
    assert owner.output.held_bytes == 0
    assert owner.output.next_timeout() is None


def test_output_is_kept_for_its_time_though_an_older_one_is_followed() -> None:
    owner = Owner()
    for run_id, task_id in enumerate("ab", 1):
        owner.begin(task_id, run_id)
        owner.mark(run_id)
    owner.hear(0, 1, task_id="a")
    owner.close(1)
    heard_s = FOLLOW_SILENCE_S / 2
    while owner.now < SMALL.output_keep_s - heard_s:
        owner.wait(heard_s)
        owner.hear(0, 1, task_id="a")
    owner.close(2)
    closed_at = owner.now
    while owner.now < SMALL.output_keep_s + heard_s:
        owner.wait(heard_s)
        owner.hear(0, 1, task_id="a")
    assert owner.now - closed_at < SMALL.output_keep_s
    assert pieces(owner.hear(0, task_id="b", sender=Q), Q)
    owner.hear(0, 0, task_id="b", sender=Q)
    owner.wait(closed_at + SMALL.output_keep_s - owner.now)
    assert ends(owner.hear(0, task_id="b"))[0].reason is FollowReason.UNKNOWN


def test_so_many_ended_attempts_are_kept_and_no_more() -> None:
    owner = Owner()
    for run_id in range(1, 9):
        owner.begin(f"t{run_id}", run_id)
        owner.close(run_id)
    known = [
        [end.reason for end in ends(owner.hear(0, task_id=f"t{run_id}"))] for run_id in range(1, 9)
    ]
    assert (
        known
        == [[FollowReason.UNKNOWN]] * 3 + [[FollowReason.ENDED]] * 3 + [[FollowReason.CROWDED]] * 2
    )


def test_only_so_many_may_follow() -> None:
    owner = Owner()
    owner.begin()
    owner.mark()
    for number in range(1, 4):
        assert len(pieces(owner.hear(0, sender=NodeId(number)), NodeId(number))) == 1
    assert [end.reason for end in ends(owner.hear(0))] == [FollowReason.CROWDED]
    owner.hear(0, 0, sender=NodeId(1))
    assert len(pieces(owner.hear(0))) == 1


def test_strangers_and_absurd_numbers_change_nothing() -> None:
    owner = Owner()
    owner.begin()
    owner.mark()
    assert owner.hear(0, sender=STRANGER) == []
    assert owner.hear(2) == []
    assert owner.hear(2**32 - 1) == []
    assert owner.hear(0, 0, task_id="u") == []
    assert owner.output.next_timeout() is None, "nobody is remembered"
    owner.hear(0)
    assert owner.hear(2**32 - 1) == []
    assert len(pieces(owner.mark())) == 1


@pytest.mark.parametrize("has_ended", [True, False])
def test_attempt_of_the_same_number_begins_anew(has_ended: bool) -> None:
    owner = Owner()
    owner.begin()
    owner.hear(0, 1)
    for _ in range(5):
        owner.mark()
    if has_ended:
        owner.close()
    owner.begin(run_id=2)
    (piece,) = pieces(owner.mark(2)) or pieces(owner.hear(0))
    assert piece.seq == 0
    owner.wait(FOLLOW_SILENCE_S)


def test_process_that_nobody_follows_up_is_read_on() -> None:
    assert reads(Owner().write(b"x", run_id=9)) == 1
