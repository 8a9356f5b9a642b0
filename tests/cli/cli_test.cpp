// The executable as programs see it: one JSON object on standard output, a stable code, an exit
// status.
#include <gtest/gtest.h>
#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include "base/error.h"
#include "base/file.h"
#include "cli_fixture.h"
#include "shared_search.h"

namespace warploom {
namespace {
using cli_test::Cli;
using cli_test::kProgram;
using cli_test::matmul_model;
using cli_test::Ran;
using nlohmann::json;

TEST_F(Cli, AssumesWhatEachFlagSaysOfAnInput) {
  const Ran run =
      shell("$W show --assume A=lower --assume B=upper " + model.string() + " --what graph --json");
  ASSERT_EQ(run.status, 0) << run.text << run.err;
  const std::string graph = run.out["graph"];
  EXPECT_NE(graph.find("Trilu(A)"), std::string::npos) << graph;
  EXPECT_NE(graph.find("Trilu(B)"), std::string::npos) << graph;
  expect_error(shell("$W optimize --assume C=lower " + model.string() + " --json"), "usage", 2);
}

TEST_F(Cli, WhatWasAssumedGoesAlongWithThePlan) {
  ASSERT_EQ(optimize("--target cpu --candidates 2 --budget 60s --out made --assume A=lower").status,
            0);
  for (const char* by : {"", "--model "}) {
    const Ran judged = shell("$W verify made --json " + (*by ? by + model.string() : ""));
    EXPECT_EQ(judged.status, 0) << judged.text << judged.err;
  }
  EXPECT_EQ(
      shell(
          "sed -i '/\"assume\"/,/]/s/lower/upper/' made/plan.json; $W verify made/plan.json --json "
          "--model " +
          model.string())
          .code(),
      "plan-invalid");
}

TEST_F(Cli, VersionIsOneObject) {
  const Ran run = shell("$W version --json");
  EXPECT_EQ(run.status, 0);
  EXPECT_TRUE(run.out.contains("version")) << run.text;
}

TEST_F(Cli, ErrorsListsEveryCode) {
  const Ran run = shell("$W errors --json");
  ASSERT_TRUE(run.out.contains("errors")) << run.text;
  EXPECT_GT(run.out["errors"].size(), 40u);
}

TEST_F(Cli, UnknownFlagIsAUsageError) {
  expect_error(shell("$W optimize --json x.onnx --frobnicate"), "usage", 2);
}

TEST_F(Cli, WhatWasMeantIsSuggested) {
  const std::string show = "$W show mm.textproto --target cpu ";

  const struct {
    std::string line;
    std::string code;
    int status;
    std::string found;
    std::string meant;
  } cases[] = {
      {"$W optimise mm.textproto", "usage", 2, "optimise", "optimize"},
      {"$W optimise mm.textproto --budget 3s", "usage", 2, "optimise", "optimize"},
      {"$W optimize mm.textproto --buget 3s", "usage", 2, "--buget 3s", "--budget"},
      {"$W optimize --buget 3s mm.textproto", "usage", 2, "--buget", "--budget"},
      {"$W optimize mm.textproto --no-resme", "usage", 2, "--no-resme", "--no-resume"},
      {"$W --versoin", "usage", 2, "--versoin", "--version"},
      {"$W optimize mm.textproto --strategy beem", "usage", 2, "beem", "beam"},
      {"$W optimize mm.textproto --target sm_90", "unknown-target", 2, "sm_90", "sm_90a"},
      {"$W optimize mm.textproto --track fp23", "unknown-track", 2, "fp23", "fp32"},
      {show + "--what progam", "usage", 2, "progam", "program"},
      {show + "--what program --schedule 'rowise_cpu rows=1'", "no-schedule", 4, "rowise_cpu", ""},
      {"$W errors no-compilr", "usage", 2, "no-compilr", "no-compiler"},
      {"sed s/MatMul/MatMull/ mm.textproto > m.textproto; $W optimize m.textproto",
       "onnx-unknown-operator", 2, "MatMull", "MatMul"},
  };

  for (const auto& one : cases) {
    const Ran run = shell(one.line + " --json");
    expect_error(run, one.code, one.status);
    const json error = run.out.value("error", json::object());
    EXPECT_TRUE(error.value("found", "").starts_with(one.found)) << one.line << error;
    if (one.meant.empty()) continue;
    const std::string remedy = error.value("remedy", "");
    EXPECT_NE(remedy.find("did you mean " + one.meant + "?"), remedy.npos) << one.line << error;
  }
}

TEST_F(Cli, AMisspeltFieldOfAScheduleIsNamedWithTheOneThatWasMeant) {
  const std::string show = "$W show mm.textproto --json --what program --target cpu";
  const Ran first = shell(show);
  ASSERT_TRUE(first.out.contains("schedule")) << first.text;
  std::string schedule = first.out["schedule"].get<std::string>();
  const size_t equals = schedule.find('=');
  const size_t begin = schedule.rfind(' ', equals) + 1;
  const std::string field = schedule.substr(begin, equals - begin);
  schedule.insert(begin + 1, "q");
  const Ran run = shell(show + " --schedule '" + schedule + "'");
  expect_error(run, "schedule-illegal", 4);
  const std::string remedy = run.out["error"]["remedy"];
  EXPECT_NE(remedy.find("did you mean " + field + "?"), remedy.npos) << schedule << remedy;
}

TEST_F(Cli, WordsThatBelongNowhereAreListedAsTheyWereGiven) {
  const Ran run = shell("$W optimize mm.textproto --one 1 --two 2 --json");
  expect_error(run, "usage", 2);
  EXPECT_EQ(run.out["error"]["found"], "--one 1 --two 2");
  const Ran twice = shell("$W optimize mm.textproto other.textproto --json");
  expect_error(twice, "usage", 2);
  EXPECT_EQ(twice.out["error"]["found"], "other.textproto");
}

TEST_F(Cli, AMissingArgumentIsNamedWithAnExample) {
  const Ran run = shell("$W optimize --json");
  expect_error(run, "usage", 2);
  EXPECT_EQ(run.out["error"]["place"], "FILE");
  expect_error(shell("$W optimize mm.textproto --json --budget"), "usage", 2);
}

TEST_F(Cli, NumbersOutsideTheirRangeAreUsageErrors) {
  for (const std::string flags :
       {"--jobs 0", "--jobs -1", "--jobs 9999999", "--jobs two", "--jobs 1.5", "--jobs ''",
        "--seed -1", "--seed 99999999999999999999", "--candidates many", "--candidates 1e99",
        "--budget -5s", "--budget 1e30", "--budget 3x"})
    expect_error(optimize(flags), "usage", 2);
  expect_error(shell("$W show mm.textproto --what regions --region 0 --json"), "usage", 2);
}

TEST_F(Cli, EveryCommandShowsAnExampleInItsHelp) {
  for (const std::string command :
       {"optimize", "run", "report", "new", "compile", "show", "verify", "bench", "archive",
        "doctor", "errors", "version", "completion", ""}) {
    const Ran run = shell("$W " + command + " --help");
    EXPECT_EQ(run.status, 0) << command;
    EXPECT_NE(run.text.find("Example:\n  "), run.text.npos) << command << run.text;
    EXPECT_NE(run.text.find("warploom " + command), run.text.npos) << command;
  }
}

TEST_F(Cli, OneErrorCodeIsExplained) {
  const Ran run = shell("$W errors no-compiler --json");
  ASSERT_TRUE(run.out.contains("errors")) << run.text;
  ASSERT_EQ(run.out["errors"].size(), 1u);
  EXPECT_EQ(run.out["errors"][0]["exit_status"], 3);
}

TEST_F(Cli, ACompilerThatIsNamedIsTheOneThatIsTaken) {
  expect_error(shell("export CXX=no-such-compiler; $W optimize mm.textproto --target cpu --json"),
               "no-compiler", 3);
  const Ran doctor = shell("CXX='env g++ -O1' $W doctor --json");
  EXPECT_NE(doctor.text.find("env g++ -O1 "), doctor.text.npos) << doctor.text;
  const Ran missing = shell("CXX=no-such-compiler $W doctor --json");
  for (const auto& finding : missing.out["findings"]) {
    const bool is_compiler = finding["name"] == "C++ compiler";
    EXPECT_FALSE(is_compiler && finding["found"].get<bool>()) << finding;
  }
}

TEST_F(Cli, NoCommandIsAUsageError) {
  expect_error(shell("$W --json"), "usage", 2);
}

TEST_F(Cli, UnknownStrategyIsAUsageError) {
  expect_error(optimize("--strategy luck"), "usage", 2);
}

TEST_F(Cli, DurationsHaveUnits) {
  for (const std::string text : {"500ms", "60s", "2m", "1.5h", "7"})
    expect_error(shell("$W optimize nothing.onnx --json --budget " + text), "file-missing", 2);
}

TEST_F(Cli, OtherDurationsAreUsageErrors) {
  for (const std::string text : {"''", "3y", "0s", "-3s", "inf", "nan", "1e999s"})
    expect_error(optimize("--budget=" + text), "usage", 2);
}

TEST_F(Cli, NoCandidatesContradictASearch) {
  expect_error(optimize("--candidates 0"), "flags-contradict", 2);
}

TEST_F(Cli, ResumeAndNoResumeContradict) {
  expect_error(optimize("--resume --no-resume"), "flags-contradict", 2);
}

TEST_F(Cli, UnknownTargetIsRefused) {
  expect_error(optimize("--target sm_10"), "unknown-target", 2);
}

TEST_F(Cli, UnknownTrackIsRefused) {
  expect_error(optimize("--track fp3"), "unknown-track", 2);
}

TEST_F(Cli, MissingModelIsNamed) {
  expect_error(shell("$W optimize nothing.onnx --json"), "file-missing", 2);
}

TEST_F(Cli, Fp32TrackCannotHoldForABf16Model) {
  ASSERT_TRUE(write_file(model, matmul_model(16)));
  expect_error(optimize("--track fp32"), "unknown-track", 2);
}

TEST_F(Cli, EmptyModelIsRefused) {
  ASSERT_TRUE(write_file(model, ""));
  expect_error(optimize(""), "onnx-empty", 2);
}

TEST_F(Cli, PlanThatIsNoPlanIsRefused) {
  ASSERT_TRUE(write_file(scratch.path() / "plan.json", "[]"));
  expect_error(shell("$W verify plan.json --json"), "plan-invalid", 2);
}

TEST_F(Cli, FailureWithoutJsonGoesToStandardError) {
  const Ran run = shell("$W optimize nothing.onnx");
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.text, "");
  EXPECT_NE(run.err.find("error[file-missing]"), std::string::npos) << run.err;
}

TEST_F(Cli, ReaderThatGoesAwayIsNoFailure) {
  const Ran run = shell("$W errors | true; exit ${PIPESTATUS[0]}");
  EXPECT_EQ(run.status, 0) << run.err;
}

TEST_F(Cli, FullStandardOutputIsSaid) {
  const Ran run = shell("$W errors > /dev/full");
  EXPECT_EQ(run.status, 3);
  EXPECT_NE(run.err.find("disk-full"), std::string::npos) << run.err;
}

TEST_F(Cli, DoctorSaysWhatEachThingIsFor) {
  const Ran run = shell("$W doctor --json");
  ASSERT_TRUE(run.out.contains("findings")) << run.text;
  for (const auto& finding : run.out["findings"])
    EXPECT_NE(finding["needed_for"], "");
}

TEST_F(Cli, ShowPrintsEveryStageForEveryKindOfTarget) {
  for (const std::string target : {"cpu", "sm_80", "sm_90a"})
    for (const std::string what : {"graph", "regions", "space", "program", "layouts", "source"}) {
      const Ran run = shell("$W show " + model.string() + " --json --what " + what + " --target " +
                            target + (target == "cpu" || what == "graph" ? "" : " --track tf32"));
      EXPECT_EQ(run.status, 0) << target << " " << what << run.text;
      EXPECT_EQ(run.out.value("what", ""), what);
    }
}

TEST_F(Cli, ShowTakesTheScheduleThatItPrinted) {
  const std::string command = "$W show " + model.string() + " --json --what program --target cpu";
  const Ran first = shell(command);
  ASSERT_TRUE(first.out.contains("schedule")) << first.text;
  const Ran again =
      shell(command + " --schedule '" + first.out["schedule"].get<std::string>() + "'");
  EXPECT_EQ(again.out, first.out);
  expect_error(shell(command + " --schedule 'direct x=big'"), "plan-invalid", 2);
}

TEST_F(Cli, AScheduleWithoutItsFieldsOrWithAbsurdOnesIsRefused) {
  const std::string command = "$W show " + model.string() +
                              " --json --what program --target sm_90a --track tf32 --schedule ";
  for (const std::string schedule :
       {"matmul_wgmma", "matmul_simt", "'direct x=0 y=0 lanes=0 unroll=0 warps=0'",
        "'matmul_mma block_m=64 block_n=64 block_k=32 stages=3 group=8 solution=0 "
        "warps=4611686018427387904'"})
    expect_error(shell(command + schedule), "schedule-illegal", 4);
}

TEST_F(Cli, OptimizeGivesTheDocumentedKeysAndABundleThatPassesItsCheckAndIsJudgedAgain) {
  const Ran run = optimize("--target cpu --candidates 3 --budget 60s --out made");
  ASSERT_EQ(run.status, 0) << run.text << run.err;
  for (const char* key :
       {"problem", "target", "device", "track", "reference", "reference_us", "best_us", "speedup",
        "error", "max_error", "roofline_fraction", "candidates", "seconds", "seed", "bundle"})
    EXPECT_TRUE(run.out.contains(key)) << key;
  const Ran check = shell("make -C made check");
  EXPECT_EQ(check.status, 0) << check.text << check.err;
  const Ran judged = shell("$W verify made --json");
  EXPECT_EQ(judged.status, 0) << judged.text << judged.err;
}

TEST_F(Cli, ABundleRunsOnFilesOfItsInputs) {
  const auto made = shared_search("matmul", model, "--candidates 2 --budget 60s");
  ASSERT_TRUE(made) << describe(made.error());
  ASSERT_TRUE(copy_of_search(*made, "b", scratch.path() / "mm"));
  const Ran ran = shell(
      "head -c 16384 /dev/zero > a.bin; head -c 16384 /dev/zero > b.bin; $W run mm a.bin b.bin "
      "--out o --json");
  ASSERT_TRUE(ran.out.contains("outputs")) << ran.text << ran.err;
  const auto written = read_file(scratch.path() / ran.out["outputs"]["C"].get<std::string>());
  ASSERT_TRUE(written);
  EXPECT_EQ(written->substr(128), std::string(16384, '\0'));
  EXPECT_EQ(shell("$W run mm --out p").status, 0) << "random inputs";
  expect_error(shell("$W run mm a.bin --json"), "usage", 2);
  expect_error(shell("$W run mm a.bin missing.bin --json"), "file-missing", 2);
  expect_error(shell("$W show mm --what ncu --json"), "flags-contradict", 2);
}

TEST_F(Cli, AnOperatorThatIsNotSupportedIsNamed) {
  std::string text = matmul_model();
  text.replace(text.find("\"MatMul\""), 8, "\"NonZero\"");
  ASSERT_TRUE(write_file(model, text));
  expect_error(optimize("--target cpu"), "onnx-unknown-operator", 2);
}

TEST_F(Cli, TypesThatNoFamilyComputesAreNoSchedule) {
  ASSERT_TRUE(write_file(model, matmul_model(11)));  // f64
  expect_error(optimize("--target cpu"), "no-schedule", 4);
}

TEST_F(Cli, OutcomeIsPrintedEvenWhenItsBundleCannotBeWritten) {
  const Ran run = optimize("--target cpu --candidates 1 --budget 60s --out /proc/nowhere/at/all");
  EXPECT_EQ(run.status, 3) << run.text;
  EXPECT_EQ(run.code(), "file-unwritable") << run.text;
  EXPECT_GT(run.out["outcome"].value("best_us", 0.0), 0);
}

TEST_F(Cli, InterruptEndsWithTheBestSoFar) {
  ASSERT_TRUE(write_file(model, matmul_model(1, 1000)));  // whose search takes longer than that
  const Ran run =
      shell("timeout --foreground --preserve-status -s INT 5 $W optimize " + model.string() +
            " --json --target cpu --budget 10m --strategy random --out made");
  EXPECT_EQ(run.status, 130) << run.text << run.err;
  ASSERT_TRUE(run.out.is_object()) << run.text;
  if (run.out.contains("bundle"))
    EXPECT_TRUE(std::filesystem::exists(scratch.path() / "made/plan.json"));
  else
    EXPECT_EQ(run.code(), "interrupted") << run.text;  // nothing was found before it
}
}  // namespace
}  // namespace warploom
