#include "verify/ptx_check.h"
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/error.h"
#include "runtime/text_places.h"
#include "verify/ptx_text.h"

namespace warploom::verify {
namespace {
using Words = std::span<const std::string_view>;
using WordSet = std::set<std::string_view>;

const WordSet kOpcodes = {
#define PTX_OPCODE(word) #word,
#include "verify/ptx_words.def"
};
const WordSet kDeclaredOpcodes = {
#define PTX_OPCODE_DECLARED(word) #word,
#include "verify/ptx_words.def"
};
const std::map<std::string_view, const char*> kNoModifiers = {
#define PTX_NO_MODIFIER(word, why) {#word, why},
#include "verify/ptx_words.def"
};
const WordSet kSpecials = {
#define PTX_SPECIAL(name) "%" #name,
#include "verify/ptx_words.def"
};
const WordSet kDirectives = {
#define PTX_DIRECTIVE(word) "." #word,
#include "verify/ptx_words.def"
};
// What may be done with the address of a constant: all that keeps it one. Loads end it.
const WordSet kAddressing = {"mov", "add", "sub", "mad", "mul", "shl", "or", "cvt", "cvta", "selp"};

bool has(const WordSet& set, std::string_view word) {
  return set.contains(word);
}

bool has_word(Words words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// Calls `each` with the parts of "ld.global.L1::evict_last" between its dots and colons.
template <class Each> void for_parts(std::string_view word, Each each) {
  while (!word.empty()) {
    const size_t end = std::min(word.find_first_of(".:"), word.size());
    if (end > 0) each(word.substr(0, end));
    word.remove_prefix(std::min(end + 1, word.size()));
  }
}

// An instruction without its guard: the opcode with its modifiers, and the operands' words.
Words without_guard(Words words) {
  if (words.empty() || words[0] != "@") return words;
  const size_t guard = words.size() > 1 && words[1] == "!" ? 3 : 2;
  return words.subspan(std::min(guard, words.size()));
}

// The words of the first operand, and of those behind it.
std::pair<Words, Words> operands_of(Words words) {
  int depth = 0;
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "{" || words[i] == "[" || words[i] == "(") ++depth;
    if (words[i] == "}" || words[i] == "]" || words[i] == ")") --depth;
    if (words[i] == "," && depth == 0) return {words.subspan(1, i - 1), words.subspan(i + 1)};
  }
  return {words.empty() ? words : words.subspan(1), {}};
}

class PtxCheck {
 public:
  PtxCheck(const PtxText& text, const std::string& place, bool programmatic,
           std::string_view source)
      : text_(text), place_(place), programmatic_(programmatic), source_(source) {}

  Status run() {
    for (const auto step : {&PtxCheck::declare, &PtxCheck::instruct})
      for (const PtxStatement& one : text_.statements)
        WARPLOOM_CHECK((this->*step)(one));
    WARPLOOM_CHECK(follow_calls());
    return follow_constants();
  }

 private:
  tl::unexpected<Error> refuse(const PtxStatement& at, const char* what, const char* expected,
                               std::string found) const {
    const std::string place =
        at.line > 0 ? runtime::described(place_, runtime::place_in(source_, at.line)) : place_;
    return fail({ErrorCode::kCandidateForbidden, what, place, expected, std::move(found),
                 "compute from the buffers and the block's numbers alone"});
  }

  // A name at home in a function, or in all.
  using Home = std::pair<int, std::string_view>;

  Status declare(const PtxStatement& one) {
    const Words words = one.words;
    if (words.empty() || !words[0].starts_with('.')) return ok();
    for (const std::string_view word : words)
      if (word.starts_with('.') && word.size() > 1 && !has(kDirectives, word))
        return refuse(one, "a candidate's PTX has a directive that is none of a kernel's",
                      "functions, registers, shared and local memory", std::string(word));
    if (has_word(words, ".entry") || has_word(words, ".func")) return declare_function(one);
    if (words[0] == ".reg") return declare_registers(one);
    return declare_memory(one);
  }

