"""adopt(): a torch.nn.Module whose forward() runs the kernels with the module's own weights.

The kernels read constants. Which of a module's weights these are, or are made of, is found at the
first call, on the first of these ways that does it:

1.  By name. The exporter left the weights alone: every weight of the model file has the name, shape
    and type of a parameter or buffer of the module.
2.  By exporting the module again, as the bundle's model was exported. If both models differ in
    their weights alone, each weight of one stands in the place of one of the other, whatever the
    exporter folded, transposed, merged or renamed.
3.  Some by name, and the others as the model file has them. Then every change of the module's
    weights is checked anew.

What is found is checked: the module's own forward(), in FP64, must give what the kernels give. So
wrong weights are an error, never a wrong result. Weights that change later, by
load_state_dict(), by an optimizer or by to(), are noticed (watching.py), and what was made of them
is made and prepared again. (Writing through .data or NumPy leaves no trace: refresh() then.)
"""
import copy
import inspect
import pathlib
import tempfile

import torch

from . import exporting, folding, outline
from .calling import Calls
from .comparing import compared, flat, is_real, like
from .elements import torch_type
from .refusing import AdoptionError, CountError, are_gradients_on, refuse_gradients
from .refusing import refuse_training
from .torch_operator import in_compiled_program, is_compiling, numbered
from .watching import Watch


def tensors_of(module, prefix=""):
    """Every parameter and buffer by its name; one that has several names by each of them."""
    found = {}
    for held in (module._parameters, module._buffers):
        found.update({prefix + key: value for key, value in held.items() if value is not None})
    for key, child in module._modules.items():
        if child is not None:
            found.update(tensors_of(child, f"{prefix}{key}."))
    return found


OWN = ("_adoption", "_adopted_as", "_adopted_by")  # of an adopted module, and no other's


def original(module, forward_of):
    """The module as it was: the same parameters, with the forward() of its own class."""
    twin = forward_of.__new__(forward_of)
    twin.__dict__ = dict(module.__dict__)
    for key in OWN:
        twin.__dict__.pop(key, None)
    return twin


def exported(twin, inputs, model, keywords, folder):
    """The module as an ONNX model, exported as `model` was."""
    file = pathlib.Path(folder) / "module.onnx"
    names = {"input_names": [name for name, _ in model.inputs], "output_names": model.outputs}
    axes = {
        name: {axis: size for axis, size in enumerate(sizes) if isinstance(size, str)}
        for name, sizes in model.inputs
    }
    axes = {name: sizes for name, sizes in axes.items() if sizes}
    if axes:
        names["dynamic_axes"] = axes
    exporting.export(twin, inputs, file, opset_version=model.opset, **names, **keywords)
    return outline.Model(file)


class CompiledInError(AdoptionError):
    """A weight has another value than the one that the kernels hold as a number: no way helps."""


