// Copies: every pair of scopes, every method.

#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/value_op.h"
#include "codegen/cuda_emitter.h"
#include "codegen/synchronization.h"
#include "codegen/terms.h"
#include "layout/memory_layout.h"
#include "synth/sites.h"
#include "synth/solve.h"
#include "tile/index.h"
#include "tile/print.h"
#include "tile/program.h"

namespace warploom::codegen {
namespace {
std::string store_call(const Copy& copy) {
  if (copy.combine) return fmt::format("wl::red_{}", name_of(reduction_of(*copy.combine).combine));
  return copy.streaming ? "wl::st_global_stream" : "wl::st_global";
}

std::string load_call(const Copy& copy) {
  return copy.streaming ? "wl::ld_global_stream" : "wl::ld_global";
}
}  // namespace

// A register tensor to or from memory, a vector a thread, each by line(bytes, the vector's place,
// its coordinates).
template <class F> void CudaEmitter::move_vectors(const VectorMove& move, const F& line) {
  const auto loops = value_loops(move.seen, move.vector);
  const Dtype dtype = tensor(move.side).dtype;
  const auto replica = out_.block_if(move.load ? "" : first_replica(move.seen));
  const auto turns = open_loops(loops, true, move.memory.lookup >= 0);
  const auto at = coordinates(move.memory, move.seen, loops);
  const Index element = value_index(loops, per_byte(dtype));
  const std::string value = fmt::format("wl::at({}, {})", name(move.side), element.text());
  line(bytes_of(dtype, move.vector), value, at);
}

void CudaEmitter::copy_registers(TensorId from, TensorId to) {
  const Tensor& src = tensor(from);
  const Tensor& dst = tensor(to);
  const int64_t values = registers(to).values();
  if (src.dtype == dst.dtype) return assign(dst.name, array_length(to, values), src.name + "[i]");
  const bool own = per_byte(dst.dtype) == 1;
  as_floats(to, own, "wide", [&](const std::string& array) {
    const std::string value = as_float(from);
    assign(array, values, array == "wide" ? value : from_float(dst.dtype, value));
  });
}

void CudaEmitter::refuse_conversion(const Tensor& src, const Tensor& dst) {
  const auto typed = [](const Tensor& t) {
    return fmt::format("'{}' {}", t.name, name_of(t.dtype));
  };
  const std::string statement = print(program_, *at_);
  refuse("no copy to or from memory changes the element type", "one type on both sides",
         fmt::format("{}: {} and {}", statement, typed(src), typed(dst)),
         "copy to a register tensor of the same type, then that one to a register tensor "
         "of the other");
}

void CudaEmitter::emit(const Copy& node) {
  const Sides sides = synth::sides_of(program_, node);
  const Tensor& src = tensor(node.src.tensor);
  const Tensor& dst = tensor(node.dst.tensor);
  if (!sides.global && !sides.shared) return copy_registers(node.src.tensor, node.dst.tensor);
  const InstructionChoice& choice = solution_.choices.at(at_->id);
  const bool by_tma = choice.by(Method::tma);
  const bool same_bits =
      src.dtype == dst.dtype || (src.dtype == Dtype::tf32 && dst.dtype == Dtype::f32);
  if (!by_tma && !same_bits) return refuse_conversion(src, dst);
  if (node.combine && dst.dtype == Dtype::bf16 && !capabilities_.has_tma)
    return refuse("the target combines no bf16 in memory", "f32 or i32", "bf16",
                  "copy to an f32 tensor");
  if (by_tma) return copy_by_tma(node, sides, choice);
  if (!sides.registers) return copy_by_threads(node, sides, choice);
  const TensorId side = sides.registers->tensor;
  const Tile& memory = sides.global ? *sides.global : *sides.shared;
  const TvLayout seen = synth::seen_from(registers(side), memory.extent);
  const VectorMove move{side, memory, seen, choice.vector, sides.load};
  if (sides.global) {
    const std::string fill = sides.load ? ", " + literal(src.dtype, node.fill) : "";
    const std::string call = sides.load ? load_call(node) : store_call(node);
    return move_vectors(move, [&](int64_t bytes, const std::string& value, const auto& at) {
      const Place place = place_in(memory, at, fill);
      const std::string& to = sides.load ? value : place.address;
      const std::string& from = sides.load ? place.address : value;
      out_.line("{}<{}>({}, {}{});", call, bytes, to, from, place.tail);
    });
  }
  synchronize(SyncPart::inside);
  if (choice.instruction->method == Method::ldmatrix) return copy_matrices(sides, seen, choice);
  const auto& layout = solution_.shared.at(memory.tensor);
  move_shared(move, layout, shared_base(memory.tensor), node.peer);
}

CudaEmitter::Place CudaEmitter::place_in(const Tile& global, std::vector<Index> at,
                                         const std::string& fill) {
  note_pointer(global.tensor);
  if (tensor(global.tensor).prepacked) return place_in_prepacked(global, at, fill);
  // Gathered: the coordinate is read, for the element of the innermost loops.
  if (global.lookup >= 0) {
    const auto d = as_size(global.lookup_dim);
    const Tile indices{global.lookup, {global.offset[d]}, {global.extent[d]}};
    const std::string variable = name(global.lookup) + "_at";
    const std::string inside = bounds_condition(indices, {at[d]});
    note_pointer(global.lookup);
    const std::string address = global_address(indices, {at[d]});
    const int64_t size = tensor(global.tensor).shape[d];
    const std::string tail = inside.empty() ? "" : ", " + inside;
    out_.line("const int {} = wl::lookup({}, {}{});", variable, address, size, tail);
    at[d] = Index::variable(variable);
  }
  const std::string bounds = bounds_condition(global, at);
  const std::string tail = bounds.empty() ? "" : ", " + bounds + fill;
  return {global_address(global, at, fill.empty()), tail};
}

// By coordinates within the tile, which lies inside its tensor as a whole or not at all.
CudaEmitter::Place CudaEmitter::place_in_prepacked(const Tile& tile,
                                                   const std::vector<Index>& within,
                                                   const std::string& fill) {
  const Tensor& packed = tensor(tile.tensor);
  const auto& layout = solution_.prepacked.at(tile.tensor);
  Index at = 0;  // in elements
  std::vector<Index> first;
  for (size_t d = 0; d < within.size(); ++d) {
    const int64_t extent = tile.extent[d];
    const Index& start = first.emplace_back(offset(tile, d));
    const Index number = factor_in(packed, start / extent);
    at = at + offset_in(number * extent + within[d], layout.dims[d], bounds_);
  }
  const std::string inside = bounds_condition(tile, first);
  const Index in_bytes = quotient(at, per_byte(packed.dtype), bounds_);
  const std::string tail = inside.empty() ? "" : ", " + inside + fill;
  return {plus(name(tile.tensor), in_bytes), tail};
}

void CudaEmitter::move_shared(const VectorMove& move, const layout::MemoryLayout& layout,
                              const Index& base, const std::optional<Index>& peer) {
  move_vectors(move, [&](int64_t bytes, const std::string& value, const auto& at) {
    const std::string address = address_in(layout, base, at);
    if (!move.load)
      out_.line("wl::st_shared<{}>({}, {});", bytes, address, value);
    else if (!peer)
      out_.line("wl::ld_shared<{}>({}, {});", bytes, value, address);
    else
      out_.line("wl::ld_shared_cluster<{}>({}, wl::mapa({}, {}));", bytes, value, address,
                peer->text());
  });
}

// ldmatrix and stmatrix: lane l gives the address of row l % 8 of matrix l / 8.
void CudaEmitter::copy_matrices(const Sides& sides, const TvLayout& seen,
                                const InstructionChoice& choice) {
  const Tile& memory = *sides.shared;
  const auto& layout = solution_.shared.at(memory.tensor);
  const size_t contiguous = synth::contiguous_dim(layout, tensor(memory.tensor));
  const size_t other = 1 - contiguous;
  const int64_t unit = 4 / (layout.element_bits / 8);  // elements a lane holds of one matrix
  const auto loops = value_loops(seen, unit * choice.vector);
  auto at = coordinates(memory, seen, loops, 2);
  at[other] = at[other] + digit(1, 8);
  // Digits of the matrix number, over the value modes above the pair.
  int64_t left = choice.vector;
  int64_t below = 8;
  int64_t skip = unit;
  for (const auto& mode : seen.value) {
    if (skip > 1) {
      skip /= mode.extent;
      continue;
    }
    const int64_t take = std::min(left, mode.extent);
    if (take > 1)
      for (size_t d = 0; d < at.size(); ++d)
        at[d] = at[d] + digit(below, take) * mode.step[d];
    below *= take;
    left /= take;
    if (left == 1) break;
  }
  const auto turns = open_loops(loops);
  const std::string array = name(sides.registers->tensor);
  const std::string value = fmt::format("wl::at({}, {})", array, value_index(loops).text());
  const std::string address = shared_address(memory, at);
  const std::string& to = sides.load ? value : address;
  const std::string& from = sides.load ? address : value;
  const Instruction& row = *choice.instruction;
  out_.line("{}<{}, {}>({}, {});", row.call, choice.vector, row.transpose, to, from);
}

// Between global and shared memory, a vector a thread: cp.async, or through a register.
void CudaEmitter::copy_by_threads(const Copy& node, const Sides& sides,
                                  const InstructionChoice& choice) {
  const bool load = sides.load;
  const Tile& global = *sides.global;
  const Tile& shared = *sides.shared;
  // Where dimensions of one side meet one of the other together, both are seen in digits that fall
  // into them.
  const TvLayout of_shared =
      synth::seen_from(synth::seen_from(choice.mapping, global.extent), shared.extent);
  const TvLayout of_global = synth::seen_from(of_shared, global.extent);
  const auto global_loops = value_loops(of_global, choice.vector);
  const auto shared_loops = value_loops(of_shared, choice.vector);
  synchronize(SyncPart::inside);
  const Dtype dtype = tensor(global.tensor).dtype;
  const int64_t bytes = bytes_of(dtype, choice.vector);
  const auto at_shared = coordinates(shared, of_shared, shared_loops);
  const std::string in_shared = shared_address(shared, at_shared);
  const bool by_register = !choice.instruction;
  const std::string fill = load && by_register ? ", " + literal(dtype, node.fill) : "";
  const auto replica = out_.block_if(first_replica(choice.mapping));
  const auto turns = open_loops(global_loops, false, global.lookup >= 0 || by_register);
  const Place place = place_in(global, coordinates(global, of_global, global_loops), fill);
  if (!by_register) {
    const char* stream = node.streaming ? "_stream" : "";
    const std::string call = choice.instruction->call + std::string(stream);
    return out_.line("{}<{}>({}, {}{});", call, bytes, in_shared, place.address, place.tail);
  }
  out_.line("WL_REG({}, moved, {});", cuda_type(dtype), choice.vector / per_byte(dtype));
  if (load) {
    out_.line("{}<{}>(wl::at(moved, 0), {}{});", load_call(node), bytes, place.address, place.tail);
    out_.line("wl::st_shared<{}>({}, wl::at(moved, 0));", bytes, in_shared);
  } else {
    out_.line("wl::ld_shared<{}>(wl::at(moved, 0), {});", bytes, in_shared);
    out_.line("{}<{}>({}, wl::at(moved, 0){});", store_call(node), bytes, place.address,
              place.tail);
  }
}
}  // namespace warploom::codegen
