// From a graph to nests, backwards: every tensor is demanded at coordinates, and its producer says
// at which coordinates it demands its inputs. Where a Reshape meets an axis that runs over several
// of its dimensions, the axis is split and all begins again.
//
// A tensor that is demanded twice at the same coordinates is read once. At other coordinates it is
// another value, though, made of other values: x + relu(x·w) demands x at {i, j} and at {i, k}, so
// that twelve such layers demand the first x at 2^12 places. No kernel computes such a nest; so
// reading ends at a limit, and the graph has no nest.
#include <unordered_map>
#include "base/integers.h"
#include "graph/operators.h"
#include "loopnest/loop_nest.h"

namespace warploom::loopnest {
namespace {
using graph::Graph, graph::Node, graph::OpClass, graph::OpKind, graph::Shape, graph::TensorId,
    graph::ExpressionTerm;
using Map = std::vector<Affine>;  // a coordinate for each dimension of a tensor
using Value = std::optional<int>;

// to += from · factor, without trailing zeros, so that equal coordinates compare equal while axes
// are still added.
void add(Affine& to, const Affine& from, int64_t factor = 1) {
  to.begin += from.begin * factor;
  to.steps.resize(std::max(to.steps.size(), from.steps.size()));
  for (size_t a = 0; a < from.steps.size(); ++a) to.steps[a] += from.steps[a] * factor;
  while (!to.steps.empty() && to.steps.back() == 0) to.steps.pop_back();
}

// Where reading ends. Kernels know nests of a few reductions, and regions have at most 64 nodes:
// none that one covers comes near.
constexpr size_t kMostAxes = 128;
constexpr int kMostDepth = 1024;  // of readings within readings: each is a part of the stack

int64_t most_places(const Graph& graph) {
  constexpr int64_t kAlways = 8192;
  constexpr int64_t kEach = 16;
  return kAlways + kEach * std::ssize(graph.nodes);
}

class Reader {
 public:
  // splits[i]: the sizes, outermost first, that the i-th axis asked for is made of.
  Reader(const Graph& graph, std::map<int, Shape>& splits, ReadWork& work)
      : graph_(graph),
        splits_(splits),
        work_(work),
        makers_(graph.tensors.size(), -1),
        depth_(graph.tensors.size(), 0) {
    for (size_t n = 0; n < graph.nodes.size(); ++n)
      for (const TensorId id : graph.nodes[n].outputs)
        if (id != graph::kAbsent) makers_[at(id)] = static_cast<int>(n);
    for (const Node& node : graph.nodes) {
      int deepest = 0;
      for (const TensorId id : node.inputs)
        if (id != graph::kAbsent) deepest = std::max(deepest, depth_[at(id)]);
      const bool reduces =
          class_of(node.op) != OpClass::pointwise && !only_moves(class_of(node.op));
      depth_[at(node.outputs[0])] = deepest + reduces;
    }
  }

  // Outputs of equal shape (or of size 1 where the first is larger), from `begin` on and `size`
  // long along every axis.
  bool read(const std::vector<TensorId>& outputs, const Shape& begin, const Shape& size) {
    Map coordinates;
    for (size_t d = 0; d < size.size(); ++d) {
      coordinates.push_back(new_axis(size[d]));
      coordinates.back().begin += begin[d];
    }
    for (const TensorId id : outputs) {
      Map place = coordinates;
      const Shape& shape = graph_.tensor(id).shape;
      for (size_t d = 0; d < shape.size(); ++d)
        if (shape[d] == 1) place[d] = {};
      const Value value = read(id, place);
      if (!value) return false;
      nest.outputs.push_back({*value, access(id, place)});
    }
    return true;
  }

  LoopNest nest;
  bool to_split = false;  // why nothing was read: an axis is to be split first

 private:
  const Graph& graph_;
  std::map<int, Shape>& splits_;
  ReadWork& work_;
  std::vector<int> makers_;  // the node that makes a tensor, -1 for inputs and constants
  std::vector<int> depth_;   // how many reductions a tensor is made by, one after another
  int asked_ = 0;
  std::vector<std::pair<int, size_t>>
      origin_;  // of every axis: which one asked for, which part of it
  std::map<std::pair<TensorId, Map>, int> known_;
  std::map<std::tuple<TensorId, Map, uint64_t>, int> padded_;  // by the fill's bits
  std::map<TensorId, std::vector<Map>> demanded_;
  std::unordered_multimap<size_t, int> numbered_;  // nest.values, by their hashes
  int within_ = 0;                                 // so many readings

  Affine new_axis(int64_t size) {
    const int logical = asked_++;
    Affine out;
    if (size <= 1) return out;
    if (nest.axes.size() >= kMostAxes) {  // what reads along it reads nothing
      work_.too_large = true;
      return out;
    }
    if (const auto inner = std::min<int64_t>(size & -size, 1 << 20);
        size > kLongestAxis && inner > 1)
      splits_.try_emplace(logical, Shape{size / inner, inner});
    const Shape sizes = splits_.contains(logical) ? splits_.at(logical) : Shape{size};
    int64_t step = size;
    for (size_t i = 0; i < sizes.size(); ++i) {
      origin_.emplace_back(logical, i);
      nest.axes.push_back(sizes[i]);
      add(out, along(nest.axes.size() - 1, nest.axes.size(), step /= sizes[i]));
    }
    return out;
  }

