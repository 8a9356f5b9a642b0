"""What an adopted module takes, notices and refuses, and how a bundle is built."""
import copy
import os
import shutil
import subprocess
import sys
import unittest

from support import DEFAULTS, DEVICE, FOLDERS, MODELS, SCRATCH, UNTOUCHED, ResNet, bundle_of
from support import error_between, exporting, nn, optimized, torch, warploom, with_weights


class Plain(nn.Module):
    """A linear layer and a learned number, which kernels hold as a number."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(16, 8)
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, x):
        return torch.relu(self.linear(x)) * self.scale


class Normed(nn.Module):
    """A norm, and dropout by the function, which no layer shows."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(16)

    def forward(self, x):
        return nn.functional.dropout(self.norm(x), 0.5, self.training)


class Twice(nn.Module):
    """Two norms that begin alike, so that exporters merge their weights."""

    def __init__(self):
        super().__init__()
        self.first = nn.LayerNorm(16)
        self.second = nn.LayerNorm(16)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


class Reparametrised(nn.Module):
    """A weight that autograd makes of others before every forward()."""

    def __init__(self):
        super().__init__()
        self.linear = nn.utils.weight_norm(nn.Linear(16, 8))
        self.gain = nn.Parameter(torch.ones(8))

    def forward(self, x):
        return torch.relu(self.linear(x)) * (2 * self.gain.exp())


class OneOutput(nn.Module):
    """Weights of one element, with axes: a bias, a slope."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 1, 3)
        self.slope = nn.PReLU()
        self.head = nn.Linear(14, 1)

    def forward(self, x):
        return self.head(self.slope(self.conv(x)))


class Named(nn.Module):
    """Several results, in a dict."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(16, 8)
        self.b = nn.Linear(16, 4)

    def forward(self, x):
        return {"a": self.a(x), "b": (torch.tanh(self.b(x)),)}


X = torch.randn(4, 16).to(DEVICE)


def plain(seed=None):
    module = Plain().eval().to(DEVICE)
    if seed is not None:
        torch.manual_seed(seed)
        with torch.no_grad():
            module.linear.weight.normal_()
            module.linear.bias.normal_()
    return module


def of_plain():
    """The bundle that most tests share, of plain(7)."""
    return bundle_of("plain", plain(7), (X,), UNTOUCHED)


