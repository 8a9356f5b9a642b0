"""Real models go from module to adopted module, with other weights than they were exported with.

python3 python/tests/test_models.py runs it for the GPU, if there is one, or the CPU.
"""
import sys
import unittest

from support import DEFAULTS, DEVICE, MODELS, SCRATCH, TARGET, UNTOUCHED, ResNet, bundle_of
from support import error_between, exporting, optimized, torch, warploom, with_weights

TOLERANCE = 1e-4 if DEVICE.type == "cpu" else 3e-3  # the module itself may compute in tf32


class ModelsTest(unittest.TestCase):
    """One test for each model and way of exporting."""

    def check(self, model, keywords, ways):
        inputs = MODELS[model]().to(DEVICE)
        name = f"{model.__name__.lower()}_{ways}"
        torch.manual_seed(1)
        bundle = bundle_of(name, model().eval().to(DEVICE), (inputs,), keywords)
        adopted = bundle.adopt(with_weights(model(), 7))
        with torch.no_grad():
            for seed in (7, 8, 9):
                module = with_weights(model(), seed)
                adopted.load_state_dict(module.state_dict())
                error = error_between(adopted(inputs), module(inputs))
                self.assertLess(error, TOLERANCE, f"weights {seed}")


def add_test(model, keywords, ways):
    def test(self):
        self.check(model, keywords, ways)

    setattr(ModelsTest, f"test_{model.__name__.lower()}_exported_{ways}", test)


for each in MODELS:
    add_test(each, DEFAULTS, "by_default")
    add_test(each, UNTOUCHED, "with_weights_untouched")


class OpenDimensionsTest(unittest.TestCase):
    """A model with open dimensions, which --dim binds."""

    def test_is_adopted_with_other_weights(self):
        inputs = MODELS[ResNet]().to(DEVICE)
        file = SCRATCH / "open.onnx"
        axes = {"input_names": ["x"], "dynamic_axes": {"x": {0: "batch"}}}
        exporting.export(with_weights(ResNet(), 2), (inputs,), file, **DEFAULTS, **axes)
        folder = optimized(file, SCRATCH / "out" / "open", "--dim", "batch=2")
        module = with_weights(ResNet(), 3)
        adopted = warploom.load(folder).adopt(module)
        with torch.no_grad():
            self.assertLess(error_between(adopted(inputs), module(inputs)), TOLERANCE)


class FiveLinesTest(unittest.TestCase):
    """warploom.optimize: module in, module out."""

    def test_gives_the_module_with_its_own_weights(self):
        for model, make in MODELS.items():
            with self.subTest(model.__name__):
                inputs = make().to(DEVICE)
                module = with_weights(model(), 3)
                faster = warploom.optimize(
                    module,
                    inputs,
                    budget="2s",
                    out=SCRATCH / "five" / model.__name__,
                    target=TARGET,
                    candidates=2,
                    archive=SCRATCH / "archive.sqlite",
                )
                with torch.no_grad():
                    self.assertLess(error_between(faster(inputs), module(inputs)), TOLERANCE)

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
