"""The backend of torch.compile, called as torch calls it: with an FX graph and inputs."""
import operator
import sys
import types
import unittest
from unittest import mock

from support import DEVICE, SCRATCH, SHORT, TARGET, error_between, nn, torch, warploom

OPTIONS = {**SHORT, "target": TARGET, "quiet": True, "out": SCRATCH / "graphs"}
OPTIONS["only_faster"] = False  # what is tested is not how fast kernels are
X = torch.randn(4, 16).to(DEVICE)


class Perceptron(nn.Module):
    """What is read whole, with a size that torch computes in the graph."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(16, 16)
        self.second = nn.Linear(16, 8)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)).view(x.size(0), -1))


class Interrupted(Perceptron):
    """An operator in the midst that no exporter knows, and a tuple of tensors behind it."""

    def forward(self, x):
        h = torch.relu(self.first(x))
        counts = torch.histc(h, bins=16)
        halves = torch.chunk(torch.tanh(self.second(h)) * counts.sum(), 2, 1)
        return halves[0] + halves[1]


class Writing(nn.Module):
    """Writes its input, and reads it before and afterwards."""

    def forward(self, x):
        before = torch.tanh(x * 2)
        x.add_(1)
        return before + torch.relu(x)


class Drawing(nn.Module):
    """Draws random numbers."""

    def forward(self, x):
        return torch.relu(x) + nn.functional.dropout(torch.ones_like(x), 0.5, True)


class Sharing(nn.Module):
    """Returns what it computes, and a view of that."""

    def forward(self, x):
        y = torch.relu(x) * 2
        return y, y.t()


class Standing(nn.Module):
    """A tensor of its own, that a graph gets by its name."""

    def __init__(self, value):
        super().__init__()
        self.register_buffer("value", torch.full((16,), value))
        self.last = nn.LeakyReLU(0.25)

    def forward(self, x):
        return self.last(torch.relu(x) * self.value)


class Viewing(nn.Module):
    """Returns a view of its input beside what is computed."""

    def forward(self, x):
        return x.t(), torch.relu(x) * 2


def compiled(module, **options):
    """The backend's function for a module."""
    graph = torch.fx.symbolic_trace(module)
    return warploom.backend(graph, [X], options={**OPTIONS, **options})


