"""The `mesh` command: find the command's handler, run it, turn errors into one line and an exit code.

Exit codes: 0 done, 1 the thing failed, 2 wrong usage, 3 no node reached, 130 stopped by Ctrl-C.
Importing this loads argparse and the grammar only; each handler imports what it needs when it runs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from mesh.cli.arguments import Parser, add_command
from mesh.cli.stdio import complain, forget_stdout, prepare
from mesh.errors import ConfigError, MeshError, MeshUnreachable
from mesh.version import __version__

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_UNREACHABLE = 3
EXIT_INTERRUPTED = 130

_JOIN = "join"
_GROUPS = (
    _JOIN,
    "leave",
    "key",
    "watch",
    "why",
    "forget",
    "submit",
    "work",
    "queue",
    "doctor",
    "sim",
    "demo",
    "bench",
)


def build_parser(groups: Sequence[str] = _GROUPS) -> tuple[Parser, tuple[str, ...]]:
    """Return the grammar of these groups, the whole one by default, and the names of their commands."""
    parser = Parser(
        prog="mesh",
        description="Worker meshes without a broker: hosts join, see each other live, and share the work.",
        epilog="Each command explains itself: mesh help COMMAND, or mesh COMMAND --help.",
    )
    parser.add_argument("-V", "--version", action="version", version=f"mesh {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    for group in groups:
        import_module(f"mesh.cli.{group}").add_commands(commands)

    def show_help(options: argparse.Namespace) -> int:
        """Print the help of one command, or of all."""
        if options.command is not None:
            _check_command(options.command, tuple(commands.choices))
        (commands.choices[options.command] if options.command else parser).print_help()
        return 0

    text = add_command(commands, "help", show_help, "explain a command")
    text.add_argument("command", metavar="COMMAND", nargs="?", help="default: list all commands")
    return parser, tuple(commands.choices)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    prepare()
    try:
        code = _run(list(sys.argv[1:] if argv is None else argv), is_program=argv is None)
        sys.stdout.flush()
    except MeshError as error:
        complain(str(error))
        return _exit_code(error)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        forget_stdout()
        return EXIT_FAILED
    except OSError as error:
        complain(str(error))
        forget_stdout()
        return EXIT_FAILED
    return code


def _run(argv: list[str], *, is_program: bool) -> int:
    # A node keeps what it imports for as long as it runs: of the other commands it needs nothing.
    parser, names = build_parser((_JOIN,) if argv[:1] == [_JOIN] else _GROUPS)
    if not argv:
        parser.print_help(sys.stderr)
        return EXIT_USAGE
    if not argv[0].startswith("-"):
        _check_command(argv[0], names)
    # What stands after -- belongs to the submitted command, whatever it looks like.
    words: list[str] = []
    if argv[:1] == ["submit"] and "--" in argv:
        split = argv.index("--")
        argv, words = argv[:split], argv[split + 1 :]
    try:
        options = parser.parse_args(argv)
    except SystemExit as done:  # --help and --version
        return int(done.code or 0)
    options.words, options.given = words, argv
    options.is_program = is_program
    del parser  # half a megabyte, which a node would keep as long as it runs
    code: int = options.handler(options)
    return code


def _check_command(name: str, names: Sequence[str]) -> None:
    if name not in names:
        from mesh.cli.hints import unknown_command

        raise ConfigError(unknown_command(name, names))


def _exit_code(error: MeshError) -> int:
    if isinstance(error, ConfigError):
        return EXIT_USAGE
    return EXIT_UNREACHABLE if isinstance(error, MeshUnreachable) else EXIT_FAILED
