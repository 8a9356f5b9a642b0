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
    double x = 0;
    double y = 0;
    std::string css = {};
    std::string text = {};  // shows where the pointer rests
    // of the interval of y
    std::optional<double> low = std::nullopt;
    std::optional<double> high = std::nullopt;
  };

  struct Line {
    std::string css;
    std::vector<std::pair<double, double>> corners;
  };

  // of the figure
  std::string css;
  std::string title;
  std::string note;
  // what the axes are of; y's is logarithmic
  std::string x;
  std::string y;
  bool log_x = false;
  bool times = false;  // y is microseconds
  std::vector<Mark> marks = {};
  std::vector<Line> lines = {};
};

// "" where nothing is to be shown.
std::string drawn(const Plot& plot);
}  // namespace warploom::report
