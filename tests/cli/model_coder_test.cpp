// `warploom optimize --coder llm`, beside a scripted endpoint, from the command line to the bundle.
#include <gtest/gtest.h>
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>
#include "archive/archive.h"
#include "base/file.h"
#include "cli_fixture.h"
#include "support/scripted_endpoint.h"

namespace warploom::cli_test {
namespace {
constexpr const char* kSecret = "sk-of-the-command-line";

// A product of 64×64, a row a block. A region calls its inputs x0, x1, … and its output y.
std::string matmul_file(const std::string& inner) {
  return "// warploom: kernel mm grid=64 args=x0,x1,y\n"
         "extern \"C\" void mm(void* const* buffers, long long i, void*) {\n"
         "  auto* a = static_cast<const float*>(buffers[0]) + i * 64;\n"
         "  auto* b = static_cast<const float*>(buffers[1]);\n"
         "  auto* c = static_cast<float*>(buffers[2]) + i * 64;\n"
         "  float sums[64] = {};\n"
         "  for (int k = 0; k < 64; ++k)\n"
         "    for (int j = 0; j < 64; ++j) sums[j] += a[k] * b[k * 64 + j];\n" +
         inner + "  for (int j = 0; j < 64; ++j) c[j] = sums[j];\n}\n";
}

class ModelCoder : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    ASSERT_TRUE(write_file(scratch.path() / "key", std::string(kSecret) + "\n"));
  }

  std::string flags(const ScriptedEndpoint& endpoint) const {
    return "--target cpu --budget 30s --coder llm --llm-model scripted --llm-key-file key "
           "--llm-url " +
           endpoint.url() + " ";
  }

  std::vector<archive::Candidate> recorded() const {
    auto archive = archive::Archive::open(scratch.path() / "cache/warploom/archive.sqlite");
    return *archive->candidates(archive->problems()->front().key);
  }
};

TEST_F(ModelCoder, TheGoodAnswerIsFoundAmongBadOnes) {
  const ScriptedEndpoint endpoint({refusal(503), kernel_answer(matmul_file("  sums[0] = 0;\n")),
                                   kernel_answer("no kernel"), kernel_answer(matmul_file("")),
                                   refusal(401)});
  const Ran run = optimize(flags(endpoint));
  ASSERT_EQ(run.status, 0) << run.text << run.err;
  const json& coder = run.out["coders"].at(0);
  EXPECT_EQ(coder["texts"], 2);
  EXPECT_EQ(coder["right"], 1);
  EXPECT_EQ(coder["failed"]["model-no-source"], 1);
  std::vector<std::string> codes;
  for (const archive::Candidate& row : recorded())
    if (row.family == "written") codes.push_back(row.error_code);
  std::ranges::sort(codes);
  EXPECT_EQ(codes, (std::vector<std::string>{"", "candidate-wrong"}));
}

TEST_F(ModelCoder, WhatItWroteIsDeliveredAndNotRun) {
  const ScriptedEndpoint endpoint({kernel_answer(matmul_file("")), refusal(401)});
  const Ran run = optimize(flags(endpoint) + "--out bundle");
  ASSERT_EQ(run.status, 0) << run.text << run.err;
  const bool is_written = run.out["schedule"].get<std::string>().starts_with("written");
  bool is_told = false;
  for (const json& note : run.out["notes"])
    is_told |= note.get<std::string>().find("language model wrote") != std::string::npos;
  EXPECT_EQ(is_told, is_written);
  const Ran verified = shell("$W verify bundle --json");
  EXPECT_EQ(verified.status, 0) << verified.text;
}

TEST_F(ModelCoder, TheKeyIsNowhere) {
  const std::string secret = kSecret;
  const ScriptedEndpoint endpoint(
      {streamed("Your key is " + secret, 100), refusal(401, "bad key " + secret)});
  const Ran run = optimize(flags(endpoint));
  ASSERT_EQ(run.status, 0) << run.text << run.err;
  EXPECT_NE(endpoint.requests().at(0).find(secret), std::string::npos);
  EXPECT_EQ((run.text + run.err).find(secret), std::string::npos);
  const Ran searched = shell("grep -rl " + secret + " cache out | head");
  EXPECT_EQ(searched.text, "");
}

TEST_F(ModelCoder, FlagsThatDoNotFitAreSaidSo) {
  expect_error(optimize("--target cpu --coder llm"), "flags-contradict", 2);
  expect_error(optimize("--target cpu --llm-model x"), "flags-contradict", 2);
  const std::string named =
      "--target cpu --coder llm --llm-model x --llm-url http://127.0.0.1:1/v1 ";
  expect_error(optimize(named + "--llm-key-file missing"), "model-key", 2);
  expect_error(optimize(named + "--llm-money 1"), "flags-contradict", 2);
  expect_error(optimize(named + "--llm-price 3"), "usage", 2);
  expect_error(optimize("--target cpu --coder llm --llm-model x --llm-url file:///etc/passwd"),
               "usage", 2);
}
}  // namespace
}  // namespace warploom::cli_test
