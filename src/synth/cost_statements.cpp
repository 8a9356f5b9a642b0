// What single statements cost: the work of a tile on each unit, the sectors that copies touch, the
// DRAM traffic of a wave.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/value_op.h"
#include "layout/memory_layout.h"
#include "layout/tv_layout.h"
#include "synth/cost_model.h"
#include "synth/sites.h"
#include "synth/solve.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::synth {
double CostModel::bytes_in(const Tile& tile) const {
  return elements_of(tile) * bits_of(program.tensor(tile.tensor).dtype) / 8;
}

double CostModel::values(TensorId id) const {
  const auto found = solution_.registers.find(id);
  if (found == solution_.registers.end()) return 1;
  return as_double(found->second.values());
}

// 32-byte sectors that the lanes of one warp touch in one access.
double CostModel::sectors(const Tile& global, const TvLayout& lanes, int vector) const {
  const Tensor& tensor = program.tensor(global.tensor);
  std::set<int64_t> touched;
  for (int64_t lane = 0; lane < std::min<int64_t>(32, lanes.threads()); ++lane) {
    const auto at = lanes.coord(lane, 0);
    int64_t element =
        tensor.prepacked ? solution_.prepacked.at(global.tensor).element_offset(at) : 0;
    for (size_t d = 0; d < at.size() && !tensor.prepacked; ++d)
      element += at[d] * global.step_along(d) * tensor.strides[d];
    const int64_t first = element * bits_of(tensor.dtype) / 8;
    const int64_t last = first + bytes_of(tensor.dtype, vector) - 1;
    for (int64_t sector = first / 32; sector <= last / 32; ++sector)
      touched.insert(sector);
  }
  return as_double(touched.size());
}

// The part of a global box that lies inside its tensor: what lies outside is not moved.
template <class Starts>
double CostModel::inside(const Tile& global, const Starts& start_along) const {
  const Tensor& tensor = program.tensor(global.tensor);
  double part = 1;
  for (size_t d = 0; d < global.extent.size(); ++d) {
    if (global.gathered_along(d)) continue;
    const int64_t start = start_along(d);
    const int64_t step = global.step_along(d);
    const int64_t extent = global.extent[d];
    const int64_t steps_to_edge = (tensor.shape[d] - start + step - 1) / step;
    const int64_t end = std::clamp<int64_t>(steps_to_edge, 0, extent);
    const int64_t steps_before = (step - 1 - start) / step;  // of the tensor's first element
    const int64_t kept = end - std::clamp<int64_t>(steps_before, 0, end);
    part *= as_double(kept) / as_double(global.extent[d]);
  }
  return part;
}

Work CostModel::cost_of(const Statement&, const Fill& node, int threads) {
  return compute(values(node.dst), threads);
}

Work CostModel::cost_of(const Statement&, const Map& node, int threads) {
  return compute(values(node.dst) * operations(node.value), threads);
}

Work CostModel::compute(double per_thread, int threads) const {
  const double groups = std::max(1.0, threads / 128.0);  // that share the SM's four schedulers
  return {.issue = per_thread * threads / 32, .chain = per_thread * groups};
}

double CostModel::operations(const Value& value) const {
  double count = 0;
  if (value.kind == Value::Kind::op) {
    using enum ValueOp;
    static constexpr std::array kCheap = {add, sub, mul, max, min, fma, where, less, equal};
    count = std::ranges::count(kCheap, value.op) > 0 ? 1 : rates_.special_issue;
  }
  for (const Value& operand : value.operands)
    count += operations(operand);
  return std::max(count, 0.5);
}

Work CostModel::cost_of(const Statement&, const Reduce& node, int threads) {
  const TvLayout& source = solution_.registers.at(node.src);
  const auto axis = as_size(node.axis);
  int64_t lanes = 1;
  int64_t warps = 1;
  for (const layout::ThreadDigit& digit : thread_digits(source, true))
    if (digit.step[axis] != 0) (digit.of_lane() ? lanes : warps) *= digit.extent;
  Work work = compute(values(node.src), threads);
  const double results = values(node.dst);
  const double steps = std::log2(as_double(lanes));
  work.issue += 3 * results * steps * threads / 32;
  work.chain += results * steps * rates_.shuffle_cycles / std::min(results, 4.0);
  const double exchange = 2 * rates_.barrier_cycles + 2 * rates_.shared_latency;
  if (warps > 1) work.chain += exchange + as_double(warps) * results;
  return work;
}