  void split(size_t axis, int64_t inner) {
    const auto [logical, position] = origin_[axis];
    Shape& sizes = splits_[logical];
    if (sizes.empty()) sizes = {nest.axes[axis]};
    sizes[position] /= inner;
    sizes.insert(sizes.begin() + static_cast<ptrdiff_t>(position) + 1, inner);
    to_split = true;
  }

  // Those that coordinates step along.
  std::vector<int> axes_of(std::span<const Affine> coordinates) const {
    std::vector<int> out;
    for (const Affine& c : coordinates)
      for (size_t a = 0; a < c.steps.size(); ++a)
        if (c.steps[a] != 0) out.push_back(static_cast<int>(a));
    return out;
  }

  std::vector<int> axes_of(const Affine& coordinate) const {
    return axes_of(std::span(&coordinate, 1));
  }

  bool lies_in(const Affine& affine, int64_t begin, int64_t end) const {
    const auto [low, high] = nest.range(affine);
    return low >= begin && high < end;
  }

  bool inside(const Map& map, const Shape& shape) const {
    for (size_t d = 0; d < map.size(); ++d)
      if (!lies_in(map[d], 0, shape[d])) return false;
    return true;
  }

  // Whether it takes every value below `size` exactly once.
  bool whole(const Affine& affine, int64_t size) const {
    std::vector<int> axes = axes_of(affine);
    std::ranges::sort(axes,
                      [&](int x, int y) { return affine.steps[at(x)] < affine.steps[at(y)]; });
    int64_t step = 1;
    for (const int axis : axes) {
      if (affine.steps[at(axis)] != step) return false;
      step *= nest.axes[at(axis)];
    }
    return affine.begin == 0 && step == size;
  }

  // Equal values are one.
  int push(Expr value) {
    const size_t hash = value.hash();
    const auto [first, last] = numbered_.equal_range(hash);
    const auto same = std::find_if(
        first, last, [&](const auto& old) { return nest.values[at(old.second)].same(value); });
    if (same != last) return same->second;
    const int number = static_cast<int>(nest.values.size());
    nest.values.push_back(std::move(value));
    numbered_.emplace(hash, number);
    return number;
  }

  int number(double value) { return push({.kind = Kind::constant, .value = value}); }

  int apply(ValueOp op, std::vector<int> operands) {
    std::array<double, 3> known{};
    for (size_t i = 0; i < operands.size(); ++i) {
      const Expr& operand = nest.values[at(operands[i])];
      if (operand.kind != Kind::constant)
        return push({.kind = Kind::apply, .op = op, .operands = std::move(operands)});
      known[i] = operand.value;
    }
    return number(warploom::apply(op, known[0], known[1], known[2]));
  }

  // A tensor's value as a whole number.
  int whole(int v, Dtype dtype) {
    if (nest.is_whole(v)) return v;
    return push({.kind = Kind::round, .dtype = dtype, .operands = {v}, .integers = true});
  }

  // As a float, for operations on floats.
  int real(int v) {
    if (!nest.values[at(v)].integers) return v;
    return push({.kind = Kind::round, .dtype = Dtype::f32, .operands = {v}});
  }

  // An operation on whole numbers; of constants alone a constant, where that holds the result.
  int apply_whole(ValueOp op, std::vector<int> operands) {
    std::array<int64_t, 3> known{};
    bool all_known = true;
    for (size_t i = 0; i < operands.size(); ++i) {
      const Expr& operand = nest.values[at(operands[i])];
      all_known = all_known && operand.kind == Kind::constant;
      known[i] = saturated_integer(Dtype::i64, operand.value);
    }
    if (all_known) {
      const int64_t result = apply_integers(op, known[0], known[1], known[2]);
      if (std::abs(static_cast<double>(result)) <= 0x1p53)
        return number(static_cast<double>(result));
    }
    return push({.kind = Kind::apply,
                 .op = op,
                 .dtype = Dtype::i64,
                 .operands = std::move(operands),
                 .integers = true});
  }

  // What storing a whole number in an integer type leaves of it.
  int wrapped(int v, Dtype dtype) {
    const bool fits =
        dtype == Dtype::i64 || is_of(dtype, v) || (dtype == Dtype::i32 && nest.most(v) < 0x1p31);
    if (fits) return v;
    return push({.kind = Kind::round, .dtype = dtype, .operands = {v}, .integers = true});
  }

  // Of integers of a type: in floats where these hold them, or on whole numbers.
  int choose(Dtype dtype, ValueOp op, const std::vector<int>& operands) {
    const auto small = [&](int v) { return is_small(v) && !nest.values[at(v)].integers; };
    if (is_float(dtype) || std::ranges::all_of(operands, small))
      if (const int v = apply(op, operands); is_float(dtype) || is_small(v)) return v;
    std::vector<int> wholes;
    for (const int operand : operands)
      wholes.push_back(
          whole(operand, op == ValueOp::where && wholes.empty() ? Dtype::boolean : dtype));
    return wrapped(apply_whole(op, std::move(wholes)), dtype);
  }

