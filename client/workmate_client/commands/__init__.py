"""The subcommands of `workmate`, one module for each group: read arguments, one call, say the result.

None of them decides anything: each calls the same function of `service` that the screens call.
"""
