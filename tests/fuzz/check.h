// Runs random programs through everything that gives them a meaning and compares: text and back,
// the interpreter, and for each of a program's targets synthesis, emitted source, and the emulator
// or this machine's CPU. The texts of many programs are compiled as one.
//
// Bugs: an outcome "wrong", "crash", "hang", or an error whose code no program may end with
// (internal, layout, tile-invalid, tile-runtime, compile-failed, emulator-hazard,
// emulator-deadlock). Refusals: no-layout, no-instruction, resource-limit.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>
#include "base/error.h"
#include "program.h"

namespace warploom::fuzz {
struct Outcome {
  uint64_t seed = 0;
  std::string kind;
  std::string target;
  std::string code;  // "agrees", "wrong", "crash", "hang", or an error's code
  std::string detail;
  bool is_bug() const;

  bool agrees() const { return code == "agrees"; }
};

// Hears each program's number among those at work before work on it alone begins, and -1 before
// work on all of them.
using WorkingOn = std::function<void(int)>;
std::vector<Outcome> check_cases(
    const std::vector<Case>& cases, const WorkingOn& working_on = [](int) {});
std::vector<Outcome> check_case(const Case& one);
// Of `count` seeds from `first` on.
std::vector<Outcome> check_programs(uint64_t first, int count, const WorkingOn& working_on);

struct Run {
  uint64_t first = 1;
  int count = 100;
  int workers = 2;
  int batch = 40;  // programs a text
  // before a worker hangs
  int seconds_a_program = 40;
  int seconds_a_text = 300;
};

// In child processes, so that a program that crashes or hangs costs itself alone. `check` is
// check_programs, or what takes its place.
using Check = std::function<std::vector<Outcome>(uint64_t first, int count, const WorkingOn&)>;
std::vector<Outcome> run(const Run& run, const Check& check = check_programs);

nlohmann::json figures(const Run& run, const std::vector<Outcome>& outcomes, double seconds);
// With the commit of the sources, where git knows it.
Status write_figures(const char* file, nlohmann::json figures);
}  // namespace warploom::fuzz
