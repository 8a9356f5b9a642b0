// What a block holds while it runs, the statements' work on it, and the order in which a cluster's blocks run them.
//
// Elements are kept as doubles that are exact values of the tensor's type, beside a mark for each that says whether it was ever
// written. Shared and register tensors begin unwritten; a slot of a pipeline begins unwritten each time it is produced.
#include "tile/interpret.h"
#include <fmt/ranges.h>
#include "tile/verify.h"
namespace warploom::tile {
namespace {
struct Storage {
  std::vector<double> values;
  std::vector<std::uint8_t> written;
};

struct Queue {
  std::vector<std::vector<std::shared_ptr<Storage>>> slots;  // [slot][tensor of the pipeline]
  std::map<int, std::size_t> taken;                          // slots consumed so far, by role (-1: no roles)
};

struct Block {
  std::map<std::string, std::int64_t> variables;
  std::vector<std::shared_ptr<Storage>> tensors;  // null: never written, or global
  std::vector<Queue> queues;
};

// Where an error happened: the statement and the block.
struct Site {
  const Program& program;
  const Buffers& buffers;
  const Location& location;
  Block& block;
};

bool divides_by_zero(const Index& index, const std::map<std::string, std::int64_t>& variables) {
  if (index.op() == IndexOp::constant || index.op() == IndexOp::variable) return false;
  if (divides_by_zero(index.left(), variables) || divides_by_zero(index.right(), variables)) return true;
  return (index.op() == IndexOp::div || index.op() == IndexOp::mod) && index.right().evaluate(variables) < 1;
}

tl::unexpected<Error> undefined(const Site& site, std::string message, std::string expected = {}, std::string found = {}) {
  const auto& at = site.block.variables;
  return fail({ErrorCode::kTileRuntime,
               fmt::format("{} (block {}, {}, {})", message, at.at("block_x"), at.at("block_y"), at.at("block_z")),
               fmt::format("{}:{}", site.location.file, site.location.line), std::move(expected), std::move(found),
               "follow the statements that should have made the value"});
}

Result<std::int64_t> value_of(const Site& site, const Index& index) {
  if (divides_by_zero(index, site.block.variables))
    return undefined(site, fmt::format("'{}' divides by a number below 1", index.text()));
  return index.evaluate(site.block.variables);
}

// Calls visit(place, coordinates) for each element of a tile in row-major order; no place where it lies outside the tensor.
template <class Visit>
Status for_elements(const Site& site, const Tile& tile, const Visit& visit) {
  const Tensor& tensor = site.program.tensor(tile.tensor);
  const auto strides = tensor.scope == Scope::global ? tensor.strides : dense_strides(tensor.shape);
  std::vector<std::int64_t> start, element(tile.extent.size(), 0), at = element;
  for (const Index& offset : tile.offset) { WARPLOOM_TRY(start.emplace_back(), value_of(site, offset)); }
  const Tensor* lookup = tile.lookup < 0 ? nullptr : &site.program.tensor(tile.lookup);
  const auto looked_up = [&](std::int64_t i) -> std::int64_t {
    if (i < 0 || i >= lookup->shape[0]) return -1;
    const auto place = static_cast<std::size_t>(i * lookup->strides[0]);
    return static_cast<std::int64_t>(load_as_double(lookup->dtype, site.buffers.at(lookup->name).data(), place));
  };
  for (std::int64_t left = element_count(tile.extent); left > 0; --left) {
    std::optional<std::size_t> place = 0;
    for (std::size_t i = 0; i < at.size(); ++i) {
      // Unsigned, so that a nonsensical offset wraps to somewhere outside.
      at[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(start[i]) +
                                        static_cast<std::uint64_t>(element[i] * tile.step_along(i)));
      if (lookup && static_cast<int>(i) == tile.lookup_dim) at[i] = looked_up(at[i]);
      if (at[i] < 0 || at[i] >= tensor.shape[i]) place.reset();
      else if (place) *place += static_cast<std::size_t>(at[i] * strides[i]);
    }
    WARPLOOM_CHECK(visit(place, at));
    for (std::size_t i = element.size(); i-- > 0 && ++element[i] == tile.extent[i];) element[i] = 0;
  }
  return ok();
}

Storage& storage_to_write(const Site& site, TensorId id) {
  std::shared_ptr<Storage>& storage = site.block.tensors[static_cast<std::size_t>(id)];
  if (!storage) {
    const auto count = static_cast<std::size_t>(element_count(site.program.tensor(id).shape));
    storage = std::make_shared<Storage>(Storage{std::vector<double>(count), std::vector<std::uint8_t>(count)});
  }
  return *storage;
}

ValueOp value_op_of(ReduceOp op) {
  constexpr ValueOp kOps[] = {ValueOp::add, ValueOp::max, ValueOp::min};
  return kOps[static_cast<std::size_t>(op)];
}

// The elements of a tile in row-major order of its box; `fill` stands for those outside a global tensor.
Result<std::vector<double>> read_tile(const Site& site, const Tile& tile, double fill) {
  const Tensor& tensor = site.program.tensor(tile.tensor);
  std::vector<double> values;
  const void* bytes = tensor.scope == Scope::global ? site.buffers.at(tensor.name).data() : nullptr;
  const Storage* storage = site.block.tensors[static_cast<std::size_t>(tile.tensor)].get();
  WARPLOOM_CHECK(for_elements(site, tile, [&](std::optional<std::size_t> place, const auto& at) -> Status {
    const bool written = bytes || (place && storage && storage->written[*place]);
    if (!written)
      return undefined(site, fmt::format("{}[{}] is read {}", tensor.name, fmt::join(at, ", "),
                                         place ? "and was never written" : "outside the tensor"));
    values.push_back(!place ? fill : bytes ? load_as_double(tensor.dtype, bytes, *place) : storage->values[*place]);
    return ok();
  }));
  return values;
}

// `combine`: with what a global tensor holds.
Status write_tile(const Site& site, const Tile& tile, const std::vector<double>& values, std::optional<ReduceOp> combine = {}) {
  const Tensor& tensor = site.program.tensor(tile.tensor);
  void* bytes = tensor.scope == Scope::global ? site.buffers.at(tensor.name).data() : nullptr;
  Storage* storage = bytes ? nullptr : &storage_to_write(site, tile.tensor);
  auto value = values.begin();
  return for_elements(site, tile, [&](std::optional<std::size_t> place, const auto& at) -> Status {
    double stored = *value++;
    if (combine && place) stored = apply(value_op_of(*combine), load_as_double(tensor.dtype, bytes, *place), stored);
    stored = rounded(tensor.dtype, stored);
    if (bytes && place) store_from_double(tensor.dtype, bytes, *place, stored);
    if (bytes) return ok();
    if (!place) return undefined(site, fmt::format("{}[{}] is written outside the tensor", tensor.name, fmt::join(at, ", ")));
    storage->values[*place] = stored;
    storage->written[*place] = 1;
    return ok();
  });
}
// All elements of a shared or register tensor, in row-major order.
Result<std::vector<double>> read_all(const Site& site, TensorId tensor) {
  return read_tile(site, whole(site.program, tensor), 0);
}
Status write_all(const Site& site, TensorId tensor, const std::vector<double>& values) {
  return write_tile(site, whole(site.program, tensor), values);
}
// A register tensor's elements as an operand of a Map: broadcast along dimensions of extent 1.
struct Operand {
  std::vector<double> values;
  std::vector<std::int64_t> strides;  // of the destination's dimensions; 0 where it broadcasts
};
using Operands = std::map<TensorId, Operand>;

Status gather(const Site& site, const Value& value, Operands& operands) {
  for (const Value& operand : value.operands) WARPLOOM_CHECK(gather(site, operand, operands));
  if (value.kind == Value::Kind::coordinate) WARPLOOM_CHECK(value_of(site, value.shift));
  if (value.kind != Value::Kind::tensor || operands.count(value.tensor)) return ok();
  const std::vector<std::int64_t>& shape = site.program.tensor(value.tensor).shape;
  Operand operand;
  WARPLOOM_TRY(operand.values, read_all(site, value.tensor));
  operand.strides = dense_strides(shape);
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (shape[i] == 1) operand.strides[i] = 0;
  operands.emplace(value.tensor, std::move(operand));
  return ok();
}

float evaluate(const Site& site, const Value& value, const Operands& operands, const std::vector<std::int64_t>& at) {
  if (value.kind == Value::Kind::constant) return static_cast<float>(value.constant);
  if (value.kind == Value::Kind::tensor) {
    const Operand& operand = operands.at(value.tensor);
    std::int64_t place = 0;
    for (std::size_t i = 0; i < at.size(); ++i) place += at[i] * operand.strides[i];
    return static_cast<float>(operand.values[static_cast<std::size_t>(place)]);
  }
  if (value.kind == Value::Kind::coordinate)
    return static_cast<float>(at[static_cast<std::size_t>(value.axis)] + value.shift.evaluate(site.block.variables));
  float arguments[3] = {0, 0, 0};
  for (std::size_t i = 0; i < value.operands.size() && i < 3; ++i) arguments[i] = evaluate(site, value.operands[i], operands, at);
  if (value.op == ValueOp::fma) return std::fma(arguments[0], arguments[1], arguments[2]);
  // For + - * / and square roots, rounding the fp64 result gives what fp32 arithmetic gives.
  return static_cast<float>(apply(value.op, arguments[0], arguments[1], arguments[2]));
}

struct Matrix {
  std::vector<double> values;
  std::int64_t row = 0, column = 0;  // strides
  std::int64_t rows = 0, columns = 0;
  double at(std::int64_t i, std::int64_t j) const { return values[static_cast<std::size_t>(i * row + j * column)]; }
};

Result<Matrix> read_matrix(const Site& site, const Tile& tile, bool transposed) {
  const std::vector<std::int64_t> extent = matrix_extent(tile.extent);
  Matrix matrix{{}, extent[1], 1, extent[0], extent[1]};
  WARPLOOM_TRY(matrix.values, read_tile(site, tile, 0));
  if (transposed) std::swap(matrix.row, matrix.column), std::swap(matrix.rows, matrix.columns);
  return matrix;
}

// acc + a·b with an exact product and one rounding to the accumulator's type.
double accumulate(Dtype type, double acc, double a, double b) {
  if (type == Dtype::f64) return std::fma(a, b, acc);
  if (type == Dtype::f32) return std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(acc));
  return static_cast<std::int32_t>(static_cast<std::int64_t>(acc) + static_cast<std::int64_t>(a) * static_cast<std::int64_t>(b));
}
Status run(const Site& site, const Site& source, const Copy& copy) {
  WARPLOOM_TRY(const std::vector<double> values, read_tile(source, copy.src, copy.fill));
  return write_tile(site, copy.dst, values, copy.combine);
}

Status run(const Site& site, const Signal& signal) {
  WARPLOOM_TRY(const std::vector<double> flag, read_tile(site, signal.flag, 0));
  WARPLOOM_TRY(const std::int64_t by, value_of(site, signal.by));
  return write_tile(site, signal.flag, {flag[0] + static_cast<double>(by)});
}

// Blocks run one after another, so that only those before this one can have signalled.
Status run(const Site& site, const Wait& wait) {
  WARPLOOM_TRY(const std::vector<double> flag, read_tile(site, wait.flag, 0));
  WARPLOOM_TRY(const std::int64_t least, value_of(site, wait.least));
  if (flag[0] >= static_cast<double>(least)) return ok();
  return undefined(site,
                   fmt::format("a wait for '{}' that no block before this one ends", site.program.tensor(wait.flag.tensor).name),
                   fmt::format("at least {}", least), fmt::format("{}", flag[0]));
}

Status run(const Site& site, const Fill& fill) {
  const std::int64_t count = element_count(site.program.tensor(fill.dst).shape);
  return write_all(site, fill.dst, std::vector<double>(static_cast<std::size_t>(count), fill.value));
}

Status run(const Site& site, const Map& map) {
  const std::vector<std::int64_t>& shape = site.program.tensor(map.dst).shape;
  Operands operands;
  WARPLOOM_CHECK(gather(site, map.value, operands));
  std::vector<double> results(static_cast<std::size_t>(element_count(shape)));
  std::vector<std::int64_t> at(shape.size(), 0);
  for (double& result : results) {
    result = evaluate(site, map.value, operands, at);
    for (std::size_t i = at.size(); i-- > 0 && ++at[i] == shape[i];) at[i] = 0;
  }
  return write_all(site, map.dst, results);
}

Status run(const Site& site, const Mma& mma) {
  WARPLOOM_TRY(const Matrix a, read_matrix(site, mma.a, mma.transpose_a));
  WARPLOOM_TRY(const Matrix b, read_matrix(site, mma.b, mma.transpose_b));
  WARPLOOM_TRY(std::vector<double> acc, read_all(site, mma.acc));
  const Dtype type = site.program.tensor(mma.acc).dtype;
  for (std::int64_t m = 0; m < a.rows; ++m)
    for (std::int64_t k = 0; k < a.columns; ++k)
      for (std::int64_t n = 0; n < b.columns; ++n) {
        double& sum = acc[static_cast<std::size_t>(m * b.columns + n)];
        sum = accumulate(type, sum, a.at(m, k), b.at(k, n));
      }
  return write_all(site, mma.acc, acc);
}

float combine(ReduceOp op, float a, float b) { return static_cast<float>(apply(value_op_of(op), a, b)); }

// A Scan's values; of a Reduce the last ones along the axis.
template <class Node>
requires(std::is_same_v<Node, Reduce> || std::is_same_v<Node, Scan>) Status run(const Site& site, const Node& node) {
  const std::vector<std::int64_t>& shape = site.program.tensor(node.src).shape;
  const auto axis = static_cast<std::size_t>(node.axis), length = static_cast<std::size_t>(shape[axis]);
  const auto inner = static_cast<std::size_t>(dense_strides(shape)[axis]);
  WARPLOOM_TRY(std::vector<double> values, read_all(site, node.src));
  std::vector<double> last;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t k = i / inner % length;
    values[i] = k == 0 ? static_cast<float>(values[i])
                       : combine(node.op, static_cast<float>(values[i - inner]), static_cast<float>(values[i]));
    if (k + 1 == length) last.push_back(values[i]);
  }
  return write_all(site, node.dst, std::is_same_v<Node, Scan> ? values : last);
}

