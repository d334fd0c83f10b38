"""Charts: one function per chart, each takes an aggregated frame and returns an Altair chart.

`theme` has the look and `save`; `scouts` the charts of a scout calibration.
"""
