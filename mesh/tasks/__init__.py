"""Tasks that registers keep: what a task is, who is asked to run it, who claims it, and what clients ask."""
