"""Compiled steps of the predictive mixture: weights, fits, what earlier runs say of the next one."""

from __future__ import annotations

import math

import numpy as np

from brokerlab.compiled import compiled
from brokerlab.numerics import FloatArray, IntArray

LOG_LINE, LEVEL_LINE, TAGS = 0, 1, 2
NEAR_LEAST = 8  # runs that a neighbourhood has at least
NARROWEST = 0.0004  # relative width below which no two runs are told apart
ROBUST = 0.676  # (E sqrt|z|)^2 of a standard normal z
REACH = 8.0  # widths of a kernel that are added up
LOST = 0.02  # of a run that no view foresaw


@compiled
def input_weights(x: FloatArray, at: float, near: float, weights: FloatArray) -> None:
    """Weigh runs by how near their input is: tricube up to the nearest ``near`` share of them."""
    n = x.size
    count = min(max(math.ceil(near * n), NEAR_LEAST), n)
    distance = np.abs(x - at)
    reach = np.partition(distance, count - 1)[count - 1] * 1.0001 + 1e-9
    total = 0.0
    for j in range(n):
        u = distance[j] / reach
        weights[j] = (1 - u * u * u) ** 3 if u < 1 else 0.0
        total += weights[j]
    if total <= 0:
        for j in range(n):
            weights[j] = 1.0 if distance[j] <= reach else 0.0


@compiled
def tag_weights(tags: IntArray, at: IntArray, base: float, weights: FloatArray) -> None:
    """Weigh runs by the leading words their tag shares with a tag: ``base`` times more for each."""
    for j in range(weights.size):
        weights[j] = 1.0
        for k in range(tags.shape[1]):
            if at[k] < 0 or tags[j, k] != at[k]:
                break
            weights[j] *= base


@compiled
def line(
    x: FloatArray, y: FloatArray, weights: FloatArray, at: float, sloped: int
) -> tuple[float, float, float, float, float]:
    """Fit a weighted line; return its value at a point, intercept, slope, runs it rests on, leverage."""
    total = sum_x = sum_y = squares = 0.0
    for j in range(x.size):
        w = weights[j]
        total += w
        sum_x += w * x[j]
        sum_y += w * y[j]
        squares += w * w
    mean_x, mean_y = sum_x / total, sum_y / total
    runs = total * total / squares
    slope = 0.0
    leverage = 1 / runs
    if sloped == 1:
        xx = xy = 0.0
        for j in range(x.size):
            d = x[j] - mean_x
            xx += weights[j] * d * d
            xy += weights[j] * d * (y[j] - mean_y)
        if xx > 1e-12 * total:
            slope = xy / xx
            leverage += (at - mean_x) ** 2 / xx * (squares / total)
            runs = max(runs - 1, 1.0)
    return mean_y + slope * (at - mean_x), mean_y - slope * mean_x, slope, runs, leverage


@compiled
def atoms_of_log_line(
    x: FloatArray, y: FloatArray, weights: FloatArray, at: float, sloped: int, atoms: FloatArray
) -> float:
    """Move every run along a line through logarithms to a point; return the runs it rests on."""
    there, intercept, slope, runs, leverage = line(x, y, weights, at, sloped)
    there = min(max(there, y.min() - 1.0), y.max() + 1.0)
    wider = math.sqrt(runs / max(runs - 1, 1.0)) * math.sqrt(1 + min(leverage, 4.0))
    for j in range(x.size):
        atoms[j] = there + (y[j] - intercept - slope * x[j]) * wider
    return runs


@compiled
def atoms_of_level_line(
    x: FloatArray, y: FloatArray, weights: FloatArray, at: float, atoms: FloatArray
) -> float:
    """Move every run along a line through levels to a point; return the runs it rests on."""
    there, intercept, slope, runs, leverage = line(x, y, weights, at, 1)
    least = 0.3 * y.min()
    there = max(there, least)
    wider = math.sqrt(runs / max(runs - 1, 1.0)) * math.sqrt(1 + leverage)
    for j in range(x.size):
        atoms[j] = math.log(max(there + (y[j] - intercept - slope * x[j]) * wider, 0.3 * least))
    return runs


@compiled
def spread_of(atoms: FloatArray, weights: FloatArray) -> float:
    """Return a robust standard deviation of weighted atoms: the squared mean root deviation."""
    total = mean = 0.0
    for j in range(atoms.size):
        total += weights[j]
        mean += weights[j] * atoms[j]
    mean /= total
    roots = 0.0
    for j in range(atoms.size):
        if weights[j] > 0:
            roots += weights[j] * math.sqrt(abs(atoms[j] - mean))
    return (roots / total) ** 2 / ROBUST


