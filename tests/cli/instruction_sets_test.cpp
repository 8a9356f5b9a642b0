// Targets that are instruction sets of CPUs: this machine's other ones, and those of another
// processor.
#include <gtest/gtest.h>
#include <string>
#include "base/file.h"
#include "cli_fixture.h"
#include "target/instruction_set.h"

namespace warploom {
namespace {
using cli_test::Cli;
using cli_test::Ran;

TEST_F(Cli, ShowsWhatAnArmWouldGet) {
  const Ran run = shell("$W show " + model.string() + " --what source --target aarch64 --json");
  ASSERT_EQ(run.status, 0) << run.text << run.err;
  EXPECT_EQ(run.out["launch_list"]["arch"], "aarch64");
  const std::string source = run.out["launch_list"]["kernels"][0]["source"];
  EXPECT_NE(source.find("#define WL_VECTOR_BYTES 16"), std::string::npos) << source;
}

TEST_F(Cli, SearchesForNoOtherProcessor) {
  const bool on_arm = target::instruction_set_here().processor == target::Processor::aarch64;
  expect_error(optimize(on_arm ? "--target x86-64-v3" : "--target aarch64"), "wrong-machine", 3);
}

TEST_F(Cli, SearchesForAnOlderSetOfThisProcessorAndDeliversItsFlags) {
  if (target::instruction_set_here().vector_bytes <= 32) GTEST_SKIP() << "no AVX-512 here";
  const Ran run = optimize("--target x86-64-v3 --candidates 3 --budget 60s --out made");
  ASSERT_EQ(run.status, 0) << run.text << run.err;
  EXPECT_EQ(run.out["target"], "x86-64-v3");
  const auto makefile = read_file(scratch.path() / "made/Makefile");
  ASSERT_TRUE(makefile);
  EXPECT_NE(makefile->find("-march=x86-64-v3"), std::string::npos) << *makefile;
  EXPECT_EQ(shell("make -C made check").status, 0);
  const Ran judged = shell("$W verify made --json");
  EXPECT_EQ(judged.status, 0) << judged.text << judged.err;
}
}  // namespace
}  // namespace warploom
