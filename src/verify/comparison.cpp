// Comparing elements of an output with FP64's, and adding up what was seen.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/integers.h"
#include "graph/parallel.h"
#include "verify/limits.h"
#include "verify/tolerance.h"

namespace warploom::verify {
namespace {
// Poison may be a legitimate value of an integer of one byte or two, so that outputs of these rely
// on the comparison alone.
bool shows_poison(Dtype dtype) {
  return bytes_of(dtype) > (is_float(dtype) ? 1 : 2);
}

bool poisoned(Dtype dtype, const void* found, int64_t index) {
  constexpr uint32_t kTwice[] = {kPoison, kPoison};
  if (!shows_poison(dtype)) return false;
  const int64_t bytes = bytes_of(dtype);
  const std::byte* const element = static_cast<const std::byte*>(found) + index * bytes;
  return std::memcmp(element, kTwice, bytes) == 0;
}

// Whether `c` is what the type makes of an `r` that it cannot hold: NaN of NaN, infinity of
// infinity where the type has one, else infinity or nearly the largest number, of the same sign.
bool overflows_alike(double c, double r, const Limits& limits) {
  if (std::isnan(r)) return std::isnan(c);
  const bool same_sign = (c > 0) == (r > 0);
  const bool saturates = bits_of(limits.dtype) <= 8;
  if (std::isinf(r) && !saturates) return same_sign && std::isinf(c);
  return same_sign && std::abs(c) >= limits.largest * 0.9;
}

// Whether `c` is NaN or infinite where `r` asks for a number. Close to the largest number, rounding
// decides.
bool lacks_a_number(double c, double r, double largest) {
  const bool held = std::abs(r) <= largest;
  if (!held) return std::isnan(c) && !std::isnan(r);
  return !std::isfinite(c) && std::abs(r) < largest * 0.99;
}

// The elements that one comparison is of; c, r and E as in tolerance.h.
struct Elements {
  Tolerance tolerance;
  Dtype dtype;
  Limits limits;
  const void* found;
  const double* value;
  const double* magnitude;  // null: |r|
  int64_t begin;            // the first one's number in the whole output
  bool marked;

  void add(int64_t i, Comparison& sum) const {
    const double c = found_at(i);
    const double r = value[i];
    // Else the type cannot hold it: infinity or NaN is right, a plain number is not.
    const bool held = std::abs(r) <= limits.largest;
    sum.beyond |= !held && std::isfinite(r);
    const bool overflowed_before = marked && std::isnan(magnitude[i]) && !std::isnan(r);
    if (overflowed_before) {
      if (c != r && poisoned(dtype, found, i)) sum.unwritten.add({1, begin + i});
      ++sum.undetermined;
      return;
    }
    if (!held && overflows_alike(c, r, limits)) return;
    mark(i, c, r, sum);
    const double given = magnitude ? magnitude[i] : std::abs(r);
    const double e = held && !std::isfinite(given) ? std::abs(r) : given;
    const bool has_error = held ? !std::isinf(c) : !std::isnan(e);
    if (has_error && !std::isnan(r) && !std::isnan(c)) add_error(i, c, r, e, sum);
  }

 private:
  double found_at(int64_t i) const {
    if (dtype == Dtype::f32) return static_cast<const float*>(found)[i];
    return load_as_double(dtype, found, i);
  }

  // Counts an element that is no number, or none where it should be.
  void mark(int64_t i, double c, double r, Comparison& sum) const {
    const bool may_be_poison = !std::isfinite(c) || !is_float(dtype);
    if (may_be_poison && c != r && poisoned(dtype, found, i))
      sum.unwritten.add({1, begin + i});
    else if (lacks_a_number(c, r, limits.largest))
      sum.nonfinite.add({1, begin + i});
    else if (std::isnan(r))
      sum.lost_nan.add({1, begin + i});
    else if (std::isinf(r) && bits_of(dtype) > 8)
      sum.lost_infinity.add({1, begin + i});
  }

