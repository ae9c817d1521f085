"""What a record is: the envelope, every kind, and their registry."""
