"""Who speaks first for a contested task: how fit a member is, where it stands among others, how long it waits."""
