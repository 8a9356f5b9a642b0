// What is delivered was built and checked, and takes the place of nothing that is the user's.
#include "export/delivery.h"
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <variant>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "codegen/launch_list.h"
#include "export/bundle.h"
#include "graph/builder.h"
#include "graph/graph.h"
#include "small_bundle.h"
#include "support/paths.h"

namespace warploom::export_ {
namespace {
namespace fs = std::filesystem;

class Delivery : public testing::Test {
 protected:
  ScratchFolder scratch{"delivery-test"};
  fs::path folder = scratch.path() / "out";

  // Compilers need not optimize for what is tested here.
  void SetUp() override { ::setenv("CXXFLAGS", "-O0", 1); }

  void TearDown() override { ::unsetenv("CXXFLAGS"); }

  void put(const std::string& name, const std::string& text = "mine\n") const {
    ASSERT_TRUE(make_folders((folder / name).parent_path()));
    ASSERT_TRUE(write_file(folder / name, text));
  }

  std::string text(const std::string& name) const {
    return read_file(folder / name).value_or("missing");
  }

  void expect_refused(const std::string& file) const {
    for (const Status& refused :
         {may_deliver(folder),
          Status(deliver_small(folder).map([](auto&&) { return std::monostate{}; }))}) {
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().code, ErrorCode::kFolderNotOurs);
      EXPECT_NE(refused.error().found.find(file), std::string::npos) << refused.error().found;
    }
  }

  // Nothing half-made is left, within or beside the folder.
  void expect_nothing_beside() const {
    for (const auto& entry : fs::recursive_directory_iterator(scratch.path()))
      EXPECT_FALSE(entry.path().filename().string().starts_with(".warploom")) << entry.path();
  }
};

TEST_F(Delivery, OfANewFolderIsBuiltCheckedAndLeftClean) {
  const auto done = deliver_small(folder);
  ASSERT_TRUE(done) << describe(done.error());
  EXPECT_TRUE(done->notes.empty()) << done->notes[0];
  EXPECT_TRUE(fs::exists(folder / "plan.json"));
  EXPECT_FALSE(fs::exists(folder / "build"));
  expect_nothing_beside();
}

TEST_F(Delivery, OfWhatDoesNotCompileIsRefusedWithTheCompilersWords) {
  const auto done = deliver_small(folder, "neg", "no_such_function ");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kBundleNotBuilt);
  EXPECT_NE(done.error().found.find("no_such_function"), std::string::npos) << done.error().found;
  EXPECT_FALSE(fs::exists(folder));
  expect_nothing_beside();
}

TEST_F(Delivery, OfWhatComputesSomethingElseIsRefused) {
  const auto done = deliver_small(folder, "neg", "2 * ");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kBundleCheckFailed);
  EXPECT_NE(done.error().found.find("WRONG"), std::string::npos) << done.error().found;
  EXPECT_FALSE(fs::exists(folder));
  expect_nothing_beside();
}

TEST_F(Delivery, OfKernelsThatAModelWroteIsNeitherBuiltNorRun) {
  Small made = small("no_such_function ");
  made.list.foreign = true;
  const BundleInfo info{.name = "neg", .summary = "A test.", .plan = {{"track", "fp32"}}};
  const auto done = write_bundle(folder, info, made.list, made.graph);
  ASSERT_TRUE(done) << describe(done.error());
  ASSERT_EQ(done->notes.size(), 1u);
  EXPECT_NE(done->notes[0].find("a language model wrote"), std::string::npos);
  EXPECT_TRUE(fs::exists(folder / "plan.json"));
}

TEST_F(Delivery, ThatFailsLeavesTheEarlierBundle) {
  ASSERT_TRUE(lay_out_small(folder));
  const std::string before = text("plan.json");
  ASSERT_FALSE(deliver_small(folder, "neg", "2 * "));
  EXPECT_EQ(text("plan.json"), before);
}

TEST_F(Delivery, WithoutMakeSaysThatNothingWasProven) {
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", scratch.path().c_str(), 1);
  const auto done = deliver_small(folder);
  ::setenv("PATH", path.c_str(), 1);
  ASSERT_TRUE(done) << describe(done.error());
  ASSERT_EQ(done->notes.size(), 1u);
  EXPECT_NE(done->notes[0].find("there is no make"), std::string::npos) << done->notes[0];
}

TEST_F(Delivery, WithAnotherCompilerThanGccSaysWhich) {
  const fs::path clang = find_program("clang++");
  if (clang.empty()) GTEST_SKIP() << "no clang++ here";
  for (const char* name : {"make", "env", "mkdir", "rm", "ld", "sh"})
    fs::create_symlink(find_program(name), scratch.path() / name);
  fs::create_symlink(fs::canonical(clang), scratch.path() / "clang++");
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", scratch.path().c_str(), 1);
  const auto done = deliver_small(folder);
  ::setenv("PATH", path.c_str(), 1);
  ASSERT_TRUE(done) << describe(done.error());
  ASSERT_EQ(done->notes.size(), 1u);
  EXPECT_NE(done->notes[0].find("CXX="), std::string::npos) << done->notes[0];
}

