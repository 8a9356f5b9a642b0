#include "verify/inputs.h"
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/hash.h"
#include "base/integers.h"
#include "base/random.h"
#include "base/rows.h"
#include "graph/graph.h"
#include "graph/parallel.h"
#include "graph/ranges.h"
#include "verify/coverage.h"
#include "verify/range_ends.h"

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define WARPLOOM_CLONES \
  __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define WARPLOOM_CLONES
#endif
namespace warploom::verify {
namespace {
using graph::Range;
using graph::Ranges;

// Elements are numbered within blocks; a block's keys come from a 64-bit mixer, its elements from
// 32-bit ones that vectorise.
constexpr int64_t kBlock = int64_t{1} << 20;
constexpr int64_t kChunk = 4096;

struct Keys {
  uint32_t first;
  uint32_t second;
  uint32_t third;
};

inline uint32_t scramble(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  x ^= x >> 16;
  return x;
}

constexpr uint32_t kOneIn = 1024;                // elements of a bell is an outlier
constexpr float kBellScale = 1.0f / 37837.227f;  // the deviation of a sum of four 16-bit uniforms
constexpr int32_t kBellMiddle = 131070;          // its mean
constexpr int32_t kBellFive = 189186;            // five deviations

enum class Shape : uint8_t {
#define WARPLOOM_INPUT_SHAPE(name) name,
#include "verify/input_shapes.def"
};

struct Row {
  Shape shape;
  int32_t shift;
  float scale;
};

constexpr std::array kRows = {
#define WARPLOOM_INPUT_FAMILY(name, shape, shift, scale, wide) Row{Shape::shape, shift, scale},
#include "verify/input_families.def"
};

// No sum follows a product in these loops, so that no compiler fuses them into one rounding on one
// machine and two on another.
WARPLOOM_CLONES void bell(float* out, int64_t begin, int64_t count, Keys keys, int32_t shift,
                          float scale, int32_t outlier) {
  for (int64_t i = 0; i < count; ++i) {
    const auto n = as_uint32(begin + i) * 0x9e3779b1u;
    const uint32_t a = scramble(n + keys.first);
    const uint32_t b = scramble(n ^ keys.second);
    const uint32_t uniforms = (a & 0xffff) + (a >> 16) + (b & 0xffff) + (b >> 16);
    int32_t sum = static_cast<int32_t>(uniforms) - kBellMiddle + shift;
    const bool is_outlier = ((a + b) & (kOneIn - 1)) == (keys.third & (kOneIn - 1));
    sum *= is_outlier ? outlier : 1;
    out[i] = as_float(sum) * scale;
  }
}

WARPLOOM_CLONES void unit(float* out, int64_t begin, int64_t count, Keys keys) {
  for (int64_t i = 0; i < count; ++i) {
    const auto n = as_uint32(begin + i) * 0x9e3779b1u;
    const auto bits = static_cast<int32_t>(scramble(n + keys.first) >> 8);
    out[i] = as_float(bits) * 0x1p-24f;
  }
}

WARPLOOM_CLONES void to_bf16(uint16_t* out, const float* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {  // nearest, ties to even; NaN stays one
    const auto bits = std::bit_cast<uint32_t>(values[i]);
    const uint32_t last = (bits >> 16) & 1u;
    const bool number = (bits & 0x7fffffffu) <= 0x7f800000u;
    const uint32_t up = number ? 0x7fffu + last : 0;
    out[i] = static_cast<uint16_t>((bits + up) >> 16);
  }
}

#if defined(__FLT16_MANT_DIG__)
#if defined(__aarch64__)
using Half = __fp16;  // g++ 12 has the other name in C alone there
#else
using Half = _Float16;
#endif

WARPLOOM_CLONES void to_f16(Half* out, const float* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    out[i] = static_cast<Half>(values[i]);
}
#endif

Keys keys_of(const Stream& stream, int64_t block) {
  const uint64_t of_block = as_uint64(block) * 0xd1342543de82ef95ull;
  const uint64_t of_tensor = as_uint64(stream.tensor) << 48;
  Random random(stream.seed ^ of_block ^ of_tensor, name_of(stream.family));
  const uint64_t a = random.next();
  const uint64_t b = random.next();
  return {as_uint32(a), as_uint32(a >> 32), as_uint32(b)};
}

// How many times as large an outlier is.
int32_t outlier_of(Dtype dtype) {
  return bits_of(dtype) < 32 ? 30 : 1000;
}

// A number of a sign, digits and an exponent in [least, most) of a hash each.
float of_any_magnitude(uint32_t bits, uint32_t choice, uint32_t least, uint32_t most) {
  const uint32_t exponent = least + choice % (most - least);
  return std::bit_cast<float>((bits & 0x80000000u) | exponent << 23 | (bits & 0x7fffffu));
}

// An element of the first block that is chosen whatever the others are: so that a tensor of few
// elements has one.
int64_t assured(const Stream& stream, Keys keys) {
  return stream.elements > 0 ? keys.third % std::min(stream.elements, kBlock) : -1;
}

// Most within 2^±40, whose squares fp32 still adds up, one in 256 within 2^±100.
void of_magnitudes(float* out, int64_t begin, int64_t count, Keys keys) {
  for (int64_t i = 0; i < count; ++i) {
    const auto n = as_uint32(begin + i) * 0x9e3779b1u;
    const uint32_t choice = scramble(n + keys.third);
    const uint32_t most = (choice & 0xff) == 0 ? 100 : 40;
    out[i] = of_any_magnitude(scramble(n ^ keys.first), choice >> 8, 127 - most, 127 + most);
  }
}

// Multiples of a half from -4 to 4.
void on_halves(const Stream& stream, float* out, int64_t begin, int64_t count, Keys keys) {
  const auto scale = as_float(stream.scale);  // a power of two
  unit(out, begin, count, keys);
  for (int64_t i = 0; i < count; ++i) {
    const float number = std::floor(out[i] * 17) * 0.5f - 4;
    out[i] = scale * (stream.without_zeros && number == 0 ? 4.5f : number);
  }
}

// The end of a span, smaller for types of few digits, as outliers are.
float span_of(const Stream& stream, float scale) {
  constexpr float kOfFewDigits = 1.0f / 32;
  return (bits_of(stream.dtype) < 32 ? kOfFewDigits * scale : scale) * as_float(stream.scale);
}

uint32_t rows_key_of(const Stream& stream) {
  return as_uint32(Random(stream.seed + as_uint64(stream.tensor), "level rows").next());
}

// Of every other row all elements are one multiple of a half.
void with_level_rows(const Stream& stream, float* out, int64_t first, int64_t count) {
  const auto scale = as_float(stream.scale);
  const uint32_t key = rows_key_of(stream);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = stream.row > 0 ? (first + i) / stream.row : 0;
    const uint32_t choice = scramble(as_uint32(row) * 0x9e3779b1u + key);
    if ((choice & 1) != 0) continue;
    const float number = as_float(as_int((choice >> 1) % 17)) * 0.5f - 4;
    out[i] = scale * (stream.without_zeros && number == 0 ? 4.5f : number);
  }
}

// Rows as programs have them and no chance brings them about, two alike one after the other:
// numbers that ascend, or descend; one among zeros, as indices are encoded; a number far from the
// others'; the last with what is below 0 made 0, as behind a ReLU.
void with_ordered_rows(const Stream& stream, float* out, int64_t first, int64_t count) {
  constexpr uint32_t kKinds = 6;
  const auto scale = as_float(stream.scale);
  const uint32_t key = rows_key_of(stream);
  const float zero = stream.without_zeros ? 4.5f : 0.0f;
  // Weights that are scaled to their sums stay so.
  const bool few = bits_of(stream.dtype) < 32 && stream.dtype != Dtype::bf16;
  const float unit_of_level = few || stream.scale != 1 ? 0.5f : 8.0f;
  const int64_t length = stream.row > 0 ? stream.row : 1;
  const float step = std::ldexp(1.0f, 1 - as_int(std::bit_width(as_uint64(length))));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = (first + i) / length;
    const int64_t place = (first + i) % length;
    const uint32_t choice = scramble(as_uint32(row / 2) * 0x9e3779b1u + key);
    const uint32_t more = choice / kKinds;
    const float ascending = as_float(4 * place - 2 * length + 1) * step;
    const float level = as_float(as_int(more % 17) - 8);
    switch (choice % kKinds) {
      case 0: break;
      case 1: out[i] = scale * ascending; break;
      case 2: out[i] = -scale * ascending; break;
      case 3: out[i] = scale * (place == more % length ? 0.5f + as_float(more & 7) : zero); break;
      case 4: out[i] = scale * (level == 0 ? zero : level * unit_of_level); break;
      default: out[i] = out[i] > 0 ? out[i] : scale * zero; break;
    }
  }
}

