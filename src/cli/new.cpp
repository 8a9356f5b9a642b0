#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "base/nearest.h"
#include "base/rendered.h"
#include "base/rows.h"
#include "cli/command.h"
#include "graph/graph.h"
#include "onnx/spell.h"

namespace warploom::cli {
namespace {
struct Flags {
  std::optional<std::string> what;
  std::string input;
  std::string out;
  std::string dtype = "f32";
  std::string file;
  uint64_t kernel = 3;
  uint64_t stride = 1;
  uint64_t padding = 0;
  uint64_t groups = 1;
  uint64_t features = 0;
  bool list = false;
};

// A problem that many have: its text (onnx/spell.h) with {{input}}, the last size of --input as
// {{last}}, the flags' values, and another one's text by its name, {{>conv2d}}. They stand in
// resources/new.
struct Recipe {
  std::string name;
  std::string meaning;
  std::string expression;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Recipe, name, meaning, expression)
}  // namespace
}  // namespace warploom::cli

namespace warploom {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Spelling, group, name, arguments, meaning, example)
}  // namespace warploom

namespace warploom::cli {
namespace {
constexpr const char* kMissing = "?";
constexpr uint64_t kMostSize = 1'000'000'000'000;

const std::vector<Recipe>& recipes() {
  static const auto file = nlohmann::json::parse(resource("new/problems.json"));
  static const auto all = file.get<std::vector<Recipe>>();
  return all;
}

std::string what_help() {
  std::string text =
      "a text in which functions and ONNX operators are applied to inputs (`warploom new --list` "
      "shows all):\n  \"h = conv(x[1,3,32,32], w[8,3,3,3]); mul(h, sigmoid(h))\"\n"
      "or one of these names, with sizes by flags:";
  for (const Recipe& recipe : recipes())
    text += fmt::format("\n  {:<22} {}", recipe.name, recipe.meaning);
  return text;
}

Result<std::string> filled(const Recipe& recipe, const Flags& flags) {
  const auto bad = [&](const char* place, const char* expected, const std::string& found) {
    return fail({ErrorCode::kUsage, "the problem needs sizes", place, expected, found,
                 "see `warploom new --help`"});
  };
  const auto sizes = nlohmann::json::parse("[" + flags.input + "]", nullptr, false);
  const auto is_size = [](const nlohmann::json& size) {
    return size.is_number_unsigned() && size < kMostSize;
  };
  if (sizes.empty() || !std::ranges::all_of(sizes, is_size))
    return bad("--input", "sizes as 100,3,224,224", flags.input);
  const bool four = sizes.size() == 4 && flags.stride > 0 && flags.groups > 0;
  nlohmann::json record;
  record["input"] = flags.input;
  record["last"] = sizes.back();
  record["out"] = flags.features;
  record["kernel"] = flags.kernel;
  record["stride"] = flags.stride;
  record["groups"] = flags.groups;
  record["padding"] = flags.padding;
  if (four) record["group_in"] = sizes[1].get<uint64_t>() / flags.groups;
  if (flags.features == 0) record["out"] = kMissing;
  for (const Recipe& other : recipes())
    record[other.name] = other.expression;
  const std::string text = rendered(recipe.expression, record);
  if (text.find(kMissing) != text.npos) return bad("--features", "how many, above 0", "0");
  const bool has_window = text.find("conv") != text.npos || text.find("pool") != text.npos;
  if (has_window && !four)
    return bad("--input", "four sizes, N,C,H,W, and a stride and groups above 0", flags.input);
  return text;
}

// A word that is neither a recipe nor a text.
tl::unexpected<Error> no_recipe(const std::string& word) {
  std::vector<std::string> names;
  for (const Recipe& recipe : recipes())
    names.push_back(recipe.name);
  for (const Spelling& one : catalogue()) {
    if (one.name != word) continue;
    Error error{ErrorCode::kUsage, "a function alone is no model", "WHAT"};
    error.expected = fmt::format("{}({})", one.name, one.arguments);
    error.found = word;
    error.remedy = fmt::format("write what it is applied to, as \"{}\"", one.example);
    return fail(error);
  }
  Error error{ErrorCode::kUsage, "there is no problem of this name", "WHAT"};
  error.expected = "an expression, or one of " + listed(names);
  error.found = word;
  error.remedy = did_you_mean(word, names, "`warploom new --list` shows what can be written");
  return fail(error);
}

// A recipe's text or the one that was written, and the model's name.
Result<std::pair<std::string, std::string>> text_and_name(const Flags& flags) {
  if (!flags.what)
    return fail({ErrorCode::kUsage, "nothing says what the model computes", "WHAT",
                 "an expression or a recipe", "nothing",
                 "write it, as \"softmax(x[64,512])\"; `warploom new --list` shows what there is"});
  const auto recipe = std::ranges::find(recipes(), *flags.what, &Recipe::name);
  if (recipe != recipes().end()) {
    WARPLOOM_TRY(std::string text, filled(*recipe, flags));
    return std::pair(std::move(text), recipe->name);
  }
  const auto is_letter = [](unsigned char letter) {
    return std::isalnum(letter) != 0 || letter == '_' || letter == '-';
  };
  if (std::ranges::all_of(*flags.what, is_letter)) return no_recipe(*flags.what);
  if (!flags.input.empty())
    return fail({ErrorCode::kFlagsContradict, "sizes are given twice", "WHAT, --input",
                 "sizes in the expression, or a recipe and --input", "both",
                 "write sizes behind the inputs' names, as x[64,512]"});
  return std::pair(*flags.what, std::string("model"));
}

// Every function and operator whose name or group holds the word.
Answer list_functions(const std::string& word) {
  auto groups = nlohmann::json::array();
  auto rows = nlohmann::json::array();
  const auto has_word = [&](const std::string& text) { return text.find(word) != text.npos; };
  for (const Spelling& one : catalogue()) {
    if (!has_word(one.name) && !has_word(one.group)) continue;
    const bool is_new = groups.empty() || groups.back()["group"] != one.group;
    if (is_new) groups.push_back({{"group", one.group}, {"rows", nlohmann::json::array()}});
    groups.back()["rows"].push_back(one);
    rows.push_back(one);
  }
  std::string text = fmt::format("no function's name holds {}\n", word);
  if (!rows.empty()) text = text_of("functions", {{"groups", groups}});
  return Answer{{{"functions", rows}}, text};
}

Result<Answer> make(const Flags& flags) {
  if (flags.list) return list_functions(flags.what.value_or(""));
  WARPLOOM_TRY(const auto said, text_and_name(flags));
  const auto& [expression, name] = said;
  const auto dtype = dtype_named(flags.dtype);
  if (!dtype || onnx_type_of(*dtype) == 0) {
    Error error{ErrorCode::kUsage, "the element type is unknown", "--dtype", "f32, bf16, f16"};
    error.found = flags.dtype;
    error.remedy = did_you_mean(flags.dtype, {"f32", "bf16", "f16", "f64"});
    return fail(error);
  }
  const std::filesystem::path file = flags.out.empty() ? name + ".onnx" : flags.out;
  if (std::filesystem::exists(file)) {
    Error error{ErrorCode::kFileUnwritable, "the file exists already", file.string()};
    error.expected = "a new file";
    error.remedy = "name another by --out";
    return fail(error);
  }
  WARPLOOM_TRY(const SpelledModel model, spell_onnx(expression, name, *dtype));
  WARPLOOM_CHECK(write_file(file, file.extension() == ".onnx" ? model.binary : model.text));
  const std::string text = graph::to_text(model.graph);
  nlohmann::json json;
  json["file"] = file.string();
  json["expression"] = expression;
  json["graph"] = text;
  return Answer{json, fmt::format("{}{}\n", text, file.string())};
}
}  // namespace

Command new_command() {
  const auto flags = std::make_shared<Flags>();
  Command command;
  command.name = "new";
  command.help = "writes an ONNX file for a problem, for those who have none";
  command.example =
      "warploom new \"h = conv(x[1,3,32,32], w[8,3,3,3]); mul(h, sigmoid(h))\" --out mine.onnx";
  command.flags = {
      {"WHAT", &flags->what, what_help()},
      {"--list", &flags->list,
       "show every function and operator with its arguments and an example; with WHAT those of "
       "such names"},
      {"--input", &flags->input, "of a recipe: the first operand's shape, as 100,3,224,224"},
      {"--features", &flags->features, "of a recipe: columns of weights, output channels"},
      {"--kernel", &flags->kernel, "of a recipe: the window's side; default 3"},
      {"--stride", &flags->stride, "of a recipe; default 1"},
      {"--padding", &flags->padding, "of a recipe; default 0"},
      {"--groups", &flags->groups, "of a recipe; default 1"},
      {"--dtype", &flags->dtype, "element type of inputs that name none; default f32"},
      {"--out", &flags->out, "the file: .onnx, else in protobuf's text form; default NAME.onnx"}};
  command.action = [flags](const Session&) { return make(*flags); };
  return command;
}
}  // namespace warploom::cli