  int reduce(ValueOp op, int operand, std::vector<int> axes) {
    if (axes.empty()) return operand;
    std::ranges::sort(axes);
    return push({.kind = Kind::reduce, .op = op, .operands = {operand}, .axes = std::move(axes)});
  }

  Access access(TensorId id, const Map& map) const {
    const graph::Tensor& tensor = graph_.tensor(id);
    return {id,
            tensor.name,
            tensor.dtype,
            tensor.shape,
            graph::strides_of(tensor.shape),
            map,
            0,
            inside(map, tensor.shape)};
  }

  const Node& maker_of(TensorId id) const { return graph_.nodes[at(makers_[at(id)])]; }

  bool stored(TensorId id) const { return makers_[at(id)] < 0 || graph_.tensor(id).constant; }

  // The value of a tensor; unspecified, though not undefined, where a coordinate lies outside.
  Value read(TensorId id, const Map& map) {
    const auto key = std::pair(id, map);
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
    work_.too_large |= ++work_.places > most_places(graph_) || within_ >= kMostDepth;
    if (work_.too_large) return std::nullopt;
    demanded_[id].push_back(map);
    if (graph::element_count(graph_.tensor(id).shape) == 0) return std::nullopt;
    ++within_;
    const Value value = stored(id) ? leaf(id, map) : made(maker_of(id), id, map);
    --within_;
    if (!value || work_.too_large || !is_exact(id, *value)) return std::nullopt;
    return known_[key] = *value;
  }

  // Arithmetic is in fp32: integers must be known to be small, or moved as they are, or what a
  // number that is one was cut to. Those of 8 bits must not leave their type, at whose ends they
  // would stay where they should wrap.
  bool is_small(int v) const { return nest.most(v) <= 1 << 24; }

  bool is_of(Dtype dtype, int v) const {
    std::set<int> seen;
    return is_of(dtype, v, seen);
  }

  // Values in `seen` are, or this is not asked any more.
  bool is_of(Dtype dtype, int v, std::set<int>& seen) const {
    if (!seen.insert(v).second) return true;
    const Expr& of = nest.values[at(v)];
    const auto operands = [&](size_t from) {
      return std::all_of(of.operands.begin() + static_cast<ptrdiff_t>(from), of.operands.end(),
                         [&](int operand) { return is_of(dtype, operand, seen); });
    };
    const bool chooses = of.op == ValueOp::max || of.op == ValueOp::min;
    switch (of.kind) {
      case Kind::constant: return rounded(dtype, of.value) == of.value;
      case Kind::load:
        return nest.loads[at(of.load)].dtype == dtype ||
               nest.loads[at(of.load)].dtype == Dtype::boolean;
      case Kind::reduce: return chooses && operands(0);
      case Kind::apply:
        if (of.op == ValueOp::less || of.op == ValueOp::equal) return true;
        return of.op == ValueOp::where ? operands(1) : chooses && operands(0);
      case Kind::round: return of.dtype == dtype;
      default: return false;
    }
  }

  bool is_exact(TensorId id, int v) const {
    const Dtype dtype = graph_.tensor(id).dtype;
    if (is_float(dtype) || dtype == Dtype::boolean ||
        (bits_of(dtype) == 8 ? is_of(dtype, v) : is_small(v)))
      return true;
    const Expr& of = nest.values[at(v)];
    if (of.integers || of.kind == Kind::index || of.kind == Kind::constant) return true;
    if (of.kind == Kind::load) return is_integer(nest.loads[at(of.load)].dtype);
    const Node& maker = maker_of(id);
    return maker.op == OpKind::Cast && is_float(graph_.tensor(maker.inputs[0]).dtype);
  }

  Value leaf(TensorId id, const Map& map) {
    const Dtype dtype = graph_.tensor(id).dtype;
    if (const auto scalar = constant_scalar(graph_, id);
        scalar && (dtype != Dtype::i64 || std::abs(*scalar) < 0x1p53))
      return number(*scalar);
    if (auto place = as_place(id, map)) return push({.kind = Kind::index, .at = *std::move(place)});
    return load(access(id, map));
  }

  // Of a table of integers that rise evenly along its dimensions: places along axes.
  std::optional<Affine> as_place(TensorId id, const Map& map) const {
    const graph::Tensor& table = graph_.tensor(id);
    if (!table.constant || !is_integer(table.dtype) || table.dtype == Dtype::boolean)
      return std::nullopt;
    const auto element = [&](int64_t i) {
      return load_integer(table.dtype, table.constant->data(), i);
    };
    const auto is_place = [](int64_t value) { return std::abs(value) <= kLongestAxis; };
    if (!is_place(element(0)) || !is_place(element(graph::element_count(table.shape) - 1)))
      return std::nullopt;
    const Shape strides = graph::strides_of(table.shape);
    Affine place{element(0), {}};
    Shape steps;
    for (size_t d = 0; d < map.size(); ++d) {
      steps.push_back(table.shape[d] > 1 ? element(strides[d]) - element(0) : 0);
      add(place, map[d], steps[d]);
    }
    for (int64_t i = 0; i < graph::element_count(table.shape); ++i) {
      int64_t even = element(0);
      for (size_t d = 0; d < map.size(); ++d) even += i / strides[d] % table.shape[d] * steps[d];
      if (element(i) != even) return std::nullopt;
    }
    return place;
  }

