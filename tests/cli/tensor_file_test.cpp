#include <gtest/gtest.h>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "cli/command.h"
#include "codegen/launch_list.h"

namespace warploom::cli {
namespace {
class TensorFile : public testing::Test {
 protected:
  ScratchFolder scratch{"tensor-file"};

  // As numpy.save would write it, with the given keys.
  std::filesystem::path npy(const std::string& header, size_t bytes) {
    std::string text = std::string("\x93NUMPY\x01\0", 8);
    text += static_cast<char>(header.size());
    text += '\0';
    const auto path = scratch.path() / "t.npy";
    EXPECT_TRUE(write_file(path, text + header + std::string(bytes, 'x')));
    return path;
  }

  void refused(const std::filesystem::path& path, const std::string& found) {
    const auto bytes = read_tensor(path, {"t", Dtype::f32, {2, 3}});
    ASSERT_FALSE(bytes);
    EXPECT_EQ(bytes.error().code, ErrorCode::kPlanInvalid);
    EXPECT_EQ(bytes.error().found, found);
  }
};

TEST_F(TensorFile, EveryTypeIsReadBackAsItWasWritten) {
  for (const Dtype dtype : {Dtype::f64, Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::e4m3,
                            Dtype::i64, Dtype::u8, Dtype::boolean})
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, {7}, {2, 3}}) {
      const BufferSpec tensor{"a/b", dtype, shape};
      const std::string bytes(static_cast<size_t>(tensor.bytes()), 'q');
      const bool known_to_numpy = dtype != Dtype::bf16 && dtype != Dtype::e4m3;
      const std::filesystem::path path = scratch.path() / (known_to_numpy ? "t.npy" : "t.bin");
      const Status written = write_tensor(path, tensor, bytes);
      ASSERT_TRUE(written) << describe(written.error());
      const auto again = read_tensor(path, tensor);
      ASSERT_TRUE(again) << describe(again.error());
      EXPECT_EQ(*again, bytes);
    }
}

TEST_F(TensorFile, KeysOfAHeaderStandInAnyOrder) {
  EXPECT_TRUE(read_tensor(npy("{'shape':(2,3,),'fortran_order':False,'descr':'<f4'}", 24),
                          {"t", Dtype::f32, {2, 3}}));
}

TEST_F(TensorFile, AnotherShapeIsRefused) {
  refused(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }", 24), "<f4 (3, 2)");
}

TEST_F(TensorFile, AnotherTypeIsRefused) {
  refused(npy("{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }", 24), ">f4 (2, 3)");
}

TEST_F(TensorFile, ColumnsFirstAreRefused) {
  refused(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", 24),
          "columns first (Fortran order)");
}

TEST_F(TensorFile, AShortFileIsRefused) {
  refused(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 23), "23 bytes");
}

TEST_F(TensorFile, AHeaderBehindTheEndIsRefused) {
  ASSERT_TRUE(write_file(scratch.path() / "t.npy", std::string("\x93NUMPY\x01\0\xff\xff{}", 12)));
  refused(scratch.path() / "t.npy", "a header that ends behind the file");
}

TEST_F(TensorFile, OtherTextIsRefused) {
  ASSERT_TRUE(write_file(scratch.path() / "t.npy", "not at all"));
  refused(scratch.path() / "t.npy", "no .npy file");
}
}  // namespace
}  // namespace warploom::cli
