#include "vendor/libraries.h"
#include <gtest/gtest.h>
#include "runtime/library.h"
#include "vendor/cudnn.h"
#include "vendor/dnnl.h"

namespace warploom::vendor {
namespace {
// Without a GPU cuDNN makes no handle, but its symbols can be looked for.
TEST(Libraries, CudnnHasEveryFunctionThatIsAskedFor) {
  const runtime::Library& library = Cudnn::get().library;
  if (!library) GTEST_SKIP() << library.why_not();
  EXPECT_EQ(library.missing(), "");
  EXPECT_TRUE(Cudnn::get().name().starts_with("cuDNN "));
}

TEST(Libraries, DnnlHasEveryFunctionThatIsAskedFor) {
  const runtime::Library& library = Dnnl::get().library;
  if (!library) GTEST_SKIP() << library.why_not();
  EXPECT_EQ(library.missing(), "");
}

TEST(Libraries, EachHasARowForDoctor) {
  for (const LibraryRow& row : library_rows()) {
    EXPECT_FALSE(row.names().empty()) << row.name;
    EXPECT_FALSE(row.remedy.empty()) << row.name;
  }
}
}  // namespace
}  // namespace warploom::vendor
