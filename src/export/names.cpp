#include "export/names.h"
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/hash.h"
#include "base/rendered.h"

namespace warploom::export_ {
namespace {
constexpr size_t kLongest = 60;       // characters of an identifier, but for a number behind it
constexpr size_t kLongestFile = 100;  // of a file's name

enum class Words : uint8_t { any, file };

struct Listed {
  Words kind;
  std::string_view words;
};

constexpr std::array kReserved = {
#define WARPLOOM_WORDS(kind, words) Listed{Words::kind, words},
#include "export/reserved_words.def"
};

bool is_listed(std::string_view name, Words kind) {
  const std::string word = fmt::format(" {} ", name);
  return std::ranges::any_of(kReserved, [&](const Listed& row) {
    return row.kind == kind && row.words.find(word) != std::string_view::npos;
  });
}

bool is_device_header(const std::string& name) {
  return std::ranges::any_of(device_headers(), [&](const EmbeddedFile& header) {
    return std::filesystem::path(header.path).stem() == name;
  });
}

bool is_capital(char c) {
  return c >= 'A' && c <= 'Z';
}

bool is_small(char c) {
  return c >= 'a' && c <= 'z';
}

bool is_letter_or_digit(char c) {
  return is_capital(c) || is_small(c) || (c >= '0' && c <= '9');
}

// NULL, EOF, PRId32, SYS_read, M_PI: macros are written so; x, Wq, W_1, MatMul_0 are not.
bool looks_like_a_macro(std::string_view name) {
  if (!is_capital(name[0])) return false;
  if (name.size() > 1 && is_small(name[1])) return false;  // CamelCase
  return std::any_of(name.begin() + 1, name.end(), is_capital);
}

// Begins as what the generator and CUDA's runtime and driver call their own: wl_pool, cudaStream_t,
// cuuint64_t, cuMemsetD8 (which is a macro).
bool is_of_the_generator(std::string_view name) {
  if (name == "wl" || name.starts_with("wl_")) return true;
  if (name.starts_with("cuda") || name.starts_with("cuuint")) return true;
  return name.size() > 2 && name.starts_with("cu") && is_capital(name[2]);
}

bool is_free(const std::string& name, Named kind) {
  if (looks_like_a_macro(name) || is_of_the_generator(name)) return false;
  if (is_listed(name, Words::any)) return false;
  return kind != Named::bundle || !(is_listed(name, Words::file) || is_device_header(name));
}

// Letters and digits, others as one '_' between them.
std::string words_of(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (is_letter_or_digit(c))
      out += c;
    else if (!out.empty() && out.back() != '_')
      out += '_';
  }
  if (out.ends_with('_')) out.pop_back();
  return out;
}

std::string cut(std::string text, size_t longest, std::string_view whole) {
  if (text.size() <= longest) return text;
  text.resize(longest - 9);
  if (text.ends_with('_')) text.pop_back();
  return text + "_" + hash_hex(whole).substr(0, 8);
}

// `name`, or the first of name_2, name_3 … that `is_taken` does not hold.
std::string numbered(const std::string& name, const auto& is_taken) {
  std::string chosen = name;
  for (int n = 2; is_taken(chosen); ++n)
    chosen = fmt::format("{}_{}", name, n);
  return chosen;
}
}  // namespace

std::string identifier(std::string_view name, std::vector<std::string>& taken, Named kind) {
  const std::string suffix = kind == Named::tensor ? "tensor" : "bundle";
  std::string base = words_of(name);
  if (base.empty())
    base = suffix;
  else if (std::isdigit(static_cast<unsigned char>(base[0])) != 0)
    base = suffix + "_" + base;
  base = cut(std::move(base), kLongest, name);
  if (!is_free(base, kind)) base += "_" + suffix;
  taken.push_back(numbered(
      base, [&](const std::string& one) { return std::ranges::find(taken, one) != taken.end(); }));
  return taken.back();
}

std::vector<std::string> file_stems(const std::vector<std::string>& names) {
  const auto stem_of = [](const std::string& name) {
    std::string stem = name;
    const auto is_portable = [](char c) {
      return is_letter_or_digit(c) || c == '_' || c == '.' || c == '-';
    };
    std::ranges::replace_if(stem, [&](char c) { return !is_portable(c); }, '_');
    if (stem.empty() || stem[0] == '.' || stem[0] == '-') stem.insert(stem.begin(), '_');
    return cut(std::move(stem), kLongestFile, name);
  };
  // Names that can be had as they are come first, so that no other takes them.
  std::set<std::string> taken;
  std::vector<std::string> stems(names.size());
  for (const bool unchanged : {true, false})
    for (size_t i = 0; i < names.size(); ++i) {
      const std::string stem = stem_of(names[i]);
      if ((stem == names[i]) != unchanged) continue;
      stems[i] = numbered(stem, [&](const std::string& one) { return taken.contains(one); });
      taken.insert(stems[i]);
    }
  return stems;
}
}  // namespace warploom::export_
