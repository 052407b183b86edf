"""What a worker can do: one function each, used alike by screens, command line and tests.

Nothing here knows a terminal; nothing here sends anything. Every act is decided by the lifecycle's own
functions, saved, and only then reported as done.
"""
