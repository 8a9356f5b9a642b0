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
#include "graph/graph.h"
#include "graph/operators.h"
#include "onnx/contributed.h"

namespace warploom::onnx_import {
namespace {
using onnx::NodeProto;

struct Advice {
  std::string_view op;
  std::string_view remedy;
};

constexpr std::string_view kSizeOfResult =
    "do it outside the model: the size of its result depends on the values";
constexpr std::string_view kTexts =
    "do it outside the model: texts and pictures that are packed are no tensors of numbers";
constexpr std::string_view kGiveRandom = "draw the numbers outside and give them as an input";

// Operators of ONNX that are not supported, with what can be done.
constexpr Advice kAdvice[] = {
    {"NonZero", kSizeOfResult},
    {"Unique", kSizeOfResult},
    {"NonMaxSuppression", kSizeOfResult},
    {"StringNormalizer", kTexts},
    {"StringConcat", kTexts},
    {"StringSplit", kTexts},
    {"RegexFullMatch", kTexts},
    {"TfIdfVectorizer", kTexts},
    {"ImageDecoder", kTexts},
    {"RandomNormal", kGiveRandom},
    {"RandomNormalLike", kGiveRandom},
    {"RandomUniform", kGiveRandom},
    {"RandomUniformLike", kGiveRandom},
    {"Bernoulli", kGiveRandom},
    {"Multinomial", kGiveRandom},
    {"Upsample", "export Resize: ONNX has no Upsample from operator set 10 on"},
};

// Operators that ONNX Runtime adds, with operators of ONNX that say the same.
constexpr Advice kContributed[] = {
    {"PackedAttention", "MatMul, Softmax and MatMul"},
    {"PackedMultiHeadAttention", "MatMul, Softmax and MatMul"},
    {"DecoderMaskedMultiHeadAttention", "MatMul, Softmax and MatMul"},
    {"MoE", "a MatMul for each expert, weighted by a Softmax"},
    {"GatherBlockQuantized", "DequantizeLinear, then Gather"},
    {"Inverse", "nothing in ONNX: invert outside the model"},
};

std::optional<std::string_view> advice_of(std::span<const Advice> all, std::string_view op) {
  const auto row = std::ranges::find(all, op, &Advice::op);
  return row == all.end() ? std::nullopt : std::optional(row->remedy);
}

std::vector<std::string> supported() {
  std::vector<std::string> names;
  for (const graph::Operator& row : graph::operators())
    if (row.since < graph::kInternal) names.emplace_back(row.name);
  return names;
}

}  // namespace

Error foreign_operator(const NodeProto& node, const std::string& place) {
  const std::string& op = node.op_type();
  const std::string& domain = node.domain();
  Error error{ErrorCode::kOnnxOpset, fmt::format("operator {} is of an unknown domain", op), place,
              "the default domain, warploom, or a function that the model defines", domain};
  if (is_contributed_domain(domain)) {
    error.remedy =
        "ONNX Runtime's optimizer makes such operators: take the model as it was before (in "
        "onnxruntime, graph_optimization_level below extended), or export without them";
    if (const auto same = advice_of(kContributed, op))
      error.remedy += fmt::format("; ONNX says the same by {}", *same);
  } else if (domain == "ai.onnx.ml") {
    error.remedy =
        "run trees, encoders and other operators of ai.onnx.ml outside the model: they are no "
        "arithmetic of tensors";
  } else if (domain.starts_with("ai.onnx.preview")) {
    error.remedy = "export for inference, with operators that are no previews";
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
