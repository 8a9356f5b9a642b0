// What each statement does to the tensors of a block.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/integers.h"
#include "base/value_op.h"
#include "tile/block_interpreter.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::tile {
namespace {
bool divides_by_zero(const Index& index, const std::map<std::string, int64_t>& variables) {
  if (index.op() == IndexOp::constant || index.op() == IndexOp::variable) return false;
  if (divides_by_zero(index.left(), variables) || divides_by_zero(index.right(), variables))
    return true;
  const bool divides = index.op() == IndexOp::div || index.op() == IndexOp::mod;
  return divides && index.right().evaluate(variables) < 1;
}

// In fp32, as registers compute.
float combined(ReduceOp op, Number a, Number b) {
  const ValueOp combine = reduction_of(op).combine;
  return as_float(apply(combine, as_float(a), as_float(b)));
}

// acc + a·b with an exact product and one rounding to the accumulator's type.
Number accumulate(Dtype type, Number acc, Number a, Number b) {
  if (type == Dtype::f64) return std::fma(as_double(a), as_double(b), as_double(acc));
  if (type == Dtype::f32) return std::fma(as_float(a), as_float(b), as_float(acc));
  const int64_t product = as_int64(a) * as_int64(b);
  return static_cast<int32_t>(as_int64(acc) + product);
}
}  // namespace

Status BlockInterpreter::run() {
  WARPLOOM_CHECK(body(program_.body));
  // A stage that another role filled and nobody frees is a fault of the roles' counting. Within
  // one thread of control a software pipeline may run ahead of its loop's end, into tiles that
  // lie outside their tensors.
  for (size_t id = 0; id < queues_.size(); ++id) {
    const Queue& queue = queues_[id];
    if (queue.taken.count(-1)) continue;
    size_t least = queue.taken.empty() ? 0 : queue.stages.size();
    for (const auto& [role, taken] : queue.taken)
      least = std::min(least, taken);
    if (least != queue.stages.size()) {
      const std::string& name = program_.pipelines[id].name;
      const std::string message =
          fmt::format("pipeline '{}' ends with stages that nobody consumed", name);
      const std::string expected = fmt::format("{} stages consumed by each", queue.stages.size());
      return undefined(message, expected, std::to_string(least));
    }
  }
  return ok();
}

// Of the running statement.
tl::unexpected<Error> BlockInterpreter::undefined(const std::string& message,
                                                  const std::string& expected,
                                                  const std::string& found) const {
  const int64_t x = variables_.at("block_x");
  const int64_t y = variables_.at("block_y");
  const int64_t z = variables_.at("block_z");
  Error error{ErrorCode::kTileRuntime};
  error.message = fmt::format("{} (block {}, {}, {})", message, x, y, z);
  error.place = fmt::format("{}:{}", last_->file, last_->line);
  error.expected = expected;
  error.found = found;
  error.remedy = "follow the statements that should have made the value";
  return fail(error);
}

Result<int64_t> BlockInterpreter::value_of(const Index& index) const {
  if (!divides_by_zero(index, variables_)) return index.evaluate(variables_);
  return undefined(fmt::format("'{}' divides by a number below 1", index.text()));
}

Status BlockInterpreter::body(const Body& statements) {
  for (const Statement& statement : statements) {
    last_ = &statement.location;
    WARPLOOM_CHECK(statement.visit([&](const auto& node) { return run(node); }));
  }
  return ok();
}

Status BlockInterpreter::run(const Copy& copy) {
  const BlockInterpreter* holder = this;
  if (copy.peer) {
    WARPLOOM_TRY(const int64_t rank, value_of(*copy.peer));
    if (rank < 0 || rank >= cluster_size(program_)) {
      const std::string expected = fmt::format("a rank of 0 to {}", cluster_size(program_) - 1);
      return undefined("a copy from a peer that the cluster does not have", expected,
                       std::to_string(rank));
    }
    holder = &cluster_[rank];
  }
  WARPLOOM_TRY(const Values values, read(copy.src, copy.fill, *holder));
  return write(copy.dst, values, holds_integers(copy.src.tensor), copy.combine);
}

Status BlockInterpreter::run(const Signal& signal) {
  WARPLOOM_TRY(const Values flag, read(signal.flag));
  WARPLOOM_TRY(const int64_t by, value_of(signal.by));
  ++turns_.events;
  return write(signal.flag, {flag[0] + static_cast<Number>(by)});
}

