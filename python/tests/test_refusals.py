"""What is refused, each by its code, and what only looks as if it had to be."""
import pathlib
import re
import unittest
from unittest import mock

from support import DEVICE, SCRATCH, SHORT, TARGET, UNTOUCHED, bundle_of, error_between, exporting
from support import nn, torch, warploom

ROOT = pathlib.Path(__file__).resolve().parents[2]
X = torch.randn(4, 16).to(DEVICE)


class Plain(nn.Module):
    """A linear layer."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(16, 8)

    def forward(self, x):
        return torch.relu(self.linear(x))


class Branching(Plain):
    """Python decides by an element."""

    def forward(self, x):
        h = self.linear(x)
        if h.sum() > 0:  # the line that is named
            return torch.relu(h)
        return h


class Scaled(Plain):
    """Python reads an element of a weight, and sizes of the input: both stay as they are."""

    def forward(self, x):
        factor = float(self.linear.bias[0]) if x.shape[0] > 1 else 1.0
        return self.linear(x) * factor


class Counting(Plain):
    """An operator that no exporter knows."""

    def forward(self, x):
        return torch.histc(self.linear(x), bins=4)


class Searching(Plain):
    """An operator that is exported and not read."""

    def forward(self, x):
        return torch.bernoulli(torch.sigmoid(self.linear(x)))  # the node's line


class Failing(Plain):
    """Fails on these inputs itself."""

    def forward(self, x):
        return self.linear(x[:, :3])


class Reading(Plain):
    """Lets Python see elements in one of several ways."""

    def __init__(self, way):
        super().__init__()
        self.way = way
        self.register_buffer("mask", torch.arange(8) < 3)

    def forward(self, x):
        h = self.linear(x)
        self.way(h, self.mask)
        return h


READS = {
    "equal": lambda h, mask: torch.equal(h, h + 1),
    "allclose": lambda h, mask: torch.allclose(h, h + 1),
    "nonzero": lambda h, mask: torch.nonzero(h),
    "masked_select": lambda h, mask: torch.masked_select(h, h > 0),
    "a mask": lambda h, mask: h[h > 0],
    "tolist": lambda h, mask: h.tolist(),
    "numpy": lambda h, mask: h.cpu().numpy(),
}


class Writing(Plain):
    """Writes in one of several ways."""

    def __init__(self, way):
        super().__init__()
        self.way = way
        self.register_buffer("n", torch.zeros(8))

    def forward(self, x):
        return self.way(self, x) + self.n * 0 + self.linear(x)


WAYS = {
    "buffer n": lambda module, x: module.n.add_(1),
    "buffer n of another tensor": lambda module, x: setattr(module, "n", module.n + 1) or 0,
    "parameter linear.bias": lambda module, x: module.linear.bias[1:].mul_(2).sum(),
    "input 0": lambda module, x: x.relu_().sum(),
    "buffer n by a norm": lambda module, x: torch.nn.functional.batch_norm(
        module.linear(x), module.n, None, training=True
    ),
    "buffer n by a norm of instances": lambda module, x: torch.nn.functional.instance_norm(
        module.linear(x)[:, :, None].expand(4, 8, 2), module.n, module.n + 1
    ).sum(),
}


def plain_bundle():
    """The bundle that these tests share."""
    torch.manual_seed(3)
    return bundle_of("refusing", Plain().eval().to(DEVICE), (X,), UNTOUCHED)


def line_with(text):
    """The number of a line of this file."""
    lines = pathlib.Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(i for i, line in enumerate(lines, 1) if text in line)


class Refusals(unittest.TestCase):
    def refused(self, code, function, *arguments, **named):
        """The error, which has this code."""
        with torch.no_grad(), self.assertRaises(Exception) as found:
            function(*arguments, **named)
        self.assertEqual(getattr(found.exception, "code", None), code, found.exception)
        return found.exception


class ExportTest(Refusals):
    """Modules that do not become ONNX files, or models that are not read."""

    def export(self, module, inputs=X):
        warploom.export(module.to(DEVICE), inputs, SCRATCH / "refused.onnx")

    def test_of_control_flow_names_the_line(self):
        error = self.refused("control-flow", self.export, Branching())
        self.assertIn(f"test_refusals.py:{line_with('if h.sum() > 0:')}", error.place)
        self.assertIn("torch.where", error.remedy)

    def test_of_all_ways_in_which_python_sees_elements(self):
        for name, way in READS.items():
            with self.subTest(name):
                self.refused("control-flow", self.export, Reading(way))

    def test_a_mask_that_is_the_modules_own_is_no_control_flow(self):
        self.export(Reading(lambda h, mask: h[:, mask]))

    def test_elements_of_weights_and_sizes_are_no_control_flow(self):
        self.export(Scaled())

    def test_of_a_module_that_writes_says_what(self):
        for name, way in WAYS.items():
            with self.subTest(name):
                error = self.refused("module-writes", self.export, Writing(way), X.clone())
                self.assertIn(name.split(" by ")[0].split(" of ")[0], error.message)

    def test_a_module_that_writes_stays_as_it_was(self):
        module, x = Writing(WAYS["buffer n"]), X.clone()
        self.refused("module-writes", self.export, module, x)
        self.refused("module-writes", self.export, Writing(WAYS["input 0"]), x)
        self.assertEqual(module.n.sum().item(), 0)
        self.assertTrue(torch.equal(x, X))

    def test_an_intermediate_result_may_be_written(self):
        self.export(nn.Sequential(nn.Linear(16, 8), nn.ReLU(inplace=True)))

    def test_of_an_operator_that_is_not_exported_says_what_torch_says(self):
        error = self.refused("not-exported", self.export, Counting())
        self.assertIn("histc", str(error))

    def test_of_a_module_that_fails_itself(self):
        error = self.refused("not-exported", self.export, Failing())
        self.assertIn("the module itself fails", str(error))

    def test_of_an_operator_that_is_not_read_names_node_and_line(self):
        error = self.refused(
            "onnx-unknown-operator",
            warploom.optimize,
            Searching().to(DEVICE),
            X,
            out=SCRATCH / "searching",
            target=TARGET,
            quiet=True,
        )
        self.assertIn("RandomUniformLike", error.place)
        line = line_with("# the node's line")
        self.assertIn(f"test_refusals.py:{line}", error.place)

    def test_of_inputs_larger_than_the_device(self):
        huge = torch.zeros(1, device=DEVICE).expand(1 << 42)
        error = self.refused("out-of-memory", self.export, nn.ReLU(), huge)
        self.assertIn(str(4 << 42), str(error))

    def test_of_inputs_on_two_devices(self):
        apart = (X, torch.empty(4, 16, device="meta"))
        self.refused("input-device", self.export, Plain(), apart)

    def test_of_examples_that_are_no_tensors(self):
        self.refused("no-example", self.export, Plain(), [3])
        self.refused("no-example", warploom.optimize, Plain(), {})

    def test_of_an_example_that_wants_a_gradient(self):
        with torch.enable_grad(), self.assertRaises(warploom.WarploomError) as found:
            warploom.optimize(Plain(), X.clone().requires_grad_())
        self.assertEqual(found.exception.code, "gradients")


class RunTest(Refusals):
    """Tensors that a bundle's kernels cannot take, or can after all."""

    def run_on(self, *inputs, **named):
        return plain_bundle().run(*inputs, **named)

    def test_of_another_shape(self):
        error = self.refused("input-shape", self.run_on, X[:2])
        self.assertIn("[2, 16]", str(error))

    def test_of_another_type(self):
        self.refused("input-type", self.run_on, X.double())
        self.refused("input-type", self.run_on, X.to_sparse())
        self.refused("input-type", self.run_on, [1, 2])

    def test_of_another_device(self):
        self.refused("input-device", self.run_on, torch.empty(4, 16, device="meta"))

    def test_of_tensors_on_two_devices(self):
        bundle = plain_bundle()
        constants = {one.name: torch.empty(one.shape, device="meta") for one in bundle.bundle.held}
        self.refused("input-device", self.run_on, X, constants=constants)

    def test_of_too_many(self):
        self.refused("input-count", self.run_on, X, X)

    def test_of_gradients(self):
        with torch.enable_grad(), self.assertRaises(RuntimeError) as found:
            self.run_on(X.clone().requires_grad_())
        self.assertEqual(found.exception.code, "gradients")

    def test_of_a_tangent(self):
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(X, torch.ones_like(X))
            self.refused("gradients", self.run_on, dual)
            self.refused("gradients", plain_bundle().adopt(Plain().to(DEVICE).eval()), dual)

    def test_a_written_out_counts_a_version(self):
        out = torch.empty(4, 8, device=DEVICE)
        before = out._version
        with torch.no_grad():
            self.run_on(X, out=out)
        self.assertGreater(out._version, before)

    def test_of_a_bundle_for_another_card(self):
        bundle = plain_bundle().bundle
        card = torch.device("cuda", 0)
        capability = mock.patch("torch.cuda.get_device_capability", return_value=(8, 0))
        with capability, mock.patch.object(bundle, "arch", "sm_90a"):
            error = self.refused("wrong-card", bundle.check_device, card)
        self.assertIn("sm_80", str(error))

    def test_of_no_room_for_the_outputs(self):
        run = plain_bundle().run
        with mock.patch("torch.empty", side_effect=RuntimeError("full")):
            self.refused("out-of-memory", run, X)

    def test_overlapping_and_scattered_inputs_are_computed_rightly(self):
        bundle = plain_bundle()
        row = torch.randn(1, 16, device=DEVICE)
        wide = torch.randn(16, 9, device=DEVICE)
        turned = torch.view_as_complex(torch.randn(4, 16, 2)).conj().imag.to(DEVICE)
        for x in (row.expand(4, 16), wide[:, 1:5].t(), torch._neg_view(X), turned):
            with torch.no_grad():
                packed = bundle.run(x.clone().contiguous())
                self.assertTrue(torch.equal(bundle.run(x), packed))

    def test_out_is_written(self):
        out = torch.empty(4, 8, device=DEVICE)
        with torch.no_grad():
            self.assertIs(self.run_on(X, out=out), out)
            self.assertTrue(torch.equal(out, self.run_on(X)))

    def test_of_an_out_that_cannot_hold_the_output(self):
        for out in (
            torch.empty(4, 9, device=DEVICE),
            torch.empty(4, 8, dtype=torch.float64, device=DEVICE),
            torch.empty(8, 4, device=DEVICE).t(),
            torch.empty(33, device=DEVICE)[1:].view(4, 8),
            X.view(8, 8)[:4],
        ):
            self.refused("output-unfit", self.run_on, X, out=out)

    def test_one_workspace_serves_all_calls(self):
        bundle = plain_bundle().bundle
        with torch.no_grad():
            for _ in range(3):
                bundle.run(X)
        self.assertEqual(len(bundle.calls.kept), 1)


