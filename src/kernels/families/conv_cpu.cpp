// Convolution on a CPU, from the input as it lies: windows of patches that stay in a core's L2
// cache, output channels side by side in vectors (pieces/cpu_convolution.h).
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/graph.h"
#include "kernels/config/configs.h"
#include "kernels/config/constraints.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/cpu_convolution.h"
#include "loopnest/contraction.h"
#include "loopnest/loop_nest.h"

namespace warploom::kernels {
namespace {
constexpr int64_t kPanel = 2;                      // vectors
constexpr int64_t kMostTerms = 320;                // of the sum that are added up one after another
constexpr int64_t kMostResults = (360 << 10) / 4;  // floats of a tile, and of what follows the sum

class ConvCpu final : public Family {
 public:
  ConvCpu(CpuConvolution convolution, const Capabilities& capabilities)
      : Family(ConvCpuConfig::type(), capabilities, Specialization::made),
        of_(std::move(convolution)),
        copies_(of_.pool.place_count() + behind_sum()) {}

  Space space() const override {
    Space space{name(), {}};
    space.offer<ConvCpuConfig>(F::tile_q, parts_of(pixel_count(0), 1024));
    space.offer<ConvCpuConfig>(F::tile_p, parts_of(pixel_count(1), 64));
    space.offer<ConvCpuConfig>(F::tile_images, parts_of(pixel_count(2), 8));
    space.offer<ConvCpuConfig>(F::block_n, channels());
    space.offer<ConvCpuConfig>(F::block_c, planes());
    return space;
  }

  FailedConstraints constraints(const KernelConfig& config) const override {
    const auto& s = config.as<ConvCpuConfig>();
    Checks<ConvCpuConfig> checks;
    const bool positive = std::min({s.tile_q, s.tile_p, s.tile_images, s.block_n, s.block_c}) >= 1;
    checks.require(positive, kAll, "tiles and blocks of at least 1", 0);
    if (!positive) return std::move(checks).failed();
    check_extents(checks, s);
    check_operands(checks, s);
    return std::move(checks).failed();
  }

  double guess(const KernelConfig& config) const override {
    return cycles_of(config.as<ConvCpuConfig>());
  }

  Result<Programs> programs(const KernelConfig& config) const override {
    Programs out;
    add_cpu_convolution(out, of_, tile_of(config.as<ConvCpuConfig>()));
    return out;
  }

 private:
  using F = ConvCpuConfig::Field;
  static constexpr std::initializer_list<F> kAll = {F::tile_q, F::tile_p, F::tile_images,
                                                    F::block_n, F::block_c};
  static constexpr std::initializer_list<F> kResults = {F::tile_q, F::tile_p, F::tile_images,
                                                        F::block_n};

  // The axis of pixels that is so many before the fastest.
  AxisIfAny pixel_axis(size_t before) const {
    if (before >= of_.pixels.size()) return std::nullopt;
    return of_.pixels[of_.pixels.size() - 1 - before];
  }

  int64_t pixel_count(size_t before) const {
    const AxisIfAny axis = pixel_axis(before);
    return axis ? of_.size(*axis) : 1;
  }

  ConvolutionTile tile_of(const ConvCpuConfig& s) const {
    return {.extent = extents_of(s), .depth = s.block_c, .panel = panel()};
  }

  // Columns side by side in vectors, of which a register tile takes two.
  int64_t panel() const { return std::min(kPanel * capabilities_.lanes(), columns()); }

  int64_t columns() const { return of_.size(of_.c.column); }

  // Extents of a tile, by axis; all of the axes of the sum.
  std::vector<int64_t> extents_of(const ConvCpuConfig& s) const {
    std::vector<int64_t> extent(of_.c.nest.axes.size(), 1);
    const int64_t tile[] = {s.tile_q, s.tile_p, s.tile_images};
    for (size_t i = 0; i < std::size(tile); ++i)
      if (const AxisIfAny axis = pixel_axis(i)) extent[*axis] = tile[i];
    for (const size_t axis : of_.depth)
      extent[axis] = of_.size(axis);
    for (const size_t axis : of_.pool.places)
      extent[axis] = of_.size(axis);
    extent[of_.c.column] = s.block_n;
    return extent;
  }

