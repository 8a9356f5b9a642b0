// The plain references as launch lists: straightforward kernels that stand in where no library serves, and a second opinion where
// one does. They share nothing with emitted kernels, not even the device headers. A text is the problem's constants, its engine's
// head, the types In, Out and Bias with `activate`, the functions of both engines, and the kernel.

#include "runtime/vendor.h"
namespace warploom::runtime {
namespace {
// Tiles of the texts, of which launch shapes follow.
constexpr int kPlainCudaTile = 64, kPlainCudaThreads = 256;
constexpr int kPlainCpuRows = 48, kPlainCpuCols = 64, kPlainCpuDepth = 256;
constexpr long long kPlainEpilogueChunk = 1 << 14;  // elements a CPU task

constexpr const char* kPlainFunctions = R"(
FUNCTION float load(float x) { return x; }
FUNCTION float load(bf16 x) { return float_of(unsigned(x.bits) << 16); }
FUNCTION void store(float* p, float x) { *p = x; }
FUNCTION void store(bf16* p, float x) {
  const unsigned u = bits_of(x);
  p->bits = x != x ? 0x7fff : static_cast<unsigned short>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
FUNCTION float biased(float x, const Bias* bias, long long batch, long long i, long long j) {
  if (kBias == 1) return x + load(bias[j]);
  if (kBias == 2) return x + load(bias[i]);
  if (kBias == 3) return x + load(bias[(batch * kM + i) * kN + j]);
  return x;
}
)";

constexpr const char* kPlainCudaHead = R"(
#define FUNCTION __device__ inline
FUNCTION unsigned bits_of(float x) { return __float_as_uint(x); }
FUNCTION float float_of(unsigned u) { return __uint_as_float(u); }
struct f16 { unsigned short bits; };
FUNCTION float load(f16 x) { float y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits)); return y; }
FUNCTION void store(f16* p, float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(p->bits) : "f"(x)); }
)";

constexpr const char* kPlainCudaMatmul = R"(
extern "C" __global__ void __launch_bounds__(256) plain_matmul(const In* a, const In* b, Out* c PARAMETERS) {
  __shared__ float tile_a[16][64 + 4];
  __shared__ float tile_b[16][64 + 4];
  const long long tiles_n = (kN + 63) / 64, tiles_m = (kM + 63) / 64;
  const long long batch = blockIdx.x / (tiles_m * tiles_n);
  const long long m0 = blockIdx.x / tiles_n % tiles_m * 64, n0 = blockIdx.x % tiles_n * 64;
  a += kBatchedA ? batch * kM * kK : 0;
  b += kBatchedB ? batch * kK * kN : 0;
  c += batch * kM * kN;
  const int t = threadIdx.x, tx = t % 16, ty = t / 16;
  float sum[4][4] = {};
  for (long long k0 = 0; k0 < kK; k0 += 16) {
    for (int e = t; e < 16 * 64; e += 256) {
      // Neighbouring threads read neighbouring addresses, whichever way the operand lies.
      const int ka = kTransposeA ? e / 64 : e % 16, ma = kTransposeA ? e % 64 : e / 16;
      const bool in_a = m0 + ma < kM && k0 + ka < kK;
      tile_a[ka][ma] = in_a ? load(a[kTransposeA ? (k0 + ka) * kM + m0 + ma : (m0 + ma) * kK + k0 + ka]) : 0.0f;
      const int kb = kTransposeB ? e % 16 : e / 64, nb = kTransposeB ? e / 16 : e % 64;
      const bool in_b = n0 + nb < kN && k0 + kb < kK;
      tile_b[kb][nb] = in_b ? load(b[kTransposeB ? (n0 + nb) * kK + k0 + kb : (k0 + kb) * kN + n0 + nb]) : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      float x[4], y[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) x[i] = tile_a[k][ty * 4 + i];
#pragma unroll
      for (int j = 0; j < 4; ++j) y[j] = tile_b[k][tx * 4 + j];
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[i][j] += x[i] * y[j];
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const long long row = m0 + ty * 4 + i, col = n0 + tx * 4 + j;
      if (row < kM && col < kN) store(c + row * kN + col, activate(biased(sum[i][j], BIAS, batch, row, col)));
    }
}
)";

