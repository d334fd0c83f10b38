"""Write docs/rules/coverage.md."""

from __future__ import annotations

from tests.document.sentences import TABLE, table

TABLE.write_text(table(), encoding="utf-8")
