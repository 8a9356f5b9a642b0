// The emulator as judge of emitted kernels: every synchronisation of a text is removed or weakened,
// one at a time, and the emulator must notice, by a hazard, a deadlock or wrong numbers. What it
// lets through must be in the table of equivalent mutants, with the reason.
//
// Ordinarily a sample of the kernels runs (support/sample.h): with every family and every kind of
// mutation in it. With WARPLOOM_MUTANTS=FILE all kernels run, each mutant with asynchronous effects
// early, late and at random, and FILE gets one line of JSON a mutant; tools/mutants.py does that
// and writes docs/mutation.md.

#include "kernels/mutants.h"
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <ios>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "cases.h"
#include "codegen/launch_list.h"
#include "emulator.h"
#include "equivalent_mutants.h"
#include "graph/reference.h"
#include "kernels/family.h"
#include "runtime/emulate.h"
#include "support/problems.h"
#include "support/sample.h"
#include "target/capabilities.h"

namespace warploom {
namespace {
using test::Case;
using test::Mutant;

// One case made ready: the launch list with its mutants planted, inputs, the answer.
struct Planted {
  LaunchList list;
  std::map<std::string, std::string> texts;  // of the kernels as they were
  std::vector<Mutant> mutants;
  std::vector<std::vector<std::byte>> inputs;
  std::vector<double> expected;
  double tolerance = 0;

  static Result<Planted> make(const Case& c) {
    Planted p;
    WARPLOOM_TRY(target::Capabilities capabilities, target::capabilities_of(c.target));
    capabilities.num_sms = 2;  // so that a persistent block takes several tiles
    WARPLOOM_TRY(p.list, kernels::build(c.region, c.schedule, capabilities));
    for (const Kernel& kernel : p.list.kernels)
      p.texts[kernel.name] = kernel.source;
    p.mutants = test::plant_mutants(p.list);
    p.inputs = test::random_inputs(c.region.graph, 7);
    const std::vector<graph::Bytes> views(p.inputs.begin(), p.inputs.end());
    WARPLOOM_TRY(auto expected, graph::evaluate(c.region.graph, views, 1));
    p.expected = std::move(expected[0]);
    p.tolerance = c.tolerance;
    return p;
  }

  // What gave the mutant away: a hazard's kind, "deadlock", "numbers"; "" if nothing did.
  std::string caught(int mutant, int timing) {
    wl_mutant = mutant;
    runtime::EmulatedBuffers buffers;
    for (size_t i = 0; i < inputs.size(); ++i)
      buffers[list.inputs[i].name] = inputs[i];
    std::vector<std::byte> output(static_cast<size_t>(list.outputs[0].bytes()),
                                  std::byte{0xff});  // NaN
    buffers[list.outputs[0].name] = output;
    runtime::EmulateOptions options;
    options.seed = static_cast<uint64_t>(mutant);
    options.timing = static_cast<emulator::Timing>(timing);
    const auto ran = runtime::emulate(list, buffers, options);
    wl_mutant = 0;
    if (!ran && ran.error().code == ErrorCode::kEmulatorDeadlock) return "deadlock";
    if (!ran && ran.error().code == ErrorCode::kEmulatorHazard) {
      const std::string& found = ran.error().found;  // "line 12: race: …"
      const size_t kind = found.find(": ") + 2;
      return found.substr(kind, found.find(':', kind) - kind);
    }
    if (!ran) return "error " + describe(ran.error());
    double difference = 0;
    double size = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      const double d = load_as_double(list.outputs[0].dtype, output.data(), i) - expected[i];
      difference += d * d;
      size += expected[i] * expected[i];
    }
    return std::sqrt(difference / size) <= tolerance ? "" : "numbers";
  }
};

const char* record_file() {
  return std::getenv("WARPLOOM_MUTANTS");
}

// What a sample must have: the case's family, and every change of a call that its kernels allow.
std::set<std::string> labels_of(const Case& c) {
  std::set<std::string> labels = {c.schedule.family()};
  auto list = kernels::build(c.region, c.schedule, test::capabilities_of(c));
  if (!list) return labels;
  for (const Mutant& m : test::plant_mutants(*list))
    labels.insert(m.call + ": " + m.change);
  return labels;
}

const std::vector<Case>& chosen() {
  static const std::vector<Case> cases = [] {
    constexpr double kShare = 0.35;
    const std::vector<Case> every = test::mutated_cases();
    if (record_file()) return every;
    return test::sampled("mutants", kShare, every, labels_of);
  }();
  return cases;
}

// What gave a mutant away under each timing: all of them, or at random alone.
std::vector<std::string> caught_under(Planted& planted, const Mutant& m, bool all) {
  std::vector<std::string> caught;
  for (const int timing : {2, 1, 0})
    if (all || timing == 2) caught.push_back(planted.caught(m.number, timing));
  return caught;
}

// Every mutant of a case, each noticed or proven equivalent.
void judge_mutants(const Case& c) {
  SCOPED_TRACE(c.name);
  auto made = Planted::make(c);
  ASSERT_TRUE(made.has_value()) << describe(made.error());
  Planted& planted = *made;
  ASSERT_FALSE(planted.mutants.empty());
  for (int timing = 0; timing < 3; ++timing)
    ASSERT_EQ(planted.caught(0, timing), "") << "the text as it is";
  const bool all = record_file() != nullptr;
  std::ofstream record(all ? record_file() : "/dev/null", std::ios::app);
  for (const Mutant& m : planted.mutants) {
    const std::vector<std::string> caught = caught_under(planted, m, all);
    const bool missed = std::find(caught.begin(), caught.end(), "") != caught.end();
    const std::string reason = missed ? test::why_equivalent(planted.texts[m.kernel], m) : "";
    EXPECT_TRUE(!missed || !reason.empty())
        << m.kernel << ", line " << m.line << ", " << m.call << " " << m.change << ": " << m.text;
    record << nlohmann::json{{"case", c.name},     {"target", c.target},
                             {"kernel", m.kernel}, {"family", c.schedule.family()},
                             {"line", m.line},     {"call", m.call},
                             {"change", m.change}, {"text", m.text},
                             {"caught", caught},   {"equivalent", reason}}
                  .dump()
           << "\n";
  }
}

constexpr size_t kShards = 8;  // so that they run beside each other

class Mutants : public testing::TestWithParam<size_t> {};

TEST_P(Mutants, NoneGoesUnnoticed) {
  for (size_t i = GetParam(); i < chosen().size(); i += kShards) {
    judge_mutants(chosen()[i]);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, Mutants, testing::Range<size_t>(0, kShards));

TEST(MutantsSample, HasEveryFamilyAndEveryKindOfMutation) {
  std::set<std::string> every;
  std::set<std::string> met;
  for (const Case& c : test::mutated_cases())
    every.merge(labels_of(c));
  for (const Case& c : chosen())
    met.merge(labels_of(c));
  EXPECT_EQ(met, every);
  test::note_sample("kernels whose mutants ran", chosen().size(), test::mutated_cases().size());
}
}  // namespace
}  // namespace warploom
