"""Effects, requests and events are closed sets of values that cannot be changed after the fact."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from mesh.core import effects, process, requests
from mesh.core.events import Event, EventKind

EFFECTS = typing.get_args(effects.Effect)
OUTPUTS = typing.get_args(requests.Outgoing)
PROCESS_EVENTS = typing.get_args(process.ProcessEvent)


def test_every_effect_of_the_file_belongs_to_the_closed_set() -> None:
    defined = [
        value
        for value in vars(effects).values()
        if dataclasses.is_dataclass(value) and vars(value)["__module__"] == effects.__name__
    ]
    assert defined == list(EFFECTS)


def test_a_machine_returns_effects_asks_tells_and_dials_only() -> None:
    assert (*EFFECTS, requests.Ask, requests.Tell, requests.Dial) == OUTPUTS


@pytest.mark.parametrize(
    "kind", [*OUTPUTS, *PROCESS_EVENTS, Event], ids=lambda kind: str(kind.__name__)
)
def test_values_between_core_and_driver_are_frozen_and_slotted(kind: type) -> None:
    parameters = vars(kind)["__dataclass_params__"]
    assert parameters.frozen
    assert "__slots__" in vars(kind)
    assert kind.__doc__


def test_an_event_says_no_more_than_it_was_told() -> None:
    event = Event(kind=EventKind.WARN)
    assert (event.member_id, event.evidence) == (None, ())
    assert {getattr(event, f.name) for f in dataclasses.fields(event) if f.type == "str"} == {""}


def test_event_kinds_are_their_own_json() -> None:
    assert all(kind.value == kind.name.lower() == f"{kind}" for kind in EventKind)
