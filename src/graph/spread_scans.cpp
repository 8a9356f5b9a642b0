// spread_scans(): lines of which there are too few for a machine's processors are cut into parts.
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
constexpr std::int64_t
    kLeast = 2048,
    kAcross = 32;  // elements of a part; lines that lie side by side, which a block takes together

struct Parts {
  std::int64_t count = 1, length = 0;  // together as long as a line, or longer
};

Parts parts_of(const Shape& shape, std::size_t axis, std::int64_t processors) {
  const std::int64_t elements = element_count(shape), size = shape[axis],
                     inner = element_count(
                         Shape(shape.begin() + std::ptrdiff_t(axis) + 1, shape.end()));
  if (elements == 0) return {};
  const std::int64_t blocks = elements / size / inner * ceil_div(inner, kAcross),
                     most = std::min(4 * processors / blocks,
                                     size * std::min(inner, kAcross) / kLeast);
  if (3 * blocks > processors || most < 2) return {};
  for (std::int64_t count = most; 2 * count > most; --count)
    if (size % (8 * count) == 0) return {count, size / count};
  const std::int64_t length = round_up(ceil_div(size, most), 8);
  return {ceil_div(size, length), length};
}
}  // namespace

Result<Graph> spread_scans(Graph graph, std::int64_t processors) {
  const auto stays = [&](const Graph& of, const Node& node) {
    if (class_of(node.op) != OpClass::scan || !is_float(of.tensor(node.inputs[0]).dtype) ||
        bits_of(of.tensor(node.inputs[0]).dtype) > 32)
      return true;
    const std::size_t axis = whole_axis(*access_of(of, node, 0));
    return parts_of(of.tensor(node.inputs[0]).shape, axis, processors).count < 2;
  };
  return rewritten(std::move(graph), stays, [&](Writer& w) -> Result<Outputs> {
    const std::size_t axis = whole_axis(*access_of(w.graph, w.node, 0));
    const Dtype given = w.dtype(w.raw(0));
    const TensorId x = bits_of(given) < 32 ? w.cast(w.raw(0), Dtype::f32, "wide") : w.raw(0);
    const Shape whole = w.shape(x);
    const Parts parts = parts_of(whole, axis, processors);
    const std::int64_t reverse = w.node.integer("reverse"),
                       beyond = parts.count * parts.length - whole[axis], first = reverse ? -1 : 1;
    const auto pad = [&](TensorId of, std::int64_t before, std::int64_t after,
                         std::string_view what) {
      const List none(w.rank(of));
      return w.pad(of, with(none, axis, before), with(none, axis, after), w.scalar(0, of, "zero"),
                   what);
    };
    const auto scan = [&](TensorId of, std::size_t along, std::string_view what) {
      return w.make(OpKind::CumSum,
                    {of, w.constant(Dtype::i64, {}, {static_cast<double>(along)}, "axis")}, what,
                    {{"reverse", reverse}});
    };
    Shape cut = with(whole, axis, parts.count);
    cut.insert(cut.begin() + std::ptrdiff_t(axis) + 1, parts.length);
    const TensorId longer = pad(x, 0, beyond, "longer"), part = w.reshape(longer, cut, "parts"),
                   within = scan(part, axis + 1,
                                 "within"),  // first: so it comes into one region with the sum
        total = w.reduce(OpKind::ReduceSum, part, {std::int64_t(axis) + 1}, "totals"),
                   before = scan(pad(total, first, -first, "moved"), axis, "before"),
                   y = w.reshape(w.add(within, before, "sums"),
                                 with(whole, axis, whole[axis] + beyond), "whole");
    return Outputs{w.cast(pad(y, 0, -beyond, "y"), given, "narrow")};
  });
}
}  // namespace warploom::graph
