"""Pure functions from records to documents."""
