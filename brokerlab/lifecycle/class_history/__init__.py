"""Classes over a period: how long they last, what their numbers and rules move, and whether they hold for the jobs that come.

* ``period``: what an archive tells at every instant;
* ``ratings``: hi, mid and lo queues over time, and what runs there;
* ``alternatives``: other numbers of the rules, another rule set, what sets the limits;
* ``waits``: what the next jobs waited;
* ``tasks``: classes of tasks, slots of users, shares against targets.
"""

from brokerlab.lifecycle.class_history import alternatives, period, ratings, tasks, waits

__all__ = ["alternatives", "period", "ratings", "tasks", "waits"]
