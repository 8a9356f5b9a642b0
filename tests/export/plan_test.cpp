// A bundle that somebody else made, or that was changed, is loaded right or refused.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "codegen/launch_list.h"
#include "export/as_built.h"
#include "runtime/bundle.h"
#include "runtime/executor.h"
#include "runtime/text_places.h"
#include "small_bundle.h"

namespace warploom::export_ {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;

class Plan : public testing::Test {
 protected:
  ScratchFolder scratch{"plan-test"};
  fs::path folder = scratch.path() / "neg";
  json plan;  // as it was written

  void SetUp() override {
    ASSERT_TRUE(lay_out_small(folder));
    plan = json::parse(read_file(folder / "plan.json").value());
  }

  void write(const json& changed) const {
    ASSERT_TRUE(write_file(folder / "plan.json", changed.dump()));
  }

  // What loading says of the plan with `value` at `place`; of a bundle without hashes, as before
  // there were any.
  std::string code_of(const std::string& place, const json& value) const {
    json changed = plan;
    changed.erase("files");
    changed[json::json_pointer(place)] = value;
    write(changed);
    const auto loaded = runtime::Bundle::load(folder, {.trusted = true});
    return loaded ? "loaded" : std::string(code_text(loaded.error().code));
  }

  // -x of 0, 1, 2 … by the bundle that lies there.
  static Status run(const fs::path& folder, std::vector<float>& y) {
    WARPLOOM_TRY(const auto bundle, runtime::Bundle::load(folder, {.trusted = true}));
    std::vector<float> x(32);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<float>(i);
    WARPLOOM_TRY(const runtime::Call call, bundle->bind(std::vector<void*>{x.data(), y.data()}));
    return call();
  }

