#include "layout/tv_layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "layout/offsets.h"

namespace warploom::layout {
namespace {

std::int64_t product(const std::vector<TvMode>& modes) {
  std::int64_t result = 1;
  for (const TvMode& mode : modes) result *= mode.extent;
  return result;
}

void add_digits(const std::vector<TvMode>& modes, std::int64_t index, Coord& coord) {
  for (const TvMode& mode : modes) {
    const std::int64_t digit = index % mode.extent;
    index /= mode.extent;
    for (std::size_t d = 0; d < coord.size(); ++d) coord[d] += digit * mode.step[d];
  }
}

bool steps_nowhere(const TvMode& mode) {
  return std::all_of(mode.step.begin(), mode.step.end(), [](std::int64_t s) { return s == 0; });
}

// How often each point of the smallest box around all coordinates is hit, and that box.
struct Hits {
  Coord low, high;
  std::vector<std::uint32_t> counts;
};

Hits count_hits(const TvLayout& layout) {
  const std::size_t rank = layout.tile.size();
  Hits hits{Coord(rank, 0), Coord(rank, 0), {}};
  for (const auto* modes : {&layout.thread, &layout.value}) {
    for (const TvMode& mode : *modes) {
      for (std::size_t d = 0; d < rank; ++d) {
        (mode.step[d] < 0 ? hits.low[d] : hits.high[d]) += (mode.extent - 1) * mode.step[d];
      }
    }
  }
  // Coordinates add over digits and so do their positions in the box: one table for threads, one for values.
  Coord weight(rank, 1);
  std::int64_t volume = 1, origin = 0;
  for (std::size_t d = rank; d-- > 0;) {
    weight[d] = volume;
    origin -= hits.low[d] * volume;
    volume *= hits.high[d] - hits.low[d] + 1;
  }
  const auto dot = [&](const TvMode& mode) {
    std::int64_t sum = 0;
    for (std::size_t d = 0; d < rank; ++d) sum += mode.step[d] * weight[d];
    return sum;
  };
  const std::vector<std::int64_t> thread_part = digit_sums(layout.thread, dot);
  const std::vector<std::int64_t> value_part = digit_sums(layout.value, dot);
  hits.counts.assign(static_cast<std::size_t>(volume), 0);
  for (const std::int64_t t : thread_part) {
    for (const std::int64_t v : value_part) ++hits.counts[static_cast<std::size_t>(origin + t + v)];
  }
  return hits;
}

std::string mode_text(const TvMode& mode) { return fmt::format("[{}:({})]", mode.extent, fmt::join(mode.step, ",")); }

std::vector<TvMode> coalesced_modes(const std::vector<TvMode>& modes) {
  std::vector<TvMode> out;
  for (const TvMode& mode : modes) {
    if (mode.extent == 1) continue;
    bool joins = !out.empty();
    for (std::size_t d = 0; joins && d < mode.step.size(); ++d) {
      joins = mode.step[d] == out.back().extent * out.back().step[d];
    }
    if (joins) {
      out.back().extent *= mode.extent;
    } else {
      out.push_back(mode);
    }
  }
  return out;
}

}  // namespace

std::int64_t TvLayout::threads() const { return product(thread); }
std::int64_t TvLayout::values() const { return product(value); }

Coord TvLayout::coord(std::int64_t thread_index, std::int64_t value_index) const {
  Coord result(tile.size(), 0);
  add_digits(thread, thread_index, result);
  add_digits(value, value_index, result);
  return result;
}

bool TvLayout::is_exact() const {
  const Hits hits = count_hits(*this);
  for (std::size_t d = 0; d < tile.size(); ++d) {
    if (hits.low[d] != 0 || hits.high[d] != tile[d] - 1) return false;
  }
  return std::all_of(hits.counts.begin(), hits.counts.end(), [&](std::uint32_t n) { return n == hits.counts[0]; });
}

bool TvLayout::is_injective() const {
  const Hits hits = count_hits(*this);
  return std::all_of(hits.counts.begin(), hits.counts.end(), [](std::uint32_t n) { return n <= 1; });
}

Layout TvLayout::linear() const {
  const auto part = [this](const std::vector<TvMode>& modes) {
    std::vector<Layout> leaves;
    for (const TvMode& mode : modes) {
      std::int64_t stride = 0;
      for (std::size_t d = 0; d < tile.size(); ++d) stride = stride * tile[d] + mode.step[d];
      leaves.emplace_back(mode.extent, stride);
    }
    return leaves.empty() ? Layout() : make_layout(std::move(leaves));
  };
  return make_layout({part(thread), part(value)});
}

TvLayout coalesce(const TvLayout& layout) {
  return {layout.tile, coalesced_modes(layout.thread), coalesced_modes(layout.value)};
}

Result<TvLayout> reduce(const TvLayout& layout, int axis) {
  if (axis < 0 || axis >= layout.rank()) {
    return fail({.code = ErrorCode::kLayout,
                 .message = "a reduction names an axis that the tile lacks",
                 .expected = fmt::format("an axis in [0, {})", layout.rank()),
                 .found = std::to_string(axis)});
  }
  const auto a = static_cast<std::size_t>(axis);
  TvLayout result = layout;
  result.tile[a] = 1;
  result.value.clear();
  for (const auto* modes : {&layout.thread, &layout.value}) {
    for (const TvMode& mode : *modes) {
      TvMode rest = mode;
      rest.step[a] = 0;
      if (mode.step[a] != 0 && mode.extent > 1 && !steps_nowhere(rest)) {
        return fail({.code = ErrorCode::kLayout,
                     .message = "a mode steps along the reduced axis and another at once",
                     .expected = fmt::format("modes that step along axis {} alone or not at all", axis),
                     .found = mode_text(mode) + " in " + to_string(layout)});
      }
    }
  }
  for (TvMode& mode : result.thread) mode.step[a] = 0;
  for (const TvMode& mode : layout.value) {
    if (mode.step[a] == 0) result.value.push_back(mode);
  }
  return result;
}

TvLayout broadcast_operand(const TvLayout& layout, const std::vector<std::int64_t>& operand_extents, bool compact) {
  // Fewer extents than the tile has dimensions stand for its last ones, as in the broadcasting rules of array
  // libraries.
  std::vector<std::int64_t> extents(layout.tile.size(), 1);
  const std::size_t given = std::min(extents.size(), operand_extents.size());
  std::copy_backward(operand_extents.end() - static_cast<std::ptrdiff_t>(given), operand_extents.end(), extents.end());
  const auto cut = [&](TvMode mode) {
    for (std::size_t d = 0; d < extents.size(); ++d) {
      if (extents[d] == 1) mode.step[d] = 0;
    }
    return mode;
  };
  TvLayout result{extents, {}, {}};
  for (const TvMode& mode : layout.thread) result.thread.push_back(cut(mode));
  for (const TvMode& mode : layout.value) {
    TvMode kept = cut(mode);
    if (!compact || !steps_nowhere(kept)) result.value.push_back(std::move(kept));
  }
  return result;
}

std::string to_string(const TvLayout& layout) {
  std::string out = fmt::format("tile {} thread", fmt::join(layout.tile, "x"));
  for (const TvMode& mode : layout.thread) (out += ' ') += mode_text(mode);
  out += " value";
  for (const TvMode& mode : layout.value) (out += ' ') += mode_text(mode);
  return out;
}

}  // namespace warploom::layout
