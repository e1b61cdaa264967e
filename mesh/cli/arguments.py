"""The grammar that all commands share: the parser, its errors, and how single values are read.

Every wrong value raises a ConfigError that says what was expected, what was found and what to do;
`main` prints it as one line. Nothing here imports more than argparse: `mesh --help` has to be quick.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn, TypeAlias, TypeVar

from mesh.core.limits import AMOUNT_MAX
from mesh.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

# argparse gives this type no public name.
Commands: TypeAlias = "argparse._SubParsersAction[Parser]"  # noqa: SLF001
Handler: TypeAlias = Callable[[argparse.Namespace], int]

T = TypeVar("T")


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are ConfigErrors, so that they look like all others."""

    def __init__(self, **settings: object) -> None:
        settings.setdefault("allow_abbrev", False)
        super().__init__(**settings)  # type: ignore[arg-type]  # handed on as they came

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201 - argparse has no types that fit
        """Parse as argparse does; words that nobody knows end it here, where the command is known."""
        given = sys.argv[1:] if args is None else list(args)
        found, extra = super().parse_known_args(given, namespace)
        if extra:
            from mesh.cli.hints import unknown_words

            raise ConfigError(unknown_words(self.prog, self._option_string_actions, given, extra))
        return found, extra

    def error(self, message: str) -> NoReturn:
        """Raise the ConfigError for `message` in place of printing a usage and leaving."""
        raise ConfigError(f"{message}; see {self.prog} --help")


def add_command(commands: Commands, name: str, handler: Handler, text: str) -> Parser:
    """Add one command with its handler; `text` is its line in `mesh --help`."""
    parser = commands.add_parser(name, help=text, description=text[:1].upper() + text[1:] + ".")
    parser.set_defaults(handler=handler)
    return parser


def add_data(parser: Parser) -> None:
    """Add `--data`: which node of this host is meant."""
    parser.add_argument(
        "--data",
        metavar="DIR",
        action="append",
        help="the node's data directory (default: $MESH_DATA, else ~/.local/share/mesh)",
    )


def add_json(parser: Parser, text: str = "print JSON for programs") -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help=text)


def data_dirs(options: argparse.Namespace) -> tuple[Path, ...]:
    """Return the data directories that the user means, in order: each `--data`, else $MESH_DATA or the default."""
    from mesh.client import default_data_dirs

    if options.data:
        return tuple(user_path("--data", one) for one in options.data)
    return default_data_dirs()


def data_dir(options: argparse.Namespace) -> Path:
    """Return the one data directory that the user means: the last `--data`, else $MESH_DATA or the default.

    Raises:
        ConfigError: $MESH_DATA names several.
    """
    found = data_dirs(options)
    if len(found) > 1 and not options.data:
        raise ConfigError(
            f"one data directory is expected, found {len(found)} in MESH_DATA: {', '.join(map(str, found))}; name one "
            "with --data"
        )
    return found[-1]


def user_path(flag: str, text: str) -> Path:
    """Return the path that a user wrote, with `~` and `~NAME` replaced by that user's home."""
    from pathlib import Path

    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise ConfigError(
            f"{flag} expects a path, found {text!r}, whose home nobody knows; write the path in full"
        ) from error


def is_number(text: str) -> bool:
    """Say whether these are digits, few enough that int() takes them."""
    return re.fullmatch(r"[0-9]{1,20}", text) is not None


def whole_number(flag: str, low: int, high: int) -> Callable[[str], int]:
    """Return the reader of a whole number from `low` to `high`, both inclusive."""

    def read(text: str) -> int:
        if is_number(text) and low <= int(text) <= high:
            return int(text)
        raise ConfigError(f"{flag} expects a whole number from {low} to {high}, found {text!r}")

    return read


def decimal(flag: str, low: float, high: float) -> Callable[[str], float]:
    """Return the reader of a number from `low` to `high`, both inclusive."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if low <= value <= high:
            return value
        raise ConfigError(f"{flag} expects a number from {low:g} to {high:g}, found {text!r}")

    return read


def pair(flag: str) -> Callable[[str], tuple[str, str]]:
    """Return the reader of one KEY=VALUE; the value may be empty and may hold `=`."""

    def read(text: str) -> tuple[str, str]:
        key, equals, value = text.partition("=")
        if key and equals:
            return key, value
        if equals:
            raise ConfigError(
                f"{flag}: a key is missing before '=' in {text!r}; write {flag} KEY={value or 'VALUE'}"
            )
        example = f"{key or 'KEY'}=VALUE"
        raise ConfigError(f"{flag} expects KEY=VALUE, found {text!r}; write {flag} {example}")

    return read


def amount(flag: str) -> Callable[[str], tuple[str, int]]:
    """Return the reader of one KEY=NUMBER."""
    read_pair = pair(flag)

    def read(text: str) -> tuple[str, int]:
        if text and "=" not in text:
            raise ConfigError(f"{flag} expects KEY=NUMBER, found {text!r}; write {flag} {text}=1")
        key, value = read_pair(text)
        if is_number(value) and int(value) <= AMOUNT_MAX:
            return key, int(value)
        raise ConfigError(
            f"{flag} expects KEY=NUMBER with a whole number up to {AMOUNT_MAX}, found {text!r}; "
            f"write for instance {flag} {key}=1"
        )

    return read


def distinct(flag: str, pairs: Sequence[tuple[str, T]]) -> dict[str, T]:
    """Return pairs as a mapping.

    Raises:
        ConfigError: one key was given twice.
    """
    found: dict[str, T] = {}
    for key, value in pairs:
        if key in found:
            raise ConfigError(
                f"{flag} expects each key once, found {key!r} twice; give it one value"
            )
        found[key] = value
    return found


def network_address(flag: str, *, is_bind: bool = False) -> Callable[[str], str]:
    """Return the reader of HOST:PORT. Port 0 (any free one) is for binding only."""

    def read(text: str) -> str:
        from mesh.core.address import split_host_port

        port_only = text.removeprefix(":")
        if is_number(port_only) and int(port_only) <= 65_535:
            raise ConfigError(
                f"{flag}: HOST:PORT is expected, found {text!r}; write 127.0.0.1:{port_only}"
            )
        try:
            host, port = split_host_port(text)
        except ConfigError as error:
            raise ConfigError(f"{flag}: {error}; write for instance 127.0.0.1:7946") from None
        if not host or not all(char.isalnum() or char in "-._:%" for char in host):
            raise ConfigError(
                f"{flag}: a host name or an address is expected before the port, found {text!r}; "
                "write for instance 127.0.0.1:7946"
            )
        if port == 0 and not is_bind:
            raise ConfigError(
                f"{flag}: a port from 1 to 65535 is expected, found {text!r}; "
                "port 0 (any free one) is for --bind only"
            )
        return text

    return read
