"""A turn is taken once a cool-down; whose answer was lost takes it again; a clock that was wrong holds up nobody."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh.core.ids import NodeId
from mesh.errors import DecodeError
from mesh.hooks.latest import LatestRun, hook_key, of_value, shortage_of, to_value
from mesh.hooks.turn import Turn
from mesh.registers.kinds import is_setting
from mesh.wire.register_messages import KEY_BYTES_MAX, Owner, Standing, Value

NOON = 1_800_000_000.0
COOL_DOWN_S = 600.0


def turn(after_s: float, mark: int = 1, by: str = "anna") -> Turn:
    now = NOON + after_s
    return Turn(now=now, begun_by=now + 5, cool_down_s=COOL_DOWN_S, by=by, mark=mark)


def run(after_s: float, mark: int = 1, by: str = "anna") -> LatestRun:
    return LatestRun(begun_by=NOON + after_s, by=by, mark=mark)


def test_the_first_turn_is_whoever_s_asks() -> None:
    assert turn(0)(None) == to_value(run(5))


def test_within_a_cool_down_of_when_it_was_begun_at_the_latest_it_is_nobody_else_s() -> None:
    found = to_value(run(5))
    other = turn(COOL_DOWN_S + 4.9, mark=2, by="bert")
    assert other(found) is found
    assert other.wait_s(run(5)) == pytest.approx(0.1)
    late = turn(COOL_DOWN_S + 5, mark=2, by="bert")
    assert late(found) == to_value(run(COOL_DOWN_S + 10, 2, "bert"))
    assert late.wait_s(run(5)) == 0


def test_a_turn_that_was_not_used_is_taken_again_by_its_taker_alone() -> None:
    found = to_value(run(5))
    assert turn(20)(found) == to_value(run(25))
    assert turn(20, mark=2)(found) is found


def test_tried_again_under_another_ballot_it_writes_the_same() -> None:
    own = turn(0)
    assert own(own(None)) == own(None)


def test_a_run_from_further_ahead_than_a_cool_down_is_not_believed() -> None:
    ahead = to_value(run(COOL_DOWN_S + 1, mark=9))
    assert turn(0)(ahead) == to_value(run(5))
    near = to_value(run(COOL_DOWN_S, mark=9))
    assert turn(0)(near) is near
    assert turn(0).wait_s(of_value(near)) == 2 * COOL_DOWN_S, "no wait is longer"


def test_bytes_that_are_nothing_are_replaced_and_those_of_a_later_version_never() -> None:
    for rot in (
        b"",
        b"\x01rot",
        b"\x00",
        b"\x01" + b"x" * 1_000,
        b"\x01\x93\xcb\x7f\xf8" + b"\0" * 6,
    ):
        assert turn(0)(Value(Standing.OPEN, rot)) == to_value(run(5))
    assert turn(0)(Value(Standing.OPEN, b"\x02later")) is None
    assert turn(0)(Value(Standing.LEASED, to_value(run(5)).body, Owner(NodeId(5), 1))) is None


def test_its_register_is_open_for_ever() -> None:
    names = [
        shortage_of(pool) for pool in ("default", "gpu", "ü" * 64, "ä" * 64, "\U0001f600" * 64)
    ]
    keys = [hook_key(name) for name in names]
    assert all(is_setting(key) and len(key) <= KEY_BYTES_MAX for key in keys)
    assert len(set(keys)) == len(keys)
    assert keys[0] == b"hook/shortage/default"


@given(st.binary(max_size=600))
def test_whatever_bytes_are_held_reading_them_ends_in_a_run_or_in_words(data: bytes) -> None:
    for body in (data, b"\x01" + data):
        try:
            found = of_value(Value(Standing.OPEN, body))
        except DecodeError:
            continue
        assert of_value(to_value(found)) == found


@given(
    st.lists(
        st.tuples(st.floats(0, 900), st.integers(0, 3), st.booleans()), min_size=1, max_size=40
    )
)
def test_no_two_runs_are_begun_within_a_cool_down(
    tries: list[tuple[float, int, bool]],
) -> None:
    """Each of four asks now and then; who has the turn may not hear of it, and asks again under its mark."""
    now, held, begun = 0.0, None, []
    marks = {who: who for who in range(4)}
    for pause_s, who, is_heard in tries:
        now += pause_s
        asked = turn(now, marks[who])
        held = asked(held)
        assert held is not None
        if of_value(held).mark == marks[who] and is_heard:
            begun.append(now + 5 * (who % 2))  # at once, or as late as may be
            marks[who] += 4
    assert all(late - early >= COOL_DOWN_S for early, late in pairwise(begun))
