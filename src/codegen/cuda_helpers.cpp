// Coordinates, conditions and addresses: how a register layout meets a memory tile.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <string>
#include <vector>
#include "base/dtype.h"
#include "codegen/cuda_emitter.h"
#include "codegen/terms.h"
#include "layout/memory_layout.h"
#include "layout/tv_layout.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::codegen {
Index CudaEmitter::digit(int64_t below, int64_t extent) {
  const bool top = below * extent >= role_threads_;
  std::string variable = "t";
  std::string expression = "t";
  if (below > 1) {
    variable += fmt::format("_div{}", below);
    expression += fmt::format(" / {}", below);
  }
  if (!top) {
    variable += fmt::format("_mod{}", extent);
    expression += fmt::format(" % {}", extent);
  }
  if (variable != expression)
    digits_.insert(fmt::format("const int {} = {};", variable, expression));
  bounds_.enter(variable, extent);
  return Index::variable(variable);
}

Index CudaEmitter::within(const TvLayout& layout, size_t dim, const std::vector<ValueLoop>& loops,
                          size_t skip_modes) {
  Index sum = 0;
  const auto digits = thread_digits(layout);
  for (const ThreadDigit& mode : std::span(digits).subspan(skip_modes))
    if (mode.step[dim] != 0) sum = sum + digit(mode.below, mode.extent) * mode.step[dim];
  for (const ValueLoop& loop : loops)
    sum = sum + loop.variable * loop.step[dim];
  return sum;
}

std::string CudaEmitter::first_replica(const TvLayout& layout) {
  std::vector<std::string> conditions;
  for (const ThreadDigit& mode : thread_digits(layout))
    if (!mode.moves()) conditions.push_back(digit(mode.below, mode.extent).text() + " == 0");
  if (layout.threads() < role_threads_)
    conditions.push_back(fmt::format("t < {}", layout.threads()));
  return fmt::format("{}", fmt::join(conditions, " && "));
}

std::vector<ValueLoop> CudaEmitter::value_loops(const TvLayout& layout, int64_t vector) {
  std::vector<ValueLoop> loops;
  int64_t stride = 1;
  for (const auto& mode : layout.value) {
    auto step = mode.step;
    const int64_t left = std::max<int64_t>(1, vector / stride);  // of the vector
    const int64_t inside = std::min(mode.extent, left);
    for (auto& s : step)
      s *= inside;
    const int64_t extent = mode.extent / inside;
    if (extent > 1) {
      const Index variable = counter(fmt::format("i{}", loops.size()), extent);
      loops.push_back({variable, extent, step, stride * inside});
    }
    stride *= mode.extent;
  }
  return loops;
}

Writer::Block CudaEmitter::open_loops(const std::vector<ValueLoop>& loops, bool registers,
                                      bool scope) {
  if (loops.empty() && scope) out_.open("{{");
  const char* unroll = registers ? "WL_UNROLL" : "WL_UNROLL_8";
  for (const ValueLoop& loop : std::views::reverse(loops)) {
    const auto& variable = loop.variable.name();
    out_.open("{2} for (int {0} = 0; {0} < {1}; ++{0}) {{", variable, loop.extent, unroll);
  }
  return {out_, loops.empty() ? scope : loops.size()};
}

// A tile's offset, by its name where a loop around has one for it.
Index CudaEmitter::offset(const Tile& tile, size_t dim) const {
  const Index& own = tile.offset[dim];
  return tensor(tile.tensor).scope == Scope::global ? named(own) : own;
}

Index CudaEmitter::value_index(const std::vector<ValueLoop>& loops, int64_t per) {
  Index sum = 0;
  for (const ValueLoop& loop : loops)
    sum = sum + loop.variable * (loop.value_stride / per);
  return sum;
}

std::vector<Index> CudaEmitter::coordinates(const Tile& memory, const TvLayout& seen,
                                            const std::vector<ValueLoop>& loops,
                                            size_t skip_modes) {
  std::vector<Index> all;
  const bool prepacked = tensor(memory.tensor).prepacked;
  for (size_t d = 0; d < memory.extent.size(); ++d) {
    const Index steps = within(seen, d, loops, skip_modes);
    const Index inside = scaled(steps, memory.step_along(d));
    all.push_back((prepacked ? 0 : offset(memory, d)) + inside);
  }
  return all;
}

