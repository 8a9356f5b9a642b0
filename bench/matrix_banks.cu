// Do wgmma and the copy engine meet bank conflicts? One group of cases a program: -DTYPE=wl::bf16
// -DNAME='"bf16"', or -DCOPIES. Prints one JSON object a case. bench/matrix_banks.py compiles, runs
// and collects.
//
// Operands lie as emitted kernels have them: panels of `width` bytes (the swizzle; 16 for none),
// 128 bytes of K in all. Descriptors are those of CudaEmitter::descriptor; those without a swizzle
// are of tests/emulator/kernels/conformance.cu.
#include <cuda.h>
#include <cuda_runtime.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <type_traits>
#include <vector>
#include "matrix_banks.h"
#include "wl.h"

#define CHECK(call)                                                            \
  if (const auto status = call; static_cast<int>(status) != 0)                 \
  std::fprintf(stderr, "matrix_banks.cu:%d: %s: status %d\n", __LINE__, #call, \
               static_cast<int>(status)),                                      \
      std::exit(1)

namespace {
int mode_of(int width) {
  switch (width) {
    case 128: return 1;
    case 64: return 2;
    case 32: return 3;
    default: return 0;
  }
}

unsigned swizzled(unsigned at, int width) {
  const unsigned chunks = static_cast<unsigned>(width) / 16;  // that trade places: 8, 4, 2 or 1
  return at ^ ((at >> 3) & ((chunks - 1) * 16));
}

struct Place {  // of an operand of `extent` rows or columns and 128 bytes of K
  int extent;
  int bytes;
  int width;
  bool mn_major;

  unsigned at(int mn, int k) const {
    const int b = (mn_major ? mn : k) * bytes;
    const int depth = mn_major ? 64 : extent;
    if (mn_major && width == 16)
      return static_cast<unsigned>(k / 8 * extent * 16 + mn / 8 * 128 + k % 8 * 16 + b % 16);
    return static_cast<unsigned>(b / width * depth * width) +
           swizzled(static_cast<unsigned>((mn_major ? k : mn) * width + b % width), width);
  }

  // Bytes to slice kk of K.
  int step_of(int kk) const {
    if (!mn_major) return kk * 32 / width * extent * width + kk * 32 % width;
    return width == 16 ? kk * 2 * extent * 16 : kk * 16 * width;
  }

  Operand operand() const {
    Operand o{16, static_cast<unsigned>(8 * width), {}};
    if (width == 16)
      // To the next 16 bytes of K, MN-major to the next 8 of K.
      o.lbo = static_cast<unsigned>(extent * 16);
    else if (mn_major)
      o.lbo = static_cast<unsigned>(64 * width);  // to the next panel
    for (int kk = 0; kk < SLICES; ++kk)
      o.step[kk] = static_cast<unsigned>(step_of(kk));
    return o;
  }
};

struct Device {
  int sms = 0;
  unsigned char* image = nullptr;
  unsigned char* fragments = nullptr;
  unsigned char* out = nullptr;
  long long* times = nullptr;
  size_t room = 0;

  Device() {
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    room = static_cast<size_t>(sms) * COPY_BYTES;
    CHECK(cudaMalloc(&image, room));
    CHECK(cudaMalloc(&fragments, 256 * SLICES * 16));
    CHECK(cudaMalloc(&out, room));  // 128 x 256 results of 4 bytes a block as well
    CHECK(cudaMalloc(&times, sizeof(long long) * TIMES * static_cast<size_t>(sms)));
  }

