// Pipelines. Between roles: full and empty barriers in shared memory, one pair a slot; the producer waits for empty, the copy
// engine signals full, each consuming warp signals empty. In one thread of control: cp.async groups, one a slot, and one barrier
// of the block at the head of every Consume, which also proves that the slot the next Produce overwrites has been read, unless all
// other slots are full: then that slot is the one just read, and a barrier of its own stands before the Produce.

#include "codegen/cuda_emitter.h"
namespace warploom::codegen {
namespace {
struct Rings {
  std::set<PipelineId> produced, consumed, lagging;
};

Rings rings_in(std::span<const Statement> body) {
  Rings rings;
  for (const Statement& statement : body)
    for_statements(statement, [&](const Statement& one) {
      if (const auto* node = std::get_if<Produce>(&one.node)) rings.produced.insert(node->pipeline);
      const auto* node = std::get_if<Consume>(&one.node);
      if (node) rings.consumed.insert(node->pipeline);
      if (node && node->lag > 0) rings.lagging.insert(node->pipeline);
    });
  return rings;
}
}  // namespace
void CudaEmitter::barrier_setup() {
  if (meetings_) {
    out_.line("const unsigned met = smem + {};  // two barriers, which the rounds of cluster reductions take by turns",
              *meetings_);
    out_.line("int meeting = 0;");
  }
  if (!barriers_.empty() || meetings_) {
    const auto one = out_.block_if("wl::thread() == 0");
    for (int parity = 0; meetings_ && parity < 2; ++parity) out_.line("wl::mbarrier_init(met + {}, 1);", parity * kBarrierBytes);
    for (const auto& [id, offset] : barriers_) {
      const Pipeline& pipeline = program_.pipeline(id);
      int consuming_warps = 0;
      std::set<int> counted;
      for (const auto& site : sites_)
        if (const auto* node = std::get_if<Consume>(&site.statement->node);
            node && node->pipeline == id && counted.insert(site.role).second)
          consuming_warps += site.threads / 32;
      const auto slots = out_.block("for (int slot = 0; slot < {}; ++slot) {{", pipeline.stages);
      out_.line("wl::mbarrier_init({}_full + 8 * slot, 1);", pipeline.name);
      if (fills_again(id))
        out_.line("wl::mbarrier_init({}_empty + 8 * slot, {});", pipeline.name, consuming_warps * peers_of(id).blocks());
    }
    out_.line("wl::fence_mbarrier_init();");
  }
  if (cluster_size(program_) > 1) out_.line("wl::cluster_sync();  // every block of the cluster has started");
  else if (!barriers_.empty()) out_.line("wl::sync_threads();");
}

void CudaEmitter::pipeline_counters(std::span<const Statement> body) {
  const Rings rings = rings_in(body);
  std::set<PipelineId> all = rings.produced;
  all.insert(rings.consumed.begin(), rings.consumed.end());
  for (const PipelineId id : all) {
    const std::string& name = program_.pipeline(id).name;
    if (barriers_.count(id)) {
      out_.line("int {0}_slot = 0;", name);
      out_.line("unsigned {}_phase = 0;", name);
      if (const Peers peers = peers_of(id); rings.consumed.count(id) && peers.blocks() > 1)
        out_.line("const unsigned {}_peers = {};  // ranks of the blocks that fill this block's slots", name, peers.mask);
      if (rings.lagging.count(id))
        out_.line("bool {}_pending = false;  // matrix instructions of the slot before are still under way", name);
    } else {
      out_.line("int {0}_write = 0, {0}_read = 0;", name);
    }
  }
}

// The slot is done with: on to the next one, and between roles to its phase.
void CudaEmitter::advance(const Pipeline& pipeline, bool phase) {
  if (phase && fills_again(slot_of_))
    out_.line("if (++{0} == {1}) {0} = 0, {2}_phase ^= 1;", slot_stage_, pipeline.stages, pipeline.name);
  else if (!phase) out_.line("{0} = {0} + 1 == {1} ? 0 : {0} + 1;", slot_stage_, pipeline.stages);
  slot_of_ = -1;
  slot_stage_.clear();
}

void CudaEmitter::emit(const Produce& node) {
  const Pipeline& pipeline = program_.pipeline(node.pipeline);
  slot_of_ = node.pipeline;
  out_.line("// produce {}", pipeline.name);
  if (barriers_.count(node.pipeline)) {
    slot_stage_ = pipeline.name + "_slot";
    std::int64_t bytes = 0;
    for (const Statement& statement : node.body)
      if (const auto* copy = std::get_if<Copy>(&statement.node))
        bytes += bytes_of(tensor(copy->dst.tensor).dtype, element_count(copy->dst.extent));
    if (fills_again(node.pipeline))
      out_.line("wl::mbarrier_wait{1}({0}_empty + 8 * {0}_slot, {0}_phase ^ 1);", pipeline.name,
                peers_of(node.pipeline).blocks() > 1 ? "_cluster" : "");
    out_.line("wl::mbarrier_arrive_expect_tx({0}_full + 8 * {0}_slot, {1});", pipeline.name, bytes);
    body(node.body);
    advance(pipeline, true);
  } else {
    slot_stage_ = pipeline.name + "_write";
    if (in_flight_.at(&node).most + 1 >= pipeline.stages && now_.consumed.contains(node.pipeline)) meet();
    body(node.body);
    out_.line("wl::cp_async_commit();");
    advance(pipeline, false);
  }
}

void CudaEmitter::emit(const Consume& node) {
  const Pipeline& pipeline = program_.pipeline(node.pipeline);
  const auto around = std::pair(std::exchange(slot_of_, node.pipeline), slot_stage_);
  const auto leave = [&](bool phase) {
    advance(pipeline, phase);
    std::tie(slot_of_, slot_stage_) = around;
  };
  out_.line("// consume {}", pipeline.name);
  if (!barriers_.count(node.pipeline)) {
    slot_stage_ = pipeline.name + "_read";
    out_.line("wl::cp_async_wait<{}>();", in_flight_.at(&node).groups - 1);
    meet();
    body(node.body);
    if (now_.wgmma_open) finish_matrix(0);
    now_.consumed.insert(node.pipeline);
    return leave(false);
  }
  slot_stage_ = pipeline.name + "_slot";
  out_.line("wl::mbarrier_wait({0}_full + 8 * {0}_slot, {0}_phase);", pipeline.name);
  slot_read_ = false;
  body(node.body);
  bool multiplies = false;
  for (const Statement& statement : node.body)
    for_statements(statement, [&](const Statement& one) { multiplies |= std::holds_alternative<Mma>(one.node); });
  const bool matrix = multiplies && now_.wgmma_open;
  // Whatever fills lent registers again waits before it does. One consumed within may have let matrix instructions run on.
  if (matrix) finish_matrix(node.lag);
  else if (multiplies && node.lag == 0 && !now_.accumulators.empty() && fills_again(node.pipeline)) finish_matrix(0);
  if (!fills_again(node.pipeline)) return leave(true);
  if (!matrix || slot_read_) out_.line("wl::sync_warp();");
  if (node.lag > 0) release_last(node.pipeline, true);
  else release_slot(node.pipeline, slot_stage_);
  leave(true);
}

// The slot that the finished matrix instructions have read is the one before; the first round of a loop has none.
void CudaEmitter::release_last(PipelineId id, bool more) {
  const Pipeline& pipeline = program_.pipeline(id);
  out_.open("if ({}_pending) {{", pipeline.name);
  out_.line("const int done = {0}_slot == 0 ? {1} : {0}_slot - 1;", pipeline.name, pipeline.stages - 1);
  release_slot(id, "done");
  if (!more) out_.line("{}_pending = false;", pipeline.name);
  out_.close();
  if (more) out_.line("{}_pending = true;", pipeline.name);
}

// After a loop whose Consumes let matrix instructions run on: wait for them and free their slots.
void CudaEmitter::drain(const Body& body) {
  std::vector<PipelineId> lagging;
  const auto visit = [&](const auto& self, const Body& statements) -> void {
    for (const Statement& statement : statements)
      if (const auto* node = std::get_if<Consume>(&statement.node)) {
        const bool known = std::ranges::count(lagging, node->pipeline) > 0;
        if (node->lag > 0 && barriers_.count(node->pipeline) && !known) lagging.push_back(node->pipeline);
        self(self, node->body);
      }
  };
  visit(visit, body);
  if (!lagging.empty()) finish_matrix(0);
  for (const PipelineId id : lagging) release_last(id, false);
  if (std::ranges::any_of(rings_in(body).consumed, [&](PipelineId id) { return !barriers_.count(id); }))
    out_.line("wl::cp_async_wait<0>();");
}
namespace {
constexpr std::int64_t kMostTurns = 8;  // of a loop that is followed turn by turn

using Counts = std::map<PipelineId, SlotsInFlight>;

SlotsInFlight either(const SlotsInFlight& a, const SlotsInFlight& b) {
  return {std::min(a.least, b.least), std::max(a.most, b.most), std::min(a.groups, b.groups)};
}

void join(Counts& counts, Counts other) {
  for (const auto& [id, range] : other) counts.try_emplace(id);
  for (auto& [id, range] : counts) range = either(range, other[id]);
}

bool rises(const Index& index, const std::string& variable) {
  if (!index.depends_on(variable) || index.op() == IndexOp::variable) return true;
  if (index.op() == IndexOp::add) return rises(index.left(), variable) && rises(index.right(), variable);
  return index.op() == IndexOp::mul && index.right().constant().value_or(-1) >= 0 && rises(index.left(), variable);
}

// The pipeline of the only Produce of a loop's turn, where no later turn fills a slot once the condition is false.
PipelineId running_out(const If& branch, const For* around) {
  if (!around || branch.right.depends_on(around->variable) || !rises(branch.left, around->variable)) return -1;
  for (const Statement& inner : branch.body)
    if (const auto* node = std::get_if<Produce>(&inner.node))
      return produces(around->body, node->pipeline) == 1 ? node->pipeline : -1;
  return -1;
}

struct Walk {
  const Program& program;
  std::map<const void*, SlotsInFlight> before = {};

