// The programs of the family `direct`.
#include "kernels/kernel_builder.h"
#include "kernels/loop_nest_tiling.h"

namespace warploom::kernels::direct {
namespace {
class Writer {
 public:
  Writer(const LoopNestTiling& form, const Schedule& s, const Capabilities& capabilities,
         const std::string& name)
      : draft(name),
        form_(form),
        n_(form.nest),
        b(draft.b),
        capabilities_(capabilities),
        s_(s),
        tile_(form.nest) {
    tile_.extent = tile_of(form, s);
  }

  KernelBuilder draft;

  void make() {
    for (size_t a = 0; a < tile_.extent.size(); ++a)
      if (tile_.extent[a] > 1) tiled_.push_back(a);
    const bool product = field(s_, "product") == 1;
    rows_ = product ? field(s_, "z") : 1;
    for (size_t i = 0; i < n_.loads.size(); ++i) {
      const bool factor = product && std::ranges::count(form_.product->loads, i) > 0;
      if (!factor)
        loads_.emplace(i, TensorTile(draft, fmt::format("X{}", i), n_, n_.loads[i], tiled_));
    }
    for (size_t i = 0; i < n_.outputs.size(); ++i)
      outputs_.emplace_back(draft, fmt::format("Y{}", i), n_, n_.outputs[i].place, tiled_, true);
    place_tile();
    held_.assign(n_.values.size(), -1);
    choose_kept();
    if (!form_.in_turn(s_)) return compute_tile(product);
    const size_t y = at(form_.roles.y);
    const Index first = tile_.origin[y];
    b.for_("row", 0, field(s_, "y"), 1, [&](const Index& row) {
      tile_.origin[y] = first + row;
      compute_tile(product);
    });
  }

 private:
  void compute_tile(bool product) {
    if (form_.scanned >= 0) return walk(at(form_.scanned));
    std::vector<bool> inner(n_.values.size(), false);  // what reductions are made of
    for (size_t v = n_.values.size(); v-- > 0;)
      for (const int operand : n_.values[v].operands)
        if (inner[v] || n_.values[v].kind == Kind::reduce) inner[at(operand)] = true;
    const auto in_loops = [&](size_t v) {
      for (size_t a = 0; a < n_.axes.size(); ++a)
        if (form_.reduced[a] && n_.values[v].varies[a]) return true;
      return false;
    };
    for (size_t v = 0; v < n_.values.size(); ++v)
      if (inner[v] && !in_loops(v)) compute(v);
    std::vector<size_t> sums;
    for (size_t v = 0; v < n_.values.size(); ++v)
      if (n_.values[v].kind == Kind::reduce) {
        sums.push_back(v);
        begin(v);
      }
    if (product)
      multiply(sums[0]);
    else if (!sums.empty())
      loops(0, sums, [&] {
        for (size_t v = 0; v < n_.values.size(); ++v)
          if (inner[v] && in_loops(v)) compute(v);
        for (const size_t v : sums) accumulate(v);
      });
    for (const size_t v : sums) finish(v);
    for (size_t v = 0; v < n_.values.size(); ++v)
      if (held_[v] < 0 && !in_loops(v)) compute(v);
    for (size_t i = 0; i < n_.outputs.size(); ++i) store(i);
  }

  // Along the scanned axis, from where scans begin: what lies outside then comes last.
  void walk(size_t axis) {
    const int64_t size = n_.axes[axis];
    const int64_t extent = tile_.extent[axis];
    const int64_t whole = size / extent;
    for (size_t v = 0; v < n_.values.size(); ++v) {
      if (!n_.values[v].varies[axis]) compute(v);
      if (n_.values[v].kind == Kind::scan && size > extent) scans_.push_back(v);
    }
    for (const size_t v : scans_)
      for (const char* const name : {"before", "lost"}) b.fill(one_a_line(name, v), 0);
    const auto step = [&](const Index& turn) {
      go_along(axis, turn);
      for (const bool loads :
           {true, false})  // loads first: the first scan fetches what the next turn loads
        for (size_t v = 0; v < n_.values.size(); ++v)
          if (n_.values[v].varies[axis] && (n_.values[v].kind == Kind::load) == loads) compute(v);
      for (size_t i = 0; i < n_.outputs.size(); ++i) store(i);
      for (const size_t v : scans_) pass_on(v);
    };
    if (together_ > 1) {
      fetch(axis, 0);
      b.for_("i", 0, rounds(), 1, step);
      return;
    }
    if (whole > 1)
      b.for_("i", 0, whole, 1, step);
    else if (whole == 1)
      step(0);
    if (size % extent != 0) step(whole);
  }

