// ReadWatch: looks from outside at what a candidate reads in a call, and where it jumps.
//
// A kernel has no business with what lies round its buffers, above its stack, or in the code that
// called it. Who reads it may be right where the judge's is, and wrong elsewhere. So in one call a
// trap (int3) is put on every instruction of the candidate that reads memory or goes to an address
// that it computed. Before such an instruction is carried out the thread stands still, and what it
// is about to read is worked out of its registers (memory_reads.h). After some dozens of times the
// trap is taken off. All are put on again where a block begins, as long as there are stops left
// for that, and then now and then, at times that are drawn.
//
//   ReadWatch watch(thread, image, readable, stack, *zydis);
//   watch.plant();                    // before the thread is let go, and again now and then
//   …                                 // it stands still by a trap
//   const ReadLook look = watch.look();
//   if (look.finding) …               // what it would have read that is not its own
//
// What it may read: what is listed, constants of its own image, its own stack from 128 bytes below
// the stack pointer on. A vector that begins or ends within that may reach beyond, as loads of
// whole vectors at the end of a row do. Its own instructions, and so the traps, it may not read.
// Source: ptrace(2). Within the room only.
#pragma once
#include <sys/user.h>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "verify/cell_image.h"
#include "verify/disassembler.h"
#include "verify/memory_reads.h"
#include "verify/traced.h"

namespace warploom::verify {
// Addresses of the cell, [begin, end).
struct Readable {
  uint64_t begin = 0;
  uint64_t end = 0;
  std::string name;
};

// What a candidate would have read that is not its own.
struct ReadFinding {
  uint64_t instruction = 0;  // an address of the cell
  std::string read;          // "8 bytes, 56 in front of the list of its buffers"
};

// What came of one look at an instruction.
struct ReadLook {
  std::optional<ReadFinding> finding;
  std::optional<Stop> ended;  // the instruction was carried out, and brought this about
};

// The traps on one thread's instructions, and what is found at them.
class ReadWatch {
 public:
  // `stack`: of the thread, whole. `every`: each time that an instruction is carried out is looked
  // at, as long as there are stops left for that; else some dozens of each in each block.
  ReadWatch(const TracedThread& thread, const CellImage& image, std::vector<Readable> readable,
            Readable stack, bool every, const Disassembler& zydis);

  // False where the thread's code cannot be changed.
  bool plant();
  // Once more, with some stops for it, whether or not those of before are used up.
  void plant_again();

  // The thread stands at a trap: what it may not do there. Neither, too, where the trap is none of
  // these.
  ReadLook look();

  // How many instructions are looked at, and how many were carried out and seen at least once.
  size_t watched() const { return points_.size(); }

  size_t seen() const { return seen_; }

  // Whether its stops are, which a kernel of many instructions soon has.
  bool has_used_up() const { return stops_ >= kFirstStops; }

 private:
  static constexpr int kLooks = 64;               // at an instruction, before its trap is taken off
  static constexpr int64_t kFirstStops = 10'000;  // before traps are put on by the clock alone
  static constexpr int64_t kMoreStops = 1'000;    // each time

  struct Point {
    bool armed = false;
    bool seen = false;
    bool begins = false;   // a kernel's first instruction
    int left = 0;          // how often it is looked at before its trap is taken off
    size_t arguments = 0;  // of one of our copies: how many of its arguments it reads from
  };

  // A run of the candidate's instructions.
  struct Code {
    uint64_t begin = 0;
    std::string bytes;
    std::vector<bool> starts;  // a byte: an instruction begins there
  };

  void find_points(const CellCodeSection& section);
  void add_copies(const CellImage& image);
  const Code* code_at(uint64_t address) const;
  bool put_byte(uint64_t address, char byte) const;
  // Whether it stands behind the instruction; else what has become of it.
  std::optional<Stop> step_over(uint64_t at, Point& point);
  std::optional<std::string> fault_of_copy(const Point& point, const user_regs_struct& all) const;
  std::optional<std::string> fault_of(uint64_t at, const user_regs_struct& all) const;
  std::optional<std::string> fault_of_target(const WholeInstruction& one,
                                             const user_regs_struct& all) const;
  bool may_go_to(uint64_t address) const;
  bool may_read(const MemoryRead& read, const user_regs_struct& all) const;
  std::string named(const MemoryRead& read) const;

  const TracedThread& thread_;
  const CellImage& image_;
  const Disassembler& zydis_;
  std::vector<Readable> readable_;
  Readable stack_;
  int looks_;  // at an instruction, from when traps are put on
  std::vector<Code> code_;
  std::map<uint64_t, Point> points_;
  uint64_t entered_at_ = 0;  // the stack pointer where the kernel begins; 0: it has not begun
  uint64_t returns_to_ = 0;  // where it goes back to
  size_t seen_ = 0;
  int64_t stops_ = 0;
  int64_t most_stops_ = kFirstStops;
};
}  // namespace warploom::verify
