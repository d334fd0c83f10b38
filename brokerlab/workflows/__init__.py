"""Work with structure: workflows on batch queues, grouped into pilot jobs.

`readers` read workflows, `dag` holds one, `rules` name the ways to group its levels, `decide` groups them, `manager` runs
one on a queue under one of the `strategies`, `compare` runs many. `swf` and `load` read what else a queue has to do, `batch`
is the queue, `predictors` learn from a log how long jobs wait. Importing this package loads none of them.
"""
