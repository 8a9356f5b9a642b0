// Any nest with at most one level of reduction, for GPUs and CPUs: out = epilogue(reduce over loops (prologue(loads))).
//
// A block computes one tile of the output: `x` elements along its fastest axis, `y` along a second one (that along which another
// tensor is fastest, as in a transpose; or along which an operand of a product is used again), one along all others. Reduced axes are
// loops, except that `lanes` elements of the one that lies fastest in memory are taken at once and brought together at the end, and
// that short ones (a window's) may be written out. Where a tensor is read outside, the copy's fill is its value.
#include "kernels/families.h"
#include "kernels/nest.h"
#include "kernels/pieces.h"
namespace warploom::kernels {
namespace {
using target::Capabilities;
using tile::Index;
using tile::TensorId;
using tile::Value;
using Kind = NestValue::Kind;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }
std::int64_t field(const Schedule& schedule, const char* name) {
  const auto found = schedule.fields.find(name);
  return found == schedule.fields.end() ? -1 : found->second;
}
bool computes_with(Dtype dtype, const Capabilities& capabilities) {
  const bool integer = dtype == Dtype::i8 || dtype == Dtype::u8 || dtype == Dtype::i32;
  return dtype == Dtype::f32 || dtype == Dtype::bf16 || dtype == Dtype::f16 || (capabilities.gpu && integer);
}

// What the tile's sizes are about: axes of the nest, -1 where there is none.
struct Roles {
  int x = -1, y = -1, lanes = -1;
  std::int64_t window = 1;  // elements of all reduced axes but the longest
};
struct Form {
  Nest nest;
  std::vector<bool> reduced, behind;  // by axis; by value: whether a reduction comes before it
  Roles roles;
};

// The axis along which an access steps from one element to its neighbour.
int fastest(const Access& access) {
  for (std::size_t d = 0; d < access.at.size(); ++d)
    for (std::size_t a = access.at[d].steps.size(); a-- > 0;)
      if (access.at[d].steps[a] * access.strides[d] == 1) return static_cast<int>(a);
  return -1;
}

std::optional<Form> form_of(Nest nest, const Capabilities& capabilities) {
  Form form{std::move(nest), {}, {}, {}};
  const Nest& n = form.nest;
  form.reduced = n.reduced();
  form.behind.assign(n.values.size(), false);
  const std::vector<int>* over = nullptr;
  for (std::size_t v = 0; v < n.values.size(); ++v) {
    const NestValue& value = n.values[v];
    if (value.kind == Kind::load && !computes_with(n.loads[at(value.load)].dtype, capabilities)) return std::nullopt;
    for (const int operand : value.operands) form.behind[v] = form.behind[v] || form.behind[at(operand)];
    if (value.kind == Kind::reduce) {
      if (form.behind[v] || (over && *over != value.axes)) return std::nullopt;
      over = &value.axes;
      form.behind[v] = true;
    }
    for (std::size_t a = 0; a < n.axes.size(); ++a)
      if (form.behind[v] && value.varies[a] && form.reduced[a]) return std::nullopt;
  }
  for (const auto& output : n.outputs) {
    if (!computes_with(output.place.dtype, capabilities)) return std::nullopt;
    for (std::size_t a = 0; a < n.axes.size(); ++a)
      if (form.reduced[a] && (output.place.uses(a) || n.values[at(output.value)].varies[a])) return std::nullopt;
  }
  Roles& roles = form.roles;
  for (std::size_t a = 0; a < n.axes.size(); ++a)
    if (!form.reduced[a]) roles.x = static_cast<int>(a);
  std::vector<const NestValue*> loads;
  for (const NestValue& value : n.values)
    if (value.kind == Kind::load) loads.push_back(&value);
  for (const NestValue* load : loads) {
    const int own = fastest(n.loads[at(load->load)]);
    if (own < 0 || own == roles.x) continue;
    if (!form.reduced[at(own)]) roles.y = own;
    else if (roles.x < 0 || !load->varies[at(roles.x)] || loads.size() == 1) roles.lanes = own;
  }
  for (const NestValue* load : loads)  // reused along an axis that another varies along
    for (const NestValue* other : loads)
      for (int a = roles.x - 1; a >= 0 && over && roles.y < 0; --a)
        if (!form.reduced[at(a)] && load->varies[at(roles.x)] && !load->varies[at(a)] && other->varies[at(a)] &&
            !other->varies[at(roles.x)])
          roles.y = a;
  for (int a = roles.x - 1; a >= 0 && roles.y < 0; --a)
    if (!form.reduced[at(a)]) roles.y = a;
  std::int64_t longest = 1;
  for (std::size_t a = 0; a < n.axes.size(); ++a)
    if (form.reduced[a]) roles.window *= n.axes[a], longest = std::max(longest, n.axes[a]);
  if (roles.window > longest) roles.window /= longest;
  return form;
}

std::vector<Form> forms_of(const Region& region, const Capabilities& capabilities) {
  std::vector<Form> forms;
  for (Nest& nest : nests_of(region.graph)) {
    auto form = form_of(std::move(nest), capabilities);
    if (!form) return {};
    forms.push_back(std::move(*form));
  }
  return forms;
}

// The extents of a tile along all axes of a nest.
std::vector<std::int64_t> tile_of(const Form& form, const Schedule& s) {
  std::vector<std::int64_t> tile(form.nest.axes.size(), 1);
  const auto set = [&](int axis, const char* name) {
    if (axis >= 0) tile[at(axis)] = field(s, name);
  };
  set(form.roles.x, "x"), set(form.roles.y, "y"), set(form.roles.lanes, "lanes");
  return tile;
}

// Whether a box of the tensor is what a tile of these extents takes: each dimension follows one axis, forwards.
bool is_box(const Access& access, const std::vector<std::int64_t>& tile, const std::vector<std::int64_t>& axes) {
  std::vector<int> used(tile.size(), 0);
  for (const Affine& c : access.at) {
    int along = 0, all = 0;
    bool whole = true;
    for (std::size_t a = 0; a < tile.size(); ++a) {
      all += c.steps[a] != 0;
      if (c.steps[a] == 0 || tile[a] == 1) continue;
      ++along;
      whole = whole && axes[a] % tile[a] == 0;
      if (++used[a] > 1 || c.steps[a] < 0) return false;
    }
    // Beyond the axis the next element of another one may lie.
    if (along > 1 || (along == 1 && all > 1 && access.inside && !whole)) return false;
  }
  return true;
}

class Writer {
 public:
  Writer(const Form& form, const Schedule& s, const Capabilities& capabilities, const std::string& name)
      : draft(name), form_(form), n_(form.nest), b(draft.b), gpu_(capabilities.gpu), s_(s), tile_(tile_of(form, s)) {}
  Draft draft;

