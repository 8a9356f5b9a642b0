// What the parts of the speller share: values, the text for its errors, the graph so far. Private
// to the room.
#pragma once
#include <variant>
#include "onnx/spell_syntax.h"
#include "onnx/spell_writer.h"

namespace warploom::spell {
struct Absent {};

struct TensorValue {
  graph::TensorId id;
};

using List = std::vector<double>;
// What an expression stands for: of a call with several outputs the first.
using SpelledValue = std::variant<Absent, double, List, std::string, TensorValue>;

struct Given {
  std::string name;  // "" by its order
  Place place;
  SpelledValue value;
};

bool is_whole(double value);
bool is_number(const SpelledValue& value);
std::string described(const SpelledValue& value);  // for errors: "3", "[1,2]", "a tensor"
std::vector<std::string> type_names();             // of the element types that ONNX has

struct Call {
  std::string function;
  Place place;
};

struct Context {
  std::string_view text;
  Dtype dtype;  // of inputs and numbers that say nothing else
  ModelWriter writer;
  std::vector<Call> within = {};  // functions whose bodies are written, outermost first
  size_t operators = 0;           // that were called

  // usage, and an error of another code, at a place of the text, or at the outermost call of a
  // function: within it places are of its own body.
  tl::unexpected<Error> wrong(Place place, std::string message, std::string expected = "",
                              std::string found = "", std::string remedy = "") const;
  tl::unexpected<Error> at_call(Place place, Error error) const;
  Result<Dtype> type_of(const std::string& name, Place place) const;
};

// Whether an operator has all attributes that are given by name.
bool fits(graph::OpKind op, const std::vector<Given>& given);
// Adds an operator's node; so many outputs.
Result<std::vector<SpelledValue>> call_operator(Context& context, graph::OpKind op, Place place,
                                                const std::vector<Given>& given, size_t outputs);
// extent, rank and swapaxes, which ask for a tensor's shape.
bool is_built_in(const std::string& name);
Result<SpelledValue> call_built_in(Context& context, const std::string& name, Place place,
                                   const std::vector<Given>& given);
// "bf16(x)".
Result<SpelledValue> convert(Context& context, const std::string& type, Place place,
                             const std::vector<Given>& given);
}  // namespace warploom::spell
