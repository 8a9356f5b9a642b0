// What a compiled CPU kernel may be made of, decided from its ELF file before anything loads it.
//
// A kernel is a pure function of its buffers. So its shared object has constants and code and
// nothing else: no memory that is writable once it is relocated, where it could keep an answer for
// the next call; no code that runs when it is loaded; no calls but of mathematics and copies; no
// instruction but those that compute, move and branch. Everything is looked up in a list, and what
// is on no list is refused:
//
//   segments, sections, dynamic entries, relocations   cpu_image.def
//   functions of libraries                             cpu_functions.def
//   instructions                                       cpu_instructions.def
//
// Every executable byte is decoded, section by section from its first byte, and every place that
// the file names as code (targets of jumps and calls, symbols, relocated pointers) must begin an
// instruction. Computed jumps and returns stay possible, as compilers need them for switches and
// calls: what they could reach in the middle of an instruction is bounded by the process that a
// candidate runs in, not by this.
//
//   WARPLOOM_TRY(const ElfFile file, ElfFile::read(image, "mm"));
//   WARPLOOM_CHECK(check_cpu_image(file, "mm"));  // "rdtsc, which reads a clock, at 0x1042 in
//                                                 // mm+0x22"
//
// Within the room only.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "verify/elf_file.h"

namespace warploom::verify {
// Where the instruction at an address of an image comes from: "relu, line 9". Empty: nobody knows.
using PlaceAt = std::function<std::string(uint64_t address)>;

// ok, or candidate-forbidden with what was found in `place`. A fraction of a millisecond for a
// kernel of 10 kB.
Status check_cpu_image(const ElfFile& file, const std::string& place, const PlaceAt& place_at = {});

// Its second half, over what the first has found in order: cpu_code.cpp.
Status check_cpu_code(const ElfFile& file, const std::string& place, const PlaceAt& place_at);

// The image of a list's kernel. Of a foreign text an instruction that is refused is placed at its
// line, for which the text is compiled once more (runtime/text_lines.h).
Status check_cpu_kernel(const LaunchList& list, size_t kernel, const std::string& image,
                        bool foreign);

// Is this a function of cpu_functions.def?
bool is_listed_function(std::string_view name);

// Where an instruction of a kernel's image comes from: "relu, line 9", or the kernel's name alone.
std::string place_of_instruction(const LaunchList& list, size_t kernel, const std::string& image,
                                 uint64_t address);
}  // namespace warploom::verify
