"""What `workmate-server` does for each of its commands: one function each, which prints nothing."""
