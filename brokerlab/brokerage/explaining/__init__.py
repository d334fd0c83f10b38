"""Decisions told in words: why a queue was skipped, what it weighs, how a task ended."""
