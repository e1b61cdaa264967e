"""The order in which people expect names: n2 before n10, everywhere the same.

A node that was given no name takes its host's, and adds four hexadecimal digits when another one has it:
`vm-8031`, `vm-9c3e`. These are no numbers, and stand as text.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

Part: TypeAlias = tuple[int, int, str]

_DIGITS: Final = re.compile(r"(\d+)")
_TAIL: Final = re.compile(r"[-~][0-9a-f]{4}\Z")


def natural(name: str) -> tuple[Part, ...]:
    """Return a sort key by which n2 stands before n10, and a name before its namesakes with a tail."""
    tail = _TAIL.search(name)
    parts = _DIGITS.split(name[: tail.start()] if tail else name)
    key = [_part(part) for part in parts if part]
    return (*key, (1, 0, tail.group())) if tail else tuple(key)


def _part(text: str) -> Part:
    return (0, int(text), "") if text.isdecimal() and text.isascii() else (1, 0, text)
