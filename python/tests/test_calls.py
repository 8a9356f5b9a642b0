"""What calls of kernels keep and share, how arguments are bound, and what the check looks at."""
import contextlib
import sys
import threading
import unittest
import weakref
from unittest import mock

from support import DEVICE, UNTOUCHED, bundle_of, error_between, nn, torch
from test_refusals import X, Plain, Refusals, plain_bundle

from warploom import checking


class Optional(Plain):
    """Tensors that may be left out."""

    def forward(self, x, a=None, b=None):
        h = self.linear(x)
        h = h if a is None else h + a
        return h if b is None else h - b


class NamedArgumentsTest(Refusals):
    """Arguments by name, of kernels for some of those that may be left out."""

    def setUp(self):
        self.module = Optional().to(DEVICE).eval()
        self.more = torch.randn(4, 8, device=DEVICE)
        bundle = bundle_of("optional", self.module, (X, self.more), UNTOUCHED)
        self.adopted = bundle.adopt(self.module)

    def test_are_those_of_their_places(self):
        with torch.no_grad():
            found, wanted = self.adopted(a=self.more, x=X), self.module(X, self.more)
        self.assertLess(error_between(found, wanted), 1e-3)

    def test_of_one_after_a_gap(self):
        error = self.refused("input-count", self.adopted, X, b=self.more)
        self.assertIn("b leaves out one before it", str(error))

    def test_of_one_that_is_given_twice_or_is_none(self):
        self.refused("input-count", self.adopted, X, self.more, x=X)
        self.refused("input-count", self.adopted, X, c=self.more)

    def test_in_a_compiled_program_are_bound_as_well(self):
        looked_at = mock.patch("optional_torch.adoption.is_compiling", side_effect=[True, False])
        with torch.no_grad():
            wanted = self.adopted(X, self.more)
            with looked_at:
                self.assertTrue(torch.equal(self.adopted(X, a=self.more), wanted))

    def test_of_out_in_a_compiled_program(self):
        looked_at = mock.patch("optional_torch.adoption.is_compiling", return_value=True)
        with torch.no_grad():
            out = self.adopted(X, self.more)
        with looked_at:
            self.refused("output-unfit", self.adopted, X, self.more, out=out)


class SharedTest(Refusals):
    """What calls share: workspaces, and constants."""

    def test_threads_do_not_meet_in_one_workspace(self):
        run = plain_bundle().run
        meeting = threading.Barrier(2)
        met = []

        def start(self, function, array, work, index, stream):
            with contextlib.suppress(threading.BrokenBarrierError):
                meeting.wait(0.3)
                met.append(work)

        with torch.no_grad():
            run(X)  # what is kept is there
        threads = [threading.Thread(target=run, args=(X.detach(),)) for _ in range(2)]
        with mock.patch("refusing_torch.calling.Calls.start", start):
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(met, [])

    def test_threads_with_other_constants_take_their_own(self):
        bundle = plain_bundle().bundle
        first = {one.name: torch.zeros(one.shape, device=DEVICE) for one in bundle.held}
        second = {name: torch.ones_like(value) for name, value in first.items()}
        launch = sys.modules["refusing_torch.launch"]
        state_of = launch.state_of

        def interrupted(constants):
            if constants is first:
                bundle.calls_with(second)  # of another thread, in the midst of this
            return state_of(constants)

        with mock.patch.object(launch, "state_of", interrupted):
            made = bundle.calls_with(first)
            self.assertIs(made.constants["linear.bias"], first["linear.bias"])
            self.assertIs(bundle.calls_with(first), made)

    def test_what_a_graph_recorded_stays_when_weights_change(self):
        module = Plain().to(DEVICE).eval()
        adopted = plain_bundle().adopt(module)
        calling = sys.modules["refusing_torch.calling"]
        starts = mock.patch.object(calling.Calls, "start", autospec=True)
        with torch.no_grad():
            adopted(X)
            calls = adopted._adoption.calls
            taken = weakref.ref(next(iter(calls.kept.values())).workspace)
            with mock.patch.object(calling, "is_recorded", return_value=True), starts:
                adopted(X)
            del calls
            module.linear.weight.mul_(2)
            adopted(X)
        self.assertIsNotNone(taken())


class PrepareTest(Refusals):
    """What is made of constants alone is made once, and again when they change."""

    def starts(self, function):
        """How often the launcher's library is called meanwhile."""
        bundle = plain_bundle().bundle
        calling = sys.modules["refusing_torch.calling"]
        start = calling.Calls.start
        # The kernels themselves in the place of those that prepare, which this bundle has not.
        with mock.patch.object(bundle, "prepare", bundle.launcher):
            with mock.patch.object(calling.Calls, "start", autospec=True, side_effect=start) as all:
                function()
                return all.call_count

    def test_comes_once_and_again_with_other_weights(self):
        module = Plain().to(DEVICE).eval()
        adopted = plain_bundle().bundle.adopt(module, check=False)
        counts = []
        with torch.no_grad():
            for change in (False, False, True, False):
                if change:
                    module.linear.weight.mul_(2)
                counts.append(self.starts(lambda: adopted(X)))
        self.assertEqual(counts, [2, 1, 2, 1])

    def test_comes_again_with_other_constants_or_changed_ones(self):
        bundle = plain_bundle().bundle
        own = {one.name: bundle.constant(one, DEVICE).clone() for one in bundle.held}
        run = lambda: bundle.run(X, constants=own)
        with torch.no_grad():
            counts = [self.starts(run), self.starts(run)]
            next(iter(own.values())).mul_(2)
            counts += [self.starts(run), self.starts(run)]
        self.assertEqual(counts, [2, 1, 2, 1])


class CheckingTest(unittest.TestCase):
    """Fresh inputs, and what is said of the outputs."""

    def test_a_masks_infinities_stay_where_they_are(self):
        mask = torch.zeros(4, 4).masked_fill(torch.ones(4, 4).triu(1).bool(), float("-inf"))
        found = checking.fresh([mask])[0]
        self.assertTrue(torch.equal(found, mask))

    def test_finite_elements_have_their_own_mean_and_spread(self):
        x = torch.randn(1000) * 3 + 5
        x[::2] = float("-inf")
        found = checking.fresh([x])[0]
        self.assertTrue(torch.isinf(found[::2]).all())
        self.assertAlmostEqual(found[1::2].mean().item(), 5, delta=1)
        self.assertAlmostEqual(found[1::2].std().item(), 3, delta=1)

    def test_an_output_without_anything_finite_is_not_checked(self):
        infinite = nn.Threshold(9e9, float("-inf")).eval()
        row = checking.compared(infinite, infinite, [torch.zeros(3)], ["y"], 1e-5)[0]
        self.assertFalse(row.checked)


if __name__ == "__main__":
    unittest.main()
