#include "graph/evaluator.h"
#include <boost/core/noinit_adaptor.hpp>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>
#include "base/integers.h"
#include "graph/parallel.h"

namespace warploom::graph {
namespace {
// Every value of `from` is a value of `to`.
bool holds(Dtype to, Dtype from) {
  if (to == from || to == Dtype::f64) return true;
  if (to != Dtype::f32) return is_float(to) && from == Dtype::boolean;
  return is_float(from) ? from != Dtype::f64 : bits_of(from) <= 8;
}
}  // namespace

double wrapped(Dtype dtype, double value) {
  if (dtype == Dtype::boolean) return value != 0 ? 1 : 0;
  if (!std::isfinite(value)) return 0;
  const double span = std::ldexp(1.0, bits_of(dtype));
  const double low = std::remainder(std::trunc(value), span);  // [-span/2, span/2]
  if (!is_signed(dtype)) return low < 0 ? low + span : low;
  return low == span / 2 ? -low : low;
}

void ScalarFunction::operator()(int64_t count, std::span<const Column> inputs,
                                const Column& to) const {
  if (!power || to.magnitude) evaluate(expression, count, inputs, to, drops_nan);
  for (int64_t i = 0; i < count; ++i) {
    to.value[i] = settled(power ? std::pow(inputs[0].value[i], inputs[1].value[i]) : to.value[i]);
    if (to.magnitude && rounds && !std::isinf(to.value[i]))
      to.magnitude[i] += std::fabs(to.value[i]);
  }
}

ScalarFunction scalar_function(const Graph& graph, const Node& node) {
  ScalarFunction f{node.op == OpKind::Pow, *expression_of(graph, node)};
  f.integers = in_integers(graph, node, f.expression);
  const Dtype from = graph.tensor(node.inputs[0]).dtype;
  const Dtype to = graph.tensor(node.outputs[0]).dtype;
  const bool moves = node.op == OpKind::Identity || node.op == OpKind::Where;
  if (node.op == OpKind::Cast && (is_float(to) || is_float(from)) && !holds(to, from)) {
    f.rounds = is_float(to);
    const bool saturates = f.rounds && bits_of(to) == 8 &&
                           node.integer("saturate", 1) != 0;  // overflow gives the largest number
    f.settled = [=](double value) {
      const double stored = rounded(to, value);
      const double largest = to == Dtype::e4m3 ? 448 : 57344;
      return saturates && !std::isnan(value) && !(std::fabs(stored) <= largest)
                 ? std::copysign(largest, value)
                 : stored;
    };
  } else if (!is_float(to) && !moves) {
    f.settled = [=](double value) { return wrapped(to, value); };
  }
  return f;
}

std::vector<int64_t> coordinates_of(const Shape& shape, int64_t flat) {
  std::vector<int64_t> at(shape.size());
  for (size_t i = shape.size(); i-- > 0; flat /= shape[i]) at[i] = flat % shape[i];
  return at;
}

namespace {
// Leaves numbers as memory has them, so that the threads that compute them are the first to touch
// its pages.
template <class T> using Unset = boost::noinit_adaptor<std::allocator<T>>;

// Of a tensor that was computed, over a box: numbers, or whole numbers of a tensor of integers,
// which are exact.
struct Storage {
  std::vector<double, Unset<double>> value;
  std::vector<double, Unset<double>> magnitude;
  std::vector<int64_t, Unset<int64_t>> integers;
  bool is_whole = false;

  double* error(int64_t at) { return magnitude.empty() ? nullptr : magnitude.data() + at; }

