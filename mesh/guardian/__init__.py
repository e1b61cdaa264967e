"""The guardian: a small process that outlives the node and stops its work on time.

`mesh join` is two processes: the guardian, and the node that it starts. Whatever the node starts stays
below the guardian, which is its subreaper: a process whose parent dies becomes the guardian's child, not
init's. So the guardian can freeze and kill a run's work when its deadline passes, though the node be
stopped or stuck; and when the node has ended and nobody is left below the guardian but who was there
before, nothing of that session runs any more: this is the proof that an obituary carries.

It imports nothing of Mesh and of the standard library only what is cheap: it has to live on when
memory is short, beside every node. One thread, one wait, no tick. The rooms: `link` (what node and
guardian tell each other), `work` (which process is whose, and how to stop it without a gap), `company`
(who is not the node's at all), `record` (what a boot leaves behind, and clearing it away), `obituary`,
`program` (the process itself).

What it cannot do: a process in uninterruptible sleep survives SIGKILL until it wakes, and one that
changed its user escapes a guardian that is not root. The run is then not reported as killed, and no
obituary is sent.
"""
