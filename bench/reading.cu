// How long reading takes and nothing else: a floor for sums of rows and for products of few rows,
// in the conditions under which bench/measure.py times short calls. Prints microseconds a call for
// each way of reading 128 MiB.
//
//   nvcc -O3 -std=c++17 -arch=sm_90a bench/reading.cu -o reading && ./reading
#include <cuda_runtime.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

constexpr size_t kBytes = 128 << 20;
constexpr int kBuffers = 10;
constexpr int kSamples = 25;
constexpr int kProcessors = 132;

void check(cudaError_t error) {
  if (error != cudaSuccess) {
    std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
    std::exit(1);
  }
}

__device__ float sum_of(float4 v) {
  return v.x + v.y + v.z + v.w;
}

__device__ void keep(float sum, float* out) {  // what nobody reads the compiler would leave out
  if (sum == 1.2345e30f) out[threadIdx.x] = sum;
}

// A block for `VECTORS` vectors of 16 bytes a thread, all of them asked for before the first is
// used.
template <int VECTORS, bool EARLY> __global__ void flat(const float4* in, float* out) {
  if (EARLY) asm volatile("griddepcontrol.wait;" ::: "memory");
  const float4* from = in + size_t(blockIdx.x) * blockDim.x * VECTORS + threadIdx.x;
  float4 v[VECTORS];
  float sum = 0;
#pragma unroll
  for (int i = 0; i < VECTORS; ++i)
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v[i].x), "=f"(v[i].y), "=f"(v[i].z), "=f"(v[i].w)
                 : "l"(from + i * blockDim.x));
#pragma unroll
  for (int i = 0; i < VECTORS; ++i)
    sum += sum_of(v[i]);
  keep(sum, out);
}

// Blocks that stay take chunks by turns into a ring in shared memory.
__global__ void ring(const char* in, float* out, int chunk, int stages) {
  extern __shared__ __align__(128) char slots[];
  __shared__ __align__(8) unsigned long long full[32];
  const unsigned bar = unsigned(__cvta_generic_to_shared(full));
  const unsigned base = unsigned(__cvta_generic_to_shared(slots));
  if (threadIdx.x == 0) {
    for (int i = 0; i < stages; ++i)
      asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(bar + 8 * i));
    asm volatile("fence.mbarrier_init.release.cluster;");
  }
  __syncthreads();
  asm volatile("griddepcontrol.wait;" ::: "memory");
  const int chunks = int(kBytes / chunk);
  const int mine = (chunks - int(blockIdx.x) + int(gridDim.x) - 1) / int(gridDim.x);
  const auto fetch = [&](int k) {
    const unsigned at = bar + 8 * (k % stages);
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(at), "r"(chunk));
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(base + k % stages * chunk),
        "l"(in + (blockIdx.x + size_t(k) * gridDim.x) * chunk), "r"(chunk), "r"(at)
        : "memory");
  };
  for (int k = 0; threadIdx.x == 0 && k < mine && k < stages; ++k)
    fetch(k);
  float sum = 0;
  for (int k = 0; k < mine; ++k) {
    for (unsigned done = 0; !done;)
      asm volatile(
          "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
          : "=r"(done)
          : "r"(bar + 8 * (k % stages)), "r"(k / stages & 1)
          : "memory");
    const auto* slot = reinterpret_cast<const float4*>(slots + k % stages * chunk);
    for (int i = threadIdx.x; i < chunk / 16; i += blockDim.x)
      sum += sum_of(slot[i]);
    __syncthreads();
    if (threadIdx.x == 0 && k + stages < mine) fetch(k + stages);
  }
  keep(sum, out);
}

struct Way {
  std::string name;
  std::function<void(char*)> read;
};

// Launches of kernels on one stream; an early one begins while the one before it ends.
struct Launcher {
  cudaStream_t stream;

  template <class Kernel, class... Args>
  void operator()(bool early, int blocks, int threads, int shared, Kernel kernel,
                  Args... args) const {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = blocks;
    config.blockDim = threads;
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = early;
    check(cudaLaunchKernelEx(&config, kernel, args...));
  }
};

