"""Names of :mod:`brokerlab.engines` that a replay reads its tables with."""

from brokerlab.engines import (
    FLAG,
    FLOAT,
    INT,
    TEXT,
    TIME,
    Types,
    collect,
    narrow,
    same_engine,
)

__all__ = ["FLAG", "FLOAT", "INT", "TEXT", "TIME", "Types", "collect", "narrow", "same_engine"]