  // To the tile of that turn; of blocks that walk together each has one a round.
  void go_along(size_t axis, const Index& turn) {
    const int64_t extent = tile_.extent[axis];
    const Index number = turn * together_ + (together_ > 1 ? member_ : Index(0));
    turn_ = turn;
    tile_.origin[axis] =
        form_.reverse ? Index(n_.axes[axis] - extent) - number * extent : number * extent;
  }

  int64_t rounds() const {
    const size_t axis = at(form_.scanned);
    return ceil_div(n_.axes[axis], tile_.extent[axis] * together_);
  }

  // What the turn loads, ahead of it.
  void fetch(size_t axis, const Index& turn) {
    const Index here = turn_;
    go_along(axis, turn);
    for (size_t v = 0; v < n_.values.size(); ++v)
      if (const Expr& value = n_.values[v]; value.kind == Kind::load && value.varies[axis]) {
        const Access& load = n_.loads[at(value.load)];
        ahead_[v] =
            draft.reg(fmt::format("ahead{}", value.load), load.dtype, shape_of(value.varies));
        b.copy(loads_.at(at(value.load)).at(tile_), b.all(ahead_[v]), load.fill,
               n_.passes_by(load, capabilities_.l2_bytes));
      }
    go_along(axis, here);
  }

  // Each block leaves what its tile comes to, and when all of the round have it looks back at those
  // before its own. Every round has its place and flag, so that none waits for the readers of the
  // one before. total ← the round's, behind ← the blocks' before this one.
  void look_back(size_t v, size_t dim, const std::function<void()>& meanwhile) {
    const size_t which = at(std::ranges::find(scans_, v) - scans_.begin());
    const TensorId total = one_a_line("total", v);
    std::vector<int64_t> own = shape_of(n_.values[v].varies);
    std::vector<int64_t> all = own;
    own[dim] = 1;
    all[dim] = together_;
    const int64_t meetings = lines_ * rounds() * std::ssize(scans_);
    const Index meeting =
        (line_ * rounds() + turn_) * std::ssize(scans_) + static_cast<int64_t>(which);
    // Scans differ in the axes that they vary along: each has parts of its own.
    std::vector<int64_t> shape = {lines_ * rounds()};
    shape.insert(shape.end(), all.begin(), all.end());
    const TensorId parts = draft.workspace(fmt::format("parts{}", v),
                                           fmt::format("scan_parts{}", v), Dtype::f32, shape);
    if (flags_ < 0)
      flags_ = b.zeroed(draft.workspace("flags", "scan_flags", Dtype::i32, {meetings}));
    const auto place = [&](const Index& block, std::vector<int64_t> extent) {
      std::vector<Index> offset(shape.size(), 0);
      offset[0] = line_ * rounds() + turn_;
      offset[dim + 1] = block;
      extent.insert(extent.begin(), 1);
      return b.tile(parts, std::move(offset), std::move(extent));
    };
    const tile::Tile flag = b.tile(flags_, {meeting}, {1});
    b.copy(b.all(total), place(member_, own));
    b.add(tile::Signal{flag, 1});
    if (which == 0) fetch(at(form_.scanned), turn_ + 1);
    meanwhile();
    b.add(tile::Wait{flag, together_});
    const TensorId met = draft.reg(fmt::format("met{}", v), Dtype::f32, all);
    const TensorId earlier = draft.reg(fmt::format("earlier{}", v), Dtype::f32, all);
    b.copy(place(0, all), b.all(met));
    const Value before =
        less(tile::coordinate(static_cast<int>(dim), Index(0) - member_), tile::constant(0));
    b.map(earlier, where(before, b.value(met), tile::constant(0)));
    b.reduce(one_a_line("behind", v), earlier, static_cast<int>(dim), tile::ReduceOp::sum);
    b.reduce(total, met, static_cast<int>(dim), tile::ReduceOp::sum);
  }

