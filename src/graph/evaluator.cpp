#include "graph/evaluator.h"
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>
#include "graph/elements.h"
#include "graph/parallel.h"
#include "graph/pointwise.h"
namespace warploom::graph {
namespace {
struct Storage : ValueAndMagnitude {  // of a tensor that was computed, over a box
  double* error(std::int64_t at) { return magnitude.empty() ? nullptr : magnitude.data() + at; }
};

// What is known of a tensor, or of an operand in an output's coordinates: element x (coordinates in the whole tensor) is at
// origin + Σ x_a · stride_a. Transposes, slices, broadcasts and most reshapes only change these numbers; inputs and constants are
// read where they lie.
struct View {
  const void* data = nullptr;
  Dtype dtype = Dtype::f64;
  const double* magnitude = nullptr;  // at the same addresses; null: all zero
  std::shared_ptr<Storage> owner;     // null: bytes of an input or a constant
  std::int64_t origin = 0;
  std::vector<std::int64_t> strides;
};

constexpr std::int64_t kRun = 4096;  // elements of a task along the last axis

std::int64_t address(const View& view, const Shape& at) {
  return std::inner_product(at.begin(), at.end(), view.strides.begin(), view.origin);
}

// Values and, where wanted, magnitudes of `count` elements.
void load(const View& view, std::int64_t offset, std::int64_t stride, std::int64_t count, double* to, double* magnitude) {
  load_run(view.dtype, view.data, offset, stride, count, to);
  if (magnitude == nullptr) return;
  if (view.magnitude == nullptr) std::fill_n(magnitude, count, 0.0);
  else load_run(Dtype::f64, view.magnitude, offset, stride, count, magnitude);
}
// The same along the last axis, from coordinates on.
void load(const View& view, const Shape& at, std::int64_t count, double* to, double* magnitude) {
  load(view, address(view, at), view.strides.empty() ? 0 : view.strides.back(), count, to, magnitude);
}

// Element with flat index f is at address(first) + f: what packed storage gives for boxes that are one flat range.
bool is_flat(const View& view, const Shape& shape, const Box& box) {
  const auto packed = strides_of(shape);
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (box.size[i] > 1 && view.strides[i] != packed[i]) return false;
  return true;
}

// Calls body(first, count, coordinates) for runs along the last axis that together make up the box; `coordinates` of a run's
// first element, `first` its place in the packed box. In parallel.
void for_runs(const Box& box, int threads, const std::function<void(std::int64_t, std::int64_t, const Shape&)>& body) {
  if (volume(box) == 0) return;
  const std::int64_t last = box.size.empty() ? 1 : box.size.back(), rows = volume(box) / last;
  const std::int64_t pieces = (last + kRun - 1) / kRun;
  // Short rows share a task, so that its cost is small beside theirs.
  const std::int64_t rows_a_task = std::max<std::int64_t>(1, kRun / last);
  const std::int64_t row_tasks = (rows + rows_a_task - 1) / rows_a_task;
  parallel_for(row_tasks * pieces, threads, [&](std::int64_t task) {
    const std::int64_t first_row = task / pieces * rows_a_task, piece = task % pieces;
    Shape outer = box.size;
    if (!outer.empty()) outer.back() = 1;
    for (std::int64_t row = first_row; row < std::min(rows, first_row + rows_a_task); ++row) {
      Shape at = coordinates_of(outer, row);
      for (std::size_t i = 0; i < at.size(); ++i) at[i] += box.begin[i];
      if (!at.empty()) at.back() += piece * kRun;
      body(row * last + piece * kRun, std::min(kRun, last - piece * kRun), at);
    }
  });
}

class Evaluator {
 public:
  Evaluator(const Graph& graph, std::span<const Bytes> inputs, int threads, bool with_magnitude)
      : graph_(graph), views_(graph.tensors.size()), threads_(threads), with_magnitude_(with_magnitude) {
    for (std::size_t i = 0; i < views_.size(); ++i) {
      const Tensor& tensor = graph.tensors[i];
      if (tensor.constant) views_[i] = {tensor.constant->data(), tensor.dtype, nullptr, nullptr, 0, strides_of(tensor.shape)};
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Tensor& tensor = graph.tensor(graph.inputs[i]);
      views_[static_cast<std::size_t>(graph.inputs[i])] = {inputs[i].data(),        tensor.dtype, nullptr, nullptr, 0,
                                                           strides_of(tensor.shape)};
    }
  }

