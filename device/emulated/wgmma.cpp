// wgmma: collected from a warpgroup's 128 threads, carried out in order between the last's issue
// and the first wait for it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "calls.h"
#include "clock.h"
#include "kernel_head.h"
#include "machine.h"
#include "shadow.h"
#include "tensor_core.h"

namespace wl::emu {
namespace {
struct Descriptor {
  unsigned start;
  unsigned lbo;
  unsigned sbo;
  int mode;

  explicit Descriptor(unsigned long long d) : mode(static_cast<int>(d >> 62)) {
    for (unsigned* field : {&start, &lbo, &sbo}) {
      *field = static_cast<unsigned>(d & 0x3fff) << 4;
      d >>= 16;
    }
  }
};

// Calls piece(address, mn, k) for every 16 bytes of the operand: elements (mn, k..) when K-major,
// (mn.., k) when MN-major. They lie in lines of bytes, a row's 32 along k or one k's along the
// rows, eight lines to a group and W bytes to a chunk.
void for_each_piece(const Descriptor& d, int rows, int element_bytes, bool mn_major,
                    const auto& piece) {
  const auto w = static_cast<unsigned>(swizzle_width(d.mode));
  const int lines = mn_major ? 16 : rows;
  const int bytes = mn_major ? rows * element_bytes : 32;
  unsigned chunks = d.lbo;
  unsigned groups = d.sbo;
  if (mn_major && !d.mode) std::swap(chunks, groups);
  for (int l = 0; l < lines; ++l)
    for (int b = 0; b < bytes; b += 16) {
      const auto line = static_cast<unsigned>(l);
      const auto byte = static_cast<unsigned>(b);
      const unsigned within = line % 8 * w + byte % w;
      const unsigned off = byte / w * chunks + line / 8 * groups + within;
      const unsigned address = swizzled(d.start + off, d.mode);
      const int along = b / element_bytes;
      if (mn_major)
        piece(address, along, l);
      else
        piece(address, l, along);
    }
}

bool inside(unsigned addr) {
  const unsigned end = kSharedBase + static_cast<unsigned>(machine->launch().shared_bytes);
  return addr >= kSharedBase && addr + 16 <= end;
}

// The smallest of several clocks: what all of them know.
struct Meet {
  std::vector<Seen> least;
  View view;

