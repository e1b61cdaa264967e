"""Options that the last start of a node had and this one has not: a data directory keeps few of them.

Source: our own.
"""

from __future__ import annotations

import shlex
from typing import Final

_KEPT: Final = frozenset({"--name", "--key", "--data", "--found", "--expect", "--headless"})
"""What need not be said again: a data directory keeps it, or it is about one start alone."""


def left_out(last: str, now: str) -> str:
    """Return the options that the shell line of the last start has and that of this one has not, apart by commas.

    "" if none is missing, or one of the lines is not known, or is none.
    """
    if not last or not now:
        return ""
    try:
        before, given = _options_in(last), _options_in(now)
    except ValueError:
        return ""
    return ", ".join(one for one in before if one not in given and one not in _KEPT)


def _options_in(line: str) -> list[str]:
    words = shlex.split(line, comments=True)
    return list(dict.fromkeys(word.partition("=")[0] for word in words if word.startswith("--")))