Status run(const Site& site, const Rearrange& rearrange) {
  WARPLOOM_TRY(const std::vector<double> values, read_all(site, rearrange.src));
  if (!rearrange.transpose) return write_all(site, rearrange.dst, values);
  const auto columns = static_cast<std::size_t>(site.program.tensor(rearrange.src).shape[1]);
  const std::size_t rows = values.size() / columns;
  std::vector<double> transposed;
  for (std::size_t i = 0; i < values.size(); ++i) transposed.push_back(values[i % rows * columns + i / rows]);
  return write_all(site, rearrange.dst, transposed);
}

Status run(const Site& site, const Reinterpret& reinterpret) {
  WARPLOOM_TRY(std::vector<double> values, read_all(site, reinterpret.src));
  const Tensor &src = site.program.tensor(reinterpret.src), &dst = site.program.tensor(reinterpret.dst);
  std::vector<std::byte> bytes(values.size());  // at most a byte each
  for (std::size_t i = 0; i < values.size(); ++i) store_from_double(src.dtype, bytes.data(), i, values[i]);
  values.resize(static_cast<std::size_t>(element_count(dst.shape)));
  load_run(dst.dtype, bytes.data(), 0, 1, static_cast<std::int64_t>(values.size()), values.data());
  return write_all(site, reinterpret.dst, values);
}
// Of shared and register tensors, all blocks of a cluster.
constexpr std::int64_t kMostElements = std::int64_t{1} << 27;

