"""Modules that load with their first use show and travel as others do."""

import copy
import math

from brokerlab import charts
from brokerlab.lazy import Later


def test_a_module_that_loads_later_shows_its_names_and_goes_to_other_processes():
    later = Later("math")
    assert dir(later) == dir(math)
    assert copy.copy(later).sqrt(4.0) == 2  # as pickle does
    assert "frontier_chart" in dir(charts.scouts)
