// A bundle's folder is what `warploom optimize` writes for its plan, whatever its hashes say.
#include <gtest/gtest.h>
#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "export/as_written.h"
#include "graph/graph.h"
#include "runtime/plan_file.h"
#include "small_bundle.h"

namespace warploom::export_ {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;

class Written : public testing::Test {
 protected:
  ScratchFolder scratch{"written-test"};
  fs::path folder = scratch.path() / "neg";

  void SetUp() override { ASSERT_TRUE(lay_out_small(folder)); }

  json plan() const { return json::parse(read_file(folder / "plan.json").value()); }

  // What somebody does who knows how: the file and its hash, and the plan's own.
  void forge(const std::string& name, const std::string& text) const {
    ASSERT_TRUE(make_folders((folder / name).parent_path()));
    ASSERT_TRUE(write_file(folder / name, text));
    json changed = plan();
    changed["files"][name] = hash_hex(text);
    runtime::seal_plan(changed);
    ASSERT_TRUE(write_file(folder / "plan.json", changed.dump()));
  }

  std::string text(const std::string& name) const { return read_file(folder / name).value(); }

  // The code and the place of what is said of the folder; empty: nothing.
  std::pair<std::string, std::string> said() const {
    const Status checked = check_written(folder, plan(), small().list);
    if (checked) return {};
    return {std::string(code_text(checked.error().code)), checked.error().place};
  }

  void expect_refused(const std::string& name) const {
    const auto [code, place] = said();
    EXPECT_EQ(code, "bundle-changed") << name;
    EXPECT_TRUE(place.ends_with(name)) << place << " for " << name;
  }
};

TEST_F(Written, AsItWasIsFine) {
  EXPECT_EQ(said().first, "") << said().second;
}

TEST_F(Written, WithAnotherTextOfAnythingThatIsBuiltOrRunIsRefusedByItsName) {
  const json files = plan()["files"];
  int refused = 0;
  for (const auto& [name, hash] : files.items()) {
    if (name == "plan.json" || name == "README.md" || name == "neg_kernels.cpp") continue;
    if (name.starts_with("check/") && name != "check/check.cpp") continue;
    const std::string before = text(name);
    forge(name, before + " ");
    expect_refused(name);
    forge(name, before);
    ++refused;
  }
  EXPECT_GT(refused, 12) << "Makefile, launcher, check, module and its parts, device headers";
  EXPECT_EQ(said().first, "");
}

TEST_F(Written, WhatWasBuiltIsNamedUnlessThePlanListsIt) {
  for (const std::string name : {"build/check", "neg_torch/x.pyc"}) {
    forge(name, "x");  // listed, with its hash
    expect_refused(name);
    fs::remove(folder / name);
    ASSERT_TRUE(lay_out_small(folder));
    fs::create_directories((folder / name).parent_path());
    ASSERT_TRUE(write_file(folder / name, "x"));  // not listed
    EXPECT_EQ(said().first, "");
    EXPECT_EQ(built_in(folder), std::vector<std::string>{name});
    fs::remove(folder / name);
  }
}

TEST_F(Written, WithAFileMoreIsRefusedByItsName) {
  for (const std::string name :
       {"GNUmakefile", "makefile", "device/cpu/vector", "device/common/cstdio", "sitecustomize.py",
        "neg_torch/numpy.py", "check/cmath", "more.cpp", ".env"}) {
    forge(name, "x");  // listed, with its hash
    expect_refused(name);
    fs::remove(folder / name);
    ASSERT_TRUE(lay_out_small(folder));
    ASSERT_TRUE(write_file(folder / name, "x"));  // not listed
    expect_refused(name);
    fs::remove(folder / name);
  }
}

TEST_F(Written, WithAFileLessIsRefusedByItsName) {
  for (const std::string name : {"Makefile", "check/check.cpp", "check/input_0.bin"}) {
    fs::remove(folder / name);
    expect_refused(name);
    ASSERT_TRUE(lay_out_small(folder));
  }
}

TEST_F(Written, WithLinksIsRefused) {
  fs::rename(folder / "Makefile", scratch.path() / "Makefile");
  fs::create_symlink(scratch.path() / "Makefile", folder / "Makefile");
  expect_refused("Makefile");
}

TEST_F(Written, WithoutASealIsRefused) {
  json changed = plan();
  changed["files"].erase("plan.json");
  ASSERT_TRUE(write_file(folder / "plan.json", changed.dump()));
  expect_refused("plan.json");
  changed.erase("files");
  ASSERT_TRUE(write_file(folder / "plan.json", changed.dump()));
  expect_refused("plan.json");
}

TEST_F(Written, WithANumberInAPlanThatIsNotTheSealedOneIsRefused) {
  json changed = plan();
  changed["tolerance"] = 1;
  ASSERT_TRUE(write_file(folder / "plan.json", changed.dump()));
  expect_refused("plan.json");
}

TEST_F(Written, TablesOfTheCheckHoldNumbersAndNoCode) {
  const std::string check = text("check/check.cpp");
  const size_t row = check.find("kOutputs[] = {\n") + 15;
  for (const std::string code :
       {"}; static int owned = system(\"id\"); const Output kMore[] = {",
        "    { \"y\", ({ system(\"id\"); \"x\"; }), nullptr, 1,\n      4, type<float>(24)},\n",
        "    { \"y\", \"x\", nullptr, exp(1),\n      4, type<float>(24)},\n",
        "    { \"y\", \"x\" SYSTEM, nullptr, 1 + 2,\n      4, type<float>(f())},\n"}) {
    forge("check/check.cpp", std::string(check).insert(row, code));
    expect_refused("check/check.cpp");
  }
  forge("check/check.cpp",
        std::string(check).insert(
            row, "    { \"y\", \"x\", nullptr, 1.5e-07,\n      4, type<float>(24)},\n"));
  EXPECT_EQ(said().first, "") << "numbers are data";
}

TEST_F(Written, ConstantsThatAreNotTheModelsAreRefused) {
  graph::Graph graph = small().graph;
  const graph::TensorId x = *graph.tensor_named("x");
  json with = plan();
  with["constants"]["x"] = "check/input_0.bin";
  const std::string held = text("check/input_0.bin");
  std::vector<std::byte>& bytes = graph.tensors[static_cast<size_t>(x)].constant.emplace();
  for (const char byte : held)
    bytes.push_back(static_cast<std::byte>(byte));
  EXPECT_TRUE(check_constants(folder, with, small().list, graph));
  bytes[5] ^= std::byte{1};
  const Status other = check_constants(folder, with, small().list, graph);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::kBundleChanged);
  EXPECT_FALSE(check_constants(folder, plan(), small().list, graph)) << "the model holds it";
}
}  // namespace
}  // namespace warploom::export_
