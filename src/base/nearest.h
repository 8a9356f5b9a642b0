// Spelling suggestions by edit distance, for every vocabulary of which users type words: commands,
// flags, operators, fields of schedules.
//
//   nearest("optimise", {"optimize", "report"})       "optimize"
//   nearest("--buget", {"--budget", "--out"})         "--budget"
//   nearest("frobnicate", {"optimize", "report"})     nothing: no word is near
//   did_you_mean("--buget", {"--budget", "--out"})    "did you mean --budget?"
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace warploom {
// The number of insertions, deletions, substitutions and transpositions of neighbours that turn `a`
// into `b` (optimal string alignment distance, a restricted Damerau-Levenshtein distance), or
// `most` + 1 if it exceeds `most`. Case is ignored.
int edit_distance(std::string_view a, std::string_view b, int most);

// The word of `known` nearest to `word`, the first of equals: at most one edit for every three
// letters, else a word of which one is a prefix of the other, of three letters or more ("opt",
// "optimizer"). Nothing if no word is near, or if `word` itself is known.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known);

// An error's remedy: "did you mean --budget?" if a word is near, followed by `otherwise`, or
// `otherwise` alone: "did you mean --budget? See `warploom optimize --help`".
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known,
                         const std::string& otherwise = "");
}  // namespace warploom