  void fill(double with) {
    std::ranges::fill(value, with);
    std::ranges::fill(magnitude, 0.0);
    std::ranges::fill(integers, saturated_integer(Dtype::i64, with));
  }
};

// What is known of a tensor, or of an operand in an output's coordinates: element x (coordinates in
// the whole tensor) is at origin + Σ x_a · stride_a. Transposes, slices, broadcasts and most
// reshapes only change these numbers; inputs and constants are read where they lie.
struct View {
  const void* data = nullptr;
  Dtype dtype = Dtype::f64;
  const double* magnitude = nullptr;  // at the same addresses; null: all zero
  std::shared_ptr<Storage> owner;     // null: bytes of an input or a constant
  int64_t origin = 0;
  std::vector<int64_t> strides;
};

// Where a box's elements are when it is stored packed.
View packed(const Box& box, const std::shared_ptr<Storage>& in = {}) {
  View view{.strides = strides_of(box.size)};
  if (in && in->is_whole)
    view = {in->integers.data(), Dtype::i64, nullptr, in, 0, std::move(view.strides)};
  else if (in)
    view = {in->value.data(), Dtype::f64, in->error(0), in, 0, std::move(view.strides)};
  view.origin =
      -std::inner_product(box.begin.begin(), box.begin.end(), view.strides.begin(), int64_t{0});
  return view;
}

constexpr int64_t kRun = 4096;  // elements of a task along the last axis

int64_t address(const View& view, const Shape& at) {
  return std::inner_product(at.begin(), at.end(), view.strides.begin(), view.origin);
}

// Values and, where wanted, magnitudes of `count` elements.
void load(const View& view, int64_t offset, int64_t stride, int64_t count, double* to,
          double* magnitude) {
  load_run(view.dtype, view.data, offset, stride, count, to);
  if (magnitude == nullptr) return;
  if (view.magnitude == nullptr)
    std::fill_n(magnitude, count, 0.0);
  else
    load_run(Dtype::f64, view.magnitude, offset, stride, count, magnitude);
}

// Whole numbers of a tensor of integers, exactly.
void load(const View& view, int64_t offset, int64_t stride, int64_t count, int64_t* to) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = is_integer(view.dtype)
                ? load_integer(view.dtype, view.data, offset + i * stride)
                : saturated_integer(Dtype::i64,
                                    load_as_double(view.dtype, view.data, offset + i * stride));
}

void load(const View& view, const Shape& at, int64_t count, int64_t* to) {
  load(view, address(view, at), view.strides.empty() ? 0 : view.strides.back(), count, to);
}

// The same along the last axis, from coordinates on.
void load(const View& view, const Shape& at, int64_t count, double* to, double* magnitude) {
  load(view, address(view, at), view.strides.empty() ? 0 : view.strides.back(), count, to,
       magnitude);
}

// Calls body(first, count, coordinates) for runs along the last axis that together make up the box;
// `coordinates` of a run's first element, `first` its place in the packed box; of at most kRun
// elements. In parallel.
void for_runs(const Box& box, int threads,
              const std::function<void(int64_t, int64_t, const Shape&)>& body) {
  if (volume(box) == 0) return;
  const int64_t last = box.size.empty() ? 1 : box.size.back();
  const int64_t rows = volume(box) / last;
  const int64_t pieces = ceil_div(last, kRun);
  // Short rows share a task, so that its cost is small beside theirs.
  const int64_t rows_a_task = std::max<int64_t>(1, kRun / last);
  const int64_t row_tasks = ceil_div(rows, rows_a_task);
  parallel_for(row_tasks * pieces, threads, [&](int64_t task) {
    const int64_t first_row = task / pieces * rows_a_task;
    const int64_t piece = task % pieces;
    Shape outer = box.size;
    if (!outer.empty()) outer.back() = 1;
    for (int64_t row = first_row; row < std::min(rows, first_row + rows_a_task); ++row) {
      Shape at = coordinates_of(outer, row);
      for (size_t i = 0; i < at.size(); ++i) at[i] += box.begin[i];
      if (!at.empty()) at.back() += piece * kRun;
      body(row * last + piece * kRun, std::min(kRun, last - piece * kRun), at);
    }
  });
}

// Where each element of a box of `sizes` is, in row-major order.
std::vector<int64_t> offsets(const Shape& sizes, const std::vector<int64_t>& strides) {
  std::vector<int64_t> all = {0};
  for (size_t i = 0; i < sizes.size(); ++i) {
    std::vector<int64_t> next;
    for (int64_t at : all)
      for (int64_t k = 0; k < sizes[i]; ++k) next.push_back(at + k * strides[i]);
    all = std::move(next);
  }
  return all;
}

// What reductions and windows do with elements x of errors e: step 0 takes all into one output,
// step 1 each into its own.
template <ValueOp op>
void absorb(int64_t count, int64_t step, const double* x, const double* e, double* value,
            double* error) {
  for (int64_t i = 0; i < count; ++i) {
    const double v = value[i * step];
    if (error) {
      double& to = error[i * step];
      if (op == ValueOp::add)
        to += std::fabs(x[i]) + e[i];
      else if (op == ValueOp::mul)
        to = to * std::fabs(x[i]) + std::fabs(v) * e[i] + std::fabs(v * x[i]);
      else
        to = std::fmax(to, e[i]);
    }
    if (op == ValueOp::add)
      value[i * step] = v + x[i];
    else if (op == ValueOp::mul)
      value[i * step] = v * x[i];
    else
      value[i * step] = std::isnan(v) || (op == ValueOp::max ? v > x[i] : v < x[i]) ? v : x[i];
  }
}

struct Reducer {
  OpKind op;
  ValueOp combine;
  double start;
  void (*absorb)(int64_t, int64_t, const double*, const double*, double*, double*);
};

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const Reducer kReducers[] = {{OpKind::ReduceSum, ValueOp::add, 0, absorb<ValueOp::add>},
                             {OpKind::SumPool, ValueOp::add, 0, absorb<ValueOp::add>},
                             {OpKind::ReduceProd, ValueOp::mul, 1, absorb<ValueOp::mul>},
                             {OpKind::ReduceMax, ValueOp::max, -kInfinity, absorb<ValueOp::max>},
                             {OpKind::MaxPool, ValueOp::max, -kInfinity, absorb<ValueOp::max>},
                             {OpKind::ReduceMin, ValueOp::min, kInfinity, absorb<ValueOp::min>}};

// What stands outside a tensor.
struct Fill {
  double value = 0;
  double error = 0;
  int64_t whole = 0;  // the same where integers are stored
};

class Evaluator {
 public:
  Evaluator(const Graph& graph, std::span<const Bytes> inputs, const EvalOptions& means)
      : graph_(graph), views_(graph.tensors.size()), means_(means) {
    by_element_ = std::ranges::all_of(graph.nodes, [](const Node& node) {
      const OpClass kind = class_of(node.op);
      return kind == OpClass::pointwise || only_moves(kind);
    });
    const auto hold = [&](size_t i, const std::byte* data) {
      views_[i] = {
          data, graph.tensors[i].dtype, nullptr, nullptr, 0, strides_of(graph.tensors[i].shape)};
    };
    for (size_t i = 0; i < views_.size(); ++i)
      if (graph.tensors[i].constant) hold(i, graph.tensors[i].constant->data());
    for (size_t i = 0; i < inputs.size(); ++i) hold(graph.inputs[i], inputs[i].data());
  }

