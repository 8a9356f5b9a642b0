#include "layout/draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace warploom::layout {
namespace {

// cell(c) is the text of the element at coordinate c.
template <class Cell>
std::string drawn(const std::string& title, const std::vector<std::int64_t>& tile, DrawLimits limits,
                  const Cell& cell) {
  std::int64_t all_rows = 1, all_columns = 1;
  for (std::size_t d = 0; d < tile.size(); ++d) (d + 1 < tile.size() ? all_rows : all_columns) *= tile[d];
  const std::int64_t rows = std::min(limits.rows, all_rows), columns = std::min(limits.columns, all_columns);
  std::vector<std::string> cells;
  std::size_t width = 0;
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    Coord coord(tile.size(), i % columns);
    std::int64_t row = i / columns;
    for (std::size_t d = tile.size(); d-- > 1; row /= tile[d - 1]) coord[d - 1] = row % tile[d - 1];
    cells.push_back(cell(coord));
    width = std::max(width, cells.back().size());
  }
  std::string out = title + "\n";
  for (std::size_t i = 0; i < cells.size(); ++i)
    out += fmt::format("{:>{}}{}", cells[i], width, (i + 1) % static_cast<std::size_t>(columns) ? " " : "\n");
  if (rows < all_rows || columns < all_columns)
    out += fmt::format("{} of {} rows, {} of {} columns shown\n", rows, all_rows, columns, all_columns);
  return out;
}

}  // namespace

std::string draw_text(const TvLayout& layout, DrawLimits limits) {
  std::map<Coord, std::string> held;
  for (std::int64_t t = 0; t < layout.threads(); ++t)
    for (std::int64_t v = 0; v < layout.values(); ++v) {
      std::string& text = held[layout.coord(t, v)];
      if (text.empty()) text = fmt::format("T{}V{}", t, v);
      else if (text.back() != '+') text += '+';
    }
  return drawn(to_string(layout), layout.tile, limits,
               [&](const Coord& coord) { return held.count(coord) ? held[coord] : "."; });
}

std::string draw_text(const MemoryLayout& layout, DrawLimits limits) {
  std::vector<std::int64_t> tile;
  for (const auto& dim : layout.dims) {
    tile.push_back(1);
    for (const MemoryMode& mode : dim) tile.back() *= mode.extent;
  }
  return drawn(to_string(layout), tile, limits,
               [&](const Coord& coord) { return std::to_string(layout.byte_offset(coord) / 4 % 32); });
}

}  // namespace warploom::layout
