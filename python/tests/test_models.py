"""Real models go from module to adopted module, with other weights than they were exported with.

python3 python/tests/test_models.py runs it for the GPU, if there is one, or the CPU.
"""
import sys
import unittest

from support import DEFAULTS, DEVICE, MODELS, SCRATCH, SHORT, TARGET, Language, bundle_of
from support import error_between, exporting, optimized, torch, warploom, with_weights

TOLERANCE = 1e-4 if DEVICE.type == "cpu" else 3e-3  # the module itself may compute in tf32


class ModelsTest(unittest.TestCase):
    """One test for each model and way: torch.onnx.export and adopt(), or warploom.optimize()."""

    def assert_follows_weights(self, adopted, model, inputs):
        with torch.no_grad():
            for seed in (7, 8, 9):
                module = with_weights(model(), seed)
                adopted.load_state_dict(module.state_dict())
                error = error_between(adopted(inputs), module(inputs))
                self.assertLess(error, TOLERANCE, f"weights {seed}")

    def check_exported(self, model):
        inputs = MODELS[model]().to(DEVICE)
        torch.manual_seed(1)
        bundle = bundle_of(f"{model.__name__.lower()}_by_default", with_own(model), (inputs,))
        self.assert_follows_weights(bundle.adopt(with_weights(model(), 7)), model, inputs)

    def check_five_lines(self, model):
        inputs = MODELS[model]().to(DEVICE)
        module = with_weights(model(), 3)
        faster = warploom.optimize(
            module, inputs, out=SCRATCH / "five" / model.__name__, target=TARGET, **SHORT
        )
        with torch.no_grad():
            self.assertLess(error_between(faster(inputs), module(inputs)), TOLERANCE)
        self.assert_follows_weights(faster, model, inputs)


def with_own(model):
    """The model with the weights that torch gives it."""
    return model().eval().to(DEVICE)


def add_tests(model):
    name = model.__name__.lower()
    exported = lambda self: self.check_exported(model)
    five_lines = lambda self: self.check_five_lines(model)
    setattr(ModelsTest, f"test_{name}_exported_by_default", exported)
    setattr(ModelsTest, f"test_{name}_by_warploom_optimize", five_lines)


for each in MODELS:
    add_tests(each)


class OpenDimensionsTest(unittest.TestCase):
    """A model with open dimensions, which --dim binds."""

    def test_is_adopted_with_other_weights(self):
        inputs = MODELS[Language]().to(DEVICE)
        file = SCRATCH / "open.onnx"
        axes = {"input_names": ["ids"], "dynamic_axes": {"ids": {0: "batch"}}}
        exporting.export(with_weights(Language(), 2), (inputs,), file, **DEFAULTS, **axes)
        folder = optimized(file, "--dim", "batch=2")
        module = with_weights(Language(), 3)
        adopted = warploom.load(folder, trust=True).adopt(module)
        with torch.no_grad():
            self.assertLess(error_between(adopted(inputs), module(inputs)), TOLERANCE)


class FiveLinesTest(unittest.TestCase):
    """What warploom.optimize() and warploom.load() refuse."""

    def test_says_what_the_program_says_of_a_bad_flag(self):
        with self.assertRaisesRegex(warploom.WarploomError, "the target is unknown"):
            warploom.optimize(
                torch.nn.ReLU(), torch.randn(4, 4), out=SCRATCH / "bad", target="no_such_target"
            )

    def test_a_folder_that_is_no_bundle_is_refused(self):
        with self.assertRaisesRegex(warploom.WarploomError, "no bundle"):
            warploom.load(SCRATCH)


if __name__ == "__main__":
    print(f"torch {torch.__version__} on {DEVICE}", file=sys.stderr)
    unittest.main()
