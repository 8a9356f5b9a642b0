"""Timing beside peers: alternating in one run, the L2 flushed before every call, medians with
bootstrap intervals."""
import random

import torch

FLUSH_BYTES = 256 << 20  # more than twice any L2 of today


def alternate(calls, seconds=1.0, least=15, most=200):
    """{name: call} → {name: [microseconds]}. A call takes the round's number, so that it can use
    another set of buffers."""
    flush = torch.empty(FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")
    for name, call in calls.items():
        for turn in range(3):
            call(turn)
    torch.cuda.synchronize()
    events = lambda: torch.cuda.Event(enable_timing=True)
    samples = {name: [] for name in calls}
    spent, turn, names = 0.0, 0, list(calls)
    while turn < least or (spent < seconds * 1e6 and turn < most):
        names = names[1:] + names[:1]  # no call always follows the same other
        marks = []
        for name in names:
            flush.random_(0, 7)
            before, after = events(), events()
            before.record()
            calls[name](turn)
            after.record()
            marks.append((name, before, after))
        torch.cuda.synchronize()
        for name, before, after in marks:
            us = before.elapsed_time(after) * 1e3
            samples[name].append(us)
            spent += us
        turn += 1
    return samples


def alternate_graphs(calls, sets, seconds=0.5):
    """For short calls: a CUDA graph of one call a buffer set, the sets together larger than the L2;
    time a call."""
    graphs = {}
    for name, call in calls.items():
        for turn in range(sets):
            call(turn)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for turn in range(sets):
                call(turn)
        graphs[name] = graph
    samples = alternate(
        {name: (lambda turn, g=graph: g.replay()) for name, graph in graphs.items()}, seconds
    )
    return {name: [us / sets for us in values] for name, values in samples.items()}


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def interval(values, resamples=500):
    """95 % bootstrap interval of the median."""
    rng = random.Random(1)
    medians = sorted(median([rng.choice(values) for _ in values]) for _ in range(resamples))
    return [round(medians[int(0.025 * resamples)], 3), round(medians[int(0.975 * resamples)], 3)]