  wl::TensorMap map(void* base, int width, int mode) const {
    void* encode = nullptr;
    cudaDriverEntryPointQueryResult found;
    CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000,
                                           cudaEnableDefault, &found));
    CUtensorMap encoded;
    const cuuint64_t dims[] = {static_cast<cuuint64_t>(width), room / static_cast<size_t>(width)};
    const cuuint64_t strides[] = {dims[0]};
    const cuuint32_t box[] = {static_cast<cuuint32_t>(width), 128};
    const cuuint32_t steps[] = {1, 1};
    const CUtensorMapSwizzle swizzle[] = {CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                          CU_TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_SWIZZLE_32B};
    CHECK(reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(encode)(
        &encoded, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, base, dims, strides, box, steps,
        CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle[mode], CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    wl::TensorMap map;
    static_assert(sizeof map == sizeof encoded);
    std::memcpy(&map, &encoded, sizeof map);
    return map;
  }
};

std::mt19937 dice(1);

// Sets `code` to a random value that T holds exactly, and returns it.
template <class T> double draw(unsigned& code) {
  if constexpr (std::is_same_v<T, signed char>) {
    const int v = static_cast<int>(dice() % 256) - 128;
    code = static_cast<unsigned>(v) & 0xffu;
    return v;
  } else {
    constexpr bool e4m3 = std::is_same_v<T, wl::e4m3>;
    constexpr bool wide = std::is_same_v<T, wl::bf16> || std::is_same_v<T, wl::tf32>;
    constexpr int kept_wide = std::is_same_v<T, wl::bf16> ? 7 : 10;
    constexpr int kept = e4m3 ? 3 : kept_wide;
    constexpr int field = std::is_same_v<T, wl::tf32> ? 23 : kept;
    constexpr unsigned exponent_narrow = e4m3 ? 4 : 5;
    constexpr unsigned exponent = wide ? 8 : exponent_narrow;
    constexpr unsigned bias = (1u << (exponent - 1)) - 1;
    // 0.25 to 4 with either sign
    const unsigned sign = dice() & 1;
    const unsigned power = 125 + dice() % 4;
    const unsigned mantissa = dice() & ((1u << kept) - 1);
    code = sign << (exponent + field) | (power - 127 + bias) << field | mantissa << (field - kept);
    return std::ldexp(1.0 + std::ldexp(static_cast<double>(mantissa), -kept),
                      static_cast<int>(power) - 127) *
           (sign ? -1 : 1);
  }
}

// Median over runs of the median over blocks of [first start, last stop] of `pairs` pairs; per
// block, `rate` gets copies a cycle.
template <class Launch>
double cycles(const Device& d, int blocks, int pairs, Launch launch, double* rate = nullptr) {
  std::vector<double> runs;
  std::vector<double> rates;
  const auto median = [](std::vector<double>& v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
  };
  for (int run = 0; run < RUNS; ++run) {
    std::vector<long long> times(static_cast<size_t>(blocks) * TIMES);
    CHECK(cudaMemset(d.times, 0, times.size() * sizeof times[0]));
    launch();
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(
        cudaMemcpy(times.data(), d.times, times.size() * sizeof times[0], cudaMemcpyDeviceToHost));
    std::vector<double> spans;
    for (size_t b = 0; b < times.size(); b += TIMES) {
      const long long* t = &times[b];
      const long long first = pairs == 2 ? std::min(t[0], t[2]) : t[0];
      const long long last = pairs == 2 ? std::max(t[1], t[3]) : t[1];
      spans.push_back(static_cast<double>(last - first));
      if (rate) rates.push_back(static_cast<double>(t[6]) / static_cast<double>(t[5] - t[4]));
    }
    runs.push_back(median(spans));
  }
  if (rate) *rate = median(rates);
  return median(runs);
}

void row(const char* kind, const char* type, int n, int width, int mode, const char* major,
         const char* a, int sms, int groups, double cycles, double bound, double bytes_per_cycle,
         double error, bool right) {
  std::printf(
      "{\"kind\": \"%s\", \"type\": \"%s\", \"n\": %d, \"width\": %d, \"swizzle\": %d, \"major\": "
      "\"%s\", \"a\": \"%s\", "
      "\"sms\": %d, "
      "\"warpgroups\": %d, \"bound\": %.2f, ",
      kind, type, n, width, mode ? width : 0, major, a, sms, groups, bound);
  if (right)
    std::printf("\"cycles\": %.2f, \"ratio\": %.4f, \"bytes_per_cycle\": %.2f, ", cycles,
                bound / cycles, bytes_per_cycle);
  std::isfinite(error) ? std::printf("\"error\": %.3g, ", error)
                       : std::printf("\"error\": null, ");  // not finite: something stayed poison
  std::printf("\"right\": %s}\n", right ? "true" : "false");
  std::fflush(stdout);
}

// Relative error of the first and the last block against two products in FP64; poison is a NaN, or
// an integer that no product is.
template <class T>
double error_of(const Device& d, int blocks, int rows, int n, const std::vector<double>& want) {
  double difference = 0;
  double size = 0;
  std::vector<Sum<T>> got(static_cast<size_t>(rows) * n);
  for (int block : {0, blocks - 1}) {
    CHECK(cudaMemcpy(got.data(), d.out + block * got.size() * 4, got.size() * 4,
                     cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < got.size(); ++i) {
      const double off = static_cast<double>(got[i]) - 2 * want[i];
      difference += off * off;
      size += 4 * want[i] * want[i];
    }
  }
  return std::sqrt(difference / size);
}

template <class T, int N, bool MN, bool RS>
void measure(const Device& d, const char* type, bool copies) {
  constexpr int bytes = sizeof(T);
  constexpr int depth = 128 / bytes;
  constexpr int k = 32 / bytes;
  constexpr int per = 4 / bytes;
  const auto kernel = multiply<T, N, MN, RS>;
  CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED));
  std::vector<double> a(128 * depth);
  std::vector<double> b(N * depth);
  std::vector<double> want(128 * N);
  std::vector<unsigned> a_codes(a.size());
  std::vector<unsigned> b_codes(b.size());
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = draw<T>(a_codes[i]);
  for (size_t i = 0; i < b.size(); ++i)
    b[i] = draw<T>(b_codes[i]);
  for (int i = 0; i < 128; ++i)
    for (int j = 0; j < N; ++j)
      for (int l = 0; l < depth; ++l)
        want[i * N + j] += a[i * depth + l] * b[j * depth + l];
  std::vector<unsigned char> fragments(256 * SLICES * 16);
  for (int t = 0; t < 256; ++t)
    for (int i = 0; i < SLICES * 4 * per; ++i) {
      const int kk = i / (4 * per);
      const int reg = i / per % 4;
      const int e = i % per;
      const int from = t / 32 * 16 + t % 32 / 4 + 8 * (reg % 2);
      const int col = kk * k + reg / 2 * (k / 2) + t % 4 * per + e;
      std::memcpy(&fragments[static_cast<size_t>(((t * SLICES + kk) * 4 + reg) * 4 + e * bytes)],
                  &a_codes[from * depth + col], bytes);
    }
  CHECK(cudaMemcpy(d.fragments, fragments.data(), fragments.size(), cudaMemcpyHostToDevice));
  for (int width : {16, 32, 64, 128}) {
    const Place a_place{64, bytes, width, MN};
    const Place b_place{N, bytes, width, MN};
    std::vector<unsigned char> image(COPY_AT);
    for (int i = 0; i < 128; ++i)
      for (int l = 0; l < depth; ++l)
        std::memcpy(&image[i / 64 * A_BYTES + a_place.at(i % 64, l)], &a_codes[i * depth + l],
                    bytes);
    for (int j = 0; j < N; ++j)
      for (int l = 0; l < depth; ++l)
        std::memcpy(&image[B_AT + b_place.at(j, l)], &b_codes[j * depth + l], bytes);
    CHECK(cudaMemcpy(d.image, image.data(), image.size(), cudaMemcpyHostToDevice));
    const wl::TensorMap map = d.map(d.image, width, mode_of(width));
    for (int blocks : {1, d.sms})
      for (int groups : {1, 2}) {
        Work work{reinterpret_cast<unsigned*>(d.image),
                  reinterpret_cast<unsigned*>(d.fragments),
                  d.out,
                  d.times,
                  a_place.operand(),
                  b_place.operand(),
                  mode_of(width),
                  1,
                  width};
        const auto launch = [&] {
          kernel<<<blocks, groups * 128 + (copies ? 32 : 0), SHARED>>>(work, map);
        };
        CHECK(cudaMemset(d.out, 0xff, d.room));
        launch();
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
        const double error = error_of<T>(d, blocks, groups * 64, N, want);
        double rate = 0;
        const double most_of_floats = std::is_same_v<T, wl::e4m3> ? 1e-2 : 1e-4;
        const double most = std::is_same_v<T, signed char> ? 0 : most_of_floats;
        double took = 0;
        if (error <= most) {
          work.groups = GROUPS;
          took = cycles(d, blocks, groups, launch, copies ? &rate : nullptr) /
                 (GROUPS * 2 * SLICES * groups);
        }
        row(copies ? "both" : "wgmma", type, N, width, mode_of(width), MN ? "mn" : "k",
            RS ? "registers" : "shared", blocks, groups, took, N / 2.0, rate * 128 * width, error,
            error <= most);
      }
  }
}

