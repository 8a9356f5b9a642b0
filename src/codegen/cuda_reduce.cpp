// Reductions: over a thread's own values, then across lanes by butterflies, then across warps
// through shared memory, then across the blocks of a cluster through each other's shared memory.

#include "codegen/cuda_emitter.h"
#include "tile/print.h"

namespace warploom::codegen {
namespace {
constexpr int64_t kManyWarps = 8;

std::string combined(ReduceOp op, const std::string& a, const std::string& b) {
  if (op == ReduceOp::sum) return fmt::format("{} + {}", a, b);
  return fmt::format("wl::{}({}, {})", name_of(reduction_of(op).combine), a, b);
}

// Whether the lanes along the axis are in steps of powers of two.
bool lanes_pair_up(const TvLayout& layout, size_t axis) {
  return std::ranges::all_of(thread_digits(layout), [&](const ThreadDigit& mode) {
    const int64_t inside = mode.of_lane() ? std::min(mode.extent, 32 / mode.below) : mode.extent;
    return mode.extent % inside == 0 &&
           (mode.step[axis] == 0 || !mode.of_lane() || 32 % (mode.below * inside) == 0);
  });
}
}  // namespace

// Reductions combine floats; a result of another type is rounded once, at the end.
void CudaEmitter::emit(const Reduce& node) {
  if (in_integers(program_, *at_))
    return refuse("whole numbers are reduced across threads", "floats, or a loop of maps",
                  tile::print(program_, *at_), "reduce them in a loop, one element a turn");
  as_floats(node.dst, tensor(node.dst).dtype == Dtype::f32, "total", [&](const std::string& dst) {
    const TvLayout& src = registers(node.src);
    const auto axis = static_cast<size_t>(node.axis);
    const int64_t dst_values = registers(node.dst).values();

    // 1. A thread's own values: where they are many, in as many chains as the innermost loop has
    // turns, and these in pairs.
    const auto loops = value_loops(src, 1);
    const int64_t chains = loops.empty() || loops[0].step[axis] == 0 ? 1 : loops[0].extent;
    const bool many = chains > 1 && std::has_single_bit(static_cast<uint64_t>(chains)) &&
                      src.values() >= 32 * dst_values;
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
      out_.line("{} = {};", target,
                combined(node.op, target, as_float(node.src, value_index(loops))));
    }
    if (many) {
      out_.line("WL_UNROLL for (int half = {}; half >= {}; half /= 2)", kept.count / 2, dst_values);
      out_.line("  WL_UNROLL for (int i = 0; i < half; ++i) part[i] = {};",
                combined(node.op, "part[i]", "part[i + half]"));
      out_.line("WL_UNROLL for (int i = 0; i < {}; ++i) {}[i] = part[i];", dst_values, dst);
      out_.close();
    }

    // 2. Lanes along the axis.
    if (!lanes_pair_up(src, axis))
      return refuse("no reduction follows this layout along the axis",
                    "powers of two of a warp's lanes", layout::to_string(coalesce(src)),
                    "use another number of warps");
    const std::vector<ThreadDigit> digits = thread_digits(src, true);
    std::vector<int64_t> masks;
    for (const ThreadDigit& d : digits)
      if (d.of_lane() && d.step[axis] != 0)
        for (int64_t bit = d.below; bit < d.below * d.extent; bit *= 2) masks.push_back(bit);
    if (!masks.empty()) {
      const auto values = unrolled("i", dst_values);
      for (const auto mask : masks)
        out_.line(
            "{0}[i] = {1};", dst,
            combined(node.op, dst + "[i]", fmt::format("wl::shfl_xor({}[i], {})", dst, mask)));
    }

    // 3. Warps along the axis: slot [warp along the axis][value][other thread digits]. Of many
    // warps each lane takes one's part: slot [value][other][warp].
    Digits warps;
    Digits others;
    std::vector<std::string> writers;
    bool alike = true;  // all lanes of a warp, as to what they want
    for (const ThreadDigit& d : digits) {
      const Index mine = digit(d.below, d.extent);
      if (d.step[axis] == 0) {
        others.add(mine, d.extent);
        alike &= !d.of_lane() || !d.moves();
      } else if (d.of_lane())
        writers.push_back(mine.text() + " == 0");
      else
        warps.add(mine, d.extent);
    }
    if (warps.count == 1) return;
    const bool by_lanes = warps.count >= kManyWarps &&
                          std::has_single_bit(static_cast<uint64_t>(warps.count)) && alike;
    const int64_t row = (by_lanes ? 1 : others.count * dst_values) * 4;
    const int64_t next = by_lanes ? warps.count * 4 : 4;
    const Index place = shared_at(allocate(warps.count * others.count * dst_values * 4));
    const Index own =
        place + scaled(others.number, next) + Index::variable("i") * (others.count * next);
    synchronize(SyncPart::inside, 0);
    {
      const auto guard = out_.block_if(fmt::format("{}", fmt::join(writers, " && ")));
      out_.line("WL_UNROLL for (int i = 0; i < {}; ++i)", dst_values);
      out_.line("  wl::st_shared<4>({}, wl::at({}, i));", (own + scaled(warps.number, row)).text(),
                dst);
    }
    synchronize(SyncPart::inside, 1);
    if (!by_lanes)
      return combine_slots(node.op, dst, dst_values, "w", warps.count,
                           own + Index::variable("w") * row);
    const auto each = unrolled("i", dst_values);
    out_.line(
        "wl::ld_shared<4>(wl::at({}, i), {});", dst,
        (own + Index::variable("(wl::lane() & " + std::to_string(warps.count - 1) + ")") * row)
            .text());
    for (int64_t bit = 1; bit < warps.count; bit *= 2)
      out_.line("{0}[i] = {1};", dst,
                combined(node.op, dst + "[i]", fmt::format("wl::shfl_xor({}[i], {})", dst, bit)));
  });
}

