"""Job files of other systems: read them, turn every row into a job or a refusal, hand jobs in."""
