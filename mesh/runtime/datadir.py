"""The data directory: who this node is, kept on disk, and a lock that keeps others out.

    DIR/lock          held for as long as the node runs; contains its process id
    DIR/identity      JSON: format, node_id, boot, mesh_id, founder, store, position, name; replaced as a whole, never edited
    DIR/keys          the key ring that this node shares with the others, if there is one
    DIR/members       JSON: members of the mesh, to ask when the node returns
    DIR/store/        what this node has voted; the identity says which store that is
    DIR/control.sock  where `mesh` commands reach the node
    DIR/guardian      what the guardian writes down of the work that runs, to be cleared away after a crash
    DIR/start         JSON: the command line that the node was last started with, to be shown when it is gone
    DIR/log           what the node says while a screen has the terminal

Identity is the disk: the id is drawn once, and each start takes a greater boot number. Both are
durable before `open_data_dir` returns, so no packet ever names a session that a crash could undo.
A directory that holds other things is refused, so that a wrong `--data` harms nobody's files.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from mesh.client import START_NAME, current_directory
from mesh.core.ids import NAME_CHARS_MAX, NO_MESH, MeshId, NodeId, format_id, id_of
from mesh.core.limits import BOOT_MAX
from mesh.errors import DataDirectoryError, LocalProtocolError
from mesh.runtime.replacing import replace_file

FORMAT: Final = 3
"""1 knew of no store: a node that is of that format has none. 2 kept no name."""

BOOTS_SPARE: Final = 65_536
"""Session numbers left below the last one: a directory without them is used up."""

STORE_NAME: Final = "store"
"""The directory of the registers' store. Whose votes they are says the identity: without it they are nobody's."""

_IDENTITY_BYTES_MAX: Final = 4096
_FIELDS: Final = ("node_id", "boot", "mesh_id", "founder", "store", "position", "name")
_ADDED: Final = {"founder": False, "store": "", "position": 0, "name": ""}
"""What an earlier format did not say yet, as it is meant then."""

_OURS: Final = frozenset(
    {
        "lock",
        "identity",
        "identity.new",
        "members",
        "members.new",
        "keys",
        "keys.new",
        "control.sock",
        "guardian",
        "guardian.new",
        "log",
        "start",
        "start.new",
    }
)


class NodeIdentity(NamedTuple):
    """Who a node is, as its data directory says."""

    node_id: NodeId
    boot: int
    """The number of its last session."""

    mesh_id: MeshId = NO_MESH
    is_founder: bool = False
    """It has founded that mesh."""

    store: bytes | None = None
    """Which store holds its votes; None: it has none yet, and has voted nothing."""

    position: int = 0
    """How many commits that store held when this was written; later it may hold more, and never less."""

    name: str = ""
    """The name that its user gave it last; "": none, and it goes by its host's."""


