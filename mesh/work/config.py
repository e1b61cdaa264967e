"""How much work this node keeps, and how patiently it asks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkConfig:
    """Limits and timings of work. All times in seconds."""

    tasks_max: int = 100_000
    """Tasks kept, finished ones included. One more unfinished task is refused. A task takes about 2 KiB."""

    finished_max: int = 10_000
    """Finished tasks remembered; the oldest are forgotten first."""

    spec_bytes_max: int = 524_288
    """The longest command line and environment of a task, together."""

    attempts_max: int = 100
    """Attempts on record for one task: the first one and the latest."""

    offers_max: int = 64
    """Offers under way at once, to all members together."""

    offer_timeout_s: float = 2.0
    """How long an offer, a report or a piece of output may take to be answered."""

    offer_tries_max: int = 5
    """How often one member is asked about one attempt without an answer before the next member is."""

    offer_retry_s: float = 1.0
    """The pause before an unanswered offer is repeated, and before a blocked queue asks one member anyway."""

    check_s: float = 10.0
    """An attempt that was silent this long is asked after at its owner."""

    stop_grace_s: float = 5.0
    """Between SIGTERM and SIGKILL when a run is stopped."""

    report_retry_s: float = 0.5
    """The pause before a report is repeated; it doubles up to eight times this."""

    reports_max: int = 10_000
    """Ended runs whose report nobody took yet. Beyond it, offers are declined."""

    remembered_max: int = 10_000
    """Ended runs remembered, so that a repeated offer does not start them again."""

    waiters_max: int = 4_096
    """Members that this node declined and will tell of a free slot."""

    tell_pause_s: float = 0.1
    """How long a member that was told of a free slot has before the next one is told too."""

    output_bytes_max: int = 1_048_576
    """Output held for one attempt; older output is dropped first."""

    output_total_bytes_max: int = 67_108_864
    """Output held for all tasks together; that of the oldest finished task is dropped first."""

    output_retry_s: float = 0.05
    """The pause before a piece that had to wait for a watcher is sent again."""

    tail_chars_max: int = 4_096
    """The end of each stream that a task's result shows."""

    watchers_max: int = 1_024
    """Clients that may follow tasks at once."""

    watcher_stall_s: float = 30.0
    """A watcher that takes nothing for so long is dropped: it holds up the command."""

    inquiries_max: int = 256
    """Questions to the whole mesh at once."""

    inquiry_timeout_s: float = 2.0
    """How long a member may take to answer one."""

    view_tasks_max: int = 500
    """Tasks shown in a view, newest first."""
