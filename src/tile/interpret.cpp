// Clusters run one after another. The blocks of one, and all of a cooperative program, take turns:
// each runs until it waits for others.
//
// Elements are kept as numbers that are exact values of the tensor's type, integers of 64 bits
// among them, or nothing where none was ever written. Shared and register tensors begin unwritten;
// a slot of a pipeline begins unwritten each time it is produced.
#include "tile/interpret.h"
#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>
#include <deque>
#include <list>
#include "base/integers.h"
#include "tile/verify.h"

namespace warploom::tile {
namespace {
// Of shared and register tensors, all blocks that run together.
constexpr int64_t kMostElements = int64_t{1} << 27;
constexpr size_t kStack = 1 << 20;

using Number = long double;
static_assert(std::numeric_limits<Number>::digits >= 64, "every integer of 64 bits");
using Values = std::vector<Number>;
using Storage = std::shared_ptr<std::vector<std::optional<Number>>>;  // null: never written

Number load_number(Dtype dtype, const void* data, size_t place) {
  if (!is_integer(dtype)) return load_as_double(dtype, data, place);
  return static_cast<Number>(load_integer(dtype, data, static_cast<int64_t>(place)));
}

// As the type holds it: a whole number of a tensor of integers wraps, any other is rounded.
Number stored_number(Dtype dtype, Number value, bool whole) {
  if (!is_integer(dtype)) return rounded(dtype, static_cast<double>(value));
  const auto number = static_cast<double>(value);
  return static_cast<Number>(whole ? wrapped_integer(dtype, static_cast<int64_t>(value))
                                   : saturated_integer(dtype, number));
}

void store_number(Dtype dtype, void* data, size_t place, Number value) {
  if (is_integer(dtype))
    store_integer(dtype, data, static_cast<int64_t>(place), static_cast<int64_t>(value));
  else
    store_from_double(dtype, data, place, static_cast<double>(value));
}

struct Queue {
  std::vector<std::vector<Storage>> slots;  // [slot][tensor of the pipeline]
  std::map<int, size_t> taken;              // slots consumed so far, by role (-1: no roles)
};

bool divides_by_zero(const Index& index, const std::map<std::string, int64_t>& variables) {
  if (index.op() == IndexOp::constant || index.op() == IndexOp::variable) return false;
  if (divides_by_zero(index.left(), variables) || divides_by_zero(index.right(), variables))
    return true;
  return (index.op() == IndexOp::div || index.op() == IndexOp::mod) &&
         index.right().evaluate(variables) < 1;
}

// In fp32, as registers compute.
float combined(ReduceOp op, Number a, Number b) {
  return static_cast<float>(
      apply(reduction_of(op).combine, static_cast<float>(a), static_cast<float>(b)));
}

// acc + a·b with an exact product and one rounding to the accumulator's type.
Number accumulate(Dtype type, Number acc, Number a, Number b) {
  if (type == Dtype::f64)
    return std::fma(static_cast<double>(a), static_cast<double>(b), static_cast<double>(acc));
  if (type == Dtype::f32)
    return std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(acc));
  return static_cast<int32_t>(static_cast<int64_t>(acc) +
                              static_cast<int64_t>(a) * static_cast<int64_t>(b));
}

struct Turns {
  std::function<void()> others;  // returns when it is one's turn again
  int64_t events = 0;            // that somebody may wait for, so far
  bool stuck = true;             // there will be no other
};

class Block {
 public:
  Block(const Program& program, const Buffers& buffers, Turns& turns, std::deque<Block>& cluster,
        const std::array<int64_t, 3>& first)
      : program_(program), buffers_(buffers), turns_(turns), cluster_(cluster) {
    auto rank = static_cast<int64_t>(cluster.size());
    variables_["cluster_rank"] = rank;
    for (size_t i = 0; i < 3; rank /= program.cluster[i++])
      variables_[tile::block(static_cast<int>(i)).name()] = first[i] + rank % program.cluster[i];
  }

