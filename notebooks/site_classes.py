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
# # Which queues count as fast, and what does that hang on?
#
# The brokerage of user analysis rates queues as hi, mid or lo by how long jobs wait there, and tasks as S, A, B or C by
# what their users occupy. This notebook rates all queues at every instant of a period, says how long a class lasts, what
# the percentile ranks and the hour limits do, whether the classes hold for the jobs that come, how the documents and the
# deployed code differ, and how shares stand against their targets. It writes a page, its numbers, tables and charts to
# `out_dir`; it proposes nothing.
#
# Run it here (paths then count from this folder: `../data/demo`), or as
# `brokerlab report site-classes -p archive=data/demo`.

# %% tags=["parameters"]
archive: str = "data/demo"  # archive folder [path]
start: str = ""  # first instant, empty: 4 days after the first merge job or probe [ISO 8601, UTC]
end: str = ""  # last instant, empty for when the last merge job or probe was made [ISO 8601, UTC]
every: str = "1h"  # step of the instants [duration]
rules: str = "document"  # rule set, document or production; compared with the other [name]
low_ranks: list[float] = [
    0.1,
    0.2,
    0.25,
    0.33,
    0.4,
    0.5,
]  # ranks of the lower percentile to try [1]
high_ranks: list[float] = [
    0.5,
    0.6,
    0.67,
    0.75,
    0.8,
    0.9,
]  # ranks of the upper percentile to try [1]
hi_hours: list[float] = [0, 0.5, 1, 2, 4, 8]  # least limits of hi to try [h]
lo_hours: list[float] = [0, 1, 3, 6, 12, 24]  # least limits of lo to try [h]
long_jobs: list[float] = [
    0,
    1,
    2,
    3,
    5,
    10,
]  # jobs that queue for long at a queue that is not hi, to try [jobs]
queues_shown: int = 30  # queues in the chart of classes over time [1]
n_boot: int = 1000  # bootstrap replicates over days [1]
seed: int = 1  # seed of the bootstrap
out_dir: str = "out/site-classes"  # where everything goes [path]

# %% [markdown]
# ## Load and check

# %%
import altair as alt

from brokerlab.charts import theme
from brokerlab.report import site_classes as report

alt.renderers.enable("svg")
alt.theme.enable(theme.NAME)
grids = {
    "low_ranks": low_ranks,
    "high_ranks": high_ranks,
    "hi_hours": hi_hours,
    "lo_hours": lo_hours,
    "long_jobs": long_jobs,
}
report.check(
    grids=grids,
    rules=rules,
    every=every,
    queues_shown=queues_shown,
    n_boot=n_boot,
    seed=seed,
    start=start,
    end=end,
)

# %%
inputs = report.load(archive, start=start, end=end, every=every, rules=rules)
inputs.archive.summary()

# %% [markdown]
# ## Rate queues and tasks

# %%
study = report.study(inputs, grids=grids, queues_shown=queues_shown, n_boot=n_boot, seed=seed)
study.rows.group_by("class_name").len().sort("class_name")

# %% [markdown]
# What other numbers of the rules would move:

# %%
study.what_if.curves

# %% [markdown]
# ## Write page content, charts and tables

# %%
results = report.write(study, out_dir)
for part in results["page"]["parts"]:
    print(f"{part['verdict']['subject']}: {part['verdict']['sentence']}")

# %% [markdown]
# ## The pictures behind the answers

# %%
for drawer in (report.pictures.strip, report.pictures.what_if, report.pictures.waits):
    drawn = drawer(study)
    if drawn is not None:
        display(drawn[0])
