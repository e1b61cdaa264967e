"""Queues: how each is to be worked through, as people set it, kept in a register and known at every node.

settings.py   a queue's setting, its bytes, and the register that holds it
change.py     setting it: a change of that register
book.py       what one node knows of the queues in use, asked of a majority now and then
commands.py   what clients ask of queues
"""
