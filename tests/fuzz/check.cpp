#include "check.h"
#include <fmt/format.h>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
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
}  // namespace

bool Outcome::is_bug() const {
  static const std::set<std::string> kFine = {"agrees",         "no-layout", "no-instruction",
                                              "resource-limit", "built",     "schedule-illegal",
                                              "no-schedule"};
  return !kFine.contains(code);
}

std::vector<Outcome> check_cases(const std::vector<Case>& cases, const WorkingOn& working_on) {
  std::vector<Outcome> outcomes;
  std::vector<Storage> meant(cases.size());
  std::vector<Job> jobs;
  for (const Case& c : cases)
    for (const std::string& target : c.targets) outcomes.push_back({c.seed, c.kind, target});
  std::vector<size_t> case_of;
  size_t next = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    working_on(static_cast<int>(i));
    const bool means = meaning(cases[i], meant[i], outcomes[next]);
    for (const std::string& target : cases[i].targets) {
      Outcome& outcome = outcomes[next++];
      if (!means) {
        if (outcome.code.empty()) {
          outcome.code = outcomes[next - 2].code;
          outcome.detail = outcomes[next - 2].detail;
        }
        continue;
      }
      auto lowered = kernels::lower(cases[i].program, *target::capabilities_of(target));
      if (!lowered) {
        set(outcome, lowered.error());
        continue;
      }
      jobs.push_back({&cases[i], target, std::move(lowered->list), &outcome});
      case_of.push_back(i);
    }
  }
  // One text for all GPUs' kernels, which the emulator compiles, one for the CPU's.
  for (const bool gpu : {true, false}) {
    std::vector<size_t> mine;
    std::vector<std::string> texts;
    for (size_t j = 0; j < jobs.size(); ++j)
      if ((jobs[j].list.engine == Engine::cuda) == gpu) {
        mine.push_back(j);
        texts.push_back(jobs[j].list.kernels[0].source);
      }
    if (mine.empty()) continue;
    const std::string text = mine.size() == 1 ? texts[0] : joined(texts);
    for (const size_t j : mine) jobs[j].list.kernels[0].source = text;
    for (size_t at = 0; at < mine.size(); ++at) {
      const Job& job = jobs[mine[at]];
      working_on(at == 0 ? -1
                         : static_cast<int>(
                               case_of[mine[at]]));  // the first of them has the text compiled
      if (gpu) {
        finish(job, meant[case_of[mine[at]]], nullptr);
      } else if (const auto binary = runtime::compile(job.list, {.time = std::chrono::minutes(10)});
                 binary) {
        finish(job, meant[case_of[mine[at]]], &*binary);
      } else {
        set(*job.outcome, binary.error());
      }
      if (job.outcome->code != "compile-failed" || mine.size() == 1) continue;
      // Somebody's text does not compile: each alone, to see whose.
      for (size_t k = 0; k < mine.size(); ++k) {
        Case alone = *jobs[mine[k]].made;
        alone.targets = {jobs[mine[k]].target};
        working_on(static_cast<int>(case_of[mine[k]]));
        *jobs[mine[k]].outcome = check_case(alone)[0];
      }
      break;
    }
  }
  return outcomes;
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
