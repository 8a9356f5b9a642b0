// Operators that move elements or see them under another shape.
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <vector>
#include "base/dtype.h"
#include "fuzz/generator.h"
#include "graph/graph.h"
#include "graph_maker.h"

namespace warploom::fuzz {
void Maker::transpose(TensorId x) {
  Integers order(shape(x).size());
  std::iota(order.begin(), order.end(), 0);
  random.shuffle(order);
  keep(add(OpKind::Transpose, {x}, {{"perm", order}}));
}

void Maker::reshape(TensorId x) {
  Shape to = shape(x);
  for (int i = 0; i < 3; ++i) {
    const size_t at = random.below(to.size() + 1);
    if (chance(50) && at + 1 < to.size()) {  // two axes as one
      to[at] *= to[at + 1];
      to.erase(to.begin() + static_cast<ptrdiff_t>(at) + 1);
    } else if (at < to.size() && to.size() < 5) {  // one as two
      const auto part = any<int64_t>({1, 2, 3, 4, to[at]});
      if (part == 0 || to[at] % part != 0) continue;
      to[at] /= part;
      to.insert(to.begin() + static_cast<ptrdiff_t>(at) + below(2), part);
    }
  }
  if (!to.empty() && chance(25)) to[random.below(to.size())] = -1;
  keep(add(OpKind::Reshape, {x, integers(to)}));
}

void Maker::view(TensorId x) {
  const auto rank = std::ssize(shape(x));
  if (chance(40)) return keep(add(OpKind::Flatten, {x}, {{"axis", below(rank + 1)}}));
  if (chance(50) && rank < 5) return keep(add(OpKind::Unsqueeze, {x, integers({below(rank + 1)})}));
  keep(add(OpKind::Squeeze, {x}));
}

void Maker::slice(TensorId x) {
  Integers begins;
  Integers ends;
  Integers axes;
  Integers steps;
  for (int64_t d = 0; d < std::ssize(shape(x)); ++d) {
    const int64_t n = shape(x)[static_cast<size_t>(d)];
    if (n < 2 || chance(50)) continue;
    const int64_t begin = below(n);
    const int64_t step = any<int64_t>({1, 1, 2, 3, -1, -2});
    axes.push_back(d);
    begins.push_back(chance(25) ? begin - n : begin);
    steps.push_back(step);
    ends.push_back(step > 0 ? begin + 1 + below(n - begin)
                            : begin - 1 - below(begin + 1) - (chance(50) ? n : 0));
    if (step < 0 && ends.back() >= -n && ends.back() < 0)
      ends.back() = -n - 1;  // -1 would be the last element
  }
  if (axes.empty()) return give_up();
  keep(add(OpKind::Slice, {x, integers(begins), integers(ends), integers(axes), integers(steps)}));
}

void Maker::concat(TensorId x) {
  if (shape(x).empty()) return give_up();
  const int64_t along = axis(x);
  std::vector<TensorId> parts = {x};
  for (int64_t i = 1 + below(2); i > 0; --i) {
    Shape other = shape(x);
    other[static_cast<size_t>(along)] = 1 + below(8);
    parts.push_back(chance(40) ? values[random.below(values.size())] : operand(other));
  }
  random.shuffle(parts);
  keep(add(OpKind::Concat, parts, {{"axis", along}}));
}

void Maker::pad(TensorId x) {
  Integers pads;
  for (size_t d = 0; d < 2 * shape(x).size(); ++d)
    pads.push_back(any<int64_t>({0, 0, 1, 2, 3, -1}));
  std::vector<TensorId> inputs = {x, integers(pads)};
  if (chance(50)) inputs.push_back(scalar(any({0.0, 1.5, -2.0})));
  keep(add(OpKind::Pad, inputs));
}

void Maker::gather(TensorId x) {
  if (shape(x).empty()) return give_up();
  const int64_t along = axis(x);
  const int64_t bound = shape(x)[static_cast<size_t>(along)];
  const Shape places = any<Shape>({{}, {1}, {5}, {9}, {2, 3}});
  if (chance(50)) {
    std::vector<double> list(static_cast<size_t>(graph::element_count(places)));
    for (double& place : list)
      place = static_cast<double>(below(bound) - (chance(20) ? bound : 0));
    return keep(add(OpKind::Gather, {x, constant(Dtype::i64, places, list)}, {{"axis", along}}));
  }
  const TensorId list =
      input(any({Dtype::i64, Dtype::i32}), places, {Fill::whole, static_cast<double>(bound)});
  keep(add(OpKind::Gather, {x, list}, {{"axis", along}}));
}

void Maker::repeat(TensorId x) {
  Shape to = shape(x);
  if (chance(50)) {
    for (int64_t& d : to)
      d = any<int64_t>({1, 1, 2, 3});
    return keep(add(OpKind::Tile, {x, integers(to)}));
  }
  for (int64_t& d : to)
    if (d == 1) d = 1 + below(6);
  if (chance(50)) to.insert(to.begin(), 1 + below(3));
  keep(add(OpKind::Expand, {x, integers(to)}));
}

void Maker::split(TensorId x) {
  if (shape(x).empty()) return give_up();
  const int64_t along = axis(x);
  const int64_t n = shape(x)[static_cast<size_t>(along)];
  if (n < 2) return give_up();
  std::vector<TensorId> parts;
  if (chance(50) || n < 3) {
    const int64_t first = 1 + below(n - 1);
    parts = add_many(OpKind::Split, {x, integers({first, n - first})}, {{"axis", along}}, 2);
  } else {
    parts = add_many(OpKind::Split, {x}, {{"axis", along}, {"num_outputs", int64_t{3}}}, 3);
  }
  for (const TensorId part : parts)
    keep(part);
}

void Maker::blocks(TensorId x) {
  const Shape& s = shape(x);
  if (s.size() >= 2 && chance(25)) return keep(add(OpKind::Trilu, {x}, {{"upper", below(2)}}));
  keep(add(any({OpKind::DepthToSpace, OpKind::SpaceToDepth}), {x}, {{"blocksize", int64_t{2}}}));
}
}  // namespace warploom::fuzz