// Runs the blocks of one cluster together: each statement in all blocks that reach it, before the next statement.
class Cluster {
 public:
  Cluster(const Program& program, const Buffers& buffers) : program_(program), buffers_(buffers) {}

  Status run(const std::array<std::int64_t, 3>& first) {
    blocks_.assign(static_cast<std::size_t>(cluster_size(program_)), Block{});
    std::vector<Block*> all;
    for (std::size_t rank = 0; rank < blocks_.size(); ++rank) {
      place(blocks_[rank], first, static_cast<std::int64_t>(rank));
      all.push_back(&blocks_[rank]);
    }
    WARPLOOM_CHECK(body(program_.body, all));
    return check_drained();
  }

 private:
  using Active = std::vector<Block*>;

  void place(Block& block, const std::array<std::int64_t, 3>& first, std::int64_t rank) const {
    constexpr std::array kNames = {"block_x", "block_y", "block_z"};
    block.variables["cluster_rank"] = rank;
    for (std::size_t i = 0; i < 3; ++i) {
      block.variables[kNames[i]] = first[i] + rank % program_.cluster[i];
      rank /= program_.cluster[i];
    }
    block.tensors.resize(program_.tensors.size());
    block.queues.resize(program_.pipelines.size());
  }

  Site site(const Location& location, Block* block) const { return {program_, buffers_, location, *block}; }

