"""What both sides of Workmate must agree on: rules, messages and proofs, as values and plain functions."""
