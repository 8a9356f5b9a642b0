// Pipelines. Between roles: full and empty barriers in shared memory, one pair a slot; the producer
// waits for empty, the copy engine signals full, each consuming warp signals empty. In one thread
// of control: cp.async groups, one a slot, and one barrier of the block at the head of every
// Consume, which also proves that the slot the next Produce overwrites has been read, unless all
// other slots are full: then that slot is the one just read, and a barrier of its own stands before
// the Produce. And what blocks have with each other: fetches that a cluster shares, flags.

#include "codegen/cuda_emitter.h"

namespace warploom::codegen {
namespace {
struct UseOfSlots {
  // reads: by the threads, into registers
  bool multiplies = false;
  bool reads = false;
  bool lags = false;
};

UseOfSlots use_in(const Program& program, const Consume& node) {
  UseOfSlots use{.lags = node.lag > 0};
  for (const Statement& statement : node.body)
    for_statements(statement, [&](const Statement& one) {
      const auto* copy = one.as<Copy>();
      use.multiplies |= one.is<Mma>();
      use.reads |= copy && program.tensor(copy->src.tensor).pipeline == node.pipeline &&
                   program.tensor(copy->dst.tensor).scope == Scope::reg;
    });
  return use;
}

// Of the pipelines that are produced or consumed; nothing of a consumer where there is none.
std::map<PipelineId, std::optional<UseOfSlots>> rings_in(const Program& program,
                                                         std::span<const Statement> body) {
  std::map<PipelineId, std::optional<UseOfSlots>> rings;
  for (const Statement& statement : body)
    for_statements(statement, [&](const Statement& one) {
      if (const auto* node = one.as<Produce>()) rings.try_emplace(node->pipeline);
      if (const auto* node = one.as<Consume>()) {
        const UseOfSlots use = use_in(program, *node);
        UseOfSlots& all = rings[node->pipeline].emplace(rings[node->pipeline].value_or(use));
        all.multiplies |= use.multiplies;
        all.lags |= use.lags;
      }
    });
  return rings;
}
}  // namespace

void CudaEmitter::pipeline_counters(std::span<const Statement> body) {
  for (const auto& [id, use] : rings_in(program_, body)) {
    const std::string& name = program_.pipeline(id).name;
    if (barriers_.count(id)) {
      out_.line("int {0}_slot = 0;", name);
      out_.line("unsigned {}_phase = 0;", name);
      if (const Peers peers = peers_of(id); use && peers.blocks() > 1)
        out_.line(
            "const unsigned {}_peers = {};  // ranks of the blocks that fill this block's slots",
            name, peers.mask);
      if (use && use->lags)
        out_.line("bool {}_pending = false;  // {}", name,
                  use->multiplies ? "matrix instructions of the slot before are still under way"
                                  : "the slot before has not been handed back");
    } else {
      out_.line("int {0}_write = 0, {0}_read = 0;", name);
    }
  }
}

// The slot is done with: on to the next one, and between roles to its phase.
void CudaEmitter::advance(const Pipeline& pipeline, bool phase) {
  if (phase && fills_again(slot_of_))
    out_.line("if (++{0} == {1}) {0} = 0, {2}_phase ^= 1;", slot_stage_, pipeline.stages,
              pipeline.name);
  else if (!phase)
    out_.line("{0} = {0} + 1 == {1} ? 0 : {0} + 1;", slot_stage_, pipeline.stages);
  slot_of_ = -1;
  slot_stage_.clear();
}

void CudaEmitter::emit(const Produce& node) {
  const Pipeline& pipeline = program_.pipeline(node.pipeline);
  slot_of_ = node.pipeline;
  out_.line("// produce {}", pipeline.name);
  if (barriers_.count(node.pipeline)) {
    slot_stage_ = pipeline.name + "_slot";
    int64_t bytes = 0;
    for (const Statement& statement : node.body)
      if (const auto* copy = statement.as<Copy>())
        bytes += bytes_of(tensor(copy->dst.tensor).dtype, element_count(copy->dst.extent));
    if (fills_again(node.pipeline))
      out_.line("wl::mbarrier_wait{1}({0}_empty + 8 * {0}_slot, {0}_phase ^ 1);", pipeline.name,
                peers_of(node.pipeline).blocks() > 1 ? "_cluster" : "");
    out_.line("wl::mbarrier_arrive_expect_tx({0}_full + 8 * {0}_slot, {1});", pipeline.name, bytes);
    body(node.body);
    advance(pipeline, true);
  } else {
    slot_stage_ = pipeline.name + "_write";
    if (in_flight_.at(&node).most + 1 >= pipeline.stages && now_.consumed.contains(node.pipeline))
      meet();
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
  const UseOfSlots use = use_in(program_, node);
  // A slot that lags is handed back when the next one is there: threads have what they read by
  // then, and the fence waits for nothing.
  const bool refilled = fills_again(node.pipeline);
  const bool lags = refilled && node.lag > 0;
  const bool late = lags && !use.multiplies;
  if (lags && use.reads) fence_reads();
  if (late) release_last(node.pipeline, true);
  body(node.body);
  const bool matrix = use.multiplies && now_.wgmma_open;
  // Whatever fills lent registers again waits before it does. One consumed within may have let
  // matrix instructions run on.
  if (matrix)
    finish_matrix(node.lag);
  else if (use.multiplies && node.lag == 0 && !now_.under_way.empty() && refilled)
    finish_matrix(0);
  if (!refilled || late) return leave(true);
  if (use.reads && !lags) fence_reads();
  if (!matrix && !use.reads) out_.line("wl::sync_warp();");
  if (lags)
    release_last(node.pipeline, true);
  else
    release_slot(node.pipeline, slot_stage_);
  leave(true);
}

void CudaEmitter::fence_reads() {
  out_.line(
      "wl::fence_async_shared();  // what the threads read, before the copy engine fills the slot "
      "again");
  out_.line("wl::sync_warp();");
}

// The slot that the finished matrix instructions, or the threads, have read is the one before; the
// first round of a loop has none.
void CudaEmitter::release_last(PipelineId id, bool more) {
  const Pipeline& pipeline = program_.pipeline(id);
  out_.open("if ({}_pending) {{", pipeline.name);
  out_.line("const int done = {0}_slot == 0 ? {1} : {0}_slot - 1;", pipeline.name,
            pipeline.stages - 1);
  release_slot(id, "done");
  if (!more) out_.line("{}_pending = false;", pipeline.name);
  out_.close();
  if (more) out_.line("{}_pending = true;", pipeline.name);
}

// After a loop whose Consumes lag: wait for their matrix instructions and free their slots.
void CudaEmitter::drain(const Body& body) {
  std::map<PipelineId, bool> lagging;  // whether threads read its slots, too
  const auto visit = [&](const auto& self, const Body& statements) -> void {
    for (const Statement& statement : statements)
      if (const auto* node = statement.as<Consume>()) {
        const UseOfSlots use = use_in(program_, *node);
        if (node->lag > 0 && use.multiplies && barriers_.count(node->pipeline))
          lagging[node->pipeline] |= use.reads;
        self(self, node->body);
      }
  };
  visit(visit, body);
  if (!lagging.empty()) finish_matrix(0);
  for (const auto& [id, reads] : lagging) {
    if (reads) fence_reads();
    release_last(id, false);
  }
  if (std::ranges::any_of(rings_in(program_, body), [&](const auto& ring) {
        return ring.second && !barriers_.count(ring.first);
      }))
    out_.line("wl::cp_async_wait<0>();");
}

Peers peers_along(const Program& program, const std::string& dimensions) {
  Peers peers;
  Index own = 0;  // the block's rank less that of the first of them
  const int total = static_cast<int>(cluster_size(program));
  int stride = 1;
  for (size_t d = 0; d < 3; ++d) {
    const int extent = static_cast<int>(program.cluster[d]);
    const int above = stride * extent;
    if (extent > 1 && dimensions.find("xyz"[d]) != dimensions.npos) {
      const Index at = above == total ? cluster_rank() / stride : cluster_rank() / stride % extent;
      peers.share = peers.share + at * peers.blocks();
      own = own + at * stride;
      for (unsigned i = 1, row = peers.ranks; i < static_cast<unsigned>(extent); ++i)
        peers.ranks |= row << i * stride;
    }
    stride = above;
  }
  peers.mask = peers.blocks() == total
                   ? std::to_string(peers.ranks)
                   : fmt::format("({} << ({}))", peers.ranks, (cluster_rank() - own).text());
  return peers;
}

Peers CudaEmitter::peers_of(PipelineId id) const {
  Peers all;
  std::set<std::string> masks;
  for (const auto& site : sites_)
    if (const auto* copy = site.statement->as<Copy>(); copy && site.producing == id) {
      const Peers some = peers_along(program_, copy->multicast);
      all.ranks |= some.ranks;
      if (some.blocks() > 1) masks.insert(some.mask);
    }
  if (all.blocks() == cluster_size(program_)) masks = {std::to_string(all.ranks)};
  all.mask = fmt::format("{}", fmt::join(masks, " | "));
  return all;
}

// Each consuming warp frees the slot in every block whose fetches reach this one.
void CudaEmitter::release_slot(PipelineId id, const std::string& slot) {
  const std::string& name = program_.pipeline(id).name;
  if (peers_of(id).blocks() > 1)
    out_.line(
        "if ({0}_peers >> wl::lane() & 1) wl::mbarrier_arrive_cluster({0}_empty + 8 * {1}, "
        "wl::lane());",
        name, slot);
  else
    out_.line("if (wl::lane() == 0) wl::mbarrier_arrive({}_empty + 8 * {});", name, slot);
}

void CudaEmitter::emit(const Signal& node) {
  if (!single_thread_) meet();
  const auto one = out_.block_if(single_thread_ ? "" : "t == 0");
  if (!now_.engine_reads.empty())
    out_.line("wl::bulk_wait<0>();  // what the engine stored is to be seen too");
  out_.line("wl::signal_flag({}, {});", place_in(node.flag, node.flag.offset).address,
            node.by.text());
}

void CudaEmitter::emit(const Wait& node) {
  out_.line("{}wl::wait_flag({}, {});", single_thread_ ? "" : "if (t == 0) ",
            place_in(node.flag, node.flag.offset).address, node.least.text());
  if (!single_thread_) meet();
}

void CudaEmitter::emit(const ClusterSync&) {
  out_.line("wl::cluster_sync();");
  now_.met();
}

namespace {
constexpr int64_t kMostTurns = 8;  // of a loop that is followed turn by turn

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
  if (index.op() == IndexOp::add)
    return rises(index.left(), variable) && rises(index.right(), variable);
  return index.op() == IndexOp::mul && index.right().constant().value_or(-1) >= 0 &&
         rises(index.left(), variable);
}

// The pipeline of the only Produce of a loop's turn, where no later turn fills a slot once the
// condition is false.
PipelineId running_out(const If& branch, const For* around) {
  if (!around || branch.right.depends_on(around->variable) || !rises(branch.left, around->variable))
    return -1;
  for (const Statement& inner : branch.body)
    if (const auto* node = inner.as<Produce>())
      return produces(around->body, node->pipeline) == 1 ? node->pipeline : -1;
  return -1;
}

struct Walk {
  const Program& program;
  std::map<const void*, SlotsInFlight> before = {};

  void note(const void* node, PipelineId pipeline, Counts& counts, int step) {
    SlotsInFlight& now = counts[pipeline];
    const int low = step > 0 ? 0 : 1;
    const int high = step > 0 ? program.pipeline(pipeline).stages - 1 : INT_MAX;
    now = {std::clamp(now.least, low, high), std::clamp(now.most, low, high),
           std::clamp(now.groups, low, high)};
    const auto [known, fresh] = before.try_emplace(node, now);
    if (!fresh) known->second = either(known->second, now);
    now.least += step;
    now.most += step;
    now.groups += step;
  }

  void body(const Body& statements, Counts& counts, const For* around = nullptr) {
    for (const Statement& statement : statements) {
      if (const auto* loop = statement.as<For>()) {
        const auto begin = loop->begin.constant();
        const auto end = loop->end.constant();
        const auto step = loop->step.constant();
        const int64_t turns =
            begin && end && step ? ceil_div(std::max(*end - *begin, int64_t{0}), *step) : -1;
        if (turns >= 0 && turns <= kMostTurns) {
          for (int64_t turn = 0; turn < turns; ++turn) body(loop->body, counts, loop);
        } else {
          Counts entry;
          do {
            Counts after = entry = counts;
            body(loop->body, after, loop);
            join(counts, std::move(after));
          } while (entry != counts);
        }
        for (auto& [id, range] : counts) range.groups = range.least;
      } else if (const auto* branch = statement.as<If>()) {
        Counts after = counts;
        body(branch->body, after, around);
        if (const PipelineId id = running_out(*branch, around); id >= 0) ++counts[id].groups;
        join(counts, std::move(after));
      } else if (const auto* produce = statement.as<Produce>()) {
        note(produce, produce->pipeline, counts, 1);
      } else if (const auto* consume = statement.as<Consume>()) {
        body(consume->body, counts, around);
        note(consume, consume->pipeline, counts, -1);
      } else if (const auto* roles = statement.as<Roles>()) {
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
    if (const auto* node = statement.as<Produce>()) count += node->pipeline == pipeline;
    for_bodies(statement, [&](const Body& inner) {
      const int within = produces(inner, pipeline);
      count += within > 0 && statement.is<For>() ? kMany : std::min(within, kMany);
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
