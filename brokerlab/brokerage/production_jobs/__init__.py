"""Production job brokerage: which queues may receive the jobs of a task, and how they rank.

Source: production-job-brokerage.md; the brokerage page, ATLAS Production Job Brokerage.
"""
