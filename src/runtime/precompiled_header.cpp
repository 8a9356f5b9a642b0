#include "runtime/precompiled_header.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <regex>
#include <string>
#include <system_error>
#include <utility>
#include <vector>
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/rendered.h"
#include "runtime/compiler_sandbox.h"
#include "runtime/compilers.h"
#include "runtime/executor.h"

namespace warploom::runtime {
namespace {
namespace fs = std::filesystem;

constexpr const char* kHash = ".hash";
constexpr size_t kMostKept = 4;  // of 30 MB each
constexpr std::chrono::seconds kTime{30};

// clang looks for another file, and ccache would not know what was read.
bool makes_them(const Compiler& compiler) {
  const auto says = [&](const char* word) { return compiler.name.find(word) != std::string::npos; };
  return says("g++") && !says("clang") && !says("ccache");
}

// How the vectors' width is set before the header is included; "" where it is not, and nothing
// where something else comes first.
std::optional<std::string> width_of(const std::string& source) {
  static const std::regex beginning(
      "(?:\\s*//[^\\n]*\\n|\\s*\\n)*(?:#define WL_VECTOR_BYTES (\\d+)\\n)?#include \"wl_cpu\\.h\"");
  std::smatch found;
  if (!std::regex_search(source, found, beginning, std::regex_constants::match_continuous))
    return std::nullopt;
  return found.str(1);
}

std::vector<std::string> without_linking(const std::vector<std::string>& argv) {
  std::vector<std::string> out = argv;
  std::erase_if(out, [](const std::string& flag) {
    return flag.starts_with("-Wl,") || flag == "-shared" || flag == "-nostartfiles";
  });
  return out;
}

std::string key_of(const Compiler& compiler, const std::vector<std::string>& argv,
                   const std::string& width) {
  std::string made_of =
      fmt::format("{}\n{}\n{}\n{}", compiler.name, fmt::join(argv, " "), this_processor(), width);
  for (const EmbeddedFile& file : headers_of("cpu"))
    made_of += '\0' + file.path + '\0' + file.text;
  return hash_hex(made_of);
}

fs::path hash_beside(const fs::path& header) {
  return header.string() + kHash;
}

bool is_whole(const fs::path& header) {
  const auto hash = read_file(hash_beside(header));
  if (!hash) return false;
  const auto bytes = read_file(header);
  return bytes && hash_hex(*bytes) == *hash;
}

// The oldest go, which no text asks for any more.
void make_room(const fs::path& folder) {
  std::vector<std::pair<fs::file_time_type, fs::path>> headers;
  std::error_code ignored;  // another process may be at it as well
  for (const auto& file : fs::directory_iterator(folder, ignored))
    if (file.path().extension() == ".gch")
      headers.emplace_back(file.last_write_time(ignored), file.path());
  std::ranges::sort(headers);
  for (size_t i = 0; i + kMostKept < headers.size(); ++i) {
    fs::remove(headers[i].second, ignored);
    fs::remove(hash_beside(headers[i].second), ignored);
  }
}

Status make(const fs::path& header, const Compiler& compiler, std::vector<std::string> argv,
            const std::string& width) {
  const CompilerSandbox sandbox(compiler, argv, "cpu", kTime, false);
  if (!width.empty()) argv.push_back("-DWL_VECTOR_BYTES=" + width);
  argv.insert(argv.end(), {"-x", "c++-header", "-I", ".", "-o", "made", "wl_cpu.h"});
  WARPLOOM_CHECK(sandbox.run(argv));
  WARPLOOM_TRY(const std::string bytes, sandbox.read("made"));
  WARPLOOM_CHECK(make_folders(header.parent_path()));
  WARPLOOM_CHECK(write_file(hash_beside(header), hash_hex(bytes)));
  WARPLOOM_CHECK(write_file(header, bytes));
  make_room(header.parent_path());
  return ok();
}
}  // namespace

const std::string& this_processor() {
  static const std::string processor = [] {
    std::string all;
    for (const char* field : {"model name", "flags", "CPU implementer", "CPU part", "Features"})
      all += proc_value("/proc/cpuinfo", field);
    return all;
  }();
  return processor;
}

std::optional<fs::path> precompiled_header(const Compiler& compiler,
                                           const std::vector<std::string>& argv,
                                           const std::string& source) {
  static std::mutex mutex;
  static std::map<fs::path, bool> known;  // whether there is one, where it was asked for before
  const auto width = width_of(source);
  if (!width || !makes_them(compiler)) return std::nullopt;
  const auto flags = without_linking(argv);
  const fs::path header = cache_folder() / "headers" / (key_of(compiler, flags, *width) + ".gch");
  const std::lock_guard lock(mutex);
  const auto found = known.find(header);
  const bool is_known = found != known.end() && (!found->second || fs::exists(header));
  const bool is_there =
      is_known ? found->second : is_whole(header) || make(header, compiler, flags, *width);
  known[header] = is_there;
  if (!is_there) return std::nullopt;
  return header;
}
}  // namespace warploom::runtime
