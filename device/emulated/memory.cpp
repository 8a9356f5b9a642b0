// Registers, shared memory and global memory as ordinary loads and stores see them, and cp.async.
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>
#include "calls.h"
#include "clock.h"
#include "kernel_head.h"
#include "machine.h"
#include "shadow.h"

namespace wl::emu {
bool use_registers(const RegisterRun& r, bool write) {
  RegisterState* s = r.state;
  if (!s) return true;
  if (r.at < 0 || r.count < 0 || r.at + r.count > s->n) {
    const int last = r.at + r.count - 1;
    machine->hazard("registers", "{}[{}..{}] of an array of {}", s->name, r.at, last, s->n);
    return false;
  }
  s->touched = self->wgmma_fences + 1;
  s->loose = true;
  for (int i = r.at; i < r.at + r.count; ++i) {
    if (s->owners || (!write && !s->filled[i])) register_bad(*s, i, write);
    if (write) s->filled[i] = true;
  }
  return true;
}

namespace {
// The owner that still holds element i, or null. Owners that have given back are dropped: the
// compiler may move an access to their accumulators in front of the wait, unless wgmma_fence_regs,
// which drops them too, came first.
const RegisterState::Owner* owner_of(RegisterState& r, long long i) {
  auto here = [&](const RegisterState::Owner& o) { return i >= o.begin && i < o.end; };
  drop_owners(r, [&](const RegisterState::Owner& o) {
    if (o.group > self->wgmma_waited) return false;
    if (here(o) && !o.input)
      machine->hazard("wgmma-fence",
                      "{} is accessed after wgmma_wait without wgmma_fence_regs in between",
                      r.name);
    return true;
  });
  const auto* found = std::find_if(r.owner, r.owner + r.owners, here);
  return found == r.owner + r.owners ? nullptr : found;
}

void count_banks(const Thread& t, unsigned addr, int bytes) {
  if (!machine->launch().options.banks) return;
  machine->banks.access(t.warp, t.self.thread & 31, addr, bytes, t.self.line);
}

// Where an ordinary access of global memory goes, or null and a hazard.
GlobalRange* global_access(const void* p, int bytes, bool write, const char* what,
                           bool combine = false) {
  if (reinterpret_cast<uintptr_t>(p) % static_cast<unsigned>(bytes)) {
    machine->hazard("alignment", "{} of {} bytes at an unaligned address", what, bytes);
    return nullptr;
  }
  GlobalRange* g = machine->find(p, static_cast<size_t>(bytes), write, what);
  if (g) machine->touch_global(*g, p, bytes, write, me().access(), combine);
  return g;
}
}  // namespace

void register_bad(RegisterState& r, long long i, bool write) {
  if (machine->unwinding) return;
  auto report = [&](const char* kind, const char* what) {
    machine->hazard(kind, "{}[{}] of {} {}", r.name, i, r.n, what);
  };
  if (i < 0 || i >= r.n) return report("registers", "is outside its array");
  const auto* o = r.owners ? owner_of(r, i) : nullptr;
  if (o && write)
    machine->hazard("wgmma-registers", "{}[{}] is written while a wgmma may still use it", r.name,
                    i);
  else if (o && !o->input)
    report("wgmma-registers", "is read while a wgmma may still write it");
  else if (!write && !r.filled[i])
    report("uninitialised", "is read before it was written");
}

void fill_registers(RegisterRun dst, const void* value, int element_bytes) {
  if (!use_registers(dst, true)) return;
  char* to = static_cast<char*>(dst.data);
  for (int i = 0; i < dst.count; ++i, to += element_bytes)
    std::memcpy(to, value, static_cast<size_t>(element_bytes));
}

// Shared memory.
Cta* Machine::locate(unsigned& addr, int bytes, bool cluster, const char* what) {
  Cta* cta = current->cta;
  if (const unsigned rank = addr >> 24) {
    if (!cluster || static_cast<int>(rank) > self->cluster_size) {
      hazard("out-of-range", "{} uses an address of another block", what);
      return nullptr;
    }
    cta += static_cast<int>(rank) - 1 - cta->rank;
    addr &= 0xffffffu;
  }
  if (bytes > 1 && (bytes & (bytes - 1)) == 0 && bytes <= 16 &&
      addr % static_cast<unsigned>(bytes)) {
    hazard("alignment", "{} of {} bytes at shared address {}", what, bytes, addr);
    return nullptr;
  }
  const auto top = kSharedBase + static_cast<unsigned>(launch_.shared_bytes);
  if (addr < kSharedBase || addr + static_cast<unsigned>(bytes) > top) {
    hazard("out-of-range", "{} of {} bytes at shared address {}, outside [{}, {})", what, bytes,
           addr, kSharedBase, top);
    return nullptr;
  }
  if (cta != current->cta) {
    if (cta->alive == 0) {
      hazard("cluster", "{} reaches a block that has ended", what);
    } else if (!current->view().knows(cta->threads[0]->actor, 1)) {
      hazard("cluster", "{} reaches a block that is not known to have started", what);
    }
    cta->remote[current->actor] = {current->own[Thread::kItself].known, self->line};
  }
  return cta;
}

namespace {
// Tells of one cell of four bytes where an access and an earlier one conflict.
void tell_conflict(const Shadow::Found& found, const Access& by, bool write, size_t at,
                   const char* what) {
  const auto& [kind, text] = *found.conflict;
  const Access& other = found.other;
  std::string whose;
  if (other.mask)
    whose = other.wave == by.wave ? machine->name_of(other.actor) : "a block that ran before";
  const std::string actor = machine->name_of(by.actor);
  const char* const does = write ? "writes" : "reads";
  machine->hazard_beside(other.line, kind, "{} {} byte {} ({}){}{}", actor, does, at, what, text,
                         whose);
}
}  // namespace

void Machine::touch(Shadow& shadow, size_t at, int bytes, bool write, const View& view,
                    const Access& by, const char* what) {
  if (shadow.empty()) return;
  const size_t begin = at;
  const size_t end = at + static_cast<size_t>(bytes);
  for (size_t next; at < end; at = next) {
    const bool is_row = at % 16 == 0 && end - at >= 16;  // of four cells
    Cell* const all = is_row ? shadow.alike(at / 16) : nullptr;
    next = all ? at + 16 : std::min(end, (at / 4 + 1) * 4);
    unsigned mask = 15;
    if (!all) mask = ((1u << (next - at)) - 1u) << (at & 3);
    Cell& cell = all ? *all : shadow.cell(at / 4);
    const auto bytes_touched = static_cast<uint8_t>(mask);
    const auto found = write ? shadow.write(cell, bytes_touched, view, by)
                             : shadow.read(cell, bytes_touched, view, by);
    if (write && !all && next % 16 == 0 && next - begin >= 16) shadow.unite(at / 16);
    if (!found.conflict) continue;
    for (int cells = all ? 4 : 1; cells; --cells)
      tell_conflict(found, by, write, at, what);
  }
}

// An ordinary access of shared memory: where it goes, or null and a hazard.
uint8_t* Machine::access_shared(Thread& t, unsigned addr, int bytes, bool write, bool cluster,
                                const char* what) {
  Thread* const saved = std::exchange(current, &t);
  Cta* cta = locate(addr, bytes, cluster, what);
  if (cta) touch(cta->shadow, addr, bytes, write, t.view(), t.access(), what);
  current = saved;
  return cta ? memory(*cta, addr) : nullptr;
}

void move_shared(RegisterRun registers, unsigned addr, int bytes, bool cluster, bool store) {
  if (!use_registers(registers, !store)) return;
  const char* stores = cluster ? "st_shared_cluster" : "st_shared";
  const char* loads = cluster ? "ld_shared_cluster" : "ld_shared";
  const char* what = store ? stores : loads;
  if (auto* p = machine->access_shared(me(), addr, bytes, store, cluster, what)) {
    count_banks(me(), addr, bytes);
    if (store)
      std::memcpy(p, registers.data, static_cast<size_t>(bytes));
    else
      std::memcpy(registers.data, p, static_cast<size_t>(bytes));
  }
}

// The peer that waits learns what the thread has read; what it has written elsewhere is not to be
// seen there (as with mbarrier_arrive_cluster, the clocks do not tell these apart).
void store_async(unsigned addr, RegisterRun src, int bytes, unsigned bar) {
  const char* what = "st_async";
  if (!use_registers(src, false)) return;
  Cta* cta = machine->locate(addr, bytes, true, what);
  Cta* of_bar = machine->locate(bar, 8, true, what);
  if (!cta || !of_bar) return;
  if (cta != of_bar)
    return machine->hazard("cluster", "{} to one block, with a barrier of another", what);
  Mbarrier* b = machine->barrier(*cta, bar, what, true);
  if (!b) return;
  machine->release(b->gathering, me());
  b->gathers_remote |= cta != me().cta;
  uint32_t value;
  std::memcpy(&value, src.data, sizeof value);
  uint8_t* const to = machine->memory(*cta, addr);
  const auto carry_out = [value, to] { std::memcpy(to, &value, sizeof value); };
  machine->copy_to(*cta, addr, bytes, *b, false, what, carry_out);
}

unsigned mapa(unsigned addr, int rank, Site) {
  if (rank < 0 || rank >= self->cluster_size) {
    machine->hazard("cluster", "mapa to rank {} of a cluster of {}", rank, self->cluster_size);
    return addr;
  }
  return (addr & 0xffffffu) | static_cast<unsigned>(rank + 1) << 24;
}

// Global memory.
GlobalRange* Machine::find(const void* p, size_t bytes, bool write, const char* what) {
  const auto a = reinterpret_cast<uintptr_t>(p);
  auto holds = [&](const GlobalRange& g) { return a >= g.begin && a + bytes <= g.end; };
  if (last_range_ >= ranges_.size() || !holds(ranges_[last_range_])) {
    const auto found = std::ranges::find_if(ranges_, holds);
    if (found == ranges_.end()) {
      std::string near;
      for (const auto& g : ranges_) {
        if (a + 65536 < g.begin || a >= g.end + 65536) continue;
        const auto at = static_cast<int64_t>(a - g.begin);
        near =
            fmt::format(", at byte {} of {} of {} bytes", at, g.allocation->name, g.end - g.begin);
      }
      hazard("out-of-range", "{} of {} bytes outside every buffer{}", what, bytes, near);
      return nullptr;
    }
    last_range_ = static_cast<size_t>(found - ranges_.begin());
  }
  GlobalRange* g = &ranges_[last_range_];
  if (write && !g->allocation->writable) {
    hazard("out-of-range", "{} writes the input {}", what, g->allocation->name);
    return nullptr;
  }
  if (launch_.options.after_launch && !current->dependency_waited)
    hazard("grid-dependency", "{} before griddepcontrol_wait", what);
  return g;
}

void Machine::touch_global(GlobalRange& g, const void* p, int bytes, bool write, Access by,
                           bool combine) {
  by.wave = wave_;
  by.async = false;
  by.combined = combine;
  const uintptr_t at = reinterpret_cast<uintptr_t>(p) - g.begin;
  const char* const name = g.allocation->name.c_str();
  touch(g.shadow, at, bytes, write, current->view(), by, name);
}

void load_global(RegisterRun dst, const void* p, int bytes) {
  if (!use_registers(dst, true)) return;
  if (global_access(p, bytes, false, "ld_global"))
    std::memcpy(dst.data, p, static_cast<size_t>(bytes));
  else
    std::memset(dst.data, 0xff, static_cast<size_t>(bytes));
}

void store_global(void* p, RegisterRun src, int bytes, Combine combine) {
  if (!use_registers(src, false)) return;
  if (global_access(p, bytes, true, combine.into ? "red" : "st_global", combine.into))
    combine.put(p, src.data, bytes);
  if (combine.into) machine->wake_all(machine->flag_waiters);
}

void Combine::put(void* to, const void* from, int count) const {
  if (!into) std::memcpy(to, from, static_cast<size_t>(count));
  for (int at = 0; into && at < count; at += bytes)
    into(static_cast<char*>(to) + at, static_cast<const char*>(from) + at);
}

// Flags. What a thread knows when it signals belongs to whoever waits for the flag.
void signal_flag(int* p, int n, Site) {
  if (!global_access(p, 4, true, "signal_flag", true)) return;
  std::vector<Signal>& flag = machine->flags[p];
  if (flag.empty()) flag.push_back({*p, {}});
  ClockBuilder what;
  what.add(flag.back().what);
  machine->release(what, me());
  flag.push_back({* p += n, what.take()});
  machine->wake_all(machine->flag_waiters);
}

void wait_flag(const int* p, int least, Site) {
  if (!machine->find(p, 4, false, "wait_flag")) return;
  while (*p < least)
    machine->suspend("wait_flag", &machine->flag_waiters);
  while (machine->chance(2)) {  // a signal is seen at some later time
    machine->wake(&me());
    machine->suspend("wait_flag");
  }
  // Nothing is known of signals beyond the one that was enough.
  const std::vector<Signal>& flag = machine->flags[p];
  const auto enough = std::ranges::find_if(flag, [&](const Signal& s) { return s.value >= least; });
  if (enough != flag.end()) machine->acquire(me(), enough->what);
}

// cp.async.
void Groups::add(std::function<void()> carry_out) {
  last_used = committed + 1;
  last_line = self->line;
  ops.push_back({last_used, std::move(carry_out)});
  if (machine->effect_now()) flush(last_used);
}

void Groups::flush(Epoch up_to) {
  auto op = ops.begin();
  for (; op != ops.end() && op->group <= up_to; ++op)
    op->carry_out();
  ops.erase(ops.begin(), op);
}

Epoch Groups::flush_but(int newest) {
  const Epoch up_to = committed - std::min(committed, static_cast<Epoch>(newest));
  flush(up_to);
  return up_to;
}

void copy_async(unsigned smem, const void* g, int bytes, bool pred) {
  Thread& t = me();
  if (bytes != 4 && bytes != 8 && bytes != 16)
    return machine->hazard("alignment", "cp_async of {} bytes", bytes);
  if (!machine->locate(smem, bytes, false, "cp_async")) return;
  if (pred && !global_access(g, bytes, false, "cp_async")) return;
  const int actor = t.actor_of(Thread::kCopies, "cp.async of thread");
  const Access a = access_by(actor, t.copies.committed + 1, self->line);
  machine->touch(t.cta->shadow, smem, bytes, true, t.view(), a, "cp_async");
  count_banks(t, smem, bytes);
  uint8_t* const dst = machine->memory(*t.cta, smem);
  t.copies.add([dst, g, n = static_cast<size_t>(bytes), pred] {
    if (pred)
      std::memcpy(dst, g, n);
    else
      std::memset(dst, 0, n);
  });
}

void cp_async_commit(Site) {
  ++me().copies.committed;
}

void copy_async_wait(int n) {
  Thread& t = me();
  const Epoch flushed = t.copies.flush_but(n);
  t.copies.waited = std::max(t.copies.waited, flushed);
  t.own[Thread::kCopies].known = t.copies.waited;
}
}  // namespace wl::emu
