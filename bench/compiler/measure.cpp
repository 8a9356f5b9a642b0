// Times the compiler's own steps. Prints a line of JSON with the compilers found, then one a
// sample: {"case", "ms", "cpu_ms"}. measure.py runs it.
//
// ms is the clock's time; cpu_ms is processor time, that of child processes included: what the step
// takes on one free core.

#include <sys/resource.h>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <iterator>
#include <sstream>
#include "../../tests/kernels/problems.h"
#include "../../tests/support/paths.h"
#include "base/file.h"
#include "emulator.h"
#include "kernels/family.h"
#include "kernels/lower.h"
#include "runtime/compilers.h"
#include "runtime/emulate.h"
#include "tile/print.h"

namespace warploom {
namespace {

double cpu_ms() {
  double total = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage use{};
    getrusage(who, &use);
    for (const timeval& t : {use.ru_utime, use.ru_stime})
      total += 1e3 * static_cast<double>(t.tv_sec) + 1e-3 * static_cast<double>(t.tv_usec);
  }
  return total;
}

struct Time {
  double ms = 0;
  double cpu_ms = 0;
};

// A step too short for the processor's clock is repeated; the time of one turn.
Time time_of(const std::function<void()>& step, int repeats = 1) {
  const auto start = std::chrono::steady_clock::now();
  const double cpu = cpu_ms();
  for (int i = 0; i < repeats; ++i)
    step();
  const std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - start;
  return {passed.count() / repeats, (cpu_ms() - cpu) / repeats};
}

void print(const std::string& name, const Time& time) {
  std::cout << nlohmann::json{{"case", name}, {"ms", time.ms}, {"cpu_ms", time.cpu_ms}}.dump()
            << "\n";
}

template <class T> T must(Result<T> result) {
  if (result) return std::move(*result);
  std::cerr << describe(result.error()) << "\n";
  std::exit(1);
}

tile::Program example(const std::string& name) {
  const std::string path = test::source_path("examples/tile/" + name);
  return must(tile::parse(must(read_file(path)), path));
}

// C = A · B in bf16 by the warp-specialised family, in tiles of 128×128×64 and three stages.
LaunchList gemm(int64_t m, int64_t n, int64_t k) {
  const kernels::KernelConfig schedule =
      kernels::MatmulWgmmaConfig{.block_m = 128,
                                 .block_n = 128,
                                 .block_k = 64,
                                 .stages = 3,
                                 .num_math_warpgroups = 2,
                                 .epilogue = kernels::Epilogue::smem};
  const kernels::Region region{test::matmul_graph({m, n, k}, Dtype::bf16), Track::bf16};
  return must(kernels::build(region, schedule, must(target::capabilities_of("sm_90a"))));
}

// A launch list with its buffers, all ones.
struct Emulated {
  LaunchList list;
  std::map<std::string, std::vector<std::byte>> bytes;

  explicit Emulated(LaunchList of) : list(std::move(of)) {
    for (const auto* specs : {&list.inputs, &list.outputs})
      for (const BufferSpec& spec : *specs) {
        std::vector<std::byte>& ones = bytes[spec.name];
        ones.resize(static_cast<size_t>(spec.bytes()));
        for (size_t i = 0; i < ones.size() / 2; ++i)
          store_from_double(Dtype::bf16, ones.data(), i, 1);
      }
  }

  void run() {
    runtime::EmulatedBuffers buffers;
    for (auto& [name, ones] : bytes)
      buffers[name] = ones;
    must(runtime::emulate(list, buffers));
  }
};

void synthesis(int samples) {
  for (const auto& [file, arch] : {std::pair{"gemm.tile", "sm_90a"},
                                   {"gemm_mma.tile", "sm_80"},
                                   {"attention.tile", "sm_80"},
                                   {"attention_wgmma.tile", "sm_90a"}}) {
    const tile::Program program = example(file);
    const target::Capabilities capabilities = must(target::capabilities_of(arch));
    for (int i = 0; i < samples; ++i)
      print(fmt::format("synthesis of {} for {}", file, arch),
            time_of([&] { must(synth::synthesize_best(program, capabilities, 1)); }, 20));
  }
}

// A comment makes every text new to the cache.
void cuda(int samples) {
  if (!runtime::find_cuda_compiler()) return;
  const std::string source =
      must(kernels::lower(example("gemm.tile"), must(target::capabilities_of("sm_90a"))))
          .list.kernels[0]
          .source;
  const auto compile = [&](int i) {
    must(runtime::compile_cuda(fmt::format("{}// {}\n", source, i), "sm_90a"));
  };
  for (int i = 0; i < samples; ++i)
    print("gemm.tile through NVRTC", time_of([&] { compile(i); }));
  for (int i = 0; i < samples; ++i)
    print("gemm.tile through NVRTC, from the cache", time_of([&] { compile(i); }));
}

void emulation(int samples) {
  std::istringstream words(emulator::kCompileFlags);
  const std::vector<std::string> flags(std::istream_iterator<std::string>(words), {});
  Emulated few(gemm(128, 128, 256));
  Emulated many(gemm(128, 128, 256 + 32 * 64));
  Emulated whole(gemm(1024, 1024, 1024));
  for (int i = 0; i < samples; ++i)
    print(
        "gemm compiled for the emulator", time_of([&] {
          const std::string source = fmt::format("{}// {}\n", few.list.kernels[0].source, i);
          must(runtime::compile_shared_object(source, flags, "emulated", std::chrono::minutes(1)));
        }));
  for (Emulated* one : {&few, &many, &whole})
    one->run();  // compiled from here on
  for (int i = 0; i < samples; ++i) {
    const Time a = time_of([&] { few.run(); });
    const Time b = time_of([&] { many.run(); });
    print("emulated k step of a tile 128x128x64, hazard rules on",
          {(b.ms - a.ms) / 32, (b.cpu_ms - a.cpu_ms) / 32});
  }
  for (int i = 0; i < samples; ++i)
    print("emulated gemm 1024x1024x1024, hazard rules on", time_of([&] { whole.run(); }));
}

}  // namespace
}  // namespace warploom

int main(int argc, char** argv) {
  using namespace warploom;
  int status = 0;
  if (runtime::compiler_main(argc, argv, &status)) return status;
  runtime::set_helper_program("/proc/self/exe");
  const ScratchFolder cache("bench-compiler");
  setenv("XDG_CACHE_HOME", cache.path().c_str(), 1);
  const int samples = argc > 1 ? std::atoi(argv[1]) : 9;
  const auto cuda_compiler = runtime::find_cuda_compiler();
  std::cout << nlohmann::json{{"cuda", cuda_compiler ? cuda_compiler->name : "none"},
                              {"cpu", must(runtime::find_cpu_compiler()).name}}
                   .dump()
            << "\n";
  synthesis(samples);
  cuda(samples);
  emulation(samples);
  return 0;
}