// A bell, of which few elements are infinite, or NaN.
void with_rare(const Stream& stream, bool nans, float* out, int64_t begin, int64_t count, Keys keys,
               bool first_block) {
  if (stream.rare == 0) return;
  const int64_t one = first_block ? assured(stream, keys) : -1;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t choice = scramble(as_uint32(begin + i) * 0x9e3779b1u + keys.second);
    if (choice % stream.rare != 0 && begin + i != one) continue;
    const bool negative = stream.only_negative || (choice >> 31) != 0;
    out[i] = nans ? std::numeric_limits<float>::quiet_NaN() : HUGE_VALF;
    if (negative) out[i] = -out[i];
  }
}

// By two hashes of an element's number: half of them are ends, a quarter numbers of every magnitude
// that the type has, the rest a bell.
void at_ends(const Stream& stream, float* out, int64_t begin, int64_t count, Keys keys) {
  bell(out, begin, count, keys, 0, kBellScale, 1);
  const bool narrow = stream.dtype == Dtype::f16;
  const uint32_t least = narrow ? 127 - 20 : 127 - 100;
  const uint32_t most = narrow ? 127 + 15 : 127 + 100;
  for (int64_t i = 0; i < count; ++i) {
    const auto n = as_uint32(begin + i) * 0x9e3779b1u;
    const uint32_t choice = scramble(n + keys.third);
    const uint32_t kind = choice & 3;
    if (kind < 2 && !stream.ends.empty()) {
      out[i] = stream.ends[(choice >> 2) % stream.ends.size()];
    } else if (kind == 2) {
      out[i] = of_any_magnitude(scramble(n ^ keys.first), choice >> 2, least, most);
    }
  }
}

