// Inputs: verify/inputs.cpp in words of its own, an element at a time. `enum Shape` comes before
// it.
struct Keys {
  unsigned first;
  unsigned second;
  unsigned third;
};

FUNCTION unsigned scramble(unsigned x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  x ^= x >> 16;
  return x;
}

enum : long long { kDrawBlock = 1ll << 20 };

// The keys of a block of elements: the first numbers of a stream of its own (base/random.h).
FUNCTION Keys keys_of(const DrawTask& task, Word number) {
  const unsigned long long kStep = 0x9e3779b97f4a7c15ull;
  const unsigned long long of_block =
      static_cast<unsigned long long>(number) * 0xd1342543de82ef95ull;
  // What hashes the seed stands beside the rest by exclusive or: both before the first step.
  unsigned long long state = static_cast<unsigned long long>(task.state) ^ of_block;
  state += 2 * kStep;
  const unsigned long long a = mixed(state);
  const unsigned long long b = mixed(state + kStep);
  return {static_cast<unsigned>(a), static_cast<unsigned>(a >> 32), static_cast<unsigned>(b)};
}

FUNCTION unsigned number_of(Word within) { return static_cast<unsigned>(within) * 0x9e3779b1u; }

FUNCTION Word least_of(Word a, Word b) { return a < b ? a : b; }

FUNCTION Word assured(const DrawTask& task, const Keys& keys) {
  return task.elements > 0 ? keys.third % least_of(task.elements, kDrawBlock) : -1;
}

FUNCTION float bell(const Keys& keys, Word within, int shift, float scale, int outlier) {
  const unsigned n = number_of(within);
  const unsigned a = scramble(n + keys.first);
  const unsigned b = scramble(n ^ keys.second);
  const unsigned uniforms = (a & 0xffff) + (a >> 16) + (b & 0xffff) + (b >> 16);
  int sum = static_cast<int>(uniforms) - 131070 + shift;
  if (((a + b) & 1023u) == (keys.third & 1023u)) sum *= outlier;
  return static_cast<float>(sum) * scale;
}

FUNCTION float unit(const Keys& keys, Word within) {
  const int bits = static_cast<int>(scramble(number_of(within) + keys.first) >> 8);
  return static_cast<float>(bits) * 0x1p-24f;
}

FUNCTION float of_any_magnitude(unsigned bits, unsigned choice, unsigned least, unsigned most) {
  const unsigned exponent = least + choice % (most - least);
  return as_float((bits & 0x80000000u) | exponent << 23 | (bits & 0x7fffffu));
}

FUNCTION float of_magnitudes(const Keys& keys, Word within) {
  const unsigned n = number_of(within);
  const unsigned choice = scramble(n + keys.third);
  const unsigned most = (choice & 0xff) == 0 ? 100 : 40;
  return of_any_magnitude(scramble(n ^ keys.first), choice >> 8, 127 - most, 127 + most);
}

FUNCTION float on_halves(const DrawTask& task, const Keys& keys, Word within) {
  const float number = floorf(unit(keys, within) * 17) * 0.5f - 4;
  return static_cast<float>(task.scale) * (task.without_zeros && number == 0 ? 4.5f : number);
}

FUNCTION float at_ends(const DrawTask& task, const Keys& keys, Word within) {
  const bool narrow = task.type == TYPE_f16;
  const unsigned least = narrow ? 127 - 20 : 127 - 100;
  const unsigned most = narrow ? 127 + 15 : 127 + 100;
  const unsigned n = number_of(within);
  const unsigned choice = scramble(n + keys.third);
  const unsigned kind = choice & 3;
  if (kind < 2 && task.end_count > 0)
    return reinterpret_cast<const float*>(task.ends)[(choice >> 2) % task.end_count];
  if (kind == 2) return of_any_magnitude(scramble(n ^ keys.first), choice >> 2, least, most);
  return bell(keys, within, 0, static_cast<float>(task.deviation), 1);
}

FUNCTION float on_lattice(const DrawTask& task, const Keys& keys, Word within) {
  const double high = task.low + (task.numbers - 1) * task.step;
  const double ends[] = {task.low, high, task.low + task.step, high - task.step, 0, -1, 1};
  const double number = floor(static_cast<double>(unit(keys, within)) * task.numbers);
  double value = task.low + number * task.step;
  const unsigned choice = task.to_ends ? scramble(number_of(within) + keys.third) : 0;
  const double end = ends[(choice >> 1) % 7];
  if ((choice & 1) != 0 && end >= task.low && end <= high) value = end;
  if (task.nonzero && value == 0) value = high >= task.step ? task.step : -task.step;
  const float made = static_cast<float>(value);
  return made > high ? nextafterf(made, -as_float(0x7f800000u)) : made;
}