  Status run(const Demand& demand, TensorId wanted, const Box& box_wanted, ValueAndMagnitude& to) {
    std::vector<size_t> last_use(views_.size(), graph_.nodes.size());
    for (size_t n = 0; n < graph_.nodes.size(); ++n)
      for (TensorId id : graph_.nodes[n].inputs)
        if (id != kAbsent) last_use[id] = n;
    for (TensorId id : graph_.outputs) last_use[id] = graph_.nodes.size();
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      const auto& box = demand[node.outputs[0]];
      if (!box || graph_.tensor(node.outputs[0]).constant) continue;
      switch (class_of(node.op)) {
        case OpClass::contraction:
        case OpClass::convolution: product(node, *box, make(node, *box)); break;
        case OpClass::window:
        case OpClass::reduction: reduce(node, *box, make(node, *box)); break;
        case OpClass::scan: scan(node, *box, make(node, *box)); break;
        case OpClass::pointwise: pointwise(node, *box, make(node, *box)); break;
        case OpClass::view: reshape(node, *box); break;
        case OpClass::movement: movement(node, *box); break;
        default: return fail({ErrorCode::kInternal, "a node is no primitive", place_of(node)});
      }
      if (means_.magnitudes && !only_moves(class_of(node.op))) {
        const bool last = node.outputs[0] == wanted;
        const bool beyond = by_element_ ? !last && mark_overflow(node) : overflows(node, last);
        to.overflowed |= beyond;
        to.marked |= by_element_ && beyond;
      }
      for (TensorId id : node.inputs)
        if (id != kAbsent && last_use[id] == n) views_[id].owner.reset();
    }
    View place = packed(box_wanted);
    place.origin += std::ssize(to.value);
    to.value.resize(to.value.size() + static_cast<size_t>(volume(box_wanted)));
    if (means_.magnitudes) to.magnitude.resize(to.value.size());
    if (is_integer(graph_.tensor(wanted).dtype)) to.integers.resize(to.value.size());
    copy(view(wanted), box_wanted, place, to);
    return ok();
  }

 private:
  const View& view(TensorId id) const { return views_[id]; }

  const Shape& shape(TensorId id) const { return graph_.tensor(id).shape; }