// Uniform on a lattice; at the ends of ranges every other one lies at an end, or beside it or 0.
void on_lattice(const Stream& stream, const Lattice& from, float* out, int64_t begin, int64_t count,
                Keys keys) {
  const double high = from.high();
  const double ends[] = {from.low, high, from.low + from.step, high - from.step, 0, -1, 1};
  const bool to_ends =
      stream.family == InputFamily::ends || stream.family == InputFamily::whole_range;
  unit(out, begin, count, keys);
  for (int64_t i = 0; i < count; ++i) {
    const double number = std::floor(as_double(out[i]) * from.count);
    double value = from.low + number * from.step;
    const auto n = as_uint32(begin + i) * 0x9e3779b1u;
    const uint32_t choice = to_ends ? scramble(n + keys.third) : 0;
    const double end = ends[(choice >> 1) % std::size(ends)];
    if ((choice & 1) != 0 && end >= from.low && end <= high) value = end;
    if (stream.range.nonzero && value == 0) value = high >= from.step ? from.step : -from.step;
    out[i] = as_float(value);
    // Beyond 2^24 not every whole number is a float: the next one may lie outside.
    if (out[i] > high) out[i] = std::nextafterf(out[i], -HUGE_VALF);
  }
}

// What lies outside of the one end that there is comes to lie as far inside.
void fold(const Range& range, float* out, int64_t count) {
  const auto low = as_float(range.low);
  const auto high = as_float(range.high);
  for (int64_t i = 0; i < count; ++i) {
    if (std::isfinite(low) && out[i] < low) out[i] = low + (low - out[i]);
    if (std::isfinite(high) && out[i] > high) out[i] = high - (out[i] - high);
  }
}

