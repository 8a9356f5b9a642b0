// Programs without a solution, and what is said of each: tests/synth/unsatisfiable/*.tile, one a
// file.
//
//   # Two warps are no warpgroup.
//   # sm_90a no-instruction: a multiple of 4 warps | 2 warps
//   …
//   mma acc += a * b  # <- here
//
// The second line gives the target, the error's code and words that the explanation must hold. The
// line marked "here" is the error's place; lines marked "and here" stand in the explanation as
// file:line. Every explanation says what was expected, what was found and what one can do.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>
#include "base/error.h"
#include "base/file.h"
#include "kernels/lower.h"
#include "support/paths.h"
#include "target/capabilities.h"
#include "tile/print.h"

namespace warploom::synth {
namespace {
struct Unsatisfiable {
  std::string name;
  std::string text;
  std::string target;
  std::string code;
  std::vector<std::string> words;
  int here = 0;
  std::vector<int> and_here;
};

std::ostream& operator<<(std::ostream& out, const Unsatisfiable& u) {
  return out << u.name;
}

Unsatisfiable read(const std::filesystem::path& path) {
  Unsatisfiable u{path.stem().string(), read_file(path).value_or("")};
  std::istringstream text(u.text);
  std::string line;
  for (int number = 1; std::getline(text, line); ++number) {
    if (line.ends_with("# <- here")) u.here = number;
    if (line.ends_with("# <- and here")) u.and_here.push_back(number);
    if (number != 2) continue;
    std::istringstream head(line.substr(2, line.find(": ") - 2));
    head >> u.target >> u.code;
    for (std::string rest = line.substr(line.find(": ") + 2); !rest.empty();) {
      const size_t end = std::min(rest.find(" | "), rest.size());
      u.words.push_back(rest.substr(0, end));
      rest.erase(0, end + 3);
    }
  }
  return u;
}

std::vector<Unsatisfiable> all() {
  std::vector<Unsatisfiable> out;
  for (const auto& entry :
       std::filesystem::directory_iterator(test::source_path("tests/synth/unsatisfiable")))
    out.push_back(read(entry.path()));
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return out;
}

class Programs : public testing::TestWithParam<Unsatisfiable> {};

TEST_P(Programs, WithoutASolutionAreExplained) {
  const Unsatisfiable& u = GetParam();
  const auto program = tile::parse(u.text, u.name);
  ASSERT_TRUE(program.has_value()) << describe(program.error());
  const auto lowered = kernels::lower(*program, *target::capabilities_of(u.target));
  ASSERT_FALSE(lowered.has_value());
  const Error& error = lowered.error();
  const std::string explained = describe(error);
  EXPECT_EQ(code_text(error.code), u.code) << explained;
  EXPECT_EQ(error.place, u.here ? fmt::format("{}:{}", u.name, u.here) : "program 'p'")
      << explained;
  for (const int line : u.and_here)
    EXPECT_NE(explained.find(fmt::format("{}:{}", u.name, line)), std::string::npos) << line << "\n"
                                                                                     << explained;
  for (const std::string& words : u.words)
    EXPECT_NE(explained.find(words), std::string::npos) << words << "\n" << explained;
  EXPECT_FALSE(error.expected.empty() || error.found.empty() || error.remedy.empty()) << explained;
}

INSTANTIATE_TEST_SUITE_P(Unsatisfiable, Programs, testing::ValuesIn(all()),
                         [](const auto& one) { return one.param.name; });
}  // namespace
}  // namespace warploom::synth
