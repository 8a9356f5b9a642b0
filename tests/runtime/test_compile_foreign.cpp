// Foreign text and its compiler: what a text may not have it do, and what honest text may.
#include <gtest/gtest.h>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>
#include "base/confine.h"
#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "runtime/compilers.h"
#include "runtime/fixtures.h"
#include "runtime/foreign_text.h"

namespace warploom::runtime {
namespace {
constexpr const char* kKernel = "extern \"C\" void k(void* const*, long long, void*) {}\n";

class ForeignText : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!find_cpu_compiler()) GTEST_SKIP() << "no C++ compiler here";
  }

  static Result<Image> compiled(const std::string& source,
                                std::chrono::milliseconds time = std::chrono::seconds(120)) {
    return compile_shared_object(source, {"-O1", "-std=c++20", "-shared", "-fPIC", "-nostartfiles"},
                                 "cpu", time, true);
  }

  // The error of a text that is refused.
  static Error error_of(const std::string& source) {
    const auto image = compiled(source);
    EXPECT_FALSE(image);
    return image ? Error{ErrorCode::kInternal, "accepted"} : image.error();
  }

  OwnCache cache;
  ScratchFolder elsewhere{"elsewhere"};
};

TEST_F(ForeignText, ThatIsHonestCompiles) {
  ASSERT_OK(compiled("#include <cmath>\n#include \"wl_cpu.h\"\n" + std::string(kKernel)));
}

TEST_F(ForeignText, MayHaveInstructionsInAsm) {
  ASSERT_OK(
      compiled("extern \"C\" void k(void* const*, long long, void*) {\n"
               "  asm volatile(\"nop\\n1: nop\\n .p2align 4\");\n}\n"));
}

TEST_F(ForeignText, MayHaveStringsThatLookLikeDirectives) {
  ASSERT_OK(compiled("extern \"C\" const char* k() { return \".incbin \\\"x\\\" /* \"; }\n"));
}

TEST_F(ForeignText, CannotIncludeAnEndlessDevice) {
  const Error error = error_of("// one\n#include \"/dev/zero\"\n");
  EXPECT_EQ(error.code, ErrorCode::kCompileFailed);
  EXPECT_EQ(error.found, "/dev/zero");
  EXPECT_EQ(error.place, "line 2");
}

TEST_F(ForeignText, CannotIncludeWhatTheUserMayRead) {
  const auto secret = elsewhere.path() / "secret";
  ASSERT_OK(write_file(secret, "hidden words\n"));
  const Error error = error_of("#include \"" + secret.string() + "\"\n");
  EXPECT_EQ(error.code, ErrorCode::kCompileFailed);
  EXPECT_EQ(error.found, secret.string());
}

TEST_F(ForeignText, CannotLeaveItsFolderByDots) {
  const auto secret = elsewhere.path() / "secret";
  ASSERT_OK(write_file(secret, "hidden words\n"));
  const std::string name = "../" + elsewhere.path().filename().string() + "/secret";
  const Error error = error_of("#include \"" + name + "\"\n");
  EXPECT_EQ(error.code, ErrorCode::kCompileFailed);
  EXPECT_EQ(error.found.find("hidden"), std::string::npos);
}

TEST_F(ForeignText, CannotIncludeAnAccountFile) {
  const Error error = error_of("#include \"/etc/passwd\"\n");
  EXPECT_EQ(error.code, ErrorCode::kCompileFailed);
  EXPECT_EQ(error.found, "/etc/passwd");
}

TEST_F(ForeignText, CannotReadItsProcess) {
  EXPECT_EQ(error_of("#include \"/proc/self/environ\"\n").code, ErrorCode::kCompileFailed);
}

TEST_F(ForeignText, CannotAskWhetherAFileOfTheUserIsReadable) {
  const auto secret = elsewhere.path() / "secret";
  ASSERT_OK(write_file(secret, ""));
  const auto image = compiled("#if __has_include(\"" + secret.string() +
                              "\")\nextern \"C\" void seen() {}\n#endif\n" + kKernel);
  const std::string made = image ? *read_file(image->path) : "";
  EXPECT_EQ(made.find("seen"), std::string::npos);
}

