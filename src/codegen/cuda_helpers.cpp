// Coordinates, conditions and addresses: how a register layout meets a memory tile.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
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
  const std::vector<ThreadDigit> digits = thread_digits(layout);
  for (const ThreadDigit& mode : std::span(digits).subspan(skip_modes))
    if (mode.step[dim] != 0) sum = sum + digit(mode.below, mode.extent) * mode.step[dim];
  for (const ValueLoop& loop : loops) sum = sum + loop.variable * loop.step[dim];
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
    int64_t extent = mode.extent;
    layout::Coord step = mode.step;
    const int64_t inside =
        std::min(extent, std::max<int64_t>(1, vector / stride));  // part of the vector
    for (auto& s : step) s *= inside;
    extent /= inside;
    if (extent > 1)
      loops.push_back(
          {counter(fmt::format("i{}", loops.size()), extent), extent, step, stride * inside});
    stride *= mode.extent;
  }
  return loops;
}

Writer::Block CudaEmitter::open_loops(const std::vector<ValueLoop>& loops, bool registers,
                                      bool scope) {
  if (loops.empty() && scope) out_.open("{{");
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop)
    out_.open("{2} for (int {0} = 0; {0} < {1}; ++{0}) {{", loop->variable.name(), loop->extent,
              registers ? "WL_UNROLL" : "WL_UNROLL_8");
  return {out_, loops.empty() ? scope : loops.size()};
}

// A tile's offset, by its name where a loop around has one for it.
Index CudaEmitter::offset(const Tile& tile, size_t dim) const {
  return tensor(tile.tensor).scope == Scope::global ? named(tile.offset[dim]) : tile.offset[dim];
}

Index CudaEmitter::value_index(const std::vector<ValueLoop>& loops, int64_t per) {
  Index sum = 0;
  for (const ValueLoop& loop : loops) sum = sum + loop.variable * (loop.value_stride / per);
  return sum;
}

std::vector<Index> CudaEmitter::coordinates(const Tile& memory, const TvLayout& seen,
                                            const std::vector<ValueLoop>& loops,
                                            size_t skip_modes) {
  std::vector<Index> all;
  for (size_t d = 0; d < memory.extent.size(); ++d)  // of a packed tensor within the tile
    all.push_back((tensor(memory.tensor).prepacked ? 0 : offset(memory, d)) +
                  scaled(within(seen, d, loops, skip_modes), memory.step_along(d)));
  return all;
}

std::string CudaEmitter::bounds_condition(const Tile& memory,
                                          const std::vector<Index>& coordinates) const {
  std::vector<std::string> conditions;
  for (size_t d = 0; d < coordinates.size(); ++d) {
    if (!bounds_.may_exceed(program_, memory, d)) continue;
    const int64_t size = tensor(memory.tensor).shape[d];
    const std::string at = coordinates[d].text();
    conditions.push_back(bounds_.of(coordinates[d]).low >= 0
                             ? fmt::format("{} < {}", at, size)
                             : fmt::format("(unsigned)({}) < {}u", at, size));
  }
  return fmt::format("{}", fmt::join(conditions, " && "));
}

// Of loads a sum stays a factor of its own: addresses that differ by a constant alone would share
// their sums, which takes registers.
Index factor_in(const Tensor& t, const Index& index) {
  const bool wide = bytes_of(t.dtype, element_count(t.shape)) > (int64_t{1} << 31);
  if (index.constant() || (!wide && (per_byte(t.dtype) > 1 || index.op() != IndexOp::add)))
    return index;
  return Index::variable(fmt::format("{}({})", wide ? "(long long)" : "", index.text()));
}

std::string CudaEmitter::global_address(const Tile& memory, const std::vector<Index>& coordinates,
                                        bool store) const {
  Index at = 0;  // in elements
  const Tensor& t = tensor(memory.tensor);
  if (store && bytes_of(t.dtype, element_count(t.shape)) <= (int64_t{1} << 31) &&
      per_byte(t.dtype) == 1) {
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
  for (size_t d = 0; d < coordinates.size(); ++d)
    at = at + (t.strides[d] == 1 ? coordinates[d] : factor_in(t, coordinates[d])) * t.strides[d];
  return plus(name(memory.tensor),
              per_byte(t.dtype) > 1 ? quotient(at, per_byte(t.dtype), bounds_) : at);
}

Index CudaEmitter::shared_base(TensorId id) const {
  const Index start = Index::variable(name(id));
  if (!is_stage(id)) return start;
  const PipelineId pipeline = tensor(id).pipeline;
  const auto& [stages, slots] =
      std::pair(program_.pipeline(pipeline).stages, program_.pipeline(pipeline).name);
  if (stages == 1) return start;
  // One that is consumed around what is going on has a number of its own.
  const std::string slot = pipeline == stage_of_
                               ? stage_number_
                               : slots + (analysis_.has_barriers(pipeline) ? "_slot" : "_read");
  return start + Index::variable(slot) * solution_.stage_bytes.at(id);
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
  if (!layout.swizzle.bits) return (base + offset).text();
  return fmt::format("{} + wl::swizzle<{}, {}, {}>({})", base.text(), layout.swizzle.bits,
                     layout.swizzle.base, layout.swizzle.shift, offset.text());
}
}  // namespace warploom::codegen
