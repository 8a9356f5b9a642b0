// Registers into another layout, and the same registers as another type.

#include "codegen/cuda_emitter.h"
#include "synth/exchange.h"
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
}  // namespace warploom::codegen