class Adoption:
    """How one module's weights become the constants of the kernels."""

    def __init__(self, bundle, forward_of, check, onnx):
        self.bundle = bundle
        self.forward_of = forward_of
        self.check = check
        self.onnx = onnx
        self.weights = bundle.plan.get("weights")
        self.watch = None  # of the module, when `calls` was made
        self.held = False  # whether the module promises that its weights stay
        self.by_position = False  # whether inputs are the kernels' own, in order
        self.modes = set()  # of training, in which the module was compared
        self.found = None  # {weight: name of the module's own tensor, or a tensor}
        self.rechecks = False
        self.calls = None  # of the kernels, with constants made of the weights
        self.form = None  # of what the module returned, where that is no tensor
        self.device = None  # of the inputs

    def __call__(self, module, inputs, out=None):
        if self.by_position and self.watch is not None and (self.held or self.watch.holds()):
            given, own = inputs, self.watch.tensors()
            if are_gradients_on():
                refuse_gradients(self.bundle.name, [*inputs, *own])
            if self.device_of(given) == self.device:
                return self.formed(self.calls(given, out))
        return self.formed(self.fitted(module, inputs)(self.given(module, inputs), out))

    def fitted(self, module, inputs):
        """Calls with the weights as they are now."""
        own = tensors_of(module)
        refuse_training(self.bundle.name, module)
        refuse_gradients(self.bundle.name, [*inputs, *own.values()])
        given = self.given(module, inputs)
        device = self.device_of(given)
        if device != self.device or self.watch is None or not self.watch.holds():
            self.device = device
            self.fit(module, own, inputs, given)
        return self.calls

    def given(self, module, inputs):
        """The inputs of the kernels: some may be the module's weights, by their names."""
        own = tensors_of(module)
        rest = iter(inputs)
        given = [
            own[tensor.name] if tensor.name in own else next(rest, None)
            for tensor in self.bundle.given
        ]
        return [*given, *rest]  # too many, which the call says

    def device_of(self, given):
        """Where the first of the inputs is."""
        for value in given:
            if isinstance(value, torch.Tensor):
                return value.device
        return torch.device("cpu")

    def formed(self, result):
        """Results in the form of what the module's own forward() returns."""
        return result if self.form is None else like(self.form, iter(flat(result)))

    def fit(self, module, own, inputs, given):
        """Finds the constants of the weights as they are now."""
        self.watch = None
        twin = original(module, self.forward_of)
        changed = self.found is not None
        if not changed or self.rechecks or module.training not in self.modes:
            self.settle(twin, own, inputs, given, changed)
        else:
            if any(isinstance(value, torch.Tensor) for value in self.found.values()):
                self.found = self.by_export(twin, own, inputs, changed)
            self.calls = Calls(self.bundle, self.constants(self.found, own))
        self.by_position = not any(tensor.name in own for tensor in self.bundle.given)
        self.watch = Watch(module)
        self.modes.add(module.training)

    def settle(self, twin, own, inputs, given, changed):
        """Takes the first way that gives what the module gives."""
        reasons = []
        codes = set()
        for way in (self.by_name, self.by_export, self.partly):
            try:
                found = way(twin, own, inputs, changed)
                calls = Calls(self.bundle, self.constants(found, own))
                if self.check:
                    self.compare(twin, calls, inputs, given, own)
                self.found, self.calls = found, calls
                merged = way == self.by_name and self.ignores(own)
                self.rechecks = way == self.partly or merged
                return
            except CompiledInError:
                raise
            except (AdoptionError, folding.FoldingError, outline.OnnxError) as error:
                reasons.append(str(error))
                if way != self.partly:
                    codes.add(getattr(error, "code", "weights-unfit"))
        said = "\n  ".join(dict.fromkeys(filter(None, reasons)))
        raise AdoptionError(
            f"{self.bundle.name} cannot adopt {self.forward_of.__name__}:\n  {said}",
            "module-differs" if "module-differs" in codes else "weights-unfit",
        )

    # The three ways: {weight that the kernels' constants are made of: the module's own name of it,
    # or its elements}.

    def carried(self):
        """The weights of the model file of which the constants are made, by name."""
        rows = self.weights["carried"] if self.weights else []
        return {row["name"]: row for row in rows}

    def fits(self, name, own):
        """Whether the module has a tensor of this name, and it is like the model file's."""
        row = self.carried()[name]
        tensor = own.get(name)
        return tensor is not None and (
            list(tensor.shape) == row["shape"] and tensor.dtype == torch_type(row["dtype"])
        )

    def by_name(self, twin, own, inputs, changed):
        """Every weight is the module's tensor of its name."""
        if self.onnx:
            raise AdoptionError("")  # the file is asked, not the names
        carried = self.carried()
        lacking = [name for name in carried if not self.fits(name, own)]
        held = {tensor.name for tensor in self.bundle.held}
        if self.weights is None and held:
            raise AdoptionError(f"how these are made of weights is not known: {listed(held)}")
        if lacking:
            raise AdoptionError(f"the module has no tensors of these names: {listed(lacking)}")
        self.refuse_compiled_in(own)
        return {name: name for name in carried}

    def by_export(self, twin, own, inputs, changed):
        """The module exported again has a weight in the place of each."""
        file = self.bundle.folder / "check" / "outline.onnx"
        if not self.carried() or not file.is_file():
            raise AdoptionError("")
        model = outline.Model(file)
        if self.onnx:
            if changed:
                raise AdoptionError(f"the weights changed since {self.onnx} was exported")
            return self.placed(outline.matched(model, outline.Model(self.onnx)), own)
        reasons = []
        for keywords in exporting.attempts():
            try:
                with tempfile.TemporaryDirectory() as folder:
                    module = exported(twin, inputs, model, keywords, folder)
                    return self.placed(outline.matched(model, module), own)
            except outline.OnnxError as error:
                reasons.append(f"exported anew with {keywords or 'defaults'}: {error}")
            except Exception as error:  # exporters raise what they like
                reasons.append(
                    f"torch.onnx.export with {keywords or 'defaults'}: {first_line(error)}"
                )
        reasons.append(
            "export the module yourself, as the model was exported, and give the file: "
            "adopt(module, onnx=FILE)"
        )
        raise AdoptionError("\n  ".join(dict.fromkeys(reasons)))

    def placed(self, leaves, own):
        """The weights by the leaves in their places; the module's own tensor where it is one."""
        found = {}
        for name in self.carried():
            if name not in leaves:
                raise AdoptionError(f"{name} has no place in the module's model")
            leaf = leaves[name]
            tensor = own.get(leaf.name)
            value = leaf.tensor()
            is_own = (
                tensor is not None and tensor.dtype == value.dtype and tensor.shape == value.shape
            )
            same = is_own and torch.equal(tensor.detach().cpu(), value)
            found[name] = leaf.name if same else value
        return found

    def partly(self, twin, own, inputs, changed):
        """Those by name that the module has, and the others as the model file has them."""
        if self.onnx or not self.check:
            raise AdoptionError("")
        self.refuse_compiled_in(own)
        return {name: name for name in self.carried() if self.fits(name, own)}

    def refuse_compiled_in(self, own):
        """An error where a weight that the kernels hold as a number has another value here."""
        file = self.bundle.folder / "check" / "outline.onnx"
        if not file.is_file():
            return
        others = []
        for name, leaf in outline.Model(file).leaves.items():
            if leaf.data is None or name not in own:
                continue
            tensor = own[name].detach().cpu()
            value = leaf.tensor()
            if tensor.shape != value.shape or not torch.equal(tensor, value.to(tensor.dtype)):
                others.append(name)
        if others:
            raise CompiledInError(
                f"{self.bundle.name} cannot adopt {self.forward_of.__name__}: compiled into the "
                f"kernels is the value at export of {listed(others)}, and the module has another: "
                "optimize a model exported from this module (a number that has an axis, as "
                "torch.tensor([2.0]), is not compiled in)",
                "weight-compiled-in",
            )

    def ignores(self, own):
        """Whether the module has weights that nothing is made of: merged with others, or idle."""
        known = {value for value in self.found.values() if isinstance(value, str)}
        known |= {tensor.name for tensor in self.bundle.given}
        return any(is_real(tensor) and name not in known for name, tensor in own.items())

    def constants(self, found, own):
        """The constants of the kernels; those that are not among them stay the model file's."""
        values = {
            name: own[value] if isinstance(value, str) else value for name, value in found.items()
        }
        held = {tensor.name for tensor in self.bundle.held}
        made = {name: value for name, value in values.items() if name in held}
        if self.weights:
            made.update(folding.folded(self.weights, values))
        return {name: value.to(self.device) for name, value in made.items() if name in held}

    def compare(self, twin, calls, inputs, given, own):
        """The kernels must give what the module gives, on random inputs of the same shapes."""

        def kernels(arguments):
            rest = iter(arguments)
            taken = [
                value if tensor.name in own else next(rest)
                for tensor, value in zip(self.bundle.given, given)
            ]
            return flat(calls(taken))

        names = [tensor.name for tensor in self.bundle.outputs]
        form = compared(kernels, twin, inputs, names, self.bundle.plan["tolerance"])
        is_same = isinstance(form, torch.Tensor) or (type(form) is tuple and len(names) > 1)
        self.form = None if is_same and len(flat(form)) == len(names) else form


