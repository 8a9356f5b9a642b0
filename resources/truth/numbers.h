// Element types and whole numbers of the oracle on a GPU: base/dtype.cpp and base/integers.cpp in
// words of their own. `enum Type` comes before it, made of base/dtype.def.
FUNCTION bool is_nan(double x) { return x != x; }
FUNCTION bool is_infinite(double x) { return fabs(x) == infinite(); }
FUNCTION bool is_finite(double x) { return fabs(x) < infinite(); }

FUNCTION unsigned bits16(Word data, Word i) {
  return reinterpret_cast<const unsigned short*>(data)[i];
}

FUNCTION unsigned bits8(Word data, Word i) {
  return reinterpret_cast<const unsigned char*>(data)[i];
}

// Exponents of a half reach up to 2^16, where it has infinity and NaN.
FUNCTION double half_number(unsigned bits) {
  float size = as_float((bits & 0x7fffu) << 13) * 0x1p112f;
  if ((bits & 0x7c00u) == 0x7c00u) {
    if (bits & 0x3ffu) return nan_number();
    size = as_float(0x7f800000u);
  }
  return bits & 0x8000u ? -size : size;
}

FUNCTION double e4m3_number(unsigned bits) {
  if ((bits & 0x7fu) == 0x7fu) return nan_number();
  const float size = as_float((bits & 0x7fu) << 20) * 0x1p120f;
  return bits & 0x80u ? -size : size;
}

// Of types of less than a byte, packed from the low bits on.
FUNCTION Word packed_number(Word data, Word i, int bits) {
  const Word bit = i * bits;
  return bits8(data, bit / 8) >> (bit % 8) & ((1u << bits) - 1);
}

FUNCTION Word load_whole(Word type, Word data, Word i) {
  switch (type) {
    case TYPE_i64: return reinterpret_cast<const Word*>(data)[i];
    case TYPE_i32: return reinterpret_cast<const int*>(data)[i];
    case TYPE_i16: return reinterpret_cast<const short*>(data)[i];
    case TYPE_i8: return reinterpret_cast<const signed char*>(data)[i];
    case TYPE_u64: return reinterpret_cast<const Word*>(data)[i];
    case TYPE_u32: return reinterpret_cast<const unsigned*>(data)[i];
    case TYPE_u16: return reinterpret_cast<const unsigned short*>(data)[i];
    case TYPE_i4: {
      const Word number = packed_number(data, i, 4);
      return number > 7 ? number - 16 : number;
    }
    case TYPE_u4: return packed_number(data, i, 4);
    case TYPE_u2: return packed_number(data, i, 2);
    case TYPE_u1: return packed_number(data, i, 1);
    default: return bits8(data, i);
  }
}

FUNCTION double load(Word type, Word data, Word i) {
  switch (type) {
    case TYPE_f64: return reinterpret_cast<const double*>(data)[i];
    case TYPE_f32:
    case TYPE_tf32: return reinterpret_cast<const float*>(data)[i];
    case TYPE_bf16: return as_float(bits16(data, i) << 16);
    case TYPE_f16: return half_number(bits16(data, i));
    case TYPE_e4m3: return e4m3_number(bits8(data, i));
    case TYPE_e5m2: return half_number(bits8(data, i) << 8);
    default: return static_cast<double>(load_whole(type, data, i));
  }
}

FUNCTION double magnitude_at(const Numbers& of, Word i) {
  return of.magnitude ? reinterpret_cast<const double*>(of.magnitude)[i] : 0;
}

FUNCTION void put(const Numbers& to, Word i, double value, double magnitude) {
  reinterpret_cast<double*>(to.data)[i] = value;
  if (to.magnitude) reinterpret_cast<double*>(to.magnitude)[i] = magnitude;
}

FUNCTION void put_whole(const Numbers& to, Word i, Word value) {
  reinterpret_cast<Word*>(to.data)[i] = value;
}

FUNCTION int bits_of(Word type) {
  switch (type) {
#define TYPE_ROW(name, bits, mantissa) case TYPE_##name: return bits;
    TYPE_ROWS
#undef TYPE_ROW
  }
  return 0;
}

FUNCTION int mantissa_of(Word type) {
  switch (type) {
#define TYPE_ROW(name, bits, mantissa) case TYPE_##name: return mantissa;
    TYPE_ROWS
#undef TYPE_ROW
  }
  return 0;
}

