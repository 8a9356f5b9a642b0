#include "harness.h"
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <unistd.h>
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>
#include "emulator.h"
#include "support/paths.h"
#include "tensor_map.h"

namespace warploom::emulator::testing {
namespace fs = std::filesystem;

namespace {
const std::string kDevice = test::source_path("device");

fs::path scratch() {
  static const fs::path& dir = *new fs::path([] {  // outlives the cleaner
    fs::path d = test::built_path("emulator_tests/" + std::to_string(getpid()));
    fs::create_directories(d);
    return d;
  }());
  return dir;
}

int counter = 0;

std::string output_of(const std::string& command, int* status) {
  std::string out;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (!pipe) return "popen failed";
  char buffer[4096];
  while (size_t n = fread(buffer, 1, sizeof buffer, pipe))
    out.append(buffer, n);
  *status = pclose(pipe);
  return out;
}

struct Cleaner {
  ~Cleaner() {
    std::error_code ignored;
    fs::remove_all(scratch(), ignored);
  }
} cleaner;
}  // namespace

std::string read_kernel(const std::string& name) {
  std::ifstream f(test::source_path("tests/emulator/kernels/" + name + ".cu"));
  EXPECT_TRUE(f.good()) << name;
  std::stringstream s;
  s << f.rdbuf();
  return s.str();
}

// Each text stands in a namespace of its own, its entry renamed; lines are those of the text.
Library::Library(const std::vector<std::string>& texts) {
  const std::string stem = (scratch() / fmt::format("k{}", counter++)).string();
  std::ofstream f(stem + ".cpp");
  f << "#include \"wl.h\"\n#undef WL_KERNEL\n#undef WL_KERNEL_CLUSTER\n#undef WL_EXPORT\n"
    << "#define WL_KERNEL(name, t, b) static void name\n#define WL_KERNEL_CLUSTER(name, t, b, x, "
       "y, z) "
       "static void name\n"
    << "#define WL_JOIN2(a, b, c) a##b##c\n#define WL_JOIN(a, b, c) WL_JOIN2(a, b, c)\n"
    << "#define WL_EXPORT(name) extern \"C\" void WL_JOIN(name, _entry_, WL_TEXT)(void** args) "
       "{ ::wl::emu::call_with(&name, args); }\n";
  for (size_t i = 0; i < texts.size(); ++i)
    f << "#define WL_TEXT " << i << "\nnamespace text" << i << " {\n#line 1 \"text" << i << "\"\n"
      << texts[i] << "\n}\n#undef WL_TEXT\n";
  f.close();
  // -O1: these texts run for milliseconds, and many are compiled.
  int status = 0;
  const std::string said =
      output_of("c++ " + std::string(kCompileFlags) + " -O1 -I" + kDevice + "/emulated -I" +
                    kDevice + "/common " + stem + ".cpp -o " + stem + ".so",
                &status);
  EXPECT_EQ(status, 0) << said;
  handle_ = dlopen((stem + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(handle_, nullptr) << dlerror();
}

Library::~Library() {
  if (handle_) dlclose(handle_);
}

Entry Library::entry(const std::string& kernel, int text) const {
  void* p = handle_ ? dlsym(handle_, (kernel + "_entry_" + std::to_string(text)).c_str()) : nullptr;
  EXPECT_NE(p, nullptr) << kernel << " " << text;
  return reinterpret_cast<Entry>(p);
}

std::string replaced(const std::string& text, const std::string& from, const std::string& to,
                     int occurrence) {
  size_t at = text.find(from);
  while (occurrence-- > 0 && at != std::string::npos)
    at = text.find(from, at + 1);
  EXPECT_NE(at, std::string::npos) << from;
  if (at == std::string::npos) return text;
  return text.substr(0, at) + to + text.substr(at + from.size());
}

void expect_every_one_caught(const std::string& kernel, const std::vector<Mutant>& mutants,
                             const std::function<bool(Entry, Options)>& run) {
  const std::string text = read_kernel(kernel);
  std::vector<std::string> texts;
  for (const Mutant& m : mutants)
    texts.push_back(replaced(text, m.from, m.to, m.occurrence));
  const Library lib(texts);
  for (size_t i = 0; i < texts.size(); ++i)
    for (uint64_t seed = 0; seed < 5; ++seed)
      EXPECT_TRUE(run(lib.entry(kernel, static_cast<int>(i)),
                      {.seed = seed, .timing = static_cast<Timing>(seed % 3)}))
          << mutants[i].name << ", seed " << seed;
}

double matmul_error(int m, int n, int k, const std::vector<uint16_t>& a, int pitch_a,
                    const std::vector<uint16_t>& b, int pitch_b,
                    const std::function<double(int, int)>& c) {
  double worst = 0;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double want = 0;
      for (int q = 0; q < k; ++q)
        want += double(from_bf16(a[static_cast<size_t>(i * pitch_a + q)])) *
                double(from_bf16(b[static_cast<size_t>(q * pitch_b + j)]));
      const double got = c(i, j);
      worst = std::max(worst, got == got ? std::abs(got - want) / (1 + std::abs(want)) : 1e9);
    }
  return worst;
}

uint16_t to_bf16(float x) {
  const auto u = std::bit_cast<uint32_t>(x);
  return static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

float from_bf16(uint16_t x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x) << 16);
}

std::vector<uint16_t> random_bf16(size_t n, uint64_t seed) {
  uint64_t state = seed;
  auto uniform = [&state] {
    uint64_t z = (state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  };
  std::vector<uint16_t> v(n);
  for (auto& x : v)
    x = to_bf16(static_cast<float>(uniform() * 2 - 1));
  return v;
}

wl::TensorMap matrix_map(void* base, int element_bytes, int rows, int cols, int pitch, int box_rows,
                         int box_cols, int swizzle) {
  wl::TensorMap m{};
  m.base = base;
  m.rank = 2;
  m.element_bytes = element_bytes;
  m.dims[0] = cols;
  m.dims[1] = rows;
  m.strides[0] = element_bytes;
  m.strides[1] = static_cast<long long>(pitch) * element_bytes;
  m.box[0] = box_cols;
  m.box[1] = box_rows;
  m.swizzle = swizzle;
  return m;
}

namespace {
std::string nvcc() {
  return fs::exists("/usr/local/cuda/bin/nvcc") ? "/usr/local/cuda/bin/nvcc" : "nvcc";
}

std::string compile(const std::string& text, const std::string& arch, std::string* cubin,
                    int* status) {
  const std::string stem = (scratch() / fmt::format("n{}", counter++)).string();
  std::ofstream(stem + ".cu") << text;
  *cubin = stem + ".cubin";
  return output_of(nvcc() + " -cubin -std=c++17 -gencode=arch=compute_" + arch + ",code=sm_" +
                       arch + " -Xptxas -v -I" + kDevice + "/ptx -I" + kDevice + "/common -o " +
                       *cubin + " " + stem + ".cu",
                   status);
}

bool have_nvcc() {
  int status = 0;
  output_of(nvcc() + " --version", &status);
  return status == 0;
}
}  // namespace

std::string compile_with_nvcc(const std::string& text, const std::string& arch) {
  if (!have_nvcc()) return "absent";
  int status = 0;
  std::string cubin;
  const std::string said = compile(text, arch, &cubin, &status);
  if (status != 0 || said.find("C75") != std::string::npos ||
      said.find("warning") != std::string::npos)
    return said;
  std::istringstream lines(said);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("spill") != std::string::npos &&
        line.find(" 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads") ==
            std::string::npos)
      return said;
  }
  return "";
}

std::string compile_to_cubin(const std::string& text, const std::string& arch) {
  if (!have_nvcc()) return "";
  int status = 0;
  std::string cubin;
  compile(text, arch, &cubin, &status);
  return status == 0 ? cubin : "";
}
}  // namespace warploom::emulator::testing
