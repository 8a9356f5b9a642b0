#include "codegen/launch_list.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "codegen/launch_check.h"
#include "layout/memory_layout.h"
#include "tile/program.h"

namespace warploom {
using nlohmann::json;

// Found by nlohmann::json through their arguments' namespace.
static void to_json(json& out, Dtype dtype) {
  out = name_of(dtype);
}

static void from_json(const json& text, Dtype& dtype) {
  const auto named = dtype_named(text.get<std::string>());
  if (!named)
    throw json::other_error::create(501, "unknown element type " + text.get<std::string>(),
                                    nullptr);
  dtype = *named;
}
NLOHMANN_JSON_SERIALIZE_ENUM(Engine, {{Engine::cuda, "cuda"}, {Engine::cpu, "cpu"}})
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TensorMapSpec, dtype, dims, strides_bytes, box, swizzle_bytes)

namespace layout {
static void to_json(json& out, const MemoryMode& mode) {
  out = {mode.extent, mode.stride};
}

static void from_json(const json& pair, MemoryMode& mode) {
  mode = {pair.at(0), pair.at(1)};
}
}  // namespace layout

static void to_json(json& out, const Argument& arg) {
  out = {{"buffer", arg.buffer}};
  if (arg.offset != 0) out["offset"] = arg.offset;
  if (arg.bytes != 0) out["bytes"] = arg.bytes;
  if (arg.tensor_map) out["tensor_map"] = arg.map;
  if (arg.zeroed) out["zeroed"] = true;
  if (arg.atomic) out["atomic"] = true;
  if (!arg.prepacked.empty()) out["packed"] = arg.prepacked;
  if (arg.written) out["written"] = true;
}

static void from_json(const json& row, Argument& arg) {
  arg = {};
  row.at("buffer").get_to(arg.buffer);
  arg.offset = row.value("offset", arg.offset);
  arg.bytes = row.value("bytes", arg.bytes);
  arg.tensor_map = row.contains("tensor_map");
  arg.zeroed = row.value("zeroed", false);
  arg.atomic = row.value("atomic", false);
  arg.prepacked = row.value("packed", arg.prepacked);
  arg.written = row.value("written", false);
  if (arg.tensor_map) arg.map = row["tensor_map"];
}

// "overlaps" is what the record calls programmatic dependent launch.
static void to_json(json& out, const Kernel& kernel) {
  out = json::object();
  out["name"] = kernel.name;
  out["source"] = kernel.source;
  out["grid"] = kernel.grid;
  out["cluster"] = kernel.cluster;
  out["threads"] = kernel.threads;
  out["shared_bytes"] = kernel.shared_bytes;
  out["args"] = kernel.args;
  out["overlaps"] = kernel.programmatic_launch;
  out["cooperative"] = kernel.cooperative;
}

static void from_json(const json& row, Kernel& kernel) {
  row.at("name").get_to(kernel.name);
  row.at("source").get_to(kernel.source);
  row.at("grid").get_to(kernel.grid);
  row.at("cluster").get_to(kernel.cluster);
  row.at("threads").get_to(kernel.threads);
  row.at("shared_bytes").get_to(kernel.shared_bytes);
  row.at("args").get_to(kernel.args);
  row.at("overlaps").get_to(kernel.programmatic_launch);
  row.at("cooperative").get_to(kernel.cooperative);
}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BufferSpec, name, dtype, shape)

// Lists of programs before there was a prepare step have neither of its keys, nor have those that
// prepare nothing. Likewise of what is promised of special values.
static void to_json(json& out, const LaunchList& list) {
  out = json::object();
  out["engine"] = list.engine;
  out["arch"] = list.arch;
  out["inputs"] = list.inputs;
  out["outputs"] = list.outputs;
  out["workspaces"] = list.workspaces;
  out["kernels"] = list.kernels;
  if (!list.constants.empty()) out["constants"] = list.constants;
  if (!list.prepare.empty()) out["prepare"] = list.prepare;
  if (list.special != SpecialValues::exact) out["special"] = name_of(list.special);
}

static void from_json(const json& text, LaunchList& list) {
  list.engine = text.at("engine");
  list.arch = text.at("arch");
  list.inputs = text.at("inputs");
  list.outputs = text.at("outputs");
  list.workspaces = text.at("workspaces");
  list.kernels = text.at("kernels");
  list.constants = text.value("constants", list.constants);
  list.prepare = text.value("prepare", list.prepare);
  const std::string special = text.value("special", std::string(name_of(list.special)));
  list.special = special_values_named(special).value_or(SpecialValues::finite);
}

std::string_view name_of(SpecialValues special) {
  return kSpecialValues[as_size(special)];
}

std::optional<SpecialValues> special_values_named(std::string_view name) {
  const auto at = std::ranges::find(kSpecialValues, name) - std::begin(kSpecialValues);
  if (at == std::ssize(kSpecialValues)) return std::nullopt;
  return static_cast<SpecialValues>(at);
}

int64_t BufferSpec::elements() const {
  return tile::element_count(shape);
}

int64_t BufferSpec::bytes() const {
  return bytes_of(dtype, elements());
}

