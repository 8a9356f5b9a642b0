#include "codegen/cpu_emitter.h"
namespace warploom::codegen {
using tile::Program;
using tile::Statement;
TensorUses uses_of(const Program& program, const Statement& statement) {
  TensorUses uses;
  for (const tile::TensorUse& use : tile::uses_of(statement)) {
    const bool whole = !use.tile || use.tile->extent == program.tensor(use.tensor).shape;
    if (use.read || !whole) uses.reads.push_back(use.tensor);
    if (use.written) uses.writes.push_back(use.tensor);
  }
  for_bodies(statement, [&](const tile::Body& body) {
    for (const Statement& each : body) {
      const TensorUses inner = uses_of(program, each);
      uses.reads.insert(uses.reads.end(), inner.reads.begin(), inner.reads.end());
      uses.writes.insert(uses.writes.end(), inner.writes.begin(), inner.writes.end());
    }
  });
  return uses;
}

namespace {
// Backwards; a loop's body twice, the second time with what its own next turn wants.
void walk(const Program& program, const tile::Body& body, Wanted& wanted, std::map<const Statement*, Wanted>& behind) {
  for (std::size_t i = body.size(); i-- > 0;) {
    behind[&body[i]] = wanted;
    bool holds = false;
    for_bodies(body[i], [&](const tile::Body& inner) {
      holds = true;
      for (int turn = 0; turn < 2; ++turn) {
        Wanted before = wanted;
        walk(program, inner, before, behind);
        std::transform(wanted.begin(), wanted.end(), before.begin(), wanted.begin(), std::logical_or<>());
      }
    });
    if (holds) continue;
    const TensorUses uses = uses_of(program, body[i]);
    for (const tile::TensorId id : uses.writes) wanted[static_cast<std::size_t>(id)] = false;
    for (const tile::TensorId id : uses.reads) wanted[static_cast<std::size_t>(id)] = true;
  }
}
}  // namespace
std::map<const Statement*, Wanted> wanted_behind(const Program& program) {
  std::map<const Statement*, Wanted> behind;
  Wanted wanted(program.tensors.size());
  walk(program, program.body, wanted, behind);
  return behind;
}
}  // namespace warploom::codegen
