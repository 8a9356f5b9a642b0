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
using Modes = std::vector<layout::MemoryMode>;

// Neighbours that count on from each other are one.
void append(Modes& modes, layout::MemoryMode mode) {
  if (mode.extent == 1) return;
  if (!modes.empty() && mode.stride == modes.back().extent * modes.back().stride) modes.back().extent *= mode.extent;
  else modes.push_back(mode);
}

// In the tile's own order, row by row, where the registers' digits are not those of its coordinates.
MemoryLayout packed_for(const TvLayout& registers, const Tensor& tensor, const Tile& tile) {
  const std::size_t rank = tile.extent.size();
  std::vector<std::map<std::int64_t, layout::MemoryMode>> digits(rank);  // of each dimension, by their steps along it
  std::int64_t next = 1, room = 128 / bits_of(tensor.dtype);
  const auto lay = [&](const Coord& step, std::int64_t extent) {
    for (std::size_t d = 0; d < rank; ++d)
      if (extent > 1 && step[d] != 0) digits[d][step[d]] = {extent, next}, next *= extent;
  };
  std::vector<TvMode> later = registers.thread;  // than the first access
  for (TvMode mode : registers.value) {
    const std::int64_t first = std::gcd(mode.extent, room);
    lay(mode.step, first);
    room = first < mode.extent ? 1 : room / first;
    mode.extent /= first;
    for (std::int64_t& step : mode.step) step *= first;
    later.push_back(std::move(mode));
  }
  for (const TvMode& mode : later) lay(mode.step, mode.extent);
  MemoryLayout out{std::vector<Modes>(rank), {}, bits_of(tensor.dtype)};
  bool whole = next == element_count(tile.extent);
  for (std::size_t d = 0; d < rank; ++d) {
    std::int64_t reach = 1;
    for (const auto& [step, mode] : digits[d]) {
      whole &= step == reach;
      reach *= mode.extent;
      append(out.dims[d], mode);
    }
    whole &= reach == tile.extent[d];
  }
  if (!whole) out = layout::dense(tile.extent, rank - 1, out.element_bits);
  next = element_count(tile.extent);
  for (std::size_t d = rank; d-- > 0; next *= tensor.shape[d] / tile.extent[d])
    append(out.dims[d], {tensor.shape[d] / tile.extent[d], next});
  return out;
}
}  // namespace
std::optional<TvLayout> in_packed(const TvLayout& registers, const Tile& tile, const MemoryLayout& packed) {
  // The tile with a dimension for each digit, slower ones first.
  std::vector<std::int64_t> extents, strides;
  for (std::size_t d = 0; d < tile.extent.size(); ++d) {
    const auto first = static_cast<std::ptrdiff_t>(extents.size());
    std::int64_t left = tile.extent[d];
    for (const auto& [extent, stride] : packed.dims[d])
      if (const std::int64_t inside = std::min(extent, left); inside > 1) {
        extents.insert(extents.begin() + first, inside), strides.insert(strides.begin() + first, stride);
        left /= inside;
      }
  }
  const TvLayout seen = seen_from(registers, tile.extent), fine = seen_from(seen, extents);
  TvLayout out{{element_count(tile.extent)}, {}, {}};
  const auto flat = [&](const TvMode& mode) -> TvMode {
    return {mode.extent, {std::inner_product(mode.step.begin(), mode.step.end(), strides.begin(), std::int64_t{0})}};
  };
  for (const TvMode& mode : fine.thread) out.thread.push_back(flat(mode));
  for (const TvMode& mode : fine.value) out.value.push_back(flat(mode));
  if (out.threads() != seen.threads() || out.values() != seen.values()) return std::nullopt;
  for (std::int64_t t = 0; t < out.threads(); ++t)
    for (std::int64_t v = 0; v < out.values(); ++v)
      if (out.coord(t, v)[0] != packed.element_offset(seen.coord(t, v))) return std::nullopt;
  return coalesce(out);
}

Status solve_packed(const Question& question, Solution& solution) {
  const Program& program = question.program;
  for (TensorId id = 0; id < static_cast<TensorId>(program.tensors.size()); ++id) {
    const Tensor& tensor = program.tensor(id);
    std::vector<std::pair<const Statement*, const Copy*>> readers;
    for (const Site& site : question.sites)
      if (const auto* copy = std::get_if<Copy>(&site.statement->node); copy && tensor.packed && copy->src.tensor == id)
        readers.emplace_back(site.statement, copy);
    if (readers.empty()) continue;
    // As one of them wants it, such that all of them take the fewest accesses.
    double fewest = HUGE_VAL;
    for (const auto& [by, wanted] : readers) {
      const MemoryLayout packed =
          packed_for(seen_from(solution.registers.at(wanted->dst.tensor), wanted->src.extent), tensor, wanted->src);
      double accesses = 0, bytes = 0;
      for (const auto& reader : readers) {
        const auto held = in_packed(solution.registers.at(reader.second->dst.tensor), reader.second->src, packed);
        const double vector = held ? static_cast<double>(packed_vector(*held, tensor.dtype)) : 0;
        accesses += vector > 0 ? static_cast<double>(held->values()) / vector : HUGE_VAL;
        if (reader.second == wanted) bytes = vector * bits_of(tensor.dtype) / 8;
      }
      if (accesses >= fewest) continue;
      fewest = accesses, solution.packed[id] = packed;
      solution.reasons[id] = {by, fmt::format("tiles of {}, in each a thread's values {} bytes at a time, thread by thread",
                                              text_of(wanted->src.extent), bytes)};
    }
    if (!solution.packed.count(id))
      return fail({ErrorCode::kNoLayout, fmt::format("no order of packed tensor '{}' suits all that read it", tensor.name),
                   place_of(*readers.front().first), "digits of coordinates in threads and values",
                   to_string(coalesce(solution.registers.at(readers.front().second->dst.tensor))),
                   "use extents that are powers of two, or a tensor that is not packed"});
  }
  return ok();
}

std::int64_t packed_vector(const TvLayout& held, Dtype dtype) {
  return common_vector(held, {{{{held.tile[0], 1}}}, {}, bits_of(dtype)}, 16);
}
}  // namespace warploom::synth
