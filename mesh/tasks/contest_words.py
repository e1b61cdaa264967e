"""How a contest went, in words: who was called, who bid and on what grounds, who kept silent, who was granted the task.

    contest_json ──► `mesh why`, the screen: the same words in both

They read a contest's JSON, of which every key is there and of its type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

Contest: TypeAlias = dict[str, Any]

CALLED_SHOWN: Final = 8
_PARTS: Final = {
    "free_slots": "free slots",
    "cpu": "processors idle now",
    "match": "match",
    "lag": "loop on time",
    "history": "such tasks went well",
    "checkpoint": "holds the checkpoint",
    "warm": "app loaded",
    "distance": "near the voters",
    "zone": "zone",
}
_DECLINES: Final = {
    "busy": "no slot was free any more",
    "unsuited": "it cannot run this",
    "draining": "its node is leaving",
    "taken": "it knew somebody to have it",
    "over": "it knew it to be over",
    "gone": "it seemed gone",
    "unsure": "it could not renew at a majority of the task's voters",
}


def contest_words(contest: Contest) -> str:
    """Return what happened, in one sentence."""
    called = contest["called"]
    names = _listed([f"{one['member']} ({one['expected']:.2f})" for one in called])
    return f"{contest['caller']} called for attempt {contest['attempt']}: {names}"


def contest_evidence(contest: Contest) -> list[str]:
    """Return what each of them said, in order, and what came of it."""
    lines = [_word(word) for word in contest["said"]]
    bids = [word for word in contest["said"] if word["score"] is not None]
    spoke = {word["member"] for word in contest["said"]}
    spoke.add(contest["winner"])  # whose bid may have been lost on the way here
    silent = [one["member"] for one in contest["called"] if one["member"] not in spoke]
    if silent and bids:
        why = "a fitter one was heard first, or its word was lost"
        lines.append(f"{_listed(silent)} said nothing: {why}")
    if bids and not contest["default_weights"]:
        weights = ", ".join(f"{_PARTS.get(n, n)} {w:g}" for n, w in contest["weights"].items() if w)
        lines.append(f"weighed as the queue has it: {weights}")
    return [*lines, _end(contest)]


def decline_reason(declined: str) -> str:
    """Return why a member did not bid; a reason that is not known as it is."""
    return _DECLINES.get(declined, declined)


def parts_text(parts: Mapping[str, float]) -> str:
    """Return what a score is made of; a part that is not known as it is."""
    return ", ".join(f"{_PARTS.get(name, name)} {value:.2f}" for name, value in parts.items())


def _end(contest: Contest) -> str:
    if contest["winner"] is None:
        return "it is under way" if contest["under_way"] else "nobody took it"
    after_ms = contest["after_ms"]
    seen = "" if after_ms is None else f", seen {after_ms:.1f} ms after the call"
    rounds = contest["rounds"]
    within = "" if contest["first_window"] or rounds < 2 else f", after {rounds} rounds of calls"
    return f"granted to {contest['winner']}{_why_not_the_highest(contest)}{seen}{within}"


def _why_not_the_highest(contest: Contest) -> str:
    """Return why a lower bid won, if one did."""
    scores = {
        word["member"]: word["score"] for word in contest["said"] if word["score"] is not None
    }
    won = scores.get(contest["winner"])
    is_highest = won is None or won >= max(scores.values())
    return "" if is_highest else ", whose claim reached a majority first"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - CALLED_SHOWN} more" if len(names) > CALLED_SHOWN else ""
    return f"{', '.join(names[:CALLED_SHOWN])}{more}"


def _word(word: Contest) -> str:
    after = f"after {word['after_ms']:.1f} ms"
    if word["score"] is None:
        return f"{word['member']} declined {after}: {decline_reason(word['declined'])}"
    parts = parts_text(word["parts"])
    return f"{word['member']} bid {word['score']:.2f} {after}" + (f" ({parts})" if parts else "")
