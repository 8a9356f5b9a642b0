// Compiled without instrumentation, stack protector or tables (cmake/Rooms.cmake): see cell_code.h.
#include "verify/cell_code.h"
#include <sched.h>
#include <sys/syscall.h>
#include <cstddef>
#include <cstdint>
#include "base/casts.h"

// In the section that becomes the cell's code; never copied into a caller outside of it.
#define WL_CELL [[gnu::section("wl_cell"), gnu::noinline, gnu::used]]

extern "C" {
// The linker's, of a section whose name is an identifier.
extern const std::byte __start_wl_cell[];
extern const std::byte __stop_wl_cell[];
}

namespace warploom::verify {
namespace {
using Byte = unsigned char;

// Of seccomp(2) and close_range(2), which older headers lack.
constexpr long kSetModeFilter = 1;
constexpr long kForAllThreads = 1;       // SECCOMP_FILTER_FLAG_TSYNC
constexpr long kSpeculationAllowed = 4;  // SECCOMP_FILTER_FLAG_SPEC_ALLOW
constexpr long kCloseRange = 436;
constexpr long kThreadFlags =
    CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;

[[gnu::always_inline]] inline long system_call(long number, long a, long b, long c) {
  long result = number;
  asm volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
  return result;
}

// Where threads wait for their first round. A debugger's trap is no system call.
WL_CELL [[gnu::naked]] void park() {
  asm("int3");
}

// Where they are at the end of a round.
WL_CELL [[gnu::naked]] void stop() {
  asm("int3");
}

WL_CELL [[gnu::naked]] void trap() {
  asm("ud2");
}

// A thread that is parked from its first instruction on.
[[gnu::always_inline]] inline long start_thread(uint64_t stack) {
  long result = SYS_clone;
  register long r10 asm("r10") = 0;
  register long r8 asm("r8") = 0;
  asm volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "jmp *%[park]\n"
      "1:"
      : "+a"(result)
      : "D"(kThreadFlags), "S"(stack), "d"(0L), "r"(r10), "r"(r8), [park] "r"(&park)
      : "rcx", "r11", "memory");
  return result;
}

WL_CELL void enter(CellEntry* entry) {
  system_call(kCloseRange, 0, -1, 0);
  for (int64_t i = 0; i < entry->gap_count; ++i)
    system_call(SYS_munmap, static_cast<long>(entry->gaps[i].begin),
                static_cast<long>(entry->gaps[i].bytes), 0);
  for (int64_t i = 0; i < entry->threads; ++i)
    start_thread(entry->stacks[i]);
  entry->filter_refused = -1;
  if (entry->filter)
    entry->filter_refused =
        system_call(SYS_seccomp, kSetModeFilter, kForAllThreads | kSpeculationAllowed,
                    reinterpret_cast<long>(entry->filter));
  park();
}

void changed() asm("wl_cell_changed");

WL_CELL [[gnu::naked]] void changed() {
  asm("ud2");
}

// A call by which no kernel can tell who calls: all registers that hold no argument, and flags, are
// the words; the function's address is in none. Those that a function has to give back as they were
// (psABI) are looked at behind it.
WL_CELL [[gnu::naked]] void call_as_any(const CellStep*, int64_t, void*, const CellWords*) {
  asm("pushq %rbx\n\t"
      "pushq %rbp\n\t"
      "pushq %r12\n\t"
      "pushq %r13\n\t"
      "pushq %r14\n\t"
      "pushq %r15\n\t"
      "pushq %rcx\n\t"
      "pushq (%rdi)\n\t"
      "pushq (%rdi)\n\t"
      "movq 8(%rdi), %rdi\n\t"
      "movq (%rcx), %rbx\n\t"
      "movq 8(%rcx), %rbp\n\t"
      "movq 16(%rcx), %r12\n\t"
      "movq 24(%rcx), %r13\n\t"
      "movq 32(%rcx), %r14\n\t"
      "movq 40(%rcx), %r15\n\t"
      "movq 48(%rcx), %rax\n\t"
      "movq 56(%rcx), %r8\n\t"
      "movq 64(%rcx), %r9\n\t"
      "movq 72(%rcx), %r10\n\t"
      "movq 80(%rcx), %r11\n\t"
      "cmpq 88(%rcx), %rax\n\t"
      "movq 96(%rcx), %rcx\n\t"
      "callq *(%rsp)\n\t"
      "movq 16(%rsp), %rcx\n\t"
      "cmpq (%rcx), %rbx\n\t"
      "jne 1f\n\t"
      "cmpq 8(%rcx), %rbp\n\t"
      "jne 1f\n\t"
      "cmpq 16(%rcx), %r12\n\t"
      "jne 1f\n\t"
      "cmpq 24(%rcx), %r13\n\t"
      "jne 1f\n\t"
      "cmpq 32(%rcx), %r14\n\t"
      "jne 1f\n\t"
      "cmpq 40(%rcx), %r15\n\t"
      "jne 1f\n\t"
      "addq $24, %rsp\n\t"
      "popq %r15\n\t"
      "popq %r14\n\t"
      "popq %r13\n\t"
      "popq %r12\n\t"
      "popq %rbp\n\t"
      "popq %rbx\n\t"
      "retq\n\t"
      "1: jmp wl_cell_changed");
}

// The blocks of one step that this thread gets hold of.
[[gnu::always_inline]] inline void take_blocks(const CellStep& step, int64_t* next, void* scratch,
                                               const CellWords* words) {
  const int64_t count = step.end - step.begin;
  while (true) {
    const int64_t from = __atomic_fetch_add(next, step.chunk, __ATOMIC_RELAXED);
    if (from >= count) return;
    const int64_t to = from + step.chunk < count ? from + step.chunk : count;
    for (int64_t i = step.begin + from; i < step.begin + to; ++i) {
      int64_t place = step.first + i * step.stride;
      if (step.stride != 1 || place >= step.total) place %= step.total;
      if (words == nullptr)
        step.function(step.buffers, place, scratch);
      else
        call_as_any(&step, place, scratch, words);
    }
  }
}

// So that the core knows where their pages lie.
[[gnu::always_inline]] inline void look_at_pages(const CellControl& control) {
  for (int64_t i = 0; i < control.span_count; ++i) {
    const CellSpan& span = control.spans[i];
    for (uint64_t at = 0; at < span.bytes; at += span.step)
      asm volatile("" : : "r"(*(span.begin + at)));
  }
}

WL_CELL void look(const CellControl* control) {
  look_at_pages(*control);
  stop();
}

// ptrace(2) does not reach all flags: the one by which programs ask for CPUID stays.
[[gnu::always_inline]] inline void set_flags() {
  asm volatile("pushq $0x202\n\tpopfq" : : : "memory", "cc");
}

[[gnu::always_inline]] inline void take_steps(CellControl* control, void* scratch) {
  const auto threads = as_uint32(control->threads);
  const auto last = as_uint32(control->step_count * control->times);
  int64_t number = 0;
  for (uint32_t step = 0; step < last; ++step) {
    int64_t* const next = &control->next[step & 1];
    take_blocks(control->steps[number], next, scratch, control->words);
    ++number;
    if (number == control->step_count) number = 0;
    if (__atomic_add_fetch(&control->finished, 1, __ATOMIC_ACQ_REL) == threads * (step + 1)) {
      __atomic_store_n(next, 0, __ATOMIC_RELAXED);
      __atomic_store_n(&control->released, step + 1, __ATOMIC_RELEASE);
    }
    // After the last step as well: so the threads come to a stand together, as they do without
    // work, and what that takes can be taken off.
    while (__atomic_load_n(&control->released, __ATOMIC_ACQUIRE) <= step)
      __builtin_ia32_pause();
  }
}

WL_CELL void run_thread(CellControl* control, void* scratch) {
  set_flags();
  look_at_pages(*control);
  __atomic_fetch_add(&control->arrived, 1, __ATOMIC_ACQ_REL);
  while (__atomic_load_n(&control->go, __ATOMIC_ACQUIRE) == 0)
    __builtin_ia32_pause();
  take_steps(control, scratch);
  stop();
}

WL_CELL void run_last(CellControl* control, void* scratch) {
  set_flags();
  __atomic_store_n(&control->go, 1, __ATOMIC_RELEASE);
  take_steps(control, scratch);
  stop();
}

[[gnu::always_inline]] inline void copy_forwards(Byte* to, const Byte* from, size_t count) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
}

