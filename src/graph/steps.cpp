// The walk of evaluator.cpp, written down in place of done.
#include "graph/steps.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <variant>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/integers.h"
#include "base/value_op.h"
#include "graph/box.h"
#include "graph/evaluator.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/reference.h"
#include "graph/scalar_function.h"
#include "graph/strided.h"
#include "graph/tensor_view.h"

namespace warploom::graph {
namespace {
constexpr int64_t kPadded = int64_t{1} << 27;  // elements of images that are padded together

struct Reducer {
  OpKind op;
  ValueOp combine;
  double start;
};

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Reducer kReducers[] = {
    {OpKind::ReduceSum, ValueOp::add, 0},        {OpKind::SumPool, ValueOp::add, 0},
    {OpKind::ReduceProd, ValueOp::mul, 1},       {OpKind::ReduceMax, ValueOp::max, -kInfinity},
    {OpKind::MaxPool, ValueOp::max, -kInfinity}, {OpKind::ReduceMin, ValueOp::min, kInfinity}};

int64_t address(const StepView& view, const Shape& at) {
  int64_t place = view.origin;
  for (size_t i = 0; i < at.size(); ++i)
    place += at[i] * view.strides[i];
  return place;
}

class Planner {
 public:
  explicit Planner(const Graph& graph) : graph_(graph), views_(graph.tensors.size()) {}

  Result<Steps> run(const Demand& demand, TensorId wanted, const Box& box);

 private:
  const Tensor& tensor_of(const Node& node) const { return graph_.tensor(node.outputs[0]); }

  const Shape& shape(TensorId id) const { return graph_.tensor(id).shape; }

  void finish(TensorId wanted, const Box& box);
  static std::vector<int> reads_of(const Step& step);
  const StepView& view(TensorId id);

  bool is_whole(const StepView& of) const { return is_integer(made_.storages[of.storage].dtype); }

  int make(bool whole, int64_t elements) {
    const int number = static_cast<int>(made_.storages.size());
    made_.storages.push_back({.dtype = whole ? Dtype::i64 : Dtype::f64, .elements = elements});
    made_.storages.back().is_exact = whole;
    return number;
  }

  // A storage for a box of a node's output, which is a view of it from now on.
  int make(const Node& node, const Box& box) {
    const int number = make(is_integer(tensor_of(node).dtype), volume(box));
    views_[node.outputs[0]] = packed_at(box, number);
    return number;
  }

  static StepView packed_at(const Box& box, int storage) {
    StepView made{storage, 0, strides_of(box.size)};
    made.origin = -address(made, box.begin);
    return made;
  }

  // A view in the coordinates of a box's own elements.
  static StepView in_box(StepView of, const Box& box) {
    of.origin = address(of, box.begin);
    for (size_t i = 0; i < of.strides.size(); ++i)
      if (box.size[i] == 1) of.strides[i] = strides_of(box.size)[i];
    return of;
  }

  void push(StepWork work, int to, Dtype dtype) {
    made_.steps.push_back({.work = std::move(work), .to = to, .dtype = dtype});
  }

  void copy(const Shape& size, const std::optional<StepView>& from, const StepView& to) {
    push(CopyStep{size, from, to}, to.storage, Dtype::f64);
  }

  StepView projected(const Node& node, size_t input, StepView to) const {
    return graph::projected(graph_, node, input, std::move(to));
  }

  Taps taps_of(const Node& node, size_t input, const StepView& in) const {
    return graph::taps_of(graph_, node, input, in.strides);
  }

  // What a box of the output reads of the first input, packed; where that leaves the input,
  // `filled` writes first.
  template <class Fill> StepView padded(const Node& node, const Box& box, const Fill& filled) {
    const Shape& in = shape(node.inputs[0]);
    const StepView from = view(node.inputs[0]);
    const Box region = reach(*axis_sources(graph_, node, 0), in, box);
    const Box part = inside(region, in);
    const int to = make(is_whole(from), volume(region));
    made_.storages[to].is_exact = made_.storages[from.storage].is_exact;
    if (part != region) filled(region, to);
    const StepView place = packed_at(region, to);
    if (volume(part) > 0) copy(part.size, in_box(from, part), in_box(place, part));
    return place;
  }

