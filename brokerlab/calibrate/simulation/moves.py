"""Data on their way: inputs to queues, outputs to nuclei, over links that serve one transfer after the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from brokerlab.calibrate.simulation.state import DONE, FINISHED, Records, State
from brokerlab.calibrate.simulation.world import World
from brokerlab.compiled import compiled
from brokerlab.numerics import IntArray


@dataclass
class Mover:
    """The links of a world, inputs and outputs apart, and what was moved for each job.

    Attributes:
        inputs_free: (links,) from when on each is free for inputs [us], ``outputs_free`` for outputs.
        moved: (jobs,) bytes that travelled for it.
        spent: (jobs,) time from its placements to its inputs being there [us].
    """

    world: World
    inputs_free: IntArray
    outputs_free: IntArray
    moved: IntArray
    spent: IntArray

    @classmethod
    def of(cls, world: World) -> Mover:
        """Let nothing be on its way."""
        links = len(world.arrays.us_per_byte) if world.transfers.mode == "links" else 0
        free = np.full(links, np.iinfo(np.int64).min)
        nothing = np.zeros(world.jobs.height, np.int64)
        return cls(world, free, free.copy(), nothing, nothing.copy())

    def bring_inputs(self, job: IntArray, queue: IntArray, asked: IntArray) -> IntArray:
        """Return when the inputs of jobs, which ask from ``asked`` on and are served in this order, are at their queues [us]."""
        arrays, mode = self.world.arrays, self.world.transfers.mode
        if mode == "observed":
            self.spent[job] += arrays.prepared[job]
            return asked + arrays.prepared[job]
        if mode == "none" or not arrays.lacking.size:
            return asked
        task, site = arrays.task[job], arrays.site[queue]
        part = np.where(task >= 0, arrays.lacking[task, queue], 0.0)
        bytes_ = np.round(part * arrays.input_bytes[job]).astype(np.int64)
        source = np.where(task >= 0, arrays.source[task, site], -1)
        there = self._through(source, site, bytes_, asked, job, self.inputs_free)
        self.spent[job] += there - asked
        return there

    def send_outputs(self, state: State, log: Records, gone: IntArray) -> None:
        """Send off the outputs of the attempts that have ended, and fill in when each job's have arrived (``gone``) [us]."""
        job, end = log["job"].copy(), log["end"].copy()
        over = state.attempt["status"][job] == DONE
        over &= state.attempt["number"][job] == log["number"]
        gone[job[over]] = end[over]
        if self.world.transfers.mode != "links":
            return
        own = np.flatnonzero(over & (log["outcome"] == FINISHED))
        order = own[np.lexsort((job[own], end[own]))]
        job, end, queue = job[order], end[order], log["queue"][order]
        arrays = self.world.arrays
        site, home = arrays.site[queue], arrays.home[job]
        gone[job] = self._through(site, home, arrays.output_bytes[job], end, job, self.outputs_free)

    def _through(
        self,
        source: IntArray,
        target: IntArray,
        bytes_: IntArray,
        asked: IntArray,
        job: IntArray,
        free: IntArray,
    ) -> IntArray:
        """Send bytes from site to site; what stays at a site, or is nowhere, takes no time."""
        there, arrays = asked.copy(), self.world.arrays
        far = np.flatnonzero((source >= 0) & (target >= 0) & (source != target) & (bytes_ > 0))
        link = source[far] * len(arrays.sites) + target[far]
        lasts = np.round(bytes_[far] * arrays.us_per_byte[link]).astype(np.int64)
        there[far] = queue_up(link, asked[far], lasts, free)
        self.moved[job[far]] += bytes_[far]
        return there


@compiled
def queue_up(link: IntArray, asked: IntArray, lasts: IntArray, free: IntArray) -> IntArray:
    """Let transfers, in this order, pass their links: ``end = max(asked, end before) + lasts`` [us]; ``free`` is changed."""
    end = np.empty(len(link), np.int64)
    for row in range(len(link)):
        begin = max(asked[row], free[link[row]])
        end[row] = begin + lasts[row]
        free[link[row]] = end[row]
    return end
