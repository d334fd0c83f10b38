"""brokerlab: what should the settings of a workload-management system be?

The packages, from the ground up: ``archive`` (what happened), ``gdpconfig`` (what was set), ``scouts``
(what scouts say), ``calibrate`` (what should be set), ``charts`` and ``report`` (what is shown).
Importing this package loads none of them.
"""

__version__ = "0.1.0"