// Integers of a type from its least to its largest, where an operator's range has no end of its
// own.
bool is_of_whole_range(const Stream& stream) {
  return stream.family == InputFamily::whole_range && is_integer(stream.dtype) &&
         stream.dtype != Dtype::boolean && is_free(stream.range, stream.dtype);
}

// The first elements, and one in eight runs of as many, are an end: so that sums come to theirs.
void store_whole_range(const Stream& stream, std::byte* out, int64_t begin, int64_t count,
                       Keys keys, bool first_block) {
  constexpr int64_t kMostRun = 128;
  const int bits = bits_of(stream.dtype);
  const bool has_sign = is_signed(stream.dtype);
  const uint64_t top = uint64_t{1} << (bits - 1);
  const uint64_t least = has_sign ? top : 0;
  const int64_t run = std::clamp<int64_t>(stream.elements / 4, 1, kMostRun);
  const uint64_t ends[] = {least, least - 1, least + 1, least - 2, 0, 1, ~uint64_t{0}, top};
  for (int64_t i = 0; i < count; ++i) {
    const auto n = as_uint32(begin + i) * 0x9e3779b1u;
    const uint32_t choice = scramble(n + keys.third);
    const uint64_t low = scramble(n ^ keys.first);
    uint64_t value = uint64_t{scramble(n + keys.second)} << 32 | low;
    if ((choice & 3) == 0) value = ends[(choice >> 2) % std::size(ends)];
    if ((choice & 3) == 1) {
      const uint64_t power = uint64_t{1} << (choice >> 2) % as_uint32(bits);
      value = (choice & 0x80000000u) != 0 ? -power : power;
    }
    const int64_t number = (begin + i) / run;
    const bool first = first_block && number == 0;
    const uint32_t of_run = scramble(as_uint32(number) * 0x85ebca6bu + keys.second);
    const bool in_run = stream.elements > 0 && (first || (of_run & 7) == 0);
    if (in_run) value = has_sign && (first || (of_run & 8) != 0) ? least : least - 1;
    auto whole = wrapped_integer(stream.dtype, as_int64(value));
    const int64_t smallest = wrapped_integer(stream.dtype, as_int64(least));
    if (stream.without_least && has_sign && whole == smallest) ++whole;
    if (stream.range.nonzero && whole == 0) whole = 1;
    store_integer(stream.dtype, out, i, whole);
  }
}

