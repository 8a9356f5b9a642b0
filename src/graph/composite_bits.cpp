// The rewriting of what moves bits.
#include <cstdint>
#include <string>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/rules.h"

namespace warploom::graph::rewrites {
namespace {
// 2^n for each n of a tensor of i64, which may lie beyond the bits of a type: 0 there. Of 63 it is
// the least number of 64 bits, as which products wrap.
Id power_of_two(PrimitiveWriter& writer, Id n, int64_t bits) {
  const Id first = writer.scalar(0, n, "first");
  const Id last = writer.scalar(as_double(bits - 1), n, "last");
  const Id held = writer.make(OpKind::Clip, {n, first, last}, "held");
  const auto power = [&](int64_t i) { return i == 63 ? -0x1p63 : as_double(int64_t{1} << i); };
  const Id powers = writer.table(Dtype::i64, {bits}, "powers", power);
  const int64_t along = 0;
  return writer.make(OpKind::Gather, {powers, held}, "power", {{"axis", along}});
}
}  // namespace

// x · 2^n, or x / 2^n rounded down. What is moved by as many bits as there are, or more, is 0, or
// -1 where it was below 0; moves by less than 0 leave nothing either.
Result<Outputs> bit_shift(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(same_type(writer, false));
  const Dtype type = writer.in(0).dtype;
  if (is_float(type)) return type_error(writer, "integers", type);
  const std::string direction = writer.node.attribute<std::string>("direction", "");
  if (direction.empty())
    return writer.error(kAttribute, "a BitShift lacks its direction", "LEFT or RIGHT", "none");
  const int64_t bits = bits_of(type);
  const Id x = writer.cast(writer.raw(0), Dtype::i64, "x");
  const Id n = writer.cast(writer.raw(1), Dtype::i64, "n");
  const Id power = power_of_two(writer, n, bits);
  const Id zero = writer.scalar(0, x, "zero");
  const Id none = writer.scalar(0, n, "none");
  const Id most = writer.scalar(as_double(bits), n, "most");
  const Id above = writer.make(OpKind::GreaterOrEqual, {n, none}, "above");
  const Id below = writer.make(OpKind::Less, {n, most}, "below");
  const Id within = writer.make(OpKind::And, {above, below}, "within");
  Id moved = kAbsent;
  Id beyond = zero;
  if (direction == "LEFT") {
    moved = writer.mul(x, power, "moved");
  } else {
    const Id negative = writer.make(OpKind::Less, {x, zero}, "negative");
    const Id minus = writer.scalar(-1, x, "minus");
    beyond = writer.where(negative, minus, zero, "beyond");
    // Division cuts towards 0: of a number below 0 what is left is counted up first.
    const Id one = writer.scalar(1, x, "one");
    const Id raised = writer.sub(writer.add(x, one, "next"), power, "raised");
    const Id from = writer.where(negative, raised, x, "from");
    moved = writer.make(OpKind::Div, {from, power}, "moved");
    if (bits == 64) {  // by 63 bits a sign alone is left
      const Id last = writer.scalar(63, n, "last");
      const Id signs = writer.make(OpKind::Equal, {n, last}, "signs");
      const Id all = writer.where(negative, minus, zero, "sign");
      moved = writer.where(signs, all, moved, "without_sign");
    }
    if (type == Dtype::u64) {  // the signs that come in from above are zeros
      const Id rest = writer.sub(most, n, "rest");
      const Id ones = writer.sub(power_of_two(writer, rest, bits), one, "ones");
      const Id still = writer.make(OpKind::Equal, {n, none}, "still");
      const Id mask = writer.where(still, minus, ones, "mask");
      moved = writer.make(OpKind::BitwiseAnd, {moved, mask}, "unsigned");
      beyond = zero;
    }
  }
  const Id y = writer.where(within, moved, beyond, "shifted");
  return Outputs{writer.cast(y, type, "y")};
}

// The same bits under another type: of integers of one width.
Result<Outputs> bit_cast(PrimitiveWriter& writer) {
  const int64_t named = writer.node.integer("to");
  WARPLOOM_TRY(const Dtype to, checked_dtype(named, "BitCast's type", writer.place));
  const Dtype from = writer.in(0).dtype;
  if (bits_of(from) != bits_of(to)) return type_error(writer, "a type of as many bits", to);
  if (from == to) return Outputs{writer.raw(0)};
  const bool whole = is_integer(from) && is_integer(to) && to != Dtype::boolean;
  if (!whole)
    return writer.error(
        kType, "bits of floats are not seen", "two integer types",
        ErrorDetail(std::string(name_of(from)) + " and " + std::string(name_of(to))),
        "do it outside the model");
  return Outputs{writer.cast(writer.raw(0), to, "y")};
}
}  // namespace warploom::graph::rewrites
