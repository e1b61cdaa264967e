"""What an executing node does: slots, runs, and their reports to whoever keeps the tasks."""
