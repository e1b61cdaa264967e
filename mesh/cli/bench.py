"""`bench`: measure real nodes on this host, beside their peers."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from mesh.cli.arguments import Commands, Parser, add_command, decimal, whole_number
from mesh.cli.bench_contest import add_contest
from mesh.cli.bench_tasks import add_tasks
from mesh.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mesh.bench.records import Record
    from mesh.bench.settings import DetectSettings

NODES_MAX = 64
ROUNDS_MAX = 1_000
FAULTS = ("kill", "stop", "leave", "restart", "burn", "deaf", "host")
PEERS = ("serf", "memberlist", "kinship")
ALL = "all"
SECONDS_MAX = 3_600.0
WATCH_S = {"local": 2.0, "lan": 5.0, "wan": 15.0}
REUNION_S = {"local": 10.0, "lan": 20.0, "wan": 60.0}
TOLERANCE_S_MIN = 0.1
TOLERANCE_S_MAX = 600.0
ROUNDS = 5
NOTICE_TIMEOUT_S = {"local": 30.0, "lan": 60.0, "wan": 180.0}


def add_commands(commands: Commands) -> None:
    """Add this group's commands."""
    bench = commands.add_parser(
        "bench",
        help="measure real nodes on this host, beside their peers",
        description="Measure real nodes on this host, beside their peers.",
    )
    benches = bench.add_subparsers(metavar="BENCH", required=True, parser_class=Parser)
    detect = add_command(
        benches,
        "detect",
        run_detect,
        "measure how soon members notice what happens to one of them, and what an idle one costs",
    )
    _add_scale(detect)
    _add_faults(detect)
    _add_results(detect)
    add_tasks(benches)
    add_contest(benches)


def _add_scale(detect: Parser) -> None:
    detect.add_argument(
        "--nodes",
        metavar="N",
        type=whole_number("--nodes", 2, NODES_MAX),
        default=8,
        help="members, each a process (default: 8)",
    )
    detect.add_argument(
        "--rounds",
        metavar="K",
        type=whole_number("--rounds", 0, ROUNDS_MAX),
        default=None,
        help=f"rounds of each fault (default: {ROUNDS}; with --curve 2)",
    )
    detect.add_argument(
        "--profile",
        metavar="NAME",
        choices=("local", "lan", "wan"),
        default="lan",
        help="local, lan or wan (default: lan)",
    )
    detect.add_argument(
        "--evidence",
        metavar="WHAT",
        choices=("all", "none"),
        default="all",
        help="what Mesh's members tell a crash by: all, or none but silence (default: all)",
    )
    detect.add_argument(
        "--tolerance",
        metavar="SECONDS",
        type=_tolerances,
        default=(),
        help=(
            "how long a suspect of Mesh may be silent (default: the profile's; with --curve as many as you like, "
            "apart by commas)"
        ),
    )
    detect.add_argument(
        "--seed",
        metavar="N",
        type=whole_number("--seed", 0, (1 << 63) - 1),
        default=1,
        help="draws victims and moments (default: 1)",
    )
    detect.add_argument(
        "--idle",
        metavar="SECONDS",
        type=decimal("--idle", 0, SECONDS_MAX),
        default=0.0,
        help="first measure what idle members cost",
    )


def _add_faults(detect: Parser) -> None:
    detect.add_argument(
        "--fault",
        metavar="NAME,…",
        type=_faults,
        default=None,
        help=f"one or more of {', '.join(FAULTS)}, or all (default: kill); host needs root and iproute2",
    )
    seconds = decimal("--stop", 0.1, SECONDS_MAX)
    detect.add_argument(
        "--stop", metavar="SECONDS", type=seconds, default=None, help="how long (default: 2.5)"
    )
    detect.add_argument(
        "--deaf",
        metavar="SECONDS",
        type=decimal("--deaf", 0.1, SECONDS_MAX),
        default=None,
        help="how long (default: 10)",
    )
    detect.add_argument(
        "--burn",
        metavar="LOOPS",
        type=whole_number("--burn", 1, 256),
        default=None,
        help="how many busy loops (default: 8; with --curve 4)",
    )
    detect.add_argument(
        "--seconds",
        metavar="SECONDS",
        type=decimal("--seconds", 1, SECONDS_MAX),
        default=None,
        help="how long they burn (default: 60; with --curve 40)",
    )
    detect.add_argument(
        "--at-once",
        action="store_true",
        help="with restart: before anybody has noticed the death",
    )


def _add_results(detect: Parser) -> None:
    detect.add_argument(
        "--curve",
        action="store_true",
        help=(
            "instead of faults: for each of several settings, how soon silence is noticed beside busy loops, "
            "against how often members that are only slow are held dead"
        ),
    )
    detect.add_argument(
        "--vs",
        metavar="PEER,…",
        type=_peers,
        default=(),
        help=f"the same rounds beside {', '.join(PEERS)}, or all",
    )
    detect.add_argument(
        "--kinship",
        metavar="PYTHON",
        default=None,
        help="the interpreter that has kinship (default: this one)",
    )
    detect.add_argument("--json", metavar="FILE", default=None, help="write the results there")
    detect.add_argument("--svg", metavar="FILE", default=None, help="write a figure there")


