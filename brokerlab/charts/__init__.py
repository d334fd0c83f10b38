"""Charts: eight primitives, and named functions of a few lines on top; each takes an aggregated frame.

`theme` has the look and `save`; one module per room has its named charts.
"""

from brokerlab.schemas import jsonschema

jsonschema()  # altair imports it
