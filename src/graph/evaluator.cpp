#include "graph/evaluator.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/convert.h"
#include "graph/elements.h"
#include "graph/matrix.h"
#include "graph/parallel.h"
#include "graph/running_error.h"
#include "graph/shape_rules.h"

namespace warploom::graph {
namespace {

constexpr std::int64_t kRun = 4096;  // elements of a task along the last axis

// The view's strides lined up with an output of `rank` axes: 0 where it is stretched.
std::vector<std::int64_t> aligned(const View& view, const Shape& shape, std::size_t rank) {
  std::vector<std::int64_t> strides(rank, 0);
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != 1) strides[rank - shape.size() + i] = view.strides[i];
  return strides;
}
std::int64_t address(const View& view, const std::vector<std::int64_t>& strides, const Shape& at) {
  std::int64_t where = view.origin;
  for (std::size_t i = 0; i < strides.size(); ++i) where += at[i] * strides[i];
  return where;
}
std::int64_t last_of(const std::vector<std::int64_t>& strides) { return strides.empty() ? 0 : strides.back(); }

void load_magnitude(const View& view, std::int64_t offset, std::int64_t stride, std::int64_t count, double* to) {
  if (view.magnitude == nullptr) std::fill_n(to, count, 0.0);
  else load_run(Dtype::f64, view.magnitude, offset, stride, count, to);
}

// Element with flat index f is at address(first) + f: what packed storage gives for boxes that are one flat range.
bool is_flat(const View& view, const Shape& shape, const Box& box) {
  const auto packed = strides_of(shape);
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (box.size[i] > 1 && view.strides[i] != packed[i]) return false;
  return true;
}

}  // namespace

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

Evaluator::Evaluator(const Graph& graph, std::span<const Bytes> inputs, int threads, bool with_magnitude)
    : graph_(graph), views_(graph.tensors.size()), threads_(threads), with_magnitude_(with_magnitude) {
  for (std::size_t i = 0; i < views_.size(); ++i) {
    const Tensor& tensor = graph.tensors[i];
    if (tensor.constant)
      views_[i] = {tensor.constant->data(), tensor.dtype, nullptr, nullptr, 0, strides_of(tensor.shape)};
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& tensor = graph.tensor(graph.inputs[i]);
    views_[static_cast<std::size_t>(graph.inputs[i])] = {inputs[i].data(),        tensor.dtype, nullptr, nullptr, 0,
                                                         strides_of(tensor.shape)};
  }
}

std::shared_ptr<Storage> Evaluator::make(const Node& node, const Box& box) {
  const auto count = static_cast<std::size_t>(volume(box));
  auto fresh = std::make_shared<Storage>();
  fresh->value.resize(count);
  if (with_magnitude_) fresh->magnitude.resize(count);
  View& view = views_[static_cast<std::size_t>(node.outputs[0])];
  view = {fresh->value.data(), Dtype::f64, with_magnitude_ ? fresh->magnitude.data() : nullptr, fresh, 0,
          strides_of(box.size)};
  for (std::size_t i = 0; i < box.begin.size(); ++i) view.origin -= box.begin[i] * view.strides[i];
  return fresh;
}

Status Evaluator::run(const Demand& demand) {
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
      case OpClass::contraction: node.op == OpKind::MatMul ? matmul(node, *box) : gemm(node, *box); break;
      case OpClass::softmax: softmax(node, *box); break;
      case OpClass::pointwise: pointwise(node, *box); break;
      case OpClass::view: reshape(node, *box, *demand[static_cast<std::size_t>(node.inputs[0])]); break;
      case OpClass::movement: movement(node, *box); break;
      case OpClass::constant: return fail({ErrorCode::kInternal, "a constant was not folded", place_of(node)});
    }
    for (TensorId id : node.inputs)
      if (id != kAbsent && last_use[static_cast<std::size_t>(id)] == n)
        views_[static_cast<std::size_t>(id)].owner.reset();
  }
  return ok();
}

void Evaluator::append(TensorId id, const Box& box, std::vector<double>& value, std::vector<double>* magnitude) {
  View& from = views_[static_cast<std::size_t>(id)];
  const bool all_of_it = from.owner && from.owner.use_count() == 1 && !graph_.tensor(id).constant &&
                         static_cast<std::int64_t>(from.owner->value.size()) == volume(box) &&
                         is_flat(from, box.size, whole(box.size));
  if (value.empty() && all_of_it) {
    value = std::move(from.owner->value);
    if (magnitude) *magnitude = std::move(from.owner->magnitude);
    return;
  }
  const std::size_t start = value.size(), count = static_cast<std::size_t>(volume(box));
  value.resize(start + count);
  if (magnitude) magnitude->resize(start + count);
  for_runs(box, threads_, [&](std::int64_t first, std::int64_t n, const Shape& at) {
    const std::int64_t where = address(from, from.strides, at), stride = last_of(from.strides);
    load_run(from.dtype, from.data, where, stride, n, value.data() + start + first);
    if (magnitude) load_magnitude(from, where, stride, n, magnitude->data() + start + first);
  });
}

