// Coordinates, conditions and addresses: how a register layout meets a memory tile.

#include "codegen/cuda_emitter.h"
namespace warploom::codegen {
std::string CudaEmitter::digit(std::int64_t below, std::int64_t extent) {
  const bool top = below * extent >= role_threads_;
  if (below == 1 && top) return "t";
  std::string variable = "t", expression = "t";
  if (below > 1) variable += fmt::format("_div{}", below), expression += fmt::format(" / {}", below);
  if (!top) variable += fmt::format("_mod{}", extent), expression += fmt::format(" % {}", extent);
  digits_.insert(fmt::format("const int {} = {};", variable, expression));
  return variable;
}

std::vector<Term> CudaEmitter::thread_terms(const TvLayout& layout, int dim, std::size_t skip_modes) {
  std::vector<Term> terms;
  const auto modes = thread_modes(layout);
  for (std::size_t i = skip_modes; i < modes.size(); ++i)
    if (const std::int64_t step = modes[i].step[static_cast<std::size_t>(dim)]; step != 0 && modes[i].extent > 1)
      terms.push_back({digit(modes[i].below, modes[i].extent), modes[i].extent, step});
  return terms;
}

std::string CudaEmitter::first_replica(const TvLayout& layout) {
  std::vector<std::string> conditions;
  for (const ThreadDigit& mode : thread_modes(layout))
    if (!mode.moves() && mode.extent > 1) conditions.push_back(digit(mode.below, mode.extent) + " == 0");
  if (layout.threads() < role_threads_) conditions.push_back(fmt::format("t < {}", layout.threads()));
  return fmt::format("{}", fmt::join(conditions, " && "));
}

std::vector<ThreadDigit> thread_modes(const TvLayout& layout) {
  std::vector<ThreadDigit> modes;
  std::int64_t below = 1;
  for (const auto& mode : layout.thread) {
    modes.push_back({below, mode.extent, mode.step});
    below *= mode.extent;
  }
  return modes;
}

std::vector<ThreadDigit> thread_digits(const TvLayout& layout) {
  std::vector<ThreadDigit> digits;
  for (ThreadDigit mode : thread_modes(layout)) {
    const std::int64_t inside = mode.of_lane() ? std::min(mode.extent, 32 / mode.below) : mode.extent;
    for (const auto& [extent, times] : {std::pair{inside, std::int64_t{1}}, std::pair{mode.extent / inside, inside}}) {
      if (extent == 1) continue;
      digits.push_back({mode.below, extent, mode.step});
      for (auto& step : digits.back().step) step *= times;
      mode.below *= extent;
    }
  }
  return digits;
}

std::vector<ValueLoop> CudaEmitter::value_loops(const TvLayout& layout, std::int64_t vector) const {
  std::vector<ValueLoop> loops;
  std::int64_t stride = 1;
  for (const auto& mode : layout.value) {
    std::int64_t extent = mode.extent;
    layout::Coord step = mode.step;
    const std::int64_t inside = std::min(extent, std::max<std::int64_t>(1, vector / stride));  // part of the vector
    if (inside > 1) {
      for (auto& s : step) s *= inside;
      extent /= inside;
    }
    if (extent > 1) loops.push_back({fmt::format("i{}", loops.size()), extent, step, stride * inside});
    stride *= mode.extent;
  }
  return loops;
}

Writer::Block CudaEmitter::open_loops(const std::vector<ValueLoop>& loops, bool registers) {
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop)
    out_.open("{2} for (int {0} = 0; {0} < {1}; ++{0}) {{", loop->variable, loop->extent,
              registers ? "WL_UNROLL" : "WL_UNROLL_8");
  return {out_, loops.size()};
}

// A tile's offset, by its name where a loop around has one for it.
Index CudaEmitter::offset(const Tile& tile, std::size_t dim) const {
  if (tensor(tile.tensor).scope != Scope::global) return tile.offset[dim];
  const auto named = offsets_.find(tile.offset[dim].text());
  return named == offsets_.end() ? tile.offset[dim] : Index::variable(named->second);
}

std::string CudaEmitter::value_index(const std::vector<ValueLoop>& loops, std::int64_t per) {
  std::vector<std::string> parts;
  for (const ValueLoop& loop : loops) parts.push_back(times(loop.variable, loop.value_stride / per));
  return sum(parts);
}

std::vector<Coordinate> CudaEmitter::coordinates(const Tile& memory, const TvLayout& seen, const std::vector<ValueLoop>& loops,
                                                 std::size_t skip_modes) {
  std::vector<Coordinate> all;
  for (std::size_t d = 0; d < memory.extent.size(); ++d) {
    Coordinate& one = all.emplace_back(Coordinate{offset(memory, d), thread_terms(seen, static_cast<int>(d), skip_modes)});
    for (const ValueLoop& loop : loops)
      if (loop.step[d] != 0) one.terms.push_back({loop.variable, loop.extent, loop.step[d]});
    for (Term& term : one.terms) term.step *= memory.step_along(d);
  }
  return all;
}

