"""What is said to somebody who wrote nearly the right thing: the line that was meant, as far as one can guess."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from typing import Final

_OTHER_WORDS: Final = {
    "start": "join", "up": "join", "stop": "leave", "rerun": "retry", "requeue": "retry", "down": "leave", "quit": "leave",
    "nodes": "members", "ls": "members", "list": "tasks", "ps": "tasks", "jobs": "tasks",
    "run": "submit", "exec": "submit", "kill": "cancel", "log": "events", "logs": "events",
    "watch": "top", "info": "status", "explain": "why", "remove": "forget", "rm": "forget", "evict": "forget",
}  # fmt: skip
"""What other programs call these things."""

_SEED_FLAGS: Final = ("--seed", "--seeds", "--join", "--peer", "--peers")


def closest(word: str, known: Collection[str]) -> str:
    """Return what among `known` was probably meant, or ""."""
    from difflib import get_close_matches

    found = get_close_matches(word.lower(), known, n=1, cutoff=0.65)
    return found[0] if found else ""


def unknown_command(word: str, commands: Sequence[str]) -> str:
    """Say that there is no such command, and which was meant."""
    meant = closest(word, commands) or _OTHER_WORDS.get(word.lower(), "")
    if meant:
        return f"there is no command {word!r}: did you mean mesh {meant}? see mesh --help"
    return f"a command is one of {', '.join(commands)}; found {word!r}; see mesh --help"


def unknown_words(
    program: str, known: Collection[str], given: Sequence[str], extra: Sequence[str]
) -> str:
    """Say what to do about the words `extra` of the command line `given`, which `program` does not know.

    `known` are its options; `program` is "mesh", or "mesh" and a command.
    """
    first = extra[0]
    option = first.partition("=")[0]
    if program == "mesh":
        rest = shlex.join(word for word in given if word != first)
        return f"{first} stands before the command: options go after it, as in mesh {rest} {first}"
    if program == "mesh submit" and not first.startswith("-"):
        split = given.index(first)
        before, command = given[:split], given[split:]
        return (
            f"the command goes after --: {shlex.join(['mesh', 'submit', *before, '--', *command])}"
        )
    if program == "mesh join" and option in _SEED_FLAGS:
        return f"seeds are plain arguments: mesh join {_without_seed_flags(given)}"
    if not option.startswith("-"):
        return f"{program} takes no argument {first!r}; see {program} --help"
    meant = closest(option, known)
    guess = f": did you mean {meant}?" if meant else ";"
    return f"{program} has no option {option}{guess} see {program} --help"


def shell_line(words: Sequence[str]) -> str:
    """Return what to write for a command that holds a whole shell line in one word, or ""."""
    if " " not in words[0].strip():
        return ""
    return f"a shell line? mesh submit -- sh -c {shlex.quote(' '.join(words))}"


def _without_seed_flags(given: Sequence[str]) -> str:
    words: list[str] = []
    for word in given:
        flag, equals, value = word.partition("=")
        if flag not in _SEED_FLAGS:
            words += word.split(",") if "=" not in word else [word]
        elif equals:
            words += value.split(",")
    return shlex.join(words) or "HOST:PORT"
