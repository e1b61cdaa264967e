"""The result as people read it in a terminal: a line for each round, a table, a histogram.

Medians over rounds stand beside the worst, since a mesh is as slow as its slowest round.
"""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from mesh.bench.records import Record, Round, spread

BINS: Final = 12
BAR_CELLS: Final = 40
LINE_CELLS: Final = 80
_MEANINGS: Final = {
    "rounds": "",
    "first": "the first member's report of the fault, the median of the rounds",
    "median": "the median member's",
    "last": "the last member's",
    "worst": "the last member's in the slowest round",
    "back": "until the last member saw the victim return",
    "whole": "until every member saw every other alive",
    "false": "dead verdicts on members that nothing was done to",
    "victim": "dead verdicts on a victim that lived",
    "suspect": "suspicions of members that nothing was done to",
    "restarted": "victims that did not come back by themselves in time",
    "missing": "reports that never came, which no time tells of",
}
"""The columns of a fault's table. Those of which there is nothing to tell are left out."""

_SUMMED: Final = {
    "kill": "the last report",
    "leave": "the last report",
    "host": "the last report",
    "restart": "the last saw it back",
}
"""What the summary of all faults tells of each; of the others, until all are whole again."""

_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"


def round_line(name: str, number: int, played: Round) -> str:
    """Return one round as one line."""
    parts = [f"{name:<10}  {played.fault} {number}"]
    if played.victim:
        parts.append(played.victim)
    if played.fault in {"kill", "leave", "host", "standstill"}:
        parts.append(f"noticed after {_spread_text(list(played.noticed_ms.values()))}")
    if played.returned_ms:
        parts.append(f"back after {_spread_text(list(played.returned_ms.values()))}")
    if played.whole_ms is not None:
        parts.append(f"all alive to all after {played.whole_ms:.0f} ms")
    blame = played.blame
    for count, text in (
        (blame.false_accusations, "FALSE ACCUSATIONS {}"),
        (blame.victim_accusations, "dead verdicts on the victim {}"),
        (blame.suspicions, "suspicions {}"),
        (blame.victim_suspicions, "suspicions of the victim {}"),
        (len(played.missing), "MISSING {}"),
    ):
        if count:
            parts.append(text.format(count))
    if played.is_restarted:
        parts.append("not back by itself, started again")
    return "  ".join(parts)


def _spread_text(times_ms: Sequence[float]) -> str:
    found = spread(times_ms)
    if found.median_ms is None:
        return "by nobody"
    return f"{found.first_ms:.0f}-{found.last_ms:.0f} ms, median {found.median_ms:.0f}"


def report_text(records: Sequence[Record]) -> str:
    """Return the tables and histograms of a whole run."""
    blocks = [_about(records)]
    faults = dict.fromkeys(one.fault for record in records for one in record.rounds)
    for fault in faults:
        blocks.append(fault_table(records, fault))
        times = {
            record.name: [time for one in record.of_fault(fault) for time in one.times_ms]
            for record in records
        }
        if any(times.values()):
            blocks.append(histogram(times))
    if any(record.idle or record.join for record in records):
        blocks.append(cost_table(records))
    if len(faults) > 1:
        blocks.append(summary_table(records))
    return "\n\n".join(block for block in blocks if block)


def _about(records: Sequence[Record]) -> str:
    lines = [f"{record.name:<10}  {record.about}" for record in records]
    lines += [
        f"{record.name:<10}  FAILED: {record.failure}" for record in records if record.failure
    ]
    return "\n".join(lines)


def fault_table(records: Sequence[Record], fault: str) -> str:
    """Return one fault's table, a row for each contestant, and what its columns mean."""
    rows = []
    for record in records:
        played = record.of_fault(fault)
        if played:
            rows.append((record.name, *_fault_cells(played)))
    return table((f"{fault}, ms", *_MEANINGS), rows, _MEANINGS)


def _fault_cells(played: Sequence[Round]) -> tuple[str, ...]:
    spreads = [spread(one.times_ms) for one in played]
    lasts = [each.last_ms for each in spreads]
    back = [max(one.returned_ms.values()) for one in played if one.returned_ms]
    return (
        str(len(played)),
        _middle([each.first_ms for each in spreads]),
        _middle([each.median_ms for each in spreads]),
        _middle(lasts),
        _most(lasts),
        _middle(back),
        _middle([one.whole_ms for one in played]),
        str(sum(one.blame.false_accusations for one in played)),
        str(sum(one.blame.victim_accusations for one in played) or "-"),
        str(sum(one.blame.suspicions for one in played)),
        str(sum(one.is_restarted for one in played) or "-"),
        str(sum(len(one.missing) for one in played)),
    )


