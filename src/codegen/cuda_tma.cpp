// Copies by tma: one thread, one call for each swizzle atom of the shared layout (and at most 256
// rows).
//
//   128 rows of 128 elements of bf16, atoms of 64 elements     2 calls of a box {64, 128}
//   the same, multicast to 2 blocks                            each block fetches one atom for both
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "codegen/cuda_emitter.h"
#include "codegen/launch_list.h"
#include "codegen/synchronization.h"
#include "codegen/terms.h"
#include "layout/memory_layout.h"
#include "synth/sites.h"
#include "synth/solve.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::codegen {
namespace {
using layout::MemoryLayout;

// How the boxes of one copy divide its shared matrix: atoms side by side, each with all rows. Of a
// multicast each block fetches its part for all: some of the atoms, or some rows of each.
struct BoxDivision {
  int64_t atom = 0;  // elements of a row
  int64_t atoms = 0;
  int64_t rows = 0;
  Peers among;
  bool by_atoms = true;
  // Of one block
  int64_t my_atoms = 0;
  int64_t my_rows = 0;
  int64_t row_boxes = 1;  // as few as there can be of equal rows, whole swizzles each

  int64_t box_rows() const { return my_rows / row_boxes; }
};

BoxDivision divide(const Tile& shared, const MemoryLayout& layout, size_t atom_dim,
                   const Peers& among) {
  constexpr int64_t kMostRows = 256;  // of a box
  constexpr int64_t kSwizzleRows = 8;
  BoxDivision to;
  to.atom = layout.dims[atom_dim][0].extent;
  to.atoms = shared.extent[atom_dim] / to.atom;
  to.rows = element_count(shared.extent) / shared.extent[atom_dim];
  to.among = among;
  to.by_atoms = to.atoms % among.blocks() == 0;
  to.my_atoms = to.by_atoms ? to.atoms / among.blocks() : to.atoms;
  to.my_rows = to.by_atoms ? to.rows : to.rows / among.blocks();
  to.row_boxes = ceil_div(to.my_rows, kMostRows);
  const auto fits = [&] {
    return to.my_rows % (kSwizzleRows * to.row_boxes) == 0 && to.box_rows() <= kMostRows;
  };
  while (to.row_boxes > 1 && !fits())
    ++to.row_boxes;
  return to;
}

// The dimensions of a tensor map: the contiguous one first, then by stride; those of extent 1 that
// the tile never leaves are left out.
std::vector<size_t> map_order(const Program& program, const synth::Bounds& bounds,
                              const Tile& global, size_t contiguous) {
  const Tensor& tensor = program.tensor(global.tensor);
  std::vector<size_t> order;
  for (size_t d = 0; d < tensor.shape.size(); ++d)
    if (d == contiguous || tensor.shape[d] > 1 || bounds.may_exceed(program, global, d))
      order.push_back(d);
  std::ranges::stable_sort(order, {},
                           [&](size_t d) { return std::pair(d != contiguous, tensor.strides[d]); });
  return order;
}
}  // namespace

class CudaEmitter::TmaCopy {
 public:
  TmaCopy(CudaEmitter& emitter, const Copy& copy, const Sides& sides,
          const InstructionChoice& choice);
  void write();

 private:
  TensorMapSpec map_spec() const;
  void calls(const std::string& map);
  void call(const std::string& map, const Index& atom, int64_t row_box);
  std::string address(const Index& atom, int64_t row_box) const;
  Index coordinate(size_t dim, const Index& atom, int64_t row_box) const;

  CudaEmitter& out_;
  const Copy& copy_;
  const InstructionChoice& choice_;
  bool load_;
  const Tile& global_;
  const Tile& shared_;
  const Tensor& tensor_;
  const MemoryLayout& layout_;
  Dtype held_;   // by the shared tensor
  int64_t per_;  // elements of less than a byte go as bytes
  size_t contiguous_;
  BoxDivision boxes_;
  std::vector<size_t> order_;
};

CudaEmitter::TmaCopy::TmaCopy(CudaEmitter& emitter, const Copy& copy, const Sides& sides,
                              const InstructionChoice& choice)
    : out_(emitter),
      copy_(copy),
      choice_(choice),
      load_(sides.load),
      global_(*sides.global),
      shared_(*sides.shared),
      tensor_(emitter.tensor(global_.tensor)),
      layout_(emitter.solution_.shared.at(shared_.tensor)),
      held_(emitter.tensor(shared_.tensor).dtype),
      per_(per_byte(held_)),
      contiguous_(*synth::contiguous_dim(tensor_)),
      boxes_(divide(shared_, layout_,
                    synth::contiguous_dim(layout_, emitter.tensor(shared_.tensor)),
                    peers_along(emitter.program_, copy.multicast))),
      order_(map_order(emitter.program_, emitter.bounds_, global_, contiguous_)) {}

