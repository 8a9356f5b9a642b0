// `warploom compile`: tile programs of the examples, and what is said of programs that cannot be.
#include <gtest/gtest.h>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/file.h"
#include "base/process.h"
#include "base/random.h"
#include "support/paths.h"

namespace warploom {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;

class Compile : public testing::Test {
 protected:
  ScratchFolder scratch{"compile-test"};

  json compile(const fs::path& file, std::vector<std::string> flags = {}) {
    std::vector<std::string> command = {test::built_path("warploom"), "compile", file.string(),
                                        "--json"};
    command.insert(command.end(), flags.begin(), flags.end());
    const auto run =
        run_process(command, {.time = std::chrono::seconds(100), .output_bytes = 16 << 20});
    return run ? json::parse(run->out, nullptr, false) : json();
  }

  json compile_text(const std::string& text, std::vector<std::string> flags = {}) {
    EXPECT_TRUE(write_file(scratch.path() / "p.tile", text));
    return compile(scratch.path() / "p.tile", std::move(flags));
  }
};

TEST_F(Compile, EveryExampleAgreesWithItsMeaningOnTheEmulator) {
  int examples = 0;
  for (const auto& entry : fs::directory_iterator(test::source_path("examples/tile"))) {
    const json out = compile(entry.path(), {"--check"});
    ASSERT_TRUE(out.contains("verdict")) << entry.path() << out.dump(1);
    EXPECT_TRUE(out["verdict"]["agrees"].get<bool>());
    EXPECT_EQ(out["verdict"]["wavefronts"], out["verdict"]["wavefronts_least"])
        << "bank conflicts in " << entry.path();
    ++examples;
  }
  EXPECT_GE(examples, 7);
}

TEST_F(Compile, ProgramsWithoutRolesAgreeOnEveryGpuTarget) {
  for (const char* name : {"attention.tile", "gemm_mma.tile", "softmax.tile", "w4a16_packed.tile"})
    for (const char* target : {"sm_80", "sm_89"}) {
      const json out = compile(fs::path(test::source_path("examples/tile")) / name,
                               {"--check", "--target", target});
      EXPECT_TRUE(out.contains("verdict")) << name << " for " << target << out.dump(1);
    }
}

TEST_F(Compile, AProgramMayBeNamedLikeAFunctionOfC) {
  const std::string text =
      "program div grid(2) warps 4\nglobal A f32 [256]\noutput C f32 [256]\nregister x f32 [128]\n"
      "copy A[block_x * 128 +128] -> x\ncopy x -> C[block_x * 128 +128]\n";
  EXPECT_TRUE(compile_text(text, {"--check"}).contains("verdict"));
}

TEST_F(Compile, ProgramsOfEveryOperandTypeAndOfOddShapesAgree) {
  for (const auto& entry : fs::directory_iterator(test::source_path("tests/cli/tile"))) {
    const json out = compile(entry.path(), {"--check"});
    EXPECT_TRUE(out.contains("verdict")) << entry.path() << out.dump(1);
  }
}

TEST_F(Compile, WeightsOfFourBitsAreMultipliedBeforeSm90Too) {
  const json out =
      compile(test::source_path("tests/cli/tile/w4a16_mma.tile"), {"--check", "--target", "sm_80"});
  EXPECT_TRUE(out.contains("verdict")) << out.dump(1);
}

TEST_F(Compile, TheOrderOfAPackedTensorStandsInTheLaunchListAndWherePicturesAre) {
  const json out = compile(
      test::source_path("examples/tile/w4a16_packed.tile"),
      {"--target", "sm_80", "--layouts", "svg", "--out", (scratch.path() / "packed.cu").string()});
  const json& args = out["launch_list"]["kernels"][0]["args"];
  EXPECT_EQ(args[0]["buffer"], "W");
  EXPECT_EQ(
      args[0]["packed"],
      json::parse("[[[8,128],[2,2],[4,1024],[4,32768]],[[2,1],[4,32],[2,4],[4,8],[8,4096]]]"));
  EXPECT_FALSE(args[1].contains("packed"));  // X
  EXPECT_EQ(out["layouts"]["W"],
            "packed (8:128)(2:2)(4:1024)(4:32768), (2:1)(4:32)(2:4)(4:8)(8:4096) of 4 bits");
  EXPECT_TRUE(fs::exists(scratch.path() / "w4a16_packed_w.svg"));
  EXPECT_FALSE(fs::exists(scratch.path() / "w4a16_packed_W.svg"));  // it lies in no banks
}

// Fragments of the matrix unit scanned, rearranged and transposed, and codes of a few bits on their
// way into fragments and back.
constexpr std::string_view kExchanges = R"(program p grid(1) warps @w
global A f16 [@r, 16]
global B f16 [16, @c]
global W @code [@r, @c]
global V @small [@r, @c]
output S f32 [@r, @c]
output M f32 [@r, @c]
output Y @type [@r, @c]
output T @type [@c, @r]
output P @small [@r, @c]
register a f16 [@r, 16]
register b f16 [16, @c]
register acc f32 [@r, @c]
register s f32 [@r, @c]
register x @type [@r, @c]
register y @type [@r, @c]
register t @type [@c, @r]
register w @code [@r, @c]
register v @code [@r, @c]
register bytes u8 [@r, @bytes]
register u @small [@r, @c]
register q @small [@r, @c]
register p @small [@r, @c]
copy A -> a
copy B -> b
fill acc 0
mma acc += a * b
scan @op over @axis@from: acc -> s
copy s -> S
copy acc -> x
rearrange x -> y
scan @op over @axis@from: y -> y
copy y -> Y
rearrange x^T -> t
scan @op over @axis@from: t -> t
copy t -> T
copy W -> w
rearrange w -> v
map s = fma(acc, v, index(1, 3))
copy s -> M
copy V -> u
reinterpret u -> bytes
reinterpret bytes -> q
map p = sub(q, 1)
copy p -> P
)";