Status BlockInterpreter::run(const Wait& wait) {
  WARPLOOM_TRY(const int64_t least, value_of(wait.least));
  for (;; turns_.others()) {
    WARPLOOM_TRY(const Values flag, read(wait.flag));
    if (flag[0] >= static_cast<Number>(least)) return ok();
    if (turns_.stuck) {
      const std::string& name = program_.tensor(wait.flag.tensor).name;
      const std::string message = fmt::format("a wait for '{}' that no block ends", name);
      const std::string expected = fmt::format("at least {}", least);
      return undefined(message, expected, fmt::format("{}", as_double(flag[0])));
    }
  }
}

Status BlockInterpreter::run(const Fill& fill) {
  const int64_t count = element_count(program_.tensor(fill.dst).shape);
  return write(fill.dst, Values(count, fill.value));
}

Status BlockInterpreter::run(const Map& map) {
  if (map.integers) {
    WARPLOOM_TRY(const std::vector<int64_t> results,
                 evaluate_whole(map.value, program_.tensor(map.dst).shape));
    return write(map.dst, Values(results.begin(), results.end()), true);
  }
  WARPLOOM_TRY(const std::vector<float> results,
               evaluate(map.value, program_.tensor(map.dst).shape));
  return write(map.dst, Values(results.begin(), results.end()));
}

Status BlockInterpreter::run(const Mma& mma) {
  WARPLOOM_TRY(const Values a, read(mma.a));
  WARPLOOM_TRY(const Values b, read(mma.b));
  WARPLOOM_TRY(Values acc, read(mma.acc));
  const Dtype type = program_.tensor(mma.acc).dtype;
  const auto extent = matrix_extent(program_.tensor(mma.acc).shape);
  const auto rows = as_size(extent[0]);
  const auto columns = as_size(extent[1]);
  const auto depth = a.size() / rows;
  for (size_t m = 0; m < rows; ++m)
    for (size_t k = 0; k < depth; ++k)
      for (size_t n = 0; n < columns; ++n) {
        Number& sum = acc[m * columns + n];
        const size_t in_a = mma.transpose_a ? k * rows + m : m * depth + k;
        const size_t in_b = mma.transpose_b ? n * depth + k : k * columns + n;
        sum = accumulate(type, sum, a[in_a], b[in_b]);
      }
  return write(mma.acc, acc);
}

// A Scan's values; of a Reduce the last ones along the axis.
Status BlockInterpreter::run(const Of<Reduce, Scan> auto& node) {
  const auto& shape = program_.tensor(node.src).shape;
  const auto axis = as_size(node.axis);
  const auto length = as_size(shape[axis]);
  const auto inner = as_size(dense_strides(shape)[axis]);
  WARPLOOM_TRY(Values values, read(node.src));
  bool reverse = false;
  if constexpr (requires { node.reverse; }) reverse = node.reverse;
  const Dtype from = program_.tensor(node.src).dtype;
  const Dtype to = program_.tensor(node.dst).dtype;
  const bool whole_numbers = is_wide_integer(from) && is_wide_integer(to);
  const auto both = [&](Number a, Number b) {
    if (!whole_numbers) return Number{combined(node.op, a, b)};
    const auto first = as_int64(a);
    const auto second = as_int64(b);
    const ValueOp op = reduction_of(node.op).combine;
    return static_cast<Number>(apply_integers(op, first, second));
  };
  Values last;
  for (size_t n = 0; n < values.size(); ++n) {
    const size_t i = reverse ? values.size() - 1 - n : n;
    const size_t k = n / inner % length;
    const Number before = k == 0 ? 0 : values[reverse ? i + inner : i - inner];
    if (k != 0)
      values[i] = both(before, values[i]);
    else if (!whole_numbers)
      values[i] = as_float(values[i]);
    if (k + 1 == length) last.push_back(values[i]);
  }
  return write(node.dst, Of<decltype(node), Scan> ? values : last, whole_numbers);
}

Status BlockInterpreter::run(const ConvertLayout& rearrange) {
  WARPLOOM_TRY(const Values values, read(rearrange.src));
  size_t columns = 1;
  if (rearrange.transpose) columns = as_size(program_.tensor(rearrange.src).shape[1]);
  const size_t rows = values.size() / columns;
  Values turned;
  for (size_t i = 0; i < values.size(); ++i)
    turned.push_back(values[i % rows * columns + i / rows]);
  return write(rearrange.dst, turned, holds_integers(rearrange.src));
}

