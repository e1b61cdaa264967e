"""Who is alive: SWIM's failure detector and gossip, join and founding, anti-entropy.

Where each part of the protocol lives:

- `profile` every timing knob and the presets · `identity` what this node says of itself
- `member`, `table` what is known of the others, and the merge rule
- `probe_order` whom to ping next · `prober` ping, indirect pings, fallback, verdict 'no answer'
- `suspicion` how long a suspect has to refute · `rumours` applying news, refuting, name conflicts
- `dissemination` news on its way, piggybacked · `outbox` packets within the datagram limit
- `digest` what two members compare · `sync` anti-entropy between two members
- `joining` seeds, founding, refusals · `reconnect` trying the dead again
- `swim` the composition: dispatch and timers only
"""
