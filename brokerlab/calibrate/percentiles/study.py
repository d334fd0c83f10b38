"""Take one scout parameter from its history through back-test and judge to a sentence and a proposal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from brokerlab.calibrate.judge import Judgement, Limit, Question, judge
from brokerlab.calibrate.percentiles.backtest import Backtest, backtest
from brokerlab.calibrate.percentiles.frames import Comparison, compare
from brokerlab.calibrate.percentiles.history import Inputs, JobHistory
from brokerlab.calibrate.percentiles.parameters import (
    COMPONENTS,
    MINIMUM_KEY,
    Parameter,
    Setting,
    current_setting,
)
from brokerlab.calibrate.percentiles.replay import frame_of
from brokerlab.calibrate.verdict import Verdict, document_of, limit_of, sentence_of, steps_of
from brokerlab.errors import ConfigError
from brokerlab.gdpconfig.proposal import Affected, Window
from brokerlab.gdpconfig.proposal.document import filter_problems, tasks_in_words
from brokerlab.intervals import ENDS
from brokerlab.results import Result, Shows
from brokerlab.words import short_percent

FIXED_RANK = "The rank is fixed in the code: this is for its developers."
NO_QUEUES = "Waiting: a back-test replays requests, not queues."


def kills(most: float = 0.02, **how: Any) -> Question:
    """Return the judge's question with a limit on first attempts killed, as a mean over tasks of the share of jobs."""
    return Question(limits=(Limit(quantity="exceed_rate", most=most),), **how)


