// How far a target may lie from the interpreter, worked out for a whole program before it runs.
//
// Every tensor gets one Known: an interval that holds all its elements; the unit that they are
// multiples of (a power of two); and `error`, the most by which a target's element may differ from
// the interpreter's. Sums and products of few small multiples of a unit are exact in fp32 in
// whatever order they are taken, so there the error is 0 and outputs must be equal. Each operation
// that rounds adds 2u·|result| (both sides round), each rounding to a narrower type one spacing of
// that type, and errors of operands come through by the operation's slope. Index expressions, loops
// and branches are followed with the values of each block.
#pragma once
#include <map>
#include <optional>
#include <string>
#include "tile/program.h"

namespace warploom::fuzz {
struct Known {
  // infinite where the data is arbitrary
  double low = 0;
  double high = 0;
  double error = 0;
  double unit = 1;
  double size() const;  // the largest magnitude
};

// Of each global tensor, inputs (as given) and outputs; nothing where no useful bound exists: an
// operation outside its domain, a choice that depends on a rounded value, a type's range exceeded,
// an error above 1 % of the values.
std::optional<std::map<std::string, Known>> known_of(const tile::Program& program,
                                                     const std::map<std::string, Known>& inputs);
}  // namespace warploom::fuzz
