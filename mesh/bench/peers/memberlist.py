"""memberlist: a Go library, in a harness of ours that is built when it is asked for."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Final

from mesh.bench.contestant import BenchError
from mesh.bench.peers.harness import Harness

HOW: Final = "apt-get install golang-go golang-github-hashicorp-memberlist-dev"
GO_PATH: Final = Path("/usr/share/gocode")
PACKAGE: Final = GO_PATH / "src/github.com/hashicorp/memberlist"
BUILD_TIMEOUT_S: Final = 600.0


class Memberlist(Harness):
    """The harness, built from `bench/peers/memberlist_node.go`."""

    name = "memberlist"
    can_deafen = True

    def __init__(self, program: Path, version: str) -> None:
        self._program = program
        self.about = f"memberlist {version}"

    def command(self, member: str, address: str, seed: str, profile: str) -> list[str]:
        """Return the harness's command."""
        return [str(self._program), profile, member, address, *([seed] if seed else [])]


def build(go: str, source: Path, workshop: Path) -> Memberlist:
    """Build the harness into `workshop`.

    Raises:
        BenchError: the compiler refused.
    """
    program = workshop / "memberlist_node"
    environment = {**os.environ, "GO111MODULE": "off", "GOPATH": str(GO_PATH), "GOFLAGS": ""}
    compiler = subprocess.Popen(
        [go, "build", "-o", str(program), str(source)],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        errors = compiler.communicate(timeout=BUILD_TIMEOUT_S)[1]
    finally:  # it has children of its own, and whatever ends this ends them all
        if compiler.poll() is None:
            os.killpg(compiler.pid, signal.SIGKILL)
            compiler.wait()
    if compiler.returncode:
        last = " / ".join(errors.strip().splitlines()[-3:])
        raise BenchError(f"memberlist: {source.name} could not be built: {last}")
    return Memberlist(program, _version())


def _version() -> str:
    asked = ["dpkg-query", "-W", "-f=${Version}", "golang-github-hashicorp-memberlist-dev"]
    try:
        said = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=10.0)
    except OSError:
        return "from Go's path"
    return said.stdout.strip() or "from Go's path"
