// beside: a bundle's kernels beside every reference of its model and beside plain copies, in turns.
//
//   bench_cpu BUNDLE PAIRS SECONDS [copy]
//
// The references are those that the judge chooses from (vendor/make.h): oneDNN in rows and in its
// own layouts, and OpenBLAS. They read the same buffers. Those that are close to the fastest stay;
// then all take turns, in an order that turns round. A turn calls one of them untimed until the
// threads of the one before have gone to sleep, and then takes the median of a few calls. With
// `copy`, copies of as many bytes as the kernels read and write take turns, too, from and to
// buffers of the same kind of pages.
//
// Prints JSON: `ours_us` and its interval, of the turns; for each of `others` its name, its kind
// (`reference` or `copy`), its time, how many of `pairs` there were and the `ratio` of its turns to
// ours with its 95 % interval. A reference that computes something else than the bundle, which was
// judged, is left out and named. Driven by measure.py.
#include <fmt/format.h>
#include <immintrin.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "codegen/launch_list.h"
#include "cpu/pool.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "onnx/load.h"
#include "runtime/bundle.h"
#include "runtime/executor.h"
#include "runtime/plan_file.h"
#include "runtime/timing.h"
#include "vendor/make.h"
#include "vendor/match.h"
#include "verify/inputs.h"

namespace {
using namespace warploom;
using nlohmann::json;
using runtime::Buffer, runtime::Call;

constexpr double kSettleUs = 3000;    // of untimed calls: threads of others spin so long at most
constexpr double kTurnUs = 20'000;    // of timed calls in a turn
constexpr double kClose = 1.25;       // references up to so much slower than the fastest stay
constexpr int kFewestCalls = 3;       // in a turn
constexpr int kMostCalls = 400;       // in a turn
constexpr int kLongCallsMs = 20'000;  // of all turns, however many pairs are wanted
constexpr double kFarOff = 0.02;      // relative to the norm: another function than ours

double us_since(std::chrono::steady_clock::time_point start) {
  const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - start;
  return spent.count();
}

// Something that takes turns.
struct Runner {
  std::string name;
  std::string kind;
  Call call;
  std::vector<double> turns = {};  // us, a median each
  int calls = 1;                   // timed in a turn

  Result<double> once() const {
    const auto start = std::chrono::steady_clock::now();
    WARPLOOM_CHECK(call());
    return us_since(start);
  }

  // The median of `count` calls after untimed ones.
  Result<double> turn(int count) const {
    const auto start = std::chrono::steady_clock::now();
    do
      WARPLOOM_CHECK(call());
    while (us_since(start) < kSettleUs);
    std::vector<double> times;
    for (int i = 0; i < count; ++i)
      WARPLOOM_TRY(times.emplace_back(), once());
    return runtime::median_interval(times).median_us;
  }

  // How many calls a turn has.
  Status settle() {
    WARPLOOM_TRY(const double us, turn(kFewestCalls));
    calls = std::clamp(static_cast<int>(kTurnUs / us), kFewestCalls, kMostCalls);
    return ok();
  }
};

// Copies by whole vectors past the caches; `count` is a multiple of 64 bytes.
__attribute__((target("avx512f"))) void stream_wide(char* to, const char* from, int64_t count) {
  for (int64_t i = 0; i < count; i += 64)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i), _mm512_loadu_si512(from + i));
  _mm_sfence();
}

void stream_narrow(char* to, const char* from, int64_t count) {
  for (int64_t i = 0; i < count; i += 16)
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
  _mm_sfence();
}

void copy_plainly(char* to, const char* from, int64_t count) {
  std::memcpy(to, from, as_size(count));
}