  // Computes what `demand` asks for.
  Status run(const Demand& demand) {
    std::vector<std::size_t> last_use(views_.size(), graph_.nodes.size());
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n)
      for (TensorId id : graph_.nodes[n].inputs)
        if (id != kAbsent) last_use[static_cast<std::size_t>(id)] = n;
    for (TensorId id : graph_.outputs) last_use[static_cast<std::size_t>(id)] = graph_.nodes.size();
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      const auto& box = demand[static_cast<std::size_t>(node.outputs[0])];
      if (!box || graph_.tensor(node.outputs[0]).constant) continue;
      switch (class_of(node.op)) {
        case OpClass::contraction: contraction(node, *box); break;
        case OpClass::softmax: softmax(node, *box); break;
        case OpClass::pointwise: pointwise(node, *box); break;
        case OpClass::view: reshape(node, *box, *demand[static_cast<std::size_t>(node.inputs[0])]); break;
        case OpClass::movement: movement(node, *box); break;
        case OpClass::constant: return fail({ErrorCode::kInternal, "a constant was not folded", place_of(node)});
      }
      for (TensorId id : node.inputs)
        if (id != kAbsent && last_use[static_cast<std::size_t>(id)] == n) views_[static_cast<std::size_t>(id)].owner.reset();
    }
    return ok();
  }

  // Appends the box that was asked for, in row-major order. Once: storage may be handed over.
  void append(TensorId id, const Box& box, ValueAndMagnitude& to) {
    View& from = views_[static_cast<std::size_t>(id)];
    const bool all_of_it = from.owner && from.owner.use_count() == 1 && !graph_.tensor(id).constant &&
                           static_cast<std::int64_t>(from.owner->value.size()) == volume(box) &&
                           is_flat(from, box.size, whole(box.size));
    if (to.value.empty() && all_of_it) {
      to = std::move(*from.owner);
      return;
    }
    const std::size_t start = to.value.size(), size = start + static_cast<std::size_t>(volume(box));
    to.value.resize(size);
    if (with_magnitude_) to.magnitude.resize(size);
    for_runs(box, threads_, [&](std::int64_t first, std::int64_t n, const Shape& at) {
      const std::size_t place = start + static_cast<std::size_t>(first);
      load(from, at, n, to.value.data() + place, with_magnitude_ ? to.magnitude.data() + place : nullptr);
    });
  }

 private:
  const View& view(TensorId id) const { return views_[static_cast<std::size_t>(id)]; }
  const Shape& shape(TensorId id) const { return graph_.tensor(id).shape; }

  std::shared_ptr<Storage> make(const Node& node, const Box& box) {
    const auto count = static_cast<std::size_t>(volume(box));
    auto fresh = std::make_shared<Storage>();
    fresh->value.resize(count);
    if (with_magnitude_) fresh->magnitude.resize(count);
    View& view = views_[static_cast<std::size_t>(node.outputs[0])];
    view = {fresh->value.data(), Dtype::f64, with_magnitude_ ? fresh->magnitude.data() : nullptr, fresh, 0, strides_of(box.size)};
    for (std::size_t i = 0; i < box.begin.size(); ++i) view.origin -= box.begin[i] * view.strides[i];
    return fresh;
  }

  // An input as a view in the output's coordinates: strides of 0 along axes that it lacks or that stretch.
  View projected(const Node& node, std::size_t input) const {
    const Question q{graph_, node};
    View to = view(node.inputs[input]);
    const std::vector<std::int64_t> strides = std::exchange(to.strides, std::vector<std::int64_t>(q.out().size(), 0));
    const auto access = operator_of(node.op).access(q, input);
    for (std::size_t i = 0; access && i < access->size(); ++i) {
      const AxisSource& source = (*access)[i];
      if (source.axis == AxisSource::kWhole) continue;
      to.origin += source.begin * strides[i];
      to.strides[static_cast<std::size_t>(source.axis)] = source.step * strides[i];
    }
    return to;
  }

