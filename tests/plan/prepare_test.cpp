// Prepare steps: by hand, and of random launch lists against running everything in every call.
#include "codegen/prepare.h"
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/rows.h"
#include "codegen/launch_check.h"
#include "codegen/launch_list.h"
#include "codegen/memory_plan.h"

namespace warploom {
namespace {
Argument reads(const std::string& buffer) {
  return {.buffer = buffer};
}

Argument writes(const std::string& buffer) {
  Argument argument{.buffer = buffer};
  argument.written = true;
  return argument;
}

BufferSpec floats(const std::string& name, int64_t count = 64) {
  return {name, Dtype::f32, {count}};
}

// The header's example.
LaunchList split_gemm() {
  LaunchList list{.engine = Engine::cpu, .arch = "x86-64"};
  list.inputs = {floats("x"), floats("w")};
  list.outputs = {floats("y")};
  list.workspaces = {floats("m", 1), floats("high"), floats("low")};
  list.kernels = {{.name = "amax", .threads = 1, .args = {reads("w"), writes("m")}},
                  {.name = "split",
                   .threads = 1,
                   .args = {reads("w"), reads("m"), writes("high"), writes("low")}},
                  {.name = "gemm",
                   .threads = 1,
                   .args = {reads("x"), reads("high"), reads("low"), writes("y")}}};
  list.constants = {"w"};
  return list;
}

using Numbers = std::vector<size_t>;

TEST(Prepare, IsWhatReadsConstantsAlone) {
  LaunchList list = split_gemm();
  mark_prepare(list);
  EXPECT_EQ(list.prepare, (Numbers{0, 1}));
  EXPECT_EQ(called_kernels(list), (Numbers{2}));
  const std::vector<BufferSpec> kept = prepared_buffers(list);
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].name, "high");
  EXPECT_EQ(prepared_bytes(list), 2 * 64 * 4);
  EXPECT_TRUE(check_launches(list));
}

TEST(Prepare, IsNothingWhereNothingIsConstantOrNothingIsKnown) {
  LaunchList list = split_gemm();
  list.constants.clear();
  mark_prepare(list);
  EXPECT_TRUE(list.prepare.empty());
  list = split_gemm();
  for (Kernel& kernel : list.kernels)
    for (Argument& argument : kernel.args)
      argument.written = false;
  mark_prepare(list);
  EXPECT_TRUE(list.prepare.empty());
}

TEST(Prepare, LeavesOutWhatACallWritesAgain) {
  LaunchList list = split_gemm();
  list.kernels[2].args[1].written = true;  // high is not what it was when the next call comes
  mark_prepare(list);
  EXPECT_EQ(list.prepare, (Numbers{0}));
  list.kernels[0].args.push_back(reads("x"));
  mark_prepare(list);
  EXPECT_TRUE(list.prepare.empty());
}

TEST(Prepare, OfOutputsIsNone) {
  LaunchList list = split_gemm();
  list.kernels[1].args[2].buffer = "y";
  mark_prepare(list);
  EXPECT_EQ(list.prepare, (Numbers{0}));
}

TEST(Prepare, KeepsMemoryOfItsOwnThroughCalls) {
  LaunchList list = split_gemm();
  list.workspaces.push_back(floats("t"));
  list.kernels[2].args[3].buffer = "t";
  list.kernels.push_back({.name = "copy", .threads = 1, .args = {reads("t"), writes("y")}});
  mark_prepare(list);
  ASSERT_EQ(list.prepare, (Numbers{0, 1}));
  // high, low and t, of which none may lie on another; m is gone by the time of t.
  EXPECT_EQ(memory_plan(list).arena_bytes, 3 * 256);
}

TEST(Prepare, IsReadBackAndCheckedWhenItIsRead) {
  LaunchList list = split_gemm();
  mark_prepare(list);
  const auto again = launch_list_from_json(to_json(list));
  ASSERT_TRUE(again) << describe(again.error());
  EXPECT_EQ(again->prepare, list.prepare);
  EXPECT_EQ(again->constants, list.constants);
  EXPECT_TRUE(again->kernels[1].args[3].written);
  list.prepare = {};
  list.constants = {};
  EXPECT_FALSE(to_json(list).contains("prepare"));  // as before there was such a thing
  const std::vector<Numbers> wrong = {{1, 0}, {0, 0}, {3}, {2}};
  for (const Numbers& prepare : wrong) {
    LaunchList bad = split_gemm();
    bad.prepare = prepare;
    const auto refused = launch_list_from_json(to_json(bad));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kPlanInvalid);
  }
  LaunchList unknown = split_gemm();
  unknown.constants = {"v"};
  EXPECT_FALSE(launch_list_from_json(to_json(unknown)));
}

