"""Offline evaluation of coding agents: suites, workspaces, processes, checks, reports."""
