#include "verify/cell.h"
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <ratio>
#include <string>
#include <system_error>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/process.h"
#include "base/random.h"
#include "cpu/pool.h"
#include "verify/cell_code.h"
#include "verify/cell_layout.h"
#include "verify/cell_watch.h"
#include "verify/cores.h"
#include "verify/shared_memory.h"
#include "verify/traced.h"

namespace warploom::verify {
namespace {
using Clock = std::chrono::steady_clock;

constexpr double kStartMs = 30'000;

tl::unexpected<Error> not_held(const std::string& found) {
  return fail({ErrorCode::kSandboxMissing, "a candidate cannot be shut in here", "",
               "a kernel that lets a process be traced (ptrace) and shut off (seccomp)", found,
               "allow ptrace to this program (kernel.yama.ptrace_scope at most 1, --cap-add "
               "SYS_PTRACE in a container)"});
}

// An input is mapped to be read: what faults there is a write.
tl::unexpected<Error> wrote_to(const std::string& input) {
  return fail({ErrorCode::kCandidateWroteInput, "a candidate changed an input", input,
               "reads of inputs alone", "a write to it, or right beside it"});
}

// What a caller would run on with.
tl::unexpected<Error> left_otherwise(const std::string& found) {
  return fail({ErrorCode::kCandidateForbidden,
               "a candidate leaves registers otherwise than a function may", "",
               "rbx, rbp, rsp and r12 to r15 as they were, no register of x87 in use", found,
               "keep to the calling convention (System V ABI, 3.2)"});
}

// Of a candidate that ended so; `about`: the address of a memory fault, 0: none is known.
tl::unexpected<Error> error_of(const Stop& stop, bool hung, bool in_trap, uint64_t about) {
  if (hung)
    return fail({ErrorCode::kCandidateHung, "the candidate did not finish in time", "",
                 "an end within its time", "no end; it was killed",
                 "see whether a loop of it ends"});
  if (stop.signal == SIGSYS)
    return fail({ErrorCode::kCandidateForbidden, "a candidate made a system call", "",
                 "computation alone", "it was killed", "compute from the buffers alone"});
  if (stop.signal == SIGILL && in_trap)
    return fail({ErrorCode::kCandidateForbidden, "a candidate called a function that it may not",
                 "", "mathematics and copies", "another function",
                 "compute from the buffers alone"});
  std::string found = fmt::format("signal {} ({})", stop.signal, ::strsignal(stop.signal));
  if (about != 0) found += fmt::format(" at address {:#x}", about);
  return fail({ErrorCode::kCandidateCrashed, "the candidate crashed", "", "an orderly end", found,
               "see that it stays within its buffers"});
}
}  // namespace

struct Cell::Ended {
  TracedThread thread;
  Stop stop;
};

Cell::Cell(std::shared_ptr<SharedMemory> memory, const CellOptions& options)
    : cores_(Cores::allowed()), layout_(std::make_unique<CellLayout>(std::move(memory), options)) {}

Cell::~Cell() {
  end();
}

Status Cell::open(int threads) {
  WARPLOOM_CHECK(layout_->make());
  WARPLOOM_CHECK(start_process_of_cell());
  WARPLOOM_CHECK(bring_in());
  if (std::ssize(workers_) != threads)
    return not_held(fmt::format("{} of {} threads", workers_.size(), threads));
  return look_round();
}

Result<double> Cell::run(const Round& asked) {
  if (process_ <= 0) return not_held("the cell has ended");
  Round round = asked;
  round.threads = std::clamp<int>(asked.threads, 1, static_cast<int>(workers_.size()));
  WARPLOOM_TRY(CellControl* const control, layout_->write_control(round));
  const bool apart = leaves_a_core(round.threads);
  const OnCore here(cores_.order[0]);
  watch_->arm(round.limit_ms);
  if (!apart && !look_by_first(round)) return lost();
  const CellCode code = cell_code();
  for (int thread = 0; thread < round.threads; ++thread) {
    const bool comes_last = thread == 0 && !apart;
    const size_t function = comes_last ? code.run_last : code.run_thread;
    if (!prepare_thread(thread, round, function, apart)) return lost();
  }
  Result<double> us = let_go(*control, round, apart);
  if (watch_) watch_->disarm();  // it went with a cell that faulted
  return us;
}

// All of it: beside a kernel on the other hardware thread of its core it would slow it down.
int Cell::core_of(int thread, bool apart) const {
  const auto place = static_cast<size_t>(thread);
  return apart ? cores_.order[cores_.order.size() - 1 - place] : cores_.order[place];
}

int Cell::end() {
  if (process_ <= 0) return 0;
  ::kill(process_, SIGKILL);
  for (const TracedThread& worker : workers_)
    while (!worker.await().gone) {}
  workers_.clear();
  watch_.reset();
  return end_process(std::exchange(process_, 0), true);
}

Status Cell::start_process_of_cell() {
  const std::vector<std::string> words = {
      "/proc/self/exe", kCellCommand, std::to_string(layout_->code_file()),
      std::to_string(layout_->plan_place()), std::to_string(layout_->memory_file())};
  const auto prepare = [this] {
    ::clearenv();
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO})
      ::dup2(::open("/dev/null", O_WRONLY), fd);
    for (const int fd : {layout_->code_file(), layout_->memory_file()})
      ::fcntl(fd, F_SETFD, 0);
  };
  WARPLOOM_TRY(process_, start_process(words, prepare));
  watch_ = std::make_unique<Watch>(process_);
  watch_->arm(kStartMs);
  return ok();
}

