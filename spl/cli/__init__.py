"""The command line: parse, make one call, emit one document."""
