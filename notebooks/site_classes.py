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
# # Which queues count as fast, and what does that hang on?
#
# The brokerage of user analysis rates queues as hi, mid or lo by how long jobs wait there, and tasks as S, A, B or C by
# what their users occupy. This notebook rates all queues at every instant of a period, says how long a class lasts, what
# the percentile ranks and the hour limits do, whether the classes hold for the jobs that come, how the documents and the
# deployed code differ. It writes a page, its numbers, tables and charts to `out_dir`, among them how shares stand against
# their targets; it proposes nothing.
#
# Run it here (paths then count from this folder: `../data/demo`), or as
# `brokerlab report site-classes -p archive=data/demo`.

# %% tags=["parameters"]
archive: str = "data/demo"  # archive folder [path]
out_dir: str = "out"  # where everything goes [path]
n_boot: int = 1000  # bootstrap replicates over days [1]
seed: int = 1  # seed of the bootstrap
start: str = ""  # first instant, empty: 4 days after the first merge job or probe [ISO 8601, UTC]
end: str = ""  # last instant, empty: when the last merge job or probe was made [ISO 8601, UTC]
rules: str = "document"  # rule set, document or production [name]
every: str = "1h"  # step of the instants [duration]
low_ranks: list = [0.1, 0.2, 0.25, 0.33, 0.4, 0.5]  # ranks of the lower percentile to try [1]
high_ranks: list = [0.5, 0.6, 0.67, 0.75, 0.8, 0.9]  # ranks of the upper percentile to try [1]
hi_hours: list = [0, 0.5, 1, 2, 4, 8]  # least limits of hi to try [h]
lo_hours: list = [0, 1, 3, 6, 12, 24]  # least limits of lo to try [h]
long_jobs: list = [0, 1, 2, 3, 5, 10]  # long-queued jobs from which a queue is not hi [jobs]
queues_shown: int = 16  # queues in the chart of classes over time [1]

# %% [markdown]
# ## Load and check

# %%
import altair as alt

from brokerlab.charts import classes as charts
from brokerlab.charts import theme
from brokerlab.report import kit
from brokerlab.report import site_classes as report

alt.renderers.enable("svg")
alt.theme.enable(theme.NAME)
p = report.Params.of(globals())
period = report.load(p)
period.archive

# %% [markdown]
# ## Rate queues and tasks

# %%
study = report.study(period, p)
study.frames["queues"]

# %% [markdown]
# What other numbers of the rules would move:

# %%
study.frames["values"]

# %% [markdown]
# One chart to edit: how many jobs still wait, by the class of their queue.

# %%
charts.still_waiting(study.frames["still_waiting"])

# %% [markdown]
# ## Write the page, its numbers, tables and charts

# %%
page = report.page(period, study)
results = kit.publish(page, p)
page.verdict.sentence

# %% [markdown]
# ## The chart behind the answer

# %%
page.chart.drawn()