  Status body(const Body& statements, const Active& active) {
    for (const Statement& statement : statements) {
      last_ = &statement.location;
      WARPLOOM_CHECK(std::visit([&](const auto& node) { return run_node(node, statement.location, active); }, statement.node));
    }
    return ok();
  }

  template <class Simple>
  Status run_node(const Simple& s, const Location& at, const Active& active) {
    for (Block* block : active) WARPLOOM_CHECK(tile::run(site(at, block), s));
    return ok();
  }

  // The tensors of the peer, the indices of the block itself.
  Status run_node(const Copy& s, const Location& at, const Active& active) {
    for (Block* block : active) {
      Block from{block->variables, block->tensors, {}};
      if (s.peer) {
        WARPLOOM_TRY(const std::int64_t rank, value_of(site(at, block), *s.peer));
        if (rank < 0 || rank >= cluster_size(program_))
          return undefined(site(at, block), "a copy from a peer that the cluster does not have",
                           fmt::format("a rank of 0 to {}", cluster_size(program_) - 1), std::to_string(rank));
        from.tensors = blocks_[static_cast<std::size_t>(rank)].tensors;
      }
      WARPLOOM_CHECK(tile::run(site(at, block), site(at, &from), s));
    }
    return ok();
  }
  Status run_node(const ClusterSync&, const Location& at, const Active& active) {
    if (active.size() == blocks_.size()) return ok();
    return undefined(site(at, active[0]), "some blocks of the cluster do not reach this cluster_sync");
  }
  Status run_node(const WaitPrevious&, const Location&, const Active&) { return ok(); }
  Status run_node(const LaunchNext&, const Location&, const Active&) { return ok(); }

