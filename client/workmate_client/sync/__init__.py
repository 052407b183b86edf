"""The sync engine: what to send next, whether an answer is to be believed, and the doing of both.

`plan` and `verify` are pure; `transport` alone knows HTTP; `upload` moves evidence; `runner` carries
out the plans. Only an outcome whose receipt verifies under a pinned key consumes a command.
"""
