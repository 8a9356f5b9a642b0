// The gate over a list's kernel: an instruction that is refused is placed at its line.
#include <elf.h>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>
#include "base/error.h"
#include "base/file.h"
#include "base/rows.h"
#include "codegen/launch_list.h"
#include "runtime/text_lines.h"
#include "runtime/text_places.h"
#include "verify/cpu_gate.h"
#include "verify/elf_file.h"

namespace warploom::verify {
namespace {
struct CodeSection {
  uint64_t address;
  std::string_view bytes;

  bool operator==(const CodeSection&) const = default;
};

std::vector<CodeSection> code_of(const ElfFile& file) {
  std::vector<CodeSection> found;
  for (const ElfSection& section : file.sections)
    if (section.header.sh_flags & SHF_ALLOC && section.header.sh_flags & SHF_EXECINSTR)
      found.push_back({section.header.sh_addr, file.contents(section)});
  return found;
}

// "gemm, line 12", "gemm, line 12 of mm_kernels.cpp", or the kernel's name alone.
std::string place_of(const LaunchList& list, size_t kernel, const ElfFile& judged,
                     uint64_t address) {
  const std::string& name = list.kernels[kernel].name;
  const std::unique_ptr<runtime::TextLines> lines = runtime::TextLines::make(list, kernel);
  if (!lines) return name;
  const Result<ElfFile> file = ElfFile::read(lines->image(), name);
  if (!file || code_of(*file) != code_of(judged)) return name;
  const runtime::TextPlace place = lines->place_at(address);
  if (contains(list.kernels, place.file, &Kernel::name))
    return runtime::described(place.file, {"", place.line});
  return runtime::described(name, place);
}
}  // namespace

std::string place_of_instruction(const LaunchList& list, size_t kernel, const std::string& image,
                                 uint64_t address) {
  const std::string& name = list.kernels.at(kernel).name;
  const auto bytes = read_file(image);
  if (!bytes) return name;
  const auto file = ElfFile::read(*bytes, name);
  return file ? place_of(list, kernel, *file, address) : name;
}

Status check_cpu_kernel(const LaunchList& list, size_t kernel, const std::string& image,
                        bool foreign) {
  const std::string& name = list.kernels.at(kernel).name;
  WARPLOOM_TRY(const std::string bytes, read_file(image));
  WARPLOOM_TRY(const ElfFile file, ElfFile::read(bytes, name));
  if (!foreign) return check_cpu_image(file, name);
  return check_cpu_image(file, name,
                         [&](uint64_t address) { return place_of(list, kernel, file, address); });
}
}  // namespace warploom::verify
