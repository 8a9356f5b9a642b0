#include "tile/build.h"
#include "tile/shape.h"

namespace warploom::tile {
namespace {

template <class Node>
Statement at(const Where& where, Node node) {
  return Statement{std::move(node), Location{where.file, where.line}};
}

}  // namespace

Value constant(double value) {
  Value result;
  result.constant = value;
  return result;
}

Value coordinate(int axis, Index shift) {
  Value result;
  result.kind = Value::Kind::coordinate;
  result.axis = axis;
  result.shift = std::move(shift);
  return result;
}

Value apply(ValueOp op, std::vector<Value> operands) {
  Value result;
  result.kind = Value::Kind::op;
  result.op = op;
  result.operands = std::move(operands);
  return result;
}

Builder::Builder(std::string name) { program_.name = std::move(name); }

Builder& Builder::grid(std::int64_t x, std::int64_t y, std::int64_t z) {
  program_.grid = {x, y, z};
  return *this;
}
Builder& Builder::cluster(std::int64_t x, std::int64_t y, std::int64_t z) {
  program_.cluster = {x, y, z};
  return *this;
}
Builder& Builder::warps(int count) {
  program_.warps = count;
  return *this;
}

Builder& Builder::cooperative() {
  program_.cooperative = true;
  return *this;
}

TensorId Builder::global(std::string name, Dtype dtype, std::vector<std::int64_t> shape,
                         std::vector<std::int64_t> strides) {
  if (strides.empty()) strides = dense_strides(shape);
  program_.tensors.push_back({std::move(name), dtype, Scope::global, std::move(shape), std::move(strides)});
  return static_cast<TensorId>(program_.tensors.size()) - 1;
}
TensorId Builder::output(std::string name, Dtype dtype, std::vector<std::int64_t> shape,
                         std::vector<std::int64_t> strides) {
  const TensorId id = global(std::move(name), dtype, std::move(shape), std::move(strides));
  program_.tensors.back().writable = true;
  return id;
}
TensorId Builder::zeroed(TensorId output) {
  program_.tensors[static_cast<std::size_t>(output)].zeroed = true;
  return output;
}
TensorId Builder::shared(std::string name, Dtype dtype, std::vector<std::int64_t> shape) {
  program_.tensors.push_back({std::move(name), dtype, Scope::shared, std::move(shape), {}});
  return static_cast<TensorId>(program_.tensors.size()) - 1;
}
TensorId Builder::reg(std::string name, Dtype dtype, std::vector<std::int64_t> shape) {
  program_.tensors.push_back({std::move(name), dtype, Scope::reg, std::move(shape), {}});
  return static_cast<TensorId>(program_.tensors.size()) - 1;
}

PipelineId Builder::pipeline(std::string name, int stages, std::vector<TensorId> tensors) {
  const auto id = static_cast<PipelineId>(program_.pipelines.size());
  for (const TensorId tensor : tensors)
    if (tensor >= 0 && static_cast<std::size_t>(tensor) < program_.tensors.size())
      program_.tensors[static_cast<std::size_t>(tensor)].pipeline = id;
  program_.pipelines.push_back({std::move(name), stages, std::move(tensors)});
  return id;
}

Tile Builder::tile(TensorId tensor, std::vector<Index> offset, std::vector<std::int64_t> extent) const {
  return Tile{tensor, std::move(offset), std::move(extent)};
}
Tile Builder::gathered(Tile tile, int dim, TensorId lookup) const {
  tile.lookup = lookup;
  tile.lookup_dim = dim;
  return tile;
}
Tile Builder::all(TensorId tensor) const { return whole(program_, tensor); }
Value Builder::value(TensorId tensor) const {
  Value result;
  result.kind = Value::Kind::tensor;
  result.tensor = tensor;
  return result;
}

void Builder::copy(Tile src, Tile dst, double fill, bool streaming, Where where) {
  add(at(where, Copy{std::move(src), std::move(dst), fill, streaming}));
}
void Builder::multicast(Tile src, Tile dst, std::string along, Where where) {
  add(at(where, Copy{std::move(src), std::move(dst), 0, false, std::move(along)}));
}
void Builder::combine(ReduceOp op, Tile src, Tile dst, Where where) {
  add(at(where, Copy{std::move(src), std::move(dst), 0, false, {}, {}, op}));
}
void Builder::copy_peer(Tile src, Index rank, Tile dst, Where where) {
  add(at(where, Copy{std::move(src), std::move(dst), 0, false, {}, std::move(rank)}));
}
void Builder::signal(Tile flag, Index by, Where where) { add(at(where, Signal{std::move(flag), std::move(by)})); }
void Builder::wait(Tile flag, Index least, Where where) { add(at(where, Wait{std::move(flag), std::move(least)})); }
void Builder::fill(TensorId dst, double value, Where where) { add(at(where, Fill{dst, value})); }
void Builder::map(TensorId dst, Value value, Where where) { add(at(where, Map{dst, std::move(value)})); }
void Builder::mma(TensorId acc, Tile a, Tile b, bool transpose_a, bool transpose_b, Where where) {
  add(at(where, Mma{acc, std::move(a), std::move(b), transpose_a, transpose_b}));
}
void Builder::reduce(TensorId dst, TensorId src, int axis, ReduceOp op, Where where) {
  add(at(where, Reduce{dst, src, axis, op}));
}
void Builder::scan(TensorId dst, TensorId src, int axis, ReduceOp op, Where where) {
  add(at(where, Scan{dst, src, axis, op}));
}
void Builder::rearrange(TensorId dst, TensorId src, bool transpose, Where where) {
  add(at(where, Rearrange{dst, src, transpose}));
}
void Builder::reinterpret(TensorId dst, TensorId src, Where where) { add(at(where, Reinterpret{dst, src})); }
void Builder::cluster_reduce(TensorId dst, ReduceOp op, Where where) { add(at(where, ClusterReduce{dst, op})); }

void Builder::for_(const std::string& variable, Index begin, Index end, Index step,
                   const std::function<void(Index)>& body, bool unroll, Where where) {
  Body inner = nested([&] { body(Index::variable(variable)); });
  add(at(where, For{variable, std::move(begin), std::move(end), std::move(step), unroll, std::move(inner)}));
}
void Builder::if_less(Index left, Index right, const std::function<void()>& body, Where where) {
  Body inner = nested(body);
  add(at(where, If{std::move(left), std::move(right), std::move(inner)}));
}
void Builder::produce(PipelineId pipeline, const std::function<void()>& body, Where where) {
  add(at(where, Produce{pipeline, nested(body)}));
}
void Builder::consume(PipelineId pipeline, int lag, const std::function<void()>& body, Where where) {
  add(at(where, Consume{pipeline, lag, nested(body)}));
}

void Builder::roles(const std::function<void()>& body, Where where) {
  std::vector<Role> declared;
  std::vector<Role>* const outer = roles_;
  roles_ = &declared;
  body();
  roles_ = outer;
  add(at(where, Roles{std::move(declared)}));
}
void Builder::role(std::string name, int warps, int registers, const std::function<void()>& body) {
  std::vector<Role>* const list = roles_;
  roles_ = nullptr;  // a role inside a role belongs to no list; verify() refuses what comes of it
  Role declared{std::move(name), warps, registers, nested(body)};
  roles_ = list;
  if (list) list->push_back(std::move(declared));
  else add(at(Where::current(), Roles{{std::move(declared)}}));
}

Program Builder::finish() {
  for (const Statement& statement : program_.body)
    if (const Roles* roles = std::get_if<Roles>(&statement.node)) {
      program_.warps = 0;
      for (const Role& role : roles->roles) program_.warps += role.warps;
    }
  return program_;
}

void Builder::add(Statement statement) {
  (open_.empty() ? program_.body : *open_.back()).push_back(std::move(statement));
}

Body Builder::nested(const std::function<void()>& body) {
  Body inner;
  open_.push_back(&inner);
  body();
  open_.pop_back();
  return inner;
}

}  // namespace warploom::tile
