// Bundles whose kernels prepare what they make of constants.
#include <gtest/gtest.h>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>
#include "../graph/builder.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "codegen/launch_list.h"
#include "export/bundle.h"
#include "export/delivery.h"
#include "graph/builder.h"
#include "graph/graph.h"
#include "runtime/bundle.h"
#include "runtime/compilers.h"
#include "runtime/executor.h"
#include "support/prepared_list.h"

namespace warploom::export_ {
namespace {
namespace fs = std::filesystem;

// y = x + 2 w, of 8 elements; 2 w is made once.
struct Sum {
  graph::Graph graph;
  LaunchList list;
};

Sum sum(bool held) {
  graph::Builder builder("sum");
  const std::vector<double> ten(8, 10);
  const auto x = builder.input("x", Dtype::f32, {8});
  const auto w =
      held ? builder.constant("w", Dtype::f32, {8}, ten) : builder.input("w", Dtype::f32, {8});
  const auto twice = builder.add(graph::OpKind::Add, {w, w});
  builder.output(builder.add(graph::OpKind::Add, {x, twice}));
  auto graph = builder.finish();
  EXPECT_TRUE(graph) << describe(graph.error());
  const std::string y = graph->tensor(graph->outputs[0]).name;
  const std::string arch = runtime::Executor::describe(Engine::cpu)->arch;
  return {*std::move(graph), test::prepared_list(arch, 8, y)};
}

class Prepared : public testing::Test {
 protected:
  void SetUp() override {
    if (!runtime::find_cpu_compiler()) GTEST_SKIP() << "no C++ compiler here";
  }

  Result<Delivered> deliver(bool held) {
    const Sum made = sum(held);
    return write_bundle(
        folder,
        {.name = "sum", .summary = "A test.", .plan = {{"track", "fp32"}, {"prepare_us", 12.5}}},
        made.list, made.graph);
  }

  ScratchFolder scratch{"prepared-test"};
  fs::path folder = scratch.path() / "sum";
};

TEST_F(Prepared, BundlePassesItsOwnCheckAndSaysWhatItsCallerOwesIt) {
  const auto done = deliver(false);
  ASSERT_TRUE(done) << describe(done.error());
  const std::string header = *read_file(folder / "sum.h");
  EXPECT_NE(header.find("int sum_prepare(\n    const float* w,\n    void* workspace);"),
            header.npos)
      << header;
  EXPECT_NE(header.find("Constant inputs: w."), header.npos) << header;
  const std::string readme = *read_file(folder / "README.md");
  EXPECT_NE(readme.find("sum_prepare(w, workspace)"), readme.npos) << readme;
  EXPECT_NE(readme.find("12.50 us"), readme.npos) << readme;
  const auto plan = nlohmann::json::parse(*read_file(folder / "plan.json"));
  EXPECT_EQ(plan["launch_list"]["prepare"], nlohmann::json::array({0}));
  EXPECT_EQ(plan["launch_list"]["constants"], nlohmann::json::array({"w"}));
}

TEST_F(Prepared, BundleLoadedPreparesWhatItsCallerGivesWheneverItIsBound) {
  ASSERT_TRUE(deliver(false));
  const auto bundle = runtime::Bundle::load(folder, {.trusted = true});
  ASSERT_TRUE(bundle) << describe(bundle.error());
  std::array<float, 8> x{};
  std::array<float, 8> w{};
  std::array<float, 8> y{};
  x.fill(1);
  w.fill(10);
  const std::array<void*, 3> addresses = {x.data(), w.data(), y.data()};
  const auto once = (*bundle)->bind(addresses);
  ASSERT_TRUE(once) << describe(once.error());
  EXPECT_GT((*bundle)->prepare_us, 0);
  ASSERT_TRUE((*once)());
  EXPECT_EQ(y[7], 21);
  w.fill(20);  // a new session, which takes it as it is now
  const auto again = (*bundle)->bind(addresses);
  ASSERT_TRUE(again);
  ASSERT_TRUE((*again)());
  EXPECT_EQ(y[7], 41);
}

TEST_F(Prepared, BundleLoadedPreparesItsOwnConstantsOnce) {
  const auto done = deliver(true);
  ASSERT_TRUE(done) << describe(done.error());
  const auto bundle = runtime::Bundle::load(folder, {.trusted = true});
  ASSERT_TRUE(bundle) << describe(bundle.error());
  EXPECT_GT((*bundle)->prepare_us, 0);
  std::array<float, 8> x{};
  std::array<float, 8> y{};
  x.fill(1);
  const std::array<void*, 2> addresses = {x.data(), y.data()};
  const auto call = (*bundle)->bind(addresses);
  ASSERT_TRUE(call) << describe(call.error());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE((*call)());
    EXPECT_EQ(y[0], 21);
  }
}
}  // namespace
}  // namespace warploom::export_
