// Operators that ONNX Runtime adds to models, in domains of its own.
//
// Those that are read are rows of graph/ops.def (kContributed), under the name that they have
// there; where ONNX has another operator of that name they have one of their own here:
//
//   com.microsoft.MultiHeadAttention   →   MultiHeadAttention
//   com.microsoft.Attention            →   ProjectedAttention: it projects its input first
//   com.microsoft.Gelu                 →   Gelu, which is ONNX's own
#pragma once
#include <optional>
#include <string_view>
#include "graph/graph.h"

namespace warploom::onnx_import {
bool is_contributed_domain(std::string_view domain);
std::optional<graph::OpKind> contributed_named(std::string_view name);
}  // namespace warploom::onnx_import
