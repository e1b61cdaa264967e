"""The command line as a whole: how quickly it starts, and what programs read from it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TypeAlias

import pytest

from mesh.fleet.fleet import Fleet, NodeProcess

Mesh: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]

ROUNDS = 15


@pytest.mark.measured
def test_help_takes_less_than_six_times_bare_python() -> None:
    def took_s(*arguments: str) -> float:
        began = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - began

    bare_s, help_s = [], []
    for _ in range(ROUNDS):  # side by side, so that a busy machine slows both
        bare_s.append(took_s("-c", "pass"))
        help_s.append(took_s("-m", "mesh", "--help"))
    print(f"bare {min(bare_s) * 1000:.1f} ms, help {min(help_s) * 1000:.1f} ms")
    assert min(help_s) < 6 * min(bare_s)


def test_help_loads_neither_trio_nor_rich_nor_msgpack() -> None:
    script = "import sys, mesh.cli.main; mesh.cli.main.build_parser(); print(*sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert not {"trio", "rich", "msgpack", "pathlib", "socket"} & set(found.stdout.split())


@pytest.fixture(scope="module")
def node(shared_fleet: Fleet) -> NodeProcess:
    return shared_fleet.start("solo", "--label", "zone=a", "--offer", "gpu=2", slots=3)


def test_members_json_has_the_keys_that_programs_rely_on(mesh: Mesh, node: NodeProcess) -> None:
    (row,) = json.loads(mesh("members", "--json", "--data", str(node.data)).stdout)
    assert set(row) >= {
        "name", "node_id", "address", "state", "cause", "incarnation", "boot", "since", "rtt_ms",
        "slots", "used", "load", "pool", "class", "labels",
    }  # fmt: skip
    assert (row["name"], row["state"], row["slots"]) == ("solo", "alive", 3)
    assert row["labels"] == {"zone": "a"}


def test_events_json_is_one_object_a_line(mesh: Mesh, node: NodeProcess) -> None:
    lines = mesh("events", "--json", "--data", str(node.data)).stdout.splitlines()
    events = [json.loads(line) for line in lines]
    assert events
    for event in events:
        assert set(event) >= {"at_ns", "observer", "kind", "member", "state", "cause", "evidence"}
        assert event["observer"] == "solo"
    assert len(mesh("events", "--last", "1", "--data", str(node.data)).stdout.splitlines()) == 1


def test_queue_is_set_and_shown(mesh: Mesh, node: NodeProcess) -> None:
    data = ("--data", str(node.data))
    first, second = mesh("queue", "show", "q", *data).stdout.splitlines()
    assert first == "q: rendezvous (the default: nothing was set)"
    assert second.startswith("  weights: cpu 0.2, ")
    words = ("--strategy", "round_robin", "--weight", "cpu=2", "--json")
    said = json.loads(mesh("queue", "set", "q", *words, *data).stdout)
    assert (said["outcome"], said["set_by"], said["weights"]["cpu"]) == ("set", "solo", 2.0)
    assert abs(said["set_at"] - time.time()) < 60
    del said["outcome"]
    assert json.loads(mesh("queue", "show", "q", "--json", *data).stdout) == said
    keys = {"queue", "strategy", "weights", "default_weights", "set_at", "set_by"}
    assert set(said) == keys
    assert "q: round_robin (set " in mesh("queue", "show", "q", *data).stdout
    again = mesh(
        "queue", "set", "q", "--weight", "lag=1", "--weight", "match=default", *data
    ).stdout
    assert "cpu 2, " in again
    assert "lag 1, " in again


def test_task_is_submitted_listed_shown_and_cancelled(mesh: Mesh, node: NodeProcess) -> None:
    data = ("--data", str(node.data))
    sent = mesh(
        "submit", "--json", "--id", "t1", "--queue", "q", "--label", "zone=a", "--need", "gpu=1",
        "--env", "WHO=you", "--cwd", "/", *data, "--", "sh", "-c", "echo $WHO $PWD; sleep 60",
    )  # fmt: skip
    assert json.loads(sent.stdout) == {"id": "t1"}
    task = json.loads(mesh("task", "t1", "--json", *data).stdout)
    assert set(task) >= {"id", "state", "cause", "attempts", "result", "queue", "kind", "owner"}
    assert [row["id"] for row in json.loads(mesh("tasks", "--json", *data).stdout)] == ["t1"]
    assert "t1" in mesh("tasks", *data).stdout
    assert mesh("cancel", "t1", *data).stdout == "t1 cancelled\n"
    shown = mesh("task", "t1", *data).stdout
    assert "cancelled" in shown
    assert "solo" in shown
    assert mesh("submit", *data, "--", "true").stdout.strip()


def test_tables_are_plain_text_when_nobody_watches(mesh: Mesh, node: NodeProcess) -> None:
    for command in ("members", "status", "events", "tasks"):
        found = mesh(command, "--data", str(node.data))
        assert found.returncode == 0
        assert "\x1b" not in found.stdout
        assert "solo" in found.stdout or command == "tasks"


def test_reader_that_goes_away_is_no_error(shared_fleet: Fleet, node: NodeProcess) -> None:
    command = [sys.executable, "-m", "mesh", "events", "--follow", "--data", str(node.data)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as follower:
        assert follower.stdout is not None
        assert follower.stderr is not None
        assert follower.stdout.readline()
        follower.stdout.close()
        shared_fleet.start("noise").stop()  # what there is to tell: that it joins, and leaves
        assert follower.wait(10.0) == 1
        assert follower.stderr.read() == b""
