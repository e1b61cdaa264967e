"""Tasks under the node that they have to do with: who has them, or for whom they wait.

Source: our own.
"""

from __future__ import annotations

from mesh.core.ids import NodeId


class TasksByNode:
    """Keys of tasks by node, each once, in the order in which they came. O(1) but for what it returns."""

    def __init__(self) -> None:
        """Begin with none."""
        self._keys: dict[NodeId, dict[bytes, None]] = {}

    def __len__(self) -> int:
        """Return how many there are under all nodes together. O(nodes)."""
        return sum(map(len, self._keys.values()))

    def add(self, node_id: NodeId, key: bytes) -> None:
        """Put a task under a node."""
        self._keys.setdefault(node_id, {})[key] = None

    def drop(self, node_id: NodeId, key: bytes) -> None:
        """Take a task away from under a node; nothing happens if it is not there."""
        keys = self._keys.get(node_id, {})
        keys.pop(key, None)
        if not keys:
            self._keys.pop(node_id, None)

    def of(self, node_id: NodeId) -> list[bytes]:
        """Return the tasks under a node. O(their number)."""
        return list(self._keys.get(node_id, ()))

    def has(self, node_id: NodeId, key: bytes) -> bool:
        """Say whether a task stands under a node."""
        return key in self._keys.get(node_id, ())

    def keys(self) -> set[bytes]:
        """Return all of them. O(their number)."""
        return {key for keys in self._keys.values() for key in keys}
