// The grammar of spelled models (spell.h): a text to a tree. Private to the room.
#pragma once
#include <string>
#include <vector>
#include "base/error.h"

namespace warploom::spell {
// A part of the text, in bytes.
struct Place {
  size_t at = 0;
  size_t length = 1;
};

struct Expression;

struct Argument {
  std::string name;  // "" of one that is given by its order
  Place place;
  std::vector<Expression> value;  // one
};

struct Expression {
  enum class Kind { absent, number, list, text, name, input, call };
  Kind kind = Kind::absent;
  Place place;
  std::string name;  // of a name, an input or a call, "-" of a sign; a text's characters
  double number = 0;
  std::vector<Expression> items;  // of a list, or the sizes of an input's shape
  std::string dtype;              // of an input, "" where none is given
  Place dtype_place;
  std::vector<Argument> arguments;  // of a call
};

struct Name {
  std::string text;
  Place place;
};

struct Statement {
  std::vector<Name> names;  // none of a bare expression
  Expression value;
};

struct Text {
  std::vector<Statement> statements;  // at least one
  std::vector<Name> outputs;          // those behind ->
};

// usage at the column where the text cannot be read.
Result<Text> parse(std::string_view text);

// An error whose place is a column of the text, the line beneath it and a mark under the part.
Error error_at(std::string_view text, Place place, Error error);

// A name without what does not count: "Log_Softmax" is "logsoftmax".
std::string folded(std::string_view name);
}  // namespace warploom::spell
