#include "onnx/model.h"
#include <bit>
#include <charconv>
#include <fstream>
#include "base/nearest.h"
#include "graph/operators.h"

namespace warploom::onnx_import {
// Tensors with their bytes: raw, typed or in a file beside the model.
namespace {
static_assert(std::endian::native == std::endian::little, "raw_data is little-endian");
using Bytes = std::vector<std::byte>;

std::string place_of(const Source& source, std::string_view kind, std::string_view name) {
  return fmt::format("{}: {} '{}'", source.place, kind, name);
}

tl::unexpected<Error> external_error(const onnx::TensorProto& proto, const Source& source,
                                     std::string message, std::string found) {
  return fail({ErrorCode::kOnnxExternalData, std::move(message),
               place_of(source, "tensor", proto.name()),
               "a regular file inside the model's folder, long enough", std::move(found),
               "keep the model's data files beside it"});
}

// The file that `location` names, if it is a regular one whose real path is below the model's real
// folder.
Result<std::filesystem::path> inside_folder(const onnx::TensorProto& proto, const Source& source,
                                            const std::string& location) {
  namespace fs = std::filesystem;
  const fs::path relative(location);
  if (source.folder.empty())
    return external_error(proto, source, "external data of a model that is not in a file",
                          location);
  bool climbs =
      location.empty() || relative.is_absolute() || location.find('\0') != std::string::npos;
  for (const fs::path& part : relative) climbs = climbs || part == "..";
  if (climbs)
    return external_error(proto, source, "external data outside the model's folder", location);
  std::error_code error;
  const fs::path folder = fs::canonical(source.folder, error);
  if (error)
    return external_error(proto, source, "the model's folder cannot be resolved",
                          source.folder.string());
  const fs::path file = fs::canonical(folder / relative, error);
  if (error) return external_error(proto, source, "external data is missing", location);
  const fs::path below = file.lexically_relative(folder);
  if (below.empty() || *below.begin() == "..")
    return external_error(proto, source, "external data outside the model's folder", file.string());
  if (!fs::is_regular_file(file, error))
    return external_error(proto, source, "external data is no regular file", location);
  return file;
}

Result<Bytes> read_external(const onnx::TensorProto& proto, const Source& source,
                            std::int64_t bytes) {
  std::string location;
  std::int64_t offset = 0, length = bytes;
  for (const auto& entry : proto.external_data()) {
    std::int64_t* number = entry.key() == "offset"   ? &offset
                           : entry.key() == "length" ? &length
                                                     : nullptr;
    if (entry.key() == "location") location = entry.value();
    if (number == nullptr) continue;
    const char* end = entry.value().data() + entry.value().size();
    const auto [stopped, error] = std::from_chars(entry.value().data(), end, *number);
    if (error != std::errc{} || stopped != end || *number < 0)
      return external_error(
          proto, source, fmt::format("{} of external data is no size", entry.key()), entry.value());
  }
  WARPLOOM_TRY(const std::filesystem::path file, inside_folder(proto, source, location));
  std::error_code error;
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(file, error));
  if (error || length != bytes || offset > size || size - offset < bytes)
    return external_error(
        proto, source, "external data has another length than the tensor",
        fmt::format("{} bytes at {} of {}, tensor of {} bytes", length, offset, size, bytes));
  Bytes data(bytes);
  std::ifstream stream(file, std::ios::binary);
  stream.seekg(offset);
  stream.read(reinterpret_cast<char*>(data.data()), bytes);
  if (!stream) return external_error(proto, source, "external data cannot be read", file.string());
  return data;
}

// The bytes of a typed field, one element each, narrowed to the tensor's type.
template <class Narrow, class Field> Bytes narrowed(const Field& field) {
  const std::vector<Narrow> values(field.begin(), field.end());
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

Bytes typed_bytes(const onnx::TensorProto& proto, Dtype dtype) {
  switch (dtype) {
    case Dtype::f32: return narrowed<float>(proto.float_data());
    case Dtype::f64: return narrowed<double>(proto.double_data());
    case Dtype::i64: return narrowed<std::int64_t>(proto.int64_data());
    case Dtype::i32: return narrowed<std::int32_t>(proto.int32_data());
    default:  // everything narrower lies in int32_data, floats as their bits
      return bits_of(dtype) == 16 ? narrowed<std::uint16_t>(proto.int32_data())
                                  : narrowed<std::uint8_t>(proto.int32_data());
  }
}
}  // namespace

Result<graph::Tensor> to_tensor(const onnx::TensorProto& proto, const Source& source) {
  const std::string place = place_of(source, "tensor", proto.name());
  WARPLOOM_TRY(const Dtype dtype,
               graph::checked_dtype(proto.data_type(), "a tensor's element type", place));
  if (proto.has_segment())
    return fail({ErrorCode::kOnnxType, "tensors in segments are not supported", place});
  graph::Tensor tensor{
      {proto.name(), dtype, graph::Shape(proto.dims().begin(), proto.dims().end())}, std::nullopt};
  WARPLOOM_CHECK(graph::checked_element_count(tensor.shape, place));
  const std::int64_t bytes = graph::byte_count(tensor);
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) {
    WARPLOOM_TRY(tensor.constant, read_external(proto, source, bytes));
    return tensor;
  }
  Bytes data;
  if (proto.has_raw_data()) {
    const auto* raw = reinterpret_cast<const std::byte*>(proto.raw_data().data());
    data.assign(raw, raw + proto.raw_data().size());
  } else {
    data = typed_bytes(proto, dtype);
  }
  const auto given = static_cast<std::int64_t>(data.size());
  if (given != bytes)
    return fail(
        {given < bytes ? ErrorCode::kOnnxTooLarge : ErrorCode::kOnnxShape,
         "a tensor's shape and the bytes that are there do not agree", place,
         fmt::format("{} bytes for {} {}", bytes, name_of(dtype), graph::to_text(tensor.shape)),
         fmt::format("{} bytes", given)});
  if (dtype == Dtype::boolean)
    for (std::byte& value : data) value = value == std::byte{0} ? value : std::byte{1};
  tensor.constant = std::move(data);
  return tensor;
}

