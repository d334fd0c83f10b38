"""Factors between units, once. Byte units are binary throughout, as in PanDA (scouts.md section 15)."""

KB = 1024  # bytes in one kB
MB = 1024 * 1024  # bytes in one MB
GB = 1024 * 1024 * 1024  # bytes in one GB
HOUR_S = 3600  # seconds in one hour
DAY_S = 86_400  # seconds in one day
SECOND_US = 1_000_000  # microseconds in one second