  void contraction(const Node& node, const Box& box) {
    const auto fresh = make(node, box);
    const Shape &a_shape = shape(node.inputs[0]), &b_shape = shape(node.inputs[1]);
    const View a = projected(node, 0), b = projected(node, 1);
    const std::size_t a_depth = node.integer("transA") != 0 ? 0 : a_shape.size() - 1;
    const std::size_t b_depth = b_shape.size() == 1 ? 0 : b_shape.size() - (node.integer("transB") != 0 ? 1 : 2);
    Product p;
    p.m = p.n = 1;
    p.k = a_shape[a_depth];
    p.a = {a.data, a.dtype, 0, view(node.inputs[0]).strides[a_depth]};
    p.b = {b.data, b.dtype, view(node.inputs[1]).strides[b_depth], 0};
    std::size_t axes = box.size.size();  // of the batch, after columns and rows are taken off
    if (b_shape.size() > 1) {
      p.n = box.size[--axes];
      p.b.column_stride = b.strides[axes];
    }
    if (a_shape.size() > 1) {
      p.m = box.size[--axes];
      p.a.row_stride = a.strides[axes];
    }
    // A batch axis along which B stands still and A walks on in steps of its rows is more rows of one product.
    for (; axes > 0; --axes) {
      const std::int64_t size = box.size[axes - 1], step = a.strides[axes - 1];
      if (size == 1) continue;
      if (b.strides[axes - 1] != 0 || (p.m != 1 && step != p.a.row_stride * p.m)) break;
      if (p.m == 1) p.a.row_stride = step;
      p.m *= size;
    }
    const Shape batch(box.size.begin(), box.size.begin() + static_cast<std::ptrdiff_t>(axes));
    for (std::int64_t i = 0; i < element_count(batch); ++i) {
      Shape at = box.begin;
      const Shape within = coordinates_of(batch, i);
      for (std::size_t k = 0; k < axes; ++k) at[k] += within[k];
      p.batch.push_back({address(a, at), address(b, at), i * p.m * p.n});
    }
    multiply_add(p, fresh->value.data(), threads_);
    p.absolute = true;
    if (with_magnitude_) multiply_add(p, fresh->magnitude.data(), threads_);
    const auto carry = [&](Operand& operand, const double* errors) {  // |a|·E_b and E_a·|b|
      if (errors == nullptr) return;
      const Operand kept = operand;
      operand.data = errors;
      operand.dtype = Dtype::f64;
      multiply_add(p, fresh->magnitude.data(), threads_);
      operand = kept;
    };
    if (with_magnitude_) carry(p.a, a.magnitude), carry(p.b, b.magnitude);
    if (node.op == OpKind::Gemm) scale_and_add(node, box, *fresh);
    const Dtype dtype = graph_.tensor(node.outputs[0]).dtype;
    if (!is_float(dtype))
      for (double& value : fresh->value) value = wrapped(dtype, value);
  }

  // Gemm's alpha, beta and C.
  void scale_and_add(const Node& node, const Box& box, Storage& fresh) {
    const double alpha = node.real("alpha", 1), beta = node.real("beta", 1);
    const bool has_c = node.inputs.size() > 2 && node.inputs[2] != kAbsent;
    if (!has_c && alpha == 1) return;
    const View c = has_c ? projected(node, 2) : View{};
    for_runs(box, threads_, [&](std::int64_t first, std::int64_t n, const Shape& at) {
      std::vector<double> added(static_cast<std::size_t>(n), 0.0), error(static_cast<std::size_t>(n), 0.0);
      if (has_c) load(c, at, n, added.data(), error.data());
      for (std::size_t i = 0; i < added.size(); ++i) {
        const auto out = static_cast<std::size_t>(first) + i;
        double& value = fresh.value[out];
        value = alpha * value + (has_c ? beta * added[i] : 0);
        if (!with_magnitude_) continue;
        double& e = fresh.magnitude[out];
        e = std::fabs(alpha) * e + std::fabs(beta) * (std::fabs(added[i]) + error[i]) + std::fabs(value);
      }
    });
  }

  void softmax(const Node& node, const Box& box) {
    const auto fresh = make(node, box);
    const View& from = view(node.inputs[0]);
    const Shape& in = shape(node.inputs[0]);
    const std::size_t axis = Question{graph_, node}.axis(in.size());
    const bool logarithm = node.op == OpKind::LogSoftmax;
    const std::int64_t length = in[axis], stride = from.strides[axis];
    const auto to_strides = strides_of(box.size);
    Box lines = box;
    lines.begin[axis] = 0;
    lines.size[axis] = 1;
    if (volume(box) == 0) return;
    parallel_for(volume(lines), threads_, [&](std::int64_t line) {
      Shape at = coordinates_of(lines.size, line);
      std::int64_t to = 0;
      for (std::size_t i = 0; i < at.size(); ++i) {
        to += at[i] * to_strides[i];
        at[i] += lines.begin[i];
      }
      const std::int64_t where = address(from, at);
      static thread_local std::vector<double> x, y, e;
      x.resize(static_cast<std::size_t>(length));
      y.resize(x.size());
      e.assign(x.size(), 0.0);
      load(from, where, stride, length, x.data(), with_magnitude_ ? e.data() : nullptr);
      double top = -std::numeric_limits<double>::infinity();
      for (double value : x) top = std::isnan(value) ? value : std::max(top, value);
      double sum = 0;
      for (std::size_t i = 0; i < x.size(); ++i) sum += y[i] = std::exp(x[i] - top);
      const double log_sum = std::log(sum);
      for (double& value : y) value /= sum;
      double carried = 0;
      for (std::size_t i = 0; i < x.size(); ++i) carried += e[i] == 0 ? 0 : y[i] * e[i];
      for (std::int64_t i = 0; i < box.size[axis]; ++i) {
        const auto k = static_cast<std::size_t>(box.begin[axis] + i), out = static_cast<std::size_t>(to + i * to_strides[axis]);
        const double distance = std::fabs(x[k] - top), value = logarithm ? (x[k] - top) - log_sum : y[k];
        fresh->value[out] = value;
        if (!with_magnitude_) continue;
        const double moved = e[k] + carried;
        fresh->magnitude[out] = logarithm ? distance + std::fabs(value) + moved : y[k] == 0 ? 0 : y[k] * (1 + distance + moved);
      }
    });
  }

