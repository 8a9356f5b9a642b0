// Which arguments a function of a spelled model takes, and what its parameters then are. Private to
// the room.
#pragma once
#include <map>
#include <optional>
#include "onnx/spell_context.h"
#include "onnx/spell_functions.h"

namespace warploom::spell {
// Whether a function has a parameter for each argument, of its kind, and each parameter a value.
bool fits(const Function& function, const std::vector<Given>& given);
// Why it has not.
tl::unexpected<Error> misfit(const Context& context, const Function& function, Place place,
                             const std::vector<Given>& given);
// The parameters that are given, by their names; usage where a tensor has a wrong number of axes.
// Expects arguments that fit.
Result<std::map<std::string, SpelledValue>> bound(const Context& context, const Function& function,
                                                  const std::vector<Given>& given);

// Arithmetic of numbers alone, which is done when the model is spelled.
std::optional<double> known_when_spelled(const std::string& name, const std::vector<Given>& given);
}  // namespace warploom::spell
