#include <google/protobuf/text_format.h>
#include <charconv>
#include <regex>
#include "graph/operators.h"
#include "onnx/load.h"
#include "onnx/model.h"

namespace warploom {
namespace {
constexpr int kOpset = 23, kIrVersion = 10;
constexpr int kDeepest = 200;

std::optional<graph::OpKind> operator_spelled(std::string_view name) {  // in capitals or not
  const auto alike = [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  };
  for (const auto& row : graph::operators())
    if (row.since <= kOpset && std::ranges::equal(row.name, name, alike))
      return graph::op_named(row.name);
  return std::nullopt;
}

void declare(onnx::ValueInfoProto& info, Dtype dtype, const graph::Shape& shape) {
  auto& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx_type_of(dtype));
  type.mutable_shape();
  for (const std::int64_t size : shape) type.mutable_shape()->add_dim()->set_dim_value(size);
}

class Speller {
 public:
  Speller(std::string_view text, Dtype dtype) : text_(text), dtype_(dtype) {
    static const std::regex token("-?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d+)?|\\w+|\\S");
    for (std::sregex_iterator found(text_.begin(), text_.end(), token), end; found != end; ++found)
      tokens_.push_back({found->str(), static_cast<std::size_t>(found->position())});
    tokens_.push_back({"\n", text_.size()});
  }

  Result<onnx::ModelProto> model(std::string_view name) {
    model_.set_ir_version(kIrVersion);
    model_.set_producer_name("warploom");
    model_.add_opset_import()->set_version(kOpset);
    graph_ = model_.mutable_graph();
    graph_->set_name(std::string(name));
    WARPLOOM_TRY(const std::string last, operand());
    if (at_ + 1 < tokens_.size()) return wrong("the end");
    if (graph_->node_size() == 0) return wrong("an operator, as in relu(x[64])");
    graph_->mutable_node(graph_->node_size() - 1)->set_output(0, "y");
    graph_->add_output()->set_name("y");
    return std::move(model_);
  }

 private:
  tl::unexpected<Error> wrong(const std::string& expected, int before = 0) const {
    const std::size_t at = tokens_[at_ - before].place;
    return fail({ErrorCode::kUsage, "the expression cannot be read",
                 fmt::format("EXPRESSION, column {}", at + 1), expected,
                 at < text_.size() ? text_.substr(at, 20) : "the end",
                 "see `warploom new --help`"});
  }

  bool is(std::string_view token) const { return tokens_[at_].text == token; }

  bool accept(std::string_view token) { return is(token) && ++at_; }

  bool word_follows() const {
    const char first = tokens_[at_].text[0];
    return std::isalpha(static_cast<unsigned char>(first)) || first == '_';
  }

  std::string word() { return word_follows() ? tokens_[at_++].text : ""; }

  Result<double> number() {
    const std::string& text = tokens_[at_].text;
    double value = 0;
    const bool read =
        !word_follows() &&
        std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc();
    if (!read) return wrong("a number");
    ++at_;
    return value;
  }

  Result<std::vector<std::int64_t>> integers() {
    std::vector<std::int64_t> list;
    if (!accept("[")) return wrong("a list as [1,2]");
    while (!accept("]")) {
      if (!list.empty() && !accept(",")) return wrong(", or ]");
      WARPLOOM_TRY(const double value, number());
      if (value != std::floor(value) || std::abs(value) > 1e15) return wrong("integers");
      list.push_back(static_cast<std::int64_t>(value));
    }
    return list;
  }

  std::string constant(Dtype dtype, const std::vector<double>& values, bool scalar) {
    onnx::TensorProto& tensor = *graph_->add_initializer();
    tensor.set_name(fmt::format("c{}", graph_->initializer_size()));
    tensor.set_data_type(onnx_type_of(dtype));
    if (!scalar) tensor.add_dims(static_cast<std::int64_t>(values.size()));
    std::string bytes(values.size() * static_cast<std::size_t>(bytes_of(dtype)), '\0');
    for (std::size_t i = 0; i < values.size(); ++i)
      store_from_double(dtype, bytes.data(), i, values[i]);
    tensor.set_raw_data(bytes);
    return tensor.name();
  }

