"""What one run of an FX graph shows of its nodes: values, sizes, views, writes, random numbers.

A backend must know more of a node than its operator's name. Kernels give new tensors, so a node
that writes one in place, or returns a view of an input, is no kernel's; a node that draws random
numbers is neither; and sizes that torch computes in the graph are numbers here, since kernels are
made for fixed shapes. One run of the graph on copies of real inputs shows all of it.
"""
from __future__ import annotations

import collections
import dataclasses
import operator
from typing import Any, Mapping, Sequence

import torch
from torch import fx
from torch.utils._python_dispatch import TorchDispatchMode

from .data_in_python import storage_of, tensors_in, written_by

SIZES = {"size", "dim", "ndimension", "numel", "nelement", "stride", "element_size", "__len__"}
SIZES |= {"shape", "ndim", "dtype", "device", "layout", "is_cuda", "len", "get_device"}
SIZES |= {"is_floating_point", "is_complex", "is_contiguous", "type"}


@dataclasses.dataclass
class Fact:
    """What is known of a node. `value`: what it gave, where that is no tensor. `why`: what keeps
    it from being a kernel's, "" where nothing is known to."""

    kind: str  # "tensor", "tensors" or "value"
    value: Any = None
    folds: bool = False  # whether `value` is the same in every call
    why: str = ""
    is_barrier: bool = False  # whether it must keep its place among all others
    storages: tuple = ()
    shapes: tuple = ()


def versions(tensors: Sequence[torch.Tensor]) -> list[int]:
    """How often each was written."""
    return [0 if tensor.is_inference() else tensor._version for tensor in tensors]


def name_of(node: fx.Node) -> str:
    """What a node calls, in a word."""
    if node.op == "call_module":
        part = node.graph.owning_module.get_submodule(node.target)
        return f"{node.target} ({type(part).__name__})"
    target = node.target
    return target if isinstance(target, str) else getattr(target, "__name__", str(target))


class Writes(TorchDispatchMode):
    """Sees which memory is written, statistics of norms in training among it, which count no
    versions."""

    def __init__(self):
        super().__init__()
        self.storages: set[int] = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        written = [value for value in written_by(function, args, kwargs) if value.numel()]
        self.storages.update(map(storage_of, written))
        return function(*args, **kwargs)


class Recorder(fx.Interpreter):
    """Runs a graph and keeps a Fact of each node."""

    def __init__(self, graph: fx.GraphModule):
        super().__init__(graph, garbage_collect_values=True)
        self.facts: dict[fx.Node, Fact] = {}
        self.of_inputs: set[int] = set()
        self.written: set[int] = set()

    def run_node(self, node: fx.Node) -> Any:
        args, kwargs = self.fetch_args_kwargs_from_env(node)
        given = tensors_in([list(args), kwargs])
        if node.op == "call_module":
            part = self.fetch_attr(node.target)
            given += [*part.parameters(), *part.buffers()]
        before, drawn = versions(given), random_state(given)
        with Writes() as writes:
            result = super().run_node(node)
        fact = self.fact_of(node, result)
        places = set(map(storage_of, given))
        if places.intersection(writes.storages):
            fact.why, fact.is_barrier = "it writes a tensor in place", True
            self.written.update(places.intersection(writes.storages))
        for tensor, was, now in zip(given, before, versions(given)):
            if was != now:
                fact.why, fact.is_barrier = "it writes a tensor in place", True
                self.written.add(storage_of(tensor))
        if not fact.why and random_state(given) != drawn:
            fact.why, fact.is_barrier = "it draws random numbers", True
        self.facts[node] = fact
        return result

    def fact_of(self, node: fx.Node, result: Any) -> Fact:
        """What a result shows."""
        tensors = tensors_in(result)
        storages = tuple(map(storage_of, tensors))
        if node.op in ("placeholder", "get_attr"):
            self.of_inputs.update(storages)
        shapes = tuple((tuple(tensor.shape), str(tensor.dtype)) for tensor in tensors)
        if isinstance(result, torch.Tensor):
            return Fact("tensor", storages=storages, shapes=shapes)
        if tensors:
            return Fact("tensors", storages=storages, shapes=shapes)
        if node.target is operator.getitem and self.facts[node.args[0]].kind == "tensors":
            return Fact("value", result, folds=True)  # nothing, in the place of a tensor
        if node.op == "call_function" and not is_plain(result):
            return Fact("value", result, why="it has an effect of its own", is_barrier=True)
        return Fact("value", result, self.folds(node), "" if self.folds(node) else NOT_FIXED)

    def folds(self, node: fx.Node) -> bool:
        """Whether a value that is no tensor comes of shapes alone."""
        if node.op in ("placeholder", "get_attr", "output"):
            return False
        sources = [self.facts[source] for source in node.all_input_nodes]
        if all(source.kind == "value" and source.folds for source in sources):
            return True
        word = node.target if node.op == "call_method" else getattr(node.target, "__name__", "")
        if word == "getattr":
            word = node.args[1]
        return word in SIZES


