"""The contest: who should ask for a task that has no home to go to. The quorum decides who may have it."""
