"""A voter that would take the majority with it stays unless it is forced, and everybody says why nothing goes on."""

from __future__ import annotations

import json

from mesh.fleet.clearing import wait_until
from mesh.fleet.fleet import Fleet, NodeProcess
from tests.process.conftest import Mesh
from tests.process.voters import wait_voters

TIMEOUT_S = 20.0
LOST = "2 of 3 voters are away (b, c): nothing can be stored until one returns"


def at(node: NodeProcess) -> tuple[str, str]:
    return ("--data", str(node.data))


def wait_registers(node: NodeProcess, name: str, wanted: str) -> None:
    wait_until(
        lambda: wanted in node.call("status")["registers"][name] or None,
        TIMEOUT_S,
        lambda: AssertionError(f"{name}: {wanted!r} is expected, found {node.call('status')}"),
    )


def wait_logged(node: NodeProcess, wanted: str) -> None:
    wait_until(
        lambda: wanted in node.log_text() or None,
        TIMEOUT_S,
        lambda: AssertionError(f"{wanted!r} is expected in {node.log_text()}"),
    )


def test_voter_that_would_take_the_majority_with_it_stays_unless_it_is_forced(
    fleet: Fleet, mesh: Mesh
) -> None:
    a, b, c = (fleet.start(name, slots=1) for name in "abc")
    wait_voters(fleet, 3)
    assert (left := mesh("leave", *at(c))).returncode == 0, left.stderr
    assert c.wait_ended() == 0
    wait_registers(b, "parting", "2 of 3 voters are away (b, c)")

    for command in ("leave", "drain"):
        refused = mesh(command, *at(b))
        assert (refused.returncode, refused.stdout) == (1, "")
        (line,) = refused.stderr.splitlines()
        assert (
            "once this node has left, 2 of 3 voters are away (b, c): nothing can be stored" in line
        )
        assert "--force" in line
    assert b.call("status")["phase"] == "member"

    forced = mesh("leave", "--force", *at(b))
    assert forced.returncode == 0, forced.stderr
    assert "nothing can be stored" in forced.stderr
    assert b.wait_ended() == 0

    wait_logged(a, f"warning: {LOST}")
    assert LOST in [event["detail"] for event in events(a, mesh)]
    assert f"stand still: {LOST}" in mesh("status", *at(a)).stdout
    assert LOST in mesh("tasks", *at(a)).stderr
    submitted = mesh("submit", *at(a), "--", "true")
    assert submitted.returncode == 1
    assert LOST in submitted.stderr
    assert mesh("leave", *at(a)).returncode == 0, "the last member may always leave"


def test_voter_that_is_told_by_a_signal_goes_and_says_in_its_log_what_that_means(
    fleet: Fleet,
) -> None:
    _, b, c = (fleet.start(name, slots=1) for name in "abc")
    wait_voters(fleet, 3)
    c.stop()
    wait_registers(b, "parting", "(b, c)")
    b.stop()
    assert "leaving; once this node has left, 2 of 3 voters are away (b, c)" in b.log_text()


def events(node: NodeProcess, mesh: Mesh) -> list[dict[str, str]]:
    return [json.loads(line) for line in mesh("events", "--json", *at(node)).stdout.splitlines()]
