// The process that becomes a cell: maps what the plan says, gives up what it can while it still has
// a C library, then leaves for the code that takes even that away (cell_code.cpp).
#include <linux/prctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>
#include "verify/cell.h"
#include "verify/cell_plan.h"

// The C library's registration for restartable sequences: the kernel would go on writing to it.
extern "C" {
[[gnu::weak]] extern const ptrdiff_t __rseq_offset;
[[gnu::weak]] extern const unsigned int __rseq_size;
}

namespace warploom::verify {
namespace {
constexpr int kFixed = MAP_FIXED_NOREPLACE;
#if !defined(MADV_COLLAPSE)
constexpr int MADV_COLLAPSE = 25;  // Linux 6.1: huge pages now
#endif
constexpr uint64_t kHuge = uint64_t{2} << 20;
#if !defined(MADV_POPULATE_WRITE)
constexpr int MADV_POPULATE_WRITE = 23;  // Linux 5.14: no fault at the first touch
#endif

void forget_restartable_sequences() {
  constexpr long kUnregister = 1;
  constexpr unsigned int kSignature = 0x53053053;
  constexpr unsigned int kRegistered = 32;  // what the C library says, whatever the size in use
  if (&__rseq_size == nullptr || __rseq_size == 0) return;
  auto* const self = static_cast<char*>(__builtin_thread_pointer());
  ::syscall(SYS_rseq, self + __rseq_offset, kRegistered, kUnregister, kSignature);
}

// What the seccomp filter does not cover: instructions that tell the time or the processor.
void switch_off_instructions() {
  constexpr int kSetCpuid = 0x1012;  // ARCH_SET_CPUID
  ::prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
  ::syscall(SYS_arch_prctl, kSetCpuid, 0);
}

// AMX's tiles are a kernel's to allow, while there still are system calls.
void allow_tiles() {
  constexpr int kRequest = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;
  ::syscall(SYS_arch_prctl, kRequest, kTileData);
}

void limit(__rlimit_resource which) {
  const rlimit none{0, 0};
  ::setrlimit(which, &none);
}

// One huge page after another: where some cannot be made now, others can.
void collapse(char* begin, uint64_t bytes) {
  constexpr int kTries = 3;
  for (uint64_t at = 0; at + kHuge <= bytes; at += kHuge) {
    int tries = 0;
    while (tries < kTries && ::madvise(begin + at, kHuge, MADV_COLLAPSE) != 0)
      ++tries;
  }
}

bool map(const CellRegion& region, int code, int memory) {
  const int file = region.of_code ? code : memory;
  const int sharing = region.of_code ? MAP_PRIVATE : MAP_SHARED;
  auto* const wanted = reinterpret_cast<void*>(region.address);
  void* const made = ::mmap(wanted, region.bytes, region.rights, sharing | kFixed, file,
                            static_cast<off_t>(region.offset));
  if (made != wanted) return false;
  // Of the large buffers, as a program would have them that asks for huge pages.
  const bool large = region.bytes >= 2 * kHuge && region.address % kHuge == 0;
  if (large) collapse(static_cast<char*>(made), region.bytes);
  if (region.rights & PROT_WRITE) ::madvise(made, region.bytes, MADV_POPULATE_WRITE);
  return true;
}

[[noreturn]] void leave(const CellPlan& plan) {
  asm volatile(
      "mov %[stack], %%rsp\n\t"
      "xor %%ebp, %%ebp\n\t"
      "call *%[enter]"
      :
      : [stack] "r"(plan.stack), [enter] "r"(plan.enter), "D"(plan.entry)
      : "memory");
  __builtin_unreachable();
}

int become_cell(int code, off_t place, int memory) {
  CellPlan plan{};
  if (::pread(code, &plan, sizeof plan, place) != sizeof plan) return kCellNoPlan;
  std::vector<CellRegion> regions(plan.region_count);
  const size_t bytes = regions.size() * sizeof(CellRegion);
  const auto behind = place + static_cast<off_t>(sizeof plan);
  if (::pread(code, regions.data(), bytes, behind) != static_cast<ssize_t>(bytes))
    return kCellNoPlan;
  for (const CellRegion& region : regions)
    if (!map(region, code, memory)) return kCellNoRoom;
  if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) return kCellNotTraced;
  asm volatile("int3");  // who started this process says how it is to be held
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  allow_tiles();
  switch_off_instructions();
  limit(RLIMIT_FSIZE);
  limit(RLIMIT_CORE);
  forget_restartable_sequences();
  limit(RLIMIT_NOFILE);
  leave(plan);
}
}  // namespace

bool cell_main(int argc, char** argv, int* status) {
  if (argc < 2 || std::strcmp(argv[1], kCellCommand) != 0) return false;
  *status = kCellUsage;
  if (argc != 5) return true;
  *status = become_cell(std::atoi(argv[2]), std::atol(argv[3]), std::atoi(argv[4]));
  return true;
}
}  // namespace warploom::verify
