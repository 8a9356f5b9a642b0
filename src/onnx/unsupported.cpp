#include "onnx/unsupported.h"
#include <fmt/format.h>
#include <onnx/onnx.pb.h>
#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/error.h"
#include "base/nearest.h"
#include "base/rows.h"
#include "graph/graph.h"
#include "graph/operators.h"

namespace warploom::onnx_import {
namespace {
using onnx::NodeProto;

struct Advice {
  std::string_view op;
  std::string_view remedy;
};

constexpr std::string_view kSizeOfResult =
    "do it outside the model: the size of its result depends on the values";
constexpr std::string_view kGiveRandom = "draw the numbers outside and give them as an input";
constexpr std::string_view kQuantized =
    "export the model with DequantizeLinear in front of a MatMul or Conv of floats";

// Operators of ONNX that are not supported, with what can be done.
constexpr Advice kAdvice[] = {
    {"NonZero", kSizeOfResult},
    {"Unique", kSizeOfResult},
    {"Compress", kSizeOfResult},
    {"NonMaxSuppression", kSizeOfResult},
    {"RandomNormal", kGiveRandom},
    {"RandomNormalLike", kGiveRandom},
    {"RandomUniform", kGiveRandom},
    {"RandomUniformLike", kGiveRandom},
    {"Bernoulli", kGiveRandom},
    {"Multinomial", kGiveRandom},
    {"QLinearConv", kQuantized},
    {"QLinearMatMul", kQuantized},
    {"QuantizeLinear", kQuantized},
    {"DynamicQuantizeLinear", kQuantized},
    {"ConvInteger", kQuantized},
    {"MatMulInteger", kQuantized},
    {"Attention",
     "export it as MatMul, Softmax and MatMul: an operator set below 23 has no other "
     "way"},
    {"RotaryEmbedding",
     "export it as Slice, Neg, Concat, Mul and Add: an operator set below 23 has "
     "no other way"},
    {"Upsample", "export Resize: ONNX has no Upsample from operator set 10 on"},
};

// Operators that ONNX Runtime adds, with operators of ONNX that say the same.
constexpr Advice kContributed[] = {
    {"Gelu", "Gelu (operator set 20)"},
    {"FastGelu", "Gelu with approximate=tanh (operator set 20)"},
    {"BiasGelu", "Add, then Gelu (operator set 20)"},
    {"QuickGelu", "Swish with alpha (operator set 24), or Mul and Sigmoid"},
    {"FusedMatMul", "Transpose, MatMul and Mul"},
    {"FusedGemm", "Gemm and the activation"},
    {"FusedConv", "Conv and the activation"},
    {"TransposeMatMul", "Transpose and MatMul"},
    {"LayerNormalization", "LayerNormalization (operator set 17)"},
    {"SimplifiedLayerNormalization", "RMSNormalization (operator set 23)"},
    {"SkipLayerNormalization", "Add, then LayerNormalization (operator set 17)"},
    {"SkipSimplifiedLayerNormalization", "Add, then RMSNormalization (operator set 23)"},
    {"GroupNorm", "GroupNormalization (operator set 21)"},
    {"EmbedLayerNormalization", "Gather, Add and LayerNormalization (operator set 17)"},
    {"Attention", "MatMul, Softmax and MatMul"},
    {"MultiHeadAttention", "MatMul, Softmax and MatMul"},
    {"GroupQueryAttention", "MatMul, Softmax and MatMul"},
    {"RotaryEmbedding", "Slice, Neg, Concat, Mul and Add"},
    {"BiasSoftmax", "Add, then Softmax"},
    {"BiasSplitGelu", "Add, Split, Gelu and Mul"},
    {"BiasAdd", "Add"},
    {"NhwcConv", "Transpose, Conv and Transpose"},
    {"Inverse", "nothing in ONNX: invert outside the model"},
};

std::optional<std::string_view> advice_of(std::span<const Advice> all, std::string_view op) {
  const auto row = std::ranges::find(all, op, &Advice::op);
  return row == all.end() ? std::nullopt : std::optional(row->remedy);
}

std::vector<std::string> supported() {
  std::vector<std::string> names;
  for (const graph::Operator& row : graph::operators())
    if (row.since != graph::kInternal) names.emplace_back(row.name);
  return names;
}

constexpr std::string_view kContributedDomains[] = {
    "com.microsoft", "com.microsoft.nchwc", "com.microsoft.experimental", "com.ms.internal.nhwc"};
}  // namespace

Error foreign_operator(const NodeProto& node, const std::string& place) {
  const std::string& op = node.op_type();
  const std::string& domain = node.domain();
  Error error{ErrorCode::kOnnxOpset, fmt::format("operator {} is of an unknown domain", op), place,
              "the default domain, warploom, or a function that the model defines", domain};
  if (contains(kContributedDomains, domain)) {
    error.remedy =
        "ONNX Runtime's optimizer makes such operators: take the model as it was before (in "
        "onnxruntime, graph_optimization_level below extended), or export without them";
    if (const auto same = advice_of(kContributed, op))
      error.remedy += fmt::format("; ONNX says the same by {}", *same);
  } else {
    error.remedy = fmt::format(
        "define {}.{} as a function of the model (onnxscript does when its functions are "
        "registered for the export), or export it as operators of ONNX",
        domain, op);
    if (graph::op_named(op)) error.remedy += fmt::format("; ONNX's own {} has the domain \"\"", op);
  }
  return error;
}

Error unknown_operator(const NodeProto& node, const std::string& place) {
  const std::string& op = node.op_type();
  std::string remedy;
  if (const auto advice = advice_of(kAdvice, op))
    remedy = *advice;
  else
    remedy = did_you_mean(op, supported(),
                          "write it as operators that are supported (docs/onnx.md lists them)");
  Error error{ErrorCode::kOnnxUnknownOperator};
  error.message = fmt::format("operator {} is not supported", op);
  error.place = place;
  error.expected = graph::supported_operators();
  error.found = op;
  error.remedy = std::move(remedy);
  return error;
}
}  // namespace warploom::onnx_import