  Status run() {
    WARPLOOM_CHECK(body(program_.body));
    // A slot that another role filled and nobody frees is a fault of the roles' counting. Within
    // one thread of control a software pipeline may run ahead of its loop's end, into tiles that
    // lie outside their tensors.
    for (size_t id = 0; id < queues_.size(); ++id) {
      const Queue& queue = queues_[id];
      if (queue.taken.count(-1)) continue;
      size_t least = queue.taken.empty() ? 0 : queue.slots.size();
      for (const auto& [role, taken] : queue.taken) least = std::min(least, taken);
      if (least != queue.slots.size())
        return undefined(fmt::format("pipeline '{}' ends with slots that nobody consumed",
                                     program_.pipelines[id].name),
                         fmt::format("{} slots consumed by each", queue.slots.size()),
                         std::to_string(least));
    }
    return ok();
  }

 private:
  // Of the running statement.
  tl::unexpected<Error> undefined(std::string message, std::string expected = {},
                                  std::string found = {}) const {
    const auto& at = variables_;
    return fail({ErrorCode::kTileRuntime,
                 fmt::format("{} (block {}, {}, {})", message, at.at("block_x"), at.at("block_y"),
                             at.at("block_z")),
                 fmt::format("{}:{}", last_->file, last_->line), std::move(expected),
                 std::move(found), "follow the statements that should have made the value"});
  }

  Result<int64_t> value_of(const Index& index) const {
    if (!divides_by_zero(index, variables_)) return index.evaluate(variables_);
    return undefined(fmt::format("'{}' divides by a number below 1", index.text()));
  }

  // Calls visit(place, coordinates) for each element of a tile in row-major order; no place where
  // it lies outside the tensor.
  Status for_elements(const Tile& tile, const auto& visit) const {
    const Tensor& tensor = program_.tensor(tile.tensor);
    const auto strides = tensor.strides.empty() ? dense_strides(tensor.shape) : tensor.strides;
    std::vector<int64_t> start;
    std::vector<int64_t> element(tile.extent.size(), 0);
    std::vector<int64_t> at = element;
    for (const Index& offset : tile.offset) {
      WARPLOOM_TRY(start.emplace_back(), value_of(offset));
    }
    const Tensor* lookup = tile.lookup < 0 ? nullptr : &program_.tensor(tile.lookup);
    const auto looked_up = [&](int64_t i, int64_t size) -> int64_t {
      if (i < 0 || i >= lookup->shape[0]) return -1;
      const auto place = static_cast<size_t>(i * lookup->strides[0]);
      const auto found = static_cast<int64_t>(
          load_as_double(lookup->dtype, buffers_.at(lookup->name).data(), place));
      return found < 0 ? found + size : found;
    };
    for (int64_t left = element_count(tile.extent); left > 0; --left) {
      std::optional<size_t> place = static_cast<size_t>(tensor.from);
      for (size_t i = 0; i < at.size(); ++i) {
        // Unsigned, so that a nonsensical offset wraps to somewhere outside.
        at[i] = static_cast<int64_t>(static_cast<uint64_t>(start[i]) +
                                     static_cast<uint64_t>(element[i] * tile.step_along(i)));
        if (tile.gathered_along(i)) at[i] = looked_up(at[i], tensor.shape[i]);
        if (at[i] < 0 || at[i] >= tensor.shape[i])
          place.reset();
        else if (place)
          *place += static_cast<size_t>(at[i] * strides[i]);
      }
      WARPLOOM_CHECK(visit(place, at));
      for (size_t i = element.size(); i-- > 0 && ++element[i] == tile.extent[i];) element[i] = 0;
    }
    return ok();
  }