  TensorId one_a_line(const char* name, size_t v) {
    std::vector<bool> varies = n_.values[v].varies;
    varies[at(form_.scanned)] = false;
    return draft.reg(fmt::format("{}{}", name, v), type_of(v), shape_of(varies));
  }

  // What a sum, a scan or a value of its own is held in.
  Dtype type_of(size_t v) const { return n_.values[v].integers ? Dtype::i64 : Dtype::f32; }

  // dst ← value v, or what is made of it: on whole numbers where it is one.
  void map(TensorId dst, Value value, bool integers) {
    if (integers)
      b.map_integers(dst, std::move(value));
    else
      b.map(dst, std::move(value));
  }

  // The prefixes within the tile, on top of what the tiles before come to.
  void scan(size_t v) {
    const Expr& value = n_.values[v];
    const size_t axis = at(form_.scanned);
    const auto reg = [&](const char* stem) {
      return draft.reg(fmt::format("{}{}", stem, v), type_of(v), shape_of(value.varies));
    };
    const TensorId term = reg("term");
    const bool alone = n_.axes[axis] <= tile_.extent[axis];
    TensorId own = term;
    map(term, value_of(at(value.operands[0])), value.integers);
    if (const auto dim = std::ranges::find(tiled_, axis) - tiled_.begin();
        dim < std::ssize(tiled_)) {
      own = reg("prefix");
      const auto scan = [&] {
        b.scan(own, term, static_cast<int>(dim), tile::ReduceOp::sum, form_.reverse);
      };
      if (!alone)
        b.reduce(one_a_line("total", v), term, static_cast<int>(dim), tile::ReduceOp::sum);
      if (together_ > 1)
        look_back(v, at(dim), scan);
      else
        scan();
    } else if (!alone) {
      map(one_a_line("total", v), b.value(term), value.integers);
    }
    held_[v] = alone ? own : reg("v");
    if (alone) return;
    if (value.integers)
      return b.map_integers(held_[v], b.value(one_a_line("before", v)) + b.value(own));
    Value since = b.value(one_a_line("lost", v));
    if (together_ > 1) since = b.value(one_a_line("behind", v)) + since;
    b.map(held_[v], b.value(one_a_line("before", v)) + (b.value(own) + since));
  }

  // before ← before + total, and what rounding loses of it: there may be thousands of tiles.
  void pass_on(size_t v) {
    const TensorId before = one_a_line("before", v);
    const TensorId lost = one_a_line("lost", v);
    const TensorId sum = one_a_line("sum", v);
    const Value total = b.value(one_a_line("total", v));
    if (n_.values[v].integers) return b.map_integers(before, b.value(before) + total);
    b.map(sum, b.value(before) + total);
    b.map(lost, b.value(lost) + (total - (b.value(sum) - b.value(before))));
    b.map(lost, tile::finite_or_0(b.value(lost)));
    b.map(before, b.value(sum));
  }

  const LoopNestTiling& form_;
  const LoopNest& n_;
  tile::Builder& b;
  const Capabilities& capabilities_;
  const Schedule& s_;
  TileCoord tile_;
  std::vector<size_t> tiled_;  // axes of the tile, the dimensions of register tensors
  int64_t rows_ = 1;  // of x, at neighbouring indices of z, one behind another in a register tensor
  std::map<size_t, TensorTile> loads_;
  std::vector<TensorTile> outputs_;
  std::vector<TensorId> held_;  // the register tensor of a value
  std::vector<bool> kept_;      // which values, beside loads and reductions, get one
  int64_t together_ =
      1;  // blocks that walk along a line together; of how many lines, and which of them
  int64_t lines_ = 1;
  Index member_ = 0;
  Index line_ = 0;
  Index turn_ = 0;
  TensorId flags_ = -1;
  std::vector<size_t> scans_;         // that go beyond a tile
  std::map<size_t, TensorId> ahead_;  // by value: what the next turn loads

