"""The messages of a contest: who is called, who bids, who has it.

    voter ──Call──► those called         the task, how long a rank waits, and what the voter knows of each of them
    bidder ──Bid──► the others called, and the voter      'I claim it now, and this is how fit I am'
    winner ──Settled──► the same         'a majority granted it to me': who waits on forgets it
    voter ──AskVitals──► members ──VitalsTold──► voter       while it holds contests
    owner ──VitalsTold, with its renewals──► voter           unasked
    anybody ──AskContest──► a task's voters ──ContestTold──► back: for whoever asks why

Each may be lost, doubled or late. None of them decides anything: the register does, and whoever missed a word
claims what is somebody's, and is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from mesh.core.ids import NodeId
from mesh.wire import records as r
from mesh.wire import schema as s
from mesh.wire.task_messages import Decline, Offer, attempt_form, offer_form, task_id_form

CALLED_MAX: Final = 32
"""Members that one call names: a larger mesh is called in rounds."""

SCORE_MAX: Final = 65_535
"""A fitness of 1; 0 is one of 0."""

PARTS_MAX: Final = 16

WEIGHED: Final = ("cpu", "distance", "free_slots", "history", "lag", "match")
"""The parts of a fitness that all who are called know of each other, and so weigh; in order."""

WEIGHT_MAX: Final = 1_000_000
"""Beside a weight beyond this no other would count."""

Weighing: TypeAlias = tuple[tuple[str, float], ...]
"""Weights as they are sent and kept: the parts that count, by name in order, each above 0; none: the default ones."""

LAG_MS_MAX: Final = 255
"""A loop that is so late, in milliseconds, or later: it is unfit for anything."""

HISTORY_MAX: Final = 255
"""A history in which nothing failed."""

RTT_US_MAX: Final = (1 << 32) - 1
ROUND_MAX: Final = 255
WINDOW_US_MAX: Final = 60_000_000


@dataclass(frozen=True, slots=True)
class Called:
    """One of those called, as the caller knows it. All who are called compare each other, and themselves, by this.

    `busy_pct`: use of the processors that it may use, in hundredths; `age_ds`: how old that and its slots are, in tenths of a second.
    """

    node_id: NodeId
    free_slots: int
    busy_pct: int
    age_ds: int
    lag_ms: int | None = None
    """How late its loop runs, smoothed, up to LAG_MS_MAX; None: it has not told."""

    history: int = HISTORY_MAX
    """How tasks of this queue fared on it, 0 to HISTORY_MAX."""

    rtt_us: int | None = None
    """The smoothed round trip from the caller, a voter of the task, in microseconds; None: not measured yet."""


@dataclass(frozen=True, slots=True)
class Call:
    """'Who takes this task?' `offer` says all that an offer says; `round` counts the calls of one contest from 0.

    `window_us`: the c of the waiting rule, in microseconds; `patience_us`: so long after a bid there is a grant;
    `weights`: by which all who are called reckon.
    """

    offer: Offer
    round: int
    window_us: int
    patience_us: int
    called: tuple[Called, ...]
    weights: Weighing = ()


@dataclass(frozen=True, slots=True)
class Bid:
    """'I claim this attempt now.' `score` of 0 to SCORE_MAX; `parts` says how it came about, 0 to 255 each, by name."""

    task_id: str
    attempt: int
    round: int
    score: int
    parts: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Settled:
    """'A majority granted this attempt to me.' From whoever won, to those who bid or would have."""

    task_id: str
    attempt: int


@dataclass(frozen=True, slots=True)
class AskVitals:
    """'Tell me of your slots and load, whenever they change, for `seconds` from now.' 0: no more."""

    seconds: int


@dataclass(frozen=True, slots=True)
class VitalsTold:
    """'So many of my slots are free, so busy are my processors (in hundredths), and so late my loop' (up to LAG_MS_MAX).

    For `seconds` more it tells what changes, as it was asked to; 0: it was not, or its time is nearly over.
    """

    free_slots: int
    busy_pct: int
    lag_ms: int = 0
    seconds: int = 0


SAID_MAX: Final = 48
"""Words of one contest that are told: bids and declines."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word in a contest, `after_us` microseconds after the call: a bid's score and parts (as in `Bid`), or a decline."""

    after_us: int
    node_id: NodeId
    score: int | None
    parts: tuple[tuple[str, int], ...]
    decline: Decline


@dataclass(frozen=True, slots=True)
class Contest:
    """How a contest went, as its caller saw it.

    `at_ms`: Unix time in milliseconds; `called`: who was, in the caller's order, and the fitness that it expected (as a score);
    `after_us`: until the grant was seen, None: none was.
    """

    attempt: int
    at_ms: int
    window_us: int
    rounds: int
    is_first_window: bool
    is_over: bool
    called: tuple[tuple[NodeId, int], ...]
    said: tuple[Word, ...]
    winner: NodeId | None
    after_us: int | None
    weights: Weighing
    """What the parts of the scores weighed; none: what they do by default."""


@dataclass(frozen=True, slots=True)
class AskContest:
    """'How did the latest contest for this task go?'"""

    task_id: str