def summary_table(records: Sequence[Record]) -> str:
    """Return all faults in one table: a row for each, a column for each contestant."""
    faults = dict.fromkeys(one.fault for record in records for one in record.rounds)
    rows = []
    for fault in faults:
        what = _SUMMED.get(fault, "until all are whole again")
        cells = [_summary_cell(record.of_fault(fault)) for record in records]
        rows.append((f"{fault}: {what}", *cells))
    accused = [
        str(sum(one.blame.false_accusations for one in record.rounds)) if record.rounds else "-"
        for record in records
    ]
    rows.append(("held dead without being so", *accused))
    return table(("all faults, medians in ms", *(record.name for record in records)), rows)


def _summary_cell(played: Sequence[Round]) -> str:
    if not played:
        return "-"
    if played[0].fault not in _SUMMED:
        return _middle([one.whole_ms for one in played])
    text = _middle([spread(one.times_ms).last_ms for one in played])
    missing = sum(len(one.missing) for one in played)
    return f"{text} ({missing} missing)" if missing else text


def cost_table(records: Sequence[Record]) -> str:
    """Return how soon the members met and what an idle one costs."""
    head = ("met after, ms", "packets/s", "UDP B/s", "TCP B/s", "CPU %", "PSS MiB", "RSS MiB")
    rows = []
    for record in records:
        join, idle = record.join, record.idle
        rows.append(
            (
                record.name,
                _number(join.converged_ms if join else None, 0),
                *(
                    _number(value, places)
                    for value, places in (
                        (idle.packets_s if idle else None, 2),
                        (idle.udp_bytes_s if idle else None, 0),
                        (idle.tcp_bytes_s if idle else None, 0),
                        (idle.cpu_pct if idle else None, 2),
                        (idle.pss_mib if idle else None, 1),
                        (idle.rss_mib if idle else None, 1),
                    )
                ),
            )
        )
    return table(("a member", *head), rows)


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], meanings: Mapping[str, str] | None = None
) -> str:
    """Return columns under their heads: the first to the left, the others to the right; then their meanings.

    A column in which no row has anything is left out.
    """
    if not rows:
        return ""
    told = [column for column in range(len(head)) if any(row[column] != "-" for row in rows)]
    head = [head[column] for column in told]
    rows = [[row[column] for column in told] for row in rows]
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    lines = []
    for row in (head, *rows):
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
    known = [f"{title}: {meaning}" for title in head if (meaning := (meanings or {}).get(title))]
    return "\n".join([*lines, *textwrap.wrap("; ".join(known), LINE_CELLS)])


def histogram(times_ms: dict[str, list[float]]) -> str:
    """Return one histogram for each contestant, all with the same bins; times are whole ms, as in the table."""
    times_ms = {name: [float(round(time)) for time in times] for name, times in times_ms.items()}
    known = [time for times in times_ms.values() for time in times]
    width = round_step(max(known) - min(known), BINS - 1)
    low = min(known) // width * width
    blocks = []
    for name, times in times_ms.items():
        counts = bin_counts(times, low, width, int((max(known) - low) // width) + 1)
        most = max(counts)
        if not most:
            continue
        reports = "1 report" if len(times) == 1 else f"{len(times)} reports"
        lines = [f"{name}: {reports}, in bars of {width:g} ms from the time beside them on"]
        lines += [
            f"{low + number * width:8g} ms  {bar_of(count / most)} {count or ''}".rstrip()
            for number, count in enumerate(counts)
        ]
        blocks.append("\n".join(lines))
    return "\n".join(blocks)


def round_step(span: float, steps_max: int) -> float:
    """Return the least of 1, 2, 5, 10, 20, … of which `steps_max` cover the span."""
    power = 1.0
    while True:
        for factor in (1.0, 2.0, 5.0):
            if span <= power * factor * steps_max:
                return power * factor
        power *= 10


def bin_counts(times: Sequence[float], low: float, width: float, bins: int) -> list[int]:
    """Count times by bin; each takes its lower edge."""
    counts = [0] * bins
    for time in times:
        counts[int((time - low) // width)] += 1
    return counts


def bar_of(share: float) -> str:
    """Return a bar of BAR_CELLS cells for a share of 1; anything above 0 is seen."""
    eighths = round(share * BAR_CELLS * 8)
    if share > 0:
        eighths = max(1, eighths)
    full, rest = divmod(eighths, 8)
    return "█" * full + (_EIGHTHS[rest] if rest else "")


def _middle(values: Sequence[float | None]) -> str:
    return _over(values, statistics.median)


def _most(values: Sequence[float | None]) -> str:
    return _over(values, max)


def _over(values: Sequence[float | None], reduce: Callable[[list[float]], float]) -> str:
    known = [value for value in values if value is not None]
    return _number(reduce(known) if known else None, 0)


def _number(value: float | None, places: int) -> str:
    return "-" if value is None else f"{value:.{places}f}"
