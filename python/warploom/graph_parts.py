"""Cuts an FX graph into parts that kernels can compute, and what stays with torch between them.

Every node gets a level: that of its latest source, and one more where the source is on the other
side, with kernels or with torch. In a level torch's nodes come first, in the order of the graph,
and then, as one part, all nodes that kernels compute; so no part waits for itself, and there are as
few parts as this order allows. A node that writes in place, draws random numbers or has an effect
of its own keeps its place among all others: its level is above all before it.
"""
from __future__ import annotations

import dataclasses
import operator
from typing import Any, Callable, Mapping

import torch
from torch import fx

from .graph_facts import Fact

CALLS = ("call_function", "call_method", "call_module")


@dataclasses.dataclass
class Side:
    """Where each node is computed: `why` it stays with torch, "" where kernels compute it."""

    why: dict[fx.Node, str]

    def __getitem__(self, node: fx.Node) -> bool:
        return not self.why[node]


def is_folded(node: fx.Node, facts: Mapping[fx.Node, Fact]) -> bool:
    """Whether a node is a number that is the same in every call."""
    return facts[node].kind == "value" and facts[node].folds


def sides_of(
    graph: fx.GraphModule, facts: Mapping[fx.Node, Fact], why_not: Callable[[fx.Node], str]
) -> Side:
    """Which side each node is on. `why_not` says why a single node is not read, "" where it is."""
    why: dict[fx.Node, str] = {}
    for node in graph.graph.nodes:
        if node.op not in CALLS or is_folded(node, facts):
            continue
        source = node.args[0] if node.args else None
        if node.target is operator.getitem and source in why and facts[source].kind == "tensors":
            why[node] = why[source]  # it is a part of what its source gives
            continue
        why[node] = facts[node].why or why_apart(node, facts) or why_not(node)
    return Side(why)


def why_apart(node: fx.Node, facts: Mapping[fx.Node, Fact]) -> str:
    """What keeps a node's values from crossing to a kernel or from one."""
    fact = facts[node]
    if not node.users:
        return "nothing uses what it gives"
    if fact.kind == "value":
        return "it gives no tensor"
    for source in node.all_input_nodes:
        if facts[source].kind == "value" and not is_folded(source, facts):
            return "it takes a number that is not the same in every call"
        if facts[source].kind == "tensors":
            return "it takes a tuple of tensors"
    if fact.kind == "tensors" and any(user.target is not operator.getitem for user in node.users):
        return "it gives a tuple of tensors that is used whole"
    return ""


def levels_of(
    graph: fx.GraphModule, facts: Mapping[fx.Node, Fact], side: Side
) -> dict[fx.Node, int]:
    """The level of every node that is computed."""
    levels: dict[fx.Node, int] = {}
    floor, highest = 0, -1  # a barrier's level is above all before it; nothing later is below it
    for node in graph.graph.nodes:
        if node not in side.why:
            continue
        if facts[node].is_barrier:
            floor = highest + 1
        sources = [source for source in node.all_input_nodes if source in levels]
        above = [levels[source] + (side[source] != side[node]) for source in sources]
        levels[node] = max([floor, *above])
        if node.target is operator.getitem and facts[node.args[0]].kind == "tensors":
            levels[node] = levels.get(node.args[0], 0)  # a tuple does not cross from part to part
        highest = max(highest, levels[node])
    return levels


class Part:
    """Nodes that kernels compute together: `inputs` and `outputs` are nodes of the whole graph."""

    def __init__(self, whole: fx.GraphModule, nodes: list[fx.Node], facts: Mapping[fx.Node, Fact]):
        self.nodes = nodes
        inside = set(nodes)
        self.inputs: list[fx.Node] = []
        for node in nodes:
            for source in node.all_input_nodes:
                is_given = source not in inside and not is_folded(source, facts)
                if is_given and source.op != "get_attr" and source not in self.inputs:
                    self.inputs.append(source)
        self.outputs = [node for node in nodes if any(user not in inside for user in node.users)]
        self.outputs = [node for node in self.outputs if facts[node].kind == "tensor"]
        self.module = fx.GraphModule(whole, self.graph(facts))

    def graph(self, facts: Mapping[fx.Node, Fact]) -> fx.Graph:
        """The part as a graph of its own."""
        graph = fx.Graph()
        known: dict[fx.Node, fx.Node] = {}
        for source in self.inputs:
            known[source] = graph.placeholder(source.name)

        def of(source: fx.Node) -> Any:
            if is_folded(source, facts):
                return facts[source].value
            if source not in known:  # a weight
                known[source] = graph.get_attr(source.target)
            return known[source]

        for node in self.nodes:
            known[node] = graph.node_copy(node, of)
        made = tuple(known[node] for node in self.outputs)
        graph.output(made[0] if len(made) == 1 else made)
        return graph


def parts_of(
    graph: fx.GraphModule, facts: Mapping[fx.Node, Fact], side: Side
) -> tuple[fx.GraphModule, list[Part]]:
    """The parts, and the graph with each as one module: part_0, part_1, …"""
    levels = levels_of(graph, facts, side)
    parts: list[Part] = []
    whole = fx.Graph()
    known: dict[fx.Node, Any] = {}
    modules: dict[str, torch.nn.Module] = {}

    def of(source: fx.Node) -> Any:
        return facts[source].value if is_folded(source, facts) else known[source]

    output = None
    for node in graph.graph.nodes:
        if node.op in ("placeholder", "get_attr"):
            known[node] = whole.node_copy(node, of)
        elif node.op == "output":
            output = node
    for level in sorted(set(levels.values())):
        here = [node for node in levels if levels[node] == level]
        for node in here:
            if not side[node]:
                known[node] = whole.node_copy(node, of)
        ours = [node for node in here if side[node]]
        if not ours:
            continue
        part = Part(graph, ours, facts)
        name = f"part_{len(parts)}"
        parts.append(part)
        modules[name] = part.module
        called = whole.call_module(name, tuple(known[source] for source in part.inputs))
        for i, node in enumerate(part.outputs):
            one = len(part.outputs) == 1
            known[node] = called if one else whole.call_function(operator.getitem, (called, i))
    whole.node_copy(output, of)
    return assembled(graph, whole, modules), parts


def assembled(
    graph: fx.GraphModule, whole: fx.Graph, modules: Mapping[str, torch.nn.Module]
) -> fx.GraphModule:
    """A module of a graph that calls modules of another, and new ones."""
    root = torch.nn.Module()
    root.__dict__.update({**graph.__dict__})
    root._modules = {**graph._modules, **modules}
    made = fx.GraphModule(root, whole)
    made.graph.lint()
    return made
