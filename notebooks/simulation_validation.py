# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#       jupytext_version: 1.19.6
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Does the simulation give the waiting times, utilisation and kills that the archive saw?
#
# Before anything is proposed from a simulation, it has to give back what happened. This notebook simulates a period of an
# archive with every job at its own queue (or, if asked, where the brokerage's rules send it now), with slots and start-up delays read from the archive, and compares waiting
# times, use of the slots and kills, queue by queue, with stated limits. It writes a page, its numbers, tables and charts to
# `out_dir`; where the verdict is "no answer", no report proposes from a simulation of this archive.
#
# Run it here (paths then count from this folder: `../data/demo`), or as
# `brokerlab report simulation-validation -p archive=data/demo`.

# %% tags=["parameters"]
archive: str = "data/demo"  # archive folder [path]
start: str = ""  # period begins, empty for the middle of the archive [ISO 8601, UTC]
end: str = ""  # period ends, empty for the end of the archive [ISO 8601, UTC]
limits: dict[str, float] = {}  # limits other than the defaults, by name, such as wasserstein_h [1]
fit: str = "first"  # which jobs start at free cores, first or strict [name]
window: str = "1d"  # slots are constant so long [duration]
quantile: float = 1.0  # of the cores in use in a window, taken for its slots [1]
n_boot: int = 100  # bootstrap replicates [1]
seed: int = 1  # seed of simulation and bootstrap
brokerage: str = "seen"  # where jobs go: seen, or replayed by the rules [name]
cycle: str = "1h"  # from one brokerage to the next, where it is replayed [duration]
out_dir: str = "out/simulation-validation"  # where everything goes [path]

# %% [markdown]
# ## Check the parameters

# %%
import altair as alt

from brokerlab.charts import theme
from brokerlab.report import simulation_validation as report

alt.renderers.enable("svg")
alt.theme.enable(theme.NAME)
report.check(
    limits=limits,
    fit=fit,
    window=window,
    quantile=quantile,
    n_boot=n_boot,
    seed=seed,
    start=start,
    end=end,
    brokerage=brokerage,
    cycle=cycle,
)

# %% [markdown]
# ## Simulate and compare

# %%
study = report.study(
    archive,
    start=start,
    end=end,
    limits=limits,
    fit=fit,
    window=window,
    quantile=quantile,
    n_boot=n_boot,
    seed=seed,
    brokerage=brokerage,
    cycle=cycle,
)
study.validation.queues

# %% [markdown]
# ## Write page content, charts and tables

# %%
results = report.write(study, out_dir)
print(results["page"]["verdict"]["sentence"])

# %% [markdown]
# ## The pictures behind the answer

# %%
for drawer in (report.pictures.waits, report.pictures.broken):
    drawn = drawer(study)
    if drawn is not None:
        display(drawn[0])