  tile::Program make() {
    for (std::size_t a = 0; a < tile_.size(); ++a)
      if (tile_[a] > 1) tiled_.push_back(a);
    for (std::size_t i = 0; i < n_.loads.size(); ++i) globals_.push_back(declare(fmt::format("X{}", i), n_.loads[i], false));
    for (std::size_t i = 0; i < n_.outputs.size(); ++i)
      outputs_.push_back(declare(fmt::format("Y{}", i), n_.outputs[i].place, true));
    place_tile();
    held_.assign(n_.values.size(), -1);
    const auto needed = [&](std::size_t v, const auto& self, std::vector<bool>& out) -> void {
      if (out[v]) return;
      out[v] = true;
      for (const int operand : n_.values[v].operands) self(at(operand), self, out);
    };
    std::vector<bool> inner(n_.values.size(), false);
    for (const NestValue& value : n_.values)
      if (value.kind == Kind::reduce) needed(at(value.operands[0]), needed, inner);
    const auto in_loops = [&](std::size_t v) {
      for (std::size_t a = 0; a < n_.axes.size(); ++a)
        if (form_.reduced[a] && n_.values[v].varies[a]) return true;
      return false;
    };
    for (std::size_t v = 0; v < n_.values.size(); ++v)
      if (inner[v] && !in_loops(v)) compute(v);
    std::vector<std::size_t> sums;
    for (std::size_t v = 0; v < n_.values.size(); ++v)
      if (n_.values[v].kind == Kind::reduce) sums.push_back(v), begin(v);
    if (!sums.empty())
      loops(0, [&] {
        for (std::size_t v = 0; v < n_.values.size(); ++v)
          if (inner[v] && in_loops(v) && !folded(v)) compute(v);
        for (const std::size_t v : sums) accumulate(v);
      });
    for (const std::size_t v : sums) finish(v);
    for (std::size_t v = 0; v < n_.values.size(); ++v)
      if (held_[v] < 0 && !in_loops(v)) compute(v);
    for (std::size_t i = 0; i < n_.outputs.size(); ++i) store(i);
    return b.finish();
  }

