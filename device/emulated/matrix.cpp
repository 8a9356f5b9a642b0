// Warp-wide instructions: ldmatrix, stmatrix, mma.sync, shuffle; and setmaxnreg.
#include <cstring>

#include "machine.h"
#include "tiles.h"

namespace wl::emu {
namespace {

// The part of a matrix move done for the lane that names a row: 16 bytes of shared memory.
std::uint8_t* row_of(Thread& t, unsigned addr, bool write, int line, const char* what) {
  Thread* saved = machine->current;
  machine->current = &t;
  Cta* cta = machine->locate(addr, 16, false, line, what);
  if (cta) {
    Access a;
    a.actor = static_cast<std::uint16_t>(t.actor);
    a.epoch = t.own[0].known;
    a.line = static_cast<std::uint16_t>(line);
    machine->touch(*cta, addr, 16, write, t.view(), a, &t, what);
  }
  machine->current = saved;
  return cta ? machine->memory(*cta, addr) : nullptr;
}

void count_matrix_banks(const Warp& w, int count) {
  if (!machine->launch().options.banks) return;
  for (int m = 0; m < count; ++m) {
    unsigned words[32];
    for (int r = 0; r < 8; ++r)
      for (int k = 0; k < 4; ++k) words[4 * r + k] = w.argument[8 * m + r].value + 4u * static_cast<unsigned>(k);
    machine->count_rows(words, 32);
  }
}

}  // namespace

void load_matrix(RegisterRun dst, unsigned addr, int count, bool transposed, Site site) {
  if (!use_registers(dst, true, site.line)) return;
  if (!machine->meet("ldmatrix", site.line, dst, {}, {}, addr)) return;
  Warp& w = *me().warp;
  count_matrix_banks(w, count);
  for (int m = 0; m < count; ++m) {
    std::uint16_t tile[8][8] = {};
    for (int r = 0; r < 8; ++r) {
      const int l = 8 * m + r;
      if (const auto* p = row_of(*w.lane[l], w.argument[l].value, false, site.line, "ldmatrix"))
        std::memcpy(tile[r], p, 16);
    }
    for (int l = 0; l < 32; ++l) {
      auto* out = static_cast<std::uint16_t*>(w.argument[l].r[0].data) + 2 * m;
      for (int e = 0; e < 2; ++e) {
        const int major = l / 4, minor = 2 * (l % 4) + e;
        out[e] = transposed ? tile[minor][major] : tile[major][minor];
      }
    }
  }
  machine->part(w);
}

void store_matrix(unsigned addr, RegisterRun src, int count, bool transposed, Site site) {
  if (!use_registers(src, false, site.line)) return;
  if (!machine->meet("stmatrix", site.line, src, {}, {}, addr)) return;
  Warp& w = *me().warp;
  count_matrix_banks(w, count);
  for (int m = 0; m < count; ++m) {
    std::uint16_t tile[8][8];
    for (int l = 0; l < 32; ++l) {
      const auto* in = static_cast<const std::uint16_t*>(w.argument[l].r[0].data) + 2 * m;
      for (int e = 0; e < 2; ++e) {
        const int major = l / 4, minor = 2 * (l % 4) + e;
        (transposed ? tile[minor][major] : tile[major][minor]) = in[e];
      }
    }
    for (int r = 0; r < 8; ++r) {
      const int l = 8 * m + r;
      if (auto* p = row_of(*w.lane[l], w.argument[l].value, true, site.line, "stmatrix")) std::memcpy(p, tile[r], 16);
    }
  }
  machine->part(w);
}

// Fragments hold runs of 32 bits of neighbours along k; k is eight runs.
void mma_sync(RegisterRun d, RegisterRun a, RegisterRun b, Element type, Site site) {
  const bool ok =
      use_registers(a, false, site.line) & use_registers(b, false, site.line) & use_registers(d, false, site.line);
  if (!ok) return;
  use_registers(d, true, site.line);
  if (!machine->meet("mma", site.line, d, a, b, 0)) return;
  Warp& w = *me().warp;
  const bool integers = type == Element::int8;
  const int run = 4 / bytes_of(type), k = 8 * run;
  float at[16 * 32], bt[32 * 8], c[16 * 8];
  const auto place = [](int l, int e) { return (l / 4 + 8 * (e / 2)) * 8 + 2 * (l % 4) + e % 2; };
  for (int l = 0; l < 32; ++l) {
    const int g = l / 4, q = l % 4;
    const Warp::Argument& arg = w.argument[l];
    for (int e = 0; e < 4; ++e) c[place(l, e)] = integers ? 0 : static_cast<const float*>(arg.r[0].data)[e];
    float x[16], y[8];
    decode(type, arg.r[1].data, 4 * run, x);
    decode(type, arg.r[2].data, 2 * run, y);
    for (int e = 0; e < 4 * run; ++e)
      at[(g + 8 * (e / run % 2)) * k + run * q + e % run + 4 * run * (e / run / 2)] = x[e];
    for (int e = 0; e < 2 * run; ++e) bt[(run * q + e % run + 4 * run * (e / run)) * 8 + g] = y[e];
  }
  for (int i = 0; i < 16; ++i) accumulate_row(c + 8 * i, at + k * i, bt, 8, k);
  for (int l = 0; l < 32; ++l)
    for (int e = 0; e < 4; ++e) {
      void* to = w.argument[l].r[0].data;
      if (integers) static_cast<int*>(to)[e] += static_cast<int>(c[place(l, e)]);
      else static_cast<float*>(to)[e] = c[place(l, e)];
    }
  machine->part(w);
}

unsigned shuffle(unsigned bits, int lane, Site site) {
  Warp& w = *me().warp;
  const int mine = self->thread & 31;
  RegisterRun source{nullptr, nullptr, lane, 0};
  if (machine->meet("shfl", site.line, source, {}, {}, bits)) {
    unsigned out[32];
    for (int l = 0; l < w.size; ++l) out[l] = w.argument[w.argument[l].r[0].at].value;
    for (int l = 0; l < w.size; ++l) w.argument[l].value = out[l];
    machine->part(w);
  }
  return w.argument[mine].value;
}

void set_registers(int count, bool increase, Site site) {
  Thread& t = me();
  Warp& w = *t.warp;
  if (count < 24 || count > 256 || count % 8)
    return machine->hazard("registers", "reg_alloc and reg_dealloc take a multiple of 8 from 24 to 256", site.line, &t);
  if (!machine->meet(increase ? "reg_alloc" : "reg_dealloc", site.line, {}, {}, {}, 0)) return;
  Cta& cta = *t.cta;
  if (increase ? count < w.registers : count > w.registers)
    machine->hazard("registers",
                    std::string(increase ? "reg_alloc to fewer" : "reg_dealloc to more") + " registers than the " +
                        std::to_string(w.registers) + " the warp has",
                    site.line, &t);
  if (increase) {
    while (cta.registers_free < count - w.registers) {
      cta.register_waiters.push_back(&t);
      machine->suspend("reg_alloc", site.line);
    }
  }
  cta.registers_free += w.registers - count;
  w.registers = count;
  for (Thread* waiter : cta.register_waiters) machine->wake(waiter);
  cta.register_waiters.clear();
  machine->part(w);
}

void grid_dependency_wait(Site) { me().dependency_waited = true; }

}  // namespace wl::emu