  explicit Meet(const std::vector<Clock>& clocks) : view(clocks[0]) {
    if (clocks.size() == 1) return;
    for (const auto& c : clocks) {
      const size_t shared = std::min(view.seen.size(), View(c).seen.size());
      view.seen = view.seen.first(shared);
    }
    least.assign(view.seen.begin(), view.seen.end());
    for (const auto& c : clocks)  // every step of every wgmma comes through here
      for (size_t i = 0; i < least.size(); ++i) {
        Seen& one = least[i];
        const Seen& other = (*c)[i];
        one.known = std::min(one.known, other.known);
        one.fenced = std::min(one.fenced, other.fenced);
      }
    view.seen = least;
  }
};

// Lends registers [at, at + count) to `group`; chaining on exactly the same range is free of
// fences.
void lend(const RegisterRun& r, bool input, Epoch group) {
  RegisterState* s = r.state;
  if (!s) return;
  if (r.at < 0 || r.at + r.count > s->n)
    return machine->hazard("registers", "wgmma uses registers outside {}", s->name);
  if (self->wgmma_fences == 0 || s->touched > self->wgmma_fences)
    machine->hazard("wgmma-fence", "{} was accessed after the last wgmma_fence", s->name);
  else if (s->loose && !input)
    machine->hazard("wgmma-fence", "{} was accessed after the last wgmma_fence_regs", s->name);
  drop_owners(*s, [](const RegisterState::Owner& o) { return o.group <= self->wgmma_waited; });
  RegisterState::Owner* same = nullptr;
  for (auto* o = s->owner; o < s->owner + s->owners; ++o) {
    if (o->begin == r.at && o->end == r.at + r.count && o->input == input)
      same = o;
    else if (o->begin < r.at + r.count && r.at < o->end && !(o->input && input))
      machine->hazard("wgmma-registers", "{} is used by two wgmma of different shape at once",
                      s->name);
  }
  if (same)
    same->group = group;
  else if (s->owners < RegisterState::kOwners)
    s->owner[s->owners++] = {r.at, r.at + r.count, group, input};
  else
    machine->hazard("wgmma-registers", "too many wgmma ranges in {}", s->name);
}

// Row by row: four threads of a warp, from `first` on, hold one, two neighbouring columns of every
// eight each. `f` of each sum in a register, `half` on, and its place in the row.
void for_each_of_row(const WgmmaOp& op, int first, int half, float* row, const auto& f) {
  for (int q = 0; q < 4; ++q) {
    float* const sums = static_cast<float*>(op.acc[first + q].data) + half;
    for (int j = 0; j < op.op.n / 8; ++j)
      for (int e = 0; e < 2; ++e)
        f(sums + 4 * j + e, row[8 * j + 2 * q + e]);
  }
}

void carry_out(Warpgroup& g, WgmmaOp& op) {
  const Wgmma& w = op.op;
  const int bytes = bytes_of(w.type);
  const int k = 32 / bytes;
  const int n = w.n;
  const uint8_t* memory = g.cta->memory.data();
  static float a[64 * 32];
  static float b[32 * 256];
  static float piece[16];
  static float row[256];
  // An operand, element (r, kk) to out[r · by_row + kk · by_k].
  const auto gather = [&](unsigned long long d, int rows, bool mn_major, float* out, int by_row,
                          int by_k) {
    for_each_piece(Descriptor(d), rows, bytes, mn_major, [&](unsigned addr, int r, int kk) {
      if (!inside(addr)) return;
      decode(w.type, memory + addr, 16 / bytes, piece);
      for (int i = 0; i < 16 / bytes; ++i)
        out[r * by_row + kk * by_k + i * (mn_major ? by_row : by_k)] = piece[i];
    });
  };
  if (!w.a_in_registers) gather(w.a, 64, w.transposed_a, a, k, 1);
  for (int t = 0; w.a_in_registers && t < 128; ++t)
    place_a(w.type, op.a[t].data, t % 32, a + t / 32 * 16 * k);
  gather(w.b, n, w.transposed_b, b, 1, n);
  static std::optional<CoreFactor> factor;
  const bool integers = w.type == Element::int8;
  if (!integers) factor.emplace(b, k, n);
  const CoreSum how = core_sum_of(w.type, true);
  for (int m = 0; m < 64; ++m) {
    const int first = m / 16 * 32 + m % 8 * 4;
    const int half = m / 8 % 2 * 2;
    auto for_each_sum = [&](const auto& f) { for_each_of_row(op, first, half, row, f); };
    add_product(w.type, w.accumulate, for_each_sum, [&] {
      if (integers)
        accumulate_row(row, a + m * k, b, n, k);
      else
        factor->add_row(how, row, a + m * k);
    });
  }
}

// What all threads have issued may read its operands from now on.
void look_at_operands(Warpgroup& g, WgmmaOp& op) {
  const Meet known(op.clocks);
  const Access by = access_by(g.actor, op.group, op.line, true);
  const int bytes = bytes_of(op.op.type);
  bool outside = false;
  auto look = [&](unsigned long long d, int rows, bool mn_major) {
    for_each_piece(Descriptor(d), rows, bytes, mn_major, [&](unsigned addr, int, int) {
      if (!inside(addr))
        outside = true;
      else
        machine->touch(g.cta->shadow, addr, 16, false, known.view, by, "wgmma");
    });
  };
  if (!op.op.a_in_registers) look(op.op.a, 64, op.op.transposed_a);
  look(op.op.b, op.op.n, op.op.transposed_b);
  if (outside) machine->hazard("out-of-range", "a wgmma operand reaches outside shared memory");
}

void run_until(Warpgroup& g, uint64_t end) {
  while (g.first < end && !g.ops.empty() && g.ops.front().here == 128) {
    carry_out(g, g.ops.front());
    g.ops.pop_front();
    ++g.first;
  }
}
}  // namespace

void wgmma_fence(Site) {
  ++self->wgmma_fences;
}

// wgmma_fence_regs: ordinary accesses stay on their side of it, so it counts as one where
// wgmma_fence is concerned.
void wgmma_pin(RegisterRun r) {
  RegisterState* s = r.state;
  if (!s) return;
  s->touched = self->wgmma_fences + 1;
  if (r.at == 0 && r.count == s->n) s->loose = false;
  drop_owners(*s, [&](const RegisterState::Owner& o) {
    const bool inside_of_r = o.begin >= r.at && o.end <= r.at + r.count;
    return inside_of_r && o.group <= self->wgmma_waited;
  });
}

void wgmma(const Wgmma& w, RegisterRun acc, RegisterRun a) {
  Thread& t = me();
  Warpgroup& g = *t.group;
  const Epoch group = t.wgmma_groups + 1;
  t.wgmma_open = true;
  t.wgmma_line = self->line;
  const uint64_t number = t.wgmma_ops++;
  while (g.first + g.ops.size() <= number)
    g.ops.emplace_back();
  WgmmaOp& op = g.ops[number - g.first];
  if (op.here == 0) {
    op.op = w;
    op.group = group;
    op.line = self->line;
  } else if (op.op != w || op.group != group || op.line != self->line) {
    machine->hazard_beside(op.line, "divergence", "threads of a warpgroup disagree about a wgmma");
    for (;;)
      machine->suspend("a warpgroup that has diverged");
  }
  bool* const filled = acc.state ? acc.state->filled + acc.at : nullptr;
  int held = 0;  // lend() reports the rest
  if (acc.state && acc.at >= 0) held = std::clamp(acc.state->n - acc.at, 0, acc.count);
  if (w.accumulate && held)
    if (const void* missing = std::memchr(filled, false, static_cast<size_t>(held)))
      register_bad(*acc.state, static_cast<const bool*>(missing) - acc.state->filled, false);
  lend(acc, false, group);
  if (w.a_in_registers) lend(a, true, group);
  if (std::ranges::find(op.clocks, t.base) == op.clocks.end()) op.clocks.push_back(t.base);
  std::fill_n(filled, held, true);
  const int slot = t.self.thread & 127;
  op.acc[slot] = acc;
  op.a[slot] = a;
  if (++op.here < 128) return;
  look_at_operands(g, op);
  if (machine->effect_now()) run_until(g, number + 1);
  machine->wake_all(g.waiting);
}

void wgmma_commit(Site) {
  Thread& t = me();
  Warpgroup& g = *t.group;
  ++t.wgmma_groups;
  t.wgmma_open = false;
  if (g.group_end.size() < t.wgmma_groups)
    g.group_end.push_back(t.wgmma_ops);
  else if (g.group_end[t.wgmma_groups - 1] != t.wgmma_ops)
    machine->hazard("divergence", "threads of a warpgroup commit different groups of wgmma");
}

void wgmma_wait(int n) {
  Thread& t = me();
  Warpgroup& g = *t.group;
  if (t.wgmma_groups <= static_cast<Epoch>(n)) return;
  const Epoch upto = t.wgmma_groups - static_cast<Epoch>(n);
  const uint64_t end = g.group_end[upto - 1];
  for (run_until(g, end); g.first < end; run_until(g, end))
    machine->suspend("wgmma_wait", &g.waiting);
  if (upto > self->wgmma_waited) self->wgmma_waited = upto;
  t.base = with_actor(t.base, g.actor, upto);
}

void registers_gone(RegisterState& r) {
  if (!machine || machine->unwinding) return;
  drop_owners(r, [](const RegisterState::Owner& o) { return o.group <= self->wgmma_waited; });
  if (r.owners == 0) return;
  Thread& t = me();
  machine->hazard_of(&t, "wgmma-registers",
                     std::string(r.name) + " goes out of scope while a wgmma may use it",
                     t.wgmma_line);
  // The operation must not write a dead array: this thread's part goes to a sink.
  static float sink[256];
  for (WgmmaOp& op : t.group->ops)
    for (RegisterRun* run : {&op.acc[t.self.thread & 127], &op.a[t.self.thread & 127]})
      if (run->state == &r) *run = {sink, nullptr, 0, run->count};
}
}  // namespace wl::emu
