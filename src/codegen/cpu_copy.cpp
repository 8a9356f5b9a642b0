// Copies on the CPU: a tile is taken as rows of contiguous elements where both sides allow it, packed into panels or transposed
// in registers where the buffer wants it so, and moved element by element where nothing better fits.
#include "codegen/cpu_emitter.h"
namespace warploom::codegen {
using tile::Index;
using tile::Scope;

// The last two dimensions of extent above 1 are the matrix that is copied; those before them are loops outside.
struct CpuEmitter::Side {
  const tile::Tile* tile = nullptr;
  bool global = false;
  std::vector<Index> at;   // the tile's offset, loops outside included
  int row = -1, col = -1;  // dimensions of the tensor, -1: extent 1
  std::int64_t rows = 1, cols = 1;
  std::int64_t row_stride = 0, col_stride = 1;
  bool strided = true;        // the strides hold over the whole tile
  bool whole_panels = false;  // of a buffer: the tile is all of its panels
  bool panels_start = false;  // the tile starts at the start of a panel
  bool rows_fast = false;     // of a buffer: which of `row` and `col` its panels cut

  void exchange() {
    std::swap(row, col);
    std::swap(rows, cols);
    std::swap(row_stride, col_stride);
    rows_fast = !rows_fast;
  }
};
namespace {
std::vector<std::size_t> squeezed_dims(const tile::Tile& tile) {
  const auto dims = tile::wide_dims(tile.extent);
  return {dims.begin(), dims.end()};
}
}  // namespace
// The element's place in its tensor. Where the fast coordinate is known to be a multiple of the panel the formula is linear.
Index CpuEmitter::address(tile::TensorId id, const std::vector<Index>& at, bool panels_start) const {
  const tile::Tensor& t = tensor(id);
  Index sum = 0;
  if (t.scope == Scope::global) {
    for (std::size_t i = 0; i < at.size(); ++i) sum = sum + at[i] * t.strides[i];
    return sum;
  }
  const CpuLayout& l = layout(id);
  const std::size_t rank = at.size();
  std::int64_t matrix = l.matrix_floats();
  for (std::size_t i = rank > 2 ? rank - 2 : 0; i-- > 0;) {
    sum = sum + at[i] * matrix;
    matrix *= t.shape[i];
  }
  const Index r = rank > 1 ? at[rank - 2] : Index(0), c = rank > 0 ? at[rank - 1] : Index(0);
  const Index& fast = l.rows_fast ? r : c;
  const Index& slow = l.rows_fast ? c : r;
  if (l.one_panel()) return sum + slow * l.panel + fast;
  if (panels_start) return sum + fast * l.slow() + slow * l.panel;
  return sum + fast / l.panel * (l.slow() * l.panel) + slow * l.panel + fast % l.panel;
}

CpuEmitter::Side CpuEmitter::side_of(const tile::Tile& tile, const std::vector<Index>& outer) const {
  const tile::Tensor& t = tensor(tile.tensor);
  Side side;
  side.tile = &tile;
  side.global = t.scope == Scope::global;
  side.at = tile.offset;
  const auto dims = squeezed_dims(tile);
  for (std::size_t i = 0; i < outer.size(); ++i) side.at[dims[i]] = side.at[dims[i]] + outer[i] * tile.step_along(dims[i]);
  if (dims.size() > 1) side.row = static_cast<int>(dims[dims.size() - 2]), side.rows = tile.extent[dims[dims.size() - 2]];
  if (!dims.empty()) side.col = static_cast<int>(dims.back()), side.cols = tile.extent[dims.back()];
  const auto strides = side.global ? t.strides : layout(tile.tensor).strides(t.shape);
  const auto stride_along = [&](int dim) {
    const auto d = static_cast<std::size_t>(dim);
    return strides[d] * tile.step_along(d);
  };
  if (side.row >= 0) side.row_stride = stride_along(side.row);
  if (side.col >= 0) side.col_stride = stride_along(side.col);
  if (side.global) return side;

  const CpuLayout& l = layout(tile.tensor);
  const std::size_t rank = t.shape.size();
  if (rank == 0) return side;
  const std::size_t fast = l.rows_fast && rank > 1 ? rank - 2 : rank - 1;
  const std::size_t slow = l.rows_fast || rank < 2 ? rank - 1 : rank - 2;
  side.rows_fast = side.row == static_cast<int>(fast);
  if (l.one_panel()) return side;
  side.panels_start = ranges_.divisible(side.at[fast], l.panel);
  side.strided = tile.extent[fast] == 1 || (side.panels_start && tile.extent[fast] <= l.panel);
  side.whole_panels = side.at[fast].constant() == 0 && tile.extent[fast] == l.fast() && side.at[slow].constant() == 0 &&
                      tile.extent[slow] == l.slow();
  return side;
}

std::string CpuEmitter::pointer(const Side& side) const {
  return plus(name(side.tile->tensor), address(side.tile->tensor, side.at, side.panels_start).text());
}

// Where a tile of one row of contiguous elements starts, if it lies inside its tensor whatever the indices hold; or empty.
std::string CpuEmitter::row_pointer(const tile::Tile& tile) const {
  if (tile.lookup >= 0) return "";
  const Side side = side_of(tile, {});
  const bool row = squeezed_dims(tile).size() < 2 && side.strided && (side.cols == 1 || side.col_stride == 1);
  return row && (!side.global || conditions(side, true, true).empty()) ? pointer(side) : "";
}

// What must hold for the tile to lie inside its global tensor and is not known before the kernel runs.
std::vector<std::string> CpuEmitter::conditions(const Side& global, bool matrix_dims, bool other_dims) const {
  const tile::Tensor& t = tensor(global.tile->tensor);
  std::vector<std::string> out;
  for (std::size_t i = 0; i < global.at.size(); ++i) {
    const bool matrix = static_cast<int>(i) == global.row || static_cast<int>(i) == global.col;
    if (matrix ? !matrix_dims : !other_dims) continue;
    const std::int64_t extent = matrix ? global.tile->reach(i) : 1;
    const Range range = ranges_.of(global.at[i]);
    if (range.low < 0) out.push_back(fmt::format("{} >= 0", global.at[i].text()));
    if (range.high + extent > t.shape[i]) out.push_back(fmt::format("{} <= {}", (global.at[i] + extent).text(), t.shape[i]));
  }
  return out;
}

std::string CpuEmitter::box(const Side& global) const {
  const tile::Tensor& t = tensor(global.tile->tensor);
  const auto part = [&](int dim, std::int64_t extent) {
    if (dim < 0) return std::string("{0, 1, 1}");
    const auto d = static_cast<std::size_t>(dim);
    const std::int64_t step = global.tile->step_along(d);
    return fmt::format("{{{}, {}, {}{}}}", global.at[d].text(), extent, t.shape[d], step == 1 ? "" : fmt::format(", {}", step));
  };
  const std::string inside = fmt::format("wl::inside({}, {})", part(global.row, global.rows), part(global.col, global.cols));
  const auto others = conditions(global, false, true);
  return others.empty() ? inside : fmt::format("{} ? {} : wl::Box{{}}", fmt::join(others, " && "), inside);
}

// One call where the tile lies inside its tensor, the other where it may not.
void CpuEmitter::guarded(const Side* global, const std::string& whole, const std::string& part) {
  const auto checks = global ? conditions(*global, true, true) : std::vector<std::string>();
  if (checks.empty()) return out_.line("{}", whole);
  out_.line("if ({}) {}", fmt::join(checks, " && "), whole);
  out_.line("else {}", part);
}

// Rows of contiguous elements on both sides.
bool CpuEmitter::copy_rows(const tile::Copy& copy, const Side& src, const Side& dst) {
  if (!src.strided || !dst.strided || src.col_stride != 1 || dst.col_stride != 1) return false;
  const std::string to = pointer(dst), from = pointer(src);
  const bool streaming = dst.global && copy.streaming && tensor(dst.tile->tensor).dtype == Dtype::f32;
  streams_ |= streaming;
  std::string part;
  if (src.global)
    part = fmt::format("wl::load_rows({}, {}, {}, {}, {}, {}, {}, {});", to, dst.row_stride, from, src.row_stride, src.rows,
                       src.cols, box(src), float_text(copy.fill));
  else if (dst.global)
    part = fmt::format("wl::store_rows({}, {}, {}, {}, {});", to, dst.row_stride, from, src.row_stride, box(dst));
  guarded(src.global   ? &src
          : dst.global ? &dst
                       : nullptr,
          fmt::format("wl::copy_rows<{}, {}{}>({}, {}, {}, {});", src.rows, src.cols, streaming ? ", true" : "", to,
                      dst.row_stride, from, src.row_stride),
          part);
  return true;
}

// A global tile into panels, or transposed.
bool CpuEmitter::load_tile(const tile::Copy& copy, const Side& src, const Side& dst) {
  if (!src.global || src.col_stride != 1) return false;
  const CpuLayout& l = layout(dst.tile->tensor);
  const std::string to = pointer(dst), from = pointer(src), fill = float_text(copy.fill);
  if (dst.whole_panels && !dst.rows_fast) {
    guarded(&src, fmt::format("wl::pack_panels<{}, {}, {}>({}, {}, {});", src.rows, src.cols, l.panel, to, from, src.row_stride),
            fmt::format("wl::pack_panels({}, {}, {}, {}, {}, {}, {}, {});", to, from, src.row_stride, src.rows, src.cols, l.panel,
                        box(src), fill));
    return true;
  }
  // Transposing writes whole vectors of rows: they must end where the tensor or a vector does.
  if (!dst.rows_fast || l.panel % lanes_ != 0 || !(dst.strided || dst.whole_panels) || dst.col < 0) return false;
  if (dst.rows_fast && dst.col_stride != l.panel) return false;  // another dimension lies between
  const Index& first = dst.at[static_cast<std::size_t>(dst.row)];
  if (!ranges_.divisible(first, lanes_)) return false;
  if (src.rows % lanes_ != 0 && !(first.constant() && *first.constant() + src.rows == l.fast())) return false;
  const std::string bounds =
      conditions(src, true, true).empty() ? fmt::format("wl::Box{{0, {}, 0, {}}}", src.rows, src.cols) : box(src);
  out_.line("wl::pack_transposed({}, {}, {}, {}, {}, {}, {}, {});", to, from, src.row_stride, src.rows, src.cols, l.panel, bounds,
            fill);
  return true;
}

void CpuEmitter::copy_elements(const tile::Copy& copy, const Side& src, const Side& dst) {
  const std::string i = fresh("i"), j = fresh("j");
  const auto at = [&](const Side& side) {
    auto place = side.at;
    const auto move = [&](int dim, const std::string& variable) {
      if (dim < 0) return;
      const auto d = static_cast<std::size_t>(dim);
      place[d] = place[d] + Index::variable(variable) * side.tile->step_along(d);
    };
    move(side.row, i), move(side.col, j);
    return plus(name(side.tile->tensor), address(side.tile->tensor, place, false).text());
  };
  const Side* global = src.global ? &src : dst.global ? &dst : nullptr;
  const bool checked = global && !conditions(*global, true, true).empty();
  if (checked) out_.line("const wl::Box {}_box = {};", i, box(*global));
  const std::string test = fmt::format(
      "{0} >= {0}_box.row_begin && {0} < {0}_box.row_end && {1} >= {0}_box.col_begin && {1} < "
      "{0}_box.col_end",
      i, j);
  out_.open("for (long {0} = 0; {0} < {1}; ++{0})", i, src.rows);
  out_.open("for (long {0} = 0; {0} < {1}; ++{0})", j, src.cols);
  if (checked && src.global)
    out_.line("wl::store_one({}, {} ? wl::load_one({}) : {});", at(dst), test, at(src), float_text(copy.fill));
  else if (checked) out_.line("if ({}) wl::store_one({}, wl::load_one({}));", test, at(dst), at(src));
  else out_.line("wl::store_one({}, wl::load_one({}));", at(dst), at(src));
  out_.outdent();
  out_.outdent();
}

void CpuEmitter::copy_matrix(const tile::Copy& copy, const Side& src, const Side& dst) {
  Side from = src, to = dst;
  const Side& global = src.global ? src : dst;
  if (global.global && global.col_stride != 1 && (global.row < 0 || global.row_stride == 1)) {
    from.exchange();
    to.exchange();
  }
  if (copy_rows(copy, from, to) || load_tile(copy, from, to)) return;
  if (from.global && to.strided && to.col_stride == 1 && from.col_stride > 1)
    return out_.line("wl::load_strided<{}>({}, {}, {}, {}, {}, {}, {}, {});", from.col_stride, pointer(to), to.row_stride,
                     pointer(from), from.row_stride, from.rows, from.cols, box(from), float_text(copy.fill));
  copy_elements(copy, from, to);
}

// One element of the gathered dimension after another, each at the index that is read for it.
Status CpuEmitter::gathered(tile::Copy copy) {
  const bool reads = copy.src.lookup >= 0;
  tile::Tile &global = reads ? copy.src : copy.dst, &other = reads ? copy.dst : copy.src;
  const auto dim = static_cast<std::size_t>(global.lookup_dim);
  const auto mine = squeezed_dims(global), theirs = squeezed_dims(other);
  const tile::Tensor& lookup = tensor(global.lookup);
  tile::For loop{fresh("g"), 0, global.extent[dim], 1, false, {}};
  const Index g = Index::variable(loop.variable), place = global.offset[dim] + g;
  const std::string at = fresh("at");
  out_.open("for (long {0} = 0; {0} < {1}; ++{0}) {{", loop.variable, global.extent[dim]);
  out_.line("const long {0} = {1} >= 0 && {1} < {2} ? {3}[{4}] : -1;", at, place.text(), lookup.shape[0], name(global.lookup),
            (place * lookup.strides[0]).text());
  ranges_.enter(loop);
  for (std::size_t i = 0; i < mine.size(); ++i)
    if (mine[i] == dim) other.offset[theirs[i]] = other.offset[theirs[i]] + g, other.extent[theirs[i]] = 1;
  global.offset[dim] = Index::variable(at), global.extent[dim] = 1, global.lookup = -1;
  WARPLOOM_CHECK(visit(copy));
  ranges_.leave(loop);
  out_.close();
  return ok();
}

// Several dimensions of one side meet one of the other: one index of the slowest of them after another.
std::optional<Status> CpuEmitter::grouped(tile::Copy copy) {
  const auto all = tile::meetings(copy.src.extent, copy.dst.extent);
  for (const tile::Meeting& met : *all) {
    if (met.a.size() + met.b.size() == 2) continue;
    tile::Tile &fine = met.a.size() > 1 ? copy.src : copy.dst, &coarse = met.a.size() > 1 ? copy.dst : copy.src;
    const auto slow = static_cast<std::size_t>(met.a.size() > 1 ? met.a[0] : met.b[0]),
               one = static_cast<std::size_t>(met.a.size() > 1 ? met.b[0] : met.a[0]);
    tile::For loop{fresh("m"), 0, fine.extent[slow], 1, false, {}};
    const Index m = Index::variable(loop.variable);
    out_.open("for (long {0} = 0; {0} < {1}; ++{0}) {{", loop.variable, fine.extent[slow]);
    ranges_.enter(loop);
    coarse.extent[one] /= fine.extent[slow];
    coarse.offset[one] = coarse.offset[one] + m * coarse.extent[one];
    fine.offset[slow] = fine.offset[slow] + m * fine.step_along(slow), fine.extent[slow] = 1;
    const Status done = visit(copy);
    ranges_.leave(loop);
    out_.close();
    return done;
  }
  return std::nullopt;
}

Status CpuEmitter::visit(const tile::Copy& copy) {
  for (const tile::Tile* tile : {&copy.src, &copy.dst})
    if (const tile::Tensor& t = tensor(tile->tensor); cpu_element_type(t.dtype).empty())
      return unsupported("a copy moves a type that CPU kernels do not compute with", "f32, bf16 or f16",
                         fmt::format("'{}' of {}", t.name, name_of(t.dtype)));
  if (const auto done = grouped(copy)) return *done;
  if (copy.src.lookup >= 0 || copy.dst.lookup >= 0) return gathered(copy);
  const auto dims = squeezed_dims(copy.src);
  const std::size_t loops = dims.size() > 2 ? dims.size() - 2 : 0;
  std::vector<Index> outer;
  std::vector<tile::For> around;
  for (std::size_t i = 0; i < loops; ++i) {
    around.push_back({fresh("m"), 0, copy.src.extent[dims[i]], 1, false, {}});
    outer.push_back(Index::variable(around.back().variable));
    out_.open("for (long {0} = 0; {0} < {1}; ++{0}) {{", around.back().variable, copy.src.extent[dims[i]]);
    ranges_.enter(around.back());
  }
  copy_matrix(copy, side_of(copy.src, outer), side_of(copy.dst, outer));
  for (const tile::For& loop : around) {
    ranges_.leave(loop);
    out_.close();
  }
  const tile::Tensor& dst = tensor(copy.dst.tensor);
  if (dst.scope != Scope::global && is_narrow(dst.dtype) && tensor(copy.src.tensor).dtype != dst.dtype)
    out_.line("wl::round_all<wl::{}>({}, {});", name_of(dst.dtype), name(copy.dst.tensor), layout(copy.dst.tensor).floats);
  return ok();
}
}  // namespace warploom::codegen
