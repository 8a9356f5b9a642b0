// Names that a model chose, as names in generated files.
//
// A tensor may be called `mutex`, `NULL`, `concept`, `2x/Ünicode` or `$(reboot)`; a model's file
// `random.onnx`, which as random.py would hide Python's own. Generated C++ therefore has two name
// spaces that cannot meet: what the generator needs for itself begins with `wl_` or is a macro
// WL_…, and what comes from the model goes through identifier(), which gives no such name, no word
// of C, C++, CUDA or Python and no macro of a header.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace warploom::export_ {
// What a name is for, which is also what is added to it where it cannot be had: `mutex_tensor`.
enum class Named : uint8_t { tensor, bundle };

// `name` as an identifier of C, C++ and Python, different from all of `taken`, to which it is
// added. A name that is free stays as it is: x, w, bias_1, MatMul_output_0. Else
//
//   other characters become '_', at most one between two others    a.b -> a_b, /mm/out -> mm_out
//   a leading digit, or nothing left, takes the kind in front      2x -> tensor_2x, Ü -> tensor
//   what is not surely free takes the kind behind                  NULL -> NULL_tensor
//   a long name is cut, and keeps a hash of the whole              aaa… -> aaa…_5f31c0de
//   what is taken is numbered                                      a-b -> a_b_2
//
// Surely free is what begins with a small letter, or has no capital but its first letter, or is one
// such word after another (CamelCase), and is none of reserved_words.def. Macros are in capitals;
// those few that are not are listed there, and a test asks the headers of this machine. A bundle's
// name is also that of its header and its Python module, so it is none of the standard ones nor
// that of a device header.
std::string identifier(std::string_view name, std::vector<std::string>& taken,
                       Named kind = Named::tensor);

// The names of files for these tensors, without an ending: letters, digits, dots, dashes and '_',
// all different and none hidden. A name that can be a file's stays; `c/d` becomes c_d, or c_d_2
// where another tensor is c_d.
std::vector<std::string> file_stems(const std::vector<std::string>& names);
}  // namespace warploom::export_