  // An operand's tensor: "" for one left out.
  Result<std::string> operand() {
    if (is("[")) {
      WARPLOOM_TRY(const auto list, integers());
      return constant(Dtype::i64, {list.begin(), list.end()}, false);
    }
    if (const auto value = number()) return constant(dtype_, {*value}, true);
    const std::string name = word();
    if (name == "_") return std::string();
    if (name.empty()) return wrong("an operator, an input or a number");
    if (!is("(")) return input(name);
    const auto op = operator_spelled(name);
    if (!op) return wrong("one of " + graph::supported_operators(), 1);
    return node(*op);
  }

  Result<std::string> input(const std::string& name) {
    for (const auto& known : graph_->input())
      if (known.name() == name && !is("[")) return name;
    if (!is("["))
      return wrong(fmt::format("a shape where '{}' is first named: {}[64,128]", name, name), 1);
    const bool own = name == "y" || ((name[0] == 't' || name[0] == 'c') && name.size() > 1 &&
                                     name.find_first_not_of("0123456789", 1) == name.npos);
    if (own)
      return wrong("a name other than y, t1, t2, … and c1, c2, …, which are the model's own", 1);
    WARPLOOM_TRY(const auto shape, integers());
    Dtype dtype = dtype_;
    if (accept(":")) {
      const auto named = dtype_named(word());
      if (!named) return wrong("an element type as f32");
      dtype = *named;
    }
    onnx::ValueInfoProto& info = *graph_->add_input();
    info.set_name(name);
    declare(info, dtype, shape);
    return name;
  }

  Result<std::string> node(graph::OpKind op) {
    if (++depth_ > kDeepest) return wrong("fewer operators in each other", 1);
    onnx::NodeProto node;
    node.set_op_type(std::string(graph::name_of(op)));
    for (accept("("); !accept(")");) {
      if ((node.input_size() || node.attribute_size()) && !accept(",")) return wrong(", or )");
      if (word_follows() && tokens_[at_ + 1].text == "=") {
        WARPLOOM_CHECK(attribute(op, *node.add_attribute()));
      } else {
        WARPLOOM_TRY(*node.add_input(), operand());
      }
    }
    const std::string name = fmt::format("t{}", graph_->node_size() + 1);
    node.add_output(name);
    *graph_->add_node() = std::move(node);
    --depth_;
    return name;
  }

  Status attribute(graph::OpKind op, onnx::AttributeProto& to) {
    const std::string key = word();
    accept("=");
    to.set_name(key);
    const graph::AttributeRow* const row = graph::attribute_named(op, key);
    if (row == nullptr) return wrong(fmt::format("an attribute of {}", graph::name_of(op)));
    if (row->kind == graph::AttributeKind::text) {
      to.set_type(onnx::AttributeProto::STRING), to.set_s(word());
    } else if (row->kind == graph::AttributeKind::integers) {
      WARPLOOM_TRY(const auto list, integers());
      to.set_type(onnx::AttributeProto::INTS);
      to.mutable_ints()->Add(list.begin(), list.end());
    } else {
      WARPLOOM_TRY(const double value, number());
      const bool real = row->kind == graph::AttributeKind::real;
      to.set_type(real ? onnx::AttributeProto::FLOAT : onnx::AttributeProto::INT);
      real ? to.set_f(static_cast<float>(value)) : to.set_i(static_cast<std::int64_t>(value));
    }
    return ok();
  }

  struct Token {
    std::string text;
    std::size_t place;
  };

  std::string text_;
  Dtype dtype_;
  std::vector<Token> tokens_;  // the last is the end
  std::size_t at_ = 0;
  int depth_ = 0;
  onnx::ModelProto model_;
  onnx::GraphProto* graph_ = nullptr;
};
}  // namespace

Result<SpelledModel> spell_onnx(std::string_view expression, std::string_view name, Dtype dtype) {
  SpelledModel out;
  WARPLOOM_TRY(onnx::ModelProto model, Speller(expression, dtype).model(name));
  WARPLOOM_TRY(out.graph, onnx_import::to_graph(model, {"the expression"}));
  const graph::Tensor& result = out.graph.tensor(out.graph.outputs[0]);
  declare(*model.mutable_graph()->mutable_output(0), result.dtype, result.shape);
  google::protobuf::TextFormat::PrintToString(model, &out.text);
  out.binary = model.SerializeAsString();
  return out;
}
}  // namespace warploom
