// A model's weights apart from what it computes with them. Private to the room.
#pragma once
#include <map>
#include <set>
#include "onnx/model.h"

namespace warploom::onnx_import {
// Exporters store equal tensors once and name the others by Identity nodes. Each gets its own bytes
// again, under its own name, so that they may differ another time:
//
//   ones = [1, 1]   b = Identity(ones)      →      ones = [1, 1]   b = [1, 1]
void separate_merged(onnx::ModelProto& model);

// The weights leave the model and become inputs of it, by name and with their bytes: initializers
// of floating-point numbers with at least so many elements, and Constants of more than one.
Result<std::map<std::string, graph::Tensor>> take_weights(onnx::ModelProto& model,
                                                          const Source& source,
                                                          int64_t least_elements);

// The model without the bytes of the tensors `carried`, and without what only people read. Data of
// other files move into it.
Status drop_bytes(onnx::ModelProto& model, const Source& source,
                  const std::set<std::string>& carried);
}  // namespace warploom::onnx_import
