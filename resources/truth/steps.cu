// The steps of the reference (graph/steps.h) but for pointwise operators and products, one kernel
// each, and what looks at bytes.
KERNEL(truth_copy, CopyTask) {
  for (Word i = first_item(); i < task.box.count; i += next_item()) {
    const Word to = place_of(task.to, task.box, i);
    const bool has_source = task.from.of.data != 0;
    const Word from = has_source ? place_of(task.from, task.box, i) : 0;
    if (task.is_whole)
      put_whole(task.to.of, to, has_source ? whole_at(task.from.of, from) : task.whole);
    else if (has_source)
      put(task.to.of, to, load(task.from.of.type, task.from.of.data, from),
          magnitude_at(task.from.of, from));
    else
      put(task.to.of, to, task.value, 0);
  }
}

KERNEL(truth_gather, GatherTask) {
  for (Word i = first_item(); i < task.box.count; i += next_item()) {
    Word index = whole_at(task.index.of, place_of(task.index, task.box, i));
    if (index < 0) index += task.extent;
    index = index < 0 ? 0 : index;
    index = index >= task.extent ? task.extent - 1 : index;
    const Word from = place_of(task.from, task.box, i) + index * task.stride;
    if (task.is_whole)
      put_whole(task.to, i, whole_at(task.from.of, from));
    else
      put(task.to, i, load(task.from.of.type, task.from.of.data, from),
          magnitude_at(task.from.of, from));
  }
}

FUNCTION Word tap_of(const ReduceTask& task, Word term) {
  Word place = 0;
  for (int axis = static_cast<int>(task.taps.axes) - 1; axis > 0; --axis) {
    const Word next = term / task.taps.size[axis];
    place += (term - next * task.taps.size[axis]) * task.steps[axis];
    term = next;
  }
  return place + term * task.steps[0];
}

FUNCTION Pair reduced(const ReduceTask& task, Word from, Word begin, Word step, Word end,
                      Pair start) {
  const Numbers& of = task.from.of;
  for (Word term = begin; term < end; term += step) {
    const Word place = from + tap_of(task, term);
    start = absorbed(task.op, task.drops_nan, start, load(of.type, of.data, place),
                     magnitude_at(of, place));
  }
  return start;
}

FUNCTION Word reduced_whole(const ReduceTask& task, Word from, Word begin, Word step, Word end,
                            Word start) {
  for (Word term = begin; term < end; term += step)
    start = apply_integers(task.op, start, whole_at(task.from.of, from + tap_of(task, term)), 0);
  return start;
}

// A thread takes an output.
KERNEL(truth_reduce_each, ReduceTask) {
  for (Word i = first_item(); i < task.box.count; i += next_item()) {
    const Word from = place_of(task.from, task.box, i);
    if (task.is_whole) {
      const Word made = reduced_whole(task, from, 0, 1, task.taps.count, task.start_whole);
      put_whole(task.to, i, wrapped_integer(task.type, made));
      continue;
    }
    const Pair made = reduced(task, from, 0, 1, task.taps.count, {task.start, 0});
    put(task.to, i, made.value, made.magnitude);
  }
}

// What a reduction of nothing is, for parts that are merged.
FUNCTION double nothing_of(Word op) {
  if (op == OP_max) return -infinite();
  if (op == OP_min) return infinite();
  return op == OP_mul ? 1 : 0;
}

// A block takes an output, or a part of one.
KERNEL(truth_reduce_together, ReduceTask) {
  SHARED Pair parts[256];
  SHARED Word whole[256];
  const Word each = (task.taps.count + task.parts - 1) / task.parts;
  for (Word i = block(); i < task.box.count * task.parts; i += blocks()) {
    const Word from = place_of(task.from, task.box, i / task.parts);
    const Word begin = i % task.parts * each;
    const Word end = begin + each < task.taps.count ? begin + each : task.taps.count;
    const bool first = i % task.parts == 0 && lane() == 0;
    Word nothing = task.op == OP_mul ? 1 : 0;
    if (task.op == OP_max || task.op == OP_min) nothing = task.start_whole;
    const Pair start = {first ? task.start : nothing_of(task.op), 0};
    if (task.is_whole)
      whole[lane()] = reduced_whole(task, from, begin + lane(), lanes(), end,
                                    first ? task.start_whole : nothing);
    else
      parts[lane()] = reduced(task, from, begin + lane(), lanes(), end, start);
    meet();
    for (int half = lanes() / 2; half > 0; half /= 2) {
      if (lane() < half && task.is_whole)
        whole[lane()] = apply_integers(task.op, whole[lane()], whole[lane() + half], 0);
      if (lane() < half && !task.is_whole)
        parts[lane()] = merged(task.op, task.drops_nan, parts[lane()], parts[lane() + half]);
      meet();
    }
    if (lane() == 0 && task.is_whole) put_whole(task.to, i, wrapped_integer(task.type, whole[0]));
    if (lane() == 0 && !task.is_whole) put(task.to, i, parts[0].value, parts[0].magnitude);
    meet();
  }
}

KERNEL(truth_merge, MergeTask) {
  for (Word i = first_item(); i < task.count; i += next_item()) {
    const Word from = i * task.result_step;
    Pair made = {load(TYPE_f64, task.from.data, from), magnitude_at(task.from, from)};
    for (Word part = 1; part < task.parts; ++part) {
      const Word place = from + part * task.part_step;
      const Pair other = {load(TYPE_f64, task.from.data, place), magnitude_at(task.from, place)};
      made = merged(task.op, task.drops_nan, made, other);
    }
    put(task.to, i, made.value, made.magnitude);
  }
}

struct ScanLine {
  Word from;
  Word to;
};

