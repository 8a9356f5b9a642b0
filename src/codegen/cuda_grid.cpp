// What blocks have with each other: fetches that a cluster shares, flags, and the end of a cluster.

#include <bit>
#include "codegen/cuda_emitter.h"
namespace warploom::codegen {
namespace {
// The blocks of a cluster that one block shares with along some dimensions, itself among them.
struct Group {
  unsigned ranks = 1;        // a bit each, of block 0
  Index share = 0, own = 0;  // a block's number in its group; its rank less that of the group's first block
  int size() const { return std::popcount(ranks); }
};

Group group_of(const Program& program, const std::string& along) {
  Group group;
  const int total = static_cast<int>(cluster_size(program));
  int stride = 1;
  for (std::size_t d = 0; d < 3; ++d) {
    const int extent = static_cast<int>(program.cluster[d]), above = stride * extent;
    if (extent > 1 && along.find("xyz"[d]) != along.npos) {
      const Index at = above == total ? cluster_rank() / stride : cluster_rank() / stride % extent;
      group.share = group.share + at * group.size();
      group.own = group.own + at * stride;
      for (unsigned i = 1, row = group.ranks; i < static_cast<unsigned>(extent); ++i) group.ranks |= row << i * stride;
    }
    stride = above;
  }
  return group;
}

std::string mask_of(const Program& program, const Group& group) {
  if (group.size() == cluster_size(program)) return std::to_string(group.ranks);
  return fmt::format("({} << ({}))", group.ranks, (cluster_rank() - group.own).text());
}
}  // namespace
CudaEmitter::Peers CudaEmitter::sharing(const std::string& along) const {
  const Group group = group_of(program_, along);
  return {group.size(), mask_of(program_, group), group.share};
}

CudaEmitter::Peers CudaEmitter::peers_of(PipelineId id) const {
  Group all;
  std::set<std::string> masks;
  for (const auto& site : sites_)
    if (const auto* copy = std::get_if<Copy>(&site.statement->node); copy && site.producing == id) {
      const Group group = group_of(program_, copy->multicast);
      all.ranks |= group.ranks;
      if (group.size() > 1) masks.insert(mask_of(program_, group));
    }
  if (all.size() == cluster_size(program_)) masks = {mask_of(program_, all)};
  return {all.size(), fmt::format("{}", fmt::join(masks, " | "))};
}

void CudaEmitter::end_together() {
  bool together = false;
  for (const auto& [id, offset] : barriers_) together |= peers_of(id).blocks > 1;
  for (const auto& site : sites_)
    if (const auto* copy = std::get_if<Copy>(&site.statement->node)) together |= copy->peer.has_value();
  if (together) out_.line("wl::cluster_sync();  // no block ends while others may still reach into it");
}

// Each consuming warp frees the slot in every block whose fetches reach this one.
void CudaEmitter::release_slot(PipelineId id, const std::string& slot) {
  const std::string& name = program_.pipeline(id).name;
  if (peers_of(id).blocks > 1)
    out_.line("if ({0}_peers >> wl::lane() & 1) wl::mbarrier_arrive_cluster({0}_empty + 8 * {1}, wl::lane());", name, slot);
  else out_.line("if (wl::lane() == 0) wl::mbarrier_arrive({}_empty + 8 * {});", name, slot);
}

std::string CudaEmitter::flag_address(const Tile& flag) { return place_in(flag, flag.offset).address; }

void CudaEmitter::emit(const Signal& node) {
  if (!single_thread_) meet();
  const auto one = out_.block_if(single_thread_ ? "" : "t == 0");
  if (!now_.engine_reads.empty()) out_.line("wl::bulk_wait<0>();  // what the engine stored is to be seen too");
  out_.line("wl::signal_flag({}, {});", flag_address(node.flag), node.by.text());
}

void CudaEmitter::emit(const Wait& node) {
  out_.line("{}wl::wait_flag({}, {});", single_thread_ ? "" : "if (t == 0) ", flag_address(node.flag), node.least.text());
  if (!single_thread_) meet();
}

void CudaEmitter::emit(const ClusterSync&) {
  out_.line("wl::cluster_sync();");
  now_.written.clear(), now_.read.clear(), now_.consumed.clear(), now_.read_slots.clear();
}

// Before sm_90 a kernel begins when the one before it has ended.
void CudaEmitter::emit(const WaitPrevious&) {
  if (capabilities_.max_cluster > 1) out_.line("wl::griddepcontrol_wait();");
}
void CudaEmitter::emit(const LaunchNext&) {
  if (capabilities_.max_cluster > 1) out_.line("wl::griddepcontrol_launch();");
}
}  // namespace warploom::codegen
