#include "tile/print.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "tile/index.h"
#include "tile/program.h"
#include "tile/syntax.h"

namespace warploom::tile {
namespace {
// Programs print before they are verified too, so a number that names nothing is no reason to fail.
class Writer {
 public:
  explicit Writer(const Program& program) : program_(program) {}

  std::string out;

  void item(const char* sign) { out += sign; }

  void item(const std::string& name) { out += name; }

  void item(int value) { out += std::to_string(value); }

  void item(double value) { out += std::isnan(value) ? "nan" : fmt::format("{}", value); }

  void item(const std::vector<int64_t>& shape) {
    out += fmt::format("[{}]", fmt::join(shape, ", "));
  }

  void item(Dtype dtype) { out += name_of(dtype); }

  void item(ReduceOp op) { out += name_of(op); }

  void item(const Index& index) { out += index.text(); }

  template <class T> void item(const std::optional<T>& there) { item(*there); }

  void item(Extents<const std::vector<int64_t>> extents) {
    out += fmt::format("({})", fmt::join(extents.list, ", "));
  }

  void keyword(const Tensor& tensor) {
    for (const TensorWord& row : kTensorWords)
      if (row.scope == tensor.scope &&
          row.writable == (tensor.writable && row.scope == Scope::global))
        out += row.word;
  }

  void item(Named<const int> of) {
    const auto name = [&](const auto& list) {
      return exists(list, of.id) ? list[of.id].name : "?";
    };
    out += of.is_pipeline ? name(program_.pipelines) : name(program_.tensors);
  }

  void item(const std::vector<TensorId>& tensors) {
    for (size_t i = 0; i < tensors.size(); ++i)
      all(*this, i ? ", " : "", Named{tensors[i]});
  }

  void item(const Tile& tile) {
    item(Named{tile.tensor});
    if (covers(tile)) return;
    for (size_t i = 0; i < tile.offset.size() && i < tile.extent.size(); ++i) {
      if (const std::string at = tile.offset[i].text(); tile.gathered_along(i)) {
        const std::string behind = fmt::format(", {}) +{}", at, tile.extent[i]);
        all(*this, i ? ", gather(" : "[gather(", Named{tile.lookup}, behind);
      } else
        out += fmt::format("{}{} +{}", i ? ", " : "[", at, tile.extent[i]);
      if (i < tile.step.size() && tile.step[i] != 1) out += fmt::format(" by {}", tile.step[i]);
    }
    out += ']';
  }

  void item(const Value& value) {
    if (value.kind == Value::Kind::constant) return item(value.constant);
    if (value.kind == Value::Kind::tensor) return item(Named{value.tensor});
    if (value.kind == Value::Kind::coordinate) {
      const bool shifted = value.shift.constant() != 0;
      return all(*this, "index(", value.axis, Optional{", ", shifted, value.shift}, ")");
    }
    out += name_of(value.op);
    for (size_t i = 0; i < value.operands.size(); ++i)
      all(*this, i ? ", " : "(", value.operands[i]);
    out += value.operands.empty() ? "()" : ")";
  }

  void item(Flag<const bool> flag) { out += flag.on ? flag.word : ""; }

  template <class T> void item(Optional<T> optional) {
    if (!optional.there) return;
    out += optional.word;
    item(optional.value);
  }

  // What is indented below a line.
  void below(const auto& node, int level) {
    const std::string indent(2 * level, ' ');
    if constexpr (requires { node.body; })
      for (const Statement& statement : node.body) {
        out += indent + print(program_, statement) + "\n";
        statement.visit([&](const auto& inner) { below(inner, level + 1); });
      }
    if constexpr (requires { node.roles; })
      for (const Role& role : node.roles) {
        all(*this, indent.c_str(), role, "\n");
        below(role, level + 1);
      }
  }

  void item(const Role& role) { line(*this, role); }

 private:
  static bool exists(const auto& list, int id) { return id >= 0 && as_size(id) < list.size(); }

  bool covers(const Tile& tile) const {
    if (!exists(program_.tensors, tile.tensor) || tile.lookup >= 0 || !tile.step.empty())
      return false;
    for (const Index& offset : tile.offset)
      if (offset.constant() != 0) return false;
    const auto& shape = program_.tensor(tile.tensor).shape;
    return tile.offset.size() == shape.size() && tile.extent == shape;
  }

  const Program& program_;
};
}  // namespace

std::string print(const Program& program, const Statement& statement) {
  Writer io(program);
  io.out = kStatementWords[statement.node.index()];
  statement.visit([&](const auto& node) {
    if constexpr (!Of<decltype(node), Roles, ClusterSync>) io.out += ' ';
    line(io, node);
  });
  return io.out;
}

std::string print(const Program& program) {
  Writer io(program);
  const auto declared = [&](const auto& what) {
    line(io, what);
    io.out += '\n';
  };
  declared(program);
  for (const Tensor& tensor : program.tensors)
    declared(tensor);
  for (const Pipeline& pipeline : program.pipelines)
    declared(pipeline);
  io.below(program, 0);
  return io.out;
}
}  // namespace warploom::tile
