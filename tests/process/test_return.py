"""Four real nodes that all die at once, and return without seeds: by what they remember on disk."""

from __future__ import annotations

import json

from mesh.fleet.clearing import wait_until
from mesh.fleet.fleet import Fleet, NodeProcess

NAMES = ("n1", "n2", "n3", "n4")
NO_SEEDS = ("--pool", "default")  # a node that is started with arguments of its own gets no seed
PATIENCE_S = 30.0


def remembered(node: NodeProcess) -> set[str]:
    """Return the names in a node's snapshot; none while it has no sound one."""
    try:
        whole = json.loads((node.data / "members").read_bytes())
    except (FileNotFoundError, ValueError):
        return set()
    return {entry[1] for entry in whole["members"]}


def wait_remembered(nodes: list[NodeProcess]) -> None:
    """Wait until each of these nodes has a snapshot of all others."""
    wait_until(
        lambda: all(remembered(node) == set(NAMES) - {node.name} for node in nodes) or None,
        PATIENCE_S,
        lambda: AssertionError(str({node.name: remembered(node) for node in nodes})),
    )


def test_nodes_that_were_all_killed_find_each_other_though_all_addresses_but_one_are_new(
    fleet: Fleet,
) -> None:
    for name in NAMES:
        fleet.start(name)
    fleet.wait_whole()
    nodes = list(fleet.nodes.values())
    wait_remembered(nodes)
    kept = fleet.nodes["n2"].call("status")["address"]
    mesh_id = fleet.nodes["n2"].call("status")["mesh_id"]
    for node in nodes:
        node.kill()
    (fleet.nodes["n4"].data / "members").write_bytes(b"\0" * 4096)
    for name in NAMES:
        bind = {"bind": kept} if name == "n2" else {}
        seeds = (kept,) if name == "n4" else NO_SEEDS
        fleet.launch(name, *seeds, **bind)
    for name in NAMES:
        fleet.nodes[name].wait_ready()
    fleet.wait_whole()
    assert {fleet.nodes[name].call("status")["mesh_id"] for name in NAMES} == {mesh_id}
    assert "members is damaged" in fleet.nodes["n4"].log_text()
    wait_remembered([fleet.nodes["n4"]])