// A bell, of which few elements are infinite, or NaN.
FUNCTION float with_rare(const DrawTask& task, const Keys& keys, Word within, bool first_block,
                         float drawn) {
  if (task.rare == 0) return drawn;
  const Word one = first_block ? assured(task, keys) : -1;
  const unsigned choice = scramble(number_of(within) + keys.second);
  if (choice % task.rare != 0 && within != one) return drawn;
  const bool negative = task.only_negative || (choice >> 31) != 0;
  const unsigned sign = negative ? 0x80000000u : 0;
  return as_float(sign | (task.shape == SHAPE_nans ? 0x7fc00000u : 0x7f800000u));
}

// Of every other row all elements are one multiple of a half.
FUNCTION float with_level_rows(const DrawTask& task, Word element, float drawn) {
  const unsigned row = task.row > 0 ? static_cast<unsigned>(element / task.row) : 0;
  const unsigned choice = scramble(row * 0x9e3779b1u + static_cast<unsigned>(task.rows_key));
  if ((choice & 1) != 0) return drawn;
  const float number = static_cast<float>((choice >> 1) % 17) * 0.5f - 4;
  return static_cast<float>(task.scale) * (task.without_zeros && number == 0 ? 4.5f : number);
}

// Rows that ascend or descend, of one number among zeros, of one far number, and without what is
// below 0; each two alike.
FUNCTION float with_ordered_rows(const DrawTask& task, Word element, float drawn) {
  const Word length = task.row > 0 ? task.row : 1;
  const unsigned row = static_cast<unsigned>(element / length / 2);
  const Word place = element % length;
  const unsigned choice = scramble(row * 0x9e3779b1u + static_cast<unsigned>(task.rows_key));
  const unsigned more = choice / 6;
  const float scale = static_cast<float>(task.scale);
  const float zero = task.without_zeros ? 4.5f : 0.0f;
  const bool few = task.type != TYPE_f32 && task.type != TYPE_f64 && task.type != TYPE_bf16;
  const float unit_of_level = few || task.scale != 1 ? 0.5f : 8.0f;
  unsigned bits = 0;
  while (bits < 63 && (length >> bits) != 0) ++bits;
  const float step = as_float((127u + 1u - bits) << 23);
  const float ascending = static_cast<float>(4 * place - 2 * length + 1) * step;
  const float level = static_cast<float>(static_cast<int>(more % 17) - 8);
  switch (choice % 6) {
    case 0: return drawn;
    case 1: return scale * ascending;
    case 2: return -scale * ascending;
    case 3:
      return scale * (place == static_cast<Word>(more) % length
                          ? 0.5f + static_cast<float>(more & 7u)
                          : zero);
    case 4: return scale * (level == 0 ? zero : level * unit_of_level);
    default: return drawn > 0 ? drawn : scale * zero;
  }
}

FUNCTION float folded(const DrawTask& task, float x) {
  const float low = static_cast<float>(task.least);
  const float high = static_cast<float>(task.most);
  if (is_finite(low) && x < low) x = low + (low - x);
  if (is_finite(high) && x > high) x = high - (x - high);
  return x;
}

FUNCTION float shaped(const DrawTask& task, const Keys& keys, Word within, Word block) {
  const bool first_block = block == 0;
  const float scale = static_cast<float>(task.scale);
  switch (task.shape) {
    case SHAPE_ends: return at_ends(task, keys, within);
    case SHAPE_ties: return on_halves(task, keys, within);
    case SHAPE_magnitudes: return of_magnitudes(keys, within);
    case SHAPE_span: return static_cast<float>(task.span) * (2 * unit(keys, within) - 1);
    case SHAPE_unit: return scale * unit(keys, within);
    case SHAPE_signs: return scale * (unit(keys, within) < 0.5f ? 1.0f : -1.0f);
    default: break;
  }
  const int shift = static_cast<int>(task.shift);
  float drawn = bell(keys, within, shift, static_cast<float>(task.deviation),
                     static_cast<int>(task.outlier));
  if (task.largest != 0 && first_block && within == assured(task, keys))
    drawn = copysignf(static_cast<float>(task.largest), drawn);
  if (task.shape == SHAPE_level_rows)
    return with_level_rows(task, block * kDrawBlock + within, drawn);
  if (task.shape == SHAPE_ordered_rows)
    return with_ordered_rows(task, block * kDrawBlock + within, drawn);
  return with_rare(task, keys, within, first_block, drawn);
}

