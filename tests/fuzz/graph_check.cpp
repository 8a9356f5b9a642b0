#include "graph_check.h"
#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include "../kernels/trials.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "base/rows.h"
#include "codegen/launch_list.h"
#include "emulator.h"
#include "fuzz/check.h"
#include "fuzz/graph_case.h"
#include "fuzz/graph_truth.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "graph/track.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "kernels/trials.h"
#include "plan/fusion.h"
#include "plan/link.h"
#include "plan/region.h"
#include "run_list.h"
#include "runtime/compile.h"
#include "runtime/emulate.h"
#include "target/capabilities.h"
#include "tile/interpret.h"

namespace warploom::fuzz {
namespace {
using kernels::Family;

// A region under the schedule that was drawn for it.
struct Drawn {
  std::string schedule;
  Family::Programs programs;
  LaunchList list;
};

struct Job {
  const GraphCase* made = nullptr;
  graph::Graph whole;  // of primitives
  LaunchList list;
  Outcome outcome;
  std::string interpreted;  // "" or how the interpreter differs from FP64
};

void set(Outcome& outcome, const Error& error) {
  outcome.code = code_text(error.code);
  outcome.detail += describe(error);
}

bool is_refusal(ErrorCode code) {
  return code == ErrorCode::kNoLayout || code == ErrorCode::kNoInstruction ||
         code == ErrorCode::kResourceLimit ||
         code == ErrorCode::kScheduleIllegal;  // fewer solutions than the number drawn
}

Result<Drawn> draw_schedule(const plan::Region& from, Track track,
                            const target::Capabilities& capabilities, uint64_t seed,
                            std::vector<Outcome>& drawn, const Outcome& about) {
  const kernels::Region region{from.graph, track};
  const auto families = kernels::families_for(region, capabilities);
  Random random(seed, from.identity + about.target);
  Error last{ErrorCode::kNoSchedule, "no schedule of the families that cover a region is legal",
             from.graph.name, "a legal schedule", graph::to_text(from.graph)};
  for (int i = 0; i < kDraws; ++i) {
    const kernels::FamilyPtr& family = families[random.below(families.size())];
    auto schedule = test::random_schedule(*family, random, {}, 50);
    if (!schedule) schedule = test::first_schedule(*family);
    if (!schedule) continue;
    auto list = kernels::build(region, *schedule, capabilities);
    drawn.push_back({about.seed, "schedule", about.target,
                     std::string(list ? "built" : code_text(list.error().code)),
                     list ? "" : describe(list.error())});
    if (list) {
      WARPLOOM_TRY(Family::Programs programs, family->programs(*schedule));
      return Drawn{schedule->text(), std::move(programs), std::move(*list)};
    }
    last = list.error();
    last.place += " under " + schedule->text();
    if (!is_refusal(last.code)) break;
  }
  return fail(last);
}

// The inputs, and every constant that is data.
Storage given(const GraphCase& c, const graph::Graph& whole) {
  Storage storage;
  for (size_t i = 0; i < c.inputs.size(); ++i)
    storage[c.graph.tensor(c.graph.inputs[i]).name] = c.inputs[i];
  for (const graph::Tensor& tensor : whole.tensors)
    if (tensor.constant) storage[tensor.name] = *tensor.constant;
  return storage;
}

Status interpret(const plan::Partition& parts, const std::vector<std::optional<Drawn>>& drawn,
                 const graph::Graph& whole, Storage& storage) {
  for (const graph::Tensor& tensor : whole.tensors)
    if (!storage.contains(tensor.name)) poison(storage[tensor.name], graph::byte_count(tensor));
  for (size_t r = 0; r < drawn.size(); ++r) {
    if (!drawn[r]) continue;
    Storage own;
    for (const BufferSpec& w : drawn[r]->programs.workspaces)
      poison(own[w.name], w.bytes());
    const plan::Region& region = parts.regions[r];
    for (size_t i = 0; i < drawn[r]->programs.programs.size(); ++i) {
      tile::Buffers buffers;
      for (const auto& [name, buffer] : drawn[r]->programs.buffers[i]) {
        const auto id = region.graph.tensor_named(buffer);
        buffers[name] = id ? storage.at(parts.storage.at(region.tensors[static_cast<size_t>(*id)]))
                           : own.at(buffer);
      }
      WARPLOOM_CHECK(tile::interpret(drawn[r]->programs.programs[i], buffers));
    }
  }
  return ok();
}

// Names that no other list of the batch has.
void rename(LaunchList& list, const std::string& suffix) {
  for (Kernel& kernel : list.kernels)
    kernel = renamed(kernel, kernel.name + suffix);
}

// Up to the launch list, and the interpreter; a job with an outcome has come to its end.
Job prepared(const GraphCase& c, const std::string& target, const Expected& expected, uint64_t draw,
             std::vector<Outcome>& schedules) {
  Job job{&c, {}, {}, {c.seed, "graph", target}};
  const auto capabilities = *target::capabilities_of(target);
  auto whole = graph::decompose(c.graph);
  if (!whole) {
    set(job.outcome, whole.error());
    return job;
  }
  job.whole = std::move(*whole);
  const auto parts = plan::regions_of(job.whole, c.track, capabilities);
  if (!parts) {
    set(job.outcome, parts.error());
    return job;
  }
  std::vector<std::optional<Drawn>> drawn;
  std::vector<const LaunchList*> lists;
  for (const plan::Region& region : parts->regions) {
    drawn.emplace_back();
    if (region.alias) continue;
    auto one = draw_schedule(region, c.track, capabilities, draw, schedules, job.outcome);
    if (!one) {
      set(job.outcome, one.error());
      if (one.error().code == ErrorCode::kScheduleIllegal) job.outcome.code = "no-schedule";
      return job;
    }
    drawn.back() = std::move(*one);
    job.outcome.detail += fmt::format("{}: {}\n", region.graph.name, drawn.back()->schedule);
  }
  for (const auto& one : drawn)
    lists.push_back(one ? &one->list : nullptr);
  job.list = plan::link(job.whole, *parts, lists);
  Storage storage = given(c, job.whole);
  if (const auto done = interpret(*parts, drawn, job.whole, storage); !done) {
    set(job.outcome, done.error());
    return job;
  }
  Storage outputs;
  for (const graph::TensorId id : job.whole.outputs) {
    const std::string& name = job.whole.tensor(id).name;
    outputs[name] = storage.at(parts->storage.at(name));
  }
  job.interpreted = difference(c, expected, outputs);
  rename(job.list, fmt::format("_s{}_{}", c.seed, target));
  return job;
}

void finish(Job& job, const Expected& expected, const runtime::Binary* binary) {
  Storage storage = given(*job.made, job.whole);
  Storage bound;
  for (const BufferSpec& spec : job.list.inputs)
    bound[spec.name] = storage.at(spec.name);
  for (const BufferSpec& spec : job.list.outputs)
    poison(bound[spec.name], spec.bytes());
  if (binary)
    for (const BufferSpec& spec : job.list.workspaces)
      poison(bound[spec.name], spec.bytes());
  const uint64_t seed = job.made->seed;
  const auto ran = binary ? run_on_cpu(job.list, *binary, bound) : [&]() -> Status {
    WARPLOOM_TRY(
        [[maybe_unused]] const auto emulation,
        runtime::emulate(job.list, views_of<runtime::EmulatedBuffers>(bound),
                         {.seed = seed, .timing = static_cast<emulator::Timing>(seed % 3)}));
    return ok();
  }();
  if (!ran) return set(job.outcome, ran.error());
  const std::string wrong = difference(*job.made, expected, bound);
  job.outcome.code = wrong.empty() && job.interpreted.empty() ? "agrees" : "wrong";
  if (!job.interpreted.empty()) job.outcome.detail += "interpreted: " + job.interpreted;
  if (!wrong.empty()) job.outcome.detail += "run: " + wrong;
}

std::string operators_of(const graph::Graph& graph) {
  std::string names;
  for (const graph::Node& node : graph.nodes)
    names += (names.empty() ? "" : " ") + std::string(graph::name_of(node.op));
  return names;
}

// Graphs on their way through all their targets.
class Batch {
 public:
  Batch(std::span<const GraphCase> cases, const WorkingOn& working_on, uint64_t draw)
      : cases_(cases), working_on_(working_on), draw_(draw) {}

