"""Messages that nobody in his right mind sends: old, wrong, about what does not exist, from whoever.

None of them may change what becomes of a task: who offers what is leased makes a member claim in vain, who answers
what was not asked is not heard; who calls, bids or settles where there is no contest costs one a moment.
"""

from __future__ import annotations

import random
from dataclasses import replace

from mesh.core.ballot import NO_BALLOT, Ballot
from mesh.core.ids import NodeId
from mesh.wire.contest_messages import (
    SCORE_MAX,
    WINDOW_US_MAX,
    AskVitals,
    Bid,
    Call,
    Called,
    Settled,
    VitalsTold,
)
from mesh.wire.task_messages import (
    AttemptCause,
    CancelAnswer,
    CancelRun,
    CancelVerdict,
    Decline,
    Notice,
    Offer,
    OfferAnswer,
    TaskState,
    Watch,
)
from mesh.wire.work_messages import SlotsFree


def message(rng: random.Random, tasks: list[str]) -> object:
    """Return any message of tasks, about one of these or about none that there is."""
    task_id = rng.choice([*tasks, "ghost"])
    attempt = rng.randrange(4)
    ballot = rng.choice((NO_BALLOT, Ballot(1, 1, rng.randrange(2000), NodeId(rng.randint(1, 8)))))
    offer = Offer(
        task_id=task_id,
        ballot=ballot,
        seq=rng.randrange(3),
        attempt=attempt,
        # What only a steward knows is not made up: a lost attempt's cause is believed.
        cause=rng.choice((AttemptCause.FIRST, AttemptCause.RETRY, AttemptCause.LAPSE)),
        has_more=rng.random() < 0.5,
    )
    return rng.choice(
        (
            offer,
            OfferAnswer(task_id, attempt, rng.choice(list(Decline)), rng.randrange(9)),
            SlotsFree(rng.randrange(9)),
            CancelRun("ghost", attempt),
            CancelAnswer(task_id, attempt, rng.choice(list(CancelVerdict))),
            Watch(task_id, rng.randrange(30)),
            Notice(task_id, ballot, 0, rng.choice(list(TaskState)), attempt, None),
            _call(rng, offer),
            Bid(task_id, attempt, rng.randrange(3), rng.choice((0, SCORE_MAX))),
            Settled(task_id, attempt),
            AskVitals(rng.choice((0, 1, 600))),
            VitalsTold(
                rng.randrange(9), rng.randrange(256), rng.randrange(256), rng.choice((0, 600))
            ),
        )
    )


def _call(rng: random.Random, offer: Offer) -> Call:
    """Return a call that nobody has a reason for: of members that may not exist, of now or of the distant future."""
    if rng.random() < 0.2:
        offer = replace(offer, attempt=2**32 - 1)
    ids = rng.sample(range(1, 40), rng.choice((1, 4, 32)))
    called = (
        Called(
            NodeId(one),
            rng.randrange(3),
            rng.randrange(256),
            0,
            None,
            rng.randrange(256),
            rng.choice((None, 9)),
        )
        for one in ids
    )
    window_us = rng.choice((1, 1_000, WINDOW_US_MAX))
    patience_us, weights = rng.choice((1, WINDOW_US_MAX)), rng.choice(((), (("history", 1.0),)))
    return Call(offer, rng.randrange(256), window_us, patience_us, tuple(called), weights)
