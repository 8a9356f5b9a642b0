// Values with their magnitudes, and reductions of them, as graph/evaluate_reductions.cpp has them.
struct Pair {
  double value;
  double magnitude;
};

// The larger, or smaller, of two numbers; a NaN stays, or is dropped.
FUNCTION double extreme(Word op, bool drops_nan, double v, double x) {
  if (is_nan(drops_nan ? x : v)) return v;
  const bool keeps = op == OP_max ? v > x : v < x;
  return keeps ? v : x;
}

// Errors of extremes: one that is NaN stays so, an infinite one counts for nothing.
FUNCTION double extreme_error(double to, double e) {
  return !is_nan(to) && !(e <= to) && !is_infinite(e) ? e : to;
}

// What one more element makes of a reduction.
FUNCTION Pair absorbed(Word op, bool drops_nan, Pair to, double x, double e) {
  if (op == OP_add) return {to.value + x, to.magnitude + (fabs(x) + e)};
  if (op == OP_mul) {
    const double value = to.value * x;
    return {value, to.magnitude * fabs(x) + fabs(to.value) * e + fabs(value)};
  }
  return {extreme(op, drops_nan, to.value, x), extreme_error(to.magnitude, e)};
}

// What two parts of a reduction make.
FUNCTION Pair merged(Word op, bool drops_nan, Pair one, Pair other) {
  if (op == OP_add) return {one.value + other.value, one.magnitude + other.magnitude};
  if (op == OP_mul)
    return {one.value * other.value,
            one.magnitude * fabs(other.value) + fabs(one.value) * other.magnitude};
  return {extreme(op, drops_nan, one.value, other.value),
          extreme_error(one.magnitude, other.magnitude)};
}
