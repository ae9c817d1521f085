"""Text renderings of the documents."""
