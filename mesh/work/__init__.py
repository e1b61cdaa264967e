"""Tasks in their first form: kept in the memory of the node that accepted them, run wherever a slot is free."""
