// Scans: prefix sums, maxima and minima. The modes along the axis are taken from the smallest step
// up. When those below a step are done, a thread's values are prefixes within blocks of that many
// elements; the mode then combines them with the total of all blocks before: over a thread's own
// values one after another, over lanes by shuffles, over warps through shared memory. In reverse
// all digits count from their last.
//
//   row of 1024 on 64 threads, value [4:1] thread [64:4] value [4:256]
//   →  3 steps in a thread; 5 shuffles and a part a warp; 3 steps in a thread
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "codegen/cuda_emitter.h"
#include "codegen/synchronization.h"
#include "codegen/terms.h"
#include "layout/tv_layout.h"
#include "tile/index.h"
#include "tile/print.h"
#include "tile/program.h"

namespace warploom::codegen {
namespace {
struct ScanLevel {  // a mode along the axis
  int64_t step;
  int64_t extent;
  ptrdiff_t value = -1;  // which of the value loops, or
  const ThreadDigit* digit = nullptr;
};
}  // namespace

class CudaEmitter::ScanText {
 public:
  ScanText(CudaEmitter& emitter, const Scan& node);

  // Whether the levels nest along the axis.
  bool fits() const;
  void write(const std::string& run);

 private:
  void over_values(const ScanLevel& level);
  void over_threads(const ScanLevel& level, bool last);
  Index pass_through_shared(const ScanLevel& level, const Index& place_along,
                            const std::string& held);
  void over_lanes(const ScanLevel& level, const std::string& mine, const std::string& held,
                  bool last);
  void over_warps(const ScanLevel& level, const std::string& mine, const Index& base, bool last);
  void add_before();

  std::string combine(const std::string& a, const std::string& b) const {
    return combined(node_.op, a, b);
  }

