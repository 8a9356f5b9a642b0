#include "verify/disassembler.h"
#include <Zycore/Status.h>
#include <Zycore/Types.h>
#include <Zydis/Decoder.h>
#include <Zydis/DecoderTypes.h>
#include <Zydis/Mnemonic.h>
#include <Zydis/SharedTypes.h>
#include <Zydis/Zydis.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <type_traits>
#include "base/error.h"

// The libraries as Debian built them, in this program's constants; the paths are the build's.
asm(".pushsection .rodata\n"
    ".balign 16\n"
    "warploom_zycore: .incbin \"" WARPLOOM_ZYCORE_LIBRARY
    "\"\n"
    "warploom_zycore_end:\n"
    ".balign 16\n"
    "warploom_zydis: .incbin \"" WARPLOOM_ZYDIS_LIBRARY
    "\"\n"
    "warploom_zydis_end:\n"
    ".popsection");
extern "C" __attribute__((visibility("hidden"))) const char warploom_zycore[];
extern "C" __attribute__((visibility("hidden"))) const char warploom_zycore_end[];
extern "C" __attribute__((visibility("hidden"))) const char warploom_zydis[];
extern "C" __attribute__((visibility("hidden"))) const char warploom_zydis_end[];

namespace warploom::verify {
namespace {
tl::unexpected<Error> not_open(const char* found) {
  return fail({ErrorCode::kInternal, "the disassembler that this program carries cannot be opened",
               "libZydis", "a library that the loader takes from memory",
               found ? found : "no memory for it", "please report it"});
}

// A library that lies in memory, as a file that the loader can open.
class MemoryFile {
 public:
  MemoryFile(const char* name, std::string_view bytes) : file_(::memfd_create(name, MFD_CLOEXEC)) {
    whole_ = file_ >= 0 &&
             ::write(file_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  }

  ~MemoryFile() {
    if (file_ >= 0) ::close(file_);
  }

  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  void* open() const {  // for good
    const std::string path = "/proc/self/fd/" + std::to_string(file_);
    return whole_ ? ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  }

 private:
  int file_;
  bool whole_;
};
}  // namespace

Result<const Disassembler*> Disassembler::open() {
  static const Result<Disassembler> instance = []() -> Result<Disassembler> {
    // Both stay until both are open: the loader tells libraries by their paths. Zydis asks for
    // Zycore by its soname, which the loader then has already.
    const MemoryFile zycore("libZycore", {warploom_zycore, warploom_zycore_end});
    const MemoryFile zydis("libZydis", {warploom_zydis, warploom_zydis_end});
    void* const library = zycore.open() ? zydis.open() : nullptr;
    Disassembler made;
    const auto find = [&](const char* name, auto& function) {
      if (!library) return false;
      function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(library, name));
      return function != nullptr;
    };
    decltype(&ZydisGetVersion) version = nullptr;
    decltype(&ZydisDecoderInit) init = nullptr;
    if (!find("ZydisGetVersion", version) || !find("ZydisDecoderInit", init) ||
        !find("ZydisDecoderDecodeInstruction", made.decode_) ||
        !find("ZydisDecoderDecodeOperands", made.decode_operands_) ||
        !find("ZydisMnemonicGetString", made.name_))
      return not_open(::dlerror());
    // Its structures and numbers of instructions are those of the headers of the same version.
    if (version() != ZYDIS_VERSION ||
        !ZYAN_SUCCESS(init(&made.decoder_, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
      return not_open("another version than its headers");
    return made;
  }();
  if (!instance) return tl::unexpected(instance.error());
  return &*instance;
}

bool Disassembler::decode(std::string_view bytes, ZydisDecodedInstruction& one) const {
  return ZYAN_SUCCESS(decode_(&decoder_, nullptr, bytes.data(), bytes.size(), &one));
}

bool Disassembler::decode(std::string_view bytes, WholeInstruction& one) const {
  ZydisDecoderContext context;
  const auto count = static_cast<ZyanU8>(one.room.size());
  return ZYAN_SUCCESS(decode_(&decoder_, &context, bytes.data(), bytes.size(), &one.head)) &&
         ZYAN_SUCCESS(decode_operands_(&decoder_, &context, &one.head, one.room.data(), count));
}

std::string_view Disassembler::name(ZydisMnemonic mnemonic) const {
  const char* const text = name_(mnemonic);
  return text ? text : "an instruction without a name";
}
}  // namespace warploom::verify
