"""Benchmarks: ratios measured in one run, each side in a process of its own with its peak memory."""
