// Arithmetic of the matrix units on small tiles; warp-wide instructions: ldmatrix, stmatrix,
// mma.sync, shuffle; and setmaxnreg.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include "base/dtype.h"
#include "calls.h"
#include "convert.h"
#include "exact.h"
#include "machine.h"
#include "tensor_core.h"

namespace wl::emu {
using warploom::Dtype;

namespace {
// W columns of a row.
template <int W>
inline __attribute__((always_inline)) void accumulate(float* __restrict c,
                                                      const float* __restrict a,
                                                      const float* __restrict b, int n, int k) {
  float s[W];
  for (int i = 0; i < W; ++i)
    s[i] = c[i];
  for (int q = 0; q < k; ++q)
    for (int i = 0; i < W; ++i)
      s[i] += a[q] * b[q * n + i];
  for (int i = 0; i < W; ++i)
    c[i] = s[i];
}
}  // namespace

void decode(Element e, const void* data, int count, float* out) {
  for (int i = 0; e == Element::bf16 && i < count; ++i)
    out[i] = to_float(static_cast<const bf16*>(data)[i]);  // quick
  if (e == Element::bf16) return;
  constexpr Dtype kTypes[] = {Dtype::bf16, Dtype::f16,  Dtype::f32,
                              Dtype::e4m3, Dtype::e5m2, Dtype::i8};
  double wide[16];
  warploom::load_run(kTypes[static_cast<int>(e)], data, 0, 1, count, wide);
  for (int i = 0; i < count; ++i)
    out[i] = static_cast<float>(wide[i]);
  for (int i = 0; e == Element::tf32 && i < count; ++i)
    out[i] = float_of(bits_of(out[i]) & 0xffffe000u);
}

void place_a(Element e, const void* registers, int lane, float* tile) {
  float x[16];
  // elements a register, a row
  const int per = 4 / bytes_of(e);
  const int k = 8 * per;
  decode(e, registers, 4 * per, x);
  for (int i = 0; i < 4 * per; ++i) {
    const int r = i / per;
    const int row = lane / 4 + 8 * (r % 2);
    const int column = k / 2 * (r / 2) + lane % 4 * per + i % per;
    tile[row * k + column] = x[i];
  }
}

__attribute__((target_clones("avx2", "default"))) void accumulate_row(float* __restrict c,
                                                                      const float* __restrict a,
                                                                      const float* __restrict b,
                                                                      int n, int k) {
  int j = 0;
  for (; j + 64 <= n; j += 64)
    accumulate<64>(c + j, a, b + j, n, k);
  for (; j + 32 <= n; j += 32)
    accumulate<32>(c + j, a, b + j, n, k);
  for (; j < n; j += 8)
    accumulate<8>(c + j, a, b + j, n, k);
}

// ldmatrix and stmatrix: lane 8m + r names row r of matrix m; each lane holds two neighbouring
// elements of every matrix.
void move_matrix(RegisterRun registers, unsigned addr, int count, bool transposed, bool store) {
  const char* what = store ? "stmatrix" : "ldmatrix";
  if (!use_registers(registers, !store)) return;
  if (!machine->meet(what, registers, {}, {}, addr)) return;
  Warp& w = *me().warp;
  if (machine->launch().options.banks) {
    unsigned rows[32];
    for (int l = 0; l < 32; ++l)
      rows[l] = w.argument[l].value;
    const auto addressing = static_cast<uint32_t>((1ull << 8 * count) - 1);
    machine->banks.instruction(rows, addressing, 16, self->line);
  }
  for (int m = 0; m < count; ++m) {
    uint8_t* row[8];
    for (int r = 0; r < 8; ++r) {
      Thread& from = *w.lane[8 * m + r];
      const unsigned address = w.argument[8 * m + r].value;
      row[r] = machine->access_shared(from, address, 16, store, false, what);
    }
    for (int i = 0; i < 64; ++i) {
      const int lane = i / 2;
      const int major = lane / 4;
      const int minor = 2 * (lane % 4) + i % 2;
      if (uint8_t* in_memory = row[transposed ? minor : major]) {
        in_memory += 2 * (transposed ? major : minor);
        auto* const held = static_cast<uint8_t*>(w.argument[lane].r[0].data);
        auto* const in_register = held + 4 * m + 2 * (i % 2);
        if (store)
          std::memcpy(in_memory, in_register, 2);
        else
          std::memcpy(in_register, in_memory, 2);
      }
    }
  }
  machine->part(w);
}

// Fragments hold runs of 32 bits of neighbours along k; k is eight runs.
namespace {
// A step along k of fragments of 8-bit floats: the even pairs of neighbours come first.
int step_of(int k) {
  return k % 4 / 2 * 16 + k / 4 * 2 + k % 2;
}

// The tile c of 16 by 8 sums plus a [16, k] times b [k, 8]. 8-bit floats are converted and summed
// apart, in two steps, and that sum is added as an fp32 number.
void multiply_fragments(Element type, float* c, const float* a, const float* b, int k) {
  if (type == Element::int8) {
    for (int i = 0; i < 16; ++i)
      accumulate_row(c + 8 * i, a + k * i, b, 8, k);
    return;
  }
  const CoreSum how = core_sum_of(type, false);
  if (bytes_of(type) > 1) {
    const CoreFactor factor(b, k, 8);
    for (int i = 0; i < 16; ++i)
      factor.add_row(how, c + 8 * i, a + k * i);
    return;
  }
  float steps_of_b[32 * 8];
  for (int q = 0; q < k; ++q)
    std::copy_n(b + 8 * q, 8, steps_of_b + 8 * step_of(q));
  const CoreFactor factor(steps_of_b, k, 8);
  for (int i = 0; i < 16; ++i) {
    float steps_of_a[32];
    float sum[8] = {};
    for (int q = 0; q < k; ++q)
      steps_of_a[step_of(q)] = a[k * i + q];
    factor.add_row(how, sum, steps_of_a);
    for (int j = 0; j < 8; ++j)
      c[8 * i + j] += sum[j];
  }
}
}  // namespace

void mma_sync(RegisterRun d, RegisterRun a, RegisterRun b, Element type) {
  for (const RegisterRun& r : {a, b, d})
    if (!use_registers(r, false)) return;
  use_registers(d, true);
  if (!machine->meet("mma", d, a, b)) return;
  Warp& w = *me().warp;
  const int per = 4 / bytes_of(type);
  const int k = 8 * per;
  float at[16 * 32];
  float bt[32 * 8];
  float c[16 * 8];
  float y[8];
  for (int l = 0; l < 32; ++l) {
    place_a(type, w.argument[l].r[1].data, l, at);
    decode(type, w.argument[l].r[2].data, 2 * per, y);
    for (int e = 0; e < 2 * per; ++e) {
      const int along_k = l % 4 * per + e % per + k / 2 * (e / per);
      bt[along_k * 8 + l / 4] = y[e];
    }
  }
  auto for_each_sum = [&](auto f) {
    for (int l = 0; l < 32; ++l) {
      char* const sums = static_cast<char*>(w.argument[l].r[0].data);
      for (int e = 0; e < 4; ++e) {
        const int row = l / 4 + 8 * (e / 2);
        const int column = 2 * (l % 4) + e % 2;
        f(sums + 4 * e, c[row * 8 + column]);
      }
    }
  };
  add_product(type, true, for_each_sum, [&] { multiply_fragments(type, c, at, bt, k); });
  machine->part(w);
}

unsigned shuffle(unsigned bits, int lane) {
  Warp& w = *me().warp;
  const int mine = self->thread & 31;
  RegisterRun source{nullptr, nullptr, lane, 0};
  if (machine->meet("shfl", source, {}, {}, bits)) {
    unsigned out[32];
    for (int l = 0; l < w.size; ++l)
      out[l] = w.argument[w.argument[l].r[0].at].value;
    for (int l = 0; l < w.size; ++l)
      w.argument[l].value = out[l];
    machine->part(w);
  }
  return w.argument[mine].value;
}

void shuffle_registers(RegisterRun dst, RegisterRun src, int bytes, int lane, bool take) {
  unsigned bits = 0;
  if (use_registers(src, false)) std::memcpy(&bits, src.data, static_cast<size_t>(bytes));
  bits = shuffle(bits, lane);
  if (take && use_registers(dst, true)) std::memcpy(dst.data, &bits, static_cast<size_t>(bytes));
}

void set_registers(int count, bool increase) {
  Thread& t = me();
  Warp& w = *t.warp;
  if (count < 24 || count > 256 || count % 8)
    return machine->hazard("registers",
                           "reg_alloc and reg_dealloc take a multiple of 8 from 24 to 256");
  if (!machine->meet(increase ? "reg_alloc" : "reg_dealloc")) return;
  Cta& cta = *t.cta;
  if (increase ? count < w.registers : count > w.registers)
    machine->hazard("registers", "{} registers than the {} the warp has",
                    increase ? "reg_alloc to fewer" : "reg_dealloc to more", w.registers);
  while (increase && cta.registers_free < count - w.registers)
    machine->suspend("reg_alloc", &cta.register_waiters);
  cta.registers_free += w.registers - count;
  w.registers = count;
  machine->wake_all(cta.register_waiters);
  machine->part(w);
}

void griddepcontrol_wait(Site) {
  me().dependency_waited = true;
}

void griddepcontrol_launch_dependents(Site) {
  if (machine->launch().options.after_launch && !me().dependency_waited)
    machine->hazard("grid-dependency",
                    "griddepcontrol_launch_dependents before griddepcontrol_wait: the next kernel "
                    "waits for this one alone");
}
}  // namespace wl::emu
