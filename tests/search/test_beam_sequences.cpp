// What the beam proposes on twelve problems, config by config, where times are replayed: made of
// the configs' texts instead of measured. tests/search/beam_sequences.txt holds what holds; a
// change of families, of a cost model or of the strategy changes it, and is seen there.
//
//   WARPLOOM_RENEW_SEQUENCES=1 build/release/test_search --gtest_filter='BeamSequences.*'
//
// writes it anew.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>
#include "../graph/builder.h"
#include "../support/fixed_cpu.h"
#include "../support/paths.h"
#include "base/dtype.h"
#include "base/file.h"
#include "base/hash.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/config/kernel_config.h"
#include "search/search_space.h"
#include "search/strategy/strategy.h"
#include "target/capabilities.h"
#include "told.h"

namespace warploom::search {
namespace {
using graph::Builder;
using graph::Graph;
using graph::OpKind;
using graph::TensorId;

constexpr int kProposals = 24;

struct Problem {
  std::string name;
  std::string target;
  Track track;
  Graph graph;
};

Graph matmul(Dtype dtype, int64_t m, int64_t n, int64_t k) {
  Builder b("matmul");
  const TensorId x = b.input("x", dtype, {m, k});
  const TensorId w = b.input("w", dtype, {k, n});
  b.output(b.add(OpKind::MatMul, {x, w}));
  return *graph::decompose(*b.finish());
}

Graph rows(OpKind op, int64_t count, int64_t columns) {
  Builder b("rows");
  b.output(b.add(op, {b.input("x", Dtype::f32, {count, columns})}));
  return *graph::decompose(*b.finish());
}

Graph convolution(int64_t channels, int64_t pixels) {
  Builder b("convolution");
  const TensorId x = b.input("x", Dtype::f32, {8, channels, pixels, pixels});
  const TensorId w = b.input("w", Dtype::f32, {channels, channels, 3, 3});
  b.output(b.add(OpKind::Conv, {x, w}, {{"pads", std::vector<int64_t>(4, 1)}}));
  return *graph::decompose(*b.finish());
}

std::vector<Problem> problems() {
  return {{"matmul", "cpu", Track::fp32, matmul(Dtype::f32, 256, 256, 256)},
          {"matmul of few rows", "cpu", Track::fp32, matmul(Dtype::f32, 4, 512, 1024)},
          {"softmax", "cpu", Track::fp32, rows(OpKind::Softmax, 256, 1000)},
          {"relu", "cpu", Track::fp32, rows(OpKind::Relu, 512, 512)},
          {"convolution", "cpu", Track::fp32, convolution(16, 28)},
          {"matmul", "sm_90a", Track::fp32, matmul(Dtype::f32, 512, 512, 512)},
          {"matmul bf16", "sm_90a", Track::bf16, matmul(Dtype::bf16, 1024, 1024, 512)},
          {"softmax", "sm_90a", Track::fp32, rows(OpKind::Softmax, 1024, 4096)},
          {"relu", "sm_90a", Track::fp32, rows(OpKind::Relu, 512, 512)},
          {"convolution", "sm_90a", Track::fp32, convolution(64, 16)},
          {"matmul", "sm_80", Track::tf32, matmul(Dtype::f32, 256, 512, 256)},
          {"softmax", "sm_89", Track::fp32, rows(OpKind::Softmax, 64, 512)}};
}

// The proposals, one a line; every seventh is refused.
std::string sequence_of(const Problem& problem, uint64_t seed) {
  const bool is_cpu = problem.target == "cpu";
  const auto capabilities = is_cpu ? test::fixed_cpu() : *target::capabilities_of(problem.target);
  const SearchSpace space = search_space_of({problem.graph, problem.track}, capabilities);
  const StrategyPtr strategy = strategy_of(space, Strategy::beam, seed);
  std::string lines;
  for (int i = 0; i < kProposals; ++i) {
    const std::optional<kernels::KernelConfig> next = next_of(strategy);
    if (!next) break;
    const uint64_t number = hash64(next->text());
    lines += fmt::format("{} {:08x}\n", next->family(), number >> 32);
    if (number % 7 == 0)
      refuse(strategy, *next);
    else
      learn(strategy, *next, 10 + static_cast<double>(number % 1000));
  }
  return lines;
}

// By the problem and its seed.
std::map<std::string, std::string> recorded(const std::string& file) {
  std::map<std::string, std::string> sequences;
  std::istringstream lines(read_file(file).value_or(""));
  std::string title;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# "))
      title = line.substr(2);
    else
      sequences[title] += line + "\n";
  }
  return sequences;
}

TEST(BeamSequences, AreWhatWasRecorded) {
  const std::string file = test::source_path("tests/search/beam_sequences.txt");
  const bool renews = std::getenv("WARPLOOM_RENEW_SEQUENCES") != nullptr;
  std::map<std::string, std::string> known = recorded(file);
  std::string text;
  uint64_t seed = 0;
  for (const Problem& problem : problems()) {
    ++seed;
    const std::string title = fmt::format("{}, {}, {}, seed {}", problem.name, problem.target,
                                          name_of(problem.track), seed);
    const std::string sequence = sequence_of(problem, seed);
    text += fmt::format("# {}\n{}", title, sequence);
    if (renews) continue;
    EXPECT_EQ(sequence, known[title]) << title;
  }
  if (renews) {
    ASSERT_TRUE(write_file(file, text));
  }
}
}  // namespace
}  // namespace warploom::search
