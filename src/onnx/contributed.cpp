#include "onnx/contributed.h"
#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include "base/rows.h"
#include "graph/graph.h"
#include "graph/operators.h"

namespace warploom::onnx_import {
namespace {
using graph::OpKind;

constexpr std::string_view kDomains[] = {"com.microsoft", "com.microsoft.nchwc",
                                         "com.microsoft.experimental", "com.ms.internal.nhwc"};

struct Renamed {
  std::string_view name;
  OpKind op;
};

constexpr Renamed kRenamed[] = {
    {"Attention", OpKind::ProjectedAttention},
    {"RotaryEmbedding", OpKind::PositionedRotaryEmbedding},
    {"TransposeMatMul", OpKind::FusedMatMul},
    // What ONNX says in the same way.
    {"Gelu", OpKind::Gelu},
    {"Trilu", OpKind::Trilu},
    {"Range", OpKind::Range},
    {"Pad", OpKind::Pad},
    {"GatherND", OpKind::GatherND},
    {"LayerNormalization", OpKind::LayerNormalization},
    {"SimplifiedLayerNormalization", OpKind::SimplifiedLayerNormalization},
    {"QuantizeLinear", OpKind::QuantizeLinear},
    {"DequantizeLinear", OpKind::DequantizeLinear},
};
}  // namespace

bool is_contributed_domain(std::string_view domain) {
  return contains(kDomains, domain);
}

std::optional<OpKind> contributed_named(std::string_view name) {
  const auto* const renamed = std::ranges::find(kRenamed, name, &Renamed::name);
  if (renamed != std::end(kRenamed)) return renamed->op;
  const auto op = graph::op_named(name);
  const bool is_theirs = op && graph::operator_of(*op).since == graph::kContributed;
  return is_theirs ? op : std::nullopt;
}
}  // namespace warploom::onnx_import