  void pointwise(const Node& node, const Box& box) {
    const auto fresh = make(node, box);
    const ScalarFunction f = scalar_function(graph_, node);
    const auto expression = with_magnitude_ ? expression_of(graph_, node) : std::nullopt;
    std::vector<std::pair<std::size_t, View>> read;  // the inputs that are
    for (std::size_t k = 0; k < node.inputs.size(); ++k)
      if (node.inputs[k] != kAbsent && operator_of(node.op).access({graph_, node}, k)) read.push_back({k, projected(node, k)});
    const std::size_t used = node.inputs.size();
    for_runs(box, threads_, [&](std::int64_t first, std::int64_t n, const Shape& at) {
      static thread_local std::vector<double> columns, values, errors;
      const auto run = static_cast<std::size_t>(kRun);
      columns.resize(2 * used * run);
      values.resize(std::max<std::size_t>(used, 3));
      errors.resize(values.size());
      for (const auto& [k, from] : read)
        load(from, at, n, columns.data() + k * run, with_magnitude_ ? columns.data() + (used + k) * run : nullptr);
      for (std::int64_t i = 0; i < n; ++i) {
        const auto at_run = static_cast<std::size_t>(i), out = static_cast<std::size_t>(first + i);
        for (std::size_t k = 0; k < used; ++k) values[k] = columns[k * run + at_run];
        const double value = f(values.data());
        fresh->value[out] = value;
        if (!with_magnitude_) continue;
        for (std::size_t k = 0; k < used; ++k) errors[k] = columns[(used + k) * run + at_run];
        double e = magnitude_of(*expression, values, errors);
        if (f.settle == ScalarFunction::Settle::round) e += std::fabs(value);
        fresh->magnitude[out] = e;
      }
    });
  }

  void reshape(const Node& node, const Box& box, const Box& source) {
    const View from = view(node.inputs[0]);
    const Shape &in = shape(node.inputs[0]), &out = shape(node.outputs[0]);
    if (volume(box) > 0 && is_flat(from, in, source)) {
      View& to = views_[static_cast<std::size_t>(node.outputs[0])];
      to = from;
      to.strides = strides_of(out);
      to.origin = address(from, source.begin);
      const auto packed = strides_of(in);
      for (std::size_t i = 0; i < in.size(); ++i) to.origin -= source.begin[i] * packed[i];
      return;
    }
    const auto fresh = make(node, box);
    const auto packed = strides_of(out);
    for_runs(box, threads_, [&](std::int64_t first, std::int64_t n, const Shape& at) {
      std::int64_t flat = 0;
      for (std::size_t i = 0; i < at.size(); ++i) flat += at[i] * packed[i];
      for (std::int64_t done = 0; done < n;) {  // up to the end of the input's last axis at a time
        const Shape here = coordinates_of(in, flat + done);
        const std::int64_t count = in.empty() ? 1 : std::min(n - done, in.back() - here.back());
        load(from, here, count, fresh->value.data() + first + done, fresh->error(first + done));
        done += count;
      }
    });
  }

  void movement(const Node& node, const Box& box) {
    if (node.op != OpKind::Concat && node.op != OpKind::Gather) {
      views_[static_cast<std::size_t>(node.outputs[0])] = projected(node, 0);
      return;
    }
    const auto fresh = make(node, box);
    const Origins origins({graph_, node});
    const auto index = [&](const Shape& at) {
      double value = 0;
      load(view(node.inputs[1]), at, 1, &value, nullptr);
      return static_cast<std::int64_t>(value);
    };
    for_runs(box, threads_, [&](std::int64_t first, std::int64_t n, Shape at) {
      for (std::int64_t i = first; i < first + n; ++i) {
        const auto [input, from] = origins(at, index);
        load(view(node.inputs[input]), from, 1, fresh->value.data() + i, fresh->error(i));
        if (!at.empty()) ++at.back();
      }
    });
  }

  const Graph& graph_;
  std::vector<View> views_;
  int threads_;
  bool with_magnitude_;
};
}  // namespace
Status compute(const Graph& graph, std::span<const Bytes> inputs, const Demand& demand, TensorId id, const Box& box,
               bool with_magnitude, int threads, ValueAndMagnitude& to) {
  Evaluator evaluator(graph, inputs, threads, with_magnitude);
  WARPLOOM_CHECK(evaluator.run(demand));
  evaluator.append(id, box, to);
  return ok();
}
}  // namespace warploom::graph
