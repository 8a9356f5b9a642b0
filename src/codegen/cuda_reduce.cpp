// Reductions: over a thread's own values, then across lanes by butterflies, then across warps through shared memory, then across
// the blocks of a cluster through each other's shared memory.

#include "codegen/cuda_emitter.h"
namespace warploom::codegen {
std::string combined(ReduceOp op, const std::string& a, const std::string& b) {
  if (op == ReduceOp::sum) return fmt::format("{} + {}", a, b);
  return fmt::format("wl::{}({}, {})", name_of(reduction_of(op).combine), a, b);
}

bool lanes_pair_up(const TvLayout& layout, std::size_t axis) {
  return std::ranges::all_of(thread_modes(layout), [&](const ThreadDigit& mode) {
    const std::int64_t inside = mode.of_lane() ? std::min(mode.extent, 32 / mode.below) : mode.extent;
    return mode.extent % inside == 0 && (mode.step[axis] == 0 || !mode.of_lane() || 32 % (mode.below * inside) == 0);
  });
}

// Reductions combine floats; a result of another type is rounded once, at the end.
void CudaEmitter::emit(const Reduce& node) {
  as_floats(node.dst, tensor(node.dst).dtype == Dtype::f32, "total", [&](const auto& dst) { reduce_into(node, dst); });
}
void CudaEmitter::emit(const ClusterReduce& node) {
  const bool own = tensor(node.dst).dtype == Dtype::f32;
  as_floats(node.dst, own, "total", [&](const std::string& dst) {
    if (!own) assign(dst, registers(node.dst).values(), as_float(node.dst));
    cluster_reduce_into(node, dst);
  });
}

void CudaEmitter::reduce_into(const Reduce& node, const std::string& dst) {
  const TvLayout& src = registers(node.src);
  const auto axis = static_cast<std::size_t>(node.axis);
  const std::int64_t dst_values = registers(node.dst).values();

  // 1. A thread's own values.
  const auto loops = value_loops(src, 1);
  Digits kept;
  for (const ValueLoop& loop : loops)
    if (loop.step[axis] == 0) kept.add(loop.variable, loop.extent);
  const std::string target = fmt::format("{}[{}]", dst, kept.number.text());
  assign(dst, dst_values, float_text(reduction_of(node.op).identity));
  {
    const auto turns = open_loops(loops);
    out_.line("{} = {};", target, combined(node.op, target, as_float(node.src, value_index(loops))));
  }

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
    const auto values = unrolled("i", dst_values);
    for (const auto mask : masks)
      out_.line("{0}[i] = {1};", dst, combined(node.op, dst + "[i]", fmt::format("wl::shfl_xor({}[i], {})", dst, mask)));
  }

  // 3. Warps along the axis: slot [warp along the axis][other thread digits][value].
  Digits warps, others;
  std::vector<std::string> writers;
  for (const ThreadDigit& d : digits) {
    const Index mine = digit(d.below, d.extent);
    if (d.step[axis] == 0) others.add(mine, d.extent);
    else if (d.of_lane()) writers.push_back(mine.text() + " == 0");
    else warps.add(mine, d.extent);
  }
  if (warps.count == 1) return;
  const std::int64_t row = others.count * dst_values * 4;
  const Scratch place = scratch(0, &node, warps.count * row);
  const Index own = place.base + scaled(others.number, dst_values * 4) + Index::variable("i") * 4;
  before_write(place.id);
  {
    const auto guard = out_.block_if(fmt::format("{}", fmt::join(writers, " && ")));
    out_.line("WL_UNROLL for (int i = 0; i < {}; ++i)", dst_values);
    out_.line("  wl::st_shared<4>({}, wl::at({}, i));", (own + scaled(warps.number, row)).text(), dst);
  }
  before_read(place.id);
  combine_slots(node.op, dst, dst_values, "w", warps.count, own + Index::variable("w") * row);
}

// The parts that lie in `count` slots, numbered by `slot`, one after another into dst; the i-th value's address in one of them.
void CudaEmitter::combine_slots(ReduceOp op, const std::string& dst, std::int64_t values, const std::string& slot,
                                std::int64_t count, const Index& address) {
  assign(dst, values, float_text(reduction_of(op).identity));
  const auto slots = unrolled(slot, count);
  const auto each = unrolled("i", values);
  out_.line("WL_REG(float, other, 1);");
  out_.line("wl::ld_shared<4>(wl::at(other, 0), {});", address.text());
  out_.line("{0}[i] = {1};", dst, combined(op, dst + "[i]", "other[0]"));
}

// Every block writes its part into a slot of every block of the cluster, then all combine the same slots in the same order.
void CudaEmitter::cluster_reduce_into(const ClusterReduce& node, const std::string& dst) {
  const std::int64_t blocks = cluster_size(program_);
  const TvLayout& layout = registers(node.dst);
  const std::int64_t values = layout.values();
  Digits others;
  for (const ThreadDigit& mode : thread_modes(layout))
    if (mode.moves() && mode.extent > 1) others.add(digit(mode.below, mode.extent), mode.extent);
  const std::int64_t row = others.count * values * 4;
  const Scratch place = scratch(1, &node, blocks * row);
  if (now_.read_slots.count(place.offset))
    out_.line("wl::cluster_sync();  // every block has read the slots of the round before");
  const Index own = place.base + scaled(others.number, values * 4) + Index::variable("i") * 4;
  {
    const auto guard = out_.block_if(first_replica(layout));
    const auto peers = out_.block("for (int peer = 0; peer < {}; ++peer) {{", blocks);
    out_.line("WL_UNROLL for (int i = 0; i < {}; ++i) wl::st_shared_cluster<4>(wl::mapa({}, peer), wl::at({}, i));", values,
              (own + Index::variable("wl::cluster_rank()") * row).text(), dst);
  }
  out_.line("wl::cluster_sync();");
  now_.read_slots = {place.offset};  // whatever was read before this barrier has been read by all
  combine_slots(node.op, dst, values, "peer", blocks, own + Index::variable("peer") * row);
}
}  // namespace warploom::codegen
