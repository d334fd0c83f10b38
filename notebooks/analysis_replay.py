# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Which user tasks are held back, where would the others go, and is it fair?
#
# Before jobs of a user task are made, a throttle asks whether the user or group has enough already. Then checks remove
# queues, in a loop with data locality and one without, the Analysis Stabilizer marks queues where too many jobs of the
# user wait, and a weight divides the jobs. This notebook rebuilds what the brokerage of user tasks saw over a period,
# decides again, and says who is held back and why, which checks, limits, weights, settings and rules the outcome hangs
# on, and how evenly it serves users. It writes a page, its numbers, tables and charts to `out_dir`; it proposes nothing.
#
# Run it here (paths then count from this folder: `../data/demo`), or as
# `brokerlab report analysis-replay -p archive=data/demo`.

# %% tags=["parameters"]
archive: str = "data/demo"  # archive folder [path]
start: str = ""  # first brokerage, empty for no bound [ISO 8601, UTC]
end: str = ""  # brokerages from here on are left out, empty for no bound [ISO 8601, UTC]
rules: str = "document"  # rule set, document or production; compared with the other [name]
max_tasks: int = 0  # replay at most so many tasks, drawn at random; 0 for all [tasks]
every: str = "1h"  # grid to which instants are rounded down, empty for none [duration]
keys: list[str] = []  # gdpconfig keys to vary, empty for the usual ten [name]
points: int = 5  # values tried per key over its range, besides its own, half and double [1]
switch_sample: int = 30  # brokerages to try single rule differences on, 0 for none [1]
n_boot: int = 1000  # bootstrap replicates over users or tasks [1]
seed: int = 1  # seed of the sample, the draws and the bootstrap
out_dir: str = "out/analysis-replay"  # where everything goes [path]

# %% [markdown]
# ## Load and check

# %%
import altair as alt

from brokerlab.charts import theme
from brokerlab.report import analysis_replay as report

alt.renderers.enable("svg")
alt.theme.enable(theme.NAME)
keys = keys or list(report.USUAL_KEYS)
report.check(
    keys=keys,
    rules=rules,
    every=every,
    max_tasks=max_tasks,
    points=points,
    switch_sample=switch_sample,
    n_boot=n_boot,
    seed=seed,
    start=start,
    end=end,
)

# %%
inputs = report.load(
    archive, start=start, end=end, rules=rules, max_tasks=max_tasks, every=every, seed=seed
)
inputs.archive.summary()

# %% [markdown]
# What the brokerage of user tasks saw, table by table:

# %%
inputs.replay.to_dict()

# %% [markdown]
# ## Decide again

# %%
study = report.study(
    inputs, keys=keys, points=points, switch_sample=switch_sample, n_boot=n_boot, seed=seed
)
study.decisions.tasks.group_by("outcome", "throttle").len().sort("outcome", "throttle")

# %% [markdown]
# What each rule of the throttle holds back, and the funnel of queues in either loop:

# %%
study.by_rule

# %%
study.by_loop

# %% [markdown]
# ## Write page content, charts and tables

# %%
results = report.write(study, out_dir)
for part in results["page"]["parts"]:
    print(f"{part['verdict']['subject']}: {part['verdict']['sentence']}")

# %% [markdown]
# ## The pictures behind the answers

# %%
for drawer in (report.pictures.held, report.pictures.loops, report.pictures.weights):
    drawn = drawer(study)
    if drawn is not None:
        display(drawn[0])
