"""What contests and queues promise, measured with real nodes on loopback: one file an experiment.

- `makespan`: uneven tasks on uneven nodes, beside the best schedule that knows all durations
- `busy`: one of five has a busy processor, and wins fewer contests
- `dedicated`: who is kept for a queue takes that first, and nothing else
- `emergency`: who is kept for high load joins under it, and withdraws after it
- `steward`: the voter that holds a contest is killed in the middle of it
- `declined`: a task's home has no slot, and somebody else runs it
- `site`: the nodes, and what is done to them
- `orders`: queues and tasks: how they are set, submitted, and who ran them
- `diary`: commands that write down when they begin and end, and at which node
- `finding`: what was asked of an experiment, and what was found
- `__main__`: the command line
"""
