#include "runtime/foreign_text.h"
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/error.h"
#include "base/quoted.h"

namespace warploom::runtime {
namespace fs = std::filesystem;

namespace {
// All directives that g++ and clang++ write into a kernel's text, and the sections that they name.
constexpr std::array kDirectives = {".addrsig",
                                    ".addrsig_sym",
                                    ".align",
                                    ".ascii",
                                    ".asciz",
                                    ".balign",
                                    ".bss",
                                    ".byte",
                                    ".cfi_adjust_cfa_offset",
                                    ".cfi_def_cfa",
                                    ".cfi_def_cfa_offset",
                                    ".cfi_def_cfa_register",
                                    ".cfi_endproc",
                                    ".cfi_escape",
                                    ".cfi_lsda",
                                    ".cfi_offset",
                                    ".cfi_personality",
                                    ".cfi_register",
                                    ".cfi_rel_offset",
                                    ".cfi_remember_state",
                                    ".cfi_restore",
                                    ".cfi_restore_state",
                                    ".cfi_sections",
                                    ".cfi_startproc",
                                    ".cfi_undefined",
                                    ".comm",
                                    ".data",
                                    ".file",
                                    ".globl",
                                    ".hidden",
                                    ".ident",
                                    ".internal",
                                    ".local",
                                    ".long",
                                    ".octa",
                                    ".p2align",
                                    ".protected",
                                    ".quad",
                                    ".section",
                                    ".set",
                                    ".short",
                                    ".size",
                                    ".string",
                                    ".text",
                                    ".type",
                                    ".value",
                                    ".weak",
                                    ".word",
                                    ".zero",
                                    ".2byte",
                                    ".4byte",
                                    ".8byte"};
constexpr std::array kSections = {
    ".bss",    ".comment",    ".data",       ".eh_frame",     ".gcc_except_table",
    ".group",  ".init_array", ".fini_array", ".llvm_addrsig", ".note",
    ".rodata", ".tbss",       ".tdata",      ".text"};
// Whose one operand is a string.
constexpr std::array kOfStrings = {".ascii", ".asciz", ".file", ".ident", ".string"};

bool is_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '$';
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
    text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
    text.remove_suffix(1);
  return text;
}

std::string_view next_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

// `# 12 "kernels.cpp" 1 3`: what a preprocessor and a compiler say of where a text is from.
struct Marker {
  int line = 0;  // 0: none
  std::string file;
  bool enters = false;  // a file that is included here
};

Marker marker_of(std::string_view line) {
  if (!line.starts_with("# ") || line.size() < 3 || !std::isdigit(line[2])) return {};
  Marker marker{.line = std::atoi(std::string(line.substr(2, 9)).c_str())};
  const size_t open = line.find('"');
  const size_t close = line.rfind('"');
  if (open == line.npos || close == open) return {};
  for (size_t i = open + 1; i < close; ++i) {
    i += line[i] == '\\' && i + 1 < close;
    marker.file += line[i];
  }
  marker.enters = line.substr(close + 1).starts_with(" 1");
  return marker;
}

bool is_within(const fs::path& file, const fs::path& folder) {
  const auto [rest, end] = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  return rest == folder.end();
}

bool may_read(const std::string& name, const std::vector<fs::path>& readable) {
  if (name.starts_with("<")) return true;  // <built-in>, <command-line>
  const fs::path file = fs::path(name).lexically_normal();
  if (file.is_relative()) return !file.empty() && *file.begin() != "..";
  return std::ranges::any_of(readable, [&](const fs::path& one) { return is_within(file, one); });
}

Error refused(int line, std::string what) {
  Error error{ErrorCode::kCompileFailed, std::move(what)};
  error.place = fmt::format("line {}", line);
  return error;
}

// A line that is one directive and one string, as `.string "a\"b"`: nothing in it is a directive.
bool is_string_line(std::string_view line) {
  line = trimmed(line);
  const size_t blank = line.find_first_of(" \t");
  if (blank == line.npos || !std::ranges::count(kOfStrings, line.substr(0, blank))) return false;
  line = trimmed(line.substr(blank));
  if (line.size() < 2 || line.front() != '"') return false;
  for (size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '"') return i + 1 == line.size();
    i += line[i] == '\\';
  }
  return false;
}

// `.section .rodata.str1.1,"aMS",@progbits,1` without its flags.
std::string without_flags(std::string_view line) {
  std::string rest(line);
  // clang++'s last lines
  if (trimmed(line) == ".section\t\".note.GNU-stack\",\"\",@progbits") return {};
  if (trimmed(line) == ".section\t\".linker-options\",\"e\",@llvm_linker_options") return {};
  const size_t open = line.find(",\"");
  if (!trimmed(line).starts_with(".section") || open == line.npos) return rest;
  const size_t close = line.find('"', open + 2);
  const std::string_view flags = line.substr(open + 2, close - open - 2);
  const bool plain = close != line.npos && std::ranges::all_of(flags, [](char c) {
                       return std::isalnum(static_cast<unsigned char>(c));
                     });
  return plain ? rest.erase(open, close - open + 1) : rest;
}

