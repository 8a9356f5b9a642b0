#include <gtest/gtest.h>
#include "runtime/compile.h"

// NVRTC runs in this very program again.
int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "__compile") return warploom::runtime::run_compile_request(argv[2]);
  warploom::runtime::set_helper_program("/proc/self/exe");
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
