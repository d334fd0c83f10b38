"""Where work goes: production task and job brokerage, replayed as queries."""