class BackendTest(unittest.TestCase):
    def assert_like(self, found, wanted):
        self.assertLess(error_between(found, wanted), 1e-3)

    def has_kernels(self, made, parts=1):
        calls = [part for part in made.compiled.ready.children() if hasattr(part, "bundle")]
        self.assertEqual([part.bundle is not None for part in calls], [True] * parts, made.report)

    def test_a_graph_that_is_read_is_one_part(self):
        module = Perceptron().to(DEVICE).eval()
        with torch.no_grad():
            made = compiled(module)
            for x in (X, torch.randn_like(X)):
                self.assert_like(made(x), module(x))
            self.has_kernels(made)

    def test_weights_that_change_change_the_result(self):
        module = Perceptron().to(DEVICE).eval()
        other = Perceptron().to(DEVICE).eval()
        with torch.no_grad():
            made = compiled(module)
            made(X)
            module.first.weight.mul_(2)
            self.assert_like(made(X), module(X))
            module.load_state_dict(other.state_dict())
            self.assert_like(made(X), other(X))
            self.has_kernels(made)

    def test_what_is_not_read_stays_with_torch_and_is_named(self):
        module = Interrupted().to(DEVICE).eval()
        with torch.no_grad():
            made = compiled(module)
            self.assert_like(made(X), module(X))
            self.has_kernels(made, 2)
        named = [line for line in made.report if line.startswith("with torch stays")]
        self.assertEqual(len(named), 1, made.report)
        self.assertIn("histc", named[0])

    def test_a_write_in_place_keeps_its_order(self):
        with torch.no_grad():
            made = compiled(Writing())
            for _ in range(2):
                ours, theirs = X.clone(), X.clone()
                self.assert_like(made(ours), Writing()(theirs))
                self.assertTrue(torch.equal(ours, theirs))
        self.assertTrue(any("writes a tensor in place" in line for line in made.report))

    def test_random_numbers_stay_with_torch(self):
        with torch.no_grad():
            made = compiled(Drawing())
            self.assertGreater((made(X) - made(X)).abs().max().item(), 0)
        self.assertTrue(any("draws random numbers" in line for line in made.report))

    def test_a_view_of_an_input_is_still_one(self):
        with torch.no_grad():
            x = X.clone()
            view, _ = compiled(Viewing())(x)
            view.zero_()
        self.assertEqual(x.abs().max().item(), 0)

    def test_an_output_that_is_a_view_of_another_is_still_one(self):
        with torch.no_grad():
            made = compiled(Sharing())
            found, view = made(X)
            self.has_kernels(made)
            view.zero_()
        self.assertEqual(found.abs().max().item(), 0)
        self.assertTrue(any("memory with another output" in line for line in made.report))

    def test_statistics_of_a_norm_by_the_function_are_written_by_torch(self):
        def function(x, mean):
            y = nn.functional.batch_norm(x * 2, mean, torch.ones_like(mean), training=True)
            return torch.relu(y)

        made = warploom.backend(torch.fx.symbolic_trace(function), [], options=OPTIONS)
        with torch.no_grad():
            mean, wanted = torch.zeros(16, device=DEVICE), torch.zeros(16, device=DEVICE)
            self.assert_like(made(X, mean), function(X, wanted))
        self.assertTrue(torch.equal(mean, wanted))
        self.assertTrue(any("batch_norm" in line and "writes" in line for line in made.report))
        self.has_kernels(made, 2)

    def test_inputs_of_another_kind_are_computed_by_the_graph(self):
        module = Perceptron().to(DEVICE).eval()
        with torch.no_grad():
            made = compiled(module)
            made(X)
            for _ in range(2):
                self.assert_like(made(X[:2]), module(X[:2]))
                self.assertEqual(made(X[:2]).shape, (2, 8))
        lines = [line for line in made.report if "other shapes, types or devices" in line]
        self.assertEqual(len(lines), 1, made.report)

    def test_graphs_that_differ_in_a_module_or_a_tensor_have_bundles_of_their_own(self):
        names = set()
        modules = [Standing(1.0), Standing(2.0)]
        modules.append(Standing(2.0))
        modules[-1].last = nn.LeakyReLU(0.5)
        with torch.no_grad():
            for module in modules:
                made = compiled(module.to(DEVICE))
                with mock.patch("warploom.backend.optimize", side_effect=RuntimeError) as asked:
                    made(X)
                names.add(asked.call_args.kwargs["out"].name)
        self.assertEqual(len(names), 3)

    def test_weights_as_inputs_of_the_graph_are_those_of_the_call(self):
        # As torch 2 hands them over: one graph serves all modules of a class.
        def function(x, weight, bias):
            return torch.relu(nn.functional.linear(x, weight, bias))

        made = warploom.backend(torch.fx.symbolic_trace(function), [], options=OPTIONS)
        with torch.no_grad():
            for _ in range(2):
                layer = nn.Linear(16, 8).to(DEVICE)
                self.assert_like(made(X, layer.weight, layer.bias), torch.relu(layer(X)))
                layer.weight.mul_(3)
                self.assert_like(made(X, layer.weight, layer.bias), torch.relu(layer(X)))
        self.has_kernels(made)

    def test_gradients_are_refused_before_anything_is_searched(self):
        made = compiled(Perceptron().to(DEVICE))
        with self.assertRaises(warploom.WarploomError) as refused:
            made(X)
        self.assertEqual(refused.exception.code, "gradients")

    def test_sizes_as_inputs_leave_the_graph_with_torch(self):
        made = warploom.backend(torch.fx.symbolic_trace(lambda n, x: x * n), [], options=OPTIONS)
        with torch.no_grad():
            self.assert_like(made(3, X), X * 3)
        self.assertIn("dynamic=False", made.report[0])

    def test_a_part_for_which_nothing_is_found_stays_with_torch(self):
        module = Perceptron().to(DEVICE).eval()
        with torch.no_grad():
            made = compiled(module, strategy="no_such_strategy")
            self.assert_like(made(X), module(X))
        self.assertTrue(any("stays with torch: usage" in line for line in made.report), made.report)


    def test_statistics_of_a_norm_in_training_are_counted_once_a_call(self):
        module = nn.Sequential(nn.BatchNorm1d(16), nn.ReLU()).to(DEVICE)
        graph = torch.fx.symbolic_trace(module)
        with torch.no_grad():
            made = warploom.backend(graph, [X], options=OPTIONS)
            made(X)
        self.assertEqual(module[0].num_batches_tracked.item(), 1)

    def test_a_function_that_is_called_for_its_effect_keeps_its_place(self):
        def function(x):
            torch._C._set_grad_enabled(False)
            y = torch.relu(x * 2)
            torch._C._set_grad_enabled(True)
            return y

        graph = torch.fx.Graph()
        x = graph.placeholder("x")
        graph.call_function(torch._C._set_grad_enabled, (False,))
        y = graph.call_function(torch.relu, (graph.call_function(torch.mul, (x, 2)),))
        graph.call_function(torch._C._set_grad_enabled, (True,))
        graph.output((y,))
        graph = torch.fx.GraphModule(nn.Module(), graph)
        made = warploom.backend(graph, [X], options=OPTIONS)
        with torch.no_grad():
            self.assert_like(made(X)[0], function(X))
            code = made.compiled.ready.code
        self.assertLess(code.index("_set_grad_enabled(False)"), code.index("part_0"))
        self.assertLess(code.index("part_0"), code.index("_set_grad_enabled(True)"))

    def test_under_autocast_a_graph_stays_with_torch(self):
        made = compiled(Perceptron().to(DEVICE).eval())
        with torch.no_grad(), torch.autocast(DEVICE.type, torch.bfloat16):
            self.assertEqual(made(X).dtype, torch.bfloat16)
        self.assertIn("autocast", made.report[0])


    def test_a_tuple_with_nothing_in_it_stays_whole(self):
        # As torch's own attention gives it: weights that were not asked for are None.
        def pair(x):
            return torch.relu(x), None

        graph = torch.fx.Graph()
        x = graph.placeholder("x")
        both = graph.call_function(pair, (x,))
        first = graph.call_function(operator.getitem, (both, 0))
        second = graph.call_function(operator.getitem, (both, 1))
        graph.output((graph.call_function(torch.mul, (first, 2)), second))
        made = warploom.backend(torch.fx.GraphModule(nn.Module(), graph), [X], options=OPTIONS)
        with torch.no_grad():
            found = made(X)
        self.assert_like(found[0], torch.relu(X) * 2)
        self.assertIsNone(found[1])


