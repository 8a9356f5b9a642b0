// Copies: every pair of scopes, every method.

#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include "codegen/cuda_emitter.h"
#include "synth/shared.h"

namespace warploom::codegen {

using layout::TvLayout;
using synth::Choice;
using target::Method;
using namespace tile;

namespace {

bool same_storage(Dtype a, Dtype b) { return a == b || (a == Dtype::tf32 && b == Dtype::f32); }

}  // namespace

void CudaEmitter::copy(const Statement& statement, const Copy& node) {
  const Scope from = tensor(node.src.tensor).scope, to = tensor(node.dst.tensor).scope;
  if (from == Scope::reg && to == Scope::reg) return cast_registers(node);
  const auto found = solution_.choices.find(&statement);
  if (found == solution_.choices.end())
    return error(
        {ErrorCode::kInternal, "a copy has no instruction", program_.name, "a choice of synthesis", "none", ""});
  const Choice& choice = found->second;
  const bool by_engine = choice.instruction && choice.instruction->method == Method::tensor_copy;
  if (!by_engine && !same_storage(tensor(node.src.tensor).dtype, tensor(node.dst.tensor).dtype))
    return error({ErrorCode::kNoInstruction, "no copy changes the element type between memory and registers",
                  program_.name, std::string(name_of(tensor(node.src.tensor).dtype)),
                  std::string(name_of(tensor(node.dst.tensor).dtype)),
                  "copy to a register tensor of the same type and map it to the other"});
  if (by_engine) return copy_by_engine(node, choice);
  if (from != Scope::reg && to != Scope::reg) return copy_by_threads(node, choice);
  if (choice.instruction && choice.instruction->method == Method::matrix)
    return copy_matrices(node, choice, to == Scope::reg);
  if (from == Scope::shared || to == Scope::shared) return copy_shared_registers(node, choice, to == Scope::reg);
  copy_global_registers(node, choice, to == Scope::reg);
}

void CudaEmitter::cast_registers(const Copy& node) {
  const auto values = registers(node.dst.tensor).values();
  const Dtype from = tensor(node.src.tensor).dtype, to = tensor(node.dst.tensor).dtype;
  const std::string value = from == to ? name(node.src.tensor) + "[i]" : from_float(to, as_float(node.src.tensor, "i"));
  out_.line("WL_UNROLL for (int i = 0; i < {}; ++i) {}[i] = {};", values, name(node.dst.tensor), value);
}

void CudaEmitter::copy_global_registers(const Copy& node, const Choice& choice, bool load) {
  const Tile &memory = load ? node.src : node.dst, &side = load ? node.dst : node.src;
  const TvLayout seen = synth::seen_from(registers(side.tensor), tensor(side.tensor).shape, memory.extent);
  const auto loops = value_loops(seen, choice.vector);
  std::vector<Coordinate> at;
  for (std::size_t d = 0; d < memory.extent.size(); ++d)
    at.push_back(coordinate(memory, static_cast<int>(d), seen, loops));
  note_pointer(memory.tensor);
  const std::string guard = load ? "" : first_replica(seen), bounds = bounds_condition(memory, at);
  const int bytes = choice.vector * bytes_of(tensor(memory.tensor).dtype);
  const std::string stream = node.streaming ? "_stream" : "",
                    value = fmt::format("wl::at({}, {})", name(side.tensor), value_index(loops));
  if (!guard.empty()) out_.open("if ({}) {{", guard);
  open_loops(loops);
  if (load && bounds.empty()) {
    out_.line("wl::ld_global{}<{}>({}, {});", stream, bytes, value, global_address(memory, at));
  } else if (load) {
    out_.line("wl::ld_global{}<{}>({}, {}, {}, {});", stream, bytes, value, global_address(memory, at), bounds,
              constant(tensor(memory.tensor).dtype, node.fill));
  } else {
    out_.line("wl::st_global{}<{}>({}, {}{});", stream, bytes, global_address(memory, at), value,
              bounds.empty() ? "" : ", " + bounds);
  }
  close_loops(loops);
  if (!guard.empty()) out_.close();
}

void CudaEmitter::copy_shared_registers(const Copy& node, const Choice& choice, bool load) {
  const Tile &memory = load ? node.src : node.dst, &side = load ? node.dst : node.src;
  const TvLayout seen = synth::seen_from(registers(side.tensor), tensor(side.tensor).shape, memory.extent);
  const auto loops = value_loops(seen, choice.vector);
  if (is_slot(memory.tensor)) slot_read_ = true;
  else load ? before_read(memory.tensor) : before_write(memory.tensor);
  std::vector<Coordinate> at;
  for (std::size_t d = 0; d < memory.extent.size(); ++d)
    at.push_back(coordinate(memory, static_cast<int>(d), seen, loops));
  const std::string guard = load ? "" : first_replica(seen);
  const int bytes = choice.vector * bytes_of(tensor(memory.tensor).dtype);
  const std::string value = fmt::format("wl::at({}, {})", name(side.tensor), value_index(loops));
  if (!guard.empty()) out_.open("if ({}) {{", guard);
  open_loops(loops);
  if (load) {
    out_.line("wl::ld_shared<{}>({}, {});", bytes, value, shared_address(memory, at));
  } else {
    out_.line("wl::st_shared<{}>({}, {});", bytes, shared_address(memory, at), value);
  }
  close_loops(loops);
  if (!guard.empty()) out_.close();
}

// ldmatrix and stmatrix: lane l gives the address of row l % 8 of matrix l / 8.
void CudaEmitter::copy_matrices(const Copy& node, const Choice& choice, bool load) {
  const Tile &memory = load ? node.src : node.dst, &side = load ? node.dst : node.src;
  const TvLayout seen = synth::seen_from(registers(side.tensor), tensor(side.tensor).shape, memory.extent);
  const auto& layout = solution_.shared.at(memory.tensor);
  std::size_t contiguous = 0;
  for (std::size_t d = 0; d < layout.dims.size(); ++d)
    if (!layout.dims[d].empty() && layout.dims[d][0].stride == 1 && tensor(memory.tensor).shape[d] > 1) contiguous = d;
  const std::size_t other = 1 - contiguous;
  const std::int64_t unit = 4 / (layout.element_bits / 8);  // elements a lane holds of one matrix
  const auto loops = value_loops(seen, unit * choice.vector);
  if (is_slot(memory.tensor)) slot_read_ = true;
  else load ? before_read(memory.tensor) : before_write(memory.tensor);
  std::vector<Coordinate> at;
  for (std::size_t d = 0; d < memory.extent.size(); ++d)
    at.push_back(coordinate(memory, static_cast<int>(d), seen, loops, 2));
  at[other].terms.push_back({digit(1, 8), 8, 1});
  // Digits of the matrix number, over the value modes above the pair.
  std::int64_t left = choice.vector, below = 8, skip = unit;
  for (const auto& mode : seen.value) {
    if (skip > 1) {
      skip /= mode.extent;
      continue;
    }
    const std::int64_t take = std::min(left, mode.extent);
    if (take > 1)
      for (std::size_t d = 0; d < at.size(); ++d)
        if (mode.step[d] != 0) at[d].terms.push_back({digit(below, take), take, mode.step[d]});
    below *= take, left /= take;
    if (left == 1) break;
  }
  open_loops(loops);
  const std::string value = fmt::format("wl::at({}, {})", name(side.tensor), value_index(loops));
  const bool transpose = choice.instruction->transpose;
  if (load) {
    out_.line("{}<{}, {}>({}, {});", choice.instruction->call, choice.vector, transpose, value,
              shared_address(memory, at));
  } else {
    out_.line("{}<{}, {}>({}, {});", choice.instruction->call, choice.vector, transpose, shared_address(memory, at),
              value);
  }
  close_loops(loops);
}

// Between global and shared memory, a vector a thread: cp.async, or through a register.
void CudaEmitter::copy_by_threads(const Copy& node, const Choice& choice) {
  const bool load = tensor(node.src.tensor).scope == Scope::global;
  const Tile &global = load ? node.src : node.dst, &shared = load ? node.dst : node.src;
  std::vector<std::int64_t> extent;
  for (const int d : synth::wide_dims(shared.extent)) extent.push_back(shared.extent[static_cast<std::size_t>(d)]);
  if (extent.empty()) extent = {1};
  const TvLayout of_global = synth::seen_from(choice.mapping, extent, global.extent);
  const TvLayout of_shared = synth::seen_from(choice.mapping, extent, shared.extent);
  const auto global_loops = value_loops(of_global, choice.vector), shared_loops = value_loops(of_shared, choice.vector);
  if (!is_slot(shared.tensor)) load ? before_write(shared.tensor) : before_read(shared.tensor);
  else if (load) now_.unsynced[shared.tensor].unfenced = true;
  std::vector<Coordinate> global_at, shared_at;
  for (std::size_t d = 0; d < global.extent.size(); ++d)
    global_at.push_back(coordinate(global, static_cast<int>(d), of_global, global_loops));
  for (std::size_t d = 0; d < shared.extent.size(); ++d)
    shared_at.push_back(coordinate(shared, static_cast<int>(d), of_shared, shared_loops));
  note_pointer(global.tensor);
  const int bytes = choice.vector * bytes_of(tensor(global.tensor).dtype);
  const std::string guard = first_replica(choice.mapping), bounds = bounds_condition(global, global_at);
  const std::string tail = bounds.empty() ? "" : ", " + bounds;
  const bool scoped = !guard.empty() || global_loops.empty();  // a scope for what is declared
  if (scoped) out_.open("{}{{", guard.empty() ? "" : "if (" + guard + ") ");
  open_loops(global_loops, false);
  if (choice.instruction) {
    out_.line("{}<{}>({}, {}{});", choice.instruction->call, bytes, shared_address(shared, shared_at),
              global_address(global, global_at), tail);
  } else if (load) {
    out_.line("WL_REG({}, moved, {});", cuda_type(tensor(global.tensor).dtype), choice.vector);
    const std::string fill = constant(tensor(global.tensor).dtype, node.fill);
    out_.line("wl::ld_global<{}>(wl::at(moved, 0), {}{});", bytes, global_address(global, global_at),
              bounds.empty() ? "" : fmt::format(", {}, {}", bounds, fill));
    out_.line("wl::st_shared<{}>({}, wl::at(moved, 0));", bytes, shared_address(shared, shared_at));
  } else {
    out_.line("WL_REG({}, moved, {});", cuda_type(tensor(global.tensor).dtype), choice.vector);
    out_.line("wl::ld_shared<{}>(wl::at(moved, 0), {});", bytes, shared_address(shared, shared_at));
    out_.line("wl::st_global<{}>({}, wl::at(moved, 0){});", bytes, global_address(global, global_at), tail);
  }
  close_loops(global_loops);
  if (scoped) out_.close();
}

// The copy engine: one thread, one call a panel of the shared layout (and at most 256 rows).
void CudaEmitter::copy_by_engine(const Copy& node, const Choice& choice) {
  const bool load = tensor(node.src.tensor).scope == Scope::global;
  const Tile &global = load ? node.src : node.dst, &shared = load ? node.dst : node.src;
  const Tensor& g = tensor(global.tensor);
  const auto& layout = solution_.shared.at(shared.tensor);
  const Dtype dtype = tensor(shared.tensor).dtype;
  const auto along = synth::contiguous_dim(g);
  const auto contiguous = static_cast<std::size_t>(*along);

  std::size_t panel_dim = 0;  // the shared dimension that is contiguous
  for (std::size_t d = 0; d < layout.dims.size(); ++d)
    if (!layout.dims[d].empty() && layout.dims[d][0].stride == 1 && tensor(shared.tensor).shape[d] > 1) panel_dim = d;
  const std::int64_t panel = layout.dims[panel_dim][0].extent;
  const std::int64_t panels = shared.extent[panel_dim] / panel;
  std::int64_t rows = 1;
  for (std::size_t d = 0; d < shared.extent.size(); ++d)
    if (d != panel_dim) rows *= shared.extent[d];
  const std::int64_t box_rows = std::min<std::int64_t>(rows, 256), row_boxes = (rows + 255) / 256;

  // Dimensions of the map: the contiguous one first, then by stride; those of extent 1 that the tile never leaves are left out.
  std::vector<std::size_t> order = {contiguous};
  std::vector<std::size_t> others;
  for (std::size_t d = 0; d < g.shape.size(); ++d)
    if (d != contiguous && (g.shape[d] > 1 || bounds_.may_exceed(program_, global, static_cast<int>(d))))
      others.push_back(d);
  std::stable_sort(others.begin(), others.end(),
                   [&](std::size_t a, std::size_t b) { return g.strides[a] < g.strides[b]; });
  order.insert(order.end(), others.begin(), others.end());

  TensorMapSpec spec;
  spec.dtype = dtype;
  spec.swizzle_bytes = layout.swizzle.bits ? 16 << layout.swizzle.bits : 0;
  for (const std::size_t d : order) {
    spec.dims.push_back(g.shape[d]);
    if (d != contiguous) spec.strides_bytes.push_back(g.strides[d] * bytes_of(g.dtype));
    spec.box.push_back(d == contiguous ? panel : std::min<std::int64_t>(global.extent[d], 256));
  }
  const std::string map = note_map(global.tensor, spec);

  auto call = [&](const std::string& panel_variable, std::int64_t row_box) {
    std::vector<std::string> coordinates;
    for (const std::size_t d : order) {
      Coordinate c{offset(global, d), {}};
      if (d == contiguous && panels > 1) c.terms.push_back({panel_variable, panels, panel});
      if (d != contiguous && global.extent[d] > 1 && row_boxes > 1) c.offset = c.offset + row_box * 256;
      coordinates.push_back(text(c));
    }
    const std::int64_t panel_bytes = rows * panel * bytes_of(dtype);
    const std::string address = sum({shared_base(shared.tensor), panels > 1 ? times(panel_variable, panel_bytes) : "0",
                                     row_box ? std::to_string(row_box * box_rows * panel * bytes_of(dtype)) : "0"});
    if (load) {
      out_.line("{}({}, {}, {}_full + 8 * {}, {});", choice.instruction->call, address, map,
                program_.pipeline(tensor(shared.tensor).pipeline).name, slot_stage_, fmt::join(coordinates, ", "));
    } else {
      out_.line("{}({}, {}, {});", choice.instruction->call, map, address, fmt::join(coordinates, ", "));
    }
  };
  auto all = [&] {
    if (panels > 1) out_.open("WL_UNROLL for (int p = 0; p < {}; ++p) {{", panels);
    for (std::int64_t box = 0; box < row_boxes; ++box) call("p", box);
    if (panels > 1) out_.close();
  };
  if (load) return all();
  before_async_read(shared.tensor);
  out_.open("if (t == 0) {{");
  all();
  out_.line("wl::bulk_commit();");
  out_.close();
  now_.unsynced[shared.tensor].engine_reads = true;
}

}  // namespace warploom::codegen
