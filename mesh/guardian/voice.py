"""What the guardian says on stderr: each thing once, and only where nobody has to be waited for."""

from __future__ import annotations

import os
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_SAID_MAX: Final = 64


class Voice:
    """Says things. A guardian that waited for its reader would miss its deadlines."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def complain(self, text: str) -> None:
        """Say something, if it is new and somebody listens."""
        ear = select.poll()
        ear.register(2, select.POLLOUT)
        if text in self._said or len(self._said) >= _SAID_MAX or not ear.poll(0):
            return
        self._said.add(text)
        try:
            os.write(2, f"mesh guardian: {text}\n".encode())
        except OSError:
            return  # nobody hears it
