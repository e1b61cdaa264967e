"""Keys of a running mesh: changed under load without a suspicion, and who lacks one is told so."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mesh.fleet.clearing import wait_until
from mesh.fleet.fleet import Fleet, NodeProcess
from mesh.seal.key import Key
from tests.process.onslaught import accusations
from tests.process.sealed_fleet import keys_of, mesh_key, start, write_key

CATCH_UP_S = 40.0


class Load:
    """Submits tasks and waits for each, one after another, until it is told to end."""

    def __init__(self, nodes: list[NodeProcess]) -> None:
        self.done = 0
        self.failures: list[str] = []
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(node,)) for node in nodes]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(60.0)
            assert not thread.is_alive()

    def _run(self, node: NodeProcess) -> None:
        while not self._is_over.is_set():
            text = f"task {self.done}"
            command = ["submit", "--wait", "--data", str(node.data), "--", "sh", "-c"]
            found = subprocess.run(
                [sys.executable, "-m", "mesh", *command, f"sleep 0.2; echo '{text}'"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=60.0,
                check=False,
            )
            if (found.returncode, found.stdout) == (0, text + "\n"):
                self.done += 1
            else:
                self.failures.append(f"{found.returncode}: {found.stdout}{found.stderr}")


@pytest.mark.parametrize("count", [3, pytest.param(8, marks=pytest.mark.sweep)])
def test_rotation_under_load_disturbs_no_task_and_makes_nobody_suspect(
    lan_fleet: Fleet, tmp_path: Path, count: int
) -> None:
    old_file, new_file = tmp_path / "old.key", tmp_path / "new.key"
    old, new = write_key(old_file), write_key(new_file)
    nodes = start(lan_fleet, count, old_file, slots=2)
    begin_ns = time.time_ns()
    load = Load(nodes[:2])
    try:
        for step, at in (
            (("add", str(new_file)), nodes[0]),
            (("use", new.name), nodes[1]),
            (("remove", old.name), nodes[2]),
        ):
            found = mesh_key(at, *step)
            assert found.returncode == 0, found.stdout + found.stderr
        wait_until(
            lambda: all(keys_of(node) == [new.name] for node in nodes) or None,
            CATCH_UP_S,
            lambda: AssertionError([keys_of(node) for node in nodes]),
        )
        since = load.done
        wait_until(
            lambda: load.done > since + 2 or None,
            CATCH_UP_S,
            lambda: AssertionError("no task ends any more"),
        )
    finally:
        load.end()
    assert load.failures == []
    for node in nodes:
        assert accusations(node, begin_ns) == []
        assert [m["state"] for m in node.call("members")] == ["alive"] * count
        kept = (node.data / "keys").read_text()
        assert new.to_text() in kept
        assert old.to_text() not in kept
    print(f"{load.done} tasks during the rotation of {count} nodes")

    _restart_with_the_old_file(lan_fleet, nodes[-1], old_file, new)
    _be_told_with_the_old_file_alone(lan_fleet, old_file, old)


def _restart_with_the_old_file(fleet: Fleet, node: NodeProcess, old_file: Path, new: Key) -> None:
    assert node.stop() == 0
    fleet.start(node.name, "--key", str(old_file), fleet.seed)
    assert keys_of(node) == [new.name]
    fleet.wait_whole(60.0)


def _be_told_with_the_old_file_alone(fleet: Fleet, old_file: Path, old: Key) -> None:
    late = fleet.launch("late", "--key", str(old_file), fleet.seed)
    words = "holds another key than this node"
    wait_until(
        lambda: words in late.log_text() or None,
        CATCH_UP_S,
        lambda: AssertionError(late.log_text()),
    )
    assert old.name in late.log_text()
    assert "--key FILE" in late.log_text()
    assert old.to_text() not in late.log_text()
    assert "late" not in [row["name"] for row in fleet.running()[0].call("members")]


@pytest.fixture
def patient() -> Iterator[Fleet]:
    """A fleet in which a member may be silent for long before it counts as dead."""
    with Fleet("wan") as fleet:
        yield fleet


def test_key_is_neither_used_nor_removed_while_a_living_member_cannot_follow(
    patient: Fleet, tmp_path: Path
) -> None:
    old_file = tmp_path / "old.key"
    old = write_key(old_file)
    nodes = start(patient, 3, old_file)
    stopped = nodes[2]
    os.kill(stopped.pid, signal.SIGSTOP)
    try:
        added = mesh_key(nodes[0], "add", "--json")
        report = json.loads(added.stdout)
        assert added.returncode == 1
        assert report["lagging"] == ["n3"]
        (new,) = (key["id"] for key in report["keys"] if key["id"] != old.name)
        used = mesh_key(nodes[0], "use", new)
        assert used.returncode == 1
        assert "is not sealed with yet" in used.stderr
        assert "n3" in used.stderr
        refused = mesh_key(nodes[0], "remove", old.name)
        assert refused.returncode == 1
        assert "is the one that seals" in refused.stderr
        mesh_key(nodes[0], "use", new, "--force")
        assert keys_of(nodes[0])[0] == new
    finally:
        os.kill(stopped.pid, signal.SIGCONT)
    # It holds the old key still, as the others do: so it catches up without a command.
    wait_until(
        lambda: keys_of(stopped) == keys_of(nodes[0]) or None,
        CATCH_UP_S,
        lambda: AssertionError((keys_of(stopped), keys_of(nodes[0]), stopped.log_text())),
    )
    patient.wait_whole(60.0)
    assert "the key ring was changed, as a member told" in stopped.log_text()
    os.kill(stopped.pid, signal.SIGSTOP)
    try:
        kept = mesh_key(nodes[1], "remove", old.name)
    finally:
        os.kill(stopped.pid, signal.SIGCONT)
    assert kept.returncode == 1
    assert "is not removed" in kept.stderr
    assert "n3" in kept.stderr
    wait_until(
        lambda: mesh_key(nodes[1], "remove", old.name).returncode == 0 or None,
        CATCH_UP_S,
        lambda: AssertionError("it is not removed when all can follow"),
    )


def test_member_that_was_down_catches_up_unless_its_key_was_removed_meanwhile(
    lan_fleet: Fleet, tmp_path: Path
) -> None:
    old_file, new_file = tmp_path / "old.key", tmp_path / "new.key"
    old, new = write_key(old_file), write_key(new_file)
    nodes = start(lan_fleet, 4, old_file)
    early, late = nodes[2:]
    assert (early.stop(), late.stop()) == (0, 0)
    assert mesh_key(nodes[0], "add", str(new_file)).returncode == 0
    assert mesh_key(nodes[1], "use", new.name).returncode == 0
    lan_fleet.start("n3", "--key", str(old_file), lan_fleet.seed)
    wait_until(
        lambda: keys_of(early) == [new.name, old.name] or None,
        CATCH_UP_S,
        lambda: AssertionError(keys_of(early)),
    )
    removed = mesh_key(nodes[0], "remove", old.name)
    assert removed.returncode == 0, removed.stdout + removed.stderr
    lan_fleet.launch("n4", "--key", str(old_file), lan_fleet.seed)
    wait_until(
        lambda: "holds another key than this node" in late.log_text() or None,
        CATCH_UP_S,
        lambda: AssertionError(late.log_text()),
    )
    assert late.stop() is not None
    lan_fleet.start("n4", "--key", str(new_file), lan_fleet.seed)
    lan_fleet.wait_whole(60.0)


def test_two_members_that_add_a_key_at_once_end_with_both_everywhere(
    lan_fleet: Fleet, tmp_path: Path
) -> None:
    files = [tmp_path / f"{number}.key" for number in range(3)]
    keys = [write_key(file) for file in files]
    nodes = start(lan_fleet, 3, files[0])
    threads = [
        threading.Thread(target=mesh_key, args=(node, "add", str(file)))
        for node, file in zip(nodes, files[1:], strict=False)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
    wanted = sorted(key.name for key in keys)
    wait_until(
        lambda: all(sorted(keys_of(node)) == wanted for node in nodes) or None,
        CATCH_UP_S,
        lambda: AssertionError([keys_of(node) for node in nodes]),
    )
    assert {keys_of(node)[0] for node in nodes} == {keys[0].name}
