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
# # Which curves should turn throughput, closeness and waiting files into the network weight?
#
# The network weight says how quickly outputs reach the nucleus: a step curve of the throughput of the link, a line in
# its closeness where there is none, a line in the files that wait. This notebook fits each of them on some links,
# scores it later on others by how well it ranks links by what they delivered, and says what such a curve can
# and cannot tell apart. It writes a page, its numbers, tables (the fitted curve among them), charts and a proposal to
# `out_dir`.
#
# Run it here (paths then count from this folder: `../data/demo`), or as
# `brokerlab report network-curve -p archive=data/demo`.

# %% tags=["parameters"]
archive: str = "data/demo"  # archive folder, or file of metrics or transfers as dumped [path]
transfers: str = ""  # more transfers: file, folder or archive; empty for none [path]
start: str = ""  # first metric and first window of transfers, empty for no bound [ISO 8601, UTC]
end: str = ""  # metrics from here on and windows that end later are left out, empty for no bound [ISO 8601, UTC]
steps: int = 8  # steps of the throughput curve at most [1]
unseen_share: float = 0.5  # share of the links that no fit sees, for the proof [1]
n_boot: int = 500  # bootstrap replicates over links [1]
seed: int = 1  # seed of the division of links and of the bootstrap
out_dir: str = "out/network-curve"  # where everything goes [path]

# %% [markdown]
# ## Load and check

# %%
from datetime import UTC, datetime

import altair as alt

from brokerlab.charts import theme
from brokerlab.report import network_curve as report

alt.renderers.enable("svg")
alt.theme.enable(theme.NAME)
report.check(
    archive=archive,
    transfers=transfers,
    start=start,
    end=end,
    steps=steps,
    unseen_share=unseen_share,
    n_boot=n_boot,
    seed=seed,
)

# %%
inputs = report.load(archive, transfers=transfers, start=start, end=end)
{name: dict(found.facts) for name, found in inputs.evidence.items()} | inputs.refused

# %% [markdown]
# What the weight saw, and what the links delivered later:

# %%
for found in inputs.evidence.values():
    display(found.rows.select("stage", "mbps", "outcome", "closeness").describe())

# %% [markdown]
# ## Fit, choose, prove

# %%
study = report.study(inputs, steps=steps, unseen_share=unseen_share, n_boot=n_boot, seed=seed)

# %% [markdown]
# ## Write page content, charts, tables and proposal

# %%
results = report.write(
    study, out_dir, created_at=datetime.now(UTC).replace(tzinfo=None, microsecond=0)
)
for part in results["page"]["parts"]:
    print(f"{part['verdict']['subject']}: {part['verdict']['sentence']}")

# %% [markdown]
# ## The pictures behind the answers

# %%
for found in study.curves.values():
    if isinstance(found, report.Curve):
        display(report.pictures.curves(found)[0])
