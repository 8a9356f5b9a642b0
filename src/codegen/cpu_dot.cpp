// Products of bf16 and of whole numbers of 16 bits two terms at once, by rows of the second operand
// that come in pairs, and the copies that make such rows.
#include <fmt/format.h>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "codegen/cpu_emitter.h"
#include "codegen/terms.h"
#include "target/cpu_tiles.h"
#include "tile/program.h"

namespace warploom::codegen {
namespace {
// A tile of memory whose rows come in groups of neighbours: of its tensor's last three dimensions,
// group, element of the group and column, or column, group and element.
struct Grouped {
  int64_t size = 1;  // of a group; 1: it is no such tile
  int64_t rows = 0;  // in all groups
  int64_t columns = 0;
  int64_t pitch = 0;  // elements from one group to the next
  bool columns_first = false;
};

bool is_paired(Dtype dtype) {
  return dtype == Dtype::bf16 || dtype == Dtype::i16;
}

Grouped grouped(const Tensor& tensor, const Tile& tile) {
  const size_t rank = tensor.shape.size();
  const bool is_plain = tensor.scope == Scope::global && tile.lookup < 0 && tile.step.empty();
  if (!is_plain || rank < 3) return {};
  for (size_t d = 0; d + 3 < rank; ++d)
    if (tile.extent[d] != 1) return {};
  for (const bool columns_first : {false, true}) {
    const size_t column = columns_first ? rank - 3 : rank - 1;
    const size_t group = columns_first ? rank - 2 : rank - 3;
    const size_t element = columns_first ? rank - 1 : rank - 2;
    const int64_t size = tensor.shape[element];
    const bool whole = tile.extent[element] == size && tile.offset[element].constant() == 0;
    const bool neighbours = tensor.strides[element] == 1 && tensor.strides[column] == size;
    if (size > 1 && whole && neighbours)
      return {size, size * tile.extent[group], tile.extent[column], tensor.strides[group],
              columns_first};
  }
  return {};
}
}  // namespace

// Rows of a group in a product's second operand; 1: they are one by one.
int64_t CpuEmitter::group_of(const Tile& tile) const {
  const Grouped rows = grouped(tensor(tile.tensor), tile);
  return rows.columns_first ? 1 : rows.size;
}

void CpuEmitter::multiply_pairs(const Mma& mma) {
  const bool fresh = std::exchange(begins_, "false") == "true";
  const Tensor& a = tensor(mma.a.tensor);
  const Tensor& b = tensor(mma.b.tensor);
  const Grouped rows = grouped(b, mma.b);
  const auto acc = matrix_extent(tensor(mma.acc).shape);
  const auto strides = matrix_strides(mma.a);
  std::string hindered = hinders(mma.a, 1);
  if (hindered.empty() && !conditions(mma.b).empty())
    hindered = "a tile that may lie partly outside";
  if (mma.transpose_a || a.scope != Scope::global || strides[1] != 1)
    hindered = fmt::format("terms of '{}' that are apart", a.name);
  if (rows.size != 2 || !is_paired(b.dtype))
    hindered = fmt::format("groups of {} {}", rows.size, name_of(b.dtype));
  if (acc.size() != 2 || layout(mma.acc).matrices != 1)
    hindered = "an accumulator of more than two dimensions";
  if (!hindered.empty())
    return unsupported("a matrix product cannot take the terms of its operands by groups",
                       "bf16 or i16 in memory: pairs of rows as neighbours in the second operand, "
                       "rows of contiguous terms in the first",
                       hindered);
  const char* const how = goes_to_tiles(acc, b.dtype, rows.rows) ? "by_tiles" : "pairs";
  out_.line("wl::multiply_{}<{}, {}, {}, {}, {}, {}>({}, {}, {}, {});", how, fresh, acc[0], acc[1],
            strides[0], rows.pitch, layout(mma.acc).panel, name(mma.acc), pointer(mma.a),
            pointer(mma.b), rows.rows);
}

// More sums than vector registers hold beside a row of the second operand, and no more than tiles
// do.
bool CpuEmitter::goes_to_tiles(const std::vector<int64_t>& sums, Dtype dtype, int64_t terms) const {
  const int64_t vectors = ceil_div(sums[1], lanes_);
  const bool is_held = (sums[0] + 1) * vectors < capabilities_.registers;
  const bool fits = target::CpuTiles(sums[0], sums[1]).fit();
  const bool is_there = capabilities_.has_bf16_tiles && dtype == Dtype::bf16;
  return is_there && fits && !is_held && terms % target::CpuTiles::kTerms == 0;
}

// A buffer into memory whose rows come in pairs.
bool CpuEmitter::store_in_pairs(const Copy& copy) {
  const Tensor& to = tensor(copy.dst.tensor);
  const Tensor& from = tensor(copy.src.tensor);
  const Grouped rows = grouped(to, copy.dst);
  const bool pairs = rows.size == 2 && is_paired(to.dtype) && conditions(copy.dst).empty();
  if (!pairs || from.scope == Scope::global || is_wide_integer(from.dtype)) return false;
  std::vector<int64_t> extent = {rows.rows, rows.columns};
  if (rows.columns_first) std::swap(extent[0], extent[1]);
  const CpuLayout& own = layout(copy.src.tensor);
  const bool in_rows = own.one_panel() && !own.rows_fast && own.panel % lanes_ == 0;
  if (from.shape != extent || copy.src.extent != extent || !in_rows) return false;
  const char* const turned = rows.columns_first ? "_transposed" : "";
  out_.line("wl::store_in_pairs{}<{}, {}>({}, {}, {}, {});", turned, rows.rows, rows.columns,
            pointer(copy.dst), rows.pitch, pointer(copy.src), own.panel);
  return true;
}
}  // namespace warploom::codegen