 private:
  const Form& form_;
  const Nest& n_;
  tile::Builder& b;
  bool gpu_;
  const Schedule& s_;
  std::vector<std::int64_t> tile_;
  std::vector<std::size_t> tiled_;                  // axes of the tile, the dimensions of register tensors
  std::vector<Index> origin_;                       // of the tile
  std::vector<TensorId> globals_, outputs_, held_;  // held_: the register tensor of a value
  std::map<std::size_t, TensorId> lanes_;           // of a sum: before its lanes are brought together

  // Dimensions that follow the tile's axes come last, in the axes' order.
  std::vector<std::size_t> order(const Access& access) const {
    std::vector<std::pair<int, std::size_t>> keys;
    for (std::size_t d = 0; d < access.at.size(); ++d) {
      int key = -1;
      for (const std::size_t a : tiled_)
        if (access.at[d].steps[a] != 0) key = static_cast<int>(a);
      keys.emplace_back(key, d);
    }
    std::stable_sort(keys.begin(), keys.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
    std::vector<std::size_t> out;
    for (const auto& [key, d] : keys) out.push_back(d);
    return out;
  }
  TensorId declare(const std::string& name, const Access& access, bool output) {
    std::vector<std::int64_t> shape, strides;
    for (const std::size_t d : order(access)) {
      std::int64_t last = access.at[d].begin;  // of an output: beyond it lies what others write
      for (std::size_t a = 0; a < n_.axes.size(); ++a)
        last += std::max<std::int64_t>(0, access.at[d].steps[a] * (n_.axes[a] - 1));
      shape.push_back(output ? last + 1 : access.shape[d]);
      strides.push_back(access.strides[d]);
    }
    if (shape.empty()) shape = strides = {1};
    draft.buffers[name] = access.name;
    return output ? b.output(name, access.dtype, shape, strides) : b.global(name, access.dtype, shape, strides);
  }
  tile::Tile box(TensorId tensor, const Access& access) const {
    std::vector<Index> offset;
    std::vector<std::int64_t> extent, step;
    for (const std::size_t d : order(access)) {
      const Affine& c = access.at[d];
      Index sum = c.begin;
      extent.push_back(1), step.push_back(1);
      for (std::size_t a = 0; a < n_.axes.size(); ++a) {
        if (c.steps[a] == 0) continue;
        sum = sum + origin_[a] * c.steps[a];
        if (tile_[a] > 1) extent.back() = tile_[a], step.back() = c.steps[a];
      }
      offset.push_back(sum);
    }
    if (offset.empty()) offset = {0}, extent = step = {1};
    return b.stepped(b.tile(tensor, std::move(offset), std::move(extent)), std::move(step));
  }

  // Blocks walk the free axes, the last one fastest. Without masks a tile at the edge begins early enough to lie inside.
  void place_tile() {
    origin_.assign(n_.axes.size(), Index(0));
    std::int64_t blocks = 1;
    for (std::size_t a = n_.axes.size(); a-- > 0;) {
      if (form_.reduced[a]) continue;
      const std::int64_t count = ceil_div(n_.axes[a], tile_[a]);
      if (count > 1) origin_[a] = tile::block(0) / blocks % count * tile_[a];
      if (!gpu_ && n_.axes[a] % tile_[a] != 0) origin_[a] = tile::min(origin_[a], n_.axes[a] - tile_[a]);
      blocks *= count;
    }
    b.grid(blocks).warps(gpu_ ? static_cast<int>(field(s_, "warps")) : 1);
  }

  std::vector<std::int64_t> shape_of(const std::vector<bool>& varies) const {
    std::vector<std::int64_t> shape;
    for (const std::size_t a : tiled_) shape.push_back(varies[a] ? tile_[a] : 1);
    return shape.empty() ? std::vector<std::int64_t>{1} : shape;
  }
  TensorId reg(const std::string& name, Dtype dtype, const std::vector<std::int64_t>& shape) {
    const auto [found, added] = draft.named.try_emplace(name, -1);
    if (added) found->second = b.reg(name, dtype, shape);
    return found->second;
  }

  Value value_of(std::size_t v) const {
    const NestValue& value = n_.values[v];
    if (value.kind == Kind::index) return index(value.at);
    if (value.kind == Kind::map && value.operands.empty()) return to_value(value.expression, {});
    return held_[v] >= 0 ? b.value(held_[v]) : expression(value);
  }
  Value expression(const NestValue& map) const {
    std::vector<Value> inputs;
    for (const int operand : map.operands) inputs.push_back(value_of(at(operand)));
    return to_value(map.expression, inputs);
  }
  Value index(const Affine& c) const {
    Index start = c.begin;
    for (std::size_t a = 0; a < n_.axes.size(); ++a) start = start + origin_[a] * c.steps[a];
    Value sum = tile::coordinate(0, start) - tile::coordinate(0);
    for (std::size_t i = 0; i < tiled_.size(); ++i)
      if (const auto step = c.steps[tiled_[i]]; step != 0)
        sum = std::move(sum) + tile::constant(static_cast<double>(step)) * tile::coordinate(static_cast<int>(i));
    return sum;
  }

  void compute(std::size_t v) {
    const NestValue& value = n_.values[v];
    if (value.kind == Kind::load) {
      const Access& load = n_.loads[at(value.load)];
      held_[v] = reg(fmt::format("x{}", value.load), load.dtype, shape_of(value.varies));
      b.copy(box(globals_[at(value.load)], load), b.all(held_[v]), load.fill);
      if (gpu_ && turned(load)) {
        const TensorId mine = reg(fmt::format("turned{}", value.load), load.dtype, shape_of(value.varies));
        b.rearrange(mine, held_[v]);
        held_[v] = mine;
      }
    } else if (value.kind == Kind::map && !value.operands.empty()) {
      const Value text = expression(value);
      held_[v] = reg(fmt::format("v{}", v), value.dtype, shape_of(value.varies));
      b.map(held_[v], text);
    }
  }
  // Whether neighbours in memory lie along another axis of the tile than those of the output.
  bool turned(const Access& load) const {
    const int own = fastest(load), x = form_.roles.x;
    return own >= 0 && x >= 0 && own != x && tile_[at(own)] > 1 && tile_[at(x)] > 1 && !form_.reduced[at(own)] &&
           load.uses(at(x));
  }

  // A sum's operand that is needed for nothing else becomes part of the accumulation.
  bool folded(std::size_t v) const {
    int users = 0;
    bool sum = false;
    for (const NestValue& value : n_.values)
      for (const int operand : value.operands)
        if (at(operand) == v) ++users, sum = value.kind == Kind::reduce;
    return users == 1 && sum && n_.values[v].kind == Kind::map && n_.values[v].dtype == Dtype::f32;
  }
  std::vector<std::int64_t> sum_shape(std::size_t v) const {
    std::vector<bool> varies = n_.values[at(n_.values[v].operands[0])].varies;
    for (const int axis : n_.values[v].axes) varies[at(axis)] = true;
    return shape_of(varies);
  }
  void begin(std::size_t v) {
    held_[v] = reg(fmt::format("sum{}", v), Dtype::f32, sum_shape(v));
    b.fill(held_[v], identity_of(n_.values[v].op));
  }
  void accumulate(std::size_t v) {
    const NestValue& sum = n_.values[v];
    Value operand = value_of(at(sum.operands[0]));
    const int lanes = form_.roles.lanes;
    const bool masked = lanes >= 0 && n_.axes[at(lanes)] % tile_[at(lanes)] != 0;
    if (masked) {
      Affine along{0, std::vector<std::int64_t>(n_.axes.size())};
      along.steps[at(lanes)] = 1;
      const Value inside =
          tile::apply(ValueOp::less, {index(along), tile::constant(static_cast<double>(n_.axes[at(lanes)]) - 0.5)});
      operand = tile::apply(ValueOp::where, {inside, std::move(operand), tile::constant(identity_of(sum.op))});
    }
    const Value before = b.value(held_[v]);
    const bool product = sum.op == ValueOp::add && operand.kind == Value::Kind::op && operand.op == ValueOp::mul;
    b.map(held_[v], product ? tile::apply(ValueOp::fma, {operand.operands[0], operand.operands[1], before})
                            : tile::apply(sum.op, {before, std::move(operand)}));
  }
  void finish(std::size_t v) {
    const int lanes = form_.roles.lanes;
    if (lanes < 0 || tile_[at(lanes)] == 1) return;
    const TensorId whole = reg(fmt::format("total{}", v), Dtype::f32, shape_of(n_.values[v].varies));
    const auto axis = std::find(tiled_.begin(), tiled_.end(), at(lanes)) - tiled_.begin();
    b.reduce(whole, held_[v], static_cast<int>(axis), *reduce_op(n_.values[v].op));
    held_[v] = whole;
  }

  // Loops over the reduced axes from `a` on, or their bodies one after another where they are short and to be written out.
  void loops(std::size_t a, const std::function<void()>& body) {
    if (a == n_.axes.size()) return body();
    if (!form_.reduced[a] || n_.axes[a] <= tile_[a]) return loops(a + 1, body);
    const std::int64_t count = ceil_div(n_.axes[a], tile_[a]);
    if (field(s_, "unroll") > 1 && count <= field(s_, "unroll") && tile_[a] == 1) {
      for (std::int64_t i = 0; i < count; ++i) {
        origin_[a] = i;
        loops(a + 1, body);
      }
      origin_[a] = 0;
      return;
    }
    b.for_(fmt::format("i{}", a), 0, count, 1, [&](const Index& i) {
      origin_[a] = i * tile_[a];
      loops(a + 1, body);
    });
    origin_[a] = 0;
  }

  void store(std::size_t i) {
    const auto& [v, place] = n_.outputs[i];
    std::vector<bool> varies(n_.axes.size());
    for (std::size_t a = 0; a < varies.size(); ++a) varies[a] = place.uses(a);
    const NestValue& value = n_.values[at(v)];
    TensorId out = held_[at(v)];
    if (out < 0 || b.dtype_of(out) != place.dtype || shape_of(value.varies) != shape_of(varies)) {
      out = reg(fmt::format("y{}", i), place.dtype, shape_of(varies));
      b.map(out, value_of(at(v)));
    }
    b.copy(b.all(out), box(outputs_[i], place));
  }
};

class Direct final : public Family {
 public:
  std::string name() const override { return "direct"; }
  bool general() const override { return true; }

