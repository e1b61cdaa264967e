"""What a task is asked for as, and the word that a member has free slots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mesh.core.ids import TASK_ID_CHARS_MAX
from mesh.errors import DecodeError
from mesh.wire import records as r
from mesh.wire import schema as s

ARGUMENT_CHARS_MAX: Final = 131_072  # Linux's own limit for one argument
ARGUMENTS_MAX: Final = 4_096
OUTPUT_CHUNK_BYTES_MAX: Final = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """What a task is: the command and what it needs. Never changes after submission."""

    task_id: str
    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    cwd: str = ""  # "": the executing node's own working directory
    key: str = ""  # tasks with one key share a home; "": the task id is the key
    queue: str = "default"
    pool: str = ""  # "": any pool
    node_class: str = ""  # "": any class
    labels: tuple[tuple[str, str], ...] = ()
    needs: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class SlotsFree:
    """Best effort: 'I declined you for want of a slot; now I have some.'"""

    free_slots: int


_tag = s.text(128)
_labels = s.pairs(r.word, _tag, r.LABELS_MAX)
_needs = s.pairs(r.word, s.uint(48), r.LABELS_MAX)
_spec = s.keyword_struct(
    Spec,
    ("task_id", s.text(TASK_ID_CHARS_MAX)),
    ("argv", s.many(s.text(ARGUMENT_CHARS_MAX), ARGUMENTS_MAX)),
    ("env", s.pairs(s.text(1024, empty=False), s.text(ARGUMENT_CHARS_MAX), 1024)),
    ("cwd", s.text(4096)),
    ("key", _tag),
    ("queue", _tag),
    ("pool", _tag),
    ("node_class", _tag),
    ("labels", _labels),
    ("needs", _needs),
)

SCHEMAS: dict[int, tuple[type, s.Field]] = {
    # 32 to 37 and 39 to 43 meant something once: they are never used again.
    38: (SlotsFree, s.struct(SlotsFree, ("free_slots", s.uint(16)))),
}


def check_spec(spec: Spec) -> None:
    """Raise unless `spec` can travel: every part within its limit, and text that is text.

    The id may be empty: whoever takes the task in draws one.

    Raises:
        DecodeError: there is no command; or a part is too long, of the wrong type, repeated, not
            sorted, or holds bytes that are no UTF-8 (surrogates).
    """
    _spec.unpack(_spec.pack(spec))
    if not spec.argv or not spec.argv[0]:
        raise DecodeError("expected a command, found none")
    texts = [*spec.argv, spec.task_id, spec.cwd, spec.key, spec.queue, spec.pool, spec.node_class]
    for pairs in (spec.env, spec.labels, spec.needs):
        for pair in pairs:
            texts += (part for part in pair if isinstance(part, str))
    try:
        for text in texts:
            text.encode()
    except UnicodeEncodeError as error:
        raise DecodeError(f"expected text in UTF-8, found {error.object[:40]!r}") from error