@compiled
def foresee(
    log_input: FloatArray,
    input_b: FloatArray,
    log_memory: FloatArray,
    memory_b: FloatArray,
    tags: IntArray,
    at_input_b: float,
    at_log_input: float,
    at_tags: IntArray,
    kinds: IntArray,
    settings: FloatArray,
    sloped: IntArray,
    atoms: FloatArray,
    weights: FloatArray,
    shapes: FloatArray,
) -> None:
    """Fill what every view expects of a run: atoms of log memory, their weights, width and freedom.

    ``log_input`` to ``tags`` are the n runs seen, ``at_...`` is the run to come; ``kinds, settings,
    sloped`` describe the views (:class:`mixture.View`). Filled are ``atoms`` and ``weights`` (views, n),
    weights of a view summing to 1, and ``shapes`` (views, 2): width of the kernel on log memory, degrees
    of freedom.
    """
    n = log_memory.size
    ones = np.ones(n)
    for v in range(kinds.size):
        if kinds[v] == TAGS:
            tag_weights(tags, at_tags, settings[v], weights[v])
            for j in range(n):
                atoms[v, j] = log_memory[j]
            total = weights[v].sum()
            runs = total * total / (weights[v] ** 2).sum()
        else:
            if settings[v] < 1:
                input_weights(log_input, at_log_input, settings[v], weights[v])
            else:
                weights[v] = ones
            if kinds[v] == LEVEL_LINE:
                runs = atoms_of_level_line(input_b, memory_b, weights[v], at_input_b, atoms[v])
            else:
                runs = atoms_of_log_line(
                    log_input, log_memory, weights[v], at_log_input, sloped[v], atoms[v]
                )
            total = weights[v].sum()
        width = 0.9 * spread_of(atoms[v], weights[v]) * runs**-0.2
        shapes[v, 0] = max(width, NARROWEST, 0.5 * 2.0**-n)
        shapes[v, 1] = min(max(4.0, runs / 4), 40.0)
        for j in range(n):
            weights[v, j] /= total


@compiled
def log_scores(
    truth: float,
    atoms: FloatArray,
    weights: FloatArray,
    shapes: FloatArray,
    widths: FloatArray,
    centre: float,
    scores: FloatArray,
) -> None:
    """Add to each (view, width) the logarithm of the density it gave to what came."""
    floor = LOST * math.exp(-abs(truth - centre))
    for v in range(atoms.shape[0]):
        nu = shapes[v, 1]
        scale = math.gamma((nu + 1) / 2) / math.gamma(nu / 2) / math.sqrt(math.pi * nu)
        for b in range(widths.size):
            width = shapes[v, 0] * widths[b]
            density = 0.0
            for j in range(atoms.shape[1]):
                if weights[v, j] > 0:
                    u = (truth - atoms[v, j]) / width
                    if abs(u) < 50:
                        density += weights[v, j] * (1 + u * u / nu) ** (-0.5 * nu - 0.5)
            scores[v, b] += math.log((1 - LOST) * density * scale / width + floor)


@compiled
def on_grid(
    atoms: FloatArray,
    weights: FloatArray,
    shapes: FloatArray,
    widths: FloatArray,
    shares: FloatArray,
    edges: FloatArray,
    mass: FloatArray,
) -> None:
    """Lay the mixture on a grid of log memory: upper edges of the cells and their probability."""
    low, high = np.inf, -np.inf
    for v in range(atoms.shape[0]):
        reach = shapes[v, 0] * widths.max()
        for j in range(atoms.shape[1]):
            if weights[v, j] > 0:
                low = min(low, atoms[v, j] - 4 * reach)
                high = max(high, atoms[v, j] + REACH * reach)
    cells = mass.size
    step = (high - low) / (cells - 1)
    for g in range(cells):
        edges[g] = low + step * (g + 0.5)
        mass[g] = 0.0
    binned = np.empty(cells)
    for v in range(atoms.shape[0]):
        kernel = _kernel(shapes[v, 0] / step, shapes[v, 1], widths, shares[v], cells)
        reach_cells = (kernel.size - 1) // 2
        binned[:] = 0.0
        for j in range(atoms.shape[1]):
            if weights[v, j] > 0:
                binned[min(max(int((atoms[v, j] - low) / step + 0.5), 0), cells - 1)] += weights[
                    v, j
                ]
        for g in range(cells):
            if binned[g] > 0:
                for r in range(-reach_cells, reach_cells + 1):
                    mass[min(max(g + r, 0), cells - 1)] += binned[g] * kernel[r + reach_cells]
    mass /= mass.sum()


@compiled
def _kernel(
    width: float, nu: float, widths: FloatArray, shares: FloatArray, cells: int
) -> FloatArray:
    """Return Student kernels of several widths [cells], mixed by their shares."""
    reach = min(int(REACH * width * widths.max()) + 1, cells)
    kernel = np.zeros(2 * reach + 1)
    for b in range(widths.size):
        total = 0.0
        for r in range(-reach, reach + 1):
            total += (1 + (r / (width * widths[b])) ** 2 / nu) ** (-0.5 * nu - 0.5)
        for r in range(-reach, reach + 1):
            part = (1 + (r / (width * widths[b])) ** 2 / nu) ** (-0.5 * nu - 0.5)
            kernel[r + reach] += shares[b] * part / total
    return kernel