// Vectors of 16 bytes; memory may be anywhere.
using Vector [[gnu::vector_size(16), gnu::aligned(1), gnu::may_alias]] = char;

constexpr size_t kVector = 16;
constexpr size_t kLong = 1024;  // from here on the processor's own copies are as fast

WL_CELL void* copy(void* to, const void* from, size_t count) {
  auto* out = static_cast<Byte*>(to);
  const auto* in = static_cast<const Byte*>(from);
  if (count >= kLong) {
    copy_forwards(out, in, count);
    return to;
  }
  for (; count >= kVector; count -= kVector, out += kVector, in += kVector)
    *reinterpret_cast<Vector*>(out) = *reinterpret_cast<const Vector*>(in);
  for (; count > 0; --count)
    *out++ = *in++;
  return to;
}

WL_CELL void* move(void* to, const void* from, size_t count) {
  auto* out = static_cast<Byte*>(to);
  const auto* in = static_cast<const Byte*>(from);
  if (out <= in || out >= in + count) return copy(to, from, count);
  // They overlap and the copy lies behind: from the last bytes to the first.
  while (count >= kVector) {
    count -= kVector;
    *reinterpret_cast<Vector*>(out + count) = *reinterpret_cast<const Vector*>(in + count);
  }
  while (count > 0) {
    --count;
    out[count] = in[count];
  }
  return to;
}

