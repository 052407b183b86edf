"""The bytes that prove work: where they are kept, how they arrive, how long they stay."""
