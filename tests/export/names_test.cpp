// Names that a model chose, as identifiers and as files' names.
#include "export/names.h"
#include <gtest/gtest.h>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>
#include "base/process.h"

namespace warploom::export_ {
namespace {
namespace fs = std::filesystem;

std::string alone(const std::string& name, Named kind = Named::tensor) {
  std::vector<std::string> taken;
  return identifier(name, taken, kind);
}

TEST(Names, FreeOnesStay) {
  for (const char* name : {"x", "w", "b", "A", "B", "C", "Wq", "W_1", "x0", "bias", "input_ids",
                           "MatMul_output_0", "layer1_weight", "gamma", "running_mean", "exp"})
    EXPECT_EQ(alone(name), name);
}

TEST(Names, OtherCharactersBecomeOneDash) {
  EXPECT_EQ(alone("/mm/MatMul_output_0"), "mm_MatMul_output_0");
  EXPECT_EQ(alone("a.b"), "a_b");
  EXPECT_EQ(alone("_x_"), "x");
  EXPECT_EQ(alone("1x"), "tensor_1x");
  EXPECT_EQ(alone(""), "tensor");
  EXPECT_EQ(alone("模型"), "tensor");
  EXPECT_EQ(alone("2x2", Named::bundle), "bundle_2x2");
  EXPECT_EQ(alone("$(reboot)", Named::bundle), "reboot");
}

TEST(Names, WordsThatMeanSomethingElseGetTheirKindBehind) {
  for (const char* name : {"float",        "concept",     "consteval",  "co_yield",   "char8_t",
                           "restrict",     "lambda",      "None",       "NULL",       "EOF",
                           "BUFSIZ",       "INT_MAX",     "linux",      "errno",      "I",
                           "stream",       "workspace",   "wl",         "wl_pool",    "WL_TRY",
                           "cudaStream_t", "CUtensorMap", "cuuint64_t", "cuMemsetD8", "TRY",
                           "B0",           "M_PI",        "PRId64"})
    EXPECT_EQ(alone(name), std::string(name) + "_tensor");
}

TEST(Names, ABundleHidesNoModuleAndNoHeader) {
  for (const char* name : {"random", "torch", "string", "math", "time", "pool", "wl_cpu", "convert",
                           "types", "cuda", "README", "class"})
    EXPECT_EQ(alone(name, Named::bundle), std::string(name) + "_bundle");
  for (const char* name : {"check", "device", "Makefile", "plan", "mm", "conv_small", "resnet50"})
    EXPECT_EQ(alone(name, Named::bundle), name);
}

TEST(Names, AreDifferentFromEachOther) {
  std::vector<std::string> taken;
  EXPECT_EQ(identifier("a_b", taken), "a_b");
  EXPECT_EQ(identifier("a.b", taken), "a_b_2");
  EXPECT_EQ(identifier("a/b", taken), "a_b_3");
  EXPECT_EQ(identifier("float", taken), "float_tensor");
  EXPECT_EQ(identifier("float_tensor", taken), "float_tensor_2");
}

TEST(Names, LongOnesAreCutAndStayDifferent) {
  const std::string a = alone(std::string(5000, 'a'));
  const std::string b = alone(std::string(5001, 'a'));
  EXPECT_LE(a.size(), 70u);
  EXPECT_NE(a, b);
}

// What `command` prints, word by word.
std::set<std::string> words_of(const std::string& command) {
  const auto result = run_process({"bash", "-c", command}, {.output_bytes = 64 << 20});
  EXPECT_TRUE(result);
  std::istringstream text(result->out);
  std::set<std::string> words;
  for (std::string word; text >> word;)
    words.insert(word);
  return words;
}

// The headers that bundles include, and those that programs around them do.
constexpr const char* kHeaders =
    "for h in bits/stdc++.h pthread.h sched.h sys/mman.h sys/stat.h sys/socket.h sys/wait.h "
    "netinet/in.h unistd.h fcntl.h signal.h termios.h complex.h immintrin.h; do echo \"#include "
    "<$h>\"; done | ";

TEST(Names, NoMacroOfThisMachinesHeadersIsOne) {
  for (const std::string standard : {"gnu++17", "c++20", "gnu++20"}) {
    const auto macros = words_of(std::string(kHeaders) + "g++ -std=" + standard +
                                 " -x c++ -dM -E - | awk '{print $2}' | grep -v '[(]'");
    ASSERT_GT(macros.size(), 1000u);
    for (const std::string& macro : macros)
      EXPECT_NE(alone(macro), macro);
  }
}

TEST(Names, NoMacroOfCudasHeadersIsOne) {
  const std::string cuda = "/usr/local/cuda/include";
  if (!fs::exists(cuda + "/cuda_runtime_api.h")) GTEST_SKIP() << "no CUDA toolkit here";
  const auto macros = words_of(
      "for h in cuda_runtime_api.h cuda.h cuda_fp16.h cuda_bf16.h cuda_fp8.h; do echo "
      "\"#include <$h>\"; done | g++ -x c++ -I " +
      cuda + " -dM -E - | awk '{print $2}' | grep -v '[(]'");
  ASSERT_GT(macros.size(), 1000u);
  for (const std::string& macro : macros)
    EXPECT_NE(alone(macro), macro);
}

TEST(Names, NoHeaderOfTheStandardOnesIsABundles) {
  const auto headers = words_of(std::string(kHeaders) +
                                "g++ -x c++ -M - | tr ' ' '\\n' | grep '^/usr/include/[^/]*h$'");
  ASSERT_GT(headers.size(), 20u);
  for (const std::string& header : headers) {
    const std::string stem = fs::path(header).stem();
    EXPECT_NE(alone(stem, Named::bundle), stem) << header;
  }
}

TEST(Names, NoModuleOfPythonsIsABundles) {
  const auto modules = words_of("python3 -c 'import sys; print(*sys.stdlib_module_names)'");
  if (modules.empty()) GTEST_SKIP() << "no Python that knows its modules here";
  for (const std::string& module : modules)
    EXPECT_NE(alone(module, Named::bundle), module);
}

TEST(Names, OfFilesAreDifferentAndKeepWhatCanBeKept) {
  EXPECT_EQ(file_stems({"c/d", "c_d", "y"}), (std::vector<std::string>{"c_d_2", "c_d", "y"}));
  EXPECT_EQ(file_stems({"../../etc/passwd", ".bashrc", "-rf", ""}),
            (std::vector<std::string>{"_.._.._etc_passwd", "_.bashrc", "_-rf", "_"}));
  EXPECT_EQ(file_stems({"a\nb", "a\033b", "a b"}),
            (std::vector<std::string>{"a_b", "a_b_2", "a_b_3"}));
  EXPECT_LE(file_stems({std::string(4000, 'x')})[0].size(), 100u);
}
}  // namespace
}  // namespace warploom::export_
