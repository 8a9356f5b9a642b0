// Warp-wide instructions: ldmatrix, stmatrix, mma.sync, shuffle; and setmaxnreg.
#include <cstring>

#include "machine.h"
#include "tiles.h"

namespace wl::emu {
namespace {

// The row that lane l of the warp names: 16 bytes of shared memory.
std::uint8_t* row_of(const Warp& w, int l, bool write, int line, const char* what) {
  return machine->access_shared(*w.lane[l], w.argument[l].value, 16, write, false, line, what);
}

void count_matrix_banks(const Warp& w, int count, int line) {
  if (!machine->launch().options.banks) return;
  unsigned addr[32];
  for (int l = 0; l < 32; ++l) addr[l] = w.argument[l].value;
  machine->banks.instruction(addr, static_cast<std::uint32_t>((1ull << 8 * count) - 1), 16, line);
}

}  // namespace

void load_matrix(RegisterRun dst, unsigned addr, int count, bool transposed, Site site) {
  if (!use_registers(dst, true, site.line)) return;
  if (!machine->meet("ldmatrix", site.line, dst, {}, {}, addr)) return;
  Warp& w = *me().warp;
  count_matrix_banks(w, count, site.line);
  for (int m = 0; m < count; ++m) {
    std::uint16_t tile[8][8] = {};
    for (int r = 0; r < 8; ++r) {
      const int l = 8 * m + r;
      if (const auto* p = row_of(w, l, false, site.line, "ldmatrix")) std::memcpy(tile[r], p, 16);
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
  count_matrix_banks(w, count, site.line);
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
      if (auto* p = row_of(w, l, true, site.line, "stmatrix")) std::memcpy(p, tile[r], 16);
    }
  }
  machine->part(w);
}

void mma_sync(RegisterRun d, RegisterRun a, RegisterRun b, Element type, Site site) {
  const bool ok =
      use_registers(a, false, site.line) & use_registers(b, false, site.line) & use_registers(d, false, site.line);
  if (!ok) return;
  use_registers(d, true, site.line);
  if (!machine->meet("mma", site.line, d, a, b, 0)) return;
  Warp& w = *me().warp;
  const int k = type == Element::tf32 ? 8 : 16;
  float at[16 * 16], bt[16 * 8], c[16 * 8];
  for (int l = 0; l < 32; ++l) {
    const int g = l / 4, q = l % 4;
    const Warp::Argument& arg = w.argument[l];
    const auto* d4 = static_cast<const float*>(arg.r[0].data);
    for (int e = 0; e < 4; ++e) c[(g + 8 * (e / 2)) * 8 + 2 * q + e % 2] = d4[e];
    if (type == Element::tf32) {
      const auto* x = static_cast<const float*>(arg.r[1].data);
      const auto* y = static_cast<const float*>(arg.r[2].data);
      for (int e = 0; e < 4; ++e) at[(g + 8 * (e % 2)) * k + q + 4 * (e / 2)] = truncate_tf32(x[e]);
      for (int e = 0; e < 2; ++e) bt[(q + 4 * e) * 8 + g] = truncate_tf32(y[e]);
    } else {
      float x[8], y[4];
      decode(type, arg.r[1].data, 8, x);
      decode(type, arg.r[2].data, 4, y);
      for (int e = 0; e < 8; ++e) at[(g + 8 * (e / 2 % 2)) * k + 2 * q + e % 2 + 8 * (e / 4)] = x[e];
      for (int e = 0; e < 4; ++e) bt[(2 * q + e % 2 + 8 * (e / 2)) * 8 + g] = y[e];
    }
  }
  for (int i = 0; i < 16; ++i) accumulate_row(c + 8 * i, at + k * i, bt, 8, k);
  for (int l = 0; l < 32; ++l) {
    const int g = l / 4, q = l % 4;
    auto* d4 = static_cast<float*>(w.argument[l].r[0].data);
    for (int e = 0; e < 4; ++e) d4[e] = c[(g + 8 * (e / 2)) * 8 + 2 * q + e % 2];
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
                    fmt::format("{} registers than the {} the warp has",
                                increase ? "reg_alloc to fewer" : "reg_dealloc to more", w.registers),
                    site.line, &t);
  while (increase && cta.registers_free < count - w.registers) {
    cta.register_waiters.push_back(&t);
    machine->suspend("reg_alloc", site.line);
  }
  cta.registers_free += w.registers - count;
  w.registers = count;
  for (Thread* waiter : cta.register_waiters) machine->wake(waiter);
  cta.register_waiters.clear();
  machine->part(w);
}

void grid_dependency_wait(Site) { me().dependency_waited = true; }

}  // namespace wl::emu
