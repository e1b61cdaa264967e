"""The health score stays within its bounds."""

from mesh.membership.awareness import Awareness


def test_score_stays_within_its_bounds() -> None:
    awareness = Awareness(8)
    awareness.note(-1)
    assert (awareness.score, awareness.scale) == (0, 1)
    awareness.note(20)
    assert (awareness.score, awareness.scale) == (8, 9)
    awareness.note(-3)
    assert awareness.score == 5


def test_switched_off_it_never_slows_anything() -> None:
    awareness = Awareness(0)
    awareness.note(5)
    assert awareness.scale == 1
