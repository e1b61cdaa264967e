"""Hooks: shell lines that a node runs for its user, and what decides when they run and what follows.

outcome.py    how one run of a shell line ended
health.py     a health check's outcomes in, whether the host is fit for work out
shortage.py   the mesh's load in, when the hook of a shortage is to be asked for out
latest.py     the latest run of a hook in the whole mesh: its bytes, and the register that holds them
turn.py       taking the next turn: a change of that register, which succeeds once a cool-down
taker.py      one node's way to the turns: what it asks for, and whether it may run what it was granted
commands.py   what a node is asked for: a turn

Pure: whatever runs a line is in the runtime.
"""
