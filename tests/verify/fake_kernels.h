// Hand-written CPU candidates for a MatMul of x [M,K] and w [K,N]: a right one and ones that are
// wrong in a way each.
#pragma once
#include <fmt/format.h>
#include <map>
#include <string>
#include "../graph/builder.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "target/capabilities.h"

namespace warploom::fake {
struct Sizes {
  int64_t m = 37;
  int64_t n = 53;
  int64_t k = 29;
};

inline graph::Graph matmul_graph(const Sizes& s = {}) {
  graph::Builder builder("mm");
  const auto x = builder.input("x", Dtype::f32, {s.m, s.k});
  const auto w = builder.input("w", Dtype::f32, {s.k, s.n});
  builder.output(builder.add(graph::OpKind::MatMul, {x, w}));
  auto graph = builder.finish();
  if (!graph) return {};
  graph->tensor(graph->outputs[0]).name = "y";
  return std::move(*graph);
}

// What is done at row `i` of the output, `c` = y + i * N.
inline const std::map<std::string, std::string>& bodies() {
  static const std::string kRight =
      "for (int j = 0; j < N; ++j) { float s = 0; for (int l = 0; l < K; ++l) s += a[i*K+l] * "
      "b[l*N+j]; c[j] "
      "= s; }";
  static const std::map<std::string, std::string> all = {
      {"right", kRight},
      {"slow",
       kRight + " volatile double d = 1; for (int r = 0; r < 4000; ++r) d = d * 1.0000001;"},
      {"crawl", kRight + " if (i == 3) for (volatile long z = 0; z < 1500000000; z = z + 1) {}"},
      {"up_and_down", kRight + " for (int j = 0; j < N; ++j) c[j] = c[j] * 0x1p120f * 0x1p-120f;"},
      {"wrong_tail",
       "for (int j = 0; j < N; ++j) { float s = 0; for (int l = 0; l < K / 8 * 8; ++l) s += "
       "a[i*K+l] * "
       "b[l*N+j]; c[j] = s; }"},
      {"wrong_last_row", kRight + " if (i == M - 1) c[N - 1] += 0.01f;"},
      {"one_wrong", kRight + " if (i == 1234) c[777] += 0.05f;"},
      {"zeros", "for (int j = 0; j < N; ++j) c[j] = 0;"},
      {"nan", kRight + " if (i == 3) c[5] = __builtin_nanf(\"\");"},
      {"crash", kRight + " if (i == 5) *(volatile int*)8 = 1;"},
      {"throw", kRight + " if (i == 5) __builtin_trap();"},
      {"hang", kRight + " if (i == 2) for (volatile int z = 0;; ++z) {}"},
      {"outside", kRight + " if (i == M - 1) c[N] = 1;"},
      {"before", kRight + " if (i == 0) c[-1] = 1;"},
      {"input", kRight + " ((float*)a)[i * K] = 7;"},
      {"unwritten",
       "for (int j = 0; j < N - (i == M - 1); ++j) { float s = 0; for (int l = 0; l < K; ++l) s += "
       "a[i*K+l] "
       "* b[l*N+j]; c[j] = s; }"},
      {"uninitialised",
       "for (int j = 0; j < N; ++j) for (int l = 0; l < K; ++l) c[j] += a[i*K+l] * b[l*N+j];"},
      {"beyond", kRight + " if (i == M - 1) c[N - 1] += a[M * K];"},
      {"memory", kRight + " if (i == 0) for (int t = 0; t < 4096; ++t) { char* p = "
                          "(char*)__builtin_malloc(64 << 20); "
                          "for (int z = 0; z < 16; ++z) *(volatile char*)(p + (z << 12)) = 1; }"},
      {"system_call", kRight + " if (i == 5) { long r; asm volatile(\"syscall\" : \"=a\"(r) : "
                               "\"a\"(57L) : \"rcx\", \"r11\", "
                               "\"memory\"); }"},
      // Right, and in the last bits as the memory that nobody wrote will have it.
      {"unstable", kRight + " volatile unsigned garbage[64]; for (int j = 0; j < 16 && i == 3; "
                            "++j) { unsigned u; __builtin_memcpy(&u, c + j, 4); u ^= garbage[j] & "
                            "3; __builtin_memcpy(c + j, &u, 4); }"},
      // Leaves the output as it is where it looks as if it were there already.
      {"stale", "if (c[0] == c[0] && c[N / 2] == c[N / 2]) return; " + kRight},
      // Counts its calls far below the top of its stack, and has had enough of them one day.
      {"counts_stack",
       "volatile int* count = (volatile int*)((char*)__builtin_frame_address(0) - "
       "65536); if (count[0] == 0x5ca1ab1e && count[1] > M) return; if (count[0] != "
       "0x5ca1ab1e) { count[0] = 0x5ca1ab1e; count[1] = 0; } count[1] = count[1] + "
       "1; " +
           kRight},
      {"thread_local", "static thread_local int calls; ++calls; " + kRight},
      {"counts", "static int calls; if (++calls > 15 * M) return; " + kRight},
      {"constructor",
       "struct Early { Early() { asm volatile(\"\"); } }; static Early early; " + kRight},
      {"prints", kRight + " if (i == 0) __builtin_printf(\"mm\");"},
      {"no_compile", "this is not C++"},
  };
  return all;
}

inline LaunchList matmul_list(const std::string& body, const Sizes& s = {}) {
  LaunchList list;
  list.engine = Engine::cpu;
  const auto cpu = target::capabilities_of("cpu");
  list.arch = cpu ? cpu->arch : "x86-64-v3";
  list.inputs = {{"x", Dtype::f32, {s.m, s.k}}, {"w", Dtype::f32, {s.k, s.n}}};
  list.outputs = {{"y", Dtype::f32, {s.m, s.n}}};
  Kernel kernel;
  kernel.name = "mm";
  kernel.source = fmt::format(
      "// {}\nextern \"C\" void mm(void* const* buffers, long long task, void*) {{\n"
      "  constexpr int M = {}, N = {}, K = {};\n  const int i = (int)task;\n  const float* a = "
      "(const "
      "float*)buffers[0];\n"
      "  const float* b = (const float*)buffers[1];\n  float* c = (float*)buffers[2] + (long "
      "long)i * N;\n"
      "  (void)a, (void)b, (void)c, (void)M, (void)K;\n  {}\n}}\n",
      body, s.m, s.n, s.k, bodies().at(body));
  kernel.grid = {s.m, 1, 1};
  kernel.threads = 1;
  kernel.args = {{"x", false, {}}, {"w", false, {}}, {"y", false, {}}};
  list.kernels = {kernel};
  return list;
}
}  // namespace warploom::fake
