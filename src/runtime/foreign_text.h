// What a foreign text may have become on its way through the compiler: two checks between its
// steps, which hold where the kernel has no Landlock as well.
//
//   text, preprocessed      every file that was included is one that the compiler may read; no
//                           precompiled header; the file's own name, which differs where people
//                           build it, is not in it
//   assembler's text        no directive but those that compilers write themselves, anywhere in it:
//                           .incbin and .include would read files, .macro and .rept write without
//                           an end, .symver and .pushsection hide what the gate looks for
//
//   WARPLOOM_CHECK(check_preprocessed(text, readable));
//   WARPLOOM_CHECK(check_assembly(text));                 compile-failed, at the user's line
//
// Within the room only.
#pragma once
#include <filesystem>
#include <string_view>
#include <vector>
#include "base/error.h"

namespace warploom::runtime {
// `readable`: files and folders, as in Confinement; relative names are the scratch folder's.
Status check_preprocessed(std::string_view text,
                          const std::vector<std::filesystem::path>& readable);
Status check_assembly(std::string_view text);
}  // namespace warploom::runtime
