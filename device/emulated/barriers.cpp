// Barriers of warps, blocks and clusters; mbarriers.
#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <utility>
#include "calls.h"
#include "clock.h"
#include "machine.h"

namespace wl::emu {
// The current thread gets to a barrier of threads, and waits for the others.
void Machine::arrive_and_wait(Mbarrier& b, const char* what, unsigned addr) {
  const unsigned phase = b.phase;
  release(b.gathering, *current);
  --b.pending;
  complete_if_done(b, self->line);
  if (b.phase == phase) suspend(what, &b.waiters, addr);
  acquire(*current, b.completed);
}

void barrier(int id, int threads) {
  Thread& t = me();
  if (id < 0 || id > 15 || (threads > 0 && threads % 32))
    return machine->hazard("barrier",
                           "sync_named({}, {}): ids are 0 to 15, thread counts multiples of 32", id,
                           threads);
  Mbarrier& b = t.cta->named[id];
  const bool everyone = threads < 0;
  if (everyone) threads = t.cta->alive;
  if (b.pending == b.count) {  // the first
    b.count = b.pending = threads;
    b.everyone = everyone;
    b.init_line = self->line;
  } else if (b.everyone != everyone || b.count != threads) {
    machine->hazard_beside(b.init_line, "barrier",
                           "barrier {} is used for {} and for {} threads at once", id, threads,
                           b.count);
  }
  if (b.pending == 1 && !b.everyone) {  // the last
    std::map<Warp*, int> lanes = {{t.warp, 1}};
    for (const Thread* waiter : b.waiters)
      ++lanes[waiter->warp];
    for (const auto& [warp, count] : lanes)
      if (count % 32)
        machine->hazard_beside(b.init_line, "barrier", "barrier {} was reached by a part of a warp",
                               id);
  }
  machine->arrive_and_wait(b, "barrier", static_cast<unsigned>(id));
}

void sync_warp(Site) {
  Thread& t = me();
  machine->release(t.warp->clock, t);
  if (machine->meet("sync_warp")) {
    const Clock done = t.warp->clock.take();
    for (int i = 0; i < t.warp->size; ++i)
      t.warp->lane[i]->base = done;
    machine->part(*t.warp);
  }
}

// Collects the lanes of a warp at one instruction. True for the last one, which does the work and
// then calls part().
bool Machine::meet(const char* what, RegisterRun a, RegisterRun b, RegisterRun c, unsigned value) {
  Thread& t = *current;
  Warp& w = *t.warp;
  if (w.arrived == 0) {
    w.what = what;
    w.line = self->line;
  } else if (w.what != what || w.line != self->line) {
    hazard_beside(w.line, "divergence", "lanes of a warp are at {} and at {} at the same time",
                  what, w.what);
    for (;;)
      suspend("a warp that has diverged");  // nobody wakes it: the deadlock report follows
  }
  w.argument[t.self.thread & 31] = {{a, b, c}, value};
  if (++w.arrived == w.size) return true;
  suspend(what, &w.waiting);
  return false;
}

void Machine::part(Warp& w) {
  for (auto i = w.waiting.rbegin(); i != w.waiting.rend(); ++i)
    wake(*i, true);
  w.waiting.clear();
  w.arrived = 0;
}

void cluster_sync(Site) {
  machine->arrive_and_wait(*me().cta->cluster_barrier, "cluster_sync");
}

// mbarriers.
void mbarrier_init(unsigned addr, int count, Site) {
  Thread& t = me();
  if (!machine->locate(addr, 8, false, "mbarrier_init")) return;
  if (count < 1 || count >= 1 << 20)
    return machine->hazard("mbarrier", "mbarrier_init with a count of {}", count);
  Cta& cta = *t.cta;
  if (const auto made = cta.barriers.find(addr); made != cta.barriers.end())
    return machine->hazard_beside(made->second.init_line, "mbarrier", "the barrier is made twice");
  machine->touch(cta.shadow, addr, 8, true, t.view(), t.access(), "mbarrier_init");
  cta.shadow.cell(addr / 4).barrier = 1;
  cta.shadow.cell(addr / 4 + 1).barrier = 1;
  Mbarrier& b = cta.barriers[addr];
  b.count = b.pending = count;
  b.actor =
      machine->add_actor("the tensor copy signalling the barrier at", static_cast<int>(addr), &cta);
  b.init_actor = t.actor;
  b.init_epoch = t.own[Thread::kItself].known;
  b.init_line = self->line;
}

void fence_mbarrier_init(Site) {
  for (auto& [addr, b] : me().cta->barriers)
    if (b.init_actor == me().actor) b.published = true;
}

Mbarrier* Machine::barrier(Cta& cta, unsigned addr, const char* what, bool remote_or_async) {
  const Thread& t = *current;
  const auto found = cta.barriers.find(addr);
  if (found == cta.barriers.end()) {
    hazard("mbarrier", "{}: there is no barrier at shared address {}", what, addr);
    return nullptr;
  }
  Mbarrier& b = found->second;
  if (!t.view().knows(b.init_actor, b.init_epoch))
    hazard_beside(b.init_line, "mbarrier", "{} is not ordered after the barrier was made", what);
  else if (remote_or_async && !b.published)
    hazard_beside(b.init_line, "mbarrier", "{} on a barrier made without fence_mbarrier_init",
                  what);
  return &b;
}

void Machine::complete_if_done(Mbarrier& b, int line) {
  if (b.pending || b.tx > 0) return;
  if (b.tx < 0) {
    hazard_of(nullptr, "mbarrier",
              fmt::format("the copies brought {} bytes more than were expected", -b.tx), line,
              b.init_line);
    b.tx = 0;
  }
  b.pending = b.count;
  ++b.phase;
  b.completed = b.gathering.take();
  b.completed_remote = std::exchange(b.gathers_remote, false);
  wake_all(b.waiters);
}

void mbarrier_arrive(unsigned addr, int expect_bytes, int rank) {
  Thread& t = me();
  const bool elsewhere = rank >= 0;
  const char* here = expect_bytes ? "mbarrier_arrive_expect_tx" : "mbarrier_arrive";
  const char* what = elsewhere ? "mbarrier_arrive_cluster" : here;
  if (elsewhere) addr = mapa(addr, rank, self->line);
  Cta* cta = elsewhere ? machine->locate(addr, 8, true, what) : t.cta;
  Mbarrier* b = cta ? machine->barrier(*cta, addr, what, elsewhere) : nullptr;
  if (!b) return;
  machine->release(b->gathering, t);
  b->gathers_remote |= cta != t.cta;
  b->tx += expect_bytes;
  if (b->pending == 0)
    return machine->hazard_beside(b->init_line, "mbarrier",
                                  "more arrivals than the barrier's count of {}", b->count);
  --b->pending;
  machine->complete_if_done(*b, self->line);
}

void mbarrier_wait(unsigned addr, unsigned parity, bool cluster) {
  Thread& t = me();
  if (addr >> 24)
    return machine->hazard("mbarrier", "waiting on a barrier of another block is not possible");
  Mbarrier* b = machine->barrier(*t.cta, addr, "mbarrier_wait", false);
  if (!b) return;
  if ((b->phase & 1) == (parity & 1)) {
    const unsigned wanted = b->phase;
    machine->suspend("mbarrier_wait", &b->waiters, addr, parity & 1);
    if (b->phase > wanted + 1)
      machine->hazard_beside(
          b->init_line, "mbarrier",
          "the barrier went a phase further before a waiting thread could see this one");
  }
  if (b->completed_remote && !cluster)
    machine->hazard_beside(
        b->init_line, "mbarrier",
        "the wait acquires nothing from the other blocks that arrived: mbarrier_wait_cluster does");
  b->waited_phase = std::max(b->waited_phase, b->phase);
  machine->acquire(t, b->completed);
}
}  // namespace wl::emu
