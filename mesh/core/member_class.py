"""What a member is for, in words: its class, the queues that it is dedicated to, and whether it takes work."""

from __future__ import annotations

from collections.abc import Sequence


def class_words(node_class: str, queues: Sequence[str], availability: str) -> str:
    """Return such as `general`, `dedicated to video, audio`, `emergency (standby)`, `general (unfit)`.

    `availability` as people see it; "open", and "" where it is not known, are not said.
    """
    words = f"{node_class} to {', '.join(queues)}" if queues else node_class
    return words if availability in {"", "open"} else f"{words} ({availability})"
