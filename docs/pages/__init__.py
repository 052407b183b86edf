"""The pages of the reference that are written from the code, one module for each kind of page.

Every function here takes values of the code and returns Markdown; none reads a clock or the
environment, so that the same code always gives the same page.
"""