void CudaEmitter::look_up(const Tile& memory, std::vector<Coordinate>& coordinates) {
  if (memory.lookup < 0) return;
  Coordinate& at = coordinates[static_cast<std::size_t>(memory.lookup_dim)];
  const auto d = static_cast<std::size_t>(memory.lookup_dim);
  const Tile indices{memory.lookup, {memory.offset[d]}, {memory.extent[d]}};
  const std::string variable = name(memory.lookup) + "_at", bounds = bounds_condition(indices, {at});
  note_pointer(memory.lookup);
  out_.line("const int {} = wl::lookup({}{});", variable, global_address(indices, {at}), bounds.empty() ? "" : ", " + bounds);
  at = {Index::variable(variable), {}};
}

std::string CudaEmitter::bounds_condition(const Tile& memory, const std::vector<Coordinate>& coordinates) const {
  std::vector<std::string> conditions;
  for (std::size_t d = 0; d < coordinates.size(); ++d) {
    if (!bounds_.may_exceed(program_, memory, static_cast<int>(d))) continue;
    const std::string at = text(coordinates[d]);
    conditions.push_back(bounds_.of(coordinates[d].offset).low >= 0
                             ? fmt::format("{} < {}", at, tensor(memory.tensor).shape[d])
                             : fmt::format("(unsigned)({}) < {}u", at, tensor(memory.tensor).shape[d]));
  }
  return fmt::format("{}", fmt::join(conditions, " && "));
}
namespace {
// In bytes, along a dimension whose neighbours share them.
Coordinate divided(Coordinate coordinate, std::int64_t per) {
  coordinate.offset = coordinate.offset / per;
  for (Term& term : coordinate.terms) term.step /= per;
  return coordinate;
}
}  // namespace
std::string CudaEmitter::global_address(const Tile& memory, const std::vector<Coordinate>& coordinates) const {
  std::vector<std::string> parts = {name(memory.tensor)};
  const Tensor& t = tensor(memory.tensor);
  const bool wide = bytes_of(t.dtype, element_count(t.shape)) > (std::int64_t{1} << 31);
  for (std::size_t d = 0; d < coordinates.size(); ++d) {
    const std::int64_t per = per_byte(t.dtype), left = t.strides[d] % per;
    const std::int64_t stride = left ? t.strides[d] : t.strides[d] / per;
    const std::string c = text(left ? divided(coordinates[d], per) : coordinates[d]);
    if (c == "0" || stride == 0) continue;
    parts.push_back(wide && stride != 1 ? fmt::format("(long long)({}) * {}", c, stride) : times(c, stride));
  }
  return sum(parts);
}

std::string CudaEmitter::shared_base(TensorId id) const {
  if (!is_slot(id) || program_.pipeline(tensor(id).pipeline).stages == 1) return name(id);
  return fmt::format("{} + {} * {}", name(id), slot_stage_, solution_.stage_bytes.at(id));
}

std::string CudaEmitter::shared_address(const Tile& memory, const std::vector<Coordinate>& coordinates) const {
  return address_in(solution_.shared.at(memory.tensor), shared_base(memory.tensor), coordinates);
}

std::string CudaEmitter::address_in(const layout::MemoryLayout& layout, const std::string& base,
                                    std::vector<Coordinate> coordinates) {
  const int per = std::max(1, 8 / layout.element_bits), bytes = std::max(1, layout.element_bits / 8);
  std::vector<std::string> parts;
  for (std::size_t d = 0; d < coordinates.size(); ++d) {
    auto modes = layout.dims[d];
    for (layout::MemoryMode& mode : modes) {
      if (mode.stride % per == 0) {
        mode.stride /= per;
      } else {
        mode.extent = std::max<std::int64_t>(1, mode.extent / per);
        coordinates[d] = divided(std::move(coordinates[d]), per);
      }
    }
    const auto dim = offset_parts(coordinates[d], modes, bytes);
    parts.insert(parts.end(), dim.begin(), dim.end());
  }
  const std::string offset = sum(parts);
  if (!layout.swizzle.bits) return sum({base, offset});
  return fmt::format("{} + wl::swizzle<{}, {}, {}>({})", base, layout.swizzle.bits, layout.swizzle.base, layout.swizzle.shift,
                     offset);
}

void CudaEmitter::meet() {
  if (role_ < 0) out_.line("wl::sync_threads();");
  else out_.line("wl::sync_named({}, {});", role_ + 1, role_threads_);
  now_.written.clear(), now_.read.clear(), now_.consumed.clear();
}

void CudaEmitter::before_write(TensorId id) {
  const bool engine = now_.engine_reads.contains(id);
  if (engine) {
    out_.line("if (t == 0) wl::bulk_wait_read<0>();  // the engine has read what is about to be overwritten");
    now_.engine_reads.clear();
  }
  if (engine || now_.written.contains(id) || now_.read.contains(id)) meet();
  now_.written.insert(id), now_.unfenced.insert(id);
}

void CudaEmitter::before_read(TensorId id) {
  if (now_.written.contains(id)) meet();
  now_.read.insert(id);
}

void CudaEmitter::before_async_read(TensorId id) {
  if (!now_.unfenced.contains(id)) return;
  out_.line("wl::fence_async_shared();  // what the threads wrote, for asynchronous readers to see");
  now_.unfenced.clear();
  meet();
}
}  // namespace warploom::codegen
