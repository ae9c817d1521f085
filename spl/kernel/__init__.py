"""Use cases: the only writer, and what joins store, folds and harness."""