  int load(Access access) {
    nest.loads.push_back(std::move(access));
    return push({.kind = Kind::load, .load = static_cast<int>(nest.loads.size()) - 1});
  }

  // The value of a tensor, `fill` where a coordinate lies outside.
  Value padded(TensorId id, const Map& map, double fill) {
    const Shape& shape = graph_.tensor(id).shape;
    const Value value = read(id, map);
    if (!value || inside(map, shape)) return value;
    const auto key = std::tuple(id, map, std::bit_cast<uint64_t>(fill));
    if (const auto found = padded_.find(key); found != padded_.end()) return found->second;
    int result = *value;
    const auto fills = [&](const Access& load) {  // a fill is of the type that is loaded
      return rounded(load.dtype, fill) == fill && leaves_alike(load, map, shape);
    };
    if (const Expr& of = nest.values[at(result)];
        of.kind == Kind::load && fills(nest.loads[at(of.load)])) {
      Access own = nest.loads[at(of.load)];
      own.fill = fill;
      if (nest.loads[at(of.load)].fill != fill) result = load(std::move(own));
    } else if (Outside known; outside(result, map, shape, known) != fill) {
      result = where_inside(result, map, shape, number(fill), graph_.tensor(id).dtype);
    }
    return padded_[key] = result;
  }

  // Whether a load lies outside its tensor just where the map lies outside the shape.
  bool leaves_alike(const Access& load, const Map& map, const Shape& shape) const {
    if (load.lookup_dim >= 0) return false;
    const auto leaving = [&](const Map& where, const Shape& from) {
      std::set<std::pair<Affine, int64_t>> out;
      for (size_t d = 0; d < where.size(); ++d)
        if (!lies_in(where[d], 0, from[d])) out.emplace(where[d], from[d]);
      return out;
    };
    return leaving(load.at, load.shape) == leaving(map, shape);
  }

  using Outside = std::map<int, std::optional<double>>;  // of values that were asked for

  // What a value is outside, where that is one number.
  std::optional<double> outside(int value, const Map& map, const Shape& shape,
                                Outside& known) const {
    if (const auto found = known.find(value); found != known.end()) return found->second;
    return known[value] = worked_out(value, map, shape, known);
  }

  std::optional<double> worked_out(int value, const Map& map, const Shape& shape,
                                   Outside& known) const {
    const Expr& of = nest.values[at(value)];
    if (of.kind == Kind::load && leaves_alike(nest.loads[at(of.load)], map, shape))
      return nest.loads[at(of.load)].fill;
    if (of.kind == Kind::constant) return of.value;
    if (of.kind != Kind::apply || of.integers) return std::nullopt;
    std::array<double, 3> inputs{};
    for (size_t i = 0; i < of.operands.size(); ++i) {
      const auto one = outside(of.operands[i], map, shape, known);
      if (!one) return std::nullopt;
      inputs[i] = *one;
    }
    return warploom::apply(of.op, inputs[0], inputs[1], inputs[2]);
  }

  int where_inside(int value, const Map& map, const Shape& shape, int fill, Dtype dtype) {
    std::optional<int> all;
    for (size_t d = 0; d < map.size(); ++d) {
      if (lies_in(map[d], 0, shape[d])) continue;
      const int c = push({.kind = Kind::index, .at = map[d]});
      const int both =
          product(apply(ValueOp::less, {number(-0.5), c}),
                  apply(ValueOp::less, {c, number(static_cast<double>(shape[d]) - 0.5)}));
      all = all ? product(*all, both) : both;
    }
    return choose(dtype, ValueOp::where, {*all, value, fill});
  }

  Value made(const Node& node, TensorId id, const Map& map) {
    switch (class_of(node.op)) {
      case OpClass::pointwise: return pointwise(node, id, map);
      case OpClass::view: return view(node, map);
      case OpClass::movement: return moved(node, map);
      case OpClass::contraction: return contraction(node, map);
      case OpClass::convolution: return convolution(node, map);
      case OpClass::window: return window(node, map);
      case OpClass::reduction: return reduction(node, map);
      case OpClass::scan: return scan(node, map);
      default: return std::nullopt;
    }
  }

  // Where input `i` is read, by the operator's access rule. `combined` gives the coordinate along a
  // dimension that is combined whole, or by which a window moves along one, and its size; nothing
  // where there is such a dimension and nobody to say.
  using Combined = std::function<Affine(size_t dim, int64_t size)>;

