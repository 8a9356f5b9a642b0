#include "base/quoted.h"
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include "base/casts.h"

namespace warploom {
namespace {
// A character of UTF-8, or a byte that is part of none.
struct Character {
  std::string_view bytes;
  char32_t value = 0;
  bool valid = false;
};

// Bytes of a character that begins so; 0: none does.
size_t length_of(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xc2) return 0;
  if (lead < 0xe0) return 2;
  if (lead < 0xf0) return 3;
  return lead < 0xf5 ? 4 : 0;
}

Character first_of(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t length = length_of(lead);
  const Character broken{text.substr(0, 1), lead, false};
  if (length == 0 || length > text.size()) return broken;
  char32_t value = length == 1 ? lead : lead & (0x7f >> length);
  for (size_t i = 1; i < length; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0) != 0x80) return broken;
    value = value << 6 | (next & 0x3f);
  }
  const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  const bool surrogate = value >= 0xd800 && value <= 0xdfff;
  if (overlong || surrogate || value > 0x10ffff) return broken;
  return {text.substr(0, length), value, true};
}

// First and last of what is not shown: control characters, then what has no width or turns the
// direction of writing. Source: Unicode 15, general categories Cc, Cf, Zl and Zp.
struct Range {
  char32_t first;
  char32_t last;
};

constexpr std::array kNotShown = {
    Range{0x00, 0x1f},     Range{0x7f, 0x9f},     Range{0xad, 0xad},      Range{0x061c, 0x061c},
    Range{0x180e, 0x180e}, Range{0x200b, 0x200f}, Range{0x2028, 0x202e},  Range{0x2060, 0x206f},
    Range{0xfeff, 0xfeff}, Range{0xfff9, 0xfffb}, Range{0xe0000, 0xe007f}};

bool is_shown(const Character& character) {
  if (!character.valid) return false;
  return std::ranges::none_of(kNotShown, [&](const Range& range) {
    return character.value >= range.first && character.value <= range.last;
  });
}

bool all_shown(std::string_view text) {
  while (!text.empty()) {
    const Character character = first_of(text);
    if (!is_shown(character)) return false;
    text.remove_prefix(character.bytes.size());
  }
  return true;
}

// Each character as `form` writes it, or, where it gives nothing, as it is.
using Form = std::function<std::string(const Character&)>;

std::string each(std::string_view text, const Form& form) {
  std::string out;
  while (!text.empty()) {
    const Character character = first_of(text);
    const std::string written = form(character);
    out += written.empty() ? std::string(character.bytes) : written;
    text.remove_prefix(character.bytes.size());
  }
  return out;
}

// \n, \t, \r, \x1b and \u202e: what Python and people read.
std::string by_number(const Character& character) {
  switch (character.value) {
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    default: break;
  }
  const auto value = as_uint32(character.value);
  if (value < 0x100) return fmt::format("\\x{:02x}", value);
  return value < 0x10000 ? fmt::format("\\u{:04x}", value) : fmt::format("\\U{:08x}", value);
}

// Bytes as \033, which C and shells read alike and no digit behind them can join.
std::string by_octal(const Character& character) {
  std::string out;
  for (const char byte : character.bytes)
    out += fmt::format("\\{:03o}", as_uint32(static_cast<unsigned char>(byte)));
  return out;
}

bool is_among(const Character& character, std::string_view set) {
  return character.value < 0x80 && set.find(static_cast<char>(character.value)) != set.npos;
}

std::string with_backslash(const Character& character) {
  return "\\" + std::string(character.bytes);
}
}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Character character = first_of(text);
    if (!character.valid) return false;
    text.remove_prefix(character.bytes.size());
  }
  return true;
}

std::string printable(std::string_view text) {
  return each(text, [](const Character& c) { return is_shown(c) ? "" : by_number(c); });
}

std::string printable_lines(std::string_view text) {
  return each(text, [](const Character& c) {
    return is_shown(c) || is_among(c, "\n\t") ? "" : by_number(c);
  });
}

std::string c_string(std::string_view text) {
  const std::string inside = each(text, [](const Character& c) -> std::string {
    if (!is_shown(c)) return by_octal(c);
    return is_among(c, "\"\\?") ? with_backslash(c) : "";  // ?: of ??/ and its like
  });
  return "\"" + inside + "\"";
}

std::string c_comment(std::string_view text) {
  std::string line = printable(text);
  if (line.ends_with('\\') || line.ends_with("?\?/")) line += '.';
  return line;
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+:,./-";
  if (!text.empty() && text.find_first_not_of(kPlain) == text.npos) return std::string(text);
  if (!all_shown(text)) {
    const auto form = [](const Character& c) -> std::string {
      if (!is_shown(c)) return by_octal(c);
      return is_among(c, "'\\") ? with_backslash(c) : "";
    };
    return "$'" + each(text, form) + "'";
  }
  const auto form = [](const Character& c) { return is_among(c, "'") ? "'\\''" : ""; };
  return "'" + each(text, form) + "'";
}

std::string python_string(std::string_view text) {
  const auto form = [](const Character& c) -> std::string {
    if (!is_shown(c)) return by_number(c);
    return is_among(c, "'\\") ? with_backslash(c) : "";
  };
  return "'" + each(text, form) + "'";
}

std::string make_word(std::string_view text) {
  std::string out;
  for (const char c : shell_word(printable(text)))
    out += c == '$' ? std::string("$$") : std::string(1, c);
  return out;
}

std::string html_text(std::string_view text) {
  return each(printable_lines(text), [](const Character& c) -> std::string {
    switch (c.value) {
      case '&': return "&amp;";
      case '<': return "&lt;";
      case '>': return "&gt;";
      case '"': return "&quot;";
      case '\'': return "&#39;";
      default: return "";
    }
  });
}

std::string markdown_text(std::string_view text) {
  const std::string line = printable(text);
  const auto is_word = [&](size_t at) {
    if (at >= line.size()) return false;
    return std::isalnum(static_cast<unsigned char>(line[at])) != 0;
  };
  constexpr std::string_view kAlways = "\\`*<>&|~";
  constexpr std::string_view kBehindLink = "([:";
  constexpr std::string_view kBlock = "#+-=";
  std::string out;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    const bool always = kAlways.find(c) != kAlways.npos;
    const bool within_word = i > 0 && is_word(i - 1) && is_word(i + 1);
    const bool emphasis = c == '_' && !within_word;
    const char next = i + 1 < line.size() ? line[i + 1] : '\0';
    const bool link = c == ']' && kBehindLink.find(next) != kBehindLink.npos;
    const bool block = i == 0 && kBlock.find(c) != kBlock.npos;
    if (always || emphasis || link || block) out += '\\';
    out += c;
  }
  return out;
}
}  // namespace warploom