WL_CELL void* set(void* to, int value, size_t count) {
  auto* out = static_cast<Byte*>(to);
  asm volatile("rep stosb" : "+D"(out), "+c"(count) : "a"(value) : "memory");
  return to;
}

WL_CELL int compare(const void* a, const void* b, size_t count) {
  const auto* left = static_cast<const Byte*>(a);
  const auto* right = static_cast<const Byte*>(b);
  for (size_t i = 0; i < count; ++i)
    if (left[i] != right[i]) return left[i] < right[i] ? -1 : 1;
  return 0;
}

WL_CELL void fill(void* const* buffers, long long piece, void*) {
  auto* const bytes = static_cast<Byte*>(buffers[0]);
  const auto size = reinterpret_cast<int64_t>(buffers[1]);
  const auto word = as_uint32(reinterpret_cast<uintptr_t>(buffers[2]));
  const int64_t begin = piece * kFillPiece;
  const int64_t end = begin + kFillPiece < size ? begin + kFillPiece : size;
  int64_t at = begin;
  for (; at + 4 <= end; at += 4)
    __builtin_memcpy(bytes + at, &word, 4);
  for (; at < end; ++at)
    bytes[at] = static_cast<Byte>(word >> 8 * (at & 3));
}

WL_CELL void nothing(void* const*, long long, void*) {}

size_t place_of(auto* function) {
  return as_size(reinterpret_cast<const std::byte*>(function) - __start_wl_cell);
}
}  // namespace

CellCode cell_code() {
  return {.bytes = __start_wl_cell,
          .size = as_size(__stop_wl_cell - __start_wl_cell),
          .enter = place_of(&enter),
          .look = place_of(&look),
          .run_thread = place_of(&run_thread),
          .run_last = place_of(&run_last),
          .stop = place_of(&stop),
          .parked = place_of(&park),
          .fill = place_of(&fill),
          .nothing = place_of(&nothing),
          .trap = place_of(&trap),
          .changed = place_of(&changed),
          .memcpy = place_of(&copy),
          .memmove = place_of(&move),
          .memset = place_of(&set),
          .memcmp = place_of(&compare)};
}
}  // namespace warploom::verify
