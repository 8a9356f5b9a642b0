#include "base/file.h"
#include "base/rendered.h"
#include "cli/command.h"
#include "onnx/load.h"

namespace warploom::cli {
namespace {
struct Flags {
  std::string what, input, out, dtype = "f32", file;
  std::uint64_t kernel = 3, stride = 1, padding = 0, groups = 1, features = 0;
};

// A problem that many have: its expression (base/rendered.h) with {{input}}, the last size of
// --input as {{last}}, the flags' values, and another one's expression by its name, {{>conv2d}}.
// They stand in resources/new.
struct Recipe {
  std::string name, meaning, expression;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Recipe, name, meaning, expression)

constexpr const char* kMissing = "?";
constexpr std::uint64_t kMostSize = 1'000'000'000'000;

const std::vector<Recipe>& recipes() {
  static const auto all =
      nlohmann::json::parse(resource("new/problems.json")).get<std::vector<Recipe>>();
  return all;
}

std::string list() {
  std::string text = "an expression (relu(conv(x[1,3,32,32], w[8,3,3,3]))) or one of:";
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
  nlohmann::json record = {{"input", flags.input},    {"last", sizes.back()},
                           {"out", flags.features},   {"kernel", flags.kernel},
                           {"stride", flags.stride},  {"groups", flags.groups},
                           {"padding", flags.padding}};
  if (four) record["group_in"] = sizes[1].get<std::uint64_t>() / flags.groups;
  if (flags.features == 0) record["out"] = kMissing;
  for (const Recipe& other : recipes()) record[other.name] = other.expression;
  const std::string text = rendered(recipe.expression, record);
  if (text.find(kMissing) != text.npos) return bad("--features", "how many, above 0", "0");
  if (!four && (text.find("conv") != text.npos || text.find("pool") != text.npos))
    return bad("--input", "four sizes, N,C,H,W, and a stride and groups above 0", flags.input);
  return text;
}

Result<Answer> make(const Flags& flags) {
  std::string expression = flags.what, name = "model";
  for (const Recipe& recipe : recipes())
    if (recipe.name == flags.what) {
      name = recipe.name;
      WARPLOOM_TRY(expression, filled(recipe, flags));
    }
  const auto dtype = dtype_named(flags.dtype);
  if (!dtype)
    return fail({ErrorCode::kUsage, "the element type is unknown", "--dtype", "f32, bf16, f16",
                 flags.dtype});
  if (expression == flags.what && expression.find('(') == expression.npos)
    return fail(
        {ErrorCode::kUsage, "there is no problem of this name", "WHAT", list(), flags.what});
  const std::filesystem::path file = flags.out.empty() ? name + ".onnx" : flags.out;
  if (std::filesystem::exists(file))
    return fail({ErrorCode::kFileUnwritable, "the file exists already", file.string(), "a new file",
                 "", "name another by --out"});
  WARPLOOM_TRY(const SpelledModel model, spell_onnx(expression, name, *dtype));
  WARPLOOM_CHECK(write_file(file, file.extension() == ".onnx" ? model.binary : model.text));
  const nlohmann::json json = {
      {"file", file.string()}, {"expression", expression}, {"graph", graph::to_text(model.graph)}};
  return Answer{json, fmt::format("{}{}\n", graph::to_text(model.graph), file.string())};
}
}  // namespace

Command new_command() {
  const auto flags = std::make_shared<Flags>();
  return {
      "new",
      "writes an ONNX file for a problem, for those who have none",
      {{"WHAT", &flags->what, list()},
       {"--input", &flags->input, "the first operand's shape, as 100,3,224,224"},
       {"--features", &flags->features, "columns of weights, output channels"},
       {"--kernel", &flags->kernel, "the window's side; default 3"},
       {"--stride", &flags->stride, "default 1"},
       {"--padding", &flags->padding, "default 0"},
       {"--groups", &flags->groups, "default 1"},
       {"--dtype", &flags->dtype, "element type of the inputs; default f32"},
       {"--out", &flags->out, "the file: .onnx, else in protobuf's text form; default NAME.onnx"}},
      [flags](const Session&) { return make(*flags); }};
}
}  // namespace warploom::cli
