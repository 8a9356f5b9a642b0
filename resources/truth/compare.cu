// Elements of an output held against the truth: verify/comparison.cpp in words of its own. A block
// takes a run of neighbours and leaves what it saw.
FUNCTION bool poisoned(const CompareTask& task, Word i) {
  const unsigned poison = static_cast<unsigned>(task.poison);
  switch (bits_of(task.type)) {
    case 16: return is_float(task.type) && bits16(task.found, i) == (poison & 0xffffu);
    case 32: return reinterpret_cast<const unsigned*>(task.found)[i] == poison;
    case 64: {
      const unsigned* const halves = reinterpret_cast<const unsigned*>(task.found) + 2 * i;
      return halves[0] == poison && halves[1] == poison;
    }
    default: return false;  // one byte of poison may be a value, as of an integer two may
  }
}

FUNCTION void count_mark(Seen& seen, int which, Word index) {
  if (seen.counts[which] == 0 || index < seen.firsts[which]) seen.firsts[which] = index;
  ++seen.counts[which];
}

FUNCTION bool overflows_alike(const CompareTask& task, double c, double r) {
  if (is_nan(r)) return is_nan(c);
  const bool same_sign = (c > 0) == (r > 0);
  if (is_infinite(r) && bits_of(task.type) > 8) return same_sign && is_infinite(c);
  return same_sign && fabs(c) >= task.largest * 0.9;
}

FUNCTION bool lacks_a_number(double c, double r, double largest) {
  if (!(fabs(r) <= largest)) return is_nan(c) && !is_nan(r);
  return !is_finite(c) && fabs(r) < largest * 0.99;
}

FUNCTION void mark_element(const CompareTask& task, Word i, double c, double r, Seen& seen) {
  const bool may_be_poison = !is_finite(c) || !is_float(task.type);
  if (may_be_poison && c != r && poisoned(task, i))
    count_mark(seen, 1, task.begin + i);
  else if (lacks_a_number(c, r, task.largest))
    count_mark(seen, 0, task.begin + i);
  else if (is_nan(r))
    count_mark(seen, 2, task.begin + i);
  else if (is_infinite(r) && bits_of(task.type) > 8)
    count_mark(seen, 3, task.begin + i);
}

FUNCTION void take_worst(Seen& seen, double ratio, Word index, double found, double expected) {
  seen.worst_ratio = ratio;
  seen.worst_index = index;
  seen.worst_found = found;
  seen.worst_expected = expected;
}

FUNCTION void add_error(const CompareTask& task, Word i, double c, double r, double e,
                        Seen& seen) {
  const double nearest = clamped(r, -task.largest, task.largest);
  const double error = fabs(c - nearest);
  const double bound = task.per_magnitude * e + task.relative * fabs(nearest) + task.absolute;
  if (error > seen.worst_ratio * bound)
    take_worst(seen, bound > 0 ? error / bound : infinite(), task.begin + i, c, r);
  if (!(fabs(r) <= task.largest)) return;
  if (c != 0) seen.has_number = 1;
  if (fabs(r) > task.step) seen.expects_number = 1;
  ++seen.compared;
  seen.error_squares += error * error;
  seen.reference_squares += r * r;
  seen.reference_fourths += r * r * r * r;
  seen.magnitude_squares += e * e;
  seen.magnitude_fourths += e * e * e * e;
  seen.largest_error = error > seen.largest_error ? error : seen.largest_error;
  seen.largest_reference = fabs(r) > seen.largest_reference ? fabs(r) : seen.largest_reference;
}

