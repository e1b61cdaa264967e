"""Bytes that a terminal sends become names of keys, in whatever pieces they arrive.

An arrow is three bytes that may come in two reads; a lone escape byte may be the Escape key or the
start of such a sequence. So an unfinished sequence is held until more bytes come, or until the caller
says that none came for a while. Sequences that mean nothing to us are swallowed whole, so that their
letters are never taken for keys.
"""

from __future__ import annotations

import codecs
from typing import Final

ESCAPE_WAIT_S: Final = 0.05
"""How long after an escape byte the rest of its sequence may take."""

_SEQUENCE_CHARS_MAX: Final = 32

_CONTROLS: Final = {
    "\t": "tab",
    "\r": "enter",
    "\n": "enter",
    "\x03": "ctrl_c",
    "\x0c": "ctrl_l",
    "\x7f": "backspace",
    "\x08": "backspace",
}

_SEQUENCES: Final = {
    "A": "up",
    "B": "down",
    "C": "right",
    "D": "left",
    "F": "end",
    "H": "home",
    "Z": "back_tab",
    "1~": "home",
    "4~": "end",
    "5~": "page_up",
    "6~": "page_down",
    "7~": "home",
    "8~": "end",
}


class Keys:
    """Decodes key presses; holds at most one unfinished sequence."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._held = ""

    def feed(self, data: bytes) -> list[str]:
        """Take bytes and return the keys that they complete: names, or the characters themselves."""
        self._held += self._decode(data)
        keys = []
        while self._held:
            length = _sequence_length(self._held)
            if length is None:
                break
            key = _name(self._held[:length])
            self._held = self._held[length:]
            if key:
                keys.append(key)
        return keys

    @property
    def is_waiting(self) -> bool:
        """Say whether a sequence is unfinished: call `flush` when nothing comes for `ESCAPE_WAIT_S`."""
        return bool(self._held)

    def flush(self) -> list[str]:
        """Give up on the unfinished sequence: alone, an escape byte was the Escape key."""
        held, self._held = self._held, ""
        return ["escape"] if held == "\x1b" else []


def _sequence_length(text: str) -> int | None:
    """Return how many characters of `text` are its first key, None while that is not known."""
    if text[0] != "\x1b":
        return 1
    if len(text) == 1:
        return None
    if text[1] == "\x1b":
        return 1
    if text[1] == "O":
        return 3 if len(text) > 2 else None
    if text[1] != "[":
        return 2
    for index, char in enumerate(text[2:], start=2):
        if "@" <= char <= "~":
            return index + 1
        if index >= _SEQUENCE_CHARS_MAX or not " " <= char <= "?":
            return index
    return None


def _name(sequence: str) -> str:
    """Return the key's name, "" when it has none that we know."""
    if sequence == "\x1b":
        return "escape"
    if sequence[0] == "\x1b":
        return _SEQUENCES.get(sequence[2:], "")
    return _CONTROLS.get(sequence, sequence if sequence.isprintable() else "")
