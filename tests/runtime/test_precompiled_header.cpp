#include <chrono>
#include <filesystem>
#include <fstream>
#include <ios>
#include <string>
#include <system_error>
#include <vector>
#include "base/error.h"
#include "base/file.h"
#include "fixtures.h"
#include "runtime/compile.h"
#include "runtime/compilers.h"
#include "runtime/precompiled_header.h"

namespace warploom::runtime {
namespace {
namespace fs = std::filesystem;

const std::string kBeginning = "// a kernel\n\n#define WL_VECTOR_BYTES 32\n#include \"wl_cpu.h\"\n";

std::string kernel_of(const std::string& name) {
  return kBeginning + "extern \"C\" void " + name +
         "(void* const* b, long long, void*) { wl::store(static_cast<float*>(b[0]), "
         "wl::splat(1)); }\n";
}

class PrecompiledHeader : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto found = find_cpu_compiler();
    if (!found) GTEST_SKIP() << "no C++ compiler here";
    compiler = *found;
    argv = cpu_command(compiler);
    if (!precompiled_header(compiler, argv, kBeginning))
      GTEST_SKIP() << compiler.name << " makes none";
  }

  static std::vector<fs::path> made() {
    std::vector<fs::path> out;
    std::error_code none;
    for (const auto& file : fs::directory_iterator(cache_folder() / "headers", none))
      if (file.path().extension() == ".gch") out.push_back(file.path());
    return out;
  }

  Result<Image> compiled(const std::string& source, bool foreign = false) const {
    const std::vector<std::string> flags(argv.begin() + 1, argv.end());
    return compile_shared_object(source, flags, "cpu", std::chrono::seconds(30), foreign);
  }

  const OwnCache cache;
  Compiler compiler;
  std::vector<std::string> argv;
};

TEST_F(PrecompiledHeader, IsMadeOnceForAllTexts) {
  ASSERT_OK(compiled(kernel_of("one")));
  ASSERT_EQ(made().size(), 1u);
  const auto when = fs::last_write_time(made()[0]);
  ASSERT_OK(compiled(kernel_of("other")));
  ASSERT_EQ(made().size(), 1u);
  EXPECT_EQ(fs::last_write_time(made()[0]), when);
}

TEST_F(PrecompiledHeader, IsAnotherForAnotherWidth) {
  const auto one = precompiled_header(compiler, argv, kBeginning);
  const auto other = precompiled_header(compiler, argv, "#include \"wl_cpu.h\"\n");
  ASSERT_TRUE(one && other);
  EXPECT_NE(*one, *other);
}

TEST_F(PrecompiledHeader, IsNotForTextsThatBeginOtherwise) {
  EXPECT_FALSE(precompiled_header(compiler, argv, "#define float double\n" + kBeginning));
}

TEST_F(PrecompiledHeader, IsNotReadByForeignTexts) {
  const auto before = *precompiled_header(compiler, argv, kBeginning);
  std::ofstream(before, std::ios::trunc) << "nothing that g++ would read";
  ASSERT_OK(compiled(kernel_of("foreign"), true));
  EXPECT_EQ(*read_file(before), "nothing that g++ would read");
}

TEST_F(PrecompiledHeader, CannotBeWrittenByACompiler) {
  const auto header = *precompiled_header(compiler, argv, kBeginning);
  const std::string before = *read_file(header);
  // A linker writes its map where it is told to.
  auto flags = std::vector<std::string>(argv.begin() + 1, argv.end());
  flags.insert(flags.end(), {"-Wl,-Map=" + header.string()});
  const auto done =
      compile_shared_object(kernel_of("writes"), flags, "cpu", std::chrono::seconds(30));
  if (compiler_confinement() == "rlimits") GTEST_SKIP() << "no Landlock here";
  EXPECT_FALSE(done);
  EXPECT_EQ(*read_file(header), before);
}

TEST_F(PrecompiledHeader, ThatIsDamagedIsReadAsAHeader) {
  const auto header = *precompiled_header(compiler, argv, kBeginning);
  std::ofstream(header, std::ios::trunc) << "damaged";
  ASSERT_OK(compiled(kernel_of("after")));
}
}  // namespace
}  // namespace warploom::runtime