  std::optional<Map> source(const Node& node, size_t i, const Map& map,
                            const Combined& combined = {}) const {
    const auto rule = axis_sources(graph_, node, i);
    if (!rule) return std::nullopt;
    const Shape& shape = graph_.tensor(node.inputs[i]).shape;
    Map out(shape.size());
    for (size_t d = 0; d < shape.size(); ++d) {
      const graph::AxisSource& from = (*rule)[d];
      const bool whole = from.axis == graph::AxisSource::kWhole;
      if (whole && shape[d] == 1) continue;
      if ((whole || from.taps > 1) && !combined) return std::nullopt;
      if (!whole) {
        add(out[d], map[at(from.axis)], from.step);
        out[d].begin += from.begin;
      }
      if (whole || from.taps > 1)
        add(out[d], combined(d, whole ? shape[d] : from.taps), from.dilation);
    }
    return out;
  }

  Value moved(const Node& node, const Map& map) {
    if (node.op == OpKind::Concat) return concat(node, map);
    if (node.op == OpKind::Gather) return gathered(node, map);
    const auto from = source(node, 0, map);
    if (!from) return std::nullopt;
    if (node.op != OpKind::Pad) return read(node.inputs[0], *from);
    const bool given = node.inputs.size() > 2 && node.inputs[2] != graph::kAbsent;
    const auto fill = given ? constant_scalar(graph_, node.inputs[2]) : 0.0;
    const Dtype dtype = graph_.tensor(node.inputs[0]).dtype;
    const Shape& shape = graph_.tensor(node.inputs[0]).shape;
    if (fill && dtype == Dtype::i64 && std::abs(*fill) >= 0x1p53 && !inside(*from, shape)) {
      const Value value = read(node.inputs[0], *from);  // a fill that no double holds is loaded
      const Value outside = read(node.inputs[2], Map(graph_.tensor(node.inputs[2]).shape.size()));
      return value && outside ? Value(where_inside(*value, *from, shape, *outside, dtype)) : value;
    }
    return fill ? padded(node.inputs[0], *from, *fill) : std::nullopt;
  }

  // Of a tensor that is stored, by indices that are.
  Value gathered(const Node& node, const Map& map) {
    const TensorId data = node.inputs[0];
    const TensorId indices = node.inputs[1];
    const graph::NodeContext q{graph_, node};
    const size_t rank = q.in(0).shape.size();
    const size_t axis = q.axis(rank);
    const auto place = source(node, 1, map);
    if (!stored(data) || !stored(indices) || !place || !inside(*place, q.in(1).shape))
      return std::nullopt;
    Access load = access(data, Map(rank));
    const Shape steps = graph::strides_of(q.in(1).shape);
    for (size_t d = 0; d < rank; ++d)
      if (d != axis) load.at[d] = map[d < axis ? d : d + q.in(1).shape.size() - 1];
    for (size_t d = 0; d < steps.size(); ++d) add(load.at[axis], (*place)[d], steps[d]);
    load.lookup = {q.in(1).name, q.in(1).dtype, {graph::element_count(q.in(1).shape)}};
    load.lookup_dim = static_cast<int>(axis);
    load.inside = false;
    return this->load(std::move(load));
  }

  Value pointwise(const Node& node, TensorId id, const Map& map) {
    const Dtype to = graph_.tensor(id).dtype;
    const Dtype from = graph_.tensor(node.inputs[0]).dtype;
    const bool same = node.op == OpKind::Cast || node.op == OpKind::Identity;
    const auto expression = graph::expression_of(graph_, node);
    if (!expression) return std::nullopt;
    std::vector<size_t> order;  // fewest reductions first: one then finds its axis already there
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i] != graph::kAbsent) order.push_back(i);
    std::ranges::stable_sort(order, [&](size_t x, size_t y) {
      return depth_[at(node.inputs[x])] < depth_[at(node.inputs[y])];
    });
    std::vector<int> operands(node.inputs.size(), -1);
    for (const size_t i : order) {
      const auto place = source(node, i, map);
      const Value operand = place ? read(node.inputs[i], *place) : std::nullopt;
      if (!operand) return std::nullopt;
      operands[i] = *operand;
    }
    for (int& operand : operands)
      if (operand < 0) operand = operands[order[0]];  // absent: not in the expression
    if (needs_integers(node, *expression, operands, to)) {
      for (size_t i = 0; i < operands.size(); ++i)
        if (node.inputs[i] != graph::kAbsent)
          operands[i] = whole(operands[i], graph_.tensor(node.inputs[i]).dtype);
      return wrapped(made_of_terms(*expression, operands, true), to);
    }
    const bool saturates = node.integer("saturate", 1) != 0 || bits_of(to) != 8;
    for (int& operand : operands) operand = real(operand);
    const int value = made_of_terms(*expression, operands, false);
    const bool narrows = is_float(to) && bits_of(to) < bits_of(from) && same;
    if (narrows && !saturates) return std::nullopt;
    return narrows ? push({.kind = Kind::round, .dtype = to, .operands = {value}}) : value;
  }

  int made_of_terms(const graph::Expression& expression, const std::vector<int>& operands,
                    bool integers) {
    std::vector<int> values;
    for (const ExpressionTerm& term : expression.terms) {
      if (term.kind == ExpressionTerm::Kind::input) values.push_back(operands[at(term.input)]);
      if (term.kind == ExpressionTerm::Kind::constant) values.push_back(number(term.value));
      if (term.kind != ExpressionTerm::Kind::apply) continue;
      std::vector<int> args;
      for (int i = 0; i < arity_of(term.op); ++i) args.push_back(values[at(term.args[at(i)])]);
      values.push_back(integers ? apply_whole(term.op, std::move(args))
                                : apply(term.op, std::move(args)));
    }
    return values.back();
  }