FUNCTION void compare_one(const CompareTask& task, Word i, Seen& seen) {
  const double c = load(task.type, task.found, i);
  double r = load(TYPE_f64, task.truth.data, i);
  double given = magnitude_at(task.truth, i);
  if (task.without_nan.data && is_nan(r) && !is_nan(c)) {
    r = load(TYPE_f64, task.without_nan.data, i);
    given = magnitude_at(task.without_nan, i);
    if (task.mixed && !is_nan(r)) given = nan_number();
  }
  const bool held = fabs(r) <= task.largest;
  if (!held && is_finite(r)) seen.beyond = 1;
  if (task.marked && is_nan(given) && !is_nan(r)) {
    if (c != r && poisoned(task, i)) count_mark(seen, 1, task.begin + i);
    ++seen.undetermined;
    return;
  }
  if (!held && overflows_alike(task, c, r)) return;
  mark_element(task, i, c, r, seen);
  const double e = held && !is_finite(given) ? fabs(r) : given;
  const bool has_error = held ? !is_infinite(c) : !is_nan(e);
  if (has_error && !is_nan(r) && !is_nan(c)) add_error(task, i, c, r, e, seen);
}

FUNCTION void compare_whole(const CompareTask& task, Word i, Seen& seen) {
  const Word c = load_whole(task.type, task.found, i);
  const Word r = reinterpret_cast<const Word*>(task.truth.data)[i];
  const double size = fabs(static_cast<double>(r));
  ++seen.compared;
  if (c != 0) seen.has_number = 1;
  if (r != 0) seen.expects_number = 1;
  seen.reference_squares += size * size;
  seen.largest_reference = size > seen.largest_reference ? size : seen.largest_reference;
  if (c == r) return;
  if (poisoned(task, i)) count_mark(seen, 1, task.begin + i);
  const double apart = fabs(static_cast<double>(c) - static_cast<double>(r));
  const double error = apart > 1 ? apart : 1;
  seen.error_squares += error * error;
  seen.largest_error = error > seen.largest_error ? error : seen.largest_error;
  if (error > seen.worst_ratio * 0.5)
    take_worst(seen, 2 * error, task.begin + i, static_cast<double>(c), static_cast<double>(r));
}

// Where the truth is not known.
FUNCTION void scan_one(const CompareTask& task, Word i, Seen& seen) {
  if (poisoned(task, i)) count_mark(seen, 1, task.begin + i);
}

FUNCTION void add_seen(Seen& to, const Seen& more) {
  if (more.worst_ratio > to.worst_ratio)
    take_worst(to, more.worst_ratio, more.worst_index, more.worst_found, more.worst_expected);
  to.error_squares += more.error_squares;
  to.reference_squares += more.reference_squares;
  to.reference_fourths += more.reference_fourths;
  to.magnitude_squares += more.magnitude_squares;
  to.magnitude_fourths += more.magnitude_fourths;
  to.largest_error = more.largest_error > to.largest_error ? more.largest_error : to.largest_error;
  if (more.largest_reference > to.largest_reference) to.largest_reference = more.largest_reference;
  to.compared += more.compared;
  to.undetermined += more.undetermined;
  for (int k = 0; k < 4; ++k) {
    if (more.counts[k] > 0 && (to.counts[k] == 0 || more.firsts[k] < to.firsts[k]))
      to.firsts[k] = more.firsts[k];
    to.counts[k] += more.counts[k];
  }
  to.has_number |= more.has_number;
  to.expects_number |= more.expects_number;
  to.beyond |= more.beyond;
}

KERNEL(truth_compare, CompareTask) {
  SHARED Seen shared[256];
  Seen seen = {};
  seen.worst_index = -1;
  for (int k = 0; k < 4; ++k) seen.firsts[k] = -1;
  const Word each = (task.count + blocks() - 1) / blocks();
  const Word begin = block() * each;
  const Word end = begin + each < task.count ? begin + each : task.count;
  for (Word i = begin + lane(); i < end; i += lanes()) {
    if (!task.truth.data)
      scan_one(task, i, seen);
    else if (task.is_whole)
      compare_whole(task, i, seen);
    else
      compare_one(task, i, seen);
  }
  shared[lane()] = seen;
  meet();
  for (int half = lanes() / 2; half > 0; half /= 2) {
    if (lane() < half) add_seen(shared[lane()], shared[lane() + half]);
    meet();
  }
  if (lane() == 0) reinterpret_cast<Seen*>(task.seen)[block()] = shared[0];
}
