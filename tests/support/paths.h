// Where files of the project, and what was built from it, lie.
//
//   read_file(test::source_path("examples/matmul_small.textproto"))
//   run_process({test::built_path("warploom"), "--version"})
//
// Both are absolute paths, compiled into paths.cpp alone: all other tests are the same object files
// in every checkout, so that the compiler's cache serves them.
#pragma once
#include <string>
#include <string_view>

namespace warploom::test {
// A path below the project's folder; that folder itself if `inside` is empty.
std::string source_path(std::string_view inside = "");

// The same below the build folder.
std::string built_path(std::string_view inside = "");
}  // namespace warploom::test
