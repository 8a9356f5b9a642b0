// The command line read: CLI11 sorts words into commands, flags and values; what is said of words
// that do not fit is ours, in the order in which they were given.
//
//   warploom optimise m.onnx            usage, found "optimise", "did you mean optimize?"
//   warploom optimize m.onnx --buget 3s usage, found "--buget 3s", "did you mean --budget?"
//   warploom optimize m.onnx --jobs 0   usage, at --jobs, "a whole number from 1 to 1024"
#pragma once
#include <optional>
#include "cli/command.h"

namespace warploom::cli {
// What the words ask for: a command whose flags are set, or a text to print (--help, --version).
struct Asked {
  const Command* command = nullptr;
  std::string text;
};

// Fails with usage. `session` is filled in even then, as far as its flags can be told.
Result<Asked> read_command_line(int argc, char** argv, std::vector<Command>& commands,
                                Session& session);

// "60s", "2m", "500ms", "1.5h", "7" as seconds; nothing for any other text.
std::optional<double> seconds_of(const std::string& text);
}  // namespace warploom::cli
