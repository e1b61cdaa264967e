"""The screen of `mesh top`: panes, keys and the terminal, in a process of its own.

A stream of views comes in from the local node (`feed`), is folded into what is shown (`board`), laid
out by pure panes and pages (`screen`), and written line by line where it changed (`terminal`). Keys make
a new `look`: where the cursor is, what is sorted, filtered, open or frozen. Nothing here speaks to other
nodes, and nothing here can delay the gossip.
"""
