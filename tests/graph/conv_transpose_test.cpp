// ConvTranspose against its definition: every element of the input is multiplied by the weights and
// scattered.
#include <gtest/gtest.h>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "builder.h"
#include "graph/graph.h"
#include "graph/reference.h"

namespace warploom::graph {
namespace {
using Ints = std::vector<int64_t>;

struct Geometry {  // of two axes
  int64_t groups = 1;
  Ints size;
  Ints kernel;
  Ints strides;
  Ints dilations;
  Ints before;
  Ints after;
  Ints added;
};

Geometry random_geometry(Random& random) {
  const auto below = [&](uint64_t count) { return static_cast<int64_t>(random.below(count)); };
  Geometry g{.groups = 1 + below(2)};
  for (int axis = 0; axis < 2; ++axis) {
    g.size.push_back(1 + below(5));
    g.kernel.push_back(1 + below(5));
    g.strides.push_back(1 + below(4));
    g.dilations.push_back(1 + below(3));
    g.before.push_back(below(4));
    g.after.push_back(below(4));
    g.added.push_back(below(static_cast<uint64_t>(g.strides.back())));
  }
  return g;
}

struct Elements {
  std::vector<double>& values;
  const Shape& shape;

  double& at(int64_t i0, int64_t i1, int64_t i2, int64_t i3) const {
    const int64_t row = (i0 * shape[1] + i1) * shape[2] + i2;
    return values[static_cast<size_t>(row * shape[3] + i3)];
  }
};

// Adds all that plane `i` of x, of an image and a channel, gives to output channel `m` of its group
// (two channels a group).
void scatter(const Geometry& g, const Elements& x, const Elements& w, int64_t i, int64_t m,
             const Elements& y) {
  const int64_t image = i / x.shape[1];
  const int64_t c = i % x.shape[1];
  const int64_t channel = c / 2 * w.shape[1] + m;
  const int64_t places = g.size[0] * g.size[1] * g.kernel[0] * g.kernel[1];
  for (int64_t place = 0; place < places; ++place) {
    const int64_t q = place % g.size[1];
    const int64_t p = place / g.size[1] % g.size[0];
    const int64_t kw = place / g.size[1] / g.size[0] % g.kernel[1];
    const int64_t kh = place / g.size[1] / g.size[0] / g.kernel[1];
    const int64_t row = p * g.strides[0] + kh * g.dilations[0] - g.before[0];
    const int64_t column = q * g.strides[1] + kw * g.dilations[1] - g.before[1];
    if (row < 0 || row >= y.shape[2] || column < 0 || column >= y.shape[3]) continue;
    y.at(image, channel, row, column) += x.at(image, c, p, q) * w.at(c, m, kh, kw);
  }
}

TEST(ConvTranspose, ScattersItsInputInEveryGeometry) {
  Random random(5, "geometries");
  int judged = 0;
  for (int round = 0; round < 400; ++round) {
    const Geometry g = random_geometry(random);
    const int64_t n = 2;
    const int64_t in = 2 * g.groups;
    const int64_t out = 3;  // of a group
    Builder b("net");
    const Shape x_shape = {n, in, g.size[0], g.size[1]};
    const Shape w_shape = {in, out, g.kernel[0], g.kernel[1]};
    const TensorId x = b.input("x", Dtype::f64, x_shape);
    const TensorId w = b.input("w", Dtype::f64, w_shape);
    b.output(b.add(OpKind::ConvTranspose, {x, w},
                   {{"strides", g.strides},
                    {"dilations", g.dilations},
                    {"pads", Ints{g.before[0], g.before[1], g.after[0], g.after[1]}},
                    {"output_padding", g.added},
                    {"group", g.groups}}));
    Shape y_shape = {n, out * g.groups};
    for (size_t a = 0; a < 2; ++a)
      y_shape.push_back((g.size[a] - 1) * g.strides[a] + (g.kernel[a] - 1) * g.dilations[a] + 1 +
                        g.added[a] - g.before[a] - g.after[a]);
    const auto graph = b.finish();
    ASSERT_EQ(graph.has_value(), y_shape[2] > 0 && y_shape[3] > 0) << round;
    if (!graph) continue;
    const auto primitive = decompose(*graph);
    ASSERT_TRUE(primitive) << describe(primitive.error());
    ASSERT_EQ(primitive->tensor(primitive->outputs[0]).shape, y_shape) << round;

    std::vector<std::vector<double>> values;
    for (const Shape& shape : {x_shape, w_shape}) {
      values.emplace_back(static_cast<size_t>(element_count(shape)));
      for (double& element : values.back())
        element = static_cast<double>(random.below(9)) - 4;
    }
    std::vector<double> want(static_cast<size_t>(element_count(y_shape)));
    for (int64_t i = 0; i < n * in; ++i)
      for (int64_t m = 0; m < out; ++m)
        scatter(g, {values[0], x_shape}, {values[1], w_shape}, i, m, {want, y_shape});
    const std::vector<Bytes> views = {std::as_bytes(std::span(values[0])),
                                      std::as_bytes(std::span(values[1]))};
    const auto got = evaluate(*primitive, views, 1);
    ASSERT_TRUE(got) << describe(got.error());
    ASSERT_EQ((*got)[0], want) << round;
    ++judged;
  }
  EXPECT_GT(judged, 200);
}
}  // namespace
}  // namespace warploom::graph