def _faults(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(text.split(",")))
    if names == (ALL,):
        return FAULTS
    for name in names:
        if name not in FAULTS:
            raise ConfigError(f"--fault is one or more of {', '.join(FAULTS)}, found {name!r}")
    return names


def _peers(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(part for part in text.split(",") if part))
    return PEERS if names == (ALL,) else names


def _tolerances(text: str) -> tuple[float, ...]:
    read = decimal("--tolerance", TOLERANCE_S_MIN, TOLERANCE_S_MAX)
    return tuple(dict.fromkeys(read(part) for part in text.split(",")))


def settings_of(options: argparse.Namespace) -> DetectSettings:
    """Return what was asked for; an option of one fault asks for that fault.

    Raises:
        ConfigError: an option belongs to a fault that is not played.
    """
    from mesh.bench.faults import FaultSettings
    from mesh.bench.settings import DetectSettings

    if len(options.tolerance) > 1:
        raise ConfigError(
            f"--tolerance is one number without --curve, found {len(options.tolerance)} of them"
        )
    given = tuple(name for name in ("stop", "deaf", "burn") if getattr(options, name) is not None)
    faults = options.fault or given or ("kill",)
    for name in given:
        if name not in faults:
            raise ConfigError(
                f"--{name} belongs to --fault {name}, found --fault {','.join(faults)}; name it there too"
            )
    belongings = (
        ("--at-once", options.at_once, "--fault", "restart", faults),
        ("--seconds", options.seconds is not None, "--fault", "burn", faults),
        ("--kinship", options.kinship is not None, "--vs", "kinship", options.vs),
    )
    for flag, is_given, owner, name, names in belongings:
        if is_given and name not in names:
            raise ConfigError(
                f"{flag} belongs to {owner} {name}, found {','.join(names) or 'none'}; name it there too"
            )
    defaults = FaultSettings()
    details = FaultSettings(
        stop_s=options.stop or defaults.stop_s,
        deaf_s=options.deaf or defaults.deaf_s,
        burners=options.burn or defaults.burners,
        burn_s=options.seconds or defaults.burn_s,
        is_at_once=options.at_once,
        watch_s=WATCH_S[options.profile],
        notice_timeout_s=NOTICE_TIMEOUT_S[options.profile],
        reunion_s=REUNION_S[options.profile],
    )
    settings = DetectSettings(
        nodes=options.nodes,
        rounds=ROUNDS if options.rounds is None else options.rounds,
        faults=faults,
        profile=options.profile,
        evidence=options.evidence,
        tolerance_s=options.tolerance[0] if options.tolerance else None,
        seed=options.seed,
        idle_s=options.idle,
        vs=options.vs,
        kinship_python=options.kinship,
        details=details,
    )
    settings.check()
    return settings


def run_detect(options: argparse.Namespace) -> int:
    """Measure; exit 0 only if every report came and Mesh accused nobody falsely."""
    from mesh.bench.detect import detect
    from mesh.bench.progress import open_progress
    from mesh.bench.report import report_text

    if options.curve:
        from mesh.cli.bench_curve import run_curve

        return run_curve(options)
    settings = settings_of(options)
    check_results(options.json, options.svg)
    with open_progress(settings.total_rounds) as progress:
        records = detect(settings, progress)
    print()
    print(report_text(records), flush=True)
    is_written = _write(options, settings, records)
    ours = records[0]
    return 0 if is_written and not ours.failure and all(one.is_good for one in ours.rounds) else 1


def check_results(*paths: str | None) -> None:
    """Complain before minutes are spent on what could not be kept."""
    given = [path for path in paths if path is not None]
    for path in given:
        _check_writable(path)
    if len(given) > 1 and len({os.path.realpath(path) for path in given}) == 1:
        raise ConfigError(f"two files are expected for --json and --svg, found {given[0]!r} twice")


def _check_writable(path: str) -> None:
    """Open the file as it will be opened, and leave nothing that was not there."""
    is_new = not os.path.lexists(path)
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o666))
        if is_new:
            os.unlink(path)  # noqa: PTH108 - quick to import
    except OSError as error:
        raise ConfigError(
            f"a file that can be written is expected, found {path!r}: {error.strerror}"
        ) from error


def _write(
    options: argparse.Namespace, settings: DetectSettings, records: Sequence[Record]
) -> bool:
    """Write what was asked for; return whether all could be."""
    import json

    from mesh.bench.figure import figures
    from mesh.bench.records import to_json

    texts: dict[str, str] = {}
    if options.json is not None:
        texts[options.json] = json.dumps(to_json(settings.to_json(), records), indent=1) + "\n"
    if options.svg is not None:
        about = f"reports of {settings.nodes} members, {settings.profile}, {settings.rounds} rounds"
        texts[options.svg] = figures(records, settings.faults, about)
    return write_results(texts)


def write_results(texts: Mapping[str, str]) -> bool:
    """Write each text to its file; say what could not be written, and whether all could."""
    from pathlib import Path

    from mesh.cli.stdio import complain

    is_whole = True
    for path, text in texts.items():
        try:
            Path(path).write_text(text, encoding="utf-8")
        except OSError as error:
            is_whole = False
            complain(f"{path} could not be written: {error.strerror}")
    return is_whole
