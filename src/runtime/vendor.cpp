// The makers put together, and the plain references: straightforward kernels that stand in where no
// library serves, and a second opinion where one does. They share nothing with emitted kernels, not
// even the device headers. A text is the engine's head, the problem's constants, the functions of
// both engines, and the kernel; all but the constants stand in resources/plain.
#include "runtime/vendor.h"
#include "base/rendered.h"

namespace warploom::runtime {
namespace {
constexpr std::array kRows = {
#define WARPLOOM_ACTIVATION(name, dnnl, lt, value) \
  ActivationRow{#name, dnnl, lt, #value, [](float x) -> float { return value; }},
#include "runtime/activations.def"
};

// Tiles of the texts, of which launch shapes follow.
constexpr int kPlainCudaTile = 64, kPlainCudaThreads = 256;
constexpr int kPlainCpuRows = 48, kPlainCpuCols = 64, kPlainCpuDepth = 256;
constexpr long long kPlainEpilogueChunk = 1 << 14;  // elements a CPU task

std::string_view element(Dtype dtype) {
  return dtype == Dtype::bf16 ? "bf16" : dtype == Dtype::f16 ? "f16" : "float";
}

bool on_gpu(const DeviceInfo& device) {
  return device.arch.starts_with("sm_");
}

// What the text of resources/plain leaves open: no objects, which NVRTC would give memory.
std::string constants_of(const VendorProblem& p, const std::string& parameters,
                         const std::string& bias) {
  return fmt::format(
      "enum : long long {{ kBatch = {}, kM = {}, kN = {}, kK = {} }};\n"
      "enum : bool {{ kTransposeA = {}, kTransposeB = {}, kBatchedA = {}, kBatchedB = {} }};\nenum "
      "{{ kBias = {} }};\n"
      "#define IN {}\n#define OUT {}\n#define BIAS_TYPE {}\n#define ACTIVATION {}\n"
      "#define PARAMETERS {}\n#define BIAS static_cast<const Bias*>({})\n",
      p.batch, p.m, p.n, p.k, p.transpose_a, p.transpose_b, p.batched_a, p.batched_b,
      static_cast<int>(p.bias), element(p.in), element(p.out), element(p.bias_dtype),
      row_of(p.activation).text, parameters, bias);
}

// One kernel over `buffers`, of which a bias comes last and C or Y is the output.
LaunchList plain(const DeviceInfo& device, const VendorProblem& p, const std::string& name,
                 const std::vector<BufferSpec>& buffers, std::int64_t blocks,
                 std::int64_t scratch_bytes = 0) {
  const bool gpu = on_gpu(device), bias = buffers.back().name == "bias";
  const std::string bias_text = !bias ? "nullptr"
                                : gpu ? "bias"
                                      : fmt::format("buffers[{}]", buffers.size() - 1);
  LaunchList list{.engine = gpu ? Engine::cuda : Engine::cpu, .arch = device.arch};
  Kernel kernel{.name = name,
                .source = resource(gpu ? "plain/cuda.h" : "plain/cpu.h") +
                          constants_of(p, bias && gpu ? ", const Bias* bias" : "", bias_text) +
                          resource("plain/functions.h") +
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

Result<Runnable> by_library(Executor& device, const VendorProblem& problem) {
  if (device.engine() == Engine::cpu) return dnnl_reference(problem);
  if (problem.kind == VendorKind::matmul) return cublaslt_matmul(device, problem);
  return not_served("cuBLASLt", "softmax");
}

bool plain_serves(Dtype dtype) {
  return dtype == Dtype::f32 || dtype == Dtype::tf32 || dtype == Dtype::bf16 || dtype == Dtype::f16;
}

Result<Runnable> loaded(Executor& device, const LaunchList& list) {
  WARPLOOM_TRY(const Binary binary, compile(list, {.most_spills = kAnySpills}));
  return device.load(list, binary);
}

// A library's product and a plain kernel's epilogue over it.
Result<Runnable> by_library_and_plain(Executor& device, const VendorProblem& problem) {
  VendorProblem bare = problem;
  bare.bias = BiasKind::none;
  bare.activation = Activation::none;
  WARPLOOM_TRY(const Runnable product, by_library(device, bare));
  WARPLOOM_TRY(const Runnable epilogue, loaded(device, plain_epilogue(device.info(), problem)));
  return Runnable{product.name + " + plain",
                  [product, epilogue](const Bindings& buffers) -> Result<Call> {
                    WARPLOOM_TRY(const Call first, product.bind(buffers));
                    WARPLOOM_TRY(const Call then, epilogue.bind(buffers));
                    return in_order({first, then});
                  }};
}
}  // namespace

std::span<const ActivationRow> activations() {
  return kRows;
}

std::vector<BufferSpec> buffers_of(const VendorProblem& p) {
  if (p.kind == VendorKind::softmax) return {{"X", p.in, {p.m * p.n}}, {"Y", p.out, {p.m * p.n}}};
  const std::int64_t bias[] = {0, p.n, p.m, p.batch * p.m * p.n};  // by BiasKind
  std::vector<BufferSpec> all = {{"A", p.in, {(p.batched_a ? p.batch : 1) * p.m * p.k}},
                                 {"B", p.in, {(p.batched_b ? p.batch : 1) * p.k * p.n}},
                                 {"C", p.out, {p.batch * p.m * p.n}}};
  if (p.bias != BiasKind::none)
    all.push_back({"bias", p.bias_dtype, {bias[static_cast<int>(p.bias)]}});
  return all;
}

tl::unexpected<Error> not_served(const std::string& library, const std::string& what) {
  return fail({ErrorCode::kNoSchedule, "the vendor library does not serve the problem", library,
               "a problem it serves", what, "the plain reference stands in"});
}

LaunchList plain_reference(const DeviceInfo& device, const VendorProblem& p) {
  const bool gpu = on_gpu(device);
  if (p.kind == VendorKind::softmax) return plain(device, p, "plain_softmax", buffers_of(p), p.m);
  const std::int64_t rows = gpu ? kPlainCudaTile : kPlainCpuRows,
                     cols = gpu ? kPlainCudaTile : kPlainCpuCols;
  return plain(device, p, "plain_matmul", buffers_of(p),
               p.batch * ceil_div(p.m, rows) * ceil_div(p.n, cols),
               gpu ? 0 : 4 * (rows * kPlainCpuDepth + kPlainCpuDepth * cols + rows * cols));
}

LaunchList plain_epilogue(const DeviceInfo& device, const VendorProblem& p) {
  const bool gpu = on_gpu(device);
  const std::vector<BufferSpec> all = buffers_of(p), own(all.begin() + 2, all.end());
  return plain(device, p, "plain_epilogue", own,
               ceil_div(own[0].elements(), gpu ? kPlainCudaThreads : kPlainEpilogueChunk));
}

Result<Runnable> vendor_reference(Executor& device, const VendorProblem& problem) {
  const bool bias = problem.bias != BiasKind::none;
  if (auto whole = by_library(device, problem)) return whole;
  if (problem.kind == VendorKind::matmul && (bias || problem.activation != Activation::none))
    if (auto both = by_library_and_plain(device, problem)) return both;
  if (!plain_serves(problem.in) || !plain_serves(problem.out) ||
      (bias && !plain_serves(problem.bias_dtype)))
    return fail({ErrorCode::kNoSchedule, "no reference serves the element types",
                 std::string(name_of(problem.in)),
                 "f32, tf32, bf16 or f16 (others where the library has them)",
                 std::string(name_of(problem.out))});
  WARPLOOM_TRY(Runnable plain, loaded(device, plain_reference(device.info(), problem)));
  plain.name = "plain";
  return plain;
}
}  // namespace warploom::runtime
