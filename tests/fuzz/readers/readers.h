// What reads bytes that strangers made, one function each: bytes give a value or an error with a
// code, and anything else aborts.
//
// libFuzzer drives each of them (the .cpp files here; docs/fuzzing.md), and readers_test.cpp gives
// them the kept corpus.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include "archive/archive.h"
#include "base/file.h"
#include "base/quoted.h"
#include "codegen/launch_check.h"
#include "codegen/launch_list.h"
#include "export/as_written.h"
#include "onnx/load.h"
#include "runtime/plan_file.h"
#include "tile/print.h"
#include "tile/program.h"
#include "tile/verify.h"
#include "verify/channel.h"
#include "verify/evaluator.h"
#include "verify/image_check.h"

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

// The bytes as a bundle's plan.json, alone in a folder. A list that is read can be launched, and
// the bundle that its plan should come with is written anew, which finds that nothing of it is
// there.
inline void read_plan(std::string_view bytes) {
  static const ScratchFolder folder("readers");
  std::filesystem::path path = folder.path() / "plan.json";
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  auto plan = runtime::read_plan(path, {"launch_list", "constants"});
  if (!read(plan)) return;
  read(runtime::check_seal(*plan, folder.path()));
  const auto list = launch_list_from_json((*plan)["launch_list"]);
  if (!read(list)) return;
  for (const auto* buffers : {&list->inputs, &list->outputs, &list->workspaces})
    for (const BufferSpec& buffer : *buffers)
      require(buffer.bytes() >= 0, buffer.name);
  require(launch_list_from_json(to_json(*list)).has_value(), "a list that is not read again");
  (*plan)["files"] = nlohmann::json::object();
  runtime::seal_plan(*plan);
  const auto written = [&] { return export_::check_written(folder.path(), *plan, *list); };
  read(runtime::reading_plan(path, written));
}

// The bytes as a kernel file, of a small problem for either engine; what it declares can be
// launched.
inline void read_kernel(std::string_view bytes) {
  for (const auto& [engine, arch] : {std::pair(Engine::cpu, "x86-64"), {Engine::cuda, "sm_90a"}}) {
    LaunchList problem{.engine = engine, .arch = arch};
    problem.inputs = {{"x", Dtype::f32, {64, 512}}, {"w", Dtype::bf16, {512, 3}}};
    problem.outputs = {{"y", Dtype::f32, {64}}};
    const auto list = declared_list(std::string(bytes), "kernel.cpp", problem);
    if (read(list)) require(check_launches(*list).has_value(), "declared, and not to be launched");
  }
}

// The bytes as what an evaluator says: a verdict, or an error.
inline void read_answer(std::string_view bytes) {
  const auto* const begin = reinterpret_cast<const uint8_t*>(bytes.data());
  const auto message = verify::message_of({begin, bytes.size()});
  if (!message) return;
  if (const auto error = verify::error_said(message->value("error", nlohmann::json())))
    require(is_utf8(describe(*error)), "an error that no terminal shows");
  const auto verdict = verify::verdict_from_json(message->value("verdict", nlohmann::json()));
  if (!read(verdict)) return;
  require(verify::verdict_from_json(verify::to_json(*verdict)).has_value(), "not read again");
}

// The bytes as a compiled kernel.
inline void read_image(std::string_view bytes) {
  read(verify::check_image(std::string(bytes), "kernel"));
}
}  // namespace warploom::fuzz

// Defines what libFuzzer calls.
#define WARPLOOM_FUZZ_READER(function)                                                     \
  extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {                \
    warploom::fuzz::function(std::string_view(reinterpret_cast<const char*>(data), size)); \
    return 0;                                                                              \
  }