TEST_F(Delivery, ToAFolderOfTheUsersIsRefused) {
  put("Makefile");
  expect_refused("no bundle");
  EXPECT_EQ(text("Makefile"), "mine\n");
  EXPECT_FALSE(fs::exists(folder / "plan.json"));
  expect_nothing_beside();
}

TEST_F(Delivery, ToAFolderWithAnothersPlanIsRefused) {
  put("plan.json", R"({"launch_list": {}, "mine": true})");
  expect_refused("earlier version");
}

TEST_F(Delivery, ToAFileIsRefused) {
  ASSERT_TRUE(write_file(folder, "mine\n"));
  expect_refused("a file");
  EXPECT_EQ(read_file(folder).value(), "mine\n");
}

TEST_F(Delivery, OverABundleWithAChangedFileIsRefusedByItsName) {
  ASSERT_TRUE(lay_out_small(folder));
  put("neg_kernels.cpp");
  expect_refused("neg_kernels.cpp (changed)");
  EXPECT_EQ(text("neg_kernels.cpp"), "mine\n");
}

TEST_F(Delivery, OverABundleWithAnAddedFileIsRefusedByItsName) {
  ASSERT_TRUE(lay_out_small(folder));
  put("check/notes.txt");
  expect_refused("check/notes.txt (not written by warploom)");
  EXPECT_EQ(text("check/notes.txt"), "mine\n");
}

TEST_F(Delivery, OverABundleWithAChangedPlanIsRefused) {
  ASSERT_TRUE(lay_out_small(folder));
  auto plan = nlohmann::json::parse(text("plan.json"));
  plan["tolerance"] = 1;
  put("plan.json", plan.dump());
  expect_refused("plan.json (changed)");
}

TEST_F(Delivery, OverAnEarlierVersionsBundleIsRefused) {
  fs::copy(test::source_path("tests/fixtures/829200f/bundles/conv_small"), folder,
           fs::copy_options::recursive);
  expect_refused("earlier version");
}

TEST_F(Delivery, OverAnUnchangedBundleReplacesItAsAWhole) {
  ASSERT_TRUE(deliver_small(folder, "first"));
  ASSERT_TRUE(run_process({"make", "-C", folder.string(), "check"}));
  put("__pycache__/first.cpython-311.pyc");
  const auto done = deliver_small(folder, "second");
  ASSERT_TRUE(done) << describe(done.error());
  EXPECT_FALSE(fs::exists(folder / "first.h"));
  EXPECT_FALSE(fs::exists(folder / "build"));
  EXPECT_TRUE(fs::exists(folder / "second.h"));
  expect_nothing_beside();
}

TEST_F(Delivery, GoesIntoAnEmptyFolderAndThroughALink) {
  ASSERT_TRUE(make_folders(folder));
  fs::create_directory_symlink(folder, scratch.path() / "link");
  const auto done = deliver_small(scratch.path() / "link");
  ASSERT_TRUE(done) << describe(done.error());
  EXPECT_TRUE(fs::is_symlink(scratch.path() / "link"));
  EXPECT_TRUE(fs::exists(folder / "plan.json"));
}

TEST_F(Delivery, IntoTheCurrentFolderLeavesItTheCurrentOne) {
  ASSERT_TRUE(make_folders(folder));
  const fs::path before = fs::current_path();
  fs::current_path(folder);
  for (int times = 0; times < 2; ++times) {
    const auto done = deliver_small(".");
    EXPECT_TRUE(done) << describe(done.error());
    EXPECT_TRUE(fs::exists("plan.json"));
  }
  fs::current_path(before);
  expect_nothing_beside();
}