class AdoptionTest(unittest.TestCase):
    def assert_like(self, adopted, module, *inputs):
        with torch.no_grad():
            self.assertLess(error_between(adopted(*inputs), module(*inputs)), 1e-3)

    def test_of_a_class_is_a_class(self):
        adopted = of_plain().adopt(Plain)().to(DEVICE).eval()
        self.assertIsInstance(adopted, Plain)
        module = plain(3)
        adopted.load_state_dict(module.state_dict())
        self.assert_like(adopted, module, X)

    def test_leaves_the_module_itself_as_it_was(self):
        module = plain(3)
        before = module(X)
        self.assert_like(of_plain().adopt(module), module, X)
        self.assertIs(type(module), Plain)
        self.assertTrue(torch.equal(module(X), before))

    def test_shares_its_parameters_with_the_module(self):
        module = plain(3)
        adopted = of_plain().adopt(module)
        self.assert_like(adopted, module, X)
        with torch.no_grad():
            module.linear.weight.add_(1)
        self.assert_like(adopted, module, X)

    def test_notices_a_parameter_that_is_another_tensor(self):
        module = plain(3)
        adopted = of_plain().adopt(module)
        self.assert_like(adopted, module, X)
        module.linear.weight = nn.Parameter(torch.randn(8, 16, device=DEVICE))
        self.assert_like(adopted, module, X)

    def test_notices_weights_made_and_changed_in_inference_mode(self):
        with torch.inference_mode():
            module = plain(3)
            adopted = of_plain().adopt(module)
            self.assert_like(adopted, module, X)
            module.linear.weight.mul_(3)
            self.assert_like(adopted, module, X)

    def test_refresh_takes_what_was_written_through_data(self):
        module = with_weights(Twice(), 3)
        bundle = bundle_of("twice", Twice().eval().to(DEVICE), (X,))
        adopted = bundle.adopt(module)
        self.assert_like(adopted, module, X)
        module.first.weight.data.mul_(2)
        adopted.refresh()
        self.assert_like(adopted, module, X)

    def test_a_deep_copy_computes_with_its_own_weights(self):
        adopted = of_plain().adopt(plain(3))
        self.assert_like(adopted, plain(3), X)
        other = copy.deepcopy(adopted)
        other.load_state_dict(plain(4).state_dict())
        self.assert_like(other, plain(4), X)
        self.assert_like(adopted, plain(3), X)

    def test_weights_that_were_equal_when_exported_may_differ(self):
        bundle = bundle_of("twice", Twice().eval().to(DEVICE), (X,))
        adopted = bundle.adopt(Twice().eval().to(DEVICE))
        for seed in (3, 4):
            module = with_weights(Twice(), seed)
            adopted.load_state_dict(module.state_dict())
            self.assert_like(adopted, module, X)

    def test_folds_weights_that_are_made_of_others(self):
        bundle = bundle_of("made", Reparametrised().eval().to(DEVICE), (X,))
        module = with_weights(Reparametrised(), 3)
        self.assert_like(bundle.adopt(module), module, X)

    def test_takes_weights_of_one_element_that_have_axes(self):
        inputs = torch.randn(2, 4, 16).to(DEVICE)
        for ways in (DEFAULTS, UNTOUCHED):
            bundle = bundle_of(f"one{len(ways)}", OneOutput().eval().to(DEVICE), (inputs,), ways)
            module = with_weights(OneOutput(), 3)
            self.assert_like(bundle.adopt(module), module, inputs)

    def test_returns_results_in_the_modules_form(self):
        bundle = bundle_of("named", Named().eval().to(DEVICE), (X,))
        module = with_weights(Named(), 3)
        with torch.no_grad():
            found, wanted = bundle.adopt(module)(X), module(X)
        self.assertEqual(found.keys(), wanted.keys())
        self.assertLess(error_between(found["a"], wanted["a"]), 1e-3)
        self.assertLess(error_between(found["b"][0], wanted["b"][0]), 1e-3)

    def test_takes_arguments_by_name(self):
        module = plain(3)
        adopted = of_plain().adopt(module)
        with torch.no_grad():
            self.assertLess(error_between(adopted(x=X), module(X)), 1e-3)

    def test_a_file_exported_from_the_module_serves_where_it_cannot_be_exported(self):
        module = with_weights(ResNet(), 5)
        inputs = MODELS[ResNet]().to(DEVICE)
        torch.manual_seed(1)
        bundle = bundle_of("resnet_by_default", ResNet().eval().to(DEVICE), (inputs,))
        file = SCRATCH / "again.onnx"
        exporting.export(module, (inputs,), file, **DEFAULTS)
        adopted = bundle.adopt(module, onnx=file)
        self.assert_like(adopted, module, inputs)
        adopted.load_state_dict(with_weights(ResNet(), 6).state_dict())
        with torch.no_grad(), self.assertRaisesRegex(RuntimeError, "weights changed since"):
            adopted(inputs)


class NamedInputsTest(unittest.TestCase):
    """A model whose weights are inputs, by the names of the module's parameters."""

    def test_are_the_modules_parameters_and_the_others_its_arguments(self):
        class Product(nn.Module):
            def __init__(self):
                super().__init__()
                self.w = nn.Parameter(torch.randn(16, 8))

            def forward(self, x):
                return torch.relu(x @ self.w)

        file = SCRATCH / "product.onnx"
        expression = "relu(matmul(x[4,16], w[16,8]))"
        made = [warploom.program(), "new", expression, "--out", str(file)]
        subprocess.run(made, check=True, stdout=subprocess.DEVNULL)
        bundle = warploom.load(optimized(file), trust=True)
        module = Product().to(DEVICE)
        with torch.no_grad():
            for adopted in (bundle.adopt(module), bundle.adopt(Product)().to(DEVICE)):
                adopted.load_state_dict(module.state_dict())
                self.assertLess(error_between(adopted(X), module(X)), 1e-3)
            every_input = bundle.ModelNew()(X, module.w)
            self.assertLess(error_between(every_input, module(X)), 1e-3)


