// spread_scans(): lines of which there are too few for a machine's num_sms are cut into parts.
//
//   y[l, n] = sum of x[l, ..n]      x as [l, p, j]:  total[l, p] = sum of x[l, p, ..],  before[l,
//   p] = sum of total[l, ..p) and
//                                                    y[l, p, j] = before[l, p] + sum of x[l, p,
//                                                    ..j]
//
// x is read twice, the second time in part from the cache. Parts wait for nobody, so there may be
// any number of them, and what is added comes in one order.
#include "graph/rules.h"

namespace warploom::graph {
namespace {
constexpr int64_t kLeast = 2048;
constexpr int64_t kAcross =
    32;  // elements of a part; lines that lie side by side, which a block takes together

struct Parts {
  // together as long as a line, or longer
  int64_t count = 1;
  int64_t length = 0;
};

Parts parts_of(const Shape& shape, size_t axis, int64_t num_sms) {
  const int64_t elements = element_count(shape);
  const int64_t size = shape[axis];
  const int64_t inner = element_count(Shape(shape.begin() + ptrdiff_t(axis) + 1, shape.end()));
  if (elements == 0) return {};
  const int64_t blocks = elements / size / inner * ceil_div(inner, kAcross);
  const int64_t most = std::min(4 * num_sms / blocks, size * std::min(inner, kAcross) / kLeast);
  if (3 * blocks > num_sms || most < 2) return {};
  for (int64_t count = most; 2 * count > most; --count)
    if (size % (8 * count) == 0) return {count, size / count};
  const int64_t length = round_up(ceil_div(size, most), 8);
  return {ceil_div(size, length), length};
}
}  // namespace

Result<Graph> spread_scans(Graph graph, int64_t num_sms) {
  const auto stays = [&](const Graph& of, const Node& node) {
    if (class_of(node.op) != OpClass::scan || !is_float(of.tensor(node.inputs[0]).dtype) ||
        bits_of(of.tensor(node.inputs[0]).dtype) > 32)
      return true;
    const size_t axis = whole_axis(*access_of(of, node, 0));
    return parts_of(of.tensor(node.inputs[0]).shape, axis, num_sms).count < 2;
  };
  return rewritten(std::move(graph), stays, [&](Writer& w) -> Result<Outputs> {
    const size_t axis = whole_axis(*access_of(w.graph, w.node, 0));
    const Dtype given = w.dtype(w.raw(0));
    const TensorId x = bits_of(given) < 32 ? w.cast(w.raw(0), Dtype::f32, "wide") : w.raw(0);
    const Shape whole = w.shape(x);
    const Parts parts = parts_of(whole, axis, num_sms);
    const int64_t reverse = w.node.integer("reverse");
    const int64_t beyond = parts.count * parts.length - whole[axis];
    const int64_t first = reverse ? -1 : 1;
    const auto pad = [&](TensorId of, int64_t before, int64_t after, std::string_view what) {
      const List none(w.rank(of));
      return w.pad(of, with(none, axis, before), with(none, axis, after), w.scalar(0, of, "zero"),
                   what);
    };
    const auto scan = [&](TensorId of, size_t along, std::string_view what) {
      return w.make(OpKind::CumSum,
                    {of, w.constant(Dtype::i64, {}, {static_cast<double>(along)}, "axis")}, what,
                    {{"reverse", reverse}});
    };
    Shape cut = with(whole, axis, parts.count);
    cut.insert(cut.begin() + ptrdiff_t(axis) + 1, parts.length);
    const TensorId longer = pad(x, 0, beyond, "longer");
    const TensorId part = w.reshape(longer, cut, "parts");
    const TensorId within = scan(part, axis + 1,
                                 "within");  // first: so it comes into one region with the sum
    const TensorId total = w.reduce(OpKind::ReduceSum, part, {int64_t(axis) + 1}, "totals");
    const TensorId before = scan(pad(total, first, -first, "moved"), axis, "before");
    const TensorId y =
        w.reshape(w.add(within, before, "sums"), with(whole, axis, whole[axis] + beyond), "whole");
    return Outputs{w.cast(pad(y, 0, -beyond, "y"), given, "narrow")};
  });
}
}  // namespace warploom::graph