  // Blocks walk the free axes, the last one fastest. Without masks a tile at the edge begins early
  // enough to lie inside.
  void place_tile() {
    std::vector<size_t> free;
    for (size_t a = 0; a < n_.axes.size(); ++a)
      if (!form_.walked(a)) free.push_back(a);
    TileCoord whole = tile_;
    if (rows_ > 1) whole.extent[at(form_.roles.z)] = rows_;
    if (form_.in_turn(s_)) whole.extent[at(form_.roles.y)] = field(s_, "y");
    together_ = form_.scanned >= 0 ? field(s_, "together", 1) : 1;
    lines_ = whole.count(n_, free);
    member_ = tile::block(0) % together_;
    line_ = tile::block(0) / together_;
    // From the last tile on where more is read than the L2 holds: that has what the kernel before
    // this one wrote last.
    const bool backwards =
        capabilities_.gpu && form_.scanned < 0 && read() > capabilities_.l2_bytes;
    whole.place(n_, free, backwards ? Index(lines_ - 1) - line_ : line_);
    for (const size_t a : free)
      if (!capabilities_.gpu && n_.axes[a] % whole.extent[a] != 0)
        whole.origin[a] = tile::min(whole.origin[a], n_.axes[a] - whole.extent[a]);
    tile_.origin = std::move(whole.origin);
    b.grid(lines_ * together_).warps(capabilities_.gpu ? static_cast<int>(field(s_, "warps")) : 1);
    if (together_ > 1) b.cooperative();
  }

  int64_t read() const {  // bytes of all that is loaded
    int64_t bytes = 0;
    for (const Access& load : n_.loads)
      bytes += bytes_of(load.dtype, graph::element_count(load.shape));
    return bytes;
  }

  std::vector<int64_t> shape_of(const std::vector<bool>& varies) const {
    std::vector<int64_t> shape;
    for (const size_t a : tiled_) shape.push_back(varies[a] ? tile_.extent[a] : 1);
    if (rows_ > 1 && varies[at(form_.roles.x)]) shape.back() *= rows_;
    return shape.empty() ? std::vector<int64_t>{1} : shape;
  }

  Value value_of(size_t v) const {
    const auto known = [&](int id) -> std::optional<Value> {
      if (held_[at(id)] >= 0) return b.value(held_[at(id)]);
      return n_.values[at(id)].kind == Kind::index
                 ? std::optional(tile_.value_at(n_.values[at(id)].at, tiled_))
                 : std::nullopt;
    };
    return made_of<Value>(n_, static_cast<int>(v), known, tile::constant, tile::apply);
  }

  // What varies along fewer axes than a user, is much and used more than once, or is rounded has a
  // register tensor of its own.
  void choose_kept() {
    std::vector<int> uses(n_.values.size());
    std::vector<int> nodes(n_.values.size(), 1);
    for (size_t v = 0; v < n_.values.size(); ++v)
      for (const int operand : n_.values[v].operands) {
        nodes[v] = std::min(nodes[v] + nodes[at(operand)], kLargestCopy);
        ++uses[at(operand)];
      }
    for (size_t v = 0; v < n_.values.size(); ++v) {
      const Expr& value = n_.values[v];
      kept_.push_back(value.kind == Kind::round ||
                      (value.kind == Kind::apply && uses[v] > 1 && nodes[v] == kLargestCopy));
      for (const int operand : value.operands) {
        const Expr& from = n_.values[at(operand)];
        const bool other_axes = value.kind == Kind::apply && from.varies != value.varies;
        const bool to_floats = from.integers && !value.integers;
        if (from.kind == Kind::apply && (other_axes || to_floats)) kept_[at(operand)] = true;
      }
    }
  }

