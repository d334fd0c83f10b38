"""Every error and warning that brokerlab raises, with the exit code of the command line.

Messages say what is wrong, where (``table.column``, key, file), what was found, what is allowed and
what to do; everything wrong at once.
"""

import difflib
import shutil
import unicodedata
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

DOES_NOT_HOLD, CANNOT_BE_CHECKED, CHANGE_PROPOSED = 8, 9, 10
"""Exit codes of answers, beside those of errors: of a drift check, and of a report with ``--exit-code``."""


MOST_MESSAGE, LONGEST_REASON, LONGEST_NAME, MOST_NAMES = 2000, 300, 60, 40
"""Characters of a message, of a foreign reason and of a name in it, and names that are listed."""
LONGEST_TEXT = 500
"""Characters of a text in a chart, a cell or a sentence of a page; the files have it whole."""
UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""General categories: control, format (bidirectional controls are of it), surrogate, line and paragraph separator."""
NOT_IN_XML = "\ufffe\uffff"
"""Characters of no category of these that XML, and so a picture, cannot hold either."""


class _Message:
    """A message of more than `MOST_MESSAGE` characters is cut in the middle: data may be named in it."""

    def __init__(self, message: str = "") -> None:
        """Keep what a person reads."""
        super().__init__(shown(message, MOST_MESSAGE))  # type: ignore[call-arg]


class BrokerlabError(_Message, Exception):
    """Raised as the base of all errors below; catch this one to catch them all."""

    exit_code = 1


class SchemaError(BrokerlabError):
    """Raised when a table lacks a column or a column has a type that cannot be converted."""

    exit_code = 2


class DataError(BrokerlabError):
    """Raised when a file cannot be read or its values make no sense together."""

    exit_code = 3


class ConfigError(BrokerlabError):
    """Raised for unknown or impossible settings, parameters and rule switches."""

    exit_code = 4


class ProposalError(BrokerlabError):
    """Raised when a proposal does not fit the configuration it is to be applied to."""

    exit_code = 5


class InsufficientDataError(BrokerlabError):
    """Raised when there are too few rows to answer the question honestly."""

    exit_code = 6


class MissingTableError(DataError, InsufficientDataError):
    """Raised when an archive lacks a table: reports answer "No answer", naming it; elsewhere it is a `DataError`."""


class EmptyPeriodError(DataError, InsufficientDataError):
    """Raised when nothing that was asked for happened in the period: reports answer "No answer"."""


class ReportError(BrokerlabError):
    """Raised when a report's notebook failed; the page is written and marked failed."""

    exit_code = 7


class BrokerlabWarning(_Message, UserWarning):
    """Issued for findings that the real system would tolerate; errors with ``strict=True``."""


WARNED: set[str] = set()  # messages of this session; none is repeated before every answer


def warn_once(message: str, *, stacklevel: int = 1) -> None:
    """Issue a `BrokerlabWarning`, each message once per session and once per :func:`collect_warnings`."""
    if message not in WARNED:
        warnings.warn(message, BrokerlabWarning, stacklevel=stacklevel + 1)
        WARNED.add(message)


@contextmanager
def collect_warnings() -> Iterator[list[str]]:
    """Keep what brokerlab warns of, each message once, and pass on all other warnings."""
    messages: list[str] = []
    before = WARNED.copy()
    WARNED.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", BrokerlabWarning)
        try:
            yield messages
        finally:
            WARNED.clear()
            WARNED.update(before)
    for one in caught:
        if not issubclass(one.category, BrokerlabWarning):
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
        elif str(one.message) not in messages:
            messages.append(str(one.message))


