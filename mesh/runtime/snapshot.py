"""The snapshot on disk: DIR/members, whom this node asks when it returns.

    {"format": 1, "mesh_id": "16 digits", "members": [["16 digits", "name", "host", port], ...]}

It is replaced as a whole, so that a reader sees the old or the new one; it is not waited for, since the
last one will do. Whatever is wrong with it (damaged, foreign, a full disk) is said and costs addresses to
ask, never the node.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from mesh.core.address import Address, numeric_host
from mesh.core.effects import Remember
from mesh.core.ids import NAME_CHARS_MAX, MeshId, NodeId, format_id, id_of
from mesh.core.known import KnownMember
from mesh.core.limits import REMEMBERED_MAX
from mesh.runtime.replacing import replace_file

FORMAT: Final = 1
FILE: Final = "members"
_BYTES_MAX: Final = 1 << 20  # what 1,000 members need, twice over

Say = Callable[[str], None]


class Snapshot:
    """One data directory's snapshot. `say` is told what is wrong, once until it is well again."""

    def __init__(self, path: Path, say: Say) -> None:
        self._path = path
        self._say = say
        self._is_failing = False

    def read(self, mesh_id: MeshId) -> tuple[KnownMember, ...]:
        """Return the members of this mesh that are on disk; none if there is no sound snapshot of it."""
        file = self._path / FILE
        try:
            data = _read(file)
            found_id, members = _parse(data)
        except FileNotFoundError:
            return ()
        except OSError as error:
            self._say(f"{file} cannot be read ({error.strerror}): nobody is known from before")
            return ()
        except (ValueError, RecursionError) as error:
            self._say(
                f"{file} is damaged ({error}): nobody is known from before; it is written anew"
            )
            return ()
        if found_id != mesh_id:
            if mesh_id:
                self._say(f"{file} is of another mesh ({format_id(found_id)}): it is not used")
            return ()
        return members

    def write(self, snapshot: Remember) -> None:
        """Replace the file; a failure is said."""
        body = {
            "format": FORMAT,
            "mesh_id": format_id(snapshot.mesh_id),
            "members": [
                [format_id(known.node_id), known.name, known.address.host, known.address.port]
                for known in snapshot.members
            ],
        }
        data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        try:
            replace_file(self._path / FILE, data, is_durable=False)
        except OSError as error:
            if not self._is_failing:
                self._is_failing = True
                self._say(
                    f"{self._path / FILE} cannot be written ({error.strerror}): after a restart this node asks "
                    "its seeds and those known earlier; it goes on, and tries again"
                )
            return
        if self._is_failing:
            self._is_failing = False
            self._say(f"{self._path / FILE} can be written again")


def _read(file: Path) -> bytes:
    fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    with os.fdopen(fd, "rb") as opened:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ValueError("a file is expected, found something else")
        data = opened.read(_BYTES_MAX + 1)
    if len(data) > _BYTES_MAX:
        raise ValueError(f"at most {_BYTES_MAX} bytes are expected, found more")
    return data


def _parse(data: bytes) -> tuple[MeshId, tuple[KnownMember, ...]]:
    raw: Any = json.loads(data)
    if type(raw) is not dict or raw.get("format") != FORMAT or type(raw.get("members")) is not list:
        raise ValueError(f"JSON of format {FORMAT} with members is expected")
    mesh_id = id_of(raw.get("mesh_id"))
    if not mesh_id:
        raise ValueError("a mesh_id of 16 digits is expected")
    if len(raw["members"]) > REMEMBERED_MAX:
        raise ValueError(f"at most {REMEMBERED_MAX} members are expected")
    return MeshId(mesh_id), tuple(_member(entry) for entry in raw["members"])


def _member(raw: object) -> KnownMember:
    if type(raw) is not list or len(raw) != 4:
        raise ValueError("a member is expected as [node_id, name, host, port]")
    node_id, (name, host, port) = id_of(raw[0]), raw[1:]
    is_named = type(name) is str and 0 < len(name) <= NAME_CHARS_MAX and name.isprintable()
    # A zone is any text, and no member has one: what is told to others has none.
    numeric = numeric_host(host) if type(host) is str and "%" not in host else None
    is_port = type(port) is int and 0 < port <= 65_535
    if not node_id or not is_named or numeric is None or not is_port:
        raise ValueError(f"a member is expected as [node_id, name, host, port], found {raw!r:.80}")
    return KnownMember(NodeId(node_id), name, Address(numeric, port))
