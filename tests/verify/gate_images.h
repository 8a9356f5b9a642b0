// Images for tests of the gate: compiled from tiny texts as candidates are, and changed by hand.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include "base/file.h"
#include "runtime/compile.h"
#include "runtime/compilers.h"
#include "verify/elf_file.h"
#include "verify/image_check.h"

namespace warploom::verify {
// A kernel's body in the form that every candidate has.
inline std::string kernel(std::string_view body, std::string_view before = "") {
  return fmt::format(
      "#include <cmath>\n#include <cstring>\n{}\nextern \"C\" void k(void* const* b, long long n, "
      "void*) {{\n  auto* x = static_cast<float*>(b[0]);\n  (void)x;\n  (void)n;\n{}\n}}\n",
      before, body);
}

// The image of a text, as runtime::compile() makes it.
inline std::string compiled(const std::string& text) {
  LaunchList list{Engine::cpu, "cpu"};
  list.kernels.push_back({.name = "k", .source = text});
  const auto binary = runtime::compile(list);
  EXPECT_TRUE(binary) << (binary ? "" : describe(binary.error()));
  return binary ? read_file(binary->images[0]).value_or("") : "";
}

// The same for another machine, which need not be this one.
inline Result<std::string> compiled_for(const std::string& machine, const std::string& text) {
  std::vector<std::string> flags = runtime::cpu_compile_flags();
  std::ranges::replace(flags, "-march=native", "-march=" + machine);
  flags.insert(flags.end(), {"-nostartfiles", "-Wl,--as-needed", "-Wl,-z,now,-z,relro"});
  WARPLOOM_TRY(const runtime::Image image,
               runtime::compile_shared_object(text, flags, "cpu", std::chrono::seconds(120)));
  return read_file(image.path);
}

// Why an image is refused, "ok" where it is not; another code than candidate-forbidden is a
// failure.
inline std::string verdict(const std::string& image) {
  const Status checked = check_image(image, "k");
  if (checked) return "ok";
  EXPECT_EQ(code_text(checked.error().code), "candidate-forbidden");
  return checked.error().message + ": " + checked.error().found;
}

// An honest image with calls, constants, tables of pointers and a switch, compiled once.
inline const std::string& honest_image() {
  static const std::string image = compiled(kernel(
      "  for (long long i = 0; i < n; ++i) {\n    switch (static_cast<int>(x[i])) {\n"
      "      case 0: x[i] = 2.5f; break;\n      case 1: x[i] = sinf(x[i]); break;\n"
      "      case 2: x[i] = table[i % 2](x[i]); break;\n      case 3: x[i] = 7; break;\n"
      "      case 4: std::memset(x, 0, 4 * static_cast<size_t>(n)); break;\n"
      "      case 5: x[i] = expf(x[i]); break;\n      default: x[i] = 0.1f * names[i % 3][0];\n"
      "    }\n  }",
      "static float twice(float x) { return x + x; }\n"
      "static float square(float x) { return x * x; }\n"
      "static float (*const table[])(float) = {twice, square};\n"
      "static const char* const names[] = {\"a\", \"bc\", \"def\"};\n"));
  return image;
}

// A record of a table in the bytes of an image, to be changed.
template <class T> T& record(std::string& image, uint64_t offset, size_t index = 0) {
  return *reinterpret_cast<T*>(image.data() + offset + index * sizeof(T));
}

inline ElfFile read(const std::string& image) {
  auto file = ElfFile::read(image, "k");
  EXPECT_TRUE(file) << (file ? "" : describe(file.error()));
  return file ? *file : ElfFile{};
}

inline Elf64_Phdr& segment(std::string& image, uint32_t type, uint32_t flags = 0) {
  const ElfFile file = read(image);
  for (size_t i = 0; i < file.segments.size(); ++i)
    if (file.segments[i].p_type == type && (file.segments[i].p_flags & flags) == flags)
      return record<Elf64_Phdr>(image, file.header.e_phoff, i);
  ADD_FAILURE() << "no segment of type " << type;
  return record<Elf64_Phdr>(image, file.header.e_phoff);
}

inline Elf64_Shdr& section(std::string& image, std::string_view name) {
  const ElfFile file = read(image);
  for (size_t i = 0; i < file.sections.size(); ++i)
    if (file.sections[i].name == name) return record<Elf64_Shdr>(image, file.header.e_shoff, i);
  ADD_FAILURE() << "no section " << name;
  return record<Elf64_Shdr>(image, file.header.e_shoff);
}

inline Elf64_Dyn& dynamic_entry(std::string& image, int64_t tag) {
  const uint64_t offset = section(image, ".dynamic").sh_offset;
  for (size_t i = 0; i < section(image, ".dynamic").sh_size / sizeof(Elf64_Dyn); ++i)
    if (record<Elf64_Dyn>(image, offset, i).d_tag == tag)
      return record<Elf64_Dyn>(image, offset, i);
  ADD_FAILURE() << "no dynamic entry " << tag;
  return record<Elf64_Dyn>(image, offset);
}

inline Elf64_Rela& relocation(std::string& image, uint64_t type) {
  for (const char* table : {".rela.dyn", ".rela.plt"})
    for (size_t i = 0; i < section(image, table).sh_size / sizeof(Elf64_Rela); ++i) {
      auto& one = record<Elf64_Rela>(image, section(image, table).sh_offset, i);
      if (ELF64_R_TYPE(one.r_info) == type) return one;
    }
  ADD_FAILURE() << "no relocation of type " << type;
  return record<Elf64_Rela>(image, section(image, ".rela.dyn").sh_offset);
}

inline Elf64_Sym& symbol(std::string& image, std::string_view name) {
  const ElfFile file = read(image);
  for (size_t i = 0; i < file.symbols.size(); ++i)
    if (file.symbols[i].name == name)
      return record<Elf64_Sym>(image, section(image, ".dynsym").sh_offset, i);
  ADD_FAILURE() << "no symbol " << name;
  return record<Elf64_Sym>(image, section(image, ".dynsym").sh_offset);
}
}  // namespace warploom::verify