// Lists whose kernels read what is there and write one workspace, the last one the output.
LaunchList random_list(uint64_t seed) {
  Random random(seed, "prepare");
  LaunchList list{.engine = Engine::cpu, .arch = "x86-64"};
  list.inputs = {floats("x"), floats("w"), floats("v")};
  list.outputs = {floats("y")};
  list.constants = {"w", "v"};
  for (int i = 0; i < 6; ++i)
    list.workspaces.push_back(
        floats(fmt::format("t{}", i), static_cast<int64_t>(1 + random.below(300))));
  std::vector<std::string> there = {"x", "w", "v", "w", "v"};
  const auto kernels = 2 + random.below(9);
  for (uint64_t k = 0; k < kernels; ++k) {
    Kernel kernel{.name = fmt::format("k{}", k), .threads = 1};
    for (uint64_t n = 0; n < 1 + random.below(2); ++n)
      kernel.args.push_back(reads(there[random.below(there.size())]));
    const bool last = k + 1 == kernels;
    const std::string to = last ? "y" : list.workspaces[random.below(6)].name;
    std::erase_if(kernel.args, [&](const Argument& argument) { return argument.buffer == to; });
    kernel.args.push_back(writes(to));
    if (!last && !contains(there, to)) there.push_back(to);
    list.kernels.push_back(std::move(kernel));
  }
  return list;
}

// Memory in which a buffer holds one number, lost once anything else is written on its bytes.
class Memory {
 public:
  explicit Memory(const MemoryPlan& plan) : plan_(plan) {}

  void write(const std::string& name, uint64_t value) {
    for (const PlacedBuffer& other : plan_.buffers)
      if (overlap(name, other)) values_[other.name] = 0;
    values_[name] = value;
  }

  uint64_t read(const std::string& name) { return values_[name]; }

 private:
  bool overlap(const std::string& name, const PlacedBuffer& other) const {
    const auto own = std::ranges::find(plan_.buffers, name, &PlacedBuffer::name);
    if (own == plan_.buffers.end()) return false;
    return own->offset < other.offset + other.bytes && other.offset < own->offset + own->bytes;
  }

  const MemoryPlan& plan_;
  std::map<std::string, uint64_t> values_;
};

// A kernel writes a number made of its own and of those that it reads.
void run(const LaunchList& list, size_t number, Memory& memory) {
  const Kernel& kernel = list.kernels[number];
  std::string made_of = kernel.name;
  for (const Argument& argument : kernel.args)
    if (!argument.written) made_of += fmt::format(" {}", memory.read(argument.buffer));
  for (const Argument& argument : kernel.args)
    if (argument.written) memory.write(argument.buffer, hash64(made_of));
}

class Preparations : public testing::TestWithParam<int> {};

TEST_P(Preparations, LeaveCallsWhatTheyWouldHaveComputed) {
  LaunchList list = random_list(static_cast<uint64_t>(GetParam()));
  MemoryPlan apart;  // every buffer for itself
  int64_t offset = 0;
  for (const BufferSpec& spec : list.workspaces) {
    apart.buffers.push_back({spec.name, offset, spec.bytes()});
    offset += spec.bytes();
  }
  mark_prepare(list);
  ASSERT_TRUE(check_launches(list));
  const MemoryPlan plan = memory_plan(list);
  Memory session(plan);
  session.write("w", 11);
  session.write("v", 12);
  for (const size_t k : list.prepare)
    run(list, k, session);
  for (const uint64_t x : {1, 2, 3}) {
    Memory fresh(apart);
    for (const auto& [name, value] : {std::pair("x", x), {"w", 11}, {"v", 12}})
      fresh.write(name, value);
    for (size_t k = 0; k < list.kernels.size(); ++k)
      run(list, k, fresh);
    session.write("x", x);
    for (const size_t k : called_kernels(list))
      run(list, k, session);
    EXPECT_EQ(session.read("y"), fresh.read("y")) << to_json(list).dump(1);
  }
}

INSTANTIATE_TEST_SUITE_P(OfRandomLists, Preparations, testing::Range(0, 500));
}  // namespace
}  // namespace warploom