void CudaEmitter::TmaCopy::write() {
  const int blocks = boxes_.among.blocks();
  const bool in_equal_parts = boxes_.by_atoms || boxes_.rows % (8 * blocks) == 0;
  if (!in_equal_parts) {
    const auto fitting = fmt::format("a multiple of {} panels or of {} rows", blocks, 8 * blocks);
    const auto found = fmt::format("{} panels of {} rows", boxes_.atoms, boxes_.rows);
    return out_.refuse("a multicast cannot be fetched in equal parts", fitting, found,
                       "take a smaller cluster or a larger tile");
  }
  const std::string map = out_.note_map(global_.tensor, map_spec());
  if (load_) return calls(map);
  out_.synchronize(SyncPart::inside);
  const auto one = out_.out_.block_if("t == 0");
  calls(map);
  out_.out_.line("wl::bulk_commit();");
}

TensorMapSpec CudaEmitter::TmaCopy::map_spec() const {
  TensorMapSpec spec;
  spec.dtype = per_ > 1 ? Dtype::u8 : held_;
  spec.swizzle_bytes = layout_.swizzle.bits ? 16 << layout_.swizzle.bits : 0;
  for (const size_t d : order_) {
    if (d == contiguous_) {
      spec.dims.push_back(tensor_.shape[d] / per_);
      spec.box.push_back(boxes_.atom / per_);
      continue;
    }
    spec.dims.push_back(tensor_.shape[d]);
    spec.strides_bytes.push_back(bytes_of(tensor_.dtype, tensor_.strides[d]));
    spec.box.push_back(std::min(global_.extent[d], boxes_.box_rows()));
  }
  return spec;
}

void CudaEmitter::TmaCopy::calls(const std::string& map) {
  const Index atom = out_.counter("panel", boxes_.my_atoms);
  const auto block = out_.over("panel", boxes_.my_atoms);
  for (int64_t box = 0; box < boxes_.row_boxes; ++box)
    call(map, atom, box);
}

Index CudaEmitter::TmaCopy::coordinate(size_t dim, const Index& atom, int64_t row_box) const {
  const Index start = out_.offset(global_, dim);
  const Index& share = boxes_.among.share;
  if (dim == contiguous_) {
    const Index at = start / per_ + atom * (boxes_.atom / per_);
    if (!boxes_.by_atoms) return at;
    return at + scaled(share, boxes_.my_atoms * boxes_.atom / per_);
  }
  if (global_.extent[dim] == 1) return start;
  const Index my_first = boxes_.by_atoms ? 0 : scaled(share, boxes_.my_rows);
  return start + row_box * boxes_.box_rows() + my_first;
}

// Atoms follow each other, each with all its rows.
std::string CudaEmitter::TmaCopy::address(const Index& atom, int64_t row_box) const {
  const int64_t atom_bytes = bytes_of(held_, boxes_.rows * boxes_.atom);
  int64_t share_bytes = bytes_of(held_, boxes_.my_rows * boxes_.atom);
  if (boxes_.by_atoms) share_bytes = boxes_.my_atoms * atom_bytes;
  const int64_t box_bytes = bytes_of(held_, row_box * boxes_.box_rows() * boxes_.atom);
  const Index mine = scaled(boxes_.among.share, share_bytes);
  const Index start = out_.shared_base(shared_.tensor);
  return (start + atom * atom_bytes + mine + box_bytes).text();
}

void CudaEmitter::TmaCopy::call(const std::string& map, const Index& atom, int64_t row_box) {
  std::vector<std::string> coordinates;
  for (const size_t d : order_)
    coordinates.push_back(coordinate(d, atom, row_box).text());
  const std::string at = address(atom, row_box);
  std::string call = choice_.instruction->call;
  if (!load_) {
    const Dtype element = per_ > 1 ? Dtype::u8 : held_;
    if (copy_.combine) call = fmt::format("wl::tma_reduce_add<{}>", cuda_type(element));
    return out_.out_.line("{}({}, {}, {});", call, map, at, fmt::join(coordinates, ", "));
  }
  const PipelineId pipeline = out_.tensor(shared_.tensor).pipeline;
  const std::string& full_of = out_.program_.pipeline(pipeline).name;
  const std::string barrier = fmt::format("{}_full + 8 * {}", full_of, out_.stage_number_);
  std::string mask;
  if (boxes_.among.blocks() > 1) {
    call += "_multicast";
    mask = boxes_.among.mask + ", ";
  }
  out_.out_.line("{}({}, {}, {}, {}{});", call, at, map, barrier, mask,
                 fmt::join(coordinates, ", "));
}

void CudaEmitter::copy_by_tma(const Copy& node, const Sides& sides,
                              const InstructionChoice& choice) {
  TmaCopy(*this, node, sides, choice).write();
}
}  // namespace warploom::codegen
