"""The field task: the job that a worker travels to and proves.

Its table, commands, events, proof policy and manifest, and the pure functions over them.
"""
