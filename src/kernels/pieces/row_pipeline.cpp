#include "kernels/pieces/row_pipeline.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include "base/casts.h"
#include "base/dtype.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/row_kernel.h"
#include "kernels/pieces/row_tiles.h"
#include "loopnest/loop_nest.h"
#include "loopnest/row_reduction.h"
#include "tile/build.h"
#include "tile/program.h"

namespace warploom::kernels {
namespace {
// Whether a load is the same for every row, and goes along all of it.
bool is_same_for_every_row(const RowReduction& rows, const Access& load) {
  const auto used = [&](size_t axis) { return load.uses(axis); };
  const bool along_all = load.in_bounds && std::ranges::all_of(rows.row, used);
  return along_all && std::ranges::none_of(rows.outer, used);
}
}  // namespace

std::set<int> loads_that_fill_tiles(const RowReduction& rows) {
  std::set<int> loads;
  const auto visit = [&](const auto& self, int id) -> void {
    const RowTerm& term = rows.term(id);
    if (term.kind == Kind::load && rows.fills_tile(term.varies)) loads.insert(term.load);
    for (const int operand : term.operands)
      self(self, operand);
  };
  for (const int root : rows.passes[0].roots(rows))
    visit(visit, root);
  return loads;
}

RowPipeline::RowPipeline(RowKernel& kernel, const RowPipelineOptions& options)
    : kernel_(kernel),
      options_(options),
      access_(kernel.rows().nest.loads[options.load]),
      extent_(kernel.tiles.row_extent()),
      tiles_(kernel.tiles.tiles_of_a_row()),
      stage_(kernel.tiles.b.shared("row", access_.dtype, {1, extent_ * tiles_})) {}

void RowPipeline::start(const Index& first) {
  load_resident(first);
  const int stages = as_int(options_.stages);
  pipeline_ = kernel_.tiles.b.pipeline("pipe", stages, {stage_});
  const int64_t ahead = std::max<int64_t>(1, options_.stages - 1);
  for (int64_t i = 0; i < ahead; ++i)
    produce(first + i * options_.workers);
  kernel_.terms.set_source([this](TensorId to) { take(to); });
}

void RowPipeline::load_resident(const Index& first) {
  constexpr int64_t kRowsEnough = 4;  // of a CTA
  const RowReduction& rows = kernel_.rows();
  std::set<int> same;
  int64_t bytes = 0;  // of a tile of them
  for (size_t i = 0; i < rows.nest.loads.size(); ++i) {
    const Access& load = rows.nest.loads[i];
    if (!is_same_for_every_row(rows, load)) continue;
    same.insert(as_int(i));
    bytes += extent_ * bytes_of(load.dtype);
  }
  kernel_.tiles.go_to_rows(first);
  if (same.empty() || kernel_.tiles.row_groups() < kRowsEnough * options_.workers) return;
  const int64_t stage_bytes = extent_ * tiles_ * bytes_of(access_.dtype);
  const int64_t left = options_.shared_bytes - options_.stages * stage_bytes - kReductionBytes;
  kernel_.terms.load_resident(same, std::min(tiles_, left / bytes));
}

void RowPipeline::produce(const Index& group) {
  RowTiles& tiles = kernel_.tiles;
  tiles.go_to_rows(group);
  TileCoord row = tiles.at();
  row.extent[tiles.last_axis()] = extent_ * tiles_;
  const int load = as_int(options_.load);
  const bool bypasses_l1 = tiles.options.exchange_in_memory;  // rows that large are read once
  tiles.b.produce(pipeline_, [&] {
    tiles.b.copy(tiles.input(load, row), tiles.b.all(stage_), 0, bypasses_l1);
  });
}

TensorId RowPipeline::arrived(int64_t tile) {
  RowTiles& tiles = kernel_.tiles;
  return tiles.reg(fmt::format("arrived{}", tile), tiles.everywhere(), access_.dtype);
}

// The first tile takes the whole row out of its stage, which the next row can then have.
void RowPipeline::take(TensorId to) {
  RowTiles& tiles = kernel_.tiles;
  auto& b = tiles.b;
  const int64_t tile = tiles.unrolled_tile();
  if (tile > 0) return b.copy(b.all(arrived(tile)), b.all(to));
  const bool is_one_tile = tiles_ == 1;
  b.consume(pipeline_, 0, [&] {
    for (int64_t i = 0; i < tiles_; ++i) {
      const TensorId part = is_one_tile ? to : arrived(i);
      const auto from = b.tile(stage_, {0, i * extent_}, {1, extent_});
      b.copy(from, b.all(part));
    }
  });
  const int64_t ahead = std::max<int64_t>(1, options_.stages - 1);
  const auto refill = [this, ahead, group = tiles.group()] {
    produce(group + ahead * options_.workers);
    kernel_.tiles.go_to_rows(group);
  };
  if (tiles.options.exchange_in_memory)
    kernel_.all_reduce.do_while_waiting(refill);
  else
    refill();
  if (!is_one_tile) b.copy(b.all(arrived(0)), b.all(to));
}
}  // namespace warploom::kernels
