"""Who is alive: SWIM's failure detector and gossip, Lifeguard, join and founding, anti-entropy.

Where each part of the protocol lives:

- what is known: `member` one entry · `table` the merge rule · `identity` what this node says of itself
  · `claims` what only one may hold · `names` who holds which name · `conflicts` two at one address
  · `digest` what two members compare · `tombstones` the forgotten
- the failure detector, composed by `detector`: `turns` whom to ping next, and whom one waits for ·
  `probe_order` SWIM's round · `prober` ping, pings through others, over TCP, nacks ·
  `glances` how busy all are, for whoever looks · `suspicion` how long a
  suspect has · `awareness` the own health score · `vigil` pauses and lag of this node · `doubt` when it had better not judge alone · `echo` whether it hears even
  itself · `lifeguard` which of these are at work
- evidence: `observers` who observes whom · `lifelines` this node's own, kept open to its observers ·
  `evidence` what the end of another's, or a refusal, means · `case` what is known of one session ·
  `testimony` who tells whom of a crash ·
  `lines` both ends · `address_index` who is at an address
- news: `rumours` applying it · `refutation` what is said of this node itself · `dissemination` what is
  still to be told · `gossip` when, and to whom · `outbox` filling packets · `observed` how a change
  reads as an event · `clues` evidence in words · `history` each member's past · `flaps` members that
  come and go
- anti-entropy and healing: `sync` two members compare · `merging` what the other knows is applied ·
  `paging` what fits in a frame · `reconnect` trying the dead again · `remembered` whom the last session
  knew · `seed_watch` looking for them, and for seeds that nobody here knows · `alone` saying that nobody
  is heard
- the way in, composed by `entrance`: `wishes` the user's · `joining` asking the seeds · `founding` who
  founds · `gate` answering who wants in · `dialback` whether whoever was let in can be reached
- the way out, beside leaving and dying: `forgetting` who is removed for good
- `profile` every timing knob and the presets · `swim` the composition: dispatch and timers, and leaving
"""
