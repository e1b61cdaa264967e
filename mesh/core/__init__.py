"""Values that every pure machine shares: ids, addresses, time, randomness, timers, effects."""
