// The kept corpus of the readers through each of them, without libFuzzer: a value or an error with
// a code.
#include "readers/readers.h"
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include "base/file.h"
#include "support/paths.h"

namespace warploom::fuzz {
namespace {
namespace fs = std::filesystem;

class Readers : public testing::Test {
 protected:
  // What should not be, the readers abort on.
  static void read_all(std::string_view corpus, void (*reader)(std::string_view)) {
    const ScratchFolder folder("corpus");
    const fs::path packed =
        test::source_path(fmt::format("tests/fuzz/readers/corpus/{}.tar.xz", corpus));
    ASSERT_EQ(
        std::system(
            fmt::format("tar -xJf '{}' -C '{}'", packed.string(), folder.path().string()).c_str()),
        0);
    int files = 0;
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      const auto bytes = read_file(entry.path());
      ASSERT_TRUE(bytes) << entry.path();
      reader(*bytes);
      ++files;
    }
    EXPECT_GT(files, 0);
  }
};

TEST_F(Readers, TakeTheCorpusOfBinaryModels) {
  read_all("onnx_binary", read_model);
}

TEST_F(Readers, TakeTheCorpusOfTextModels) {
  read_all("onnx_text", read_model);
}

TEST_F(Readers, TakeTheCorpusOfTilePrograms) {
  read_all("tile_program", read_program);
}

TEST_F(Readers, TakeTheCorpusOfArchives) {
  read_all("archive", read_archive);
}

TEST_F(Readers, TakeTheCorpusOfPlans) {
  read_all("plan", read_plan);
}

TEST_F(Readers, TakeTheCorpusOfKernelFiles) {
  read_all("kernel", read_kernel);
}

TEST_F(Readers, TakeTheCorpusOfAnswers) {
  read_all("answer", read_answer);
}

TEST_F(Readers, TakeTheCorpusOfImages) {
  read_all("image", read_image);
}
}  // namespace
}  // namespace warploom::fuzz