Kernel renamed(Kernel kernel, const std::string& symbol) {
  if (kernel.symbol_at.empty())
    kernel.source = fmt::format("#define {} {}\n{}", kernel.name, symbol, kernel.source);
  std::string source;
  size_t copied = 0;
  for (size_t& place : kernel.symbol_at) {
    source += std::string_view(kernel.source).substr(copied, place - copied);
    copied = place + kernel.name.size();
    place = source.size();
    source += symbol;
  }
  source += std::string_view(kernel.source).substr(copied);
  kernel.source = std::move(source);
  kernel.name = symbol;
  return kernel;
}

namespace {
// The last argument that wants the buffer packed; null where none does.
const Argument* packed_argument(const LaunchList& list, const std::string& buffer) {
  const Argument* wants = nullptr;
  for (const Kernel& kernel : list.kernels)
    for (const Argument& arg : kernel.args)
      if (arg.buffer == buffer && !arg.prepacked.empty()) wants = &arg;
  return wants;
}

// Where the element that is number `place` row by row lies when packed.
int64_t packed_place(const Argument& arg, int64_t place) {
  int64_t to = 0;
  int64_t left = place;  // its digits, the last dimension's first
  for (auto dim = arg.prepacked.rbegin(); dim != arg.prepacked.rend(); ++dim)
    for (const auto& [extent, stride] : *dim) {
      to += left % extent * stride;
      left /= extent;
    }
  return to;
}
}  // namespace

void pack_inputs(const LaunchList& list, std::map<std::string, std::vector<std::byte>>& buffers) {
  for (const BufferSpec& spec : list.inputs) {
    const Argument* wants = packed_argument(list, spec.name);
    if (!wants) continue;
    auto& bytes = buffers[spec.name];
    const std::vector<std::byte> rows = std::exchange(bytes, std::vector<std::byte>(bytes.size()));
    const int64_t bits = bits_of(spec.dtype);
    for (int64_t i = 0; i < spec.elements(); ++i) {
      const int64_t to = packed_place(*wants, i);
      for (int64_t bit = 0; bit < bits; ++bit) {
        const int64_t from = i * bits + bit;
        const int64_t at = to * bits + bit;
        const std::byte one = rows[from / 8] >> (from % 8) & std::byte{1};
        bytes[at / 8] |= one << (at % 8);
      }
    }
  }
}

json to_json(const LaunchList& list) {
  json out;
  to_json(out, list);
  return out;
}

Result<LaunchList> launch_list_from_json(const json& text) {
  WARPLOOM_CHECK(check_numbers(text));
  try {
    const json& engine = text.at("engine");
    if (engine != "cuda" && engine != "cpu")
      throw json::other_error::create(501, "unknown engine " + engine.dump(), nullptr);
    auto list = text.get<LaunchList>();
    WARPLOOM_CHECK(check_launches(list));
    return list;
  } catch (const json::exception& error) {
    return fail({ErrorCode::kPlanInvalid, "a launch list cannot be read", "launch_list",
                 "the form that to_json writes", error.what(),
                 "make the plan again with `warploom optimize`"});
  }
}

namespace {
constexpr std::string_view kMark = "// warploom:";
constexpr int64_t kMostElements = int64_t{1} << 40;
// Of a kernel file. Each kernel of a list holds the whole text.
constexpr size_t kMostText = 8 << 20;
constexpr size_t kMostKernels = 256;
constexpr size_t kMostWorkspaces = 256;
constexpr int64_t kMostScratch = 64 << 20;  // bytes of a block's

std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');)
    parts.push_back(part);
  return parts;
}

class Declarations {
 public:
  Declarations(const std::string& place, const LaunchList& problem)
      : place_(place), list_(problem) {}

