// PTX as statements of words, as the assembler reads them: comments, labels, blocks and debugging
// directives are gone, the source's lines are kept.
//
//   WARPLOOM_TRY(const PtxText text, read_ptx(ptx, "kernel 'mm'"));
//   for (const PtxStatement& one : text.statements)
//     if (one.words[0] == "mov.u32") …   // "mov.u32", "%r1", ",", "%tid.x"
//
// Words are views into the text. A guard (`@!%p1`) stands before the instruction as words of its
// own, braces of vectors and initialisers are words. Errors: candidate-forbidden where it cannot be
// read, or is preprocessed (`#include`). Grammar: PTX ISA, "Syntax". Within the room only.
#pragma once
#include <string>
#include <string_view>
#include <vector>
#include "base/error.h"

namespace warploom::verify {
struct PtxStatement {
  std::vector<std::string_view> words;
  int line = 0;      // of the source that the kernel was compiled from; 0: not known
  int function = 0;  // which of the text's it stands in, from 1; 0: none
};

struct PtxText {
  std::vector<PtxStatement> statements;
};

Result<PtxText> read_ptx(std::string_view text, const std::string& place);

// "%r1" of "%r1.x", "cp" of "cp.async.bulk": what stands before the first dot behind the first
// character.
std::string_view ptx_root(std::string_view word);
}  // namespace warploom::verify
