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
# its closeness where there is none, a line in the files that wait. This notebook chooses among weights on some links,
# scores the choice later on others by how well it ranks links by what they delivered, and says what such a curve can
# and cannot tell apart. It writes a page, its numbers, tables (the fitted curve among them), charts and a proposal to
# `out_dir`.
#
# Run it here (paths then count from this folder: `../data/demo`), or as
# `brokerlab report network-curve -p archive=data/demo`.

# %% tags=["parameters"]
archive: str = "data/demo"  # archive folder, or file of metrics or transfers as dumped [path]
out_dir: str = "out"  # where everything goes [path]
n_boot: int = 500  # bootstrap replicates over links [1]
seed: int = 1  # seed of the bootstrap
start: str = ""  # only from this instant on, empty for all [ISO 8601, UTC]
end: str = ""  # only before this instant, empty for all [ISO 8601, UTC]
rules: str = "document"  # rule set, document or production [name]
transfers: str = ""  # more transfers: file, folder or archive, empty for none [path]
steps: int = 8  # steps of the throughput curve at most [1]

# %%
import altair as alt

from brokerlab.charts import network as charts
from brokerlab.charts import theme
from brokerlab.report import kit, results
from brokerlab.report import network_curve as report

alt.renderers.enable("svg")
alt.theme.enable(theme.NAME)
p = report.Params.of(globals())

# %% [markdown]
# ## What is in the archive
# What the weight saw, and what the links delivered later:

# %%
data = report.load(p)
{name: dict(evidence.facts) for name, evidence in data.evidence.items()} | dict(data.refused)

# %%
for evidence in data.evidence.values():
    display(evidence.rows.select("span", "mbps", "outcome", "closeness").describe())

# %% [markdown]
# ## Choose and score
# How well every weight ranks links that nothing was chosen by, by what they delivered later:

# %%
study = report.study(data, p)
for found in study.answers.values():
    display(found.ranking)

# %% [markdown]
# One chart to edit: the document's curve and the fitted one.

# %%
for name, found in study.answers.items():
    if found.fit is not None:
        mbps = data.evidence[name].rows["mbps"]
        display(charts.weight_curves(report.links.beside_current(found.fit, mbps, rules=p.rules)))

# %% [markdown]
# ## The page

# %%
written = kit.publish(report.page(data, study), p)
print(results.verdict_line(written["page"]["verdict"]))
