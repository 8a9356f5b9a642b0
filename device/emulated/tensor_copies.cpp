// The copy engine: boxes of tensor maps, bulk groups, and the fence between the proxies.
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include "calls.h"
#include "clock.h"
#include "exact.h"
#include "machine.h"
#include "shadow.h"
#include "tensor_map.h"
#include "types.h"

namespace wl::emu {
namespace {
int box_bytes(const TensorMap& m) {
  int64_t n = m.element_bytes;
  for (int d = 0; d < m.rank; ++d)
    n *= m.box[d];
  return static_cast<int>(std::min<int64_t>(n, 1 << 30));  // more than any block has
}

// What the driver and the hardware demand of a map and of the shared address.
bool check_map(const TensorMap& m, unsigned smem, const Coordinates& c, const char* what) {
  std::string wrong;
  const int inner = m.box[0] * m.element_bytes;
  if (m.rank != c.rank)
    wrong = fmt::format("the map has rank {}, the copy {}", m.rank, c.rank);
  else if (inner % 16)
    wrong = fmt::format("the box's rows are {} bytes, no multiple of 16", inner);
  else if (m.swizzle && inner > swizzle_width(m.swizzle))
    wrong = "the box's rows are wider than the swizzle";
  else if (c[0] * m.element_bytes % 16)
    wrong = fmt::format("the box starts at element {} of a row, no multiple of 16 bytes", c[0]);
  else if (reinterpret_cast<uintptr_t>(m.base) % 16)
    wrong = "the tensor is not aligned to 16 bytes";
  else if (smem % (static_cast<unsigned>(swizzle_width(m.swizzle)) * 8))
    wrong = fmt::format("shared address {} is not aligned for the swizzle", smem);
  for (int d = 0; d < c.rank && wrong.empty(); ++d) {
    if (m.box[d] < 1 || m.box[d] > 256)
      wrong = fmt::format("a box side is {}", m.box[d]);
    else if (d && m.strides[d] % 16)
      wrong = "a stride is no multiple of 16 bytes";
  }
  if (!wrong.empty()) machine->hazard("tensor-map", "{}: {}", what, wrong);
  return wrong.empty();
}

// Calls piece(shared address, global address or null, bytes) for every 16-byte piece of the box.
void for_each_piece(const TensorMap& m, unsigned smem, const Coordinates& c, const auto& piece) {
  const int inner = m.box[0] * m.element_bytes;
  int at[5] = {};
  unsigned offset = 0;
  for (;;) {
    bool inside = true;
    int64_t row = 0;
    for (int d = 1; d < m.rank; ++d) {
      const int64_t x = static_cast<int64_t>(c[d]) + at[d];
      inside = inside && x >= 0 && x < m.dims[d];
      row += x * m.strides[d];
    }
    for (int b = 0; b < inner; b += 16) {
      const unsigned addr = swizzled(smem + offset + static_cast<unsigned>(b), m.swizzle);
      const int64_t x0 = static_cast<int64_t>(c[0]) + b / m.element_bytes;
      const int count = 16 / m.element_bytes;
      const int64_t first = std::clamp<int64_t>(-x0, 0, count);
      const int64_t left = inside ? std::clamp<int64_t>(m.dims[0] - x0, 0, count) : 0;
      const int64_t last = std::max(first, left);
      char* g = static_cast<char*>(m.base) + row + x0 * m.element_bytes;
      const int first_byte = static_cast<int>(first) * m.element_bytes;
      const int last_byte = static_cast<int>(last) * m.element_bytes;
      piece(addr, g, first_byte, last_byte);
    }
    offset += static_cast<unsigned>(inner);
    int d = 1;
    while (d < m.rank && ++at[d] == m.box[d])
      at[d++] = 0;
    if (d >= m.rank) return;
  }
}

// The box is read or written; false where the tensor is no memory of the launch.
bool touch_box(const TensorMap& m, unsigned smem, const Coordinates& c, bool write,
               const Access& by, bool combine, const char* what) {
  int64_t bytes = m.dims[0] * m.element_bytes;
  for (int d = 1; d < m.rank; ++d)
    bytes += (m.dims[d] - 1) * m.strides[d];
  const auto size = static_cast<size_t>(std::max<int64_t>(bytes, 0));
  GlobalRange* g = machine->find(m.base, size, write, what);
  if (g == nullptr || g->shadow.empty()) return g != nullptr;
  const auto touch_piece = [&](unsigned, const char* p, int first, int last) {
    if (last > first) machine->touch_global(*g, p + first, last - first, write, by, combine);
  };
  for_each_piece(m, smem, c, touch_piece);
  return true;
}

// Whether a copy of `own` with this mask, below 0: none, goes to a block.
bool reaches(const Cta& own, int mask, const Cta& cta) {
  if (cta.cluster_barrier != own.cluster_barrier) return false;
  if (mask < 0) return &cta == &own;
  return (mask >> cta.rank & 1) != 0;
}

// 16 bytes of a block's shared memory, as fp32 rounded to tf32.
void round_to_tf32(uint8_t* piece) {
  for (int word = 0; word < 16; word += 4) {
    float x;
    std::memcpy(&x, piece + word, 4);
    const tf32 rounded = cast<tf32>(x);
    std::memcpy(piece + word, &rounded, 4);
  }
}

void fetch_box(const TensorMap& map, unsigned smem, const Coordinates& c, Cta& to) {
  const auto fetch = [&](unsigned addr, const char* g, int first, int last) {
    uint8_t* dst = machine->memory(to, addr);
    if (last - first < 16) std::memset(dst, 0, 16);
    if (last > first) std::memcpy(dst + first, g + first, static_cast<size_t>(last - first));
    if (map.tf32) round_to_tf32(dst);
  };
  for_each_piece(map, smem, c, fetch);
}
}  // namespace

void tensor_load(unsigned smem, const TensorMap& map, unsigned bar, int mask,
                 const Coordinates& c) {
  Thread& t = me();
  const char* what = mask < 0 ? "tma_load" : "tma_load_multicast";
  if (!check_map(map, smem, c, what)) return;
  const int bytes = box_bytes(map);
  unsigned at = smem;
  if (!machine->locate(at, bytes, false, what)) return;
  if (!touch_box(map, smem, c, false, t.access(), false, what)) return;
  for (Cta& cta : machine->ctas) {
    if (!reaches(*t.cta, mask, cta)) continue;
    unsigned remote = smem | static_cast<unsigned>(cta.rank + 1) << 24;
    if (&cta != t.cta && !machine->locate(remote, bytes, true, what)) continue;
    Mbarrier* b = machine->barrier(cta, bar, what, true);
    if (!b) continue;
    const auto carry_out = [map, smem, c, to = &cta] { fetch_box(map, smem, c, *to); };
    machine->copy_to(cta, smem, bytes, *b, true, what, carry_out);
  }
}

void Machine::copy_to(Cta& cta, unsigned at, int bytes, Mbarrier& b, bool by_engine,
                      const char* what, std::function<void()> carry_out) {
  const Access by = access_by(b.actor, b.phase + 1, self->line, by_engine);
  touch(cta.shadow, at, bytes, true, current->view(), by, what);
  b.copied_phase = std::max(b.copied_phase, b.phase + 1);
  b.copy_line = self->line;
  pending.push_back({std::move(carry_out), &b, b.phase, bytes, self->line, current});
  if (effect_now(4)) finish_copy(pending.size() - 1);
}

void Machine::finish_copy(size_t i) {
  const PendingCopy copy = std::move(pending[i]);
  pending.erase(pending.begin() + static_cast<ptrdiff_t>(i));
  copy.carry_out();
  Mbarrier& b = *copy.bar;
  if (b.phase != copy.phase)
    hazard_of(
        copy.issuer, "mbarrier",
        "the barrier's phase completed before the copy issued in it: too few bytes were expected",
        copy.line, b.init_line);
  b.gathering.raise(b.actor, b.phase + 1, b.phase + 1);
  b.tx -= copy.bytes;
  complete_if_done(b, copy.line);
}

void tensor_store(const TensorMap& map, unsigned smem, const Coordinates& c, Combine combine) {
  Thread& t = me();
  if (!check_map(map, smem, c, "tma_store")) return;
  const int bytes = box_bytes(map);
  if (!machine->locate(smem, bytes, false, "tma_store")) return;
  const auto by = [&](Thread::Own part) {
    const int actor = t.actor_of(part, "the bulk store of thread");
    return access_by(actor, t.stores.committed + 1, self->line, true);
  };
  if (!touch_box(map, smem, c, true, by(Thread::kBulkWrites), combine.into, "tma_store")) return;
  machine->touch(t.cta->shadow, smem, bytes, false, t.view(), by(Thread::kBulkReads), "tma_store");
  t.stores.add([map, smem, c, combine, cta = t.cta] {
    const auto put = [&](unsigned addr, char* to, int first, int last) {
      const uint8_t* const from = machine->memory(*cta, addr);
      if (last > first) combine.put(to + first, from + first, last - first);
    };
    for_each_piece(map, smem, c, put);
  });
}

void bulk_commit(Site) {
  ++me().stores.committed;
}

void bulk_wait(int n, bool read) {
  Thread& t = me();
  const Epoch done = t.stores.flush_but(n);
  t.bulk_read_waited = std::max(t.bulk_read_waited, done);
  if (!read) t.stores.waited = std::max(t.stores.waited, done);
  Private& reads = t.own[Thread::kBulkReads];
  Private& writes = t.own[Thread::kBulkWrites];
  reads.known = reads.fenced = t.bulk_read_waited;
  writes.known = writes.fenced = t.stores.waited;
}

// Everything this thread did so far, and the cp.async copies it has waited for, becomes visible to
// the async proxy.
void fence_async_shared(Site) {
  Thread& t = me();
  for (Private& p : t.own)
    p.fenced = p.known;
}
}  // namespace wl::emu
