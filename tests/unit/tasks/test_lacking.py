"""Why nobody can run a task: the demand that nobody meets is named, and no other."""

from __future__ import annotations

import pytest

from mesh.placement.live_view import Wants
from mesh.tasks.lacking import lacking
from mesh.wire.records import Metadata

PLAIN = Metadata(slots=4, pool="image", offers=(("gpu", 2),))
NONE = "no member that takes tasks"


@pytest.mark.parametrize(
    ("wants", "said"),
    [
        (Wants(key="", labels=(("tpu", "yes"),)), f"{NONE} has label tpu=yes"),
        (Wants(key="", pool="image", labels=(("tpu", "yes"),)), f"{NONE} has label tpu=yes"),
        (Wants(key="", needs=(("gpu", 3),)), f"{NONE} offers gpu 3 or more"),
        (
            Wants(key="", pool="sound", node_class="large"),
            f"{NONE} is in pool sound, none is of class large",
        ),
    ],
)
def test_demand_that_nobody_meets_is_named_alone(wants: Wants, said: str) -> None:
    assert lacking(wants, [PLAIN, PLAIN]) == said


def test_demands_that_are_each_met_but_by_nobody_together_are_all_named() -> None:
    labelled = Metadata(slots=1, labels=(("tpu", "yes"),))
    wants = Wants(key="", pool="image", labels=(("tpu", "yes"),))
    assert lacking(wants, [PLAIN, labelled]) == (
        f"{NONE} meets all of this at once: is in pool image, has label tpu=yes, has a slot"
    )


def test_members_without_slots_lack_these_and_nothing_else() -> None:
    assert lacking(Wants(key="", pool="image"), [Metadata(slots=0, pool="image")]) == (
        f"{NONE} has a slot"
    )
