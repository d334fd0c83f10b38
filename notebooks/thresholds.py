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
# # Which thresholds of the brokerage should be changed, and to what?
#
# Each threshold trades something: bytes moved against waiting, evenness against speed. This notebook asks of every key
# whether any of its values changes any decision of this archive (cheap); of those that do, what other values would have led
# to, by simulating the grid with them; it chooses under stated limits on one period and scores the choice on a later one.
# It first asks whether the simulation gives back what was seen: where it does not, nothing is simulated and nothing proposed.
#
# It writes a page, its numbers, tables, charts and a proposal to `out_dir`, whoever runs it: here, or as
# `brokerlab report thresholds -p archive=data/demo`.

# %% tags=["parameters"]
archive: str = "data/demo"  # archive folder [path]
out_dir: str = "out"  # where everything goes [path]
n_boot: int = 2000  # bootstrap replicates [1]
seed: int = 1  # seed of simulations, bootstrap and search
start: str = ""  # choice from here on, empty: archive's second day [ISO 8601, UTC]
end: str = ""  # scores end, empty for the archive's last day [ISO 8601, UTC]
rules: str = "document"  # rule set, document or production [name]
keys: list = []  # keys to look at, empty for all thresholds [gdpconfig key]
points: int = 5  # values per key between its guard rails, the current one not counted [1]
objective: str = "turnaround_h"  # what is to be small, or waiting_h, moved_tb... [name]
limits: dict = {}  # limits other than the defaults, by name, such as moved_pct; null for none [%]
relevant: float = 0.05  # smallest effect that matters, part of what is now [1]
alpha: float = 0.05  # intervals hold all but this part [1]
replications: int = 4  # simulations of every setting [1]
most_replications: int = 8  # simulations of settings that are judged [1]
most_keys: int = 3  # keys of that search at most [1]
rounds: int = 3  # halvings of the steps beside the best value [1]
cycle: str = ""  # from one brokerage to the next, empty: as the archive shows [duration]
capacity: str = ""  # file of known slots (panda_queue, slots, perhaps ts), empty: none [path]
capacity_most: float = 4.0  # most slots of a queue that was never full, 1: none more than seen [times its busiest time]
workers: int = 2  # processes for simulations, at most [1]
proof_start: str = ""  # choice ends and scores begin, empty for half way [ISO 8601, UTC]
screen_days: float = 4.0  # days at the end of the choice that are screened [days]
stage: str = "jobs"  # what is simulated, jobs (production) or analysis [name]
store: str = ""  # folder that keeps simulations for later runs [folder]

# %%
import altair as alt

from brokerlab.charts import primitives, theme
from brokerlab.report import kit, results
from brokerlab.report import thresholds as report

alt.renderers.enable("svg")
alt.theme.enable(theme.NAME)
p = report.Params.of(globals())

# %% [markdown]
# ## Screen, validate, simulate, judge

# %%
data = report.load(p)
data

# %%
study = report.study(data, p)
screened = study.calibration.screen.keys
screened.select("key", "now", "unit", "shift", "at", "n_tasks", "follows")

# %% [markdown]
# ## By hand
# The screen value by value, and one chart to edit: how many of the expected jobs each value of a key sends elsewhere.

# %%
curves = study.calibration.screen.values
top = screened.drop_nulls("shift").sort("shift", descending=True).head(1)
curves.join(top.select("key"), on="key")

# %%
primitives.dots(
    curves.join(top.select("key"), on="key").drop_nulls("value"),
    "shift",
    "value",
    title="expected jobs that go elsewhere [%]",
)

# %% [markdown]
# ## The page

# %%
written = kit.publish(report.page(data, study, p), p)
print(results.verdict_line(written["page"]["verdict"]))