template <int vectors, bool early> Way flat_way(const Launcher& launch, int threads, float* out) {
  const std::string name = "flat, " + std::to_string(threads) + " threads, " +
                           std::to_string(vectors) + " vectors" + (early ? ", early" : "");
  return {name, [=](char* in) {
            const int blocks = static_cast<int>(kBytes / 16 / vectors / threads);
            launch(early, blocks, threads, 0, flat<vectors, early>,
                   reinterpret_cast<const float4*>(in), out);
          }};
}

Way ring_way(const Launcher& launch, int blocks, int stages, int chunk, float* out) {
  const std::string name = "ring, " + std::to_string(blocks) + " blocks, " +
                           std::to_string(stages) + " x " + std::to_string(chunk);
  return {name, [=](char* in) {
            launch(true, kProcessors * blocks, 256, stages * chunk, ring, in, out, chunk, stages);
          }};
}

std::vector<Way> all_ways(const Launcher& launch, float* out) {
  std::vector<Way> ways;
  for (const int threads : {256, 512, 1024}) {
    ways.push_back(flat_way<2, true>(launch, threads, out));
    ways.push_back(flat_way<2, false>(launch, threads, out));
    ways.push_back(flat_way<4, true>(launch, threads, out));
    ways.push_back(flat_way<4, false>(launch, threads, out));
    ways.push_back(flat_way<8, true>(launch, threads, out));
    ways.push_back(flat_way<8, false>(launch, threads, out));
  }
  for (const int blocks : {1, 2})
    for (const int chunk : {8192, 16384, 32768})
      for (const int total : {64, 100, 200}) {
        const int stages = std::min(32, total * 1024 / blocks / chunk);
        if (stages >= 2) ways.push_back(ring_way(launch, blocks, stages, chunk, out));
      }
  return ways;
}

int main() {
  std::vector<char*> buffers(kBuffers);
  char* flush = nullptr;
  float* out = nullptr;
  cudaStream_t stream;
  for (char*& buffer : buffers) {
    check(cudaMalloc(&buffer, kBytes));
    check(cudaMemset(buffer, 1, kBytes));
  }
  check(cudaMalloc(&flush, 256 << 20));
  check(cudaMalloc(&out, 4096));
  check(cudaStreamCreate(&stream));
  check(cudaFuncSetAttribute(ring, cudaFuncAttributeMaxDynamicSharedMemorySize, 216 << 10));
  const std::vector<Way> ways = all_ways(Launcher{stream}, out);
  cudaEvent_t before;
  cudaEvent_t after;
  check(cudaEventCreate(&before));
  check(cudaEventCreate(&after));
  std::vector<cudaGraphExec_t> graphs;
  for (const Way& way : ways) {
    cudaGraph_t graph;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (char* buffer : buffers)
      way.read(buffer);
    check(cudaStreamEndCapture(stream, &graph));
    check(cudaGraphInstantiate(&graphs.emplace_back(), graph, 0));
  }
  std::vector<std::vector<float>> times(ways.size());
  for (int sample = 0; sample < kSamples; ++sample)
    for (size_t i = 0; i < ways.size(); ++i) {
      float ms = 0;
      check(cudaMemsetAsync(flush, sample, 256 << 20, stream));
      check(cudaEventRecord(before, stream));
      check(cudaGraphLaunch(graphs[i], stream));
      check(cudaEventRecord(after, stream));
      check(cudaStreamSynchronize(stream));
      check(cudaEventElapsedTime(&ms, before, after));
      times[i].push_back(ms * 1e3f / kBuffers);
    }
  for (size_t i = 0; i < ways.size(); ++i) {
    std::nth_element(times[i].begin(), times[i].begin() + kSamples / 2, times[i].end());
    std::printf("%7.2f us  %s\n", times[i][kSamples / 2], ways[i].name.c_str());
  }
}
