"""Classes over a period: how long they last, what their numbers and rules move, and whether they hold for the jobs that come.

* ``period``: what an archive tells at every instant;
* ``ratings``: hi, mid and lo queues over time, and what runs there;
* ``alternatives``: other numbers of the rules, another rule set, what sets the limits;
* ``waits``: what the next jobs waited;
* ``tasks``: classes of tasks, slots of users, shares against targets.
"""

from brokerlab.lifecycle.class_history.alternatives import (
    RuleSetComparison,
    binding_limits,
    compare_rule_sets,
    compare_values,
    next_to_current,
)
from brokerlab.lifecycle.class_history.period import Period, read_period
from brokerlab.lifecycle.class_history.ratings import (
    CHANGING,
    CLASSES,
    NONE,
    PARTS,
    QueueRatings,
    busiest_queues,
    class_shares,
    class_spells,
    count_usual,
    mark_changes,
    missing_classes,
    rate_queues,
    slots_over_time,
    stability,
    usual_class,
    usual_classes,
)
from brokerlab.lifecycle.class_history.tasks import (
    NOT_RATED,
    TASK_CLASSES,
    TaskRatings,
    changed_tasks,
    rate_tasks,
    shares_against_targets,
    shares_over_time,
    slots_of_users,
    task_classes_by,
    tasks_over_time,
)
from brokerlab.lifecycle.class_history.waits import (
    SAMPLED,
    STEERED,
    compare_medians,
    describe_queues,
    in_minutes,
    jobs_at_classes,
    limits_by_queue,
    limits_by_weight,
    still_waiting,
    wait_quantiles,
    waits_by_class,
)

__all__ = [
    "CHANGING",
    "CLASSES",
    "NONE",
    "NOT_RATED",
    "PARTS",
    "SAMPLED",
    "STEERED",
    "TASK_CLASSES",
    "Period",
    "QueueRatings",
    "RuleSetComparison",
    "TaskRatings",
    "binding_limits",
    "busiest_queues",
    "changed_tasks",
    "class_shares",
    "class_spells",
    "compare_medians",
    "compare_rule_sets",
    "compare_values",
    "count_usual",
    "describe_queues",
    "in_minutes",
    "jobs_at_classes",
    "limits_by_queue",
    "limits_by_weight",
    "mark_changes",
    "missing_classes",
    "next_to_current",
    "rate_queues",
    "rate_tasks",
    "read_period",
    "shares_against_targets",
    "shares_over_time",
    "slots_of_users",
    "slots_over_time",
    "stability",
    "still_waiting",
    "task_classes_by",
    "tasks_over_time",
    "usual_class",
    "usual_classes",
    "wait_quantiles",
    "waits_by_class",
]