class AdoptTest(Refusals):
    """Modules whose weights the kernels cannot take."""

    def call(self, module, *inputs):
        return plain_bundle().adopt(module.to(DEVICE).eval())(*inputs)

    def test_of_weights_of_another_shape(self):
        module = Plain()
        module.linear = nn.Linear(16, 9)
        self.refused("weights-unfit", self.call, module, X)

    def test_of_weights_of_another_type(self):
        self.refused("weights-unfit", self.call, Plain().double(), X)

    def test_of_what_is_no_module(self):
        self.refused("not-a-module", self.call, torch.jit.script(Plain()), X)

    def test_held_weights_are_looked_at_again_after_load_state_dict(self):
        module, other = Plain().to(DEVICE).eval(), Plain().to(DEVICE).eval()
        adopted = plain_bundle().adopt(module)
        with torch.no_grad():
            adopted(X)
            adopted.hold_weights()
            adopted.load_state_dict(other.state_dict())
            self.assertLess(error_between(adopted(X), other(X)), 1e-3)

    def test_memory_that_is_exchanged_under_a_weight_is_noticed(self):
        module = Plain().to(DEVICE).eval()
        adopted = plain_bundle().adopt(module)
        with torch.no_grad():
            adopted(X)
            weight = module.linear.weight
            weight.data = torch.randn(16, 8, device=DEVICE).t()
            self.assertLess(error_between(adopted(X), module(X)), 1e-3)