// Every block stores its part into a slot of every block of the cluster, then all combine the same
// slots in the same order. The stores complete on a barrier of the block they go to, so that nobody
// waits for anything else that others have under way. Rounds take two sets of slots and two
// barriers by turns: a part of the next round but one comes from a block that has had all parts of
// the next, and each was sent when all its block's threads had read the slots of this one: where
// every warp has rows of its own, all its lanes, since other warps neither read nor fill their
// slots.
void CudaEmitter::emit(const ClusterReduce& node) {
  as_floats(node.dst, tensor(node.dst).dtype == Dtype::f32, "total", [&](const std::string& dst) {
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
    const Index own = place + parity * (blocks * row) + scaled(others.number, values * 4) +
                      Index::variable("i") * 4;
    out_.line("if (t == 0) wl::mbarrier_arrive_expect_tx({}, {});", met.text(), blocks * row);
    {
      const bool in_all =
          others.count == 1;  // threads, of which the first then store to a peer each
      const std::string peer = in_all ? "t" : "peer";
      const auto guard =
          out_.block_if(in_all ? fmt::format("t < {}", blocks) : first_replica(layout));
      const auto peers = in_all ? Writer::Block{out_, 0}
                                : out_.block("for (int peer = 0; peer < {}; ++peer) {{", blocks);
      out_.line("WL_UNROLL for (int i = 0; i < {}; ++i)", values);
      out_.line("  wl::st_async<4>(wl::mapa({}, {}), wl::at({}, i), wl::mapa({}, {}));",
                (own + Index::variable("wl::cluster_rank()") * row).text(), peer, dst, met.text(),
                peer);
    }
    meeting_ = Meeting{node.dst, [=, this, op = node.op] {
                         out_.line("wl::mbarrier_wait_cluster({}, meeting >> 1 & 1);", met.text());
                         combine_slots(op, dst, values, "peer", blocks,
                                       own + Index::variable("peer") * row);
                         out_.line("++meeting;");
                       }};
    if (dst == "total") finish_meeting();
  });
}

void CudaEmitter::finish_meeting() {
  if (const auto meeting = std::exchange(meeting_, std::nullopt)) meeting->finish();
}

