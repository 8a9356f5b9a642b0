// The plain references as launch lists: the texts of plain_text.h with the problem's constants before them.
#include <fmt/format.h>

#include <string_view>

#include "runtime/plain_text.h"
#include "runtime/vendor_parts.h"

namespace warploom::runtime {
namespace {

std::string_view element(Dtype dtype) { return dtype == Dtype::bf16 ? "bf16" : dtype == Dtype::f16 ? "f16" : "float"; }

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

bool on_gpu(const DeviceInfo& device) { return device.arch.starts_with("sm_"); }

// The constants the texts are written in.
std::string plain_constants(const VendorProblem& p) {
  const std::int64_t m = p.kind == VendorKind::softmax ? p.rows : p.m, n = p.kind == VendorKind::softmax ? p.cols : p.n;
  return fmt::format(
      "constexpr long long kBatch = {}, kM = {}, kN = {}, kK = {};\n"
      "constexpr bool kTransposeA = {}, kTransposeB = {}, kBatchedA = {}, kBatchedB = {};\nconstexpr int "
      "kBias = {};\n",
      p.batch, m, n, p.k, p.transpose_a, p.transpose_b, p.batched_a, p.batched_b, static_cast<int>(p.bias));
}
std::string plain_types(const VendorProblem& p) {
  return fmt::format("using In = {};\nusing Out = {};\nusing Bias = {};\n", element(p.in), element(p.out),
                     element(p.bias_dtype));
}

// The heads define the types and then use their names, so the three names go between: after the structs, before the functions.
std::string source_of(const char* head, const char* body, const VendorProblem& p, std::string_view parameters,
                      std::string_view bias) {
  std::string text = head;
  const std::size_t functions =
      text.find(text.find("__device__") == std::string::npos ? "static inline" : "__device__");
  text.insert(functions, plain_types(p));
  text = plain_constants(p) + text + body;
  text = replaced(std::move(text), "ACTIVATION", row_of(p.activation).text);
  text = replaced(std::move(text), "PARAMETERS", parameters);
  return replaced(std::move(text), "BIAS", bias);
}

BufferSpec buffer(const char* name, Dtype dtype, std::int64_t elements) { return {name, dtype, {elements}}; }

LaunchList list_of(const DeviceInfo& device, Kernel kernel) {
  LaunchList list;
  list.engine = on_gpu(device) ? Engine::cuda : Engine::cpu;
  list.arch = device.arch;
  kernel.threads = on_gpu(device) ? kPlainCudaThreads : 1;
  list.kernels = {std::move(kernel)};
  return list;
}

void add_bias(LaunchList& list, const VendorProblem& p) {
  if (p.bias == BiasKind::none) return;
  list.inputs.push_back(buffer("bias", p.bias_dtype, sizes_of(p).bias));
  list.kernels[0].args.push_back({.buffer = "bias"});
}

std::int64_t pieces(std::int64_t whole, std::int64_t piece) { return (whole + piece - 1) / piece; }

LaunchList plain_matmul(const DeviceInfo& device, const VendorProblem& p) {
  const bool gpu = on_gpu(device), bias = p.bias != BiasKind::none;
  Kernel kernel;
  kernel.name = "plain_matmul";
  kernel.source =
      gpu ? source_of(kPlainCudaHead, kPlainCudaMatmul, p, bias ? ", const Bias* bias" : "", bias ? "bias" : "nullptr")
          : source_of(kPlainCpuHead, kPlainCpuMatmul, p, "", bias ? "static_cast<const Bias*>(buffers[3])" : "nullptr");
  const std::int64_t rows = gpu ? kPlainCudaTile : kPlainCpuRows, cols = gpu ? kPlainCudaTile : kPlainCpuCols;
  kernel.grid = {p.batch * pieces(p.m, rows) * pieces(p.n, cols), 1, 1};
  kernel.args = {{.buffer = "A"}, {.buffer = "B"}, {.buffer = "C"}};
  if (!gpu)
    kernel.shared_bytes =
        4 * (kPlainCpuRows * kPlainCpuDepth + kPlainCpuDepth * kPlainCpuCols + kPlainCpuRows * kPlainCpuCols);
  LaunchList list = list_of(device, std::move(kernel));
  const VendorSizes sizes = sizes_of(p);
  list.inputs = {buffer("A", p.in, sizes.a), buffer("B", p.in, sizes.b)};
  list.outputs = {buffer("C", p.out, sizes.c)};
  add_bias(list, p);
  return list;
}

LaunchList plain_softmax(const DeviceInfo& device, const VendorProblem& p) {
  Kernel kernel;
  kernel.name = "plain_softmax";
  kernel.source = on_gpu(device) ? source_of(kPlainCudaHead, kPlainCudaSoftmax, p, "", "")
                                 : source_of(kPlainCpuHead, kPlainCpuSoftmax, p, "", "");
  kernel.grid = {p.rows, 1, 1};
  kernel.args = {{.buffer = "X"}, {.buffer = "Y"}};
  LaunchList list = list_of(device, std::move(kernel));
  list.inputs = {buffer("X", p.in, p.rows * p.cols)};
  list.outputs = {buffer("Y", p.out, p.rows * p.cols)};
  return list;
}

}  // namespace

LaunchList plain_reference(const DeviceInfo& device, const VendorProblem& problem) {
  return problem.kind == VendorKind::matmul ? plain_matmul(device, problem) : plain_softmax(device, problem);
}

LaunchList plain_epilogue(const DeviceInfo& device, const VendorProblem& p) {
  const bool gpu = on_gpu(device), bias = p.bias != BiasKind::none;
  Kernel kernel;
  kernel.name = "plain_epilogue";
  kernel.source = gpu ? source_of(kPlainCudaHead, kPlainCudaEpilogue, p, bias ? ", const Bias* bias" : "",
                                  bias ? "bias" : "nullptr")
                      : source_of(kPlainCpuHead, kPlainCpuEpilogue, p, "",
                                  bias ? "static_cast<const Bias*>(buffers[1])" : "nullptr");
  kernel.grid = {pieces(sizes_of(p).c, gpu ? kPlainCudaThreads : kPlainEpilogueChunk), 1, 1};
  kernel.args = {{.buffer = "C"}};
  LaunchList list = list_of(device, std::move(kernel));
  list.outputs = {buffer("C", p.out, sizes_of(p).c)};
  add_bias(list, p);
  return list;
}

}  // namespace warploom::runtime
