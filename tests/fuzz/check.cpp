#include "check.h"
#include <fmt/format.h>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "codegen/launch_list.h"
#include "emulator.h"
#include "fuzz/program.h"
#include "kernels/lower.h"
#include "run_list.h"
#include "runtime/compile.h"
#include "runtime/emulate.h"
#include "target/capabilities.h"
#include "tile/interpret.h"
#include "tile/print.h"
#include "tile/program.h"
#include "tile/verify.h"

namespace warploom::fuzz {
namespace {
// One program on one target, on its way.
struct Job {
  const Case* made = nullptr;
  size_t number = 0;  // of the case
  std::string target;
  LaunchList list;
  Outcome* outcome = nullptr;
};

void set(Outcome& outcome, const Error& error) {
  outcome.code = code_text(error.code);
  outcome.detail = describe(error);
}

bool is_nan(Dtype dtype, const std::byte* data, size_t i) {
  return std::isnan(load_as_double(dtype, data, i));
}

Storage inputs_of(const Case& c) {
  Storage storage;
  for (const tile::Tensor& t : c.program.tensors) {
    if (t.scope != tile::Scope::global) continue;
    size_t count = 1;
    for (size_t d = 0; d < t.shape.size(); ++d)
      count += static_cast<size_t>((t.shape[d] - 1) * t.strides[d]);
    auto& bytes = storage[t.name];
    bytes.assign(count * static_cast<size_t>(bytes_of(t.dtype)), std::byte{0xff});
    if (t.writable) continue;
    Random random(c.seed, t.name);
    for (size_t i = 0; i < count; ++i) {
      const bool natural = t.dtype == Dtype::boolean || t.dtype == Dtype::u8;
      if (c.data == Data::raw && t.dtype != Dtype::boolean && t.dtype != Dtype::tf32 &&
          t.dtype != Dtype::i64) {
        const uint64_t bits = random.next();
        const auto size = static_cast<size_t>(bytes_of(t.dtype));
        std::memcpy(bytes.data() + i * size, &bits, size);
        if (is_float(t.dtype) && is_nan(t.dtype, bytes.data(), i))
          std::memset(bytes.data() + i * size, 0, size);
      } else if (natural) {
        store_from_double(t.dtype, bytes.data(), i,
                          static_cast<double>(random.below(t.dtype == Dtype::boolean ? 2 : 4)));
      } else if (c.data != Data::real || !is_float(t.dtype)) {
        store_from_double(t.dtype, bytes.data(), i, static_cast<double>(random.below(7)) - 3);
      } else {
        store_from_double(t.dtype, bytes.data(), i, 4 * random.uniform() - 2);
      }
    }
  }
  return storage;
}

// "" or the first element that differs by more than it may.
std::string difference(const Case& c, const Storage& meant, const Storage& made) {
  for (const tile::Tensor& t : c.program.tensors) {
    if (t.scope != tile::Scope::global) continue;
    const auto& want = meant.at(t.name);
    const auto& got = made.at(t.name);
    if (want == got) continue;
    const auto known = c.known.find(t.name);
    const bool bits = !t.writable || c.data == Data::raw || known == c.known.end();
    for (size_t i = 0; i < want.size() / static_cast<size_t>(bytes_of(t.dtype)); ++i) {
      const auto size = static_cast<size_t>(bytes_of(t.dtype));
      if (std::memcmp(want.data() + i * size, got.data() + i * size, size) == 0) continue;
      const double a = load_as_double(t.dtype, want.data(), i);
      const double b = load_as_double(t.dtype, got.data(), i);
      if (!bits && (a == b || std::fabs(a - b) <= known->second.error)) continue;
      return fmt::format("{}[{}]: {} meant, {} made, {} allowed", t.name, i, a, b,
                         bits ? 0 : known->second.error);
    }
  }
  return "";
}

// The steps before a target: text and back, and the meaning.
bool meaning(const Case& c, Storage& meant, Outcome& outcome) {
  if (const auto valid = tile::verify(c.program); !valid) {
    set(outcome, valid.error());
    return false;
  }
  const std::string text = tile::print(c.program);
  const auto parsed = tile::parse(text);
  if (!parsed) {
    set(outcome, parsed.error());
    return false;
  }
  if (const std::string again = tile::print(*parsed); again != text) {
    outcome.code = "wrong";
    outcome.detail = "the text parses to another program:\n" + again;
    return false;
  }
  meant = inputs_of(c);
  if (const auto done = tile::interpret(c.program, views_of<tile::Buffers>(meant)); !done) {
    set(outcome, done.error());
    return false;
  }
  return true;
}

void finish(const Job& job, const Storage& meant, const runtime::Binary* binary) {
  Storage made = inputs_of(*job.made);
  Storage want = meant;
  pack_inputs(job.list, made);
  pack_inputs(job.list, want);
  const auto ran = binary ? run_on_cpu(job.list, *binary, made) : [&]() -> Status {
    const runtime::EmulateOptions options{
        .seed = job.made->seed, .timing = static_cast<emulator::Timing>(job.made->seed % 3)};
    WARPLOOM_TRY([[maybe_unused]] const auto emulation,
                 runtime::emulate(job.list, views_of<runtime::EmulatedBuffers>(made), options));
    return ok();
  }();
  if (!ran) return set(*job.outcome, ran.error());
  job.outcome->detail = difference(*job.made, want, made);
  job.outcome->code = job.outcome->detail.empty() ? "agrees" : "wrong";
}

// Cases on their way through all their targets.
class Batch {
 public:
  Batch(const std::vector<Case>& cases, const WorkingOn& working_on)
      : cases_(cases), working_on_(working_on), meant_(cases.size()) {
    for (const Case& c : cases)
      for (const std::string& target : c.targets)
        outcomes_.push_back({c.seed, c.kind, target});
  }

