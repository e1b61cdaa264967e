"""`mesh top` of a real mesh in tmux: a person's keys, and what a person sees after each."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mesh.fleet.fleet import Fleet

DEADLINE_S = 20.0


class Tmux:
    """A tmux server of this test's own, with one window."""

    def __init__(self, socket: Path, width: int, height: int) -> None:
        self._socket = socket
        self._do("new-session", "-d", "-x", str(width), "-y", str(height), "sh")

    def _do(self, *arguments: str) -> str:
        command = ["tmux", "-S", str(self._socket), "-f", "/dev/null", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
        return done.stdout

    def send(self, *keys: str) -> None:
        self._do("send-keys", *keys)

    def resize(self, width: int, height: int) -> None:
        self._do("resize-window", "-x", str(width), "-y", str(height))

    def pane(self) -> str:
        return self._do("capture-pane", "-p")

    def wait(self, text: str) -> str:
        deadline = time.monotonic() + DEADLINE_S
        while text not in (pane := self.pane()):
            assert time.monotonic() < deadline, f"{text!r} is expected in\n{pane}"
            time.sleep(0.02)
        return pane

    def close(self) -> None:
        self._do("kill-server")


needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


@needs_tmux
def test_real_mesh_on_a_real_terminal_answers_real_keys(fleet: Fleet, tmp_path: Path) -> None:
    for name in ("n1", "n2", "n3"):
        fleet.start(name, slots=2)
    fleet.wait_whole()
    data = str(fleet.nodes["n1"].data)
    tmux = Tmux(tmp_path / "tmux", 80, 24)
    try:
        tmux.send(f"echo before; {sys.executable} -m mesh top --data {data}; echo code $?", "Enter")
        pane = tmux.wait("● 3 alive")
        assert "before" not in pane  # the alternate screen
        assert "n1 (me)" in pane
        assert all(len(line) <= 80 for line in pane.splitlines())
        tmux.send("Tab")
        tmux.wait("─[tasks]─")
        tmux.send("BTab")
        tmux.wait("─[members]─")
        tmux.send("?")
        tmux.wait("scroll by a page")
        tmux.send("Escape")
        tmux.wait("─[members]─")
        fleet.nodes["n1"].call("submit", argv=["sh", "-c", "echo lost; exit 3"], cwd="/")
        tmux.wait("✗ failed")
        tmux.send("2", "Enter")
        pane = tmux.wait("─[task ")
        assert "exit 3" in pane
        assert "│ lost" in pane
        tmux.send("Escape")
        tmux.wait("key 4: contests")
        tmux.send("4")
        tmux.wait("no contest held here yet; mesh queue set NAME --strategy contest makes them")
        fleet.nodes["n1"].call("queue_set", queue="fit", strategy="contest")
        deadline = time.monotonic() + DEADLINE_S
        while "bids/contest" not in (pane := tmux.pane()):  # another voter may call for a task
            assert time.monotonic() < deadline, f"a contest is expected in\n{pane}"
            fleet.nodes["n1"].call("submit", argv=["true"], cwd="/", queue="fit")
        tmux.wait("✓ n")
        tmux.send("Enter")
        assert "n1 called for attempt 1: " in tmux.wait("─[contest for ")
        tmux.send("q")
        tmux.wait("─[contests]─")
        tmux.send("3")
        tmux.wait("─[events]─")
        fleet.nodes["n3"].kill()
        tmux.wait("✗ dead")
        tmux.wait("saw n3 dead")
        tmux.send("q")
        pane = tmux.wait("code 0")
        assert "before" in pane
        assert "alive" not in pane
    finally:
        tmux.close()


@needs_tmux
def test_newcomer_finds_out_who_is_busiest_and_why_another_died(
    fleet: Fleet, tmp_path: Path
) -> None:
    for name in ("n1", "n2", "n3"):
        fleet.start(name, slots=2)
    fleet.wait_whole()
    tmux = Tmux(tmp_path / "tmux", 80, 24)
    try:
        tmux.send(f"{sys.executable} -m mesh top --data {fleet.nodes['n1'].data}", "Enter")
        tmux.wait("● 3 alive")
        for _ in range(2):  # one key, one home: both slots of one member
            fleet.nodes["n1"].call("submit", argv=["sleep", "60"], cwd="/", key="home")
        pane = tmux.wait("▲ busiest n")
        busiest = pane.partition("▲ busiest ")[2].split()[0]
        assert any(f"{busiest} " in line and "▲" in line for line in pane.splitlines()[4:])
        fleet.nodes["n3"].kill()
        pane = tmux.wait("✗ dead")
        row = next(line for line in pane.splitlines() if "✗ dead" in line)
        assert row.startswith("│ n3 ")
        tmux.send("/", "state:dead", "Enter", "Enter")
        pane = tmux.wait("─[member n3]─")
        assert "WHY" in pane
        assert "· " in pane.partition("WHY")[2]
        tmux.send("Escape", "Escape")
        tmux.wait("n1 (me)")
        tmux.send("3", "z")
        tmux.wait("─[events]─")
        tmux.send("p")
        tmux.wait("PAUSED at")
        tmux.send("p", "z", "1", "s")
        tmux.wait("LOAD▼")
        tmux.resize(200, 60)
        tmux.wait("packets/s out")
        tmux.send("q")
    finally:
        tmux.close()