std::string CudaEmitter::bounds_condition(const Tile& memory,
                                          const std::vector<Index>& coordinates) const {
  std::vector<std::string> conditions;
  for (size_t d = 0; d < coordinates.size(); ++d) {
    if (!bounds_.may_exceed(program_, memory, d)) continue;
    const int64_t size = tensor(memory.tensor).shape[d];
    const std::string at = coordinates[d].text();
    const bool may_be_negative = bounds_.of(coordinates[d]).low < 0;
    if (may_be_negative)
      conditions.push_back(fmt::format("(unsigned)({}) < {}u", at, size));
    else
      conditions.push_back(fmt::format("{} < {}", at, size));
  }
  return fmt::format("{}", fmt::join(conditions, " && "));
}

namespace {
bool exceeds_2_gib(const Tensor& t) {
  return bytes_of(t.dtype, element_count(t.shape)) > (int64_t{1} << 31);
}
}  // namespace

// Of loads a sum stays a factor of its own: addresses that differ by a constant alone would share
// their sums, which takes registers.
Index factor_in(const Tensor& t, const Index& index) {
  const bool wide = exceeds_2_gib(t);
  const bool apart = index.op() == IndexOp::add && per_byte(t.dtype) == 1;
  if (index.constant() || (!wide && !apart)) return index;
  const char* cast = wide ? "(long long)" : "";
  return Index::variable(fmt::format("{}({})", cast, index.text()));
}

std::string CudaEmitter::global_address(const Tile& memory, const std::vector<Index>& coordinates,
                                        bool store) const {
  Index at = 0;  // in elements
  const Tensor& t = tensor(memory.tensor);
  const int per = per_byte(t.dtype);
  if (store && !exceeds_2_gib(t) && per == 1) {
    // Where a thread stores along several loops: the address of its first element, and the others'
    // distances to it, which are constants in the instruction. One loop's few stores have registers
    // to spare.
    Index first = 0;
    Index others = 0;
    for (size_t d = 0; d < coordinates.size(); ++d) {
      const auto [own, looped] = without_loops(coordinates[d]);
      first = first + scaled(own, t.strides[d]);
      others = others + scaled(looped, t.strides[d]);
    }
    if (others.depends_on("i1"))
      return fmt::format("{} + ({})", plus(name(memory.tensor), first), others.text());
  }
  for (size_t d = 0; d < coordinates.size(); ++d) {
    const int64_t stride = t.strides[d];
    const Index& along = coordinates[d];
    at = at + (stride == 1 ? along : factor_in(t, along)) * stride;
  }
  return plus(name(memory.tensor), per > 1 ? quotient(at, per, bounds_) : at);
}

Index CudaEmitter::shared_base(TensorId id) const {
  const Index start = Index::variable(name(id));
  if (!is_stage(id)) return start;
  const PipelineId pipeline = tensor(id).pipeline;
  const Pipeline& stages = program_.pipeline(pipeline);
  if (stages.stages == 1) return start;
  std::string stage = stage_number_;
  if (pipeline != stage_of_)  // consumed around what is going on: it has a number of its own
    stage = stages.name + (analysis_.has_barriers(pipeline) ? "_stage" : "_read");
  return start + Index::variable(stage) * solution_.stage_bytes.at(id);
}

std::string CudaEmitter::shared_address(const Tile& memory,
                                        const std::vector<Index>& coordinates) const {
  return address_in(solution_.shared.at(memory.tensor), shared_base(memory.tensor), coordinates);
}

std::string CudaEmitter::address_in(const layout::MemoryLayout& layout, const Index& base,
                                    const std::vector<Index>& coordinates) const {
  Index offset = 0;  // in elements, then in bytes
  for (size_t d = 0; d < coordinates.size(); ++d)
    offset = offset + offset_in(coordinates[d], layout.dims[d], bounds_);
  const int bits = layout.element_bits;
  offset = bits < 8 ? quotient(offset, 8 / bits, bounds_) : scaled(offset, bits / 8);
  const auto& swizzle = layout.swizzle;
  if (!swizzle.bits) return (base + offset).text();
  return fmt::format("{} + wl::swizzle<{}, {}, {}>({})", base.text(), swizzle.bits, swizzle.base,
                     swizzle.shift, offset.text());
}
}  // namespace warploom::codegen
