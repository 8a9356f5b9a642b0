// Products on a CPU (pieces/cpu_product.h): matmuls, batched and transposed ones, with what is
// computed element by element behind the sum; of bf16 by dot products or by tiles where the
// processor has them, of whole numbers of 8 bits by dot products always. Loops (`direct`) cover
// what this does not: windows, triangles, sums over several axes, and other integers.
#include "kernels/families/matmul_cpu.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/config/configs.h"
#include "kernels/config/constraints.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "kernels/pieces/cpu_product.h"
#include "loopnest/affine.h"
#include "loopnest/contraction.h"
#include "loopnest/loop_nest.h"
#include "loopnest/whole_product.h"

namespace warploom::kernels {
namespace {
using loopnest::ZeroPoints;

// Whether operands are bf16, or count as bf16 by the track.
bool multiplies_bf16(const Contraction& c, Track track) {
  const auto counts = [&](Dtype dtype) {
    return dtype == Dtype::bf16 || (dtype == Dtype::f32 && track == Track::bf16);
  };
  return counts(c.access_a().dtype) && counts(c.access_b().dtype);
}

cpu_matmul::Constants constants_of(const Contraction& c, const graph::Graph& graph) {
  const auto is_constant = [&](const Access& access) {
    const bool is_known = access.tensor >= 0 && access.tensor < std::ssize(graph.tensors);
    return is_known && graph.tensor(access.tensor).constant;
  };
  return {.a = is_constant(c.access_a()), .b = is_constant(c.access_b())};
}

cpu_matmul::Problem problem_of(Contraction contraction, std::optional<ZeroPoints> zero_points,
                               Track track, const Capabilities& capabilities) {
  cpu_matmul::Problem out{.c = std::move(contraction),
                          .zero_points = std::move(zero_points),
                          .capabilities = capabilities};
  const Contraction& c = out.c;
  out.has_pairs = capabilities.has_bf16_dot && multiplies_bf16(c, track);
  out.has_tiles = out.has_pairs && capabilities.has_bf16_tiles;
  out.saturates = !out.zero_points && c.reductions.empty() && saturates(c);
  out.rows = c.nest.axes[c.row];
  out.columns = c.nest.axes[c.column];
  out.depth = c.nest.axes[c.k[0]];
  return out;
}

class MatmulCpu final : public Family {
 public:
  MatmulCpu(cpu_matmul::Problem problem, cpu_matmul::Constants constants)
      : Family(MatmulCpuConfig::type(), problem.capabilities, Specialization::made),
        problem_(std::move(problem)),
        constants_(constants) {}

  Space space() const override { return cpu_matmul::space_of(problem_); }

  FailedConstraints constraints(const KernelConfig& config) const override {
    return cpu_matmul::constraints_of(problem_, config.as<MatmulCpuConfig>());
  }

  // Cycles of the busiest core.
  double guess(const KernelConfig& config) const override {
    constexpr double kInexact = 2;  // such a config is seldom right
    const auto& s = config.as<MatmulCpuConfig>();
    const double cycles =
        cpu_matmul::guessed_cycles(problem_.c, s, problem_.capabilities, constants_);
    const bool is_inexact =
        problem_.saturates && s.step_k <= 0 && problem_.depth > cpu_matmul::kFewTerms;
    return is_inexact ? kInexact * cycles : cycles;
  }

  Result<Programs> programs(const KernelConfig& config) const override {
    Programs out;
    problem_.product(config.as<MatmulCpuConfig>()).add_to(out);
    return out;
  }

 private:
  cpu_matmul::Problem problem_;
  cpu_matmul::Constants constants_;
};

// Whether boxes of an access along two axes are matrices: each dimension follows one of them at
// most, forwards and within the tensor.
bool has_boxes(const Access& access, size_t first, size_t second) {
  if (!access.in_bounds || access.is_gathered()) return false;
  return std::ranges::all_of(access.at, [&](const Affine& dim) {
    const bool both = dim.steps[first] != 0 && dim.steps[second] != 0;
    return !both && std::ranges::min(dim.steps) >= 0;
  });
}

bool is_covered(const Contraction& c, bool of_whole_numbers) {
  if (c.k.size() != 1 || c.skips_zeros() || !c.domain_constraints.empty()) return false;
  const Access& a = c.access_a();
  const Access& b = c.access_b();
  const bool floats = a.dtype == b.dtype && is_computed_float(a.dtype);
  if (!floats && !of_whole_numbers) return false;
  if (!has_boxes(a, c.row, c.k[0]) || !has_boxes(b, c.k[0], c.column)) return false;
  const auto operands = epilogue_of(c);
  const auto is_in_boxes = [&](const Access& access) {
    const Dtype dtype = access.dtype;
    const bool computes = is_computed_float(dtype) || (of_whole_numbers && is_computed(dtype));
    return computes && has_boxes(access, c.row, c.column);
  };
  if (!operands || !std::ranges::all_of(c.nest.outputs, is_in_boxes, &LoopNest::Output::place))
    return false;
  const auto fits = [&](int operand) { return is_in_boxes(c.nest.loads[as_size(operand)]); };
  const auto is_index = [](const Expr& value) { return value.kind == Kind::index; };
  const bool one_axis_each = c.m.size() == 1 && c.n.size() == 1;
  if (!one_axis_each && std::ranges::any_of(c.nest.values, is_index)) return false;
  return std::ranges::all_of(*operands, fits);
}
}  // namespace

// What reduces rows of the result is computed behind the product where every core has rows of its
// own, and a cache holds some.
FamilyPtr matmul_cpu_family(const Region& region, const Capabilities& capabilities) {
  constexpr int64_t kLongestRow = 4096;
  if (capabilities.gpu || region.track == Track::fp8) return nullptr;
  auto c = contraction_of(region.nests(), true, Results::several);
  std::optional<ZeroPoints> zero_points;
  if (auto whole = loopnest::whole_product_of(region.nests())) {
    c = std::move(whole->contraction);
    zero_points = std::move(whole->zero_points);
  }
  if (!c || !c->scales.empty() || !is_covered(*c, zero_points.has_value())) return nullptr;
  const auto& axes = c->nest.axes;
  if (axes[c->k[0]] > cpu_matmul::kLongestSum * cpu_matmul::kMostBlocks) return nullptr;
  const bool few_rows = axes[c->row] < 16 * int64_t{capabilities.num_sms};
  if (!c->reductions.empty() && (few_rows || axes[c->column] > kLongestRow)) return nullptr;
  const cpu_matmul::Constants constants = constants_of(*c, region.graph);
  return std::make_shared<MatmulCpu>(
      problem_of(*std::move(c), std::move(zero_points), region.track, capabilities), constants);
}
}  // namespace warploom::kernels
