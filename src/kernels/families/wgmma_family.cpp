#include "kernels/families/wgmma_family.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/graph.h"
#include "kernels/config/configs.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/loop_nest_tiling.h"
#include "kernels/pieces/operand_packing.h"
#include "kernels/pieces/wgmma_kernel.h"
#include "kernels/pieces/wgmma_product.h"
#include "loopnest/affine.h"
#include "loopnest/contraction.h"
#include "loopnest/loop_nest.h"

namespace warploom::kernels {
WgmmaFamily::WgmmaFamily(const ConfigType& type, WgmmaProduct product)
    : Family(type, product.capabilities, Specialization::fastest), product_(std::move(product)) {}

Values WgmmaFamily::split_values() const {
  const Contraction& c = product_.c;
  if (!is_float(product_.precision.operand) || !c.reductions.empty()) return {1};
  const auto& second = product_.second_pixels;
  const int64_t block_k = 128 / bytes_of(product_.precision.operand);
  const int64_t steps = product_.stages_of(block_k);
  const int64_t pixel_rows = second ? c.nest.axes[*second] : 1;
  const int64_t columns = c.nest.axes[c.column] * pixel_rows;
  const int64_t down = ceil_div(c.nest.axes[c.row], 128);
  const int64_t tiles = down * ceil_div(columns, 128) * product_.outer_axes().second;
  Values splits = {1};
  for (int64_t s = 2; s <= 32 && s * 4 <= steps; s *= 2)
    if (s * tiles <= 2 * capabilities_.num_sms) splits.push_back(s);
  return splits;
}

Values WgmmaFamily::schedulers(const Values& splits) {
  if (splits.size() == 1) return choices(Scheduler::data_parallel, Scheduler::stream_k);
  return choices(Scheduler::data_parallel, Scheduler::split_k, Scheduler::stream_k);
}

Values WgmmaFamily::epilogues() const {
  const bool is_half = bytes_of(product_.c.nest.outputs[0].place.dtype) == 2;
  if (is_half) return choices(Epilogue::smem, Epilogue::direct);
  return choices(Epilogue::direct, Epilogue::smem);
}

Values WgmmaFamily::depths_of_scales() const {
  const int64_t bytes = bytes_of(product_.precision.operand);
  const int64_t run = product_.c.nest.axes[*product_.c.channel];
  return {std::clamp<int64_t>(power_of_two_above(run), 32 / bytes, 128 / bytes)};
}

Result<Family::Programs> WgmmaFamily::programs(const KernelConfig& config) const {
  const WgmmaChoices s = choices_of(config);
  Programs out;
  const Contraction sides = filled(out, product_.sides(s), capabilities_);
  const Prepared a = prepared(out, sides, true, !s.swap_ab, s);
  const Prepared b = prepared(out, sides, false, s.swap_ab, s);
  if (s.split_k == 1)
    WgmmaKernel(product_, sides, a, b, s).add_to(out);
  else
    split(out, sides, a, b, s);
  return out;
}

// Parts lie one after another, each as the result does, whichever of the two ways the product is
// computed.
void WgmmaFamily::split(Programs& out, const Contraction& sides, const Prepared& a,
                        const Prepared& b, const WgmmaChoices& s) const {
  const Contraction& c = product_.c;
  const auto outer = product_.outer_axes();
  const int64_t batch = outer.second;
  Access parts{.name = "parts", .shape = {s.split_k * batch}};
  const auto tiled = axes_of({product_.second_pixels, c.row, c.column});
  for (const size_t axis : tiled)
    parts.shape.push_back(c.nest.axes[axis]);
  auto padded = parts.shape;
  padded.back() = round_up(padded.back(), 4);
  parts.strides = graph::strides_of(padded);
  const int64_t elements = parts.shape[0] * parts.strides[0];
  out.workspaces.push_back({"parts", Dtype::f32, {elements}});
  const auto parts_along = [&](size_t part) {
    const size_t axes = c.nest.axes.size() + 1;
    Access made = parts;
    made.at = {along(part, axes, batch)};
    int64_t below = batch;
    for (const size_t other : outer.first) {
      below /= c.nest.axes[other];
      made.at[0].steps[other] = below;
    }
    for (const size_t axis : tiled)
      made.at.push_back(along(axis, axes));
    return made;
  };
  Contraction part = sides;
  part.nest.axes.push_back(s.split_k);
  const Access place = parts_along(c.nest.axes.size());
  part.nest.outputs = {{as_int(sides.sum), place}};
  WgmmaKernel(product_, part, a, b, s).add_to(out);
  // The same nest with parts in the place of products and of k, in a fixed order.
  const size_t k = *c.channel;
  LoopNest sum = c.nest;
  for (const size_t axis : c.k)
    sum.axes[axis] = axis == k ? s.split_k : 1;
  const size_t product = at(sum.values[c.sum].operands[0]);
  const int load = as_int(sum.loads.size());
  sum.values[product] = {.kind = Expr::Kind::load, .load = load};
  sum.loads.push_back(parts_along(k));
  direct::add_program(out, "sum_parts", std::move(sum), 4, 256, capabilities_);
}

std::optional<Contraction> wgmma_contraction_of(const Region& region,
                                                const Capabilities& capabilities) {
  if (!capabilities.has_wgmma || !capabilities.has_tma) return std::nullopt;
  auto c = contraction_of(region.nests(), true, Results::several);
  if (!c || !c->channel || !stores_whole(*c)) return std::nullopt;
  return c;
}

bool wants_windows(const Contraction& contraction) {
  const Contraction& c = contraction;
  const Access& b = c.nest.loads[c.b];
  const bool strided = c.n.size() > 1 && b.stride(c.column) != 1 && b.stride(*c.channel) != 1;
  return (c.k.size() > 1 && c.scales.empty()) || strided;
}
}  // namespace warploom::kernels
