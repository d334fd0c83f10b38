"""Facts that the production brokerage derives from its input tables before any queue is looked at."""