FUNCTION Word of_whole_range(const DrawTask& task, const Keys& keys, Word within,
                             bool first_block) {
  const int bits = bits_of(task.type);
  const bool has_sign = is_signed(task.type);
  const unsigned long long top = 1ull << (bits - 1);
  const unsigned long long least = has_sign ? top : 0;
  Word run = task.elements / 4;
  run = run < 1 ? 1 : least_of(run, 128);
  const unsigned long long ends[] = {least, least - 1, least + 1, least - 2, 0, 1, ~0ull, top};
  const unsigned n = number_of(within);
  const unsigned choice = scramble(n + keys.third);
  const unsigned long long low = scramble(n ^ keys.first);
  unsigned long long value =
      static_cast<unsigned long long>(scramble(n + keys.second)) << 32 | low;
  if ((choice & 3) == 0) value = ends[(choice >> 2) % 8];
  if ((choice & 3) == 1) {
    const unsigned long long power = 1ull << (choice >> 2) % static_cast<unsigned>(bits);
    value = (choice & 0x80000000u) != 0 ? -power : power;
  }
  const Word number = within / run;
  const bool first = first_block && number == 0;
  const unsigned of_run = scramble(static_cast<unsigned>(number) * 0x85ebca6bu + keys.second);
  const bool in_run = task.elements > 0 && (first || (of_run & 7) == 0);
  if (in_run) value = has_sign && (first || (of_run & 8) != 0) ? least : least - 1;
  Word whole = wrapped_integer(task.type, static_cast<Word>(value));
  const Word smallest = wrapped_integer(task.type, static_cast<Word>(least));
  if (task.without_least && has_sign && whole == smallest) ++whole;
  return task.nonzero && whole == 0 ? 1 : whole;
}

FUNCTION void store_whole(const DrawTask& task, Word i, Word value) {
  switch (task.type) {
    case TYPE_i64: reinterpret_cast<Word*>(task.to)[i] = value; break;
    case TYPE_i32: reinterpret_cast<int*>(task.to)[i] = static_cast<int>(value); break;
    case TYPE_u64: reinterpret_cast<Word*>(task.to)[i] = value; break;
    case TYPE_u32: reinterpret_cast<unsigned*>(task.to)[i] = static_cast<unsigned>(value); break;
    case TYPE_i16: reinterpret_cast<short*>(task.to)[i] = static_cast<short>(value); break;
    case TYPE_u16:
      reinterpret_cast<unsigned short*>(task.to)[i] = static_cast<unsigned short>(value);
      break;
    default: reinterpret_cast<unsigned char*>(task.to)[i] = static_cast<unsigned char>(value);
  }
}

FUNCTION void store_drawn(const DrawTask& task, Word i, float value) {
  switch (task.type) {
    case TYPE_f64: reinterpret_cast<double*>(task.to)[i] = value; break;
    case TYPE_f32: reinterpret_cast<float*>(task.to)[i] = value; break;
    case TYPE_tf32: reinterpret_cast<unsigned*>(task.to)[i] = encode(task.type, value) << 13; break;
    case TYPE_bf16: {
      const unsigned bits = as_bits(value);
      const bool number = (bits & 0x7fffffffu) <= 0x7f800000u;
      const unsigned up = number ? 0x7fffu + ((bits >> 16) & 1u) : 0;
      const unsigned high = (bits + up) >> 16;
      reinterpret_cast<unsigned short*>(task.to)[i] = static_cast<unsigned short>(high);
      break;
    }
    case TYPE_f16:
      reinterpret_cast<unsigned short*>(task.to)[i] =
          static_cast<unsigned short>(encode(task.type, value));
      break;
    case TYPE_e4m3:
    case TYPE_e5m2:
      reinterpret_cast<unsigned char*>(task.to)[i] =
          static_cast<unsigned char>(encode(task.type, value));
      break;
    default: store_whole(task, i, static_cast<Word>(rounded(task.type, value)));
  }
}

KERNEL(truth_draw, DrawTask) {
  for (Word i = first_item(); i < task.count; i += next_item()) {
    const Word number = (task.begin + i) / kDrawBlock;
    const Word within = (task.begin + i) % kDrawBlock;
    const Keys keys = keys_of(task, number);
    if (task.is_whole) {
      store_whole(task, i, of_whole_range(task, keys, within, number == 0));
    } else if (task.numbers > 0) {
      store_drawn(task, i, on_lattice(task, keys, within));
    } else {
      store_drawn(task, i, folded(task, shaped(task, keys, within, number)));
    }
  }
}
