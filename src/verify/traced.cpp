#include "verify/traced.h"
#include <cpuid.h>
#include <elf.h>
#include <signal.h>  // IWYU pragma: keep (siginfo_t)
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>  // IWYU pragma: keep (iovec)
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>
#include "base/casts.h"
#include "base/random.h"

namespace warploom::verify {
namespace {
// Offsets in what XSAVE writes. Source: Intel SDM, volume 1, 13.4.
constexpr size_t kControlWord = 0;
constexpr size_t kMxcsr = 24;
constexpr size_t kMxcsrMask = 28;
constexpr size_t kLegacyEnd = 464;  // then the kernel's own words
constexpr size_t kHeader = 512;
constexpr uint16_t kNewControlWord = 0x37f;
constexpr uint32_t kNewMxcsr = 0x1f80;
// Linux's selectors of a 64-bit process; the others are 0.
constexpr unsigned long long kCodeSegment = 0x33;
constexpr unsigned long long kStackSegment = 0x2b;
constexpr size_t kMostState = 16 << 10;
// Of FXSAVE's part: which of x87's registers are in use, a bit each; and where those of SSE lie.
constexpr size_t kTags = 4;
constexpr size_t kXmm = 160;
constexpr size_t kXmmBytes = 256;
// Bits of the state's parts, and the word of the kernel's that says which of them there are.
constexpr size_t kPartsThereAre = 464;
constexpr uint64_t kSse = 1 << 1;

Stop stop_of(int status) {
  if (WIFSIGNALED(status)) return {.gone = true, .signal = WTERMSIG(status)};
  if (WIFEXITED(status)) return {.gone = true};
  return {.signal = WSTOPSIG(status), .event = status >> 16};
}

long trace(__ptrace_request request, pid_t id, uintptr_t address, void* data) {
  return ::ptrace(request, id, reinterpret_cast<void*>(address), data);
}
}  // namespace

Stop TracedThread::await() const {
  int status = 0;
  pid_t found = -1;
  do {
    found = ::waitpid(id_, &status, __WALL);
  } while (found < 0 && errno == EINTR);
  return found == id_ ? stop_of(status) : Stop{.gone = true};
}

Stop await_group(pid_t group, pid_t& thread, Wait wait) {
  const int options = wait == Wait::spin ? __WALL | WNOHANG : __WALL;
  int status = 0;
  thread = 0;
  while (thread == 0 || (thread < 0 && errno == EINTR)) {
    thread = ::waitpid(-group, &status, options);
    if (thread == 0) __builtin_ia32_pause();
  }
  return thread > 0 ? stop_of(status) : Stop{.gone = true};
}

bool TracedThread::go() const {
  return trace(PTRACE_CONT, id_, 0, nullptr) == 0;
}

bool TracedThread::learn() {
  floating_.resize(kMostState);
  iovec state{floating_.data(), floating_.size()};
  if (trace(PTRACE_GETREGSET, id_, NT_X86_XSTATE, &state) != 0) return false;
  if (state.iov_len < kHeader + 64) return false;
  floating_.resize(state.iov_len);
  // No component in use: all registers are as a new thread has them.
  uint32_t mask = 0;
  std::memcpy(&mask, floating_.data() + kMxcsrMask, sizeof mask);
  std::fill_n(floating_.begin(), kLegacyEnd, '\0');
  std::fill(floating_.begin() + kHeader, floating_.end(), '\0');
  std::memcpy(floating_.data() + kControlWord, &kNewControlWord, sizeof kNewControlWord);
  std::memcpy(floating_.data() + kMxcsr, &kNewMxcsr, sizeof kNewMxcsr);
  std::memcpy(floating_.data() + kMxcsrMask, &mask, sizeof mask);
  return true;
}

bool TracedThread::set(const Registers& wanted) const {
  user_regs_struct fresh{};
  fresh.cs = kCodeSegment;
  fresh.ss = kStackSegment;
  fresh.eflags = 0x202;  // interrupts are on, nothing else
  fresh.orig_rax = as_uint64(-1);
  fresh.rip = wanted.instruction;
  fresh.rsp = wanted.stack;
  fresh.rdi = wanted.first;
  fresh.rsi = wanted.second;
  fresh.fs_base = wanted.thread_pointer;
  if (trace(PTRACE_SETREGS, id_, 0, &fresh) != 0) return false;
  if (wanted.as_left) return true;
  std::vector<char> copy = wanted.kept ? *wanted.kept : floating_;
  if (wanted.garbage) fill_vectors(copy, *wanted.garbage);
  iovec state{copy.data(), copy.size()};
  return trace(PTRACE_SETREGSET, id_, NT_X86_XSTATE, &state) == 0;
}

// Vectors, their upper halves, masks and all that AVX-512 adds, as far as this processor has them.
void TracedThread::fill_vectors(std::vector<char>& state, uint64_t seed) const {
  uint64_t parts = 0;
  std::memcpy(&parts, state.data() + kPartsThereAre, sizeof parts);
  Random random(seed, "vectors");
  const auto fill = [&](size_t from, size_t bytes) {
    for (size_t at = from; at + sizeof(uint64_t) <= from + bytes; at += sizeof(uint64_t)) {
      const uint64_t word = random.next();
      std::memcpy(state.data() + at, &word, sizeof word);
    }
  };
  uint64_t used = kSse;
  fill(kXmm, kXmmBytes);
  for (const unsigned int part : {2u, 5u, 6u, 7u}) {
    unsigned int size = 0;
    unsigned int offset = 0;
    unsigned int c = 0;
    unsigned int d = 0;
    const bool known = __get_cpuid_count(0xd, part, &size, &offset, &c, &d) != 0 && size != 0;
    const bool there = known && (parts >> part & 1) != 0 && offset + size <= state.size();
    if (!there) continue;
    fill(offset, size);
    used |= uint64_t{1} << part;
  }
  std::memcpy(state.data() + kHeader, &used, sizeof used);
}

bool TracedThread::uses_floating_stack() const {
  const std::vector<char> state = vectors();
  if (state.size() < kHeader + sizeof(uint64_t)) return false;
  uint64_t used = 0;
  std::memcpy(&used, state.data() + kHeader, sizeof used);
  return (used & 1) != 0 && state[kTags] != 0;
}

uint64_t TracedThread::instruction() const {
  user_regs_struct all{};
  return trace(PTRACE_GETREGS, id_, 0, &all) == 0 ? all.rip : 0;
}

uint64_t TracedThread::fault_address() const {
  siginfo_t about{};
  if (trace(PTRACE_GETSIGINFO, id_, 0, &about) != 0) return 0;
  return reinterpret_cast<uint64_t>(about.si_addr);
}

std::optional<user_regs_struct> TracedThread::registers() const {
  user_regs_struct all{};
  if (trace(PTRACE_GETREGS, id_, 0, &all) != 0) return std::nullopt;
  return all;
}

bool TracedThread::set_registers(const user_regs_struct& registers) const {
  user_regs_struct copy = registers;
  return trace(PTRACE_SETREGS, id_, 0, &copy) == 0;
}

std::vector<char> TracedThread::vectors() const {
  std::vector<char> all(kMostState);
  iovec state{all.data(), all.size()};
  if (trace(PTRACE_GETREGSET, id_, NT_X86_XSTATE, &state) != 0) return {};
  all.resize(state.iov_len);
  return all;
}

bool TracedThread::step() const {
  return trace(PTRACE_SINGLESTEP, id_, 0, nullptr) == 0;
}

std::optional<uint64_t> TracedThread::word_at(uint64_t address) const {
  errno = 0;
  const long word = trace(PTRACE_PEEKDATA, id_, address, nullptr);
  if (word == -1 && errno != 0) return std::nullopt;
  return static_cast<uint64_t>(word);
}

bool TracedThread::put_word(uint64_t address, uint64_t word) const {
  return trace(PTRACE_POKEDATA, id_, address, reinterpret_cast<void*>(word)) == 0;
}

void TracedThread::interrupt(pid_t process) const {
  ::syscall(SYS_tgkill, process, id_, SIGSTOP);
}
}  // namespace warploom::verify
