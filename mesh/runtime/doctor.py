"""What is wrong with a data directory, said before it matters: nothing is changed, and no lock is taken.

It works beside a running node: that one holds the lock, and goes on.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from mesh.client import last_start
from mesh.core.ids import format_id
from mesh.errors import DataDirectoryError
from mesh.runtime.datadir import STORE_NAME, NodeIdentity, read_identity
from mesh.runtime.store.checks import inspect, lacks_index
from mesh.runtime.store.connection import DATABASE
from mesh.runtime.store.faults import StoreError
from mesh.runtime.store.identity import StoreIdentity

FREE_BYTES_MIN: Final = 128 * 1024 * 1024
"""With less free room a node may stop at any moment: the log and what waits for it fill as much."""

FREE_BYTES_FEW: Final = 1024 * 1024 * 1024

_ITS_OWN: Final = "put the right one back if the node has not run without it, else start as a new node, on an empty data directory"

Level: TypeAlias = Literal["ok", "warn", "bad"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. warn: something is missing or unwise; bad: a node fails, or is not safe."""

    name: str
    level: Level
    text: str
    advice: str = ""
    """What to do; "" if nothing is to be done."""


def check_data_dir(path: Path, *, is_named: bool = False) -> list[Finding]:
    """Look at a data directory: whose it is, who may read it, what room there is, and all that it keeps.

    It reads the whole store, which takes about a second for 100,000 records. `is_named`: the user named
    it, so that it is wrong if it is not there; a host without a node has no default one.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        if is_named:
            return [_no_directory(path, "nothing")]
        text = f"{path} does not exist: no node of this host has run on it"
        advice = "mesh join makes it; if a node did run here, name its directory with --data"
        return [Finding("directory", "warn", text, advice)]
    except OSError as error:
        return [_no_directory(path, str(error.strerror))]
    if not stat.S_ISDIR(status.st_mode):
        return [_no_directory(path, "a file")]
    try:
        names = {entry.name for entry in path.iterdir()}
    except OSError as error:
        return [_no_directory(path, str(error.strerror))]
    return [
        _owner(path, status),
        _modes(path, status, names),
        *_room(path),
        _node_of(path),
        _identity(path, names),
        *check_store(path / STORE_NAME, _noted(path)),
    ]


def _noted(path: Path) -> NodeIdentity | None:
    """Return whose store is expected; what is wrong with the identity is said elsewhere."""
    try:
        return read_identity(path)
    except DataDirectoryError:
        return None


def check_store(path: Path, noted: NodeIdentity | None = None) -> list[Finding]:
    """Look at a store: whether it opens, all of it is whole, and it is the one that its node has noted."""
    if not path.exists() and noted is not None and noted.store is not None:
        text = f"{path}: the store {noted.store.hex()} is expected, found none: the votes of this node are not here"
        return [Finding("store", "bad", text, _ITS_OWN)]
    if not path.exists():
        return [Finding("store", "ok", f"{path} does not exist: the first start makes it")]
    if lacks_index(path):
        text = f"{path} has a log without an index, as in a copy: it is checked when a node starts there"
        advice = "no node may start on an older copy: it has forgotten votes"
        return [Finding("store", "warn", text, advice)]
    try:
        found = inspect(path)
    except OSError as error:
        text = f"{path}: a directory that can be read is expected, found: {error.strerror}"
        return [Finding("store", "bad", text, "look at its owner and mode")]
    except StoreError as error:
        text, _, advice = str(error).rpartition("; ")
        return [Finding("store", "bad", text or advice, advice if text else "")]
    if noted is not None and (wrong := _mismatch(found.store, noted)):
        return [Finding("store", "bad", f"{path}: {wrong}", _ITS_OWN)]
    size = f"{found.size_bytes / 1024 / 1024:.1f} MiB"
    numbers = ", ".join(f"{name} {value}" for name, value in sorted(found.numbers.items()))
    whole = f"version {found.version}, {found.records} records in {size}, all whole"
    at = f"store {found.store.identity.hex()}, at commit {found.store.position}"
    return [
        Finding("store", "ok", f"{path / DATABASE}: {whole}"),
        Finding("position", "ok", f"{at}; {numbers or 'no numbers'}"),
    ]


def _mismatch(found: StoreIdentity, noted: NodeIdentity) -> str:
    """Return why this store is not the one that the node has noted, or ""."""
    if noted.store is None:
        text = "no store with commits is expected, as this node has noted none, found"
        return f"{text} {found.identity.hex()} at commit {found.position}" if found.position else ""
    if noted.store != found.identity:
        return f"the store {noted.store.hex()} is expected, found {found.identity.hex()}: these are not this node's votes"
    if noted.position > found.position:
        return f"commit {noted.position} or a later one is expected, found {found.position}: this is an older copy"
    return ""


def worst(findings: list[Finding]) -> Level:
    """Return the worst level of all."""
    order: tuple[Level, ...] = ("ok", "warn", "bad")
    return max((finding.level for finding in findings), key=order.index, default="ok")


def _no_directory(path: Path, found: str) -> Finding:
    text = f"{path}: a directory that can be read is expected, found: {found}"
    return Finding("directory", "bad", text, "name the node's directory with --data")


def _owner(path: Path, status: os.stat_result) -> Finding:
    if status.st_uid == os.geteuid():
        return Finding("owner", "ok", f"{path} belongs to this user")
    text = f"{path} belongs to user {status.st_uid}, this is user {os.geteuid()}"
    if os.geteuid() == 0:
        advice = "start the node as that user: what root writes there, that user cannot read"
        return Finding("owner", "warn", text, advice)
    return Finding("owner", "bad", text, "run this, and the node, as that user")


def _modes(path: Path, status: os.stat_result, names: set[str]) -> Finding:
    """Say who else may read or write what only this user should. Others do not reach into a closed directory."""
    if not status.st_mode & 0o077:
        return Finding("modes", "ok", f"{path} is closed to others")
    if status.st_mode & 0o022:
        text = f"others may write to {path} (mode {stat.S_IMODE(status.st_mode):04o}): they could take this node over"
        return Finding("modes", "bad", text, f"chmod 700 {path}")
    secret = [path / name for name in ("keys", "identity", "members") if name in names]
    if (path / STORE_NAME / DATABASE).exists():
        secret.append(path / STORE_NAME / DATABASE)
    open_files = [file.name for file in secret if file.stat().st_mode & 0o077]
    if open_files:
        text = f"others may read {', '.join(open_files)} in {path}"
        return Finding(
            "modes", "bad" if "keys" in open_files else "warn", text, f"chmod 700 {path}"
        )
    text = f"others may look into {path} (mode {stat.S_IMODE(status.st_mode):04o}), and read no file of it"
    return Finding("modes", "warn", text, f"chmod 700 {path}")


def _room(path: Path) -> list[Finding]:
    """Say whether it can be written to, and how much."""
    system = os.statvfs(path)
    free_bytes = system.f_bavail * system.f_frsize
    text = f"{free_bytes / 1024 / 1024:.0f} MiB are free for {path}"
    advice = "free some room: a node that cannot write what it promised stops"
    level: Level = "ok" if free_bytes >= FREE_BYTES_FEW else "warn"
    if free_bytes < FREE_BYTES_MIN:
        level, text = "bad", f"{text}, at least {FREE_BYTES_MIN // 1024 // 1024} are expected"
    elif system.f_files and not system.f_favail:
        level, text = "bad", f"{path} is on a file system that takes no more files"
    found = [Finding("room", level, text, "" if level == "ok" else advice)]
    if system.f_flag & os.ST_RDONLY or not os.access(path, os.W_OK | os.X_OK):
        reason = "its file system is read-only" if system.f_flag & os.ST_RDONLY else "its mode"
        text = f"{path} cannot be written to ({reason})"
        found.append(Finding("writing", "bad", text, "make it writable for the node's user"))
    return found


def _node_of(path: Path) -> Finding:
    pid = lock_holder(path / "lock")
    if pid is None:
        again = last_start(path)
        return Finding(
            "node", "ok", f"no node runs on {path}", f"start it again: {again}" if again else ""
        )
    return Finding("node", "ok", f"a node runs on {path}: process {pid}")


def lock_holder(lock: Path) -> int | None:
    """Return the process that holds a lock, as the kernel says; None: nobody does, or it does not say."""
    try:
        inode = lock.stat()
        locks = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    device = f"{os.major(inode.st_dev):02x}:{os.minor(inode.st_dev):02x}:{inode.st_ino}"
    for line in locks:
        words = (
            line.split()
        )  # 1: FLOCK ADVISORY WRITE PID DEVICE:INODE 0 EOF; others wait for it ("->")
        if len(words) >= 6 and words[1] == "FLOCK" and words[5] == device:
            return int(words[4])
    return None


def _identity(path: Path, names: set[str]) -> Finding:
    if "identity" not in names:
        if names - {"lock"}:
            text = f"{path} has no identity, though other files are there"
            return Finding("identity", "warn", text, "is it the directory of a node? see --data")
        return Finding("identity", "ok", f"{path} is empty: the first start draws an identity")
    try:
        found = read_identity(path)
    except DataDirectoryError as error:
        text, _, advice = str(error).rpartition("; ")
        return Finding("identity", "bad", text, advice)
    mesh = f"of mesh {format_id(found.mesh_id)}" if found.mesh_id else "of no mesh yet"
    return Finding(
        "identity", "ok", f"node {format_id(found.node_id)} {mesh}, session {found.boot}"
    )
