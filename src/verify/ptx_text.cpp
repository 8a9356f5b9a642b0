#include "verify/ptx_text.h"
#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/error.h"

namespace warploom::verify {
namespace {
tl::unexpected<Error> unreadable(const std::string& place, std::string found) {
  return fail({ErrorCode::kCandidateForbidden, "a candidate's PTX cannot be read", place,
               "PTX as compilers write it", std::move(found),
               "leave out inline assembly that is no plain instruction"});
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' ||
         c == '.';
}

// Behind the end of the word that begins at `at`; "::" belongs to it where more comes
// ("shared::cta").
size_t end_of_word(std::string_view text, size_t at) {
  while (at < text.size()) {
    if (is_word(text[at])) {
      ++at;
      continue;
    }
    const std::string_view next = text.substr(at, 3);
    if (next.size() < 3 || !next.starts_with("::") || !is_word(next[2])) break;
    at += 2;
  }
  return at;
}

// Behind a comment or blanks at `at`; `at` where there are none; npos: a comment without an end.
size_t skip_blank(std::string_view text, size_t at) {
  while (at < text.size()) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("//")) {
      at = std::min(text.find('\n', at), text.size());
    } else if (rest.starts_with("/*")) {
      const size_t end = text.find("*/", at + 2);
      if (end == text.npos) return end;
      at = end + 2;
    } else if (std::isspace(static_cast<unsigned char>(text[at]))) {
      ++at;
    } else {
      break;
    }
  }
  return at;
}

Result<std::vector<std::string_view>> words_of(std::string_view text, const std::string& place) {
  constexpr std::string_view kMarks = "{}()[]<>,;:@!|&+-*/=~^?";
  std::vector<std::string_view> words;
  size_t at = skip_blank(text, 0);
  while (at < text.size()) {
    size_t end = at + 1;
    if (is_word(text[at])) {
      end = end_of_word(text, at);
    } else if (text[at] == '"') {
      end = text.find('"', at + 1);
      if (end == text.npos) return unreadable(place, "a string without an end");
      ++end;
    } else if (kMarks.find(text[at]) == kMarks.npos) {
      return unreadable(place, fmt::format("the character {:?}", text.substr(at, 1)));
    }
    words.push_back(text.substr(at, end - at));
    at = skip_blank(text, end);
  }
  if (at == text.npos) return unreadable(place, "a comment without an end");
  return words;
}

int number(std::string_view word) {
  int value = 0;
  std::from_chars(word.data(), word.data() + word.size(), value);
  return value;
}

// Makes statements of words.
class Reader {
 public:
  Reader(std::vector<std::string_view> words, const std::string& place)
      : words_(std::move(words)), place_(place) {}

  Result<PtxText> read() {
    find_source();
    while (at_ < words_.size())
      WARPLOOM_CHECK(read_one());
    return std::move(out_);
  }

 private:
  std::string_view word(size_t ahead = 0) const {
    return at_ + ahead < words_.size() ? words_[at_ + ahead] : std::string_view();
  }

  // The file's number whose name ends with .cu; the texts that it includes are no lines of its own.
  void find_source() {
    for (size_t i = 0; i + 2 < words_.size(); ++i)
      if (words_[i] == ".file" && words_[i + 2].ends_with(".cu\"")) source_ = number(words_[i + 1]);
  }

  Status read_one() {
    const std::string_view first = word();
    if (first == "{" || first == "}" || first == ";") {
      note_block(first);
      ++at_;
      return ok();
    }
    if (word(1) == ":") {  // a label
      at_ += 2;
      return ok();
    }
    const auto words = kUnended.find(first);
    if (first == ".loc") return read_place();
    if (first == ".section") return skip_section();
    if (words == kUnended.end()) return read_statement();
    at_ += words->second;
    const size_t more = first == ".target" || first == ".file" ? 2 : 0;
    while (more > 0 && word() == ",")
      at_ += more;
    return ok();
  }

  void note_block(std::string_view brace) {
    if (brace == "{") ++depth_;
    if (brace == "}") --depth_;
  }

  // .loc FILE LINE COLUMN [, function_name NAME [+ OFFSET] , inlined_at FILE LINE COLUMN]
  Status read_place() {
    if (number(word(1)) == source_) line_ = number(word(2));
    at_ += 4;
    if (word() != "," || word(1) != "function_name") return ok();
    at_ += word(3) == "+" ? 5 : 3;
    if (word() != "," || word(1) != "inlined_at") return unreadable(place_, "a .loc of its own");
    if (number(word(2)) == source_) line_ = number(word(3));
    at_ += 5;
    return ok();
  }

  // .section NAME { data }
  Status skip_section() {
    at_ += 2;
    if (word() != "{") return unreadable(place_, "a .section without data");
    while (at_ < words_.size() && word() != "}")
      ++at_;
    ++at_;
    return ok();
  }

  Status read_statement() {
    PtxStatement made{.line = line_};
    bool heads = false;  // a function, whose body or end comes next
    int depth = 0;
    for (; at_ < words_.size(); ++at_) {
      const std::string_view next = word();
      if (depth == 0 && (next == ";" || (heads && next == "{"))) break;
      if (next == "(" || next == "{" || next == "[") ++depth;
      if (next == ")" || next == "}" || next == "]") --depth;
      if (depth < 0) return unreadable(place_, "a bracket too many");
      heads = heads || (depth == 0 && (next == ".entry" || next == ".func"));
      made.words.push_back(next);
    }
    if (at_ == words_.size()) return unreadable(place_, "a statement without an end");
    if (heads && depth_ != 0) return unreadable(place_, "a function within a function");
    if (heads && word() == "{") ++functions_;
    made.function = heads || depth_ > 0 ? functions_ : 0;
    out_.statements.push_back(std::move(made));
    if (word() == ";") ++at_;
    return ok();
  }

  // Directives that end without a mark, and how many words they have.
  inline static const std::map<std::string_view, size_t> kUnended = {
      {".version", 2}, {".target", 2}, {".address_size", 2}, {".file", 3}};

  std::vector<std::string_view> words_;
  const std::string& place_;
  PtxText out_;
  size_t at_ = 0;
  int source_ = 1;
  int line_ = 0;
  int depth_ = 0;
  int functions_ = 0;
};
}  // namespace

Result<PtxText> read_ptx(std::string_view text, const std::string& place) {
  while (text.ends_with('\0'))
    text.remove_suffix(1);
  WARPLOOM_TRY(std::vector<std::string_view> words, words_of(text, place));
  return Reader(std::move(words), place).read();
}

std::string_view ptx_root(std::string_view word) {
  return word.substr(0, word.find('.', 1));
}
}  // namespace warploom::verify
