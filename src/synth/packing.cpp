// Packing: the order of a packed tensor's elements in memory follows from the registers that its
// tiles go to.
//
// Tiles lie one behind another, row by row. Inside a tile a thread's first values are neighbours,
// as many as one access moves; behind them lie those of the next thread, threads that hold copies
// left out; behind those of all threads the next access's. So every access is as wide as a thread's
// values allow, and a warp's are neighbours.
//
// Worked example: a 16x16 tile of bytes, operand of a product: 32 threads of 8 values, thread [4 :
// (0,2)] [8 : (1,0)], value [2 : (0,1)] [2 : (8,0)] [2 : (0,8)]. A thread's 8 bytes are one access:
// value digits get the strides 1, 2 and 4, thread digits 8 and 32. In the order of the coordinates
// that is  (8:32)(2:2), (2:1)(4:8)(2:4).
#include <fmt/format.h>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "layout/memory_layout.h"
#include "layout/tv_layout.h"
#include "synth/sites.h"
#include "synth/solve.h"
#include "synth/synthesize.h"
#include "tile/program.h"

namespace warploom::synth {
namespace {
using layout::Coord, layout::MemoryLayout, layout::TvMode;

// Row by row where the registers hold some elements more often than others: else their digits are
// those of the coordinates.
MemoryLayout prepacked_for(const TvLayout& seen, const Tensor& tensor) {
  const size_t rank = seen.tile.size();
  int64_t next = 1;
  int64_t room = 128 / bits_of(tensor.dtype);
  std::vector<TvMode> order;
  std::vector<TvMode> later;  // digits, fastest first; those of values after the first access
  for (TvMode mode : seen.value) {
    const int64_t first = std::gcd(mode.extent, room);
    room = first < mode.extent ? 1 : room / first;
    order.push_back({first, mode.step});
    for (int64_t& step : mode.step)
      step *= first;
    later.push_back({mode.extent / first, mode.step});
  }
  order.insert(order.end(), seen.thread.begin(), seen.thread.end());
  order.insert(order.end(), later.begin(), later.end());
  std::vector<std::map<int64_t, layout::MemoryMode>> digits(
      rank);  // of each dimension, by their steps along it
  const bool exact = seen.is_exact();
  for (const auto& [extent, step] : order)
    for (size_t d = 0; d < rank; ++d)
      if (exact && extent > 1 && step[d] != 0) {
        digits[d][step[d]] = {extent, next};
        next *= extent;
      }
  MemoryLayout out = layout::dense(seen.tile, rank - 1, bits_of(tensor.dtype));
  next = element_count(seen.tile);
  for (size_t d = rank; d-- > 0; next *= tensor.shape[d] / seen.tile[d]) {
    if (exact) out.dims[d].clear();
    for (const auto& digit : digits[d])
      out.dims[d].push_back(digit.second);
    if (tensor.shape[d] > seen.tile[d]) {
      const int64_t tiles = tensor.shape[d] / seen.tile[d];
      out.dims[d].push_back({tiles, next});
    }
  }
  return out;
}
}  // namespace

void solve_prepacked(const SynthesisContext& question, Solution& solution) {
  std::map<TensorId, std::vector<std::pair<const Statement*, TvLayout>>> readers;
  for (const Site& site : question.sites)
    if (const auto* copy = site.statement->as<Copy>();
        copy && question.program.tensor(copy->src.tensor).prepacked) {
      const TvLayout& registers = solution.registers.at(copy->dst.tensor);
      const TvLayout wanted = seen_from(registers, copy->src.extent);
      readers[copy->src.tensor].emplace_back(site.statement, wanted);
    }
  // As that reader wants it with whom all of them take the fewest accesses.
  for (const auto& [id, all] : readers) {
    double fewest = HUGE_VAL;
    for (const auto& [by, wanted] : all) {
      const MemoryLayout packed = prepacked_for(wanted, question.program.tensor(id));
      double accesses = 0;
      for (const auto& [reader, layout] : all) {
        const auto vector = as_double(common_vector(layout, packed, 16));
        accesses += as_double(layout.values()) / vector;
      }
      if (accesses >= fewest) continue;
      fewest = accesses;
      solution.prepacked[id] = packed;
      const int64_t bits = common_vector(wanted, packed, 16) * packed.element_bits;
      const std::string why =
          fmt::format("tiles of {}, of a thread's values {} bits at a time, thread by thread",
                      text_of(wanted.tile), bits);
      solution.reasons[id] = {by->id, why};
    }
  }
}
}  // namespace warploom::synth