  void compute(size_t v) {
    const Expr& value = n_.values[v];
    if (value.kind == Kind::scan) return scan(v);
    if (value.kind == Kind::load) {
      const Access& load = n_.loads[at(value.load)];
      held_[v] = draft.reg(fmt::format("x{}", value.load), load.dtype, shape_of(value.varies));
      const bool passes =
          capabilities_.gpu && !turned(load) && n_.passes_by(load, capabilities_.l2_bytes);
      if (const auto ahead = ahead_.find(v); ahead != ahead_.end())
        b.map(held_[v], b.value(ahead->second));
      else
        each_row(held_[v], load, [&](const tile::Tile& part) {
          b.copy(loads_.at(at(value.load)).at(tile_), part, load.fill, passes);
        });
      if (capabilities_.gpu && turned(load)) {
        const TensorId mine =
            draft.reg(fmt::format("turned{}", value.load), load.dtype, shape_of(value.varies));
        b.convert_layout(mine, held_[v]);
        held_[v] = mine;
      }
    } else if (kept_[v]) {
      held_[v] = -1;  // where bodies are written out, of the body before
      const Value text = value_of(v);
      held_[v] = draft.reg(fmt::format("v{}", v), value.dtype, shape_of(value.varies));
      const bool of_whole = value.kind != Kind::round || n_.is_whole(value.operands[0]);
      map(held_[v], text, value.integers && of_whole);
    }
  }

  // Whether neighbours in memory lie along another axis of the tile than those of the output, or
  // (behind a reduction over lanes) only a part of the tile is read: the threads that load it are
  // not those that need it.
  bool turned(const Access& load) const {
    const auto outside = [&](size_t a) { return !load.uses(a); };
    if (form_.roles.lanes >= 0 && tile_.extent[at(form_.roles.lanes)] > 1 &&
        std::ranges::any_of(tiled_, outside))
      return true;
    const int own = fastest(load);
    const int x = form_.roles.x;
    return own >= 0 && x >= 0 && own != x && tile_.extent[at(own)] > 1 && tile_.extent[at(x)] > 1 &&
           !form_.reduced[at(own)] && load.uses(at(x));
  }

  std::vector<int64_t> sum_shape(size_t v) const {
    std::vector<bool> varies = n_.values[at(n_.values[v].operands[0])].varies;
    for (const int axis : n_.values[v].axes) varies[at(axis)] = true;
    return shape_of(varies);
  }

  void begin(size_t v) {
    held_[v] = draft.reg(fmt::format("sum{}", v), type_of(v), sum_shape(v));
    b.fill(held_[v], identity_of(n_.values[v].op));
  }

  void accumulate(size_t v) {
    const Expr& sum = n_.values[v];
    Value operand = value_of(at(sum.operands[0]));
    const int lanes = form_.roles.lanes;
    if (lanes >= 0 && n_.axes[at(lanes)] % tile_.extent[at(lanes)] != 0) {
      const Value place = tile_.value_at(along(at(lanes), n_.axes.size()), tiled_);
      const Value end =
          tile::constant(static_cast<double>(n_.axes[at(lanes)]) - (sum.integers ? 0 : 0.5));
      operand = where(less(place, end), std::move(operand), tile::constant(identity_of(sum.op)));
    }
    const Value before = b.value(held_[v]);
    const bool product =
        sum.op == ValueOp::add && operand.kind == Value::Kind::op && operand.op == ValueOp::mul;
    map(held_[v],
        product ? tile::apply(ValueOp::fma, {operand.operands[0], operand.operands[1], before})
                : tile::apply(sum.op, {before, std::move(operand)}),
        sum.integers);
  }

