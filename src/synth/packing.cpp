// Packing: the order of a packed tensor's elements in memory follows from the registers that its tiles go to.
//
// Tiles lie one behind another, row by row. Inside a tile a thread's first values are neighbours, as many as one access moves; behind
// them lie those of the next thread, threads that hold copies left out; behind those of all threads the next access's. So every
// access is as wide as a thread's values allow, and a warp's are neighbours.
//
// Worked example: a 16x16 tile of bytes, operand of a product: 32 threads of 8 values, thread [4 : (0,2)] [8 : (1,0)],
// value [2 : (0,1)] [2 : (8,0)] [2 : (0,8)]. A thread's 8 bytes are one access: value digits get the strides 1, 2 and 4, thread digits
// 8 and 32. In the order of the coordinates that is  (8:32)(2:2), (2:1)(4:8)(2:4).
#include "synth/solve.h"
#include "tile/print.h"
namespace warploom::synth {
namespace {
using layout::Coord, layout::MemoryLayout, layout::TvMode;

// In the tile's own order, row by row, where the registers' digits are not those of its coordinates.
MemoryLayout packed_for(const TvLayout& seen, const Tensor& tensor, const std::vector<std::int64_t>& tile) {
  std::vector<std::map<std::int64_t, layout::MemoryMode>> digits(tile.size());  // of each dimension, by their steps along it
  std::int64_t next = 1, room = 128 / bits_of(tensor.dtype);
  const auto lay = [&](const Coord& step, std::int64_t extent) {
    for (std::size_t d = 0; d < tile.size(); ++d)
      if (extent > 1 && step[d] != 0) digits[d][step[d]] = {extent, next}, next *= extent;
  };
  std::vector<TvMode> later = seen.thread;  // than the first access
  for (TvMode mode : seen.value) {
    const std::int64_t first = std::gcd(mode.extent, room);
    lay(mode.step, first);
    room = first < mode.extent ? 1 : room / first;
    mode.extent /= first;
    for (std::int64_t& step : mode.step) step *= first;
    later.push_back(std::move(mode));
  }
  for (const TvMode& mode : later) lay(mode.step, mode.extent);
  MemoryLayout out{std::vector<std::vector<layout::MemoryMode>>(tile.size()), {}, bits_of(tensor.dtype)};
  bool whole = true;
  for (std::size_t d = 0; d < tile.size(); ++d) {
    std::int64_t reach = 1;
    for (const auto& [step, mode] : digits[d]) {
      whole &= step == reach;
      reach *= mode.extent;
      out.dims[d].push_back(mode);
    }
    whole &= reach == tile[d];
  }
  next = element_count(tile);
  if (!whole) out = layout::dense(tile, tile.size() - 1, out.element_bits);
  for (std::size_t d = tile.size(); d-- > 0; next *= tensor.shape[d] / tile[d])
    if (tensor.shape[d] > tile[d]) out.dims[d].push_back({tensor.shape[d] / tile[d], next});
  return out;
}
}  // namespace
std::optional<TvLayout> in_packed(const TvLayout& seen, const MemoryLayout& packed) {
  TvLayout out{{element_count(seen.tile)}, {}, {}};
  // A digit of a thread's or a value's number becomes several where the order goes on elsewhere before its end.
  const auto add = [&](TvMode mode, std::vector<TvMode>& to) {
    while (mode.extent > 1) {
      const std::int64_t stride = packed.element_offset(mode.step);
      std::int64_t count = 1;
      for (Coord at = mode.step; count < mode.extent && packed.element_offset(at) == count * stride; ++count)
        std::ranges::transform(at, mode.step, at.begin(), std::plus());
      if ((count = std::gcd(count, mode.extent)) == 1) return;
      to.push_back({count, {stride}});
      mode.extent /= count;
      for (std::int64_t& step : mode.step) step *= count;
    }
  };
  for (const TvMode& mode : seen.thread) add(mode, out.thread);
  for (const TvMode& mode : seen.value) add(mode, out.value);
  if (out.threads() != seen.threads() || out.values() != seen.values()) return std::nullopt;
  for (std::int64_t t = 0; t < out.threads(); ++t)
    for (std::int64_t v = 0; v < out.values(); ++v)
      if (out.coord(t, v)[0] != packed.element_offset(seen.coord(t, v))) return std::nullopt;
  return coalesce(out);
}

std::int64_t packed_vector(const TvLayout& held, Dtype dtype) {
  return common_vector(held, {{{{held.tile[0], 1}}}, {}, bits_of(dtype)}, 16);
}

void solve_packed(const Question& question, Solution& solution) {
  std::map<TensorId, std::vector<std::pair<const Statement*, TvLayout>>> readers;
  for (const Site& site : question.sites)
    if (const auto* copy = std::get_if<Copy>(&site.statement->node); copy && question.program.tensor(copy->src.tensor).packed)
      readers[copy->src.tensor].emplace_back(site.statement,
                                             seen_from(solution.registers.at(copy->dst.tensor), copy->src.extent));
  // As one of the readers wants it, or row by row, such that all of them take the fewest accesses.
  for (const auto& [id, all] : readers) {
    const Tensor& tensor = question.program.tensor(id);
    double fewest = HUGE_VAL;
    for (std::size_t i = 0; i <= all.size(); ++i) {
      const auto& [by, wanted] = all[i % all.size()];
      const MemoryLayout packed = packed_for(i < all.size() ? wanted : TvLayout(), tensor, wanted.tile);
      double accesses = 0;
      std::int64_t widest = 1;
      for (const auto& reader : all) {
        const auto held = in_packed(reader.second, packed);
        const std::int64_t vector = held ? packed_vector(*held, tensor.dtype) : 0;
        accesses += held ? static_cast<double>(held->values()) / static_cast<double>(vector) : HUGE_VAL;
        widest = std::max(widest, vector);
      }
      if (accesses >= fewest) continue;
      fewest = accesses, solution.packed[id] = packed;
      solution.reasons[id] = {by, fmt::format("tiles of {}, of a thread's values {} bits at a time, thread by thread",
                                              text_of(wanted.tile), widest * bits_of(tensor.dtype))};
    }
  }
}
}  // namespace warploom::synth
