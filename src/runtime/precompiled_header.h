// The device headers of CPU kernels as g++ keeps what it has read of them: most of what a small
// kernel takes to compile is spent on reading <immintrin.h>.
//
//   if (const auto header = precompiled_header(compiler, argv, source))
//     sandbox.lend(kPrecompiledName, *header);        // g++ finds it beside wl_cpu.h
//
// One is made for each compiler, set of flags and width of vectors, in a sandbox, of Warploom's own
// headers alone; it lies in the cache folder, which no compiler and no kernel can write. That it is
// still what was made is looked at once a process (its hash lies beside it), else it is made again.
// Foreign texts are compiled without: what they include is seen line by line (foreign_text.h).
//
// g++ reads the headers themselves where it does not like what it finds. So nothing depends on it,
// and what an image is made of is said by the same things: an image's key holds the headers' texts.
// Source: GCC manual, "Using Precompiled Headers".
//
// Within the room only.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>
#include "runtime/compilers.h"

namespace warploom::runtime {
inline constexpr const char* kPrecompiledName = "wl_cpu.h.gch";

// Nothing where the compiler makes none, or the text does not begin as emitted kernels do.
std::optional<std::filesystem::path> precompiled_header(const Compiler& compiler,
                                                        const std::vector<std::string>& argv,
                                                        const std::string& source);

// This machine's processor, which decides what -march=native means.
const std::string& this_processor();
}  // namespace warploom::runtime
