// Random tile programs: text and back, interpreter, emulator and CPU must agree, or the compiler
// must say by name what it lacks.
//
// Ordinarily a sample runs. WARPLOOM_FUZZ=N runs N programs, from WARPLOOM_FUZZ_SEED on;
// WARPLOOM_FUZZ_OUT=FILE writes the figures that docs/fuzzing.md shows. WARPLOOM_FUZZ_SHOW=SEED
// prints one program, runs it in this process, and shrinks it if it fails.

#include <gtest/gtest.h>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include "fuzz/check.h"
#include "fuzz/program.h"
#include "shrink.h"
#include "tile/print.h"

namespace warploom {
namespace {
uint64_t number(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}

TEST(Fuzz, RandomProgramsMeanTheSameEverywhere) {
  const bool sample = !std::getenv("WARPLOOM_FUZZ");
  const fuzz::Run run{.first = number("WARPLOOM_FUZZ_SEED", 1),
                      .count = static_cast<int>(number("WARPLOOM_FUZZ", 80))};
  const auto begin = std::chrono::steady_clock::now();
  const auto outcomes = fuzz::run(run);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  size_t refused = 0;
  for (const auto& o : outcomes) {
    refused += !o.is_bug() && !o.agrees();
    EXPECT_FALSE(o.is_bug()) << "seed " << o.seed << " (" << o.kind << ", " << o.target
                             << "): " << o.code << "\n"
                             << o.detail;
  }
  const auto figures = fuzz::figures(run, outcomes, seconds);
  if (const char* out = std::getenv("WARPLOOM_FUZZ_OUT")) {
    ASSERT_TRUE(fuzz::write_figures(out, figures));
  }
  std::cout << figures.dump(1) << "\n";
  EXPECT_GE(outcomes.size(), static_cast<size_t>(run.count));
  EXPECT_LT(static_cast<double>(refused),
            (sample ? 0.25 : 0.15) * static_cast<double>(outcomes.size()))
      << "too few programs reach the end";
}

TEST(Fuzz, OneProgramIsShown) {
  const char* seed = std::getenv("WARPLOOM_FUZZ_SHOW");
  if (!seed) GTEST_SKIP() << "WARPLOOM_FUZZ_SHOW names no seed";
  const fuzz::Case c = fuzz::make_case(std::strtoull(seed, nullptr, 10));
  std::cout << tile::print(c.program) << std::flush;
  for (const auto& o : fuzz::check_case(c)) {
    std::cout << o.kind << ", " << o.target << ": " << o.code << "\n" << o.detail << "\n";
    EXPECT_FALSE(o.is_bug());
    if (o.is_bug())
      std::cout << "\nsmaller:\n" << tile::print(fuzz::shrunk(c, o.target, o.code).program);
  }
}
}  // namespace
}  // namespace warploom
