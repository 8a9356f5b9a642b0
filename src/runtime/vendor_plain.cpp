// The plain references as launch lists: the texts of plain_text.h with the problem's constants before them.
#include <fmt/format.h>

#include "runtime/plain_text.h"
#include "runtime/vendor_parts.h"

namespace warploom::runtime {
namespace {

std::string_view element(Dtype dtype) { return dtype == Dtype::bf16 ? "bf16" : dtype == Dtype::f16 ? "f16" : "float"; }

bool on_gpu(const DeviceInfo& device) { return device.arch.starts_with("sm_"); }
std::int64_t pieces(std::int64_t whole, std::int64_t piece) { return (whole + piece - 1) / piece; }

std::string constants_of(const VendorProblem& p) {
  const bool softmax = p.kind == VendorKind::softmax;
  return fmt::format(
      "constexpr long long kBatch = {}, kM = {}, kN = {}, kK = {};\n"
      "constexpr bool kTransposeA = {}, kTransposeB = {}, kBatchedA = {}, kBatchedB = {};\nconstexpr int kBias = {};\n",
      p.batch, softmax ? p.rows : p.m, softmax ? p.cols : p.n, p.k, p.transpose_a, p.transpose_b, p.batched_a,
      p.batched_b, static_cast<int>(p.bias));
}

// What the texts of both engines are written in: the element types, the bias, the activation.
std::string functions_of(const VendorProblem& p) {
  return fmt::format(
             "struct bf16 {{ unsigned short bits; }};\nusing In = {};\nusing Out = {};\nusing Bias = {};\nFUNCTION "
             "float activate(float x) {{ return {}; }}",
             element(p.in), element(p.out), element(p.bias_dtype), row_of(p.activation).text) +
         kPlainFunctions;
}

// One kernel over `buffers`, of which a bias comes last and C or Y is the output.
LaunchList plain(const DeviceInfo& device, const VendorProblem& p, std::string name, const char* body,
                 const std::vector<BufferSpec>& buffers, std::int64_t blocks, std::int64_t scratch_bytes = 0) {
  const bool gpu = on_gpu(device), bias = buffers.back().name == "bias";
  const std::string bias_text = !bias ? "nullptr" : gpu ? "bias" : fmt::format("buffers[{}]", buffers.size() - 1);
  const std::string parameters = fmt::format("#define PARAMETERS {}\n#define BIAS static_cast<const Bias*>({})\n",
                                             bias && gpu ? ", const Bias* bias" : "", bias_text);
  LaunchList list{.engine = gpu ? Engine::cuda : Engine::cpu, .arch = device.arch};
  Kernel kernel{
      .name = std::move(name),
      .source = constants_of(p) + (gpu ? kPlainCudaHead : kPlainCpuHead) + functions_of(p) + parameters + body,
      .grid = {blocks, 1, 1},
      .threads = gpu ? kPlainCudaThreads : 1,
      .shared_bytes = scratch_bytes};
  for (const BufferSpec& buffer : buffers) {
    kernel.args.push_back({.buffer = buffer.name});
    (buffer.name == "C" || buffer.name == "Y" ? list.outputs : list.inputs).push_back(buffer);
  }
  list.kernels = {std::move(kernel)};
  return list;
}

}  // namespace

LaunchList plain_reference(const DeviceInfo& device, const VendorProblem& p) {
  const bool gpu = on_gpu(device);
  if (p.kind == VendorKind::softmax)
    return plain(device, p, "plain_softmax", gpu ? kPlainCudaSoftmax : kPlainCpuSoftmax, buffers_of(p), p.rows);
  const std::int64_t rows = gpu ? kPlainCudaTile : kPlainCpuRows, cols = gpu ? kPlainCudaTile : kPlainCpuCols;
  return plain(device, p, "plain_matmul", gpu ? kPlainCudaMatmul : kPlainCpuMatmul, buffers_of(p),
               p.batch * pieces(p.m, rows) * pieces(p.n, cols),
               gpu ? 0 : 4 * (rows * kPlainCpuDepth + kPlainCpuDepth * cols + rows * cols));
}

LaunchList plain_epilogue(const DeviceInfo& device, const VendorProblem& p) {
  const bool gpu = on_gpu(device);
  const std::vector<BufferSpec> all = buffers_of(p), buffers(all.begin() + 2, all.end());
  return plain(device, p, "plain_epilogue", gpu ? kPlainCudaEpilogue : kPlainCpuEpilogue, buffers,
               pieces(buffers[0].elements(), gpu ? kPlainCudaThreads : kPlainEpilogueChunk));
}

}  // namespace warploom::runtime
