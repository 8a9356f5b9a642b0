// Kernels for other processors than this one: of every family that a CPU has, on every instruction
// set, random regions under random schedules agree with FP64 within their track's tolerance. Those
// of an x86-64 run here, those for AArch64 (NEON) under QEMU.
//
// Ordinarily a sample of kKernels of each runs, with WARPLOOM_WHOLE all of them;
// WARPLOOM_SETS=N runs N, from the graph of seed WARPLOOM_SETS_SEED on.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "base/rows.h"
#include "codegen/launch_list.h"
#include "fuzz/graph_case.h"
#include "fuzz/graph_truth.h"
#include "fuzz/run_list.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "kernels/trials.h"
#include "plan/fusion.h"
#include "plan/region.h"
#include "support/other_machine.h"
#include "support/sample.h"
#include "target/capabilities.h"

namespace warploom::fuzz {
namespace {
constexpr size_t kKernels = 12;
constexpr double kShare = 0.25;
constexpr int kDraws = 8;

uint64_t number(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}

struct Parameter {
  std::string arch;
  std::string family;

  friend std::ostream& operator<<(std::ostream& out, const Parameter& one) {
    return out << one.family << " on " << one.arch;
  }
};

// A region with inputs, under a schedule.
struct Trial {
  GraphCase region;
  std::string schedule;
  LaunchList list;
};

// What the region's inputs hold within the whole graph: given, constant, or what FP64 makes of it.
std::optional<GraphCase> case_of(const plan::Region& region, const graph::Graph& whole,
                                 const GraphCase& from) {
  GraphCase c{.seed = from.seed, .graph = region.graph, .track = from.track};
  graph::Graph open = whole;
  open.outputs.clear();
  std::vector<size_t> computed;  // which of the inputs
  for (const graph::TensorId id : region.graph.inputs) {
    const auto within = whole.tensor_named(region.tensors[static_cast<size_t>(id)]);
    if (!within) return std::nullopt;
    auto& bytes = c.inputs.emplace_back();
    if (whole.tensor(*within).constant) {
      bytes = *whole.tensor(*within).constant;
    } else if (const auto input = std::ranges::find(whole.inputs, *within);
               input != whole.inputs.end()) {
      bytes = from.inputs[static_cast<size_t>(input - whole.inputs.begin())];
    } else {
      computed.push_back(c.inputs.size() - 1);
      open.outputs.push_back(*within);
    }
  }
  const auto values = graph::evaluate(open, bytes_of(from), 1);
  if (!values) return std::nullopt;
  for (size_t i = 0; i < computed.size(); ++i) {
    const graph::Tensor& tensor = open.tensor(open.outputs[i]);
    auto& bytes = c.inputs[computed[i]];
    bytes.resize(static_cast<size_t>(graph::byte_count(tensor)));
    for (size_t at = 0; at < values->at(i).size(); ++at)
      store_from_double(tensor.dtype, bytes.data(), at, values->at(i)[at]);
  }
  if (!is_sound(c)) return std::nullopt;
  return c;
}

// Names that no other list of a text has.
void rename(LaunchList& list, const std::string& suffix) {
  for (Kernel& kernel : list.kernels)
    kernel = renamed(kernel, kernel.name + suffix);
}

std::optional<Trial> trial_of(GraphCase region, const std::string& family,
                              const target::Capabilities& capabilities) {
  const kernels::Region bound{region.graph, region.track};
  const kernels::FamilyPtr made = kernels::family_for(bound, family, capabilities);
  if (!made) return std::nullopt;
  Random random(region.seed, family + graph::to_text(region.graph));
  for (int draw = 0; draw < kDraws; ++draw) {
    auto schedule = test::random_schedule(*made, random, {}, 50);
    if (!schedule) schedule = test::first_schedule(*made);
    if (!schedule) return std::nullopt;
    auto list = kernels::build(bound, *schedule, capabilities);
    if (list) return Trial{std::move(region), schedule->text(), *std::move(list)};
    const bool is_refused = list.error().code == ErrorCode::kNoLayout ||
                            list.error().code == ErrorCode::kNoInstruction ||
                            list.error().code == ErrorCode::kResourceLimit;
    EXPECT_TRUE(is_refused) << schedule->text() << describe(list.error());
  }
  return std::nullopt;
}

// Of a graph's regions those that the family covers.
void add_trials(const GraphCase& c, const Parameter& wanted,
                const target::Capabilities& capabilities, std::vector<Trial>& trials) {
  const auto whole = graph::decompose(c.graph);
  if (!whole) return;
  const auto parts = plan::regions_of(*whole, c.track, capabilities);
  if (!parts) return;
  for (const plan::Region& region : parts->regions) {
    const bool is_covered =
        !region.alias && kernels::family_for({region.graph, c.track}, wanted.family, capabilities);
    auto made = is_covered ? case_of(region, *whole, c) : std::nullopt;
    auto trial = made ? trial_of(*std::move(made), wanted.family, capabilities) : std::nullopt;
    if (!trial) continue;
    rename(trial->list, fmt::format("_n{}", trials.size()));
    trials.push_back(*std::move(trial));
  }
}

std::vector<Trial> trials_of(const Parameter& wanted) {
  auto capabilities = *target::capabilities_of(wanted.arch);
  capabilities.num_sms = 4;  // so that kernels are the same on every machine
  const uint64_t count = number("WARPLOOM_SETS", kKernels);
  const uint64_t first = number("WARPLOOM_SETS_SEED", 1);
  std::vector<Trial> trials;
  for (uint64_t seed = first; trials.size() < count && seed < first + 100 * count; ++seed)
    add_trials(make_graph_case(seed), wanted, capabilities, trials);
  EXPECT_GE(trials.size(), count) << "too few graphs have a region of " << wanted.family;
  if (std::getenv("WARPLOOM_SETS")) return trials;
  const auto labels = [](const Trial&) { return std::set<std::string>(); };
  const size_t all = trials.size();
  auto taken = test::sampled("instruction sets", kShare, std::move(trials), labels);
  test::note_sample("kernels of " + wanted.family + " on " + wanted.arch, taken.size(), all);
  return taken;
}

Storage storage_of(const Trial& trial) {
  Storage storage;
  for (size_t i = 0; i < trial.region.inputs.size(); ++i)
    storage[trial.region.graph.tensor(trial.region.graph.inputs[i]).name] = trial.region.inputs[i];
  for (const graph::Tensor& tensor : trial.region.graph.tensors)
    if (tensor.constant) storage[tensor.name] = *tensor.constant;
  for (const auto* specs : {&trial.list.outputs, &trial.list.workspaces})
    for (const BufferSpec& spec : *specs)
      poison(storage[spec.name], spec.bytes());
  return storage;
}

class InstructionSets : public testing::TestWithParam<Parameter> {};

TEST_P(InstructionSets, KernelsAgreeWithTheReference) {
  const auto machine = test::OtherMachine::of(GetParam().arch);
  if (!machine) GTEST_SKIP() << describe(machine.error());
  const std::vector<Trial> trials = trials_of(GetParam());
  std::vector<test::Bound> all;
  std::vector<std::string> texts;
  for (const Trial& trial : trials) {
    all.push_back({trial.list, storage_of(trial)});
    std::set<std::string> seen;
    for (const Kernel& kernel : trial.list.kernels)
      if (seen.insert(kernel.source).second) texts.push_back(kernel.source);
  }
  const Status ran = machine->run(joined(texts), all);
  ASSERT_TRUE(ran) << describe(ran.error());
  for (size_t i = 0; i < trials.size(); ++i)
    EXPECT_EQ(difference(trials[i].region, expected_of(trials[i].region), all[i].storage), "")
        << "seed " << trials[i].region.seed << ", " << trials[i].schedule << "\n"
        << graph::to_text(trials[i].region.graph);
}

std::vector<Parameter> parameters() {
  std::vector<Parameter> out;
  for (const char* arch : {"aarch64", "x86-64-v3", "x86-64-v2"})
    for (const char* family : {"matmul_cpu", "conv_cpu", "cpu_rowwise", "direct"})
      out.push_back({arch, family});
  return out;
}

std::string name_of(const testing::TestParamInfo<Parameter>& info) {
  std::string name = info.param.arch + "_" + info.param.family;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, InstructionSets, testing::ValuesIn(parameters()), name_of);

// The table of parameters has every family that covers anything on a CPU.
TEST(InstructionSetFamilies, AreAllOfACpu) {
  const auto capabilities = *target::capabilities_of("cpu");
  std::set<std::string> found;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const GraphCase c = make_graph_case(seed);
    const auto whole = graph::decompose(c.graph);
    const auto parts = plan::regions_of(*whole, c.track, capabilities);
    ASSERT_TRUE(parts) << describe(parts.error());
    for (const plan::Region& region : parts->regions)
      for (const auto& family : kernels::families_for({region.graph, c.track}, capabilities))
        if (!region.alias) found.insert(family->name());
  }
  for (const std::string& family : found)
    EXPECT_TRUE(contains(parameters(), family, &Parameter::family)) << family;
}
}  // namespace
}  // namespace warploom::fuzz
