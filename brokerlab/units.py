"""Factors between units, once. Byte units are binary throughout, as in PanDA (scouts.md section 15)."""

KB = 1024
"""Bytes in one kB."""
MB = 1024 * 1024
"""Bytes in one MB."""
GB = 1024 * 1024 * 1024
"""Bytes in one GB."""
HOUR_S = 3600
"""Seconds in one hour."""
DAY_S = 86_400
"""Seconds in one day."""