// Names that meet the generator's, its headers' or a language's, each an input of one kernel that
// adds them all up.
TEST_F(Delivery, OfABundleWithEveryOddNameIsBuiltAndRight) {
  const std::vector<std::string> names = {"buffers",    "mutex",
                                          "lock",       "pool",
                                          "direct",     "odd_workspace_bytes",
                                          "odd_run",    "wl_tensors",
                                          "wl_run",     "concept",
                                          "consteval",  "constinit",
                                          "co_yield",   "co_await",
                                          "char8_t",    "char16_t",
                                          "requires",   "import",
                                          "module",     "NULL",
                                          "EOF",        "BUFSIZ",
                                          "INT_MAX",    "SIZE_MAX",
                                          "TRY",        "WL_TRY",
                                          "stream",     "workspace",
                                          "std",        "wl",
                                          "class",      "for",
                                          "lambda",     "None",
                                          "errno",      "linux",
                                          "unix",       "stdin",
                                          "add_all",    "memset",
                                          "int",        "void",
                                          "uint16_t",   "size_t",
                                          "a/b",        "a.b",
                                          "a_b",        "a:b",
                                          "a\"b",       "a'b",
                                          "a\\b",       "2x",
                                          "x y",        "$(touch pwned)",
                                          "`id`",       "é",
                                          "模型",       "\033[2J",
                                          "a\nb",       "*/ #error",
                                          "// x \\",    "?\?/",
                                          "{{bundle}}", std::string(3000, 'n')};
  graph::Builder builder("odd");
  LaunchList list{.engine = Engine::cpu, .arch = "x86-64"};
  Kernel kernel{.name = "add_all", .threads = 1};
  std::vector<graph::TensorId> ids;
  for (const std::string& name : names) {
    ids.push_back(builder.input(name, Dtype::f32, {6}));
    list.inputs.push_back({name, Dtype::f32, {6}});
    kernel.args.push_back({name});
  }
  graph::TensorId sum = ids[0];
  for (size_t i = 1; i < ids.size(); ++i)
    sum = builder.add(graph::OpKind::Add, {sum, ids[i]});
  builder.output(sum);
  const auto graph = builder.finish();
  ASSERT_TRUE(graph) << describe(graph.error());
  const std::string output = graph->tensor(sum).name;
  list.outputs = {{output, Dtype::f32, {6}}};
  kernel.args.push_back({output});
  kernel.source = fmt::format(
      "extern \"C\" void add_all(void* const* buffers, long long, void*) {{\n"
      "  for (int i = 0; i < 6; ++i) {{\n    float sum = 0;\n"
      "    for (int k = 0; k < {0}; ++k) sum += static_cast<const float*>(buffers[k])[i];\n"
      "    static_cast<float*>(buffers[{0}])[i] = sum;\n  }}\n}}\n",
      names.size());
  list.kernels = {kernel};
  const auto done = write_bundle(folder,
                                 {.name = "odd",
                                  .summary = "A \"\"\"test\"\"\" of `names` \\ [x](y) */",
                                  .plan = {{"track", "fp32"}},
                                  .tolerance = 1e-5},
                                 list, *graph);
  ASSERT_TRUE(done) << describe(done.error());
  const auto parsed = run_process({"python3", "-m", "py_compile", (folder / "odd.py").string()});
  ASSERT_TRUE(parsed);
  EXPECT_TRUE(parsed->succeeded()) << parsed->err;
}

TEST_F(Delivery, OfBundlesWithEveryOddNameIsBuiltAndRight) {
  for (const std::string name : {"check", "pool", "$(touch pwned) 'x'"}) {
    const auto done = deliver_small(scratch.path() / "odd", name);
    ASSERT_TRUE(done) << name << describe(done.error());
  }
  EXPECT_FALSE(fs::exists("pwned"));
}

TEST_F(Delivery, OfTwoBundlesLinksIntoOneProgram) {
  ASSERT_TRUE(lay_out_small(folder / "a", "a"));
  ASSERT_TRUE(lay_out_small(folder / "b", "b"));
  put("main.cpp",
      "#include \"a/a.h\"\n#include \"b/b.h\"\n"
      "int main() {\n  alignas(64) float x[32] = {1}, y[32], z[32];\n"
      "  return a_run(x, y, nullptr) != 0 || b_run(y, z, nullptr) != 0 || z[0] != 1;\n}\n");
  const auto ran = run_process(
      {"bash", "-c",
       "cd " + folder.string() +
           " && g++ -std=c++20 -pthread -Ia/device/cpu -Ia/device/common main.cpp a/*.cpp b/*.cpp "
           "-o both && ./both"},
      {.time = std::chrono::seconds(200)});
  ASSERT_TRUE(ran);
  EXPECT_TRUE(ran->succeeded()) << ran->err;
}

TEST_F(Delivery, KnowsTheHashOfEveryFile) {
  ASSERT_TRUE(lay_out_small(folder));
  const auto plan = nlohmann::json::parse(text("plan.json"));
  std::set<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.insert(entry.path().lexically_relative(folder));
  std::set<std::string> known;
  for (const auto& [name, hash] : plan["files"].items())
    known.insert(name);
  EXPECT_EQ(files, known);
}

TEST_F(Delivery, ABundleThatTheTimeIsTooShortToBuildIsDeliveredAndSaysSo) {
  const Small made = small();
  const auto done = write_bundle(folder, {.name = "neg", .summary = "A test."}, made.list,
                                 made.graph, std::chrono::steady_clock::now());
  ASSERT_TRUE(done) << describe(done.error());
  ASSERT_EQ(done->notes.size(), 1u);
  EXPECT_NE(done->notes[0].find("not built here within the budget"), std::string::npos)
      << done->notes[0];
  EXPECT_TRUE(fs::exists(folder / "plan.json"));
}
}  // namespace
}  // namespace warploom::export_
