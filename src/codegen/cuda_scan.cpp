// Prefix sums, maxima and minima. The modes along the axis are taken from the smallest step up. When those below a step are done, a
// thread's values are prefixes within blocks of that many elements; the mode then combines them with the total of all blocks
// before: over a thread's own values one after another, over lanes by shuffles, over warps through shared memory.
//
//   row of 1024 on 64 threads, value [4:1] thread [64:4] value [4:256]
//   →  3 steps in a thread; 5 shuffles and a slot a warp; 3 steps in a thread

#include <fmt/ranges.h>
#include "codegen/cuda_emitter.h"
namespace warploom::codegen {
using namespace tile;
namespace {
struct Level {
  std::int64_t step, extent;
  const ValueLoop* value = nullptr;  // or
  const ThreadDigit* digit = nullptr;
};

// The place of a value, where the loops in `fixed` are not loops but stand at a digit.
std::string place(const std::vector<ValueLoop>& loops, const std::map<const ValueLoop*, std::string>& fixed) {
  std::vector<std::string> parts;
  for (const ValueLoop& loop : loops) {
    const auto found = fixed.find(&loop);
    parts.push_back(times(found == fixed.end() ? loop.variable : found->second, loop.value_stride));
  }
  return sum(parts);
}
}  // namespace
void CudaEmitter::emit(const Scan& node) {
  const layout::TvLayout& layout = registers(node.dst);
  const auto axis = static_cast<std::size_t>(node.axis);
  const std::vector<ValueLoop> loops = value_loops(layout, 1);
  const std::vector<ThreadDigit> digits = thread_digits(layout);
  std::vector<Level> levels;
  for (const ValueLoop& loop : loops)
    if (loop.step[axis] != 0) levels.push_back({loop.step[axis], loop.extent, &loop});
  for (const ThreadDigit& d : digits)
    if (d.step[axis] != 0) levels.push_back({d.step[axis], d.extent, nullptr, &d});
  std::sort(levels.begin(), levels.end(), [](const Level& a, const Level& b) { return a.step < b.step; });
  std::int64_t reach = 1;
  bool fits = lanes_pair_up(layout, axis);
  for (const Level& level : levels) {
    fits &= level.step == reach;
    reach *= level.extent;
  }
  if (!fits || reach != layout.tile[axis])
    return error({ErrorCode::kNoInstruction, "no scan follows this layout along the axis", program_.name,
                  "modes that nest along the axis, within powers of two of a warp's lanes", layout::to_string(coalesce(layout)),
                  "rearrange the tensor into another"});

  const bool floats = tensor(node.dst).dtype == Dtype::f32;
  const std::string dst = name(node.dst), src = name(node.src), run = floats ? dst : "run";
  const std::int64_t values = layout.values();
  out_.open("{{");
  if (!floats) out_.line("WL_REG(float, run, {});", values);
  if (run != src) out_.line("WL_UNROLL for (int i = 0; i < {}; ++i) {}[i] = {};", values, run, as_float(node.src, "i"));

  std::map<const ValueLoop*, std::string> done;  // value loops of the levels below, at their last digit
  std::vector<ValueLoop> below, rest = loops;
  std::string total = run;         // the array that holds a block's total where its last value would be
  std::vector<std::string> first;  // true in one thread of those that have the same total
  const auto add_before = [&](const std::map<const ValueLoop*, std::string>& fixed) {
    open_loops(below);
    const std::string at = run + "[" + place(loops, fixed) + "]";
    out_.line("{} = {};", at, combined(node.op, "before", at));
    close_loops(below);
  };
  for (std::size_t l = 0; l < levels.size(); ++l) {
    const Level& level = levels[l];
    const bool last = l + 1 == levels.size();
    if (level.value) {
      std::erase_if(rest, [&](const ValueLoop& loop) { return loop.variable == level.value->variable; });
      open_loops(rest);
      out_.open("WL_UNROLL for (int {0} = 1; {0} < {1}; ++{0}) {{", level.value->variable, level.extent);
      auto before = done;
      before[level.value] = fmt::format("({} - 1)", level.value->variable);
      out_.line("const float before = {}[{}];", total, place(loops, before));
      add_before({});
      const std::string mine = total + "[" + place(loops, done) + "]";
      if (total != run) out_.line("{} = {};", mine, combined(node.op, "before", mine));
      out_.close();
      close_loops(rest);
      done[level.value] = std::to_string(level.extent - 1);
      below.push_back(*level.value);
      continue;
    }
    const std::string mine = digit(level.digit->below, level.extent), at = place(loops, done);
    const std::string held = total;
    if (!last && total == run) {
      out_.line("WL_REG(float, total, {});", values);
      total = "total";
    }
    if (rest.empty()) out_.open("{{");  // a scope for what is declared
    if (level.digit->of_lane()) {
      open_loops(rest);
      out_.line("float block = {}[{}];", held, at);
      for (std::int64_t delta = 1; delta < level.extent; delta *= 2) {
        out_.open("{{");
        out_.line("const float lower = wl::shfl(block, (wl::lane() - {}) & 31);", delta * level.digit->below);
        out_.line("if ({} >= {}) block = {};", mine, delta, combined(node.op, "lower", "block"));
        out_.close();
      }
      out_.line("const float before = wl::shfl(block, (wl::lane() - {}) & 31);", level.digit->below);
      if (!last) out_.line("total[{}] = wl::shfl(block, wl::lane() | {});", at, (level.extent - 1) * level.digit->below);
    } else {
      // Slot [value][warp along the axis][other digits]: neighbouring threads write neighbouring words.
      std::int64_t others = 1, slots = 1;
      std::vector<std::string> other_index, value_slot;
      for (const ThreadDigit& d : digits) {
        const bool passed = d.step[axis] != 0 && d.step[axis] < level.step;
        if (&d == level.digit || passed) continue;
        other_index.push_back(times(digit(d.below, d.extent), 4 * others));
        others *= d.extent;
      }
      const std::int64_t row = 4 * others, value_row = row * level.extent;
      for (const ValueLoop& loop : rest) {
        value_slot.push_back(times(loop.variable, value_row * slots));
        slots *= loop.extent;
      }
      const auto [offset, id, start] = scratch(2 + static_cast<int>(l), &node, value_row * slots);
      const std::string base = sum({start, sum(value_slot), sum(other_index)});
      before_write(id);
      if (!first.empty()) out_.open("if ({}) {{", fmt::join(first, " && "));
      open_loops(rest);
      out_.line("wl::st_shared<4>({}, wl::at({}, {}));", sum({base, times(mine, row)}), held, at);
      close_loops(rest);
      if (!first.empty()) out_.close();
      before_read(id);
      open_loops(rest);
      out_.line("float block = 0.0f, before = 0.0f;");
      out_.open("WL_UNROLL for (int w = 0; w < {}; ++w) {{", level.extent);
      out_.line("WL_REG(float, other, 1);");
      out_.line("wl::ld_shared<4>(wl::at(other, 0), {});", sum({base, times("w", row)}));
      out_.line("const float next = other[0];");
      out_.line("block = w == 0 ? next : {};", combined(node.op, "block", "next"));
      out_.line("if (w + 1 == {}) before = block;", mine);
      out_.close();
      if (!last) out_.line("total[{}] = block;", at);
    }
    out_.open("if ({} > 0) {{", mine);
    add_before({});
    out_.close();
    close_loops(rest);
    if (rest.empty()) out_.close();
    first.push_back(mine + " == 0");
  }
  if (!floats) store_floats(node.dst, "run");
  out_.close();
}
}  // namespace warploom::codegen
