#include "layout/memory_layout.h"
namespace warploom::layout {
namespace {
struct Cell {
  std::string text = ".";
  std::int64_t hue = -1;  // degrees on the colour wheel; -1 is white
};

// The visible part of a tile, row by row.
struct Grid {
  std::string title;
  std::int64_t rows, columns;
  std::vector<Cell> cells;
  std::string omitted;

  // cell(c) is that of the element at coordinate c.
  Grid(std::string name, const std::vector<std::int64_t>& tile, std::int64_t most, const auto& cell) : title(std::move(name)) {
    std::int64_t all_rows = 1, all_columns = 1;
    for (std::size_t d = 0; d < tile.size(); ++d) (d + 1 < tile.size() ? all_rows : all_columns) *= tile[d];
    rows = std::min(most, all_rows), columns = std::min(most, all_columns);
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      Coord coord(tile.size(), i % columns);
      std::int64_t row = i / columns;
      for (std::size_t d = tile.size(); d-- > 1; row /= tile[d - 1]) coord[d - 1] = row % tile[d - 1];
      cells.push_back(cell(coord));
    }
    if (rows < all_rows || columns < all_columns)
      omitted = fmt::format("{} of {} rows, {} of {} columns shown\n", rows, all_rows, columns, all_columns);
  }

  std::string text() const {
    std::size_t width = 0;
    for (const Cell& cell : cells) width = std::max(width, cell.text.size());
    std::string out = title + "\n";
    for (std::size_t i = 0; i < cells.size(); ++i)
      out += fmt::format("{:>{}}{}", cells[i].text, width, (i + 1) % static_cast<std::size_t>(columns) ? " " : "\n");
    return out + omitted;
  }

  std::string svg() const {
    constexpr std::int64_t kWidth = 52, kHeight = 24, kTop = 34;
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" font-family=\"monospace\" "
        "font-size=\"11\">\n"
        "<text x=\"10\" y=\"20\">{}</text>\n<text x=\"10\" y=\"{}\">{}</text>\n",
        columns * kWidth + 20, rows * kHeight + kTop + 30, title, rows * kHeight + kTop + 18, omitted);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const auto x = 10 + static_cast<std::int64_t>(i) % columns * kWidth,
                 y = kTop + static_cast<std::int64_t>(i) / columns * kHeight;
      out += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" stroke=\"#666\"/>"
          "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
          x, y, kWidth, kHeight, cells[i].hue < 0 ? "white" : fmt::format("hsl({},70%,80%)", cells[i].hue), x + kWidth / 2,
          y + 16, cells[i].text);
    }
    return out + "</svg>\n";
  }
};

Grid grid_of(const TvLayout& layout, std::int64_t most) {
  std::map<Coord, Cell> held;
  for (std::int64_t t = 0; t < layout.threads(); ++t)
    for (std::int64_t v = 0; v < layout.values(); ++v) {
      Cell& cell = held[layout.coord(t, v)];
      if (cell.hue >= 0) cell.text += cell.text.back() == '+' ? "" : "+";
      else cell = {fmt::format("T{}V{}", t, v), t * 137 % 360};  // neighbours get hues far apart
    }
  return {to_string(layout), layout.tile, most, [&](const Coord& coord) { return held[coord]; }};
}

Grid grid_of(const MemoryLayout& layout, std::int64_t most) {
  std::vector<std::int64_t> tile;
  for (const auto& dim : layout.dims) {
    tile.push_back(1);
    for (const MemoryMode& mode : dim) tile.back() *= mode.extent;
  }
  return {to_string(layout), tile, most, [&](const Coord& coord) {
            const auto bank = layout.byte_offset(coord) / 4 % 32;
            return Cell{std::to_string(bank), bank * 360 / 32};
          }};
}
}  // namespace
std::string draw_text(const TvLayout& layout, std::int64_t most) { return grid_of(layout, most).text(); }
std::string draw_text(const MemoryLayout& layout, std::int64_t most) { return grid_of(layout, most).text(); }
std::string draw_svg(const TvLayout& layout, std::int64_t most) { return grid_of(layout, most).svg(); }
std::string draw_svg(const MemoryLayout& layout, std::int64_t most) { return grid_of(layout, most).svg(); }
}  // namespace warploom::layout