TEST_F(Compile, RandomLayoutsAreScannedRearrangedAndPackedAlike) {
  Random random(11);
  using Words = std::vector<std::string>;
  const auto any = [&](const Words& of) { return of[random.below(of.size())]; };
  for (int i = 0; i < 8; ++i) {
    const std::string columns = any({"16", "32", "48", "64"});
    const std::string small = any({"u4", "u2", "u1"});
    const int bytes = std::stoi(columns) * (small[1] - '0') / 8;
    const std::pair<std::string, Words> choices[] = {{"@w", {any({"1", "2", "4"})}},
                                                     {"@r", {any({"64", "128"})}},
                                                     {"@code", {any({"u4", "i4"})}},
                                                     {"@small", {small}},
                                                     {"@c", {columns}},
                                                     {"@bytes", {std::to_string(bytes)}},
                                                     {"@type", {any({"f32", "f16", "bf16"})}},
                                                     {"@op", {"sum", "max", "min"}},
                                                     {"@from", {"", " reverse"}},
                                                     {"@axis", {"0", "1"}}};
    std::string text(kExchanges);
    for (const auto& [word, of] : choices)
      for (size_t at = 0; (at = text.find(word, at)) != std::string::npos;)
        text.replace(at, word.size(), any(of));
    const json out = compile_text(text, {"--check", "--target", any({"sm_80", "sm_90a"})});
    EXPECT_TRUE(out.contains("verdict")) << out.dump(1) << text;
  }
}

TEST_F(Compile, AReductionOverLanesThatDoNotPairUpIsRefused) {
  const json out = compile_text(
      "program p grid(1) warps 3\nglobal X f32 [8, 96]\noutput Y f32 [8, 1]\nregister x f32 [8, "
      "96]\n"
      "register y f32 [8, 1]\ncopy X -> x\nreduce sum over 1: x -> y\ncopy y -> Y\n");
  EXPECT_EQ(out["error"]["code"], "no-instruction") << out.dump(1);
}

// What the engine cannot do between roles is refused with the statement's line.
TEST_F(Compile, AGatheredTileIsNoWorkForTheCopyEngine) {
  const json out = compile_text(
      "program p grid(1)\nglobal R i32 [64]\nglobal X f16 [64, 64]\noutput Y f16 [64, 64]\nshared "
      "s f16 [64, 64]\n"
      "register r f16 [64, 64]\npipeline ring stages 2 { s }\nroles:\n  role one warps 4:\n    "
      "produce ring:\n"
      "      copy X[gather(R, 0) +64, 0 +64] -> s\n  role two warps 4:\n    consume ring:\n      "
      "copy s -> r\n    copy "
      "r -> Y\n");
  EXPECT_EQ(out["error"]["code"], "no-instruction") << out.dump(1);
  EXPECT_NE(out["error"]["place"].get<std::string>().find(":11"), std::string::npos) << out.dump(1);
}

TEST_F(Compile, NamesTheInstructionOfEveryCopyAndProduct) {
  const json out = compile(test::source_path("examples/tile/gemm_fp8.tile"));
  std::string names;
  for (const auto& row : out["instructions"])
    names += row["instruction"].get<std::string>() + " ";
  EXPECT_NE(names.find("tma_load"), std::string::npos);
  EXPECT_NE(names.find("wgmma_e4m3"), std::string::npos);
}

TEST_F(Compile, AMistypedStatementIsNamedByItsLine) {
  const json out = compile_text("program p grid(1)\nregister x f32 [1, 32]\nfill x zero\n");
  EXPECT_EQ(out["error"]["code"], "tile-syntax");
  EXPECT_NE(out["error"]["place"].get<std::string>().find(":3"), std::string::npos) << out.dump();
}

TEST_F(Compile, AProductThatNoInstructionFitsIsRefusedAtItsLine) {
  const json out = compile_text(
      "program p grid(1) warps 4\nglobal A bf16 [24, 16]\nglobal B bf16 [16, 8]\noutput C f32 [24, "
      "8]\n"
      "register a bf16 [24, 16]\nregister b bf16 [16, 8]\nregister acc f32 [24, 8]\n"
      "copy A -> a\ncopy B -> b\nfill acc 0\nmma acc += a * b\ncopy acc -> C\n",
      {"--target", "sm_80"});
  EXPECT_EQ(out["error"]["code"], "no-instruction") << out.dump(1);
  EXPECT_NE(out["error"]["place"].get<std::string>().find(":11"), std::string::npos) << out.dump(1);
}

TEST_F(Compile, LayoutsAreDrawnIntoFiles) {
  compile(test::source_path("examples/tile/softmax.tile"),
          {"--layouts", "svg", "--out", (scratch.path() / "softmax.cu").string()});
  EXPECT_TRUE(fs::exists(scratch.path() / "softmax.cu"));
  EXPECT_TRUE(fs::exists(scratch.path() / "softmax_x.svg"));
}
}  // namespace
}  // namespace warploom
