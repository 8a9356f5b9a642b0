#include "base/nearest.h"
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/casts.h"

namespace warploom {
namespace {
constexpr size_t kLettersAnEdit = 3;
constexpr size_t kLeastBeginning = 3;  // letters of which a beginning says anything
constexpr size_t kLongestWord = 200;   // what is longer is no misspelt word

char small(char letter) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
}

bool alike(char a, char b) {
  return small(a) == small(b);
}

bool begins_with(std::string_view word, std::string_view beginning) {
  if (beginning.size() < kLeastBeginning || beginning.size() > word.size()) return false;
  return std::equal(beginning.begin(), beginning.end(), word.begin(), alike);
}

std::string_view without_dashes(std::string_view word) {
  return word.substr(std::min(word.find_first_not_of('-'), word.size()));
}

std::string capitalized(std::string text) {
  if (text.empty()) return text;
  const auto first = static_cast<unsigned char>(text[0]);
  text[0] = static_cast<char>(std::toupper(first));
  return text;
}
}  // namespace

int edit_distance(std::string_view a, std::string_view b, int most) {
  const size_t longer = std::max(a.size(), b.size());
  const size_t shorter = std::min(a.size(), b.size());
  if (longer - shorter > as_size(most)) return most + 1;
  // Row i: the distances of a's first i letters from b's first j, for every j.
  std::vector<int> before_last(b.size() + 1);
  std::vector<int> last(b.size() + 1);
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    last[j] = as_int(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = as_int(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const char letter = a[i - 1];
      const char other = b[j - 1];
      const int changed = last[j - 1] + (alike(letter, other) ? 0 : 1);
      const int removed = last[j] + 1;
      const int added = row[j - 1] + 1;
      row[j] = std::min({changed, removed, added});
      if (i < 2 || j < 2) continue;
      const bool swapped = alike(letter, b[j - 2]) && alike(a[i - 2], other);
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return std::min(last[b.size()], most + 1);
}

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known) {
  if (word.size() > kLongestWord) return std::nullopt;
  const std::string_view bare = without_dashes(word);
  const size_t most_edits = std::max<size_t>(1, bare.size() / kLettersAnEdit);
  const int most = as_int(most_edits);
  std::optional<std::string> best;
  int fewest = most + 1;
  for (const std::string& one : known) {
    if (one == word) return std::nullopt;
    const std::string_view other = without_dashes(one);
    if (other.empty() || bare.empty()) continue;
    const int edits = edit_distance(bare, other, most);
    // A word of one or two letters is no misspelling of every other such word.
    const size_t shorter = std::min(bare.size(), other.size());
    const bool something_left = as_size(edits) < shorter;
    if (edits >= fewest || !something_left) continue;
    fewest = edits;
    best = one;
  }
  if (best) return best;
  for (const std::string& one : known) {
    const std::string_view other = without_dashes(one);
    if (begins_with(other, bare) || begins_with(bare, other)) return one;
  }
  return std::nullopt;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known,
                         const std::string& otherwise) {
  const auto meant = nearest(word, known);
  if (!meant) return otherwise;
  const std::string question = "did you mean " + *meant + "?";
  return otherwise.empty() ? question : question + " " + capitalized(otherwise);
}
}  // namespace warploom