@dataclass(frozen=True, kw_only=True, repr=False)
class Study(Result):
    """One parameter, from back-test to answer.

    Attributes:
        tried: Back-test of all tasks, every setting.
        created_at: When a proposal is made, UTC without zone; null: when the last task was created.
    """

    shows = Shows(
        about="one parameter, from back-test to answer, one row per quantity",
        columns="label, unit, before, after, diff, diff_lo, diff_hi",
        keys=("quantity",),
        next=("calibrate.propose(result)", ".tried", ".judgement", ".comparison.by_stratum"),
    )

    tried: Backtest
    judgement: Judgement
    created_at: datetime | None = None

    @cached_property
    def verdict(self) -> Verdict:
        """The answer in one sentence, and the proposal document if there is one."""
        return propose(self)

    @cached_property
    def scored(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """What happened in each scored task under the current setting, and under the one chosen for it on earlier tasks.

        Twice one row per task, in the order of time, as ``Backtest.under``, with the task's ``weight``.
        """
        return scored_tasks(self.tried, self.judgement)

    @cached_property
    def comparison(self) -> Comparison:
        """What these say in every quantity."""
        judged = self.judgement
        return compare(judged.table, *self.scored, self.parameter, judged.question)

    @property
    def inputs(self) -> Inputs:
        """What it was read from."""
        return self.tried.inputs

    @property
    def parameter(self) -> Parameter:
        """Which."""
        return self.tried.parameter

    @property
    def acts(self) -> bool:
        """Whether another setting is to be set."""
        return self.judgement.acts

    @property
    def current(self) -> Setting:
        """The current setting."""
        return self.tried.current

    @property
    def best(self) -> Setting:
        """What the last choice, on all tasks, fell on."""
        return Setting(*self.judgement.best)

    @cached_property
    def by_task(self) -> pl.DataFrame:
        """One row per task and setting, for the current and the best setting, over all tasks."""
        pair = list(dict.fromkeys([self.current, self.best]))
        return self.tried.under(pair)

    @cached_property
    def rechosen(self) -> dict[tuple[str, float], Setting]:
        """What is chosen with one weight of the loss halved (0.5) or doubled (2.0)."""
        weights = self.tried.weights.to_dict()
        return {
            (name, factor): Setting(
                *self.judgement.rechoose({**weights, name: weights[name] * factor})
            )
            for name in COMPONENTS
            for factor in (0.5, 2.0)
        }

    @property
    def stable(self) -> bool:
        """Whether halving or doubling any weight leaves the choice as it is."""
        return set(self.rechosen.values()) == {self.best}

    @cached_property
    def n_overlapping(self) -> int:
        """Jobs of a block's tasks that ended after the next block had begun: not known yet when it was chosen."""
        judged = self.judgement
        if judged.case == "few":  # nothing was chosen by blocks
            return 0
        blocks = np.repeat(np.arange(judged.sums.n_blocks), np.diff(judged.sums.edges))
        following = judged.blocks["start"].shift(-1).gather(blocks.tolist())
        next_start = judged.outcomes.units.select(jeditaskid="unit", next_start=following)

        def late(chunk: JobHistory) -> int:
            ended = chunk.quantities.select("jeditaskid", "finish_time")
            ended = ended.join(next_start, on="jeditaskid")
            return ended.filter(pl.col("finish_time") >= pl.col("next_start")).height

        return sum(self.inputs.history.map(late))

    @property
    def caveats(self) -> list[str]:
        """What the study cannot tell, in sentences."""
        fixed = [FIXED_RANK] if self.verdict.information_only else []
        return [*self.inputs.caveats, *self.tried.caveats, *fixed, NO_QUEUES]

    def to_dict(self) -> dict[str, Any]:
        """Return the facts that are not tables."""
        return {
            **self.tried.to_dict(),
            "judgement": self.judgement.to_dict(),
            "verdict": self.verdict.to_dict(),
            "stable": self.stable,
            "n_overlapping": self.n_overlapping,
        }

    def frame(self) -> pl.DataFrame:
        """Return what changes, one row per quantity."""
        return self.comparison.table

    def headline(self) -> str:
        """Return what it says, in a line."""
        return self.verdict.sentence


def study(
    inputs: Inputs,
    name: str,
    question: Question,
    *,
    created_at: datetime | None = None,
    margins: Iterable[int] | None = None,
    **grid: Any,
) -> Study:
    """Take one parameter through back-test, whose grid, loss and assumptions are given as :func:`.backtest.backtest` has them, and judge.

    Margins are tried for ramcount alone: the others' are fixed in the code. A proposal is made at ``created_at`` (UTC without
    zone), null: when the last task was created.
    """
    tried = backtest(inputs, name, margins=margins if name == "ramcount" else None, **grid)
    judgement = judge(tried.outcomes(), question, also=COMPONENTS)
    return Study(tried=tried, judgement=judgement, created_at=created_at)


def scored_tasks(tried: Backtest, judgement: Judgement) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the rows of the scored tasks, see `Study.scored`."""
    places = pl.Series("place", judgement.chosen)
    units = judgement.outcomes.units.select("weight", places, jeditaskid="unit")
    scored = units.filter(pl.col("place") >= 0)
    settings = frame_of(judgement.settings).with_row_index("place").cast({"place": pl.Int64})
    some = {judgement.current, *(judgement.settings[place] for place in scored["place"])}
    rows = tried.under(sorted(some, key=str))

    def under(place: pl.Expr) -> pl.DataFrame:
        named = scored.with_columns(place).join(settings, on="place", maintain_order="left")
        keys = ["jeditaskid", *Setting._fields]
        result = named.join(rows, on=keys, nulls_equal=True, maintain_order="left")
        return result.drop("place")

    now = judgement.settings.index(judgement.current)
    return under(pl.lit(now, pl.Int64).alias("place")), under(pl.col("place"))


# ---- the answer in words, and the proposal


def propose(study: Study) -> Verdict:
    """Put a study into a sentence and, where there is something to set, into a proposal.

    Evidence from a part of the tasks proposes no key that acts on others.

    Raises:
        ConfigError: No study, or one whose back-test compared with another setting than the configuration's.

    Source: calibration.md 2.
    """
    if not isinstance(study, Study):
        raise ConfigError(
            f"propose: given is a {type(study).__name__}; allowed is a study, such as calibrate.backtest(archive, 'ramcount')"
        )
    inputs, tried, judgement = study.inputs, study.tried, study.judgement
    parameter, current = tried.parameter, tried.current
    acting = current_setting(inputs.config, parameter.name)
    if acting != current:
        raise ConfigError(
            f"the configuration has {acting}, the back-test compared with {current}: run it with current={acting}"
        )
    chosen_tasks, limit = inputs.filters, limit_of(judgement)
    setting = Setting(*judgement.setting)
    changed = {MINIMUM_KEY: setting.minimum_mb} if setting.minimum_mb != current.minimum_mb else {}
    further = [
        f"remove {key} = {inputs.config.get(key)}" if value is None else f"set {key} = {value}"
        for key, value in changed.items()
    ]
    actions = " and ".join([_actions(parameter, current, setting), *further])
    rate = judgement.candidates.filter("is_current")["exceed_rate"][0]
    sentence = sentence_of(
        judgement,
        actions=actions,
        kept=_actions(parameter, current, current),
        effects=_effects(study),
        now=f"{short_percent(rate)} of first attempts killed",
        limit=short_percent(limit),
        keeping=_keeping(study),
    )
    settable = parameter.keys(current)
    subject = [*settable, *changed]
    beyond = filter_problems(subject, chosen_tasks) if judgement.acts else []
    if chosen_tasks:
        refusal = ", so nothing is proposed: the keys act beyond them" if beyond else ""
        sentence = f"Measured on {tasks_in_words(chosen_tasks)}{refusal}. {sentence}"
    document = None
    if settable and not beyond:
        new = parameter.keys(setting)
        values = {key: value for key, value in new.items() if settable[key] != value}
        blocks, second = judgement.blocks, timedelta(seconds=1)
        windows = [Window("first choice", blocks["start"][0], blocks["end"][0] + second)]
        if blocks.height > 1:
            windows.append(Window("scored", blocks["start"][1], blocks["end"][-1] + second))
        document = document_of(
            judgement,
            " ".join([sentence, *inputs.caveats]),
            inputs.config,
            {**values, **changed},
            list(settable),
            effects=study.comparison.table,
            windows=windows,
            units="tasks",
            numbers={
                "max_exceed": limit,
                "inner_limit": judgement.inner * limit,
                **{f"weight_{name}": value for name, value in tried.weights.to_dict().items()},
            },
            helps=_affected(study, "gains"),
            hurts=_affected(study, "loses"),
            synthetic=inputs.archive.synthetic,
            filters=chosen_tasks,
            title=actions,
            created_at=study.created_at or inputs.window[1],
            archive_digest=inputs.archive.digest,
            rules_digest=tried.assumptions.rules.digest,
        )
    return Verdict(
        kind=judgement.kind,
        sentence=sentence,
        subject=" and ".join(subject) or parameter.name,
        proposal=document,
        information_only=not settable,
    )


def _keeping(study: Study) -> str:
    """Say which setting would keep the limit on all tasks, and at what price against the one that is to act."""
    judgement, cheapest = study.judgement, study.judgement.cheapest_within
    if cheapest is None:
        return "no setting of the grid does with certainty"
    if cheapest == judgement.setting:
        return "though on all tasks this setting would"
    losses = [
        judgement.candidates.filter(place=judgement.settings.index(setting))["loss"][0]
        for setting in (cheapest, judgement.setting)
    ]
    price = losses[0] - losses[1]
    rank, margin, least = cheapest
    named = f"rank {rank}" + (
        "" if study.parameter.margin_key is None else f" with margin {margin} %"
    )
    named += "" if least is None else f" and a minimum of {least} MB"
    return f"{named} would keep it on all tasks (stated loss {price:+.3f})"


def _actions(parameter: Parameter, old: Setting, new: Setting) -> str:
    rank = parameter.rank_key or f"the rank of {parameter.name} (fixed in the code)"
    steps = [(rank, old.rank, new.rank)]
    if parameter.margin_key:
        steps.append((parameter.margin_key, old.margin_pct, new.margin_pct))
    return steps_of(steps)


def _effects(study: Study) -> str:
    """Say what changes: reserved, killed, the limit, and the loss where it does not fall."""
    comparison, parameter, limit = study.comparison, study.parameter, limit_of(study.judgement)
    reserved = comparison.quantity(f"reserved_{parameter.amount}")
    exceed, loss = comparison.quantity("exceed_rate"), comparison.quantity("loss")
    change, low, high = (reserved[f"diff_pct{end}"] for end in ENDS)
    if change is None or low is None or high is None:
        amount = f"{parameter.thing} reserved compared without an interval"
    elif high < 0:
        amount = f"{-change:.1f} % less {parameter.thing} reserved ({-high:.1f} to {-low:.1f})"
    elif low > 0:
        amount = f"{change:.1f} % more {parameter.thing} reserved ({low:.1f} to {high:.1f})"
    else:
        amount = (
            f"{parameter.thing} reserved changes by {change:+.1f} % ({low:+.1f} to {high:+.1f})"
        )
    before, after = exceed["before"], exceed["after"]
    verb = "rise" if after > before else "fall" if after < before else "stay"
    kills = f"kills {verb} from {100 * before:.1f} to {100 * after:.1f} %"
    if exceed["after_lo"] is None:
        return f"{amount}, {kills} (limit {100 * limit:g} %)"
    ends = f"{100 * exceed['after_lo']:.1f} to {100 * exceed['after_hi']:.1f}"
    inside = ", inside the interval" if exceed["after"] <= limit < exceed["after_hi"] else ""
    text = f"{amount}, {kills} ({ends}; limit {100 * limit:g} %{inside})"
    if loss["diff_hi"] < 0:
        return text
    low, high = (f"{loss[f'diff_{end}']:+.3f}" for end in ("lo", "hi"))
    return f"{text}, the stated loss changes by {loss['diff']:+.3f} ({low} to {high}; the limit decides)"


def _affected(study: Study, side: str) -> tuple[Affected, ...]:
    """Name the levels whose loss falls, or rises, by their interval; none where nothing is changed."""
    if not study.acts:
        return ()
    rows = study.comparison.by_stratum.filter(pl.col("verdict") == side).iter_rows(named=True)
    return tuple(
        Affected(
            f"{row['stratum']} {row['level']}",
            f"loss {row['loss_diff']:+.3f} ({row['loss_diff_lo']:+.3f} to {row['loss_diff_hi']:+.3f}), "
            f"kills {short_percent(row['exceed_rate_before'])} to {short_percent(row['exceed_rate_after'])}, "
            f"{row['n_tasks']} tasks",
        )
        for row in rows
    )