// The ways to copy `bytes` on all cores, pieces of a size that a core's caches hold.
Result<std::vector<Runner>> copies_of(runtime::Executor& device, int64_t bytes) {
  using Copy = void (*)(char*, const char*, int64_t);
  constexpr int64_t kPiece = 256 << 10;
  const int64_t pieces = std::max<int64_t>(1, bytes / kPiece);
  const int64_t piece = (bytes / pieces + 63) / 64 * 64;
  WARPLOOM_TRY(const Buffer from, device.allocate(pieces * piece));
  WARPLOOM_TRY(const Buffer to, device.allocate(pieces * piece));
  WARPLOOM_CHECK(device.fill(from, 1));
  WARPLOOM_CHECK(device.fill(to, 2));
  const auto pool = std::make_shared<wl::Pool>();
  std::vector<std::pair<std::string, Copy>> ways = {{"memcpy", copy_plainly},
                                                    {"streamed 16 bytes", stream_narrow}};
  if (__builtin_cpu_supports("avx512f")) ways.emplace_back("streamed 64 bytes", stream_wide);
  std::vector<Runner> made;
  for (const auto& [name, copy] : ways) {
    const Call call = [=, copy = copy]() -> Status {
      pool->run(pieces, [&](int64_t i, int) {
        const int64_t at = i * piece;
        copy(static_cast<char*>(to.address()) + at, static_cast<char*>(from.address()) + at, piece);
      });
      return ok();
    };
    made.push_back({"copy: " + name, "copy", call});
  }
  return made;
}

// A bundle, its model's references, and the buffers that all of them use.
struct Bench {
  std::unique_ptr<runtime::Bundle> bundle;
  vendor::VendorProblem problem;
  Track track = Track::fp32;
  runtime::Bindings buffers;
  std::vector<std::string> outputs;
  int64_t bytes = 0;  // of inputs and outputs
};

Status read_model(const std::filesystem::path& folder, Bench& bench) {
  std::filesystem::path path = folder;
  WARPLOOM_TRY(const json plan, runtime::read_plan(path, {"model", "track"}));
  WARPLOOM_TRY(graph::Graph given, parse_onnx(plan["model"].get<std::string>(), path.string()));
  bench.track = track_named(plan["track"].get<std::string>()).value_or(Track::fp32);
  const graph::Graph operators = given;
  WARPLOOM_TRY(const graph::Graph primitives, graph::decompose(std::move(given)));
  bench.problem = vendor::match_region(primitives, operators, bench.track);
  for (const json& name : plan.value("constant", json::array()))
    bench.problem.constants.insert(name.get<std::string>());
  return ok();
}

Status fill_buffers(Bench& bench) {
  runtime::Executor& device = *bench.bundle->device;
  const size_t inputs = bench.bundle->tensors.size() - bench.bundle->list.outputs.size();
  for (size_t i = 0; i < bench.bundle->tensors.size(); ++i) {
    const BufferSpec& tensor = *bench.bundle->tensors[i];
    const int64_t bytes = tensor.bytes();
    WARPLOOM_TRY(const Buffer buffer, device.allocate(bytes));
    bench.buffers[tensor.name] = buffer;
    bench.bytes += bytes;
    if (i >= inputs) {
      bench.outputs.push_back(tensor.name);
      WARPLOOM_CHECK(device.fill(buffer, 0));
      continue;
    }
    verify::Stream stream;
    stream.tensor = as_int(i);
    stream.dtype = tensor.dtype;
    verify::fill(stream, buffer.address(), 0, tensor.elements());
  }
  return ok();
}

// Elements of an output, evenly spread.
std::vector<double> sample_of(const BufferSpec& tensor, const Buffer& buffer) {
  constexpr int64_t kMost = 1 << 20;
  const int64_t step = std::max<int64_t>(1, tensor.elements() / kMost) | 1;
  std::vector<double> out;
  for (int64_t i = 0; i < tensor.elements(); i += step)
    out.push_back(load_as_double(tensor.dtype, buffer.address(), as_size(i)));
  return out;
}

// How far a reference's output is from ours, relative to its norm. What a call of it wrote stands
// in the buffer.
double distance(const std::vector<double>& ours, const std::vector<double>& theirs) {
  double apart = 0;
  double norm = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    apart += (ours[i] - theirs[i]) * (ours[i] - theirs[i]);
    norm += ours[i] * ours[i];
  }
  return std::sqrt(apart / std::max(norm, 1e-30));
}

// The fastest of what `offered` holds, and those that are close to it.
Result<std::vector<Runner>> closest_of(std::vector<Runner> offered) {
  std::vector<double> times;
  for (const Runner& one : offered)
    WARPLOOM_TRY(times.emplace_back(), one.turn(kFewestCalls));
  std::vector<Runner> kept;
  for (size_t i = 0; i < offered.size(); ++i)
    if (times[i] <= kClose * *std::ranges::min_element(times))
      kept.push_back(std::move(offered[i]));
  return kept;
}

