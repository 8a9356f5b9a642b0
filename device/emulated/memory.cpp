// Registers, shared memory and global memory as ordinary loads and stores see them, and cp.async.
#include <cstring>

#include "machine.h"

namespace wl::emu {

bool use_registers(const RegisterRun& r, bool write, int line) {
  RegisterState* s = r.state;
  if (!s) return true;
  if (r.at < 0 || r.count < 0 || r.at + r.count > s->n) {
    machine->hazard("registers",
                    std::string("registers ") + s->name + "[" + std::to_string(r.at) + ".." +
                        std::to_string(r.at + r.count - 1) + "] of an array of " + std::to_string(s->n),
                    line, &me());
    return false;
  }
  s->touched = self->wgmma_fences + 1;
  s->loose = true;
  for (int i = r.at; i < r.at + r.count; ++i) {
    if (write) {
      if (s->owners) register_write_bad(*s, i, line);
      s->filled[i >> 6] |= 1ull << (i & 63);
    } else if (s->owners || !(s->filled[i >> 6] >> (i & 63) & 1)) {
      register_read_bad(*s, i, line);
    }
  }
  return true;
}

namespace {

// The owner that still holds element i, or null. Owners that have given back are dropped: the compiler may move an access to
// their accumulators in front of the wait, unless wgmma_fence_regs, which drops them too, came first.
RegisterState::Owner* owner_of(RegisterState& r, long long i, int line) {
  int kept = 0;
  RegisterState::Owner* found = nullptr;
  for (int k = 0; k < r.owners; ++k) {
    const RegisterState::Owner o = r.owner[k];
    const bool here = i >= o.begin && i < o.end;
    if (o.group > self->wgmma_waited) {
      r.owner[kept] = o;
      if (here) found = &r.owner[kept];
      ++kept;
    } else if (here && !o.input) {
      machine->hazard("wgmma-fence",
                      std::string(r.name) + " is accessed after wgmma_wait without wgmma_fence_regs in between", line,
                      &me());
    }
  }
  r.owners = kept;
  return found;
}

}  // namespace

void register_read_bad(RegisterState& r, long long i, int line) {
  if (machine->unwinding) return;
  const std::string what = std::string(r.name) + "[" + std::to_string(i) + "]";
  if (i < 0 || i >= r.n) {
    machine->hazard("registers", what + " is outside an array of " + std::to_string(r.n), line, &me());
    return;
  }
  const auto* o = r.owners ? owner_of(r, i, line) : nullptr;
  if (o && !o->input)
    machine->hazard("wgmma-registers", what + " is read while a wgmma may still write it", line, &me());
  else if (!(r.filled[i >> 6] >> (i & 63) & 1))
    machine->hazard("uninitialised", what + " is read before it was written", line, &me());
}

void register_write_bad(RegisterState& r, long long i, int line) {
  if (machine->unwinding) return;
  const std::string what = std::string(r.name) + "[" + std::to_string(i) + "]";
  if (i < 0 || i >= r.n)
    machine->hazard("registers", what + " is outside an array of " + std::to_string(r.n), line, &me());
  else if (r.owners && owner_of(r, i, line))
    machine->hazard("wgmma-registers", what + " is written while a wgmma may still use it", line, &me());
}

void fill_registers(RegisterRun dst, const void* value, int element_bytes) {
  if (!use_registers(dst, true, 0)) return;
  for (int i = 0; i < dst.count; ++i)
    std::memcpy(static_cast<char*>(dst.data) + i * element_bytes, value, static_cast<std::size_t>(element_bytes));
}

// Shared memory.
Cta* Machine::locate(unsigned& addr, int bytes, bool cluster, int line, const char* what) {
  Cta* cta = current->cta;
  if (const unsigned rank = addr >> 24) {
    if (!cluster || rank > ctas.size()) {
      hazard("out-of-range", std::string(what) + " uses an address of another block", line, current);
      return nullptr;
    }
    cta = ctas[rank - 1].get();
    addr &= 0xffffffu;
  }
  if (bytes > 1 && (bytes & (bytes - 1)) == 0 && bytes <= 16 && addr % static_cast<unsigned>(bytes)) {
    hazard("alignment",
           std::string(what) + " of " + std::to_string(bytes) + " bytes at shared address " + std::to_string(addr),
           line, current);
    return nullptr;
  }
  const auto top = kSharedBase + static_cast<unsigned>(launch_.shared_bytes);
  if (addr < kSharedBase || addr + static_cast<unsigned>(bytes) > top) {
    hazard("out-of-range",
           std::string(what) + " of " + std::to_string(bytes) + " bytes at shared address " + std::to_string(addr) +
               ", outside [" + std::to_string(kSharedBase) + ", " + std::to_string(top) + ")",
           line, current);
    return nullptr;
  }
  if (cta != current->cta) {
    if (cta->alive == 0) {
      hazard("cluster", std::string(what) + " reaches a block that has ended", line, current);
    } else if (hazards() && !current->view().knows(cta->threads[0]->actor, 1)) {
      hazard("cluster", std::string(what) + " reaches a block that is not known to have started", line, current);
    }
    bool known = false;
    for (auto& r : cta->remote)
      if (r.actor == current->actor) {
        r.epoch = current->own[0].known;
        r.line = line;
        known = true;
      }
    if (!known) cta->remote.push_back({current->actor, current->own[0].known, line});
  }
  return cta;
}

void Machine::touch(Cta& cta, unsigned addr, int bytes, bool write, const View& view, const Access& by, const Thread* t,
                    const char* what) {
  if (!hazards()) return;
  Conflict kind{};
  Access other;
  unsigned at = addr;
  const unsigned end = addr + static_cast<unsigned>(bytes);
  while (at < end) {
    const unsigned next = std::min(end, (at / 4 + 1) * 4);
    const auto mask = static_cast<std::uint8_t>(((1u << (next - at)) - 1u) << (at & 3));
    const int i = static_cast<int>(at / 4);
    const bool clean =
        write ? cta.shadow.write(i, mask, view, by, &kind, &other) : cta.shadow.read(i, mask, view, by, &kind, &other);
    if (!clean) {
      const std::string place = " shared address " + std::to_string(at);
      const std::string actor = other.mask ? name_of(other.actor) : std::string();
      const std::string me_name = by.async ? name_of(by.actor) : "thread " + std::to_string(t ? t->self.thread : -1);
      switch (kind) {
        case Conflict::race_write_read:
          hazard("race", me_name + " reads" + place + " (" + what + ") unordered with the write by " + actor, by.line,
                 t, other.line);
          break;
        case Conflict::race_write_write:
          hazard("race", me_name + " writes" + place + " (" + what + ") unordered with the write by " + actor, by.line,
                 t, other.line);
          break;
        case Conflict::race_read_write:
          hazard("race", me_name + " writes" + place + " (" + what + ") unordered with the read by " + actor, by.line,
                 t, other.line);
          break;
        case Conflict::unfenced:
          hazard("proxy-fence",
                 me_name + (write ? " writes" : " reads") + place + " (" + what + ") asynchronously after " + actor +
                     " wrote it without fence_async_shared",
                 by.line, t, other.line);
          break;
        case Conflict::uninitialised:
          hazard("uninitialised", me_name + " reads" + place + " (" + what + "), which was never written", by.line, t);
          break;
        case Conflict::barrier:
          hazard("mbarrier", me_name + " accesses" + place + " (" + what + "), which holds an mbarrier", by.line, t);
          break;
      }
    }
    at = next;
  }
}

namespace {
Access generic(const Thread& t, int line) {
  Access a;
  a.actor = static_cast<std::uint16_t>(t.actor);
  a.epoch = t.own[0].known;
  a.line = static_cast<std::uint16_t>(line);
  return a;
}
}  // namespace

void count_banks(const Thread& t, unsigned addr, int bytes, int line) {
  if (machine->launch().options.banks) machine->banks.access(t.warp, t.self.thread & 31, addr, bytes, line);
}

void load_shared(RegisterRun dst, unsigned addr, int bytes, bool cluster, Site site) {
  const char* what = cluster ? "ld_shared_cluster" : "ld_shared";
  if (!use_registers(dst, true, site.line)) return;
  Thread& t = me();
  Cta* cta = machine->locate(addr, bytes, cluster, site.line, what);
  if (!cta) return;
  machine->touch(*cta, addr, bytes, false, t.view(), generic(t, site.line), &t, what);
  count_banks(t, addr, bytes, site.line);
  std::memcpy(dst.data, machine->memory(*cta, addr), static_cast<std::size_t>(bytes));
}

void store_shared(unsigned addr, RegisterRun src, int bytes, bool cluster, Site site) {
  const char* what = cluster ? "st_shared_cluster" : "st_shared";
  if (!use_registers(src, false, site.line)) return;
  Thread& t = me();
  Cta* cta = machine->locate(addr, bytes, cluster, site.line, what);
  if (!cta) return;
  machine->touch(*cta, addr, bytes, true, t.view(), generic(t, site.line), &t, what);
  count_banks(t, addr, bytes, site.line);
  std::memcpy(machine->memory(*cta, addr), src.data, static_cast<std::size_t>(bytes));
}

unsigned map_address(unsigned addr, int rank, Site site) {
  if (rank < 0 || rank >= self->cluster_size) {
    machine->hazard("cluster",
                    "mapa to rank " + std::to_string(rank) + " of a cluster of " + std::to_string(self->cluster_size),
                    site.line, &me());
    return addr;
  }
  return (addr & 0xffffffu) | static_cast<unsigned>(rank + 1) << 24;
}

// Global memory.
GlobalRange* Machine::find(const void* p, std::size_t bytes, bool write, int line, const Thread* t, const char* what) {
  const auto a = reinterpret_cast<std::uintptr_t>(p);
  auto holds = [&](const GlobalRange& g) { return a >= g.begin && a + bytes <= g.end; };
  if (last_range_ >= ranges_.size() || !holds(ranges_[last_range_])) {
    std::size_t i = 0;
    while (i < ranges_.size() && !holds(ranges_[i])) ++i;
    if (i == ranges_.size()) {
      std::string near;
      for (const auto& g : ranges_)
        if (a + 65536 >= g.begin && a < g.end + 65536)
          near = ", at byte " + std::to_string(static_cast<std::int64_t>(a - g.begin)) + " of " + g.allocation->name +
                 " of " + std::to_string(g.end - g.begin) + " bytes";
      hazard("out-of-range", std::string(what) + " of " + std::to_string(bytes) + " bytes outside every buffer" + near,
             line, t);
      return nullptr;
    }
    last_range_ = i;
  }
  GlobalRange* g = &ranges_[last_range_];
  if (write && !g->allocation->writable) {
    hazard("out-of-range", std::string(what) + " writes the input " + g->allocation->name, line, t);
    return nullptr;
  }
  if (t && launch_.options.after_launch && !t->dependency_waited)
    hazard("grid-dependency", std::string(what) + " before griddepcontrol_wait", line, t);
  return g;
}

void Machine::touch_global(GlobalRange& g, const void* p, int bytes, bool write, Thread& t, const Access& by) {
  if (g.cells.empty()) return;
  const std::size_t first = (reinterpret_cast<std::uintptr_t>(p) - g.begin) / 2;
  const std::size_t end = (reinterpret_cast<std::uintptr_t>(p) - g.begin + static_cast<std::size_t>(bytes) + 1) / 2;
  const View view = t.view();
  for (std::size_t i = first; i < end; ++i) {
    GlobalCell& c = g.cells[i];
    const std::string& name = g.allocation->name;
    if (c.cluster == 0) {
      if (!write && !g.allocation->initialised)
        hazard("uninitialised", "byte " + std::to_string(2 * i) + " of " + name + " is read before it was written",
               by.line, &t);
    } else if (c.cluster != cluster_number && bytes > 1) {
      hazard("race",
             "byte " + std::to_string(2 * i) + " of " + name + " is " + (write ? "written" : "read") +
                 " here and was written by another block",
             by.line, &t, c.line);
    } else if (c.cluster == cluster_number && bytes > 1 && !view.knows(c.actor, c.epoch)) {
      hazard("race",
             "byte " + std::to_string(2 * i) + " of " + name + " is " + (write ? "written" : "read") +
                 " unordered with the write by " + name_of(c.actor),
             by.line, &t, c.line);
    }
    if (write) c = {by.epoch, cluster_number, by.actor, by.line};
  }
}

void load_global(RegisterRun dst, const void* p, int bytes, Site site) {
  if (!use_registers(dst, true, site.line)) return;
  Thread& t = me();
  if (reinterpret_cast<std::uintptr_t>(p) % static_cast<unsigned>(bytes)) {
    machine->hazard("alignment", "ld_global of " + std::to_string(bytes) + " bytes from an unaligned address",
                    site.line, &t);
    return;
  }
  GlobalRange* g = machine->find(p, static_cast<std::size_t>(bytes), false, site.line, &t, "ld_global");
  if (!g) {
    std::memset(dst.data, 0xff, static_cast<std::size_t>(bytes));
    return;
  }
  machine->touch_global(*g, p, bytes, false, t, generic(t, site.line));
  std::memcpy(dst.data, p, static_cast<std::size_t>(bytes));
}

void store_global(void* p, RegisterRun src, int bytes, Site site) {
  if (!use_registers(src, false, site.line)) return;
  Thread& t = me();
  if (reinterpret_cast<std::uintptr_t>(p) % static_cast<unsigned>(bytes)) {
    machine->hazard("alignment", "st_global of " + std::to_string(bytes) + " bytes to an unaligned address", site.line,
                    &t);
    return;
  }
  GlobalRange* g = machine->find(p, static_cast<std::size_t>(bytes), true, site.line, &t, "st_global");
  if (!g) return;
  machine->touch_global(*g, p, bytes, true, t, generic(t, site.line));
  std::memcpy(p, src.data, static_cast<std::size_t>(bytes));
}

// cp.async.
void copy_async(unsigned smem, const void* g, int bytes, bool pred, Site site) {
  Thread& t = me();
  if (bytes != 4 && bytes != 8 && bytes != 16) {
    machine->hazard("alignment", "cp_async of " + std::to_string(bytes) + " bytes", site.line, &t);
    return;
  }
  if (!machine->locate(smem, bytes, false, site.line, "cp_async")) return;
  if (pred) {
    if (reinterpret_cast<std::uintptr_t>(g) % static_cast<unsigned>(bytes))
      return machine->hazard("alignment", "cp_async of " + std::to_string(bytes) + " bytes from an unaligned address",
                             site.line, &t);
    GlobalRange* range = machine->find(g, static_cast<std::size_t>(bytes), false, site.line, &t, "cp_async");
    if (!range) return;
    machine->touch_global(*range, g, bytes, false, t, generic(t, site.line));
  }
  if (t.copy_own < 0) {
    t.copy_own = t.owns++;
    t.own[t.copy_own] = {machine->add_actor(ActorKind::copies, t.self.thread, t.cta, 0), 0, 0};
  }
  Access a;
  a.actor = static_cast<std::uint16_t>(t.own[t.copy_own].actor);
  a.epoch = t.copies.committed + 1;
  a.line = static_cast<std::uint16_t>(site.line);
  machine->touch(*t.cta, smem, bytes, true, t.view(), a, &t, "cp_async");
  count_banks(t, smem, bytes, site.line);
  t.copies.last_used = a.epoch;
  t.copies.last_line = site.line;
  t.copies.ops.push_back({smem, g, bytes, pred, a.epoch});
  if (machine->effect_now()) machine->flush_copies(t, a.epoch);
}

void Machine::flush_copies(Thread& t, Epoch up_to) {
  std::size_t done = 0;
  for (; done < t.copies.ops.size() && t.copies.ops[done].group <= up_to; ++done) {
    const CopyOp& op = t.copies.ops[done];
    std::uint8_t* dst = memory(*t.cta, op.smem);
    if (op.read) std::memcpy(dst, op.global, static_cast<std::size_t>(op.bytes));
    else std::memset(dst, 0, static_cast<std::size_t>(op.bytes));
  }
  t.copies.ops.erase(t.copies.ops.begin(), t.copies.ops.begin() + static_cast<std::ptrdiff_t>(done));
}

void copy_async_commit(Site) { ++me().copies.committed; }

void copy_async_wait(int n, Site) {
  Thread& t = me();
  if (t.copies.committed <= static_cast<Epoch>(n)) return;
  const Epoch upto = t.copies.committed - static_cast<Epoch>(n);
  machine->flush_copies(t, upto);
  if (upto > t.copies.waited) t.copies.waited = upto;
  if (t.copy_own >= 0 && t.own[t.copy_own].known < upto) t.own[t.copy_own].known = upto;
}

}  // namespace wl::emu
