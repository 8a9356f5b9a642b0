// check.cpp of a bundle: a program that feeds the launcher, compares with FP64 and says how long a call takes.
#pragma once

#include "export/parts.h"

namespace warploom::export_ {

struct CheckInput {
  std::string file;        // below check/; empty: made from the seed
  std::uint64_t seed = 0;  // of the generator
};
struct CheckOutput {
  std::string values;   // file of doubles
  std::string indices;  // file of 64-bit indices; empty: every element, in order
};
struct CheckSource {
  const Frame& frame;
  double tolerance = 0;
  std::vector<CheckInput> inputs;
  std::vector<CheckOutput> outputs;
};
std::string check_source(const CheckSource& source);

}  // namespace warploom::export_