  std::vector<Outcome> run() && {
    std::span<Outcome> left = outcomes_;
    for (size_t i = 0; i < cases_.size(); ++i) {
      const size_t targets = cases_[i].targets.size();
      working_on_(static_cast<int>(i));
      prepare(i, left.first(targets));
      left = left.subspan(targets);
    }
    // One text for all GPUs' kernels, which the emulator compiles, one for the CPU's.
    for (const bool gpu : {true, false})
      run_together(jobs_of(gpu));
    return std::move(outcomes_);
  }

 private:
  // Up to the launch lists; `own` are the case's outcomes, by target.
  void prepare(size_t number, std::span<Outcome> own) {
    const Case& c = cases_[number];
    if (!meaning(c, meant_[number], own[0])) {
      for (Outcome& outcome : own.subspan(1)) {
        outcome.code = own[0].code;
        outcome.detail = own[0].detail;
      }
      return;
    }
    for (size_t t = 0; t < own.size(); ++t) {
      auto lowered = kernels::lower(c.program, *target::capabilities_of(c.targets[t]));
      if (lowered)
        jobs_.push_back({&c, number, c.targets[t], std::move(lowered->list), &own[t]});
      else
        set(own[t], lowered.error());
    }
  }

  std::vector<Job*> jobs_of(bool gpu) {
    std::vector<Job*> found;
    for (Job& job : jobs_)
      if ((job.list.engine == Engine::cuda) == gpu) found.push_back(&job);
    return found;
  }

  void run_together(const std::vector<Job*>& jobs) {
    share_text(jobs);
    for (const Job* job : jobs) {
      const bool compiles = job == jobs[0];  // the first of them has the text compiled
      working_on_(compiles ? -1 : static_cast<int>(job->number));
      run(*job);
      if (job->outcome->code == "compile-failed" && jobs.size() > 1) return run_alone(jobs);
    }
  }

  static void share_text(const std::vector<Job*>& jobs) {
    if (jobs.size() < 2) return;
    std::vector<std::string> texts;
    for (const Job* job : jobs)
      texts.push_back(job->list.kernels[0].source);
    const std::string text = joined(texts);
    for (Job* job : jobs)
      job->list.kernels[0].source = text;
  }

  void run(const Job& job) const {
    const Storage& meant = meant_[job.number];
    if (job.list.engine == Engine::cuda) return finish(job, meant, nullptr);
    const auto binary = runtime::compile(job.list, {.time = std::chrono::minutes(10)});
    if (!binary) return set(*job.outcome, binary.error());
    finish(job, meant, &*binary);
  }

  // Somebody's text does not compile: each alone, to see whose.
  void run_alone(const std::vector<Job*>& jobs) const {
    for (const Job* job : jobs) {
      Case alone = *job->made;
      alone.targets = {job->target};
      working_on_(static_cast<int>(job->number));
      *job->outcome = check_case(alone)[0];
    }
  }

  const std::vector<Case>& cases_;
  const WorkingOn& working_on_;
  std::vector<Storage> meant_;  // by case
  std::vector<Outcome> outcomes_;
  std::vector<Job> jobs_;
};
}  // namespace

bool Outcome::is_bug() const {
  static const std::set<std::string> kFine = {"agrees",         "no-layout", "no-instruction",
                                              "resource-limit", "built",     "schedule-illegal",
                                              "no-schedule"};
  return !kFine.contains(code);
}

std::vector<Outcome> check_cases(const std::vector<Case>& cases, const WorkingOn& working_on) {
  return Batch(cases, working_on).run();
}

std::vector<Outcome> check_case(const Case& one) {
  return check_cases({one});
}

std::vector<Outcome> check_programs(uint64_t first, int count, const WorkingOn& working_on) {
  std::vector<Case> cases;
  for (int i = 0; i < count; ++i) {
    working_on(i);
    cases.push_back(make_case(first + static_cast<uint64_t>(i)));
  }
  return check_cases(cases, working_on);
}
}  // namespace warploom::fuzz
