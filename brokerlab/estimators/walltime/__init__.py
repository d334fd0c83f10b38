"""How long jobs run: estimators tried on whole tasks and on batch logs, and what core power explains of it."""
