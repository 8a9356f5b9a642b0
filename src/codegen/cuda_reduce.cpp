// Reductions: over a thread's own values, then across lanes by butterflies, then across warps through shared memory, then across
// the blocks of a cluster through each other's shared memory.

#include <fmt/ranges.h>
#include "codegen/cuda_emitter.h"
namespace warploom::codegen {
using layout::TvLayout;
using namespace tile;
namespace {
const char* identity(ReduceOp op) {
  return op == ReduceOp::sum ? "0.0f" : op == ReduceOp::max ? "(-1.0f / 0.0f)" : "(1.0f / 0.0f)";
}
}  // namespace
std::string combined(ReduceOp op, const std::string& a, const std::string& b) {
  switch (op) {
    case ReduceOp::sum: return fmt::format("{} + {}", a, b);
    case ReduceOp::max: return fmt::format("wl::max({}, {})", a, b);
    case ReduceOp::min: return fmt::format("wl::min({}, {})", a, b);
  }
  return a;
}

bool lanes_pair_up(const TvLayout& layout, std::size_t axis) {
  std::int64_t below = 1;
  for (const auto& mode : layout.thread) {
    const std::int64_t inside = below < 32 ? std::min(mode.extent, 32 / below) : mode.extent;
    if (mode.extent % inside || (mode.step[axis] != 0 && below < 32 && 32 % (below * inside))) return false;
    below *= mode.extent;
  }
  return true;
}

// Reductions combine floats; a result of another type is rounded once, at the end.
template <class Node>
void CudaEmitter::reduce_as_float(const Node& node, bool from_dst, void (CudaEmitter::*make)(const Node&, const std::string&)) {
  if (tensor(node.dst).dtype == Dtype::f32) return (this->*make)(node, name(node.dst));
  const std::int64_t values = registers(node.dst).values();
  out_.open("{{");
  out_.line("WL_REG(float, total, {});", values);
  if (from_dst) out_.line("WL_UNROLL for (int i = 0; i < {}; ++i) total[i] = {};", values, as_float(node.dst, "i"));
  (this->*make)(node, "total");
  store_floats(node.dst, "total");
  out_.close();
}
void CudaEmitter::emit(const Reduce& node) { reduce_as_float(node, false, &CudaEmitter::reduce_into); }
void CudaEmitter::emit(const ClusterReduce& node) { reduce_as_float(node, true, &CudaEmitter::cluster_reduce_into); }

void CudaEmitter::reduce_into(const Reduce& node, const std::string& dst) {
  const TvLayout& src = registers(node.src);
  const auto axis = static_cast<std::size_t>(node.axis);
  const std::int64_t dst_values = registers(node.dst).values();

  // 1. A thread's own values. Several independent partial results would shorten the chain; the compiler may not make them, so
  //    sums over many values are kept in four.
  const auto loops = value_loops(src, 1);
  std::vector<std::string> kept;
  std::int64_t stride = 1;
  for (const ValueLoop& loop : loops) {
    if (loop.step[axis] != 0) continue;
    kept.push_back(times(loop.variable, stride));
    stride *= loop.extent;
  }
  const std::string target = fmt::format("{}[{}]", dst, sum(kept));
  out_.line("WL_UNROLL for (int i = 0; i < {}; ++i) {}[i] = {};", dst_values, dst, identity(node.op));
  open_loops(loops);
  out_.line("{} = {};", target, combined(node.op, target, as_float(node.src, value_index(loops))));
  close_loops(loops);

  // 2. Lanes along the axis.
  if (!lanes_pair_up(src, axis))
    return error({ErrorCode::kNoInstruction, "no reduction follows this layout along the axis", program_.name,
                  "powers of two of a warp's lanes", layout::to_string(coalesce(src)), "use another number of warps"});
  const std::vector<ThreadDigit> digits = thread_digits(src);
  std::vector<std::int64_t> masks;
  for (const ThreadDigit& d : digits)
    if (d.of_lane() && d.step[axis] != 0)
      for (std::int64_t bit = d.below; bit < d.below * d.extent; bit *= 2) masks.push_back(bit);
  if (!masks.empty()) {
    out_.open("WL_UNROLL for (int i = 0; i < {}; ++i) {{", dst_values);
    for (const auto mask : masks)
      out_.line("{0}[i] = {1};", dst, combined(node.op, dst + "[i]", fmt::format("wl::shfl_xor({}[i], {})", dst, mask)));
    out_.close();
  }

  // 3. Warps along the axis: slot [warp along the axis][other thread digits][value].
  std::int64_t warps_along = 1, others = 1;
  std::vector<std::string> warp_index, other_index, writers;
  for (const ThreadDigit& d : digits) {
    const std::string mine = digit(d.below, d.extent);
    if (d.step[axis] == 0) {
      other_index.push_back(times(mine, others));
      others *= d.extent;
    } else if (d.of_lane()) {
      writers.push_back(fmt::format("{} == 0", mine));
    } else {
      warp_index.push_back(times(mine, warps_along));
      warps_along *= d.extent;
    }
  }
  if (warps_along == 1) return;
  const auto [at, scratch_id, base] = scratch(0, &node, warps_along * others * dst_values * 4);
  before_write(scratch_id);
  const std::int64_t row = others * dst_values * 4;
  if (!writers.empty()) out_.open("if ({}) {{", fmt::join(writers, " && "));
  out_.line("WL_UNROLL for (int i = 0; i < {}; ++i)", dst_values);
  out_.line(
      "  wl::st_shared<4>({}, wl::at({}, i));",
      sum({base, times(parenthesized(sum(warp_index)), row), times(parenthesized(sum(other_index)), dst_values * 4), "i * 4"}),
      dst);
  if (!writers.empty()) out_.close();
  before_read(scratch_id);
  combine_slots(node.op, dst, dst_values, "w", warps_along,
                sum({base, fmt::format("w * {}", row), times(parenthesized(sum(other_index)), dst_values * 4), "i * 4"}));
}

// The parts that lie in `count` slots, numbered by `slot`, one after another into dst; the i-th value's address in one of them.
void CudaEmitter::combine_slots(ReduceOp op, const std::string& dst, std::int64_t values, const std::string& slot,
                                std::int64_t count, const std::string& address) {
  out_.line("WL_UNROLL for (int i = 0; i < {}; ++i) {}[i] = {};", values, dst, identity(op));
  out_.open("WL_UNROLL for (int {0} = 0; {0} < {1}; ++{0}) {{", slot, count);
  out_.open("WL_UNROLL for (int i = 0; i < {}; ++i) {{", values);
  out_.line("WL_REG(float, other, 1);");
  out_.line("wl::ld_shared<4>(wl::at(other, 0), {});", address);
  out_.line("{0}[i] = {1};", dst, combined(op, dst + "[i]", "other[0]"));
  out_.close();
  out_.close();
}

// Every block writes its part into a slot of every block of the cluster, then all combine the same slots in the same order.
void CudaEmitter::cluster_reduce_into(const ClusterReduce& node, const std::string& dst) {
  const std::int64_t blocks = cluster_size(program_);
  const TvLayout& layout = registers(node.dst);
  const std::int64_t values = layout.values();
  std::int64_t below = 1, others = 1;
  std::vector<std::string> other_index;
  for (const auto& mode : layout.thread) {
    bool moves = false;
    for (const auto step : mode.step) moves |= step != 0;
    if (moves && mode.extent > 1) {
      other_index.push_back(times(digit(below, mode.extent), others));
      others *= mode.extent;
    }
    below *= mode.extent;
  }
  const std::int64_t row = others * values * 4;
  const auto [offset, id, base] = scratch(1, &node, blocks * row);
  if (now_.read_slots.count(offset)) out_.line("wl::cluster_sync();  // every block has read the slots of the round before");
  const std::string guard = first_replica(layout);
  const std::string slot =
      sum({base, fmt::format("wl::cluster_rank() * {}", row), times(parenthesized(sum(other_index)), values * 4), "i * 4"});
  if (!guard.empty()) out_.open("if ({}) {{", guard);
  out_.open("for (int peer = 0; peer < {}; ++peer) {{", blocks);
  out_.line("WL_UNROLL for (int i = 0; i < {}; ++i) wl::st_shared_cluster<4>(wl::mapa({}, peer), wl::at({}, i));", values, slot,
            dst);
  out_.close();
  if (!guard.empty()) out_.close();
  out_.line("wl::cluster_sync();");
  now_.read_slots = {offset};  // whatever was read before this barrier has been read by all
  combine_slots(node.op, dst, values, "peer", blocks,
                sum({base, fmt::format("peer * {}", row), times(parenthesized(sum(other_index)), values * 4), "i * 4"}));
}
}  // namespace warploom::codegen
