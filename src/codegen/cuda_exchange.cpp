// What threads have with each other: registers in another layout, or as another type; and blocks: fetches that a cluster shares,
// flags, and the end of a cluster.

#include "codegen/cuda_emitter.h"
#include "synth/solve.h"
namespace warploom::codegen {
namespace {
// XOR of the columns whose bits are set in the variable: "(i & 1) * 4 ^ (i >> 1 & 1) * 2". Columns that are their own bit stay
// together: "(t & 7)".
Index xor_of(const std::string& variable, const std::vector<std::int64_t>& columns) {
  std::string out;
  std::int64_t same = 0;
  for (std::size_t b = 0; b < columns.size(); ++b)
    if (columns[b] == std::int64_t{1} << b) same |= columns[b];
  if (same) out = fmt::format("({} & {})", variable, same);
  for (std::size_t b = 0; b < columns.size(); ++b)
    if (columns[b] && columns[b] != std::int64_t{1} << b)
      out += fmt::format("{}({} >> {} & 1) * {}", out.empty() ? "" : " ^ ", variable, b, columns[b]);
  return out.empty() ? 0 : Index::variable("(" + out + ")");
}
}  // namespace
Peers peers_along(const Program& program, const std::string& dimensions) {
  Peers peers;
  Index own = 0;  // the block's rank less that of the first of them
  const int total = static_cast<int>(cluster_size(program));
  int stride = 1;
  for (std::size_t d = 0; d < 3; ++d) {
    const int extent = static_cast<int>(program.cluster[d]), above = stride * extent;
    if (extent > 1 && dimensions.find("xyz"[d]) != dimensions.npos) {
      const Index at = above == total ? cluster_rank() / stride : cluster_rank() / stride % extent;
      peers.share = peers.share + at * peers.blocks();
      own = own + at * stride;
      for (unsigned i = 1, row = peers.ranks; i < static_cast<unsigned>(extent); ++i) peers.ranks |= row << i * stride;
    }
    stride = above;
  }
  peers.mask = peers.blocks() == total ? std::to_string(peers.ranks)
                                       : fmt::format("({} << ({}))", peers.ranks, (cluster_rank() - own).text());
  return peers;
}

void CudaEmitter::emit(const Rearrange& node) {
  const Choice& choice = solution_.choices.at(at_);
  const TvLayout from = synth::flipped(registers(node.src), node.transpose), &to = registers(node.dst);
  const Dtype dtype = tensor(node.dst).dtype;
  const Tile all = whole(program_, node.dst);
  if (!choice.scratch.dims.empty()) {
    const auto [offset, scratch_id, base] = scratch_at(choice.scratch_offset);
    const auto vector = common_vector(from, choice.scratch, 16);
    before_write(scratch_id);
    move_shared(node.src, all, from, choice.scratch, base, vector, false);
    before_read(scratch_id);
    return move_shared(node.dst, all, to, choice.scratch, base, choice.vector, true);
  }
  const auto exchange = synth::exchange_of(from, to, bits_of(dtype));
  const Index i = counter("i", exchange->units);
  const std::vector<std::int64_t> picks = exchange->picks();
  const std::int64_t unit = array_length(node.dst, exchange->unit), images = std::int64_t{1} << picks.size();
  const Index pick = xor_of("i", exchange->pick_of_unit), image = xor_of("j", picks), e = Index::variable("e");
  if (exchange->shuffles() == 0) {
    const auto units = unrolled("i", exchange->units);
    const auto elements = unrolled("e", unit);
    return out_.line("{}[{}] = {}[{}];", name(node.dst), (i * unit + e).text(), name(node.src), (pick * unit + e).text());
  }
  const auto scope = out_.block("{{");
  out_.line("const int from = {};", xor_of("t", exchange->lane_of_thread).text());
  if (images > 1) out_.line("const int pick = {};", xor_of("t", exchange->pick_of_thread).text());
  const auto units = unrolled("i", exchange->units);
  const auto each_image = over("j", images);
  const Index source = images > 1 ? Index::variable(fmt::format("({} ^ {})", pick.text(), image.text())) : pick;
  out_.line("wl::shfl<{}>(wl::at({}, {}), wl::at({}, {}), from ^ {}{});", bytes_of(dtype, exchange->unit), name(node.dst),
            (i * unit).text(), name(node.src), (source * unit).text(), xor_of("i", exchange->lane_of_unit).text(),
            images > 1 ? fmt::format(", pick == {}", image.text()) : "");
}

// Both arrays hold bytes, in the same order.
void CudaEmitter::emit(const Reinterpret& node) {
  assign(name(node.dst), array_length(node.dst, registers(node.dst).values()), name(node.src) + "[i]");
}

Peers CudaEmitter::peers_of(PipelineId id) const {
  Peers all;
  std::set<std::string> masks;
  for (const auto& site : sites_)
    if (const auto* copy = std::get_if<Copy>(&site.statement->node); copy && site.producing == id) {
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
    out_.line("if ({0}_peers >> wl::lane() & 1) wl::mbarrier_arrive_cluster({0}_empty + 8 * {1}, wl::lane());", name, slot);
  else out_.line("if (wl::lane() == 0) wl::mbarrier_arrive({}_empty + 8 * {});", name, slot);
}

void CudaEmitter::emit(const Signal& node) {
  if (!single_thread_) meet();
  const auto one = out_.block_if(single_thread_ ? "" : "t == 0");
  if (!now_.engine_reads.empty()) out_.line("wl::bulk_wait<0>();  // what the engine stored is to be seen too");
  out_.line("wl::signal_flag({}, {});", place_in(node.flag, node.flag.offset).address, node.by.text());
}

void CudaEmitter::emit(const Wait& node) {
  out_.line("{}wl::wait_flag({}, {});", single_thread_ ? "" : "if (t == 0) ", place_in(node.flag, node.flag.offset).address,
            node.least.text());
  if (!single_thread_) meet();
}

void CudaEmitter::emit(const ClusterSync&) {
  out_.line("wl::cluster_sync();");
  now_.written.clear(), now_.read.clear(), now_.consumed.clear(), now_.read_parts = false;
}
}  // namespace warploom::codegen
