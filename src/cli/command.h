// Commands of the executable. Each subcommand is a file: it declares its flags with CLI11 and leaves an action, which gives an
// Answer or an Error; main alone prints and exits.
//
// With --json exactly one object goes to standard output, for a failure {"error": {...}}; everything else, progress included,
// goes to standard error or nowhere.
#pragma once

#include <CLI/CLI.hpp>
#include <atomic>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"

namespace warploom::cli {

struct Session {
  bool json = false;
  bool quiet = false;  // no progress
};

struct Answer {
  nlohmann::json json;  // what --json prints
  std::string text;     // what people read
  int status = 0;
};

using Action = std::function<Result<Answer>(const Session&)>;

// Each adds its subcommand to `app`; when that is chosen, `action` is set.
void add_optimize(CLI::App& app, Action& action);
void add_show(CLI::App& app, Action& action);
void add_verify(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);
void add_errors(CLI::App& app, Action& action);
void add_version(CLI::App& app, Action& action);

// The whole program but for the hidden subcommands: parses, acts, prints; the exit status.
int run(int argc, char** argv);

// Set by SIGINT and SIGTERM once catch_interrupts() was called; a second signal ends the process at once.
const std::atomic<bool>& interrupted();
void catch_interrupts();

}  // namespace warploom::cli
