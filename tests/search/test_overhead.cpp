// What judging a candidate costs beyond compiling it and its own timed runs: loading, hidden
// inputs, comparison with FP64, guards, poison, the way there and back, and the record in the
// archive.
//
//   WARPLOOM_OVERHEAD_OUT=FILE build/release/test_search --gtest_filter='Overhead.OnThis*'
//
// measures, on cores that nobody else uses (`chrt -f 10` in front keeps others off them), and holds
// the median to its limit. Without the variable it sees that candidates are judged and counted, and
// says nothing of how long that took: others may use the machine. WARPLOOM_GPU_OVERHEAD_OUT and
// Overhead.OnThe* are the same for the GPU.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <ratio>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include "../graph/builder.h"
#include "archive/archive.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "codegen/launch_list.h"
#include "graph/builder.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "runtime/compile.h"
#include "runtime/executor.h"
#include "search/search_space.h"
#include "search/strategy/strategy.h"
#include "target/capabilities.h"
#include "told.h"
#include "vendor/match.h"
#include "verify/evaluator.h"
#include "verify/setup.h"

namespace warploom::search {
namespace {
using nlohmann::json;
using std::chrono::steady_clock;

constexpr int64_t kMostBytes =
    32
    << 20;  // beyond it memory is what takes the time: every byte is poisoned, hashed and compared

struct Case {
  std::string name;
  graph::Graph graph;
};

// Where candidates run, and what judging one may cost there.
struct Place {
  Engine engine;
  std::string target;
  double most_ms;
  const char* variable;  // of the environment: where figures go
};

graph::Graph matmul(int64_t m, int64_t n, int64_t k, bool gelu = false) {
  graph::Builder b("mm");
  auto y = b.add(graph::OpKind::MatMul,
                 {b.input("x", Dtype::f32, {m, k}), b.input("w", Dtype::f32, {k, n})});
  if (gelu)
    y = b.add(graph::OpKind::Gelu, {b.add(graph::OpKind::Add, {y, b.input("b", Dtype::f32, {n})})});
  b.output(y);
  return *b.finish();
}

graph::Graph softmax(int64_t rows, int64_t columns) {
  graph::Builder b("softmax");
  b.output(b.add(graph::OpKind::Softmax, {b.input("x", Dtype::f32, {rows, columns})}));
  return *b.finish();
}

// Of at most 10⁹ operations each.
std::vector<Case> cases() {
  return {{"matmul 128 x 128 x 128", matmul(128, 128, 128)},
          {"matmul 512 x 512 x 512", matmul(512, 512, 512)},
          {"matmul 768 x 768 x 768", matmul(768, 768, 768)},
          {"matmul + bias + gelu 256 x 1024 x 512", matmul(256, 1024, 512, true)},
          {"softmax 1024 x 1024", softmax(1024, 1024)},
          {"softmax 4096 x 4096", softmax(4096, 4096)}};
}

double ms_since(steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(steady_clock::now() - start).count();
}

double middle(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

double rounded(double value) {
  return std::round(value * 100) / 100;
}

// Milliseconds of each candidate of a problem.
struct Costs {
  std::vector<double> added;      // beside its own timed runs
  std::vector<double> timed;      // its own timed runs
  std::vector<double> recording;  // of what was added
};

json figures_of(const Case& one, const kernels::Work& work, const Costs& costs) {
  // The first finds no references yet, and is counted in the mean.
  double sum = 0;
  for (const double ms : costs.added)
    sum += ms;
  return {{"problem", one.name},
          {"megabytes", rounded(work.bytes / 1e6)},
          {"operations", work.flops},
          {"added_ms_median", rounded(middle(costs.added))},
          {"added_ms_mean", rounded(sum / static_cast<double>(costs.added.size()))},
          {"added_ms_first", rounded(costs.added.front())},
          {"of_it_recording_ms", rounded(middle(costs.recording))},
          {"own_timed_runs_ms", rounded(middle(costs.timed))}};
}

// As a search of a minute screens (tuning_session.cpp).
verify::Request screening(const LaunchList& list) {
  return {.list = list,
          .check_ms = 1200,
          .beside_reference = false,
          .min_samples = 3,
          .max_samples = 30,
          .timing_ms = 60};
}

// A problem as its candidates are judged and recorded.
class Measured {
 public:
  Measured(const Place& place, const Case& one, archive::Archive& archive, SearchSpace space,
           verify::Evaluator& evaluator)
      : place_(place), one_(one), archive_(archive), space_(std::move(space)), judge_(evaluator) {}

  // Judges one candidate after another, until so many count.
  void run(size_t candidates) {
    const StrategyPtr strategy = strategy_of(space_, Strategy::beam, 1);
    while (costs.added.size() < candidates) {
      const auto schedule = next_of(strategy);
      ASSERT_TRUE(schedule);
      const auto list = space_.build(*schedule);
      if (!list || !runtime::compile(*list)) continue;
      ASSERT_NO_FATAL_FAILURE(judge(*schedule, *list));
    }
  }

  Costs costs;

 private:
  void judge(const kernels::KernelConfig& schedule, const LaunchList& list) {
    const verify::Request request = screening(list);
    const auto start = steady_clock::now();
    const auto verdict = judge_.judge(request);
    const double judged_ms = ms_since(start);
    ASSERT_TRUE(verdict) << schedule.text() << describe(verdict.error());
    EXPECT_NE(verdict->error_found.code, ErrorCode::kCandidateWrong) << schedule.text();
    if (!verdict->accepted) return;  // ptxas spills registers, say, or the machine stood still
    const auto before = steady_clock::now();
    ASSERT_TRUE(archive_.record(
        {.problem = one_.name, .schedule = schedule.text(), .verdict = verify::to_json(*verdict)}));
    const double own_ms = verdict->repeats * verdict->median_us / 1e3;
    costs.recording.push_back(ms_since(before));
    costs.timed.push_back(own_ms);
    costs.added.push_back(judged_ms - own_ms + costs.recording.back());
  }

  const Place& place_;
  const Case& one_;
  archive::Archive& archive_;
  SearchSpace space_;
  verify::Evaluator& judge_;
};

// Beyond some size memory is what takes the time.
void expect_low(const Place& place, const Case& one, const kernels::Work& work,
                const Costs& costs) {
  const bool measures = std::getenv(place.variable) != nullptr;
  if (!measures || work.bytes > kMostBytes) return;
  EXPECT_LT(middle(costs.added), place.most_ms) << one.name;
}

// Adds a problem's figures.
void measure_one(const Place& place, const Case& one, archive::Archive& archive, json& figures) {
  const auto primitive = graph::decompose(one.graph);
  ASSERT_TRUE(primitive) << describe(primitive.error());
  const SearchSpace space =
      search_space_of({*primitive, Track::fp32}, *target::capabilities_of(place.target));
  const kernels::Work work = kernels::work_of(space.region);
  ASSERT_TRUE(archive.add_problem({one.name, one.name, "fp32", place.target, "", ""}));
  const verify::Setup setup{.graph = *primitive,
                            .engine = place.engine,
                            .reference = vendor::match(*primitive, Track::fp32),
                            .flops = work.flops > 0 ? work.flops : work.bytes};
  auto evaluator = verify::Evaluator::start(setup);
  ASSERT_TRUE(evaluator) << describe(evaluator.error());
  figures["machine"] =
      fmt::format("{}, {} cores", evaluator->ready().device, std::thread::hardware_concurrency());
  Measured measured(place, one, archive, space, *evaluator);
  const size_t candidates = figures["candidates_each"];
  ASSERT_NO_FATAL_FAILURE(measured.run(candidates));
  figures["problems"].push_back(figures_of(one, work, measured.costs));
  expect_low(place, one, work, measured.costs);
}

void measure(const Place& place, const std::vector<Case>& problems) {
  const ScratchFolder folder("overhead");
  ::setenv("XDG_CACHE_HOME", folder.path().c_str(), 1);
  auto archive = archive::Archive::open(folder.path() / "archive.sqlite");
  ASSERT_TRUE(archive);
  const char* const out = std::getenv(place.variable);
  json figures = {
      {"candidates_each", out ? 12 : 2}, {"bar_ms", place.most_ms}, {"problems", json::array()}};
  for (const Case& one : problems)
    ASSERT_NO_FATAL_FAILURE(measure_one(place, one, *archive, figures));
  ::testing::Test::RecordProperty("figures", figures.dump());
  if (out) {
    ASSERT_TRUE(write_file(out, figures.dump(1) + "\n"));
  }
}

TEST(Overhead, OnThisMachinesCoresWhatScreeningAddsIsCounted) {
  measure({Engine::cpu, "cpu", 30, "WARPLOOM_OVERHEAD_OUT"}, cases());
}

TEST(Overhead, OnTheGpuWhatScreeningAddsIsCounted) {
  const auto device = runtime::Executor::open(Engine::cuda);
  if (!device) GTEST_SKIP() << describe(device.error());
  auto problems = cases();
  problems.push_back({"matmul 2048 x 2048 x 2048", matmul(2048, 2048, 2048)});
  measure({Engine::cuda, (*device)->info().arch, 100, "WARPLOOM_GPU_OVERHEAD_OUT"}, problems);
}
}  // namespace
}  // namespace warploom::search