  void note(const void* node, PipelineId pipeline, Counts& counts, int step) {
    SlotsInFlight& now = counts[pipeline];
    const int low = step > 0 ? 0 : 1, high = step > 0 ? program.pipeline(pipeline).stages - 1 : INT_MAX;
    now = {std::clamp(now.least, low, high), std::clamp(now.most, low, high), std::clamp(now.groups, low, high)};
    const auto [known, fresh] = before.try_emplace(node, now);
    if (!fresh) known->second = either(known->second, now);
    now.least += step, now.most += step, now.groups += step;
  }

  void body(const Body& statements, Counts& counts, const For* around = nullptr) {
    for (const Statement& statement : statements) {
      if (const auto* loop = std::get_if<For>(&statement.node)) {
        const auto begin = loop->begin.constant(), end = loop->end.constant(), step = loop->step.constant();
        const std::int64_t turns = begin && end && step ? (std::max(*end - *begin, std::int64_t{0}) + *step - 1) / *step : -1;
        if (turns >= 0 && turns <= kMostTurns) {
          for (std::int64_t turn = 0; turn < turns; ++turn) body(loop->body, counts, loop);
        } else {
          Counts entry;
          do {
            Counts after = entry = counts;
            body(loop->body, after, loop);
            join(counts, std::move(after));
          } while (entry != counts);
        }
        for (auto& [id, range] : counts) range.groups = range.least;
      } else if (const auto* branch = std::get_if<If>(&statement.node)) {
        Counts after = counts;
        body(branch->body, after, around);
        if (const PipelineId id = running_out(*branch, around); id >= 0) ++counts[id].groups;
        join(counts, std::move(after));
      } else if (const auto* produce = std::get_if<Produce>(&statement.node)) {
        note(produce, produce->pipeline, counts, 1);
      } else if (const auto* consume = std::get_if<Consume>(&statement.node)) {
        body(consume->body, counts, around);
        note(consume, consume->pipeline, counts, -1);
      } else if (const auto* roles = std::get_if<Roles>(&statement.node)) {
        for (const Role& role : roles->roles) body(role.body, counts);
      }
    }
  }
};
}  // namespace
int produces(const Body& body, PipelineId pipeline) {
  constexpr int kMany = 1 << 20;
  int count = 0;
  for (const Statement& statement : body) {
    if (const auto* node = std::get_if<Produce>(&statement.node)) count += node->pipeline == pipeline;
    for_bodies(statement, [&](const Body& inner) {
      const int within = produces(inner, pipeline);
      count += within > 0 && std::holds_alternative<For>(statement.node) ? kMany : std::min(within, kMany);
    });
  }
  return std::min(count, kMany);
}

std::map<const void*, SlotsInFlight> slots_in_flight(const Program& program) {
  Walk walk{program};
  Counts counts;
  walk.body(program.body, counts);
  return walk.before;
}
}  // namespace warploom::codegen
