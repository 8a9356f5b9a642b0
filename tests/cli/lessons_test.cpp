// The blocks of commands in examples/README.md, as they stand there.
#include <gtest/gtest.h>
#include <filesystem>
#include "base/file.h"
#include "base/process.h"

namespace warploom {
namespace {
TEST(Lessons, EveryBlockOfCommandsRuns) {
  const auto text = read_file(WARPLOOM_SOURCE_DIR "/examples/README.md");
  ASSERT_TRUE(text);
  std::string script = "set -e\nexport EXAMPLES=" WARPLOOM_SOURCE_DIR
                       "/examples PATH=" WARPLOOM_BINARY_DIR ":$PATH\n";
  int blocks = 0;
  for (std::size_t at = 0; (at = text->find("```sh\n", at)) != std::string::npos; ++blocks) {
    const std::size_t begin = at + 6, end = text->find("```", begin);
    script += text->substr(begin, end - begin);
    at = end + 3;
  }
  EXPECT_GE(blocks, 6);
  const ScratchFolder scratch("lessons-test");
  const std::string in = "cd " + scratch.path().string() + "; export XDG_CACHE_HOME=$PWD/cache\n";
  const auto ran = run_process({"bash", "-c", in + script}, {.time = std::chrono::seconds(280)});
  ASSERT_TRUE(ran);
  EXPECT_TRUE(ran->succeeded()) << ran->out << ran->err;
}
}  // namespace
}  // namespace warploom
