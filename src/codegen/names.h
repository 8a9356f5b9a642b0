// A program as C++ can say it. Names that the text needs for itself get an underscore, or several; and since C++ divides towards
// zero, what may be negative is divided after a multiple of the divisor was added.
//
//   for i0 in 0 .. 3, where the text counts values with i0      →      for i0_ in 0 .. 3
//   (k - 8) / 16                                                →      (k + 8) / 16 - 1
#pragma once
#include "codegen/launch_list.h"
#include "tile/program.h"
namespace warploom::codegen {
// `taken`: of names that must not be. Statements stay where they are in their bodies.
tile::Program in_source_terms(const tile::Program& program, const std::function<bool(const std::string&)>& taken);
// The kernel's arguments by the names that the program's tensors had.
void restore_names(Kernel& kernel, const tile::Program& renamed, const tile::Program& program);
}  // namespace warploom::codegen
