"""The backend of torch.compile: graphs and parts of graphs become kernels, the rest stays torch's.

    faster = torch.compile(module, backend="warploom", options={"budget": "60s"}, dynamic=False)
    with torch.no_grad():
        y = faster(x)

torch hands over an FX graph. At its first call, with real inputs, the graph is cut into parts that
are read (graph_parts.py); each part is optimized as optimize() does it, and checked. What is not
read, or differs, is computed by torch, and standard error says which nodes and why. Options are
`budget` (of the whole graph, shared by its parts), `track`, `out`, `quiet`, `only_faster` (true: a
part whose kernels are no faster than torch stays with torch), and flags of `warploom optimize`.

torch 1.13 has no torch.compile; there, backend(torch.fx.symbolic_trace(module), [x]) is the same
function by hand. torch 2 finds the backend by the wheel's entry point, or, where this is no wheel,
by register().
"""
from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import operator
import os
import pathlib
import re
import sys
import tempfile
import threading
from typing import Any, Callable, Iterator, Mapping, Sequence

import torch
from torch import fx

from . import exporting
from .errors import WarploomError
from .graph_facts import Fact, facts_of, gpus_of, name_of
from .graph_parts import Part, Side, parts_of, sides_of
from .loading import load
from .optimizing import optimize, wants_gradient
from .program import answer
from .refusing import REMEDY_GRADIENTS

NAME = "warploom"
GROUP = "torch_dynamo_backends"
NAMED = 8  # nodes of a kind, where all are too many
WEIGHT_SETS = 64  # of one part, for modules that share their code
SHOWN = ("target", "track")  # options that `warploom show` takes
SECONDS = {"ms": 1e-3, "s": 1.0, "m": 60.0}