  // A tile's elements in row-major order, of what `holder` holds; `fill` stands for those outside a
  // global tensor.
  Result<Values> read(const Tile& tile, double fill, const Block& holder) const {
    const Tensor& tensor = program_.tensor(tile.tensor);
    const void* bytes = tensor.scope == Scope::global ? buffers_.at(tensor.name).data() : nullptr;
    const Storage& storage =
        holder.tensors_[tensor.windows_of < 0 ? tile.tensor : tensor.windows_of];
    Values values;
    WARPLOOM_CHECK(for_elements(tile, [&](std::optional<size_t> place, const auto& at) -> Status {
      if (!bytes && !(place && storage && (*storage)[*place]))
        return undefined(fmt::format("{}[{}] is read {}", tensor.name, fmt::join(at, ", "),
                                     place ? "and was never written" : "outside the tensor"));
      values.push_back(!place  ? Number{fill}
                       : bytes ? load_number(tensor.dtype, bytes, *place)
                               : *(*storage)[*place]);
      return ok();
    }));
    return values;
  }

  Result<Values> read(const Tile& tile) const { return read(tile, 0, *this); }

  Result<Values> read(TensorId tensor) const { return read(whole(program_, tensor)); }

  // `combine`: with what a global tensor holds; `whole`: numbers of integers.
  Status write(const Tile& tile, const Values& values, bool whole = false,
               std::optional<ReduceOp> combine = {}) {
    const Tensor& tensor = program_.tensor(tile.tensor);
    void* bytes = tensor.scope == Scope::global ? buffers_.at(tensor.name).data() : nullptr;
    Storage& storage = tensors_[tile.tensor];
    if (!bytes && !storage)
      storage = std::make_shared<Storage::element_type>(element_count(tensor.shape));
    auto value = values.begin();
    return for_elements(tile, [&](std::optional<size_t> place, const auto& at) -> Status {
      Number stored = *value++;
      if (combine && place)
        stored = apply(reduction_of(*combine).combine, load_as_double(tensor.dtype, bytes, *place),
                       static_cast<double>(stored));
      stored = stored_number(tensor.dtype, stored, whole);
      if (bytes && place) store_number(tensor.dtype, bytes, *place, stored);
      if (bytes) return ok();
      if (!place)
        return undefined(
            fmt::format("{}[{}] is written outside the tensor", tensor.name, fmt::join(at, ", ")));
      (*storage)[*place] = stored;
      return ok();
    });
  }

  Status write(TensorId tensor, const Values& values, bool whole_numbers = false) {
    return write(whole(program_, tensor), values, whole_numbers);
  }

  bool holds_integers(TensorId tensor) const { return is_integer(program_.tensor(tensor).dtype); }

  // A value at each element of a shape in row-major order.
  Result<std::vector<float>> evaluate(const Value& value, const std::vector<int64_t>& shape) const {
    const std::vector<int64_t> strides = dense_strides(shape);
    std::vector<float> out(element_count(shape), static_cast<float>(value.constant));
    const auto fill = [&](const auto& at) {
      for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(at(i));
    };
    const auto along = [&](size_t i, size_t d) {
      return static_cast<int64_t>(i) / strides[d] % shape[d];
    };
    if (value.kind == Value::Kind::tensor) {
      const std::vector<int64_t>& own = program_.tensor(value.tensor).shape;
      const std::vector<int64_t> steps = dense_strides(own);
      WARPLOOM_TRY(const Values held, read(value.tensor));
      fill([&](size_t i) {
        int64_t place = 0;
        for (size_t d = 0; d < own.size(); ++d) place += own[d] == 1 ? 0 : along(i, d) * steps[d];
        return static_cast<float>(held[place]);
      });
    } else if (value.kind == Value::Kind::coordinate) {
      WARPLOOM_TRY(const int64_t shift, value_of(value.shift));
      fill([&](size_t i) { return along(i, value.axis) + shift; });
    } else if (value.kind == Value::Kind::op) {
      std::array<std::vector<float>, 3> in = {out, out, out};  // 0 where the operation has fewer
      for (size_t j = 0; j < value.operands.size() && j < 3; ++j) {
        WARPLOOM_TRY(in[j], evaluate(value.operands[j], shape));
      }
      // For + - * / and square roots, rounding the fp64 result gives what fp32 arithmetic gives.
      fill([&](size_t i) {
        return value.op == ValueOp::fma ? std::fma(in[0][i], in[1][i], in[2][i])
                                        : apply(value.op, in[0][i], in[1][i], in[2][i]);
      });
    }
    return out;
  }

