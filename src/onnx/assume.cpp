// What a user declares of a model's inputs, said in the model itself: what is proven of it afterwards holds of any input.
//
//   A=lower      →      Trilu(A, upper=0) in front of all that read A
#include "onnx/model.h"
namespace warploom::onnx_import {
namespace {
Error wrong(std::string message, const std::string& assumption, std::string expected) {
  return {ErrorCode::kUsage,   std::move(message), "--assume " + assumption,
          std::move(expected), assumption,         "name an input and what its matrices are: --assume A=lower"};
}
}  // namespace
Status assume(onnx::ModelProto& model, const std::vector<std::string>& assumptions) {
  onnx::GraphProto& graph = *model.mutable_graph();
  for (const std::string& assumption : std::set(assumptions.begin(), assumptions.end())) {
    const std::size_t sign = assumption.rfind('=');
    const std::string name = assumption.substr(0, sign), form = sign == std::string::npos ? "" : assumption.substr(sign + 1);
    if (form != "lower" && form != "upper")
      return fail(wrong("an assumption cannot be read", assumption, "NAME=lower or NAME=upper"));
    const auto is_it = [&](const onnx::ValueInfoProto& input) { return input.name() == name; };
    if (std::ranges::none_of(graph.input(), is_it)) {
      std::vector<std::string> names;
      for (const auto& input : graph.input()) names.push_back(input.name());
      return fail(wrong("an assumption is of no input", assumption, fmt::format("one of {}", fmt::join(names, ", "))));
    }
    for (onnx::NodeProto& node : *graph.mutable_node())
      for (std::string& input : *node.mutable_input())
        if (input == name) input = assumption;  // the name of what counts
    onnx::NodeProto trilu;
    trilu.set_op_type("Trilu");
    trilu.add_input(name);
    trilu.set_name(assumption);
    trilu.add_output(assumption);
    onnx::AttributeProto& upper = *trilu.add_attribute();
    upper.set_name("upper");
    upper.set_type(onnx::AttributeProto::INT);
    upper.set_i(form == "upper" ? 1 : 0);
    graph.mutable_node()->Add(std::move(trilu));
    std::rotate(graph.mutable_node()->begin(), graph.mutable_node()->end() - 1, graph.mutable_node()->end());
  }
  return ok();
}
}  // namespace warploom::onnx_import
