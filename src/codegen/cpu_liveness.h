// Whether the value of a register tensor is still wanted: some statement that may run later reads it before it is wholly
// overwritten. Statements later in a loop's body are also earlier ones of its next turn, and a loop may not turn at all.
#pragma once
#include "tile/program.h"
namespace warploom::codegen {
// The tensors that a statement reads and those that it wholly overwrites; of its body, all of them when it has one. Writing a part of
// a tensor counts as both: what is not written stays as it was.
struct TensorUses {
  std::vector<tile::TensorId> reads, writes;
};
TensorUses uses_of(const tile::Program& program, const tile::Statement& statement);

class Liveness {
 public:
  explicit Liveness(const tile::Program& program);
  bool wanted_after(const tile::Statement& statement, tile::TensorId id) const {
    return after_.at(&statement)[static_cast<std::size_t>(id)];
  }

 private:
  using Wanted = std::vector<bool>;  // by tensor
  void walk(const tile::Body& body, Wanted& wanted);

  const tile::Program& program_;
  std::map<const tile::Statement*, Wanted> after_;
};
}  // namespace warploom::codegen
