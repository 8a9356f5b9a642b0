// Reductions: over a thread's own values, then across lanes by butterflies, then across warps
// through shared memory, then across the blocks of a cluster through each other's shared memory.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/value_op.h"
#include "codegen/cuda_emitter.h"
#include "codegen/synchronization.h"
#include "codegen/terms.h"
#include "layout/tv_layout.h"
#include "tile/index.h"
#include "tile/print.h"
#include "tile/program.h"

namespace warploom::codegen {
namespace {
constexpr int64_t kManyWarps = 8;
}  // namespace

std::string combined(ReduceOp op, const std::string& a, const std::string& b) {
  if (op == ReduceOp::sum) return fmt::format("{} + {}", a, b);
  return fmt::format("wl::{}({}, {})", name_of(reduction_of(op).combine), a, b);
}

bool lanes_pair_up(const TvLayout& layout, size_t axis) {
  const auto pairs_up = [&](const ThreadDigit& mode) {
    int64_t inside = mode.extent;  // the warp
    if (mode.of_lane()) inside = std::min(mode.extent, 32 / mode.below);
    if (mode.extent % inside != 0) return false;
    const bool reduced = mode.of_lane() && mode.step[axis] != 0;
    return !reduced || 32 % (mode.below * inside) == 0;
  };
  return std::ranges::all_of(thread_digits(layout), pairs_up);
}

// Reductions combine floats; a result of another type is rounded once, at the end.
void CudaEmitter::emit(const Reduce& node) {
  if (in_integers(program_, *at_))
    return refuse("whole numbers are reduced across threads", "floats, or a loop of maps",
                  tile::print(program_, *at_), "reduce them in a loop, one element a turn");
  const bool own = tensor(node.dst).dtype == Dtype::f32;
  as_floats(node.dst, own, "total", [&](const std::string& dst) {
    reduce_own_values(node, dst);
    if (reduce_lanes(node, dst)) reduce_warps(node, dst);
  });
}

// A thread's own values: where they are many, in as many chains as the innermost loop has turns,
// and these in pairs.
void CudaEmitter::reduce_own_values(const Reduce& node, const std::string& dst) {
  const TvLayout& src = registers(node.src);
  const auto axis = as_size(node.axis);
  const int64_t dst_values = registers(node.dst).values();
  const auto loops = value_loops(src, 1);
  const bool along_axis = !loops.empty() && loops[0].step[axis] != 0;
  const int64_t chains = along_axis ? loops[0].extent : 1;
  const bool in_pairs = std::has_single_bit(as_uint64(chains));
  const bool many = chains > 1 && in_pairs && src.values() >= 32 * dst_values;
  Digits kept;
  for (const ValueLoop& loop : loops)
    if (loop.step[axis] == 0) kept.add(loop.variable, loop.extent);
  if (many) {
    out_.open("{{");
    kept.add(loops[0].variable, chains);
    out_.line("WL_REG(float, part, {});", kept.count);
  }
  const std::string sums = many ? "part" : dst;
  const std::string target = fmt::format("{}[{}]", sums, kept.number.text());
  assign(sums, kept.count, float_text(reduction_of(node.op).identity));
  {
    const auto turns = open_loops(loops);
    const std::string value = as_float(node.src, value_index(loops));
    out_.line("{} = {};", target, combined(node.op, target, value));
  }
  if (!many) return;
  out_.line("WL_UNROLL for (int half = {}; half >= {}; half /= 2)", kept.count / 2, dst_values);
  out_.line("  WL_UNROLL for (int i = 0; i < half; ++i) part[i] = {};",
            combined(node.op, "part[i]", "part[i + half]"));
  out_.line("WL_UNROLL for (int i = 0; i < {}; ++i) {}[i] = part[i];", dst_values, dst);
  out_.close();
}

// dst[i] ← dst[i] combined with that of the lane whose number differs in one bit.
void CudaEmitter::combine_lanes(ReduceOp op, const std::string& dst, int64_t bit) {
  const std::string other = fmt::format("wl::shfl_xor({}[i], {})", dst, bit);
  out_.line("{0}[i] = {1};", dst, combined(op, dst + "[i]", other));
}

// Lanes along the axis, by butterflies; false where they do not pair up.
bool CudaEmitter::reduce_lanes(const Reduce& node, const std::string& dst) {
  const TvLayout& src = registers(node.src);
  const auto axis = as_size(node.axis);
  if (!lanes_pair_up(src, axis)) {
    refuse("no reduction follows this layout along the axis", "powers of two of a warp's lanes",
           layout::to_string(coalesce(src)), "use another number of warps");
    return false;
  }
  std::vector<int64_t> bits;
  for (const ThreadDigit& d : thread_digits(src, true))
    if (d.of_lane() && d.step[axis] != 0)
      for (int64_t bit = d.below; bit < d.below * d.extent; bit *= 2)
        bits.push_back(bit);
  if (bits.empty()) return true;
  const auto values = unrolled("i", registers(node.dst).values());
  for (const int64_t bit : bits)
    combine_lanes(node.op, dst, bit);
  return true;
}

// Warps along the axis, through shared memory: part [warp along the axis][value][other thread
// digits]. Of many warps each lane takes one's part: part [value][other][warp].
void CudaEmitter::reduce_warps(const Reduce& node, const std::string& dst) {
  const auto axis = as_size(node.axis);
  const int64_t dst_values = registers(node.dst).values();
  Digits warps;
  Digits others;
  std::vector<std::string> writers;
  bool alike = true;  // all lanes of a warp, as to what they want
  for (const ThreadDigit& d : thread_digits(registers(node.src), true)) {
    const Index mine = digit(d.below, d.extent);
    if (d.step[axis] == 0) {
      others.add(mine, d.extent);
      alike &= !d.of_lane() || !d.moves();
    } else if (d.of_lane()) {
      writers.push_back(mine.text() + " == 0");
    } else {
      warps.add(mine, d.extent);
    }
  }
  if (warps.count == 1) return;
  const bool power_of_two = std::has_single_bit(as_uint64(warps.count));
  const bool by_lanes = warps.count >= kManyWarps && power_of_two && alike;
  const int64_t row = (by_lanes ? 1 : others.count * dst_values) * 4;
  const int64_t next = by_lanes ? warps.count * 4 : 4;
  const Index place = shared_at(allocate(warps.count * others.count * dst_values * 4));
  const Index value = Index::variable("i") * (others.count * next);
  const Index own = place + scaled(others.number, next) + value;
  synchronize(SyncPart::inside, 0);
  {
    const auto guard = out_.block_if(fmt::format("{}", fmt::join(writers, " && ")));
    const Index of_warp = own + scaled(warps.number, row);
    out_.line("WL_UNROLL for (int i = 0; i < {}; ++i)", dst_values);
    out_.line("  wl::st_shared<4>({}, wl::at({}, i));", of_warp.text(), dst);
  }
  synchronize(SyncPart::inside, 1);
  if (!by_lanes) {
    const Index of_warp = own + Index::variable("w") * row;
    return combine_parts(node.op, dst, dst_values, "w", warps.count, of_warp);
  }
  const auto each = unrolled("i", dst_values);
  const Index warp = Index::variable(fmt::format("(wl::lane() & {})", warps.count - 1));
  out_.line("wl::ld_shared<4>(wl::at({}, i), {});", dst, (own + warp * row).text());
  for (int64_t bit = 1; bit < warps.count; bit *= 2)
    combine_lanes(node.op, dst, bit);
}

// Every block stores its part into the shared memory of every block of the cluster, then all
// combine the same parts in the same order. The stores complete on a barrier of the block they go
// to, so that nobody waits for anything else that others have under way. Rounds take two buffers
// and two barriers by turns: a part of the next round but one comes from a block that has had all
// parts of the next, and each was sent when all its block's threads had read the parts of this one:
// where every warp has rows of its own, all its lanes, since other warps neither read nor fill
// their parts.
void CudaEmitter::emit(const ClusterReduce& node) {
  const bool own_array = tensor(node.dst).dtype == Dtype::f32;
  as_floats(node.dst, own_array, "total", [&](const std::string& dst) {
    if (dst == "total") assign(dst, registers(node.dst).values(), as_float(node.dst));
    const int64_t blocks = cluster_size(program_);
    const TvLayout& layout = registers(node.dst);
    const int64_t values = layout.values();
    Digits others;
    for (const ThreadDigit& mode : thread_digits(layout, true))
      if (mode.moves()) others.add(digit(mode.below, mode.extent), mode.extent);
    const int64_t row = others.count * values * 4;
    const Index place = shared_at(allocate(2 * blocks * row));
    synchronize(SyncPart::inside);
    const Index parity = Index::variable("(meeting & 1)");
    const Index met = Index::variable("met") + parity * kBarrierBytes;
    const Index buffer = place + parity * (blocks * row);
    const Index own = buffer + scaled(others.number, values * 4) + Index::variable("i") * 4;
    out_.line("if (t == 0) wl::mbarrier_arrive_expect_tx({}, {});", met.text(), blocks * row);
    {
      const bool in_all = others.count == 1;  // threads: the first then store to a peer each
      const std::string peer = in_all ? "t" : "peer";
      const std::string senders = in_all ? fmt::format("t < {}", blocks) : first_replica(layout);
      const auto guard = out_.block_if(senders);
      const auto peers = in_all ? Writer::Block{out_, 0}
                                : out_.block("for (int peer = 0; peer < {}; ++peer) {{", blocks);
      const Index of_block = own + Index::variable("wl::cluster_rank()") * row;
      out_.line("WL_UNROLL for (int i = 0; i < {}; ++i)", values);
      out_.line("  wl::st_async<4>(wl::mapa({}, {}), wl::at({}, i), wl::mapa({}, {}));",
                of_block.text(), peer, dst, met.text(), peer);
    }
    const Index of_peer = own + Index::variable("peer") * row;
    const auto finish = [=, this, op = node.op] {
      out_.line("wl::mbarrier_wait_cluster({}, meeting >> 1 & 1);", met.text());
      combine_parts(op, dst, values, "peer", blocks, of_peer);
      out_.line("++meeting;");
    };
    meeting_ = Meeting{node.dst, finish};
    if (dst == "total") finish_meeting();
  });
}

void CudaEmitter::finish_meeting() {
  if (const auto meeting = std::exchange(meeting_, std::nullopt)) meeting->finish();
}

// `count` parts, numbered by the variable `part`, one after another into dst; the i-th value's
// address in one of them.
void CudaEmitter::combine_parts(ReduceOp op, const std::string& dst, int64_t values,
                                const std::string& part, int64_t count, const Index& address) {
  assign(dst, values, float_text(reduction_of(op).identity));
  const auto parts = unrolled(part, count);
  const auto each = unrolled("i", values);
  out_.line("WL_REG(float, other, 1);");
  out_.line("wl::ld_shared<4>(wl::at(other, 0), {});", address.text());
  out_.line("{0}[i] = {1};", dst, combined(op, dst + "[i]", "other[0]"));
}
}  // namespace warploom::codegen
