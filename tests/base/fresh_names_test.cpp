#include "base/fresh_names.h"
#include <gtest/gtest.h>

namespace warploom {
namespace {
TEST(FreshNames, AreNumberedWhereTheyAreTaken) {
  FreshNames names;
  names.insert("y/3");
  EXPECT_EQ(names.fresh("y", "/"), "y");
  EXPECT_EQ(names.fresh("y", "/"), "y/2");
  EXPECT_EQ(names.fresh("y", "/"), "y/4");
  EXPECT_EQ(names.fresh("y/2", "/"), "y/2/2");
  EXPECT_EQ(names.fresh("z", "."), "z");
}
}  // namespace
}  // namespace warploom