Status Cell::bring_in() {
  const TracedThread first(process_);
  if (!first.await().by_trap()) return never_came();
  constexpr long kOptions = PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE;
  if (::ptrace(PTRACE_SETOPTIONS, process_, nullptr, kOptions) != 0)
    return not_held(std::strerror(errno));
  while (true) {
    if (!first.go()) return never_came();
    const Stop stop = first.await();
    if (stop.by_trap()) break;
    if (stop.event != PTRACE_EVENT_CLONE) return never_came();
    WARPLOOM_CHECK(take_in_worker());
  }
  for (TracedThread& worker : workers_) {
    if (!worker.await().by_trap()) return never_came();
    if (!worker.learn()) return not_held("registers that cannot be read");
  }
  watch_->disarm();
  return ok();
}

Status Cell::take_in_worker() {
  unsigned long id = 0;
  if (::ptrace(PTRACE_GETEVENTMSG, process_, nullptr, &id) != 0)
    return not_held(std::strerror(errno));
  const TracedThread& worker = workers_.emplace_back(static_cast<pid_t>(id));
  const Stop stop = worker.await();
  if (stop.gone || !worker.go()) return never_came();
  return ok();
}

tl::unexpected<Error> Cell::never_came() {
  const int status = end();
  if (WIFEXITED(status)) return not_held(fmt::format("exit status {}", WEXITSTATUS(status)));
  return not_held(fmt::format("a process that ended with {:#x}", status));
}

Status Cell::look_round() {
  const std::string folder = fmt::format("/proc/{}", process_);
  std::ifstream maps(folder + "/maps");
  for (std::string line; std::getline(maps, line);)
    if (!layout_->is_planned(line)) return not_held("memory that is not the cell's: " + line);
  std::error_code fault;
  const std::filesystem::directory_iterator files(folder + "/fd", fault);
  if (!fault && files != std::filesystem::directory_iterator()) return not_held("open files");
  std::vector<std::string> words;
  if (layout_->is_filtered()) words.emplace_back("no system calls (seccomp)");
  words.emplace_back("no library");
  words.emplace_back(fault ? "descriptors not looked at" : "no descriptors");
  words.emplace_back("stopped from outside (ptrace)");
  held_ = fmt::format("{}", fmt::join(words, ", "));
  return ok();
}

bool Cell::look_by_first(const Round& round) {
  const TracedThread& first = workers_[0];
  if (!prepare_thread(0, round, cell_code().look, false) || !first.go()) return false;
  return first.await().by_trap();
}

void Cell::keep_registers() {
  kept_registers_.clear();
  for (const TracedThread& worker : workers_)
    kept_registers_.push_back(worker.vectors());
}

