"""The bytes: deterministic CBOR, hashing, signatures' input, and the one JSON encoder."""