  std::vector<Outcome> run() && {
    for (size_t i = 0; i < cases_.size(); ++i) {
      working_on_(static_cast<int>(i));
      expected_.push_back(expected_of(cases_[i]));
      for (const std::string& target : cases_[i].targets)
        jobs_.push_back(prepared(cases_[i], target, expected_[i], draw_, outcomes_));
    }
    // One text for all GPUs' kernels, which the emulator compiles, one for the CPU's.
    for (const bool gpu : {true, false})
      run_together(jobs_of(gpu));
    for (Job& job : jobs_)
      settle(job);
    return std::move(outcomes_);
  }

 private:
  size_t number_of(const Job& job) const { return static_cast<size_t>(job.made - cases_.data()); }

  std::vector<Job*> jobs_of(bool gpu) {
    std::vector<Job*> found;
    for (Job& job : jobs_) {
      const bool is_left = job.outcome.code.empty() && !job.list.kernels.empty();
      if (is_left && (job.list.engine == Engine::cuda) == gpu) found.push_back(&job);
    }
    return found;
  }

  void run_together(const std::vector<Job*>& jobs) {
    if (!jobs.empty()) share_text(jobs);
    for (Job* job : jobs) {
      const bool compiles = job == jobs[0];  // the first of them has the text compiled
      working_on_(compiles ? -1 : static_cast<int>(number_of(*job)));
      run(*job);
      if (job->outcome.code == "compile-failed" && cases_.size() > 1) return run_alone(jobs);
    }
  }

