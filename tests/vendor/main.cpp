#include <gtest/gtest.h>
#include "runtime/compile.h"

// NVRTC runs in this very program again.
int main(int argc, char** argv) {
  int status = 0;
  if (warploom::runtime::compiler_main(argc, argv, &status)) return status;
  warploom::runtime::set_helper_program("/proc/self/exe");
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
