"""The store: what a voter must not forget, on disk before it is answered.

- `record` one register as it is kept, and its checksum · `identity` which store this is, and its position ·
  `schema` the tables, and how older ones are brought up to date
- `connection` how SQLite is opened, for the one who writes and for those who read · `lock` one process at a time ·
  `place` whether the files that are open are still those that have the names
- `queue` what waits to be written, bounded · `writer` the one thread that commits it, in groups
- `store` the face: open, read, write, close · `wake` how a commit is told to trio
- `tail` commits that the log has lost · `checks` what is wrong with a store, without touching it
- `faults` everything that can go wrong, in words
"""
