"""Real nodes on a disk of their own that fills up: they take on nothing new, and end before they forget a vote."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.store.scribes import skip_unless

PATIENCE_S = 60.0

NODE = """
import sys
from pathlib import Path
from mesh.errors import MeshError
from mesh.runtime.agent import AgentSettings, run_agent
try:
    sys.exit(run_agent(AgentSettings(data_dir=Path(sys.argv[1]), name="a", bind=("127.0.0.1", 0), profile="local",
                                     slots=0)))
except MeshError as error:
    print(type(error).__name__, error, file=sys.stderr)
    sys.exit(9)
"""

STAGE = """
import json, os, subprocess, sys, time
from pathlib import Path
from mesh.client import Client
from mesh.errors import MeshError

disk, size, code = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(disk)], check=True)
home, spare = disk / "a", disk / "spare"

class Node:
    def __init__(self):
        self.log = open(disk.parent / "log", "w+")
        self.process = subprocess.Popen([sys.executable, "-c", code, str(home)], stdout=self.log, stderr=self.log)

    def said(self):
        return (disk.parent / "log").read_text()

    def until(self, ask):
        deadline = time.monotonic() + 40
        while time.monotonic() < deadline:
            try:
                if ask():
                    return
            except MeshError:
                pass
            time.sleep(0.02)
        self.process.kill()
        raise SystemExit("waited in vain: " + self.said())

    def call(self, *words, **more):
        with Client(home) as client:
            return client.call(*words, **more)

def fill(left_bytes):
    system = os.statvfs(disk)
    with spare.open("wb") as file:
        file.write(bytes(system.f_bavail * system.f_frsize - left_bytes))

def submit(i):
    return node.call("submit", argv=["true", "x" * 20000], id=f"t{i}")

result = {}
node = Node()
try:
    node.until(lambda: node.call("status")["phase"] == "member")
    exec(sys.argv[4])
finally:
    node.process.kill()
    result["code"] = node.process.wait()
    result["log"] = node.said()
print(json.dumps(result))
"""


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    found = tmp_path / "disk"
    found.mkdir()
    mount = ("unshare", "-m", "mount", "-t", "tmpfs", "none", str(found))
    skip_unless("a mount of the test's own", *mount)
    return found


def stage(disk: Path, size: str, play: str) -> dict[str, Any]:
    """Play with a node on a small disk that only the play can see."""
    unshare = shutil.which("unshare")
    assert unshare is not None
    done = subprocess.run(
        [unshare, "-m", sys.executable, "-c", STAGE, str(disk), size, NODE, play],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_node_on_a_disk_without_much_room_says_so_and_lives_on(disk: Path) -> None:
    play = """
node.until(lambda: "MiB of free disk, 24 MiB are expected" in node.said())
result["status"] = node.call("status")
node.process.terminate()
node.process.wait(20)
"""
    found = stage(disk, "5m", play)
    assert "this node takes on nothing that has to be kept" in found["log"]
    assert found["status"]["store"]["path"] == str(disk / "a" / "store")
    assert "24 MiB are expected" in found["status"]["store"]["lacks"]
    assert found["code"] == 0


def test_node_whose_disk_was_full_for_a_while_goes_on_as_before(disk: Path) -> None:
    play = """
node.until(lambda: submit(0)["id"] == "t0")
fill(1 << 20)
node.until(lambda: "24 MiB are expected" in node.said())
assert node.call("status")["store"]["lacks"]
spare.unlink()
node.until(lambda: "the store has room again" in node.said())
assert not node.call("status")["store"]["lacks"]
assert submit(1)["id"] == "t1"
node.process.terminate()
node.process.wait(20)
"""
    assert stage(disk, "40m", play)["code"] == 0


def test_commit_that_failed_ends_the_node_and_what_was_answered_is_kept(disk: Path) -> None:
    play = """
node.until(lambda: submit("first")["id"] == "tfirst")
answered = []
fill(1 << 20)
for i in range(500):
    try:
        answered.append(submit(i)["id"])
    except MeshError:
        break
result["ended"] = node.process.wait(20)
result["said"] = node.said()
spare.unlink()
node = Node()
node.until(lambda: node.call("status")["phase"] == "member")
def is_kept(id):
    try:
        return bool(node.call("task", id=id))
    except MeshError as error:
        return str(error)
node.until(lambda: is_kept("tfirst") is True)
result["lost"] = [(id, is_kept(id)) for id in answered if is_kept(id) is not True]
result["answered"] = len(answered)
node.process.terminate()
node.process.wait(20)
"""
    found = stage(disk, "5m", play)
    assert found["ended"] == 1
    assert "a disk with room left is expected, found it full; free some room" in found["said"]
    assert "Traceback" not in found["said"]
    assert found["answered"] > 10
    assert found["lost"] == []
