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
# # What decides where work goes, and which settings matter?
#
# Production tasks get a nucleus, their jobs get queues. Both are chosen by checks that remove places and by weights that
# order what is left. This notebook rebuilds what the brokerages of a period saw, decides again, and says which checks,
# weights, settings and rules the outcome hangs on. It writes a page, its numbers, tables and charts to `out_dir`; it
# proposes nothing.
#
# Run it here (paths then count from this folder: `../data/demo`), or as
# `brokerlab report brokerage-replay -p archive=data/demo`.

# %% tags=["parameters"]
archive: str = "data/demo"  # archive folder [path]
start: str = ""  # first brokerage, empty for no bound [ISO 8601, UTC]
end: str = ""  # brokerages from here on are left out, empty for no bound [ISO 8601, UTC]
rules: str = "document"  # rule set, document or production; compared with the other [name]
max_tasks: int = 0  # replay at most so many tasks, drawn at random; 0 for all [tasks]
every: str = "1h"  # grid to which instants are rounded down, empty for none [duration]
keys: list[str] = []  # gdpconfig keys to vary, empty for the usual ten [name]
points: int = 5  # values tried per key over its range, besides its own, half and double [1]
switch_sample: int = 60  # brokerages to try single rule differences on, 0 for none [1]
n_boot: int = 1000  # bootstrap replicates over tasks [1]
seed: int = 1  # seed of the sample, the draws and the bootstrap
out_dir: str = "out/brokerage-replay"  # where everything goes [path]

# %% [markdown]
# ## Load and check

# %%
import altair as alt

from brokerlab.charts import theme
from brokerlab.report import brokerage_replay as report

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
# What the job brokerage saw, table by table:

# %%
inputs.jobs.to_dict()

# %% [markdown]
# ## Decide again

# %%
study = report.study(
    inputs, keys=keys, points=points, switch_sample=switch_sample, n_boot=n_boot, seed=seed
)
study.decisions.tasks.group_by("outcome").len().sort("outcome")

# %% [markdown]
# The funnel: what each check removed, in order.

# %%
study.by_check

# %% [markdown]
# ## Write page content, charts and tables

# %%
results = report.write(study, out_dir)
for part in results["page"]["parts"]:
    print(f"{part['verdict']['subject']}: {part['verdict']['sentence']}")

# %% [markdown]
# ## The pictures behind the answers

# %%
for drawer in (report.pictures.funnel, report.pictures.settings):
    drawn = drawer(study)
    if drawn is not None:
        display(drawn[0])
