"""ONNX files are read without any package, and compared up to their weights."""
import importlib.util
import pathlib
import unittest

from support import DEFAULTS, DEVICE, MODELS, SCRATCH, UNTOUCHED, ResNet, exporting, nn, torch
from support import with_weights

PARTS = pathlib.Path(__file__).resolve().parents[2] / "resources" / "bundle" / "python"
SPEC = importlib.util.spec_from_file_location("outline", PARTS / "outline.py")
outline = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(outline)
INPUTS = MODELS[ResNet]().to(DEVICE)


def model_of(module, name, inputs=(INPUTS,), **keywords):
    file = SCRATCH / f"outline_{name}.onnx"
    exporting.export(module, inputs, file, **{**DEFAULTS, **keywords})
    return outline.Model(file)


class ReaderTest(unittest.TestCase):
    def test_reads_every_weight_to_the_bit(self):
        module = with_weights(ResNet(), 3)
        model = model_of(module, "bits", **UNTOUCHED)
        for name, tensor in module.state_dict().items():
            if tensor.is_floating_point():
                self.assertTrue(torch.equal(model.leaves[name].tensor(), tensor.cpu()), name)

    def test_reads_names_and_sizes_of_inputs(self):
        model = model_of(
            with_weights(ResNet(), 3),
            "dims",
            input_names=["x"],
            output_names=["y"],
            dynamic_axes={"x": {0: "batch"}},
        )
        self.assertEqual(model.inputs, [("x", ["batch", 3, 16, 16])])
        self.assertEqual(model.outputs, ["y"])

    def test_says_that_a_file_breaks_off(self):
        model_of(nn.ReLU(), "whole")
        data = (SCRATCH / "outline_whole.onnx").read_bytes()
        cut = SCRATCH / "outline_cut.onnx"
        for size in range(1, len(data) - 1):
            cut.write_bytes(data[:size])
            try:
                outline.Model(cut)
            except outline.OnnxError:
                pass

    def test_says_that_a_text_is_no_onnx_file(self):
        file = SCRATCH / "outline_text.onnx"
        file.write_text("no model")
        with self.assertRaises(outline.OnnxError):
            outline.Model(file)


class MatchTest(unittest.TestCase):
    def test_other_weights_match_by_their_place(self):
        old = model_of(with_weights(ResNet(), 3), "old")
        new = model_of(with_weights(ResNet(), 4), "new")
        for leaf in old.leaves.values():
            leaf.data = None
        found = outline.matched(old, new)
        self.assertGreater(len(found), 10)
        for name, leaf in found.items():
            self.assertEqual(old.leaves[name].shape, leaf.shape)

    def test_another_operator_does_not(self):
        old = model_of(nn.Sequential(nn.ReLU(), nn.Tanh()), "relu")
        new = model_of(nn.Sequential(nn.Sigmoid(), nn.Tanh()), "sigmoid")
        with self.assertRaisesRegex(outline.OnnxError, "has Relu .* has Sigmoid"):
            outline.matched(old, new)

    def test_another_attribute_does_not(self):
        old, new = (model_of(nn.LeakyReLU(slope), f"slope{slope}") for slope in (0.1, 0.2))
        with self.assertRaises(outline.OnnxError):
            outline.matched(old, new)

    def test_a_value_that_was_kept_must_be_the_same(self):
        old = model_of(with_weights(nn.Linear(16, 4), 3), "kept_old", (INPUTS,))
        new = model_of(with_weights(nn.Linear(16, 4), 4), "kept_new", (INPUTS,))
        with self.assertRaisesRegex(outline.OnnxError, "compiled in"):
            outline.matched(old, new)


if __name__ == "__main__":
    unittest.main()