@dataclass(frozen=True, slots=True)
class ContestTold:
    """The answer. None: this node called nobody for it, or remembers it no more."""

    task_id: str
    contest: Contest | None


ASK_S_MAX: Final = 600
"""So long a member tells without being asked again, at most."""


def _bounded(unit: str, least: int, most: int) -> s.Field:
    def unpack(raw: Any) -> int:  # noqa: ANN401 - comes from msgpack
        if type(raw) is not int or not least <= raw <= most:
            s.refuse(f"{unit} from {least} to {most}", raw)
        return raw

    return s.Field(int, unpack)


def _some_called() -> s.Field:
    called = s.struct(
        Called,
        ("node_id", s.nonzero(64)),
        ("free_slots", s.uint(16)),
        ("busy_pct", s.uint(8)),
        ("age_ds", s.uint(16)),
        ("lag_ms", s.optional(s.uint(8))),
        ("history", s.uint(8)),
        ("rtt_us", s.optional(s.uint(32))),
    )
    pack, unpack_all = s.many(called, CALLED_MAX)

    def unpack(raw: Any) -> tuple[Called, ...]:  # noqa: ANN401 - comes from msgpack
        found: tuple[Called, ...] = unpack_all(raw)
        if not found or len({one.node_id for one in found}) < len(found):
            s.refuse(f"1 to {CALLED_MAX} members, each once", raw)
        return found

    return s.Field(pack, unpack)


def _weight() -> s.Field:
    def unpack(raw: Any) -> float:  # noqa: ANN401 - comes from msgpack
        if type(raw) is not float or not 0 < raw <= WEIGHT_MAX:  # which no NaN is
            s.refuse(f"a weight above 0 and up to {WEIGHT_MAX}", raw)
        return raw

    return s.Field(float, unpack)


def _weighed() -> s.Field:
    def unpack(raw: Any) -> str:  # noqa: ANN401 - comes from msgpack
        if type(raw) is not str or raw not in WEIGHED:
            s.refuse(f"one of {', '.join(WEIGHED)}", raw)
        return raw

    return s.Field(str, unpack)


weighing_form: Final = s.pairs(_weighed(), _weight(), len(WEIGHED))

_round: Final = s.uint(8)
_score: Final = s.uint(16)
_node: Final = s.nonzero(64)
_after: Final = s.uint(40)
_parts: Final = s.pairs(r.word, s.uint(8), PARTS_MAX)


def _expected() -> s.Field:
    def pack(value: Any) -> Any:  # noqa: ANN401 - goes to msgpack
        return list(value)

    def unpack(raw: Any) -> tuple[NodeId, int]:  # noqa: ANN401 - comes from msgpack
        if type(raw) is not list or len(raw) != 2:
            s.refuse("a member and a score", raw)
        return NodeId(_node.unpack(raw[0])), _score.unpack(raw[1])

    return s.Field(pack, unpack)


_contest: Final = s.struct(
    Contest,
    ("attempt", attempt_form),
    ("at_ms", s.uint(48)),
    ("window_us", _after),
    ("rounds", _round),
    ("is_first_window", s.flag),
    ("is_over", s.flag),
    ("called", s.many(_expected(), CALLED_MAX)),
    (
        "said",
        s.many(
            s.struct(
                Word,
                ("after_us", _after),
                ("node_id", _node),
                ("score", s.optional(_score)),
                ("parts", _parts),
                ("decline", r.enum_of(Decline)),
            ),
            SAID_MAX,
        ),
    ),
    ("winner", s.optional(_node)),
    ("after_us", s.optional(_after)),
    ("weights", weighing_form),
)

SCHEMAS: Final[dict[int, tuple[type, s.Field]]] = {
    104: (
        Call,
        s.struct(
            Call,
            ("offer", offer_form),
            ("round", _round),
            ("window_us", _bounded("microseconds", 1, WINDOW_US_MAX)),
            ("patience_us", _bounded("microseconds", 1, WINDOW_US_MAX)),
            ("called", _some_called()),
            ("weights", weighing_form),
        ),
    ),
    105: (
        Bid,
        s.struct(
            Bid,
            ("task_id", task_id_form),
            ("attempt", attempt_form),
            ("round", _round),
            ("score", _score),
            ("parts", _parts),
        ),
    ),
    106: (Settled, s.struct(Settled, ("task_id", task_id_form), ("attempt", attempt_form))),
    107: (AskVitals, s.struct(AskVitals, ("seconds", _bounded("seconds", 0, ASK_S_MAX)))),
    108: (
        VitalsTold,
        s.struct(
            VitalsTold,
            ("free_slots", s.uint(16)),
            ("busy_pct", s.uint(8)),
            ("lag_ms", s.uint(8)),
            ("seconds", _bounded("seconds", 0, ASK_S_MAX)),
        ),
    ),
    109: (AskContest, s.struct(AskContest, ("task_id", task_id_form))),
    110: (
        ContestTold,
        s.struct(ContestTold, ("task_id", task_id_form), ("contest", s.optional(_contest))),
    ),
}
