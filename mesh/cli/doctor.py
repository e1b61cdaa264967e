"""`doctor`: what is wrong with this host, or with a node's data directory, and what to do about it."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Final

from mesh.cli.arguments import Commands, add_command, add_data, add_json, data_dir

if TYPE_CHECKING:
    from mesh.runtime.doctor import Finding

EXIT_BAD: Final = 1

WORDS: Final = """\
Nothing is changed, and a node that runs there goes on. All that the node keeps is read, which takes about
a second for 100,000 records. Exit code: 1 if something is bad, else 0, whatever it warns of.
"""


def add_commands(commands: Commands) -> None:
    """Add this group's commands."""
    parser = add_command(
        commands, "doctor", run_doctor, "say what is wrong with this host or a data directory"
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = WORDS
    add_data(parser)
    add_json(parser)


def run_doctor(options: argparse.Namespace) -> int:
    """Print what was found."""
    from dataclasses import asdict

    from mesh.cli.text import print_json
    from mesh.runtime.doctor import check_data_dir, worst
    from mesh.runtime.host import check_host

    is_named = bool(options.data or os.environ.get("MESH_DATA"))
    findings = [*check_data_dir(data_dir(options), is_named=is_named), *check_host()]
    level = worst(findings)
    if options.json:
        print_json({"worst": level, "findings": [asdict(finding) for finding in findings]})
    else:
        print(as_text(findings))
    return EXIT_BAD if level == "bad" else 0


def as_text(findings: list[Finding]) -> str:
    """Return a line for each finding, and one below for what to do."""
    from mesh.cli.text import paint, printable

    width = max(len(finding.name) for finding in findings)
    lines = []
    for finding in findings:
        name = finding.name.ljust(width)
        lines.append(f"{paint(finding.level.ljust(4))}  {name}  {printable(finding.text)}")
        if finding.advice:
            lines.append(f"{' ' * (width + 8)}{printable(finding.advice)}")
    return "\n".join(lines)
