// The interpreter: the definition of what a tile program means, and the oracle for everything
// generated from one. Plain, slow, and independent of layouts and targets: block after block (the
// blocks of a cluster together, those of a cooperative program in turns from wait to wait), each
// role to its end in order of the roles' list, pipelines as queues without bound.
#pragma once
#include <map>
#include <span>
#include "base/error.h"
#include "tile/program.h"

namespace warploom::tile {
// Global tensors by name: bytes in the tensor's own type and strides. Inputs are read, outputs
// written in place.
using Buffers = std::map<std::string, std::span<std::byte>>;

Status interpret(const Program& program, const Buffers& buffers);
}  // namespace warploom::tile
