#include <gtest/gtest.h>
#include <cstdlib>
#include "host_multiplier.h"
#include "host_truth.h"
#include "verify/evaluator.h"

// The evaluator is this very program again.
int main(int argc, char** argv) {
  int status = 0;
  if (std::getenv(warploom::verify::kHostProducts) &&
      warploom::verify::host_multiplier_main(argc, argv, &status))
    return status;
  if (std::getenv(warploom::verify::kHostTruth) &&
      warploom::verify::host_truth_main(argc, argv, &status))
    return status;
  if (warploom::verify::evaluator_main(argc, argv, &status)) return status;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
