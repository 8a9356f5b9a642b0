// Stored cases of the ONNX project, where they are installed: outputs against evaluate(), or a
// coded refusal.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <onnx/onnx.pb.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "base/rows.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "onnx/load.h"
#include "onnx/model.h"
#include "support/paths.h"

namespace warploom {
namespace {
namespace fs = std::filesystem;

struct Counts {
  int passed = 0;
  int wrong = 0;
  std::map<std::string, int> refused;    // by code
  std::map<std::string, int> why;        // refusals that name a supported operator: to be looked at
  std::map<std::string, int> operators;  // passed, by operator
  std::map<std::string, std::set<std::string>> not_passed;  // cases by reason

  void print(std::string_view what) const {
    std::string text = fmt::format("{}: {} passed, {} wrong; refused:", what, passed, wrong);
    for (const auto& [code, count] : refused)
      text += fmt::format(" {} {}", count, code);
    for (const auto& [message, count] : why)
      text += fmt::format("\n    {} x {}", count, message);
    std::puts(text.c_str());
  }
};

// Some cases store bf16 elements as what was the only 16-bit type of their tools.
Result<graph::Tensor> read_tensor(const fs::path& path, bool bf16) {
  WARPLOOM_TRY(const std::string bytes, read_file(path));
  onnx::TensorProto proto;
  if (!proto.ParseFromString(bytes)) return fail({ErrorCode::kOnnxType, "no plain tensor"});
  if (bf16 && proto.data_type() == onnx::TensorProto::UINT16)
    proto.set_data_type(onnx::TensorProto::BFLOAT16);
  return onnx_import::to_tensor(proto, {"case"});
}

constexpr const char* kInstalled = "/usr/share/libonnx-testdata/data";

struct Allowed {  // as stored with a case
  double relative = 0;
  double absolute = 0;
};

// Results of ONNX 1.12 that say four digits, or come of 3.1415 in the place of π.
bool is_coarse(const fs::path& folder) {
  constexpr std::array kCoarse = {"test_hannwindow", "test_hammingwindow", "test_blackmanwindow",
                                  "test_gridsample_bicubic", "test_roialign"};
  const bool is_old = folder.string().starts_with(kInstalled);
  const std::string name = folder.filename();
  return is_old &&
         std::ranges::any_of(kCoarse, [&](const char* of) { return name.starts_with(of); });
}

Allowed allowed_in(const fs::path& folder) {
  Allowed allowed;
  if (is_coarse(folder)) allowed.absolute = 1e-4;
  std::ifstream(folder / "tolerance") >> allowed.relative >> allowed.absolute;
  return allowed;
}

// Operators of which numbers say what they do: the size of a result, whether anything is dropped.
constexpr std::array<std::string_view, 5> kSized = {"Resize", "Upsample", "Range", "OneHot",
                                                    "Dropout"};

// What the model leaves open and the case decides, lists of axes and the like, becomes part of the
// model.
void settle_lists(onnx::ModelProto& model, const fs::path& data) {
  for (int i = 0; i < model.graph().input_size(); ++i) {
    const auto& type = model.graph().input(i).type().tensor_type();
    const bool integers = type.elem_type() == onnx::TensorProto::INT64 ||
                          type.elem_type() == onnx::TensorProto::INT32;
    const std::string& op = model.graph().node(0).op_type();
    const bool numbers = op == "Range" || op == "MelWeightMatrix";
    const bool scales = numbers || (contains(kSized, op) && i > 0);
    if (!(integers || scales) || type.shape().dim_size() > 1) continue;
    onnx::TensorProto value;
    if (const auto bytes = read_file(data / fmt::format("input_{}.pb", i));
        !bytes || !value.ParseFromString(*bytes))
      continue;
    value.set_name(model.graph().input(i).name());
    *model.mutable_graph()->add_initializer() = value;
  }
}

std::string operators_of(const onnx::ModelProto& model) {
  std::set<std::string> names;
  for (const auto& node : model.graph().node())
    names.insert(node.op_type());
  return names.size() == 1 ? *names.begin() : "several operators";
}

bool close(double got, double wanted, Dtype dtype, const Allowed& allowed) {
  if (std::isnan(wanted)) return std::isnan(got);
  if (std::isinf(wanted)) return got == wanted;
  const double u = is_float(dtype) ? std::max(unit_roundoff(dtype), 0x1p-24) : 0;
  if (std::fabs(got - wanted) <= allowed.absolute + allowed.relative * std::fabs(wanted))
    return true;
  return std::fabs(got - wanted) <= 64 * u * (1 + std::fabs(wanted)) * (u < 1e-6 ? 4 : 0.0625);
}

// These models say 3.1415, the results π.
bool says_pi_otherwise(const std::string& name) {
  return name.find("window") != std::string::npos && name.ends_with("expanded");
}

void count_refusal(const fs::path& folder, const onnx::ModelProto& model, const Error& error,
                   Counts& counts) {
  const bool by_opset = error.code == ErrorCode::kOnnxOpset;
  std::string reason = error.message;
  if (by_opset)
    reason += ": " + error.found;
  else if (error.code != ErrorCode::kOnnxUnknownOperator)
    reason = fmt::format("{}: {}", operators_of(model), error.message);
  counts.not_passed[reason].insert(folder.filename().string().substr(5));
  ++counts.refused[std::string(code_text(error.code))];
  EXPECT_NE(error.code, ErrorCode::kInternal) << folder << describe(error);
  if (error.code != ErrorCode::kOnnxUnknownOperator && !by_opset)
    ++counts
          .why[fmt::format("{}: {} (found {})", code_text(error.code), error.message, error.found)];
}

// The case's inputs by name. They are by position in the file; those that became constants, or that
// no node needs, are still counted there.
std::map<std::string, graph::Tensor> inputs_given(const fs::path& data,
                                                  const onnx::ModelProto& model) {
  std::map<std::string, graph::Tensor> given;
  for (int i = 0; i < model.graph().input_size(); ++i) {
    const auto& input = model.graph().input(i);
    const bool bf16 = input.type().tensor_type().elem_type() == onnx::TensorProto::BFLOAT16;
    const auto tensor = read_tensor(data / fmt::format("input_{}.pb", i), bf16);
    if (tensor) given[input.name()] = *tensor;
  }
  return given;
}

// Whether an output is the stored one; where it is not, the first element that differs is printed.
bool is_right(const fs::path& folder, size_t number, const std::vector<double>& output,
              const graph::Tensor& wanted) {
  const Allowed allowed = allowed_in(folder);
  if (std::ssize(output) != graph::element_count(wanted.shape)) return false;
  for (size_t i = 0; i < output.size(); ++i) {
    const double stored = load_as_double(wanted.dtype, wanted.constant->data(), i);
    double got = output[i];
    if (is_float(wanted.dtype)) {
      std::array<std::byte, 8> rounded{};
      store_from_double(wanted.dtype, rounded.data(), 0, output[i]);
      got = load_as_double(wanted.dtype, rounded.data(), 0);
    }
    if (close(got, stored, wanted.dtype, allowed)) continue;
    std::printf("%s: output %zu element %zu: %g, stored %g\n", folder.filename().c_str(), number, i,
                got, stored);
    return false;
  }
  return true;
}

void judge_case(const fs::path& folder, const graph::Graph& graph, const onnx::ModelProto& model,
                Counts& counts) {
  const fs::path data = folder / "test_data_set_0";
  // Only the type matters; some of these cases store too few bytes.
  const bool pads = folder.filename().string().starts_with("test_castlike");
  std::map<std::string, graph::Tensor> given = inputs_given(data, model);
  std::vector<graph::Bytes> inputs;
  for (const graph::TensorId id : graph.inputs) {
    const graph::Tensor& input = graph.tensor(id);
    ASSERT_TRUE(given.contains(input.name)) << folder;
    auto& bytes = *given[input.name].constant;
    if (pads) bytes.resize(static_cast<size_t>(byte_count(input)));
    inputs.emplace_back(bytes);
  }
  const auto outputs = graph::evaluate(graph, inputs);
  ASSERT_TRUE(outputs) << folder << describe(outputs.error());
  bool right = true;
  for (size_t o = 0; o < outputs->size(); ++o) {
    const graph::Tensor& output = graph.tensor(graph.outputs[o]);
    const bool bf16 = output.dtype == Dtype::bf16;
    const auto wanted = read_tensor(data / fmt::format("output_{}.pb", o), bf16);
    ASSERT_TRUE(wanted) << folder;
    right = right && output.shape == wanted->shape && is_right(folder, o, (*outputs)[o], *wanted);
  }
  ++(right ? counts.passed : counts.wrong);
  if (right)
    ++counts.operators[operators_of(model)];
  else
    counts.not_passed["WRONG"].insert(folder.filename().string().substr(5));
}

void run_case(const fs::path& folder, Counts& counts) {
  if (says_pi_otherwise(folder.filename().string())) return;
  auto graph = load_onnx(folder / "model.onnx");
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(*read_file(folder / "model.onnx"))) << folder;
  if (!graph && graph.error().code == ErrorCode::kOnnxDynamicShape) {
    settle_lists(model, folder / "test_data_set_0");
    graph = parse_onnx(model.SerializeAsString());
  }
  if (graph)
    judge_case(folder, *graph, model, counts);
  else
    count_refusal(folder, model, graph.error(), counts);
}

void run_folder(const fs::path& folder, Counts& counts) {
  std::set<fs::path> cases;
  for (const auto& entry : fs::directory_iterator(folder))
    if (fs::exists(entry.path() / "model.onnx")) cases.insert(entry.path());
  for (const fs::path& one : cases)
    run_case(one, counts);
}

// docs/onnx.md down to kByHand: what passes, and why the rest does not.
std::string table_of(const Counts& counts) {
  std::string text = fmt::format(
      "# ONNX operators\n\nThe node cases of the ONNX project (1.12, and half of those of 1.23) "
      "against the FP64 reference: {} "
      "give the stored "
      "results, {} other\nresults, {} are refused with a coded error. "
      "`WARPLOOM_ONNX_TABLE=docs/onnx.md build/release/test_onnx "
      "--gtest_filter='Cases.Table'` writes\nthese tables ([environment.md](environment.md) says "
      "where the cases are).\n\n| "
      "operator | cases "
      "passed |\n|---|---|\n",
      counts.passed, counts.wrong,
      std::accumulate(counts.refused.begin(), counts.refused.end(), 0,
                      [](int sum, const auto& row) { return sum + row.second; }));
  for (const auto& [op, count] : counts.operators)
    text += fmt::format("| {} | {} |\n", op, count);
  text += "\n| cases | not passed because | for example |\n|---|---|---|\n";
  std::vector<std::pair<std::string, std::set<std::string>>> rows(counts.not_passed.begin(),
                                                                  counts.not_passed.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  for (const auto& [reason, names] : rows)
    text += fmt::format("| {} | {} | {} |\n", names.size(), reason, *names.begin());
  return text;
}

constexpr std::string_view kByHand =
    "\n<!-- The tables end here; what follows is written by hand. -->\n";

// The page with other tables: what is written by hand stays.
std::string renewed(const std::string& page, const std::string& tables) {
  const size_t at = page.find(kByHand);
  return tables + (at == page.npos ? std::string(kByHand) : page.substr(at));
}

TEST(Cases, TablesLeaveWhatIsWrittenByHand) {
  const std::string marked(kByHand);
  EXPECT_EQ(renewed("old" + marked + "text", "new"), "new" + marked + "text");
  EXPECT_EQ(renewed("", "new"), "new" + marked);
  const auto page = read_file(test::source_path("docs/onnx.md"));
  ASSERT_TRUE(page);
  EXPECT_NE(page->find(kByHand), page->npos);
}

// The folder of newer cases, unpacked if need be; empty where the environment names none.
fs::path newer_cases(const ScratchFolder& scratch) {
  const char* named = std::getenv("WARPLOOM_ONNX_CASES");
  if (named == nullptr) return {};
  fs::path root = named;
  if (const fs::path packed = root / "node-cases.tar.xz"; fs::exists(packed)) {
    const std::string command =
        fmt::format("tar -xJf '{}' -C '{}'", packed.string(), scratch.path().string());
    if (std::system(command.c_str()) != 0) return {};
    root = scratch.path();
  }
  while (!fs::exists(root / "test_abs")) {
    const auto inner = fs::directory_iterator(root);
    if (inner == fs::directory_iterator() || !inner->is_directory()) return {};
    root = inner->path();
  }
  return root;
}

TEST(Cases, InstalledBackendCases) {
  const fs::path root = kInstalled;
  if (!fs::exists(root)) GTEST_SKIP() << "no installed test data";
  int passed = 0;
  for (const char* kind : {"node", "simple", "pytorch-converted", "pytorch-operator"}) {
    Counts counts;
    run_folder(root / kind, counts);
    counts.print(kind);
    EXPECT_EQ(counts.wrong, 0) << kind;
    passed += counts.passed;
  }
  EXPECT_GE(passed, 720);
}

TEST(Cases, NewerBackendCases) {
  const ScratchFolder scratch("cases");
  const fs::path root = newer_cases(scratch);
  if (root.empty()) GTEST_SKIP() << "WARPLOOM_ONNX_CASES names no newer cases";
  Counts counts;
  run_folder(root, counts);
  counts.print("newer node cases");
  EXPECT_EQ(counts.wrong, 0);
  EXPECT_GE(counts.passed, 550);
}

TEST(Cases, Table) {
  const ScratchFolder scratch("cases");
  const fs::path root = newer_cases(scratch);
  const char* file = std::getenv("WARPLOOM_ONNX_TABLE");
  if (root.empty() || file == nullptr || !fs::exists(kInstalled))
    GTEST_SKIP() << "no table asked for, or no cases";
  Counts counts;
  run_folder(fs::path(kInstalled) / "node", counts);
  run_folder(root, counts);
  ASSERT_TRUE(write_file(file, renewed(read_file(file).value_or(""), table_of(counts))));
}

// The last row of a graph that is no great work; says whether it was.
bool evaluate_small(const graph::Graph& graph) {
  double work = 0;
  double bytes = 0;
  for (const graph::Node& node : graph.nodes)
    work += static_cast<double>(graph::terms_of(graph, node) *
                                graph::element_count(graph.tensor(node.outputs[0]).shape));
  for (graph::TensorId id : graph.inputs)
    bytes += static_cast<double>(byte_count(graph.tensor(id)));
  if (work > 1e9 || bytes > 2e8) return false;
  std::vector<std::vector<std::byte>> data;
  Random random(7);
  for (graph::TensorId id : graph.inputs) {
    const graph::Tensor& tensor = graph.tensor(id);
    data.emplace_back(static_cast<size_t>(byte_count(tensor)));
    for (int64_t i = 0; i < graph::element_count(tensor.shape); ++i)
      store_from_double(tensor.dtype, data.back().data(), static_cast<size_t>(i), random.uniform());
  }
  const int64_t rows = graph::rows_of(graph).count;
  const auto last = graph::evaluate_magnitude_rows(
      graph, std::vector<graph::Bytes>(data.begin(), data.end()), 0, rows - 1, rows);
  EXPECT_TRUE(last) << graph.name << describe(last.error());
  for (size_t i = 0; last && i < last->value.size(); ++i) {
    const bool finite = std::isfinite(last->value[i]) && std::isfinite(last->magnitude[i]);
    EXPECT_TRUE(finite) << graph.name << " at " << i;
    if (!finite) break;
  }
  return true;
}

TEST(Cases, EveryKernelBenchModelLoadsOrIsRefusedWithACode) {
  const fs::path folder = test::source_path("../shared/kernelbench");
  if (!fs::exists(folder)) GTEST_SKIP() << "no models";
  int loaded = 0;
  int refused = 0;
  int evaluated = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".onnx") continue;
    const auto graph = load_onnx(entry.path());
    (graph ? loaded : refused)++;
    if (!graph) {
      EXPECT_EQ(graph.error().code, ErrorCode::kOnnxUnknownOperator) << describe(graph.error());
      continue;
    }
    const auto primitive = decompose(*graph);
    ASSERT_TRUE(primitive) << entry.path() << describe(primitive.error());
    EXPECT_TRUE(is_primitive(*primitive)) << entry.path();
    evaluated += evaluate_small(*primitive);
  }
  std::printf("%d loaded, %d refused for their operators, %d small enough to evaluate\n", loaded,
              refused, evaluated);
  EXPECT_GE(loaded, 150);
  EXPECT_GE(evaluated, 3);
}
}  // namespace
}  // namespace warploom
