"""What a parser has to say about a text: where, about which part, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from brokerlab.errors import warn_once

EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Note:
    """One remark of a parser."""

    position: int  # 0-based position in the text
    text: str  # the part it is about
    message: str  # what is wrong with it and what follows
    # whether it changes the meaning in a way nobody can have wanted (and is worth a warning)
    serious: bool = True

    def __str__(self) -> str:
        return f"at {self.position} {self.text!r}: {self.message}"


def warn(subject: str, findings: Iterable[str], *, stacklevel: int = 3) -> None:
    """Issue one warning for all findings, with their number and up to five of them; none without any."""
    result = list(dict.fromkeys(findings))
    if result:
        more = f"; and {len(result) - EXAMPLES} more" if len(result) > EXAMPLES else ""
        message = f"{subject}, {len(result)} findings: {'; '.join(result[:EXAMPLES])}{more}"
        warn_once(message, stacklevel=stacklevel)
