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
# # Which proposed settings are to be decided, and what would each of them do?
#
# Reports write proposals: documents that say which key of gdpconfig should have which value, what that was measured to
# do, and for whom. This notebook collects them for a meeting: what is proposed, from where to where, what it
# promises and how sure that is, who gains and who loses, what excludes what, whether the proofs still hold
# on a later archive, and the statements that put a decision in and take it back. Nothing to decide is a right result.
#
# Run it here (paths then count from this folder: `../reports`), or as
# `brokerlab report proposal-review -p archive=data/demo`.

# %% tags=["parameters"]
proposals: str = "reports"  # folder of reports or of proposals, or one proposal [path of reports]
archive: str = "data/demo"  # archive whose gdpconfig acts where no config is given [path]
config: str = ""  # gdpconfig that acts now (CSV, JSON, archive), empty for the archive's [path]
at: str = ""  # time at which a gdpconfig with a history is looked at, empty for now [ISO 8601, UTC]
later: str = ""  # archive to ask whether the proposals still hold, empty for none [path]
only_newest: bool = True  # whether to leave out what a later run of the same report has replaced
out_dir: str = "out/proposal-review"  # where everything goes [path]

# %% [markdown]
# ## Find the proposals and the configuration that acts

# %%
from datetime import UTC, datetime

import altair as alt

from brokerlab.charts import theme
from brokerlab.gdpconfig.proposal import overview
from brokerlab.report import proposal_review as report

alt.renderers.enable("svg")
alt.theme.enable(theme.NAME)
report.check(proposals=proposals, archive=archive, config=config, at=at, later=later)
created_at = datetime.now(UTC).replace(tzinfo=None, microsecond=0)

# %%
inputs = report.load(
    proposals,
    archive=archive,
    config=config,
    at=at,
    only_newest=only_newest,
    created_at=created_at,
)
overview([*inputs.filed, *inputs.broken], inputs.config)

# %% [markdown]
# ## Sort, compare, merge, ask

# %%
study = report.study(inputs, created_at=created_at, later=later)
[str(conflict) for conflict in study.conflicts]

# %% [markdown]
# ## Write page content, chart, tables and statements

# %%
results = report.write(study, out_dir)
print(results["page"]["verdict"]["sentence"])

# %% [markdown]
# ## What the proposals promise

# %%
drawn = report.pictures.effects(study)
if drawn is not None:
    display(drawn[0])
