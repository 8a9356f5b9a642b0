// The embedded language: C++ calls that build a tile program.
//
//   Builder b("rowwise_scale");
//   b.grid(rows);
//   auto x = b.global("X", Dtype::f32, {rows, 4096});
//   auto y = b.output("Y", Dtype::f32, {rows, 4096});
//   auto r = b.reg("row", Dtype::f32, {1, 4096});
//   b.copy(b.tile(x, {block(0), 0}, {1, 4096}), b.all(r));
//   b.map(r, b.value(r) * 2.0);
//   b.copy(b.all(r), b.tile(y, {block(0), 0}, {1, 4096}));
//   Program program = b.finish();
//
// Nothing is checked here; verify() reports what is wrong with the finished program. Every
// statement remembers the source line of the call that made it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>
#include "base/dtype.h"
#include "base/value_op.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::tile {
inline Value constant(double value) {
  return {.constant = value};
}

// The element's own along an axis of the destination, plus the shift.
inline Value coordinate(int axis, Index shift = 0) {
  Value out{.kind = Value::Kind::coordinate, .axis = axis};
  out.shift = std::move(shift);
  return out;
}

inline Value apply(ValueOp op, std::vector<Value> operands) {
  Value out{.kind = Value::Kind::op, .op = op};
  out.operands = std::move(operands);
  return out;
}

inline Value operator+(Value a, Value b) {
  return apply(ValueOp::add, {std::move(a), std::move(b)});
}

inline Value operator-(Value a, Value b) {
  return apply(ValueOp::sub, {std::move(a), std::move(b)});
}

inline Value operator*(Value a, Value b) {
  return apply(ValueOp::mul, {std::move(a), std::move(b)});
}

inline Value operator/(Value a, Value b) {
  return apply(ValueOp::div, {std::move(a), std::move(b)});
}

inline Value less(Value a, Value b) {
  return apply(ValueOp::less, {std::move(a), std::move(b)});
}

inline Value equal(Value a, Value b) {
  return apply(ValueOp::equal, {std::move(a), std::move(b)});
}

inline Value max(Value a, Value b) {
  return apply(ValueOp::max, {std::move(a), std::move(b)});
}

inline Value exp(Value x) {
  return apply(ValueOp::exp, {std::move(x)});
}

inline Value where(Value condition, Value then, Value otherwise) {
  return apply(ValueOp::where, {std::move(condition), std::move(then), std::move(otherwise)});
}

// x, or 0 where x is infinite or NaN: what rounding loses of an infinite sum.
inline Value finite_or_0(const Value& x) {
  return where(equal(x - x, constant(0)), x, constant(0));
}

// Where a call stands: std::source_location, which clang 14 does not have.
struct Where {
  const char* file;
  int line;

