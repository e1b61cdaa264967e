"""How one run of a shell line ended, in words that a person can act on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run."""

    is_ok: bool
    """It exited with 0."""

    how: str
    """`exit code 3`, `ended by SIGSEGV`, `took longer than 10 s`, or why it was not started."""

    last_line: str = ""
    """The last line that it wrote, printable and bounded; "": nothing."""

    @property
    def text(self) -> str:
        """Return both in one line."""
        return f"{self.how}: {self.last_line}" if self.last_line else self.how