  // An axis in about equal parts of at most so many elements: all of it, halves, thirds, …
  static Values parts_of(int64_t all, int64_t most) {
    Values out;
    for (int64_t parts = 1; parts <= all && (out.empty() || out.back() > 1); parts += 1 + parts / 4)
      if (const int64_t part = ceil_div(all, parts); part <= most) out.push_back(part);
    if (out.empty()) out.push_back(most);
    return out;
  }

  // Panels of the weights, and all channels.
  Values channels() const {
    const int64_t all = columns();
    Values out;
    for (const int64_t part : parts_of(all, 1 << 14)) {
      const int64_t panels = std::min(round_up(part, panel()), all);
      if (out.empty() || out.back() != panels) out.push_back(panels);
    }
    return out;
  }

  // Those that divide the channels and make sums neither short nor long.
  Values planes() const {
    constexpr int64_t kFewTerms = 64;
    const int64_t all = of_.size(of_.blocked());
    Values out;
    for (int64_t count = std::min(all, std::max<int64_t>(kMostTerms / of_.taps, 1)); count >= 1;
         --count) {
      const bool enough = count * of_.taps >= kFewTerms || out.empty();
      if (all % count == 0 && enough) out.push_back(count);
    }
    return out;
  }

  void check_extents(Checks<ConvCpuConfig>& checks, const ConvCpuConfig& s) const {
    const bool within =
        s.tile_q <= pixel_count(0) && s.tile_p <= pixel_count(1) && s.tile_images <= pixel_count(2);
    checks.require(within, {F::tile_q, F::tile_p, F::tile_images}, "a tile within the image",
                   s.tile_q);
    const bool panels = s.block_n % panel() == 0 || s.block_n == columns();
    checks.require(s.block_n <= columns() && panels, {F::block_n},
                   "block_n within the output's channels, all or whole panels of them", s.block_n);
    const int64_t all = of_.size(of_.blocked());
    checks.require(s.block_c <= all && all % s.block_c == 0, {F::block_c},
                   "a block_c that divides the channels of the input", s.block_c);
    const int64_t terms = s.block_c * of_.taps;
    checks.require(terms <= kMostTerms || s.block_c == 1, {F::block_c},
                   "a block_c of at most 320 terms of the sum", terms);
  }

  void check_operands(Checks<ConvCpuConfig>& checks, const ConvCpuConfig& s) const {
    const auto extent = extents_of(s);
    const int64_t width = round_up(panel(), capabilities_.lanes());
    const int64_t results = s.tile_q * s.tile_p * s.tile_images * width * copies_;
    checks.require(results <= kMostResults, kResults, "at most 360 KiB of results", results);
    const PatchShape patch(of_, extent);
    checks.require_fits(4 * patch.elements + 4096, capabilities_.shared_bytes, kAll);
    checks.require(broadcasts(extent), kResults, "tiles that are boxes of what follows the sum",
                   s.tile_q);
  }

  // Whether every operand behind the sum varies along all pixels of a tile, or none.
  bool broadcasts(const std::vector<int64_t>& extent) const {
    return std::ranges::all_of(of_.operands, [&](int operand) {
      const Access& load = of_.pool.nest.loads[as_size(operand)];
      const auto is_wide = [&](size_t axis) { return extent[axis] > 1; };
      const auto counts = [&](bool used) {
        return std::ranges::count_if(
            of_.pixels, [&](size_t axis) { return is_wide(axis) && load.uses(axis) == used; });
      };
      const auto is_dimension = [&](size_t axis) {
        return !is_wide(axis) || !load.uses(axis) || load.dim_of(axis).has_value();
      };
      const bool boxes =
          std::ranges::all_of(of_.pixels, is_dimension) && is_dimension(of_.c.column);
      return boxes && (counts(true) == 0 || counts(false) == 0);
    });
  }