  static constexpr Where current(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

class Builder {
 public:
  explicit Builder(std::string name) { program_.name = std::move(name); }

  Builder& grid(int64_t x, int64_t y = 1, int64_t z = 1) {
    program_.grid = {x, y, z};
    return *this;
  }

  Builder& cluster(int64_t x, int64_t y = 1, int64_t z = 1) {
    program_.cluster = {x, y, z};
    return *this;
  }

  Builder& warps(int count) {
    program_.warps = count;
    return *this;
  }

  Builder& cooperative() {
    program_.cooperative = true;
    return *this;
  }

  TensorId global(std::string name, Dtype dtype, std::vector<int64_t> shape,
                  std::vector<int64_t> strides = {}) {
    if (strides.empty()) strides = dense_strides(shape);
    return declare({std::move(name), dtype, Scope::global, std::move(shape), std::move(strides)});
  }

  TensorId output(std::string name, Dtype dtype, std::vector<int64_t> shape,
                  std::vector<int64_t> strides = {}) {
    const TensorId id = global(std::move(name), dtype, std::move(shape), std::move(strides));
    program_.tensors.back().writable = true;
    return id;
  }

  TensorId zeroed(TensorId output) {  // it holds zeros when the program begins
    program_.tensors[output].zeroed = true;
    return output;
  }

  TensorId prepacked(TensorId input) {  // it lies in the order that synthesis chooses
    program_.tensors[input].prepacked = true;
    return input;
  }

  TensorId shared(std::string name, Dtype dtype, std::vector<int64_t> shape) {
    return declare({std::move(name), dtype, Scope::shared, std::move(shape), {}});
  }

  // An overlapping strided view of a pipeline's tensor: the elements at from + Σ coordinate ·
  // stride, counted row by row.
  TensorId as_strided(std::string name, TensorId of, int from, std::vector<int64_t> shape,
                      std::vector<int64_t> strides) {
    const Dtype dtype = program_.tensor(of).dtype;
    const TensorId id =
        declare({std::move(name), dtype, Scope::shared, std::move(shape), std::move(strides)});
    program_.tensors.back().as_strided = of;
    program_.tensors.back().from = from;
    own_stages(program_);
    return id;
  }

  TensorId reg(std::string name, Dtype dtype, std::vector<int64_t> shape) {
    return declare({std::move(name), dtype, Scope::reg, std::move(shape), {}});
  }

  // Makes the given shared tensors the stages of a circular buffer.
  PipelineId pipeline(std::string name, int stages, std::vector<TensorId> tensors) {
    program_.pipelines.push_back({std::move(name), stages, std::move(tensors)});
    own_stages(program_);
    return static_cast<PipelineId>(program_.pipelines.size()) - 1;
  }

  Tile tile(TensorId tensor, std::vector<Index> offset, std::vector<int64_t> extent) const {
    return {tensor, std::move(offset), std::move(extent)};
  }

  Tile all(TensorId tensor) const { return whole(program_, tensor); }

  // The offset along dim counts in lookup's elements.
  Tile gathered(Tile tile, int dim, TensorId lookup) const {
    tile.lookup_dim = dim;
    tile.lookup = lookup;
    return tile;
  }

  // Every step[d]-th element along dimension d of a global tensor: the windows of a strided
  // convolution.
  Tile stepped(Tile tile, std::vector<int64_t> step) const {
    if (std::ranges::any_of(step, [](auto every) { return every != 1; }))
      tile.step = std::move(step);
    return tile;
  }

  Value value(TensorId tensor) const { return {.kind = Value::Kind::tensor, .tensor = tensor}; }

  Dtype dtype_of(TensorId tensor) const { return program_.tensor(tensor).dtype; }

  // Any statement; below, those that kernels are made of, by their parts.
  void add(decltype(Statement::node) node, Where where = Where::current()) {
    const Location location{where.file, where.line};
    innermost().push_back({std::move(node), location, kNoStatement});
  }

  void copy(Tile src, Tile dst, double fill = 0, bool streaming = false,
            Where where = Where::current()) {
    add(Copy{std::move(src), std::move(dst), fill, streaming}, where);
  }

  void multicast(Tile src, Tile dst, std::string along, Where where = Where::current()) {
    Copy copy{std::move(src), std::move(dst)};
    copy.multicast = std::move(along);
    add(std::move(copy), where);
  }

  void fill(TensorId dst, double value, Where where = Where::current()) {
    add(Fill{dst, value}, where);
  }

  void map(TensorId dst, Value value, Where where = Where::current()) {
    add(Map{dst, std::move(value)}, where);
  }

  void map_integers(TensorId dst, Value value, Where where = Where::current()) {
    add(Map{dst, std::move(value), true}, where);
  }

  void mma(TensorId acc, Tile a, Tile b, bool transpose_a = false, bool transpose_b = false,
           Where where = Where::current()) {
    Mma product{acc, std::move(a), std::move(b), transpose_a, transpose_b};
    add(std::move(product), where);
  }

  void reduce(TensorId dst, TensorId src, int axis, ReduceOp op, Where where = Where::current()) {
    add(Reduce{dst, src, axis, op}, where);
  }

  void scan(TensorId dst, TensorId src, int axis, ReduceOp op, bool reverse = false,
            Where where = Where::current()) {
    add(Scan{dst, src, axis, op, reverse}, where);
  }

  void convert_layout(TensorId dst, TensorId src, bool transpose = false,
                      Where where = Where::current()) {
    add(ConvertLayout{dst, src, transpose}, where);
  }

  void cluster_reduce(TensorId dst, ReduceOp op, Where where = Where::current()) {
    add(ClusterReduce{dst, op}, where);
  }

  void for_(const std::string& variable, Index begin, Index end, Index step,
            const std::function<void(Index)>& body, bool unroll = false,
            Where where = Where::current()) {
    Body inner = nested([&] { body(Index::variable(variable)); });
    For loop{variable, std::move(begin), std::move(end), std::move(step), unroll};
    loop.body = std::move(inner);
    add(std::move(loop), where);
  }

  void if_less(Index left, Index right, const std::function<void()>& body,
               Where where = Where::current()) {
    Body inner = nested(body);
    add(If{std::move(left), std::move(right), std::move(inner)}, where);
  }

  void produce(PipelineId pipeline, const std::function<void()>& body,
               Where where = Where::current()) {
    add(Produce{pipeline, nested(body)}, where);
  }

  void consume(PipelineId pipeline, int mma_in_flight, const std::function<void()>& body,
               Where where = Where::current()) {
    add(Consume{pipeline, mma_in_flight, nested(body)}, where);
  }

  // Roles are declared one after another inside the callback, by role().
  void roles(const std::function<void()>& body, Where where = Where::current()) {
    add(Roles{}, where);
    body();
  }

  // Belongs to the roles just opened; a role inside a role opens others, which verify() refuses.
  void role(std::string name, int warps, int registers, const std::function<void()>& body) {
    Role declared{std::move(name), warps, registers, nested(body)};
    Body& around = innermost();
    Roles* const opened = around.empty() ? nullptr : std::get_if<Roles>(&around.back().node);
    if (opened)
      opened->roles.push_back(std::move(declared));
    else
      add(Roles{{std::move(declared)}});
  }

  Program finish() {
    count_warps(program_);
    number_statements(program_);
    return program_;
  }

 private:
  Program program_;
  std::vector<Body*> open_;  // innermost statement list last

  Body& innermost() { return open_.empty() ? program_.body : *open_.back(); }

  TensorId declare(Tensor tensor) {
    program_.tensors.push_back(std::move(tensor));
    return static_cast<TensorId>(program_.tensors.size()) - 1;
  }

  Body nested(const std::function<void()>& body) {
    Body inner;
    open_.push_back(&inner);
    body();
    open_.pop_back();
    return inner;
  }
};
}  // namespace warploom::tile
