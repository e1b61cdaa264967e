"""Real nodes that run real tasks while something breaks, judged from outside."""