namespace {
using graph::Graph, graph::Node, graph::OpKind, graph::Tensor, graph::TensorId;
constexpr std::int64_t kFirstOpset = 13, kLastOpset = 28;

// A fixed shape, or the reason why it is none.
Result<graph::TensorInfo> declared(const onnx::ValueInfoProto& proto, const std::string& place) {
  if (!proto.type().has_tensor_type())
    return fail({ErrorCode::kOnnxType, "an input is no tensor", place, "a dense tensor"});
  const auto& type = proto.type().tensor_type();
  WARPLOOM_TRY(const Dtype dtype,
               graph::checked_dtype(type.elem_type(), "a tensor's element type", place));
  if (!type.has_shape())
    return fail({ErrorCode::kOnnxDynamicShape, "an input has no shape", place,
                 "a size for every axis", "", "export the model with fixed shapes"});
  graph::TensorInfo info{proto.name(), dtype, {}};
  for (const auto& dim : type.shape().dim()) {
    if (!dim.has_dim_value() || dim.dim_value() < 0)
      return fail({ErrorCode::kOnnxDynamicShape, "a dimension has no fixed size", place,
                   "a size of 0 or more",
                   dim.has_dim_param()
                       ? fmt::format("'{}' for axis {}", dim.dim_param(), info.shape.size())
                       : fmt::format("none for axis {}", info.shape.size()),
                   "export the model with fixed shapes"});
    info.shape.push_back(dim.dim_value());
  }
  WARPLOOM_CHECK(graph::checked_element_count(info.shape, place));
  return info;
}

class Importer {
 public:
  Importer(const onnx::ModelProto& model, const Source& source) : model_(model), source_(source) {}

  Result<Graph> run(bool simplified) {
    graph_.name = model_.graph().name();
    WARPLOOM_CHECK(read_opset());
    WARPLOOM_CHECK(read_initializers());
    WARPLOOM_CHECK(read_inputs());
    for (const auto& node : model_.graph().node()) WARPLOOM_CHECK(read_node(node));
    WARPLOOM_CHECK(read_outputs());
    auto inferred = graph::infer(std::move(graph_));
    if (!inferred) {
      inferred.error().place = fmt::format("{}: {}", source_.place, inferred.error().place);
      return inferred;
    }
    WARPLOOM_CHECK(check_declared(*inferred));
    return simplified ? graph::simplify(std::move(*inferred)) : inferred;
  }

 private:
  std::string at(std::string_view kind, std::string_view name) const {
    return place_of(source_, kind, name);
  }