bool Cell::prepare_thread(int number, const Round& round, size_t function, bool apart) {
  const auto i = static_cast<size_t>(number);
  const TracedThread& thread = workers_[i];
  place_on(thread.id(), core_of(number, apart));
  Registers wanted{.instruction = layout_->image().code + function,
                   .stack = layout_->begin_of_stack(number + 1),
                   .first = layout_->control(),
                   .second = round.scratch.empty() ? 0 : round.scratch[i],
                   .thread_pointer = layout_->thread_pointer(number + 1),
                   .as_left = begins_ == Begins::as_left};
  if (layout_->is_elsewhere()) wanted.garbage = layout_->garbage_seed() + i;
  if (begins_ == Begins::as_kept && i < kept_registers_.size()) wanted.kept = &kept_registers_[i];
  return thread.set(wanted);
}

Result<double> Cell::let_go(CellControl& control, const Round& round, bool apart) {
  const int first = apart ? 0 : 1;
  for (int thread = first; thread < round.threads; ++thread)
    if (!workers_[static_cast<size_t>(thread)].go()) return lost();
  const std::atomic_ref arrived(control.arrived);
  const std::atomic_ref go(control.go);
  const auto others = static_cast<uint32_t>(round.threads - first);
  while (arrived.load() < others && !watch_->has_struck())
    __builtin_ia32_pause();
  const auto start = Clock::now();
  if (apart)
    go.store(1, std::memory_order_release);
  else if (!workers_[0].go())
    return lost();
  const std::optional<Ended> fault = await_end(round.threads, apart ? Wait::spin : Wait::block);
  const std::chrono::duration<double, std::micro> spent = Clock::now() - start;
  if (fault) return fault_of(fault->thread, fault->stop);
  for (int i = 0; i < round.threads; ++i) {
    const TracedThread& thread = workers_[static_cast<size_t>(i)];
    if (!stands_at_end(thread)) return fault_of(thread, {.signal = SIGTRAP});
    if (layout_->is_elsewhere() && thread.uses_floating_stack()) {
      end();
      return left_otherwise("the floating-point unit's stack in use, or without emms behind MMX");
    }
  }
  return spent.count();
}

std::optional<Cell::Ended> Cell::await_end(int count, Wait wait) const {
  for (int i = 0; i < count; ++i) {
    pid_t id = 0;
    const Stop stop = await_group(process_, id, wait);
    if (!stop.by_trap()) return Ended{TracedThread(id > 0 ? id : process_), stop};
  }
  return std::nullopt;
}

bool Cell::stands_at_end(const TracedThread& thread) const {
  return thread.instruction() == layout_->image().code + cell_code().stop + 1;
}

tl::unexpected<Error> Cell::lost() {
  return fault_of(workers_[0], {.gone = true, .signal = SIGKILL});
}

tl::unexpected<Error> Cell::fault_of(const TracedThread& thread, const Stop& stop) {
  const uint64_t at = stop.gone ? 0 : thread.instruction();
  const bool by_memory = stop.signal == SIGSEGV || stop.signal == SIGBUS;
  const uint64_t about = !stop.gone && by_memory ? thread.fault_address() : 0;
  // But where it was to be executed.
  const bool by_data = about != 0 && layout_->input_at(at).empty();
  const std::string input = by_data ? layout_->input_at(about) : "";
  const bool hung = watch_->has_struck();
  end();
  if (!input.empty()) return wrote_to(input);
  const bool in_trap = at == layout_->image().code + cell_code().trap;
  if (stop.signal == SIGILL && at == layout_->image().code + cell_code().changed)
    return left_otherwise("another number in one of them");
  return error_of(stop, hung, in_trap, about);
}

Result<std::unique_ptr<Cell>> Cell::start(std::shared_ptr<SharedMemory> memory,
                                          const CellOptions& asked) {
  CellOptions options = asked;
  const auto cores = as_int(wl::allowed_cores().size());
  options.threads = std::clamp(asked.threads, 1, cores);
  constexpr int kTries = 4;  // to find a place among what a process has at its start
  Random seeds(options.seed, "places");
  for (int i = 0; i < kTries && asked.elsewhere > 0; ++i) {
    options.seed = seeds.next();
    std::unique_ptr<Cell> cell(new Cell(memory, options));
    if (cell->open(options.threads)) return cell;
  }
  options.elsewhere = 0;
  std::unique_ptr<Cell> cell(new Cell(std::move(memory), options));
  WARPLOOM_CHECK(cell->open(options.threads));
  return cell;
}
}  // namespace warploom::verify
