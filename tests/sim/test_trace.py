"""The trace: one hash for one run, and the first difference between two."""

from __future__ import annotations

import errno
import io
import os

import pytest

from mesh.sim.scenario import run_sim
from mesh.sim.trace import Kind, Trace, first_difference


def recorded(*records: tuple[float, int, Kind, bytes]) -> tuple[str, list[str]]:
    sink = io.StringIO()
    trace = Trace(sink)
    for record in records:
        trace.record(*record)
    return trace.hash_hex, sink.getvalue().splitlines(keepends=True)


BASE = (1.5, 3, Kind.SEND, b"abc")


@pytest.mark.parametrize(
    "other",
    [
        (1.25, 3, Kind.SEND, b"abc"),
        (1.5, 4, Kind.SEND, b"abc"),
        (1.5, 3, Kind.DATAGRAM, b"abc"),
        (1.5, 3, Kind.SEND, b"abd"),
        (1.5, 3, Kind.SEND, b"x" * 1000 + b"y"),
    ],
)
def test_whatever_differs_changes_hash_and_line(other: tuple[float, int, Kind, bytes]) -> None:
    (hash_one, lines_one), (hash_other, lines_other) = recorded(BASE), recorded(other)
    assert hash_one != hash_other
    assert lines_one != lines_other


def test_where_one_record_ends_and_the_next_begins_counts() -> None:
    one = recorded((1.0, 1, Kind.SEND, b"ab"), (1.0, 1, Kind.SEND, b"c"))
    other = recorded((1.0, 1, Kind.SEND, b"a"), (1.0, 1, Kind.SEND, b"bc"))
    assert one[0] != other[0]


def test_equal_runs_have_one_hash_and_no_difference() -> None:
    (hash_one, lines_one), (hash_other, lines_other) = recorded(BASE, BASE), recorded(BASE, BASE)
    assert hash_one == hash_other
    assert first_difference(lines_one, lines_other) is None


def test_the_first_difference_is_shown_with_what_was_before() -> None:
    one = ["a\n", "b\n", "c\n", "d\n"]
    found = first_difference(one, ["a\n", "b\n", "x\n", "d\n"])
    assert found is not None
    assert (found.line_number, found.first, found.second) == (3, "c", "x")
    assert found.before == ("a", "b")
    assert "record 3" in str(found)


def test_a_run_that_ended_early_differs_there() -> None:
    found = first_difference(["a\n"], ["a\n", "b\n"])
    assert found is not None
    assert (found.line_number, found.first, found.second) == (2, "", "b")
    assert "(ended)" in str(found)


def test_the_last_records_are_kept_by_kind() -> None:
    trace = Trace()
    trace.record(*BASE)
    trace.record_value(2.0, 3, Kind.EMIT, ("joined",))
    assert [record.kind for record in trace.recent()] == [Kind.SEND, Kind.EMIT]
    (only,) = trace.recent(frozenset({int(Kind.EMIT)}))
    assert "joined" in str(only)


class FullDisk(io.StringIO):
    """Takes a hundred lines."""

    def write(self, text: str, /) -> int:
        if self.tell() > 100 * 80:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(text)


@pytest.mark.parametrize("fault", ["crash", "mixed"])
def test_full_disk_is_no_fault_of_the_node_that_acts(fault: str) -> None:
    with pytest.raises(OSError, match="No space left"):
        run_sim(5, fault, 1, sink=FullDisk())