Status BlockInterpreter::run(const Bitcast& reinterpret) {
  WARPLOOM_TRY(Values values, read(reinterpret.src));
  const Tensor& src = program_.tensor(reinterpret.src);
  const Tensor& dst = program_.tensor(reinterpret.dst);
  std::vector<std::byte> bytes(values.size());  // at most a byte each
  for (size_t i = 0; i < values.size(); ++i)
    store_from_double(src.dtype, bytes.data(), i, as_double(values[i]));
  values.resize(element_count(dst.shape));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = load_as_double(dst.dtype, bytes.data(), i);
  return write(reinterpret.dst, values);
}

// Goes on when all blocks of the cluster are here.
Status BlockInterpreter::meet(std::string_view statement) {
  ++meetings_;
  ++turns_.events;
  const auto here = [&](const BlockInterpreter& block) { return block.meetings_ >= meetings_; };
  for (; !std::ranges::all_of(cluster_, here); turns_.others())
    if (turns_.stuck)
      return undefined(fmt::format("some blocks of the cluster do not reach this {}", statement));
  return ok();
}

Status BlockInterpreter::run(const ClusterReduce& s) {
  WARPLOOM_TRY(left_[meetings_ % 2], read(s.dst));
  const size_t round = meetings_ % 2;
  WARPLOOM_CHECK(meet("cluster_reduce"));
  Values total = cluster_[0].left_[round];
  for (size_t other = 1; other < cluster_.size(); ++other) {
    const Values& own = cluster_[other].left_[round];
    for (size_t i = 0; i < total.size(); ++i)
      total[i] = combined(s.op, total[i], own[i]);
  }
  return write(s.dst, total);
}

Status BlockInterpreter::run(const For& s) {
  WARPLOOM_TRY(const int64_t begin, value_of(s.begin));
  WARPLOOM_CHECK(value_of(s.end));
  WARPLOOM_TRY(const int64_t step, value_of(s.step));
  if (step < 1)
    return undefined("a loop's step is below 1", "a positive step", std::to_string(step));
  int64_t& at = variables_[s.variable] = begin;
  while (at < s.end.evaluate(variables_)) {
    WARPLOOM_CHECK(body(s.body));
    if (__builtin_add_overflow(at, s.step.evaluate(variables_), &at)) break;
  }
  return ok();
}

Status BlockInterpreter::run(const If& s) {
  WARPLOOM_TRY(const int64_t left, value_of(s.left));
  WARPLOOM_TRY(const int64_t right, value_of(s.right));
  return left < right ? body(s.body) : ok();
}

// A stage's tensors are bound to their names while a Produce or Consume runs, and to nothing
// outside.
Status BlockInterpreter::run(const Produce& s) {
  const Pipeline& pipeline = program_.pipeline(s.pipeline);
  Queue& queue = queues_[s.pipeline];
  const bool consumed_here = role_ < 0 && queue.taken.contains(role_);
  const size_t emptied = consumed_here ? queue.taken[role_] : 0;
  const size_t full = queue.stages.size() - emptied;
  // One thread of control that waits for itself waits forever; different roles wait for each
  // other.
  if (role_ < 0 && full >= as_size(pipeline.stages))
    return undefined(
        fmt::format("every stage of '{}' is full and nobody else can empty one", pipeline.name),
        fmt::format("at most {} stages produced ahead", pipeline.stages));
  WARPLOOM_CHECK(body(s.body));
  auto& stage = queue.stages.emplace_back();
  for (const TensorId tensor : pipeline.tensors)
    stage.push_back(std::exchange(tensors_[tensor], nullptr));
  if (role_ < 0) queue.taken.try_emplace(role_);  // also where its loop takes none
  return ok();
}

Status BlockInterpreter::run(const Consume& s) {
  const Pipeline& pipeline = program_.pipeline(s.pipeline);
  Queue& queue = queues_[s.pipeline];
  size_t& taken = queue.taken[role_];
  if (taken >= queue.stages.size()) {
    const std::string message =
        fmt::format("'{}' is consumed and has no stage left", pipeline.name);
    return undefined(message, fmt::format("more than {} stages produced", queue.stages.size()));
  }
  std::vector<Storage>& stage = queue.stages[taken++];
  for (size_t i = 0; i < stage.size(); ++i)
    tensors_[pipeline.tensors[i]] = stage[i];
  if (role_ < 0) stage.clear();  // nobody else will read it
  WARPLOOM_CHECK(body(s.body));
  for (const TensorId tensor : pipeline.tensors)
    tensors_[tensor].reset();
  return ok();
}

Status BlockInterpreter::run(const Roles& s) {
  for (const Role& role : s.roles) {
    ++role_;
    WARPLOOM_CHECK(body(role.body));
  }
  role_ = -1;
  return ok();
}
}  // namespace warploom::tile