  bool covers(const Region& region, const Capabilities& capabilities) const override {
    return !forms_of(region, capabilities).empty();
  }

  Space space(const Region& region, const Capabilities& capabilities) const override {
    Space space{name(), {}};
    const auto forms = forms_of(region, capabilities);
    if (forms.empty()) return space;
    const bool gpu = capabilities.gpu;
    const std::int64_t vector = gpu ? 32 : std::max(4, capabilities.vector_bytes / 4);
    std::int64_t x = 1, y = 1, lanes = 1, window = 1;
    for (const Form& form : forms) {
      const auto grow = [&](std::int64_t& size, int axis) {
        if (axis >= 0) size = std::max(size, form.nest.axes[at(axis)]);
      };
      grow(x, form.roles.x), grow(y, form.roles.y), grow(lanes, form.roles.lanes);
      window = std::max(window, form.roles.window);
    }
    const auto fitting = [&](std::int64_t size, std::vector<std::int64_t> values) {
      std::erase_if(values, [&](std::int64_t value) { return value > 1 && (gpu ? value / 2 >= size : value > size); });
      if (!gpu && size <= 4096 && std::find(values.begin(), values.end(), size) == values.end())
        values.insert(values.begin(), size);
      return values;
    };
    const std::vector<std::int64_t> wide =
        gpu ? std::vector<std::int64_t>{256, 128, 512, 64, 1024, 32, 16, 8, 4, 2, 1}
            : std::vector<std::int64_t>{2048, 1024, 512, 256, 4096, 128, 64, 4 * vector, 2 * vector, vector, 1};
    space.fields = {{"x", fitting(x, wide), "elements of a tile along the output's fastest axis"},
                    {"y", fitting(y, {1, 2, 4, 8, 16, 32, 64}), "elements of a tile along a second axis"},
                    {"lanes", fitting(lanes, lanes == 1 ? std::vector<std::int64_t>{1} : wide),
                     "elements of the reduced axis that lies fastest in memory, taken at once"},
                    {"unroll", window > 1 && window <= 49 ? std::vector<std::int64_t>{8, 1} : std::vector<std::int64_t>{1},
                     "reduced axes of at most this many elements are written out"}};
    if (gpu) space.fields.push_back({"warps", {4, 8, 2, 1, 16}, "warps a block"});
    return space;
  }

