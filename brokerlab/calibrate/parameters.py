"""The three scout parameters whose percentile can be calibrated, and what each is counted in."""

from __future__ import annotations

from dataclasses import dataclass

from brokerlab.errors import ConfigError, nearest


@dataclass(frozen=True)
class Parameter:
    """What the back-test must know about one scout parameter.

    Attributes:
        name: Task column that scouts write.
        rank_key: gdpconfig key of the percentile rank; None where the rank is fixed in the code.
        margin_key: gdpconfig key of the margin; None where the margin is fixed in the code.
        rank: Deployed percentile rank.
        margin_pct: Deployed margin [%]; the factor 1.5 of cputime is a margin of 50.
        margins: Margins of the default grid [%].
        amount: Suffix of the columns that hold what is reserved, used and wasted.
        amount_unit: The same for people.
        thing: What is reserved, for sentences.
        value_unit: Unit of the estimate in ``by_task``.

    Source: scouts.md 5.1 to 5.3; gdpconfig.csv.
    """

    name: str
    rank_key: str | None
    margin_key: str | None
    rank: int
    margin_pct: int
    margins: tuple[int, ...]
    amount: str
    amount_unit: str
    thing: str
    value_unit: str


PARAMETERS = {
    p.name: p
    for p in (
        Parameter(
            name="ramcount",
            rank_key="SCOUT_RAMCOUNT_RANK",
            margin_key="SCOUT_RAMCOUNT_MARGIN",
            rank=75,
            margin_pct=10,
            margins=tuple(range(31)),
            amount="gbh",
            amount_unit="GB h",
            thing="memory",
            value_unit="MB",
        ),
        Parameter(
            name="cputime",
            rank_key="SCOUT_CPUTIME_RANK",
            margin_key=None,
            rank=95,
            margin_pct=50,
            margins=tuple(range(0, 101, 5)),
            amount="coreh",
            amount_unit="core h",
            thing="walltime limit",
            value_unit="mHS06 s per event",
        ),
        Parameter(
            name="outdiskcount",
            rank_key=None,
            margin_key=None,
            rank=75,
            margin_pct=0,
            margins=(0,),
            amount="gb",
            amount_unit="GB",
            thing="output disk",
            value_unit="kB per event or per MB of input",
        ),
    )
}


def parameter_named(name: str) -> Parameter:
    """Return the parameter of that name.

    Raises:
        ConfigError: No such parameter.

    Example:
        >>> parameter_named("ramcount").rank
        75
    """
    if name not in PARAMETERS:
        raise ConfigError(f"parameter={name!r}: {nearest(name, PARAMETERS)}")
    return PARAMETERS[name]
