"""Sealing: what leaves a node is encrypted, and what comes in is opened or dropped before it is read.

    key        one secret, its id, and what is derived from it
    ring       all keys that a node knows: a set of registers that merge, so that rotation needs no leader
    window     which numbers of one sender have been seen
    freshness  whether a sender's session runs now, or was recorded long ago
    datagrams  seals and opens datagrams
    handshake  two ends of a stream prove the key to each other
    notices    what two ends say that share no key
    channel    seals and opens the frames of one stream

No part of it touches a socket, a clock or a file; randomness is handed in. The node and its machines
know nothing of it: they see plain packets.
"""