def listed(names):
    """A few names, and how many more there are."""
    names = sorted(names)
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(names[:8]) + more


def first_line(error):
    """An exception in a line."""
    said = str(error).strip().splitlines()
    return f"{type(error).__name__}: {said[0] if said else ''}"


def places_of(forward):
    """The names of a forward()'s arguments by place; "" where one has no name for callers."""
    kinds = inspect.Parameter
    names = []
    for one in list(inspect.signature(forward).parameters.values())[1:]:
        if one.kind not in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD):
            break
        names.append(one.name if one.kind is kinds.POSITIONAL_OR_KEYWORD else "")
    return names


def in_order(bundle, places, inputs, named):
    """The arguments of a call by place alone, as the kernels take them.

    One that is named after a gap would become another input: it is refused. (A compiler reads this
    function, so it is plain loops.)
    """
    taken = list(inputs)
    for name in places[len(inputs) :]:
        if name not in named:
            break
        taken.append(named[name])
    if len(taken) - len(inputs) != len(named):
        lost = [name for name in named if name not in places[len(inputs) : len(taken)]]
        raise CountError(
            f"{bundle.name} takes {bundle.names_of_given()} in the order of forward(), and "
            f"{', '.join(lost)} leaves out one before it, or is none of its arguments or given "
            "twice: optimize the module with the arguments that it is called with",
            "input-count",
        )
    return tuple(taken)