  // Whether floats would lose something of a node on integers that whole numbers keep.
  bool needs_integers(const Node& node, const graph::Expression& expression,
                      const std::vector<int>& operands, Dtype to) {
    if (!graph::in_integers(graph_, node, expression)) return false;
    const auto is_large = [&](int v) { return !is_small(v) || nest.values[at(v)].integers; };
    const bool moves = node.op == OpKind::Cast || node.op == OpKind::Identity;
    const auto is_given_whole = [&](int v) { return nest.values[at(v)].integers; };
    if (std::ranges::any_of(operands, is_given_whole)) return true;
    if (to == Dtype::boolean)  // large integers are compared with small ones: rounding keeps them
                               // on their side
      return !moves && std::ranges::all_of(operands, is_large);
    if (std::ranges::any_of(operands, is_large)) return true;
    const int value = made_of_terms(expression, operands, false);
    return bits_of(to) == 8 ? !is_of(to, value) : !is_small(value);
  }

  // The digits of `flat` in the mixed radix of `sizes`.
  std::optional<Map> digits(const Affine& flat, const Shape& sizes) {
    Map out(sizes.size());
    const Shape steps = graph::strides_of(sizes);
    int64_t rest = flat.begin;
    for (size_t d = 0; d < sizes.size(); ++d) {
      out[d].begin = rest / steps[d];
      rest %= steps[d];
    }
    for (const int axis : axes_of(flat)) {
      const int64_t step = flat.steps[at(axis)];
      const int64_t pace = std::abs(step);
      size_t d = 0;
      while (d + 1 < sizes.size() && (steps[d] > pace || pace % steps[d] != 0)) ++d;
      if (pace % steps[d] != 0) return std::nullopt;
      if (d > 0 && pace * nest.axes[at(axis)] > steps[d - 1] &&
          steps[d - 1] % pace == 0) {  // it runs on into the next digit
        const int64_t inner = steps[d - 1] / pace;
        if (inner > 1 && nest.axes[at(axis)] % inner == 0) split(at(axis), inner);
        return std::nullopt;
      }
      add(out[d], along(at(axis), nest.axes.size(), step / steps[d]));
    }
    return inside(out, sizes) ? std::optional(out) : std::nullopt;
  }

  // Dimensions of both shapes are matched in groups of equal product.
  Value view(const Node& node, const Map& map) {
    const Shape& from = graph_.tensor(node.inputs[0]).shape;
    const Shape& to = graph_.tensor(node.outputs[0]).shape;
    Map out(from.size());
    for (size_t i = 0, o = 0; i < from.size() || o < to.size();) {
      size_t i_end = i;
      size_t o_end = o;
      int64_t in = 1;
      int64_t have = 1;
      if (i < from.size()) in = from[i_end++];
      if (o < to.size()) have = to[o_end++];
      while (in != have) (in < have ? in *= from[i_end++] : have *= to[o_end++]);
      if (i_end == i + 1 && o_end == o + 1) {
        out[i] = map[o];
      } else if (in != 1) {
        Affine flat;
        const Shape sizes(from.begin() + static_cast<ptrdiff_t>(i),
                          from.begin() + static_cast<ptrdiff_t>(i_end));
        for (size_t d = o; d < o_end; ++d) {
          if (!lies_in(map[d], 0, to[d])) return std::nullopt;
          Affine scaled;
          add(scaled, flat, to[d]);
          add(scaled, map[d]);
          flat = scaled;
        }
        const auto parts = digits(flat, sizes);
        if (!parts && !to_split &&
            stored(node.inputs[0])) {  // it cuts axes unevenly: the same memory under another shape
          Access seen = access(node.inputs[0], Map(from.size()));
          seen.shape = to;
          seen.strides = graph::strides_of(to);
          seen.at = map;
          seen.inside = inside(map, to);
          return load(std::move(seen));
        }
        if (!parts) return std::nullopt;
        std::copy(parts->begin(), parts->end(), out.begin() + static_cast<ptrdiff_t>(i));
      }
      i = i_end;
      o = o_end;
    }
    return read(node.inputs[0], out);
  }