class Difference(nn.Module):
    """A difference of two products."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(16, 8)
        self.b = nn.Linear(16, 8)

    def forward(self, x):
        return self.a(x) - self.b(x)


class CancellationTest(unittest.TestCase):
    def test_that_the_module_suffers_itself_is_no_difference(self):
        bundle = bundle_of("difference", Difference().eval().to(DEVICE), (X,))
        module = with_weights(Difference(), 3)
        with torch.no_grad():
            module.a.weight.mul_(100)
            module.b.weight.copy_(module.a.weight + 1e-3 * torch.randn_like(module.a.weight))
            module.b.bias.copy_(module.a.bias)
            bundle.adopt(module)(X)


class RefusalTest(unittest.TestCase):
    def refuses(self, text, adopted, *inputs):
        with torch.no_grad(), self.assertRaisesRegex(RuntimeError, text):
            adopted(*inputs)

    def test_of_a_weight_that_is_compiled_in_names_it(self):
        module = plain(3)
        with torch.no_grad():
            module.scale.fill_(3.0)
        self.refuses(
            "compiled into the kernels is the value at export of scale", of_plain().adopt(module), X
        )

    def test_of_a_weight_that_is_compiled_in_comes_also_later(self):
        adopted = of_plain().adopt(plain(3))
        with torch.no_grad():
            adopted(X)
            adopted.scale.fill_(3.0)
        self.refuses("compiled into the kernels is the value at export of scale", adopted, X)

    def test_of_a_module_that_computes_something_else_says_how_much_it_differs(self):
        class Other(Plain):
            def forward(self, x):
                return torch.tanh(self.linear(x)) * self.scale

        other = Other().eval().to(DEVICE)
        self.refuses("differs from what the module's own forward", of_plain().adopt(other), X)

    def test_of_a_module_of_other_shapes_names_its_weights(self):
        other = plain()
        other.linear = nn.Linear(16, 8, bias=False).to(DEVICE)
        self.refuses("linear.bias", of_plain().adopt(other), X)

    def test_of_training_names_the_layer_and_the_remedy(self):
        inputs = MODELS[ResNet]().to(DEVICE)
        torch.manual_seed(1)
        bundle = bundle_of("resnet_by_default", ResNet().eval().to(DEVICE), (inputs,))
        adopted = bundle.adopt(ResNet().to(DEVICE).train())
        self.refuses(r"norm.*training mode: call \.eval\(\)", adopted, inputs)

    def test_of_dropout_by_the_function_comes_with_training(self):
        bundle = bundle_of("normed", Normed().eval().to(DEVICE), (X,))
        adopted = bundle.adopt(Normed().eval().to(DEVICE))
        with torch.no_grad():
            adopted(X)
        self.refuses("differs from what the module's own forward", adopted.train(), X)

    def test_of_gradients_names_the_remedy(self):
        adopted = of_plain().adopt(plain(3))
        with self.assertRaisesRegex(
            RuntimeError, r"no gradients: call it under torch\.no_grad\(\)"
        ):
            adopted(X)
        for module in (plain(3).requires_grad_(False),):
            adopted = of_plain().adopt(module)
            adopted(X)
            with self.assertRaisesRegex(RuntimeError, "no gradients"):
                adopted(X.clone().requires_grad_())

    def test_of_tracing(self):
        adopted = of_plain().adopt(plain(3))
        with torch.no_grad(), self.assertRaisesRegex(RuntimeError, "cannot be traced"):
            torch.jit.trace(adopted, (X,))

    def test_of_what_is_no_module(self):
        with self.assertRaisesRegex(TypeError, "takes a torch.nn.Module"):
            of_plain().adopt(3)


class RunTest(unittest.TestCase):
    def test_computes_with_the_models_own_constants(self):
        with torch.no_grad():
            self.assertLess(error_between(of_plain().run(X), plain(7)(X)), 1e-3)

    def test_takes_tensors_instead_of_constants(self):
        module = plain(9)
        with torch.no_grad():
            found = of_plain().run(X, constants=kernels_own(module))
            self.assertLess(error_between(found, module(X)), 1e-3)

    def test_names_an_input_of_another_shape(self):
        with self.assertRaisesRegex(ValueError, r"must be f32 \[4, 16\] on .*, not .*\[2, 16\]"):
            of_plain().run(X[:2])

    def test_names_what_is_missing(self):
        with self.assertRaisesRegex(TypeError, "plain takes 1 tensors, .*; 0 were given"):
            of_plain().run()

    def test_takes_what_is_neither_packed_nor_aligned(self):
        wide = torch.randn(16, 9, device=DEVICE)[:, 1:5].t()
        module = plain(3)
        with torch.no_grad():
            adopted = of_plain().adopt(module)
            self.assertLess(error_between(adopted(wide), module(wide)), 1e-3)


def kernels_own(module):
    """The constants of the bundle of Plain, made of a module's weights."""
    adopted = of_plain().adopt(module)
    adopted(X)
    return adopted._adoption.calls.constants


