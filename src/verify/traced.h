// Traced: a thread of another process that stands still unless it is let go, and whose registers
// are ours to set (ptrace(2)). Everything of it is called by the thread that started the process.
//
//   TracedThread thread(id);
//   thread.set(registers);                        // all of them, floating point as at a new start
//   thread.go();
//   const Stop stop = thread.await();             // what made it stand still again
//
// The kernel says that a thread stands still; nothing of that can be forged by what runs in it.
// Within the room only.
#pragma once
#include <sys/types.h>
#include <sys/user.h>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include "base/error.h"

namespace warploom::verify {
// Why a thread stands still.
struct Stop {
  bool gone = false;  // it, or its process, has ended
  int signal = 0;     // that stopped or ended it
  int event = 0;      // of ptrace's: PTRACE_EVENT_CLONE and its kin; 0: none

  bool by_trap() const { return !gone && event == 0 && signal == 5; }
};

enum class Wait {
  block,  // this thread sleeps meanwhile: for one that needs its core
  spin,   // this thread asks again and again: the time it comes back is known best
};

// Where a thread is to go on.
struct Registers {
  uint64_t instruction = 0;
  uint64_t stack = 0;
  uint64_t first = 0;  // argument
  uint64_t second = 0;
  uint64_t thread_pointer = 0;
  // Floating point, vectors, masks and tiles: as the thread left them, as vectors() told them, with
  // garbage in vectors and masks, or, if none of these, as a new thread has them.
  bool as_left = false;
  const std::vector<char>* kept = nullptr;
  std::optional<uint64_t> garbage;  // its seed
};

class TracedThread {
 public:
  explicit TracedThread(pid_t id) : id_(id) {}

  pid_t id() const { return id_; }

  Stop await() const;  // until it stands still; this thread sleeps meanwhile
  bool go() const;
  // Remembers what the registers' sets look like; when it stands still, once.
  bool learn();
  bool set(const Registers& registers) const;
  uint64_t instruction() const;    // where it stands; 0: not known
  uint64_t fault_address() const;  // what a memory fault was about; 0: not known

  // For who looks at single instructions of it, where it stands still.
  std::optional<user_regs_struct> registers() const;
  bool set_registers(const user_regs_struct& registers) const;
  std::vector<char> vectors() const;  // NT_X86_XSTATE; empty: not known
  bool uses_floating_stack() const;   // that of x87, whose registers MMX's are
  bool step() const;                  // one instruction
  std::optional<uint64_t> word_at(uint64_t address) const;
  bool put_word(uint64_t address, uint64_t word) const;  // in memory that it cannot write as well
  void interrupt(pid_t process) const;                   // it comes to stand by SIGSTOP

 private:
  void fill_vectors(std::vector<char>& state, uint64_t seed) const;

  pid_t id_;
  std::vector<char> floating_;  // NT_X86_XSTATE, as of a new thread
};

// Until any thread of a process group stands still: which, and why.
Stop await_group(pid_t group, pid_t& thread, Wait wait);
}  // namespace warploom::verify
