// Confinement: what a child process may open and use, fixed between fork and exec, so that programs
// which work on untrusted text (compilers) have no more than they need.
//
//   const Confine confine({.readable = {"/usr", "/lib64"}, .writable = {scratch.path()},
//                          .memory_bytes = 4ull << 30});
//   run_process({"g++", …}, {.prepare = [&] { confine.enter(); }});
//
// Two features of Linux hold it. rlimits, everywhere: address space, processor time and the size of
// a file, each of a single process. Landlock, from Linux 5.13 on: no file opens but those that are
// named; from 6.7 on no TCP connection, from 6.12 on no signal leaves. Without Landlock files are
// the user's, and confinement_in_force() says so: "rlimits" in place of "landlock, rlimits".
// Whether a file exists stays visible: Landlock hides contents, not names.
//
// Source: Linux documentation, userspace-api/landlock.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace warploom {
struct Confinement {
  // Files, and folders with what lies beneath them; what does not exist is left out.
  std::vector<std::filesystem::path> readable;  // read and executed
  std::vector<std::filesystem::path> writable;  // read, written, made and removed; not executed
  // Of each process; 0: no limit of ours
  uint64_t memory_bytes = 0;  // address space
  uint64_t cpu_seconds = 0;   // SIGXCPU, then SIGKILL
  uint64_t file_bytes = 0;    // of each file that is written: SIGXFSZ
};

class Confine {
 public:
  explicit Confine(const Confinement& confinement);  // opens what is named
  ~Confine();
  Confine(const Confine&) = delete;
  Confine& operator=(const Confine&) = delete;

  // In the child, between fork and exec: it and all that it starts stay within. Exits with status
  // 126 where the kernel has Landlock and refuses it. Calls nothing but the kernel.
  void enter() const;

 private:
  Confinement limits_;
  int rules_ = -1;  // Landlock's
};

// The features that hold a confined process here: "landlock, rlimits" or "rlimits".
std::string confinement_in_force();
}  // namespace warploom