class OnlyFasterTest(unittest.TestCase):
    """Kernels that are not faster than torch are no use."""

    def test_a_part_that_torch_computes_faster_stays_with_torch(self):
        module = Perceptron().to(DEVICE).eval()
        made = compiled(module, only_faster=True)
        slow = {"ours": 9.0, "eager": 3.0}
        with torch.no_grad(), mock.patch("warploom.checking.times", return_value=slow):
            found = made(X)
            self.assertLess(error_between(found, module(X)), 1e-3)
        self.assertIn("9.0 us a call, 3.0 us by torch, which keeps it", made.report[-1])
        calls = [part for part in made.compiled.ready.children() if hasattr(part, "bundle")]
        self.assertIsNone(calls[0].bundle)


class RegistrationTest(unittest.TestCase):
    """torch 2's registry, in its place where torch has none."""

    def registered(self, known):
        names = []
        dynamo = types.ModuleType("torch._dynamo")
        dynamo.list_backends = lambda exclude_tags: known
        dynamo.register_backend = lambda compiler_fn, name: names.append((name, compiler_fn))
        with mock.patch.dict(sys.modules, {"torch._dynamo": dynamo}):
            with mock.patch.object(torch, "compile", create=True):
                warploom.register()
        return names

    def test_is_by_the_packages_name(self):
        self.assertEqual(self.registered(["inductor"]), [("warploom", warploom.backend)])

    def test_is_done_once(self):
        self.assertEqual(self.registered(["warploom"]), [])


if __name__ == "__main__":
    unittest.main()
