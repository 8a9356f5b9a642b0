// What of the truth is made before anything is compared, and what of it stays.
#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "base/rows.h"
#include "graph/graph.h"
#include "runtime/executor.h"
#include "verify/inputs.h"
#include "verify/oracle.h"
#include "verify/tolerance.h"
#include "verify/truth_engine.h"
#include "verify/truth_kernels.h"

namespace warploom::verify {
namespace {
// Memory that the steps are through with stays for the next set, while that much of all is free.
constexpr int64_t kSpareShare = 3;

// The numbers below `count` in an order that is drawn, another for each family and output: what one
// does not look at, others may.
std::vector<int64_t> in_drawn_order(int64_t count, uint64_t seed, InputFamily family, int output) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  Random(seed, fmt::format("parts of {} {}", name_of(family), output)).shuffle(order);
  return order;
}

// How long a loop over equal parts has taken, and will.
class Pace {
 public:
  explicit Pace(int64_t parts) : parts_(parts) {}

  // The first part's time is not counted: kernels are compiled in it.
  void made_one() {
    if (++made_ == 1) start_ = std::chrono::steady_clock::now();
  }

  double spent() const { return made_ > 1 ? ms_since(start_) / 1e3 : 0; }

  double expected() const {
    if (made_ < 2) return 0;
    return spent() / static_cast<double>(made_ - 1) * static_cast<double>(parts_);
  }

 private:
  int64_t parts_;
  int64_t made_ = 0;
  std::chrono::steady_clock::time_point start_;
};
}  // namespace

Result<int64_t> TruthEngine::prepare(int set, double seconds) {
  Set& of = sets_.at(set);
  int64_t known = 0;
  for (int n = 0; n < static_cast<int>(rows_.size()); ++n) {
    const auto outputs = static_cast<double>(rows_.size());
    WARPLOOM_TRY(const int64_t rows, prepare_output(of, n, seconds / outputs));
    known += rows;
  }
  forget_spare();
  return known;
}

// In an order that is drawn, so that wherever the time ends what is there is a fair sample.
Result<int64_t> TruthEngine::prepare_output(Set& set, int output, double seconds) {
  const auto n = static_cast<size_t>(output);
  const graph::OutputRows& rows = rows_[n];
  const bool is_whole = set.kept.contains(output) && !set.sampled.contains(output);
  if (is_whole) return rows.count;
  forget_parts(set, output);
  WARPLOOM_TRY(const int64_t room, room_for_truth());
  const bool has_room = bytes_of_truth(output) <= room;
  const int64_t each = std::max<int64_t>(1, part_rows_[n]);
  const int64_t count = ceil_div(rows.count, each);
  Pace pace(count);
  std::vector<Part> parts;
  int64_t known = 0;
  for (const int64_t number : in_drawn_order(count, set.seed, set.family, output)) {
    const int64_t begin = number * each;
    const int64_t end = std::min(rows.count, begin + each);
    Result<Part> part = part_of(set, output, begin, end);
    const bool is_full = !part && part.error().code == ErrorCode::kOutOfMemory;
    if (is_full && each > 1) {  // half as many may fit
      give_back(std::move(parts));
      runner_.forget_free();
      part_rows_[n] = each / 2;
      return prepare_output(set, output, seconds);
    }
    if (!part) return fail(part.error());
    parts.push_back(*std::move(part));
    known += end - begin;
    WARPLOOM_CHECK(device_.synchronize());
    pace.made_one();
    const bool is_timed = parts.size() > 1 || known == rows.count || std::isinf(seconds);
    if (!has_room && is_timed && pace.expected() <= seconds) {  // each comparison makes it anew
      give_back(std::move(parts));
      return rows.count;
    }
    if (pace.spent() >= seconds || known * rows.elements * kElementBytes > room) break;
  }
  keep(set, output, std::move(parts));
  if (known < rows.count) set.sampled.insert(output);
  return known;
}

void TruthEngine::forget_parts(Set& set, int output) {
  const auto kept = set.kept.find(output);
  if (kept == set.kept.end()) return;
  for (const Part& part : kept->second)
    kept_bytes_ -= kElementBytes * part.count;
  give_back(std::move(kept->second));
  set.kept.erase(kept);
  set.sampled.erase(output);
}

void TruthEngine::keep(Set& set, int output, std::vector<Part> parts) {
  std::ranges::sort(parts, {}, &Part::first);
  for (const Part& part : parts)
    kept_bytes_ += kElementBytes * part.count;
  set.kept[output] = std::move(parts);
}

// Candidates need memory, too.
void TruthEngine::forget_spare() {
  const Result<int64_t> free = device_.free_memory();
  const bool is_plenty = free && *free > device_.info().memory_bytes / kSpareShare;
  if (!is_plenty) runner_.forget_free();
}

Status TruthEngine::scan_rest(const Set& set, int output, const runtime::Buffer& found,
                              Comparison& sum) {
  const graph::OutputRows& rows = rows_[static_cast<size_t>(output)];
  int64_t at = 0;
  for (const Part& part : set.kept.at(output)) {
    WARPLOOM_CHECK(scan_run(output, found, {at, part.first - at}, sum));
    at = part.first + part.count;
  }
  return scan_run(output, found, {at, rows.count * rows.elements - at}, sum);
}

Status TruthEngine::scan_run(int output, const runtime::Buffer& found, ElementRun run,
                             Comparison& sum) {
  if (run.count == 0) return ok();
  const Dtype dtype = graph_.tensor(graph_.outputs[static_cast<size_t>(output)]).dtype;
  tasks::CompareTask task{.type = static_cast<int64_t>(dtype)};
  task.found = address_of(found) + run.first * bytes_of(dtype);
  task.begin = run.first;
  task.count = run.count;
  Comparison seen;
  WARPLOOM_CHECK(compare_by(task, seen));
  sum.unwritten.add(seen.unwritten);
  return ok();
}
}  // namespace warploom::verify