FUNCTION ScanLine scan_line(const ScanTask& task, Word i) {
  return {place_of(task.from, task.box, i), place_of(task.to, task.box, i)};
}

FUNCTION void put_scanned(const ScanTask& task, const ScanLine& line, Word k, Pair sum) {
  const Word index = task.reverse ? task.extent - 1 - k : k;
  if (index < task.begin || index >= task.begin + task.count) return;
  const Word to = line.to + (index - task.begin) * task.to_stride;
  put(task.to.of, to, sum.value, sum.magnitude);
}

FUNCTION Pair scanned_at(const ScanTask& task, const ScanLine& line, Word k) {
  const Word index = task.reverse ? task.extent - 1 - k : k;
  const Word from = line.from + index * task.from_stride;
  const double x = load(task.from.of.type, task.from.of.data, from);
  return {x, fabs(x) + magnitude_at(task.from.of, from)};
}

FUNCTION void scan_whole(const ScanTask& task, const ScanLine& line) {
  Word total = 0;
  for (Word k = 0; k < task.extent; ++k) {
    const Word index = task.reverse ? task.extent - 1 - k : k;
    total = sum_of(total, whole_at(task.from.of, line.from + index * task.from_stride));
    if (index < task.begin || index >= task.begin + task.count) continue;
    const Word to = line.to + (index - task.begin) * task.to_stride;
    put_whole(task.to.of, to, wrapped_integer(task.type, total));
  }
}

// A thread takes a line.
KERNEL(truth_scan_each, ScanTask) {
  for (Word i = first_item(); i < task.box.count; i += next_item()) {
    const ScanLine line = scan_line(task, i);
    if (task.is_whole) {
      scan_whole(task, line);
      continue;
    }
    Pair sum = {0, 0};
    for (Word k = 0; k < task.extent; ++k) {
      const Pair one = scanned_at(task, line, k);
      sum = {sum.value + one.value, sum.magnitude + one.magnitude};
      put_scanned(task, line, k, sum);
    }
  }
}

// A block takes a line, as many elements at once as it has threads. Not of whole numbers.
KERNEL(truth_scan_together, ScanTask) {
  SHARED Pair sums[256];
  for (Word i = block(); i < task.box.count; i += blocks()) {
    const ScanLine line = scan_line(task, i);
    Pair before = {0, 0};
    for (Word first = 0; first < task.extent; first += lanes()) {
      const Word k = first + lane();
      Pair mine = {0, 0};
      if (k < task.extent) mine = scanned_at(task, line, k);
      sums[lane()] = mine;
      meet();
      for (int reach = 1; reach < lanes(); reach *= 2) {
        const bool has_other = lane() >= reach;
        const Pair other = has_other ? sums[lane() - reach] : Pair{0, 0};
        meet();
        mine = {other.value + mine.value, other.magnitude + mine.magnitude};
        sums[lane()] = mine;
        meet();
      }
      const Pair sum = {before.value + mine.value, before.magnitude + mine.magnitude};
      if (k < task.extent) put_scanned(task, line, k, sum);
      const Pair last = sums[lanes() - 1];
      before = {before.value + last.value, before.magnitude + last.magnitude};
      meet();
    }
  }
}

FUNCTION bool is_beyond(Word type, double number) {
  const double size = fabs(number);
  return size > 240 && !is_infinite(size) && !is_finite(rounded(type, size));
}

KERNEL(truth_mark, MarkTask) {
  for (Word i = first_item(); i < task.count; i += next_item()) {
    const bool stored = task.stored && is_beyond(task.type, load(TYPE_f64, task.of.data, i));
    const bool summed = task.sums && is_beyond(TYPE_f32, magnitude_at(task.of, i));
    if (!stored && !summed) continue;
    reinterpret_cast<double*>(task.of.magnitude)[i] = nan_number();
    *reinterpret_cast<Word*>(task.found) = 1;
  }
}

KERNEL(truth_nan, NanTask) {
  for (Word i = first_item(); i < task.count; i += next_item())
    if (is_nan(load(TYPE_f64, task.of.data, i))) *reinterpret_cast<Word*>(task.found) = 1;
}

KERNEL(truth_same, BytesTask) {
  const Word* const a = reinterpret_cast<const Word*>(task.a);
  const Word* const b = reinterpret_cast<const Word*>(task.b);
  for (Word i = first_item(); i < task.bytes / 8; i += next_item())
    if (a[i] != b[i]) *reinterpret_cast<Word*>(task.found) = 1;
  for (Word i = task.bytes / 8 * 8 + first_item(); i < task.bytes; i += next_item())
    if (bits8(task.a, i) != bits8(task.b, i)) *reinterpret_cast<Word*>(task.found) = 1;
}

KERNEL(truth_move, BytesTask) {
  for (Word i = first_item(); i < task.bytes / 8; i += next_item())
    reinterpret_cast<Word*>(task.b)[i] = reinterpret_cast<const Word*>(task.a)[i];
  for (Word i = task.bytes / 8 * 8 + first_item(); i < task.bytes; i += next_item())
    reinterpret_cast<char*>(task.b)[i] = reinterpret_cast<const char*>(task.a)[i];
}

KERNEL(truth_hash, HashTask) {
  unsigned long long sum = 0;
  const Word words = task.bytes / 8;
  for (Word i = first_item(); i < words; i += next_item()) {
    const Word word = reinterpret_cast<const Word*>(task.data)[i];
    sum += mixed(static_cast<unsigned long long>(word) + mixed(static_cast<unsigned long long>(i)));
  }
  for (Word i = words * 8 + first_item(); i < task.bytes; i += next_item())
    sum += mixed(bits8(task.data, i) + mixed(~static_cast<unsigned long long>(i)));
  add_to(task.hash, static_cast<Word>(sum));
}
