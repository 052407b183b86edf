"""The commit path: gather, look up, decide, number, sign, append, answer; verify and rebuild."""