  Status run_node(const ClusterReduce& s, const Location& at, const Active& active) {
    if (active.size() != blocks_.size())
      return undefined(site(at, active[0]), "some blocks of the cluster do not reach this cluster_reduce");
    std::vector<double> total;
    for (Block* block : active) {
      WARPLOOM_TRY(const std::vector<double> values, read_all(site(at, block), s.dst));
      for (std::size_t i = 0; i < total.size(); ++i)
        total[i] = combine(s.op, static_cast<float>(total[i]), static_cast<float>(values[i]));
      if (total.empty()) total = values;
    }
    for (Block* block : active) WARPLOOM_CHECK(write_all(site(at, block), s.dst, total));
    return ok();
  }

  // Blocks may disagree on a loop's bounds: each iteration runs in those that still have one.
  Status run_node(const For& s, const Location& at, const Active& active) {
    struct Range {
      Block* block;
      std::int64_t next, end, step;
      bool done;
    };
    std::vector<Range> ranges;
    for (Block* block : active) {
      const Site here = site(at, block);
      WARPLOOM_TRY(const std::int64_t begin, value_of(here, s.begin));
      WARPLOOM_TRY(const std::int64_t end, value_of(here, s.end));
      WARPLOOM_TRY(const std::int64_t step, value_of(here, s.step));
      if (step < 1) return undefined(here, "a loop's step is below 1", "a positive step", std::to_string(step));
      ranges.push_back({block, begin, end, step, begin >= end});
    }
    for (;;) {
      Active inside;
      for (Range& range : ranges) {
        if (range.done) continue;
        range.block->variables[s.variable] = range.next;
        inside.push_back(range.block);
        range.done = __builtin_add_overflow(range.next, range.step, &range.next) || range.next >= range.end;
      }
      if (inside.empty()) break;
      WARPLOOM_CHECK(body(s.body, inside));
    }
    for (Block* block : active) block->variables.erase(s.variable);
    return ok();
  }

