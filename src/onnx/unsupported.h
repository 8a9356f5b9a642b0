// What to say of an operator that is not supported. Private to the room.
#pragma once
#include "onnx/model.h"

namespace warploom::onnx_import {
// The error for a node of a domain that nobody defines: which operators of ONNX say the same, or
// how to export without it.
Error foreign_operator(const onnx::NodeProto& node, const std::string& place);

// The error for a node of the default domain, or of Warploom's own: a name that was perhaps meant,
// what to do in its place, and how to see what there is.
Error unknown_operator(const onnx::NodeProto& node, const std::string& place);
}  // namespace warploom::onnx_import