  Status declare_function(const PtxStatement& one) {
    std::string_view name;
    int depth = 0;
    for (const std::string_view word : one.words) {
      if (word == ")") --depth;
      if (depth == 0 && name.empty() && word[0] != '.' && word[0] != '(' && word[0] != ')')
        name = word;
      if (word == "(") ++depth;
    }
    if (has_word(one.words, ".extern"))
      return refuse(one, "a candidate calls what it may not", "functions of its own text",
                    std::string(name));
    for (size_t i = 0; i + 1 < one.words.size(); ++i)  // parameters that are registers
      if (one.words[i] == ".reg")
        return refuse(one, "a candidate's PTX cannot be read", "parameters in .param", ".reg");
    if (one.function > 0) functions_.try_emplace(name, one.function);
    names_of_code_.insert(name);
    return ok();
  }

  Status declare_registers(const PtxStatement& one) {
    for (size_t i = 1; i < one.words.size(); ++i) {
      const std::string_view word = one.words[i];
      if (word.starts_with('.') || word == ",") continue;
      if (one.words.size() > i + 3 && one.words[i + 1] == "<") {
        ranges_.insert({one.function, word});
        i += 3;
      } else {
        registers_.insert({one.function, word});
      }
      if (is_name_of_machine(word))
        return refuse(one, "a candidate reads what tells one launch from another",
                      "registers of its own", std::string(word));
    }
    return ok();
  }

  // Names that the machine's registers have: %clock may not be a candidate's own.
  static bool is_name_of_machine(std::string_view word) {
    constexpr std::array kOthers = {"%clock",  "%globaltimer", "%smid", "%nsmid", "%warpid",
                                    "%gridid", "%nwarpid",     "%pm",   "%envreg"};
    return has(kSpecials, word) ||
           std::ranges::any_of(kOthers, [&](const char* name) { return word.starts_with(name); });
  }

  // Variables: shared and local ones are no state, constants are none where they are initialised
  // and nobody writes to them.
  Status declare_memory(const PtxStatement& one) {
    const Words words = one.words;
    const bool shared = has_word(words, ".shared");
    const bool fixed = has_word(words, ".const") || has_word(words, ".global");
    if (has_word(words, ".extern") && !shared)
      return refuse(one, "a candidate has memory that lasts from call to call",
                    "dynamic shared memory", joined(words));
    if (!fixed) return ok();
    const auto equals = std::ranges::find(words, "=");
    if (equals == words.end())
      return refuse(one, "a candidate has memory that lasts from call to call", "constants only",
                    joined(words));
    for (const std::string_view word : std::span(words.begin(), equals))
      if (word[0] != '.' && !std::isdigit(static_cast<unsigned char>(word[0])) && word[0] != '[' &&
          word[0] != ']')
        constants_.insert(word);
    const auto is_name = [](std::string_view word) {
      return std::isalpha(static_cast<unsigned char>(word[0])) || word[0] == '_' || word[0] == '$';
    };
    if (std::any_of(equals, words.end(), is_name))
      return refuse(one, "a candidate's constant holds an address", "numbers", joined(words));
    return ok();
  }

  static std::string joined(Words words) {
    return fmt::format("{}", fmt::join(words.first(std::min<size_t>(words.size(), 8)), " "));
  }

  Status instruct(const PtxStatement& one) {
    const Words words = without_guard(one.words);
    if (words.empty() || words[0].starts_with('.')) return ok();
    const std::string_view opcode = words[0].substr(0, words[0].find_first_of(".:"));
    const bool declared = has(kDeclaredOpcodes, opcode);
    if (declared && !programmatic_)
      return refuse(one, "a candidate meddles with the launches behind it",
                    "a launch that declares it", std::string(words[0]));
    if (!declared && !has(kOpcodes, opcode))
      return refuse(one, "a candidate has an instruction that it may not have",
                    "arithmetic, moves and synchronisation within a launch", std::string(words[0]));
    std::optional<const char*> harm;
    for_parts(words[0].substr(opcode.size()), [&](std::string_view part) {
      if (const auto found = kNoModifiers.find(part); found != kNoModifiers.end())
        harm = found->second;
    });
    if (harm)
      return refuse(one, "a candidate has an instruction that it may not have", "none of its kind",
                    fmt::format("{}: {}", words[0], *harm));
    if (opcode == "call") WARPLOOM_CHECK(note_call(one, words));
    return read_operands(one, words, opcode);
  }

