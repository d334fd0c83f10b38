"""Outputs on their way to the nucleus."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import ndtri

from brokerlab.worlds.block import Block
from brokerlab.worlds.chains import BULK, FINISHED
from brokerlab.worlds.frames_jobs import scatter
from brokerlab.worlds.jobtypes import per_type
from brokerlab.worlds.world import World

TRANSFER_S, TRANSFER_LN_SD, LONGEST_TRANSFER_S = 14_000, 0.8, 2 * 86_400
"""Median and sd of ln of the time that outputs of slow sites travel [s], and the most."""


def delayed(block: Block, world: World) -> Block:
    """Let the outputs of bulk jobs at slow sites travel for hours after the job has ended.

    Only jobs that nothing waits for are delayed: no scouts, no tasks that merge, no analysis; so
    whatever else was drawn stays.

    Args:
        block: What was drawn.
        world: The world.

    Returns:
        The block; ``report_s``, the time from the end of a job to its last change, has grown there.
    """
    rows, tasks, t = block.rows, block.tasks, block.row_task
    slow = world.slow[tasks.slots.queue[t, rows.slot]]
    managed = per_type(lambda k: k.label == "managed")[tasks.kind[t]] > 0
    hit = slow & managed & (rows.outcome == FINISHED) & (tasks.merge_group[t] == 0)
    hit &= block.roots.phase[rows.root] == BULK
    z = ndtri(np.clip(scatter(block.pandaid), 1e-6, 1 - 1e-6))
    travel = np.minimum(TRANSFER_S * np.exp(TRANSFER_LN_SD * z), LONGEST_TRANSFER_S)
    report = np.where(hit, rows.report_s + np.round(travel).astype(np.int64), rows.report_s)
    return replace(block, rows=replace(rows, report_s=report))
