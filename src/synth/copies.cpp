// The instruction of every copy between memories and registers, and of every change of layout.
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "layout/memory_layout.h"
#include "layout/tv_layout.h"
#include "synth/shared_solver.h"
#include "synth/sites.h"
#include "synth/solve.h"
#include "synth/synthesize.h"
#include "target/instruction.h"
#include "tile/print.h"
#include "tile/program.h"

namespace warploom::synth {
namespace {
using layout::TvMode;

// How many matrices of 8 rows of 16 bytes one matrix load or store can move for this register
// layout (1, 2 or 4), 0 when it does not have the shape. Plain form: lane%4 holds 4 bytes along the
// contiguous dimension, lane/4 the row. Transposed (2-byte elements only): lane%4 holds two rows,
// lane/4 the column.
int matrix_count(const TvLayout& registers, const MemoryLayout& memory, size_t c, bool transpose) {
  const int bytes = memory.element_bits / 8;
  if (registers.tile.size() != 2 || bytes < 1 || bytes > 4 || (transpose && bytes != 2) ||
      registers.thread.size() < 2)
    return 0;
  const size_t o = 1 - c;
  const auto is = [&](const TvMode& mode, int64_t extent, size_t dim, int64_t step) {
    const bool along_dim = mode.step[dim] == step && mode.step[1 - dim] == 0;
    return mode.extent == extent && along_dim;
  };
  const int64_t unit = 4 / bytes;  // elements in 32 bits
  const size_t pair = unit > 1 ? 1 : 0;
  if (pair && (registers.value.empty() || !is(registers.value[0], unit, transpose ? o : c, 1)))
    return 0;
  if (!is(registers.thread[0], 4, transpose ? o : c, unit) ||
      !is(registers.thread[1], 8, transpose ? c : o, 1))
    return 0;
  // Rows of 16 bytes must stay whole: nothing else may step along the contiguous dimension by less
  // than a row.
  const int64_t row = 16 / bytes;
  if (memory.dims[c].empty() || memory.dims[c][0].stride != 1 || memory.dims[c][0].extent % row)
    return 0;
  if (memory.swizzle.bits && memory.swizzle.base < 4) return 0;
  for (size_t i = pair; i < registers.value.size(); ++i)
    if (registers.value[i].step[c] % row) return 0;
  for (size_t i = 2; i < registers.thread.size(); ++i)
    if (registers.thread[i].step[c] % row) return 0;
  const auto extent_of = [&](size_t i) {
    return i < registers.value.size() ? registers.value[i].extent : int64_t{1};
  };
  const int64_t first = extent_of(pair);
  const int64_t second = extent_of(pair + 1);
  if (first % 4 == 0 || (first == 2 && second % 2 == 0)) return 4;
  return first % 2 == 0 ? 2 : 1;
}
}  // namespace

// The row that moves such a copy; null where the target has none.
const Instruction* SharedSolver::row_of(Method method, const Copy& copy, bool transpose) const {
  for (const Instruction& row : target::instructions_of(capabilities.arch))
    if (row.m == 0 && row.method == method && row.from == scope_of(copy.src) &&
        row.to == scope_of(copy.dst) && row.transpose == transpose)
      return &row;
  return nullptr;
}

// The instruction that moves matrices of 16-byte rows for such a copy, and how many at once; null
// where none does.
std::pair<const Instruction*, int> SharedSolver::matrix_row(const Copy& copy, const TvLayout& tv,
                                                            const MemoryLayout& layout,
                                                            size_t contiguous) const {
  const Dtype from = program.tensor(copy.src.tensor).dtype;
  const bool one_type = from == program.tensor(copy.dst.tensor).dtype;
  for (const bool transpose : {false, true})
    if (const Instruction* row = row_of(Method::ldmatrix, copy, transpose);
        row && one_type && !copy.peer)
      if (const int count = matrix_count(tv, layout, contiguous, transpose)) return {row, count};
  return {};
}

Status SharedSolver::choose(const Site& site, const Copy& copy, const Sides& sides) {
  if (!sides.global && !sides.registers) {
    const std::string place = place_of(*site.statement);
    const std::string found = print(program, *site.statement);
    return fail({ErrorCode::kNoInstruction, "no copy moves from shared to shared memory", place,
                 "a register tensor on a side", found,
                 "copy through a register tensor of the tile's shape"});
  }
  if (!sides.global && !sides.shared) return ok();
  InstructionChoice& choice = solution_.choices[site.statement->id];
  if (sides.registers)
    choose_vectors(copy, sides, choice);
  else
    WARPLOOM_CHECK(choose_between(site, copy, sides, choice));
  return check_bytes(site, copy.src, choice);
}

// Between registers and memory.
void SharedSolver::choose_vectors(const Copy& copy, const Sides& sides,
                                  InstructionChoice& choice) const {
  const Tile& memory = sides.global ? *sides.global : *sides.shared;
  const Tile& side = *sides.registers;
  const Tensor& tensor = program.tensor(memory.tensor);
  const Tensor& other = program.tensor(side.tensor);
  const TvLayout tv = seen_from(solution_.registers.at(side.tensor), memory.extent);
  choice.instruction = row_of(Method::plain, copy);
  if (sides.global) {
    MemoryLayout view;  // the box as memory, to find common vectors
    view.element_bits = bits_of(tensor.dtype);
    for (size_t d = 0; d < tensor.shape.size(); ++d) {
      const int64_t stride = tensor.strides[d] * memory.step_along(d);
      view.dims.push_back({{memory.extent[d], stride}});
    }
    if (tensor.prepacked) view = solution_.prepacked.at(memory.tensor);
    const int64_t limit =
        tensor.prepacked ? element_count(memory.extent) : vector_limit(program, bounds, memory);
    choice.vector = as_int(std::min(limit, common_vector(tv, view, 16)));
    choice.why = "the widest vectors that lanes, strides and edges allow";
    return;
  }
  const MemoryLayout& layout = solution_.shared.at(memory.tensor);
  const size_t contiguous = contiguous_dim(layout, tensor);
  if (const auto [row, count] = matrix_row(copy, tv, layout, contiguous); row) {
    choice = {row, count, {}, "fragments that are matrices of 8 rows of 16 bytes"};
    return;
  }
  if (tensor.dtype == other.dtype) choice.vector = as_int(common_vector(tv, layout, 16));
  while (choice.vector > 1 && memory.offset[contiguous].known_divisor() % choice.vector)
    choice.vector /= 2;
  choice.why = "the widest vectors that both layouts have in common";
}

// Nothing but tma signals the roles that wait for a stage.
tl::unexpected<Error> SharedSolver::cannot_fill(const Site& site, const Unmet& lack) const {
  std::string consumer;
  for (const Site& other : sites)
    if (const auto* consume = other.statement->as<Consume>();
        consume && consume->pipeline == site.producing && consumer.empty())
      consumer = place_of(*other.statement);
  const std::string& pipeline = program.pipeline(site.producing).name;
  const std::string statement = print(program, *site.statement);
  Error error{ErrorCode::kNoInstruction};
  error.message = fmt::format("no instruction of {} can fill pipeline '{}' from another role",
                              capabilities.arch, pipeline);
  error.place = place_of(*site.statement);
  error.expected = fmt::format("for TMA: {}", lack.expected);
  error.found =
      fmt::format("{}: {}; another role consumes the stage ({})", statement, lack.found, consumer);
  error.remedy =
      "pad or copy the tensor first, or produce and consume in one thread of control: "
      "its threads copy themselves";
  return fail(error);
}

Status SharedSolver::choose_between(const Site& site, const Copy& copy, const Sides& sides,
                                    InstructionChoice& choice) const {
  const Tile& global = *sides.global;
  const Tile& shared = *sides.shared;
  const Tensor& tensor = program.tensor(global.tensor);
  const MemoryLayout& layout = solution_.shared.at(shared.tensor);
  const auto met = met_by(shared, global, contiguous_dim(tensor));
  const auto is_contiguous = [](const auto& modes) {
    return !modes.empty() && modes[0].stride == 1;
  };
  const bool aligned = met && is_contiguous(layout.dims[*met]);
  auto lack = tma_lacks(site, copy);
  if (!lack && !aligned)
    lack = Unmet{"the stage contiguous along the dimension that the tensor is",
                 fmt::format("'{}' is not", program.tensor(shared.tensor).name)};
  if (!lack) {
    choice = {row_of(Method::tma, copy), 1, {}, "strides, start and width in steps of 16 bytes"};
    return ok();
  }
  if (site.producing >= 0 && is_between_roles(sites, site.producing))
    return cannot_fill(site, *lack);
  // Threads copy: spread vectors over them.
  int vector = aligned ? vector_limit(program, bounds, global) : 1;
  while (vector > 1 && shared.offset[*met].known_divisor() % vector)
    vector /= 2;
  const bool one_type = tensor.dtype == program.tensor(shared.tensor).dtype;
  const bool fills_stage = sides.load && site.producing >= 0 && copy.fill == 0;
  const bool may_be_async = capabilities.has_cp_async && fills_stage && one_type;
  const auto is_async = [&] { return may_be_async && bytes_of(tensor.dtype, vector) >= 4; };
  const char* const why = is_async() ? "a fill by the threads that use it"
                                     : "through registers: no asynchronous copy fits";
  for (; vector >= 1; vector /= 2) {
    const size_t fastest = met.value_or(shared.extent.size() - 1);
    auto mapping = layout::coalesced(shared.extent, fastest, vector, site.threads);
    if (!mapping || common_vector(*mapping, layout, 16) < vector) continue;
    if (!meets_whole(*mapping, global.extent)) continue;
    const Instruction* const row = is_async() ? row_of(Method::cp_async, copy) : nullptr;
    choice = {row, vector, std::move(*mapping), why};
    return ok();
  }
  return fail(not_spread(program, site, shared.tensor));
}

Status SharedSolver::check_bytes(const Site& site, const Tile& tile,
                                 const InstructionChoice& choice) const {
  const Tensor& tensor = program.tensor(tile.tensor);
  const int least = per_byte(tensor.dtype);
  if (choice.by(Method::tma) || choice.vector >= least) return ok();
  Error error{ErrorCode::kNoLayout, "an access would move less than a byte"};
  error.place = place_of(*site.statement);
  error.expected = fmt::format("{} neighbours of {} in one thread", least, name_of(tensor.dtype));
  error.found = print(program, *site.statement);
  error.remedy =
      "let the dimension that is contiguous in memory run fastest, or copy to a wider "
      "type first";
  return fail(error);
}

// Within warps where that takes less than a way through shared memory, whose layout suits the
// writers and the readers.
Status SharedSolver::choose_conversion(const Site& site, const ConvertLayout& node) {
  constexpr double kBarriers = 16;  // of the way there and back, in shuffles
  const Tensor& tensor = program.tensor(node.dst);
  const int bits = bits_of(tensor.dtype);
  const TvLayout written = flipped(solution_.registers.at(node.src), node.transpose);
  const TvLayout& read = solution_.registers.at(node.dst);
  const TvLayout sides[] = {written, read};
  InstructionChoice& choice = solution_.choices[site.statement->id];
  double best = -1;
  for (size_t contiguous = tensor.shape.size(); contiguous-- > 0;) {
    MemoryLayout layout = layout::dense(tensor.shape, contiguous, bits);
    std::vector<SharedAccess> accesses;
    for (const TvLayout& side : sides)
      if (const auto bytes = common_vector(side, layout, 16) * bits / 8; bytes > 0)
        accesses.push_back({side, as_int(bytes)});
    if (accesses.size() < 2) continue;
    layout.swizzle = choose_swizzle(accesses, layout);
    double cost = kBarriers;
    for (const auto& [side, bytes] : accesses) {
      const auto bits_moved = as_double(side.values() * bits);
      const double count = bits_moved / std::min(32, bytes * 8);
      cost += count * bank_conflict_ways(side, layout, bytes);
    }
    if (best < 0 || cost < best) {
      best = cost;
      choice.scratch = layout;
      choice.vector = accesses[1].access_bytes * 8 / bits;
    }
  }
  const auto exchange = warp_shuffle_plan(sides[0], sides[1], bits);
  if (exchange && (best < 0 || as_double(exchange->shuffles()) <= best)) {
    choice.scratch = {};
    choice.vector = exchange->unit;
  } else if (best < 0)
    choice.vector = 0;
  choice.why = choice.scratch.dims.empty()
                   ? "no element changes warps, and lanes exchange few"
                   : "a way through shared memory takes less than exchanges between lanes";
  return check_bytes(site, whole(program, node.dst), choice);
}
}  // namespace warploom::synth
