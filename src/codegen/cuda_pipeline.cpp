// Pipelines. Between roles: full and empty barriers in shared memory, one pair a stage; the
// producer waits for empty, tma signals full, each consuming warp signals empty. In one thread of
// control: cp.async groups, one a stage, and one barrier of the block at the head of every Consume,
// which also proves that the stage the next Produce overwrites has been read, unless all others
// are full: then that stage is the one just read, and a barrier of its own stands before
// the Produce. And what blocks have with each other: fetches that a cluster shares, flags.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include "base/casts.h"
#include "base/dtype.h"
#include "codegen/cuda_analysis.h"
#include "codegen/cuda_emitter.h"
#include "codegen/pipeline_stages.h"
#include "codegen/synchronization.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::codegen {
void CudaEmitter::pipeline_counters(std::span<const Statement> body) {
  for (const auto& [id, use] : pipelines_in(program_, body)) {
    const std::string& name = program_.pipeline(id).name;
    if (analysis_.has_barriers(id)) {
      out_.line("int {0}_stage = 0;", name);
      out_.line("unsigned {}_phase = 0;", name);
      if (const Peers peers = peers_of(id); use && peers.blocks() > 1)
        out_.line(
            "const unsigned {}_peers = {};  // ranks of the blocks that fill this block's stages",
            name, peers.mask);
      if (use && use->lags)
        out_.line("bool {}_pending = false;  // {}", name,
                  use->multiplies ? "matrix instructions of the stage before are still under way"
                                  : "the stage before has not been handed back");
    } else {
      out_.line("int {0}_write = 0, {0}_read = 0;", name);
    }
  }
}

// The stage is done with: on to the next one, and between roles to its phase.
void CudaEmitter::advance(const Pipeline& pipeline, bool phase) {
  if (phase && fills_again(program_, stage_of_))
    out_.line("if (++{0} == {1}) {0} = 0, {2}_phase ^= 1;", stage_number_, pipeline.stages,
              pipeline.name);
  else if (!phase)
    out_.line("{0} = {0} + 1 == {1} ? 0 : {0} + 1;", stage_number_, pipeline.stages);
  stage_of_ = -1;
  stage_number_.clear();
}

void CudaEmitter::emit(const Produce& node) {
  const Pipeline& pipeline = program_.pipeline(node.pipeline);
  stage_of_ = node.pipeline;
  out_.line("// produce {}", pipeline.name);
  if (analysis_.has_barriers(node.pipeline)) {
    stage_number_ = pipeline.name + "_stage";
    int64_t bytes = 0;
    for (const Statement& statement : node.body)
      if (const auto* copy = statement.as<Copy>())
        bytes += bytes_of(tensor(copy->dst.tensor).dtype, element_count(copy->dst.extent));
    const char* reach = peers_of(node.pipeline).blocks() > 1 ? "_cluster" : "";
    if (fills_again(program_, node.pipeline))
      out_.line("wl::mbarrier_wait{1}({0}_empty + 8 * {0}_stage, {0}_phase ^ 1);", pipeline.name,
                reach);
    out_.line("wl::mbarrier_arrive_expect_tx({0}_full + 8 * {0}_stage, {1});", pipeline.name,
              bytes);
    body(node.body);
    advance(pipeline, true);
  } else {
    stage_number_ = pipeline.name + "_write";
    synchronize(SyncPart::inside);
    body(node.body);
    out_.line("wl::cp_async_commit();");
    advance(pipeline, false);
  }
}

void CudaEmitter::emit(const Consume& node) {
  const Pipeline& pipeline = program_.pipeline(node.pipeline);
  const auto around = std::pair(std::exchange(stage_of_, node.pipeline), stage_number_);
  const auto leave = [&](bool phase) {
    advance(pipeline, phase);
    std::tie(stage_of_, stage_number_) = around;
  };
  const StatementId id = at_->id;
  out_.line("// consume {}", pipeline.name);
  if (!analysis_.has_barriers(node.pipeline)) {
    stage_number_ = pipeline.name + "_read";
    out_.line("wl::cp_async_wait<{}>();", analysis_.in_flight.at(id).groups - 1);
    synchronize(SyncPart::inside);
    body(node.body);
    synchronize({id, SyncPart::after});
    return leave(false);
  }
  stage_number_ = pipeline.name + "_stage";
  out_.line("wl::mbarrier_wait({0}_full + 8 * {0}_stage, {0}_phase);", pipeline.name);
  const StageUse use = use_in(program_, node);
  // A stage that lags is released when the next one is there: threads have what they read by
  // then, and the fence waits for nothing.
  const bool refilled = fills_again(program_, node.pipeline);
  const bool lags = refilled && node.mma_in_flight > 0;
  const bool late = lags && !use.multiplies;
  if (lags && use.reads) fence_reads();
  if (late) release_last(node.pipeline, true);
  body(node.body);
  const auto& after = sync_.at({id, SyncPart::after});
  const bool multiplied = std::ranges::count(after, SyncKind::commit_wgmma, &SyncAction::kind) > 0;
  write(after);
  if (!refilled || late) return leave(true);
  if (use.reads && !lags) fence_reads();
  if (!multiplied && !use.reads) out_.line("wl::sync_warp();");
  if (lags)
    release_last(node.pipeline, true);
  else
    release_stage(node.pipeline, stage_number_);
  leave(true);
}

