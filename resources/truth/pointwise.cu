// Pointwise operators, as graph/pointwise.cpp has them: an expression's terms one after the other,
// in slots of a thread's own. Before it come apply(op, a, b, c) and moved(op, a, b, c, v, x, y, z),
// made of base/value_ops.def.

// What is left where NaN is left out, by the operations that can.
FUNCTION double without_nan(Word op, double a, double b) {
  if (op == OP_relu) return 0;
  if (op != OP_max && op != OP_min) return nan_number();
  return is_nan(a) ? b : a;
}

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
  if (is_infinite(made.value) && op == OP_where) {
    made.magnitude = x[x[0].value != 0 ? 1 : 2].magnitude;  // what is not taken may be NaN
  } else if (is_infinite(made.value)) {
    made.magnitude = infinite_magnitude(x, arity);
  } else {
    const double error = moved(op, x[0].value, x[1].value, x[2].value, made.value, x[0].magnitude,
                               x[1].magnitude, x[2].magnitude);
    made.magnitude = fabs(made.value) + error;
  }
  return made;
}

FUNCTION Word pointwise_whole(const PointwiseTask& task, Word i) {
  Word slots[kMostSlots];
  Word last = 0;
  for (Word t = 0; t < task.terms; ++t) {
    const Term& term = task.term[t];
    Word made = 0;
    if (term.kind == 0) {
      const Strided& input = task.input[term.op];
      if (input.of.data) made = whole_at(input.of, place_of(input, task.box, i));
    } else if (term.kind == 1) {
      made = saturated_integer(TYPE_i64, term.value);
    } else {
      Word x[3] = {0, 0, 0};
      for (Word k = 0; k < term.arity; ++k) x[k] = slots[term.args[k]];
      made = apply_integers(term.op, x[0], x[1], x[2]);
    }
    slots[term.slot] = made;
    last = made;
  }
  return wrapped_integer(task.type, last);
}

FUNCTION Pair input_of(const PointwiseTask& task, Word k, Word i) {
  const Strided& input = task.input[k];
  if (!input.of.data) return {0, 0};
  const Word place = place_of(input, task.box, i);
  return {load(input.of.type, input.of.data, place), magnitude_at(input.of, place)};
}

// `any`: powers and wrapped numbers, too.
FUNCTION Pair pointwise_pair(const PointwiseTask& task, Word i, bool any) {
  Pair slots[kMostSlots];
  Pair last = {0, 0};
  for (Word t = 0; t < task.terms; ++t) {
    const Term& term = task.term[t];
    if (term.kind == 0) {
      last = input_of(task, term.op, i);
    } else if (term.kind == 1) {
      last = {term.value, 0};
    } else {
      Pair x[3] = {{0, 0}, {0, 0}, {0, 0}};
      for (Word k = 0; k < term.arity; ++k) x[k] = slots[term.args[k]];
      last = applied(term.op, x, term.arity, task.drops_nan);
    }
    slots[term.slot] = last;
  }
  if (any && task.power) last.value = pow(input_of(task, 0, i).value, input_of(task, 1, i).value);
  if (any && task.wraps) last.value = wrapped(task.type, last.value);
  if (!task.rounds) return last;
  last.value = task.saturates ? saturated(task.type, last.value) : rounded(task.type, last.value);
  if (is_float(task.type) && !is_infinite(last.value)) last.magnitude += fabs(last.value);
  return last;
}

// Floats without powers, which is most steps: a compiler takes far less time over these.
KERNEL(truth_pointwise, PointwiseTask) {
  for (Word i = first_item(); i < task.box.count; i += next_item()) {
    const Pair made = pointwise_pair(task, i, false);
    put(task.to, i, made.value, made.magnitude);
  }
}

KERNEL(truth_pointwise_any, PointwiseTask) {
  for (Word i = first_item(); i < task.box.count; i += next_item()) {
    if (task.integers) {
      put_whole(task.to, i, pointwise_whole(task, i));
      continue;
    }
    const Pair made = pointwise_pair(task, i, true);
    if (task.to.type == TYPE_i64)
      put_whole(task.to, i, saturated_integer(task.type, made.value));
    else
      put(task.to, i, made.value, made.magnitude);
  }
}