  Status legal(const Region& region, const Schedule& s, const Capabilities& capabilities) const override {
    const auto refuse = [&](const std::string& expected, const std::string& found) {
      return fail({ErrorCode::kScheduleIllegal, "the schedule's fields cannot hold together", s.text(), expected, found,
                   "change one of the fields named"});
    };
    for (const char* name : {"x", "y", "lanes", "unroll", "warps"})
      if (field(s, name) < (capabilities.gpu || name != std::string("warps") ? 1 : -1))
        return refuse("a value of at least 1", name);
    for (const Form& form : forms_of(region, capabilities)) {
      const auto tile = tile_of(form, s);
      std::int64_t elements = 1, written = 1;
      for (std::size_t a = 0; a < tile.size(); ++a) {
        elements *= tile[a];
        const std::int64_t size = form.nest.axes[a];
        if (capabilities.gpu ? tile[a] / 2 >= size && tile[a] > 1 : tile[a] > size)
          return refuse(fmt::format("a tile no larger than the axis of {}", size), fmt::format("{}", tile[a]));
        if (form.reduced[a] && size <= field(s, "unroll")) written *= size;
      }
      if (written > 64) return refuse("at most 64 bodies written out", fmt::format("{}", written));
      for (const NestValue& value : form.nest.values)
        if (value.kind == Kind::reduce && value.op == ValueOp::mul && form.roles.lanes >= 0 && field(s, "lanes") > 1)
          return refuse("lanes=1 for a product of all elements", fmt::format("{}", field(s, "lanes")));
      for (const Access& load : form.nest.loads)
        if (!is_box(load, tile, form.nest.axes)) return refuse("tiles that are boxes of every tensor", load.name);
      for (const auto& output : form.nest.outputs)
        if (!is_box(output.place, tile, form.nest.axes)) return refuse("tiles that are boxes of every tensor", output.place.name);
      if (capabilities.gpu) {
        const std::int64_t threads = field(s, "warps") * 32;
        if (elements > threads * 32 || (elements < threads && field(s, "warps") > 1))
          return refuse("1 to 32 elements a thread", fmt::format("{} elements, {} threads", elements, threads));
      } else if (elements > 8192) {
        return refuse("at most 8192 elements a tile", fmt::format("{}", elements));
      }
    }
    return ok();
  }