void CudaEmitter::fence_reads() {
  out_.line(
      "wl::fence_async_shared();  // what the threads read, before TMA fills the stage "
      "again");
  out_.line("wl::sync_warp();");
}

// The stage that the finished wgmma, or the threads, have read is the one before; the
// first round of a loop has none.
void CudaEmitter::release_last(PipelineId id, bool more) {
  const Pipeline& pipeline = program_.pipeline(id);
  out_.open("if ({}_pending) {{", pipeline.name);
  out_.line("const int done = {0}_stage == 0 ? {1} : {0}_stage - 1;", pipeline.name,
            pipeline.stages - 1);
  release_stage(id, "done");
  if (!more) out_.line("{}_pending = false;", pipeline.name);
  out_.close();
  if (more) out_.line("{}_pending = true;", pipeline.name);
}

// After a loop whose Consumes lag: wait for their wgmma and release their stages.
void CudaEmitter::drain(StatementId loop, const Body& body) {
  synchronize({loop, SyncPart::after});
  for (const auto& [id, reads] : lagging_in(analysis_, body)) {
    if (reads) fence_reads();
    release_last(id, false);
  }
  const auto by_cp_async = [&](const auto& one) {
    const auto& [id, use] = one;
    return use && !analysis_.has_barriers(id);
  };
  const bool any_by_cp_async = std::ranges::any_of(pipelines_in(program_, body), by_cp_async);
  if (any_by_cp_async) out_.line("wl::cp_async_wait<0>();");
}

Peers peers_along(const Program& program, const std::string& dimensions) {
  Peers peers;
  Index own = 0;  // the block's rank less that of the first of them
  const int total = as_int(cluster_size(program));
  int stride = 1;
  for (size_t d = 0; d < 3; ++d) {
    const int extent = as_int(program.cluster[d]);
    const int above = stride * extent;
    if (extent > 1 && dimensions.find("xyz"[d]) != dimensions.npos) {
      const Index at = above == total ? cluster_rank() / stride : cluster_rank() / stride % extent;
      peers.share = peers.share + at * peers.blocks();
      own = own + at * stride;
      const unsigned row = peers.ranks;
      for (int i = 1; i < extent; ++i)
        peers.ranks |= row << i * stride;
    }
    stride = above;
  }
  if (peers.blocks() == total) {
    peers.mask = std::to_string(peers.ranks);
  } else {
    const Index first = cluster_rank() - own;
    peers.mask = fmt::format("({} << ({}))", peers.ranks, first.text());
  }
  return peers;
}

Peers CudaEmitter::peers_of(PipelineId id) const {
  Peers all;
  std::set<std::string> masks;
  for (const auto& site : analysis_.sites) {
    const auto* copy = site.statement->as<Copy>();
    if (!copy || site.producing != id) continue;
    const Peers some = peers_along(program_, copy->multicast);
    all.ranks |= some.ranks;
    if (some.blocks() > 1) masks.insert(some.mask);
  }
  if (all.blocks() == cluster_size(program_)) masks = {std::to_string(all.ranks)};
  all.mask = fmt::format("{}", fmt::join(masks, " | "));
  return all;
}

// Each consuming warp releases the stage in every block whose fetches reach this one.
void CudaEmitter::release_stage(PipelineId id, const std::string& stage) {
  const std::string& name = program_.pipeline(id).name;
  if (peers_of(id).blocks() > 1)
    out_.line(
        "if ({0}_peers >> wl::lane() & 1) wl::mbarrier_arrive_cluster({0}_empty + 8 * {1}, "
        "wl::lane());",
        name, stage);
  else
    out_.line("if (wl::lane() == 0) wl::mbarrier_arrive({}_empty + 8 * {});", name, stage);
}

void CudaEmitter::emit(const Signal& node) {
  synchronize(SyncPart::inside);
  const auto one = out_.block_if(single_thread_ ? "" : "t == 0");
  if (!sync_.at({at_->id, SyncPart::inside, 1}).empty())
    out_.line("wl::bulk_wait<0>();  // what the engine stored is to be seen too");
  const Place flag = place_in(node.flag, node.flag.offset);
  out_.line("wl::signal_flag({}, {});", flag.address, node.by.text());
}

void CudaEmitter::emit(const Wait& node) {
  const char* guard = single_thread_ ? "" : "if (t == 0) ";
  const Place flag = place_in(node.flag, node.flag.offset);
  out_.line("{}wl::wait_flag({}, {});", guard, flag.address, node.least.text());
  synchronize(SyncPart::inside);
}

void CudaEmitter::emit(const ClusterSync&) {
  out_.line("wl::cluster_sync();");
}
}  // namespace warploom::codegen