// Two passes: greatest and sum together, then the quotients. A row's sum counts from its own greatest so far.
constexpr const char* kPlainCudaSoftmax = R"(
struct Part { float greatest, sum; };
FUNCTION Part join(Part p, Part q) {
  const float g = p.greatest > q.greatest || p.greatest != p.greatest ? p.greatest : q.greatest;
  if (p.sum == 0.0f) return q;
  if (q.sum == 0.0f) return p;
  return {g, p.sum * expf(p.greatest - g) + q.sum * expf(q.greatest - g)};
}
extern "C" __global__ void __launch_bounds__(256) plain_softmax(const In* x, Out* y) {
  __shared__ Part parts[8];
  x += blockIdx.x * kN;
  y += blockIdx.x * kN;
  Part part = {-1.0f / 0.0f, 0.0f};
  for (long long j = threadIdx.x; j < kN; j += 256) {
    const float v = load(x[j]);
    if (v > part.greatest) {
      part.sum = part.sum * expf(part.greatest - v) + 1.0f;
      part.greatest = v;
    } else {
      part.sum += v == part.greatest ? 1.0f : expf(v - part.greatest);
    }
  }
  for (int step = 16; step > 0; step /= 2)
    part = join(part, {__shfl_xor_sync(~0u, part.greatest, step), __shfl_xor_sync(~0u, part.sum, step)});
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = part;
  __syncthreads();
  part = parts[0];
  for (int warp = 1; warp < 8; ++warp) part = join(part, parts[warp]);
  const float scale = 1.0f / part.sum;
  for (long long j = threadIdx.x; j < kN; j += 256) store(y + j, expf(load(x[j]) - part.greatest) * scale);
}
)";

constexpr const char* kPlainCudaEpilogue = R"(
extern "C" __global__ void __launch_bounds__(256) plain_epilogue(Out* c PARAMETERS) {
  const long long at = blockIdx.x * 256ll + threadIdx.x;
  if (at >= kBatch * kM * kN) return;
  store(c + at, activate(biased(load(c[at]), BIAS, at / (kM * kN), at / kN % kM, at % kN)));
}
)";

constexpr const char* kPlainCpuHead = R"(
#include <cmath>
#include <cstring>
using f16 = _Float16;
#define FUNCTION static inline
FUNCTION unsigned bits_of(float x) { unsigned u; std::memcpy(&u, &x, 4); return u; }
FUNCTION float float_of(unsigned u) { float x; std::memcpy(&x, &u, 4); return x; }
FUNCTION float load(f16 x) { return static_cast<float>(x); }
FUNCTION void store(f16* p, float x) { *p = static_cast<f16>(x); }
)";

