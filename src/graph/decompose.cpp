// decompose(): every node that is no primitive by the rule of its operator.
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/fresh_names.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/rules.h"

namespace warploom::graph {
namespace {
constexpr int64_t kMostOfTable = 1 << 26;  // elements
}  // namespace

Result<Outputs> PrimitiveWriter::run() {
  auto result = written_by([](PrimitiveWriter& writer) -> Result<Outputs> {
    auto outputs = operator_of(writer.node.op).rewrite(writer);
    if (outputs && writer.widened_) {
      const Dtype narrow = writer.dtype(writer.node.inputs[0]);
      outputs->front() = writer.cast(outputs->front(), narrow, "narrow");
    }
    return outputs;
  });
  if (!result) result.error().place = place_of(node);
  return result;
}

Result<Outputs> PrimitiveWriter::written_by(const std::function<Rewrite>& rule) {
  stops_ = true;
  try {
    return rule(*this);
  } catch (const Stopped&) {
    return tl::unexpected<Error>(status_.error());
  }
}

void PrimitiveWriter::refuse(Error error) {
  if (status_) status_ = fail(std::move(error));
  if (stops_) throw Stopped();
}

void PrimitiveWriter::check_table(const Shape& shape) {
  const auto count = checked_element_count(shape, place_of(node));
  if (!count) return refuse(count.error());
  if (*count <= kMostOfTable) return;
  refuse({ErrorCode::kOnnxTooLarge, "a table that an operator is computed with is too large",
          place_of(node), fmt::format("at most {} elements", kMostOfTable), to_text(shape)});
}

Id PrimitiveWriter::wide(size_t i) {
  const Id id = raw(i);
  if (id == kAbsent || !is_float(dtype(id)) || bits_of(dtype(id)) != 16) return id;
  widened_ = widened_ || i == 0;
  return cast(id, Dtype::f32, i == 0 ? "wide" : fmt::format("wide{}", i));
}

Id PrimitiveWriter::make(OpKind op, std::vector<Id> inputs, std::string_view what,
                         std::map<std::string, Attribute> attributes) {
  Node next{op, fresh(what), std::move(inputs), {}, std::move(attributes)};
  const TensorInfo not_inferred{next.name, Dtype::f32, {}};
  next.outputs = {graph_.add_tensor({not_inferred, std::nullopt})};
  if (status_)
    if (const Status inferred = infer_node(graph_, next, !dry_); !inferred)
      refuse(inferred.error());
  if (!status_) return next.inputs[0];
  const Id out = next.outputs[0];
  if (!graph_.tensor(out).constant) made.push_back(std::move(next));
  return out;
}

Id PrimitiveWriter::constant(Dtype type, Shape shape, const std::vector<double>& values,
                             std::string_view what) {
  const auto element_bytes = as_size(bytes_of(type));
  std::vector<std::byte> bytes(values.size() * element_bytes);
  for (size_t i = 0; i < values.size(); ++i)
    store_from_double(type, bytes.data(), i, values[i]);
  TensorInfo info{fresh(what), type, std::move(shape)};
  return graph_.add_tensor({std::move(info), std::move(bytes)});
}

Id PrimitiveWriter::cast(Id x, Dtype to, std::string_view what) {
  if (dtype(x) == to) return x;
  const int64_t number = onnx_type_of(to);
  return make(OpKind::Cast, {x}, what, {{"to", number}});
}

Id PrimitiveWriter::reshape(Id x, const Shape& to, std::string_view what) {
  if (shape(x) == to) return x;
  const Id sizes = list(to, fmt::format("{}_shape", what));
  const int64_t zero_is_a_size = 1;
  return make(OpKind::Reshape, {x, sizes}, what, {{"allowzero", zero_is_a_size}});
}

Id PrimitiveWriter::pad(Id x, const List& before, const List& after, Id zero,
                        std::string_view what) {
  const List pads = chained(before, after);
  if (std::ranges::count(pads, 0) == std::ssize(pads)) return x;
  const Id widths = list(pads, fmt::format("{}_pads", what));
  return make(OpKind::Pad, {x, widths, zero}, what);
}

Id PrimitiveWriter::mean(Id x, const List& axes, std::string_view what, int64_t keepdims) {
  double count = 1;
  for (int64_t axis : axes)
    count *= as_double(shape(x)[axis]);
  const Id share = scalar(1 / count, x, fmt::format("{}_share", what));
  const std::string sum_name = fmt::format("{}_sum", what);
  const Id sum = reduce(OpKind::ReduceSum, x, axes, sum_name, keepdims);
  return mul(sum, share, what);
}

Id PrimitiveWriter::along_channels(Id x, size_t of_rank, std::string_view what) {
  const Shape column = with(Shape(of_rank - 1, 1), 0, shape(x)[0]);
  return reshape(x, column, what);
}

Id PrimitiveWriter::inverse_root(Id x, double epsilon) {
  const Id moved = add(x, scalar(epsilon, x, "epsilon"), "moved");
  return make(OpKind::Reciprocal, {make(OpKind::Sqrt, {moved}, "deviation")}, "inverse");
}

std::string PrimitiveWriter::fresh(std::string_view what) {
  return names_.fresh(fmt::format("{}/{}", prefix_, what), ".");
}

namespace {
// In the one form that primitives have.
bool is_primitive(const Node& node) {
  const auto has = [&](std::string_view key) { return node.attributes.contains(std::string(key)); };
  switch (class_of(node.op)) {
    case OpClass::composite: return false;
    case OpClass::reduction: {
      const auto axes = node.integers("axes");
      const bool named = !axes.empty() && !has("noop_with_empty_axes");
      const bool resolved = named && axes[0] >= 0 && std::ranges::is_sorted(axes);
      return resolved && node.inputs.size() == 1;
    }
    case OpClass::scan: return node.integer("exclusive") == 0;
    case OpClass::convolution:
    case OpClass::window: {
      constexpr std::array kNeeds = {"kernel_shape", "strides", "dilations", "pads"};
      constexpr std::array kLacks = {"auto_pad", "ceil_mode", "storage_order"};
      const bool complete = std::ranges::all_of(kNeeds, has);
      return complete && std::ranges::none_of(kLacks, has) && node.inputs.size() < 3;
    }
    default: {
      const bool constant_mode = node.inputs.size() == 3 && !has("mode");
      return node.op != OpKind::Pad || constant_mode;
    }
  }
}

Result<Outputs> by_its_rule(PrimitiveWriter& writer) {
  return writer.run();
}

Status rewrite(Graph& graph, const Node& node, FreshNames& names, const Replacement& rule);

// What was written, of which composites are rewritten in turn.
Status put(Graph& graph, std::vector<Node> made, FreshNames& names) {
  for (Node& node : made)
    if (is_primitive(node))
      graph.nodes.push_back(std::move(node));
    else
      WARPLOOM_CHECK(rewrite(graph, node, names, by_its_rule));
  return ok();
}

// What `rule` writes in the node's place; its outputs keep their tensors.
Status rewrite(Graph& graph, const Node& node, FreshNames& names, const Replacement& rule) {
  PrimitiveWriter writer(graph, node, names, false);
  WARPLOOM_TRY(const Outputs outputs, writer.written_by(rule));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kAbsent) continue;
    Tensor& wanted = graph.tensor(node.outputs[i]);
    const Tensor& found = graph.tensor(outputs[i]);
    if (found.shape != wanted.shape || found.dtype != wanted.dtype) {
      const std::string place = place_of(node);
      return fail({ErrorCode::kInternal, "a composite was rewritten wrongly", place,
                   to_text(wanted), to_text(found)});
    }
    // simplify() lets whatever made the result make the output itself.
    if (found.constant) {
      wanted.constant = found.constant;
      continue;
    }
    Node same{OpKind::Identity, node.name, {outputs[i]}, {}};
    same.outputs = {node.outputs[i]};
    writer.made.push_back(std::move(same));
  }
  return put(graph, std::move(writer.made), names);
}
}  // namespace

