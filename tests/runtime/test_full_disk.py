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


def test_only_voter_on_a_disk_that_it_fills_itself_refuses_more_and_lives_on(disk: Path) -> None:
    play = """
taken, refused = [], ""
for i in range(4000):
    try:
        taken.append(submit(i)["id"])
    except MeshError as error:
        refused = str(error)
        break
result["taken"], result["refused"] = len(taken), refused
many = [{"argv": ["true", "x" * 20000], "id": f"m{i}"} for i in range(100)]
result["many"] = [one.get("error", "") for one in node.call("submit_many", tasks=many)["tasks"]]
result["free"] = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
subprocess.run(["mount", "-o", "remount,size=200m", str(disk)], check=True)
node.until(lambda: submit("after")["id"] == "tafter")
result["lost"] = [id for id in taken if node.call("task", id=id)["id"] != id]
node.process.terminate()
node.process.wait(20)
"""
    found = stage(disk, "60m", play)
    assert found["taken"] > 100
    assert "nothing new can be stored" in found["refused"]
    assert "MiB of free disk, 24 MiB are expected: free some room" in found["refused"]
    assert all("nothing new can be stored" in error for error in found["many"])
    assert found["free"] > 16 << 20
    assert found["lost"] == []
    assert found["code"] == 0, found["log"]


def test_commit_that_failed_ends_the_node_and_what_was_answered_is_kept(disk: Path) -> None:
    play = """
node.process.terminate()
node.process.wait(20)
code = code.replace("slots=0", "slots=1")
node = Node()
node.until(lambda: node.call("status")["phase"] == "member")
answered = [submit(i)["id"] for i in range(20)]
go = disk.parent / "go"
wait = f"while ! test -e {go}; do sleep 0.02; done; seq 20000"
node.until(lambda: all(node.call("task", id=id)["state"] == "done" for id in answered))
node.call("submit", argv=["sh", "-c", wait], id="last")
node.until(lambda: node.call("task", id="last")["state"] == "leased")
fill(0)
go.touch()
result["ended"] = node.process.wait(20)
result["said"] = node.said()
spare.unlink()
node = Node()
node.until(lambda: node.call("status")["phase"] == "member")
node.until(lambda: node.call("task", id="last")["state"] == "done")
result["states"] = [node.call("task", id=id)["state"] for id in answered]
node.process.terminate()
node.process.wait(20)
"""
    found = stage(disk, "40m", play)
    assert found["ended"] == 1
    assert "a disk with room left is expected, found it full; free some room" in found["said"]
    assert "Traceback" not in found["said"]
    assert found["states"] == ["done"] * 20
