// Operators of older operator sets. Where 13 says the same in another form, nodes are rewritten:
//
//   Unsqueeze(x) axes=[0]          →   Unsqueeze(x, [0])
//   Softmax(x) axis=1 (until 12)   →   Reshape(Softmax(Flatten(x) axis=1) axis=-1, Shape(x))
//   Clip(x) max=6                  →   Clip(x, , CastLike(6, x))
//
// What has kept its form is left alone: the importer takes it as one of 13.
#include <onnx/onnx.pb.h>
#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/error.h"
#include "onnx/flatten.h"
#include "onnx/model.h"

namespace warploom::onnx_import {
namespace {
using onnx::AttributeProto;
using onnx::NodeProto;

constexpr int64_t kPresent = 13;  // the operator set that converted nodes are of
constexpr int64_t kHelper = 21;   // and the nodes put beside them

class Rewriting {
 public:
  Rewriting(NodeProto of, const std::function<std::string(const std::string&)>& fresh,
            std::string where)
      : node(std::move(of)), place(std::move(where)), fresh_(fresh) {}

  NodeProto node;
  std::string place;
  std::vector<VersionedNode> before;
  std::vector<VersionedNode> behind;

  // The attribute, which the node then lacks.
  std::optional<onnx::AttributeProto> take(std::string_view name) {
    for (int i = 0; i < node.attribute_size(); ++i) {
      if (node.attribute(i).name() != name) continue;
      onnx::AttributeProto taken = node.attribute(i);
      node.mutable_attribute()->DeleteSubrange(i, 1);
      return taken;
    }
    return std::nullopt;
  }

  // Input i, where the node has none of it yet: those before it are left out.
  void set_input(int i, const std::string& name) {
    while (node.input_size() <= i)
      node.add_input();
    node.set_input(i, name);
  }

  std::string name(const std::string& what) const {
    const bool named = node.output_size() > 0 && !node.output(0).empty();
    return fresh_((named ? node.output(0) : node.op_type()) + "/" + what);
  }

  // A node before this one; the name of what it makes.
  std::string make(std::string_view op, const std::vector<std::string>& inputs,
                   const std::string& what,
                   const std::vector<onnx::AttributeProto>& attributes = {}) {
    NodeProto made = node_of(op, inputs, name(what), attributes);
    before.push_back({made, kHelper});
    return made.output(0);
  }

  // An attribute's numbers as a constant: i64 or f32.
  std::string constant(onnx::AttributeProto numbers, const std::string& what) {
    using Kind = onnx::AttributeProto;
    static const std::map<int, std::string> kForms = {{Kind::FLOAT, "value_float"},
                                                      {Kind::FLOATS, "value_floats"},
                                                      {Kind::INT, "value_int"},
                                                      {Kind::INTS, "value_ints"}};
    const auto form = kForms.find(numbers.type());
    numbers.set_name(form == kForms.end() ? "value" : form->second);
    return make("Constant", {}, what, {numbers});
  }

  // A node behind this one, which makes this one's first output out of what this one then makes.
  void finish(std::string_view op, const std::vector<std::string>& more_inputs) {
    const std::string output = node.output(0);
    const std::string inner = name("inner");
    node.set_output(0, inner);
    std::vector<std::string> inputs = {inner};
    inputs.insert(inputs.end(), more_inputs.begin(), more_inputs.end());
    behind.push_back({node_of(op, inputs, output, {}), kHelper});
  }

 private:
  static NodeProto node_of(std::string_view op, const std::vector<std::string>& inputs,
                           const std::string& output,
                           const std::vector<AttributeProto>& attributes) {
    NodeProto made;
    made.set_op_type(std::string(op));
    made.set_name(output);
    for (const std::string& input : inputs)
      made.add_input(input);
    made.add_output(output);
    for (const auto& attribute : attributes)
      *made.add_attribute() = attribute;
    return made;
  }