class BucketsTest(Refusals):
    """One module for several shapes."""

    @classmethod
    def setUpClass(cls):
        cls.module = Plain().to(DEVICE).eval()
        cls.faster = warploom.optimize(
            cls.module,
            {4: X, 2: X[:2]},
            out=SCRATCH / "buckets",
            target=TARGET,
            quiet=True,
            **SHORT,
        )

    def test_take_the_kernels_of_the_inputs_shape(self):
        with torch.no_grad():
            for size in (4, 2, 4):
                x = torch.randn(size, 16, device=DEVICE)
                self.assertLess(error_between(self.faster(x), self.module(x)), 1e-3)
        self.assertEqual(set(warploom.outcome(self.faster)), {4, 2})

    def test_leave_other_shapes_to_the_module_and_warn_once(self):
        x = torch.randn(3, 16, device=DEVICE)
        with torch.no_grad():
            with self.assertWarnsRegex(UserWarning, r"no kernels for inputs of \[3, 16\]"):
                self.assertTrue(torch.equal(self.faster(x), self.module(x)))
            with mock.patch("warnings.warn") as warn:
                self.faster(x)
            warn.assert_not_called()

    def test_hooks_come_once_a_call(self):
        calls = []
        hook = self.faster.register_forward_hook(lambda *_: calls.append(1))
        with torch.no_grad():
            for one in self.faster.__dict__["_buckets"].values():
                self.assertIs(one._forward_hooks, self.faster._forward_hooks)
            self.faster(X)
        hook.remove()
        self.assertEqual(len(calls), 1)

    def test_follow_weights_that_change(self):
        other = Plain().to(DEVICE).eval()
        self.faster.load_state_dict(other.state_dict())
        with torch.no_grad():
            for size in (4, 2):
                x = torch.randn(size, 16, device=DEVICE)
                self.assertLess(error_between(self.faster(x), other(x)), 1e-3)

    def test_refuse_gradients(self):
        with self.assertRaises(RuntimeError) as found:
            self.faster(X)
        self.assertEqual(found.exception.code, "gradients")