class DataDir:
    """An open, locked data directory. Closing it lets another node in."""

    def __init__(self, path: Path, lock_fd: int, identity: NodeIdentity) -> None:
        self.path = path
        self.identity = identity
        self._lock_fd = lock_fd

    @property
    def node_id(self) -> NodeId:
        """Return the id that was drawn once."""
        return self.identity.node_id

    @property
    def boot(self) -> int:
        """Return this session's number."""
        return self.identity.boot

    @property
    def mesh_id(self) -> MeshId:
        """Return the mesh that this directory belongs to, or NO_MESH."""
        return self.identity.mesh_id

    def persist(self, values: Mapping[str, int]) -> None:
        """Store `mesh_id`, `boot` or `founder` durably; the disk and this object change together or not at all.

        Raises:
            DataDirectoryError: the disk refused (full, read-only, broken), or the directory is not this node's any more.
        """
        unknown = set(values) - {"mesh_id", "boot", "founder"}
        if unknown:
            raise LocalProtocolError(
                f"mesh_id, boot and founder are kept on disk, found {sorted(unknown)}"
            )
        mesh_id = MeshId(values.get("mesh_id", self.mesh_id))
        was_founder = self.identity.is_founder and mesh_id == self.mesh_id
        self._replace(
            self.identity._replace(
                boot=values.get("boot", self.boot),
                mesh_id=mesh_id,
                is_founder=bool(values.get("founder", was_founder)),
            )
        )

    def note_store(self, store: bytes, position: int) -> None:
        """Note durably which store holds this node's votes, and how far it has come.

        Raises:
            DataDirectoryError: the disk refused, or the directory is not this node's any more.
        """
        self._replace(self.identity._replace(store=store, position=position))

    def note_start(self, command: str) -> None:
        """Note the shell line that this node was started with, and in which directory; "": it is not known, and none is kept.

        Raises:
            DataDirectoryError: the disk refused.
        """
        body = {"command": command, "directory": current_directory()}
        try:
            if not command:
                (self.path / START_NAME).unlink(missing_ok=True)
                return
            replace_file(
                self.path / START_NAME, json.dumps(body).encode() + b"\n", is_durable=False
            )
        except OSError as error:
            raise _unusable(
                self.path, "a directory that keeps what is written is expected", error
            ) from error

    def _replace(self, identity: NodeIdentity) -> None:
        if identity == self.identity:
            return  # it is on disk already: whoever returns to its mesh waits for no disk
        self._check_own()
        _write_identity(self.path, identity)
        self.identity = identity

    def _check_own(self) -> None:
        """Raise DataDirectoryError if the directory was removed or replaced: another node's identity may be there."""
        if self._lock_fd < 0:
            raise LocalProtocolError(
                f"{self.path} is written while its lock is held, found it closed"
            )
        lock = self.path / "lock"
        try:
            is_own = os.path.samestat(os.lstat(lock), os.fstat(self._lock_fd))
            found = "another file"
        except OSError as error:
            is_own, found = False, error.strerror or str(error)
        if not is_own:
            raise DataDirectoryError(
                f"{lock}: the lock that node {format_id(self.node_id)} holds is expected, found: {found}; its data "
                "directory was removed or replaced while it ran, and nothing was written: look at who did so; if it "
                "was moved away as a whole, put it back and start the node again, else start as a new node, on an "
                "empty data directory"
            )

    def close(self) -> None:
        """Release the lock. Harmless when repeated."""
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1


def open_data_dir(path: Path, unix_time: float, name: str | None = None) -> DataDir:
    """Create or open, lock and number a data directory; the new boot number is on disk on return.

    `name` is the name that the node is given from now on, and is kept; None: the one that was kept, if one was.

    Raises:
        DataDirectoryError: it is in use, foreign, damaged, of a newer release, or cannot be written.
    """
    try:
        path = path.expanduser().absolute()
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        names = {entry.name for entry in path.iterdir()}
    except (OSError, RuntimeError) as error:
        raise _unusable(
            path, "a directory to keep this node's identity is expected", error
        ) from error
    if "identity" not in names and names - _OURS:
        some = ", ".join(sorted(names - _OURS)[:3])
        raise DataDirectoryError(
            f"{path} is no data directory of Mesh: an empty or a Mesh directory is expected, found {some}; "
            "name another with --data"
        )
    lock_fd = _lock(path)
    try:
        if "identity" in names:
            identity = read_identity(path)
        else:
            identity = NodeIdentity(NodeId(secrets.randbits(64) or 1), 0)
        identity = identity._replace(
            boot=max(identity.boot, int(unix_time)) + 1,
            name=identity.name if name is None else name,
        )
        _write_identity(path, identity)
    except BaseException:
        os.close(lock_fd)
        raise
    return DataDir(path, lock_fd, identity)


def _unusable(path: Path, expected: str, error: BaseException) -> DataDirectoryError:
    reason = getattr(error, "strerror", None) or str(error)
    return DataDirectoryError(
        f"{expected}, found {path}: {reason}; make it writable, or name another with --data"
    )


