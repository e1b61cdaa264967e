"""How long a member waits before it bids, so that the fittest speaks first and the others need not speak.

    rank 1  ▓░                                      ▓ from here …  ░ … to here, by lot: a tenth of c
    rank 2       ────────────▓░                     0.55 c later
    rank 3       ─────────────────────▓░            0.90 c
    rank 4       ────────────────────────────▓░     1.16 c
            0         bid ├── D ──► heard           whoever hears a better bid in time keeps silent

The steps shrink with the rank: the later ones wait for the bids of all before them. Up to the tenth rank nobody's
span touches the next; a lot parts those that take themselves for the same rank, a little.

c begins as two one-way delays, more where the hosts are loaded. That may be too short, since D is no upper bound and
the call itself comes later to one than to another; or too long, since most messages are quicker than D. How much
depends on how delays scatter, so it is measured: a `Window` counts bids, and widens c where too many are made, or
narrows it where hardly a second one is: all of it delays a task whose best candidate is dead.

    bids in a contest   > 1.3: wider, by 2 %  │  1.1 to 1.3: so be it  │  < 1.1: narrower, by 2 %
    factor on c         1/8 ◄───────────────────────────────────────────► 8

Four bidders that know their ranks, with delays spread exponentially around D, make 1.73 bids at the factor 1. From
either bound the factor comes to about 2.3 within 250 contests, wanders between 1.4 and 4 by chance, and 1.2 bids
are made on average; with 100 bidders as well (`tests/unit/contest/test_window.py`). Where ranks are misjudged no window
helps, since two that take themselves for the first are parted by the lot alone: the factor then stands at its bound.
So whoever calls widens no window beyond what a grant takes (`tasks/calling.py`): what it spares is claims in vain.

Source: our own.
"""

from __future__ import annotations

from math import log1p
from typing import Final

from mesh.contest.bounds import within
from mesh.errors import LocalProtocolError

C_S_MIN: Final = 0.001
"""c is never less, in seconds: timers and schedulers of a process are not more exact than that."""

LOAD_CAP: Final = 1.6
"""A load beyond this, 1 being all processors busy, lengthens c no further: it is 6 D then, without the factor."""

BIDS_MIN: Final = 1.1
BIDS_MAX: Final = 1.3
"""So many bids a contest costs when its window is right."""

FACTOR_MIN: Final = 1 / 8
FACTOR_MAX: Final = 8.0
"""The bounds of the factor on c. Both are far from what any spread of delays needs, if D is half a round trip."""

SUCCESS_MIN: Final = 0.85
SUCCESS_MAX: Final = 0.95
"""The share of contests that should end in a grant within their first window."""

BIDS_NOTED_MAX: Final = 4
"""More bids than this count as so many: one contest to which all were called says too little to undo fifty others."""

CONTESTS_MIN: Final = 32
"""Before so many contests there is no advice: what a few of them say is chance."""

_RANK_WEIGHT: Final = 0.73
_JITTER: Final = 0.1
_LOAD_UNIT: Final = 0.8
# The factor moves by a third while the mean catches up with it (16 contests of 2 %): less than the band allows.
_STEP: Final = 1.02
_BIDS_SMOOTHING: Final = 1 / 16
_SUCCESS_SMOOTHING: Final = 1 / 64


def delay_s(rtt_p99_s: float) -> float:
    """Return D, the one-way delay to reckon with, in seconds: half the 99th percentile of the round trip.

    Raises:
        LocalProtocolError: the round trip is no number of 0 or more.
    """
    return within("rtt_p99_s", rtt_p99_s, 0) / 2


def base_s(d_s: float, load: float) -> float:
    """Return c, in seconds, before any `Window`: 2 D (1 + load / 0.8), at least 1 ms.

    Args:
        d_s: D, in seconds.
        load: of this host; 1 is all its processors busy. Beyond 1.6 it counts as 1.6.

    Raises:
        LocalProtocolError: one of them is no number of 0 or more.
    """
    loaded = 1 + min(within("load", load, 0), LOAD_CAP) / _LOAD_UNIT
    return max(C_S_MIN, 2 * within("d_s", d_s, 0) * loaded)


