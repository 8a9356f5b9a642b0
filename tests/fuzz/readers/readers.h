// What reads bytes that strangers made, one function each: bytes give a value or an error with a
// code, and anything else aborts.
//
// libFuzzer drives each of them (the .cpp files here; docs/fuzzing.md), and readers_test.cpp gives
// them the kept corpus.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include "archive/archive.h"
#include "base/file.h"
#include "onnx/load.h"
#include "tile/print.h"
#include "tile/program.h"
#include "tile/verify.h"

namespace warploom::fuzz {
inline void require(bool holds, std::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "%.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

// An error that a reader may give: `internal` is for faults of the program.
template <class T> bool read(const Result<T>& result) {
  if (!result) require(result.error().code != ErrorCode::kInternal, describe(result.error()));
  return result.has_value();
}

// Both forms of a model.
inline void read_model(std::string_view bytes) {
  read(parse_onnx(bytes));
}

// A program that verifies prints as a text that reads as the same program.
inline void read_program(std::string_view bytes) {
  const auto program = tile::parse(bytes, "program.tile");
  if (!read(program) || !read(tile::verify(*program))) return;
  const std::string text = tile::print(*program);
  const auto again = tile::parse(text, "printed.tile");
  require(again.has_value(), text);
  require(tile::print(*again) == text, text);
}

// The bytes as a file; all that is in it is asked for.
inline void read_archive(std::string_view bytes) {
  static const ScratchFolder folder("readers");
  static const std::filesystem::path path = folder.path() / "archive.sqlite";
  require(write_file(path, bytes).has_value(), "no room for the archive");
  if (auto archive = archive::Archive::open(path); read(archive)) {
    if (const auto problems = archive->problems(); read(problems))
      for (const auto& problem : *problems) {
        read(archive->candidates(problem.key));
        read(archive->best(problem.key));
        read(archive->runs(problem.key));
      }
  }
  for (const auto& file : std::filesystem::directory_iterator(folder.path()))
    std::filesystem::remove(file);  // also what was moved aside
}
}  // namespace warploom::fuzz

// Defines what libFuzzer calls.
#define WARPLOOM_FUZZ_READER(function)                                                     \
  extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {                \
    warploom::fuzz::function(std::string_view(reinterpret_cast<const char*>(data), size)); \
    return 0;                                                                              \
  }
