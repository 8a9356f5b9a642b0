#include "layout/tv_layout.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>
#include "base/casts.h"
#include "base/error.h"

namespace warploom::layout {
namespace {
int64_t product(const std::vector<TvMode>& modes) {
  int64_t product = 1;
  for (const TvMode& mode : modes)
    product *= mode.extent;
  return product;
}

void add_digits(const std::vector<TvMode>& modes, int64_t index, Coord& coord) {
  for (const TvMode& mode : modes) {
    const int64_t digit = index % mode.extent;
    index /= mode.extent;
    for (size_t d = 0; d < coord.size(); ++d)
      coord[d] += digit * mode.step[d];
  }
}

TvMode along(size_t rank, size_t dimension, int64_t extent, int64_t step) {
  TvMode mode{extent, Coord(rank, 0)};
  mode.step[dimension] = step;
  return mode;
}

std::string mode_text(const TvMode& mode) {
  return fmt::format("[{}:({})]", mode.extent, fmt::join(mode.step, ","));
}

std::vector<TvMode> coalesced_modes(const std::vector<TvMode>& modes) {
  std::vector<TvMode> out;
  for (const TvMode& mode : modes) {
    if (mode.extent == 1) continue;
    bool joins = !out.empty();
    for (size_t d = 0; joins && d < mode.step.size(); ++d) {
      const TvMode& before = out.back();
      joins = mode.step[d] == before.extent * before.step[d];
    }
    if (joins)
      out.back().extent *= mode.extent;
    else
      out.push_back(mode);
  }
  return out;
}
}  // namespace

bool TvMode::moves() const {
  return std::ranges::count(step, 0) < std::ssize(step);
}

int64_t TvLayout::threads() const {
  return product(thread);
}

int64_t TvLayout::values() const {
  return product(value);
}

Coord TvLayout::coord(int64_t thread_index, int64_t value_index) const {
  Coord result(tile.size(), 0);
  add_digits(thread, thread_index, result);
  add_digits(value, value_index, result);
  return result;
}

bool TvLayout::is_exact() const {
  int64_t elements = 1;
  for (const int64_t extent : tile)
    elements *= extent;
  std::vector<int64_t> hits(elements);
  std::vector<Coord> of_values;
  for (int64_t v = 0; v < values(); ++v)
    of_values.push_back(coord(0, v));
  for (int64_t t = 0; t < threads(); ++t) {
    const Coord of_thread = coord(t, 0);
    for (const Coord& of_value : of_values) {
      int64_t at = 0;  // in the tile, row by row
      for (size_t d = 0; d < tile.size(); at = at * tile[d] + of_thread[d] + of_value[d], ++d)
        if (of_thread[d] + of_value[d] < 0 || of_thread[d] + of_value[d] >= tile[d]) return false;
      ++hits[at];
    }
  }
  return std::ranges::all_of(hits, [&](int64_t count) { return count > 0 && count == hits[0]; });
}

std::vector<ThreadDigit> thread_digits(const TvLayout& layout, bool cut) {
  std::vector<ThreadDigit> digits;
  for (int64_t below = 1; const TvMode& mode : layout.thread) {
    ThreadDigit digit{mode, below};
    below *= mode.extent;
    int64_t inside = mode.extent;
    if (cut && digit.of_lane()) inside = std::min(inside, 32 / digit.below);
    for (const int64_t extent : {inside, mode.extent / inside}) {
      digit.extent = extent;
      if (extent > 1) digits.push_back(digit);
      for (int64_t& step : digit.step)
        step *= extent;
      digit.below *= extent;
    }
  }
  return digits;
}

TvLayout coalesce(const TvLayout& layout) {
  return {layout.tile, coalesced_modes(layout.thread), coalesced_modes(layout.value)};
}

Result<TvLayout> coalesced(const std::vector<int64_t>& tile, size_t first, int64_t vector,
                           int64_t threads) {
  const size_t rank = tile.size();
  const auto refused = [&](const std::string& message) {
    const std::string found =
        fmt::format("{} threads, vectors of {} along dimension {} of tile ({})", threads, vector,
                    first, fmt::join(tile, ","));
    return fail({ErrorCode::kLayout, message, "",
                 "threads and a vector whose factors divide the tile's extents", found});
  };
  if (first >= rank || vector < 1 || threads < 1 || tile[first] % vector != 0 ||
      *std::ranges::min_element(tile) < 1)
    return refused("the vector does not divide the contiguous extent");
  TvLayout result{tile, {}, {}};
  if (vector > 1) result.value.push_back(along(rank, first, vector, 1));

  std::vector<size_t> order = {first};
  for (size_t d = rank; d-- > 0;)
    if (d != first) order.push_back(d);
  int64_t left = threads;
  int64_t vectors = 1;
  for (const size_t d : order) {
    const int64_t unit = d == first ? vector : 1;
    const int64_t extent = tile[d] / unit;
    const int64_t taken = std::gcd(left, extent);
    if (taken > 1) result.thread.push_back(along(rank, d, taken, unit));
    if (extent > taken) result.value.push_back(along(rank, d, extent / taken, unit * taken));
    left /= taken;
    vectors *= extent;
  }
  if (left > 1 && vectors >= threads)
    return refused("the threads cannot be spread evenly over the tile");
  if (left > 1)
    result.thread.push_back({left, Coord(rank, 0)});  // fewer vectors than threads: replicas
  return result;
}

Result<TvLayout> reduce(const TvLayout& layout, int axis) {
  const auto a = as_size(axis);
  for (const auto* modes : {&layout.thread, &layout.value})
    for (const TvMode& mode : *modes) {
      TvMode rest = mode;
      rest.step[a] = 0;
      if (mode.step[a] != 0 && mode.extent > 1 && rest.moves()) {
        const std::string expected =
            fmt::format("modes that step along axis {} alone or not at all", axis);
        const std::string found = mode_text(mode) + " in " + to_string(layout);
        return fail({ErrorCode::kLayout, "a mode steps along the reduced axis and another at once",
                     "", expected, found});
      }
    }
  TvLayout result = layout;
  result.tile[a] = 1;
  std::erase_if(result.value, [a](const TvMode& mode) { return mode.step[a] != 0; });
  for (TvMode& mode : result.thread)
    mode.step[a] = 0;
  return result;
}

TvLayout broadcast_operand(const TvLayout& layout, const std::vector<int64_t>& operand_extents) {
  TvLayout result{operand_extents, layout.thread, layout.value};
  for (auto* modes : {&result.thread, &result.value})
    for (TvMode& mode : *modes)
      for (size_t d = 0; d < operand_extents.size(); ++d)
        if (operand_extents[d] == 1) mode.step[d] = 0;
  std::erase_if(result.value, std::not_fn(&TvMode::moves));
  return result;
}

std::string to_string(const TvLayout& layout) {
  std::string out = fmt::format("tile {} thread", fmt::join(layout.tile, "x"));
  for (const TvMode& mode : layout.thread)
    (out += ' ') += mode_text(mode);
  out += " value";
  for (const TvMode& mode : layout.value)
    (out += ' ') += mode_text(mode);
  return out;
}
}  // namespace warploom::layout