  Status run_node(const If& s, const Location& at, const Active& active) {
    Active inside;
    for (Block* block : active) {
      WARPLOOM_TRY(const std::int64_t left, value_of(site(at, block), s.left));
      WARPLOOM_TRY(const std::int64_t right, value_of(site(at, block), s.right));
      if (left < right) inside.push_back(block);
    }
    return inside.empty() ? ok() : body(s.body, inside);
  }

  // A slot's tensors are bound to their names while a Produce or Consume runs.
  void bind(Block* block, PipelineId id, const std::vector<std::shared_ptr<Storage>>& slot) const {
    const std::vector<TensorId>& tensors = program_.pipeline(id).tensors;
    for (std::size_t i = 0; i < tensors.size(); ++i) block->tensors[static_cast<std::size_t>(tensors[i])] = slot[i];
  }
  void unbind(Block* block, PipelineId id) const {
    bind(block, id, std::vector<std::shared_ptr<Storage>>(program_.pipeline(id).tensors.size()));
  }

  Status run_node(const Produce& s, const Location& at, const Active& active) {
    const Pipeline& pipeline = program_.pipeline(s.pipeline);
    for (Block* block : active) {
      Queue& queue = block->queues[static_cast<std::size_t>(s.pipeline)];
      const std::size_t full = queue.slots.size() - (role_ < 0 && queue.taken.count(role_) ? queue.taken[role_] : 0);
      // One thread of control that waits for itself waits forever; different roles wait for each other.
      if (role_ < 0 && full >= static_cast<std::size_t>(pipeline.stages))
        return undefined(site(at, block), fmt::format("every stage of '{}' is full and nobody else can empty one", pipeline.name),
                         fmt::format("at most {} slots produced ahead", pipeline.stages));
      unbind(block, s.pipeline);
    }
    WARPLOOM_CHECK(body(s.body, active));
    for (Block* block : active) {
      std::vector<std::shared_ptr<Storage>> slot;
      for (const TensorId tensor : pipeline.tensors) slot.push_back(block->tensors[static_cast<std::size_t>(tensor)]);
      block->queues[static_cast<std::size_t>(s.pipeline)].slots.push_back(std::move(slot));
      unbind(block, s.pipeline);
    }
    return ok();
  }

  Status run_node(const Consume& s, const Location& at, const Active& active) {
    for (Block* block : active) {
      Queue& queue = block->queues[static_cast<std::size_t>(s.pipeline)];
      std::size_t& taken = queue.taken[role_];
      if (taken >= queue.slots.size())
        return undefined(site(at, block),
                         fmt::format("'{}' is consumed and has no slot left", program_.pipeline(s.pipeline).name),
                         fmt::format("more than {} slots produced", queue.slots.size()));
      bind(block, s.pipeline, queue.slots[taken]);
      if (role_ < 0) queue.slots[taken].clear();  // nobody else will read it
      ++taken;
    }
    WARPLOOM_CHECK(body(s.body, active));
    for (Block* block : active) unbind(block, s.pipeline);
    return ok();
  }