  // Whether what follows the sum needs registers of its own.
  // Results that are not the sum itself: each has registers of its own.
  int64_t behind_sum() const {
    return std::ranges::count_if(of_.c.nest.outputs, [&](const LoopNest::Output& output) {
      return as_size(output.value) != of_.c.sum;
    });
  }

  // Of one core; the tiles that the slowest core takes.
  double cycles_of(const ConvCpuConfig& s) const {
    constexpr double kTask = 200;  // to hand one out
    const auto extent = extents_of(s);
    double tasks = 1;
    for (size_t axis = 0; axis < extent.size(); ++axis)
      if (std::ranges::count(of_.depth, axis) + std::ranges::count(of_.pool.places, axis) == 0)
        tasks *= as_double(ceil_div(of_.c.nest.axes[axis], extent[axis]));
    const double panels = std::ceil(as_double(s.block_n) / as_double(panel()));
    const double panel = cycles_of_panel(s, extent) + cycles_of_results(s);
    return std::ceil(tasks / capabilities_.num_sms) *
           (cycles_of_patch(extent) + panels * panel + kTask);
  }

  double cycles_of_patch(const std::vector<int64_t>& extent) const {
    constexpr double kCopied = 3;  // a vector
    constexpr double kRow = 8;
    const PatchShape patch(of_, extent);
    const auto elements = as_double(patch.elements);
    const double rows = elements / as_double(patch.extents.back());
    const auto lanes = as_double(capabilities_.lanes());
    return rows * (std::ceil(elements / rows / lanes) * kCopied + kRow);
  }

  double vectors() const {
    return std::ceil(as_double(panel()) / as_double(capabilities_.lanes()));
  }

  // The products of a panel: the weights come by once, a vector in about two cycles.
  double cycles_of_panel(const ConvCpuConfig& s, const std::vector<int64_t>& extent) const {
    constexpr double kRead = 2;
    constexpr double kAdded = 2;  // a vector of sums, for each block of channels
    const double blocks = as_double(of_.size(of_.blocked())) / as_double(s.block_c);
    const double terms = as_double(s.block_c * of_.taps);
    const double pixels = as_double(s.tile_q * s.tile_p * s.tile_images * of_.pool.place_count());
    const double multiplied = pixels * vectors() * (terms / 2 + kAdded);
    const double bytes = 4 * as_double(PatchShape(of_, extent).elements);
    const double spilled = bytes > as_double(capabilities_.shared_bytes) / 2 ? 1.1 : 1.0;
    return blocks * (multiplied * spilled + vectors() * terms * kRead);
  }

  double cycles_of_results(const ConvCpuConfig& s) const {
    constexpr double kStored = 6;  // a vector, turned
    const auto lanes = as_double(capabilities_.lanes());
    const double rows = as_double(s.tile_p * s.tile_images);
    const double turned = rows * std::ceil(as_double(s.tile_q) / lanes) * lanes;
    return vectors() * turned * (kStored + as_double(copies_));
  }

  CpuConvolution of_;
  int64_t copies_;  // tiles of results that are in registers at once
};

// The name of the weights; empty where a graph has no convolution.
std::string weights_of(const graph::Graph& graph) {
  for (const graph::Node& node : graph.nodes)
    if (graph::class_of(node.op) == graph::OpClass::convolution)
      return graph.tensor(node.inputs[1]).name;
  return "";
}
}  // namespace

FamilyPtr conv_cpu_family(const Region& region, const Capabilities& capabilities) {
  const std::string weights = weights_of(region.graph);
  if (capabilities.gpu || weights.empty()) return nullptr;
  if (region.nests().size() != 1) return nullptr;
  auto convolution = cpu_convolution_of(region.nests()[0], weights);
  if (!convolution) return nullptr;
  const auto is_stored = [](const LoopNest::Output& output) {
    return is_computed_float(output.place.dtype);
  };
  const bool computes = is_computed_float(convolution->input.dtype) &&
                        is_computed_float(convolution->weights.dtype) &&
                        std::ranges::all_of(convolution->pool.nest.outputs, is_stored);
  if (!computes) return nullptr;
  return std::make_shared<ConvCpu>(*std::move(convolution), capabilities);
}
}  // namespace warploom::kernels
