#include "layout/addresses.h"

#include <algorithm>
#include <bit>

#include "layout/offsets.h"

namespace warploom::layout {
namespace {

bool power_of_two(std::int64_t n) { return n > 0 && std::has_single_bit(static_cast<std::uint64_t>(n)); }
int log2_exact(std::int64_t n) { return std::countr_zero(static_cast<std::uint64_t>(n)); }

// The largest coordinate that the layout reaches along a dimension, or nothing when a step is negative.
std::optional<std::int64_t> largest_coordinate(const TvLayout& layout, std::size_t d) {
  std::int64_t largest = 0;
  for (const auto* modes : {&layout.thread, &layout.value}) {
    for (const TvMode& mode : *modes) {
      if (mode.step[d] < 0) return std::nullopt;
      largest += (mode.extent - 1) * mode.step[d];
    }
  }
  return largest;
}

// Adds `bits` to what is taken already; false when they overlap, that is when a sum could carry.
bool take(std::int64_t& taken, std::int64_t bits) {
  if (taken & bits) return false;
  taken |= bits;
  return true;
}

// What each bit of a coordinate adds to the bit offset.
std::optional<std::vector<std::int64_t>> coordinate_columns(const std::vector<MemoryMode>& modes, int bits,
                                                            int element_bits, std::int64_t& taken) {
  std::vector<std::int64_t> columns;
  for (std::size_t i = 0; i < modes.size() && static_cast<int>(columns.size()) < bits; ++i) {
    const bool last = i + 1 == modes.size();
    if (!last && !power_of_two(modes[i].extent)) return std::nullopt;
    const int left = bits - static_cast<int>(columns.size());
    const int here = last ? left : std::min(left, log2_exact(modes[i].extent));
    for (int j = 0; j < here; ++j) {
      const std::int64_t column = (modes[i].stride * element_bits) << j;
      if (!take(taken, column)) return std::nullopt;
      columns.push_back(column);
    }
  }
  columns.resize(static_cast<std::size_t>(bits), 0);
  return columns;
}

}  // namespace

std::optional<XorColumns> xor_columns(const TvLayout& registers, const MemoryLayout& memory) {
  const std::size_t rank = std::min(registers.tile.size(), memory.dims.size());
  std::vector<std::vector<std::int64_t>> of_coord(rank);
  std::int64_t taken = 0;
  for (std::size_t d = 0; d < rank; ++d) {
    const auto largest = largest_coordinate(registers, d);
    if (!largest) return std::nullopt;
    const auto bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(*largest)));
    auto columns = coordinate_columns(memory.dims[d], bits, memory.element_bits, taken);
    if (!columns) return std::nullopt;
    of_coord[d] = std::move(*columns);
  }
  XorColumns result;
  std::vector<std::int64_t> taken_coord(rank, 0);
  const auto append = [&](const std::vector<TvMode>& modes, std::vector<std::int64_t>& out) {
    for (const TvMode& mode : modes) {
      if (!power_of_two(mode.extent)) return false;
      for (int j = 0; j < log2_exact(mode.extent); ++j) {
        std::int64_t column = 0;
        for (std::size_t d = 0; d < rank; ++d) {
          const std::int64_t step = mode.step[d] << j;
          if (!take(taken_coord[d], step)) return false;
          for (std::size_t b = 0; b < of_coord[d].size(); ++b) {
            if (step >> b & 1) column ^= of_coord[d][b];
          }
        }
        out.push_back(column);
      }
    }
    return true;
  };
  if (!append(registers.thread, result.thread) || !append(registers.value, result.value)) return std::nullopt;
  return result;
}

OffsetTable::OffsetTable(const TvLayout& registers, const MemoryLayout& memory) {
  const std::size_t rank = std::min(registers.tile.size(), memory.dims.size());
  for (std::size_t d = 0; d < rank; ++d) {
    const auto step = [d](const TvMode& mode) { return mode.step[d]; };
    of_thread_.push_back(digit_sums(registers.thread, step));
    of_value_.push_back(digit_sums(registers.value, step));
    const std::int64_t largest = *std::max_element(of_thread_[d].begin(), of_thread_[d].end()) +
                                 *std::max_element(of_value_[d].begin(), of_value_[d].end());
    MemoryLayout alone;
    alone.dims = {memory.dims[d]};
    std::vector<std::int64_t> offsets(static_cast<std::size_t>(largest + 1));
    Coord coord(1);
    for (coord[0] = 0; coord[0] <= largest; ++coord[0]) {
      offsets[static_cast<std::size_t>(coord[0])] = alone.element_offset(coord) * memory.element_bits;
    }
    of_coord_.push_back(std::move(offsets));
  }
}

std::int64_t OffsetTable::bit_offset(std::int64_t thread, std::int64_t value) const {
  std::int64_t sum = 0;
  for (std::size_t d = 0; d < of_coord_.size(); ++d) {
    const std::int64_t coord =
        of_thread_[d][static_cast<std::size_t>(thread)] + of_value_[d][static_cast<std::size_t>(value)];
    sum += of_coord_[d][static_cast<std::size_t>(coord)];
  }
  return sum;
}

}  // namespace warploom::layout
