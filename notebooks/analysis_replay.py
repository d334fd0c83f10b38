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
out_dir: str = "out"  # where everything goes [path]
n_boot: int = 1000  # bootstrap replicates [1]
seed: int = 1  # seed of the bootstrap
start: str = ""  # only from this instant on, empty for all [ISO 8601, UTC]
end: str = ""  # only before this instant, empty for all [ISO 8601, UTC]
rules: str = "document"  # rule set, document or production [name]
max_tasks: int = 0  # tasks replayed, drawn at random; 0: all [tasks]
every: str = "1h"  # grid of the instants, empty for none [duration]
keys: list = []  # gdpconfig keys to vary, empty: the usual [name]
points: int = 5  # values per key, beside its half and double [1]
switch_sample: int = 30  # brokerages to try single switches of the rules on, 0: none [1]

# %% [markdown]
# ## Load

# %%
import altair as alt

from brokerlab.charts import analysis as charts
from brokerlab.charts import theme
from brokerlab.report import analysis_replay as report
from brokerlab.report import kit

alt.renderers.enable("svg")
alt.theme.enable(theme.NAME)
p = report.Params.of(globals())

# %%
period = report.load(p)
period.archive

# %% [markdown]
# What the brokerage of user tasks saw, table by table:

# %%
period.replay.to_dict()

# %% [markdown]
# ## Decide again

# %%
study = report.study(period, p)
study.tasks.decisions.tasks.group_by("outcome", "throttle").len().sort("outcome", "throttle")

# %% [markdown]
# What each rule of the throttle holds back, and the funnel of queues in either loop:

# %%
study.tasks.held_by_rule

# %%
study.tasks.removed_by_loop

# %% [markdown]
# ## Write page, charts and tables

# %%
page = report.page(period, study)
results = kit.publish(page, p)
page.verdict.sentence

# %% [markdown]
# ## The pictures behind the answers

# %%
charts.held_over_time(study.tasks.held_over_time)

# %%
charts.lorenz(page.also["lorenz"])

# %%
charts.places_by_weight(study.tasks.weights.places, current=period.rules.basic_weight)