  CudaEmitter& out_;
  const Scan& node_;
  const TvLayout& layout_;
  size_t axis_;
  std::vector<ValueLoop> loops_;
  std::vector<ThreadDigit> digits_;
  std::vector<ScanLevel> levels_;
  std::string run_;              // the array of prefixes
  std::vector<ValueLoop> done_;  // those of the levels below stand at their last digit
  std::vector<ValueLoop> below_ = {};
  std::vector<ValueLoop> rest_;  // of the levels to come, and across the axis
  std::string total_;  // the array that holds a block's total where its last value would be
  std::vector<std::string> first_ = {};  // true in one thread of those that have the same total
  int64_t others_bytes_ = 0;             // between the parts of neighbouring warps
  int warp_level_ = 0;
};

CudaEmitter::ScanText::ScanText(CudaEmitter& emitter, const Scan& node)
    : out_(emitter),
      node_(node),
      layout_(emitter.registers(node.dst)),
      axis_(as_size(node.axis)),
      loops_(emitter.value_loops(layout_, 1)),
      digits_(thread_digits(layout_, true)),
      done_(loops_),
      rest_(loops_) {
  for (const ValueLoop& loop : loops_)
    if (loop.step[axis_] != 0)
      levels_.push_back({loop.step[axis_], loop.extent, &loop - loops_.data()});
  for (const ThreadDigit& d : digits_)
    if (d.step[axis_] != 0) levels_.push_back({d.step[axis_], d.extent, -1, &d});
  std::ranges::sort(levels_, {}, &ScanLevel::step);
}

bool CudaEmitter::ScanText::fits() const {
  int64_t reach = 1;
  for (const ScanLevel& level : levels_) {
    if (level.step != reach) return false;
    reach *= level.extent;
  }
  return reach == layout_.tile[axis_] && lanes_pair_up(layout_, axis_);
}

void CudaEmitter::ScanText::write(const std::string& run) {
  run_ = run;
  total_ = run;
  for (const ScanLevel& level : levels_) {
    if (level.value >= 0)
      over_values(level);
    else
      over_threads(level, &level == &levels_.back());
  }
}

// The total of what lies before goes into all values of the levels below.
void CudaEmitter::ScanText::add_before() {
  const auto turns = out_.open_loops(below_);
  const std::string at = run_ + "[" + value_index(loops_).text() + "]";
  out_.out_.line("{} = {};", at, combine("before", at));
}

// A thread's own values, one after another.
void CudaEmitter::ScanText::over_values(const ScanLevel& level) {
  Writer& text = out_.out_;
  const Index& counter = loops_[level.value].variable;
  std::erase_if(rest_, [&](const ValueLoop& loop) { return loop.variable.same(counter); });
  const auto others = out_.open_loops(rest_);
  const std::string& variable = counter.name();
  const auto in_order = [&] {
    if (node_.reverse)
      return text.block("WL_UNROLL for (int {0} = {1}; {0} >= 0; --{0}) {{", variable,
                        level.extent - 2);
    return text.block("WL_UNROLL for (int {0} = 1; {0} < {1}; ++{0}) {{", variable, level.extent);
  };
  const auto turns = in_order();
  auto before = done_;
  before[level.value].variable = counter + (node_.reverse ? 1 : -1);
  text.line("const float before = {}[{}];", total_, value_index(before).text());
  add_before();
  const std::string mine = total_ + "[" + value_index(done_).text() + "]";
  if (total_ != run_) text.line("{} = {};", mine, combine("before", mine));
  done_[level.value].variable = node_.reverse ? 0 : level.extent - 1;
  below_.push_back(loops_[level.value]);
}

void CudaEmitter::ScanText::over_threads(const ScanLevel& level, bool last) {
  Writer& text = out_.out_;
  const Index own = out_.digit(level.digit->below, level.extent);
  const Index place_along = node_.reverse ? level.extent - 1 - own : own;
  const std::string mine = place_along.text();
  const std::string held = total_;
  if (!last && total_ == run_) {
    text.line("WL_REG(float, total, {});", layout_.values());
    total_ = "total";
  }
  if (rest_.empty()) text.open("{{");  // a scope for what is declared
  const Writer::Block scope{text, rest_.empty()};
  Index base = 0;
  if (!level.digit->of_lane()) base = pass_through_shared(level, place_along, held);
  const auto turns = out_.open_loops(rest_);
  if (level.digit->of_lane())
    over_lanes(level, mine, held, last);
  else
    over_warps(level, mine, base, last);
  const auto behind = text.block_if(mine + " > 0");
  add_before();
  first_.push_back(mine + " == 0");
}

// Totals go to shared memory: part [value][warp along the axis][other digits]; neighbouring threads
// write neighbouring words. The address of the first warp's part.
Index CudaEmitter::ScanText::pass_through_shared(const ScanLevel& level, const Index& place_along,
                                                 const std::string& held) {
  Digits others{0, 4};  // in bytes
  for (const ThreadDigit& d : digits_) {
    const bool passed = d.step[axis_] != 0 && d.step[axis_] < level.step;
    if (&d != level.digit && !passed) others.add(out_.digit(d.below, d.extent), d.extent);
  }
  others_bytes_ = others.count;
  Digits values{0, others.count * level.extent};
  for (const ValueLoop& loop : rest_)
    values.add(loop.variable, loop.extent);
  const Index base = shared_at(out_.allocate(values.count)) + values.number + others.number;
  out_.synchronize(SyncPart::inside, 2 * warp_level_);
  {
    const auto guard = out_.out_.block_if(fmt::format("{}", fmt::join(first_, " && ")));
    const auto turns = out_.open_loops(rest_);
    const Index address = base + scaled(place_along, others_bytes_);
    const Index value = value_index(done_);
    out_.out_.line("wl::st_shared<4>({}, wl::at({}, {}));", address.text(), held, value.text());
  }
  out_.synchronize(SyncPart::inside, 2 * warp_level_ + 1);
  ++warp_level_;
  return base;
}

void CudaEmitter::ScanText::over_lanes(const ScanLevel& level, const std::string& mine,
                                       const std::string& held, bool last) {
  Writer& text = out_.out_;
  const std::string at = value_index(done_).text();
  const char* back = node_.reverse ? "+" : "-";  // where the lanes before lie
  const int64_t below = level.digit->below;
  text.line("float block = {}[{}];", held, at);
  for (int64_t delta = 1; delta < level.extent; delta *= 2) {
    const auto step = text.block("{{");
    text.line("const float lower = wl::shfl(block, (wl::lane() {} {}) & 31);", back, delta * below);
    text.line("if ({} >= {}) block = {};", mine, delta, combine("lower", "block"));
  }
  text.line("const float before = wl::shfl(block, (wl::lane() {} {}) & 31);", back, below);
  if (last) return;
  const char* to_last = node_.reverse ? "& ~" : "|";
  const int64_t digit_bits = (level.extent - 1) * below;
  text.line("total[{}] = wl::shfl(block, wl::lane() {} {});", at, to_last, digit_bits);
}

void CudaEmitter::ScanText::over_warps(const ScanLevel& level, const std::string& mine,
                                       const Index& base, bool last) {
  Writer& text = out_.out_;
  text.line("float block = 0.0f, before = 0.0f;");
  {
    const auto warps = out_.unrolled("w", level.extent);
    const Index of_warp = base + Index::variable("w") * others_bytes_;
    text.line("WL_REG(float, other, 1);");
    text.line("wl::ld_shared<4>(wl::at(other, 0), {});", of_warp.text());
    text.line("const float next = other[0];");
    text.line("block = w == 0 ? next : {};", combine("block", "next"));
    text.line("if (w + 1 == {}) before = block;", mine);
  }
  if (!last) text.line("total[{}] = block;", value_index(done_).text());
}

void CudaEmitter::emit(const Scan& node) {
  if (in_integers(program_, *at_))
    return refuse("whole numbers are scanned across threads", "floats, or a loop of maps",
                  tile::print(program_, *at_), "reduce them in a loop, one element a turn");
  ScanText text(*this, node);
  const TvLayout& layout = registers(node.dst);
  if (!text.fits())
    return refuse("no scan follows this layout along the axis",
                  "modes that nest along the axis, within powers of two of a warp's lanes",
                  layout::to_string(coalesce(layout)), "rearrange the tensor into another");
  const bool own = tensor(node.dst).dtype == Dtype::f32;
  if (own) out_.open("{{");
  const Writer::Block scope{out_, own};
  as_floats(node.dst, own, "run", [&](const std::string& run) {
    if (run != name(node.src)) assign(run, layout.values(), as_float(node.src));
    text.write(run);
  });
}
}  // namespace warploom::codegen