  const std::function<std::string(const std::string&)>& fresh_;
};

AttributeProto integer(const std::string& name, int64_t value) {
  AttributeProto attribute;
  attribute.set_name(name);
  attribute.set_type(AttributeProto::INT);
  attribute.set_i(value);
  return attribute;
}

AttributeProto text(const std::string& name, const std::string& value) {
  AttributeProto attribute;
  attribute.set_name(name);
  attribute.set_type(AttributeProto::STRING);
  attribute.set_s(value);
  return attribute;
}

// All from `axis` on, which is 1 where nothing is said, is one row.
Status flatten_rows(Rewriting& rewriting) {
  const auto axis = rewriting.take("axis");
  if (rewriting.node.input_size() < 1 || rewriting.node.output_size() < 1)
    return ok();  // refused by and by
  const std::string x = rewriting.node.input(0);
  const int64_t first = axis ? axis->i() : 1;
  *rewriting.node.add_attribute() = integer("axis", -1);
  if (first == -1) return ok();
  const std::vector attributes = {integer("axis", first)};
  const std::string rows = rewriting.make("Flatten", {x}, "rows", attributes);
  rewriting.node.set_input(0, rows);
  const std::string shape = rewriting.make("Shape", {x}, "shape");
  rewriting.finish("Reshape", {shape});
  return ok();
}

Status axes_as_input(Rewriting& rewriting) {
  if (const auto axes = rewriting.take("axes"))
    rewriting.set_input(1, rewriting.constant(*axes, "axes"));
  return ok();
}

Status split_as_input(Rewriting& rewriting) {
  if (const auto split = rewriting.take("split"))
    rewriting.set_input(1, rewriting.constant(*split, "split"));
  return ok();
}

// Bounds of the type of what is clipped; one that is not given is none.
Status bounds_as_inputs(Rewriting& rewriting) {
  for (const auto& [name, place] : {std::pair("min", 1), std::pair("max", 2)}) {
    const auto bound = rewriting.take(name);
    if (!bound || rewriting.node.input_size() < 1) continue;
    const std::string number = rewriting.constant(*bound, name);
    const std::string& clipped = rewriting.node.input(0);
    const std::string what = std::string(name) + "_bound";
    rewriting.set_input(place, rewriting.make("CastLike", {number, clipped}, what));
  }
  return ok();
}

Status pads_as_inputs(Rewriting& rewriting) {
  if (const auto pads = rewriting.take("pads"))
    rewriting.set_input(1, rewriting.constant(*pads, "pads"));
  const auto value = rewriting.take("value");
  if (!value || rewriting.node.input_size() < 1) return ok();
  const std::string number = rewriting.constant(*value, "number");
  const std::string& padded = rewriting.node.input(0);
  rewriting.set_input(2, rewriting.make("CastLike", {number, padded}, "fill"));
  return ok();
}

Status ends_as_inputs(Rewriting& rewriting) {
  int place = 1;
  for (const char* name : {"starts", "ends", "axes"}) {
    if (const auto list = rewriting.take(name))
      rewriting.set_input(place, rewriting.constant(*list, name));
    ++place;
  }
  return ok();
}

// Upsample and the first Resize look at index i / scale, rounded down for `nearest`.
Status sizes_as_resize(Rewriting& rewriting) {
  rewriting.node.set_op_type("Resize");
  if (const auto scales = rewriting.take("scales")) {
    rewriting.set_input(2, rewriting.constant(*scales, "scales"));
  } else if (rewriting.node.input_size() == 2) {
    const std::string given = rewriting.node.input(1);
    rewriting.set_input(2, given);
  }
  if (rewriting.node.input_size() > 1)
    rewriting.node.set_input(1, "");  // a region, which there was none of
  *rewriting.node.add_attribute() = text("coordinate_transformation_mode", "asymmetric");
  *rewriting.node.add_attribute() = text("nearest_mode", "floor");
  return ok();
}

Status spatial_statistics(Rewriting& rewriting) {
  const auto spatial = rewriting.take("spatial");
  if (!spatial || spatial->i() != 0) return ok();
  return fail({ErrorCode::kOnnxAttribute,
               "a BatchNormalization with statistics of its own for each element is not supported",
               rewriting.place, "spatial=1", "spatial=0", "write it as Sub, Div, Mul and Add"});
}

Status without_ratio(Rewriting& rewriting) {
  rewriting.take("ratio");  // which says something in training alone
  return ok();
}

struct Change {
  std::string_view op;
  int64_t until;  // the last operator set that has the form
  Status (*rewrite)(Rewriting&);
};

constexpr Change kChanges[] = {
    {"Softmax", 12, flatten_rows},    {"LogSoftmax", 12, flatten_rows},
    {"Hardmax", 12, flatten_rows},    {"Squeeze", 12, axes_as_input},
    {"Unsqueeze", 12, axes_as_input}, {"Split", 12, split_as_input},
    {"Clip", 10, bounds_as_inputs},   {"Pad", 10, pads_as_inputs},
    {"Slice", 9, ends_as_inputs},     {"Upsample", 9, sizes_as_resize},
    {"Resize", 10, sizes_as_resize},  {"BatchNormalization", 8, spatial_statistics},
    {"Dropout", 11, without_ratio},
};
}  // namespace

Result<std::vector<VersionedNode>> converted(
    VersionedNode node, const std::function<std::string(const std::string&)>& fresh,
    const std::string& place) {
  std::vector<VersionedNode> nodes;
  const auto applies = [&](const Change& change) {
    const bool is_meant = change.op == node.proto.op_type() && node.opset <= change.until;
    return is_meant && is_default_domain(node.proto.domain());
  };
  const auto* const change = std::ranges::find_if(kChanges, applies);
  node.opset = std::max(node.opset, kPresent);
  if (change == std::end(kChanges)) {
    nodes.push_back(std::move(node));
    return nodes;
  }
  Rewriting rewriting(std::move(node.proto), fresh, place);
  WARPLOOM_CHECK(change->rewrite(rewriting));
  nodes = std::move(rewriting.before);
  nodes.push_back({std::move(rewriting.node), kPresent});
  std::ranges::move(rewriting.behind, std::back_inserter(nodes));
  return nodes;
}
}  // namespace warploom::onnx_import