  // The same on whole numbers.
  Result<std::vector<int64_t>> evaluate_whole(const Value& value,
                                              const std::vector<int64_t>& shape) const {
    const std::vector<int64_t> strides = dense_strides(shape);
    std::vector<int64_t> out(element_count(shape), saturated_integer(Dtype::i64, value.constant));
    const auto along = [&](size_t i, size_t d) {
      return static_cast<int64_t>(i) / strides[d] % shape[d];
    };
    if (value.kind == Value::Kind::tensor) {
      const std::vector<int64_t>& own = program_.tensor(value.tensor).shape;
      const std::vector<int64_t> steps = dense_strides(own);
      WARPLOOM_TRY(const Values held, read(value.tensor));
      for (size_t i = 0; i < out.size(); ++i) {
        int64_t place = 0;
        for (size_t d = 0; d < own.size(); ++d) place += own[d] == 1 ? 0 : along(i, d) * steps[d];
        out[i] = static_cast<int64_t>(held[place]);
      }
    } else if (value.kind == Value::Kind::coordinate) {
      WARPLOOM_TRY(const int64_t shift, value_of(value.shift));
      for (size_t i = 0; i < out.size(); ++i) out[i] = along(i, value.axis) + shift;
    } else if (value.kind == Value::Kind::op) {
      std::array<std::vector<int64_t>, 3> in = {out, out, out};
      for (size_t j = 0; j < value.operands.size() && j < 3; ++j) {
        WARPLOOM_TRY(in[j], evaluate_whole(value.operands[j], shape));
      }
      for (size_t i = 0; i < out.size(); ++i)
        out[i] = apply_integers(value.op, in[0][i], in[1][i], in[2][i]);
    }
    return out;
  }

  Status body(const Body& statements) {
    for (const Statement& statement : statements) {
      last_ = &statement.location;
      WARPLOOM_CHECK(statement.visit([&](const auto& node) { return run(node); }));
    }
    return ok();
  }

  Status run(const Copy& copy) {
    const Block* holder = this;
    if (copy.peer) {
      WARPLOOM_TRY(const int64_t rank, value_of(*copy.peer));
      if (rank < 0 || rank >= cluster_size(program_))
        return undefined("a copy from a peer that the cluster does not have",
                         fmt::format("a rank of 0 to {}", cluster_size(program_) - 1),
                         std::to_string(rank));
      holder = &cluster_[rank];
    }
    WARPLOOM_TRY(const Values values, read(copy.src, copy.fill, *holder));
    return write(copy.dst, values, holds_integers(copy.src.tensor), copy.combine);
  }

  Status run(const Signal& signal) {
    WARPLOOM_TRY(const Values flag, read(signal.flag));
    WARPLOOM_TRY(const int64_t by, value_of(signal.by));
    ++turns_.events;
    return write(signal.flag, {flag[0] + static_cast<Number>(by)});
  }

  Status run(const Wait& wait) {
    WARPLOOM_TRY(const int64_t least, value_of(wait.least));
    for (;; turns_.others()) {
      WARPLOOM_TRY(const Values flag, read(wait.flag));
      if (flag[0] >= static_cast<Number>(least)) return ok();
      if (turns_.stuck)
        return undefined(fmt::format("a wait for '{}' that no block ends",
                                     program_.tensor(wait.flag.tensor).name),
                         fmt::format("at least {}", least),
                         fmt::format("{}", static_cast<double>(flag[0])));
    }
  }

