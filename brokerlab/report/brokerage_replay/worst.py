"""Tasks that the replay leaves without a queue, though most jobs of theirs really ran."""

from brokerlab.brokerage.studies.stranded import explain_stranded as explained

__all__ = ["explained"]