void Evaluator::settle_integers(const Node& node, Storage& fresh) {
  const Dtype dtype = graph_.tensor(node.outputs[0]).dtype;
  if (is_float(dtype)) return;
  for (double& value : fresh.value) value = wrapped(dtype, value);
}

void Evaluator::multiply(const View& a, const View& b, Product product, Storage& to) {
  multiply_add(product, to.value.data(), threads_);
  if (!with_magnitude_) return;
  product.absolute = true;
  multiply_add(product, to.magnitude.data(), threads_);
  for (const bool left : {true, false}) {  // |a|·E_b and E_a·|b|
    Product carried = product;
    const double* errors = left ? a.magnitude : b.magnitude;
    if (errors == nullptr) continue;
    (left ? carried.a : carried.b).data = errors;
    (left ? carried.a : carried.b).dtype = Dtype::f64;
    multiply_add(carried, to.magnitude.data(), threads_);
  }
}

void Evaluator::matmul(const Node& node, const Box& box) {
  const auto fresh = make(node, box);
  View a = view(node.inputs[0]), b = view(node.inputs[1]);
  Shape a_shape = shape(node.inputs[0]), b_shape = shape(node.inputs[1]);
  Box out = box;
  if (b_shape.size() == 1) {  // a vector on the right is a column, on the left a row
    b_shape.push_back(1);
    b.strides.push_back(0);
    out.begin.push_back(0);
    out.size.push_back(1);
  }
  if (a_shape.size() == 1) {
    a_shape.insert(a_shape.begin(), 1);
    a.strides.insert(a.strides.begin(), 0);
    out.begin.insert(out.begin.end() - 1, 0);
    out.size.insert(out.size.end() - 1, 1);
  }
  const std::size_t rank = out.size.size(), batch = rank - 2;
  std::vector<std::int64_t> a_strides = aligned(a, a_shape, rank), b_strides = aligned(b, b_shape, rank);
  Product p;
  p.k = a_shape.back();
  p.m = out.size[batch];
  p.n = out.size[batch + 1];
  p.a = {a.data, a.dtype, a_strides[batch], a_shape.back() == 1 ? 0 : a.strides.back()};
  p.b = {b.data, b.dtype, b_shape[b_shape.size() - 2] == 1 ? 0 : b.strides[b.strides.size() - 2], b_strides[batch + 1]};
  std::int64_t a_base = a.origin + out.begin[batch] * a_strides[batch];
  const std::int64_t b_base = b.origin + out.begin[batch + 1] * b_strides[batch + 1];

  // A batch axis along which B stands still and A walks on in steps of its rows is more rows of one product.
  std::size_t axes = batch;
  while (axes > 0) {
    const std::int64_t size = out.size[axes - 1], step = a_strides[axes - 1];
    const bool same_b = b_strides[axes - 1] == 0 || size == 1;
    if (!same_b || (size != 1 && p.m != 1 && step != p.a.row_stride * p.m)) break;
    if (p.m == 1 && size != 1) p.a.row_stride = step;
    a_base += out.begin[--axes] * step;
    p.m *= size;
  }
  std::int64_t b_fixed = b_base;
  for (std::size_t i = axes; i < batch; ++i) b_fixed += out.begin[i] * b_strides[i];
  const Shape batch_shape(out.size.begin(), out.size.begin() + static_cast<std::ptrdiff_t>(axes));
  for (std::int64_t i = 0; i < element_count(batch_shape); ++i) {
    const Shape at = coordinates_of(batch_shape, i);
    Offsets offsets{a_base, b_fixed, i * p.m * p.n};
    for (std::size_t k = 0; k < axes; ++k) {
      offsets.a += (out.begin[k] + at[k]) * a_strides[k];
      offsets.b += (out.begin[k] + at[k]) * b_strides[k];
    }
    p.batch.push_back(offsets);
  }
  multiply(a, b, p, *fresh);
  settle_integers(node, *fresh);
}