  Status run(const Fill& fill) {
    return write(fill.dst, Values(element_count(program_.tensor(fill.dst).shape), fill.value));
  }

  Status run(const Map& map) {
    if (map.integers) {
      WARPLOOM_TRY(const std::vector<int64_t> results,
                   evaluate_whole(map.value, program_.tensor(map.dst).shape));
      return write(map.dst, Values(results.begin(), results.end()), true);
    }
    WARPLOOM_TRY(const std::vector<float> results,
                 evaluate(map.value, program_.tensor(map.dst).shape));
    return write(map.dst, Values(results.begin(), results.end()));
  }

  Status run(const Mma& mma) {
    WARPLOOM_TRY(const Values a, read(mma.a));
    WARPLOOM_TRY(const Values b, read(mma.b));
    WARPLOOM_TRY(Values acc, read(mma.acc));
    const Dtype type = program_.tensor(mma.acc).dtype;
    const auto extent = matrix_extent(program_.tensor(mma.acc).shape);
    const auto rows = static_cast<size_t>(extent[0]);
    const auto columns = static_cast<size_t>(extent[1]);
    const auto depth = a.size() / rows;
    for (size_t m = 0; m < rows; ++m)
      for (size_t k = 0; k < depth; ++k)
        for (size_t n = 0; n < columns; ++n) {
          Number& sum = acc[m * columns + n];
          sum = accumulate(type, sum, a[mma.transpose_a ? k * rows + m : m * depth + k],
                           b[mma.transpose_b ? n * depth + k : k * columns + n]);
        }
    return write(mma.acc, acc);
  }

  // A Scan's values; of a Reduce the last ones along the axis.
  Status run(const Of<Reduce, Scan> auto& node) {
    const std::vector<int64_t>& shape = program_.tensor(node.src).shape;
    const auto axis = static_cast<size_t>(node.axis);
    const auto length = static_cast<size_t>(shape[axis]);
    const auto inner = static_cast<size_t>(dense_strides(shape)[axis]);
    WARPLOOM_TRY(Values values, read(node.src));
    bool reverse = false;
    if constexpr (requires { node.reverse; }) reverse = node.reverse;
    const bool whole_numbers = is_wide_integer(program_.tensor(node.src).dtype) &&
                               is_wide_integer(program_.tensor(node.dst).dtype);
    const auto both = [&](Number a, Number b) {
      if (!whole_numbers) return Number{combined(node.op, a, b)};
      return static_cast<Number>(apply_integers(reduction_of(node.op).combine,
                                                static_cast<int64_t>(a), static_cast<int64_t>(b)));
    };
    Values last;
    for (size_t n = 0; n < values.size(); ++n) {
      const size_t i = reverse ? values.size() - 1 - n : n;
      const size_t k = n / inner % length;
      const Number before = k == 0 ? 0 : values[reverse ? i + inner : i - inner];
      if (k != 0)
        values[i] = both(before, values[i]);
      else if (!whole_numbers)
        values[i] = static_cast<float>(values[i]);
      if (k + 1 == length) last.push_back(values[i]);
    }
    return write(node.dst, Of<decltype(node), Scan> ? values : last, whole_numbers);
  }

  Status run(const ConvertLayout& rearrange) {
    WARPLOOM_TRY(const Values values, read(rearrange.src));
    const auto columns =
        rearrange.transpose ? static_cast<size_t>(program_.tensor(rearrange.src).shape[1]) : 1;
    const size_t rows = values.size() / columns;
    Values turned;
    for (size_t i = 0; i < values.size(); ++i)
      turned.push_back(values[i % rows * columns + i / rows]);
    return write(rearrange.dst, turned, holds_integers(rearrange.src));
  }

