// What a fused loop asks for before it is read: rows of later turns of the loop around.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "codegen/cpu_emitter.h"
#include "codegen/cpu_fused_loop.h"
#include "codegen/terms.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::codegen {
namespace {
constexpr int64_t kAhead = 8192;  // bytes: wl::kPrefetchBytes
}  // namespace

// Whether loops around read it again and again, and a core's caches hold it.
bool CpuEmitter::FusedLoop::is_held(const Tile& tile) const {
  if (out_.loops_.size() < 2) return false;
  const Tensor& tensor = out_.tensor(tile.tensor);
  const int64_t bytes = bytes_of(tensor.dtype, element_count(tensor.shape));
  const Index address = out_.address(tile);
  const Around& inner = out_.loops_.back();
  const auto moves = [&](const Around& loop) {
    return address.depends_on(loop.variable) || inner.begin.depends_on(loop.variable);
  };
  const bool again = std::ranges::none_of(out_.loops_.begin(), out_.loops_.end() - 1, moves);
  return again && 4 * bytes <= out_.capabilities_.shared_bytes;
}

// Whether the innermost loop walks through memory that the caches do not hold, by turns short
// enough that what a later one reads may be asked for.
bool CpuEmitter::FusedLoop::walks(const Copy& copy) const {
  if (!out_.walks(copy.src) || is_held(copy.src)) return false;
  const bool has_loops =
      std::ranges::any_of(body_, [](const Statement& each) { return each.is<For>(); });
  return !has_loops || jump(copy) == 0;
}

// How many elements a turn of the loop around that is asked for reads behind this one: turns that
// read so many bytes as are asked for ahead. 0 where the rows of turns lie one behind another, or
// overlap. How far they lie apart is asked with all variables at 0: it is right wherever it looks.
//
//   for (i …) reads 256 of 8192 columns of row i    8 turns, 65536 elements
int64_t CpuEmitter::FusedLoop::jump(const Copy& copy) const {
  constexpr int64_t kMostTurns = 16;
  if (out_.loops_.empty()) return 0;
  const Around& loop = out_.loops_.back();
  const Index address = out_.address(copy.src);
  const int64_t apart = address.evaluate({{loop.variable, loop.step}}) - address.evaluate({});
  if (std::abs(apart) <= extent_) return 0;
  int64_t bytes = 0;  // of a turn
  for (const Statement& each : statements_) {
    const auto* other = each.as<Copy>();
    if (other && other->src.tensor == copy.src.tensor)
      bytes += bytes_of(out_.tensor(copy.src.tensor).dtype, extent_);
  }
  return apart * std::clamp<int64_t>(kAhead / bytes, 1, kMostTurns);
}

// Whether another copy reads what comes next, and asks for what lies ahead of that.
bool CpuEmitter::FusedLoop::is_followed(const Copy& copy) const {
  if (jump(copy) != 0) return false;
  const int64_t here = out_.address(copy.src).evaluate({});
  return std::ranges::any_of(statements_, [&](const Statement& each) {
    const auto* other = each.as<Copy>();
    if (!other || other->src.tensor != copy.src.tensor) return false;
    const int64_t behind = out_.address(other->src).evaluate({}) - here;
    return behind > 0 && bytes_of(out_.tensor(copy.src.tensor).dtype, behind) <= kAhead;
  });
}

// Of a stream into the second cache, which takes more requests at once than the first.
void CpuEmitter::FusedLoop::fetch_ahead(const std::string& row, int64_t jump, bool streaming) {
  const char* into = streaming ? ", 2" : "";
  if (jump == 0)
    out_.out_.line("wl::{}<wl::kLanes{}>({}{});", ahead_, into, row, step_);
  else
    out_.out_.line("wl::fetch<wl::kLanes{}>({}{} {} {});", into, row, step_, jump < 0 ? '-' : '+',
                   std::abs(jump));
}

// Of loops that read one stream the second, which finds it in the cache and has time, asks for what
// later turns will read.
void CpuEmitter::FusedLoop::prefetch_rows() {
  for (const Statement& each : statements_) {
    const auto* copy = each.as<Copy>();
    if (!copy || single_ || partial_rows_.contains(each.id)) continue;
    const auto next = out_.next_turns_.find(each.id);
    if (next != out_.next_turns_.end()) {
      if (next->second != 0) fetch_ahead(out_.row_pointer(copy->src), next->second, true);
      continue;
    }
    if (!walks(*copy) || is_followed(*copy)) continue;
    const TensorId id = copy->dst.tensor;
    const auto alias = out_.aliases_.find(id);
    const bool asks_later = alias != out_.aliases_.end() && alias->second.prefetch;
    const bool left_to_the_second = asks_later && changed_[id] == &each;
    if (left_to_the_second) continue;
    fetch_ahead(out_.row_pointer(copy->src), jump(*copy), copy->streaming);
  }
  prefetch_windows();
}

// Of the rows of windows those that this turn of the loop around is the first to read. How far the
// rows lie apart is asked with all variables at 0: prefetching is right wherever it looks.
void CpuEmitter::FusedLoop::prefetch_windows() {
  if (out_.loops_.empty() || run_.reverse) return;

  struct Window {
    int64_t at;
    const Copy* copy;
  };

  std::map<TensorId, std::vector<Window>> windows;
  for (const Statement& each : statements_) {
    const auto* copy = each.as<Copy>();
    if (!copy || !partial_rows_.contains(each.id) || !out_.walks(copy->src)) continue;
    windows[copy->src.tensor].push_back({out_.address(copy->src).evaluate({}), copy});
  }
  for (auto& [tensor, rows] : windows) {
    std::ranges::sort(rows, std::greater{}, &Window::at);
    const Index address = out_.address(rows[0].copy->src);
    const int64_t advance = address.evaluate({{out_.loops_.back().variable, 1}}) - rows[0].at;
    const int64_t known = rows[0].at - advance;  // what an earlier turn read
    int64_t last = rows[0].at + (int64_t{1} << 40);
    for (const Window& row : rows) {
      const auto place = *out_.row_of(row.copy->src);
      if (row.at <= known || last - row.at < out_.lanes_ * place.step) continue;
      last = row.at;
      const std::string times = place.step == 1 ? "" : fmt::format("{} * ", place.step);
      out_.out_.line("wl::prefetch<{0}wl::kLanes{3}>({1} + {0}{2});", times, place.pointer, v_,
                     row.copy->streaming ? ", 2" : "");
    }
  }
}
}  // namespace warploom::codegen
