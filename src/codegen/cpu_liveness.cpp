#include "codegen/cpu_liveness.h"
namespace warploom::codegen {
using tile::Program;
using tile::Statement;
using tile::Tile;
using tile::Value;
namespace {
struct Collector {
  const Program& program;
  TensorUses uses;

  void walk(const Statement& statement) {
    std::visit([this](const auto& node) { (*this)(node); }, statement.node);
    for_bodies(statement, [this](const tile::Body& body) {
      for (const Statement& each : body) walk(each);
    });
  }
  void write(const Tile& tile) {
    const bool whole = tile.extent == program.tensor(tile.tensor).shape;
    if (!whole) uses.reads.push_back(tile.tensor);
    uses.writes.push_back(tile.tensor);
  }
  void read(const Value& value) {
    if (value.kind == Value::Kind::tensor) uses.reads.push_back(value.tensor);
    for (const Value& operand : value.operands) read(operand);
  }
  void operator()(const tile::Copy& copy) {
    uses.reads.push_back(copy.src.tensor);
    write(copy.dst);
  }
  void operator()(const tile::Fill& fill) { uses.writes.push_back(fill.dst); }
  void operator()(const tile::Map& map) {
    read(map.value);
    uses.writes.push_back(map.dst);
  }
  void operator()(const tile::Mma& mma) {
    uses.reads.insert(uses.reads.end(), {mma.acc, mma.a.tensor, mma.b.tensor});
    uses.writes.push_back(mma.acc);
  }
  template <class Node>
  void operator()(const Node& node) {
    if constexpr (requires { node.src; }) uses.reads.push_back(node.src), uses.writes.push_back(node.dst);
  }
};
}  // namespace
TensorUses uses_of(const Program& program, const Statement& statement) {
  Collector collector{program, {}};
  collector.walk(statement);
  return std::move(collector.uses);
}

Liveness::Liveness(const Program& program) : program_(program) {
  Wanted wanted(program.tensors.size());
  walk(program.body, wanted);
}

// Backwards; a loop's body twice, the second time with what its own next turn wants.
void Liveness::walk(const tile::Body& body, Wanted& wanted) {
  for (std::size_t i = body.size(); i-- > 0;) {
    after_[&body[i]] = wanted;
    bool holds = false;
    for_bodies(body[i], [&](const tile::Body& inner) {
      holds = true;
      for (int turn = 0; turn < 2; ++turn) {
        Wanted before = wanted;
        walk(inner, before);
        std::transform(wanted.begin(), wanted.end(), before.begin(), wanted.begin(), std::logical_or<>());
      }
    });
    if (holds) continue;
    const TensorUses uses = uses_of(program_, body[i]);
    for (const tile::TensorId id : uses.writes) wanted[static_cast<std::size_t>(id)] = false;
    for (const tile::TensorId id : uses.reads) wanted[static_cast<std::size_t>(id)] = true;
  }
}
}  // namespace warploom::codegen
