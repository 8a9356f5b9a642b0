#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>
#include "layout/memory_layout.h"
#include "layout/tv_layout.h"

namespace warploom::layout {
namespace {
struct Cell {
  std::string text = ".";
  int64_t hue = -1;  // degrees on the colour wheel; -1 is white
};

// Of the visible part of a tile, row by row; cell(c) is that of the element at coordinate c.
Picture picture_of(const std::string& title, const std::vector<int64_t>& tile, int64_t most,
                   const auto& cell) {
  constexpr int64_t kWidth = 52;
  constexpr int64_t kHeight = 24;
  constexpr int64_t kTop = 34;
  int64_t all_rows = 1;
  int64_t all_columns = 1;
  for (size_t d = 0; d < tile.size(); ++d)
    (d + 1 < tile.size() ? all_rows : all_columns) *= tile[d];
  const int64_t rows = std::min(most, all_rows);
  const int64_t columns = std::min(most, all_columns);
  std::vector<Cell> cells;
  size_t width = 0;
  for (int64_t i = 0; i < rows * columns; ++i) {
    Coord coord(tile.size(), i % columns);
    int64_t row = i / columns;
    for (size_t d = tile.size(); d-- > 1; row /= tile[d - 1])
      coord[d - 1] = row % tile[d - 1];
    cells.push_back(cell(coord));
    width = std::max(width, cells.back().text.size());
  }
  std::string omitted;
  if (rows < all_rows || columns < all_columns)
    omitted = fmt::format("{} of {} rows, {} of {} columns shown\n", rows, all_rows, columns,
                          all_columns);
  const int64_t bottom = rows * kHeight + kTop;
  Picture out{title + "\n", {}};
  out.svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" "
      "font-family=\"monospace\" font-size=\"11\">\n",
      columns * kWidth + 20, bottom + 30);
  out.svg += fmt::format("<text x=\"10\" y=\"20\">{}</text>\n", title);
  out.svg += fmt::format("<text x=\"10\" y=\"{}\">{}</text>\n", bottom + 18, omitted);
  for (int64_t i = 0; i < rows * columns; ++i) {
    const Cell& one = cells[i];
    const int64_t x = 10 + i % columns * kWidth;
    const int64_t y = kTop + i / columns * kHeight;
    const bool ends_row = (i + 1) % columns == 0;
    out.text += fmt::format("{:>{}}{}", one.text, width, ends_row ? "\n" : " ");
    std::string color = "white";
    if (one.hue >= 0) color = fmt::format("hsl({},70%,80%)", one.hue);
    out.svg += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" stroke=\"#666\"/>", x, y,
        kWidth, kHeight, color);
    out.svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                           x + kWidth / 2, y + 16, one.text);
  }
  return {out.text + omitted, out.svg + "</svg>\n"};
}
}  // namespace

Picture draw(const TvLayout& layout, int64_t most) {
  std::map<Coord, Cell> held;
  for (int64_t t = 0; t < layout.threads(); ++t)
    for (int64_t v = 0; v < layout.values(); ++v) {
      Cell& cell = held[layout.coord(t, v)];
      if (cell.hue >= 0)
        cell.text += cell.text.back() == '+' ? "" : "+";
      else
        cell = {fmt::format("T{}V{}", t, v), t * 137 % 360};  // neighbours get hues far apart
    }
  return picture_of(to_string(layout), layout.tile, most,
                    [&](const Coord& coord) { return held[coord]; });
}

Picture draw(const MemoryLayout& layout, int64_t most) {
  std::vector<int64_t> tile;
  for (const auto& dim : layout.dims) {
    tile.push_back(1);
    for (const MemoryMode& mode : dim)
      tile.back() *= mode.extent;
  }
  return picture_of(to_string(layout), tile, most, [&](const Coord& coord) {
    const auto bank = layout.byte_offset(coord) / 4 % 32;
    return Cell{std::to_string(bank), bank * 360 / 32};
  });
}
}  // namespace warploom::layout
