"""`demo`: three nodes, real work, and one of them killed in the middle."""

from __future__ import annotations

import argparse

from mesh.cli.arguments import Commands, add_command, user_path, whole_number
from mesh.errors import ConfigError

FILES_MAX = 1_000_000


def add_commands(commands: Commands) -> None:
    """Add this group's commands."""
    demo = add_command(
        commands,
        "demo",
        run_demo,
        "start three nodes, give them real work, kill one, and see everything finish",
    )
    demo.add_argument(
        "dir",
        metavar="DIR",
        nargs="?",
        help="compress and hash every file below DIR (default: Python's own standard library)",
    )
    demo.add_argument(
        "--files",
        metavar="N",
        type=whole_number("--files", 1, FILES_MAX),
        default=None,
        help="only the first N files",
    )
    demo.add_argument(
        "--keep", action="store_true", help="keep the nodes' data directories and logs"
    )


def run_demo(options: argparse.Namespace) -> int:
    """Run the demo; exit 0 only if every result is right and the death was noticed by all."""
    from mesh.demo.demo import run_demo as run

    directory = None
    if options.dir is not None:
        directory = user_path("DIR", options.dir)
        if not directory.is_dir():
            raise ConfigError(
                f"DIR is a directory with files to work on, found none at {options.dir!r}"
            )
    return run(directory, files_max=options.files, is_kept=options.keep)