void make_values(const Stream& stream, float* out, int64_t begin, int64_t count, Keys keys,
                 int64_t block) {
  const bool first_block = block == 0;
  const Lattice lattice = lattice_of(stream.dtype, stream.range);
  if (lattice.count > 0) return on_lattice(stream, lattice, out, begin, count, keys);
  const Row& row = kRows[as_size(stream.family)];
  const auto scale = as_float(stream.scale);
  switch (row.shape) {
    case Shape::ends: at_ends(stream, out, begin, count, keys); break;
    case Shape::ties: on_halves(stream, out, begin, count, keys); break;
    case Shape::magnitudes: of_magnitudes(out, begin, count, keys); break;
    case Shape::whole_range:
    case Shape::infinities:
    case Shape::nans:
    case Shape::bell:
    case Shape::level_rows:
    case Shape::ordered_rows:
    case Shape::outliers: {
      const int32_t outlier = row.shape == Shape::outliers ? outlier_of(stream.dtype) : 1;
      const float deviation = kBellScale * row.scale * scale;
      bell(out, begin, count, keys, row.shift * kBellFive / 5, deviation, outlier);
      const int64_t one = first_block ? assured(stream, keys) - begin : -1;
      const bool is_small = stream.elements < 8 * kOneIn;  // where chance may have left out all
      if (outlier > 1 && is_small && one >= 0 && one < count)
        out[one] = std::copysign(as_float(outlier) * row.scale * scale, out[one]);
      with_rare(stream, row.shape == Shape::nans, out, begin, count, keys, first_block);
      if (row.shape == Shape::level_rows)
        with_level_rows(stream, out, block * kBlock + begin, count);
      if (row.shape == Shape::ordered_rows)
        with_ordered_rows(stream, out, block * kBlock + begin, count);
      break;
    }
    case Shape::span: {
      const float end = span_of(stream, row.scale);
      unit(out, begin, count, keys);
      for (int64_t i = 0; i < count; ++i)
        out[i] = end * (2 * out[i] - 1);
      break;
    }
    case Shape::unit:
    case Shape::signs:
      unit(out, begin, count, keys);
      for (int64_t i = 0; i < count; ++i) {
        const float sign = out[i] < 0.5f ? 1.0f : -1.0f;
        out[i] = scale * (row.shape == Shape::signs ? sign : out[i]);
      }
      break;
  }
  fold(stream.range, out, count);
}

void store_values(Dtype dtype, std::byte* out, const float* values, int64_t count) {
  switch (dtype) {
    case Dtype::f32: std::memcpy(out, values, as_size(count) * 4); return;
    case Dtype::bf16: to_bf16(reinterpret_cast<uint16_t*>(out), values, count); return;
#if defined(__FLT16_MANT_DIG__)
    case Dtype::f16: to_f16(reinterpret_cast<Half*>(out), values, count); return;
#endif
    default:
      for (int64_t i = 0; i < count; ++i)
        store_from_double(dtype, out, as_size(i), as_double(values[i]));
  }
}

}  // namespace

void fill(const Stream& stream, void* out, int64_t begin, int64_t count, int threads) {
  constexpr int64_t kPart = 1 << 18;
  graph::parallel_for(ceil_div(count, kPart), threads, [&](int64_t part) {
    std::array<float, kChunk> values;
    const int64_t end = begin + std::min((part + 1) * kPart, count);
    int64_t at = begin + part * kPart;
    while (at < end) {
      const int64_t block = at / kBlock;
      const int64_t within = at % kBlock;
      const int64_t some = std::min({kChunk, end - at, kBlock - within});
      const int64_t offset = (at - begin) * bytes_of(stream.dtype);
      std::byte* const place = static_cast<std::byte*>(out) + offset;
      const Keys keys = keys_of(stream, block);
      at += some;
      if (is_of_whole_range(stream)) {
        store_whole_range(stream, place, within, some, keys, block == 0);
        continue;
      }
      make_values(stream, values.data(), within, some, keys, block);
      store_values(stream.dtype, place, values.data(), some);
    }
  });
}

Drawing drawing_of(const Stream& stream) {
  const Row& row = kRows[static_cast<size_t>(stream.family)];
  const Lattice lattice = lattice_of(stream.dtype, stream.range);
  const auto scale = static_cast<float>(stream.scale);
  Drawing made{.shape = static_cast<int>(row.shape), .lattice = lattice};
  const uint64_t of_tensor = static_cast<uint64_t>(stream.tensor) << 48;
  made.state = stream.seed ^ of_tensor ^ hash64(name_of(stream.family));
  made.is_whole = is_of_whole_range(stream);
  made.to_ends = stream.family == InputFamily::ends || stream.family == InputFamily::whole_range;
  made.shift = row.shift * kBellFive / 5;
  made.outlier = row.shape == Shape::outliers ? outlier_of(stream.dtype) : 1;
  made.deviation = row.shape == Shape::ends ? kBellScale : kBellScale * row.scale * scale;
  const bool is_small = stream.elements < 8 * kOneIn;
  if (made.outlier > 1 && is_small)
    made.assured = static_cast<float>(made.outlier) * row.scale * scale;
  made.span = span_of(stream, row.scale);
  made.rows_key = rows_key_of(stream);
  return made;
}

