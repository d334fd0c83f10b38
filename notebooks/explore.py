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
# # What is in this archive, what in it looks wrong, and where did its jobs fail and wait?
#
# A walk for whoever has a table of jobs and nothing else in mind yet. Each cell asks one question; change it and run it
# again. The last cells write the same as a page, its numbers, tables and charts to `out_dir`; nothing is proposed.
# Run it here, or as `brokerlab report explore -p archive=data/demo`.

# %% tags=["parameters"]
archive: str = "data/demo"  # archive folder [path]
out_dir: str = "out"  # where everything goes [path]
n_boot: int = 2000  # bootstrap replicates [1]
seed: int = 1  # seed of the bootstrap
start: str = ""  # only from this instant on, empty for all [ISO 8601, UTC]
end: str = ""  # only before this instant, empty for all [ISO 8601, UTC]
every: str = ""  # step of the charts over time, empty: one that fits [duration]
levels: int = 6  # shares, queues and statuses told apart in charts over time [1]
rows: int = 10  # queues, tasks and errors in a table [1]

# %%
from importlib.util import find_spec

import altair as alt
import polars as pl

from brokerlab.archive import explore
from brokerlab.charts import explore as charts
from brokerlab.charts import theme
from brokerlab.lifecycle.states import waiting_states
from brokerlab.report import explore as report
from brokerlab.report import kit

alt.renderers.enable("svg")
alt.theme.enable(theme.NAME)
p = report.Params.of(globals())

# %% [markdown]
# ## Open
# Nothing is read before it is asked for.

# %%
data = report.load(p)
archive = data.archive
archive

# %% [markdown]
# ## Can it be trusted?
# Coverage, keys that lead nowhere, values that cannot be true, doubled rows, gaps. Each is a frame of its own, too.

# %%
profile = data.profile  # archive.profile()
profile

# %%
profile.tables

# %%
measured = profile.columns.filter(pl.col("table") == "jobs", pl.col("unit").is_not_null())
measured.select("column", "unit", "null_share", "zeros", "least", "median", "p99", "most")

# %% [markdown]
# ## How many jobs, and when?
# `explore.jobs` is the table `jobs` with memory, CPU time, run time, wait and error as columns: a lazy Polars frame.

# %%
jobs = data.jobs  # explore.jobs(archive)
charts.jobs_over_time(explore.over_time(jobs, "jobstatus"))

# %%
charts.jobs_over_time(explore.over_time(jobs, "gshare"))

# %%
charts.jobs_over_time(explore.over_time(jobs, "computingsite"))

# %% [markdown]
# ## What do jobs need, and how long do they wait?

# %%
explore.distributions(jobs)

# %%
explore.distributions(jobs, by="resource_type")

# %%
charts.distributions(explore.histograms(jobs))

# %% [markdown]
# ## What fails: which error, where, in which task?

# %%
explore.failures(jobs).head(10)

# %%
explore.failures(jobs, "computingsite").head(10)

# %%
by_task = explore.failures(jobs, "jeditaskid")
by_task.head(10)

# %% [markdown]
# ## From a task to its jobs, to a queue, and back
# The task with most jobs; any other number will do.

# %%
sizes = jobs.group_by("jeditaskid").len().sort("len", "jeditaskid").collect()
task = sizes["jeditaskid"][-1]
of_task = jobs.filter(pl.col("jeditaskid").eq_missing(task))
of_task.select("pandaid", "jobstatus", "computingsite", "error", *explore.QUANTITIES).collect()

# %%
at_queues = explore.waits(of_task)
at_queues.head(10)

# %%
queue = at_queues["level"][0]
at_queue = jobs.filter(pl.col("computingsite") == queue)
charts.jobs_over_time(explore.over_time(at_queue, "jeditaskid"))

# %% [markdown]
# ## Where did jobs wait, and why?
# Assigned: until the input is there; activated: until a slot is free.

# %%
explore.waits(jobs).head(10)

# %%
states = waiting_states(archive, start=p.start, end=p.end)
charts.waiting_states(states)

# %% [markdown]
# ## In SQL
# Every table of the archive is a view of DuckDB; values are parameters.

# %%
archive.sql(
    "select jobstatus, count(*) as jobs, median(endtime - starttime) as run"
    " from jobs where computingsite = $queue group by all order by jobs desc",
    {"queue": queue},
)

# %% [markdown]
# ## On to pandas
# Where it is installed: `.to_pandas()` of a Polars frame, `.df()` of a query.

# %%
needs = of_task.select("jobstatus", "memory_mb", "run_s").collect()
needs.to_pandas().describe() if find_spec("pandas") else needs.describe()

# %%
first = archive.sql("select pandaid, jobstatus, computingsite, maxpss from jobs limit 5")
first.df() if find_spec("pandas") else first

# %% [markdown]
# ## Write the page

# %%
study = report.study(data, p)
results = kit.publish(report.page(data, study, p), p)
results["page"]["verdict"]["sentence"]
