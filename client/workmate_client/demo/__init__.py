"""The whole journey on one laptop: a real server process, real devices, real files, real faults.

Nothing here is shown that did not happen: a separate checker recomputes every figure from the
server's log and the devices' journals.
"""