// The parts that lie in `count` slots, numbered by `slot`, one after another into dst; the i-th
// value's address in one of them.
void CudaEmitter::combine_slots(ReduceOp op, const std::string& dst, int64_t values,
                                const std::string& slot, int64_t count, const Index& address) {
  assign(dst, values, float_text(reduction_of(op).identity));
  const auto slots = unrolled(slot, count);
  const auto each = unrolled("i", values);
  out_.line("WL_REG(float, other, 1);");
  out_.line("wl::ld_shared<4>(wl::at(other, 0), {});", address.text());
  out_.line("{0}[i] = {1};", dst, combined(op, dst + "[i]", "other[0]"));
}

// Prefix sums, maxima and minima. The modes along the axis are taken from the smallest step up.
// When those below a step are done, a thread's values are prefixes within blocks of that many
// elements; the mode then combines them with the total of all blocks before: over a thread's own
// values one after another, over lanes by shuffles, over warps through shared memory. In reverse
// all digits count from their last.
//
//   row of 1024 on 64 threads, value [4:1] thread [64:4] value [4:256]
//   →  3 steps in a thread; 5 shuffles and a slot a warp; 3 steps in a thread
void CudaEmitter::emit(const Scan& node) {
  if (in_integers(program_, *at_))
    return refuse("whole numbers are scanned across threads", "floats, or a loop of maps",
                  tile::print(program_, *at_), "reduce them in a loop, one element a turn");
  const layout::TvLayout& layout = registers(node.dst);
  const auto axis = static_cast<size_t>(node.axis);
  const std::vector<ValueLoop> loops = value_loops(layout, 1);
  const std::vector<ThreadDigit> digits = thread_digits(layout, true);
  std::vector<ScanLevel> levels;
  for (const ValueLoop& loop : loops)
    if (loop.step[axis] != 0)
      levels.push_back({axis, loop.step[axis], loop.extent, &loop - loops.data()});
  for (const ThreadDigit& d : digits)
    if (d.step[axis] != 0) levels.push_back({axis, d.step[axis], d.extent, -1, &d});
  std::ranges::sort(levels, [](const ScanLevel& a, const ScanLevel& b) { return a.step < b.step; });
  int64_t reach = 1;
  bool fits = lanes_pair_up(layout, axis);
  for (const ScanLevel& level : levels) {
    fits &= level.step == reach;
    reach *= level.extent;
  }
  if (!fits || reach != layout.tile[axis])
    return refuse("no scan follows this layout along the axis",
                  "modes that nest along the axis, within powers of two of a warp's lanes",
                  layout::to_string(coalesce(layout)), "rearrange the tensor into another");

  const bool own = tensor(node.dst).dtype == Dtype::f32;
  if (own) out_.open("{{");
  const Writer::Block scope{out_, own};
  as_floats(node.dst, own, "run", [&](const std::string& run) {
    if (run != name(node.src)) assign(run, layout.values(), as_float(node.src));
    scan_levels(node, run, loops, digits, levels);
  });
}