TEST_F(ForeignText, CannotTakeAFileInByAsm) {
  const Error error = error_of("\nasm(\".\" \"inc\" \"bin \\\"/etc/passwd\\\"\");\n");
  EXPECT_EQ(error.code, ErrorCode::kCompileFailed);
  EXPECT_EQ(error.message, "inline assembly holds more than instructions and labels");
}

TEST_F(ForeignText, IsRefusedAtTheLineOfItsAsm) {
  if (find_cpu_compiler()->name.find("clang") != std::string::npos)
    GTEST_SKIP() << "clang++ names no lines there";
  EXPECT_EQ(error_of("void f() {\n\n  asm(\".incbin x\");\n}\nvoid* g = (void*)f;\n").place,
            "line 3");
}

TEST_F(ForeignText, IsRefusedForExceptionsByName) {
  const Error error = error_of("void g();\nvoid f() {\n  try { g(); } catch (int) {}\n}\n");
  EXPECT_EQ(error.code, ErrorCode::kCompileFailed);
  EXPECT_EQ(error.message, "the text has functions that throw or catch exceptions");
}

TEST_F(ForeignText, IsRefusedForTheirDirectivesElsewhereAsAssembly) {
  const Error error = error_of("asm(\".section .rodata; .uleb128 3; .text\");\n");
  EXPECT_EQ(error.code, ErrorCode::kCompileFailed);
  EXPECT_EQ(error.message, "inline assembly holds more than instructions and labels");
}

TEST_F(ForeignText, CannotWriteDirectivesByEscapes) {
  const Error error = error_of("asm(\"nop; \\x2eINCLUDE foo\");\n");
  EXPECT_EQ(error.code, ErrorCode::kCompileFailed);
  EXPECT_EQ(error.found, ".include");
}

TEST_F(ForeignText, CannotRepeatWithoutEndInAsm) {
  EXPECT_EQ(error_of("asm(\".rept 1000000000\\n nop\\n .endr\");\n").found, ".rept");
}

TEST_F(ForeignText, CannotHideDirectivesBehindComments) {
  EXPECT_EQ(error_of("asm(\"/* */ .incbin foo\");\n").code, ErrorCode::kCompileFailed);
}

TEST_F(ForeignText, CannotSeeTheTime) {
  EXPECT_EQ(error_of("const char* t = __TIME__;\n").code, ErrorCode::kCompileFailed);
}

TEST_F(ForeignText, CannotSeeItsOwnName) {
  const Error error = error_of("\n\nconst char* t = __FILE__;\n");
  EXPECT_EQ(error.code, ErrorCode::kCompileFailed);
  EXPECT_EQ(error.place, "line 3");
}

TEST_F(ForeignText, CannotLoadAPrecompiledHeader) {
  EXPECT_EQ(error_of("#pragma GCC pch_preprocess \"x.gch\"\n").code, ErrorCode::kCompileFailed);
}

TEST_F(ForeignText, OfMacrosWithoutEndIsRefused) {
  std::string source = "#define A0 x x x x x x x x x x\n";
  for (int i = 1; i < 12; ++i) {
    const std::string last = "A" + std::to_string(i - 1) + " ";
    source += "#define A" + std::to_string(i);
    for (int copy = 0; copy < 10; ++copy)
      source += " " + last;
    source += "\n";
  }
  const auto image = compiled(source + "A11\n", std::chrono::seconds(20));
  ASSERT_FALSE(image);
  EXPECT_TRUE(image.error().code == ErrorCode::kCompileFailed ||
              image.error().code == ErrorCode::kCompileTimeout);
}

TEST_F(ForeignText, OfTemplatesWithoutEndIsGivenUp) {
  const auto image = compiled(
      "template <int N, int M> struct S { static constexpr long long v = S<N - 1, 2 * M>::v + "
      "S<N - 1, 2 * M + 1>::v; };\ntemplate <int M> struct S<0, M> { static constexpr long long v "
      "= M; };\nlong long x = S<24, 1>::v;\n",
      std::chrono::seconds(2));
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().code, ErrorCode::kCompileTimeout);
}

TEST_F(ForeignText, ErrorsAreEscapedForATerminal) {
  const Error error = error_of("#error \"\033[2J\"\n");
  EXPECT_EQ(error.code, ErrorCode::kCompileFailed);
  EXPECT_EQ(error.found.find('\033'), std::string::npos);
}

