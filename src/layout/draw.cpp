#include "base/rendered.h"
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
  template <class CellAt>
  Grid(std::string name, const std::vector<std::int64_t>& tile, std::int64_t most, const CellAt& cell) : title(std::move(name)) {
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
    const std::int64_t bottom = rows * kHeight + kTop;
    nlohmann::json record = {{"width", columns * kWidth + 20},
                             {"height", bottom + 30},
                             {"title", title},
                             {"below", bottom + 18},
                             {"omitted", omitted}};
    for (std::int64_t i = 0; i < std::ssize(cells); ++i) {
      const std::int64_t x = 10 + i % columns * kWidth, y = kTop + i / columns * kHeight, hue = cells[i].hue;
      record["cells"].push_back({{"x", x},
                                 {"y", y},
                                 {"middle", x + kWidth / 2},
                                 {"base", y + 16},
                                 {"text", cells[i].text},
                                 {"fill", hue < 0 ? "white" : fmt::format("hsl({},70%,80%)", hue)}});
    }
    return rendered(resource("text/layout.svg"), record);
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
  return {to_string(layout), layout.tile, most, [&](const Coord& coord) { return held.count(coord) ? held[coord] : Cell{}; }};
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
