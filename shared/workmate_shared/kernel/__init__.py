"""What every lifecycle shares: ids, instants, the transition table, decisions and the catalogue.

Nothing here knows a task from an article; nothing here does I/O, reads a clock or draws a number.
"""
