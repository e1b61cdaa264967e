"""The observer watches itself: pauses, lag, doubt; only then does it judge the suspects whose time is up.

A node that was stopped, swapped out or starved wakes with all its timers due and the answers still in
its socket. Judging then would accuse others of its own absence. So every input first compares the
clock with the deadline that should have been met: a long overdue one is a pause, and voids the probe
under way and gives each suspect the time slept; a short one is lag, and counts against the health score.
No ticker is needed: an idle node has deadlines anyway.

Source: [Lifeguard §IV] for the idea that the observer may be at fault; the means are ours.
"""

from __future__ import annotations

from typing import Final

from mesh.membership.awareness import Awareness
from mesh.membership.doubt import Doubt
from mesh.membership.member import Member
from mesh.membership.prober import Prober
from mesh.membership.profile import SwimConfig
from mesh.membership.rumours import Rumours
from mesh.membership.table import MemberTable

LAG_SHARE: Final = 0.2
"""A loop that is late by this share of the probe timeout lags: an ack may have waited as long."""

PAUSE_SHARE: Final = 1.0
"""A loop that is late by this share of the probe timeout was away: its probe means nothing."""

TRUSTED_PERIODS: Final = 2.5
"""So many periods after deafness voided a probe, as long as they are now, probes mean something again.

A node in bad health asks so seldom that it hears nobody for long without being deaf. Were each word
after such a silence to void the probe under way, the nacks about a dead member would void each of its."""


class Vigil:
    """Judges suspects, with an eye on itself.

    `pauses` counts how often this node was away, `doubted` the verdicts that it held back.
    """

    def __init__(
        self,
        *,
        config: SwimConfig,
        table: MemberTable,
        rumours: Rumours,
        prober: Prober,
        awareness: Awareness,
    ) -> None:
        self._config = config
        self._table = table
        self._rumours = rumours
        self._prober = prober
        self._awareness = awareness
        self._lagged_at = float("-inf")
        self._noticed_at = float("-inf")
        self._voided_at = float("-inf")
        self._doubt = Doubt(
            probe_interval_s=config.probe_interval_s, pause_tolerance_s=config.pause_tolerance_s
        )
        self.pauses = 0
        self.doubted = 0

    def heard(self, now: float, sender: Member | None) -> bool:
        """Note that somebody of this mesh was heard; `sender` is None for one that is not known yet.

        After deafness the probe under way means nothing, unless one was just voided for that reason,
        and the suspects get a moment.

        Returns:
            Whether this is the first word after deafness: then there is much to catch up with.
        """
        if sender is not None:
            sender.heard_at = now
        since = self._doubt.heard_at
        self._doubt.heard_at = now
        if not self._config.lifeguard.has_self_doubt or not self._doubt.is_deaf(now, since):
            return False
        trusted_s = TRUSTED_PERIODS * self._config.probe_interval_s * self._awareness.scale
        if now - self._voided_at > trusted_s:
            self._voided_at = now
            self._prober.void(now)
        until = now + self._config.moment_s(self._table.size)
        self._rumours.suspicions.hold(until, patience_s=self._doubt.patience_s)
        return since > float("-inf")

    def notice(self, now: float, due: float | None) -> None:
        """Compare the clock with the deadline that was to be met; call before anything else is done."""
        if due is None or not self._config.lifeguard.has_pause_awareness:
            return
        # After a pause a whole inbox may come before the deadline is met: it is one pause, counted once.
        late_s = now - max(due, self._noticed_at)
        if late_s < LAG_SHARE * self._config.probe_timeout_s:
            return
        self._noticed_at = now
        if now - self._lagged_at >= self._config.probe_interval_s:
            self._lagged_at = now
            self._awareness.note(1)
        if late_s >= PAUSE_SHARE * self._config.probe_timeout_s:
            self.pauses += 1
            self._prober.void(now)
            self._rumours.suspicions.sleep(late_s)
            self._doubt.heard_at = now

    def judge(self, now: float) -> None:
        """Declare dead the suspects whose time is up, unless this node doubts itself."""
        suspicions = self._rumours.suspicions
        due = suspicions.take_due(now)
        if not due:
            return
        accused = suspicions.alone(self._rumours.own_id)
        for suspected in due:
            until = None
            if self._config.lifeguard.has_self_doubt:
                size = self._table.size
                until = self._doubt.until(now, suspected, size=size, accused=accused)
            if until is None:
                self._rumours.bury(now, suspected)
            else:
                self.doubted += not suspected.is_doubted  # a verdict, however often it is put off
                suspected.is_doubted = True
                suspicions.postpone(suspected.node_id, until)
