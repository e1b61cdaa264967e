"""The shell line that starts a node again, as people may see it: without the commands of its hooks.

    mesh join --on-shortage 'call-cloud --token SECRET' host1  ──►  mesh join --on-shortage … host1

Such a command may hold a secret, and the line is shown in `mesh status`, in logs and in hints. The data directory keeps
all of it, for its owner alone.
"""

from __future__ import annotations

import shlex
from typing import Final

HOOK_FLAGS: Final = ("--health-check", "--on-shortage")
HIDDEN: Final = "…"


def shown_line(line: str) -> str:
    """Return a line with each hook's command as `…`; any other line as it is.

    Raises:
        ValueError: it is no line of a shell: a quotation has no end.
    """
    shown, hides_next = [], False
    for word in shlex.split(line):
        flag, is_joined, _ = word.partition("=")
        if hides_next:
            shown.append(HIDDEN)
        elif flag in HOOK_FLAGS and is_joined:
            shown.append(f"{flag}={HIDDEN}")
        else:
            shown.append(shlex.quote(word))
        hides_next = not hides_next and word in HOOK_FLAGS
    return " ".join(shown) if HIDDEN in "".join(shown) else line
