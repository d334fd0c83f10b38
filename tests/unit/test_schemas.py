"""jsonschema without the package that takes two seconds to import."""

import subprocess
import sys

CODE = """
import sys
from brokerlab.schemas import jsonschema
assert jsonschema().Draft202012Validator({"type": "string"}).is_valid("x")
assert "rfc3987_syntax" not in sys.modules
assert "iri" not in jsonschema().FormatChecker.checkers
assert "date" in jsonschema().FormatChecker.checkers
"""


def test_the_grammar_of_addresses_is_not_built():
    done = subprocess.run(  # noqa: S603 - this interpreter, our own code
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
