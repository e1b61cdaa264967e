"""`bench detect --curve`: the options that a curve takes, and its results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mesh.cli.bench import (
    ALL,
    NOTICE_TIMEOUT_S,
    REUNION_S,
    WATCH_S,
    check_results,
    write_results,
)
from mesh.errors import ConfigError

if TYPE_CHECKING:
    import argparse

    from mesh.bench.curve import CurveSettings

ROUNDS: Final = 2
BURNERS: Final = 4
SLOW_S: Final = 40.0


def curve_settings_of(options: argparse.Namespace, *, is_apart: bool) -> CurveSettings:
    """Return what is to be swept.

    Raises:
        ConfigError: an option has no part in a curve.
    """
    from mesh.bench.curve import CurveSettings
    from mesh.bench.faults import FaultSettings
    from mesh.bench.settings import DetectSettings

    foreign = {
        "--fault": options.fault,
        "--stop": options.stop,
        "--deaf": options.deaf,
        "--at-once": options.at_once,
        "--idle": options.idle,
    }
    if given := [flag for flag, value in foreign.items() if value]:
        raise ConfigError(f"--curve plays silence and pauses alone, found {' and '.join(given)}")
    if options.kinship is not None and "kinship" not in options.vs:
        raise ConfigError(f"--kinship belongs to --vs kinship or {ALL}; name it there too")
    details = FaultSettings(
        burners=BURNERS if options.burn is None else options.burn,
        burn_s=SLOW_S if options.seconds is None else options.seconds,
        watch_s=WATCH_S[options.profile],
        notice_timeout_s=NOTICE_TIMEOUT_S[options.profile],
        reunion_s=REUNION_S[options.profile],
    )
    plan = DetectSettings(
        nodes=options.nodes,
        rounds=ROUNDS if options.rounds is None else options.rounds,
        faults=("host",) if is_apart else ("standstill",),
        profile=options.profile,
        evidence=options.evidence,
        seed=options.seed,
        vs=options.vs,
        kinship_python=options.kinship,
        details=details,
    )
    settings = CurveSettings(plan=plan, tolerances_s=options.tolerance, is_apart=is_apart)
    settings.check()
    return settings


def run_curve(options: argparse.Namespace) -> int:
    """Sweep; exit 0 only if every setting came to its end."""
    import json

    from mesh.bench.curve import sweep
    from mesh.bench.curve_figure import curve_figure
    from mesh.bench.namespaces import why_not
    from mesh.bench.points import curve_json, curve_text
    from mesh.bench.progress import open_progress

    reason = why_not()
    settings = curve_settings_of(options, is_apart=not reason)
    check_results(options.json, options.svg)
    plan = settings.plan
    with open_progress(settings.total_steps) as progress:
        if reason:
            progress.say(f"silence is a process that stands still for good, since {reason}")
        points = sweep(settings, progress)
    print()
    print(curve_text(points), flush=True)
    texts = {}
    if options.json is not None:
        shape = {**plan.to_json(), "tolerances_s": list(settings.swept_s)}
        texts[options.json] = json.dumps(curve_json(shape, points), indent=1) + "\n"
    if options.svg is not None:
        title = (
            f"{plan.nodes} members, {plan.profile}, {plan.nodes // 2} of them slow for "
            f"{plan.details.burn_s:g} s, {plan.details.burners} busy loops"
        )
        texts[options.svg] = curve_figure(points, title)
    is_written = write_results(texts)
    return 0 if is_written and not any(point.failure for point in points) else 1