  static void share_text(const std::vector<Job*>& jobs) {
    std::vector<std::string> texts;
    for (const Job* job : jobs) {
      std::set<std::string> seen;
      for (const Kernel& kernel : job->list.kernels)
        if (seen.insert(kernel.source).second) texts.push_back(kernel.source);
    }
    const std::string text = texts.size() == 1 ? texts[0] : joined(texts);
    for (Job* job : jobs)
      for (Kernel& kernel : job->list.kernels)
        kernel.source = text;
  }

  void run(Job& job) const {
    const Expected& expected = expected_[number_of(job)];
    if (job.list.engine == Engine::cuda) return finish(job, expected, nullptr);
    const auto binary = runtime::compile(job.list, {.time = std::chrono::minutes(10)});
    if (!binary) return set(job.outcome, binary.error());
    finish(job, expected, &*binary);
  }

  // Somebody's text does not compile: each alone, to see whose.
  void run_alone(const std::vector<Job*>& jobs) const {
    for (Job* job : jobs) {
      GraphCase alone = *job->made;
      alone.targets = {job->outcome.target};
      working_on_(static_cast<int>(number_of(*job)));
      job->outcome = check_graphs(std::span(&alone, 1), [](int) {}, draw_).back();
    }
  }

  void settle(Job& job) {
    const bool has_nothing_to_run = job.outcome.code.empty();  // views alone
    if (has_nothing_to_run) job.outcome.code = job.interpreted.empty() ? "agrees" : "wrong";
    if (job.outcome.agrees()) job.outcome.detail = operators_of(job.made->graph);
    outcomes_.push_back(std::move(job.outcome));
  }