def class_of(bundle, model, check, onnx):
    """A class like `model` with the kernels as its forward()."""
    own_forward = model.forward is not torch.nn.Module.forward
    places = places_of(model.forward) if own_forward else []
    has_own_out = own_forward and "out" in inspect.signature(model.forward).parameters

    def begun(module):
        made = Adoption(bundle, model, check, onnx)
        module.__dict__["_adoption"] = made
        module.__dict__["_adopted_as"] = numbered(module)
        module.__dict__["_adopted_by"] = bundle.operator.adopted
        return made

    class Adopted(model):
        """The module with a bundle's kernels as its forward(). For inference."""

        def forward(self, *inputs, **named):
            if torch.jit.is_tracing():
                raise AdoptionError(
                    f"{bundle.name} cannot be traced or exported: take the module itself", "traced"
                )
            if not own_forward:
                return bundle.run(*inputs, **named)
            out = named.pop("out", None) if named and not has_own_out else None
            if named:
                inputs = in_order(bundle, places, inputs, named)
            if is_compiling():
                return in_compiled_program(bundle, self, inputs, out)
            adoption = self.__dict__.get("_adoption") or begun(self)
            return adoption(self, inputs, out)

        def refresh(self):
            """Forgets what was made of the weights: after they were written through .data."""
            if "_adoption" in self.__dict__:
                self.__dict__["_adoption"].watch = None

        def hold_weights(self, held=True):
            """Promises that weights stay as they are, so that calls need not look at them.

            load_state_dict() and to() of this module are noticed all the same; what else writes
            weights is followed by refresh().
            """
            (self.__dict__.get("_adoption") or begun(self)).held = held

        def load_state_dict(self, *arguments, **named):
            """As of the module itself."""
            self.refresh()
            return super().load_state_dict(*arguments, **named)

        def _apply(self, *arguments, **named):
            self.refresh()
            return super()._apply(*arguments, **named)

        def __deepcopy__(self, memo):
            made = type(self).__new__(type(self))
            memo[id(self)] = made
            own = {key: value for key, value in self.__dict__.items() if key not in OWN}
            made.__dict__ = copy.deepcopy(own, memo)
            return made

    Adopted.__name__ = Adopted.__qualname__ = model.__name__
    return Adopted


def adopt(bundle, model, check, onnx):
    """See Bundle.adopt."""
    is_class = isinstance(model, type) and issubclass(model, torch.nn.Module)
    if not is_class and not isinstance(model, torch.nn.Module):
        raise CountError(
            f"adopt() takes a torch.nn.Module or a class of such, not {model!r}", "not-a-module"
        )
    if is_class:
        return class_of(bundle, model, check, onnx)
    if isinstance(model, torch.jit.ScriptModule):
        raise CountError(
            "adopt() takes the module from which a ScriptModule was made, not that", "not-a-module"
        )
    if "forward" in model.__dict__:
        raise CountError(
            f"adopt() takes modules whose forward() is their class's; this {type(model).__name__} "
            "has one of its own (of torch.compile: take the module that was compiled)",
            "not-a-module",
        )
    return original(model, class_of(bundle, type(model), check, onnx))