  Storage& make(const Node& node, const Box& box) {
    const auto count = static_cast<size_t>(volume(box));
    auto fresh = std::make_shared<Storage>();
    fresh->is_whole = is_integer(graph_.tensor(node.outputs[0]).dtype);
    if (fresh->is_whole) {
      fresh->integers.resize(count);
    } else {
      fresh->value.resize(count);
      if (means_.magnitudes) fresh->magnitude.resize(count);
    }
    views_[node.outputs[0]] = packed(box, fresh);
    return *fresh;
  }

  // Gives the elements that are more than their type holds a magnitude of NaN; whether there are
  // any.
  bool mark_overflow(const Node& node) {
    constexpr double kHeld = 240;  // by every type of floats
    const Dtype dtype = graph_.tensor(node.outputs[0]).dtype;
    if (!is_float(dtype) || dtype == Dtype::f64) return false;
    Storage& made = *views_[node.outputs[0]].owner;
    const auto mark = [&](int& marked, int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) {
        const double size = std::fabs(made.value[i]);
        if (!(size > kHeld) || size == HUGE_VAL || std::isfinite(rounded(dtype, size))) continue;
        made.magnitude[i] = std::numeric_limits<double>::quiet_NaN();
        marked = 1;
      }
    };
    return contains(in_parallel<int>(std::ssize(made.value), 1 << 18, mark), 1);
  }

  // Whether the node's numbers are more than their type holds, in fp32 on the way or, where they
  // are not wanted themselves, as stored.
  bool overflows(const Node& node, bool wanted) const {
    const Dtype dtype = graph_.tensor(node.outputs[0]).dtype;
    if (!is_float(dtype) || dtype == Dtype::f64) return false;
    const auto beyond = [&](const std::vector<double, Unset<double>>& numbers, Dtype type) {
      const auto largest = [&](double& most, int64_t from, int64_t to) {
        for (int64_t i = from; i < to; ++i) {
          const double size = std::fabs(numbers[i]);
          most = size > most && size < HUGE_VAL ? size : most;
        }
      };
      double most = 0;
      for (const double part : in_parallel<double>(std::ssize(numbers), 1 << 18, largest))
        most = std::max(most, part);
      return !std::isfinite(rounded(type, most));
    };
    const Storage& made = *views_[node.outputs[0]].owner;
    const bool sums = class_of(node.op) != OpClass::pointwise;
    return (!wanted && beyond(made.value, dtype)) || (sums && beyond(made.magnitude, Dtype::f32));
  }

  // A part of a tensor to where `place` says, in the tensor's coordinates.
  template <class To>
  void copy(const View& from, const Box& part, const View& place, To& to) const {
    for_runs(part, means_.threads, [&](int64_t, int64_t n, const Shape& at) {
      const int64_t i = address(place, at);
      if (!to.value.empty())
        load(from, at, n, to.value.data() + i,
             to.magnitude.empty() ? nullptr : to.magnitude.data() + i);
      if (!to.integers.empty()) load(from, at, n, to.integers.data() + i);
    });
  }

  // An input as a view in the output's coordinates: strides of 0 along axes that it lacks or that
  // stretch.
  View projected(const Node& node, size_t input, View to) const {
    const std::vector<int64_t> strides =
        std::exchange(to.strides, Shape(shape(node.outputs[0]).size(), 0));
    const auto access = access_of(graph_, node, input);
    for (size_t i = 0; access && i < access->size(); ++i) {
      const AxisSource& source = (*access)[i];
      if (source.axis == AxisSource::kWhole) continue;
      to.origin += source.begin * strides[i];
      to.strides[source.axis] = source.step * strides[i];
    }
    return to;
  }

  Fill fill_of(TensorId id, double value) const {
    const Dtype dtype = graph_.tensor(id).dtype;
    return {value, 0, is_integer(dtype) ? saturated_integer(dtype, value) : 0};
  }

  // What an output takes in of an input: so many elements, so far apart, along each of the input's
  // axes.
  struct Taps {
    Shape count;
    std::vector<int64_t> steps;
  };

  Taps taps_of(const Node& node, size_t input, const View& in) const {
    Taps taps;
    const Access access = *access_of(graph_, node, input);
    for (size_t i = 0; i < access.size(); ++i) {
      taps.count.push_back(access[i].axis == AxisSource::kWhole ? shape(node.inputs[input])[i]
                                                                : access[i].taps);
      taps.steps.push_back(access[i].dilation * in.strides[i]);
    }
    return taps;
  }

  void product(const Node& node, const Box& box, Storage& fresh) {
    fresh.fill(0);  // products are added
    if (volume(box) == 0) return;
    if (class_of(node.op) == OpClass::convolution)
      convolution(node, box, fresh);
    else
      multiply(node, box, 0, view(node.inputs[0]), view(node.inputs[1]), fresh);
    const Dtype dtype = graph_.tensor(node.outputs[0]).dtype;
    for (int64_t& value : fresh.integers) value = wrapped_integer(dtype, value);
  }

  // A product of whole numbers, which wrap.
  static void multiply_exactly(const Product& p, int64_t* to) {
    const auto element = [](const Operand& of, int64_t line, int64_t depth) {
      const int64_t place = of.lines[line] + of.depths[depth];
      return is_integer(of.dtype)
                 ? load_integer(of.dtype, of.data, place)
                 : saturated_integer(Dtype::i64, load_as_double(of.dtype, of.data, place));
    };
    for (const Offsets& one : p.batch) {
      Operand a = p.a;
      Operand b = p.b;
      a.data = static_cast<const std::byte*>(a.data) + one.a * bytes_of(a.dtype);
      b.data = static_cast<const std::byte*>(b.data) + one.b * bytes_of(b.dtype);
      for (int64_t i = 0; i < p.m; ++i)
        for (int64_t j = 0; j < p.n; ++j) {
          int64_t& sum = to[one.c + i * p.n + j];
          for (int64_t k = 0; k < p.k; ++k)
            sum = apply_integers(ValueOp::fma, element(a, i, k), element(b, j, k), sum);
        }
    }
  }

  // The weights are the left operand; a group at a time, and no more images than a little memory
  // holds when they are padded.
  void convolution(const Node& node, const Box& box, Storage& to) {
    constexpr int64_t kPadded = 1 << 24;  // elements
    const Shape& weights = shape(node.inputs[1]);
    const Access access = *access_of(graph_, node, 0);
    const bool by_channel = access[1].axis != AxisSource::kWhole;  // an axis like others, no groups
    const int64_t rows = weights[0] / (by_channel ? 1 : node.integer("group", 1));
    const int64_t end = box.begin[1] + box.size[1];
    Box part = box;
    part.size[0] = 1;
    const int64_t fit =
        kPadded / std::max<int64_t>(1, volume(reach(access, shape(node.inputs[0]), part)));
    for (int64_t left = box.size[0]; left > 0;
         left -= part.size[0], part.begin[0] += part.size[0]) {
      part.size = box.size;
      part.size[0] = std::clamp<int64_t>(fit, 1, left);
      part.begin[1] = box.begin[1];
      const View x = padded(node, part, {});
      for (int64_t& channel = part.begin[1]; channel < end; channel += part.size[1]) {
        const int64_t group = channel / rows;
        part.size[1] = std::min(end, (group + 1) * rows) - channel;
        View of_group = x;
        of_group.origin += group * weights[1] * x.strides[1];
        multiply(node, part, 1, view(node.inputs[1]), of_group, to);
      }
    }
  }

  // A batch of products of input `left` and the other. The last axes along which A stands still are
  // columns, those before along which B does are rows, as far as the results are neighbours.
  void multiply(const Node& node, const Box& box, size_t left, const View& a, const View& b,
                Storage& to) const {
    const View in_a = projected(node, left, a);
    const View in_b = projected(node, 1 - left, b);
    const View& out = view(node.outputs[0]);
    const auto before = [&](size_t axis, const View& still) {
      const auto joins = [&](size_t i) {
        return still.strides[i] == 0 && out.strides[i] == element_count(entries(box.size, i + 1));
      };
      while (axis > 0 && (box.size[axis - 1] == 1 || joins(axis - 1))) --axis;
      return axis;
    };
    const size_t columns = before(box.size.size(), in_a);
    const size_t rows = before(columns, in_b);
    const auto lines = [&](const View& in, size_t begin, size_t end) {
      return offsets(entries(box.size, begin, end), entries(in.strides, begin, end));
    };
    const auto a_lines = lines(in_a, rows, columns);
    const auto b_lines = lines(in_b, columns, box.size.size());
    const Taps a_taps = taps_of(node, left, a);
    const Taps b_taps = taps_of(node, 1 - left, b);
    const auto a_depths = offsets(a_taps.count, a_taps.steps);
    const auto b_depths = offsets(left == 1 ? a_taps.count : b_taps.count,
                                  b_taps.steps);  // a group's channels, not all
    Product p{{a.data, a.dtype, a_lines.data(), a_depths.data()},
              {b.data, b.dtype, b_lines.data(), b_depths.data()},
              std::ssize(a_lines),
              std::ssize(b_lines),
              std::ssize(a_depths)};
    const Shape batch = entries(box.size, 0, rows);
    for (int64_t i = 0; i < element_count(batch); ++i) {
      Shape at = box.begin;
      const Shape within = coordinates_of(batch, i);
      for (size_t k = 0; k < rows; ++k) at[k] += within[k];
      p.batch.push_back({address(in_a, at), address(in_b, at), address(out, at)});
    }
    if (to.is_whole) return multiply_exactly(p, to.integers.data());
    double* const magnitude = to.error(0);
    multiply_add(p, to.value.data(), magnitude, means_);
    const auto carry = [&](Operand& operand, const double* errors) {  // |a|·E_b and E_a·|b|
      if (!magnitude || !errors) return;
      const Operand values = operand;
      operand.data = errors;
      operand.dtype = Dtype::f64;
      multiply_add(p, nullptr, magnitude, means_);
      operand = values;
    };
    carry(p.a, a.magnitude);
    carry(p.b, b.magnitude);
  }

  // What a box of the output looks at, packed, `fill` where that leaves the input; in the input's
  // coordinates.
  View padded(const Node& node, const Box& box, const Fill& fill) const {
    const Shape& in = shape(node.inputs[0]);
    const Box region = reach(*access_of(graph_, node, 0), in, box);
    return stored(view(node.inputs[0]), region, inside(region, in), fill);
  }

  // A region packed, of which a part is copied.
  View stored(const View& from, const Box& region, const Box& part, const Fill& fill = {}) const {
    const auto fresh = std::make_shared<Storage>();
    fresh->is_whole = is_integer(from.dtype);
    if (fresh->is_whole)
      fresh->integers.assign(volume(region), fill.whole);
    else
      fresh->value.assign(volume(region), fill.value);
    if (means_.magnitudes && !fresh->is_whole && (from.magnitude || fill.error != 0))
      fresh->magnitude.assign(fresh->value.size(), fill.error);
    const View to = packed(region, fresh);
    copy(from, part, to, *fresh);
    return to;
  }

  // Windows and reductions: every output takes in the elements at `outer`, and from each of these a
  // line of `count` along the last axis where that is reduced.
  void reduce(const Node& node, const Box& box, Storage& fresh) {
    if (volume(box) == 0) return;
    const Reducer& reducer = *std::ranges::find(kReducers, node.op, &Reducer::op);
    const bool window = class_of(node.op) == OpClass::window;
    const View in =
        window ? padded(node, box, fill_of(node.inputs[0], reducer.start)) : view(node.inputs[0]);
    const View from = projected(node, 0, in);
    auto [taps, steps] = taps_of(node, 0, in);
    const int64_t count = window || taps.empty() ? 1 : std::exchange(taps.back(), 1);
    if (count == 0) taps.back() = 0;
    const auto outer = offsets(taps, steps);
    const int64_t last_step = steps.empty() ? 0 : steps.back();
    const Dtype dtype = graph_.tensor(node.outputs[0]).dtype;
    fresh.fill(dtype == Dtype::boolean ? reducer.start > 0 : rounded(dtype, reducer.start));
    if (fresh.is_whole && dtype != Dtype::boolean)
      std::ranges::fill(fresh.integers, saturated_integer(dtype, reducer.start));
    for_runs(box, means_.threads, [&](int64_t first, int64_t n, const Shape& at) {
      static thread_local std::vector<double> values;
      static thread_local std::vector<double> errors;
      const bool lines = count > 1;  // a line an output, or one element of each of n outputs
      const int64_t run = lines ? count : n;
      const int64_t own = from.strides.empty() ? 0 : from.strides.back();
      const int64_t stride = lines ? last_step : own;
      if (fresh.is_whole) {
        std::vector<int64_t> whole(run);
        int64_t* const to = fresh.integers.data() + first;
        for (int64_t i = 0; i < (lines ? n : 1); ++i)
          for (const int64_t offset : outer) {
            load(from, address(from, at) + i * own + offset, stride, run, whole.data());
            for (int64_t k = 0; k < run; ++k) {
              int64_t& result = to[i + (lines ? 0 : k)];
              result = apply_integers(reducer.combine, result, whole[k]);
            }
          }
        for (int64_t i = 0; i < n; ++i) to[i] = wrapped_integer(dtype, to[i]);
        return;
      }
      values.resize(run);
      errors.resize(means_.magnitudes ? values.size() : 0);
      double* value = fresh.value.data() + first;
      double* error = fresh.error(first);
      for (int64_t i = 0; i < (lines ? n : 1); ++i)
        for (const int64_t offset : outer) {
          load(from, address(from, at) + i * own + offset, stride, run, values.data(),
               means_.magnitudes ? errors.data() : nullptr);
          reducer.absorb(run, lines ? 0 : 1, values.data(), errors.data(), value + i,
                         error ? error + i : nullptr);
        }
    });
  }

  // Every line along the scanned axis from its first element on, whatever part of it is wanted.
  void scan(const Node& node, const Box& box, Storage& fresh) {
    const View& from = view(node.inputs[0]);
    const View& to = view(node.outputs[0]);
    const size_t axis = whole_axis(*access_of(graph_, node, 0));
    const int64_t size = shape(node.inputs[0])[axis];
    const bool reverse = node.integer("reverse") != 0;
    const Dtype dtype = graph_.tensor(node.outputs[0]).dtype;
    Box starts = box;
    starts.size[axis] = 1;
    for_runs(starts, means_.threads, [&](int64_t, int64_t n, Shape at) {
      std::vector<double> x(size);
      std::vector<double> e(means_.magnitudes ? x.size() : 0);
      std::vector<int64_t> whole(fresh.is_whole ? size : 0);
      for (; n > 0; --n, ++at.back()) {
        const int64_t first = address(from, at) - box.begin[axis] * from.strides[axis];
        const int64_t place = address(to, at);
        if (fresh.is_whole) {
          load(from, first, from.strides[axis], size, whole.data());
          int64_t total = 0;
          for (int64_t k = 0; k < size; ++k) {
            const int64_t i = reverse ? size - 1 - k : k;
            const int64_t out = i - box.begin[axis];
            total = apply_integers(ValueOp::add, total, whole[i]);
            if (out >= 0 && out < box.size[axis])
              fresh.integers[place + out * to.strides[axis]] = wrapped_integer(dtype, total);
          }
          continue;
        }
        load(from, first, from.strides[axis], size, x.data(),
             means_.magnitudes ? e.data() : nullptr);
        double sum = 0;
        double bound = 0;
        for (int64_t k = 0; k < size; ++k) {
          const int64_t i = reverse ? size - 1 - k : k;
          const int64_t out = i - box.begin[axis];
          bound += means_.magnitudes ? std::fabs(x[i]) + e[i] : 0;
          sum += x[i];
          if (out < 0 || out >= box.size[axis]) continue;
          fresh.value[place + out * to.strides[axis]] = sum;
          if (means_.magnitudes) fresh.magnitude[place + out * to.strides[axis]] = bound;
        }
      }
    });
  }

  void pointwise(const Node& node, const Box& box, Storage& fresh) {
    ScalarFunction f = scalar_function(graph_, node);
    f.drops_nan = means_.drops_nan;
    std::vector<View> read(node.inputs.size());
    for (size_t k = 0; k < read.size(); ++k)
      if (node.inputs[k] != kAbsent) read[k] = projected(node, k, view(node.inputs[k]));
    const Dtype dtype = graph_.tensor(node.outputs[0]).dtype;
    for_runs(box, means_.threads, [&](int64_t first, int64_t n, const Shape& at) {
      if (f.integers) {
        static thread_local std::vector<int64_t> whole;
        whole.resize(read.size() * kRun);
        std::vector<const int64_t*> operands(read.size());
        for (size_t k = 0; k < read.size(); ++k) {
          if (node.inputs[k] == kAbsent) continue;
          load(read[k], at, n, whole.data() + k * kRun);
          operands[k] = whole.data() + k * kRun;
        }
        int64_t* const to = fresh.integers.data() + first;
        evaluate_integers(f.expression, n, operands, to);
        for (int64_t i = 0; i < n; ++i) to[i] = wrapped_integer(dtype, to[i]);
        return;
      }
      static thread_local std::vector<double> room;
      room.resize(2 * read.size() * kRun);
      std::vector<Column> columns(read.size());
      for (size_t k = 0; k < read.size(); ++k) {
        if (node.inputs[k] == kAbsent) continue;
        columns[k] = {room.data() + 2 * k * kRun,
                      means_.magnitudes ? room.data() + (2 * k + 1) * kRun : nullptr};
        load(read[k], at, n, columns[k].value, columns[k].magnitude);
      }
      if (!fresh.is_whole) {
        f(n, columns, {fresh.value.data() + first, fresh.error(first)});
        return;
      }
      std::vector<double> made(n);
      std::vector<double> errors(means_.magnitudes ? n : 0);
      f(n, columns, {made.data(), means_.magnitudes ? errors.data() : nullptr});
      for (int64_t i = 0; i < n; ++i) fresh.integers[first + i] = saturated_integer(dtype, made[i]);
    });
  }

  // The part of the input that holds the box is one flat range of it, and so a view under any
  // shape.
  void reshape(const Node& node, const Box& box) {
    const Shape& in = shape(node.inputs[0]);
    const Shape& out = shape(node.outputs[0]);
    const Box source = reshaped(box, out, in);
    const auto steps = strides_of(in);
    View to = view(node.inputs[0]);
    bool flat = true;  // element with flat index f is at address(first) + f
    for (size_t i = 0; i < in.size(); ++i) flat &= source.size[i] <= 1 || to.strides[i] == steps[i];
    if (!flat) to = stored(to, source, source);
    to.origin =
        address(to, source.begin) -
        std::inner_product(source.begin.begin(), source.begin.end(), steps.begin(), int64_t{0});
    to.strides = strides_of(out);
    views_[node.outputs[0]] = std::move(to);
  }

  void movement(const Node& node, const Box& box) {
    if (node.op == OpKind::Concat) return concat(node, box);
    if (node.op == OpKind::Gather) return gather(node, box);
    View from = view(node.inputs[0]);
    if (node.op == OpKind::Pad) {
      const View& value = view(node.inputs[2]);
      const Shape first(shape(node.inputs[2]).size(), 0);
      Fill fill;
      load(value, first, 1, &fill.value, &fill.error);
      if (is_integer(value.dtype)) load(value, first, 1, &fill.whole);
      from = padded(node, box, fill);
    }
    views_[node.outputs[0]] = projected(node, 0, std::move(from));
  }

  void gather(const Node& node, const Box& box) {
    Storage& fresh = make(node, box);
    const View from = projected(node, 0, view(node.inputs[0]));
    const View chosen = projected(node, 1, view(node.inputs[1]));
    const size_t axis = NodeContext{graph_, node}.axis(shape(node.inputs[0]).size());
    const int64_t size = shape(node.inputs[0])[axis];
    const int64_t step = view(node.inputs[0]).strides[axis];
    const int64_t own = from.strides.empty() ? 0 : from.strides.back();
    if (size == 0) return fresh.fill(0);
    for_runs(box, means_.threads, [&](int64_t first, int64_t n, const Shape& at) {
      std::vector<double> indices(n);
      load(chosen, at, n, indices.data(), nullptr);
      for (int64_t i = 0; i < n; ++i) {
        const auto given = static_cast<int64_t>(indices[i]);
        const int64_t index = std::clamp<int64_t>(given < 0 ? given + size : given, 0,
                                                  size - 1);  // outside: undefined
        const int64_t place = address(from, at) + i * own + index * step;
        if (fresh.is_whole)
          load(from, place, 0, 1, fresh.integers.data() + first + i);
        else
          load(from, place, 0, 1, fresh.value.data() + first + i, fresh.error(first + i));
      }
    });
  }

  // Each input fills the part of the output that its access maps into it.
  void concat(const Node& node, const Box& box) {
    Storage& fresh = make(node, box);
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const Access access = *access_of(graph_, node, k);
      Box part = inside(reach(access, shape(node.inputs[k]), box), shape(node.inputs[k]));
      for (size_t i = 0; i < access.size(); ++i) part.begin[i] -= access[i].begin;
      copy(projected(node, k, view(node.inputs[k])), part, view(node.outputs[0]), fresh);
    }
  }

  const Graph& graph_;
  std::vector<View> views_;
  const EvalOptions& means_;
  bool by_element_ = false;  // no operator combines elements of one tensor
};
}  // namespace

Status compute(const Graph& graph, std::span<const Bytes> inputs, const Demand& demand, TensorId id,
               const Box& box, const EvalOptions& means, ValueAndMagnitude& to) {
  return Evaluator(graph, inputs, means).run(demand, id, box, to);
}
}  // namespace warploom::graph