class OperatorTest(Refusals):
    """The kernels as an operator of torch's."""

    def operator(self):
        return plain_bundle().bundle.operator

    def test_computes_what_run_does(self):
        with torch.no_grad():
            found = self.operator().run([X], [])
            self.assertTrue(torch.equal(found[0], plain_bundle().run(X)))

    def test_tells_shapes_without_computing(self):
        from torch._subclasses import FakeTensorMode

        with FakeTensorMode() as mode:
            found = self.operator().run([mode.from_tensor(X)], [])[0]
        self.assertEqual((found.shape, found.dtype), ((4, 8), X.dtype))

    def test_stands_in_a_traced_program(self):
        from torch.fx.experimental.proxy_tensor import make_fx

        run = self.operator().run
        with torch.no_grad():
            program = make_fx(lambda x: run([x], [])[0] * 2)(X)
            self.assertTrue(torch.equal(program(X), 2 * plain_bundle().run(X)))
        self.assertIn("refusing", program.code)

    def test_refuses_gradients(self):
        with torch.enable_grad(), self.assertRaises(RuntimeError) as found:
            self.operator().run([X.clone().requires_grad_()], [])
        self.assertEqual(found.exception.code, "gradients")

    def test_of_an_adopted_module_follows_its_weights(self):
        module = Plain().to(DEVICE).eval()
        adopted = plain_bundle().adopt(module)
        looked_at = mock.patch("refusing_torch.adoption.is_compiling", side_effect=[True, False])
        with torch.no_grad():
            adopted(X)
            for factor in (1, 2):
                module.linear.weight.mul_(factor)
                with looked_at:
                    self.assertLess(error_between(adopted(X), module(X)), 1e-3)

    def test_of_an_adopted_module_that_was_never_called_says_so(self):
        adopted = plain_bundle().adopt(Plain().to(DEVICE).eval())
        with mock.patch("refusing_torch.adoption.is_compiling", return_value=True):
            self.refused("traced", adopted, X)


class CodesTest(unittest.TestCase):
    def test_every_code_stands_in_the_document(self):
        text = (ROOT / "docs" / "pytorch.md").read_text(encoding="utf-8")
        listed = set(re.findall(r"^\| `([a-z-]+)` \|", text, re.M))
        from warploom import refusing

        self.assertEqual({*warploom.CODES, *refusing.CODES} - listed, set())


if __name__ == "__main__":
    unittest.main()
