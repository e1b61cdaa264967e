"""A contest as it is told: to whoever asks why, in a message, and to people and programs, in JSON.

Source: our own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mesh.contest.caller import GONE, Said, Story
from mesh.contest.weighing import shown
from mesh.core.ids import NodeId
from mesh.wire.contest_messages import CALLED_MAX, ROUND_MAX, SAID_MAX, SCORE_MAX, Contest, Word
from mesh.wire.task_messages import Decline


def told(story: Story, unix_offset_s: float) -> Contest:
    """Return a story as a message tells it: of a large contest the first that were called, and the first words."""
    return Contest(
        attempt=story.attempt,
        at_ms=max(0, round((story.at + unix_offset_s) * 1e3)),
        window_us=_us(story.window_s),
        rounds=min(story.rounds, ROUND_MAX),
        is_first_window=story.is_first_window,
        is_over=story.is_over,
        called=tuple((one, round(score * SCORE_MAX)) for one, score in story.called[:CALLED_MAX]),
        said=tuple(map(_word, story.said[:SAID_MAX])),
        winner=story.winner,
        after_us=None if story.after_s is None else _us(story.after_s),
        weights=story.weights,
    )


def contest_json(
    task_id: str, caller: str, contest: Contest, name_of: Callable[[NodeId], str]
) -> dict[str, Any]:
    """Return a contest as programs see it; `caller` is the name of the voter that held it."""
    return {
        "task_id": task_id,
        "attempt": contest.attempt,
        "caller": caller,
        "at": contest.at_ms / 1e3,
        "window_ms": contest.window_us / 1e3,
        "rounds": contest.rounds,
        "first_window": contest.is_first_window,
        "under_way": not contest.is_over,
        "called": [
            {"member": name_of(node_id), "expected": round(score / SCORE_MAX, 3)}
            for node_id, score in contest.called
        ],
        "said": [
            {
                "after_ms": word.after_us / 1e3,
                "member": name_of(word.node_id),
                "score": None if word.score is None else round(word.score / SCORE_MAX, 3),
                "parts": {name: round(value / 255, 2) for name, value in word.parts},
                "declined": None if word.score is not None else _reason(word.decline),
            }
            for word in contest.said
        ],
        "winner": None if contest.winner is None else name_of(contest.winner),
        "after_ms": None if contest.after_us is None else contest.after_us / 1e3,
        "weights": shown(contest.weights),
        "default_weights": not contest.weights,
    }


def _reason(decline: Decline) -> str:
    return "gone" if decline is GONE else decline.name.lower()


def _word(said: Said) -> Word:
    return Word(
        after_us=_us(said.after_s),
        node_id=said.node_id,
        score=None if said.score is None else round(said.score * SCORE_MAX),
        parts=tuple((name, round(value * 255)) for name, value in said.parts),
        decline=Decline.NONE if said.score is not None else said.decline,
    )


def _us(seconds: float) -> int:
    return max(0, round(seconds * 1e6))
