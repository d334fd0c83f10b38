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
# This notebook replays every rank and margin on an archive, chooses on the earlier tasks, proves on the later
# ones, and writes a page, its numbers, tables and charts, and a proposal to `out_dir`.
# Run it here (paths then count from this folder: `../data/demo`), or as
# `brokerlab report scout-percentiles -p archive=data/demo`.

# %% tags=["parameters"]
archive: str = "data/demo"  # archive folder [path]
window_start: str = ""  # first creation time of a task, empty for no bound [ISO 8601, UTC]
window_end: str = ""  # tasks created from here on are left out, empty for no bound [ISO 8601, UTC]
gshare: str = ""  # only this global share, empty for all [name]
processingtype: str = ""  # only this processing type, empty for all [name]
parameter: str = "all"  # ramcount, cputime, outdiskcount or all [name]
ranks: list[int] = [50, 99]  # first and last percentile rank tried [%]
margins: list[int] = [0, 30]  # first and last margin of ramcount tried [%]
loss: dict = {}  # weights of the loss that differ from the defaults, such as {"over": 0.3} [core h]
alpha: float = 0.02  # largest accepted share of jobs killed in their first attempt [1]
limit_on: str = "upper"  # what must stay below alpha: upper end of its interval, or point [name]
early_share: float = 0.5  # share of the tasks, by creation, that the choice is made on [1]
rules: str = "document"  # rule set, document or production [name]
n_boot: int = 2000  # bootstrap replicates over tasks [1]
seed: int = 1  # seed of the bootstrap
out_dir: str = "out/scout-percentiles"  # where everything goes [path]

# %% [markdown]
# ## Load and check

# %%
from datetime import UTC, datetime

import altair as alt

from brokerlab.charts import theme
from brokerlab.report import scout_percentiles as report

alt.renderers.enable("svg")
alt.theme.enable(theme.NAME)
report.check(
    parameter=parameter,
    ranks=ranks,
    margins=margins,
    loss=loss,
    alpha=alpha,
    limit_on=limit_on,
    early_share=early_share,
    rules=rules,
    n_boot=n_boot,
    seed=seed,
    window_start=window_start,
    window_end=window_end,
)
names = report.parameters_named(parameter)
grid = {"ranks": report.grid(ranks, name="ranks"), "margins": report.grid(margins, name="margins")}

# %%
inputs = report.load(
    archive,
    window_start=window_start,
    window_end=window_end,
    gshare=gshare,
    processingtype=processingtype,
    rules=rules,
    early_share=early_share,
)
inputs.archive.summary()

# %% [markdown]
# The tasks, and what their finished jobs say, before any percentile:

# %%
inputs.quantities.select(
    "cores", "duration_s", "ram_kb", "cputime_hs06s", "outdisk_bytes", "is_scout"
).describe()

# %% [markdown]
# The same in SQL: the archive's tables are views.

# %%
inputs.archive.sql(
    """
    select jobstatus, count(*) as jobs, round(avg(maxpss) / 1024 / 1024, 2) as mean_maxpss_gb
    from jobs group by jobstatus order by jobs desc
    """
).pl()

# %% [markdown]
# ## Back-test, choose, prove

# %%
studies = [
    report.study(
        inputs,
        name,
        created_at=datetime.now(UTC).replace(tzinfo=None, microsecond=0),
        loss=loss,
        max_exceed=alpha,
        limit_on=limit_on,
        n_boot=n_boot,
        seed=seed,
        **grid,
    )
    for name in names
]

# %% [markdown]
# ## Write page content, charts, tables and proposal

# %%
results = report.write(studies, inputs, out_dir)
for part in results["page"]["parts"]:
    print(f"{part['verdict']['subject']}: {part['verdict']['sentence']}")

# %% [markdown]
# ## The pictures behind the answers

# %%
for study in studies:
    if isinstance(study, report.Study):
        chart, finding = report.frontier(study, f"{study.early.n_tasks} tasks")
        display(chart)