  void finish(size_t v) {
    const int lanes = form_.roles.lanes;
    if (lanes < 0 || tile_.extent[at(lanes)] == 1) return;
    const TensorId whole =
        draft.reg(fmt::format("total{}", v), type_of(v), shape_of(n_.values[v].varies));
    const auto axis = std::ranges::find(tiled_, at(lanes)) - tiled_.begin();
    b.reduce(whole, held_[v], static_cast<int>(axis), *reduce_op(n_.values[v].op));
    held_[v] = whole;
    if (!capabilities_.gpu || tiled_.size() < 3) return;
    held_[v] = draft.reg(fmt::format("settled{}", v), Dtype::f32, shape_of(n_.values[v].varies));
    b.convert_layout(held_[v], whole);
  }

  // Loops over the reduced axes from `a` on, or their bodies one after another where they are short
  // and to be written out.
  void loops(size_t a, const std::vector<size_t>& sums, const std::function<void()>& body) {
    if (a == n_.axes.size()) return body();
    if (turns(a) == 1) return loops(a + 1, sums, body);
    const int64_t count = turns(a);
    const auto turn = [&](const Index& i) {
      tile_.origin[a] = i * tile_.extent[a];
      loops(a + 1, sums, body);
    };
    int64_t inside = 1;
    for (size_t later = a + 1; later < n_.axes.size(); ++later) inside *= turns(later);
    const int64_t block = std::max<int64_t>(1, kChain / inside);
    if (field(s_, "unroll") > 1 && count <= field(s_, "unroll") && tile_.extent[a] == 1) {
      for (int64_t i = 0; i < count; ++i) turn(i);
    } else if (inside > kChain || count * inside <= kChain || chained_) {
      b.for_(fmt::format("i{}", a), 0, count, 1, turn);
    } else {
      b.for_(fmt::format("from{}", a), 0, count, block, [&](const Index& from) {
        chain(sums, [&] {
          b.for_(fmt::format("i{}", a), from, tile::min(from + block, count), 1, turn);
        });
      });
    }
    tile_.origin[a] = 0;
  }

  int64_t turns(size_t axis) const {
    return form_.reduced[axis] ? ceil_div(n_.axes[axis], tile_.extent[axis]) : 1;
  }

  // What the body adds up from zero, then added to what was before: the rounding error of one long
  // chain would grow with √k.
  static constexpr int64_t kChain = 16;
  bool chained_ = false;

  void chain(const std::vector<size_t>& sums, const std::function<void()>& body) {
    const std::vector<TensorId> before = held_;
    for (const size_t v : sums)
      if (n_.values[v].op == ValueOp::add && !n_.values[v].integers) {
        held_[v] = draft.reg(fmt::format("part{}", v), Dtype::f32, sum_shape(v));
        b.fill(held_[v], 0);
      }
    chained_ = true;
    body();
    chained_ = false;
    for (const size_t v : sums)
      if (const TensorId part = std::exchange(held_[v], before[v]); part != before[v])
        b.map(before[v], b.value(before[v]) + b.value(part));
  }

  void store(size_t i) {
    const Access& place = n_.outputs[i].place;
    const int v = n_.outputs[i].value;
    std::vector<bool> varies(n_.axes.size());
    for (size_t a = 0; a < varies.size(); ++a) varies[a] = place.uses(a);
    const Expr& value = n_.values[at(v)];
    TensorId out = held_[at(v)];
    if (out < 0 || b.dtype_of(out) != place.dtype || shape_of(value.varies) != shape_of(varies)) {
      out = draft.reg(fmt::format("y{}", i), place.dtype, shape_of(varies));
      const bool whole = is_integer(place.dtype) && n_.is_whole(v) &&
                         (value.integers || value.kind == Kind::load || n_.most(v) > 0x1p24);
      map(out, value_of(at(v)), whole);
    }
    each_row(out, place, [&](const tile::Tile& part) {
      b.copy(part, outputs_[i].at(tile_), 0, field(s_, "streaming") == 1);
    });
  }

  void each_row(TensorId tensor, const Access& access,
                const std::function<void(const tile::Tile&)>& body) {
    tile::Tile part = b.all(tensor);
    if (rows_ == 1 || !access.uses(at(form_.roles.x))) return body(part);
    part = b.tile(tensor, std::vector<Index>(tiled_.size(), Index(0)), {});
    for (const size_t a : tiled_) part.extent.push_back(access.uses(a) ? tile_.extent[a] : 1);
    rows([&](const Index& row) {
      part.offset.back() = row * tile_.extent[at(form_.roles.x)];
      body(part);
    });
  }