FUNCTION bool is_float(Word type) { return mantissa_of(type) > 0; }

FUNCTION bool is_signed(Word type) {
  return is_float(type) || type == TYPE_i64 || type == TYPE_i32 ||
         type == TYPE_i16 || type == TYPE_i8 || type == TYPE_i4;
}

// Bits of a narrow float nearest to a number; the sign is the highest.
FUNCTION unsigned encode(Word type, double value) {
  const int mantissa = mantissa_of(type);
  const int exponents = (type == TYPE_tf32 ? 19 : bits_of(type)) - 1 - mantissa;
  const bool has_infinity = type != TYPE_e4m3;
  const int bias = (1 << (exponents - 1)) - 1;
  const unsigned top = (1u << exponents) - 1;
  const unsigned sign = (signbit(value) ? 1u : 0u) << (exponents + mantissa);
  const unsigned infinity = top << mantissa;
  const unsigned ones = (1u << mantissa) - 1;
  const unsigned nan = infinity | (has_infinity ? 1u << (mantissa - 1) : ones);
  if (is_nan(value)) return sign | nan;
  const unsigned beyond = has_infinity ? infinity : nan;
  if (is_infinite(value)) return sign | beyond;
  int exponent = 1 - bias;
  if (value != 0) exponent = ilogb(value) > exponent ? ilogb(value) : exponent;
  if (exponent > bias + 2) return sign | beyond;
  const unsigned units = static_cast<unsigned>(rint(ldexp(fabs(value), mantissa - exponent)));
  const unsigned raised = static_cast<unsigned>(exponent + bias - 1) << mantissa;
  return sign | (raised + units < beyond ? raised + units : beyond);
}

FUNCTION double clamped(double x, double low, double high) {
  const double above = x < low ? low : x;
  return above > high ? high : above;
}

// As base/dtype.h's rounded().
FUNCTION double rounded(Word type, double value) {
  switch (type) {
    case TYPE_f64: return value;
    case TYPE_f32: return static_cast<double>(static_cast<float>(value));
    case TYPE_tf32: return as_float(encode(type, value) << 13);
    case TYPE_bf16: return as_float(encode(type, value) << 16);
    case TYPE_f16: return half_number(encode(type, value));
    case TYPE_e5m2: return half_number(encode(type, value) << 8);
    case TYPE_e4m3: return e4m3_number(encode(type, value));
    case TYPE_boolean: return value != 0 ? 1 : 0;
    default: break;
  }
  if (is_nan(value)) return 0;
  const double top = ldexp(1.0, bits_of(type) - (is_signed(type) ? 1 : 0));
  double high = top - 1;
  if (type == TYPE_i64) high = 9223372036854774784.0;
  if (type == TYPE_u64) high = 18446744073709549568.0;
  const double whole = bits_of(type) < 8 ? rint(value) : trunc(value);
  return clamped(whole, is_signed(type) ? -top : 0, high);
}

// A cast's result, where what is too large becomes the largest number.
FUNCTION double saturated(Word type, double value) {
  const double result = rounded(type, value);
  if (is_nan(value)) return result;
  const double largest = type == TYPE_e4m3 ? 448 : 57344;
  return fabs(result) <= largest ? result : copysign(largest, value);
}

// What storing in an integer type makes of a number that is a double.
FUNCTION double wrapped(Word type, double value) {
  if (type == TYPE_boolean) return value != 0 ? 1 : 0;
  if (!is_finite(value)) return 0;
  const double span = ldexp(1.0, bits_of(type));
  const double low = remainder(trunc(value), span);
  if (!is_signed(type)) return low < 0 ? low + span : low;
  return low == span / 2 ? -low : low;
}

FUNCTION Word wrapped_integer(Word type, Word value) {
  switch (type) {
    case TYPE_i64: return value;
    case TYPE_i32: return static_cast<int>(value);
    case TYPE_i16: return static_cast<short>(value);
    case TYPE_i8: return static_cast<signed char>(value);
    case TYPE_u64: return value;
    case TYPE_u32: return static_cast<unsigned>(value);
    case TYPE_u16: return static_cast<unsigned short>(value);
    case TYPE_boolean: return value != 0 ? 1 : 0;
    default: return static_cast<unsigned char>(value);
  }
}

