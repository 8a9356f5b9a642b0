"""Makes the constants that kernels read out of a module's weights.

The optimizer folded what depends on weights alone, a transposed matrix, a batch norm's statistics.
plan.json says in which steps (its "weights"), and they are taken again here, each in FP64 and
rounded to the step's own type, as the optimizer did.
"""
import torch

from .elements import torch_type


class FoldingError(RuntimeError):
    """A step cannot be taken here."""


def reduced(name):
    """A reduction over the attribute axes."""

    def step(x, attributes):
        keep = bool(attributes.get("keepdims", 1))
        for axis in sorted(attributes["axes"], reverse=True):
            x = REDUCTIONS[name](x, axis, keep)
        return x

    return step


REDUCTIONS = {
    "ReduceSum": lambda x, axis, keep: x.sum(axis, keep),
    "ReduceMax": lambda x, axis, keep: x.amax(axis, keep),
    "ReduceMin": lambda x, axis, keep: x.amin(axis, keep),
    "ReduceProd": lambda x, axis, keep: x.prod(axis, keep),
}


def concat(*inputs):
    """Tensors one behind another along the attribute axis."""
    *tensors, attributes = inputs
    return torch.cat(tensors, attributes["axis"])


def gather(x, indices, attributes):
    """Parts of x along an axis, by their numbers."""
    axis = attributes.get("axis", 0) % x.dim()
    flat = indices.reshape(-1).long() % x.shape[axis]
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    return x.index_select(axis, flat).reshape(shape)


def sliced(x, starts, ends, *rest):
    """Every step-th part of x from start to end along some axes."""
    *more, _ = rest
    more = [tensor for tensor in more if tensor is not None]
    starts, ends = starts.long().tolist(), ends.long().tolist()
    axes = more[0].long().tolist() if more else list(range(len(starts)))
    steps = more[1].long().tolist() if len(more) > 1 else [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps):
        size = x.shape[axis]
        places = range(*slice(start, end if step > 0 or end >= -size else None, step).indices(size))
        x = x.index_select(axis, torch.tensor(list(places), dtype=torch.int64))
    return x


def largest(*inputs):
    """The largest of several."""
    *tensors, _ = inputs
    return torch.stack(torch.broadcast_tensors(*tensors)).amax(0)


def smallest(*inputs):
    """The smallest of several."""
    *tensors, _ = inputs
    return torch.stack(torch.broadcast_tensors(*tensors)).amin(0)


def same(x, *_):
    """The elements as they are: a view, whose shape the step says."""
    return x


# What a step makes of its inputs and, last, its attributes. Shapes and types come from the step.
OPERATORS = {
    "Identity": same,
    "Cast": same,
    "Reshape": same,
    "Unsqueeze": same,
    "Squeeze": same,
    "Flatten": same,
    "Expand": lambda x, shape, _: x.expand(torch.broadcast_shapes(x.shape, shape.long().tolist())),
    "Transpose": lambda x, a: x.permute(a.get("perm", list(range(x.dim()))[::-1])),
    "Concat": concat,
    "Gather": gather,
    "Slice": sliced,
    **{name: reduced(name) for name in REDUCTIONS},
    "Add": lambda x, y, _: x + y,
    "Sub": lambda x, y, _: x - y,
    "Mul": lambda x, y, _: x * y,
    "Div": lambda x, y, _: x / y,
    "Pow": lambda x, y, _: x**y,
    "Max": largest,
    "Min": smallest,
    "Neg": lambda x, _: -x,
    "Abs": lambda x, _: x.abs(),
    "Sqrt": lambda x, _: x.sqrt(),
    "Reciprocal": lambda x, _: 1 / x,
    "Exp": lambda x, _: x.exp(),
    "Log": lambda x, _: x.log(),
    "Sin": lambda x, _: x.sin(),
    "Cos": lambda x, _: x.cos(),
    "Tanh": lambda x, _: x.tanh(),
    "Sigmoid": lambda x, _: x.sigmoid(),
    "Softplus": lambda x, _: torch.nn.functional.softplus(x, threshold=700),
    "Erf": lambda x, _: x.erf(),
    "Relu": lambda x, _: x.relu(),
    "Sign": lambda x, _: x.sign(),
    "Floor": lambda x, _: x.floor(),
    "Ceil": lambda x, _: x.ceil(),
    "Round": lambda x, _: x.round(),
    "Where": lambda c, x, y, _: torch.where(c != 0, x, y),
    "Less": lambda x, y, _: x < y,
    "Greater": lambda x, y, _: x > y,
    "Equal": lambda x, y, _: x == y,
    "Not": lambda x, _: x == 0,
}


def inputs_of(steps):
    """{output: all weights and values it is made of}."""
    made = {}
    for step in steps:
        reached = set()
        for name in filter(None, step["inputs"]):
            reached |= made.get(name, {name})
        made[step["output"]] = reached
    return made


def value(spec):
    """A constant that steps read."""
    elements = [float(element) for element in spec["elements"]]
    return torch.tensor(elements, dtype=torch.float64).reshape(spec["shape"])


def folded(weights, values):
    """{name: tensor} of all that the steps of plan.json make. `values`: the weights, by name."""
    known = {name: value(spec) for name, spec in weights["values"].items()}
    known.update({name: tensor.detach().cpu().double() for name, tensor in values.items()})
    made = {}
    for step in weights["steps"]:
        names = [name for name in step["inputs"] if name]
        if any(name not in known for name in names):
            continue  # of a weight that is not given
        if step["op"] not in OPERATORS:
            raise FoldingError(
                f"{step['output']} is made of {', '.join(names)} by {step['op']}, which adopt() "
                "cannot compute"
            )
        inputs = [known[name] if name else None for name in step["inputs"]]
        result = OPERATORS[step["op"]](*inputs, step["attributes"])
        rounded = result.reshape(step["shape"]).to(torch_type(step["dtype"]))
        made[step["output"]] = rounded
        known[step["output"]] = rounded.double()
    return made