void CudaEmitter::scan_levels(const Scan& node, const std::string& run,
                              const std::vector<ValueLoop>& loops,
                              const std::vector<ThreadDigit>& digits,
                              const std::vector<ScanLevel>& levels) {
  std::vector<ValueLoop> done = loops;
  std::vector<ValueLoop> below;
  std::vector<ValueLoop> rest = loops;  // done: those of the levels below stand at their last digit
  std::string total = run;  // the array that holds a block's total where its last value would be
  std::vector<std::string> first;  // true in one thread of those that have the same total
  const std::string back = node.reverse ? "+" : "-";  // where the lanes before lie
  const auto add_before = [&] {
    const auto turns = open_loops(below);
    const std::string at = run + "[" + value_index(loops).text() + "]";
    out_.line("{} = {};", at, combined(node.op, "before", at));
  };
  int warp_level = 0;
  for (const ScanLevel& level : levels) {
    const bool last = &level == &levels.back();
    if (level.value >= 0) {
      const Index& counter = loops[level.value].variable;
      std::erase_if(rest, [&](const ValueLoop& loop) { return loop.variable.same(counter); });
      const auto others = open_loops(rest);
      const auto turns = node.reverse
                             ? out_.block("WL_UNROLL for (int {0} = {1}; {0} >= 0; --{0}) {{",
                                          counter.name(), level.extent - 2)
                             : out_.block("WL_UNROLL for (int {0} = 1; {0} < {1}; ++{0}) {{",
                                          counter.name(), level.extent);
      auto before = done;
      before[level.value].variable = counter + (node.reverse ? 1 : -1);
      out_.line("const float before = {}[{}];", total, value_index(before).text());
      add_before();
      const std::string mine = total + "[" + value_index(done).text() + "]";
      if (total != run) out_.line("{} = {};", mine, combined(node.op, "before", mine));
      done[level.value].variable = node.reverse ? 0 : level.extent - 1;
      below.push_back(loops[level.value]);
      continue;
    }
    const Index own = digit(level.digit->below, level.extent);
    const Index place_along = node.reverse ? level.extent - 1 - own : own;
    const std::string at = value_index(done).text();
    const std::string mine = place_along.text();
    const std::string held = total;
    if (!last && total == run) {
      out_.line("WL_REG(float, total, {});", registers(node.dst).values());
      total = "total";
    }
    if (rest.empty()) out_.open("{{");  // a scope for what is declared
    const Writer::Block scope{out_, rest.empty()};
    // Over warps: slot [value][warp along the axis][other digits]; neighbouring threads write
    // neighbouring words.
    Digits others{0, 4};  // in bytes
    Index base = 0;
    if (!level.digit->of_lane()) {
      for (const ThreadDigit& d : digits) {
        const bool passed = d.step[level.axis] != 0 && d.step[level.axis] < level.step;
        if (&d != level.digit && !passed) others.add(digit(d.below, d.extent), d.extent);
      }
      Digits values{0, others.count * level.extent};
      for (const ValueLoop& loop : rest) values.add(loop.variable, loop.extent);
      base = shared_at(allocate(values.count)) + values.number + others.number;
      synchronize(SyncPart::inside, 2 * warp_level);
      {
        const auto guard = out_.block_if(fmt::format("{}", fmt::join(first, " && ")));
        const auto turns = open_loops(rest);
        out_.line("wl::st_shared<4>({}, wl::at({}, {}));",
                  (base + scaled(place_along, others.count)).text(), held, at);
      }
      synchronize(SyncPart::inside, 2 * warp_level++ + 1);
    }
    const auto turns = open_loops(rest);
    if (level.digit->of_lane()) {
      out_.line("float block = {}[{}];", held, at);
      for (int64_t delta = 1; delta < level.extent; delta *= 2) {
        const auto step = out_.block("{{");
        out_.line("const float lower = wl::shfl(block, (wl::lane() {} {}) & 31);", back,
                  delta * level.digit->below);
        out_.line("if ({} >= {}) block = {};", mine, delta, combined(node.op, "lower", "block"));
      }
      out_.line("const float before = wl::shfl(block, (wl::lane() {} {}) & 31);", back,
                level.digit->below);
      if (!last)
        out_.line("total[{}] = wl::shfl(block, wl::lane() {} {});", at, node.reverse ? "& ~" : "|",
                  (level.extent - 1) * level.digit->below);
    } else {
      out_.line("float block = 0.0f, before = 0.0f;");
      {
        const auto warps = unrolled("w", level.extent);
        out_.line("WL_REG(float, other, 1);");
        out_.line("wl::ld_shared<4>(wl::at(other, 0), {});",
                  (base + Index::variable("w") * others.count).text());
        out_.line("const float next = other[0];");
        out_.line("block = w == 0 ? next : {};", combined(node.op, "block", "next"));
        out_.line("if (w + 1 == {}) before = block;", mine);
      }
      if (!last) out_.line("total[{}] = block;", at);
    }
    const auto behind = out_.block_if(mine + " > 0");
    add_before();
    first.push_back(mine + " == 0");
  }
}
}  // namespace warploom::codegen
