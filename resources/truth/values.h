// Values with their magnitudes, as graph/pointwise.cpp has them. Before it come apply(op, a, b, c)
// and moved(op, a, b, c, v, x, y, z), made of base/value_ops.def.
// What is left where NaN is left out, by the operations that can.
FUNCTION double without_nan(Word op, double a, double b) {
  if (op == OP_relu) return 0;
  if (op != OP_max && op != OP_min) return nan_number();
  return is_nan(a) ? b : a;
}

struct Pair {
  double value;
  double magnitude;
};

// The magnitude of a term that is infinite: of the arguments that are infinite already, else none
// where all are given.
FUNCTION double infinite_magnitude(const Pair* x, Word arity) {
  double given = -1;
  double others = 0;
  for (Word k = 0; k < arity; ++k) {
    const double e = x[k].magnitude;
    if (is_nan(e)) return e;
    if (is_infinite(x[k].value))
      given = e > given ? e : given;
    else
      others = e > others ? e : others;
  }
  if (given >= 0) return given;
  return others == 0 ? 0 : infinite();
}

FUNCTION Pair applied(Word op, const Pair* x, Word arity, bool drops_nan) {
  Pair made;
  made.value = apply(op, x[0].value, x[1].value, x[2].value);
  if (drops_nan && is_nan(made.value)) made.value = without_nan(op, x[0].value, x[1].value);
  if (is_infinite(made.value)) {
    made.magnitude = infinite_magnitude(x, arity);
  } else {
    const double error = moved(op, x[0].value, x[1].value, x[2].value, made.value, x[0].magnitude,
                               x[1].magnitude, x[2].magnitude);
    made.magnitude = fabs(made.value) + error;
  }
  return made;
}

// The larger, or smaller, of two numbers; a NaN stays, or is dropped.
FUNCTION double extreme(Word op, bool drops_nan, double v, double x) {
  if (is_nan(drops_nan ? x : v)) return v;
  return (op == OP_max ? v > x : v < x) ? v : x;
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
