"""The engine of decisions: rules and facts as values, asked of pairs of tasks and places, then of all places of a task."""