def backend(
    graph: fx.GraphModule,
    example_inputs: Sequence[Any],
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """What computes an FX graph: a function of its inputs that gives what the graph gives.

    `example_inputs` are not looked at: torch may hand over tensors without elements, and so the
    work is done at the first call. The function's `report` says what became of each part, and of
    each node that stays with torch.
    """
    compiled = Compiled(graph, dict(options or {}))

    def call(*inputs: Any) -> Any:
        return compiled(*inputs)

    call.report = compiled.report  # type: ignore[attr-defined]
    call.compiled = compiled  # type: ignore[attr-defined]
    return call


def register() -> None:
    """Tells torch of the backend by name, where no wheel does."""
    if not hasattr(torch, "compile"):
        return
    found = importlib.metadata.entry_points(group=GROUP)
    if NAME in {point.name for point in found}:
        return
    try:
        from torch._dynamo import list_backends, register_backend
    except ImportError:  # a torch without its compiler
        return
    if NAME not in list_backends(exclude_tags=()):
        register_backend(compiler_fn=backend, name=NAME)


class Compiled:
    """A graph that becomes kernels at its first call.

    `report` says of each part and of each node that stays with torch what became of it.
    """

    def __init__(self, graph: fx.GraphModule, options: dict[str, Any]):
        self.graph = graph
        self.options = options
        self.quiet = bool(self.options.pop("quiet", False))
        self.only_faster = bool(self.options.pop("only_faster", True))
        self.budget = str(self.options.pop("budget", "60s"))
        out = self.options.pop("out", None)
        self.out = pathlib.Path(out) if out else cache_folder()
        self.report: list[str] = []
        self.ready: Callable[..., Any] | None = None
        self.kinds: tuple = ()  # of the inputs of the first call, for which `ready` is
        self.has_others = False  # whether inputs of another kind came
        self.lock = threading.Lock()

    def __call__(self, *inputs: Any) -> Any:
        if self.ready is None:
            with self.lock:
                if self.ready is None:
                    self.kinds = tuple(map(kind_of, inputs))
                    self.ready = self.compiled(inputs)
        if self.ready is not self.graph and tuple(map(kind_of, inputs)) != self.kinds:
            self.say_others(inputs)
            return self.graph(*inputs)
        return self.ready(*inputs)

    def say_others(self, inputs: Sequence[Any]) -> None:
        """Says once that inputs are not those that the kernels are for. (torch.compile itself
        makes another graph of them.)"""
        if not self.has_others:
            self.has_others = True
            shapes = ", ".join(str(list(getattr(value, "shape", ()))) for value in inputs)
            self.say(
                "torch computes inputs of other shapes, types or devices than the first call's, "
                f"as {shapes}: call the backend anew for them"
            )

    def say(self, text: str) -> None:
        """Keeps a line of the report, and prints it."""
        self.report.append(text)
        if not self.quiet:
            print(f"warploom: {text}", file=sys.stderr, flush=True)

    def compiled(self, inputs: Sequence[Any]) -> Callable[..., Any]:
        """The graph with kernels in it."""
        weights = [*self.graph.parameters(), *inputs]
        if torch.is_grad_enabled() and any(map(wants_gradient, weights)):
            raise WarploomError(
                "gradients",
                "an input or a weight wants a gradient, and kernels compute none",
                remedy=REMEDY_GRADIENTS,
            )
        if not all(isinstance(value, torch.Tensor) for value in inputs):
            self.say(
                "the graph takes sizes as inputs and stays with torch: say dynamic=False to "
                "torch.compile, and each shape has kernels of its own"
            )
            return self.graph
        if in_autocast(self.graph):
            self.say("the graph is under autocast and stays with torch: convert the module")
            return self.graph
        try:
            made, calls = self.divided(facts_of(self.graph, inputs), inputs)
        except Exception as error:  # a program that runs under torch runs under this
            self.say(f"the graph stays with torch: {type(error).__name__}: {error}")
            return self.graph
        self.fill(calls)
        return made

    def divided(
        self, facts: Mapping[fx.Node, Fact], inputs: Sequence[Any]
    ) -> tuple[fx.GraphModule, list["PartCall"]]:
        """The graph with its parts: all that may be read at once, or where that is refused what is
        read node by node."""
        side = sides_of(self.graph, facts, lambda node: "")
        made, calls = self.with_calls(facts, side, inputs)
        if any(self.refusal(call) for call in calls):
            device = inputs[0].device if inputs else torch.device("cpu")
            probe = Probe(self, facts, device)
            side = sides_of(self.graph, facts, probe.why_not)
            made, calls = self.with_calls(facts, side, inputs)
        self.say_what_stays(side)
        return made, calls

    def say_what_stays(self, side: Side) -> None:
        """A line for each kind of node that torch computes: what it calls, which nodes, why."""
        alike: dict[tuple[str, str], list[str]] = {}
        for node, why in side.why.items():
            if why and node.target is not operator.getitem:
                alike.setdefault((name_of(node), why), []).append(f"{node.name}{line_of(node)}")
        for (name, why), nodes in alike.items():
            more = f" and {len(nodes) - NAMED} more" if len(nodes) > NAMED else ""
            self.say(f"with torch stays {name} ({', '.join(nodes[:NAMED])}{more}): {why}")

    def with_calls(
        self, facts: Mapping[fx.Node, Fact], side: Side, inputs: Sequence[Any]
    ) -> tuple[fx.GraphModule, list["PartCall"]]:
        """The divided graph, its parts still computed by torch, each with the inputs that it has
        in a call."""
        made, parts = parts_of(self.graph, facts, side)
        calls = []
        for i, part in enumerate(parts):
            calls.append(PartCall(part))
            setattr(made, f"part_{i}", calls[-1])
        state = [*filter(is_weight, inputs), *self.graph.buffers()]
        with torch.no_grad(), unchanged(state, facts), torch.random.fork_rng(gpus_of(inputs)):
            made(*(copied(value) for value in inputs))
        return made, calls

    def refusal(self, call: "PartCall") -> str:
        """Why a part is not read, "" where it is."""
        return self.why_not_read(call.plain(call.weights), call.examples)

    def why_not_read(self, module: torch.nn.Module, inputs: Sequence[Any]) -> str:
        """Why the program does not read a module, "" where it does."""
        with tempfile.TemporaryDirectory(prefix="warploom-") as folder:
            file = pathlib.Path(folder) / "part.onnx"
            ways = {**exporting.untouched_weights(), "opset_version": 17}
            try:
                exporting.export(module, tuple(inputs), file, **ways)
            except Exception as error:  # exporters raise what they like
                said = (str(error).strip().splitlines() or [""])[0]
                return f"torch does not export it: {said.split('. ')[0][:200]}"
            arguments = ["show", str(file), "--what", "regions"]
            for name in SHOWN:
                if name in self.options:
                    arguments += [f"--{name}", str(self.options[name])]
            try:
                answer(arguments, quiet=True)
            except WarploomError as error:
                return f"{error.code}: {error.message}"
        return ""

    def fill(self, calls: list["PartCall"]) -> None:
        """Puts kernels into the parts."""
        nodes = sum(len(call.part.nodes) for call in calls)
        self.say(f"{nodes} nodes in {len(calls)} parts become kernels")
        for i, call in enumerate(calls):
            name = self.name_of(call, i)
            share = f"{max(1.0, seconds_of(self.budget) / len(calls)):.1f}s"
            try:
                call.optimize(self.out / name, {**self.options, "budget": share})
            except Exception as error:  # whatever it is, torch computes the part
                code = getattr(error, "code", type(error).__name__)
                said = str(error).strip().splitlines() or [""]
                self.say(f"part {i} stays with torch: {said[0] if code in said[0] else code}")
                continue
            found = call.outcome
            slower = self.only_faster and found.us >= found.eager_us
            if slower:
                call.bundle = None
            self.say(
                f"part {i}: {found.us:.1f} us a call, {found.eager_us:.1f} us by torch"
                f"{', which keeps it' if slower else ''}; {found.bundle}"
            )

    def name_of(self, call: "PartCall", i: int) -> str:
        """A name for a part's bundle, the same for the same graph, its own weights and options."""
        digest = hashlib.sha256(call.part.module.code.encode())
        digest.update(repr(sorted(self.options.items())).encode())
        for value in (*call.examples, *call.weights):
            digest.update(repr(kind_of(value)).encode())
        module = call.part.module
        for node in module.graph.nodes:
            if node.op == "call_module":
                digest.update(repr(module.get_submodule(node.target)).encode())
        for name, value in (*module.named_parameters(), *module.named_buffers()):
            digest.update(f"{name}{kind_of(value)}".encode())
            digest.update(bytes_of(value))
        return f"graph_{digest.hexdigest()[:12]}_{i}"


class Held(torch.nn.Module):
    """A part with those of its inputs that are weights as its own parameters and buffers."""

    def __init__(self, graph: fx.GraphModule, places: Sequence[int], weights: Sequence[Any]):
        super().__init__()
        self.graph = graph
        self.places = tuple(places)
        for place, weight in zip(places, weights):
            is_parameter = isinstance(weight, torch.nn.Parameter)
            keep = self.register_parameter if is_parameter else self.register_buffer
            keep(f"weight_{place}", weight)

    def forward(self, *inputs: torch.Tensor) -> Any:
        rest = iter(inputs)
        count = len(inputs) + len(self.places)
        held = set(self.places)
        given = [getattr(self, f"weight_{i}") if i in held else next(rest) for i in range(count)]
        return self.graph(*given)


class PartCall(torch.nn.Module):
    """A part in its graph: torch's at first, kernels once they are found.

    torch 2 hands weights over as inputs of the graph, and the same code may be called with those of
    several modules: each set of weights has its own adopted module.
    """

    def __init__(self, part: Part):
        super().__init__()
        self.part = part
        self.__dict__["adopted"] = {}  # by the weights
        self.places: list[int] | None = None  # of the inputs that are weights
        self.examples: list[torch.Tensor] = []
        self.weights: list[torch.Tensor] = []
        self.outcome: Any = None
        self.bundle: Any = None

    def forward(self, *values: torch.Tensor) -> Any:
        if self.places is None:
            self.places = [i for i, value in enumerate(values) if is_weight(value)]
            self.weights = [values[i] for i in self.places]
            self.examples = [value.detach().clone() for value in self.others(values)]
        if self.bundle is None:
            return self.part.module(*values)
        weights = [values[i] for i in self.places]
        known = self.__dict__["adopted"]
        chosen = known.get(tuple(map(id, weights))) or self.adopt(weights)
        return chosen(*self.others(values))

    def others(self, values: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The inputs that are no weights."""
        if not self.places:
            return list(values)
        held = set(self.places)
        return [value for i, value in enumerate(values) if i not in held]

    def plain(self, weights: Sequence[torch.Tensor]) -> Held:
        """The part as a module with these weights, computed by torch."""
        return Held(self.part.module, self.places or [], weights)

    def adopt(self, weights: Sequence[torch.Tensor]) -> torch.nn.Module:
        """The kernels with these weights."""
        known = self.__dict__["adopted"]
        if len(known) >= WEIGHT_SETS:
            known.pop(next(iter(known)))
        made = self.bundle.adopt(self.plain(weights))
        known[tuple(map(id, weights))] = made
        return made

    def optimize(self, folder: pathlib.Path, options: Mapping[str, Any]) -> None:
        """Searches for kernels, which take torch's place."""
        module = self.plain(self.weights)
        faster = optimize(module, tuple(self.examples), out=folder, quiet=True, **options)
        self.outcome = faster.__dict__["_outcome"]
        self.__dict__["adopted"][tuple(map(id, self.weights))] = faster
        self.bundle = load(folder, trust=True)


class Probe:
    """Asks of single nodes whether they are read; the same of a kind is asked once."""

    def __init__(
        self, compiled: Compiled, facts: Mapping[fx.Node, Fact], device: torch.device
    ) -> None:
        self.compiled = compiled
        self.facts = facts
        self.device = device  # of the examples of single nodes
        self.known: dict[str, str] = {}

    def why_not(self, node: fx.Node) -> str:
        """Why a node is not read, "" where it is."""
        key = self.key(node)
        if key not in self.known:
            self.known[key] = self.asked(node)
        return self.known[key]

    def key(self, node: fx.Node) -> str:
        """What tells nodes of different kinds."""
        sources = [self.facts[source].shapes for source in node.all_input_nodes]
        args = fx.node.map_arg((node.args, node.kwargs), self.word)
        called: Any = node.target
        if node.op == "call_module":
            part = node.graph.owning_module.get_submodule(node.target)
            called = (repr(part), [tuple(value.shape) for value in part.parameters()])
        return repr((node.op, called, args, sources))

    def word(self, source: fx.Node) -> str:
        """An argument in a key: a number by its value, a tensor by its place."""
        fact = self.facts[source]
        return repr(fact.value) if fact.kind == "value" else "tensor"

    def asked(self, node: fx.Node) -> str:
        """What the program says of a graph of this node alone."""
        getters = [user for user in node.users if self.facts[node].kind == "tensors"]
        part = Part(self.compiled.graph, [node, *getters], self.facts)
        inputs = [
            made(shape, dtype, self.device) for source in part.inputs
            for shape, dtype in self.facts[source].shapes
        ]
        return self.compiled.why_not_read(part.module, inputs)


def made(shape: Sequence[int], dtype: str, device: torch.device) -> torch.Tensor:
    """A tensor to export with: its elements do not matter."""
    return torch.zeros(shape, dtype=getattr(torch, dtype.rsplit(".", 1)[-1]), device=device)


def is_weight(value: torch.Tensor) -> bool:
    """Whether an input of a graph is a weight: a parameter, or what torch 2 marks as one."""
    static = getattr(value, "_dynamo_static_input_type", None)
    return isinstance(value, torch.nn.Parameter) or static is not None


def kind_of(value: Any) -> Any:
    """What kernels are made for of an input: a shape, type and device, or a number itself."""
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), value.dtype, value.device
    return value


def bytes_of(value: torch.Tensor) -> bytes:
    """The elements of a tensor."""
    flat = value.detach().cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes()


def copied(value: torch.Tensor) -> torch.Tensor:
    """An input that the graph may write, as a copy; a weight is itself."""
    return value if is_weight(value) else value.detach().clone()


@contextlib.contextmanager
def unchanged(state: Sequence[torch.Tensor], facts: Mapping[fx.Node, Fact]) -> Iterator[None]:
    """Weights and statistics as they were, after a graph that writes some was run."""
    writes = any(fact.is_barrier for fact in facts.values())
    kept = [(value, value.detach().clone()) for value in state] if writes else []
    try:
        yield
    finally:
        for value, was in kept:
            value.copy_(was)


def in_autocast(graph: fx.GraphModule) -> bool:
    """Whether torch would choose other types for the graph than it says."""
    targets = (getattr(node.target, "__name__", "") for node in graph.graph.nodes)
    if any("autocast" in target for target in targets):
        return True
    return torch.is_autocast_enabled() or torch.is_autocast_cpu_enabled()


def line_of(node: fx.Node) -> str:
    """Where in the user's source a node comes from, as far as torch says."""
    trace = getattr(node, "stack_trace", None) or ""
    frames = re.findall(r'File "([^"]+)", line (\d+)', trace)
    return f" at {frames[-1][0]}:{frames[-1][1]}" if frames else ""


def seconds_of(budget: str) -> float:
    """A budget as the program reads it: 500ms, 60s, 2m."""
    found = re.fullmatch(r"\s*([\d.]+)\s*(ms|s|m|)\s*", budget)
    return float(found.group(1)) * SECONDS[found.group(2) or "s"] if found else 60.0


def cache_folder() -> pathlib.Path:
    """Where bundles of graphs are kept: $XDG_CACHE_HOME/warploom/graphs."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(cache):
        cache = os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(cache) / "warploom" / "graphs"
