#include "codegen/terms.h"
namespace warploom::codegen {
namespace {
using layout::MemoryMode;

// The coordinate cut at a boundary: what lies below it and what above, each as terms of its own. False when a carry may cross.
bool split(const Coordinate& coordinate, std::int64_t boundary, std::vector<std::string>& low, Coordinate& high,
           std::int64_t low_scale) {
  const auto constant = coordinate.offset.constant();
  if (!constant && coordinate.offset.known_divisor() % boundary) return false;
  high.offset = coordinate.offset / boundary;
  std::int64_t low_reach = constant ? *constant % boundary : 0;
  low.push_back(std::to_string(low_reach * low_scale));
  for (const Term& term : coordinate.terms) {
    if (term.step % boundary == 0) {
      high.terms.push_back({term.variable, term.extent, term.step / boundary});
    } else if ((term.extent - 1) * term.step < boundary) {
      low.push_back(times(term.variable, term.step * low_scale));
      low_reach += (term.extent - 1) * term.step;
    } else if (boundary % term.step == 0) {
      const std::int64_t per = boundary / term.step;
      low.push_back(times(fmt::format("({} % {})", term.variable, per), term.step * low_scale));
      low_reach += (per - 1) * term.step;
      high.terms.push_back({fmt::format("({} / {})", term.variable, per), (term.extent + per - 1) / per, 1});
    } else {
      return false;
    }
  }
  return low_reach < boundary;
}
}  // namespace
std::string sum(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) {
    if (part == "0" || part.empty()) continue;
    out += out.empty() ? part : " + " + part;
  }
  return out.empty() ? "0" : out;
}

std::string times(const std::string& variable, std::int64_t factor) {
  if (factor == 0 || variable == "0") return "0";
  if (factor == 1) return variable;
  return fmt::format("{} * {}", parenthesized(variable), factor);
}

std::string parenthesized(const std::string& expression) {
  int depth = 0;
  for (const char c : expression) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (depth == 0 && (c == ' ' || c == '+' || c == '-')) return "(" + expression + ")";
  }
  return expression;
}

std::string float_text(double value) {
  if (std::isnan(value)) return "(0.0f / 0.0f)";
  const auto narrow = static_cast<float>(value);
  if (std::isinf(narrow)) return narrow < 0 ? "(-1.0f / 0.0f)" : "(1.0f / 0.0f)";
  const std::string text = fmt::format("{}", narrow);
  return text + (text.find_first_of(".e") == std::string::npos ? ".0f" : "f");
}
namespace {
std::vector<std::string> scaled(const Coordinate& coordinate, std::int64_t scale) {
  std::vector<std::string> parts = {(coordinate.offset * scale).text()};
  for (const Term& term : coordinate.terms)
    if (term.extent > 1) parts.push_back(times(term.variable, term.step * scale));
  return parts;
}
}  // namespace
std::string text(const Coordinate& coordinate) { return sum(scaled(coordinate, 1)); }

bool has_coordinates(const Value& value) {
  return value.kind == Value::Kind::coordinate || std::any_of(value.operands.begin(), value.operands.end(), has_coordinates);
}

std::vector<std::string> offset_parts(const Coordinate& coordinate, const std::vector<MemoryMode>& modes, std::int64_t scale) {
  if (modes.empty()) return {};
  const std::int64_t stride = modes[0].stride * scale;
  if (modes.size() == 1) return scaled(coordinate, stride);
  std::vector<std::string> parts;
  Coordinate high;
  const std::vector<MemoryMode> rest(modes.begin() + 1, modes.end());
  if (split(coordinate, modes[0].extent, parts, high, stride)) {
    const auto upper = offset_parts(high, rest, scale);
    parts.insert(parts.end(), upper.begin(), upper.end());
    return parts;
  }
  // A carry may cross: digits of the whole sum.
  std::string whole = "(" + text(coordinate) + ")";
  parts.clear();
  for (std::size_t i = 0; i < modes.size(); ++i) {
    const bool last = i + 1 == modes.size();
    parts.push_back(times(last ? whole : fmt::format("({} % {})", whole, modes[i].extent), modes[i].stride * scale));
    whole = fmt::format("({} / {})", whole, modes[i].extent);
  }
  return parts;
}
}  // namespace warploom::codegen
