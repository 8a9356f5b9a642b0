// Ranges as a whole, and their arithmetic.
#include "graph/ranges.h"
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include "base/casts.h"
#include "base/dtype.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/range_passes.h"

namespace warploom::graph {
Range meet(const Range& a, const Range& b) {
  Range both;
  both.low = std::max(a.low, b.low);
  both.high = std::min(a.high, b.high);
  both.whole = a.whole || b.whole;
  both.nonzero = a.nonzero || b.nonzero;
  return both;
}

Range hull(const Range& a, const Range& b) {
  Range either;
  either.low = std::min(a.low, b.low);
  either.high = std::max(a.high, b.high);
  either.whole = a.whole && b.whole;
  either.nonzero = a.nonzero && b.nonzero;
  return either;
}

std::string to_text(const Range& range) {
  std::string text = range.whole ? "whole numbers" : "numbers";
  if (std::isfinite(range.low)) text += fmt::format(" from {}", range.low);
  if (std::isfinite(range.high)) text += fmt::format(" to {}", range.high);
  return text + (range.nonzero ? ", not 0" : "");
}

Range range_in(const Ranges& ranges, std::string_view name) {
  const auto found = ranges.find(name);
  return found == ranges.end() ? Range{} : found->second;
}

namespace {
// inf - inf: nothing is known of that end.
double known_or(double end, double otherwise) {
  return std::isnan(end) ? otherwise : end;
}

Range of_ends(double low, double high, bool whole) {
  return {known_or(low, -HUGE_VAL), known_or(high, HUGE_VAL), whole};
}
}  // namespace

Range sum(const Range& a, const Range& b) {
  const bool whole = a.whole && b.whole;
  return of_ends(a.low + b.low, a.high + b.high, whole);
}

Range negative(const Range& a) {
  return {-a.high, -a.low, a.whole, a.nonzero};
}

Range difference(const Range& a, const Range& b) {
  return sum(a, negative(b));
}

Range product(const Range& a, const Range& b) {
  Range out = {HUGE_VAL, -HUGE_VAL, a.whole && b.whole};
  for (const double x : {a.low, a.high})
    for (const double y : {b.low, b.high}) {
      const double corner = known_or(x * y, 0);  // 0 · inf: an end that is 0 stays 0
      out.low = std::min(out.low, corner);
      out.high = std::max(out.high, corner);
    }
  return out;
}

Range times(const Range& a, double factor) {
  return product(a, {factor, factor, factor == std::trunc(factor)});
}

double terms_in(const Graph& graph, const Node& node) {
  const NodeContext context{graph, node};
  const double from = as_double(element_count(context.in(0).shape));
  if (class_of(node.op) == OpClass::scan) {
    const auto axis = constant_scalar(graph, node.inputs[1]);
    const size_t rank = context.in(0).shape.size();
    const auto given = as_int64(axis.value_or(0));
    const auto place = normalized_axis(given, rank, context.place);
    if (!place) return from;
    return as_double(context.in(0).shape[as_size(*place)]);
  }
  const double to = as_double(element_count(context.out()));
  return to > 0 ? std::max(1.0, from / to) : 1;
}

Ranges ranges_of(const Graph& graph, const Ranges& known) {
  const auto first = possible_ranges(graph, known);
  const auto legal = legal_ranges(graph, first);
  // Once more, now that inputs are known to be legal: what is made of them is less, too.
  Ranges inputs = known;
  for (const TensorId id : graph.inputs) {
    const auto at = as_size(id);
    const Range both = meet(first[at], legal[at]);
    if (!both.is_empty()) inputs[graph.tensor(id).name] = both;
  }
  const auto possible = possible_ranges(graph, inputs);
  const auto counted = counted_floats(graph);
  Ranges out;
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    const Tensor& tensor = graph.tensors[i];
    const Range given = range_in(known, tensor.name);
    const Range& allowed = legal[i];
    const bool has_end = std::isfinite(allowed.low) || std::isfinite(allowed.high);
    const bool is_restricted = has_end || allowed.nonzero || given != kAnything;
    const bool counts = counted[i] && possible[i].whole && possible[i].is_bounded();
    if (is_float(tensor.dtype) && !is_restricted && !counts) continue;
    Range both = meet(possible[i], legal[i]);
    if (both.is_empty()) both = possible[i];
    both.nonzero = legal[i].nonzero || given.nonzero;
    const Range plain = {-HUGE_VAL, HUGE_VAL, both.whole};
    if (tensor.dtype != Dtype::boolean && both != plain) out.emplace(tensor.name, both);
  }
  return out;
}
}  // namespace warploom::graph