bool is_known(const std::string& name) {
  if (name.starts_with(".l") || name == ".") return true;  // the compiler's labels; here
  if (std::ranges::count(kDirectives, name)) return true;
  return std::ranges::any_of(kSections, [&](std::string_view section) {
    return name == section || name.starts_with(std::string(section) + ".");
  });
}

// `# 12 "kernels.cpp" 1`, and nothing else in the line.
bool is_plain_marker(std::string_view line) {
  const size_t open = line.find('"');
  const size_t close = line.find('"', open + 1);
  if (!line.starts_with("# ") || open == line.npos || close == line.npos) return false;
  const std::string_view number = line.substr(2, open - 2);
  const std::string_view flags = line.substr(close + 1);
  return number.find_first_not_of("0123456789 ") == number.npos &&
         flags.find_first_not_of("0123456789 ") == flags.npos &&
         line.substr(open, close - open).find('\\') == line.npos;
}

// What of a line is no compiler's; empty: nothing. Comments count as text, for what an assembler
// takes for one depends on what was before.
std::string unknown_in(std::string_view line) {
  if (is_string_line(line)) return {};
  const std::string rest = without_flags(line);
  if (const size_t at = rest.find_first_of("\"\\"); at != rest.npos)
    return "a quotation mark or backslash";
  if (rest.find("/*") != rest.npos) return "a comment /*";
  for (size_t i = 0; i < rest.size(); ++i) {
    if (rest[i] != '.' || (i > 0 && (is_name(rest[i - 1]) || rest[i - 1] == '@'))) continue;
    std::string name;
    for (; i < rest.size() && is_name(rest[i]); ++i)
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(rest[i])));
    if (!is_known(name)) return name;
  }
  return {};
}
}  // namespace

Status check_preprocessed(std::string_view text, const std::vector<fs::path>& readable) {
  int line = 0;  // of the user's text
  bool own = false;
  while (!text.empty()) {
    const std::string_view words = next_line(text);
    if (const Marker marker = marker_of(words); marker.line > 0) {
      if (marker.enters && !may_read(marker.file, readable)) {
        Error error = refused(line, "the text includes a file that it may not read");
        error.expected = "the compiler's own headers and Warploom's device headers";
        error.found = printable(marker.file);
        error.remedy = "write what it needs into the kernel file";
        return fail(error);
      }
      own = marker.file.find('/') == std::string::npos;
      if (own && !marker.enters) line = marker.line - 1;
      continue;
    }
    line += own;
    if (words.find("pch_preprocess") != words.npos) {
      Error error = refused(line, "the text asks for a precompiled header");
      error.expected = "text alone";
      error.found = printable(words);
      error.remedy = "leave that pragma out";
      return fail(error);
    }
    if (own && words.find("\"kernels.cpp\"") != words.npos) {
      Error error = refused(line, "the text uses its file's name, which differs where it is built");
      error.expected = "a text that is the same everywhere";
      error.found = "__FILE__ or __BASE_FILE__";
      error.remedy = "leave it out; of assert() as well";
      return fail(error);
    }
  }
  return ok();
}

namespace {
// In the table that a compiler writes of a function's handlers.
Error refused_exceptions() {
  return {ErrorCode::kCompileFailed,
          "the text has functions that throw or catch exceptions",
          "",
          "a kernel without exceptions",
          "a table of handlers (.gcc_except_table)",
          "leave out try, catch, throw, and what may throw within noexcept"};
}

// Whether a compiler writes this in a table of handlers alone: numbers of as many bytes as they
// need.
bool is_of_handlers(std::string_view unknown, std::string_view section) {
  return section.find(".gcc_except_table") != section.npos &&
         (unknown == ".uleb128" || unknown == ".sleb128");
}
}  // namespace

Status check_assembly(std::string_view text) {
  int line = 0;  // of the user's text: compilers name it before each asm statement of a function
  std::string_view section;
  while (!text.empty()) {
    const std::string_view words = next_line(text);
    if (is_plain_marker(trimmed(words))) {
      line = marker_of(trimmed(words)).line;
      continue;
    }
    const std::string_view plain = trimmed(words);
    if (plain.starts_with("#") && plain.find_first_of("\"*") == plain.npos) continue;
    if (plain.starts_with(".section")) section = plain;
    const std::string unknown = unknown_in(words);
    if (unknown.empty()) continue;
    if (is_of_handlers(unknown, section)) return fail(refused_exceptions());
    Error error = refused(line, "inline assembly holds more than instructions and labels");
    if (line == 0) error.place = "an asm statement";
    error.expected = "the directives that compilers write themselves";
    error.found = printable(unknown);
    error.remedy = "write that part in C++, or with instructions alone";
    return fail(error);
  }
  return ok();
}
}  // namespace warploom::runtime