class BuildTest(unittest.TestCase):
    """The first call compiles, once."""

    SCRIPT = (
        "import torch; from plain import run; run(torch.ones(4, 16, device='%s'))" % DEVICE.type
    )

    def setUp(self):
        of_plain()
        self.folder = SCRATCH / "copies" / self.id().rsplit(".", 1)[1]
        shutil.copytree(FOLDERS["plain"], self.folder)
        shutil.rmtree(self.folder / "build", ignore_errors=True)
        self.env = {**os.environ, "PYTHONPATH": str(self.folder)}

    def start(self, **more):
        return subprocess.Popen(
            [sys.executable, "-c", self.SCRIPT],
            env={**self.env, **more},
            stderr=subprocess.PIPE,
            text=True,
        )

    def libraries(self, place):
        return [file for file in place.iterdir() if file.suffix == ".so"]

    def test_works_with_the_bundles_folder_on_pythonpath(self):
        running = self.start()
        self.assertEqual((running.communicate()[1], running.returncode), ("", 0))
        self.assertEqual(len(self.libraries(self.folder / "build")), 1)

    def test_is_done_once_by_processes_that_start_at_once(self):
        running = [self.start() for _ in range(3)]
        for each in running:
            self.assertEqual((each.communicate()[1], each.returncode), ("", 0))
        self.assertEqual(len(self.libraries(self.folder / "build")), 1)

    def test_goes_to_the_cache_folder_where_the_bundle_cannot_be_written(self):
        (self.folder / "build").write_text("in the way")
        cache = self.folder.parent / "cache"
        running = self.start(XDG_CACHE_HOME=str(cache))
        self.assertEqual((running.communicate()[1], running.returncode), ("", 0))
        self.assertEqual(len(self.libraries(cache / "warploom" / "bundles")), 1)

    def test_a_changed_source_is_compiled_again(self):
        self.start().communicate()
        host = self.folder / "plain_host.cpp"
        host.write_text(host.read_text() + "// changed\n")
        self.start().communicate()
        self.assertEqual(len(self.libraries(self.folder / "build")), 2)

    @unittest.skipIf(DEVICE.type == "cuda", "of the compiler for a CPU")
    def test_a_missing_compiler_is_named_with_the_remedy(self):
        said = self.start(PATH="/nonexistent", CXX="").communicate()[1]
        self.assertIn("no C++ compiler was found", said)
        self.assertIn("install g++", said)


class NamesTest(unittest.TestCase):
    """Bundles are named after files, and files are named as people like."""

    def test_of_python_itself_do_not_stand_in_its_way(self):
        for name in ("copy", "lambda", "torch"):
            with self.subTest(name):
                file = SCRATCH / f"{name}.onnx"
                exporting.export(nn.ReLU(), (X,), file, **UNTOUCHED)
                folder = optimized(file)
                script = f"import torch; from {name}_bundle import run; "
                script += f"run(torch.ones(4, 16, device='{DEVICE.type}'))"
                ran = subprocess.run(
                    [sys.executable, "-c", script],
                    capture_output=True,
                    text=True,
                    check=False,
                    env={**os.environ, "PYTHONPATH": str(folder)},
                )
                self.assertEqual((ran.stderr, ran.returncode), ("", 0))
                self.assertTrue(callable(warploom.load(folder, trust=True).run))

    def test_of_tensors_are_never_code(self):
        name = '\'"""\n import os; os.abort() #\\'
        file = SCRATCH / "odd.onnx"
        exporting.export(plain(), (X,), file, input_names=[name], **UNTOUCHED)
        module = warploom.load(optimized(file), trust=True)
        self.assertEqual(module.bundle.given[0].name, name)
        module.run(X)


if __name__ == "__main__":
    unittest.main()
