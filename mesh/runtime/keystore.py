"""The key ring on disk: read from the user's file, kept in the data directory, changed as a whole.

    --key FILE ──► DIR/keys ◄── what members of the mesh know later

DIR/keys is what counts: a node that was started with last year's file does not forget this year's key. A
file with a key that the directory never knew replaces the directory's: whoever gives another key means it.
Any member's DIR/keys is a key file for the next host. A file that others may read is refused, since
whoever reads it can run commands on every member.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Final

from mesh.core.ids import NO_MESH, MeshId, format_id, id_of
from mesh.errors import ConfigError, DataDirectoryError
from mesh.runtime.replacing import replace_file
from mesh.seal.ring import KEYS_MAX, KeyRing, read_ring

FILE_BYTES_MAX: Final = 65_536
KEYS_NAME: Final = "keys"
_KEY_AS_PATH: Final = re.compile(r"[A-Za-z0-9+/]{20,43}=")  # of several / a path keeps one
_MESH: Final = "mesh"


class KeyStore:
    """The ring that this node runs with, and the file that keeps it."""

    def __init__(self, path: Path, ring: KeyRing, mesh_id: MeshId = NO_MESH) -> None:
        self.ring = ring
        self.mesh_id = mesh_id
        """The mesh in which the ring counts (see `ringpass`)."""

        self._path = path
        self._is_unsaved = False

    def merge(self, other: KeyRing) -> str:
        """Take over what another ring knows later, and keep it; return why it is not kept, or ""."""
        return self.save() if self.ring.merge(other) else self.save_again()

    def replace(self, other: KeyRing, mesh_id: MeshId) -> str:
        """Hold another ring, which counts in a mesh, in place of this one; return why it is not kept, or ""."""
        self.ring.become(other)
        return self.bind(mesh_id)

    def bind(self, mesh_id: MeshId) -> str:
        """Let the ring count in a mesh; return why that is not kept, or ""."""
        self.mesh_id = mesh_id
        return self.save()

    def save(self) -> str:
        """Keep the ring as it is; return why that failed, or "". In memory it counts either way."""
        self._is_unsaved = True
        try:
            text = f"{self.ring.to_text()}{_MESH} {format_id(self.mesh_id)}\n"
            replace_file(self._path, text.encode("ascii"))
        except OSError as error:
            return (
                f"{self._path.name} cannot be written ({error.strerror}): a restart forgets the change; "
                "once it can, `mesh key list` at any member writes it"
            )
        self._is_unsaved = False
        return ""

    def save_again(self) -> str:
        """Keep the ring if the last try failed; return why this one did, or ""."""
        return self.save() if self._is_unsaved else ""


def open_keys(data_dir: Path, key_file: Path | None) -> KeyStore | None:
    """Return the ring of the data directory, or of the user's file; None: there is no key.

    Raises:
        ConfigError: the user's file is missing, no key file, or open to others.
        DataDirectoryError: the directory's own is damaged or open to others, or cannot be written.
    """
    path = data_dir / KEYS_NAME
    ring, mesh_id = KeyRing(), NO_MESH
    # A link to nowhere counts: a disk that is not mounted must not make this a node without a key.
    if os.path.lexists(path):
        try:
            ring, mesh_id = _read_key_file(path)
        except ConfigError as error:
            raise DataDirectoryError(f"the keys of this data directory: {error}") from error
    before = ring.digest
    if key_file is not None:
        given = read_key_file(key_file)
        if all(ring.knows(key.key_id) for key in given):
            ring.merge(given)
        else:
            ring, mesh_id = given, NO_MESH
        if len(ring) > KEYS_MAX:
            raise ConfigError(
                f"at most {KEYS_MAX} keys are held at once, found {len(ring)} with those of {key_file}: leave away "
                "what is used no more"
            )
    if not len(ring):
        return None
    store = KeyStore(path, ring, mesh_id)
    if ring.digest != before:
        problem = store.save()
        if problem:
            raise DataDirectoryError(f"{data_dir} is expected to keep the key: {problem}")
    return store


def read_key_file(path: Path) -> KeyRing:
    """Return the ring in a file that its owner alone may read.

    Raises:
        ConfigError: it is missing, open to others, no regular file, or no key file.
    """
    return _read_key_file(path)[0]


def _read_key_file(path: Path) -> tuple[KeyRing, MeshId]:
    """Return the ring in a file, and the mesh in which it counts."""
    try:
        fd = os.open(path.expanduser(), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        if _KEY_AS_PATH.fullmatch(str(path)):  # that is not repeated
            raise ConfigError(
                "the name of a key file is expected, found a key: write it to a file of mode 0600, and name that"
            ) from error
        advice = (
            ""
            if os.path.lexists(path)
            else "; copy it from a member (the first host makes it, with `mesh keygen FILE`)"
        )
        raise ConfigError(f"a key file is expected at {path}: {reason}{advice}") from error
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise ConfigError(f"a key file is expected at {path}, found no regular file")
        if info.st_mode & 0o077 or info.st_uid not in {0, os.geteuid()}:
            mode = stat.S_IMODE(info.st_mode)
            raise ConfigError(
                f"key file {path} is open to others (mode {mode:04o}, owner {info.st_uid}): mode 0600 and this user "
                f"as owner are expected, since whoever reads it can run commands on every member; chmod 600 {path}"
            )
        with os.fdopen(fd, "rb", closefd=False) as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(
            f"a key file that can be read is expected at {path}: {error.strerror}"
        ) from error
    finally:
        os.close(fd)
    if len(data) > FILE_BYTES_MAX:
        raise ConfigError(f"a key file of at most {FILE_BYTES_MAX} bytes is expected, found {path}")
    try:
        return _parse(data.decode("ascii"))
    except (ConfigError, UnicodeDecodeError) as error:
        text = str(error) if isinstance(error, ConfigError) else "text is expected, found bytes"
        raise ConfigError(f"{path}: {text}") from error


def _parse(text: str) -> tuple[KeyRing, MeshId]:
    """Return a ring and its mesh: a line of its own that `save` adds."""
    lines = text.splitlines()
    marks = [line.split()[1:] for line in lines if line.split()[:1] == [_MESH]]
    mesh_id = id_of(marks[0][0]) if len(marks) == 1 and len(marks[0]) == 1 else 0
    if mesh_id is None or len(marks) > 1:
        raise ConfigError("one mesh id of 16 hex digits is expected in the key file's line of it")
    others = [line for line in lines if line.split()[:1] != [_MESH]]
    return read_ring("\n".join(others)), MeshId(mesh_id)
