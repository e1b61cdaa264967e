"""Registers: what a mesh must agree on, each decided by a quorum of voters under a ballot, with leases.

numbers.py    the numbers in ballots (mesh.core.ballot): each used by one session, once
leases.py     how long an owner trusts, and how long a voter waits: the inequality between the two
record.py     what a voter keeps of one register
kinds.py      what a register may hold, by how its key begins
voter.py      promises, accepts, renews: each durable before it is answered
ended.py      which sessions are proved to be over
proposal.py   one ballot of one asker at one register: create, claim or change
trust.py      an owner's side of one lease: sure, in doubt, lost
writer.py     an owner's writes under its ballot, numbered
reading.py    what a majority holds, asked without a ballot
asker.py      a node's questions: to create, to change, to read
leaseholder.py  all leases of a node, renewed together
owning.py     what a node owns: its leases, and its writes under them
roster.py     who votes, in which epoch
seating.py    which voters keep a register, and which of them is the first
installation.py  how a voter of the next epoch takes over what the last one held
admission.py  which members have stood long enough to be voters
succession.py  how a node learns of rosters, takes its seat, and proposes the next
handover.py   what a desk does for a change of voters
outbox.py     what waits for a commit, and what does not
digests.py    what a voter holds, as sums that two voters compare
repair.py     how voters find what one of them lacks, and ship it
finals.py     which final registers a voter holds, and which may be purged
retention.py  how all voters of a register purge it
upkeep.py     how fast that goes, and what a desk is asked to do for it
keeping.py    digests, repair and retention, for one voter
holder.py     an owner's part of a desk
desk.py       all of it for one node: its voter, what it asks, what it owns
"""