  static bool right(const std::vector<float>& y) {
    for (size_t i = 0; i < y.size(); ++i)
      if (y[i] != -static_cast<float>(i)) return false;
    return true;
  }
};

TEST_F(Plan, OfNumbersThatNoLaunchHasIsRefused) {
  const std::string kernel = "/launch_list/kernels/0";
  for (const auto& [place, value] : std::initializer_list<std::pair<std::string, json>>{
           {"/launch_list/engine", "abacus"},
           {"/launch_list/arch", "$(id)"},
           {"/launch_list/arch", 3},
           {"/launch_list/kernels", json::array()},
           {"/launch_list/outputs", json::array()},
           {kernel + "/name", "a;b"},
           {kernel + "/grid", {int64_t{1} << 62, 1, 1}},
           {kernel + "/grid", {-1, 1, 1}},
           {kernel + "/grid", {0, 1, 1}},
           {kernel + "/grid", {1.5, 1, 1}},
           {kernel + "/grid", {1e30, 1, 1}},
           {kernel + "/grid", {uint64_t{1} << 63, 1, 1}},
           {kernel + "/grid", {int64_t{1} << 21, int64_t{1} << 21, 1}},
           {kernel + "/grid", {1}},
           {kernel + "/cluster", {2, 1, 1}},
           {kernel + "/threads", 0},
           {kernel + "/threads", (int64_t{1} << 32) + 1},
           {kernel + "/shared_bytes", -1},
           {kernel + "/shared_bytes", int64_t{1} << 50},
           {kernel + "/args/0/buffer", "nobody"},
           {kernel + "/args/0/packed", {{{4, 1 << 30}}}},
           {kernel + "/args/0/packed", {{{0, 1}}}},
           {kernel + "/args/0/tensor_map",
            {{"dtype", "f32"},
             {"dims", {1}},
             {"strides_bytes", json::array()},
             {"box", {1}},
             {"swizzle_bytes", 0}}},
           {"/launch_list/inputs/0/shape", {-8, 4}},
           {"/launch_list/inputs/0/dtype", "f33"},
           {"/launch_list/inputs/0/name", ""},
           {"/launch_list/inputs/0", {{"name", "y"}}},
           {"/constants", 3},
           {"/constants/x", 3}})
    EXPECT_EQ(code_of(place, value), "plan-invalid") << place << " " << value;
}

TEST_F(Plan, OfMoreOfAKindThanAnyModelIsRefused) {
  const json input = plan["launch_list"]["inputs"][0];
  const json kernel = plan["launch_list"]["kernels"][0];
  EXPECT_EQ(code_of("/launch_list/workspaces", json(60'000, input)), "plan-too-large");
  EXPECT_EQ(code_of("/launch_list/kernels", json(60'000, kernel)), "plan-too-large");
  EXPECT_EQ(code_of("/launch_list/constants", json(60'000, "x")), "plan-too-large");
  EXPECT_EQ(code_of("/launch_list/kernels/0/args", json(2000, kernel["args"][0])),
            "plan-too-large");
}

TEST_F(Plan, OfAGpuThatIsNoneIsRefused) {
  LaunchList list = small().list;
  list.engine = Engine::cuda;
  for (const std::string arch : {"", "x", "sm", "x86-64"}) {
    list.arch = arch;
    const auto read = launch_list_from_json(to_json(list));
    ASSERT_FALSE(read) << arch;
    EXPECT_EQ(read.error().code, ErrorCode::kPlanInvalid);
  }
}

// A file that takes no room on the disk and claims more than the machine has.
TEST_F(Plan, WhoseFilesDoNotFitInMemoryIsRefusedBeforeTheyAreRead) {
  fs::resize_file(folder / "neg_kernels.cpp", std::uintmax_t{1} << 40);
  const auto loaded = runtime::Bundle::load(folder, {.trusted = true});
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, ErrorCode::kPlanTooLarge);
  const auto built = as_built(folder, plan, small().list);
  ASSERT_FALSE(built);
  EXPECT_EQ(built.error().code, ErrorCode::kPlanTooLarge);
}

TEST_F(Plan, WhosePlanIsAPipeIsRefused) {
  fs::remove(folder / "plan.json");
  ASSERT_EQ(::mkfifo((folder / "plan.json").c_str(), 0600), 0);
  const auto loaded = runtime::Bundle::load(folder, {.trusted = true});
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, ErrorCode::kPlanInvalid);
}

TEST_F(Plan, OfACpuIsNotLoadedForWhoDoesNotTrustIt) {
  const auto nobody = runtime::Bundle::load(folder, {});
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code, ErrorCode::kBundleUntrusted);
  const auto gate = [](const std::string&, const std::string&) { return ok(); };
  const auto nowhere = runtime::Bundle::load(folder, {.gate = gate});
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, ErrorCode::kBundleUntrusted);
}

TEST_F(Plan, PassesTheGateBeforeAnythingOfItIsLoaded) {
  int looked = 0;
  const auto gate = [&](const std::string& image, const std::string& kernel) -> Status {
    ++looked;
    EXPECT_TRUE(
        image.starts_with("\x7f"
                          "ELF"));
    return fail({ErrorCode::kCandidateForbidden, "no", kernel});
  };
  const auto loaded = runtime::Bundle::load(
      folder, {.gate = gate, .cpu = [] { return runtime::Executor::open(Engine::cpu); }});
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, ErrorCode::kCandidateForbidden);
  EXPECT_EQ(looked, 1);
}

TEST_F(Plan, OfMoreMemoryThanThereIsIsRefused) {
  const int64_t large = int64_t{1} << 40;
  EXPECT_EQ(code_of("/launch_list/inputs/0/shape", {large, large}), "plan-too-large");
  EXPECT_EQ(code_of("/launch_list/inputs/0/shape", {large, large, large, large}), "plan-too-large");
}

TEST_F(Plan, OfTensorMapsOutsideTheirBuffersIsRefused) {
  LaunchList list = small().list;
  list.engine = Engine::cuda;
  list.arch = "sm_90a";
  const auto code = [&](const TensorMapSpec& map) {
    list.kernels[0].args[0] = {"x", true, map};
    const auto read = launch_list_from_json(to_json(list));
    return read ? "read" : std::string(code_text(read.error().code));
  };
  EXPECT_EQ(code({Dtype::f32, {4, 8}, {16}, {4, 8}, 0}), "read");
  EXPECT_EQ(code({Dtype::f32, {4, 9}, {16}, {4, 8}, 0}), "plan-invalid");
  EXPECT_EQ(code({Dtype::f32, {4, 8}, {32}, {4, 8}, 0}), "plan-invalid");
  EXPECT_EQ(code({Dtype::f32, {4, 8}, {16}, {4, 257}, 0}), "plan-invalid");
  EXPECT_EQ(code({Dtype::f32, {4, 8}, {16}, {4, 8}, 7}), "plan-invalid");
  EXPECT_EQ(code({Dtype::f32, {4, 8}, {}, {4, 8}, 0}), "plan-invalid");
  EXPECT_EQ(code({Dtype::f32, {int64_t{1} << 61, 8}, {16}, {4, 8}, 0}), "plan-invalid");
}

TEST_F(Plan, OfFilesOutsideItsFolderIsRefused) {
  ASSERT_TRUE(write_file(scratch.path() / "secret", std::string(128, 's')));
  fs::create_symlink("../../secret", folder / "check/link");
  fs::create_symlink("/dev/zero", folder / "check/endless");
  const std::string absolute = (scratch.path() / "secret").string();
  for (const std::string& file :
       {std::string("../secret"), std::string("check/../../secret"), absolute,
        std::string("/dev/zero"), std::string("check/link"), std::string("check/endless"),
        std::string("check"), std::string(""), std::string(".")})
    EXPECT_EQ(code_of("/constants/x", file), "plan-outside") << file;
  EXPECT_EQ(code_of("/constants/x", "nothing"), "file-missing");
  EXPECT_EQ(code_of("/constants/x", "Makefile"), "plan-invalid") << "of another size";
  EXPECT_EQ(code_of("/constants/x", "check/input_0.bin"), "loaded");
}

TEST_F(Plan, ThatIsNoPlainFileOrNestsTooDeepIsRefused) {
  const auto code = [&] {
    const auto loaded = runtime::Bundle::load(folder, {.trusted = true});
    return loaded ? "loaded" : std::string(code_text(loaded.error().code));
  };
  std::string deep = R"({"launch_list": {}, "constants": {}, "deep": )";
  ASSERT_TRUE(write_file(folder / "plan.json",
                         deep + std::string(200'000, '[') + std::string(200'000, ']') + "}"));
  EXPECT_EQ(code(), "plan-invalid");
  fs::remove(folder / "plan.json");
  fs::create_symlink("/dev/zero", folder / "plan.json");
  EXPECT_EQ(code(), "plan-invalid");
}

// One reader takes the first value, another one the last.
TEST_F(Plan, WithAKeyTwiceInOneObjectIsRefused) {
  const auto code_of_text = [&](const std::string& text) {
    EXPECT_TRUE(write_file(folder / "plan.json", text));
    const auto loaded = runtime::Bundle::load(folder, {.trusted = true});
    return loaded ? "loaded" : std::string(code_text(loaded.error().code));
  };
  const std::string text = plan.dump();
  EXPECT_EQ(code_of_text(text), "loaded");
  EXPECT_EQ(code_of_text("{\"launch_list\": {}, " + text.substr(1)), "plan-invalid");
  const std::string key = "\"name\":";
  const size_t inside = text.find(key);
  ASSERT_NE(inside, text.npos);
  EXPECT_EQ(code_of_text(text.substr(0, inside) + "\"name\":\"x\"," + text.substr(inside)),
            "plan-invalid");
}

TEST_F(Plan, OfFilesThatWereChangedIsRefusedByTheirName) {
  ASSERT_TRUE(write_file(folder / "neg_kernels.cpp", "// mine\n"));
  const auto loaded = runtime::Bundle::load(folder, {.trusted = true});
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, ErrorCode::kBundleChanged);
  EXPECT_NE(loaded.error().place.find("neg_kernels.cpp"), std::string::npos);
}

TEST_F(Plan, ThatIsCopiedAloneRuns) {
  fs::rename(folder / "plan.json", scratch.path() / "plan.json");
  std::vector<float> y(32);
  const Status ran = run(scratch.path() / "plan.json", y);
  ASSERT_TRUE(ran) << describe(ran.error());
  EXPECT_TRUE(right(y));
}

// Some value of the plan, the kernels' text apart, becomes another of its kind or of another kind.
json mutated(json plan, Random& random) {
  const json flat = plan.flatten();
  std::vector<json::json_pointer> places;
  for (const auto& [place, value] : flat.items())
    if (!place.ends_with("/source")) places.emplace_back(place);
  const json::json_pointer place = places[random.below(places.size())];
  const json values[] = {-1,
                         0,
                         1,
                         3,
                         int64_t{1} << 62,
                         1e30,
                         true,
                         nullptr,
                         "",
                         "x",
                         "../../secret",
                         "/dev/zero",
                         json::array(),
                         json::object()};
  plan[place] = values[random.below(std::size(values))];
  return plan;
}

TEST_F(Plan, ThatWasMutatedIsRefusedOrRunsRight) {
  ASSERT_TRUE(runtime::Bundle::load(folder, {.trusted = true}))
      << "compiles once for all that are forked";
  Random random(11, "plans");
  int refused = 0;
  constexpr int kMutations = 300;
  for (int i = 0; i < kMutations; ++i) {
    const json changed = mutated(plan, random);
    write(changed);
    const pid_t child = ::fork();
    if (child == 0) {
      std::vector<float> y(32);
      if (!run(folder, y)) ::_exit(1);
      ::_exit(right(y) ? 0 : 2);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status)) << changed;
    ASSERT_LE(WEXITSTATUS(status), 1) << changed;
    refused += WEXITSTATUS(status);
  }
  EXPECT_GT(refused, kMutations / 2);
}

bool has_tensor_of_negative_size(const runtime::Bundle& bundle) {
  return std::ranges::any_of(bundle.tensors,
                             [](const BufferSpec* tensor) { return tensor->bytes() < 0; });
}

// Without hashes, whoever changed it: what is read of it at all can be allocated and launched.
TEST_F(Plan, ThatWasMutatedBySomebodyWhoKnowsTheHashesIsRefusedOrSound) {
  ASSERT_TRUE(runtime::Bundle::load(folder, {.trusted = true}))
      << "compiles once for all that are forked";
  Random random(12, "plans");
  for (int i = 0; i < 300; ++i) {
    json changed = mutated(plan, random);
    changed.erase("files");
    write(changed);
    const pid_t child = ::fork();
    if (child == 0) {
      const auto loaded = runtime::Bundle::load(folder, {.trusted = true});
      ::_exit(loaded && has_tensor_of_negative_size(**loaded) ? 3 : 0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << changed;
  }
}

TEST_F(Plan, AsBuiltIsTheKernelFileWithItsHeadersWrittenOut) {
  const auto built = as_built(folder, plan, small().list);
  ASSERT_TRUE(built) << describe(built.error());
  EXPECT_EQ(built->kernel_file, "neg_kernels.cpp");
  const std::string& text = built->list.kernels[0].source;
  EXPECT_NE(text.find("void negate("), std::string::npos);
  EXPECT_EQ(text.find("#include \""), std::string::npos);
  EXPECT_NE(text.find("namespace wl {"), std::string::npos) << "wl_cpu.h is written out";
}

TEST_F(Plan, AsBuiltSaysWhichFilesLineALineIs) {
  const auto built = as_built(folder, plan, small().list);
  ASSERT_TRUE(built) << describe(built.error());
  const auto line_of = [](const std::string& text, const std::string& words) {
    const size_t at = text.find(words);
    return static_cast<int>(std::count(text.begin(), text.begin() + static_cast<long>(at), '\n')) +
           1;
  };
  const std::string& text = built->list.kernels[0].source;
  const std::string file = read_file(folder / "neg_kernels.cpp").value();
  const auto own = runtime::place_in(text, line_of(text, "void negate("));
  EXPECT_EQ(own.file, "neg_kernels.cpp");
  EXPECT_EQ(own.line, line_of(file, "void negate("));
  const auto included = runtime::place_in(text, line_of(text, "namespace wl {"));
  EXPECT_TRUE(included.file.starts_with("device/")) << included.file;
}

TEST_F(Plan, AsBuiltOfAChangedFileIsRefusedOrWithoutHashesTheFileItself) {
  const std::string text = read_file(folder / "neg_kernels.cpp").value() + "// more\n";
  ASSERT_TRUE(write_file(folder / "neg_kernels.cpp", text));
  const auto refused = as_built(folder, plan, small().list);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kBundleChanged);
  plan.erase("files");
  const auto built = as_built(folder, plan, small().list);
  ASSERT_TRUE(built) << describe(built.error());
  EXPECT_NE(built->list.kernels[0].source.find("// more"), std::string::npos);
}

// What a preprocessor reads as a directive, and a reader of lines does not.
TEST_F(Plan, AsBuiltOfAnIncludeInDisguiseIsRefused) {
  plan.erase("files");
  for (const std::string line :
       {"/**/ #include \"wl_cpu.h\"", "#/**/include \"wl_cpu.h\"", "#inc\\\nlude \"wl_cpu.h\"",
        "# \\\ninclude \"wl_cpu.h\"", "%:include \"wl_cpu.h\"", "?\?=include \"wl_cpu.h\"",
        "#include HEADER", "#include_next <math.h>", "#include </etc/passwd>",
        "#include \"../../secret\"", "#embed \"secret\"", "\v#import \"wl_cpu.h\""}) {
    ASSERT_TRUE(write_file(folder / "neg_kernels.cpp", line + "\nint x;\n"));
    const auto built = as_built(folder, plan, small().list);
    ASSERT_FALSE(built) << line;
    EXPECT_TRUE(built.error().code == ErrorCode::kBundleChanged ||
                built.error().code == ErrorCode::kPlanOutside)
        << line << "\n"
        << describe(built.error());
  }
}

TEST_F(Plan, AsBuiltOfLongLinesAndChainsOfHeadersEnds) {
  plan.erase("files");
  const std::string blanks(4 << 20, ' ');
  ASSERT_TRUE(write_file(folder / "neg_kernels.cpp",
                         "//" + blanks + "\n#" + blanks + "define x\nextern \"C\" const void* " +
                             std::string(4 << 20, 'a') + "\n#include <math.h>" + blanks + "\n"));
  EXPECT_TRUE(as_built(folder, plan, small().list));
  constexpr int kChain = 500;
  for (int i = 0; i < kChain; ++i)
    ASSERT_TRUE(
        write_file(folder / fmt::format("h{}.h", i), fmt::format("#include \"h{}.h\"\n", i + 1)));
  ASSERT_TRUE(write_file(folder / "neg_kernels.cpp", "#include \"h0.h\"\n"));
  const auto built = as_built(folder, plan, small().list);
  ASSERT_FALSE(built);
  EXPECT_EQ(built.error().code, ErrorCode::kBundleChanged);
}

TEST_F(Plan, AsBuiltOfAChangedLauncherIsRefused) {
  ASSERT_TRUE(write_file(folder / "neg_host.cpp", "// mine\n"));
  const auto refused = as_built(folder, plan, small().list);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kBundleChanged);
  EXPECT_NE(refused.error().place.find("neg_host.cpp"), std::string::npos);
}

TEST_F(Plan, AsBuiltWithoutAKernelFileIsThePlansOwnText) {
  fs::remove(folder / "neg_kernels.cpp");
  const auto built = as_built(folder, plan, small().list);
  ASSERT_TRUE(built) << describe(built.error());
  EXPECT_EQ(built->kernel_file, "");
  EXPECT_EQ(built->list.kernels[0].source, small().list.kernels[0].source);
}
}  // namespace
}  // namespace warploom::export_
