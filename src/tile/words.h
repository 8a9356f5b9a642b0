// The words of the text form that are neither types nor elementwise operations.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "tile/program.h"

namespace warploom::tile {

inline constexpr std::array<std::string_view, 3> kReduceNames = {"sum", "max", "min"};  // in the order of ReduceOp
// In the order of Statement::node.
inline constexpr std::array<std::string_view, 11> kStatementWords = {
    "copy", "fill", "map", "mma", "reduce", "cluster_reduce", "for", "if", "produce", "consume", "roles"};

struct TensorWord {
  std::string_view word;
  Scope scope;
  bool writable;
};
inline constexpr std::array<TensorWord, 4> kTensorWords = {{{"global", Scope::global, false},
                                                            {"output", Scope::global, true},
                                                            {"shared", Scope::shared, false},
                                                            {"register", Scope::reg, false}}};

inline std::string_view name_of(ReduceOp op) { return kReduceNames[static_cast<std::size_t>(op)]; }
inline std::optional<ReduceOp> reduce_op_named(std::string_view name) {
  for (std::size_t i = 0; i < kReduceNames.size(); ++i)
    if (kReduceNames[i] == name) return static_cast<ReduceOp>(i);
  return std::nullopt;
}
using warploom::name_of;  // types and operations too, which the overload above would hide

}  // namespace warploom::tile
