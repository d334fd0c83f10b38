"""What links say about each curve: fits, their scores on links that no fit has seen, and what follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.calibrate.network_curve.evidence import Evidence
from brokerlab.calibrate.network_curve.exchange import ExchangeFit
from brokerlab.calibrate.network_curve.fallback import FallbackFit
from brokerlab.calibrate.network_curve.resolution import later_by_step
from brokerlab.calibrate.network_curve.scores import Judgement, Scores
from brokerlab.calibrate.network_curve.steps import StepFit
from brokerlab.errors import InsufficientDataError


@dataclass(frozen=True, kw_only=True)
class CurveStudy:
    """The throughput curve on one source, fitted on some links and proven later on others.

    Attributes:
        fit: Of the links that were seen, on the stage of the choice.
        scores: Of every weight on the other links, on the later stage: ``document, production, fitted``, the plain
            alternatives ``isotonic`` (any number of steps), ``log_throughput``, ``log_throughput_long`` (longest
            window, where it differs), ``closeness`` (where it is known), ``sites`` (their names alone).
        checks: The same difference on other sides of the data: ``side`` (see :func:`other_sides`), ``n_rows``,
            ``name`` (in words), ``resampled`` (group of links, src, dst), ``n_units``, ``document``, ``fitted``, ``diff, diff_lo, diff_hi``.
        steps: What each step of each curve tells: `resolution` with ``curve``; for the document's steps also
            ``fitted, fitted_lo, fitted_hi``, what its links would weigh.
        pairs: `told_apart`, one row per ``curve``.
        ahead_of_sites: ``diff, diff_lo, diff_hi`` of the rank correlation: the fitted curve less the names of the sites.
        silent: Share of the rows of the proof with a throughput that delivered nothing later: left out of the scores [1].
        judgement: What the scores prove.
    """

    fit: StepFit
    scores: Scores
    checks: pl.DataFrame
    steps: pl.DataFrame
    pairs: pl.DataFrame
    ahead_of_sites: Mapping[str, float]
    silent: float
    judgement: Judgement

    def frames(self) -> dict[str, pl.DataFrame]:
        """Return all frames by name, but `checks`."""
        return {
            "all_scores": self.scores.table,
            "all_steps": self.steps,
            "pairs": self.pairs,
            "fitted_steps": self.fit.steps,
            "error_by_size": self.fit.by_size,
            "later_by_step": later_by_step(self.steps),
        }

    def numbers(self) -> dict[str, Any]:
        """Return what stands in no frame."""
        return {
            "judgement": self.judgement,
            "n_links_proof": self.scores.n_links,
            "n_links": self.fit.n_links,
            "ahead_of_sites": self.ahead_of_sites,
            "silent": self.silent,
        }


@dataclass(frozen=True, kw_only=True)
class FallbackStudy:
    """The weight of links without throughput, fitted on some links and proven later on others."""

    fit: FallbackFit
    scores: Scores
    judgement: Judgement

    def frames(self) -> dict[str, pl.DataFrame]:
        """Return all frames by name."""
        return {"all_scores": self.scores.table, "levels": self.fit.table}

    def numbers(self) -> dict[str, Any]:
        """Return what stands in no frame."""
        return {"judgement": self.judgement, "n_links_proof": self.scores.n_links}


@dataclass(frozen=True, kw_only=True)
class ExchangeStudy:
    """Waiting files against throughput.

    Attributes:
        fit: Of the links that were seen.
        scores: Of the others.
        judgement: What the scores prove.
        facts: `queue_facts`.
        later: Whether the outcome came after the queue; else a change cannot be proven.
        proposed: The NW_QUEUE_IMPORTANCE to propose; null = keep. The cap stays: it is also the limit of the backlog
            check, and no ranking can tell it from the importance.
    """

    fit: ExchangeFit
    scores: Scores
    judgement: Judgement
    facts: Mapping[str, float]
    later: bool
    proposed: float | None

    @property
    def answer(self) -> str:
        """The outcome; if better without a value to propose ``snapshot`` (nothing came later) or ``one_part``."""
        outcome = self.judgement.outcome
        if self.proposed is not None or outcome != "better":
            return outcome
        return "one_part" if self.later else "snapshot"

    def frames(self) -> dict[str, pl.DataFrame]:
        """Return all frames by name, but the scores over the exchange, `fit.table`."""
        return {"all_scores": self.scores.table}

    def numbers(self) -> dict[str, Any]:
        """Return what stands in no frame."""
        return {
            "judgement": self.judgement,
            "n_links_proof": self.scores.n_links,
            "later": self.later,
            "proposed": self.proposed,
            "facts": self.facts,
        }


Answer = CurveStudy | FallbackStudy | ExchangeStudy


@dataclass(frozen=True, kw_only=True)
class LinkStudy:
    """What links say about every curve, or why they say nothing.

    Attributes:
        curves: Source -> its throughput curve.
        fallback: Of link metrics.
        exchange: Of link metrics.
    """

    curves: Mapping[str, CurveStudy | InsufficientDataError]
    fallback: FallbackStudy | InsufficientDataError
    exchange: ExchangeStudy | InsufficientDataError

    def answers(self) -> dict[str, Answer]:
        """Return the subjects that have an answer: the names of sources, ``fallback``, ``exchange``."""
        return {
            k: one for k, one in self._all().items() if not isinstance(one, InsufficientDataError)
        }

    def refusals(self) -> dict[str, InsufficientDataError]:
        """Return the subjects without an answer, and why."""
        return {k: one for k, one in self._all().items() if isinstance(one, InsufficientDataError)}

    def frames(self) -> dict[str, pl.DataFrame]:
        """Return the frames of all answers by subject and name; of sources also the fitted ``curve_NAME``."""
        result = {
            f"{name}_{part}": frame
            for name, answer in self.answers().items()
            for part, frame in answer.frames().items()
        }
        for name, curve in self.curves.items():
            if isinstance(curve, CurveStudy):
                result[f"curve_{name}"] = curve.fit.curve.to_frame()
        return result

    def numbers(self, evidence: Mapping[str, Evidence]) -> dict[str, dict[str, Any]]:
        """Return by subject what stands in no frame, or the reason of a refusal.

        Args:
            evidence: By source; its facts are added.
        """
        facts = {name: {"facts": evidence[name].facts} for name in evidence}
        known = {name: answer.numbers() for name, answer in self.answers().items()}
        reasons = {name: {"reason": str(error)} for name, error in self.refusals().items()}
        return reasons | {name: row | facts.get(name, {}) for name, row in known.items()}

    def _all(self) -> dict[str, Answer | InsufficientDataError]:
        return {**self.curves, "fallback": self.fallback, "exchange": self.exchange}
