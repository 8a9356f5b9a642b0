// Answer: what a model wrote, taken apart.
//
//   IDEA: split the sum in two workspaces        any number: what it would try later
//   CHANGE: eight rows a block, in registers     what this source does
//   ```cpp                                       a whole kernel file,
//   …
//   ```
//   <<<<<<< SEARCH                               or edits of the source that it was shown
//   …
//   =======
//   …
//   >>>>>>> REPLACE
//
//   const Answer answer = read_answer(exchange.answer);
//   WARPLOOM_TRY(const std::string text, answer.source_from(current));
//
// Errors: model-no-source where there is neither, where what an edit looks for does not stand in
// the source exactly once, or where the text is too long for a kernel file.
#pragma once
#include <string>
#include <string_view>
#include <vector>
#include "base/error.h"

namespace warploom::llm {
struct Edit {
  std::string search;   // whole lines
  std::string replace;  // whole lines, or none
};

struct Answer {
  std::vector<std::string> ideas;  // a line each, at most 200 characters
  std::string change;
  std::string source;  // whole; empty: edits
  std::vector<Edit> edits;

  // The source that it means, where `current` was shown.
  Result<std::string> source_from(const std::string& current) const;
};

// Ideas and the change are read of any answer: where it holds no source, source_from() says so.
Answer read_answer(std::string_view text);
}  // namespace warploom::llm
