"""What is old enough goes, in its order, in one passage through them however many go."""

from __future__ import annotations

from collections.abc import ItemsView

from mesh.core.ageing import take_aged


def test_the_first_go_up_to_one_that_is_younger() -> None:
    entries = {"a": 1.0, "b": 2.0, "c": 4.0, "d": 3.0}
    assert take_aged(entries, 5.5, 5.0) == []
    assert take_aged(entries, 8.0, 5.0) == ["a", "b"]  # d waits behind c
    assert entries == {"c": 4.0, "d": 3.0}
    assert take_aged(entries, 9.0, 5.0) == ["c", "d"]
    assert take_aged(entries, 99.0, 5.0) == []


class Counted(dict[int, float]):
    """Counts the passages from its front, each of which passes over all that was deleted there."""

    passages = 0

    def items(self) -> ItemsView[int, float]:  # type: ignore[override]  # a view is all that is asked for
        self.passages += 1
        return super().items()


def test_many_go_in_one_passage() -> None:
    entries = Counted((number, 0.0) for number in range(10_000))
    assert len(take_aged(entries, 1.5, 1.0)) == 10_000
    assert (entries.passages, len(entries)) == (1, 0)
