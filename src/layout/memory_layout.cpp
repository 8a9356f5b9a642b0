#include "layout/memory_layout.h"
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "layout/tv_layout.h"

namespace warploom::layout {
int64_t MemoryLayout::elements() const {
  int64_t last = 0;
  for (const auto& dim : dims)
    for (const MemoryMode& mode : dim)
      last += (mode.extent - 1) * mode.stride;
  return last + 1;
}

int64_t MemoryLayout::bytes() const {
  const int64_t plain = ceil_div(elements() * element_bits, 8);
  // The swizzle moves bytes within aligned blocks of 2^(base + bits): the last block may be used up
  // to its end.
  if (swizzle.bits == 0) return plain;
  const int64_t block = int64_t{1} << (swizzle.base + swizzle.bits);
  return round_up(plain, block);
}

int64_t MemoryLayout::element_offset(const Coord& coord) const {
  int64_t offset = 0;
  for (size_t d = 0; d < std::min(dims.size(), coord.size()); ++d) {
    int64_t rest = coord[d];
    for (size_t i = 0; i < dims[d].size(); ++i) {
      const MemoryMode& mode = dims[d][i];
      const bool last = i + 1 == dims[d].size();
      const int64_t digit = last ? rest : rest % mode.extent;
      offset += digit * mode.stride;
      rest /= mode.extent;
    }
  }
  return offset;
}

int64_t MemoryLayout::byte_offset(const Coord& coord) const {
  return swizzle(element_offset(coord) * element_bits / 8);
}

MemoryLayout dense(const std::vector<int64_t>& extents, size_t c, int element_bits) {
  MemoryLayout layout;
  layout.dims.resize(extents.size());
  layout.element_bits = element_bits;
  layout.dims[c] = {{extents[c], 1}};
  int64_t stride = extents[c];
  for (size_t d = extents.size(); d-- > 0;) {
    if (d == c) continue;
    layout.dims[d] = {{extents[d], stride}};
    stride *= extents[d];
  }
  return layout;
}

MemoryLayout swizzle_atoms(const std::vector<int64_t>& extents, size_t c, int atom_bytes,
                           int element_bits) {
  const int64_t width = atom_bytes * 8 / element_bits;
  const int64_t rows = extents[1 - c];
  MemoryLayout layout;
  layout.dims.resize(2);
  layout.dims[c] = {{width, 1}};
  if (extents[c] > width) layout.dims[c].push_back({extents[c] / width, width * rows});
  layout.dims[1 - c] = {{rows, width}};
  const auto rows_of_16_bytes = as_uint32(atom_bytes / 16);
  layout.swizzle = {.bits = std::countr_zero(rows_of_16_bytes), .base = 4, .shift = 3};
  layout.element_bits = element_bits;
  return layout;
}

std::string to_string(const MemoryLayout& layout) {
  std::string out;
  for (size_t d = 0; d < layout.dims.size(); ++d) {
    if (d) out += ", ";
    for (const MemoryMode& mode : layout.dims[d])
      out += fmt::format("({}:{})", mode.extent, mode.stride);
    if (layout.dims[d].empty()) out += "()";
  }
  out += fmt::format(" of {} bits", layout.element_bits);
  if (const Swizzle& s = layout.swizzle; s.bits > 0)
    out += fmt::format(" swizzle{{{},{},{}}}", s.bits, s.base, s.shift);
  return out;
}

uint64_t BitMatrix::operator()(uint64_t x) const {
  uint64_t sum = 0;
  for (size_t i = 0; i < columns.size(); ++i)
    if (x >> i & 1) sum ^= columns[i];
  return sum;
}

std::optional<BitMatrix> bit_matrix(const TvLayout& registers, const MemoryLayout& memory) {
  const size_t rank = std::min(registers.tile.size(), memory.dims.size());
  bool linear = true;
  BitMatrix result;
  Coord reached(rank, 0);  // the coordinate bits that some index bit sets; none may be set twice
  for (const auto* modes : {&registers.thread, &registers.value})
    for (const TvMode& mode : *modes) {
      linear = linear && std::has_single_bit(as_uint64(mode.extent));
      Coord step = mode.step;
      for (int64_t left = mode.extent; linear && left > 1; left /= 2) {
        const int64_t bit = memory.element_offset(step) * memory.element_bits;
        const int64_t moved = memory.swizzle(bit >> 3) << 3 | (bit & 7);
        result.columns.push_back(as_uint64(moved));
        for (size_t d = 0; d < rank; ++d) {
          linear = linear && step[d] >= 0 && (reached[d] & step[d]) == 0;
          reached[d] |= step[d];
          step[d] *= 2;
        }
      }
    }
  int64_t taken = 0;  // the offset bits that some coordinate bit sets; none may be set twice
  for (size_t d = 0; linear && d < rank; ++d) {
    for (size_t i = 0; i + 1 < memory.dims[d].size(); ++i) {
      const auto extent = as_uint64(memory.dims[d][i].extent);
      linear = linear && std::has_single_bit(extent);
    }
    for (Coord unit(rank, 0); linear && (unit[d] = unit[d] ? unit[d] * 2 : 1) <= reached[d];) {
      const int64_t column = memory.element_offset(unit) * memory.element_bits;
      linear = (taken & column) == 0;
      taken |= column;
    }
  }
  return linear ? std::optional(std::move(result)) : std::nullopt;
}

// Vectors and banks: common_vector, bank_conflict_ways, choose_swizzle.
namespace {
constexpr int kBanks = 32;
constexpr int kWordBytes = 4;
constexpr int kWarp = 32;
constexpr int kPhaseBytes = 128;
constexpr int kBankPeriodBits = 7;      // 32 banks of 4 bytes repeat every 2^7 bytes
constexpr int kLargestPeriodBits = 13;  // beyond it a swizzle of an enumerated layout is not tried

int bit_length(int64_t n) {
  return as_int(std::bit_width(as_uint64(n)));
}

// What one phase touches: the bit offset of each element before the swizzle, thread by thread.
using Phase = std::vector<int64_t>;

// The coordinates that all indices of modes add, one after another.
std::vector<int64_t> spread(const std::vector<TvMode>& modes, size_t rank) {
  std::vector<int64_t> all(rank);
  for (const TvMode& mode : modes) {
    const size_t before = all.size();
    for (int64_t digit = 1; digit < mode.extent; ++digit)
      for (size_t i = 0; i < before; ++i)
        all.push_back(all[i] + digit * mode.step[i % rank]);
  }
  return all;
}

// Every element's offset in bits, thread by thread; the coordinate is a sum of a thread's part and
// a value's. Of a map that is linear over bits the threads 0, 1, 2, 4, … stand for all.
Phase all_offsets(const TvLayout& registers, const MemoryLayout& memory, bool linear = false) {
  Phase offsets;
  const size_t rank = registers.tile.size();
  const auto of_thread = spread(registers.thread, rank);
  const auto of_value = spread(registers.value, rank);
  Coord coord(rank);
  for (size_t t = 0; t < of_thread.size(); t += rank * (linear ? std::max<size_t>(t / rank, 1) : 1))
    for (size_t v = 0; v < of_value.size(); v += rank) {
      for (size_t d = 0; d < rank; ++d)
        coord[d] = of_thread[t + d] + of_value[v + d];
      offsets.push_back(memory.element_offset(coord) * memory.element_bits);
    }
  return offsets;
}

// All phases of an access, up to an XOR of their offsets, which changes neither ways nor the
// comparison of swizzles: they are linear over XOR. Where the map is, too, one phase stands for
// all.
std::set<Phase> phases_of(const TvLayout& registers, MemoryLayout memory, int access_bytes) {
  const int64_t threads = registers.threads();
  const int64_t values = registers.values();
  const int64_t vector = std::clamp<int64_t>(access_bytes * 8 / memory.element_bits, 1, values);
  const int64_t in_phase = kPhaseBytes / std::max(access_bytes, 1);
  const int64_t lanes = std::clamp<int64_t>(in_phase, 1, kWarp);
  memory.swizzle = {};
  const auto map = bit_matrix(registers, memory);
  const bool linear = map && values % vector == 0;
  const Phase offsets = linear ? Phase() : all_offsets(registers, memory);
  const auto offset_of = [&](int64_t thread, int64_t value) {
    if (!linear) return offsets[thread * values + value];
    const auto register_bits = as_uint64(thread + value * threads);
    return as_int64((*map)(register_bits));
  };
  std::set<Phase> seen;
  for (int64_t first = 0; first < (linear ? 1 : threads); first += lanes)
    for (int64_t step = 0; step < (linear ? 1 : values); step += vector) {
      Phase phase;
      for (int64_t t = first; t < std::min(threads, first + lanes); ++t)
        for (int64_t v = step; v < std::min(values, step + vector); ++v)
          phase.push_back(offset_of(t, v));
      const int64_t origin = phase.front();
      for (int64_t& offset : phase)
        offset ^= origin;
      seen.insert(std::move(phase));
    }
  return seen;
}

// The worst of all phases, or the first found that reaches `enough`: a caller who compares needs to
// know no more.
int ways_of(const std::set<Phase>& phases, int element_bits, const Swizzle& swizzle,
            int enough = kWarp * kPhaseBytes) {
  const int64_t element_bytes = std::max(1, element_bits / 8);
  int worst = 1;
  std::vector<int64_t> words;
  for (const Phase& phase : phases) {
    words.clear();
    for (const int64_t bit : phase) {
      const int64_t byte = swizzle(bit >> 3);
      for (int64_t w = byte / kWordBytes; w <= (byte + element_bytes - 1) / kWordBytes; ++w)
        words.push_back(w);
    }
    std::ranges::sort(words);
    const auto repeated = std::ranges::unique(words);
    words.erase(repeated.begin(), repeated.end());
    std::array<int, kBanks> load{};
    for (const int64_t w : words)
      worst = std::max(worst, ++load[w % kBanks]);
    if (worst >= enough) break;
  }
  return worst;
}

// No swizzle, those of TMA, then all others that XOR into the bank bits above the
// vector from bits below `top`.
std::vector<Swizzle> candidates(int lowest_base, int top) {
  std::vector<Swizzle> list = {Swizzle{}};
  for (int bits = 1; bits <= 3; ++bits)
    if (lowest_base <= 4 && bits + 7 <= top) list.push_back({bits, 4, 3});
  for (int bits = 1; bits <= kBankPeriodBits; ++bits)
    for (int base = lowest_base; base + bits <= kBankPeriodBits; ++base)
      for (int shift = bits; base + shift + bits <= top; ++shift)
        if (!(base == 4 && shift == 3)) list.push_back({bits, base, shift});
  return list;
}
}  // namespace

int64_t common_vector(const TvLayout& registers, const MemoryLayout& memory, int max_bytes) {
  const int64_t bits = memory.element_bits;
  const int64_t values = registers.values();
  const int64_t most = std::max<int64_t>(1, int64_t{8} * max_bytes / bits);
  int64_t vector = std::gcd(values, most);
  if (vector == 1) return 1;
  const bool linear = std::has_single_bit(as_uint64(bits)) && bit_matrix(registers, memory);
  Phase offsets = all_offsets(registers, memory, linear);
  for (int64_t& bit : offsets)
    bit = memory.swizzle(bit >> 3) << 3 | (bit & 7);
  const auto holds = [&](int64_t v) {
    for (size_t i = 0; i < offsets.size(); ++i) {
      const auto within = as_int64(i) % v;
      if (within == 0 ? offsets[i] % (v * bits) != 0 : offsets[i] != offsets[i - 1] + bits)
        return false;
    }
    return true;
  };
  while (vector > 1 && !holds(vector))
    vector /= 2;
  return vector;
}

int bank_conflict_ways(const TvLayout& registers, const MemoryLayout& memory, int access_bytes) {
  return ways_of(phases_of(registers, memory, access_bytes), memory.element_bits, memory.swizzle);
}

Swizzle choose_swizzle(const std::vector<SharedAccess>& accesses, const MemoryLayout& memory) {
  int base = 0;
  for (const SharedAccess& access : accesses)
    base = std::max(base, bit_length(access.access_bytes) - 1);
  base = std::max(base, bit_length((memory.element_bits + 7) / 8) - 1);
  MemoryLayout plain = memory;
  plain.swizzle = {};
  int top = bit_length(plain.bytes() - 1);  // bits from here up are always zero
  const bool linear = std::ranges::all_of(accesses, [&](const SharedAccess& access) {
    return bit_matrix(access.registers, plain).has_value();
  });
  if (!linear) top = std::min(top, kLargestPeriodBits);
  std::vector<std::set<Phase>> phases;  // of each access
  for (const SharedAccess& access : accesses)
    phases.push_back(phases_of(access.registers, plain, access.access_bytes));
  Swizzle best;
  int smallest = std::numeric_limits<int>::max();
  for (const Swizzle& swizzle : candidates(base, top)) {
    int sum = 0;
    for (const std::set<Phase>& each : phases) {
      sum += ways_of(each, memory.element_bits, swizzle, smallest - sum);
      if (sum >= smallest) break;
    }
    if (sum >= smallest) continue;
    smallest = sum;
    best = swizzle;
    if (smallest <= as_int(accesses.size())) break;  // all conflict-free
  }
  return best;
}
}  // namespace warploom::layout
