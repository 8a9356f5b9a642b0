// The kept corpus of the readers through each of them, without libFuzzer: a value or an error with a code.
#include <gtest/gtest.h>
#include "readers/readers.h"
namespace warploom::fuzz {
namespace {
namespace fs = std::filesystem;

class Readers : public testing::Test {
 protected:
  // Only what comes back can be checked here: the readers abort on what should not be.
  static void read_all(const char* corpus, void (*reader)(std::string_view)) {
    int files = 0;
    for (const auto& entry : fs::directory_iterator(fs::path(WARPLOOM_SOURCE_DIR) / "tests/fuzz/readers/corpus" / corpus)) {
      const auto bytes = read_file(entry.path());
      ASSERT_TRUE(bytes) << entry.path();
      SCOPED_TRACE(entry.path());
      reader(*bytes);
      ++files;
    }
    EXPECT_GT(files, 0);
  }
};

TEST_F(Readers, TakeTheCorpusOfBinaryModels) { read_all("onnx_binary", read_model); }
TEST_F(Readers, TakeTheCorpusOfTextModels) { read_all("onnx_text", read_model); }
TEST_F(Readers, TakeTheCorpusOfTilePrograms) { read_all("tile_program", read_program); }
TEST_F(Readers, TakeTheCorpusOfArchives) { read_all("archive", read_archive); }
}  // namespace
}  // namespace warploom::fuzz