  void add_error(int64_t i, double c, double r, double e, Comparison& sum) const {
    const double nearest = std::clamp(r, -limits.largest, limits.largest);
    const double error = std::abs(c - nearest);
    const double of_magnitude = tolerance.per_magnitude * e;
    const double of_value = tolerance.relative * std::abs(nearest);
    const double bound = of_magnitude + of_value + tolerance.absolute;
    if (error > sum.worst.ratio * bound)
      sum.worst = {bound > 0 ? error / bound : HUGE_VAL, begin + i, c, r};
    const bool held = std::abs(r) <= limits.largest;
    if (!held) return;
    if (c != 0) sum.all_zero = false;
    if (std::abs(r) > limits.step) sum.zero_expected = false;
    ++sum.compared;
    sum.error_squares += error * error;
    sum.reference_squares += r * r;
    sum.reference_fourths += r * r * r * r;
    sum.magnitude_squares += e * e;
    sum.magnitude_fourths += e * e * e * e;
    sum.largest_error = std::max(sum.largest_error, error);
    sum.largest_reference = std::max(sum.largest_reference, std::abs(r));
  }
};

// Counts the elements that are `poison`, which is as wide as they are.
template <class Word>
void count_poison(Comparison& sum, const void* found, Word poison, int64_t begin, int64_t from,
                  int64_t to) {
  const auto* const words = static_cast<const Word*>(found);
  for (int64_t i = from; i < to; ++i)
    if (words[i] == poison) sum.unwritten.add({1, begin + i});
}
}  // namespace

void Comparison::add(const Comparison& part) {
  if (part.worst.ratio > worst.ratio) worst = part.worst;
  error_squares += part.error_squares;
  reference_squares += part.reference_squares;
  reference_fourths += part.reference_fourths;
  magnitude_squares += part.magnitude_squares;
  magnitude_fourths += part.magnitude_fourths;
  compared += part.compared;
  largest_error = std::max(largest_error, part.largest_error);
  largest_reference = std::max(largest_reference, part.largest_reference);
  nonfinite.add(part.nonfinite);
  unwritten.add(part.unwritten);
  lost_nan.add(part.lost_nan);
  lost_infinity.add(part.lost_infinity);
  undetermined += part.undetermined;
  all_zero = all_zero && part.all_zero;
  zero_expected = zero_expected && part.zero_expected;
  beyond = beyond || part.beyond;
}

double Comparison::frobenius() const {
  if (error_squares == 0 || zero_expected) return 0;
  return reference_squares > 0 ? std::sqrt(error_squares / reference_squares) : HUGE_VAL;
}

double Comparison::max_error() const {
  if (largest_error == 0 || zero_expected) return 0;
  return largest_reference > 0 ? largest_error / largest_reference : HUGE_VAL;
}

void compare(Comparison& all, const Tolerance& tolerance, Dtype dtype, const void* found,
             const double* value, const double* magnitude, int64_t begin, int64_t count,
             bool marked) {
  const Limits limits = limits_of(dtype);
  const Elements elements{tolerance, dtype, limits, found, value, magnitude, begin, marked};
  const auto work = [&](Comparison& part, int64_t from, int64_t to) {
    const Elements own = elements;
    Comparison sum;  // of its own, which the compiler keeps in registers
    for (int64_t i = from; i < to; ++i)
      own.add(i, sum);
    part = sum;
  };
  for (const auto& part : graph::in_parallel<Comparison>(count, 1 << 16, work))
    all.add(part);
}

void compare_integers(Comparison& all, Dtype dtype, const void* found, const int64_t* value,
                      int64_t begin, int64_t count) {
  const auto work = [&](Comparison& part, int64_t from, int64_t to) {
    Comparison sum;
    for (int64_t i = from; i < to; ++i) {
      const int64_t c = load_integer(dtype, found, i);
      const int64_t r = value[i];
      const double size = std::abs(as_double(r));
      ++sum.compared;
      sum.all_zero &= c == 0;
      sum.zero_expected &= r == 0;
      sum.reference_squares += size * size;
      sum.largest_reference = std::max(sum.largest_reference, size);
      if (c == r) continue;
      if (poisoned(dtype, found, i)) sum.unwritten.add({1, begin + i});
      // As doubles they may be equal.
      const double apart = std::abs(as_double(c) - as_double(r));
      const double error = std::max(1.0, apart);
      sum.error_squares += error * error;
      sum.largest_error = std::max(sum.largest_error, error);
      if (error > sum.worst.ratio * 0.5)
        sum.worst = {2 * error, begin + i, as_double(c), as_double(r)};
    }
    part = sum;
  };
  for (const auto& part : graph::in_parallel<Comparison>(count, 1 << 16, work))
    all.add(part);
}

void scan(Comparison& sum, Dtype dtype, const void* found, int64_t begin, int64_t count) {
  constexpr uint64_t kTwice = uint64_t{kPoison} << 32 | kPoison;
  if (!shows_poison(dtype)) return;
  const auto work = [=](Comparison& part, int64_t from, int64_t to) {
    switch (bytes_of(dtype)) {
      case 2: count_poison(part, found, static_cast<uint16_t>(kTwice), begin, from, to); break;
      case 4: count_poison(part, found, as_uint32(kTwice), begin, from, to); break;
      case 8: count_poison(part, found, kTwice, begin, from, to); break;
      default: break;
    }
  };
  for (const auto& part : graph::in_parallel<Comparison>(count, 1 << 16, work))
    sum.add(part);
}
}  // namespace warploom::verify
