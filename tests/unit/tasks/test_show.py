"""A task's JSON: what it asks of a member, in the members' own keys."""

from __future__ import annotations

from mesh.tasks import changes as ch
from mesh.tasks.body import Terms
from mesh.tasks.show import task_json
from mesh.wire.work_messages import Spec
from tests.unit.tasks.made import NOON


def test_json_has_what_a_task_asks_of_a_member() -> None:
    spec = Spec(
        task_id="t",
        argv=("true",),
        pool="image",
        node_class="large",
        labels=(("tpu", "yes"),),
        needs=(("gpu", 2),),
    )
    for is_short in (False, True):
        shown = task_json(ch.created(spec, Terms(), NOON), is_short=is_short)
        assert (shown["pool"], shown["class"]) == ("image", "large")
        assert (shown["labels"], shown["needs"]) == ({"tpu": "yes"}, {"gpu": 2})