FUNCTION Word saturated_integer(Word type, double value) {
  const Word least = static_cast<Word>(1ull << 63);
  if (type == TYPE_boolean) return value != 0 ? 1 : 0;
  if (is_nan(value)) return 0;
  Word whole = least;
  if (value >= 0x1p63)
    whole = ~least;
  else if (value > -0x1p63)
    whole = static_cast<Word>(value);
  if (type == TYPE_u64)
    return value > 0 ? static_cast<Word>(static_cast<unsigned long long>(rounded(type, value))) : 0;
  if (type == TYPE_i64) return whole;
  const Word most = (1ll << (bits_of(type) - (is_signed(type) ? 1 : 0))) - 1;
  const Word low = is_signed(type) ? -most - 1 : 0;
  if (whole < low) return low;
  return whole > most ? most : whole;
}

// A storage's element as a whole number.
FUNCTION Word whole_at(const Numbers& of, Word i) {
  if (!is_float(of.type)) return load_whole(of.type, of.data, i);
  return saturated_integer(TYPE_i64, load(of.type, of.data, i));
}

FUNCTION Word sum_of(Word a, Word b) {
  return static_cast<Word>(static_cast<unsigned long long>(a) + static_cast<unsigned long long>(b));
}

FUNCTION Word negative(Word a) { return static_cast<Word>(-static_cast<unsigned long long>(a)); }

FUNCTION Word product_of(Word a, Word b) {
  return static_cast<Word>(static_cast<unsigned long long>(a) * static_cast<unsigned long long>(b));
}

FUNCTION Word quotient_of(Word a, Word b) {
  if (b == 0) return 0;
  return b == -1 ? negative(a) : a / b;
}

FUNCTION Word apply_integers(Word op, Word a, Word b, Word c) {
  switch (op) {
    case OP_add: return sum_of(a, b);
    case OP_sub: return sum_of(a, negative(b));
    case OP_mul: return product_of(a, b);
    case OP_div: return quotient_of(a, b);
    case OP_bit_and: return a & b;
    case OP_fmod: return sum_of(a, negative(product_of(b, quotient_of(a, b))));
    case OP_max: return a > b ? a : b;
    case OP_min: return a < b ? a : b;
    case OP_fma: return sum_of(product_of(a, b), c);
    case OP_where: return a != 0 ? b : c;
    case OP_less: return a < b ? 1 : 0;
    case OP_equal: return a == b ? 1 : 0;
    case OP_neg: return negative(a);
    case OP_abs: return a < 0 ? negative(a) : a;
    case OP_relu: return a > 0 ? a : 0;
    case OP_floor: return a;
    default: return 0;
  }
}

// Where an element of a box lies.
FUNCTION Word place_of(const Strided& view, const Box& box, Word i) {
  if (box.axes == 1) return view.origin + i * view.strides[0];
  Word place = view.origin;
  if (box.count < (1ll << 31)) {
    unsigned rest = static_cast<unsigned>(i);
    for (int axis = static_cast<int>(box.axes) - 1; axis > 0; --axis) {
      const unsigned size = static_cast<unsigned>(box.size[axis]);
      const unsigned next = rest / size;
      place += static_cast<Word>(rest - next * size) * view.strides[axis];
      rest = next;
    }
    return place + static_cast<Word>(rest) * view.strides[0];
  }
  Word rest = i;
  for (int axis = static_cast<int>(box.axes) - 1; axis > 0; --axis) {
    place += rest % box.size[axis] * view.strides[axis];
    rest /= box.size[axis];
  }
  return place + rest * view.strides[0];
}

// The larger and the smaller of two numbers, a NaN dropped.
FUNCTION double number_fmax(double a, double b) { return is_nan(b) || a > b ? a : b; }
FUNCTION double number_fmin(double a, double b) { return is_nan(b) || a < b ? a : b; }

// What base/value_ops.def says the errors of values by: NaN as an error says that the argument is
// more than its type holds, and then so does the result's.
FUNCTION double slope(double s, double error) {
  if (is_nan(error)) return error;
  return error == 0 || s == 0 ? 0 : fabs(s) * error;
}

FUNCTION double larger_error(double one, double other) {
  return one > other || is_nan(one) ? one : other;
}

// Blocks go over elements by turns, however many there are.
FUNCTION Word first_item() { return block() * lanes() + lane(); }
FUNCTION Word next_item() { return blocks() * lanes(); }

// The mixer of base/random.h.
FUNCTION unsigned long long mixed(unsigned long long z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}
