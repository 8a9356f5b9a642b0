// Tensors whose elements lie in files of their own, and which files these may be.
#include <fmt/format.h>
#include <filesystem>
#include "base/error.h"
#include "base/file.h"
#include "graph/graph.h"
#include "model_text.h"
#include "onnx/load.h"

namespace warploom {
namespace {
namespace fs = std::filesystem;

class ExternalData : public ::testing::Test {
 protected:
  ScratchFolder folder{"external"};
  fs::path inside = folder.path() / "model";

  void SetUp() override {
    fs::create_directories(inside / "data");
    ASSERT_TRUE(write_file(inside / "data" / "w.bin", std::string(16, '\0')));
    ASSERT_TRUE(write_file(folder.path() / "secret.bin", std::string(16, '\0')));
  }

  ErrorCode load(std::string_view location, std::string_view more = "") {
    const std::string text = model_text(fmt::format(
        "node {{ op_type: \"Relu\" input: \"w\" output: \"y\" }} initializer {{ name: \"w\" "
        "data_type: 1 dims: 4 data_location: EXTERNAL "
        "external_data {{ key: \"location\" value: \"{}\" }} {} }} ",
        location, more));
    EXPECT_TRUE(write_file(inside / "m.textproto", text));
    const auto graph = load_onnx(inside / "m.textproto");
    return graph ? ErrorCode::kInternal : graph.error().code;
  }
};

TEST_F(ExternalData, IsReadFromTheModelsFolder) {
  EXPECT_EQ(load("data/w.bin"), ErrorCode::kInternal);
  EXPECT_EQ(load("data/w.bin",
                 "external_data { key: \"offset\" value: \"0\" } external_data { key: \"length\" "
                 "value: \"16\" }"),
            ErrorCode::kInternal);
}

TEST_F(ExternalData, GoesAlongIntoTheText) {
  ASSERT_EQ(load("data/w.bin"), ErrorCode::kInternal);
  const auto graph = load_onnx(inside / "m.textproto");
  const auto again = parse_onnx(*onnx_text(inside / "m.textproto"));
  ASSERT_TRUE(again) << describe(again.error());
  EXPECT_EQ(to_text(*again), to_text(*graph));
  EXPECT_EQ(again->tensors[0].constant, graph->tensors[0].constant);
}

TEST_F(ExternalData, ElsewhereIsRefused) {
  fs::create_symlink(folder.path() / "secret.bin", inside / "link.bin");
  fs::create_directory_symlink(folder.path(), inside / "up");
  for (const std::string& location :
       {std::string("../secret.bin"), (folder.path() / "secret.bin").string(),
        std::string("data/../../secret.bin"), std::string("link.bin"), std::string("up/secret.bin"),
        std::string("data"), std::string("none.bin"), std::string("")})
    EXPECT_EQ(load(location), ErrorCode::kOnnxExternalData) << location;
}

// As the cache of Hugging Face lays models out.
struct Linked : ExternalData {
  fs::path blobs = folder.path() / "blobs";
  fs::path snapshot = folder.path() / "snapshots" / "1a2b";

  void SetUp() override {
    ExternalData::SetUp();
    fs::create_directories(blobs);
    fs::create_directories(snapshot);
    ASSERT_EQ(load("data/w.bin"), ErrorCode::kInternal);
    fs::copy(inside / "m.textproto", blobs / "a1");
    fs::create_symlink("../../blobs/a1", snapshot / "model.onnx");
  }

  ErrorCode load_link() const {
    const auto graph = load_onnx(snapshot / "model.onnx");
    return graph ? ErrorCode::kInternal : graph.error().code;
  }
};

TEST_F(Linked, DataMayBeALinkToWhatLiesBesideTheRealModel) {
  fs::create_directories(snapshot / "data");
  fs::copy(inside / "data" / "w.bin", blobs / "b2");
  fs::create_symlink("../../../blobs/b2", snapshot / "data" / "w.bin");
  EXPECT_EQ(load_link(), ErrorCode::kInternal);
  EXPECT_TRUE(onnx_text(snapshot / "model.onnx"));
}

TEST_F(Linked, DataMayLieBesideTheLink) {
  fs::create_directories(snapshot / "data");
  fs::copy(inside / "data" / "w.bin", snapshot / "data" / "w.bin");
  EXPECT_EQ(load_link(), ErrorCode::kInternal);
}

TEST_F(Linked, DataMayLieBesideTheRealModel) {
  fs::create_directories(blobs / "data");
  fs::copy(inside / "data" / "w.bin", blobs / "data" / "w.bin");
  EXPECT_EQ(load_link(), ErrorCode::kInternal);
}

TEST_F(Linked, DataElsewhereIsRefused) {
  EXPECT_EQ(load_link(), ErrorCode::kOnnxExternalData);
  fs::create_directories(snapshot / "data");
  fs::create_symlink(folder.path() / "secret.bin", snapshot / "data" / "w.bin");
  EXPECT_EQ(load_link(), ErrorCode::kOnnxExternalData);
  fs::create_directories(blobs / "data");
  fs::create_symlink(folder.path() / "secret.bin", blobs / "data" / "w.bin");
  fs::remove(snapshot / "data" / "w.bin");
  EXPECT_EQ(load_link(), ErrorCode::kOnnxExternalData);
}

TEST_F(ExternalData, ThatGitLfsHasNotFetchedIsNamed) {
  ASSERT_TRUE(
      write_file(inside / "lfs.bin", "version https://git-lfs.github.com/spec/v1\noid 1\n"));
  EXPECT_EQ(load("lfs.bin"), ErrorCode::kOnnxExternalData);
  EXPECT_NE(load_onnx(inside / "m.textproto").error().remedy.find("git lfs pull"),
            std::string::npos);
}

TEST_F(ExternalData, MustBeLongEnough) {
  EXPECT_EQ(load("data/w.bin", "external_data { key: \"offset\" value: \"8\" }"),
            ErrorCode::kOnnxExternalData);
  EXPECT_EQ(load("data/w.bin", "external_data { key: \"offset\" value: \"-8\" }"),
            ErrorCode::kOnnxExternalData);
  EXPECT_EQ(load("data/w.bin", "external_data { key: \"offset\" value: \"9223372036854775807\" }"),
            ErrorCode::kOnnxExternalData);
  EXPECT_EQ(load("data/w.bin", "external_data { key: \"length\" value: \"4\" }"),
            ErrorCode::kOnnxExternalData);
  EXPECT_EQ(load("data/w.bin", "external_data { key: \"length\" value: \"4x\" }"),
            ErrorCode::kOnnxExternalData);
}
}  // namespace
}  // namespace warploom