  Result<LaunchList> read(const std::string& text) {
    if (text.size() > kMostText)
      return invalid(fmt::format("a text of at most {} bytes", kMostText),
                     fmt::format("{} bytes", text.size()));
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      ++line_;
      if (line.starts_with(kMark)) WARPLOOM_CHECK(declare(line.substr(kMark.size())));
    }
    if (list_.kernels.empty())
      return invalid("a line `// warploom: kernel NAME grid=… args=…`", "none");
    for (const BufferSpec& output : list_.outputs) {
      const auto takes = [&](const Kernel& kernel) { return has(kernel.args, output.name); };
      if (std::ranges::none_of(list_.kernels, takes))
        return invalid("every output of the model among some kernel's args", "no " + output.name);
    }
    if (const Status launched = check_launches(list_); !launched) {
      const Error& error = launched.error();
      return invalid(fmt::format("{}: {}", error.place, error.expected), error.found);
    }
    for (Kernel& kernel : list_.kernels)
      kernel.source = text;
    list_.foreign = true;
    return std::move(list_);
  }

 private:
  tl::unexpected<Error> invalid(std::string expected, std::string found) const {
    return fail({ErrorCode::kKernelInvalid,
                 "the declarations of a kernel file cannot be read or do not fit its problem",
                 fmt::format("{}:{}", place_, line_), std::move(expected), std::move(found),
                 "docs/verification.md says how they are written"});
  }

  static bool has(const std::vector<Argument>& args, const std::string& name) {
    return std::ranges::find(args, name, &Argument::buffer) != args.end();
  }

  bool known(const std::string& buffer) const {
    const auto in = [&](const auto& specs) {
      return std::ranges::find(specs, buffer, &BufferSpec::name) != specs.end();
    };
    return in(list_.inputs) || in(list_.outputs) || in(list_.workspaces);
  }

  Status declare(const std::string& text) {
    std::istringstream words(text);
    std::string what;
    std::string name;
    words >> what >> name;
    if (what == "workspace") return workspace(name, words);
    if (what == "special") return special(name, words);
    if (what != "kernel" || name.empty())
      return invalid("kernel NAME …, workspace NAME TYPE[SIZES] or special finite", text);
    const bool gpu = list_.engine == Engine::cuda;
    std::set<std::string> keys = {"grid", "args", "shared", "zeroed"};
    if (gpu) keys.insert("threads");
    std::map<std::string, std::string> given;
    for (std::string word; words >> word;) {
      const size_t equals = std::min(word.find('='), word.size() - 1);
      const std::string key = word.substr(0, equals);
      if (!keys.contains(key) || !given.emplace(key, word.substr(equals + 1)).second)
        return invalid(fmt::format("{}=, each once", fmt::join(keys, "=, ")), word);
    }
    given.try_emplace("threads", gpu ? "128" : "1");
    given.try_emplace("shared", "0");
    if (list_.kernels.size() >= kMostKernels)
      return invalid(fmt::format("at most {} kernels", kMostKernels), "one more");
    Kernel made{.name = name};
    WARPLOOM_TRY(const auto grid, integers(given["grid"], 1, {0x7fffffff, 65535, 65535}));
    WARPLOOM_TRY(const auto threads, integers(given["threads"], 1, {1024}));
    WARPLOOM_TRY(const auto shared, integers(given["shared"], 0, {kMostScratch}));
    std::ranges::copy(grid, made.grid.begin());
    if (given["args"].empty()) return invalid("args=, what the kernel is handed", text);
    made.threads = as_int(threads[0]);
    made.shared_bytes = shared[0];
    for (const std::string& arg : parts_of(given["args"])) {
      if (!known(arg))
        return invalid("args= of the model's inputs and outputs and of workspaces above", arg);
      made.args.push_back({.buffer = arg});
    }
    for (const std::string& zero : parts_of(given["zeroed"])) {
      if (!has(made.args, zero)) return invalid("zeroed= of buffers that are among the args", zero);
      std::ranges::find(made.args, zero, &Argument::buffer)->zeroed = true;
    }
    list_.kernels.push_back(std::move(made));
    return ok();
  }

  Status special(const std::string& name, std::istringstream& words) {
    std::string more;
    const auto named = special_values_named(name);
    if (!named || words >> more) return invalid("special exact or special finite", name + more);
    list_.special = *named;
    return ok();
  }

  Status workspace(const std::string& name, std::istringstream& words) {
    std::string type;
    std::string more;
    words >> type >> more;
    const size_t open = std::min(type.find('['), type.size());
    const auto dtype = dtype_named(type.substr(0, open));
    if (!dtype || !type.ends_with(']') || !more.empty())
      return invalid("a type and sizes: f32[128,64]", type + more);
    if (known(name)) return invalid("a name that no other buffer has", name);
    BufferSpec spec{name, *dtype, {}};
    const std::string sizes = type.substr(open + 1, type.size() - open - 2);
    WARPLOOM_TRY(spec.shape, integers(sizes, 1, std::vector(8, kMostElements)));
    int64_t room = kMostElements;
    for (const int64_t size : spec.shape)
      if ((room /= size) == 0) return invalid("at most 2^40 elements", type);
    if (list_.workspaces.size() >= kMostWorkspaces)
      return invalid(fmt::format("at most {} workspaces", kMostWorkspaces), "one more");
    list_.workspaces.push_back(std::move(spec));
    return ok();
  }

  // "3,4" as integers, at most as many as `most` has, each from `least` to its own most.
  Result<std::vector<int64_t>> integers(const std::string& text, int64_t least,
                                        const std::vector<int64_t>& most) {
    std::vector<int64_t> out;
    const auto fits = [&](const json& value) {
      if (!value.is_number_integer() || out.size() == most.size()) return false;
      return value >= least && value <= most[out.size()];
    };
    for (const auto& value : json::parse("[" + text + "]", nullptr, false)) {
      if (!fits(value)) {
        const std::string limits = fmt::format("{}", fmt::join(most, ", "));
        return invalid(fmt::format("at most {} numbers from {} to {}", most.size(), least, limits),
                       text);
      }
      out.push_back(value);
    }
    if (out.empty()) return invalid("numbers, above all grid=", text);
    return out;
  }

  std::string place_;
  LaunchList list_;
  int line_ = 0;
};
}  // namespace

Result<LaunchList> declared_list(const std::string& text, const std::string& place,
                                 const LaunchList& problem) {
  return Declarations(place, problem).read(text);
}
}  // namespace warploom
