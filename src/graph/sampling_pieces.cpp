#include <cstddef>
#include <vector>
#include "base/casts.h"
#include "graph/composite_lookups.h"
#include "graph/composite_sampling.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/rules.h"

namespace warploom::graph {
namespace {
// One of the pixels around a place along an axis.
struct Tap {
  Id index = kAbsent;   // within the image
  Id inside = kAbsent;  // whether it lay there; kAbsent: as if
  Id weight = kAbsent;  // kAbsent: 1
};

class Sampler {
 public:
  Sampler(PrimitiveWriter& writer, const Sampling& of) : writer_(writer), of_(of) {}

  Id run() {
    std::vector<std::vector<Tap>> axes;
    for (size_t a = 0; a < of_.places.size(); ++a)
      axes.push_back(taps_of(a));
    std::vector<Tap> corner;
    add_corners(axes, corner);
    return sum_;
  }

 private:
  double size(size_t axis) const { return as_double(writer_.shape(of_.x)[axis + 2]); }

  Id number(double value, Id like) { return writer_.scalar(value, like, "number"); }

  Id clamped(Id x, double high) {
    return writer_.make(OpKind::Clip, {x, number(0, x), number(high, x)}, "clamped");
  }

  // Along axis a: the pixels around the places.
  std::vector<Tap> taps_of(size_t a) {
    const Id place = of_.places[a];
    if (of_.interpolation == Interpolation::nearest) return {tap(place, a)};
    const Id low = writer_.make(OpKind::Floor, {place}, "low");
    const Id part = writer_.sub(place, low, "part");
    const bool is_cubic = of_.interpolation == Interpolation::cubic;
    const int first = is_cubic ? -1 : 0;
    const int count = is_cubic ? 4 : 2;
    std::vector<Tap> taps;
    for (int t = first; t < first + count; ++t) {
      const Id at = t == 0 ? low : writer_.add(low, number(t, low), "neighbour");
      Tap one = tap(at, a);
      one.weight = is_cubic ? cubic(part, t) : linear(part, t);
      taps.push_back(one);
    }
    return taps;
  }

  Tap tap(Id at, size_t a) {
    const double last = size(a) - 1;
    Tap made;
    if (of_.outside == Outside::zeros) {
      const Id above = writer_.make(OpKind::GreaterOrEqual, {at, number(0, at)}, "above");
      const Id below = writer_.make(OpKind::LessOrEqual, {at, number(last, at)}, "below");
      made.inside = writer_.make(OpKind::And, {above, below}, "inside");
    } else if (of_.outside == Outside::reflection) {
      const double rim = of_.to_centres ? 0 : -0.5;
      at = reflected(writer_, at, rim, last - rim);
    }
    made.index = clamped(at, last);
    return made;
  }

  Id linear(Id part, int t) {
    if (t == 1) return part;
    return writer_.sub(number(1, part), part, "rest");
  }

  // Keys' cubic with -0.75 of the distance |part - t|.
  Id cubic(Id part, int t) {
    constexpr double kA = -0.75;
    const Id off = t == 0 ? part : writer_.sub(part, number(t, part), "off");
    const Id d = writer_.make(OpKind::Abs, {off}, "distance");
    const auto times_plus = [&](Id x, double b) {
      return writer_.add(writer_.mul(x, d, "times"), number(b, d), "plus");
    };
    const bool is_near = t == 0 || t == 1;
    if (is_near) {
      const Id inner =
          writer_.add(writer_.mul(number(kA + 2, d), d, "times"), number(-(kA + 3), d), "plus");
      return times_plus(writer_.mul(inner, d, "square"), 1);
    }
    const Id inner =
        writer_.add(writer_.mul(number(kA, d), d, "times"), number(-5 * kA, d), "plus");
    return times_plus(times_plus(inner, 8 * kA), -4 * kA);
  }

  // Every choice of one tap an axis.
  void add_corners(const std::vector<std::vector<Tap>>& axes, std::vector<Tap>& corner) {
    if (corner.size() == axes.size()) {
      add(corner);
      return;
    }
    for (const Tap& tap : axes[corner.size()]) {
      corner.push_back(tap);
      add_corners(axes, corner);
      corner.pop_back();
    }
  }

  void add(const std::vector<Tap>& corner) {
    const Shape whole = writer_.shape(of_.x);
    Shape shape = {of_.grid[0], whole[1]};
    shape = chained(shape, entries(of_.grid, 1));
    Places places{writer_, of_.x, whole.size(), shape};
    if (of_.image == kAbsent)
      places.add(0);
    else
      places.add(0, writer_.cast(of_.image, places.type, "image"), false);
    places.add(1);
    Id inside = kAbsent;
    Id weight = kAbsent;
    for (size_t a = 0; a < corner.size(); ++a) {
      const Tap& tap = corner[a];
      places.add(a + 2, writer_.cast(tap.index, places.type, "index"), false);
      if (tap.inside != kAbsent)
        inside = inside == kAbsent ? tap.inside
                                   : writer_.make(OpKind::And, {inside, tap.inside}, "inside");
      if (tap.weight != kAbsent)
        weight = weight == kAbsent ? tap.weight : writer_.mul(weight, tap.weight, "weight");
    }
    Id pixel = places.taken();
    if (inside != kAbsent) pixel = writer_.where(inside, pixel, number(0, pixel), "pixel");
    if (weight != kAbsent)
      pixel = writer_.mul(pixel, writer_.cast(weight, writer_.dtype(pixel), "weight"), "weighted");
    const OpKind op = of_.takes_largest ? OpKind::Max : OpKind::Add;
    sum_ = sum_ == kAbsent ? pixel : writer_.make(op, {sum_, pixel}, "sampled");
  }

  PrimitiveWriter& writer_;
  const Sampling& of_;
  Id sum_ = kAbsent;
};
}  // namespace

Id reflected(PrimitiveWriter& writer, Id x, double low, double high) {
  const double length = high - low;
  if (length <= 0) return writer.mul(x, writer.scalar(0, x, "nothing"), "reflected");
  const auto number = [&](double value) { return writer.scalar(value, x, "number"); };
  const Id off = writer.make(OpKind::Abs, {writer.sub(x, number(low), "off")}, "distance");
  const Id ratio = writer.mul(off, number(1 / length), "ratio");
  const Id times = writer.make(OpKind::Floor, {ratio}, "times");
  const Id rest = writer.sub(off, writer.mul(times, number(length), "whole"), "rest");
  const Id half = writer.mul(times, number(0.5), "half");
  const Id even =
      writer.make(OpKind::Equal, {writer.make(OpKind::Floor, {half}, "floor"), half}, "even");
  const Id there = writer.add(rest, number(low), "there");
  const Id back = writer.sub(number(high), rest, "back");
  return writer.where(even, there, back, "reflected");
}

Id sampled(PrimitiveWriter& writer, const Sampling& of) {
  return Sampler(writer, of).run();
}
}  // namespace warploom::graph