void Evaluator::gemm(const Node& node, const Box& box) {
  const auto fresh = make(node, box);
  const View &a = view(node.inputs[0]), &b = view(node.inputs[1]);
  const bool ta = node.integer("transA") != 0, tb = node.integer("transB") != 0;
  Product p;
  p.a = {a.data, a.dtype, a.strides[ta ? 1 : 0], a.strides[ta ? 0 : 1]};
  p.b = {b.data, b.dtype, b.strides[tb ? 1 : 0], b.strides[tb ? 0 : 1]};
  p.m = box.size[0];
  p.n = box.size[1];
  p.k = shape(node.inputs[0])[ta ? 0 : 1];
  p.batch = {{a.origin + box.begin[0] * p.a.row_stride, b.origin + box.begin[1] * p.b.column_stride, 0}};
  multiply(a, b, p, *fresh);
  const double alpha = node.real("alpha", 1), beta = node.real("beta", 1);
  const bool has_c = node.inputs.size() > 2 && node.inputs[2] != kAbsent;
  const View* c = has_c ? &view(node.inputs[2]) : nullptr;
  const auto c_strides = c ? aligned(*c, shape(node.inputs[2]), 2) : std::vector<std::int64_t>{};
  if (c || alpha != 1)
    for_runs(box, threads_, [&](std::int64_t first, std::int64_t n, const Shape& at) {
      std::vector<double> added(static_cast<std::size_t>(n), 0.0), error(static_cast<std::size_t>(n), 0.0);
      if (c) {
        const std::int64_t where = address(*c, c_strides, at);
        load_run(c->dtype, c->data, where, c_strides[1], n, added.data());
        load_magnitude(*c, where, c_strides[1], n, error.data());
      }
      for (std::int64_t i = 0; i < n; ++i) {
        const auto k = static_cast<std::size_t>(i), at_out = static_cast<std::size_t>(first + i);
        double& value = fresh->value[at_out];
        value = alpha * value + (c ? beta * added[k] : 0);
        if (with_magnitude_) {
          double& e = fresh->magnitude[at_out];
          e = std::fabs(alpha) * e + std::fabs(beta) * (std::fabs(added[k]) + error[k]) + std::fabs(value);
        }
      }
    });
  settle_integers(node, *fresh);
}

void Evaluator::softmax(const Node& node, const Box& box) {
  const auto fresh = make(node, box);
  const View& from = view(node.inputs[0]);
  const Shape& in = shape(node.inputs[0]);
  const auto axis = static_cast<std::size_t>(*normalized_axis(node.integer("axis"), in.size(), ""));
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
    const std::int64_t where = address(from, from.strides, at);
    static thread_local std::vector<double> x, y, e;
    x.resize(static_cast<std::size_t>(length));
    y.resize(x.size());
    load_run(from.dtype, from.data, where, stride, length, x.data());
    double top = -std::numeric_limits<double>::infinity();
    for (double value : x) top = std::isnan(value) ? value : std::max(top, value);
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += y[i] = std::exp(x[i] - top);
    const double log_sum = std::log(sum);
    for (double& value : y) value /= sum;
    double carried = 0;
    if (with_magnitude_) {
      e.resize(x.size());
      load_magnitude(from, where, stride, length, e.data());
      for (std::size_t i = 0; i < x.size(); ++i) carried += e[i] == 0 ? 0 : y[i] * e[i];
    }
    for (std::int64_t i = 0; i < box.size[axis]; ++i) {
      const auto k = static_cast<std::size_t>(box.begin[axis] + i),
                 out = static_cast<std::size_t>(to + i * to_strides[axis]);
      const double distance = std::fabs(x[k] - top), value = logarithm ? (x[k] - top) - log_sum : y[k];
      fresh->value[out] = value;
      if (!with_magnitude_) continue;
      const double moved = e[k] + carried;
      fresh->magnitude[out] = logarithm   ? distance + std::fabs(value) + moved
                              : y[k] == 0 ? 0
                                          : y[k] * (1 + distance + moved);
    }
  });
}