  std::string at(const onnx::NodeProto& node) const {
    return fmt::format("{} ({})", at("node", node.name()), node.op_type());
  }

  // By name; a new one if it was not mentioned yet.
  TensorId tensor(const std::string& name) {
    if (name.empty()) return graph::kAbsent;
    const auto [found, is_new] =
        ids_.try_emplace(name, static_cast<TensorId>(graph_.tensors.size()));
    if (is_new) graph_.add_tensor({{name, Dtype::f32, {}}, std::nullopt});
    return found->second;
  }

  Status read_opset() {
    for (const auto& import : model_.opset_import()) {
      if (!import.domain().empty() && import.domain() != "ai.onnx")
        continue;  // refused where a node uses it
      if (opset_ != 0 && opset_ != import.version())
        return fail({ErrorCode::kOnnxOpset, "the default operator set is imported in two versions",
                     source_.place});
      opset_ = import.version();
    }
    if (opset_ < kFirstOpset || opset_ > kLastOpset)
      return fail({ErrorCode::kOnnxOpset, "the model's operator set is not supported",
                   source_.place, fmt::format("opset {} to {}", kFirstOpset, kLastOpset),
                   opset_ == 0 ? std::string("none named") : fmt::format("opset {}", opset_),
                   "convert or export the model with another opset version"});
    return ok();
  }

  Status read_initializers() {
    if (model_.graph().sparse_initializer_size() > 0)
      return fail({ErrorCode::kOnnxType, "sparse initializers are not supported", source_.place,
                   "dense tensors"});
    for (const auto& proto : model_.graph().initializer()) {
      if (proto.name().empty())
        return fail({ErrorCode::kOnnxName, "an initializer has no name", source_.place});
      if (ids_.contains(proto.name()))
        return fail(
            {ErrorCode::kOnnxName, "an initializer is defined twice", at("tensor", proto.name())});
      WARPLOOM_TRY(Tensor read, to_tensor(proto, source_));
      ids_.emplace(proto.name(), graph_.add_tensor(std::move(read)));
    }
    return ok();
  }

  // Every input, or output, has a name of its own.
  Status named_once(std::string_view kind, const std::string& name,
                    std::set<std::string>& seen) const {
    if (name.empty())
      return fail({ErrorCode::kOnnxName, fmt::format("an {} has no name", kind), source_.place});
    if (seen.insert(name).second) return ok();
    return fail({ErrorCode::kOnnxName, fmt::format("an {} is named twice", kind), at(kind, name)});
  }

  Status read_inputs() {
    std::set<std::string> seen;
    for (const auto& proto : model_.graph().input()) {
      const std::string place = at("input", proto.name());
      WARPLOOM_CHECK(named_once("input", proto.name(), seen));
      WARPLOOM_TRY(graph::TensorInfo info, declared(proto, place));
      const bool given = ids_.contains(proto.name());  // a default value: the input stays constant
      const TensorId id = tensor(proto.name());
      Tensor& known = graph_.tensor(id);
      if (!given) {
        known = {info, std::nullopt};
        graph_.inputs.push_back(id);
      } else if (known.dtype != info.dtype || known.shape != info.shape) {
        return fail({known.dtype != info.dtype ? ErrorCode::kOnnxType : ErrorCode::kOnnxShape,
                     "an input and its initializer differ", place, to_text(info), to_text(known)});
      }
    }
    return ok();
  }

  Status read_outputs() {
    std::set<std::string> seen;
    for (const auto& proto : model_.graph().output()) {
      WARPLOOM_CHECK(named_once("output", proto.name(), seen));
      graph_.outputs.push_back(tensor(proto.name()));
    }
    if (graph_.outputs.empty())
      return fail({ErrorCode::kOnnxName, "the graph has no output", source_.place});
    return ok();
  }

  Result<graph::Attribute> read_attribute(const onnx::AttributeProto& proto,
                                          const std::string& place) const {
    if (!proto.ref_attr_name().empty())
      return fail({ErrorCode::kOnnxAttribute,
                   fmt::format("attribute {} refers to a function's", proto.name()), place});
    switch (proto.type()) {
      case onnx::AttributeProto::INT: return proto.i();
      case onnx::AttributeProto::FLOAT: return static_cast<double>(proto.f());
      case onnx::AttributeProto::STRING: return proto.s();
      case onnx::AttributeProto::INTS:
        return std::vector<std::int64_t>(proto.ints().begin(), proto.ints().end());
      default:
        return fail({ErrorCode::kOnnxAttribute,
                     fmt::format("attribute {} is of the wrong type", proto.name()), place,
                     "an integer, a float, a string or a list of integers",
                     fmt::format("AttributeProto type {}", static_cast<int>(proto.type()))});
    }
  }

