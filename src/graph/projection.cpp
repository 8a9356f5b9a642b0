#include "graph/projection.h"
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/fresh_names.h"
#include "base/random.h"
#include "base/rows.h"
#include "graph/evaluator.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/rules.h"

namespace warploom::graph {
namespace {
constexpr double kGain = 8;
constexpr int64_t kLeastExtent = 8;  // of an axis worth summing

// Random signs whose sum is no larger than their norm, so that a common factor of all errors counts
// as others do, and which every type of 16 bits holds, since terms that do not vary along the axis
// are multiplied by it.
std::vector<double> random_signs(int64_t count, uint64_t seed) {
  Random random(seed, "signs");
  const double root = std::sqrt(as_double(count));
  const double most = std::min(128.0, std::floor(root));
  std::vector<double> signs;
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    double sign = random.below(2) == 0 ? -1 : 1;
    if (std::abs(sum) >= most) sign = sum > 0 ? -1 : 1;
    signs.push_back(sign);
    sum += sign;
  }
  return signs;
}

// Pushes the sum from an output back to the operands of products.
class Projector {
 public:
  Projector(Graph& graph, std::vector<double> signs) : graph_(graph), signs_(std::move(signs)) {}

  // Makes the output's sum the graph's one output; false where there is none.
  bool run(TensorId output, size_t axis) {
    graph_.outputs = {along(output, axis)};
    std::ranges::move(writer_.made, std::back_inserter(graph_.nodes));
    return sound_ && writer_.status();
  }

 private:
  // The sum over an axis as long as the signs, of size 1 there; the same one for all that read it.
  TensorId along(TensorId id, size_t axis) {
    const auto known = known_.find({id, axis});
    if (known != known_.end()) return known->second;
    const TensorId made = pushed(id, axis);
    known_.emplace(std::pair(id, axis), made);
    return made;
  }

  TensorId pushed(TensorId id, size_t axis) {
    const int maker = graph_.producer(id);
    if (maker < 0) return summed(id, axis);
    const Node node = graph_.nodes[maker];
    const Shape shape = graph_.tensor(id).shape;
    if (class_of(node.op) == OpClass::view)
      if (const auto same = same_axis(node, shape, axis))
        return with_one(along(node.inputs[0], *same), shape, axis);
    const bool adds = node.op == OpKind::Add || node.op == OpKind::Sub;
    if (!adds && !is_linear(node)) return summed(id, axis);
    auto inputs = node.inputs;
    int varying = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const AxisSources sources = *axis_sources(graph_, node, i);
      const auto found = std::ranges::find(sources, as_int(axis), &AxisSource::axis);
      if (found == sources.end()) {
        if (adds) inputs[i] = times_all_signs(inputs[i]);
        continue;
      }
      ++varying;
      const auto own_axis = as_size(found - sources.begin());
      const bool is_divisor = node.op == OpKind::Div && i == 1;
      const int64_t size = graph_.tensor(inputs[i]).shape[own_axis];
      const bool whole = reads_in_order(*found) && size == shape[axis];
      if (!whole || (varying > 1 && !adds) || is_divisor) return summed(id, axis);
      inputs[i] = along(inputs[i], own_axis);
    }
    return writer_.make(node.op, std::move(inputs), "projected", node.attributes);
  }

  // The axis of a view's input that is axis `axis` of its output, of the given shape.
  std::optional<size_t> same_axis(const Node& view, const Shape& shape, size_t axis) const {
    const Shape& from = graph_.tensor(view.inputs[0]).shape;
    const auto steps = strides_of(from);
    const int64_t step = strides_of(shape)[axis];
    for (size_t i = 0; i < from.size(); ++i)
      if (from[i] == shape[axis] && steps[i] == step) return i;
    return std::nullopt;
  }

  static bool reads_in_order(const AxisSource& source) {
    return source.begin == 0 && source.step == 1 && source.taps == 1;
  }

  // The sum over the axis of what does not vary along it.
  TensorId times_all_signs(TensorId id) {
    const double all = std::reduce(signs_.begin(), signs_.end());
    const TensorId factor = writer_.scalar(all, id, "all");
    return writer_.mul(id, factor, "same");
  }

  TensorId with_one(TensorId id, Shape shape, size_t axis) {
    shape[axis] = 1;
    return writer_.reshape(id, shape, "kept");
  }

  // In each input, where the others stand still. A cast rounds what is summed, which is less than
  // the sum of what it rounded.
  bool is_linear(const Node& node) const {
    using enum OpKind;
    constexpr std::array kLinear = {MatMul, Mul, Div, Neg, Transpose};
    if (node.op == OpKind::Conv) return node.integer("group", 1) == 1;
    if (node.op != OpKind::Cast) return contains(kLinear, node.op);
    const Dtype from = graph_.tensor(node.inputs[0]).dtype;
    const Dtype to = graph_.tensor(node.outputs[0]).dtype;
    return is_wide_float(to) && is_float(from);
  }

  // The sum itself: a product with the signs, which reads what it sums in place.
  TensorId summed(TensorId id, size_t axis) {
    const Shape shape = graph_.tensor(id).shape;
    const Dtype dtype = graph_.tensor(id).dtype;
    sound_ &= is_wide_float(dtype) && element_count(shape) > 0;
    if (!sound_) return id;
    const int64_t extent = shape[axis];
    const int64_t after = strides_of(shape)[axis];
    const int64_t before = element_count(shape) / (extent * after);
    const bool rows = after == 1;
    const Shape signs_shape = rows ? Shape{extent, 1} : Shape{1, extent};
    const Shape parts_shape = rows ? Shape{before, extent} : Shape{before, extent, after};
    const TensorId signs = writer_.constant(dtype, signs_shape, signs_, "signs");
    const TensorId parts = writer_.reshape(id, parts_shape, "parts");
    const TensorId left = rows ? parts : signs;
    const TensorId right = rows ? signs : parts;
    const TensorId sum = writer_.make(OpKind::MatMul, {left, right}, "sum");
    return with_one(sum, shape, axis);
  }

  Graph& graph_;
  std::vector<double> signs_;
  std::map<std::pair<TensorId, size_t>, TensorId> known_;  // along()
  FreshNames names_;
  const Node whole_{OpKind::Identity, "projected", {}, {}, {}};
  PrimitiveWriter writer_{graph_, whole_, names_, true};
  bool sound_ = true;
};
}  // namespace

std::optional<Projection> project(const Graph& given, int output, uint64_t seed) {
  const auto primitive = decompose(given);
  if (!primitive) return std::nullopt;
  const TensorId id = primitive->outputs[output];
  const Shape& shape = primitive->tensor(id).shape;
  if (!is_wide_float(primitive->tensor(id).dtype) || element_count(shape) == 0) return std::nullopt;
  std::optional<Projection> best;
  double least = evaluation_cost(*primitive, id) / kGain;
  for (size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] < kLeastExtent) continue;
    Projection made;
    made.graph = *primitive;
    made.extent = shape[axis];
    made.after = strides_of(shape)[axis];
    made.signs = random_signs(shape[axis], seed);
    made.before = element_count(shape) / (made.extent * made.after);
    if (!Projector(made.graph, made.signs).run(id, axis)) continue;
    made.cost = evaluation_cost(made.graph, made.graph.outputs[0]);
    if (made.cost < least) {
      least = made.cost;
      best = std::move(made);
    }
  }
  return best;
}
}  // namespace warploom::graph
