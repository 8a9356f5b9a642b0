#include "kernels/gpu_matmul.h"
#include "kernels/halves.h"
#include "kernels/loop_nest_tiling.h"

namespace warploom::kernels {
std::optional<Precision> precision_of(Dtype a, Dtype b, Track track, bool halves) {
  if (a != b) return std::nullopt;
  if (a == Dtype::bf16 && track != Track::fp16) return Precision{Dtype::bf16, 1};
  if (a == Dtype::f16 && track != Track::bf16) return Precision{Dtype::f16, 1};
  if (bits_of(a) == 8 && (track == Track::fp8 || track == Track::tolerance)) return Precision{a, 1};
  if (a != Dtype::f32) return std::nullopt;
  if (track == Track::tf32) return Precision{Dtype::tf32, 1};
  if (track == Track::fp32 || track == Track::tolerance)
    return Precision{halves ? Dtype::f16 : Dtype::tf32, 3};
  return std::nullopt;
}

bool fuses_rows(const Contraction& c, const Precision& precision, int64_t columns,
                const Capabilities& capabilities) {
  constexpr int64_t kMostTerms = 2048;
  const TileCoord one(c.nest);
  const int64_t width = c.nest.axes[c.column];
  const int64_t rows =
      one.count(c.nest, c.batch) * one.count(c.nest, c.m) * one.count(c.nest, c.n) / width;
  return precision.accumulator() == Dtype::f32 && width <= columns &&
         one.count(c.nest, c.k) * precision.terms <= kMostTerms &&
         rows / 64 * ceil_div(width, 64) >= capabilities.num_sms / 4;
}

TileCoord TileScheduler::at(const Index& number) const {
  // The divisor of tiles_m nearest to `group`, so that every group is whole.
  int64_t width = 1;
  const auto distance = [&](int64_t w) { return w > group ? w * 8 / group : group * 8 / w; };
  for (int64_t w = 1; w <= tiles_m; ++w)
    if (tiles_m % w == 0 && distance(w) < distance(width)) width = w;
  const Index in_batch = batch > 1 ? number % (tiles_m * tiles_n) : number;
  const Index first = in_batch / (width * tiles_n) * width;
  const Index within = in_batch % (width * tiles_n);
  const Index m = first + within % width;
  TileCoord placed = tile;
  placed.place(c.nest, c.m, cluster > 1 ? m * cluster + tile::cluster_rank() : m);
  placed.place(c.nest, c.n,
               beside > 1 ? within / width * beside + tile::cluster_rank() : within / width);
  placed.place(c.nest, c.batch, batch > 1 ? number / (tiles_m * tiles_n) : Index(0));
  return placed;
}

Index from_both_ends(const Index& turn, int64_t count, int64_t workers) {
  const Index round = turn / workers;
  const Index front = turn - (round + 1) / 2 * workers;
  return front + round % 2 * (Index(count - 1) - front * 2);
}

bool is_whole(const Access& access) {
  return access.in_bounds && access.gather_dim < 0 &&
         std::ranges::all_of(
             access.at,
             [](const Affine& c) { return c.begin == 0 && std::ranges::min(c.steps) >= 0; });
}

bool stores_whole(const Contraction& c) {
  const auto epilogue = epilogue_of(c);
  const auto fits = [](const Access& access) {
    return is_whole(access) && is_computed_float(access.dtype);
  };
  return epilogue && fits(c.nest.outputs[0].place) &&
         std::ranges::all_of(*epilogue,
                             [&](int operand) { return fits(c.nest.loads[at(operand)]); });
}

std::vector<size_t> slot_axes(const Contraction& c) {
  if (!c.scales.empty()) return c.k;
  std::vector<size_t> axes;
  if (c.channel) axes.push_back(*c.channel);
  std::ranges::copy_if(c.k, std::back_inserter(axes),
                       [&](size_t axis) { return axis != c.channel; });
  return axes;
}

Prepared OperandPacking::written(const std::vector<int64_t>& axes, const std::vector<size_t>& over,
                                 const Access& from, const Access& made, int64_t elements,
                                 int64_t across) const {
  const auto workspace = [&](const std::string& suffix) {
    Access access = made;
    access.name = name + suffix;
    access.dtype = precision.halves() ? Dtype::f16 : from.dtype;
    out.workspaces.push_back({access.name, access.dtype, {elements}});
    return access;
  };
  LoopNest nest{.axes = axes, .loads = {from}, .values = {{.kind = Kind::load}}, .outputs = {}};
  const auto add = [&](ValueOp op, std::vector<int> operands) {
    nest.values.push_back({.kind = Kind::apply, .op = op, .operands = std::move(operands)});
    return static_cast<int>(nest.values.size()) - 1;
  };
  const auto rounded = [&](int value) {
    if (precision.operand == Dtype::tf32) return add(ValueOp::round_tf32, {value});
    if (!precision.halves()) return value;
    nest.values.push_back({.kind = Kind::round, .dtype = Dtype::f16, .operands = {value}});
    return static_cast<int>(nest.values.size()) - 1;
  };
  int whole = 0;
  Prepared prepared{workspace("_ready"), {}};
  if (precision.halves()) {
    prepared.most = halves::measured(out, name, axes, from, over, capabilities);
    nest.loads.push_back(prepared.most);
    whole = add(ValueOp::mul, {whole, halves::add_unit(nest, 1)});
  }
  const int high = rounded(whole);
  nest.outputs = {{high, prepared.high}};
  if (precision.terms > 1) {
    prepared.low = workspace("_rest");
    nest.outputs.push_back({rounded(add(ValueOp::sub, {whole, high})), prepared.low});
  }
  direct::add_program(out, "prepare_" + name, std::move(nest), 4096 / across, across, capabilities);
  return prepared;
}

Prepared OperandPacking::relaid(const Access& from, const std::vector<int64_t>& begin,
                                const std::vector<size_t>& over, const Access& made,
                                int64_t elements) const {
  // An axis for each dimension, the one along which new neighbours lie last, before it the old
  // one's.
  const size_t rank = made.shape.size();
  std::vector<size_t> dims(rank);
  std::iota(dims.begin(), dims.end(), size_t{0});
  const auto closest = [&](const graph::Shape& strides) {
    return at(std::ranges::min_element(strides) - strides.begin());
  };
  const size_t fast = closest(made.strides);
  const size_t slow = closest(from.strides);
  std::ranges::stable_sort(dims, {}, [&](size_t d) { return d == fast ? 2 : d == slow ? 1 : 0; });
  std::vector<int64_t> axes;
  std::vector<size_t> over_axes;
  std::vector<Affine> rows;  // the dimensions of a number a row
  Access source = from;
  Access target = made;
  for (const size_t d : dims) {
    if (std::ranges::count(over, d) > 0)
      over_axes.push_back(axes.size());
    else
      rows.push_back(made.at[d]);
    target.at[d] = along(axes.size(), rank);
    axes.push_back(made.shape[d]);
  }
  source.at = target.at;
  for (size_t d = 0; d < rank; ++d) {
    source.at[d].begin = begin[d];
    source.in_bounds =
        source.in_bounds && begin[d] >= 0 && begin[d] + made.shape[d] <= from.shape[d];
  }
  const bool turns = fast != slow;
  const int64_t across =
      turns ? std::clamp<int64_t>(power_of_two_above(made.shape[fast]), 4, 64) : 128;
  Prepared prepared = written(axes, over_axes, source, target, elements, across);
  for (Access* access : {&prepared.high, &prepared.low}) access->at = made.at;
  prepared.most.at = std::move(rows);
  return prepared;
}

Prepared OperandPacking::laid_anew(const Access& from, size_t row, size_t k, bool along_k) const {
  const auto fast =
      at(std::ranges::find_if(from.at,
                              [&](const Affine& c) { return c.steps[along_k ? k : row] != 0; }) -
         from.at.begin());
  Access made = from;
  made.strides[fast] = 1;
  // The copy engine wants rows in steps of 16 bytes, and a box of 128 that begins within a line of
  // the cache reads two.
  const int64_t line = 128 / bytes_of(precision.operand);
  const int64_t length = from.shape[fast];
  int64_t next = round_up(length, length < line ? line / 8 : line);
  for (size_t d = from.at.size(); d-- > 0;)
    if (d != fast) {
      made.strides[d] = next;
      next *= from.shape[d];
    }
  std::vector<size_t> over;
  for (size_t d = 0; d < from.at.size(); ++d)
    if (from.at[d].steps[k] != 0) over.push_back(d);
  return relaid(from, std::vector<int64_t>(from.at.size()), over, made, next);
}

Prepared OperandPacking::for_copies(const Access& from, size_t row, size_t k) const {
  const bool along_k =
      bytes_of(precision.operand) != 2 || from.stride(row) != 1 || from.stride(k) == 1;
  const size_t fast = along_k ? k : row;
  // The copy engine reads neighbours along one axis, all else in steps of 16 bytes.
  bool readable = precision.terms == 1 && from.stride(fast) == 1;
  for (size_t d = 0; d < from.at.size(); ++d)
    readable &= from.at[d].steps[fast] != 0 || from.strides[d] * bytes_of(from.dtype) % 16 == 0;
  return readable ? Prepared{from, {}} : laid_anew(from, row, k, along_k);
}

namespace {
template <class Uses>
std::vector<int64_t> shape_of(const TileCoord& tile, const std::vector<size_t>& axes, size_t rows,
                              const Uses& uses) {
  std::vector<int64_t> shape = {1, 1};
  for (size_t i = 0; i < axes.size(); ++i)
    shape[i < rows ? 0 : 1] *= uses(axes[i]) ? tile.extent[axes[i]] : 1;
  return shape;
}

// What a tile of the result takes of a tensor, in registers.
TensorId load_beside(KernelBuilder& draft, const Contraction& c, const std::string& name,
                     const Access& access, const TileCoord& tile, const std::vector<size_t>& axes,
                     size_t rows, const std::string& set = "") {
  std::string global = name;
  global[0] = static_cast<char>(std::toupper(name[0]));
  const TensorId x =
      draft.reg(name + set, access.dtype,
                shape_of(tile, axes, rows, [&](size_t axis) { return access.uses(axis); }));
  draft.b.copy(TensorTile(draft, global, c.nest, access, axes).at(tile), draft.b.all(x),
               access.padding_value);
  return x;
}
}  // namespace

std::vector<TensorId> load_scales(KernelBuilder& draft, const Contraction& c, const TileCoord& slot,
                                  const std::vector<size_t>& axes, size_t rows,
                                  const std::string& set) {
  std::vector<TensorId> out;
  for (const size_t scale : c.scales)
    out.push_back(load_beside(draft, c, fmt::format("s{}", out.size()), c.nest.loads[scale], slot,
                              axes, rows, set));
  return out;
}

Value promoted(KernelBuilder& draft, TensorId acc, TensorId part,
               const std::vector<TensorId>& scales) {
  const Value before = draft.b.value(acc);
  const Value added = draft.b.value(part);
  if (scales.empty()) return before + added;
  Value scale = draft.b.value(scales[0]);
  for (size_t i = 1; i < scales.size(); ++i) scale = std::move(scale) * draft.b.value(scales[i]);
  return tile::apply(ValueOp::fma, {added, std::move(scale), before});
}

void scale_back(KernelBuilder& draft, const Contraction& c, TensorId acc,
                std::initializer_list<const Access*> most, const TileCoord& tile,
                const std::vector<size_t>& axes, size_t rows) {
  std::optional<Value> by;  // the two first: a sum times one of them may overflow
  for (int number = 0; const Access* const each : most) {
    const TensorId back =
        load_beside(draft, c, fmt::format("most{}", number++), *each, tile, axes, rows);
    draft.b.map(back, halves::back_of(draft.b.value(back)));
    by = by ? *std::move(by) * draft.b.value(back) : draft.b.value(back);
  }
  draft.b.map(acc, draft.b.value(acc) * *std::move(by));
}

Contraction filled(Family::Programs& out, Contraction c, const Capabilities& capabilities) {
  for (const auto& [number, triangle] : c.triangular_operands) {
    Access& load = c.nest.loads[number];
    LoopNest nest{.axes = c.nest.axes,
                  .loads = {load},
                  .values = {{},
                             {.kind = Kind::load},
                             {.kind = Kind::index, .at = triangle},
                             {.kind = Kind::apply, .op = ValueOp::less, .operands = {2, 0}},
                             {.kind = Kind::apply, .op = ValueOp::where, .operands = {3, 0, 1}}},
                  .outputs = {}};
    for (size_t a = 0; a < nest.axes.size(); ++a)
      if (!load.uses(a)) nest.axes[a] = 1;
    load.name = number == c.a ? "a_filled" : "b_filled";
    nest.outputs = {{4, load}};
    out.workspaces.push_back({load.name, load.dtype, {tile::span_of(load.shape, load.strides)}});
    direct::add_program(out, "fill_" + load.name.substr(0, 1), std::move(nest), 16, 128,
                        capabilities);
  }
  return c;
}

void store(KernelBuilder& draft, const Contraction& c, TensorId acc, const TileCoord& tile,
           const std::vector<size_t>& axes, size_t rows, TensorId staging, int64_t blocks) {
  auto& t = draft.b;
  const LoopNest& nest = c.nest;
  const LoopNest::Output& output = nest.outputs[0];
  std::map<int, TensorId> loaded;
  for (const int operand : epilogue_of(c).value_or(std::vector<int>{})) {
    const size_t number = loaded.size();
    loaded[operand] = load_beside(draft, c, fmt::format("e{}", number), nest.loads[at(operand)],
                                  tile, axes, rows);
  }
  const auto all = [](size_t) { return true; };
  const auto of_row = [&](size_t axis) { return axis != c.column; };
  std::map<int, TensorId> made = {{static_cast<int>(c.sum), acc}};
  const std::function<Value(int)> value_of = [&](int id) {
    const auto known = [&](int v) -> std::optional<Value> {
      if (const auto found = made.find(v); found != made.end()) return t.value(found->second);
      const Expr& value = nest.values[at(v)];
      if (value.kind == Kind::index) return tile.value_at(value.at, {c.m[0], c.n[0]});
      if (value.kind == Kind::load) return t.value(loaded.at(value.load));
      if (value.kind != Kind::apply || c.reductions.empty()) return std::nullopt;
      const auto varies = [&](int of) -> bool { return nest.values[at(of)].varies[c.column]; };
      // One number a row is computed once, and dividing by it is multiplying by its reciprocal.
      const auto number = [&](const std::string& name, const Value& one) {
        const TensorId to =
            draft.reg(fmt::format("{}{}", name, v), Dtype::f32, shape_of(tile, axes, rows, of_row));
        t.map(to, one);
        return to;
      };
      if (value.op == ValueOp::div && varies(v) && !varies(value.operands[1]))
        return value_of(value.operands[0]) *
               t.value(number("r", tile::constant(1) / value_of(value.operands[1])));
      if (varies(v)) return std::nullopt;
      std::vector<Value> operands;
      for (const int operand : value.operands) operands.push_back(value_of(operand));
      return t.value(made[v] = number("u", tile::apply(value.op, std::move(operands))));
    };
    return made_of<Value>(nest, id, known, tile::constant, tile::apply);
  };
  std::vector<TensorId> sets = {acc};
  for (const RowStep& step : row_steps(c)) {
    const Expr& reduction = nest.values[step.reduction];
    const auto op = *reduce_op(reduction.op);
    Value kept = value_of(step.kept);
    if (const int64_t width = nest.axes[c.column]; width % (tile.extent[c.column] * blocks) != 0) {
      const Value inside =
          less(tile::coordinate(1, tile.origin[c.column] - width), tile::constant(0));
      kept = where(inside, std::move(kept), tile::constant(identity_of(reduction.op)));
    }
    if (step.set == sets.size())
      sets.push_back(
          draft.reg(fmt::format("kept{}", step.set), Dtype::f32, shape_of(tile, axes, rows, all)));
    const bool there = made.contains(step.kept) && kept.kind == Value::Kind::tensor;
    if (!there) t.map(sets[step.set], kept);
    std::erase_if(made, [&](const auto& each) { return each.second == sets[step.set]; });
    made[step.kept] = sets[step.set];
    const TensorId total = draft.reg(fmt::format("total{}", step.reduction), Dtype::f32,
                                     shape_of(tile, axes, rows, of_row));
    t.reduce(total, sets[step.set], 1, op);
    if (blocks > 1) t.cluster_reduce(total, op);
    made[static_cast<int>(step.reduction)] = total;
  }
  TensorId result = acc;
  if (!c.reductions.empty() || at(output.value) != c.sum || t.dtype_of(acc) != output.place.dtype) {
    result =
        draft.reg("result", output.place.dtype,
                  shape_of(tile, axes, rows, [&](size_t axis) { return output.place.uses(axis); }));
    t.map(result, value_of(output.value));
  }
  const tile::Tile destination = TensorTile(draft, "C", nest, output.place, axes, true).at(tile);
  if (staging >= 0) t.copy(t.all(result), t.all(staging));
  const auto write = [&] { t.copy(t.all(staging < 0 ? result : staging), destination); };
  if (blocks > 1 && !output.place.uses(c.column))
    t.if_less(tile::cluster_rank(), 1, write);
  else
    write();
}
}  // namespace warploom::kernels
