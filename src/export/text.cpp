#include "export/parts.h"
#include <cctype>

namespace warploom::export_ {
namespace {

// Words that a tensor may be called and a parameter may not, those of the launchers' own among them.
constexpr std::array<std::string_view, 62> kReserved = {
    "alignas", "alignof",  "and",    "asm",      "auto",     "bool",      "break", "case",     "catch",
    "char",    "class",    "const",  "continue", "default",  "delete",    "do",    "double",   "else",
    "enum",    "explicit", "export", "extern",   "false",    "float",     "for",   "friend",   "goto",
    "if",      "inline",   "int",    "long",     "mutable",  "namespace", "new",   "not",      "operator",
    "or",      "private",  "public", "register", "requires", "return",    "short", "signed",   "sizeof",
    "static",  "stream",   "struct", "switch",   "template", "this",      "throw", "true",     "typedef",
    "union",   "unsigned", "using",  "virtual",  "void",     "volatile",  "while", "workspace"};

}  // namespace

std::string fill_in(std::string_view text, const Values& values) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t open = text.find('@', at);
    out += text.substr(at, open - at);
    if (open == std::string_view::npos) break;
    const std::size_t close = text.find('@', open + 1);
    const std::string_view name = close == std::string_view::npos ? "" : text.substr(open + 1, close - open - 1);
    const auto value = std::ranges::find(values, name, &Values::value_type::first);
    if (name.empty() || value == values.end()) {
      out += '@';
      at = open + 1;
    } else {
      out += value->second;
      at = close + 1;
    }
  }
  return out;
}

std::string identifier(std::string_view name, std::vector<std::string>& taken) {
  std::string base;
  for (const char c : name) base += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (base.empty() || std::isdigit(static_cast<unsigned char>(base[0])) ||
      std::ranges::find(kReserved, base) != kReserved.end())
    base.insert(base.begin(), '_');
  std::string chosen = base;
  for (int n = 2; std::ranges::find(taken, chosen) != taken.end(); ++n) chosen = fmt::format("{}_{}", base, n);
  taken.push_back(chosen);
  return chosen;
}

std::string comment(std::string_view text) {
  std::string out, line = "//";
  const auto flush = [&] {
    out += line + "\n";
    line = "//";
  };
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(text.find_first_of(" \n", at), text.size());
    const std::string_view word = text.substr(at, end - at);
    if (line.size() + 1 + word.size() > 100 && line.size() > 2) flush();
    if (!word.empty()) line += " " + std::string(word);
    if (end < text.size() && text[end] == '\n') flush();
    at = end + 1;
  }
  if (line.size() > 2) flush();
  return out;
}

}  // namespace warploom::export_
