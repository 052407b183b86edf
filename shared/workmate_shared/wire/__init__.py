"""What travels and what is signed: the bounded codec, envelopes, batches, receipts and messages.

Bytes are kept exactly as they were signed, and verified before they are parsed.
"""
