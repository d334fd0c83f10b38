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
# # Which percentile ranks and margins should the scouts use?
#
# The first finished jobs of a task, its scouts, set the task's memory, CPU time and output disk: a percentile of
# what they needed, plus a margin. A high rank wastes what is reserved and not used, a low one kills jobs.
#
# This notebook replays every rank and margin on an archive, chooses again and again on the tasks so far, scores each
# choice on the tasks after it, and writes a page, its numbers, tables, charts and a proposal to `out_dir`:
# here, by `papermill scout_percentiles.ipynb out.ipynb -p archive ../data/demo`, or as
# `brokerlab report scout-percentiles -p archive=data/demo`.

# %% tags=["parameters"]
archive: str = "data/demo"  # archive folder [path]
out_dir: str = "out"  # where everything goes [path]
n_boot: int = 2000  # bootstrap replicates [1]
seed: int = 1  # seed of the bootstrap
start: str = ""  # only from this instant on, empty for all [ISO 8601, UTC]
end: str = ""  # only before this instant, empty for all [ISO 8601, UTC]
rules: str = "document"  # rule set, document or production [name]
gshare: str = ""  # only this global share, empty for all [name]
processingtype: str = ""  # only this processing type, empty for all [name]
parameter: str = "all"  # ramcount, cputime, outdiskcount or all [name]
ranks: list = [50, 99]  # first and last rank tried [%]
margins: list = [0, 30]  # margins tried for ramcount [%]
loss: dict = {}  # weights of the loss that are not the defaults
alpha: float = 0.02  # largest accepted share of first attempts killed [1]
relevant: float = 0.05  # smallest change that matters [1]
blocks: int = 4  # blocks of time to choose and score on
spark: str = ""  # master of a Spark session that carries jobs and files, empty for this machine

# %%
import altair as alt

from brokerlab.calibrate.percentiles import frames
from brokerlab.charts import primitives, theme
from brokerlab.report import kit, results
from brokerlab.report import scout_percentiles as report

alt.renderers.enable("svg")
alt.theme.enable(theme.NAME)
p = report.Params.of(globals())

# %% [markdown]
# ## What is in the archive
# The tasks of the window, and what their finished jobs say before any percentile:

# %%
data = report.load(p)
data.archive

# %%
data.quantities.select(
    "cores", "duration_s", "ram_kb", "cputime_hs06s", "outdisk_bytes", "is_scout"
).describe()

# %% [markdown]
# ## By hand
# What the jobs of each processing type used, in SQL: the archive's tables are views.

# %%
data.archive.sql(
    """
    select jobstatus, count(*) as jobs, round(quantile_cont(maxpss, 0.75) / 1024 / 1024, 2) as p75_maxpss_gb
    from jobs group by jobstatus order by jobs desc
    """
).pl()

# %% [markdown]
# ## Back-test, choose, score

# %%
studies = report.study(data, p)
for study in studies.answered:
    display(frames.by_block(study))

# %% [markdown]
# One chart to edit: every setting tried, what it costs, how often it kills.

# %%
for study in studies.answered[:1]:
    chart = primitives.frontier(
        frames.frontier(study),
        "waste",
        "kills",
        x_title=f"{study.parameter.thing} reserved and not used [% of used]",
        y_title="jobs that exceed their request [% of jobs]",
        limit=100 * p.alpha,
    )
    display(chart)

# %% [markdown]
# ## The page

# %%
written = kit.publish(report.page(data, studies, p), p)
print(results.verdict_line(written["page"]["verdict"]))
