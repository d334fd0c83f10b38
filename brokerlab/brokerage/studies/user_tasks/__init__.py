"""What the analysis brokerage does to users: who is held back, what removes queues, whom weights serve, is it fair.

`study_user_tasks` answers all at once. `outcomes` says of each brokerage whose it is and how it went; `held` sums up the throttle, `queues` both locality loops
and the Analysis Stabilizer, `weights` the original against the new basic weight, `fairness` what each user asks for and
gets. Frames in, frames out; intervals are over users, who rise and fall with all their tasks, or over tasks.
"""

from brokerlab.brokerage.studies.user_tasks.fairness import (
    jain_indices,
    jobs_with_users,
    lorenz_curves,
    mean_waits,
    totals_by_user,
)
from brokerlab.brokerage.studies.user_tasks.held import (
    held_by_level,
    held_by_rule,
    held_by_unit,
    held_over_time,
    limit_margins,
)
from brokerlab.brokerage.studies.user_tasks.outcomes import outcomes
from brokerlab.brokerage.studies.user_tasks.queues import (
    loop_routes,
    removed_by_loop,
    stabilizer_by_queue,
    stabilizer_shares,
    stabilizer_state,
)
from brokerlab.brokerage.studies.user_tasks.study import UserTasks, study_user_tasks
from brokerlab.brokerage.studies.user_tasks.weights import WeightComparison, compare_basic_weights

__all__ = [
    "UserTasks",
    "WeightComparison",
    "compare_basic_weights",
    "held_by_level",
    "held_by_rule",
    "held_by_unit",
    "held_over_time",
    "jain_indices",
    "jobs_with_users",
    "limit_margins",
    "loop_routes",
    "lorenz_curves",
    "mean_waits",
    "outcomes",
    "removed_by_loop",
    "stabilizer_by_queue",
    "stabilizer_shares",
    "stabilizer_state",
    "study_user_tasks",
    "totals_by_user",
]
