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
# # Does the simulation give the waiting times, utilisation and kills that the archive saw?
#
# Before anything is proposed from a simulation, it has to give back what happened. This notebook simulates a period of an
# archive with every job at its own queue (or, if asked, where the brokerage's rules send it), with slots and start-up delays
# read from the archive, and compares waiting times, use of the slots and kills, queue by queue, with stated limits. Where the
# verdict is "no answer", no report proposes from a simulation of this archive.
#
# It writes a page, its numbers, tables and charts to `out_dir`, whoever runs it: here, or as
# `brokerlab report simulation-validation -p archive=data/demo`.

# %% tags=["parameters"]
archive: str = "data/demo"  # archive folder [path]
out_dir: str = "out"  # where everything goes [path]
n_boot: int = 100  # bootstrap replicates [1]
seed: int = 1  # seed of simulation and bootstrap
start: str = ""  # period begins, empty for the middle of the archive [ISO 8601, UTC]
end: str = ""  # period ends, empty for the end of the archive [ISO 8601, UTC]
rules: str = "document"  # rule set, document or production [name]
limits: dict = {}  # limits other than the defaults, by name, such as wasserstein_h
fit: str = "first"  # which jobs start at free cores, first or strict [name]
window: str = "1d"  # slots are constant so long [duration]
quantile: float = 1.0  # of the cores in use in a window, taken for its slots [1]
brokerage: str = "seen"  # where jobs go: seen, or replayed by the rules [name]
cycle: str = ""  # from one brokerage to the next, empty: as the archive shows [duration]

# %%
import altair as alt

from brokerlab.charts import primitives, theme
from brokerlab.report import kit, results
from brokerlab.report import simulation_validation as report

alt.renderers.enable("svg")
alt.theme.enable(theme.NAME)
p = report.Params.of(globals())

# %% [markdown]
# ## Simulate and compare

# %%
data = report.load(p)
data

# %%
study = report.study(data, p)
study.queues

# %% [markdown]
# ## By hand
# One chart to edit: the median waits of every queue, both sides.

# %%
primitives.scatter(
    study.waits([50.0]),
    "observed_h",
    "simulated_h",
    x_title="observed median wait [h]",
    y_title="simulated median wait [h]",
    colour="state",
    diagonal=True,
)

# %% [markdown]
# ## The page

# %%
written = kit.publish(report.page(data, study, p), p)
print(results.verdict_line(written["page"]["verdict"]))