  void rows(const std::function<void(const Index&)>& body) {
    if (rows_ == 1) return body(0);
    const Index first = tile_.origin[at(form_.roles.z)];
    b.for_("row", 0, rows_, 1, [&](const Index& row) {
      tile_.origin[at(form_.roles.z)] = first + row;
      body(row);
    });
    tile_.origin[at(form_.roles.z)] = first;
  }

  // The sum of products by matrix products of blocks: one factor as it lies, the other's windows
  // copied one tap after another.
  void multiply(size_t v) {
    const LoopNestTiling::Product& p = *form_.product;
    const int64_t depth = field(s_, "depth");
    const int64_t m = tile_.extent[at(form_.roles.y)];
    const int64_t x = tile_.extent[at(form_.roles.x)];
    const int64_t n = x * rows_;
    // Dimensions of the sum come behind those of the one factor's tiles, and before the other's.
    std::vector<size_t> a_axes = tiled_;
    std::vector<size_t> b_axes = tiled_;
    a_axes.push_back(at(p.k));
    b_axes.insert(b_axes.begin(), at(p.k));
    const TensorTile A(draft, "A", n_, p.a, a_axes);
    const TensorTile B(draft, "B", n_, p.b, b_axes);
    const TensorId a = b.shared("a", Dtype::f32, {m, depth * p.taps});
    const TensorId w = b.shared("b", Dtype::f32, {depth, p.taps, n});
    // Each block of k is summed from zero and added to those before it: the rounding error of one
    // long chain would grow with √k.
    const int64_t blocks = ceil_div(n_.axes[at(p.k)], depth);
    const auto [first, last] = tile_.slots_within(p.bounds, at(p.k), 0, blocks);
    const TensorId part = blocks > 1 ? draft.reg("part", Dtype::f32, sum_shape(v)) : held_[v];
    b.for_("k", first, last, 1, [&](const Index& k) {
      tile_.origin[at(p.k)] = k * depth;
      tile::Tile rows_of_a = A.at(tile_);
      rows_of_a.extent.back() = depth * p.taps;
      b.copy(std::move(rows_of_a), b.all(a));
      taps(0, 0, [&](const Index& tap) {
        rows([&](const Index& row) {
          TileCoord deep = tile_;
          deep.extent[at(p.k)] = depth;
          b.copy(B.at(deep), b.tile(w, {0, tap, row * x}, {depth, 1, x}), p.b.fill);
        });
      });
      if (part != held_[v]) b.fill(part, 0);
      if (p.taps == 1)
        b.mma(part, b.all(a), b.all(w));
      else
        b.for_("c", 0, depth, 1, [&](const Index& c) {
          b.mma(part, b.tile(a, {0, c * p.taps}, {m, p.taps}),
                b.tile(w, {c, 0, 0}, {1, p.taps, n}));
        });
      if (part != held_[v]) b.map(held_[v], b.value(held_[v]) + b.value(part));
    });
  }

  void taps(size_t axis, const Index& tap, const std::function<void(const Index&)>& body) {
    if (axis == n_.axes.size()) return body(tap);
    if (!form_.reduced[axis] || static_cast<int>(axis) == form_.product->k)
      return taps(axis + 1, tap, body);
    b.for_(fmt::format("i{}", axis), 0, n_.axes[axis], 1, [&](const Index& i) {
      tile_.origin[axis] = i;
      taps(axis + 1, tap * n_.axes[axis] + i, body);
    });
  }
};
}  // namespace

void add_program(Family::Programs& out, const LoopNestTiling& form, const Schedule& s,
                 const Capabilities& capabilities, const std::string& name) {
  Writer writer(form, s, capabilities, name);
  writer.make();
  writer.draft.finish(out);
}
}  // namespace warploom::kernels::direct
