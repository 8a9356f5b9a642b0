// TextLines: which line of a foreign CPU kernel's text an instruction of its image comes from.
//
// Images are compiled without line tables: what is loaded holds nothing that need not be there.
// For an error about an instruction the text is compiled once more with them, in the same sandbox,
// which takes as long as the first time. Compilers make the same code of it; that it is the same
// the caller sees by comparing the two images.
//
//   const auto lines = TextLines::make(list, 0);      // of the list's first kernel
//   if (lines && same_code(lines->image(), judged))
//     lines->place_at(0x1042);                        // {"", 12}; line 0: not known
//
// An instruction of a function that was inlined, or that a header holds (__rdtsc()), belongs to the
// line of the text that called for it.
//
// Of kernels whose texts are compiled together it is told whose line it is, and of a bundle's,
// whose headers are written out, of which file (text_places.h).
//
// Lines are no part of a verdict, so nothing here is an error: where they cannot be told there are
// none. That is so where no Landlock keeps compilers from files of the user's. Source: DWARF's line
// tables, read by binutils' addr2line, likewise in the sandbox.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "runtime/compiler_sandbox.h"
#include "runtime/compilers.h"
#include "runtime/text_places.h"

namespace warploom::runtime {
class TextLines {
 public:
  // Null where lines cannot be told.
  static std::unique_ptr<TextLines> make(const LaunchList& list, size_t kernel);

  // The image with line tables; its addresses are those of the image without.
  const std::string& image() const { return image_; }

  // The line, from 1 on, of the instruction at an address of the image's own; 0: not known.
  TextPlace place_at(uint64_t address) const;

 private:
  TextLines(const Compiler& compiler, std::string_view arch)
      : compiler_(compiler), command_(cpu_command(compiler, arch)) {}

  Status compile();
  int line_at(uint64_t address) const;

  Compiler compiler_;
  std::vector<std::string> command_;
  std::unique_ptr<CompilerSandbox> sandbox_;
  std::string text_;
  std::string image_;
};
}  // namespace warploom::runtime
