"""The fleet's old place: see mesh.fleet."""

from mesh.fleet.clearing import end_marked, marked_pids, undisturbed, wait_until
from mesh.fleet.fleet import Fleet, FleetError, NodeProcess

__all__ = [
    "Fleet",
    "FleetError",
    "NodeProcess",
    "end_marked",
    "marked_pids",
    "undisturbed",
    "wait_until",
]