  Status read_constant(const onnx::NodeProto& proto) {
    const std::string place = at(proto);
    if (proto.attribute_size() != 1 || proto.output_size() != 1 || proto.output(0).empty() ||
        proto.input_size() != 0)
      return fail(
          {ErrorCode::kOnnxAttribute, "a Constant has one value, one output and no input", place});
    const auto& attribute = proto.attribute(0);
    using Kind = onnx::AttributeProto;
    constexpr std::pair<std::string_view, Kind::AttributeType> kForms[] = {
        {"value", Kind::TENSOR},
        {"value_float", Kind::FLOAT},
        {"value_floats", Kind::FLOATS},
        {"value_int", Kind::INT},
        {"value_ints", Kind::INTS}};
    if (!contains(kForms, std::pair(std::string_view(attribute.name()), attribute.type())))
      return fail({ErrorCode::kOnnxAttribute,
                   "a Constant's value is of a kind that is not supported", place,
                   "value, value_float, value_floats, value_int or value_ints", attribute.name()});
    onnx::TensorProto value = attribute.t();
    if (attribute.type() != Kind::TENSOR) {  // the short forms are written out as a tensor
      const bool real = attribute.type() == Kind::FLOAT || attribute.type() == Kind::FLOATS;
      value.set_data_type(real ? onnx::TensorProto::FLOAT : onnx::TensorProto::INT64);
      *value.mutable_float_data() = attribute.floats();
      *value.mutable_int64_data() = attribute.ints();
      if (attribute.type() == Kind::FLOAT)
        value.add_float_data(attribute.f());
      else if (attribute.type() == Kind::INT)
        value.add_int64_data(attribute.i());
      else
        value.add_dims(real ? attribute.floats_size() : attribute.ints_size());
    }
    value.set_name(proto.output(0));
    WARPLOOM_TRY(Tensor read, to_tensor(value, source_));
    const TensorId id = tensor(proto.output(0));
    Tensor& made = graph_.tensor(id);
    if (made.constant || contains(graph_.inputs, id))
      return fail({ErrorCode::kOnnxName, "a tensor is defined twice", place, "one definition",
                   proto.output(0)});
    made = std::move(read);
    return ok();
  }

  // ConstantOfShape(shape) is Expand(value, shape).
  Status read_filled(const onnx::NodeProto& proto) {
    const std::string place = at(proto);
    Tensor value{{"", Dtype::f32, {}},
                 std::vector<std::byte>(sizeof(float))};  // 0, unless another one is given
    const bool given = proto.attribute_size() == 1 && proto.attribute(0).name() == "value" &&
                       proto.attribute(0).has_t();
    if (given) {
      WARPLOOM_TRY(value, to_tensor(proto.attribute(0).t(), source_));
    }
    if ((proto.attribute_size() > 0 && !given) || graph::element_count(value.shape) != 1)
      return fail({ErrorCode::kOnnxAttribute, "a ConstantOfShape has at most one value", place,
                   "a tensor of one element"});
    if (proto.input_size() != 1 || proto.output_size() != 1 || proto.input(0).empty() ||
        proto.output(0).empty())
      return fail({ErrorCode::kOnnxName, "a ConstantOfShape has one input and one output", place});
    value.name = proto.output(0) + "/value";
    value.shape.clear();
    const TensorId filled = graph_.add_tensor(std::move(value));
    graph_.nodes.push_back({OpKind::Expand,
                            proto.name(),
                            {filled, tensor(proto.input(0))},
                            {tensor(proto.output(0))},
                            {}});
    return ok();
  }

