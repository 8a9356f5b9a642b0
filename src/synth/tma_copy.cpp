// Which copies tma can carry out. It wants strides, base and the box's start in its row in
// multiples of 16 bytes, fills with zeros alone, and all of a shared matrix, whose swizzle atoms
// begin where their pattern does.
#include <fmt/format.h>
#include <array>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include "base/dtype.h"
#include "synth/shared_solver.h"
#include "synth/sites.h"
#include "synth/solve.h"
#include "tile/program.h"

namespace warploom::synth {
namespace {
using Lack = std::optional<Unmet>;

// The demands on one copy, each of which may be unmet.
struct TmaDemands {
  const SynthesisContext& context;
  const Site& site;
  const Copy& copy;
  Sides sides;
  bool strided_views;  // of the stage: rows follow each other as they are, without swizzle atoms

  const Tile& global = *sides.global;
  const Tile& stage = *sides.shared;
  const Tensor& tensor = context.program.tensor(global.tensor);
  const Tensor& shared = context.program.tensor(stage.tensor);
  std::optional<size_t> contiguous = contiguous_dim(tensor);

  // Of a row in the box, and of its part that one tma box takes.
  int unit() const { return strided_views ? 16 : 32; }

  // "'a' f32"
  static std::string typed(const Tensor& tensor) {
    return fmt::format("'{}' {}", tensor.name, name_of(tensor.dtype));
  }

  Lack target() const {
    if (context.capabilities.has_tma) return {};
    return Unmet{"a target that has one", context.capabilities.arch};
  }

  Lack tile() const {
    if (global.lookup >= 0)
      return Unmet{"a box that is not gathered", fmt::format("'{}' gathered", tensor.name)};
    if (!global.step.empty())
      return Unmet{"a box of neighbours",
                   fmt::format("steps {} of '{}'", text_of(global.step), tensor.name)};
    if (contiguous) return {};
    const std::string strides = text_of(tensor.strides);
    return Unmet{fmt::format("a dimension of '{}' whose elements are neighbours", tensor.name),
                 fmt::format("strides {}", strides)};
  }

  Lack values() const {
    const bool to_tf32 = tensor.dtype == Dtype::f32 && shared.dtype == Dtype::tf32 && sides.load;
    if (tensor.dtype != shared.dtype && !to_tf32)
      return Unmet{"one type on both sides",
                   fmt::format("{} and {}", typed(tensor), typed(shared))};
    if (copy.combine && *copy.combine != ReduceOp::sum)
      return Unmet{"a sum", *copy.combine == ReduceOp::max ? "a maximum" : "a minimum"};
    if (!sides.load || copy.fill == 0) return {};
    return Unmet{"a fill of 0", fmt::format("{}", copy.fill)};
  }

  Lack pipeline() const {
    if (!sides.load) return {};
    if (site.producing >= 0 && is_between_roles(context.sites, site.producing)) return {};
    return Unmet{"a pipeline between roles", "one thread of control"};
  }

  // Dimensions of extent 1 that the box never leaves do not count.
  Lack strides() const {
    int rank = 0;
    for (size_t d = 0; d < tensor.shape.size(); ++d) {
      if (tensor.shape[d] == 1 && !context.bounds.may_exceed(context.program, global, d)) continue;
      ++rank;
      const int64_t stride = bytes_of(tensor.dtype, tensor.strides[d]);
      if (d != *contiguous && stride % 16)
        return Unmet{
            fmt::format("dimension {} of '{}' in steps of a multiple of 16 bytes", d, tensor.name),
            fmt::format("{} bytes", stride)};
    }
    if (rank <= 5) return {};
    return Unmet{fmt::format("at most 5 dimensions of '{}'", tensor.name),
                 fmt::format("{} dimensions", rank)};
  }

