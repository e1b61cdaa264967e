"""How a contest went, in words: who was called, who bid and on what grounds, who kept silent, who was granted the task."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

Contest: TypeAlias = dict[str, Any]

CALLED_SHOWN: Final = 8
_PARTS: Final = {
    "free_slots": "free slots",
    "cpu": "idle processors",
    "match": "match",
    "lag": "loop on time",
    "history": "history",
    "checkpoint": "holds the checkpoint",
    "warm": "app loaded",
    "distance": "near the voters",
    "zone": "zone",
}
_DECLINES: Final = {
    "busy": "no slot was free any more",
    "unfit": "it cannot run this",
    "draining": "its node is leaving",
    "taken": "it knew somebody to have it",
    "over": "it knew it to be over",
    "unsure": "it could not renew at a majority of the task's voters",
}


def contest_words(contest: Contest) -> str:
    """Return what happened, in one sentence."""
    called = contest["called"]
    names = ", ".join(f"{one['member']} ({one['expected']:.2f})" for one in called[:CALLED_SHOWN])
    more = f" and {len(called) - CALLED_SHOWN} more" if len(called) > CALLED_SHOWN else ""
    return f"{contest['caller']} called for attempt {contest['attempt']}: {names}{more}"


def contest_evidence(contest: Contest) -> list[str]:
    """Return what each of them said, in order, and what came of it."""
    lines = [_word(word) for word in contest["said"]]
    bids = [word for word in contest["said"] if word["score"] is not None]
    spoke = {word["member"] for word in contest["said"]}
    silent = [one["member"] for one in contest["called"] if one["member"] not in spoke]
    if silent and bids:
        kept = "kept silent, as a fitter one had spoken"
        lines.append(f"{', '.join(silent[:CALLED_SHOWN])} {kept}: {bids[0]['member']}")
    if contest["winner"] is None:
        lines.append("nobody took it" if contest["rounds"] else "it is under way")
        return lines
    within = "" if contest["first_window"] else f", in round {contest['rounds']}"
    lines.append(
        f"granted to {contest['winner']}, seen {contest['after_ms']:.1f} ms after the call{within}"
    )
    return lines


def _word(word: Contest) -> str:
    after = f"after {word['after_ms']:.1f} ms"
    if word["score"] is None:
        return f"{word['member']} declined {after}: {_DECLINES.get(word['declined'], word['declined'])}"
    parts = ", ".join(
        f"{_PARTS.get(name, name)} {value:.2f}" for name, value in word["parts"].items()
    )
    return f"{word['member']} bid {word['score']:.2f} {after}" + (f" ({parts})" if parts else "")
