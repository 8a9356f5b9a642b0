// What a misspelt word was probably meant to be: commands, flags, operators, fields of schedules
// and every other vocabulary of which people type words.
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
// How many letters must be put in, left out, exchanged for another or swapped with their neighbour
// to make `b` of `a` (Damerau and Levenshtein's distance, no letter touched twice); `most` + 1
// where it is more than `most`. Capitals count as small letters.
int edit_distance(std::string_view a, std::string_view b, int most);

// The word of `known` that is nearest to `word`, the first of several: at most one edit for every
// three letters, or else one of which the other is the beginning ("opt", "optimizer"), from three
// letters on. Nothing where none is near, or where `word` itself is known.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known);

// The remedy of an error: "did you mean --budget?", or `otherwise` where no word is near. Both
// where both are given: "did you mean --budget? See `warploom optimize --help`".
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known,
                         const std::string& otherwise = "");
}  // namespace warploom