void Evaluator::pointwise(const Node& node, const Box& box) {
  const auto fresh = make(node, box);
  const ScalarFunction f = scalar_function(graph_, node);
  const auto expression = with_magnitude_ ? expression_of(graph_, node) : std::nullopt;
  const std::size_t rank = box.size.size();
  std::size_t used = node.inputs.size();
  if (node.op == OpKind::CastLike || node.op == OpKind::Dropout) used = 1;
  std::vector<std::vector<std::int64_t>> strides(used);
  for (std::size_t k = 0; k < used; ++k)
    if (node.inputs[k] != kAbsent) strides[k] = aligned(view(node.inputs[k]), shape(node.inputs[k]), rank);
  for_runs(box, threads_, [&](std::int64_t first, std::int64_t n, const Shape& at) {
    static thread_local std::vector<double> columns, values, errors;
    const auto run = static_cast<std::size_t>(kRun);
    columns.resize(2 * used * run);
    values.resize(std::max<std::size_t>(used, 3));
    errors.resize(values.size());
    for (std::size_t k = 0; k < used; ++k) {
      if (node.inputs[k] == kAbsent) continue;
      const View& from = view(node.inputs[k]);
      const std::int64_t where = address(from, strides[k], at), stride = last_of(strides[k]);
      load_run(from.dtype, from.data, where, stride, n, columns.data() + k * run);
      if (with_magnitude_) load_magnitude(from, where, stride, n, columns.data() + (used + k) * run);
    }
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

void Evaluator::reshape(const Node& node, const Box& box, const Box& source) {
  const View from = view(node.inputs[0]);
  const Shape &in = shape(node.inputs[0]), &out = shape(node.outputs[0]);
  if (volume(box) > 0 && is_flat(from, in, source)) {
    View& to = views_[static_cast<std::size_t>(node.outputs[0])];
    to = from;
    to.strides = strides_of(out);
    to.origin = address(from, from.strides, source.begin);
    const auto packed = strides_of(in);
    for (std::size_t i = 0; i < in.size(); ++i) to.origin -= source.begin[i] * packed[i];
    return;
  }
  const auto fresh = make(node, box);
  const auto packed = strides_of(out);
  for_runs(box, threads_, [&](std::int64_t first, std::int64_t n, const Shape& at) {
    std::int64_t flat = 0;
    for (std::size_t i = 0; i < at.size(); ++i) flat += at[i] * packed[i];
    const std::int64_t stride = last_of(from.strides);
    for (std::int64_t done = 0; done < n;) {  // up to the end of the input's last axis at a time
      const Shape here = coordinates_of(in, flat + done);
      const std::int64_t count = in.empty() ? 1 : std::min(n - done, in.back() - here.back());
      const std::int64_t where = address(from, from.strides, here);
      load_run(from.dtype, from.data, where, stride, count, fresh->value.data() + first + done);
      if (with_magnitude_) load_magnitude(from, where, stride, count, fresh->magnitude.data() + first + done);
      done += count;
    }
  });
}

void Evaluator::movement(const Node& node, const Box& box) {
  const View from = view(node.inputs[0]);
  const Shape &in = shape(node.inputs[0]), &out = shape(node.outputs[0]);
  View moved = from;
  if (node.op == OpKind::Transpose) {
    const auto perm = permutation_of(node, in.size());
    for (std::size_t i = 0; i < perm.size(); ++i) moved.strides[i] = from.strides[static_cast<std::size_t>(perm[i])];
  } else if (node.op == OpKind::Expand) {
    moved.strides = aligned(from, in, out.size());
  } else if (node.op == OpKind::Slice) {
    const auto spec = slice_spec({graph_, node, ""});
    for (std::size_t i = 0; spec && i < in.size(); ++i) {
      moved.origin += spec->begin[i] * from.strides[i];
      moved.strides[i] = from.strides[i] * spec->step[i];
    }
  } else {  // Concat and Gather: element by element
    const auto fresh = make(node, box);
    const auto packed = strides_of(out);
    const auto index = [&](std::int64_t entry) {
      const View& list = view(node.inputs[1]);
      double value = 0;
      load_run(list.dtype, list.data, address(list, list.strides, coordinates_of(shape(node.inputs[1]), entry)), 1, 1,
               &value);
      return static_cast<std::int64_t>(value);
    };
    for_runs(box, threads_, [&](std::int64_t first, std::int64_t n, const Shape& at) {
      std::int64_t flat = 0;
      for (std::size_t i = 0; i < at.size(); ++i) flat += at[i] * packed[i];
      for (std::int64_t i = 0; i < n; ++i) {
        const Source source = source_of(graph_, node, flat + i, index);
        const TensorId id = node.inputs[static_cast<std::size_t>(source.input)];
        const View& part = view(id);
        const std::int64_t where = address(part, part.strides, coordinates_of(shape(id), source.element));
        load_run(part.dtype, part.data, where, 1, 1, fresh->value.data() + first + i);
        if (with_magnitude_) load_magnitude(part, where, 1, 1, fresh->magnitude.data() + first + i);
      }
    });
    return;
  }
  views_[static_cast<std::size_t>(node.outputs[0])] = std::move(moved);
}

}  // namespace warploom::graph