  // The pieces that may be meant, each 0 outside itself, added up.
  Value concat(const Node& node, const Map& map) {
    Value sum;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const auto from = source(node, i, map);
      const Shape& shape = graph_.tensor(node.inputs[i]).shape;
      bool apart = graph::element_count(shape) == 0;
      for (size_t d = 0; d < from->size(); ++d) {
        const auto [low, high] = nest.range((*from)[d]);
        apart |= high < 0 || low >= shape[d];
      }
      if (apart) continue;
      const Value piece = padded(node.inputs[i], *from, 0);
      if (!piece) return std::nullopt;
      sum =
          sum ? choose(graph_.tensor(node.outputs[0]).dtype, ValueOp::add, {*sum, *piece}) : piece;
    }
    return sum;
  }

  int product(int a, int b) { return apply(ValueOp::mul, {a, b}); }

  // Coordinates at which a pointwise chain that ends in `id` reads already, `partial` but for whole
  // axes at the dimensions `gone`.
  std::optional<Map> demanded(TensorId id, const Map& partial, const std::vector<bool>& gone,
                              std::set<TensorId>& seen) const {
    if (!seen.insert(id).second) return std::nullopt;
    const Shape& shape = graph_.tensor(id).shape;
    if (const auto found = demanded_.find(id); found != demanded_.end())
      for (const Map& map : found->second) {
        const std::vector<int> used = axes_of(map);
        const auto alone = [&](int axis) {
          return std::ranges::count(used, axis) == 1;
        };  // in one dimension
        bool fits = true;
        for (size_t d = 0; d < map.size() && fits; ++d)
          fits = gone[d] ? whole(map[d], shape[d]) && std::ranges::all_of(axes_of(map[d]), alone)
                         : map[d] == partial[d];
        if (fits) return map;
      }
    if (stored(id)) return std::nullopt;
    const Node& node = maker_of(id);
    for (const TensorId from : node.inputs)
      if (class_of(node.op) == OpClass::pointwise && from != graph::kAbsent &&
          graph_.tensor(from).shape == shape)
        if (auto map = demanded(from, partial, gone, seen)) return map;
    return std::nullopt;
  }

  Value reduction(const Node& node, const Map& map) {
    static const std::map<OpKind, ValueOp> operations = {{OpKind::ReduceSum, ValueOp::add},
                                                         {OpKind::ReduceMax, ValueOp::max},
                                                         {OpKind::ReduceMin, ValueOp::min},
                                                         {OpKind::ReduceProd, ValueOp::mul}};
    const Shape& shape = graph_.tensor(node.inputs[0]).shape;
    std::vector<bool> gone(shape.size(), false);
    auto from = source(node, 0, map, [&](size_t d, int64_t) {
      gone[d] = true;
      return Affine{};
    });
    if (!from) return std::nullopt;
    std::set<TensorId> seen;
    if (const auto known = demanded(node.inputs[0], *from, gone, seen))
      from = known;
    else
      for (size_t d = 0; d < shape.size(); ++d)
        if (gone[d]) (*from)[d] = new_axis(shape[d]);
    const Value operand = read(node.inputs[0], *from);
    for (size_t d = 0; d < shape.size(); ++d)
      if (!gone[d]) (*from)[d] = {};
    return operand ? reduced(operations.at(node.op), *operand, axes_of(*from),
                             graph_.tensor(node.outputs[0]).dtype)
                   : operand;
  }

  // In floats where these hold the result of integers, or on whole numbers.
  int reduced(ValueOp op, int operand, const std::vector<int>& axes, Dtype dtype) {
    const bool whole_numbers = is_integer(dtype) && dtype != Dtype::boolean;
    if (!whole_numbers) return reduce(op, real(operand), axes);
    if (!nest.values[at(operand)].integers)
      if (const int v = reduce(op, operand, axes);
          bits_of(dtype) == 8 ? is_of(dtype, v) : is_small(v))
        return v;
    const int v = whole(operand, Dtype::i64);
    if (axes.empty()) return wrapped(v, dtype);
    std::vector<int> over = axes;
    std::ranges::sort(over);
    return wrapped(push({.kind = Kind::reduce,
                         .op = op,
                         .dtype = Dtype::i64,
                         .operands = {v},
                         .axes = std::move(over),
                         .integers = true}),
                   dtype);
  }

  // Along one axis, from the end of the dimension where the scan begins; backwards along one that
  // turns the dimension round.
  Value scan(const Node& node, const Map& map) {
    const bool reverse = node.integer("reverse") != 0;
    size_t dim = 0;
    int64_t size = 1;
    const auto from = source(node, 0, map, [&](size_t d, int64_t whole) {
      dim = d;
      size = whole;
      return map[d];
    });
    const Dtype dtype = graph_.tensor(node.outputs[0]).dtype;
    const Value operand = from ? read(node.inputs[0], *from) : std::nullopt;
    if (size == 1 || !operand) return operand;
    const std::vector<int> axes = axes_of(map[dim]);
    const auto [low, high] = nest.range(map[dim]);
    if (axes.size() != 1 || low < 0 || high >= size || (reverse ? high + 1 != size : low != 0))
      return std::nullopt;
    const int64_t step = map[dim].steps[at(axes[0])];
    if (std::ranges::count(axes_of(map), axes[0]) != 1 || std::abs(step) != 1) return std::nullopt;
    const bool integers = is_integer(dtype);
    const int scanned = push({.kind = Kind::scan,
                              .dtype = integers ? Dtype::i64 : Dtype::f32,
                              .operands = {integers ? whole(*operand, dtype) : real(*operand)},
                              .axes = axes,
                              .reverse = reverse != (step < 0),
                              .integers = integers});
    return integers ? wrapped(scanned, dtype) : scanned;
  }

  Value window(const Node& node, const Map& map) {
    const ValueOp op = node.op == OpKind::MaxPool ? ValueOp::max : ValueOp::add;
    Map taps;
    const auto from = source(
        node, 0, map, [&](size_t, int64_t size) { return taps.emplace_back(new_axis(size)); });
    const Value operand = from ? padded(node.inputs[0], *from, identity_of(op)) : std::nullopt;
    return operand ? reduced(op, *operand, axes_of(taps), graph_.tensor(node.outputs[0]).dtype)
                   : operand;
  }

  Value convolution(const Node& node, const Map& map) {
    const Shape& filter = graph_.tensor(node.inputs[1]).shape;
    const int64_t groups = node.integer("group", 1);
    const auto parts = digits(map[1], {groups, filter[0] / groups});
    Map weight(filter.size());
    weight[0] = map[1];
    weight[1] = new_axis(filter[1]);
    auto from = source(node, 0, map, [&](size_t d, int64_t size) {
      return d == 1 ? Affine{} : weight[d] = new_axis(size);  // channels are those of the group
    });
    if (!parts || !from || node.inputs.size() > 2) return std::nullopt;
    (*from)[1] = weight[1];
    add((*from)[1], (*parts)[0], filter[1]);
    const Value x = padded(node.inputs[0], *from, 0);
    const Value w = x ? read(node.inputs[1], weight) : x;
    return w ? Value(reduce(ValueOp::add, product(*x, *w), axes_of(std::span(weight).subspan(1))))
             : w;
  }

  Value contraction(const Node& node, const Map& map) {
    std::optional<Affine> k;
    std::vector<int> factors;
    for (size_t i = 0; i < 2; ++i) {
      const auto from = source(
          node, i, map, [&](size_t, int64_t size) { return k ? *k : k.emplace(new_axis(size)); });
      const Value factor = from ? read(node.inputs[i], *from) : std::nullopt;
      if (!factor) return std::nullopt;
      factors.push_back(*factor);
    }
    const Dtype dtype = graph_.tensor(node.outputs[0]).dtype;
    const int terms = choose(dtype, ValueOp::mul, factors);
    return reduced(ValueOp::add, terms, k ? axes_of(*k) : std::vector<int>{}, dtype);
  }
};

