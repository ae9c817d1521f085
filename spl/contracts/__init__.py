"""One frozen Struct per printed document."""
