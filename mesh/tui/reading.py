"""The node's JSON read with care: a key that is missing or of another type is an empty value.

A screen of an older version must still show a newer node, and nothing that comes in is shown as it is:
every text is cleaned here, once.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Final, TypeAlias

from mesh.tui.cells import TEXT_CHARS_MAX, clean

Json: TypeAlias = Mapping[str, object]

_ARGUMENTS_MAX: Final = 12
_SAFE_ARGUMENT: Final = re.compile(r"[\w@%+=:,./-]+")
_NUMBER_MAX: Final = 1e19
"""Unix time in ns and every signed 64-bit integer lie below it; what does not is no value."""


def text(source: Json, key: str, chars_max: int = TEXT_CHARS_MAX) -> str:
    """Return the cleaned text at `key`, "" when there is none."""
    value = source.get(key)
    return clean(value, chars_max) if isinstance(value, str) else ""


def number(source: Json, key: str) -> float | None:
    """Return the number at `key`, or None."""
    value = source.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < _NUMBER_MAX else None


def whole(source: Json, key: str) -> int | None:
    """Return the number at `key` as an integer, or None."""
    value = number(source, key)
    return None if value is None else int(value)


def mapping(value: object) -> Json:
    """Return `value` if it is a map, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def listing(value: object) -> list[object]:
    """Return `value` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def command_text(argv: object) -> str:
    """Return an argument list as one would type it; long lists are cut."""
    words = []
    arguments = listing(argv)
    for argument in arguments[:_ARGUMENTS_MAX]:
        word = clean(argument) if isinstance(argument, str) else "?"
        words.append(word if _SAFE_ARGUMENT.fullmatch(word) else shlex.quote(word))
    if len(arguments) > _ARGUMENTS_MAX:
        words.append("…")
    return " ".join(words)


def texts(value: object, count_max: int = 32, chars_max: int = TEXT_CHARS_MAX) -> tuple[str, ...]:
    """Return the cleaned texts of a list, at most `count_max`; what is no text is left out."""
    items = listing(value)[:count_max]
    return tuple(clean(item, chars_max) for item in items if isinstance(item, str))


def prose(source: Json, key: str, lines_max: int = 200) -> tuple[str, ...]:
    """Return the lines of the text at `key`, cleaned; the last `lines_max` of them."""
    value = source.get(key)
    lines = value.splitlines() if isinstance(value, str) else []
    return tuple(clean(line.expandtabs(4)) for line in lines[-lines_max:])
