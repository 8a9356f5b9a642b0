// Products among the steps.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/value_op.h"
#include "graph/reference.h"
#include "graph/steps.h"
#include "runtime/executor.h"
#include "verify/truth_kernels.h"
#include "verify/truth_steps.h"

namespace warploom::verify {
namespace {
constexpr int64_t kLeastDepths = 1 << 10;  // of k that a part of a product sums

// Whether places are as far apart as the first two, from 0 on.
bool is_even(const std::vector<int64_t>& places) {
  const int64_t step = places.size() > 1 ? places[1] - places[0] : 0;
  for (size_t i = 0; i < places.size(); ++i)
    if (places[i] != static_cast<int64_t>(i) * step) return false;
  return true;
}

// Tables of where things are that are not evenly apart, and the record's fields that say where.
struct Tables {
  std::vector<int64_t> words;
  std::vector<std::pair<tasks::Places*, int64_t>> users;

  void add(tasks::Places& of, const std::vector<int64_t>& places) {
    if (is_even(places)) {
      of = {0, places.size() > 1 ? places[1] : 0};
      return;
    }
    users.emplace_back(&of, std::ssize(words));
    words.insert(words.end(), places.begin(), places.end());
  }
};
}  // namespace

Status StepRunner::product(Running& running, const graph::Step& step,
                           const graph::ProductStep& work) {
  tasks::ProductTask task{.m = std::ssize(work.a.lines), .n = std::ssize(work.b.lines)};
  task.k = std::ssize(work.a.depths);
  task.batch = std::ssize(work.batch);
  task.parts = 1;
  if (task.m * task.n * task.batch == 0) return ok();
  std::vector<int64_t> places[3];
  for (const graph::Offsets& at : work.batch) {
    places[0].push_back(at.a);
    places[1].push_back(at.b);
    places[2].push_back(at.c);
  }
  Tables tables;
  task.a.of = running.numbers(work.a.storage);
  task.b.of = running.numbers(work.b.storage);
  tables.add(task.a.lines, work.a.lines);
  tables.add(task.a.depths, work.a.depths);
  tables.add(task.a.batch, places[0]);
  tables.add(task.b.lines, work.b.lines);
  tables.add(task.b.depths, work.b.depths);
  tables.add(task.b.batch, places[1]);
  tables.add(task.c, places[2]);
  task.to = running.numbers(step.to);
  task.type = static_cast<int64_t>(step.dtype);
  if (!tables.words.empty()) {
    WARPLOOM_TRY(const runtime::Buffer words, uploaded(tables.words));
    for (const auto& [user, at] : tables.users)
      user->table = address_of(words) + 8 * at;
  }
  if (running.is_whole(step)) return kernels_.launch("truth_product_whole", task);
  return multiply(running, step, task);
}

Result<runtime::Buffer> StepRunner::uploaded(const std::vector<int64_t>& words) {
  constexpr size_t kMostTables = 16;
  const auto bytes = static_cast<int64_t>(words.size() * sizeof words[0]);
  const uint64_t key = hash64({reinterpret_cast<const char*>(words.data()), as_size(bytes)});
  if (const auto known = tables_.find(key); known != tables_.end()) return known->second;
  if (tables_.size() >= kMostTables)
    for (auto& [hash, buffer] : std::exchange(tables_, {}))
      give(std::move(buffer));  // what comes next is behind their kernels on the stream
  WARPLOOM_TRY(runtime::Buffer made, take(bytes));
  WARPLOOM_CHECK(device_.upload(made, words.data(), bytes));
  return tables_[key] = made;
}

// By tiles; where these are few, k is shared among several that are summed.
Status StepRunner::multiply(Running& running, const graph::Step& step, tasks::ProductTask task) {
  constexpr int64_t kTile = 64;
  const bool has_errors = task.a.of.magnitude != 0 || task.b.of.magnitude != 0;
  const char* const kernel = has_errors ? "truth_product_errors" : "truth_product";
  const int64_t tiles = ceil_div(task.m, kTile) * ceil_div(task.n, kTile) * task.batch;
  const int64_t elements = running.steps.storages[static_cast<size_t>(step.to)].elements;
  const int64_t wanted = kernels_.blocks() / 2 / tiles;
  const int64_t most = task.k / kLeastDepths;
  const bool is_all = task.m * task.n * task.batch == elements;
  if (is_all) task.parts = std::clamp<int64_t>(most, 1, std::max<int64_t>(wanted, 1));
  if (task.parts == 1) return kernels_.launch(kernel, task);
  WARPLOOM_TRY(const DevicePair parts, make(elements * task.parts, true));
  tasks::MergeTask merge{.count = elements, .parts = task.parts, .part_step = elements};
  merge.result_step = 1;
  merge.op = static_cast<int64_t>(ValueOp::add);
  merge.from = parts.numbers();
  merge.to = task.to;
  task.part_step = elements;
  task.to = parts.numbers();
  WARPLOOM_CHECK(kernels_.launch(kernel, task));
  WARPLOOM_CHECK(kernels_.launch("truth_merge", merge));
  give_back(parts);
  return ok();
}
}  // namespace warploom::verify
