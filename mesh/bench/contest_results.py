"""What `mesh bench contest` has measured: a JSON shape that programs may rely on, and a table for people.

A row tells of one scheme in one mesh. Shares and losses are from 0 to 1, times in milliseconds; what was never
reached is null.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from mesh.bench.contest_world import Contested, Setting
from mesh.bench.ledger import percentile
from mesh.bench.plain_contest import Outcome
from mesh.contest.rank import bucket

MESH: Final = "mesh"
PLAIN: Final = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One scheme, in one mesh."""

    scheme: str
    nodes: int
    network: str
    loss: float
    contests: int
    granted: int
    """Those in which somebody got the task."""

    bids: float | None
    """Bids, or answers, in each, the mean."""

    fittest: float | None
    """The share in which nobody of the whole mesh was in a higher bucket of fitness than the winner."""

    fittest_of_called: float | None
    """The same among those who were called."""

    grant_ms: float | None
    """From the call until the winner's process began, the median. Plain: until somebody took the task."""

    grant_p95_ms: float | None
    first_window: float | None
    """The share that ended in a grant within their first window."""

    start_ms: float | None
    """From the submission until the process began, the median. Plain has no submission."""

    two_owners: int
    """Tasks that two had at once, or one attempt that was started twice, or a token that did not rise."""

    def to_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            name: round(value, 4) if isinstance(value, float) else value
            for name, value in asdict(self).items()
        }


def mesh_result(
    setting: Setting, contests: Sequence[Contested], starts_s: Sequence[float], two_owners: int
) -> Result:
    """Return what these contests of a mesh came to."""
    won = [one for one in contests if one.winner is not None]
    grants_ms = [1000 * one.grant_s for one in won if one.grant_s is not None]
    p95_ms = percentile(grants_ms, 0.95)
    return Result(
        scheme=MESH,
        nodes=setting.nodes,
        network=setting.network,
        loss=setting.loss_ratio,
        contests=len(contests),
        granted=len(won),
        # Whoever won has bid, be it that the word of it was lost on its way to who counts.
        bids=_mean([max(1, one.bids) for one in won]),
        fittest=_mean([is_fittest(one.scores, one.winner) for one in won]),
        fittest_of_called=_mean([is_fittest(one.scores, one.winner, one.called) for one in won]),
        grant_ms=_median(grants_ms),
        grant_p95_ms=p95_ms,
        first_window=_mean([one.is_first_window for one in won]),
        start_ms=_median([1000 * one for one in starts_s]),
        two_owners=two_owners,
    )


def plain_result(
    setting: Setting, contests: Sequence[Contested], outcomes: Sequence[Outcome]
) -> Result:
    """Return what the plain scheme made of the same contests, played once for each."""
    pairs = list(zip(contests, outcomes, strict=True))
    fittest = _mean([is_fittest(one.scores, out.owners[0]) for one, out in pairs if out.owners])
    grants_ms = [1000 * out.grant_s for out in outcomes if out.grant_s is not None]
    return Result(
        scheme=PLAIN,
        nodes=setting.nodes,
        network=setting.network,
        loss=setting.loss_ratio,
        contests=len(outcomes),
        granted=len(grants_ms),
        bids=_mean([out.answers for out in outcomes]),
        fittest=fittest,
        fittest_of_called=fittest,
        grant_ms=_median(grants_ms),
        grant_p95_ms=percentile(grants_ms, 0.95),
        first_window=None,
        start_ms=None,
        two_owners=sum(len(out.owners) > 1 for out in outcomes),
    )


def is_fittest(
    scores: Sequence[float | None], winner: int | None, among: Sequence[int] | None = None
) -> bool:
    """Say whether nobody, of all or of these, was in a higher bucket than the winner, by what was true at the call."""
    own = None if winner is None else scores[winner]
    if own is None:
        return False  # it had no slot then, and should not have been the one
    others = scores if among is None else [scores[one] for one in among]
    return all(score is None or bucket(score) <= bucket(own) for score in others)


def contest_json(settings: Mapping[str, Any], results: Sequence[Result]) -> dict[str, Any]:
    """Return the JSON shape."""
    return {"settings": dict(settings), "results": [one.to_json() for one in results]}


_COLUMNS: Final[tuple[tuple[str, Callable[[Result], str]], ...]] = (
    ("scheme", lambda r: r.scheme),
    ("members", lambda r: str(r.nodes)),
    ("network", lambda r: r.network),
    ("loss", lambda r: f"{100 * r.loss:g} %"),
    ("contests", lambda r: str(r.contests)),
    ("bids", lambda r: _shown(r.bids, "{:.2f}")),
    ("fittest wins", lambda r: _shown(r.fittest, "{:.1%}")),
    ("of those called", lambda r: _shown(r.fittest_of_called, "{:.1%}")),
    ("granted, ms", lambda r: _shown(r.grant_ms, "{:.1f}")),
    ("p95, ms", lambda r: _shown(r.grant_p95_ms, "{:.1f}")),
    ("first window", lambda r: _shown(r.first_window, "{:.1%}")),
    ("submitted to started, ms", lambda r: _shown(r.start_ms, "{:.1f}")),
    ("two owners", lambda r: str(r.two_owners)),
)


def contest_text(results: Sequence[Result]) -> str:
    """Return the table, in Markdown."""
    rows = [[title for title, _ in _COLUMNS], ["---"] * len(_COLUMNS)]
    rows += [[show(result) for _, show in _COLUMNS] for result in results]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def result_line(result: Result) -> str:
    """Return one result as one line."""
    return (
        f"{result.scheme:<5}  {result.nodes:>4} members  {result.network}  {100 * result.loss:g} % lost: "
        f"{_shown(result.bids, '{:.2f}')} bids, the fittest in {_shown(result.fittest, '{:.1%}')}, granted after "
        f"{_shown(result.grant_ms, '{:.1f}')} ms, two owners {result.two_owners} of {result.contests}"
    )


def _shown(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None
