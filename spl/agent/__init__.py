"""The built-in agent: a small pipeline over a maintained agent library, which is an optional extra."""
