"""The renderings of an actor's report: pure functions from its document to text, one module for each format."""
