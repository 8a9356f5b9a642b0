// tools/progress.sh: what `./run` says while something else is busy, where no terminal is.
#include <gtest/gtest.h>
#include <chrono>
#include <string>
#include "base/process.h"
#include "support/paths.h"

namespace warploom {
namespace {
// What follow() says of `command`, whose lines it reads as ninja's.
std::string said_of(const std::string& command) {
  const std::string line = "source " + test::source_path("tools/progress.sh") + "; { " + command +
                           " } | follow building read_ninja";
  const auto ran = run_process({"bash", "-c", line}, {.time = std::chrono::seconds(60)});
  EXPECT_TRUE(ran && ran->succeeded());
  return ran ? ran->err : "";
}

TEST(ProgressScript, SaysAtTheEndHowFarItCame) {
  const std::string said = said_of("sleep 0.8; echo '[7/7] Linking CXX executable warploom';");
  EXPECT_TRUE(said.starts_with("building, 0 s\n")) << said;
  EXPECT_TRUE(said.ends_with("building: 7 of 7 (Linking CXX executable warploom)\n")) << said;
}

TEST(ProgressScript, SaysNothingOfWhatIsDoneAtOnce) {
  EXPECT_EQ(said_of("echo '[1/1] Linking CXX executable warploom';"), "");
}

TEST(ProgressScript, OtherLinesAreNoProgress) {
  EXPECT_EQ(said_of("echo 'error: no such file';"), "error: no such file\n");
}
}  // namespace
}  // namespace warploom
