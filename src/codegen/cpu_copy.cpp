// Copies on the CPU: a tile is taken as rows of contiguous elements where both sides allow it,
// packed into panels or transposed in registers where the buffer wants it so, and moved element by
// element where nothing better fits.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/integers.h"
#include "codegen/cpu_emitter.h"
#include "codegen/terms.h"
#include "tile/index.h"
#include "tile/print.h"
#include "tile/program.h"

namespace warploom::codegen {
// The element's place in its tensor. Where the fast coordinate is known to be a multiple of the
// panel the formula is linear.
Index CpuEmitter::address(const Tile& tile) const {
  const Tensor& t = tensor(tile.tensor);
  const CpuLayout& l = layout(tile.tensor);
  const auto strides = strides_of(tile.tensor);
  const bool cut = t.scope != Scope::global && !l.one_panel();
  Index sum = 0;
  for (size_t i = 0; i < strides.size(); ++i)
    if (!cut || i != l.fast_dim(strides.size())) sum = sum + tile.offset[i] * strides[i];
  if (!cut) return sum;
  const Index& fast = tile.offset[l.fast_dim(strides.size())];
  if (ranges_.divisible(fast, l.panel)) return sum + fast * l.slow();
  const Index panel = fast / l.panel;
  return sum + panel * (l.slow() * l.panel) + fast % l.panel;
}

CpuEmitter::Side CpuEmitter::side_of(const Tile& tile) const {
  const Tensor& t = tensor(tile.tensor);
  Side side{&tile, t.scope == Scope::global};
  const auto strides = strides_of(tile.tensor);
  const auto dims = wide_dims(tile.extent);
  for (size_t i = 0; i < std::min<size_t>(dims.size(), 2); ++i) {
    const size_t d = dims[dims.size() - 1 - i];
    Side::Line& line = i == 0 ? side.col : side.row;
    line.dim = as_int(d);
    line.extent = tile.extent[d];
    line.stride = strides[d] * tile.step_along(d);
  }
  const size_t rank = t.shape.size();
  if (side.global) return side;

  const CpuLayout& l = layout(tile.tensor);
  const size_t fast = l.fast_dim(rank);
  const size_t slow = rank < 2 ? fast : 2 * rank - 3 - fast;
  side.rows_fast = side.row.dim == as_int(fast);
  if (l.one_panel()) return side;
  const auto whole = [&](size_t dim, int64_t extent) {
    return tile.offset[dim].constant() == 0 && tile.extent[dim] == extent;
  };
  const bool within_panel =
      tile.extent[fast] <= l.panel && ranges_.divisible(tile.offset[fast], l.panel);
  side.strided = tile.extent[fast] == 1 || within_panel;
  side.whole_panels = whole(fast, l.fast()) && whole(slow, l.slow());
  return side;
}

bool CpuEmitter::is_strided(const Tile& tile) const {
  return side_of(tile).strided;
}

// Where a tile of one row of contiguous elements starts, if it lies inside its tensor whatever the
// indices hold; or empty.
std::string CpuEmitter::row_pointer(const Tile& tile) const {
  if (tile.lookup >= 0) return "";
  const Side side = side_of(tile);
  const bool contiguous = side.col.extent == 1 || side.col.stride == 1;
  if (side.row.dim >= 0 || !side.strided || !contiguous) return "";
  const bool inside = !side.global || conditions(tile).empty();
  return inside ? pointer(tile) : "";
}

// A tile of one row of a global tensor, whose elements may be apart and partly outside.
std::optional<CpuEmitter::Row> CpuEmitter::row_of(const Tile& tile) const {
  const Side side = side_of(tile);
  const bool one_row = side.row.dim < 0 && side.col.dim >= 0 && side.col.stride >= 1;
  if (tile.lookup >= 0 || !side.global || !one_row) return std::nullopt;
  const Side::Line no_row;
  const std::string inside = conditions(tile).empty() ? "" : box_of(tile, no_row, side.col);
  return Row{pointer(tile), inside, conditions(tile, &side), side.col.stride};
}

// What must hold for a tile to lie inside its global tensor and is not known before the kernel
// runs; of all dimensions, or of those besides a side's rows and columns.
std::string CpuEmitter::conditions(const Tile& tile, const Side* besides) const {
  const Tensor& t = tensor(tile.tensor);
  std::vector<std::string> out;
  for (size_t i = 0; i < tile.offset.size(); ++i) {
    const int dim = as_int(i);
    if (besides && (dim == besides->row.dim || dim == besides->col.dim)) continue;
    const Index& offset = tile.offset[i];
    const Range range = ranges_.of(offset);
    const int64_t reach = tile.reach(i);
    if (range.low < 0) out.push_back(fmt::format("{} >= 0", offset.text()));
    if (range.high + reach > t.shape[i])
      out.push_back(fmt::format("{} <= {}", (offset + reach).text(), t.shape[i]));
  }
  return fmt::format("{}", fmt::join(out, " && "));
}

// The part of rows and columns of a tile that lies inside its global tensor.
std::string CpuEmitter::box_of(const Tile& tile, const Side::Line& row,
                               const Side::Line& col) const {
  const auto part = [&](const Side::Line& line) {
    if (line.dim < 0) return std::string("{0, 1, 1}");
    const auto d = as_size(line.dim);
    const int64_t step = tile.step_along(d);
    const std::string stepped = step == 1 ? "" : fmt::format(", {}", step);
    const int64_t size = tensor(tile.tensor).shape[d];
    return fmt::format("{{{}, {}, {}{}}}", tile.offset[d].text(), line.extent, size, stepped);
  };
  return fmt::format("wl::inside({}, {})", part(row), part(col));
}

std::string CpuEmitter::box(const Side& global) const {
  const std::string inside = box_of(*global.tile, global.row, global.col);
  const std::string others = conditions(*global.tile, &global);
  return others.empty() ? inside : fmt::format("{} ? {} : wl::Box{{}}", others, inside);
}

// One call where the tile lies inside its tensor, the other where it may not.
void CpuEmitter::guarded(const Tile& tile, const std::string& whole, const std::string& part) {
  const std::string inside = tensor(tile.tensor).scope == Scope::global ? conditions(tile) : "";
  if (inside.empty()) return out_.line("{}", whole);
  out_.line("if ({}) {}", inside, whole);
  out_.line("else {}", part);
}

// Rows of contiguous elements on both sides.
bool CpuEmitter::copy_rows(const Copy& copy, const Side& src, const Side& dst) {
  if (!src.strided || !dst.strided || src.col.stride != 1 || dst.col.stride != 1) return false;
  const std::string to = fmt::format("{}, {}", pointer(*dst.tile), dst.row.stride);
  const std::string from = fmt::format("{}, {}", pointer(*src.tile), src.row.stride);
  const std::string places = fmt::format("{}, {}", to, from);
  const int64_t rows = src.row.extent;
  const int64_t cols = src.col.extent;
  const bool streaming =
      dst.global && copy.streaming && tensor(dst.tile->tensor).dtype == Dtype::f32;
  streams_ |= streaming;
  const char* stream = streaming ? ", true" : "";
  const std::string whole = fmt::format("wl::copy_rows<{}, {}{}>({});", rows, cols, stream, places);
  if (!src.global) {
    guarded(*dst.tile, whole, fmt::format("wl::store_rows({}, {});", places, box(dst)));
    return true;
  }
  const std::string inside = box(src);
  const std::string fill = float_text(copy.fill);
  guarded(*src.tile, whole,
          fmt::format("wl::load_rows({}, {}, {}, {}, {});", places, rows, cols, inside, fill));
  return true;
}

// A global tile into panels, or transposed.
bool CpuEmitter::load_tile(const Copy& copy, const Side& src, const Side& dst) {
  if (!src.global || src.col.stride != 1) return false;
  const CpuLayout& l = layout(dst.tile->tensor);
  const int64_t rows = src.row.extent;
  const int64_t cols = src.col.extent;
  const std::string to = pointer(*dst.tile);
  const std::string places = fmt::format("{}, {}, {}", to, pointer(*src.tile), src.row.stride);
  const std::string fill = float_text(copy.fill);
  const std::string extents = fmt::format("{}, {}, {}", rows, cols, l.panel);
  if (dst.whole_panels && !dst.rows_fast) {
    const std::string bounds = box(src);
    guarded(*src.tile, fmt::format("wl::pack_panels<{}>({});", extents, places),
            fmt::format("wl::pack_panels({}, {}, {}, {});", places, extents, bounds, fill));
    return true;
  }
  if (!dst.rows_fast || dst.col.dim < 0) return false;
  if (!dst.strided && !dst.whole_panels) return false;
  if (l.panel % lanes_ != 0) return false;
  if (dst.col.stride != l.panel) return false;  // another dimension lies between
  // Transposing writes whole vectors of rows: they must end where the tensor or a vector does.
  const Index& first = dst.tile->offset[dst.row.dim];
  if (!ranges_.divisible(first, lanes_)) return false;
  const bool ends_the_tensor = first.constant() && *first.constant() + rows == l.fast();
  if (rows % lanes_ != 0 && !ends_the_tensor) return false;
  std::string bounds = fmt::format("wl::Box{{0, {}, 0, {}}}", rows, cols);
  if (!conditions(*src.tile).empty()) bounds = box(src);
  out_.line("wl::pack_transposed({}, {}, {}, {});", places, extents, bounds, fill);
  return true;
}

// Whether a tile's floats lie one after another, and inside its tensor whatever the indices hold.
bool CpuEmitter::is_one_run(const Tile& tile) const {
  const Tensor& t = tensor(tile.tensor);
  const bool global = t.scope == Scope::global;
  if (tile.lookup >= 0 || t.dtype != Dtype::f32) return false;
  if (global ? !conditions(tile).empty() : !layout(tile.tensor).one_panel()) return false;
  const auto strides = strides_of(tile.tensor);
  int64_t next = 1;
  for (size_t d = tile.extent.size(); d-- > 0;) {
    if (tile.extent[d] == 1) continue;
    if (strides[d] * tile.step_along(d) != next) return false;
    next *= tile.extent[d];
  }
  return true;
}

// A matrix of floats in memory, of rows that lie one after another and inside its tensor whatever
// the indices hold.
bool CpuEmitter::is_whole_matrix(const Tile& tile, const Side& side) const {
  const bool plain = side.global && tile.lookup < 0 && wide_dims(tile.extent).size() == 2;
  const bool floats = tensor(tile.tensor).dtype == Dtype::f32;
  return plain && floats && side.strided && conditions(tile).empty();
}

// Two copies that turn a matrix by way of a register tensor: from memory to memory, a vector's
// square at a time, where nobody else wants the tensor.
bool CpuEmitter::copied_transposed(const Statement& first, const Statement& second) {
  constexpr int64_t kLine = 16;  // floats
  const auto* load = first.as<Copy>();
  const auto* kept = second.as<Copy>();
  if (!load || !kept || load->combine || kept->combine) return false;
  const TensorId between = load->dst.tensor;
  const Tensor& turned = tensor(between);
  const bool passes = kept->src.tensor == between && turned.scope == Scope::reg;
  if (!passes || turned.dtype != Dtype::f32 || wanted_.at(second.id)[between]) return false;
  if (load->dst.extent != turned.shape || kept->src.extent != turned.shape) return false;
  const Side from = side_of(load->src);
  const Side to = side_of(kept->dst);
  if (!is_whole_matrix(load->src, from) || !is_whole_matrix(kept->dst, to)) return false;
  const bool exchanges = from.row.stride == 1 && to.col.stride == 1;
  const bool same = from.row.extent == to.row.extent && from.col.extent == to.col.extent;
  const bool fits = from.col.extent % kLine == 0 && from.row.extent % lanes_ == 0;
  if (!exchanges || !same || !fits) return false;
  out_.line("// {}", print(program_, first));
  out_.line("// {}", print(program_, second));
  streams_ |= kept->streaming;
  out_.line("wl::copy_transposed<{}, {}, {}{}>({}, {}, {}, {});", from.col.extent, from.row.extent,
            kept->streaming, load->streaming ? ", 2" : "", pointer(kept->dst), to.row.stride,
            pointer(load->src), from.col.stride);
  return true;
}

// turn(index) within a loop of so many turns.
template <class F> void CpuEmitter::turns(const std::string& stem, int64_t count, const F& turn) {
  const std::string variable = fresh(stem);
  const auto block = out_.block("for (long {0} = 0; {0} < {1}; ++{0}) {{", variable, count);
  ranges_.enter(variable, count);
  turn(Index::variable(variable));
}

// Whether some elements of it may lie outside a global tensor.
bool CpuEmitter::guards(const Copy& copy) const {
  const auto may_exceed = [&](const Tile& tile) {
    return tensor(tile.tensor).scope == Scope::global && !conditions(tile).empty();
  };
  return may_exceed(copy.src) || may_exceed(copy.dst);
}

// each(what is left of the copy) within a loop along dimensions that meet, the slowest of them
// where one side has several.
template <class F> void CpuEmitter::walk(Copy copy, const Meeting& met, const F& each) {
  const size_t a = met.a[0];
  const size_t b = met.b[0];
  const int64_t count = std::min(copy.src.extent[a], copy.dst.extent[b]);
  // GCC (12 at least) unrolls a short loop of loads that each have a condition into the loop around
  // it, and of the vectors that it makes there all have the first one's condition: zeros in place
  // of elements. A loop that stays is made vectors of by itself, rightly.
  const bool one_each = count == element_count(copy.src.extent);
  if (one_each && guards(copy)) out_.line("#pragma GCC unroll 1");
  turns("m", count, [&](const Index& m) {
    for (const auto& [tile, dim] : {std::pair(&copy.src, a), std::pair(&copy.dst, b)}) {
      tile->extent[dim] /= count;
      const int64_t per_turn = tile->extent[dim] * tile->step_along(dim);
      tile->offset[dim] = tile->offset[dim] + m * per_turn;
    }
    each(copy);
  });
}

// The element alone where it is one.
void CpuEmitter::copy_elements(const Copy& copy, bool rows_last) {
  const auto met = *meetings(copy.src.extent, copy.dst.extent);
  if (!met.empty()) {
    const Meeting& outer = rows_last ? met.back() : met.front();
    return walk(copy, outer, [&](const Copy& one) { copy_elements(one, rows_last); });
  }
  const bool reads = tensor(copy.src.tensor).scope == Scope::global;
  const bool writes = tensor(copy.dst.tensor).scope == Scope::global;
  const std::string inside = reads || writes ? conditions(reads ? copy.src : copy.dst) : "";
  if (in_integers(program_, Statement{copy, {}})) return copy_whole_element(copy, inside, reads);
  const std::string to = pointer(copy.dst);
  const std::string element = fmt::format("wl::load_one({})", pointer(copy.src));
  if (inside.empty())
    out_.line("wl::store_one({}, {});", to, element);
  else if (reads)
    out_.line("wl::store_one({}, {} ? {} : {});", to, inside, element, float_text(copy.fill));
  else
    out_.line("if ({}) wl::store_one({}, {});", inside, to, element);
}

// `inside`: what must hold for the element to lie inside its global tensor, or empty.
void CpuEmitter::copy_whole_element(const Copy& copy, const std::string& inside, bool reads) {
  const std::string to = pointer(copy.dst);
  std::string value = whole_element(pointer(copy.src));
  const bool may_lie_outside = !inside.empty();
  if (may_lie_outside && reads) {
    const int64_t fill = saturated_integer(tensor(copy.src.tensor).dtype, copy.fill);
    value = fmt::format("{} ? {} : {}", inside, value, whole_literal(fill));
  }
  const std::string stored = stored_whole(copy.dst.tensor, value);
  if (may_lie_outside && !reads)
    out_.line("if ({}) *({}) = {};", inside, to, stored);
  else
    out_.line("*({}) = {};", to, stored);
}

// One element of the gathered dimension after another, each at the index that is read for it.
void CpuEmitter::gathered(Copy copy) {
  const bool reads = copy.src.lookup >= 0;
  Tile& global = reads ? copy.src : copy.dst;
  Tile& other = reads ? copy.dst : copy.src;
  const auto dim = as_size(global.lookup_dim);
  const Tensor& lookup = tensor(global.lookup);
  turns("g", global.extent[dim], [&](const Index& g) {
    const Index place = global.offset[dim] + g;
    const std::string at = fresh("at");
    const std::string indices = fmt::format("{}, {}, {}, {}", name(global.lookup), place.text(),
                                            lookup.shape[0], lookup.strides[0]);
    const int64_t size = tensor(global.tensor).shape[dim];
    out_.line("const long {} = wl::lookup({}, {});", at, indices, size);
    const auto all = *meetings(global.extent, other.extent);
    for (const Meeting& met : all) {
      if (met.a[0] != dim) continue;
      const size_t theirs = met.b[0];
      other.offset[theirs] = other.offset[theirs] + g;
      other.extent[theirs] = 1;
    }
    global.offset[dim] = Index::variable(at);
    global.extent[dim] = 1;
    global.lookup = -1;
    move(copy);
  });
}

// Loops for what is no matrix on both sides: dimensions of one that meet one of the other together,
// a gathered one, and those beyond two. Then the best way to move the matrix.
void CpuEmitter::move(const Copy& copy) {
  const bool leaves = tensor(copy.dst.tensor).scope == Scope::global;
  if (leaves && copy.streaming && is_one_run(copy.src) && is_one_run(copy.dst)) {
    streams_ = true;
    const int64_t count = element_count(copy.src.extent);
    return out_.line("wl::stream_run({}, {}, {});", pointer(copy.dst), pointer(copy.src), count);
  }
  if (store_in_pairs(copy)) return;
  const auto all = *meetings(copy.src.extent, copy.dst.extent);
  const auto on = [&](const Copy& rest) { move(rest); };
  for (const Meeting& met : all)
    if (met.a.size() + met.b.size() > 2) return walk(copy, met, on);
  if (copy.src.lookup >= 0 || copy.dst.lookup >= 0) return gathered(copy);
  if (all.size() > 2) return walk(copy, all[0], on);

  if (in_integers(program_, Statement{copy, {}})) return copy_elements(copy, false);
  Side from = side_of(copy.src);
  Side to = side_of(copy.dst);
  const Side& global = from.global ? from : to;
  const bool rows_contiguous = global.row.dim < 0 || global.row.stride == 1;
  const bool exchanged = global.global && global.col.stride != 1 && rows_contiguous;
  if (exchanged) {
    from.exchange();
    to.exchange();
  }
  if (copy_rows(copy, from, to) || load_tile(copy, from, to)) return;
  if (from.global && to.strided && to.col.stride == 1 && from.col.stride > 1)
    return load_strided_rows(copy, from, to);
  if (exchanged && store_transposed(copy, from, to)) return;
  copy_elements(copy, exchanged);
}

void CpuEmitter::load_strided_rows(const Copy& copy, const Side& src, const Side& dst) {
  const std::string to = fmt::format("{}, {}", pointer(copy.dst), dst.row.stride);
  const std::string from = fmt::format("{}, {}", pointer(copy.src), src.row.stride);
  const std::string extents = fmt::format("{}, {}", src.row.extent, src.col.extent);
  const std::string inside = box(src);
  const std::string fill = float_text(copy.fill);
  out_.line("wl::load_rows<{}>({}, {}, {}, {}, {});", src.col.stride, to, from, extents, inside,
            fill);
}

void CpuEmitter::visit(const Copy& copy) {
  if (copy.combine)
    return unsupported("blocks of a CPU program do not combine in memory", "a copy that stores",
                       "a copy that combines");
  if (tensor(copy.src.tensor).as_strided >= 0)
    return unsupported("a CPU does not copy windows", "windows as a product's first operand",
                       tensor(copy.src.tensor).name);
  move(copy);
  const Tensor& src = tensor(copy.src.tensor);
  const Tensor& dst = tensor(copy.dst.tensor);
  const bool rounds = src.dtype != dst.dtype && is_narrow(dst.dtype);
  if (!rounds || dst.scope == Scope::global) return;
  const int64_t floats = layout(copy.dst.tensor).floats;
  out_.line("wl::round_all<wl::{}>({}, {});", name_of(dst.dtype), name(copy.dst.tensor), floats);
}
}  // namespace warploom::codegen
