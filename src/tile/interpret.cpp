#include "tile/interpret.h"
#include "tile/machine.h"
#include "tile/shape.h"
#include "tile/verify.h"
namespace warploom::tile {
namespace {
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
