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

// The visible part of a tile, row by row; cells beyond `columns` or `rows` are not kept.
struct Grid {
  std::string title;
  std::int64_t all_rows = 1, all_columns = 1, rows = 0, columns = 0;
  std::vector<Cell> cells;

  Grid(std::string name, const std::vector<std::int64_t>& tile, DrawLimits limits) : title(std::move(name)) {
    for (std::size_t d = 0; d < tile.size(); ++d) (d + 1 < tile.size() ? all_rows : all_columns) *= tile[d];
    rows = std::clamp<std::int64_t>(limits.rows, 0, all_rows);
    columns = std::clamp<std::int64_t>(limits.columns, 0, all_columns);
    cells.resize(static_cast<std::size_t>(rows * columns));
  }
  Cell& at(std::int64_t row, std::int64_t column) { return cells[static_cast<std::size_t>(row * columns + column)]; }
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
  for (std::int64_t t = 0; t < layout.threads(); ++t)
    for (std::int64_t v = 0; v < values; ++v) {
      const Coord coord = layout.coord(t, v);
      std::int64_t row = 0;
      bool inside = true;
      for (std::size_t d = 0; d < coord.size(); ++d) {
        inside = inside && coord[d] >= 0 && coord[d] < layout.tile[d];
        if (d + 1 < coord.size()) row = row * layout.tile[d] + coord[d];
      }
      const std::int64_t column = coord.empty() ? 0 : coord.back();
      if (!inside || row >= grid.rows || column >= grid.columns) continue;
      Cell& cell = grid.at(row, column);
      if (cell.hue < 0) cell = {fmt::format("T{}V{}", t, v), "", hue_of(t), 88 - static_cast<int>(v * 34 / values)};
      else if (cell.text.back() != '+') cell.text += '+';
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
  for (std::int64_t row = 0; row < grid.rows; ++row)
    for (std::int64_t column = 0; column < grid.columns; ++column) {
      Coord coord(tile.size(), column);
      std::int64_t rest = row;
      for (std::size_t d = tile.size(); d-- > 1; rest /= tile[d - 1]) coord[d - 1] = rest % tile[d - 1];
      const std::int64_t byte = layout.byte_offset(coord), bank = byte / 4 % kBanks;
      grid.at(row, column) = {std::to_string(bank), fmt::format("@{}", byte), static_cast<int>(bank * 360 / kBanks),
                              78};
    }
  return grid;
}

std::string text_of(Grid grid) {
  std::size_t width = 0;
  for (const Cell& cell : grid.cells) width = std::max(width, cell.text.size());
  std::string out = grid.title + "\n";
  for (std::int64_t row = 0; row < grid.rows; ++row) {
    for (std::int64_t column = 0; column < grid.columns; ++column) {
      const std::string& text = grid.at(row, column).text;
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
  const auto label = [](std::int64_t x, std::int64_t y, std::string_view style, std::string_view text) {
    return fmt::format("<text x=\"{}\" y=\"{}\"{}>{}</text>", x, y, style, text);
  };
  constexpr std::string_view kLeft = " text-anchor=\"start\"", kSmall = " font-size=\"9\" fill=\"#444\"";
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"monospace\" font-size=\"11\" text-anchor=\"middle\">\n<title>{2}</title>\n{3}\n",
      width, height, grid.title, label(kMargin, kMargin + 12, kLeft, grid.title));
  for (std::int64_t row = 0; row < grid.rows; ++row)
    for (std::int64_t column = 0; column < grid.columns; ++column) {
      const Cell& cell = grid.at(row, column);
      const std::int64_t x = kMargin + column * kCellWidth, y = kMargin + kTitle + row * kCellHeight;
      const std::string fill = cell.hue < 0 ? "white" : fmt::format("hsl({},70%,{}%)", cell.hue, cell.lightness);
      out += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" stroke=\"#666\"/>", x, y,
                         kCellWidth, kCellHeight, fill);
      out += label(x + kCellWidth / 2, y + (cell.below.empty() ? 19 : 13), "", cell.text);
      if (!cell.below.empty()) out += label(x + kCellWidth / 2, y + 25, kSmall, cell.below);
      out += '\n';
    }
  if (const std::string note = grid.omitted(); !note.empty())
    out += label(kMargin, height - kMargin, kLeft, note) + "\n";
  return out + "</svg>\n";
}

}  // namespace

std::string draw_text(const TvLayout& layout, DrawLimits limits) { return text_of(grid_of(layout, limits)); }
std::string draw_text(const MemoryLayout& layout, DrawLimits limits) { return text_of(grid_of(layout, limits)); }
std::string draw_svg(const TvLayout& layout, DrawLimits limits) { return svg_of(grid_of(layout, limits)); }
std::string draw_svg(const MemoryLayout& layout, DrawLimits limits) { return svg_of(grid_of(layout, limits)); }

}  // namespace warploom::layout
