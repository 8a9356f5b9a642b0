// The functions of spelled models, written in their language in resources/new/functions.json.
// Private to the room.
#pragma once
#include <optional>
#include "onnx/spell.h"
#include "onnx/spell_syntax.h"

namespace warploom::spell {
// What a parameter takes: a tensor, or numbers that are known when the model is spelled.
enum class Takes {
  tensor,
  number,
  list,   // of numbers; one number is a list of one
  sizes,  // a number for every spatial axis, or one for all
  text
};

struct Parameter {
  std::string name;
  Takes takes = Takes::tensor;
  int64_t rank = 0;                   // the axes a tensor must have; 0: any
  std::vector<Expression> otherwise;  // its value where none is given; none: it is required
};

struct Function {
  Spelling shown;
  std::vector<Parameter> parameters;
  Text body;
};

// In the order of the file, each read once.
const std::vector<Function>& functions();
// Those of a name, folded (spell_syntax.h).
std::vector<const Function*> functions_named(const std::string& folded_name);
// The operator of a name, in capitals or not, with or without _; nothing of one that a text cannot
// use.
std::optional<graph::OpKind> operator_spelled(const std::string& folded_name);
// Everything that can be called: of functions, of operators in small letters, of types.
std::vector<std::string> callable_names();
}  // namespace warploom::spell
