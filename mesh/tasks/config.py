"""How patiently this node offers, claims and runs tasks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksConfig:
    """Limits and timings. All times in seconds."""

    offers_max: int = 64
    """Offers of this voter under way at once, to all members together."""

    offer_timeout_s: float = 2.0
    """After so long without a claim, or a word, the next member is asked. Shorter: two may claim at once, and one is outbid."""

    offer_retry_s: float = 1.0
    """About so often a lane of tasks that finds nobody, or that another voter sees to, asks one member all the same."""

    offer_retries_max: int = 32
    """About so many lanes do so within that time, all together: where more wait, each does it more seldom."""

    stagger_s: float = 1.0
    """So much later than the voter before it a voter sees to a task."""

    grant_s: float = 0.05
    """So long after a bid its grant is waited for, until one was seen; from then on as long as they take."""

    contest_s_max: float = 10.0
    """A contest that is not over by then is given up."""

    taken_pause_s: float = 0.25
    """After a word that a task is somebody's, though not by what is kept here, it is offered again; then after twice as long each time.

    Short at first: a voter may hear of an owner's end a moment before the others do, who still speak for it.
    """

    taken_pause_s_max: float = 30.0
    """But after no longer than this."""

    claim_timeout_s: float = 5.0
    """How long one attempt to claim may take."""

    stop_grace_s: float = 5.0
    """Between SIGTERM and SIGKILL when a run is stopped."""

    unsettled_max: int = 10_000
    """Runs that have ended, lost their slot and whose verdict no majority has yet. Beyond it, offers are declined."""

    waiters_max: int = 4_096
    """Voters that this node declined and will tell of a free slot."""

    tell_pause_s: float = 0.1
    """How long a voter that was told of a free slot has before the next one is told too."""

    output_bytes_max: int = 1_048_576
    """Output held for one attempt that ran here, and two pieces more once it is over; older output is dropped first."""

    output_total_bytes_max: int = 67_108_864
    """Output held for all of them together; that of the attempt that ended first is dropped first."""

    output_keep_s: float = 600.0
    """So long an attempt's output is held after its end, for whoever follows late."""

    follow_grace_s: float = 2.0
    """So long after its first word a command whose output finds no room is held up though nobody follows: who has just submitted it may be about to."""

    outputs_max: int = 4_096
    """Attempts that have ended whose output is held."""

    followers_max: int = 1_024
    """Pairs of a node and an attempt here that it follows."""

    watchers_max: int = 1_024
    """Clients of this node that may follow tasks at once."""

    watcher_stall_s: float = 30.0
    """A watcher that takes nothing for so long is dropped: it holds up the command."""
