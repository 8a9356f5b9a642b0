#include "kernels/match.h"
#include "kernels/contraction.h"
namespace warploom::kernels {
namespace {
std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

// An access seen along axes of its nest; nothing where it is no view.
std::optional<View> view_of(const Nest& nest, const Access& access, const std::vector<int>& axes) {
  View view{access.tensor, access.name, access.dtype, {}, {}};
  for (const int axis : axes) {
    std::int64_t stride = 0;
    for (std::size_t d = 0; d < access.at.size(); ++d) stride += access.at[d].steps[at(axis)] * access.strides[d];
    if (stride < 0) return std::nullopt;
    view.strides.push_back(stride);
    view.shape.push_back(stride == 0 ? 1 : nest.axes[at(axis)]);
  }
  for (const Affine& coordinate : access.at)
    if (coordinate.begin != 0) return std::nullopt;
  return access.inside && access.lookup_dim < 0 ? std::optional(std::move(view)) : std::nullopt;
}
}  // namespace
int View::fast_axis() const {
  const std::size_t last = shape.size() - 1;
  if (strides[last] == 1 && shape[last] > 1) return 1;
  return strides[last - 1] == 1 && shape[last - 1] > 1 ? 0 : 1;
}

View View::transposed() const {
  View view = *this;
  std::swap(view.shape[shape.size() - 1], view.shape[shape.size() - 2]);
  std::swap(view.strides[shape.size() - 1], view.strides[shape.size() - 2]);
  return view;
}

std::int64_t MatmulRegion::batch_count() const {
  std::int64_t count = 1;
  for (const auto size : batch) count *= size;
  return count;
}

bool is_computed_float(Dtype dtype) { return dtype == Dtype::f32 || dtype == Dtype::bf16 || dtype == Dtype::f16; }

std::optional<MatmulRegion> match_matmul(const std::vector<Nest>& nests) {
  if (nests.size() != 1) return std::nullopt;
  const auto c = contraction_of(nests[0]);
  if (!c || c->k.size() != 1) return std::nullopt;
  const auto epilogue = epilogue_of(*c);
  if (!epilogue) return std::nullopt;
  const Nest& nest = c->nest;
  // Rows and columns are one axis each; the others count the batch.
  const int m = static_cast<int>(c->m.back()), n = static_cast<int>(c->fastest_n()), k = static_cast<int>(c->k[0]);
  std::vector<int> batch;
  for (std::size_t axis = 0; axis < nest.axes.size(); ++axis)
    if (const int a = static_cast<int>(axis); a != m && a != n && a != k) batch.push_back(a);
  const auto view = [&](const Access& access, int row, int column) {
    std::vector<int> axes = batch;
    axes.push_back(row), axes.push_back(column);
    return view_of(nest, access, axes);
  };
  auto a = view(nest.loads[c->a], m, k), b = view(nest.loads[c->b], k, n), out = view(nest.outputs[0].place, m, n);
  if (!a || !b || !out || !is_computed_float(out->dtype)) return std::nullopt;
  if (c->n.size() > 1 && b->strides.back() != 1 && b->strides[batch.size()] != 1) return std::nullopt;  // a strided convolution
  MatmulRegion region{{}, nest.axes[at(m)], nest.axes[at(n)], nest.axes[at(k)], *a, *b, *out, {}, epilogue->expression, false};
  for (const int axis : batch) region.batch.push_back(nest.axes[at(axis)]);
  for (const int load : epilogue->operands) {
    auto operand = view(nest.loads[at(load)], m, n);
    if (!operand || !is_computed_float(operand->dtype)) return std::nullopt;
    region.operands.push_back(std::move(*operand));
  }
  region.has_epilogue = epilogue->expression.terms.size() > 1;
  return region;
}

tile::Value to_value(const graph::Expression& expression, std::span<const tile::Value> inputs) {
  std::vector<tile::Value> values;
  for (const graph::Term& term : expression.terms) {
    tile::Value value;
    if (term.kind == graph::Term::Kind::input) {
      value = inputs[at(term.input)];
    } else if (term.kind == graph::Term::Kind::constant) {
      value.constant = term.value;
    } else {
      value.kind = tile::Value::Kind::op;
      value.op = term.op;
      for (int i = 0; i < arity_of(term.op); ++i) value.operands.push_back(values[at(term.args[at(i)])]);
    }
    values.push_back(std::move(value));
  }
  return values.back();
}
}  // namespace warploom::kernels