[[maybe_unused]] void measure_copies(const Device& d) {
  CHECK(cudaFuncSetAttribute(copy, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED));
  std::vector<unsigned char> in(d.room);
  std::vector<unsigned char> out(d.room);
  for (auto& x : in)
    x = static_cast<unsigned char>(dice());
  CHECK(cudaMemcpy(d.image, in.data(), d.room, cudaMemcpyHostToDevice));
  for (const auto& [width, mode] : {std::pair{16, 0}, {128, 0}, {32, 3}, {64, 2}, {128, 1}})
    for (bool stores : {false, true})
      for (int blocks : {1, d.sms}) {
        const Work work{reinterpret_cast<unsigned*>(d.image),
                        nullptr,
                        d.out,
                        d.times,
                        {},
                        {},
                        mode,
                        BOXES,
                        width};
        const wl::TensorMap map = d.map(stores ? d.out : d.image, width, mode);
        CHECK(cudaMemset(d.out, 0xff, d.room));
        const double took =
            cycles(d, blocks, 1, [&] { copy<<<blocks, 128, SHARED>>>(work, map, stores); }) / BOXES;
        CHECK(cudaMemcpy(out.data(), d.out, d.room, cudaMemcpyDeviceToHost));
        size_t wrong = 0;  // boxes are whole atoms: the permutation is its own inverse
        for (size_t i = 0; i < static_cast<size_t>(blocks) * COPY_BYTES; ++i) {
          const size_t there = i & ~size_t{1023} | (mode ? swizzled(i & 1023, width) : i & 1023);
          wrong += out[i] != in[there];
        }
        row(stores ? "store" : "load", "u8", 0, width, mode, "", "", blocks, 0, took, width,
            128 * width / took,
            static_cast<double>(wrong) / (static_cast<double>(blocks) * COPY_BYTES), wrong == 0);
      }
}
}  // namespace

int main() {
  const Device device;
#ifdef COPIES
  measure_copies(device);
  measure<wl::bf16, 128, false, false>(device, "bf16", true);
  measure<wl::bf16, 256, false, false>(device, "bf16", true);
#else
#define CASES(N)                                        \
  measure<TYPE, N, false, false>(device, NAME, false);  \
  measure<TYPE, N, false, true>(device, NAME, false);   \
  if constexpr (sizeof(TYPE) == 2) {                    \
    measure<TYPE, N, true, false>(device, NAME, false); \
    measure<TYPE, N, true, true>(device, NAME, false);  \
  }
  CASES(64)
  CASES(128)
  CASES(256)
#endif
}
