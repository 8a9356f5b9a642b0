// Which kernels of a list are compiled together, counted in compilers that were started.
#include <fmt/format.h>
#include <sys/stat.h>
#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "codegen/launch_list.h"
#include "fixtures.h"
#include "runtime/compile.h"
#include "runtime/compilers.h"
#include "runtime/executor.h"
#include "runtime/units.h"

namespace warploom::runtime {
namespace {
// y[0] = number, by a kernel of that name.
Kernel kernel_of(const std::string& name, int number) {
  Kernel kernel{.name = name, .threads = 1, .args = {{.buffer = "y"}}};
  kernel.source = fmt::format(
      "#include \"wl_cpu.h\"\n\n// One of many.\nstatic float number() {{ return {}; }}\n"
      "extern \"C\" void {}(void* const* b, long long, void*) {{\n"
      "#pragma GCC unroll 16\n"
      "  for (long i = 0; i < 1; ++i) static_cast<float*>(b[0])[i] = number();\n}}\n",
      number, name);
  return kernel;
}

LaunchList list_of(int kernels, Engine engine = Engine::cpu) {
  LaunchList list{.engine = engine, .arch = "x86-64-v3", .outputs = {{"y", Dtype::f32, {1}}}};
  for (int i = 0; i < kernels; ++i)
    list.kernels.push_back(kernel_of(fmt::format("kernel_{}", i), i));
  return list;
}

// The last kernel's number, loaded and run.
float run_last(const LaunchList& list, const Binary& binary) {
  const auto function = cpu_kernel(binary.images.back(), list.kernels.back().name);
  float y = -1;
  std::array<void*, 1> buffers = {&y};
  if (function) (*function)(buffers.data(), 0, nullptr);
  return y;
}

// A compiler in CXX that writes down how often it compiles.
class CountedCompiler {
 public:
  CountedCompiler() {
    const auto real = find_cpu_compiler();
    const auto path = folder_.path() / "counted";
    std::ofstream(path) << "#!/bin/sh\ncase \"$1\" in -dump*) ;; *) echo >> '" << log().string()
                        << "';; esac\nexec '" << (real ? real->path : "") << "' \"$@\"\n";
    ::chmod(path.c_str(), 0755);
    variable_.emplace("CXX", path.string());
  }

  ptrdiff_t runs() const {
    const auto text = read_file(log());
    return text ? std::ranges::count(*text, '\n') : 0;
  }

 private:
  std::filesystem::path log() const { return folder_.path() / "log"; }