TEST_F(ForeignText, IsCachedByWhatItIncludes) {
  const auto header = elsewhere.path() / "header.h";
  const WithVariable cxx("CXX", "g++ -I" + elsewhere.path().string());
  if (!find_cpu_compiler()) GTEST_SKIP() << "no g++ here";
  const std::string source = "#include <header.h>\n" + std::string(kKernel);
  ASSERT_OK(write_file(header, "extern \"C\" int one() { return 1; }\n"));
  const auto first = compiled(source);
  ASSERT_OK(first);
  const auto again = compiled(source);
  ASSERT_OK(again);
  EXPECT_EQ(first->path, again->path);
  ASSERT_OK(write_file(header, "extern \"C\" int one() { return 2; }\n"));
  const auto changed = compiled(source);
  ASSERT_OK(changed);
  EXPECT_NE(first->path, changed->path);
}

TEST(Preprocessed, FilesThatMayNotBeReadAreNamed) {
  const std::vector<std::filesystem::path> readable = {"/usr"};
  EXPECT_TRUE(check_preprocessed("# 1 \"/usr/include/x.h\" 1 3\nint x;\n", readable));
  for (const char* file : {"/etc/passwd", "/usr/../etc/passwd", "../x", "/usrx/y"}) {
    const Status checked = check_preprocessed(
        "# 0 \"kernels.cpp\"\n# 1 \"" + std::string(file) + "\" 1\nint x;\n", readable);
    ASSERT_FALSE(checked) << file;
    EXPECT_EQ(checked.error().code, ErrorCode::kCompileFailed);
    EXPECT_EQ(checked.error().found, file);
  }
}

TEST(Assembly, DirectivesHideNowhere) {
  for (const char* line :
       {"\t.incbin \"x\"", "a: .incbin x", "nop; .macro m", "\t.STRING \"a\" ; .incbin \"x\"",
        "\t.string \"a\\\\\" .incbin \"\"", "\t.section .x,\"a\"", ".symver a,b@c"}) {
    const Status checked = check_assembly("# 7 \"kernels.cpp\" 1\n" + std::string(line) + "\n");
    ASSERT_FALSE(checked) << line;
    EXPECT_EQ(checked.error().code, ErrorCode::kCompileFailed);
    EXPECT_EQ(checked.error().place, "line 7");
  }
}

class Confined : public ::testing::Test {
 protected:
  // What a shell prints that is confined to `folder` and the system's programs.
  ProcessResult ran(const std::string& script, uint64_t file_bytes = 0) {
    const Confine confine({.readable = {"/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache"},
                           .writable = {folder.path(), "/dev/null"},
                           .file_bytes = file_bytes});
    const auto done = run_process({"/bin/sh", "-c", script}, {.prepare = [&] { confine.enter(); }});
    return done ? *done : ProcessResult{.exit_status = -1};
  }

  bool has_landlock = confinement_in_force() == "landlock, rlimits";
  ScratchFolder folder{"confined"};
};

TEST_F(Confined, FilesOutsideCannotBeRead) {
  if (!has_landlock) GTEST_SKIP() << "no Landlock here";
  EXPECT_NE(ran("cat /etc/passwd").exit_status, 0);
}

TEST_F(Confined, FilesOutsideCannotBeWritten) {
  if (!has_landlock) GTEST_SKIP() << "no Landlock here";
  const ScratchFolder other("other");
  EXPECT_NE(ran("echo x > " + (other.path() / "file").string()).exit_status, 0);
}

TEST_F(Confined, LinksLeadNowhere) {
  if (!has_landlock) GTEST_SKIP() << "no Landlock here";
  const std::string link = (folder.path() / "link").string();
  EXPECT_NE(ran("ln -s /etc/passwd " + link + " && cat " + link).exit_status, 0);
}

TEST_F(Confined, ItsOwnFolderCanBeWritten) {
  EXPECT_EQ(ran("echo x > " + (folder.path() / "file").string()).exit_status, 0);
}

TEST_F(Confined, FilesStayBelowTheirLimit) {
  const std::string file = (folder.path() / "file").string();
  ran("head -c 100000 /usr/bin/env > " + file, 1000);
  EXPECT_LE(std::filesystem::file_size(file), 1000u);
}
}  // namespace
}  // namespace warploom::runtime
