"""Find the peers that were asked for, or say how to install them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from mesh.bench.peer_nodes import Adapter
from mesh.bench.peers import kinship, memberlist, serf
from mesh.errors import ConfigError

NAMES: Final = ("serf", "memberlist", "kinship")
HARNESSES: Final = Path(__file__).parents[3] / "bench" / "peers"


def find_peers(names: Sequence[str], workshop: Path, kinship_python: str | None) -> list[Adapter]:
    """Return the adapters of these peers, in order; what must be built is built into `workshop`.

    Raises:
        ConfigError: a name is unknown, or a peer is missing; the text says how to install it.
        BenchError: a harness could not be built.
    """
    for name in names:
        if name not in NAMES:
            raise ConfigError(f"a peer is one of {', '.join(NAMES)}, found {name!r}")
    return [_find(name, workshop, kinship_python) for name in dict.fromkeys(names)]


def _find(name: str, workshop: Path, kinship_python: str | None) -> Adapter:
    if name == "serf":
        program = shutil.which("serf")
        if program is None:
            raise _missing(name, serf.HOW)
        return serf.Serf(program)
    if name == "memberlist":
        go = shutil.which("go")
        if go is None or not memberlist.PACKAGE.is_dir():
            raise _missing(name, memberlist.HOW)
        return memberlist.build(go, _harness("memberlist_node.go"), workshop)
    python = kinship_python or sys.executable
    version = kinship.version_in(python)
    if not version:
        raise _missing(name, kinship.HOW)
    return kinship.Kinship(python, _harness("kinship_node.py"), version)


def _harness(name: str) -> Path:
    path = HARNESSES / name
    if not path.is_file():
        raise ConfigError(
            f"bench/peers/{name} is expected beside the package, found none: peers are measured from "
            "a source tree, so clone the repository and run it there"
        )
    return path


def _missing(name: str, how: str) -> ConfigError:
    return ConfigError(f"{name} is expected on this host, found none; install it: {how}")
