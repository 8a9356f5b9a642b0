#include "search/policy/plan_facts.h"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "codegen/launch_list.h"
#include "kernels/family.h"
#include "target/capabilities.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::search {
namespace {
using tile::Program;
using tile::Scope;
using tile::Statement;

double elements(const std::vector<int64_t>& extent) {
  double out = 1;
  for (const int64_t one : extent)
    out *= as_double(one);
  return out;
}

// Elements of a tile as vectors of `lanes` take them, those in vain included.
double lane_elements(const std::vector<int64_t>& extent, double lanes) {
  if (extent.empty()) return lanes;
  const double inner = as_double(extent.back());
  return elements(extent) / inner * std::ceil(inner / lanes) * lanes;
}

double operations(const tile::Value& value) {
  double out = value.kind == tile::Value::Kind::op ? 1 : 0;
  for (const tile::Value& operand : value.operands)
    out += operations(operand);
  return out;
}

// One program's, of one task.
class Walk {
 public:
  Walk(const Program& program, double lanes) : program_(program), lanes_(lanes) {
    for (const auto name : tile::kGridVariables)
      variables_[std::string(name)] = 0;
    body(program.body, 1);
  }

  double moved = 0;
  double work = 0;
  double statements = 0;
  double multiplications = 0;
  double operands = 0;

 private:
  void body(const tile::Body& all, double times) {
    for (const Statement& one : all) {
      statements += times;
      one.visit([&](const auto& node) { count(node, times); });
      if (const auto* loop = one.as<tile::For>()) {
        inside(*loop, times);
        continue;
      }
      tile::for_bodies(one, [&](const tile::Body& inner) { body(inner, times); });
    }
  }

  // Bounds that follow other variables are taken where those begin.
  void inside(const tile::For& loop, double times) {
    const int64_t begin = loop.begin.evaluate(variables_);
    const int64_t step = std::max<int64_t>(1, loop.step.evaluate(variables_));
    const double rounds = as_double(loop.end.evaluate(variables_) - begin) / as_double(step);
    variables_[loop.variable] = begin;
    body(loop.body, times * std::max(0.0, std::ceil(rounds)));
  }

  void count(const auto&, double) {}

  void count(const tile::Copy& copy, double times) {
    const bool from_global = scope_of(copy.src) == Scope::global;
    const tile::Tile& global = from_global ? copy.src : copy.dst;
    work += times * lane_elements(copy.dst.extent, lanes_);
    if (scope_of(global) == Scope::global) moved += times * bytes_of(global);
  }

  void count(const tile::Fill& fill, double times) { add_work(fill.dst, 1, times); }

  void count(const tile::Map& map, double times) {
    add_work(map.dst, std::max(1.0, operations(map.value)), times);
  }

  void count(const tile::Reduce& reduce, double times) { add_work(reduce.src, 1, times); }

  void count(const tile::Scan& scan, double times) { add_work(scan.src, 1, times); }

  void count(const tile::Mma& mma, double times) {
    const auto& sums = program_.tensor(mma.acc).shape;
    const double terms =
        std::sqrt(elements(mma.a.extent) * elements(mma.b.extent) / std::max(1.0, elements(sums)));
    work += times * terms * lane_elements(sums, lanes_);
    multiplications += times * terms * elements(sums);
    operands += times * (elements(mma.a.extent) + elements(mma.b.extent));
    for (const tile::Tile* one : {&mma.a, &mma.b})
      if (scope_of(*one) == Scope::global) moved += times * bytes_of(*one);
  }

  void add_work(tile::TensorId tensor, double each, double times) {
    work += times * each * lane_elements(program_.tensor(tensor).shape, lanes_);
  }

  Scope scope_of(const tile::Tile& one) const { return program_.tensor(one.tensor).scope; }

  double bytes_of(const tile::Tile& one) const {
    return elements(one.extent) * bits_of(program_.tensor(one.tensor).dtype) / 8;
  }

  const Program& program_;
  double lanes_;
  std::map<std::string, int64_t> variables_;
};

double bytes_in(const Program& program, Scope scope) {
  double out = 0;
  for (const tile::Tensor& tensor : program.tensors) {
    if (tensor.scope != scope || tensor.as_strided >= 0) continue;
    const bool is_staged = tensor.pipeline >= 0;
    const double stages = is_staged ? program.pipeline(tensor.pipeline).stages : 1;
    out += stages * elements(tensor.shape) * bits_of(tensor.dtype) / 8;
  }
  return out;
}

double inner_extent(const Program& program) {
  double most = 0;
  double inner = 0;
  for (const tile::Tensor& tensor : program.tensors) {
    if (tensor.scope != Scope::reg || tensor.shape.empty()) continue;
    if (elements(tensor.shape) <= most) continue;
    most = elements(tensor.shape);
    inner = as_double(tensor.shape.back());
  }
  return inner;
}
}  // namespace

PlanFacts facts_of(const kernels::Family::Programs& programs,
                   const target::Capabilities& capabilities) {
  const double lanes = capabilities.gpu ? 32 : capabilities.lanes();
  PlanFacts out;
  double most = 0;
  double multiplications = 0;
  double operands = 0;
  for (const Program& program : programs.programs) {
    const Walk walk(program, lanes);
    const double tasks = elements(program.grid);
    const double load = tasks * (walk.work + walk.moved);
    if (load >= most) {
      most = load;
      out.tasks = tasks;
      out.inner_extent = inner_extent(program);
    }
    out.programs += 1;
    out.moved_bytes += tasks * walk.moved;
    out.lane_work += tasks * walk.work;
    out.statements += tasks * walk.statements;
    out.register_bytes = std::max(out.register_bytes, bytes_in(program, Scope::reg));
    out.scratch_bytes = std::max(out.scratch_bytes, bytes_in(program, Scope::shared));
    multiplications += tasks * walk.multiplications;
    operands += tasks * walk.operands;
  }
  for (const BufferSpec& workspace : programs.workspaces)
    out.workspace_bytes += as_double(workspace.bytes());
  if (operands > 0) out.reuse = multiplications / operands;
  return out;
}
}  // namespace warploom::search
