// Plain pictures: marks, intervals and lines over two axes, as SVG within a figure
// (resources/report/plot.html). A page shows them where scripts are off; report.js draws the same
// again so that it answers to pointer and keyboard.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace warploom::report {
// Classes are those of resources/report/style/pictures.css.
struct Plot {
  struct Mark {
    double x, y;
    std::string css, text;  // the text shows where the pointer rests
    std::optional<double> low = std::nullopt, high = std::nullopt;  // of the interval of y
  };

  struct Line {
    std::string css;
    std::vector<std::pair<double, double>> corners;
  };

  std::string css, title, note;  // of the figure
  std::string x, y;              // what the axes are of; y's is logarithmic
  bool log_x = false;
  bool times = false;  // y is microseconds
  std::vector<Mark> marks = {};
  std::vector<Line> lines = {};
};

// "" where nothing is to be shown.
std::string drawn(const Plot& plot);
}  // namespace warploom::report
