#include "kernels/match.h"
#include "kernels/match_chain.h"
namespace warploom::kernels {
namespace {
using graph::Graph;
using graph::Node;
using graph::OpClass;
using graph::OpKind;
using graph::Shape;
using graph::TensorId;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

// The one node of a class in a graph with one output, or nothing.
const Node* only_node(const Graph& graph, OpClass wanted) {
  if (graph.outputs.size() != 1) return nullptr;
  const Node* found = nullptr;
  for (const Node& node : graph.nodes) {
    if (class_of(node.op) != wanted) continue;
    if (found) return nullptr;
    found = &node;
  }
  return found;
}

bool is_zero(const Graph& graph, TensorId id) {
  const graph::Tensor& tensor = graph.tensor(id);
  if (!tensor.constant) return false;
  bool zero = true;
  for (std::int64_t i = 0; i < graph::element_count(tensor.shape); ++i)
    zero &= load_as_double(tensor.dtype, tensor.constant->data(), at(i)) == 0;
  return zero;
}

// A graph input or constant as it lies in memory, through any number of Transpose nodes. One of 8 bits is read through its
// DequantizeLinear: then `scale` is the factor, of the whole tensor or of the columns of an operand that stands on the right.
std::optional<View> stored_view(const Graph& graph, TensorId id, TensorId& scale, bool columns) {
  const int producer = graph.producer(id);
  const graph::Tensor& tensor = graph.tensor(id);
  if (producer < 0) {
    if (!is_computed_float(tensor.dtype)) return std::nullopt;
    return View{id, tensor.name, tensor.dtype, tensor.shape, graph::strides_of(tensor.shape)};
  }
  const Node& node = graph.nodes[at(producer)];
  if (node.op == OpKind::DequantizeLinear) {
    const graph::Tensor& narrow = graph.tensor(node.inputs[0]);
    const bool symmetric = node.inputs.size() < 3 || node.inputs[2] == graph::kAbsent || is_zero(graph, node.inputs[2]);
    const bool whole = graph::element_count(graph.tensor(node.inputs[1]).shape) == 1;
    const auto rank = static_cast<std::int64_t>(narrow.shape.size()), axis = node.integer("axis");
    const bool of_columns = columns && rank > 1 && (axis == -1 || axis == rank - 1);
    const bool narrow_type = narrow.dtype == Dtype::e4m3 || narrow.dtype == Dtype::e5m2 || narrow.dtype == Dtype::i8;
    if (graph.producer(node.inputs[0]) >= 0 || !symmetric || !narrow_type || !(whole || of_columns)) return std::nullopt;
    scale = node.inputs[1];
    return View{node.inputs[0], narrow.name, narrow.dtype, narrow.shape, graph::strides_of(narrow.shape)};
  }
  if (node.op != OpKind::Transpose) return std::nullopt;
  auto view = stored_view(graph, node.inputs[0], scale, false);
  if (!view) return std::nullopt;
  const View source = *view;
  const auto permutation = node.integers("perm");
  for (std::size_t i = 0; i < source.shape.size(); ++i) {
    const std::size_t from = permutation.empty() ? source.shape.size() - 1 - i : at(permutation[i]);
    view->shape[i] = source.shape[from];
    view->strides[i] = source.strides[from];
  }
  return view;
}

void insert_axis(View& view, std::size_t where) {
  view.shape.insert(view.shape.begin() + static_cast<std::ptrdiff_t>(where), 1);
  view.strides.insert(view.strides.begin() + static_cast<std::ptrdiff_t>(where), 0);
}

// Leading axes of size 1 up to `rank`; axes of size 1 lose their stride.
void align(View& view, std::size_t rank) {
  while (view.shape.size() < rank) insert_axis(view, 0);
  for (std::size_t i = 0; i < rank; ++i)
    if (view.shape[i] == 1) view.strides[i] = 0;
}

// Merging of neighbouring axes i and i + 1 of every view, `sizes` being the region's own sizes of them.
bool can_merge(const View& view, std::size_t i, std::int64_t outer, std::int64_t inner) {
  if (outer == 1 || inner == 1) return true;
  if (view.shape[i] == 1 && view.shape[i + 1] == 1) return true;
  return view.shape[i] == outer && view.shape[i + 1] == inner && view.strides[i] == view.strides[i + 1] * inner;
}
void merge(View& view, std::size_t i, std::int64_t inner) {
  if (inner == 1) view.strides[i + 1] = view.strides[i];
  view.shape[i + 1] *= view.shape[i];
  view.shape.erase(view.shape.begin() + static_cast<std::ptrdiff_t>(i));
  view.strides.erase(view.strides.begin() + static_cast<std::ptrdiff_t>(i));
}
bool merge_all(const std::vector<View*>& views, Shape& sizes, std::size_t i) {
  for (const View* view : views)
    if (!can_merge(*view, i, sizes[i], sizes[i + 1])) return false;
  for (View* view : views) merge(*view, i, sizes[i + 1]);
  sizes[i + 1] *= sizes[i];
  sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(i));
  return true;
}

// The views of the tensors that an expression reads, [axes of `like`]; nothing where one does not stretch to
// it.
std::optional<std::vector<View>> operand_views(const Graph& graph, const std::vector<TensorId>& ids, std::size_t rank) {
  std::vector<View> views;
  for (const TensorId id : ids) {
    const graph::Tensor& tensor = graph.tensor(id);
    if (tensor.shape.size() > rank) return std::nullopt;
    views.push_back({id, tensor.name, tensor.dtype, tensor.shape, graph::strides_of(tensor.shape)});
    align(views.back(), rank);
  }
  return views;
}

View output_view(const Graph& graph) {
  const TensorId id = graph.outputs[0];
  const graph::Tensor& tensor = graph.tensor(id);
  return {id, tensor.name, tensor.dtype, tensor.shape, graph::strides_of(tensor.shape)};
}

// A value is a tree where an expression shares terms; a chain that shares at every step would grow without
// bound as one.
constexpr double kMaxTreeNodes = 4096;
bool fits_a_tree(const graph::Expression& expression) {
  std::vector<double> nodes;
  for (const graph::Term& term : expression.terms) {
    nodes.push_back(1);
    if (term.kind == graph::Term::Kind::apply)
      for (int i = 0; i < arity_of(term.op); ++i) nodes.back() += nodes[at(term.args[at(i)])];
  }
  return nodes.back() <= kMaxTreeNodes;
}

void merge_batch(MatmulRegion& region) {
  Shape sizes = region.out.shape;
  std::vector<View*> all = {&region.a, &region.b, &region.out}, but_b = {&region.a, &region.out};
  for (View& operand : region.operands) {
    all.push_back(&operand);
    but_b.push_back(&operand);
  }
  // Neighbouring batch axes, from the innermost outwards, then batch axes that only rows have into the rows.
  for (std::size_t i = sizes.size() - 2; i-- > 1;) merge_all(all, sizes, i - 1);
  for (bool merged = true; merged && sizes.size() > 2;) {
    const std::size_t last = sizes.size() - 3;
    if (sizes[last] != 1 && region.b.shape[last] != 1) break;
    Shape trial = sizes;
    merged = merge_all(but_b, trial, last);
    if (!merged) break;
    sizes = trial;
    region.b.shape.erase(region.b.shape.begin() + static_cast<std::ptrdiff_t>(last));
    region.b.strides.erase(region.b.strides.begin() + static_cast<std::ptrdiff_t>(last));
  }
  region.m = sizes[sizes.size() - 2];
  region.batch.assign(sizes.begin(), sizes.end() - 2);
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

std::optional<MatmulRegion> match_matmul(const Graph& graph) {
  const Node* node = only_node(graph, OpClass::contraction);
  if (!node) return std::nullopt;
  const TensorId product = node->outputs[0];
  TensorId scale_a = graph::kAbsent, scale_b = graph::kAbsent;
  auto a = stored_view(graph, node->inputs[0], scale_a, false),
       b = stored_view(graph, node->inputs[1], scale_b, node->integer("transB") == 0);
  if (!a || !b) return std::nullopt;

  MatmulRegion region;
  Chain chain(graph, product);
  for (const TensorId scale : {scale_a, scale_b})
    if (scale != graph::kAbsent && !chain.scale_core(scale)) return std::nullopt;
  if (node->op == OpKind::Gemm) {
    if (node->integer("transA") != 0) a = a->transposed();
    if (node->integer("transB") != 0) b = b->transposed();
    const TensorId c = node->inputs.size() > 2 ? node->inputs[2] : graph::kAbsent;
    if (!chain.scale_core(node->real("alpha", 1), node->real("beta", 1), c)) return std::nullopt;
  }
  if (!chain.append(graph.outputs[0], true) || !fits_a_tree(chain.expression())) return std::nullopt;
  region.out = output_view(graph);
  const Shape& shape = graph.tensor(product).shape;
  if (!is_computed_float(region.out.dtype) || region.out.shape != shape) return std::nullopt;
  auto operands = operand_views(graph, chain.operands(), shape.size());
  if (!operands) return std::nullopt;

  // A vector on the left is a row, on the right a column: the axis that the result lacks comes back.
  const bool row = a->shape.size() == 1, column = b->shape.size() == 1;
  if (row) insert_axis(*a, 0);
  if (column) insert_axis(*b, 1);
  region.operands = std::move(*operands);
  const auto widen = [&](View& view) {
    if (row) insert_axis(view, view.shape.size() - (column ? 0 : 1));
    if (column) insert_axis(view, view.shape.size());
  };
  widen(region.out);
  for (View& operand : region.operands) widen(operand);
  align(*a, region.out.shape.size());
  align(*b, region.out.shape.size());
  region.a = std::move(*a);
  region.b = std::move(*b);
  region.n = region.out.shape.back();
  region.k = region.a.shape.back();
  region.epilogue = chain.expression();
  region.has_epilogue = !chain.trivial();
  merge_batch(region);
  if (graph::element_count(region.out.shape) == 0 || region.k == 0) return std::nullopt;
  return region;
}

tile::Value to_value(const graph::Expression& expression, std::span<const tile::Value> inputs) {
  std::vector<tile::Value> values;
  for (const graph::Term& term : expression.terms) {
    tile::Value value;
    if (term.kind == graph::Term::Kind::input) {
      value = inputs[static_cast<std::size_t>(term.input)];
    } else if (term.kind == graph::Term::Kind::constant) {
      value.constant = term.value;
    } else {
      value.kind = tile::Value::Kind::op;
      value.op = term.op;
      for (int i = 0; i < arity_of(term.op); ++i)
        value.operands.push_back(values[static_cast<std::size_t>(term.args[static_cast<std::size_t>(i)])]);
    }
    values.push_back(std::move(value));
  }
  return values.back();
}
}  // namespace warploom::kernels
