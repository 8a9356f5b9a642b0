// Mutants that mean the same as the text they were made from: the reason, and a test of the text
// that proves it applies.
#pragma once
#include "mutants.h"

namespace warploom::test {
// One sentence, or "" if no reason is known; `text` is the kernel's, before mutants were planted.
std::string why_equivalent(const std::string& text, const Mutant& mutant);
}  // namespace warploom::test
