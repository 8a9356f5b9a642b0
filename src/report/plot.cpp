#include "report/plot.h"
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>
#include "base/rendered.h"
#include "report/figures.h"

namespace warploom::report {
namespace {
using nlohmann::json;

// The frame of resources/report/plot.html.
constexpr double kLeft = 80;
constexpr double kRight = 880;
constexpr double kTop = 30;
constexpr double kBottom = 296;
constexpr double kLeast = 1e-12;  // of what is drawn on a logarithmic axis
constexpr int kTicks = 6;

class Axis {
 public:
  Axis(bool logarithmic, double from, double to) : log_(logarithmic), from_(from), to_(to) {}

  void take(double value) {
    low_ = std::min(low_, in(value));
    high_ = std::max(high_, in(value));
  }

  bool empty() const { return low_ > high_; }

  void widen() {
    const double room = std::max(0.05 * (high_ - low_), log_ ? 0.05 : 0.5);
    low_ -= room;
    high_ += room;
  }

  double at(double value) const {
    return from_ + (to_ - from_) * (in(value)-low_) / (high_ - low_);
  }

  // Round values between the ends: 1, 2 and 5 of every power of ten, or steps of these.
  std::vector<double> ticks() const {
    std::vector<double> out = log_ ? log_ticks() : linear_ticks();
    while (out.size() > 2 * kTicks) {
      std::vector<double> fewer;
      for (size_t i = 0; i < out.size(); i += 2)
        fewer.push_back(out[i]);
      out = std::move(fewer);
    }
    return out;
  }

 private:
  double in(double value) const { return log_ ? std::log10(std::max(value, kLeast)) : value; }

  std::vector<double> log_ticks() const {
    std::vector<double> out;
    for (double power = std::floor(low_); power <= high_; ++power)
      for (const double digit : {1.0, 2.0, 5.0}) {
        const double value = digit * std::pow(10, power);
        if (in(value) >= low_ && in(value) <= high_) out.push_back(value);
      }
    if (out.size() < 2) out = {std::pow(10, low_), std::pow(10, high_)};
    return out;
  }

  std::vector<double> linear_ticks() const {
    const double rough = (high_ - low_) / kTicks;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    double step = power;
    for (const double digit : {2.0, 5.0, 10.0})
      if (step < rough) step = digit * power;
    std::vector<double> out;
    for (double value = std::ceil(low_ / step) * step; value <= high_; value += step)
      out.push_back(std::abs(value) < step / 2 ? 0 : value);
    return out;
  }

  bool log_;
  double from_;
  double to_;
  double low_ = HUGE_VAL;
  double high_ = -HUGE_VAL;
};

json label(double x, double y, const char* anchor, const std::string& text) {
  json out;
  out["x"] = x;
  out["y"] = y;
  out["anchor"] = anchor;
  out["text"] = text;
  return out;
}
}  // namespace

std::string drawn(const Plot& plot) {
  Axis x(plot.log_x, kLeft, kRight);
  Axis y(true, kBottom, kTop);
  for (const Plot::Mark& mark : plot.marks) {
    x.take(mark.x);
    y.take(mark.y);
    y.take(mark.low.value_or(mark.y));
    y.take(mark.high.value_or(mark.y));
  }
  for (const Plot::Line& line : plot.lines)
    for (const auto& [at_x, at_y] : line.corners) {
      x.take(at_x);
      y.take(at_y);
    }
  if (x.empty()) return "";
  x.widen();
  y.widen();
  json record;
  record["css"] = plot.css;
  record["title"] = plot.title;
  record["note"] = plot.note;
  json& labels = record["labels"];
  for (const double tick : x.ticks())
    labels.push_back(label(x.at(tick), kBottom + 20, "middle", number_text(tick)));
  for (const double tick : y.ticks()) {
    const std::string text = plot.times ? time_text(tick) : number_text(tick);
    labels.push_back(label(kLeft - 8, y.at(tick) + 4, "end", text));
  }
  labels.push_back(label((kLeft + kRight) / 2, kBottom + 42, "middle", plot.x));
  labels.push_back(label(kLeft, kTop - 10, "start", plot.y));
  for (const Plot::Line& line : plot.lines) {
    std::string points;
    for (const auto& [at_x, at_y] : line.corners)
      points += fmt::format("{:.1f},{:.1f} ", x.at(at_x), y.at(at_y));
    record["lines"].push_back({{"css", line.css}, {"points", points}});
  }
  for (const Plot::Mark& mark : plot.marks) {
    const double at_x = x.at(mark.x);
    if (mark.low && mark.high) {
      const double low = y.at(*mark.low);
      const double high = y.at(*mark.high);
      const std::string points = fmt::format("{0:.1f},{1:.1f} {0:.1f},{2:.1f}", at_x, low, high);
      record["lines"].push_back({{"css", "interval " + mark.css}, {"points", points}});
    }
    json row;
    row["css"] = mark.css;
    row["x"] = at_x;
    row["y"] = y.at(mark.y);
    row["text"] = mark.text;
    record["marks"].push_back(std::move(row));
  }
  return rendered_html(resource("report/plot.html"), record, {});
}
}  // namespace warploom::report
