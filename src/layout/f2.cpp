#include "layout/f2.h"
#include <bit>
namespace warploom::layout {
namespace {
constexpr int kBitsPerByte = 3, kWordRow = 5, kBankRows = 5;  // rows count bits: 2^5 bits a word, 2^5 banks

std::uint64_t low_bits(int n) { return n >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1; }

// The rows [first, first + count) alone.
BitMatrix select_rows(const BitMatrix& a, int first, int count) {
  BitMatrix result{count, {}};
  for (const std::uint64_t column : a.columns) result.columns.push_back(column >> first & low_bits(count));
  return result;
}

int log2_floor(std::int64_t n) { return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(n))) - 1; }

// A vector and the combination of inputs that gives it.
struct Tracked {
  std::uint64_t image, inputs;
};

// Gauss: a basis of the image with distinct leading bits, and the combinations that vanish.
struct Elimination {
  std::vector<Tracked> basis;
  std::vector<std::uint64_t> vanishing;
};

Elimination eliminate(const BitMatrix& a) {
  Elimination result;
  for (std::size_t i = 0; i < a.columns.size(); ++i) {
    Tracked now{a.columns[i], std::uint64_t{1} << i};
    for (const Tracked& b : result.basis) {
      // Reduces when b's leading bit is set in `now`: XOR then makes it smaller at that bit.
      if (now.image & std::bit_floor(b.image)) now = {now.image ^ b.image, now.inputs ^ b.inputs};
    }
    if (now.image == 0) {
      result.vanishing.push_back(now.inputs);
    } else {
      result.basis.push_back(now);
    }
  }
  return result;
}
}  // namespace
std::uint64_t BitMatrix::operator()(std::uint64_t x) const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (x >> i & 1) sum ^= columns[i];
  }
  return sum;
}

BitMatrix identity_bits(int n) {
  BitMatrix a{n, {}};
  for (int i = 0; i < n; ++i) a.columns.push_back(std::uint64_t{1} << i);
  return a;
}

Result<BitMatrix> compose(const BitMatrix& a, const BitMatrix& b) {
  if (b.rows > static_cast<int>(a.columns.size())) {
    return layout_error("a bit matrix is applied to more bits than it has columns",
                        fmt::format("at most {} rows on the right", a.columns.size()), fmt::format("{}", b.rows));
  }
  BitMatrix c{a.rows, {}};
  for (const std::uint64_t column : b.columns) c.columns.push_back(a(column));
  return c;
}

int rank(const BitMatrix& a) { return static_cast<int>(eliminate(a).basis.size()); }

std::vector<std::uint64_t> kernel(const BitMatrix& a) { return eliminate(a).vanishing; }

Result<BitMatrix> inverse(const BitMatrix& a) {
  const int n = static_cast<int>(a.columns.size());
  std::vector<Tracked> basis = eliminate(a).basis;
  if (a.rows != n || static_cast<int>(basis.size()) != n) {
    return layout_error("a bit matrix that is no bijection has no inverse", fmt::format("{0} x {0} of rank {0}", n),
                        fmt::format("{} x {} of rank {}", a.rows, n, basis.size()));
  }
  // Leading bits are distinct, so the vector leading with bit i needs only those leading below it to become the unit vector.
  std::sort(basis.begin(), basis.end(),
            [](const Tracked& x, const Tracked& y) { return std::bit_floor(x.image) < std::bit_floor(y.image); });
  BitMatrix result{n, {}};
  for (int i = 0; i < n; ++i) {
    Tracked now = basis[static_cast<std::size_t>(i)];
    for (int j = 0; j < i; ++j) {
      if (now.image >> j & 1) { now.inputs ^= result.columns[static_cast<std::size_t>(j)]; }
    }
    result.columns.push_back(now.inputs);
  }
  return result;
}

Result<BitMatrix> bit_matrix(const Layout& layout) {
  BitMatrix result{static_cast<int>(std::bit_width(static_cast<std::uint64_t>(layout.cosize() - 1))), {}};
  std::uint64_t taken = 0;
  for (const Mode& mode : layout.modes()) {
    const auto extent = static_cast<std::uint64_t>(mode.extent);
    bool linear = std::has_single_bit(extent);
    for (int j = 0; linear && j < log2_floor(mode.extent); ++j) {
      const std::uint64_t column = static_cast<std::uint64_t>(mode.stride) << j;
      linear = (taken & column) == 0;
      taken |= column;
      result.columns.push_back(column);
    }
    if (!linear) {
      return layout_error("a layout is not linear over bits", "extents that are powers of two, sums that do not carry",
                          to_string(layout));
    }
  }
  return result;
}

