"""The durable side of the device: what the worker captured, until a receipt answers for it.

What this package calls saved is synced to disk, sealed under the profile's keys, and readable after
any crash, or its damage is named; nothing is dropped in silence.
"""