  std::span<const GraphCase> cases_;
  const WorkingOn& working_on_;
  uint64_t draw_;
  std::vector<Expected> expected_;  // by case
  std::vector<Outcome> outcomes_;
  std::vector<Job> jobs_;
};
}  // namespace

std::vector<Outcome> check_graphs(std::span<const GraphCase> cases, const WorkingOn& working_on,
                                  uint64_t draw) {
  return Batch(cases, working_on, draw).run();
}

std::vector<Outcome> check_graph_seeds(uint64_t first, int count, const WorkingOn& working_on) {
  std::vector<GraphCase> cases;
  for (int i = 0; i < count; ++i) {
    working_on(i);
    cases.push_back(make_graph_case(first + static_cast<uint64_t>(i)));
  }
  return check_graphs(cases, working_on);
}

bool is_fine(const std::vector<Outcome>& outcomes) {
  return std::ranges::none_of(outcomes, [](const Outcome& o) { return o.is_bug(); });
}

namespace {
// Tensors that the nodes read and no node before makes, each once.
std::vector<graph::TensorId> read_from_outside(const graph::Graph& graph) {
  std::vector<graph::TensorId> read;
  std::set<graph::TensorId> made;
  for (const graph::Node& node : graph.nodes) {
    for (const graph::TensorId id : node.inputs) {
      if (id == graph::kAbsent || graph.tensor(id).constant || made.contains(id)) continue;
      if (!contains(read, id)) read.push_back(id);
    }
    for (const graph::TensorId id : node.outputs)
      made.insert(id);
  }
  return read;
}

std::vector<std::byte> bytes_of(const graph::Tensor& tensor, const std::vector<double>& values) {
  std::vector<std::byte> bytes(static_cast<size_t>(graph::byte_count(tensor)));
  for (size_t i = 0; i < values.size(); ++i)
    store_from_double(tensor.dtype, bytes.data(), i, values[i]);
  return bytes;
}

// Whether one of four draws of schedules fails as is wanted.
bool fails_with(const GraphCase& part, const std::string& code) {
  for (uint64_t draw = 0; draw < 4; ++draw)
    if (check_graphs(std::span(&part, 1), [](int) {}, draw).back().code == code) return true;
  return false;
}
}  // namespace

GraphCase smaller(const GraphCase& failing, const std::string& target, const std::string& code) {
  graph::Graph open = failing.graph;
  open.outputs.clear();
  for (const graph::Node& node : open.nodes)
    for (const graph::TensorId id : node.outputs)
      if (id != graph::kAbsent) open.outputs.push_back(id);
  const auto values = *graph::evaluate(open, bytes_of(failing), 1);
  // The bytes that the whole graph has in a tensor.
  const auto bytes_in = [&](graph::TensorId id) {
    const auto input = std::ranges::find(failing.graph.inputs, id);
    if (input != failing.graph.inputs.end())
      return failing.inputs[static_cast<size_t>(input - failing.graph.inputs.begin())];
    const graph::Tensor& tensor = open.tensor(id);
    const auto between = std::ranges::find(open.outputs, id);
    const auto& list = values[static_cast<size_t>(between - open.outputs.begin())];
    return bytes_of(tensor, list);
  };
  const size_t all = failing.graph.nodes.size();
  for (size_t length = 1; length <= all; ++length)
    for (size_t begin = 0; begin + length <= all; ++begin) {
      GraphCase part = failing;
      part.targets = {target};
      const auto first = failing.graph.nodes.begin() + static_cast<ptrdiff_t>(begin);
      part.graph.nodes.assign(first, first + static_cast<ptrdiff_t>(length));
      part.graph.inputs = read_from_outside(part.graph);
      part.inputs.clear();
      for (const graph::TensorId id : part.graph.inputs)
        part.inputs.push_back(bytes_in(id));
      part.graph.outputs = {part.graph.nodes.back().outputs[0]};
      if (fails_with(part, code)) return part;
    }
  return failing;
}

nlohmann::json graph_figures(const Run& run, const std::vector<Outcome>& outcomes, double seconds) {
  std::map<std::string, std::map<std::string, int>> by_target;
  std::map<std::string, std::map<std::string, int>> schedules;
  std::map<std::string, int> operators;
  std::map<std::string, int> refusals;
  std::set<uint64_t> refused;
  std::set<uint64_t> faulty;
  for (const Outcome& o : outcomes) {
    if (o.kind == "schedule") {
      ++schedules[o.target][o.code];
    } else {
      ++by_target[o.target][o.code];
      if (o.is_bug())
        faulty.insert(o.seed);
      else if (!o.agrees())
        refused.insert(o.seed);
    }
    if (o.agrees() && o.target == "cpu")
      for (size_t at = 0; at < o.detail.size();) {
        const size_t end = std::min(o.detail.find(' ', at), o.detail.size());
        ++operators[o.detail.substr(at, end - at)];
        at = end + 1;
      }
    if (!o.agrees() && o.code != "built") {
      const size_t at = std::min(o.detail.find("error["), o.detail.size());
      std::smatch place;  // the operator that no family covers
      const bool named =
          std::regex_search(o.detail, place, std::regex("at: +node '[^']*' \\((\\w+)\\)"));
      ++refusals[std::regex_replace(o.detail.substr(at, o.detail.find('\n', at) - at),
                                    std::regex("'[^']*'|[0-9]+"), "…") +
                 (named ? ": " + place[1].str() : "")];
    }
  }
  return {{"first_seed", run.first},
          {"graphs", run.count},
          {"agree", run.count - static_cast<int>(refused.size() + faulty.size())},
          {"refused", refused.size()},
          {"bugs", faulty.size()},
          {"seconds", std::round(seconds)},
          {"by_target", by_target},
          {"schedules", schedules},
          {"operators", operators},
          {"refusals", refusals}};
}
}  // namespace warploom::fuzz
