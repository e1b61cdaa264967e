"""The observer watches itself: pauses, lag, hearing, doubt; only then does it judge the suspects whose time is up.

A node that was stopped, swapped out or starved wakes with all its timers due and the answers still in
its socket. Judging then would accuse others of its own absence. So every input first compares the
clock with the deadline that should have been met: a long overdue one is a pause, and voids the probes
under way and gives each suspect the time slept; a short one is lag, and counts against the health score.
No ticker is needed: an idle node has deadlines anyway.

A node whose timers run while what comes in is not handled meets no late deadline. It hears nobody, so it asks
itself before a verdict (see `echo`), and how long it did not hear even that is a pause as well.

Source: [Lifeguard §IV] for the idea that the observer may be at fault; the means are ours.
"""

from __future__ import annotations

from typing import Final

from mesh.core.ids import NodeId
from mesh.membership.detector import Detector
from mesh.membership.doubt import Doubt
from mesh.membership.member import Member
from mesh.membership.profile import SwimConfig
from mesh.membership.rumours import Rumours
from mesh.membership.suspicion import Suspected
from mesh.membership.table import MemberTable
from mesh.wire.packet import Packet

LAG_SHARE: Final = 0.2
"""A loop that is late by this share of the probe timeout lags: an ack may have waited as long."""

PAUSE_SHARE: Final = 1.0
"""A loop that is late by this share of the probe timeout was away: its probe means nothing."""

TRUSTED_PERIODS: Final = 2.5
"""So many periods after deafness voided the probes, as long as they are now, probes mean something again.

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
        detector: Detector,
    ) -> None:
        self._config = config
        self._table = table
        self._rumours = rumours
        self._prober = detector.prober
        self._awareness = detector.awareness
        self._echo = detector.echo
        self._unheard: dict[NodeId, None] = {}  # whose verdicts wait until this node hears itself
        self._lagged_at = float("-inf")
        self._noticed_at = float("-inf")
        self._voided_at = float("-inf")
        self._score_heard = 0  # the health score when anybody was last heard
        self._doubt = Doubt(
            probe_interval_s=config.probe_interval_s, pause_tolerance_s=config.pause_tolerance_s
        )
        self.pauses = 0
        self.doubted = 0

    def heard(self, now: float, sender: Member | None) -> bool:
        """Note that somebody of this mesh was heard; `sender` is None for one that is not known yet.

        After deafness the probe under way means nothing, unless one was just voided for that reason,
        the suspects get a moment, and this node's health is what it was before.

        Returns:
            Whether this is the first word after deafness: then there is much to catch up with.
        """
        if sender is not None:
            sender.heard_at = now
        since = self._doubt.heard_at
        self._doubt.heard_at = now
        if not self._config.lifeguard.has_self_doubt or not self._doubt.is_deaf(now, since):
            self._score_heard = self._awareness.score
            return False
        # Nobody answered while nobody could be heard: that says nothing of the time from now on. A host back
        # from a cut would otherwise miss nobody for half a minute.
        self._awareness.score = min(self._awareness.score, self._score_heard)
        self._prober.start(now)
        trusted_s = TRUSTED_PERIODS * self._config.probe_interval_s * self._awareness.scale
        if now - self._voided_at > trusted_s:
            self._voided_at = now
            self._prober.void(now)
        suspicions = self._rumours.suspicions
        self._resume(now, max(since, self._echo.answered_at))
        until = now + self._config.moment_s(self._table.size)
        suspicions.hold(until, patience_s=self._doubt.patience_s)
        return since > float("-inf")

    def handle_echo(self, now: float, reply: Packet | Exception) -> None:
        """Take what came of asking oneself; once this node hears itself, verdicts that waited for that may fall."""
        since = max(self._doubt.heard_at, self._echo.answered_at)
        if self._echo.handle_reply(now, reply):
            self._resume(now, since)

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
        if self._config.lifeguard.has_self_doubt and self._table.living:
            self._echo.learn(now)
        due = suspicions.take_due(now)
        if not due:
            return
        accused = suspicions.alone(self._rumours.own_id)
        for suspected in due:
            until = self._waits_until(now, suspected, accused)
            if until is None:
                self._rumours.bury(now, suspected)
            else:
                self.doubted += not suspected.is_doubted  # a verdict, however often it is put off
                suspected.is_doubted = True
                suspicions.postpone(suspected.node_id, until)

    def _resume(self, now: float, since: float) -> None:
        """This node hears again, itself or others, after `since`: if what came in was not handled, that was a pause."""
        suspicions = self._rumours.suspicions
        if self._echo.take_missed() and since > float("-inf"):
            suspicions.sleep(now - since)
        waiting, self._unheard = self._unheard, {}
        for node_id in waiting:
            suspected = suspicions.get(node_id)
            if suspected is not None:
                suspicions.postpone(node_id, suspected.due)

    def _waits_until(self, now: float, suspected: Suspected, accused: int) -> float | None:
        """Return until when a verdict has to wait, or None if it may fall."""
        if not self._config.lifeguard.has_self_doubt:
            return None
        size = self._table.size
        until = self._doubt.until(now, suspected, size=size, accused=accused)
        if not self._doubt.is_deaf(now, self._doubt.heard_at):
            return until
        self._echo.ask(now)
        if until is None and not self._echo.is_heard(now):
            self._unheard[suspected.node_id] = None
            return now + self._config.probe_interval_s
        return until