  Status run(const Bitcast& reinterpret) {
    WARPLOOM_TRY(Values values, read(reinterpret.src));
    const Tensor& src = program_.tensor(reinterpret.src);
    const Tensor& dst = program_.tensor(reinterpret.dst);
    std::vector<std::byte> bytes(values.size());  // at most a byte each
    for (size_t i = 0; i < values.size(); ++i)
      store_from_double(src.dtype, bytes.data(), i, static_cast<double>(values[i]));
    values.resize(element_count(dst.shape));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = load_as_double(dst.dtype, bytes.data(), i);
    return write(reinterpret.dst, values);
  }

  // Goes on when all blocks of the cluster are here.
  Status meet(std::string_view statement) {
    ++meetings_;
    ++turns_.events;
    const auto here = [&](const Block& block) { return block.meetings_ >= meetings_; };
    for (; !std::ranges::all_of(cluster_, here); turns_.others())
      if (turns_.stuck)
        return undefined(fmt::format("some blocks of the cluster do not reach this {}", statement));
    return ok();
  }

  Status run(const ClusterSync&) { return meet("cluster_sync"); }

  Status run(const ClusterReduce& s) {
    WARPLOOM_TRY(left_[meetings_ % 2], read(s.dst));
    const size_t round = meetings_ % 2;
    WARPLOOM_CHECK(meet("cluster_reduce"));
    Values total = cluster_[0].left_[round];
    for (size_t other = 1; other < cluster_.size(); ++other)
      for (size_t i = 0; i < total.size(); ++i)
        total[i] = combined(s.op, total[i], cluster_[other].left_[round][i]);
    return write(s.dst, total);
  }