def wait_s(c_s: float, rank: int, u: float) -> float:
    """Return how long a member waits before it bids, in seconds: c ln(1 + 0.73 (rank - 1)) + 0.1 c u.

    Args:
        c_s: c, in seconds.
        rank: where it stands among those called; 1 is the best.
        u: drawn evenly from 0 (inclusive) to 1 (exclusive).

    Raises:
        LocalProtocolError: one of them is out of its bounds.
    """
    if not 0 <= u < 1:
        raise LocalProtocolError(
            f"contest u: a number from 0 to less than 1 is expected, found {u}"
        )
    behind = within("rank", rank, 1) - 1
    return within("c_s", c_s, 0) * (log1p(_RANK_WEIGHT * behind) + _JITTER * u)


class Window:
    """How wide the windows of one caller's contests are, by what became of them. All of it O(1).

    `factor` (1/8 to 8) multiplies c. `bids_mean` and `success` are exponentially weighted over about the last 16
    and 64 contests; before any they stand where they should be.
    """

    __slots__ = ("bids_mean", "contests", "factor", "success")

    def __init__(self) -> None:
        self.factor = 1.0
        self.bids_mean = (BIDS_MIN + BIDS_MAX) / 2
        """Bids in a contest in which anybody bid."""

        self.success = (SUCCESS_MIN + SUCCESS_MAX) / 2
        """The share of contests that ended in a grant within their first window."""

        self.contests = 0
        """Contests noted."""

    def c_s(self, base_s: float) -> float:
        """Return c, in seconds, for the next contest: at least 1 ms.

        Raises:
            LocalProtocolError: `base_s`, c before any window, is no number of 0 or more.
        """
        return max(C_S_MIN, within("base_s", base_s, 0) * self.factor)

    def note(self, bids: int, is_first_window: bool) -> None:
        """Take in how a contest of at least two candidates ended; with one, there was nobody to keep silent.

        Args:
            bids: how many were made in its first window. Without any, nothing is learned of the width: whoever was
                called is gone or cannot be heard, and a narrower window would not bring it back.
            is_first_window: whether it ended in a grant within its first window.

        Raises:
            LocalProtocolError: `bids` is below 0; nothing changed.
        """
        counted = min(within("bids", bids, 0), BIDS_NOTED_MAX)
        self.contests += 1
        self.success += _SUCCESS_SMOOTHING * (is_first_window - self.success)
        if not counted:
            return
        self.bids_mean += _BIDS_SMOOTHING * (counted - self.bids_mean)
        if self.bids_mean > BIDS_MAX:
            self.factor = min(FACTOR_MAX, self.factor * _STEP)
        elif self.bids_mean < BIDS_MIN:
            self.factor = max(FACTOR_MIN, self.factor / _STEP)

    def advice(self) -> str:
        """Return one sentence for people, what was found and what to do; "" where all is well, or too little is known."""
        if self.contests < CONTESTS_MIN or SUCCESS_MIN <= self.success <= SUCCESS_MAX:
            return ""
        found = f"{self.success:.0%} of contests end in a grant within their first window, 85 to 95 % are expected"
        if self.success > SUCCESS_MAX:
            return (
                f"{found}: windows are wider than they need to be; take the profile of a nearer network, or leave it "
                "so if tasks start soon enough"
            )
        if self.bids_mean <= BIDS_MAX:
            return (
                f"{found}, with {self.bids_mean:.1f} bids in each: bids or grants are lost or late, so look for "
                "packet loss and for hosts that are overloaded"
            )
        if self.factor < FACTOR_MAX:
            return (
                f"{found}, with {self.bids_mean:.1f} bids in each: windows are too narrow and are being widened; "
                "wait, and look again after some hundred contests"
            )
        return (
            f"{found}, with {self.bids_mean:.1f} bids in each though windows are as wide as they get: take the profile "
            "of a farther network, or look for members whose load is not known in time"
        )

    def check_invariants(self) -> None:
        """Raise AssertionError if a figure is out of its bounds."""
        assert FACTOR_MIN <= self.factor <= FACTOR_MAX
        assert 1 <= self.bids_mean <= BIDS_NOTED_MAX
        assert 0 <= self.success <= 1
