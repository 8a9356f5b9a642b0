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
// Nothing is checked here; verify() reports what is wrong with the finished program. Every statement remembers the source line
// of the call that made it.
#pragma once

#include <functional>
#include "tile/program.h"

namespace warploom::tile {

Value constant(double value);
Value coordinate(int axis, Index shift = 0);  // the element's own along an axis of the destination, plus the shift
Value apply(ValueOp op, std::vector<Value> operands);
inline Value operator+(Value a, Value b) { return apply(ValueOp::add, {std::move(a), std::move(b)}); }
inline Value operator-(Value a, Value b) { return apply(ValueOp::sub, {std::move(a), std::move(b)}); }
inline Value operator*(Value a, Value b) { return apply(ValueOp::mul, {std::move(a), std::move(b)}); }
inline Value operator/(Value a, Value b) { return apply(ValueOp::div, {std::move(a), std::move(b)}); }

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
  explicit Builder(std::string name);

  Builder& grid(std::int64_t x, std::int64_t y = 1, std::int64_t z = 1);
  Builder& cluster(std::int64_t x, std::int64_t y = 1, std::int64_t z = 1);
  Builder& warps(int count);
  Builder& cooperative();

  TensorId global(std::string name, Dtype dtype, std::vector<std::int64_t> shape,
                  std::vector<std::int64_t> strides = {});
  TensorId output(std::string name, Dtype dtype, std::vector<std::int64_t> shape,
                  std::vector<std::int64_t> strides = {});
  TensorId zeroed(TensorId output);  // it holds zeros when the program begins
  TensorId shared(std::string name, Dtype dtype, std::vector<std::int64_t> shape);
  TensorId reg(std::string name, Dtype dtype, std::vector<std::int64_t> shape);
  // Makes the given shared tensors the slots of a ring.
  PipelineId pipeline(std::string name, int stages, std::vector<TensorId> tensors);

  Tile tile(TensorId tensor, std::vector<Index> offset, std::vector<std::int64_t> extent) const;
  Tile all(TensorId tensor) const;
  Tile gathered(Tile tile, int dim, TensorId lookup) const;  // the offset along dim counts in lookup's elements
  Value value(TensorId tensor) const;
  Dtype dtype_of(TensorId tensor) const { return program_.tensor(tensor).dtype; }

  void copy(Tile src, Tile dst, double fill = 0, bool streaming = false, Where where = Where::current());
  void multicast(Tile src, Tile dst, std::string along, Where where = Where::current());
  void combine(ReduceOp op, Tile src, Tile dst, Where where = Where::current());
  void copy_peer(Tile src, Index rank, Tile dst, Where where = Where::current());
  void cluster_sync(Where where = Where::current()) { add({ClusterSync{}, {where.file, where.line}}); }
  void wait_previous(Where where = Where::current()) { add({WaitPrevious{}, {where.file, where.line}}); }
  void launch_next(Where where = Where::current()) { add({LaunchNext{}, {where.file, where.line}}); }
  void signal(Tile flag, Index by = 1, Where where = Where::current());
  void wait(Tile flag, Index least, Where where = Where::current());
  void fill(TensorId dst, double value, Where where = Where::current());
  void map(TensorId dst, Value value, Where where = Where::current());
  void mma(TensorId acc, Tile a, Tile b, bool transpose_a = false, bool transpose_b = false,
           Where where = Where::current());
  void reduce(TensorId dst, TensorId src, int axis, ReduceOp op, Where where = Where::current());
  void scan(TensorId dst, TensorId src, int axis, ReduceOp op, Where where = Where::current());
  void rearrange(TensorId dst, TensorId src, bool transpose = false, Where where = Where::current());
  void reinterpret(TensorId dst, TensorId src, Where where = Where::current());
  void cluster_reduce(TensorId dst, ReduceOp op, Where where = Where::current());
  void for_(const std::string& variable, Index begin, Index end, Index step, const std::function<void(Index)>& body,
            bool unroll = false, Where where = Where::current());
  void if_less(Index left, Index right, const std::function<void()>& body, Where where = Where::current());
  void produce(PipelineId pipeline, const std::function<void()>& body, Where where = Where::current());
  void consume(PipelineId pipeline, int lag, const std::function<void()>& body, Where where = Where::current());
  // Roles are declared one after another inside the callback, by role().
  void roles(const std::function<void()>& body, Where where = Where::current());
  void role(std::string name, int warps, int registers, const std::function<void()>& body);

  Program finish();

 private:
  Program program_;
  std::vector<Body*> open_;  // innermost statement list last
  std::vector<Role>* roles_ = nullptr;
  void add(Statement statement);
  Body nested(const std::function<void()>& body);
};

}  // namespace warploom::tile