double weight_scale(int64_t terms, double mean, double deviation, Dtype dtype) {
  if (terms <= 1 || !is_float(dtype) || bits_of(dtype) < 16) return 1;
  const auto k = as_double(terms);
  const double size_of_sum = std::sqrt(k) * deviation + k * std::fabs(mean);
  return std::exp2(-std::round(std::log2(size_of_sum)));
}

// Of so many elements one, so that a quarter of the rows has one, and of few rows still one.
static int64_t rare_in(const graph::Shape& shape) {
  constexpr int64_t kMost = 4096;
  const int64_t elements = graph::element_count(shape);
  const int64_t rows = shape.empty() ? 1 : elements / std::max<int64_t>(1, shape.back());
  return std::max<int64_t>(1, elements / std::clamp<int64_t>(rows / 4, 1, kMost));
}

std::vector<Stream> streams_of(const graph::Graph& graph, InputFamily family, uint64_t seed,
                               const Ranges& known) {
  const Row& row = kRows[as_size(family)];
  const auto roles = graph::input_roles(graph);
  const Ranges ranges = graph::ranges_of(graph, known);
  // A few of those that may hold infinities and NaN, by chance.
  Carriers carriers;
  if (row.shape == Shape::infinities || row.shape == Shape::nans)
    carriers = carriers_of(graph, ranges);
  Random(seed, name_of(family)).shuffle(carriers.inputs);
  constexpr size_t kMostCarriers = 3;  // of more, hardly a number is left
  if (carriers.inputs.size() > kMostCarriers) carriers.inputs.resize(kMostCarriers);
  const bool without_least = row.shape == Shape::whole_range && avoids_least(graph);
  const bool by_rows = row.shape == Shape::level_rows || row.shape == Shape::ordered_rows;
  const bool without_zeros =
      by_rows ? divides_by_zeros(graph) : row.shape == Shape::ties && avoids_zeros(graph);
  std::vector<Stream> streams;
  for (size_t i = 0; i < roles.size(); ++i) {
    const auto& input = graph.tensor(graph.inputs[i]);
    const Dtype dtype = input.dtype;
    // One in 1024 is so much larger; most of the short sums have none.
    const double some = std::sqrt(std::min(1.0, as_double(roles[i].terms) / 1024));
    const double many = outlier_of(dtype) / 32.0 * some;
    const double outliers = row.shape == Shape::outliers ? std::hypot(1, many) : 1;
    const bool unit = row.shape == Shape::unit;
    const double size = row.scale;
    const double mean = unit ? 0.5 : row.shift * size;
    const bool span = row.shape == Shape::span;
    const double deviation = unit ? 0.29 : (span ? 0.58 : outliers) * size;
    const double scale = weight_scale(roles[i].terms, mean, deviation, dtype);
    Range range = graph::range_in(ranges, input.name);
    if (roles[i].variance) range = graph::meet(range, {0, HUGE_VAL});
    std::vector<float> ends;
    if (row.shape == Shape::ends) ends = ends_for(graph, dtype);
    const int64_t elements = graph::element_count(input.shape);
    Stream made{seed, as_int(i), family, dtype, range, scale, std::move(ends), elements};
    if (contains(carriers.inputs, i)) made.rare = rare_in(input.shape);
    made.only_negative = carriers.only_negative;
    made.without_least = without_least;
    made.without_zeros = without_zeros;
    made.row = input.shape.empty() ? 1 : input.shape.back();
    streams.push_back(std::move(made));
  }
  return streams;
}
}  // namespace warploom::verify
