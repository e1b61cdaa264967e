"""Why nobody can run a task: the demand that nobody meets is named, and no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mesh.placement.live_view import Wants
from mesh.tasks.lacking import lacking
from mesh.wire.records import DEDICATED, EMERGENCY, Availability, Metadata

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


def test_who_takes_nothing_just_now_is_told_for_that_and_who_lacks_something_is_not() -> None:
    small = Metadata(pool="other")
    unfit = Metadata(availability=Availability.UNFIT)
    idle = Metadata(node_class=EMERGENCY, availability=Availability.STANDBY)
    wants = Wants(key="", pool="default")
    assert lacking(wants, [small, unfit]) == (
        "those that could run it take nothing now: 1 not fit, as the health check there says"
    )
    assert lacking(wants, [small, unfit, idle, idle]).endswith(
        "1 not fit, as the health check there says, 2 standing by until the load is high"
    )
    assert lacking(wants, [small, replace(unfit, pool="other")]) == f"{NONE} is in pool default"


def test_members_that_are_dedicated_to_other_queues_lack_nothing() -> None:
    video = Metadata(node_class=DEDICATED, queues=("video",))
    wants = Wants(key="", queue="mail", pool="image")
    assert lacking(wants, [video]) == (
        "every member that takes tasks is dedicated to other queues than mail"
    )
    assert lacking(wants, [video, Metadata()]) == f"{NONE} of queue mail is in pool image"
    asked_for = replace(wants, pool="", node_class=DEDICATED)
    assert lacking(asked_for, [video, Metadata()]) == f"{NONE} of queue mail is of class dedicated"
    assert lacking(replace(wants, queue="video"), [video]) == f"{NONE} is in pool image"
