#include "llm/answer.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/error.h"
#include "base/quoted.h"

namespace warploom::llm {
namespace {
constexpr size_t kMostIdeas = 16;
constexpr size_t kMostIdea = 200;        // characters
constexpr size_t kMostSource = 1 << 20;  // bytes
constexpr size_t kMostEdits = 64;

Error no_source(std::string expected, std::string found) {
  Error error{ErrorCode::kModelNoSource, "the model's answer holds no kernel file"};
  error.expected = std::move(expected);
  error.found = std::move(found);
  return error;
}

bool skip(std::string_view& line, std::string_view word) {
  if (!line.starts_with(word)) return false;
  line.remove_prefix(word.size());
  return true;
}

std::string trimmed(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(" \t\r"), text.size());
  const size_t end = text.find_last_not_of(" \t\r") + 1;
  return std::string(text.substr(begin, std::max(begin, end) - begin));
}

std::string idea_of(std::string_view text) {
  std::string idea = printable(trimmed(text));
  if (idea.size() > kMostIdea) idea = idea.substr(0, kMostIdea);
  return is_utf8(idea) ? idea : printable(idea);
}

// Models that think aloud do so before they answer.
std::string_view without_thoughts(std::string_view text) {
  constexpr std::string_view kEnd = "</think>";
  const size_t end = text.rfind(kEnd);
  return end == text.npos ? text : text.substr(end + kEnd.size());
}

// Reads an answer line by line: what a line means depends on the block that it stands in.
class Reader {
 public:
  Answer read(std::string_view text) {
    text = without_thoughts(text);
    while (!text.empty()) {
      const size_t length = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, length);
      text.remove_prefix(std::min(length + 1, text.size()));
      if (line.ends_with('\r')) line.remove_suffix(1);
      take(line);
    }
    return std::move(answer_);
  }

 private:
  enum class Within { words, source, search, replace };

  void take(std::string_view line) {
    switch (within_) {
      case Within::words: return take_words(line);
      case Within::source: return take_source(line);
      case Within::search: return take_search(line);
      case Within::replace: return take_replace(line);
    }
  }

  void take_words(std::string_view line) {
    if (line.starts_with("```")) {
      within_ = Within::source;
      block_.clear();
      return;
    }
    if (line.starts_with("<<<<<<< SEARCH")) return begin_edit();
    std::string_view rest = line;
    while (!rest.empty() && std::string_view(" \t*-#").find(rest.front()) != rest.npos)
      rest.remove_prefix(1);
    if (skip(rest, "IDEA:") && answer_.ideas.size() < kMostIdeas)
      answer_.ideas.push_back(idea_of(rest));
    else if (skip(rest, "CHANGE:") && answer_.change.empty())
      answer_.change = idea_of(rest);
  }

  // Of several blocks the last that declares a kernel is the file. Edits may stand in one.
  void take_source(std::string_view line) {
    if (line.starts_with("<<<<<<< SEARCH")) return begin_edit();
    if (!line.starts_with("```")) {
      block_.append(line).append("\n");
      return;
    }
    within_ = Within::words;
    if (block_.find("// warploom:") != block_.npos) answer_.source = block_;
  }

  void begin_edit() {
    back_to_ = within_;
    within_ = Within::search;
    edit_ = {};
  }

  void take_search(std::string_view line) {
    if (line == "=======")
      within_ = Within::replace;
    else
      edit_.search.append(line).append("\n");
  }

  void take_replace(std::string_view line) {
    if (!line.starts_with(">>>>>>> REPLACE")) {
      edit_.replace.append(line).append("\n");
      return;
    }
    within_ = back_to_;
    if (answer_.edits.size() < kMostEdits) answer_.edits.push_back(std::move(edit_));
  }

  Answer answer_;
  Within within_ = Within::words;
  Within back_to_ = Within::words;
  std::string block_;
  Edit edit_;
};

// Where lines stand in a text, as whole lines; nothing where that is nowhere, or in two places.
std::optional<size_t> only_place(const std::string& text, const std::string& lines) {
  std::optional<size_t> place;
  for (size_t at = text.find(lines); at != text.npos; at = text.find(lines, at + 1)) {
    if (at > 0 && text[at - 1] != '\n') continue;
    if (place) return std::nullopt;
    place = at;
  }
  return place;
}
}  // namespace

Result<std::string> Answer::source_from(const std::string& current) const {
  std::string text = source;
  if (text.empty()) {
    if (edits.empty())
      return fail(no_source("a block ```cpp with a kernel file, or edits", "none"));
    text = current;
    if (!text.empty() && !text.ends_with('\n')) text += '\n';
    for (const Edit& edit : edits) {
      const auto place = edit.search.empty() ? std::nullopt : only_place(text, edit.search);
      if (!place)
        return fail(no_source("SEARCH lines that stand in the source exactly once",
                              printable(edit.search.substr(0, kMostIdea))));
      text.replace(*place, edit.search.size(), edit.replace);
    }
  }
  if (text.size() > kMostSource)
    return fail(no_source(fmt::format("at most {} bytes", kMostSource),
                          fmt::format("{} bytes", text.size())));
  return text;
}

Answer read_answer(std::string_view text) {
  return Reader().read(text);
}
}  // namespace warploom::llm