// A scan is a reduction whose steps every element takes part in; a rearrangement crosses shared
// memory, or shuffles.
Work CostModel::cost_of(const Statement& statement, const Scan& node, int threads) {
  const Reduce reduction{node.dst, node.src, node.axis, node.op};
  Work work = cost_of(statement, reduction, threads);
  work.add(compute(values(node.src), threads));
  return work;
}

Work CostModel::cost_of(const Statement& statement, const ConvertLayout& node, int threads) {
  Work work = compute(values(node.src), threads);
  const auto choice = solution_.choices.find(statement.id);
  if (choice == solution_.choices.end() || choice->second.scratch.dims.empty()) return work;
  const int bits = bits_of(program.tensor(node.src).dtype);
  const double bytes = 2 * values(node.src) * threads * bits / 8;  // there and back
  work.shared = bytes / rates_.shared_bytes;
  work.chain += 2 * rates_.barrier_cycles + rates_.shared_latency + work.shared;
  return work;
}

Work CostModel::cost_of(const Statement&, const ClusterReduce& node, int threads) {
  Work work = compute(values(node.dst) * as_double(cluster_size(program)), threads);
  work.chain += rates_.cluster_cycles;
  return work;
}

Work CostModel::cost_of(const Statement&, const ClusterSync&, int) {
  return {.chain = rates_.cluster_cycles};
}

Work CostModel::cost_of(const Statement& statement, const Mma& node, int threads) {
  const Instruction& row = *solution_.choices.at(statement.id).instruction;
  const auto& acc = program.tensor(node.acc).shape;
  const double k = elements_of(node.a) / as_double(acc[0]);
  const double m = as_double(acc[0]);
  const double n = as_double(acc[1]);
  if (row.method == Method::wgmma) {
    const double groups = threads / 128.0;
    const double calls = m / row.m / groups * (k / row.k);       // of one warpgroup
    const double bytes = 32 * (n + (row.a_shared ? row.m : 0));  // of operands, a call
    const double tensor = calls * groups * row.cycles * n / 256;
    const double shared = calls * groups * bytes / rates_.shared_bytes;
    const double chain = std::max(tensor, shared) + rates_.shared_latency;
    const double issue = calls * groups * 4 * 4;
    return {.tensor = tensor, .issue = issue, .shared = shared, .chain = chain};
  }
  const double columns = n / std::max(1, row.n);
  const double units = threads / as_double(row.threads);
  const double calls = m / row.m * columns * (k / row.k) / units;  // of one unit
  const double warps = threads / 32.0;
  const bool on_tensor_cores = row.method == Method::mma_sync;
  const double cycles = on_tensor_cores ? rates_.warp_matrix_cycles : 1.1;
  Work work;
  if (on_tensor_cores) work.tensor = calls * cycles * warps / 4;
  work.issue = calls * warps * (on_tensor_cores ? 1 : 1.1);
  work.chain = calls * cycles * std::max(1.0, warps / 4);
  return work;
}

