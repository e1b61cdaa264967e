"""What a request of the control socket holds, checked: text, numbers, maps, and the tasks that it describes.

It all comes from outside, from programs of any version or none: nothing is handed to the node before it was
looked at here. Each reader raises a ConfigError that says what was expected and what was found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from mesh.errors import ConfigError, DecodeError
from mesh.runtime.control import Request
from mesh.tasks.body import Terms
from mesh.tasks.commands import New
from mesh.wire.schema import describe
from mesh.wire.work_messages import Spec, check_spec

ARGUMENT_BYTES_MAX: Final = 131_071
"""Linux starts nothing with a longer argument, or a longer NAME=VALUE: its MAX_ARG_STRLEN counts a NUL at the end too."""

_TERMS: Final = Terms()
_SECONDS_MAX: Final = 1e15
"""Beyond any time and duration; the node has limits of its own, and says them."""


def read_new(request: Request) -> New:
    """Return the task that a request describes, and how it is to be dealt with.

    Raises:
        ConfigError: 'argv' is no list, 'env', 'labels' or 'needs' no map of texts, a number is none, or a part
            cannot be sent on, or be given to a command.
    """
    return New(_spec(request), _terms(request), _seconds(request, "not_before", 0.0))


def text(request: Request, key: str, default: str | None = None) -> str:
    """Return the text at `key`, which is not empty."""
    found = request.get(key, default)
    if type(found) is not str or not found:
        raise ConfigError(f"{key!r} is a text, found {describe(found)}")
    return found


def flag(request: Request, key: str) -> bool:
    """Return what is true or false at `key`; false when nothing is there."""
    found = request.get(key, False)
    if type(found) is not bool:
        raise ConfigError(f"{key!r} is true or false, found {describe(found)}")
    return found


def number(request: Request, key: str, default: float, bounds: tuple[float, float]) -> float:
    """Return the number at `key`, within `bounds`, both inclusive."""
    found = request.get(key, default)
    if type(found) not in {int, float} or not math.isfinite(found):
        raise ConfigError(f"{key!r} is a number, found {describe(found)}")
    if not bounds[0] <= found <= bounds[1]:
        raise ConfigError(f"{key!r} lies between {bounds[0]:g} and {bounds[1]:g}, found {found}")
    return float(found)


def maps(request: Request, key: str, count_max: int) -> list[Request]:
    """Return the list of maps at `key`: one at least."""
    found = request.get(key)
    if type(found) is not list or not found or any(type(one) is not dict for one in found):
        raise ConfigError(f"{key!r} is a list of maps, one at least, found {describe(found)}")
    if len(found) > count_max:
        raise ConfigError(
            f"{key!r} holds at most {count_max}, found {len(found)}: send them in several requests"
        )
    return found


def _spec(request: Request) -> Spec:
    argv = request.get("argv")
    if type(argv) is not list:
        raise ConfigError("submit needs 'argv', a list that begins with the command")
    spec = Spec(
        task_id=_given(request, "id", ""),
        argv=tuple(argv),
        env=_pairs(request, "env"),
        cwd=_given(request, "cwd", ""),
        key=_given(request, "key", ""),
        queue=_given(request, "queue", "default"),
        pool=_given(request, "pool", ""),
        node_class=_given(request, "class", ""),
        labels=_pairs(request, "labels"),
        needs=_pairs(request, "needs"),
    )
    try:
        check_spec(spec)
    except DecodeError as error:
        raise ConfigError(f"the task is described wrongly: {error}") from error
    _check_startable(spec)
    return spec


def _check_startable(spec: Spec) -> None:
    """Raise where no host could start this: better said to who submits it than found out after it was acknowledged."""
    for name, _ in spec.env:
        if "=" in name:
            raise ConfigError(f"a name in 'env' is text without '=', found {describe(name)}")
    given: dict[str, Sequence[str]] = {
        "argv": spec.argv,
        "env": [f"{name}={value}" for name, value in spec.env],
        "cwd": (spec.cwd,),
        "id": (spec.task_id,),
    }
    for key, texts in given.items():
        if any("\0" in one for one in texts):
            raise ConfigError(
                f"{key!r} is text without the character NUL, which no command can be given"
            )
        longest = max((len(one.encode()) for one in texts), default=0)
        if longest > ARGUMENT_BYTES_MAX:
            raise ConfigError(
                f"one text in {key!r}, a variable's name included, has at most {ARGUMENT_BYTES_MAX} bytes, "
                f"found {longest}: put what is large into a file"
            )


def _terms(request: Request) -> Terms:
    retries = _given(request, "retries", _TERMS.retries)
    if type(retries) is not int:
        raise ConfigError(f"'retries' is a whole number, found {describe(retries)}")
    return Terms(
        retries=retries,
        retry_delay_s=_seconds(request, "retry_delay_s", _TERMS.retry_delay_s),
        retry_delay_s_max=_seconds(request, "retry_delay_s_max", _TERMS.retry_delay_s_max),
        retain_s=_seconds(request, "retain_s", _TERMS.retain_s),
    )


def _seconds(request: Request, key: str, default: float) -> float:
    return number(request, key, default, (0.0, _SECONDS_MAX))


def _given(request: Request, key: str, default: Any) -> Any:  # noqa: ANN401 - checked later
    """Return what was sent under `key`; nothing and "" both mean the default."""
    found = request.get(key)
    return default if found is None or found == "" else found


def _pairs(request: Request, key: str) -> tuple[tuple[Any, Any], ...]:
    found = _given(request, key, {})
    if type(found) is not dict or any(type(name) is not str for name in found):
        raise ConfigError(f"{key!r} is a map whose keys are texts, found {describe(found)}")
    return tuple(sorted(found.items()))