  Status read_node(const onnx::NodeProto& proto) {
    const std::string place = at(proto);
    const bool ours = proto.domain() == "warploom";
    if (!ours && !proto.domain().empty() && proto.domain() != "ai.onnx")
      return fail({ErrorCode::kOnnxOpset,
                   fmt::format("operator {} is of an unknown domain", proto.op_type()), place,
                   "the default domain, or warploom", proto.domain()});
    if (proto.op_type() == "ConstantOfShape") return read_filled(proto);
    const auto op = graph::op_named(proto.op_type());
    if (!op || ours != (op == OpKind::ScaledMatMul) ||
        graph::operator_of(*op).since == graph::kInternal)
      return fail({ErrorCode::kOnnxUnknownOperator,
                   fmt::format("operator {} is not supported", proto.op_type()), place,
                   graph::supported_operators(), proto.op_type(),
                   did_you_mean(proto.op_type(), graph::operator_names(),
                                "replace it by these, or leave it out of the model")});
    if (graph::operator_of(*op).since > opset_)
      return fail({ErrorCode::kOnnxUnknownOperator,
                   fmt::format("operator {} is not in opset {}", proto.op_type(), opset_), place,
                   fmt::format("opset {} or later", graph::operator_of(*op).since),
                   fmt::format("opset {}", opset_)});
    if (*op == OpKind::Constant) return read_constant(proto);
    Node node{*op, proto.name(), {}, {}, {}};
    if (node.name.empty() && proto.output_size() > 0) node.name = proto.output(0);
    const auto read = [&](const auto& names, std::vector<TensorId>& ids) {
      for (const std::string& name : names) ids.push_back(tensor(name));
      while (!ids.empty() && ids.back() == graph::kAbsent) ids.pop_back();
    };
    read(proto.input(), node.inputs);
    read(proto.output(), node.outputs);
    for (const auto& attribute : proto.attribute()) {
      const auto* const known =
          graph::attribute_named(*op, attribute.name());  // infer() refuses unknown ones
      if (known != nullptr && known->since > opset_)
        return fail({ErrorCode::kOnnxAttribute,
                     fmt::format("attribute {} is not in opset {}", attribute.name(), opset_),
                     place, fmt::format("opset {} or later", known->since)});
      WARPLOOM_TRY(graph::Attribute value, read_attribute(attribute, place));
      if (!node.attributes.emplace(attribute.name(), std::move(value)).second)
        return fail({ErrorCode::kOnnxAttribute,
                     fmt::format("attribute {} is given twice", attribute.name()), place});
    }
    graph_.nodes.push_back(std::move(node));
    return ok();
  }

  // What the model says of outputs and tensors in between must agree with what was inferred.
  Status check_declared(const Graph& inferred) const {
    const auto check = [&](const onnx::ValueInfoProto& proto, std::string_view kind) -> Status {
      const auto found = ids_.find(proto.name());
      if (found == ids_.end() || !proto.type().has_tensor_type()) return ok();
      const Tensor& tensor = inferred.tensor(found->second);
      const auto& type = proto.type().tensor_type();
      if (type.has_elem_type() && type.elem_type() != 0 &&
          type.elem_type() != onnx_type_of(tensor.dtype))
        return fail({ErrorCode::kOnnxType, "a declared element type contradicts the inferred one",
                     at(kind, proto.name()), std::string(name_of(tensor.dtype)),
                     fmt::format("ONNX type {}", type.elem_type())});
      if (!type.has_shape()) return ok();
      std::vector<std::string> sizes;
      for (const auto& dim : type.shape().dim())
        sizes.push_back(dim.has_dim_value() ? std::to_string(dim.dim_value()) : "?");
      const auto fits = [](const std::string& said, std::int64_t size) {
        return said == "?" || said == std::to_string(size);
      };
      if (!std::ranges::equal(sizes, tensor.shape, fits))
        return fail({ErrorCode::kOnnxShape, "a declared shape contradicts the inferred one",
                     at(kind, proto.name()), graph::to_text(tensor.shape),
                     fmt::format("[{}]", fmt::join(sizes, ","))});
      return ok();
    };
    for (const auto& proto : model_.graph().output()) WARPLOOM_CHECK(check(proto, "output"));
    for (const auto& proto : model_.graph().value_info()) WARPLOOM_CHECK(check(proto, "tensor"));
    return ok();
  }

  const onnx::ModelProto& model_;
  const Source& source_;
  std::int64_t opset_ = 0;
  Graph graph_;
  std::map<std::string, TensorId, std::less<>> ids_;
};
}  // namespace

Result<Graph> to_graph(const onnx::ModelProto& model, const Source& source, bool simplified) {
  return Importer(model, source).run(simplified);
}
}  // namespace warploom::onnx_import