def _lock(path: Path) -> int:
    try:
        fd = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise _unusable(
            path / "lock", "a lock file that can be written is expected", error
        ) from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(fd, 0)
        os.write(fd, b"%d\n" % os.getpid())
    except BlockingIOError as error:
        holder = os.pread(fd, 20, 0).decode("ascii", "replace").strip() or "unknown"
        os.close(fd)
        raise DataDirectoryError(
            f"{path} is in use by process {holder}: each node needs a directory of its own; "
            "stop that node or name another directory with --data"
        ) from error
    except OSError as error:
        os.close(fd)
        is_full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        expected = "a disk with room left" if is_full else "a file system that can lock"
        raise _unusable(path / "lock", f"{expected} is expected", error) from error
    return fd


def read_identity(path: Path) -> NodeIdentity:
    """Return who the node of a data directory is, with its last boot number.

    Raises:
        DataDirectoryError: it cannot be read, is damaged, of a newer release, or used up.
    """
    file = path / "identity"
    try:
        fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise _damaged(file, "something that is no file")
            data = os.read(fd, _IDENTITY_BYTES_MAX)
        finally:
            os.close(fd)
    except OSError as error:
        raise _unusable(file, "an identity that can be read is expected", error) from error
    try:
        raw: Any = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _damaged(file, f"{len(data)} bytes that are no JSON") from error
    if type(raw) is not dict or type(raw.get("format")) is not int:
        raise _damaged(file, "JSON of another kind")
    if raw["format"] > FORMAT:
        raise DataDirectoryError(
            f"{file} has format {raw['format']}, written by a newer Mesh: formats up to {FORMAT} are read here; "
            "upgrade this host, or name another directory with --data"
        )
    if raw["format"] < FORMAT:
        raw = _ADDED | raw
    identity = _parse(raw)
    if identity is None:
        raise _damaged(file, ", ".join(f"{name} {raw.get(name)!r:.24}" for name in _FIELDS))
    if identity.boot > BOOT_MAX - BOOTS_SPARE:
        raise DataDirectoryError(
            f"{file} has session number {identity.boot}: numbers up to {BOOT_MAX - BOOTS_SPARE} are expected, as each "
            "start takes a greater one; move the directory away to start as a new node"
        )
    return identity


def _parse(raw: dict[str, Any]) -> NodeIdentity | None:
    node_id, mesh_id = id_of(raw.get("node_id")), id_of(raw.get("mesh_id") or format_id(0))
    boot, is_founder = raw.get("boot"), raw.get("founder")
    store, position, name = raw.get("store"), raw.get("position"), raw.get("name")
    if not node_id or mesh_id is None or type(boot) is not int or not 0 <= boot <= BOOT_MAX:
        return None
    if type(store) is not str or not re.fullmatch(r"([0-9a-f]{32})?", store):
        return None
    if type(is_founder) is not bool or type(position) is not int or position < 0:
        return None
    if type(name) is not str or len(name) > NAME_CHARS_MAX or not name.isprintable():
        return None
    kept = bytes.fromhex(store) if store else None
    return NodeIdentity(NodeId(node_id), boot, MeshId(mesh_id), is_founder, kept, position, name)


def _damaged(file: Path, found: str) -> DataDirectoryError:
    return DataDirectoryError(
        f"{file} is damaged: JSON with format, {', '.join(_FIELDS)} is expected, found {found[:240]}; "
        "restore it, or move the directory away to start as a new node"
    )


def _write_identity(path: Path, identity: NodeIdentity) -> None:
    body = {
        "format": FORMAT,
        "node_id": format_id(identity.node_id),
        "boot": identity.boot,
        "mesh_id": format_id(identity.mesh_id) if identity.mesh_id else "",
        "founder": identity.is_founder,
        "store": identity.store.hex() if identity.store is not None else "",
        "position": identity.position,
        "name": identity.name,
    }
    try:
        replace_file(path / "identity", json.dumps(body).encode() + b"\n")
    except OSError as error:
        raise _unusable(
            path, "a directory that keeps what is written is expected", error
        ) from error
