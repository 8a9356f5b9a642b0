#include "tile/print.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "tile/shape.h"
#include "tile/words.h"

namespace warploom::tile {
namespace {

// Programs print before they are verified too, so a number that names nothing is no reason to fail.
std::string tensor_name(const Program& program, TensorId id) {
  return id >= 0 && static_cast<std::size_t>(id) < program.tensors.size() ? program.tensor(id).name : "?";
}
std::string pipeline_name(const Program& program, PipelineId id) {
  return id >= 0 && static_cast<std::size_t>(id) < program.pipelines.size() ? program.pipeline(id).name : "?";
}

std::string number(double value) { return std::isnan(value) ? "nan" : fmt::format("{}", value); }

bool covers(const Program& program, const Tile& tile) {
  if (tile.tensor < 0 || static_cast<std::size_t>(tile.tensor) >= program.tensors.size()) return false;
  for (const Index& offset : tile.offset)
    if (offset.constant() != 0) return false;
  const std::vector<std::int64_t>& shape = program.tensor(tile.tensor).shape;
  return tile.offset.size() == shape.size() && tile.extent == shape;
}

std::string text_of(const Program& program, const Tile& tile) {
  std::string text = tensor_name(program, tile.tensor);
  if (covers(program, tile)) return text;
  for (std::size_t i = 0; i < tile.offset.size() && i < tile.extent.size(); ++i)
    text += fmt::format("{}{} +{}", i ? ", " : "[", tile.offset[i].text(), tile.extent[i]);
  return text + "]";
}

std::string text_of(const Program& program, const Value& value) {
  if (value.kind == Value::Kind::constant) return number(value.constant);
  if (value.kind == Value::Kind::tensor) return tensor_name(program, value.tensor);
  std::string text(name_of(value.op));
  for (std::size_t i = 0; i < value.operands.size(); ++i)
    text += (i ? ", " : "(") + text_of(program, value.operands[i]);
  return text + (value.operands.empty() ? "()" : ")");
}

// The first line of a statement.
struct Head {
  const Program& program;

  std::string operator()(const Copy& s) const {
    return fmt::format("copy {} -> {}{}{}", text_of(program, s.src), text_of(program, s.dst),
                       s.fill == 0 && !std::signbit(s.fill) ? "" : " fill " + number(s.fill),
                       s.streaming ? " streaming" : "");
  }
  std::string operator()(const Fill& s) const {
    return fmt::format("fill {} {}", tensor_name(program, s.dst), number(s.value));
  }
  std::string operator()(const Map& s) const {
    return fmt::format("map {} = {}", tensor_name(program, s.dst), text_of(program, s.value));
  }
  std::string operator()(const Mma& s) const {
    return fmt::format("mma {} += {}{} * {}{}", tensor_name(program, s.acc), text_of(program, s.a),
                       s.transpose_a ? "^T" : "", text_of(program, s.b), s.transpose_b ? "^T" : "");
  }
  std::string operator()(const Reduce& s) const {
    return fmt::format("reduce {} over {}: {} -> {}", name_of(s.op), s.axis, tensor_name(program, s.src),
                       tensor_name(program, s.dst));
  }
  std::string operator()(const ClusterReduce& s) const {
    return fmt::format("cluster_reduce {} {}", name_of(s.op), tensor_name(program, s.dst));
  }
  std::string operator()(const For& s) const {
    return fmt::format("for {} in {} .. {}{}{}:", s.variable, s.begin.text(), s.end.text(),
                       s.step.constant() == 1 ? "" : " step " + s.step.text(), s.unroll ? " unroll" : "");
  }
  std::string operator()(const If& s) const { return fmt::format("if {} < {}:", s.left.text(), s.right.text()); }
  std::string operator()(const Produce& s) const {
    return fmt::format("produce {}:", pipeline_name(program, s.pipeline));
  }
  std::string operator()(const Consume& s) const {
    return fmt::format("consume {}{}:", pipeline_name(program, s.pipeline), s.lag ? fmt::format(" lag {}", s.lag) : "");
  }
  std::string operator()(const Roles&) const { return "roles:"; }
};

void print_body(std::string& out, const Program& program, const Body& body, int level);

struct Inside {
  std::string& out;
  const Program& program;
  int level;

  template <class Simple>
  void operator()(const Simple&) const {}
  void operator()(const For& s) const { print_body(out, program, s.body, level); }
  void operator()(const If& s) const { print_body(out, program, s.body, level); }
  void operator()(const Produce& s) const { print_body(out, program, s.body, level); }
  void operator()(const Consume& s) const { print_body(out, program, s.body, level); }
  void operator()(const Roles& s) const {
    for (const Role& role : s.roles) {
      out += fmt::format("{:{}}role {} warps {}{}:\n", "", 2 * level, role.name, role.warps,
                         role.registers ? fmt::format(" registers {}", role.registers) : "");
      print_body(out, program, role.body, level + 1);
    }
  }
};

void print_body(std::string& out, const Program& program, const Body& body, int level) {
  for (const Statement& statement : body) {
    out += fmt::format("{:{}}{}\n", "", 2 * level, print(program, statement));
    std::visit(Inside{out, program, level + 1}, statement.node);
  }
}

std::string_view keyword(const Tensor& tensor) {
  if (tensor.scope == Scope::global) return tensor.writable ? "output" : "global";
  return tensor.scope == Scope::shared ? "shared" : "register";
}

std::string declaration(const Tensor& tensor) {
  std::string text =
      fmt::format("{} {} {} [{}]", keyword(tensor), tensor.name, name_of(tensor.dtype), fmt::join(tensor.shape, ", "));
  if (tensor.scope == Scope::global && tensor.strides != dense_strides(tensor.shape))
    text += fmt::format(" strides [{}]", fmt::join(tensor.strides, ", "));
  return text;
}

std::string declaration(const Program& program, const Pipeline& pipeline) {
  std::string names;
  for (const TensorId tensor : pipeline.tensors) names += (names.empty() ? "" : ", ") + tensor_name(program, tensor);
  return fmt::format("pipeline {} stages {} {{ {} }}", pipeline.name, pipeline.stages, names);
}

}  // namespace

std::string print(const Program& program, const Statement& statement) {
  return std::visit(Head{program}, statement.node);
}

std::string print(const Program& program) {
  std::string out = fmt::format("program {} grid({})", program.name, fmt::join(program.grid, ", "));
  if (program.cluster != std::vector<std::int64_t>{1, 1, 1})
    out += fmt::format(" cluster({})", fmt::join(program.cluster, ", "));
  out += fmt::format(" warps {}\n", program.warps);
  for (const Tensor& tensor : program.tensors) out += declaration(tensor) + "\n";
  for (const Pipeline& pipeline : program.pipelines) out += declaration(program, pipeline) + "\n";
  print_body(out, program, program.body, 0);
  return out;
}

}  // namespace warploom::tile