@contextmanager
def reading(path: str | Path) -> Iterator[None]:
    """Make sure that whatever is wrong with a file ends in an error of ours that names it.

    Our own errors get its name where they lack it. A panic of Polars is no ``Exception``, so all but interrupts are caught.

    Example:
        >>> with reading("jobs.csv"):
        ...     int("many")
        Traceback (most recent call last):
        brokerlab.errors.DataError: jobs.csv: cannot be read (ValueError: invalid literal ...
    """
    try:
        yield
    except BrokerlabError as error:
        if Path(path).name in str(error):
            raise
        lines = str(error).splitlines() or [""]
        raise type(error)("\n".join(f"{path}: {line}" for line in lines)) from error
    except _NOT_OURS:
        raise
    except BaseException as error:
        raise DataError(
            f"{path}: cannot be read ({_reason(error)}); is it damaged, or of another kind?"
        ) from error


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Turn what a full or closed disk makes engines raise into a `DataError` that names the place.

    Example:
        >>> with writing("out"):
        ...     raise OSError(28, "No space left on device")
        Traceback (most recent call last):
        brokerlab.errors.DataError: out: cannot be written (OSError: [Errno 28] No space left on device), ...
    """
    try:
        yield
    except (BrokerlabError, *_NOT_OURS):
        raise
    except BaseException as error:
        raise DataError(
            f"{path}: cannot be written ({_reason(error)}), {room(path)}; make room, or name another folder"
        ) from error


def room(path: str | Path) -> str:
    """Say how much more the disk of a path can hold.

    Example:
        >>> room(".")
        '... GB free'
    """
    place = Path(path).absolute()
    while not place.exists():
        place = place.parent
    return f"{shutil.disk_usage(place).free / 1e9:,.1f} GB free"


def ours(error: BrokerlabError | OSError) -> BrokerlabError:
    """Return an error of the system, such as a full disk, as a `DataError` that names the place; ours as they are."""
    if isinstance(error, BrokerlabError):
        return error
    place = error.filename or "a file"
    return DataError(f"{place}: {error.strerror or error}; make room, or name another folder")


_NOT_OURS = (KeyboardInterrupt, SystemExit, GeneratorExit)


def _reason(error: BaseException) -> str:
    """Return the kind of an error and its first line."""
    first = str(error).strip().split("\n", maxsplit=1)[0]
    return f"{type(error).__name__}: {shown(first, LONGEST_REASON)}"


def nearest(name: str, valid: Iterable[str], otherwise: str | None = None) -> str:
    """Return a hint naming the closest valid name; when none is close return ``otherwise``, or where that is null list them all.

    Example:
        >>> nearest("rnak", ["rank", "margin"])
        "did you mean 'rank'?"
        >>> nearest("zzz", ["rank", "margin"])
        'allowed: margin, rank'
    """
    names = sorted(shown(one, LONGEST_NAME) for one in valid)
    close = difflib.get_close_matches(name[:LONGEST_NAME], names, n=1)
    if close:
        return f"did you mean '{close[0]}'?"
    if otherwise is not None:
        return otherwise
    more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    return "allowed: " + ", ".join(names[:MOST_NAMES]) + more


def shown(text: str, most: int = LONGEST_TEXT, *, allowed: str = "\n\t") -> str:
    r"""Return a text as a person can see it: characters that show nothing, or change the order of others, by their numbers.

    A longer one than ``most`` loses its middle.

    Source: Unicode 16, general categories; Unicode Technical Report 36, 2.11 (bidirectional text spoofing); XML 1.0, 2.2.

    Example:
        >>> shown("a\u202eb\0\uffff"), shown("a" * 20, 8)
        ('a<U+202E>b<U+0000><U+FFFF>', 'aaaa...a')
    """
    if not (text.isascii() and text.isprintable()):
        text = "".join(
            f"<U+{ord(one):04X}>"
            if one not in allowed and (unicodedata.category(one) in UNSEEN or one in NOT_IN_XML)
            else one
            for one in text
        )
    if len(text) <= most:
        return text
    mark = f" ... {len(text) - most:,} more characters ... " if most > LONGEST_NAME else "..."
    kept = most - len(mark)
    return text[: kept - kept // 4] + mark + text[len(text) - kept // 4 :]