  ScratchFolder folder_{"counted"};
  std::optional<WithVariable> variable_;
};

TEST(Units, FiftySmallKernelsTakeAFewCompilers) {
  if (!find_cpu_compiler()) GTEST_SKIP() << "no C++ compiler here";
  const OwnCache cache;
  const CountedCompiler compiler;
  const LaunchList list = list_of(50);
  const auto binary = compile(list);
  ASSERT_OK(binary);
  EXPECT_LE(compiler.runs(), 2);
  ASSERT_EQ(binary->images.size(), 50U);
  EXPECT_EQ(run_last(list, *binary), 49);
}

TEST(Units, ComeFromTheCacheTheSecondTime) {
  if (!find_cpu_compiler()) GTEST_SKIP() << "no C++ compiler here";
  const OwnCache cache;
  const CountedCompiler compiler;
  const auto first = compile(list_of(5));
  ASSERT_OK(first);
  const auto runs = compiler.runs();
  const auto second = compile(list_of(5));
  ASSERT_OK(second);
  EXPECT_EQ(compiler.runs(), runs);
  EXPECT_EQ(first->images, second->images);
}

TEST(Units, OfAnotherTextAreCompiledAnew) {
  if (!find_cpu_compiler()) GTEST_SKIP() << "no C++ compiler here";
  const OwnCache cache;
  LaunchList list = list_of(5);
  ASSERT_OK(compile(list));
  list.kernels.back() = kernel_of("kernel_4", 77);
  const auto binary = compile(list);
  ASSERT_OK(binary);
  EXPECT_EQ(run_last(list, *binary), 77);
}

TEST(Units, KernelsThatACompilerRefusesAreNamedByItsWords) {
  if (!find_cpu_compiler()) GTEST_SKIP() << "no C++ compiler here";
  const OwnCache cache;
  LaunchList list = list_of(5);
  list.kernels[3].source += "this is no C++\n";
  const auto binary = compile(list);
  ASSERT_FALSE(binary);
  EXPECT_EQ(binary.error().code, ErrorCode::kCompileFailed);
  EXPECT_NE(binary.error().found.find("this"), std::string::npos) << binary.error().found;
}

TEST(Units, FurtherCompilersTakeTheTurnsThatAreFreeAndGiveThemBack) {
  if (!find_cpu_compiler()) GTEST_SKIP() << "no C++ compiler here";
  const OwnCache cache;
  LaunchList list = list_of(3);
  for (Kernel& kernel : list.kernels)
    kernel.source += "#define OWN\n";  // one unit each
  for (const int free : {0, 1, 5}) {
    Turns turns(free);
    for (Kernel& kernel : list.kernels)
      kernel.source += fmt::format("// {}\n", free);
    ASSERT_OK(compile(list, {.turns = &turns}));
    for (int i = 0; i < free; ++i)
      EXPECT_TRUE(turns.try_acquire());
    EXPECT_FALSE(turns.try_acquire());
  }
}

TEST(Units, AreAsLongAsOneAnother) {
  LaunchList list = list_of(8);
  for (Kernel& kernel : list.kernels)
    kernel.source += "// " + std::string(10'000, 'x') + "\n";
  const std::vector<Unit> units = units_of(list);
  ASSERT_GT(units.size(), 1U);
  std::vector<size_t> lengths;
  for (const Unit& unit : units)
    lengths.push_back(unit.text.size());
  EXPECT_LT(std::ranges::max(lengths), 2 * std::ranges::min(lengths));
}

TEST(Units, HoldEveryKernelOnce) {
  LaunchList list = list_of(100);
  list.kernels.push_back(list.kernels[7]);  // one text, two launches
  std::set<size_t> seen;
  for (const Unit& unit : units_of(list))
    for (const size_t kernel : unit.kernels)
      EXPECT_TRUE(seen.insert(kernel).second);
  EXPECT_EQ(seen.size(), list.kernels.size());
}

TEST(Units, OfOneTextAreThatText) {
  LaunchList list = list_of(1);
  list.kernels.push_back(list.kernels[0]);
  const std::vector<Unit> units = units_of(list);
  ASSERT_EQ(units.size(), 1U);
  EXPECT_EQ(units[0].text, list.kernels[0].source);
  EXPECT_EQ(units[0].kernels, (std::vector<size_t>{0, 1}));
}

TEST(Units, TextsThatCannotStandTogetherStandAlone) {
  const auto units = [](const std::function<void(LaunchList&)>& change, Engine engine) {
    LaunchList list = list_of(3, engine);
    change(list);
    return units_of(list).size();
  };
  const auto nothing = [](LaunchList&) {};
  EXPECT_EQ(units(nothing, Engine::cpu), 1U);
  EXPECT_EQ(units(nothing, Engine::cuda), 3U);
  const auto macro = [](LaunchList& list) { list.kernels[1].source += "#define number 3\n"; };
  EXPECT_EQ(units(macro, Engine::cpu), 2U);
  const auto name = [](LaunchList& list) { list.kernels[1] = kernel_of("kernel_0", 9); };
  EXPECT_EQ(units(name, Engine::cpu), 2U);
  const auto head = [](LaunchList& list) {
    list.kernels[1].source = "#define WL_VECTOR_BYTES 32\n" + list.kernels[1].source;
  };
  EXPECT_EQ(units(head, Engine::cpu), 2U);
}
}  // namespace
}  // namespace warploom::runtime
