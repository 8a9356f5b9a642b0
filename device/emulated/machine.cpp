#include "machine.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <boost/context/fiber_fcontext.hpp>
#include <boost/context/posix/protected_fixedsize_stack.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>
#include "calls.h"
#include "clock.h"
#include "emulator.h"
#include "kernel_head.h"

namespace wl::emu {
Self* self = nullptr;
Machine* machine = nullptr;

namespace {
namespace context = boost::context;

constexpr size_t kStack = 256 * 1024;

// Fibers outlive launches: each runs one thread's kernel call after another.
std::vector<context::fiber> idle_fibers;

// Kernels find these at run time alone; naming them here keeps their object files in the
// executable.
__attribute__((used)) void* const kept[] = {reinterpret_cast<void*>(&move_matrix),
                                            reinterpret_cast<void*>(&wgmma)};

context::fiber new_fiber() {
  return context::fiber(std::allocator_arg, context::protected_fixedsize_stack(kStack),
                        [](context::fiber&& from) {
                          machine->main = std::move(from);
                          for (;;) {
                            const Launch& launch = machine->launch();
                            launch.entry(launch.args);
                            me().done = true;
                            machine->main = std::move(machine->main).resume();
                          }
                          return context::fiber();
                        });
}
}  // namespace

Machine::Machine(const Launch& launch)
    : launch_(launch), random_(launch.options.seed * 0x9e3779b97f4a7c15ull + 1) {
  for (const auto& a : launch_.allocations) {
    const auto begin = reinterpret_cast<uintptr_t>(a.data);
    ranges_.push_back({begin, begin + a.bytes, &a, {}});
    if (a.writable) ranges_.back().shadow.reset(a.bytes, a.initialised);
  }
}

// What t has done so far becomes known to whoever takes this clock.
void Machine::release(ClockBuilder& to, Thread& t) {
  to.add(t.base);
  for (const Private& p : t.own)
    if (p.actor >= 0) to.raise(p.actor, p.known, p.fenced);
  ++t.own[Thread::kItself].known;
}

int Thread::actor_of(Own part, const char* kind) {
  if (own[part].actor < 0) own[part].actor = machine->add_actor(kind, self.thread, cta);
  return own[part].actor;
}

// Until it is woken, with those among whom it waits if it is to be woken so.
void Machine::suspend(const char* what, std::vector<Thread*>* among, unsigned addr,
                      unsigned parity) {
  Thread& t = *current;
  if (among) among->push_back(&t);
  t.waiting = what;
  t.wait_addr = addr;
  t.wait_parity = parity;
  main = std::move(main).resume();
  t.waiting = nullptr;
}

// So many clusters, from the one of that number on.
void Machine::start_wave(int first, int clusters) {
  const int* cl = launch_.cluster;
  const int blocks = cl[0] * cl[1] * cl[2];
  const int columns = launch_.grid[0] / cl[0];
  const int rows = launch_.grid[1] / cl[1];
  actors_.clear();
  for (Thread& t : threads_)
    idle_fibers.push_back(std::move(t.fiber));
  threads_.clear();
  ready_.clear();
  flags.clear();
  flag_waiters.clear();
  Mbarrier meeting;
  meeting.count = meeting.pending = blocks * launch_.block;
  cluster_barriers_.assign(static_cast<size_t>(clusters), meeting);
  alive_ = clusters * blocks * launch_.block;
  ctas.resize(static_cast<size_t>(clusters * blocks));
  const int most_registers = std::min(255, 65536 / launch_.block) / 8 * 8;
  const int registers = launch_.registers ? launch_.registers : most_registers;
  for (size_t i = 0; i < ctas.size(); ++i) {
    const int r = static_cast<int>(i) % blocks;
    const int cluster = first + static_cast<int>(i) / blocks;
    Cta& cta = ctas[i];
    Cta fresh;
    std::swap(fresh.memory, cta.memory);
    std::swap(fresh.shadow, cta.shadow);
    cta = std::move(fresh);
    cta.cluster_barrier = &cluster_barriers_[i / static_cast<size_t>(blocks)];
    const size_t top = kSharedBase + static_cast<size_t>(launch_.shared_bytes);
    cta.memory.assign(top + 16, 0xff);  // NaN in every floating type
    cta.shadow.reset(top);
    cta.rank = r;
    cta.block[0] = cluster % columns * cl[0] + r % cl[0];
    const int cluster_row = cluster / columns % rows;
    const int cluster_layer = cluster / columns / rows;
    cta.block[1] = cluster_row * cl[1] + r / cl[0] % cl[1];
    cta.block[2] = cluster_layer * cl[2] + r / cl[0] / cl[1];
    cta.alive = launch_.block;
    for (int n = 0; n < launch_.block; ++n) {
      Thread& t = threads_.emplace_back();
      t.self = {n, {}, r, blocks, 0, 0, 0};
      std::copy_n(cta.block, 3, t.self.block);
      t.cta = &cta;
      t.actor = add_actor("thread", n, &cta);
      t.own[Thread::kItself] = {{1, 0}, t.actor};
      if (n % 32 == 0) cta.warps.emplace_back().registers = registers;
      if (n % 128 == 0)
        cta.groups.push_back({add_actor("wgmma of warpgroup", n / 128, &cta), &cta});
      t.group = &cta.groups.back();
      t.warp = &cta.warps.back();
      t.warp->lane[t.warp->size++] = &t;
      cta.threads.push_back(&t);
      if (idle_fibers.empty()) idle_fibers.push_back(new_fiber());
      t.fiber = std::move(idle_fibers.back());
      idle_fibers.pop_back();
    }
  }
  // Warps start in random order; lanes of a warp together.
  std::vector<Warp*> order;
  for (Cta& cta : ctas)
    for (Warp& w : cta.warps)
      order.push_back(&w);
  random_.shuffle(order);
  for (Warp* w : order)
    for (int i = 0; i < w->size; ++i)
      wake(w->lane[i]);
  ++wave_;
}

void Machine::run_wave() {
  uint64_t turn = 0;
  while (alive_ > 0) {
    if (timing() == Timing::random && !pending.empty() && (++turn & 15) == 0 && chance(4))
      finish_copy(next_random() % pending.size());
    if (ready_.empty()) {
      if (pending.empty()) return report_deadlock();
      finish_copy(timing() == Timing::early ? 0 : next_random() % pending.size());
      continue;
    }
    if (chance(32) && ready_.size() > 1)
      std::swap(ready_.front(), ready_[next_random() % ready_.size()]);
    current = ready_.front();
    ready_.pop_front();
    Thread& t = *current;
    self = &t.self;
    t.queued = false;
    t.fiber = std::move(t.fiber).resume();
    if (t.done) thread_exits(t);
  }
  while (!pending.empty()) {
    hazard_of(nullptr, "exit", "a copy into shared memory is still under way when its block ends",
              pending[0].line);
    finish_copy(0);
  }
  const auto waited = [](const Cta& cta) {
    return std::ranges::any_of(cta.threads, &Thread::dependency_waited);
  };
  if (launch_.options.after_launch && !std::ranges::any_of(ctas, waited))
    hazard_of(
        nullptr, "grid-dependency",
        "nobody called griddepcontrol_wait: who waits for this kernel counts on those before it",
        0);
  banks.finish();
}

void Machine::thread_exits(Thread& t) {
  Cta& cta = *t.cta;
  --alive_;
  --cta.alive;
  if (t.copies.last_used > t.copies.waited) {
    hazard_of(&t, "exit", "a thread ended before its cp.async copies were waited for",
              t.copies.last_line);
    t.copies.flush(~0u);
  }
  if (t.stores.last_used > t.stores.committed)
    hazard_of(&t, "exit", "a thread ended with bulk stores that were never committed",
              t.stores.last_line);
  else if (t.stores.last_used > std::max(t.bulk_read_waited, t.stores.waited))
    hazard_of(&t, "exit", "a thread ended while its bulk stores could still read shared memory",
              t.stores.last_line);
  t.stores.flush(~0u);
  if (t.wgmma_open || t.wgmma_groups > t.self.wgmma_waited)
    hazard_of(&t, "exit", "a thread ended before its wgmma groups were waited for", t.wgmma_line);
  release(cta.exit_clock, t);
  Mbarrier& threads = cta.named[0];
  Mbarrier& meeting = *cta.cluster_barrier;
  if (threads.everyone && threads.pending < threads.count) {
    --threads.count;
    --threads.pending;
    complete_if_done(threads, 0);
  }
  --meeting.count;
  --meeting.pending;
  complete_if_done(meeting, 0);
  if (cta.alive > 0) return;
  // The block ends with it.
  const Clock end = cta.exit_clock.take();
  const View view(end);
  for (const auto& [actor, last] : cta.remote)
    if (!view.knows(actor, last.epoch))
      hazard_of(nullptr, "cluster",
                fmt::format("a block of the cluster may end before {} accesses its shared memory",
                            name_of(actor)),
                last.line);
  for (const auto& [addr, b] : cta.barriers) {
    if (b.pending != b.count || b.tx != 0) {
      std::string message = fmt::format(
          "the block ends with a barrier in the middle of a phase: {} of {} "
          "arrivals and {} bytes outstanding",
          b.pending, b.count, b.tx);
      hazard_of(nullptr, "mbarrier", std::move(message), b.init_line);
    } else if (b.copied_phase > b.waited_phase) {
      hazard_of(nullptr, "exit", "the block ends without waiting for a copy into its shared memory",
                b.copy_line, b.init_line);
    }
  }
}

Report Machine::run() {
  machine = this;
  const auto product = [](const int* of) { return of[0] * of[1] * of[2]; };
  const int clusters = product(launch_.grid) / product(launch_.cluster);
  const int together = launch_.cooperative ? clusters : 1;
  for (int first = 0; first < clusters && !stopped_; first += together) {
    start_wave(first, together);
    run_wave();
  }
  // Threads that will never end are unwound; those that ended give their fibers back.
  unwinding = true;
  for (Thread& t : threads_) {
    current = &t;
    self = &t.self;
    if (t.done)
      idle_fibers.push_back(std::move(t.fiber));
    else
      t.fiber = boost::context::fiber();
  }
  machine = nullptr;
  self = nullptr;
  report_.banks = std::move(banks.use);
  return std::move(report_);
}

// What the threads at one place wait for.
std::string Machine::state_of(const Thread& t) const {
  const std::string what = t.waiting ? t.waiting : "?";
  if (what == "mbarrier_wait") {
    const Mbarrier& b = t.cta->barriers[t.wait_addr];
    const std::string made = fmt::format("{} (made at line {})", t.wait_addr, b.init_line);
    return fmt::format(
        "{} for parity {} of the barrier at {}: phase {}, {} of {} arrivals and {} bytes missing",
        what, t.wait_parity, made, b.phase, b.pending, b.count, b.tx);
  }
  if (what == "wait_flag") return "wait_flag: nobody has signalled enough";
  if (what != "barrier") return what;
  const Mbarrier& b = t.cta->named[t.wait_addr];
  return fmt::format("barrier {}: {} of {} threads are there", t.wait_addr, b.count - b.pending,
                     b.count);
}

void Machine::report_deadlock() {
  stopped_ = true;
  report_.deadlock = true;
  std::map<std::string, int> places;  // and how many more threads wait there
  std::vector<std::pair<const Thread*, std::string>> first;
  for (const Thread& t : threads_) {
    if (t.done) continue;
    const std::string block = fmt::format("{}", fmt::join(t.cta->block, ","));
    const std::string place =
        fmt::format("block ({}) wait at line {} in {}", block, t.self.line, state_of(t));
    if (places[place]++ == 0) first.emplace_back(&t, place);
  }
  for (const auto& [t, place] : first)
    report_.deadlock_text +=
        fmt::format("{} threads (first {}) of {}\n", places[place], t->self.thread, place);
}

std::string Machine::name_of(int actor) const {
  const Actor& a = actors_[static_cast<size_t>(actor)];
  std::string r = fmt::format("{} {}", a.kind, a.number);
  if (a.cta && ctas.size() > 1) r += fmt::format(" of block ({})", fmt::join(a.cta->block, ","));
  return r;
}

void Machine::hazard_of(const Thread* t, const char* kind, std::string message, int line,
                        int other_line) {
  if (unwinding) return;
  for (auto& h : report_.hazards) {
    if (h.line == line && h.other_line == other_line && h.kind == kind) {
      ++h.times;
      return;
    }
  }
  if (static_cast<int>(report_.hazards.size()) >= launch_.options.most_hazards) return;
  auto& found = report_.hazards.emplace_back();
  found.kind = kind;
  found.message = std::move(message);
  found.line = line;
  found.other_line = other_line;
  if (!t) return;
  found.thread = t->self.thread;
  std::copy_n(t->cta->block, 3, found.block);
}
}  // namespace wl::emu

namespace warploom::emulator {
Report run(const Launch& launch) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  wl::emu::Machine m(launch);
  return m.run();
}

std::string Report::text() const {
  std::string r;
  for (const Hazard& h : hazards) {
    r += fmt::format("line {}: {}: {}", h.line, h.kind, h.message);
    if (h.other_line) r += fmt::format(" (the other at line {})", h.other_line);
    if (h.thread >= 0) {
      const std::string block = fmt::format("{}", fmt::join(h.block, ","));
      r += fmt::format(" [thread {} of block ({})]", h.thread, block);
    }
    r += h.times > 1 ? fmt::format(" x{}\n", h.times) : "\n";
  }
  if (deadlock) r += "deadlock:\n" + deadlock_text;
  return r;
}
}  // namespace warploom::emulator
