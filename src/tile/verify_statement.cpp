// Rules of single statements: indices in scope, tiles inside tensors, scopes, shapes and types that agree.
#include <fmt/format.h>

#include <algorithm>

#include "tile/shape.h"
#include "tile/verify_rules.h"

namespace warploom::tile {
namespace {

bool is_tensor(const Program& program, TensorId id) {
  return id >= 0 && static_cast<std::size_t>(id) < program.tensors.size();
}
bool is_pipeline(const Program& program, PipelineId id) {
  return id >= 0 && static_cast<std::size_t>(id) < program.pipelines.size();
}
bool contains(const std::vector<PipelineId>& list, PipelineId id) {
  return std::find(list.begin(), list.end(), id) != list.end();
}
const std::string& name_of(const Context& context, TensorId id) { return context.program.tensor(id).name; }

// A tensor of a pipeline has a meaning only inside a Produce or Consume of that pipeline; consumers do not write it.
Status check_use(const Context& context, TensorId id, bool written) {
  if (!is_tensor(context.program, id)) return invalid(context, fmt::format("no tensor has the number {}", id));
  const PipelineId pipeline = context.program.tensor(id).pipeline;
  if (pipeline < 0) return ok();
  if (!contains(context.producing, pipeline) && !contains(context.consuming, pipeline))
    return invalid(context, fmt::format("'{}' is used outside produce and consume of its pipeline '{}'",
                                        name_of(context, id), context.program.pipeline(pipeline).name));
  if (written && !contains(context.producing, pipeline))
    return invalid(context, fmt::format("'{}' is written while its pipeline is consumed", name_of(context, id)),
                   "slots are written by produce only");
  return ok();
}

Status check_register(const Context& context, TensorId id, bool written, std::string_view statement) {
  WARPLOOM_CHECK(check_use(context, id, written));
  if (context.program.tensor(id).scope != Scope::reg)
    return invalid(context,
                   fmt::format("{} works on register tensors and '{}' is none", statement, name_of(context, id)),
                   "a register tensor", name_of(context, id));
  return ok();
}

Status check_tile(const Context& context, const Tile& tile, bool written) {
  WARPLOOM_CHECK(check_use(context, tile.tensor, written));
  const Tensor& tensor = context.program.tensor(tile.tensor);
  if (tile.offset.size() != tensor.shape.size() || tile.extent.size() != tensor.shape.size())
    return invalid(context, fmt::format("a tile of '{}' has another rank than the tensor", tensor.name),
                   std::to_string(tensor.shape.size()),
                   fmt::format("{} offsets, {} extents", tile.offset.size(), tile.extent.size()));
  for (const Index& offset : tile.offset) WARPLOOM_CHECK(verify_index(context, offset));
  if (element_count(tile.extent) < 1)
    return invalid(context, fmt::format("a tile of '{}' has an extent below 1", tensor.name), "extents of at least 1",
                   shape_text(tile.extent));
  if (tensor.scope == Scope::global) return ok();
  for (std::size_t i = 0; i < tile.extent.size(); ++i) {
    const std::int64_t room = tensor.shape[i] - tile.extent[i];
    const auto offset = tile.offset[i].constant();
    if (room < 0 || (offset && (*offset < 0 || *offset > room)))
      return invalid(context, fmt::format("a tile reaches outside '{}' in dimension {}", tensor.name, i),
                     "a tile inside " + shape_text(tensor.shape),
                     fmt::format("{} +{}", tile.offset[i].text(), tile.extent[i]));
  }
  return ok();
}

Status check_copy(const Context& context, const Copy& copy) {
  WARPLOOM_CHECK(check_tile(context, copy.src, false));
  WARPLOOM_CHECK(check_tile(context, copy.dst, true));
  const Tensor& src = context.program.tensor(copy.src.tensor);
  const Tensor& dst = context.program.tensor(copy.dst.tensor);
  if (src.scope == Scope::global && dst.scope == Scope::global)
    return invalid(context, "a copy goes from global to global", "shared or register on one side");
  if (dst.scope == Scope::global && !dst.writable)
    return invalid(context, fmt::format("'{}' is written and is no output", dst.name));
  if (squeezed(copy.src.extent) != squeezed(copy.dst.extent))
    return invalid(context, "the two tiles of a copy differ in shape", shape_text(copy.src.extent),
                   shape_text(copy.dst.extent));
  return ok();
}

Status check_fill(const Context& context, const Fill& fill) { return check_register(context, fill.dst, true, "fill"); }

Status check_value(const Context& context, const Value& value, const Tensor& dst) {
  if (value.kind == Value::Kind::constant) return ok();
  if (value.kind == Value::Kind::op) {
    if (value.operands.size() != static_cast<std::size_t>(arity_of(value.op)))
      return invalid(context, fmt::format("'{}' has the wrong number of operands", warploom::name_of(value.op)),
                     std::to_string(arity_of(value.op)), std::to_string(value.operands.size()));
    for (const Value& operand : value.operands) WARPLOOM_CHECK(check_value(context, operand, dst));
    return ok();
  }
  WARPLOOM_CHECK(check_register(context, value.tensor, false, "map"));
  const Tensor& tensor = context.program.tensor(value.tensor);
  bool fits = tensor.shape.size() == dst.shape.size();
  for (std::size_t i = 0; fits && i < dst.shape.size(); ++i)
    fits = tensor.shape[i] == dst.shape[i] || tensor.shape[i] == 1;
  if (!fits)
    return invalid(context, fmt::format("'{}' does not broadcast to '{}'", tensor.name, dst.name),
                   "the same rank, each extent equal or 1: " + shape_text(dst.shape), shape_text(tensor.shape));
  return ok();
}

Status check_map(const Context& context, const Map& map) {
  WARPLOOM_CHECK(check_register(context, map.dst, true, "map"));
  return check_value(context, map.value, context.program.tensor(map.dst));
}

// The accumulator's type for operands of a type; nothing where such operands cannot be multiplied.
std::optional<Dtype> accumulator_of(Dtype operand) {
  switch (operand) {
    case Dtype::f64: return Dtype::f64;
    case Dtype::i8:
    case Dtype::u8: return Dtype::i32;
    default: return is_float(operand) ? std::optional(Dtype::f32) : std::nullopt;
  }
}

Status check_mma_types(const Context& context, const Mma& mma) {
  const Dtype a = context.program.tensor(mma.a.tensor).dtype, b = context.program.tensor(mma.b.tensor).dtype;
  const Dtype acc = context.program.tensor(mma.acc).dtype;
  if (a != b)
    return invalid(context, "the operands of an mma differ in type", std::string(warploom::name_of(a)),
                   std::string(warploom::name_of(b)));
  if (accumulator_of(a) != acc)
    return invalid(context,
                   fmt::format("an mma cannot accumulate {} in {}", warploom::name_of(a), warploom::name_of(acc)),
                   "f32 for floats, f64 for f64, i32 for i8 and u8", std::string(warploom::name_of(acc)));
  return ok();
}

Status check_mma(const Context& context, const Mma& mma) {
  WARPLOOM_CHECK(check_register(context, mma.acc, true, "mma"));
  WARPLOOM_CHECK(check_tile(context, mma.a, false));
  WARPLOOM_CHECK(check_tile(context, mma.b, false));
  for (const Tile* operand : {&mma.a, &mma.b})
    if (context.program.tensor(operand->tensor).scope == Scope::global)
      return invalid(context,
                     fmt::format("operand '{}' of an mma is in global memory", name_of(context, operand->tensor)),
                     "a register or shared tile");
  if (mma.acc == mma.a.tensor || mma.acc == mma.b.tensor)
    return invalid(context, "an mma's accumulator is one of its operands");
  WARPLOOM_CHECK(check_mma_types(context, mma));
  auto a = matrix_extent(mma.a.extent), b = matrix_extent(mma.b.extent);
  const auto acc = matrix_extent(context.program.tensor(mma.acc).shape);
  if (mma.transpose_a) std::reverse(a.begin(), a.end());
  if (mma.transpose_b) std::reverse(b.begin(), b.end());
  if (a.size() != 2 || b.size() != 2 || acc.size() != 2 || a[0] != acc[0] || b[1] != acc[1] || a[1] != b[0])
    return invalid(context, "the shapes of an mma do not fit each other", "acc [M, N], a [M, K], b [K, N]",
                   fmt::format("acc {}, a {}, b {}", shape_text(acc), shape_text(a), shape_text(b)));
  return ok();
}

Status check_reduce(const Context& context, const Reduce& reduce) {
  WARPLOOM_CHECK(check_register(context, reduce.src, false, "reduce"));
  WARPLOOM_CHECK(check_register(context, reduce.dst, true, "reduce"));
  std::vector<std::int64_t> shape = context.program.tensor(reduce.src).shape;
  if (reduce.axis < 0 || static_cast<std::size_t>(reduce.axis) >= shape.size())
    return invalid(context, fmt::format("'{}' has no axis {}", name_of(context, reduce.src), reduce.axis));
  shape[static_cast<std::size_t>(reduce.axis)] = 1;
  if (context.program.tensor(reduce.dst).shape != shape)
    return invalid(context, "the result of a reduce has the wrong shape", shape_text(shape),
                   shape_text(context.program.tensor(reduce.dst).shape));
  return ok();
}

Status check_cluster_reduce(const Context& context, const ClusterReduce& reduce) {
  WARPLOOM_CHECK(check_register(context, reduce.dst, true, "cluster_reduce"));
  if (cluster_size(context.program) < 2)
    return invalid(context, "a cluster_reduce stands in a program without clusters",
                   "a cluster of more than one block");
  if (context.divergent)
    return invalid(context, "not every block of a cluster may reach this cluster_reduce",
                   "loops and conditions around it that all blocks of the cluster decide alike");
  return ok();
}

Status check_for(const Context& context, const For& loop) {
  for (const Index* index : {&loop.begin, &loop.end, &loop.step}) WARPLOOM_CHECK(verify_index(context, *index));
  if (loop.step.constant() && *loop.step.constant() < 1)
    return invalid(context, "a loop's step is below 1", "a positive step", loop.step.text());
  const std::string& name = loop.variable;
  bool taken =
      is_grid_variable(name) || std::find(context.loops.begin(), context.loops.end(), name) != context.loops.end();
  for (const Tensor& tensor : context.program.tensors) taken |= tensor.name == name;
  for (const Pipeline& pipeline : context.program.pipelines) taken |= pipeline.name == name;
  if (!is_identifier(name) || taken)
    return invalid(context, fmt::format("'{}' cannot name a loop's variable", name),
                   "a C identifier that names nothing else here", name);
  return ok();
}

Status check_if(const Context& context, const If& branch) {
  WARPLOOM_CHECK(verify_index(context, branch.left));
  return verify_index(context, branch.right);
}

Status check_open(const Context& context, PipelineId id) {
  if (!is_pipeline(context.program, id)) return invalid(context, fmt::format("no pipeline has the number {}", id));
  if (contains(context.producing, id) || contains(context.consuming, id))
    return invalid(context,
                   fmt::format("'{}' is produced or consumed inside itself", context.program.pipeline(id).name));
  return ok();
}

Status check_produce(const Context& context, const Produce& produce) { return check_open(context, produce.pipeline); }

Status check_consume(const Context& context, const Consume& consume) {
  WARPLOOM_CHECK(check_open(context, consume.pipeline));
  const int stages = context.program.pipeline(consume.pipeline).stages;
  if (consume.lag < 0 || consume.lag >= stages)
    return invalid(context, "a consume's lag does not fit its pipeline", fmt::format("0 to {}", stages - 1),
                   std::to_string(consume.lag));
  return ok();
}

Status check_roles(const Context& context, const Roles& roles) {
  if (roles.roles.empty()) return invalid(context, "roles without a role");
  int warps = 0;
  for (const Role& role : roles.roles) {
    if (role.warps < 1 || role.warps > 32 || role.registers < 0)
      return invalid(context, fmt::format("role '{}' has no legal number of warps or registers", role.name));
    if (role.registers > 0 && role.warps % 4 != 0)
      return invalid(context, fmt::format("role '{}' sets registers", role.name), "a multiple of 4 warps",
                     std::to_string(role.warps));
    warps += role.warps;
  }
  if (warps != context.program.warps)
    return invalid(context, "the roles' warps are not the program's", std::to_string(context.program.warps),
                   std::to_string(warps));
  return ok();
}

}  // namespace

Status verify_index(const Context& context, const Index& index) {
  if (index.op() == IndexOp::constant) return ok();
  if (index.op() == IndexOp::variable) {
    if (is_grid_variable(index.name()) ||
        std::find(context.loops.begin(), context.loops.end(), index.name()) != context.loops.end())
      return ok();
    return invalid(context, fmt::format("'{}' is no variable here", index.name()),
                   "a grid variable or that of a loop around", index.name());
  }
  WARPLOOM_CHECK(verify_index(context, index.left()));
  WARPLOOM_CHECK(verify_index(context, index.right()));
  if (index.op() != IndexOp::div && index.op() != IndexOp::mod) return ok();
  const auto divisor = index.right().constant();
  bool varies = false;
  for (const std::string& loop : context.loops) varies |= index.right().depends_on(loop);
  if (varies || (divisor && *divisor < 1))
    return invalid(context, fmt::format("'{}' divides by something that may not be positive", index.text()),
                   "a positive constant, or what no loop changes", index.right().text());
  return ok();
}

bool differs_in_cluster(const Program& program, const Index& index) {
  if (index.op() == IndexOp::constant) return false;
  if (index.op() == IndexOp::variable) {
    for (int d = 0; d < 3; ++d)
      if (index.same(block(d))) return program.cluster[static_cast<std::size_t>(d)] > 1;
    return index.same(cluster_rank()) && cluster_size(program) > 1;
  }
  // The cluster's own number: block_x / 4 in clusters of 4 along x.
  for (int d = 0; d < 3; ++d)
    if (index.op() == IndexOp::div && index.left().same(block(d)) && index.right().constant() &&
        *index.right().constant() % program.cluster[static_cast<std::size_t>(d)] == 0)
      return false;
  return differs_in_cluster(program, index.left()) || differs_in_cluster(program, index.right());
}

Status verify_statement(const Context& context, const Statement& statement) {
  struct Check {
    const Context& context;
    Status operator()(const Copy& s) const { return check_copy(context, s); }
    Status operator()(const Fill& s) const { return check_fill(context, s); }
    Status operator()(const Map& s) const { return check_map(context, s); }
    Status operator()(const Mma& s) const { return check_mma(context, s); }
    Status operator()(const Reduce& s) const { return check_reduce(context, s); }
    Status operator()(const ClusterReduce& s) const { return check_cluster_reduce(context, s); }
    Status operator()(const For& s) const { return check_for(context, s); }
    Status operator()(const If& s) const { return check_if(context, s); }
    Status operator()(const Produce& s) const { return check_produce(context, s); }
    Status operator()(const Consume& s) const { return check_consume(context, s); }
    Status operator()(const Roles& s) const { return check_roles(context, s); }
  };
  return std::visit(Check{context}, statement.node);
}

}  // namespace warploom::tile
