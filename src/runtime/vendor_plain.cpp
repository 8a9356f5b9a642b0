// The plain references as launch lists: straightforward kernels that stand in where no library serves, and a second opinion where
// one does. They share nothing with emitted kernels, not even the device headers. A text is the engine's head, the
// problem's constants, the functions of both engines, and the kernel; all but the constants stand in resources/plain.

#include "base/embedded.h"
#include "runtime/vendor.h"
namespace warploom::runtime {
namespace {
// Tiles of the texts, of which launch shapes follow.
constexpr int kPlainCudaTile = 64, kPlainCudaThreads = 256;
constexpr int kPlainCpuRows = 48, kPlainCpuCols = 64, kPlainCpuDepth = 256;
constexpr long long kPlainEpilogueChunk = 1 << 14;  // elements a CPU task

std::string_view element(Dtype dtype) { return dtype == Dtype::bf16 ? "bf16" : dtype == Dtype::f16 ? "f16" : "float"; }

bool on_gpu(const DeviceInfo& device) { return device.arch.starts_with("sm_"); }
std::int64_t pieces(std::int64_t whole, std::int64_t piece) { return (whole + piece - 1) / piece; }

// What the text of resources/plain leaves open.
std::string constants_of(const VendorProblem& p, const std::string& parameters, const std::string& bias) {
  const bool softmax = p.kind == VendorKind::softmax;
  return fmt::format(
      "constexpr long long kBatch = {}, kM = {}, kN = {}, kK = {};\n"
      "constexpr bool kTransposeA = {}, kTransposeB = {}, kBatchedA = {}, kBatchedB = {};\nconstexpr int kBias = {};\n"
      "#define IN {}\n#define OUT {}\n#define BIAS_TYPE {}\n#define ACTIVATION {}\n"
      "#define PARAMETERS {}\n#define BIAS static_cast<const Bias*>({})\n",
      p.batch, softmax ? p.rows : p.m, softmax ? p.cols : p.n, p.k, p.transpose_a, p.transpose_b, p.batched_a, p.batched_b,
      static_cast<int>(p.bias), element(p.in), element(p.out), element(p.bias_dtype), row_of(p.activation).text, parameters,
      bias);
}

// One kernel over `buffers`, of which a bias comes last and C or Y is the output.
LaunchList plain(const DeviceInfo& device, const VendorProblem& p, const std::string& name,
                 const std::vector<BufferSpec>& buffers, std::int64_t blocks, std::int64_t scratch_bytes = 0) {
  const bool gpu = on_gpu(device), bias = buffers.back().name == "bias";
  const std::string bias_text = !bias ? "nullptr" : gpu ? "bias" : fmt::format("buffers[{}]", buffers.size() - 1);
  LaunchList list{.engine = gpu ? Engine::cuda : Engine::cpu, .arch = device.arch};
  Kernel kernel{.name = name,
                .source = resource(gpu ? "plain/cuda.h" : "plain/cpu.h") +
                          constants_of(p, bias && gpu ? ", const Bias* bias" : "", bias_text) + resource("plain/functions.h") +
                          resource(fmt::format("plain/{}.{}", name, gpu ? "cu" : "cpp")),
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
  if (p.kind == VendorKind::softmax) return plain(device, p, "plain_softmax", buffers_of(p), p.rows);
  const std::int64_t rows = gpu ? kPlainCudaTile : kPlainCpuRows, cols = gpu ? kPlainCudaTile : kPlainCpuCols;
  return plain(device, p, "plain_matmul", buffers_of(p), p.batch * pieces(p.m, rows) * pieces(p.n, cols),
               gpu ? 0 : 4 * (rows * kPlainCpuDepth + kPlainCpuDepth * cols + rows * cols));
}

LaunchList plain_epilogue(const DeviceInfo& device, const VendorProblem& p) {
  const bool gpu = on_gpu(device);
  const std::vector<BufferSpec> all = buffers_of(p), buffers(all.begin() + 2, all.end());
  return plain(device, p, "plain_epilogue", buffers,
               pieces(buffers[0].elements(), gpu ? kPlainCudaThreads : kPlainEpilogueChunk));
}
}  // namespace warploom::runtime