  // Cycles of the busiest core: vectors of every value, loads that are no vectors, and the handing out of tasks.
  double guess(const Region& region, const Schedule& s, const Capabilities& capabilities) const override {
    if (!legal(region, s, capabilities)) return HUGE_VAL;
    const double vector = std::max(4, capabilities.vector_bytes / 4);
    double all = 0;
    for (const Form& form : forms_of(region, capabilities)) {
      const auto tile = tile_of(form, s);
      double tasks = 1, trips = 1, task = 30;
      for (std::size_t a = 0; a < tile.size(); ++a) {
        const double count = std::ceil(static_cast<double>(form.nest.axes[a]) / static_cast<double>(tile[a]));
        (form.reduced[a] ? trips : tasks) *= count;
      }
      for (const NestValue& value : form.nest.values) {
        double elements = 1, times = 1, last = 1;
        for (std::size_t a = 0; a < tile.size(); ++a) {
          if (value.varies[a]) elements *= static_cast<double>(tile[a]), last = tile[a] > 1 ? static_cast<double>(tile[a]) : last;
          if (value.varies[a] && form.reduced[a]) times = trips;
        }
        double cycles = elements / last * (std::ceil(last / vector) + (elements > last ? 1.0 : 0.0));
        if (value.kind == Kind::load) {
          const int own = fastest(form.nest.loads[at(value.load)]);
          const bool rows = own >= 0 && (tile[at(own)] > 1 || elements == 1);
          cycles = rows && own == (form.roles.lanes >= 0 ? form.roles.lanes : form.roles.x) ? cycles : elements * 1.2;
          if (!form.nest.loads[at(value.load)].inside) cycles = cycles * 2 + 4;
        }
        if (value.kind == Kind::map) cycles *= static_cast<double>(value.expression.terms.size()) / 2;
        task += times * (cycles + 1 + (field(s, "unroll") > 1 ? 0 : 1));
      }
      all += std::ceil(tasks / capabilities.processors) * task;
    }
    return all;
  }

  Result<Programs> programs(const Region& region, const Schedule& s, const Capabilities& capabilities) const override {
    WARPLOOM_CHECK(legal(region, s, capabilities));
    Programs out;
    for (const Form& form : forms_of(region, capabilities)) {
      Writer writer(form, s, capabilities, out.programs.empty() ? "direct" : fmt::format("direct_part{}", out.programs.size()));
      out.programs.push_back(writer.make());
      out.buffers.push_back(writer.draft.buffers);
    }
    return out;
  }
};
}  // namespace
const Family& direct_family() {
  static const Direct family;
  return family;
}
}  // namespace warploom::kernels
