#include <gtest/gtest.h>
#include "verify/evaluator.h"

// The evaluator is this very program again.
int main(int argc, char** argv) {
  int status = 0;
  if (warploom::verify::evaluator_main(argc, argv, &status)) return status;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
