// split_scans(): too few lines for a machine's multiprocessors are cut into parts.
//
//   y[l, n] = sum of x[l, ..n]
//
// becomes, with x as [l, p, j]:
//
//   total[l, p] = sum of x[l, p, ..]
//   before[l, p] = sum of total[l, ..p)
//   y[l, p, j] = before[l, p] + sum of x[l, p, ..j]
//
// x is read twice, the second time in part from the cache. Parts wait for nobody, so there may be
// any number of them, and what is added comes in one order.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/rules.h"

namespace warploom::graph {
namespace {
constexpr int64_t kLeast = 2048;  // elements of a part
constexpr int64_t kAcross = 32;   // lines that lie side by side, which a block takes together

// Parts are together as long as a line, or longer.
struct Parts {
  int64_t count = 1;
  int64_t length = 0;
};

Parts parts_of(const Shape& shape, size_t axis, int64_t num_sms) {
  const int64_t elements = element_count(shape);
  const int64_t size = shape[axis];
  const int64_t inner = element_count(entries(shape, axis + 1));
  if (elements == 0) return {};
  const int64_t blocks = elements / size / inner * ceil_div(inner, kAcross);
  const int64_t most_useful = size * std::min(inner, kAcross) / kLeast;
  const int64_t most = std::min(4 * num_sms / blocks, most_useful);
  if (3 * blocks > num_sms || most < 2) return {};
  for (int64_t count = most; 2 * count > most; --count)
    if (size % (8 * count) == 0) return {count, size / count};
  const int64_t length = round_up(ceil_div(size, most), 8);
  return {ceil_div(size, length), length};
}

// Whether a node is a scan of floats that is worth cutting.
bool is_cut(const Graph& graph, const Node& node, int64_t num_sms) {
  if (class_of(node.op) != OpClass::scan) return false;
  const Tensor& x = graph.tensor(node.inputs[0]);
  if (!is_float(x.dtype) || bits_of(x.dtype) > 32) return false;
  const size_t axis = whole_axis(*axis_sources(graph, node, 0));
  return parts_of(x.shape, axis, num_sms).count > 1;
}

// Writes the scans of one node.
struct ScanWriter {
  PrimitiveWriter& writer;
  size_t axis;
  int64_t reverse;

  TensorId pad(TensorId x, int64_t before, int64_t after, std::string_view what) {
    const List none(writer.rank(x));
    const TensorId zero = writer.scalar(0, x, "zero");
    const List before_axis = with(none, axis, before);
    const List after_axis = with(none, axis, after);
    return writer.pad(x, before_axis, after_axis, zero, what);
  }

  TensorId scan(TensorId x, size_t along, std::string_view what) {
    const auto number = as_double(along);
    const TensorId on = writer.constant(Dtype::i64, {}, {number}, "axis");
    return writer.make(OpKind::CumSum, {x, on}, what, {{"reverse", reverse}});
  }
};

Result<Outputs> cut_scan(PrimitiveWriter& writer, int64_t num_sms) {
  const size_t axis = whole_axis(*axis_sources(writer.graph, writer.node, 0));
  const Dtype given = writer.dtype(writer.raw(0));
  TensorId x = writer.raw(0);
  if (bits_of(given) < 32) x = writer.cast(x, Dtype::f32, "wide");
  const Shape whole = writer.shape(x);
  const Parts parts = parts_of(whole, axis, num_sms);
  const int64_t length = parts.count * parts.length;
  const int64_t beyond = length - whole[axis];
  ScanWriter scans = {writer, axis, writer.node.integer("reverse")};
  const int64_t first = scans.reverse ? -1 : 1;
  Shape cut = with(whole, axis, parts.count);
  cut.insert(cut.begin() + ptrdiff_t(axis) + 1, parts.length);
  const TensorId longer = scans.pad(x, 0, beyond, "longer");
  const TensorId part = writer.reshape(longer, cut, "parts");
  // Before the totals: so it comes into one region with the sum.
  const TensorId within = scans.scan(part, axis + 1, "within");
  const List part_axis = {int64_t(axis) + 1};
  const TensorId total = writer.reduce(OpKind::ReduceSum, part, part_axis, "totals");
  const TensorId moved = scans.pad(total, first, -first, "moved");
  const TensorId before = scans.scan(moved, axis, "before");
  const TensorId sums = writer.add(within, before, "sums");
  const TensorId y = writer.reshape(sums, with(whole, axis, length), "whole");
  const TensorId cropped = scans.pad(y, 0, -beyond, "y");
  return Outputs{writer.cast(cropped, given, "narrow")};
}
}  // namespace

Result<Graph> split_scans(Graph graph, int64_t num_sms) {
  const auto stays = [&](const Graph& of, const Node& node) { return !is_cut(of, node, num_sms); };
  return rewritten(std::move(graph), stays,
                   [&](PrimitiveWriter& writer) { return cut_scan(writer, num_sms); });
}
}  // namespace warploom::graph
