"""The log, its blobs and keys, on disk and in memory."""
