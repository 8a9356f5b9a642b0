// Prefix sums, maxima and minima. The modes along the axis are taken from the smallest step up. When those below a step are done, a
// thread's values are prefixes within blocks of that many elements; the mode then combines them with the total of all blocks
// before: over a thread's own values one after another, over lanes by shuffles, over warps through shared memory. In reverse all digits
// count from their last.
//
//   row of 1024 on 64 threads, value [4:1] thread [64:4] value [4:256]
//   →  3 steps in a thread; 5 shuffles and a slot a warp; 3 steps in a thread

#include "codegen/cuda_emitter.h"
namespace warploom::codegen {
using namespace tile;
void CudaEmitter::emit(const Scan& node) {
  const layout::TvLayout& layout = registers(node.dst);
  const auto axis = static_cast<std::size_t>(node.axis);
  const std::vector<ValueLoop> loops = value_loops(layout, 1);
  const std::vector<ThreadDigit> digits = thread_digits(layout);
  std::vector<ScanLevel> levels;
  for (const ValueLoop& loop : loops)
    if (loop.step[axis] != 0) levels.push_back({axis, loop.step[axis], loop.extent, &loop - loops.data()});
  for (const ThreadDigit& d : digits)
    if (d.step[axis] != 0) levels.push_back({axis, d.step[axis], d.extent, -1, &d});
  std::ranges::sort(levels, [](const ScanLevel& a, const ScanLevel& b) { return a.step < b.step; });
  std::int64_t reach = 1;
  bool fits = lanes_pair_up(layout, axis);
  for (const ScanLevel& level : levels) {
    fits &= level.step == reach;
    reach *= level.extent;
  }
  if (!fits || reach != layout.tile[axis])
    return error({ErrorCode::kNoInstruction, "no scan follows this layout along the axis", program_.name,
                  "modes that nest along the axis, within powers of two of a warp's lanes", layout::to_string(coalesce(layout)),
                  "rearrange the tensor into another"});

  const bool own = tensor(node.dst).dtype == Dtype::f32;
  if (own) out_.open("{{");
  const Writer::Block scope{out_, own};
  as_floats(node.dst, own, "run", [&](const std::string& run) {
    if (run != name(node.src)) assign(run, layout.values(), as_float(node.src));
    scan_levels(node, run, loops, digits, levels);
  });
}

void CudaEmitter::scan_levels(const Scan& node, const std::string& run, const std::vector<ValueLoop>& loops,
                              const std::vector<ThreadDigit>& digits, const std::vector<ScanLevel>& levels) {
  std::vector<ValueLoop> done = loops, below, rest = loops;  // done: those of the levels below stand at their last digit
  std::string total = run;                                   // the array that holds a block's total where its last value would be
  std::vector<std::string> first;                            // true in one thread of those that have the same total
  const std::string back = node.reverse ? "+" : "-";         // where the lanes before lie
  const auto add_before = [&] {
    const auto turns = open_loops(below);
    const std::string at = run + "[" + value_index(loops).text() + "]";
    out_.line("{} = {};", at, combined(node.op, "before", at));
  };
  for (const ScanLevel& level : levels) {
    const bool last = &level == &levels.back();
    if (level.value >= 0) {
      const Index& counter = loops[level.value].variable;
      std::erase_if(rest, [&](const ValueLoop& loop) { return loop.variable.same(counter); });
      const auto others = open_loops(rest);
      const auto turns = node.reverse
                             ? out_.block("WL_UNROLL for (int {0} = {1}; {0} >= 0; --{0}) {{", counter.name(), level.extent - 2)
                             : out_.block("WL_UNROLL for (int {0} = 1; {0} < {1}; ++{0}) {{", counter.name(), level.extent);
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
    const Index own = digit(level.digit->below, level.extent), place_along = node.reverse ? level.extent - 1 - own : own;
    const std::string at = value_index(done).text(), mine = place_along.text();
    const std::string held = total;
    if (!last && total == run) {
      out_.line("WL_REG(float, total, {});", registers(node.dst).values());
      total = "total";
    }
    if (rest.empty()) out_.open("{{");  // a scope for what is declared
    const Writer::Block scope{out_, rest.empty()};
    // Over warps: slot [value][warp along the axis][other digits]; neighbouring threads write neighbouring words.
    Digits others{0, 4};  // in bytes
    Index base = 0;
    if (!level.digit->of_lane()) {
      for (const ThreadDigit& d : digits) {
        const bool passed = d.step[level.axis] != 0 && d.step[level.axis] < level.step;
        if (&d != level.digit && !passed) others.add(digit(d.below, d.extent), d.extent);
      }
      Digits values{0, others.count * level.extent};
      for (const ValueLoop& loop : rest) values.add(loop.variable, loop.extent);
      const auto [offset, id, start] = scratch(2 + static_cast<int>(&level - levels.data()), &node, values.count);
      base = start + values.number + others.number;
      before_write(id);
      {
        const auto guard = out_.block_if(fmt::format("{}", fmt::join(first, " && ")));
        const auto turns = open_loops(rest);
        out_.line("wl::st_shared<4>({}, wl::at({}, {}));", (base + scaled(place_along, others.count)).text(), held, at);
      }
      before_read(id);
    }
    const auto turns = open_loops(rest);
    if (level.digit->of_lane()) {
      out_.line("float block = {}[{}];", held, at);
      for (std::int64_t delta = 1; delta < level.extent; delta *= 2) {
        const auto step = out_.block("{{");
        out_.line("const float lower = wl::shfl(block, (wl::lane() {} {}) & 31);", back, delta * level.digit->below);
        out_.line("if ({} >= {}) block = {};", mine, delta, combined(node.op, "lower", "block"));
      }
      out_.line("const float before = wl::shfl(block, (wl::lane() {} {}) & 31);", back, level.digit->below);
      if (!last)
        out_.line("total[{}] = wl::shfl(block, wl::lane() {} {});", at, node.reverse ? "& ~" : "|",
                  (level.extent - 1) * level.digit->below);
    } else {
      out_.line("float block = 0.0f, before = 0.0f;");
      {
        const auto warps = unrolled("w", level.extent);
        out_.line("WL_REG(float, other, 1);");
        out_.line("wl::ld_shared<4>(wl::at(other, 0), {});", (base + Index::variable("w") * others.count).text());
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
