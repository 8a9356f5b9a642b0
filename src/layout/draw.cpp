#include "layout/draw.h"

#include <fmt/format.h>

#include <algorithm>

namespace warploom::layout {
namespace {

constexpr int kCellWidth = 52, kCellHeight = 30, kMargin = 10, kTitle = 22, kBanks = 32;

struct Cell {
  std::string text = ".", below;
  int hue = -1;         // degrees on the colour wheel; -1 is white
  int lightness = 100;  // percent
};

// The visible part of a tile, row by row.
struct Grid {
  std::string title;
  std::int64_t rows = 0, columns = 0, all_rows = 0, all_columns = 0;
  std::vector<Cell> cells;

  Grid(std::string name, const std::vector<std::int64_t>& tile, DrawLimits limits) : title(std::move(name)) {
    all_columns = tile.empty() ? 1 : tile.back();
    all_rows = 1;
    for (std::size_t d = 0; d + 1 < tile.size(); ++d) all_rows *= tile[d];
    rows = std::clamp<std::int64_t>(limits.rows, 0, all_rows);
    columns = std::clamp<std::int64_t>(limits.columns, 0, all_columns);
    cells.resize(static_cast<std::size_t>(rows * columns));
  }

  Cell* at(std::int64_t row, std::int64_t column) {
    if (row < 0 || row >= rows || column < 0 || column >= columns) return nullptr;
    return &cells[static_cast<std::size_t>(row * columns + column)];
  }

  std::string omitted() const {
    if (rows == all_rows && columns == all_columns) return {};
    return fmt::format("{} of {} rows, {} of {} columns shown", rows, all_rows, columns, all_columns);
  }
};

// Neighbouring numbers get hues far apart: steps of the golden angle.
int hue_of(std::int64_t n) { return static_cast<int>(n * 137 % 360); }

Grid grid_of(const TvLayout& layout, DrawLimits limits) {
  Grid grid(to_string(layout), layout.tile, limits);
  const std::int64_t values = layout.values();
  for (std::int64_t t = 0; t < layout.threads(); ++t) {
    for (std::int64_t v = 0; v < values; ++v) {
      const Coord coord = layout.coord(t, v);
      std::int64_t row = 0;
      bool inside = true;
      for (std::size_t d = 0; d < coord.size(); ++d) {
        inside = inside && coord[d] >= 0 && coord[d] < layout.tile[d];
        if (d + 1 < coord.size()) row = row * layout.tile[d] + coord[d];
      }
      Cell* cell = inside ? grid.at(row, coord.empty() ? 0 : coord.back()) : nullptr;
      if (!cell) continue;
      if (cell->hue >= 0) {
        if (cell->text.back() != '+') cell->text += '+';
        continue;
      }
      *cell = {fmt::format("T{}V{}", t, v), "", hue_of(t),
               88 - static_cast<int>(v * 34 / std::max<std::int64_t>(values, 1))};
    }
  }
  return grid;
}

Grid grid_of(const MemoryLayout& layout, DrawLimits limits) {
  std::vector<std::int64_t> tile;
  for (const auto& dim : layout.dims) {
    tile.push_back(1);
    for (const MemoryMode& mode : dim) tile.back() *= mode.extent;
  }
  Grid grid(to_string(layout), tile, limits);
  for (std::int64_t row = 0; row < grid.rows; ++row) {
    for (std::int64_t column = 0; column < grid.columns; ++column) {
      Coord coord(tile.size(), 0);
      if (!coord.empty()) coord.back() = column;
      std::int64_t rest = row;
      for (std::size_t d = tile.size(); d-- > 1;) {
        coord[d - 1] = rest % tile[d - 1];
        rest /= tile[d - 1];
      }
      const std::int64_t byte = layout.byte_offset(coord), bank = byte / 4 % kBanks;
      *grid.at(row, column) = {std::to_string(bank), fmt::format("@{}", byte), static_cast<int>(bank * 360 / kBanks),
                               78};
    }
  }
  return grid;
}

std::string text_of(Grid grid) {
  std::size_t width = 0;
  for (const Cell& cell : grid.cells) width = std::max(width, cell.text.size());
  std::string out = grid.title + "\n";
  for (std::int64_t row = 0; row < grid.rows; ++row) {
    for (std::int64_t column = 0; column < grid.columns; ++column) {
      const std::string& text = grid.at(row, column)->text;
      if (column) out += ' ';
      out.append(width - text.size(), ' ') += text;
    }
    out += '\n';
  }
  if (const std::string note = grid.omitted(); !note.empty()) out += note + "\n";
  return out;
}

std::string svg_of(Grid grid) {
  const std::int64_t width = grid.columns * kCellWidth + 2 * kMargin;
  const std::int64_t height = grid.rows * kCellHeight + 2 * kMargin + 2 * kTitle;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"monospace\" font-size=\"11\" text-anchor=\"middle\">\n"
      "<title>{2}</title>\n<text x=\"{3}\" y=\"{4}\" text-anchor=\"start\">{2}</text>\n",
      width, height, grid.title, kMargin, kMargin + 12);
  for (std::int64_t row = 0; row < grid.rows; ++row) {
    for (std::int64_t column = 0; column < grid.columns; ++column) {
      const Cell& cell = *grid.at(row, column);
      const std::int64_t x = kMargin + column * kCellWidth, y = kMargin + kTitle + row * kCellHeight;
      const std::string fill = cell.hue < 0 ? "white" : fmt::format("hsl({},70%,{}%)", cell.hue, cell.lightness);
      out += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" stroke=\"#666\"/>", x, y,
                         kCellWidth, kCellHeight, fill);
      out += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>", x + kCellWidth / 2, y + (cell.below.empty() ? 19 : 13),
                         cell.text);
      if (!cell.below.empty()) {
        out += fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"9\" fill=\"#444\">{}</text>", x + kCellWidth / 2,
                           y + 25, cell.below);
      }
      out += '\n';
    }
  }
  if (const std::string note = grid.omitted(); !note.empty()) {
    out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"start\">{}</text>\n", kMargin, height - kMargin, note);
  }
  return out + "</svg>\n";
}

}  // namespace

std::string draw_text(const TvLayout& layout, DrawLimits limits) { return text_of(grid_of(layout, limits)); }
std::string draw_text(const MemoryLayout& layout, DrawLimits limits) { return text_of(grid_of(layout, limits)); }
std::string draw_svg(const TvLayout& layout, DrawLimits limits) { return svg_of(grid_of(layout, limits)); }
std::string draw_svg(const MemoryLayout& layout, DrawLimits limits) { return svg_of(grid_of(layout, limits)); }

}  // namespace warploom::layout
