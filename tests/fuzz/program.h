// A random tile program with everything a run of it needs: valid by construction, and the same for
// the same seed everywhere.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>
#include "known.h"

namespace warploom::fuzz {
// What inputs hold. raw: any bits but NaNs, for programs that only move data; small: integers of -3
// to 3, so that sums are exact; real: reals of -2 to 2.
enum class Data : uint8_t { raw, small, real };

struct Case {
  uint64_t seed = 0;
  std::string kind;                  // of program: "elementwise", "moves", "matmul", "ring"
  std::vector<std::string> targets;  // that it is made for: a GPU, the CPU, or both
  tile::Program program;
  Data data = Data::small;
  std::map<std::string, Known>
      known;  // of outputs: what they may hold and how far a target may be from the interpreter
};

Case make_case(uint64_t seed);
// The case with another program; nothing where no bound for it is known (known.h).
std::optional<Case> with_program(const Case& like, tile::Program program);
}  // namespace warploom::fuzz