Result<BitMatrix> bit_matrix(const Swizzle& swizzle, int bits) {
  if (swizzle.bits > 0 && swizzle.bits + swizzle.base + swizzle.shift > bits) {
    return layout_error("a swizzle reads bits beyond the matrix",
                        fmt::format("at least {} bits", swizzle.bits + swizzle.base + swizzle.shift), fmt::format("{}", bits));
  }
  BitMatrix result{bits, {}};
  for (int i = 0; i < bits; ++i) { result.columns.push_back(static_cast<std::uint64_t>(swizzle(std::int64_t{1} << i))); }
  return result;
}

Result<BitMatrix> bit_matrix(const TvLayout& registers, const MemoryLayout& memory) {
  const std::size_t rank = std::min(registers.tile.size(), memory.dims.size());
  bool linear = true;
  BitMatrix result;
  Coord reached(rank, 0);  // the coordinate bits that some index bit sets; none may be set twice
  for (const auto* modes : {&registers.thread, &registers.value})
    for (const TvMode& mode : *modes) {
      linear = linear && std::has_single_bit(static_cast<std::uint64_t>(mode.extent));
      Coord step = mode.step;
      for (std::int64_t left = mode.extent; linear && left > 1; left /= 2) {
        const std::int64_t bit = memory.element_offset(step) * memory.element_bits;
        result.columns.push_back(static_cast<std::uint64_t>(memory.swizzle(bit >> 3) << 3 | (bit & 7)));
        for (std::size_t d = 0; d < rank; ++d) {
          linear = linear && step[d] >= 0 && (reached[d] & step[d]) == 0;
          reached[d] |= step[d];
          step[d] *= 2;
        }
      }
    }
  std::int64_t taken = 0;  // the offset bits that some coordinate bit sets; none may be set twice
  for (std::size_t d = 0; linear && d < rank; ++d) {
    for (std::size_t i = 0; i + 1 < memory.dims[d].size(); ++i)
      linear = linear && std::has_single_bit(static_cast<std::uint64_t>(memory.dims[d][i].extent));
    for (Coord unit(rank, 0); linear && (unit[d] = unit[d] ? unit[d] * 2 : 1) <= reached[d];) {
      const std::int64_t column = memory.element_offset(unit) * memory.element_bits;
      linear = (taken & column) == 0;
      taken |= column;
    }
  }
  if (!linear)
    return layout_error("addresses are not linear over bits", "extents that are powers of two, sums that do not carry",
                        to_string(registers) + " in " + to_string(memory));
  std::uint64_t all = 0;
  for (const std::uint64_t column : result.columns) all |= column;
  result.rows = static_cast<int>(std::bit_width(all));
  return result;
}

Result<int> conflict_ways_closed_form(const TvLayout& registers, const MemoryLayout& memory, int access_bytes) {
  WARPLOOM_TRY(const BitMatrix all, bit_matrix(registers, memory));
  const int thread_bits = log2_floor(registers.threads()), value_bits = log2_floor(registers.values());
  const int lane_bits = std::min(log2_floor(std::clamp(128 / std::max(access_bytes, 1), 1, 32)), thread_bits);
  const int vector_bits = std::min(log2_floor(std::max(access_bytes * 8 / memory.element_bits, 1)), value_bits);
  BitMatrix phase{64, {}};
  for (int i = 0; i < lane_bits; ++i) phase.columns.push_back(all.columns[static_cast<std::size_t>(i)]);
  for (int i = 0; i < vector_bits; ++i) phase.columns.push_back(all.columns[static_cast<std::size_t>(thread_bits + i)]);
  // An element wider than a word touches all of its words.
  for (int bit = kBitsPerByte; bit < log2_floor(memory.element_bits); ++bit) { phase.columns.push_back(std::uint64_t{1} << bit); }
  return 1 << (rank(select_rows(phase, kWordRow, 64 - kWordRow)) - rank(select_rows(phase, kWordRow, kBankRows)));
}
}  // namespace warploom::layout
