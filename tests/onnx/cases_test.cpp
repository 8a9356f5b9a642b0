// Stored cases of the ONNX project, where they are installed: outputs against evaluate(), or a coded refusal.
#include <gtest/gtest.h>
#include <onnx/onnx.pb.h>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include "base/file.h"
#include "graph/reference.h"
#include "onnx/load.h"
#include "onnx/model.h"
namespace warploom {
namespace {
namespace fs = std::filesystem;

struct Counts {
  int passed = 0, wrong = 0;
  std::map<std::string, int> refused;  // by code
  std::map<std::string, int> why;      // refusals that name a supported operator: to be looked at

  void print(std::string_view what) const {
    std::string text = fmt::format("{}: {} passed, {} wrong; refused:", what, passed, wrong);
    for (const auto& [code, count] : refused) text += fmt::format(" {} {}", count, code);
    for (const auto& [message, count] : why) text += fmt::format("\n    {} x {}", count, message);
    std::puts(text.c_str());
  }
};

// Some cases store bf16 elements as what was the only 16-bit type of their tools.
Result<graph::Tensor> read_tensor(const fs::path& path, bool bf16) {
  WARPLOOM_TRY(const std::string bytes, read_file(path));
  onnx::TensorProto proto;
  if (!proto.ParseFromString(bytes)) return fail({ErrorCode::kOnnxType, "no plain tensor"});
  if (bf16 && proto.data_type() == onnx::TensorProto::UINT16) proto.set_data_type(onnx::TensorProto::BFLOAT16);
  return onnx_import::to_tensor(proto, {"case", {}});
}

bool close(double got, double wanted, Dtype dtype) {
  if (std::isnan(wanted)) return std::isnan(got);
  if (std::isinf(wanted)) return got == wanted;
  const double u = is_float(dtype) ? std::max(unit_roundoff(dtype), 0x1p-24) : 0;
  return std::fabs(got - wanted) <= 64 * u * (1 + std::fabs(wanted)) * (u < 1e-6 ? 4 : 0.0625);
}

void run_case(const fs::path& folder, Counts& counts) {
  const auto graph = load_onnx(folder / "model.onnx");
  if (!graph) {
    const Error& error = graph.error();
    ++counts.refused[std::string(code_text(error.code))];
    EXPECT_NE(error.code, ErrorCode::kInternal) << folder << describe(error);
    if (error.code != ErrorCode::kOnnxUnknownOperator && error.code != ErrorCode::kOnnxOpset)
      ++counts.why[fmt::format("{}: {} (found {})", code_text(error.code), error.message, error.found)];
    return;
  }
  const fs::path data = folder / "test_data_set_0";
  // Inputs by position in the file; those that became constants, or that no node needs, are still counted there.
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(*read_file(folder / "model.onnx")));
  std::map<std::string, graph::Tensor> given;
  for (int i = 0; i < model.graph().input_size(); ++i) {
    auto tensor = read_tensor(data / fmt::format("input_{}.pb", i),
                              model.graph().input(i).type().tensor_type().elem_type() == onnx::TensorProto::BFLOAT16);
    if (tensor) given[model.graph().input(i).name()] = *tensor;
  }
  std::vector<graph::Bytes> inputs;
  for (graph::TensorId id : graph->inputs) {
    ASSERT_TRUE(given.contains(graph->tensor(id).name)) << folder;
    auto& bytes = *given[graph->tensor(id).name].constant;
    if (folder.filename().string().starts_with("test_castlike"))  // only the type matters; some cases store too few bytes
      bytes.resize(static_cast<std::size_t>(byte_count(graph->tensor(id))));
    inputs.emplace_back(bytes);
  }
  const auto outputs = graph::evaluate(*graph, inputs);
  ASSERT_TRUE(outputs) << folder << describe(outputs.error());
  bool right = true;
  for (std::size_t o = 0; o < outputs->size(); ++o) {
    const auto wanted = read_tensor(data / fmt::format("output_{}.pb", o), graph->tensor(graph->outputs[o]).dtype == Dtype::bf16);
    ASSERT_TRUE(wanted) << folder;
    right = right && (*outputs)[o].size() == static_cast<std::size_t>(graph::element_count(wanted->shape)) &&
            graph->tensor(graph->outputs[o]).shape == wanted->shape;
    for (std::size_t i = 0; right && i < (*outputs)[o].size(); ++i) {
      const double stored = load_as_double(wanted->dtype, wanted->constant->data(), i);
      std::array<std::byte, 8> rounded{};
      if (is_float(wanted->dtype)) store_from_double(wanted->dtype, rounded.data(), 0, (*outputs)[o][i]);
      const double got = is_float(wanted->dtype) ? load_as_double(wanted->dtype, rounded.data(), 0) : (*outputs)[o][i];
      right = close(got, stored, wanted->dtype);
      if (!right) std::printf("%s: output %zu element %zu: %g, stored %g\n", folder.filename().c_str(), o, i, got, stored);
    }
  }
  ++(right ? counts.passed : counts.wrong);
}

Counts run_folder(const fs::path& folder) {
  Counts counts;
  for (const auto& entry : fs::directory_iterator(folder))
    if (fs::exists(entry.path() / "model.onnx")) run_case(entry.path(), counts);
  return counts;
}

TEST(Cases, InstalledBackendCases) {
  const fs::path root = "/usr/share/libonnx-testdata/data";
  if (!fs::exists(root)) GTEST_SKIP() << "no installed test data";
  int passed = 0;
  for (const char* kind : {"node", "simple", "pytorch-converted", "pytorch-operator"}) {
    const Counts counts = run_folder(root / kind);
    counts.print(kind);
    EXPECT_EQ(counts.wrong, 0) << kind;
    passed += counts.passed;
  }
  EXPECT_GE(passed, 150);
}
TEST(Cases, NewerBackendCases) {
  const fs::path packed = fs::path(WARPLOOM_SOURCE_DIR) / ".." / "shared" / "onnx-cases" / "node-cases.tar.xz";
  if (!fs::exists(packed)) GTEST_SKIP() << "no newer cases";
  const ScratchFolder folder("cases");
  const std::string command = fmt::format("tar -xJf '{}' -C '{}'", packed.string(), folder.path().string());
  if (std::system(command.c_str()) != 0) GTEST_SKIP() << "tar cannot unpack them";
  fs::path root = folder.path();
  while (!fs::exists(root / "test_abs")) {
    const auto inner = fs::directory_iterator(root);
    if (inner == fs::directory_iterator() || !inner->is_directory()) break;
    root = inner->path();
  }
  const Counts counts = run_folder(root);
  counts.print("newer node cases");
  EXPECT_EQ(counts.wrong, 0);
  EXPECT_GE(counts.passed, 50);
}
TEST(Cases, EveryKernelBenchModelLoadsOrIsRefusedWithACode) {
  const fs::path folder = fs::path(WARPLOOM_SOURCE_DIR) / ".." / "shared" / "kernelbench";
  if (!fs::exists(folder)) GTEST_SKIP() << "no models";
  int loaded = 0, refused = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".onnx") continue;
    const auto graph = load_onnx(entry.path());
    (graph ? loaded : refused)++;
    if (!graph) { EXPECT_EQ(graph.error().code, ErrorCode::kOnnxUnknownOperator) << describe(graph.error()); }
  }
  std::printf("%d loaded, %d refused for their operators\n", loaded, refused);
  EXPECT_GE(loaded, 35);
}
}  // namespace
}  // namespace warploom