Work CostModel::cost_of(const Statement& statement, const Copy& node, int threads) {
  const Sides sides = sides_of(program, node);
  if (sides.global) count_boxes(*sides.global);
  if (!sides.global && !sides.shared) {
    const bool rounds = program.tensor(node.dst.tensor).dtype == Dtype::tf32;
    const double a_value = rounds ? 2 * rates_.special_issue : 1;
    return compute(values(node.dst.tensor) * a_value, threads);
  }
  const InstructionChoice& choice = solution_.choices.at(statement.id);
  const Tile& memory = sides.global ? *sides.global : *sides.shared;
  const double warps = threads / 32.0;
  const auto start_along = [&](size_t d) { return memory.offset[d].evaluate(first_); };
  const double part = sides.global ? inside(memory, start_along) : 1;
  Work work;
  if (choice.by(Method::tma)) {
    work.l2_bytes = bytes_in(memory) * part;
    for (size_t d = 0; d < 3; ++d)  // one fetch serves the blocks that share it
      if (node.multicast.find("xyz"[d]) != std::string::npos)
        work.l2_bytes /= as_double(program.cluster[d]);
    work.shared = bytes_in(memory) / rates_.shared_bytes;
    work.issue = 16;
    const double store = rates_.store_latency + 2 * rates_.barrier_cycles;
    if (!sides.load) work.chain = store + work.l2_bytes / rates_.l2_bytes;
    return work;
  }
  const TvLayout& tv =
      sides.registers ? solution_.registers.at(sides.registers->tensor) : choice.mapping;
  const TvLayout lanes = seen_from(tv, memory.extent);
  if (sides.global) {
    const auto a_thread = as_double(tv.values());
    const double accesses = std::max(1.0, a_thread / choice.vector);
    const double touched = sectors(memory, lanes, choice.vector);
    work.issue = accesses * warps * rates_.access_issue;
    work.l2_bytes = accesses * warps * touched * 32 * part;
    work.shared = accesses * warps * std::max(1.0, touched * 32 / rates_.shared_bytes);
    if (sides.shared) work.shared += bytes_in(*sides.shared) / rates_.shared_bytes;
    const double waiting = sides.load ? rates_.memory_latency : rates_.store_latency;
    work.chain = waiting + std::max(work.l2_bytes / rates_.l2_bytes, work.issue / 4);
    return work;
  }
  const auto& shared = solution_.shared.at(memory.tensor);
  const bool matrix = choice.by(Method::ldmatrix);
  const double bytes = shared.element_bits / 8.0;
  const double width = matrix ? 4 * choice.vector : choice.vector * bytes;  // a lane, an access
  const auto a_thread = as_double(lanes.values());
  const double accesses = std::max(1.0, a_thread * bytes / width);
  const int access_bytes = std::max(1, as_int(width));
  const double ways = matrix ? 1 : layout::bank_conflict_ways(lanes, shared, access_bytes);
  work.issue = accesses * warps * rates_.access_issue / 2;
  work.shared = accesses * warps * std::max(1.0, 32.0 * width / rates_.shared_bytes) * ways;
  work.chain = rates_.shared_latency + work.shared + (sides.load ? 0 : rates_.barrier_cycles);
  return work;
}

// Bytes that must come from DRAM, and go there: distinct boxes of one wave of blocks, times the
// waves.
double CostModel::dram_bytes() const {
  const auto size_of = [&](TensorId id) {
    const Tensor& tensor = program.tensor(id);
    const auto elements = as_double(span_of(tensor.shape, tensor.strides));
    return elements * bits_of(tensor.dtype) / 8;
  };
  double total = 0;
  double held = 0;
  for (const auto& [id, read] : traffic_)
    held += std::min(read, size_of(id));
  const bool fits = held < 0.7 * as_double(capabilities.l2_bytes);
  for (const auto& [id, read] : traffic_)
    total += fits ? std::min(read, size_of(id)) : read;
  return total;
}

void CostModel::count_boxes(const Tile& tile) {
  std::vector<std::vector<int64_t>> starts;  // along each dimension
  for (const Index& offset : tile.offset)
    starts.push_back(wave_.values(offset));
  const auto before = [&](size_t a, size_t b) {
    const auto differs = [&](const auto& along) { return along[a] != along[b]; };
    const auto along = std::ranges::find_if(starts, differs);
    return along != starts.end() && (*along)[a] < (*along)[b];
  };
  std::set<size_t, decltype(before)> boxes(before);  // one block of each
  double part = 0;
  for (size_t block = 0; block < wave_.blocks; ++block)
    if (boxes.insert(block).second)
      part += inside(tile, [&](size_t d) { return starts[d][block]; });
  double bytes = part * bytes_in(tile) * (blocks_ / as_double(wave_.blocks));
  for (const Loop& loop : loops_) {
    const auto moves = [&](const Index& offset) { return offset.depends_on(loop.variable); };
    if (std::ranges::any_of(tile.offset, moves)) bytes *= loop.trips;
  }
  traffic_[tile.tensor] += bytes;
}
}  // namespace warploom::synth