// A task is 48 rows by 64 columns of C. Chunks of 256 along K are unpacked to floats, then four rows at a time stay in registers.
constexpr const char* kPlainCpuMatmul = R"(
typedef float Lanes __attribute__((vector_size(64), may_alias));
struct Scratch { float a[48][256]; float b[256][64]; float c[48][64]; };
extern "C" void plain_matmul(void* const* buffers, long long task, void* memory) {
  Scratch& s = *static_cast<Scratch*>(memory);
  const long long tiles_n = (kN + 63) / 64, tiles_m = (kM + 47) / 48;
  const long long batch = task / (tiles_m * tiles_n);
  const long long m0 = task / tiles_n % tiles_m * 48, n0 = task % tiles_n * 64;
  const In* a = static_cast<const In*>(buffers[0]) + (kBatchedA ? batch * kM * kK : 0);
  const In* b = static_cast<const In*>(buffers[1]) + (kBatchedB ? batch * kK * kN : 0);
  Out* c = static_cast<Out*>(buffers[2]) + batch * kM * kN;
  const long long rows = kM - m0 < 48 ? kM - m0 : 48, cols = kN - n0 < 64 ? kN - n0 : 64;
  std::memset(s.c, 0, sizeof s.c);
  for (long long k0 = 0; k0 < kK; k0 += 256) {
    const long long depth = kK - k0 < 256 ? kK - k0 : 256;
    if (rows < 48) std::memset(s.a, 0, sizeof s.a);
    if (cols < 64) std::memset(s.b, 0, sizeof s.b);
    if (kTransposeA) {
      for (long long k = 0; k < depth; ++k)
        for (long long i = 0; i < rows; ++i) s.a[i][k] = load(a[(k0 + k) * kM + m0 + i]);
    } else {
      for (long long i = 0; i < rows; ++i)
        for (long long k = 0; k < depth; ++k) s.a[i][k] = load(a[(m0 + i) * kK + k0 + k]);
    }
    if (kTransposeB) {
      for (long long j = 0; j < cols; ++j)
        for (long long k = 0; k < depth; ++k) s.b[k][j] = load(b[(n0 + j) * kK + k0 + k]);
    } else {
      for (long long k = 0; k < depth; ++k)
        for (long long j = 0; j < cols; ++j) s.b[k][j] = load(b[(k0 + k) * kN + n0 + j]);
    }
    for (int i = 0; i < 48; i += 4) {
      Lanes sum[4][4];
      for (int r = 0; r < 4; ++r)
        for (int v = 0; v < 4; ++v) sum[r][v] = *reinterpret_cast<const Lanes*>(&s.c[i + r][16 * v]);
      for (long long k = 0; k < depth; ++k) {
        const Lanes* y = reinterpret_cast<const Lanes*>(s.b[k]);
        for (int r = 0; r < 4; ++r)
          for (int v = 0; v < 4; ++v) sum[r][v] += s.a[i + r][k] * y[v];
      }
      for (int r = 0; r < 4; ++r)
        for (int v = 0; v < 4; ++v) *reinterpret_cast<Lanes*>(&s.c[i + r][16 * v]) = sum[r][v];
    }
  }
  const Bias* bias = BIAS;
  for (long long i = 0; i < rows; ++i)
    for (long long j = 0; j < cols; ++j) store(c + (m0 + i) * kN + n0 + j, activate(biased(s.c[i][j], bias, batch, m0 + i, n0 + j)));
}
)";

constexpr const char* kPlainCpuSoftmax = R"(
extern "C" void plain_softmax(void* const* buffers, long long row, void*) {
  const In* x = static_cast<const In*>(buffers[0]) + row * kN;
  Out* y = static_cast<Out*>(buffers[1]) + row * kN;
  float greatest = -INFINITY;
  for (long long j = 0; j < kN; ++j) greatest = load(x[j]) > greatest ? load(x[j]) : greatest;
  float parts[16] = {};  // sixteen sums: shorter chains, smaller rounding errors
  for (long long j = 0; j < kN; ++j) parts[j % 16] += expf(load(x[j]) - greatest);
  float sum = 0;
  for (float part : parts) sum += part;
  const float scale = 1.0f / sum;
  for (long long j = 0; j < kN; ++j) store(y + j, expf(load(x[j]) - greatest) * scale);
}
)";

constexpr const char* kPlainCpuEpilogue = R"(
extern "C" void plain_epilogue(void* const* buffers, long long task, void*) {
  Out* c = static_cast<Out*>(buffers[0]);
  const Bias* bias = BIAS;
  const long long begin = task * 16384, all = kBatch * kM * kN, end = begin + 16384 < all ? begin + 16384 : all;
  for (long long at = begin; at < end; ++at) store(c + at, activate(biased(load(c[at]), bias, at / (kM * kN), at / kN % kM, at % kN)));
}
)";

std::string_view element(Dtype dtype) { return dtype == Dtype::bf16 ? "bf16" : dtype == Dtype::f16 ? "f16" : "float"; }

bool on_gpu(const DeviceInfo& device) { return device.arch.starts_with("sm_"); }
std::int64_t pieces(std::int64_t whole, std::int64_t piece) { return (whole + piece - 1) / piece; }

std::string constants_of(const VendorProblem& p) {
  const bool softmax = p.kind == VendorKind::softmax;
  return fmt::format(
      "constexpr long long kBatch = {}, kM = {}, kN = {}, kK = {};\n"
      "constexpr bool kTransposeA = {}, kTransposeB = {}, kBatchedA = {}, kBatchedB = {};\nconstexpr int kBias = {};\n",
      p.batch, softmax ? p.rows : p.m, softmax ? p.cols : p.n, p.k, p.transpose_a, p.transpose_b, p.batched_a, p.batched_b,
      static_cast<int>(p.bias));
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
  Kernel kernel{.name = std::move(name),
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
