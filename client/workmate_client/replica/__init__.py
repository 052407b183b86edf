"""The disposable side of the device: what the server said.

Damaged or outdated, it is dropped and pulled again; nothing that the worker captured lies here.
"""
