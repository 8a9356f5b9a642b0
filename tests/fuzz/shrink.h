// Makes a failing program small: lines of its text are dropped, with what stands below them, while
// it fails as before.
#pragma once
#include "check.h"

namespace warploom::fuzz {
// The smallest program found that ends with `code` on `target`.
Case shrunk(const Case& failing, const std::string& target, const std::string& code);
}  // namespace warploom::fuzz
