// What compilers run in: a scratch folder that holds the text, the device headers and all that is
// made, in a process that opens no other file but the compiler's own (base/confine.h).
//
//   const CompilerSandbox sandbox(compiler, flags, "cpu", time, true);
//   WARPLOOM_CHECK(sandbox.write("kernels.cpp", source));
//   WARPLOOM_TRY(const std::string log, sandbox.run({"/usr/bin/g++", …, "kernels.cpp"}));
//   WARPLOOM_TRY(const std::string image, sandbox.read("image"));
//
// Texts are named kernels.cpp and kernels.cu, paths are relative to the folder: what a compiler
// makes of a text does not depend on where it runs.
//
// Errors: compile-timeout; compile-failed with what the text asked for in plain words (a file that
// it may not read, too much memory, too large a file), else with the compiler's own words, which
// are escaped for a terminal. A foreign text's error is placed at its line.
//
// Within the room only.
#pragma once
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>
#include "base/confine.h"
#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "runtime/compilers.h"

namespace warploom::runtime {
// What the paths of a compiler, its arguments and its caches come to: the files and folders it has
// to read. /usr and /lib, the compiler's own folders, the toolkit's; nothing of a home or of /etc.
std::vector<std::filesystem::path> files_of_compiler(const Compiler& compiler,
                                                     const std::vector<std::string>& flags);

class CompilerSandbox {
 public:
  // `flags` are those of the caller's own; paths in them are readable. `time` is for all runs
  // together.
  CompilerSandbox(const Compiler& compiler, const std::vector<std::string>& flags,
                  const std::string& device, std::chrono::milliseconds time, bool foreign);

  Status write(const std::string& name, std::string_view text) const;
  // A file from outside, under a name beside the text: to be read, not to be written.
  void lend(const std::string& name, const std::filesystem::path& file);
  Result<std::string> read(const std::string& name) const;  // what a run made

  const std::filesystem::path& folder() const { return scratch_.path(); }

  const std::vector<std::filesystem::path>& readable() const { return limits_.readable; }

  // What it printed.
  Result<std::string> run(const std::vector<std::string>& argv) const;

 private:
  std::vector<std::string> environment() const;
  std::string words_of(const ProcessResult& done) const;
  Error refusal(const ProcessResult& done) const;
  Error out_of_time() const;

  const Compiler& compiler_;
  std::chrono::milliseconds time_;
  std::chrono::steady_clock::time_point end_;
  bool foreign_;
  ScratchFolder scratch_{"compile"};
  Confinement limits_;
};

// The program that NVRTC runs in (set_helper_program); empty: this process.
const std::string& helper_program();
}  // namespace warploom::runtime
