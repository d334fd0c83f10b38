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
switch_sample: int = 60  # brokerages to try single switches of the rules on, 0: none [1]
spark: str = ""  # master of a Spark session that carries jobs and files, empty for this machine

# %%
import altair as alt
import polars as pl

from brokerlab import brokerage
from brokerlab.charts import primitives, theme
from brokerlab.report import brokerage_replay as report
from brokerlab.report import kit, results

alt.renderers.enable("svg")
alt.theme.enable(theme.NAME)
p = report.Params.of(globals())

# %% [markdown]
# ## What the job brokerage saw
# Its input tables, rebuilt at every instant:

# %%
data = report.load(p)
data.period.replay.to_dict()

# %% [markdown]
# ## Decide again

# %%
study = report.study(data, p)
study.tasks.decided_tasks.group_by("outcome").len().sort("outcome")

# %% [markdown]
# ## By hand
# Some brokerages decided once more: the funnel by resource type, and why one task was, or was not, sent to a queue.

# %%
seen = data.period.replay
some = seen.of(seen.tasks.select("jeditaskid", "snapshot").head(200))
decisions = brokerage.decide(some, rules=data.period.rules)
brokerage.funnel(decisions, by=["resource_type"]).filter(pl.col("n_pairs") > 0)

# %%
pair = decisions.queues.row(0, named=True)
brokerage.explain(
    decisions,
    jeditaskid=pair["jeditaskid"],
    panda_queue=pair["panda_queue"],
    snapshot=pair["snapshot"],
    ran=data.period.ran,
)

# %% [markdown]
# One chart to edit: what other values of the key that matters most would send elsewhere.

# %%
curve = study.keys.curves.join(study.keys.keys.head(1), on="key", how="semi")
primitives.line(
    curve,
    "value",
    "shift",
    x_title="value of the key",
    y_title="jobs that go elsewhere [%]",
    colour="key",
    points=True,
)

# %% [markdown]
# ## The page

# %%
written = kit.publish(report.page(data, study), p)
print(results.verdict_line(written["page"]["verdict"]))