// The references that libraries make, plain kernels only where no library makes one.
Result<std::vector<Runner>> references_of(Bench& bench, const Runner& ours) {
  runtime::Executor& device = *bench.bundle->device;
  WARPLOOM_CHECK(ours.call());
  const BufferSpec& output = bench.bundle->list.outputs[0];
  const Buffer& buffer = bench.buffers[output.name];
  const std::vector<double> expected = sample_of(output, buffer);
  std::vector<Runner> made;
  for (const vendor::Candidate& candidate :
       vendor::candidates(device, bench.problem, bench.track)) {
    if (candidate.plain && !made.empty()) continue;
    const auto reference = candidate.make();
    if (!reference) continue;
    const auto call = reference->bind(bench.buffers);
    if (!call) continue;
    WARPLOOM_CHECK(device.fill(buffer, 0));
    WARPLOOM_CHECK((*call)());
    const double apart = distance(expected, sample_of(output, buffer));
    if (!(apart <= kFarOff)) {
      fmt::print(stderr, "{} computes something else, by {:.3g}\n", reference->name, apart);
      continue;
    }
    made.push_back({reference->name, "reference", *call});
  }
  return made.empty() ? made : closest_of(std::move(made));
}

Status take_turns(std::vector<Runner>& runners, int pairs, double seconds) {
  for (Runner& one : runners)
    WARPLOOM_CHECK(one.settle());
  const auto start = std::chrono::steady_clock::now();
  for (int pair = 0;; ++pair) {
    const double spent_us = us_since(start);
    if (pair >= pairs && spent_us > 1e6 * seconds) return ok();
    if (pair >= kFewestCalls && spent_us > 1e6 * seconds + 1e3 * kLongCallsMs) return ok();
    for (size_t i = 0; i < runners.size(); ++i) {
      Runner& one = runners[pair % 2 == 0 ? i : runners.size() - 1 - i];
      WARPLOOM_TRY(one.turns.emplace_back(), one.turn(one.calls));
    }
  }
}

json told(const Bench& bench, const std::vector<Runner>& runners) {
  json others = json::array();
  const auto ours = runtime::median_interval(runners[0].turns);
  for (size_t i = 1; i < runners.size(); ++i) {
    const auto ratio = runtime::ratio_of(runners[0].turns, runners[i].turns);
    others.push_back({{"name", runners[i].name},
                      {"kind", runners[i].kind},
                      {"us", runtime::median_interval(runners[i].turns).median_us},
                      {"ratio", ratio.median},
                      {"interval", {ratio.low, ratio.high}},
                      {"pairs", ratio.pairs}});
  }
  return {{"ours_us", ours.median_us},
          {"ours_interval_us", {ours.low_us, ours.high_us}},
          {"device", bench.bundle->device->info().name},
          {"cores", bench.bundle->device->info().num_sms},
          {"bytes", bench.bytes},
          {"others", others}};
}

Status compare(int argc, char** argv) {
  Bench bench;
  WARPLOOM_CHECK(read_model(argv[1], bench));
  WARPLOOM_TRY(bench.bundle, runtime::Bundle::load(argv[1], {.trusted = true}));
  WARPLOOM_CHECK(fill_buffers(bench));
  std::vector<void*> addresses;
  for (const BufferSpec* tensor : bench.bundle->tensors)
    addresses.push_back(bench.buffers[tensor->name].address());
  WARPLOOM_TRY(const Call call, bench.bundle->bind(addresses));
  std::vector<Runner> runners = {{"ours", "ours", call}};
  WARPLOOM_TRY(std::vector<Runner> others, references_of(bench, runners[0]));
  if (argc > 4 && std::string(argv[4]) == "copy") {
    WARPLOOM_TRY(std::vector<Runner> copies, copies_of(*bench.bundle->device, bench.bytes / 2));
    WARPLOOM_TRY(copies, closest_of(std::move(copies)));
    std::ranges::move(copies, std::back_inserter(others));
  }
  std::ranges::move(others, std::back_inserter(runners));
  WARPLOOM_CHECK(take_turns(runners, std::atoi(argv[2]), std::atof(argv[3])));
  fmt::print("{}\n", told(bench, runners).dump());
  return ok();
}
}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const Status done = runtime::reading_plan(argv[1], [&] { return compare(argc, argv); });
  if (!done) fmt::print(stderr, "{}: {}\n", done.error().message, done.error().found);
  return done ? 0 : 1;
}
