"""`keygen` and `key`: make a key, and change the keys of a whole mesh while it runs."""

from __future__ import annotations

import argparse
import os
import stat
import sys
from typing import TYPE_CHECKING, Any, Final

from mesh.cli.arguments import Commands, add_command, add_data, add_json, user_path
from mesh.cli.local_node import local_node
from mesh.cli.text import print_json
from mesh.errors import ConfigError, MeshError

if TYPE_CHECKING:
    from pathlib import Path

ANSWER_S: Final = 120.0
"""Every member may have to be asked twice."""

_ACTIONS: Final = {
    "list": "which keys this node holds, and who holds which",
    "add": "let every member hold one more key: FILE's, or a new one",
    "use": "let every member seal with this key",
    "remove": "let no member hold this key any more",
}


_ORDER: Final = (
    "To change the key: `mesh key add`, then `mesh key use ID`, then `mesh key remove` the old one. Not after a "
    "leak: whoever has the old key reads the new one as it is passed on (docs/security.md says what to do)."
)


def add_commands(commands: Commands) -> None:
    """Add this group's commands."""
    keygen = add_command(
        commands, "keygen", run_keygen, "make a key for a mesh: mesh keygen mesh.key"
    )
    keygen.add_argument(
        "file", metavar="FILE", nargs="?", help="write it there, readable by you alone"
    )
    key = add_command(commands, "key", run_key, "list or change the keys of a running mesh")
    key.epilog = _ORDER
    key.add_argument(
        "action", metavar="ACTION", choices=tuple(_ACTIONS), help="list, add, use or remove"
    )
    key.add_argument(
        "which",
        metavar="FILE|ID",
        nargs="?",
        default="",
        help="add: a key file (default: a new key); use and remove: the id of a key, or its beginning",
    )
    key.add_argument(
        "--force", action="store_true", help="even if members cannot follow: they drop out"
    )
    add_json(key)
    add_data(key)


def run_keygen(options: argparse.Namespace) -> int:
    """Print a new key, or write it to a file that only this user may read."""
    import secrets

    from mesh.seal.key import KEY_BYTES, Key

    text = Key(secrets.token_bytes(KEY_BYTES)).to_text() + "\n"
    if options.file is not None:
        path = user_path("FILE", options.file)
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError as error:
            raise ConfigError(
                f"a new file is expected, found {path}: a key is never overwritten"
            ) from error
        except OSError as error:
            raise ConfigError(
                f"a place for a new file is expected, found {path}: {error.strerror}"
            ) from error
        _write_whole(fd, path, text)
        return 0
    _keep_private()
    sys.stdout.write(text)
    return 0


def _write_whole(fd: int, path: Path, text: str) -> None:
    """Write the key, or leave no file: one without a key would be in the way of the next try."""
    try:
        with os.fdopen(fd, "w", encoding="ascii") as file:
            file.write(text)
    except OSError as error:
        path.unlink()
        raise MeshError(
            f"{path} cannot be written ({error.strerror}), and was removed: make room, or name another place"
        ) from error


def _keep_private() -> None:
    """Let nobody else read the file that the shell opened for us, before the key is in it."""
    try:
        fd = sys.stdout.fileno()
        info = os.fstat(fd)
        if stat.S_ISREG(info.st_mode) and info.st_mode & 0o077:
            os.fchmod(fd, 0o600)
    except OSError as error:  # not our file: the node that reads it will say so
        from mesh.cli.stdio import complain

        complain(f"the key's file may be read by others ({error.strerror}): chmod 600 it")


def run_key(options: argparse.Namespace) -> int:
    """Ask the node to list or change its ring, and print who has taken it."""
    action, which = options.action, options.which
    if action in {"use", "remove"} and not which:
        raise ConfigError(f"mesh key {action} needs the id of a key: `mesh key list` shows them")
    if action == "list" and which:
        raise ConfigError(f"mesh key list takes nothing more, found {which!r}")
    if action == "add" and which:
        which = _read(which)
    with local_node(options, ANSWER_S) as client:
        report = client.call("key", what=action, key=which, force=options.force)
    if options.json:
        print_json(report)
    else:
        sys.stdout.write("\n".join(_lines(report)) + "\n")
    if report["problem"]:
        raise MeshError(f"this node: {report['problem']}")
    return 1 if report["lagging"] and action != "list" else 0


def _read(text: str) -> str:
    from mesh.runtime.keystore import read_key_file

    ring = read_key_file(user_path("FILE", text))
    if len(ring) != 1:
        raise ConfigError(f"a file with one key is expected, found {len(ring)} in {text}")
    return ring.primary.to_text()


def _lines(report: dict[str, Any]) -> list[str]:
    members = report["members"]
    lines = [
        f"added {name}; when every member holds it: mesh key use {name}" for name in report["added"]
    ]
    for key in report["keys"]:
        use = "seals" if key["seals"] else "opens"
        count = sum(key["id"] in member["keys"] for member in members)
        lines.append(f"{key['id']}  {use}  held by this node and {count} of {len(members)} others")
    for member in members:
        if member["name"] in report["lagging"] or member["problem"]:
            what = member["problem"] or f"holds {', '.join(member['keys']) or 'nothing of it'}"
            lines.append(f"{member['name']} at {member['address']} has not taken it: {what}")
    return lines