  Status run(const For& s) {
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

  Status run(const If& s) {
    WARPLOOM_TRY(const int64_t left, value_of(s.left));
    WARPLOOM_TRY(const int64_t right, value_of(s.right));
    return left < right ? body(s.body) : ok();
  }

  // A slot's tensors are bound to their names while a Produce or Consume runs, and to nothing
  // outside.
  Status run(const Produce& s) {
    const Pipeline& pipeline = program_.pipeline(s.pipeline);
    Queue& queue = queues_[s.pipeline];
    const size_t full =
        queue.slots.size() - (role_ < 0 && queue.taken.count(role_) ? queue.taken[role_] : 0);
    // One thread of control that waits for itself waits forever; different roles wait for each
    // other.
    if (role_ < 0 && full >= static_cast<size_t>(pipeline.stages))
      return undefined(
          fmt::format("every stage of '{}' is full and nobody else can empty one", pipeline.name),
          fmt::format("at most {} slots produced ahead", pipeline.stages));
    WARPLOOM_CHECK(body(s.body));
    auto& slot = queue.slots.emplace_back();
    for (const TensorId tensor : pipeline.tensors)
      slot.push_back(std::exchange(tensors_[tensor], nullptr));
    if (role_ < 0) queue.taken.try_emplace(role_);  // also where its loop takes none
    return ok();
  }

  Status run(const Consume& s) {
    const Pipeline& pipeline = program_.pipeline(s.pipeline);
    Queue& queue = queues_[s.pipeline];
    size_t& taken = queue.taken[role_];
    if (taken >= queue.slots.size())
      return undefined(fmt::format("'{}' is consumed and has no slot left", pipeline.name),
                       fmt::format("more than {} slots produced", queue.slots.size()));
    std::vector<Storage>& slot = queue.slots[taken++];
    for (size_t i = 0; i < slot.size(); ++i) tensors_[pipeline.tensors[i]] = slot[i];
    if (role_ < 0) slot.clear();  // nobody else will read it
    WARPLOOM_CHECK(body(s.body));
    for (const TensorId tensor : pipeline.tensors) tensors_[tensor].reset();
    return ok();
  }

  Status run(const Roles& s) {
    for (const Role& role : s.roles) {
      ++role_;
      WARPLOOM_CHECK(body(role.body));
    }
    role_ = -1;
    return ok();
  }

  const Program& program_;
  const Buffers& buffers_;
  Turns& turns_;
  const std::deque<Block>& cluster_;
  std::map<std::string, int64_t> variables_;
  std::vector<Storage> tensors_ =
      std::vector<Storage>(program_.tensors.size());  // null where global, too
  std::vector<Queue> queues_ = std::vector<Queue>(program_.pipelines.size());
  std::array<Values, 2> left_;  // for the others of the cluster, at this meeting and the one before
  size_t meetings_ = 0;
  int role_ = -1;
  const Location* last_ = nullptr;  // of the statement that ran last
};

Status check_memory(const Program& program, const Buffers& buffers) {
  const int64_t together =
      program.cooperative ? element_count(program.grid) : cluster_size(program);
  int64_t elements =
      0;  // each tensor has at most 2^48 of them and there are fewer than 2^14 tensors
  for (const Tensor& tensor : program.tensors) {
    const std::string place = fmt::format("{}: tensor '{}'", place_of(program), tensor.name);
    const bool global = tensor.scope == Scope::global;
    const auto found = buffers.find(tensor.name);
    const int64_t needed =
        global ? bytes_of(tensor.dtype, span_of(tensor.shape, tensor.strides)) : 0;
    const int64_t given = found == buffers.end() ? 0 : std::ssize(found->second);
    if (given < needed)
      return fail({ErrorCode::kTileRuntime,
                   "a global tensor has no buffer, or one that is too small", place,
                   fmt::format("{} bytes", needed), fmt::format("{} bytes", given),
                   "give a buffer for each global tensor by its name"});
    if (!global) elements += element_count(tensor.shape);
    if (elements > kMostElements / together)
      return fail({ErrorCode::kTileRuntime,
                   "the shared and register tensors are too large to interpret", place,
                   fmt::format("{} elements at most of blocks that run together", kMostElements),
                   "", "use smaller tiles"});
  }
  return ok();
}

Status run(std::list<std::deque<Block>>& clusters, Turns& turns) {
  using boost::context::fiber;
  if (clusters.size() == 1 && clusters.front().size() == 1) return clusters.front()[0].run();
  Status status = ok();
  fiber main;
  turns.others = [&] { main = std::move(main).resume(); };
  std::vector<fiber> running;
  for (std::deque<Block>& cluster : clusters)
    for (Block& block : cluster)
      running.emplace_back(std::allocator_arg, boost::context::fixedsize_stack(kStack),
                           [&](fiber&& from) {
                             main = std::move(from);
                             if (Status own = block.run(); !own) status = std::move(own);
                             return std::move(main);
                           });
  for (turns.stuck = false; status && !running.empty();) {
    const int64_t before = turns.events;
    for (auto one = running.begin(); status && one != running.end(); ++one)
      *one = std::move(*one).resume();
    turns.stuck = std::erase_if(running, [](const fiber& one) { return !one; }) == 0 &&
                  turns.events == before;
  }
  return status;
}
}  // namespace

Status interpret(const Program& program, const Buffers& buffers) {
  WARPLOOM_CHECK(verify(program));
  WARPLOOM_CHECK(check_memory(program, buffers));
  for (const Tensor& tensor : program.tensors)
    if (tensor.zeroed) std::ranges::fill(buffers.at(tensor.name), std::byte{0});
  Turns turns;
  std::list<std::deque<Block>> running;  // by clusters
  for (int64_t z = 0; z < program.grid[2]; z += program.cluster[2])
    for (int64_t y = 0; y < program.grid[1]; y += program.cluster[1])
      for (int64_t x = 0; x < program.grid[0]; x += program.cluster[0]) {
        std::deque<Block>& cluster = running.emplace_back();
        const std::array<int64_t, 3> first = {x, y, z};
        for (int64_t i = 0; i < cluster_size(program); ++i)
          cluster.emplace_back(program, buffers, turns, cluster, first);
        if (program.cooperative) continue;
        WARPLOOM_CHECK(run(running, turns));
        running.clear();
      }
  return run(running, turns);
}
}  // namespace warploom::tile