  Status run_node(const Roles& s, const Location&, const Active& active) {
    for (std::size_t i = 0; i < s.roles.size(); ++i) {
      role_ = static_cast<int>(i);
      WARPLOOM_CHECK(body(s.roles[i].body, active));
    }
    role_ = -1;
    return ok();
  }

  // A slot that another role filled and nobody frees is a fault of the roles' counting. Within one thread of control a software
  // pipeline may run ahead of its loop's end, into tiles that lie outside their tensors.
  Status check_drained() {
    for (Block& block : blocks_)
      for (std::size_t id = 0; id < block.queues.size(); ++id) {
        const Queue& queue = block.queues[id];
        if (queue.taken.count(-1)) continue;
        std::size_t least = queue.taken.empty() ? 0 : queue.slots.size();
        for (const auto& [role, taken] : queue.taken) least = std::min(least, taken);
        if (least != queue.slots.size())
          return undefined(site(*last_, &block),
                           fmt::format("pipeline '{}' ends with slots that nobody consumed", program_.pipelines[id].name),
                           fmt::format("{} slots consumed by each", queue.slots.size()), std::to_string(least));
      }
    return ok();
  }

  const Program& program_;
  const Buffers& buffers_;
  std::vector<Block> blocks_;
  int role_ = -1;
  const Location* last_ = nullptr;  // of the statement that ran last
};

Status check_buffers(const Program& program, const Buffers& buffers) {
  for (const Tensor& tensor : program.tensors) {
    if (tensor.scope != Scope::global) continue;
    std::int64_t last = 0;
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) last += (tensor.shape[i] - 1) * tensor.strides[i];
    const auto needed = static_cast<std::size_t>(bytes_of(tensor.dtype, last + 1));
    const auto found = buffers.find(tensor.name);
    const std::size_t given = found == buffers.end() ? 0 : found->second.size();
    if (given < needed)
      return fail({ErrorCode::kTileRuntime, "a global tensor has no buffer, or one that is too small",
                   fmt::format("program '{}': tensor '{}'", program.name, tensor.name), fmt::format("{} bytes", needed),
                   fmt::format("{} bytes", given), "give a buffer for each global tensor by its name"});
  }
  return ok();
}

Status check_memory(const Program& program) {
  std::int64_t elements = 0;  // each tensor has at most 2^48 of them and there are fewer than 2^14 tensors
  for (const Tensor& tensor : program.tensors) {
    if (tensor.scope != Scope::global) elements += element_count(tensor.shape);
    if (elements > kMostElements / cluster_size(program))
      return fail({ErrorCode::kTileRuntime, "the shared and register tensors are too large to interpret",
                   fmt::format("program '{}': tensor '{}'", program.name, tensor.name),
                   fmt::format("{} elements a cluster at most", kMostElements), "", "use smaller tiles"});
  }
  return ok();
}
}  // namespace
Status interpret(const Program& program, const Buffers& buffers) {
  WARPLOOM_CHECK(verify(program));
  WARPLOOM_CHECK(check_buffers(program, buffers));
  WARPLOOM_CHECK(check_memory(program));
  for (const Tensor& tensor : program.tensors)
    if (tensor.zeroed) std::ranges::fill(buffers.at(tensor.name), std::byte{0});
  for (std::int64_t z = 0; z < program.grid[2]; z += program.cluster[2])
    for (std::int64_t y = 0; y < program.grid[1]; y += program.cluster[1])
      for (std::int64_t x = 0; x < program.grid[0]; x += program.cluster[0])
        WARPLOOM_CHECK(Cluster(program, buffers).run({x, y, z}));
  return ok();
}
}  // namespace warploom::tile