  Status read_operands(const PtxStatement& one, Words words, std::string_view opcode) {
    for (const std::string_view word : one.words) {
      if (word[0] == '%' && !is_register(one.function, word) && !has(kSpecials, ptx_root(word)))
        return refuse(one, "a candidate reads what tells one launch from another",
                      "its own registers, and where in the grid it is", std::string(word));
      if (opcode != "call" && opcode != "bra" && names_of_code_.contains(word))
        return refuse(one, "a candidate takes the address of code", "calls by name",
                      std::string(word));
    }
    if (opcode == "cvta" && words[0].find("const") != std::string_view::npos)
      return refuse(one, "a candidate takes the address of a constant", "loads by ld.const",
                    std::string(words[0]));
    return ok();
  }

  bool is_register(int function, std::string_view word) const {
    const std::string_view name = ptx_root(word);
    const std::string_view stem = name.substr(0, name.find_last_not_of("0123456789") + 1);
    const auto known = [&](int home) {
      return registers_.contains({home, name}) ||
             (stem.size() < name.size() && ranges_.contains({home, stem}));
    };
    return known(function) || known(0);
  }

  // call [(results),] NAME [, (parameters)] [, prototype]
  Status note_call(const PtxStatement& one, Words words) {
    size_t at = 1;
    if (at < words.size() && words[at] == "(") {
      while (at < words.size() && words[at] != ")")
        ++at;
      at += 2;
    }
    const std::string_view name = at < words.size() ? words[at] : std::string_view();
    if (!functions_.contains(name))
      return refuse(one, "a candidate calls what it may not", "functions of its own text",
                    std::string(name));
    calls_[one.function].insert(functions_.at(name));
    return ok();
  }

  // No function may come back to itself: the depth of its frames would know no bound.
  Status follow_calls() const {
    for (const auto& [function, callees] : calls_) {
      std::set<int> reached = callees;
      for (size_t before = 0; before != reached.size();) {
        before = reached.size();
        for (const int one : std::vector<int>(reached.begin(), reached.end()))
          if (const auto more = calls_.find(one); more != calls_.end())
            reached.insert(more->second.begin(), more->second.end());
      }
      if (reached.contains(function))
        return refuse({}, "a candidate's function calls itself", "frames of a known depth",
                      "a recursion");
    }
    return ok();
  }

  bool is_of_constant(int function, std::string_view word) const {
    return constants_.contains(word) || addresses_.contains({function, ptx_root(word)});
  }

  bool any_of_constant(int function, Words words) const {
    return std::ranges::any_of(
        words, [&](std::string_view word) { return is_of_constant(function, word); });
  }

  // Addresses of constants in global memory go nowhere but into loads: nobody can write there.
  Status follow_constants() {
    if (constants_.empty()) return ok();
    size_t before = 0;
    do {
      before = addresses_.size();
      for (const PtxStatement& one : text_.statements)
        WARPLOOM_CHECK(follow(one));
    } while (addresses_.size() > before);
    return ok();
  }

  Status follow(const PtxStatement& one) {
    const Words words = without_guard(one.words);
    if (words.empty() || words[0].starts_with('.')) return ok();
    const auto [result, sources] = operands_of(words);
    const std::string_view opcode = words[0].substr(0, words[0].find_first_of(".:"));
    const bool stores = has_word(result, "[") && any_of_constant(one.function, result);
    const bool reads = any_of_constant(one.function, sources);
    const bool loads = opcode == "ld" || opcode == "ldu";
    if (loads || (!reads && !stores)) return ok();
    if (!has(kAddressing, opcode))
      return refuse(one, "a candidate takes the address of a constant",
                    "loads alone, at places that are reckoned from it", std::string(words[0]));
    for (const std::string_view word : result)
      if (word[0] == '%' || std::isalpha(static_cast<unsigned char>(word[0])))
        addresses_.insert({one.function, ptx_root(word)});
    return ok();
  }

  const PtxText& text_;
  const std::string& place_;
  const bool programmatic_;
  std::string_view source_;
  std::set<Home> registers_;                   // by name
  std::set<Home> ranges_;                      // "%r" of %r<9>
  std::map<std::string_view, int> functions_;  // those that have a body
  WordSet names_of_code_;                      // functions with a body or without
  std::map<int, std::set<int>> calls_;         // what each function calls
  WordSet constants_;
  std::set<Home> addresses_;  // registers that hold an address of a constant
};
}  // namespace

Status check_ptx(std::string_view ptx, const std::string& place, bool programmatic,
                 std::string_view source) {
  WARPLOOM_TRY(const PtxText text, read_ptx(ptx, place));
  return PtxCheck(text, place, programmatic, source).run();
}
}  // namespace warploom::verify