  void fill(const Box& region, int to, double value, Dtype dtype) {
    CopyStep step{region.size, std::nullopt, {to, 0, strides_of(region.size)}, value};
    if (is_integer(dtype)) step.whole = saturated_integer(dtype, value);
    push(step, to, dtype);
  }

  Status plan(const Node& node, const Box& box);
  void pointwise(const Node& node, const Box& box);

  // An input in the coordinates of a box of the output.
  StepView in_box_of(const Node& node, size_t input, const Box& box) {
    StepView made = projected(node, input, view(node.inputs[input]));
    made.origin = address(made, box.begin);
    return made;
  }

  void convolution(const Node& node, const Box& box);
  static size_t first_axis(const Box& box, const StepView& out, const StepView& still, size_t end);
  void multiply(const Node& node, const Box& box, size_t left, const StepView& a, const StepView& b,
                int to);
  void reduce(const Node& node, const Box& box);
  void scan(const Node& node, const Box& box);
  void reshape(const Node& node, const Box& box);
  void movement(const Node& node, const Box& box);
  void gather(const Node& node, const Box& box);
  void concat(const Node& node, const Box& box);

  const Graph& graph_;
  std::vector<StepView> views_;
  Steps made_;
};

Result<Steps> Planner::run(const Demand& demand, TensorId wanted, const Box& box) {
  for (const Node& node : graph_.nodes) {
    const std::optional<Box>& asked = demand[node.outputs[0]];
    if (!asked || tensor_of(node).constant) continue;
    const size_t before = made_.steps.size();
    WARPLOOM_CHECK(plan(node, *asked));
    if (only_moves(class_of(node.op))) continue;
    if (made_.steps.size() == before) continue;
    Step& step = made_.steps.back();  // which writes to the node's storage, as others may have
    step.marks = true;
    step.is_last = node.outputs[0] == wanted;
    step.sums = class_of(node.op) != OpClass::pointwise;
  }
  finish(wanted, box);
  return std::move(made_);
}

// The result packed, and which step reads each storage last.
void Planner::finish(TensorId wanted, const Box& box) {
  const StepView from = in_box(view(wanted), box);
  StepStorage& held = made_.storages[from.storage];
  const bool is_packed = from.strides == strides_of(box.size) && from.origin == 0 &&
                         held.elements == volume(box) && held.given == kAbsent;
  made_.result = from.storage;
  if (!is_packed) {
    const int to = make(is_integer(graph_.tensor(wanted).dtype), volume(box));
    made_.storages[to].is_exact = made_.storages[from.storage].is_exact;
    copy(box.size, from, {to, 0, strides_of(box.size)});
    made_.result = to;
  }
  for (size_t i = 0; i < made_.steps.size(); ++i)
    for (const int read : reads_of(made_.steps[i]))
      made_.storages[read].last_use = i;
  made_.storages[made_.result].last_use = made_.steps.size();
}

std::vector<int> Planner::reads_of(const Step& step) {
  std::vector<int> reads = {step.to};
  const auto add = [&](const std::optional<StepView>& view) {
    if (view) reads.push_back(view->storage);
  };
  if (const auto* pointwise = std::get_if<PointwiseStep>(&step.work))
    for (const auto& view : pointwise->inputs)
      add(view);
  if (const auto* moved = std::get_if<CopyStep>(&step.work)) add(moved->from);
  if (const auto* gather = std::get_if<GatherStep>(&step.work)) {
    add(gather->from);
    add(gather->index);
  }
  if (const auto* reduce = std::get_if<ReduceStep>(&step.work)) add(reduce->from);
  if (const auto* scan = std::get_if<ScanStep>(&step.work)) add(scan->from);
  if (const auto* product = std::get_if<ProductStep>(&step.work)) {
    reads.push_back(product->a.storage);
    reads.push_back(product->b.storage);
  }
  return reads;
}

// A tensor in its own coordinates.
const StepView& Planner::view(TensorId id) {
  StepView& known = views_[id];
  if (known.storage >= 0) return known;
  const Tensor& tensor = graph_.tensor(id);
  known = {static_cast<int>(made_.storages.size()), 0, strides_of(tensor.shape)};
  const int64_t elements = element_count(tensor.shape);
  made_.storages.push_back(
      {.given = id, .dtype = tensor.dtype, .elements = elements, .is_exact = true});
  return known;
}

Status Planner::plan(const Node& node, const Box& box) {
  switch (class_of(node.op)) {
    case OpClass::contraction: {
      const int to = make(node, box);
      const StepView a = view(node.inputs[0]);
      const StepView b = view(node.inputs[1]);
      multiply(node, box, 0, a, b, to);
      break;
    }
    case OpClass::convolution: convolution(node, box); break;
    case OpClass::window:
    case OpClass::reduction: reduce(node, box); break;
    case OpClass::scan: scan(node, box); break;
    case OpClass::pointwise: pointwise(node, box); break;
    case OpClass::view: reshape(node, box); break;
    case OpClass::movement: movement(node, box); break;
    default: return fail({ErrorCode::kInternal, "a node is no primitive", place_of(node)});
  }
  return ok();
}

void Planner::pointwise(const Node& node, const Box& box) {
  const ScalarFunction function = scalar_function(graph_, node);
  PointwiseStep step{.size = box.size};
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    auto& input = step.inputs.emplace_back();
    if (node.inputs[k] != kAbsent) input = in_box_of(node, k, box);
  }
  using enum ScalarFunction::Storing;
  step.expression = function.expression;
  step.power = function.power;
  step.integers = function.integers;
  step.wraps = function.storing == wraps;
  step.saturates = function.storing == saturates;
  step.rounds = function.storing == rounds || step.saturates;
  const int to = make(node, box);
  push(std::move(step), to, function.type);
}

void Planner::convolution(const Node& node, const Box& box) {
  const int to = make(node, box);
  if (volume(box) == 0) return;
  const Shape& weights = shape(node.inputs[1]);
  const AxisSources sources = *axis_sources(graph_, node, 0);
  const bool by_channel = sources[1].axis != AxisSource::kWhole;
  const int64_t groups = by_channel ? 1 : node.integer("group", 1);
  const int64_t group_channels = weights[0] / groups;
  const int64_t end_channel = box.begin[1] + box.size[1];
  const int64_t end_image = box.begin[0] + box.size[0];
  Box part = box;
  part.size[0] = 1;
  const int64_t image_elements = volume(reach(sources, shape(node.inputs[0]), part));
  const int64_t most_images = kPadded / std::max<int64_t>(1, image_elements);
  const Dtype dtype = graph_.tensor(node.inputs[0]).dtype;
  const auto zeros = [&](const Box& region, int in) { fill(region, in, 0, dtype); };
  while (part.begin[0] < end_image) {
    part.size = box.size;
    part.size[0] = std::clamp<int64_t>(most_images, 1, end_image - part.begin[0]);
    part.begin[1] = box.begin[1];
    const StepView x = padded(node, part, zeros);
    while (part.begin[1] < end_channel) {
      const int64_t group = part.begin[1] / group_channels;
      const int64_t end_group = (group + 1) * group_channels;
      part.size[1] = std::min(end_channel, end_group) - part.begin[1];
      StepView of_group = x;
      of_group.origin += group * weights[1] * x.strides[1];
      const StepView w = view(node.inputs[1]);
      multiply(node, part, 1, w, of_group, to);
      part.begin[1] += part.size[1];
    }
    part.begin[0] += part.size[0];
  }
}

// The first of the axes before `end` that can be one range of a matrix's rows, or columns.
size_t Planner::first_axis(const Box& box, const StepView& out, const StepView& still, size_t end) {
  const auto joins = [&](size_t i) {
    if (box.size[i] == 1) return true;
    const int64_t behind = element_count(entries(box.size, i + 1));
    return still.strides[i] == 0 && out.strides[i] == behind;
  };
  size_t axis = end;
  while (axis > 0 && joins(axis - 1))
    --axis;
  return axis;
}

// NodeEvaluator::multiply() has the words.
void Planner::multiply(const Node& node, const Box& box, size_t left, const StepView& a,
                       const StepView& b, int to) {
  if (volume(box) == 0) return;
  const StepView in_a = projected(node, left, a);
  const StepView in_b = projected(node, 1 - left, b);
  const StepView& out = views_[node.outputs[0]];
  const size_t rank = box.size.size();
  const size_t columns = first_axis(box, out, in_a, rank);
  const size_t rows = first_axis(box, out, in_b, columns);
  const auto lines = [&](const StepView& in, size_t begin, size_t end) {
    return offsets(entries(box.size, begin, end), entries(in.strides, begin, end));
  };
  const Taps a_taps = taps_of(node, left, a);
  const Taps b_taps = taps_of(node, 1 - left, b);
  const Shape& b_count = left == 1 ? a_taps.count : b_taps.count;
  ProductStep step;
  step.a = {a.storage, lines(in_a, rows, columns), offsets(a_taps.count, a_taps.steps)};
  step.b = {b.storage, lines(in_b, columns, rank), offsets(b_count, b_taps.steps)};
  const Shape batch = entries(box.size, 0, rows);
  for (int64_t i = 0; i < element_count(batch); ++i) {
    Shape at = box.begin;
    const Shape within = coordinates_of(batch, i);
    for (size_t k = 0; k < rows; ++k)
      at[k] += within[k];
    step.batch.push_back({address(in_a, at), address(in_b, at), address(out, at)});
  }
  push(std::move(step), to, tensor_of(node).dtype);
}

void Planner::reduce(const Node& node, const Box& box) {
  const Reducer& reducer = *std::ranges::find(kReducers, node.op, &Reducer::op);
  const Dtype in = graph_.tensor(node.inputs[0]).dtype;
  StepView from = view(node.inputs[0]);
  if (class_of(node.op) == OpClass::window && volume(box) > 0)
    from = padded(node, box, [&](const Box& region, int to) {
      fill(region, to, reducer.start, in);
      // What stands outside has no error: the storage is exact where the input is.
    });
  const Taps taps = taps_of(node, 0, from);
  const Dtype dtype = tensor_of(node).dtype;
  const int to = make(node, box);
  if (volume(box) == 0) return;
  ReduceStep step{.size = box.size, .from = projected(node, 0, from), .op = reducer.combine};
  step.from.origin = address(step.from, box.begin);
  step.taps = taps.count;
  step.steps = taps.steps;
  step.start = rounded(dtype, reducer.start);
  step.start_whole = saturated_integer(dtype, reducer.start);
  if (dtype == Dtype::boolean) step.start_whole = reducer.start > 0 ? 1 : 0;
  push(std::move(step), to, dtype);
}

void Planner::scan(const Node& node, const Box& box) {
  const StepView from = view(node.inputs[0]);
  const size_t axis = whole_axis(*axis_sources(graph_, node, 0));
  const int to = make(node, box);
  if (volume(box) == 0) return;
  Box starts = box;
  starts.size[axis] = 1;
  ScanStep step{.size = starts.size, .from = from, .to = views_[node.outputs[0]]};
  step.extent = shape(node.inputs[0])[axis];
  step.begin = box.begin[axis];
  step.count = box.size[axis];
  step.from_stride = from.strides[axis];
  step.to_stride = step.to.strides[axis];
  step.reverse = node.integer("reverse") != 0;
  step.from.origin = address(from, box.begin) - step.begin * step.from_stride;
  step.to.origin = address(step.to, box.begin);
  push(std::move(step), to, tensor_of(node).dtype);
}

void Planner::reshape(const Node& node, const Box& box) {
  const Shape& in = shape(node.inputs[0]);
  const Shape& out = shape(node.outputs[0]);
  const Box source = reshaped(box, out, in);
  const auto steps = strides_of(in);
  StepView to = view(node.inputs[0]);
  bool flat = true;
  for (size_t i = 0; i < in.size(); ++i)
    flat &= source.size[i] <= 1 || to.strides[i] == steps[i];
  if (!flat) {
    const int stored = make(is_whole(to), volume(source));
    made_.storages[stored].is_exact = made_.storages[to.storage].is_exact;
    copy(source.size, in_box(to, source), {stored, 0, strides_of(source.size)});
    to = packed_at(source, stored);
  }
  const Shape& begin = source.begin;
  int64_t flat_begin = 0;
  for (size_t i = 0; i < begin.size(); ++i)
    flat_begin += begin[i] * steps[i];
  to.origin = address(to, begin) - flat_begin;
  to.strides = strides_of(out);
  views_[node.outputs[0]] = to;
}

void Planner::movement(const Node& node, const Box& box) {
  if (node.op == OpKind::Concat) return concat(node, box);
  if (node.op == OpKind::Gather) return gather(node, box);
  StepView from = view(node.inputs[0]);
  if (node.op == OpKind::Pad) {
    const StepView value = view(node.inputs[2]);
    from = padded(node, box, [&](const Box& region, int to) {
      const bool exact = made_.storages[value.storage].is_exact;
      made_.storages[to].is_exact = made_.storages[to].is_exact && exact;
      StepView one = value;
      one.strides = std::vector<int64_t>(region.size.size(), 0);
      copy(region.size, one, {to, 0, strides_of(region.size)});
    });
  }
  views_[node.outputs[0]] = projected(node, 0, from);
}

void Planner::gather(const Node& node, const Box& box) {
  GatherStep step{.size = box.size, .from = in_box_of(node, 0, box)};
  step.index = in_box_of(node, 1, box);
  const size_t axis = NodeContext{graph_, node}.axis(shape(node.inputs[0]).size());
  step.extent = shape(node.inputs[0])[axis];
  step.stride = view(node.inputs[0]).strides[axis];
  const bool exact = made_.storages[step.from.storage].is_exact;
  const int to = make(node, box);
  made_.storages[to].is_exact = exact;
  if (step.extent > 0) return push(std::move(step), to, tensor_of(node).dtype);
  fill(box, to, 0, tensor_of(node).dtype);
}

void Planner::concat(const Node& node, const Box& box) {
  bool exact = true;
  for (const TensorId id : node.inputs)
    exact = exact && made_.storages[view(id).storage].is_exact;
  const int to = make(node, box);
  made_.storages[to].is_exact = exact;
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    const AxisSources sources = *axis_sources(graph_, node, k);
    const Shape& in = shape(node.inputs[k]);
    Box part = inside(reach(sources, in, box), in);
    if (volume(part) == 0) continue;
    for (size_t i = 0; i < sources.size(); ++i)
      part.begin[i] -= sources[i].begin;
    const StepView from = projected(node, k, view(node.inputs[k]));
    copy(part.size, in_box(from, part), in_box(views_[node.outputs[0]], part));
  }
}

}  // namespace

Result<std::vector<Steps>> steps_for(const Graph& primitive, int output, int64_t begin,
                                     int64_t end) {
  const TensorId id = primitive.outputs[output];
  const OutputRows rows = rows_of(primitive, output);
  if (begin < 0 || end > rows.count || begin > end)
    return fail({ErrorCode::kInternal, "steps for rows outside the output", primitive.name});
  std::vector<Steps> all;
  for (const Box& box : row_boxes(primitive.tensor(id).shape, rows.axes, begin, end)) {
    if (volume(box) == 0) continue;
    const Demand demand = demand_for(primitive, id, box);
    WARPLOOM_TRY(all.emplace_back(), Planner(primitive).run(demand, id, box));
  }
  return all;
}

bool is_by_element(const Graph& primitive) {
  return std::ranges::all_of(primitive.nodes, [](const Node& node) {
    const OpClass kind = class_of(node.op);
    return kind == OpClass::pointwise || only_moves(kind);
  });
}
}  // namespace warploom::graph