  Lack start() const {
    const size_t inner = *contiguous;
    const int64_t extent = bytes_of(tensor.dtype, global.extent[inner]);
    const int64_t start = bytes_of(tensor.dtype, global.offset[inner].known_divisor());
    if (extent % unit()) {
      const std::string expected =
          fmt::format("a multiple of {} bytes of dimension {} of '{}'", unit(), inner, tensor.name);
      return Unmet{expected, fmt::format("{} bytes", extent)};
    }
    if (start % 16 == 0) return {};
    const std::string expected = fmt::format(
        "a start in dimension {} of '{}' at a multiple of 16 bytes", inner, tensor.name);
    const std::string offset = global.offset[inner].text();
    return Unmet{expected, fmt::format("{}, multiples of {} bytes", offset, start)};
  }

  // The shared dimension that meets the contiguous one.
  std::optional<size_t> met() const { return met_by(stage, global, contiguous); }

  int64_t row_bytes() const { return met() ? bytes_of(shared.dtype, shared.shape[*met()]) : 0; }

  Lack shared_rows() const {
    const int64_t extent = global.extent[*contiguous];
    const int64_t row = row_bytes();
    if (strided_views && (extent > 256 || met().value_or(0) + 1 != shared.shape.size()))
      return Unmet{"rows of at most 256 elements", text_of(shared.shape)};
    if (row == 0 || row % unit()) {
      const std::string expected =
          fmt::format("rows of '{}' of a multiple of {} bytes", shared.name, unit());
      return Unmet{expected, fmt::format("{} bytes", row)};
    }
    if (shared.shape.size() != 2 || stage.extent != shared.shape)
      return Unmet{fmt::format("all of '{}', of two dimensions", shared.name),
                   text_of(stage.extent)};
    if (shared.shape[*met()] == extent) return {};
    const std::string expected =
        fmt::format("rows of '{}' of one dimension of '{}'", shared.name, tensor.name);
    return Unmet{expected, fmt::format("{} of {}", extent, shared.shape[*met()])};
  }

  // Rows of several dimensions: one box, slower dimensions first.
  Lack several_dimensions() const {
    const int64_t rows = shared.shape[1 - *met()];
    const auto wide = wide_dims(global.extent);
    int64_t above = INT64_MAX;
    for (const size_t d : wide) {
      const int64_t stride = d == *contiguous ? above : tensor.strides[d];
      const bool one_box = stride <= above && rows <= 256 && copy.multicast.empty();
      if (wide.size() > 2 && !one_box) {
        const std::string expected = fmt::format(
            "at most 256 rows of '{}' in the order of its strides, for one block", tensor.name);
        return Unmet{expected, fmt::format("{} rows {}", rows, text_of(global.extent))};
      }
      above = stride;
    }
    return {};
  }

  Lack swizzle_atoms() const {
    const int64_t rows = shared.shape[1 - *met()];
    const int64_t row = row_bytes();
    if (strided_views || row == swizzle_atom_of(row) || rows % 8 == 0) return {};
    return Unmet{
        fmt::format("rows of '{}' in multiples of 8, or of at most 128 bytes", shared.name),
        fmt::format("{} rows of {} bytes", rows, row)};
  }
};

// Later ones suppose that those before them are met.
using Demand = Lack (TmaDemands::*)() const;
constexpr std::array<Demand, 9> kDemands = {
    &TmaDemands::target,       &TmaDemands::tile,
    &TmaDemands::values,       &TmaDemands::pipeline,
    &TmaDemands::strides,      &TmaDemands::start,
    &TmaDemands::shared_rows,  &TmaDemands::several_dimensions,
    &TmaDemands::swizzle_atoms};
}  // namespace

std::optional<Unmet> SharedSolver::tma_lacks(const Site& site, const Copy& copy) const {
  const Sides sides = sides_of(program, copy);
  const TmaDemands demands{*this, site, copy, sides, has_strided_views(sides.shared->tensor)};
  for (const Demand demand : kDemands)
    if (Lack lack = (demands.*demand)()) return lack;
  return std::nullopt;
}
}  // namespace warploom::synth
