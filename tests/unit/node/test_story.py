"""What a node answers when it is asked about a member: facts with Unix times, or why there is no answer."""

from __future__ import annotations

import json
from typing import Any

from mesh.core.effects import Answer
from mesh.core.ids import NO_MESH, format_id
from mesh.node.commands import ForgetMember, Why
from mesh.node.node import Node
from mesh.wire.records import Cause
from mesh.wire.swim_messages import Alive, Dead, Left, Seen, Suspect
from tests.unit.membership.pump import card_bytes, node_id
from tests.unit.node.talk import NOW, config, started, tell

UNIX = NOW + config().unix_offset_s
KEYS = {
    "observer", "observer_id", "at", "self", "name", "node_id", "address", "state", "cause", "is_proof",
    "since", "boot", "incarnation", "rtt_ms", "heard", "suspicion", "history",
}  # fmt: skip
ENTRY_KEYS = {
    "at", "kind", "state", "cause", "accuser", "confirmed_by", "evidence", "evidence_kinds", "detail",
    "rtt_ms",
}  # fmt: skip


def mesh_of_four() -> Node:
    node = started()
    tell(node, 2, *(Alive(card_bytes(number)) for number in (2, 3, 4)))
    tell(node, 2, Alive(card_bytes(2)))  # a stranger's first words are not yet a member's
    return node


def ask(node: Node, whom: str) -> Answer:
    (answer,) = node.handle_command(NOW, Why(7, whom))
    assert isinstance(answer, Answer)
    assert answer.command_id == 7
    return answer


def told(node: Node, whom: str) -> dict[str, Any]:
    answer = ask(node, whom)
    assert answer.error is None
    found: dict[str, Any] = json.loads(json.dumps(answer.result))
    assert found.keys() >= KEYS
    assert all(entry.keys() >= ENTRY_KEYS for entry in found["history"])
    return found


def test_a_member_that_is_well_has_no_past() -> None:
    found = told(mesh_of_four(), "host-2")
    assert (found["state"], found["history"], found["suspicion"]) == ("alive", [], None)
    assert (found["observer"], found["self"], found["is_proof"]) == ("host-1", False, False)
    assert found["since"] == found["heard"] == UNIX


def test_a_suspect_has_accusers_and_a_time_by_which_it_may_refute() -> None:
    node = mesh_of_four()
    seen = int(Seen.CLOSED)
    tell(node, 2, Suspect(node_id(4), 1, 0, node_id(2), seen))
    tell(node, 3, Suspect(node_id(4), 1, 0, node_id(3)))
    found = told(node, "host-4")
    suspicion = found["suspicion"]
    assert (suspicion["accuser"], suspicion["confirmed_by"]) == ("host-2", ["host-3"])
    assert UNIX < suspicion["soonest"] <= suspicion["due"]
    assert [entry["kind"] for entry in found["history"]] == ["suspect", "confirm"]
    assert found["history"][0]["evidence_kinds"] == ["suspected", "lifeline_closed"]
    (row,) = [row for row in node.view(NOW).members if row["name"] == "host-4"]
    assert row["suspected_by"] == ["host-2", "host-3"]


def test_a_member_that_is_well_again_is_suspected_by_nobody() -> None:
    node = mesh_of_four()
    tell(node, 2, Suspect(node_id(4), 1, 0, node_id(2)))
    tell(node, 4, Alive(card_bytes(4, incarnation=1)))
    found = told(node, "host-4")
    assert (found["state"], found["suspicion"]) == ("alive", None)
    last = found["history"][-1]
    assert (last["kind"], last["accuser"]) == ("refute", "host-2")
    assert all(row["suspected_by"] == [] for row in node.view(NOW).members)


def test_proof_is_told_from_a_hint() -> None:
    node = mesh_of_four()
    tell(node, 2, Left(node_id(2), 1, 0))
    tell(node, 3, Dead(node_id(3), 1, 0, Cause.ENDED, node_id(3)))
    tell(node, 3, Dead(node_id(4), 1, 0, Cause.CRASHED, node_id(3)))
    proven = {name: told(node, name)["is_proof"] for name in ("host-2", "host-3", "host-4")}
    assert proven == {"host-2": True, "host-3": True, "host-4": False}


def test_a_beginning_of_an_id_is_enough_if_it_fits_one() -> None:
    node = mesh_of_four()
    whole = format_id(node_id(3))
    assert told(node, whole)["name"] == "host-3"
    assert told(node, whole[:8].upper())["name"] == "host-3"
    refused = ask(node, "0").error
    assert refused is not None
    assert refused.startswith("several members fit '0'")
    assert f"{whole} (host-3, alive for " in refused


def test_the_living_holder_of_a_name_is_meant_before_one_that_is_gone() -> None:
    node = mesh_of_four()
    tell(node, 2, Dead(node_id(4), 1, 0, Cause.ENDED, node_id(2)))
    tell(node, 2, Alive(card_bytes(5, name="host-4")))
    assert told(node, "host-4")["node_id"] == format_id(node_id(5))
    assert told(node, format_id(node_id(4)))["state"] == "dead"


def test_two_living_of_one_name_are_told_apart_as_they_are_listed() -> None:
    node = mesh_of_four()
    tell(node, 2, Alive(card_bytes(5, name="host-4")))
    assert "several members fit 'host-4'" in str(ask(node, "host-4").error)
    digits = format_id(node_id(5))[:4]
    assert told(node, f"host-4~{digits}")["node_id"] == format_id(node_id(5))


def test_one_that_was_forgotten_is_remembered_still() -> None:
    node = mesh_of_four()
    tell(node, 2, Dead(node_id(4), 1, 0, Cause.ENDED, node_id(2)))
    node.handle_command(NOW, ForgetMember(8, "host-4"))
    found = told(node, "host-4")
    assert found["state"] == "forgotten"
    assert [entry["kind"] for entry in found["history"]] == ["dead", "forget"]
    node._swim.table.remove(node_id(4))  # as it is when its tombstone is over
    assert told(node, "host-4") == {
        **found, "address": "", "availability": "", "boot": 0, "incarnation": 0, "heard": None, "rtt_ms": None,
    }  # fmt: skip


def test_nobody_of_that_name_is_refused() -> None:
    for whom in ("nobody", "ffffffffffffffff", ""):
        assert "no member is known here by the name or id" in str(ask(mesh_of_four(), whom).error)


def test_a_node_that_seeks_a_mesh_knows_nobody() -> None:
    node = started(mesh_id=NO_MESH, seeds=("10.0.0.9:7946",))
    assert "belongs to no mesh yet" in str(ask(node, "host-1").error)