// The part of the outputs from `begin` on, `size` long.
std::optional<LoopNest> part(const Graph& graph, const std::vector<TensorId>& outputs,
                             const Shape& begin, const Shape& size, ReadWork& work) {
  constexpr int kMostSplits = 32;
  std::map<int, Shape> splits;
  for (int i = 0; i < kMostSplits; ++i) {
    Reader reader(graph, splits, work);
    if (reader.read(outputs, begin, size)) return normal_form(std::move(reader.nest));
    if (!reader.to_split || work.too_large) return std::nullopt;
  }
  return std::nullopt;
}

// The Concat that an output is, with pointwise operators behind it: the pieces are written one by
// one.
const Node* concat_behind(const Graph& graph, TensorId id, std::set<TensorId>& seen) {
  if (!seen.insert(id).second) return nullptr;
  const int producer = graph.producer(id);
  if (producer < 0) return nullptr;
  const Node& node = graph.nodes[at(producer)];
  if (node.op == OpKind::Concat) return &node;
  for (const TensorId from : node.inputs)
    if (class_of(node.op) == OpClass::pointwise && from != graph::kAbsent &&
        graph.tensor(from).shape == graph.tensor(id).shape)
      if (const Node* found = concat_behind(graph, from, seen)) return found;
  return nullptr;
}
}  // namespace

std::vector<LoopNest> nests_of(const Graph& graph, ReadWork* asked) {
  ReadWork unasked;
  ReadWork& work = asked ? *asked : unasked;
  std::vector<std::vector<TensorId>> groups;  // of outputs, the largest first
  for (const TensorId id : graph.outputs) {
    const Shape& shape = graph.tensor(id).shape;
    if (graph::element_count(shape) == 0) return {};
    const auto fits = [&](const std::vector<TensorId>& group) {
      return std::ranges::equal(
          shape, graph.tensor(group[0]).shape,
          [](int64_t own, int64_t large) { return own == large || own == 1; });
    };
    const auto group = std::ranges::find_if(groups, fits);
    if (group == groups.end())
      groups.push_back({id});
    else
      group->push_back(id);
  }
  std::vector<LoopNest> nests;
  for (const auto& group : groups) {
    Shape size = graph.tensor(group[0]).shape;
    Shape begin(size.size(), 0);
    std::vector<int64_t> pieces = {size.empty() ? 1 : size[0]};
    size_t axis = 0;
    std::set<TensorId> seen;
    if (const Node* concat = group.size() == 1 ? concat_behind(graph, group[0], seen) : nullptr) {
      const graph::NodeContext q{graph, *concat};
      axis = q.axis(size.size());
      pieces.clear();
      for (size_t i = 0; i < concat->inputs.size(); ++i) pieces.push_back(q.in(i).shape[axis]);
    }
    for (const int64_t piece : pieces) {
      if (piece == 0) continue;
      if (!size.empty()) size[axis] = piece;
      auto nest = part(graph, group, begin, size, work);
      if (!nest) return {};
      nests.push_back(std::move(*nest));
      if (!size.empty()) begin[axis] += piece;
    }
  }
  return nests;
}
}  // namespace warploom::loopnest