PLAIN = (int, float, bool, str, torch.dtype, torch.device, torch.layout, type(...))
NOT_FIXED = "it gives Python a number that depends on data"


def is_plain(value: Any) -> bool:
    """Whether it is a number, a size or the like; a function that gives none, as the one that
    switches gradients off, is called for its effect."""
    if isinstance(value, (tuple, list)):
        return all(map(is_plain, value))
    if isinstance(value, slice):
        return True
    return isinstance(value, PLAIN)


def random_state(near: Sequence[torch.Tensor]) -> list[bytes]:
    """The states of the generators of the CPU and of the tensors' GPUs."""
    states = [torch.get_rng_state()]
    for device in {tensor.device for tensor in near if tensor.is_cuda}:
        states.append(torch.cuda.get_rng_state(device))
    return [bytes(state.numpy()) for state in states]


def facts_of(graph: fx.GraphModule, inputs: Sequence[Any]) -> dict[fx.Node, Fact]:
    """A Fact of each node, of a run on copies of `inputs`."""
    recorder = Recorder(graph)
    with torch.inference_mode(False), torch.no_grad(), torch.random.fork_rng(gpus_of(inputs)):
        state = copies_of(graph)
        given = [
            value.detach().clone() if isinstance(value, torch.Tensor) else value
            for value in inputs
        ]
        try:
            recorder.run(*given)
        finally:
            for tensor, was in state:
                tensor.copy_(was)
    refuse_views(graph, recorder)
    return recorder.facts


def gpus_of(inputs: Sequence[Any]) -> list[int]:
    """The GPUs that tensors are on."""
    tensors = [value for value in inputs if isinstance(value, torch.Tensor) and value.is_cuda]
    return sorted({value.device.index for value in tensors})


def copies_of(graph: fx.GraphModule) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """The buffers of parts in training, which a run would change, and what they hold."""
    training = [part for part in graph.modules() if part.training]
    buffers = [value for part in training for value in part._buffers.values() if value is not None]
    return [(value, value.clone()) for value in buffers]


def refuse_views(graph: fx.GraphModule, recorder: Recorder) -> None:
    """Keeps with torch what shares memory with something that is written, with an input that the
    graph returns a view of, or with another output: who writes one writes both."""
    returned = set()
    for node in graph.graph.nodes:
        if node.op == "output":
            returned.update(node.all_input_nodes)
    shared = shared_by(returned, recorder.facts)
    for node, fact in recorder.facts.items():
        if fact.why or node.op not in ("call_function", "call_method", "call_module"):
            continue
        if recorder.written.intersection(fact.storages):
            fact.why = "it shares memory with a tensor that is written in place"
        elif node in returned and recorder.of_inputs.intersection(fact.storages):
            fact.why = "it returns a view of an input"
        elif is_view(node, recorder.facts) and shared.intersection(fact.storages):
            fact.why = "it shares memory with another output"


def shared_by(returned: set[fx.Node], facts: Mapping[fx.Node, Fact]) -> set[int]:
    """The memory that more than one of the nodes lies in. (They lived until the end of the run, so
    that their addresses tell; what was freed may have had the same.)"""
    times = collections.Counter(
        storage for node in returned if node in facts for storage in set(facts[node].storages)
    )
    return {storage for storage, count in times.items() if count > 1 and storage}


def is_view(node: fx.Node, facts: Mapping[fx.Node, Fact]) -> bool:
    """Whether what a node gives lies where one of its sources does."""
    sources = [set(facts[source].storages) for source in node.all_input_nodes]
    return any(source.intersection(facts[node].storages) for source in sources)