bool is_primitive(const Graph& graph) {
  return std::ranges::all_of(graph.nodes, [](const Node& node) { return is_primitive(node); });
}

namespace {
bool is_primitive_of(const Graph&, const Node& node) {
  return is_primitive(node);
}

// The graph with `rule` applied to every node that does not stay.
Result<Graph> replaced(Graph graph, const std::function<bool(const Graph&, const Node&)>& stays,
                       const Replacement& rule) {
  std::vector<Node> given = std::move(graph.nodes);
  graph.nodes.clear();
  FreshNames names;
  for (const Tensor& tensor : graph.tensors)
    names.insert(tensor.name);
  for (const Node& node : given)
    if (stays(graph, node))
      graph.nodes.push_back(node);
    else
      WARPLOOM_CHECK(rewrite(graph, node, names, rule));
  return graph;
}
}  // namespace

Result<Graph> decompose(Graph graph) {
  return rewritten(std::move(graph), is_primitive_of, by_its_rule);
}

Result<Graph> written_out(Graph graph) {
  return replaced(std::move(graph), is_primitive_of, by_its_rule);
}

Result<Graph> rewritten(Graph graph, const std::function<bool(const Graph&, const Node&)>& stays,
                        const Replacement& rule) {
  if (std::ranges::all_of(graph.nodes, [&](const Node& node) { return stays(graph, node); }))
    return graph;
  WARPLOOM_TRY(Graph changed, replaced(std::move(graph), stays, rule));
  return simplify(std::move(changed));
}
}  // namespace warploom::graph
