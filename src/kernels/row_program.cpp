#include "kernels/row_program.h"

namespace warploom::kernels {
using tile::ReduceOp;

namespace {
constexpr int64_t kRegisterBytes = 160;  // a thread, of what a row holds and of what comes early
}  // namespace

RowProgram::RowProgram(const RowReduction& all, std::vector<int64_t> extents, int64_t blocks)
    : rows(all), cluster(blocks), at(all.nest), start(extents.size(), 0) {
  at.origin = start;
  at.extent = std::move(extents);
  for (size_t i = 0; i < rows.nest.loads.size(); ++i)
    in.emplace_back(draft, fmt::format("X{}", i), rows.nest, rows.nest.loads[i], rows.dims);
  for (size_t i = 0; i < rows.nest.outputs.size(); ++i)
    out.emplace_back(draft, i == 0 ? "Y" : fmt::format("Y{}", i), rows.nest,
                     rows.nest.outputs[i].place, rows.dims, true);
}

int64_t RowProgram::tiles(size_t axis) const {
  const bool split = axis == rows.row.back();
  return ceil_div(rows.size(axis), at.extent[axis] * (split ? cluster : 1));
}

int64_t RowProgram::tiles(const std::vector<size_t>& axes) const {
  int64_t count = 1;
  for (const size_t axis : axes) count *= tiles(axis);
  return count;
}

void RowProgram::go_to(const Index& rows_of_tile) {
  group = rows_of_tile;
  at.origin.assign(start.size(), 0);
  at.place(rows.nest, rows.outer, group);
  const size_t last = rows.row.back();
  if (cluster > 1) at.origin[last] = rank() * (tiles(last) * at.extent[last]);
  start = at.origin;
}

void RowProgram::go_along(const Index& number) {
  at.place(rows.nest, rows.row, number);
  const size_t last = rows.row.back();
  if (cluster > 1) at.origin[last] = start[last] + at.origin[last];
}

TensorId RowProgram::reg(const std::string& name, const std::vector<bool>& varies, Dtype dtype) {
  std::vector<int64_t> shape;
  for (const size_t axis : rows.dims) {
    const bool large = axis < varies.size() ? varies[axis] : axis == rows.tiled_outer;
    shape.push_back(large ? at.extent[axis] : 1);
  }
  return draft.reg(name, dtype, shape);
}

std::string RowProgram::slot_name(int slot) const {
  const std::string name = slot == 0 ? "x" : fmt::format("x{}", slot);
  return in_pieces ? fmt::format("{}_{}", name, piece) : name;
}

TensorId RowProgram::register_of(int load) {
  const RowTerm& term = rows.term(load);
  return reg(fmt::format("in{}", term.load), term.varies, rows.loaded(term).dtype);
}

Value RowProgram::compute(int id) {
  if (const auto found = bound.find(id); found != bound.end()) return found->second;
  const RowTerm& term = rows.term(id);
  if (term.kind == Kind::constant) return tile::constant(term.value);
  if (term.kind == Kind::index) return at.value_at(term.at, rows.dims);
  if (term.kind == Kind::load) {
    read(term, register_of(id));
    return bound[id] = b.value(register_of(id));
  }
  std::vector<Value> operands;
  for (const int arg : term.operands) operands.push_back(compute(arg));
  const bool rounds = term.kind == Kind::round;
  const bool shared = term.uses > 1 && term.nodes > kLargestCopy;
  const Value value = rounds ? operands[0] : tile::apply(term.op, std::move(operands));
  if (!rounds && !shared) return value;
  const std::vector<bool> varies(term.along_row ? start.size() : 0, true);
  const TensorId to = reg(fmt::format("s{}", id), varies, term.dtype);
  b.map(to, value);
  return bound[id] = b.value(to);
}

void RowProgram::read(const RowTerm& load, TensorId to) {
  if (fetch && rows.fills_tile(load.varies)) return fetch(to);
  const size_t which = kernels::at(load.load);
  const auto stays = same.find(load.load);
  if (stays == same.end() || piece >= same_tiles)
    return b.copy(in[which].at(at), b.all(to), rows.padding_values[which],
                  rows.nest.bypasses_l1(rows.nest.loads[which], l2_bytes));
  const int64_t extent = at.extent[rows.row.back()];
  b.copy(b.tile(stays->second, {0, piece * extent}, {1, extent}), b.all(to));
}

void RowProgram::stay(const std::set<int>& loads, int64_t count) {
  if (count < 1) return;
  TileCoord part = at;
  part.extent[rows.row.back()] *= same_tiles = count;
  for (const int load : loads) {
    const size_t which = kernels::at(load);
    same[load] = b.shared(fmt::format("same{}", load), rows.nest.loads[which].dtype,
                          {1, part.extent[rows.row.back()]});
    b.copy(in[which].at(part), b.all(same[load]));
  }
}

TensorId RowProgram::put(int id, const std::string& name) {
  const RowTerm& term = rows.term(id);
  const TensorId to = whole(name);
  const bool fresh = term.kind == Kind::load && !bound.contains(id) && rows.fills_tile(term.varies);
  if (fresh && rows.loaded(term).dtype == Dtype::f32)
    read(term, to);
  else
    b.map(to, compute(id));
  bound[id] = b.value(to);
  return to;
}

void RowProgram::settle(size_t pass) {
  std::set<int> seen;
  const auto visit = [&](const auto& self, int id) -> void {
    if (!seen.insert(id).second) return;
    const RowTerm& term = rows.term(id);
    if (term.along_row && !bound.contains(id))
      for (const int arg : term.operands) self(self, arg);
    if (term.along_row || term.kind == Kind::constant) return;
    if (const Value value = compute(id); !bound.contains(id)) {
      const TensorId to = number(fmt::format("u{}", id));
      b.map(to, value);
      bound[id] = b.value(to);
    }
  };
  for (const int root : rows.passes[pass].roots(rows)) visit(visit, root);
}

void RowProgram::hold(size_t pass, bool operands) {
  std::map<int, std::string> names;
  for (const int root : rows.passes[pass].roots(rows))
    if (operands) names[root] = fmt::format("e{}", names.size());
  for (const auto& [id, slot] : rows.passes[pass].kept) names[id] = slot_name(slot);
  for (const auto& [id, name] : names)
    if (const auto found = bound.find(id);
        found == bound.end() || found->second.tensor != whole(name))
      put(id, name);
}

void RowProgram::reduce(int id, TensorId from, bool alone) {
  const RowTerm& term = rows.term(id);
  const auto op = *reduce_op(term.op);
  const TensorId to = number(fmt::format("{}{}",
                                         op == ReduceOp::sum   ? "total"
                                         : op == ReduceOp::max ? "top"
                                                               : "low",
                                         id));
  std::vector<bool> varies(start.size(), true);
  for (size_t i = rows.row.size(); i-- > 0;) {
    varies[rows.row[i]] = false;
    const TensorId part = i == 0 ? to : reg(fmt::format("part{}", i), varies);
    b.reduce(part, from,
             static_cast<int>(std::ranges::find(rows.dims, rows.row[i]) - rows.dims.begin()), op);
    from = part;
  }
  if (cluster > 1 && !in_memory && !alone)
    b.cluster_reduce(to, op);
  else if (cluster > 1 && !alone)
    b.reduce(to, meet({to})[0], row_dim(), op);
  bound[id] = b.value(to);
}

// In memory each block leaves its parts and waits until all have. Every meeting has its own place
// and flag, so that none waits for the readers of the one before.
std::vector<TensorId> RowProgram::meet(const std::vector<TensorId>& own) {
  const int64_t each = std::ranges::count(rows.terms, Kind::reduce, &RowTerm::kind);
  const int64_t meetings = each * tiles(rows.outer);
  std::vector<int64_t> part = {1};
  std::vector<int64_t> all = {1};
  std::vector<int64_t> shape = {meetings};
  for (const size_t axis : rows.dims) {
    part.push_back(axis == rows.tiled_outer ? at.extent[axis] : 1);
    all.push_back(axis == rows.row.back() ? cluster : part.back());
    shape.push_back(all.back());
  }
  if (met == 0) {
    met_parts = draft.workspace("parts", "row_parts", Dtype::f32, shape);
    met_flags = b.zeroed(draft.workspace("flags", "row_flags", Dtype::i32, {meetings}));
  }
  const auto place = [&](size_t i, const Index& block, const std::vector<int64_t>& extent) {
    std::vector<Index> offset(extent.size(), 0);
    offset[0] = group * each + (met + static_cast<int64_t>(i));
    offset[row_dim() + 1] = block;
    return b.tile(met_parts, std::move(offset), extent);
  };
  const tile::Tile flag = b.tile(met_flags, {group * each + met}, {1});
  for (size_t i = 0; i < own.size(); ++i) b.copy(b.all(own[i]), place(i, rank(), part));
  b.add(tile::Signal{flag, 1});
  for (const auto& work : std::exchange(meanwhile, {})) work();
  b.add(tile::Wait{flag, cluster});
  std::vector<TensorId> others;
  for (size_t i = 0; i < own.size(); ++i) {
    others.push_back(draft.reg(fmt::format("met{}", i), Dtype::f32, {all.begin() + 1, all.end()}));
    b.copy(place(i, 0, all), b.all(others.back()));
  }
  met += std::ssize(own);
  return others;
}

bool RowProgram::ahead() const {
  const auto follows =
      [&](const auto& held) {  // what a pass held that needs the maximum, but for the exponentials
        const int e = rows.term(rows.passes[1].reduces[0]).operands[0];
        return held.first == e || rows.term(held.first).pass == 0;
      };
  return cluster > 1 && !in_memory && rows.online_softmax && rows.passes.size() == 3 &&
         std::ranges::all_of(rows.passes[1].kept, follows);
}

std::optional<std::pair<int, int>> RowProgram::share() const {
  const int e = rows.term(rows.passes[1].reduces[0]).operands[0];
  for (size_t t = 0; t < rows.terms.size(); ++t)
    if (const RowTerm& term = rows.terms[t]; term.kind == Kind::apply && term.op == ValueOp::mul)
      for (const size_t i : {0, 1})
        if (term.operands[i] == e && !rows.term(term.operands[1 - i]).along_row)
          return std::pair(static_cast<int>(t), term.operands[1 - i]);
  return std::nullopt;
}

void RowProgram::go_ahead(size_t pass) {
  if (pass == 2) {
    if (const auto product = share())
      b.map(number("share"), b.value(number("factor")) * compute(product->second));
    return;
  }
  const int id = rows.passes[pass].reduces[0];
  const int top = rows.passes[0].reduces[0];
  const TensorId made = bound.at(id).tensor;
  const TensorId factor = number("factor");
  if (pass == 0) {
    own_top = number("own");
    // Not -infinity, whose difference to itself is no number; the row's may be.
    b.map(own_top, max(b.value(made), tile::constant(std::numeric_limits<float>::lowest())));
    b.cluster_reduce(made, ReduceOp::max);
    bound[top] = b.value(own_top);
  } else {
    bound[top] = b.value(number(fmt::format("top{}", top)));
    const Value alike = equal(b.value(own_top), bound[top]);  // as infinities are
    b.map(factor, where(alike, tile::constant(1), exp(b.value(own_top) - bound[top])));
    b.map(made, b.value(made) * b.value(factor));
    b.cluster_reduce(made, ReduceOp::sum);
  }
}

void RowProgram::catch_up() {
  const auto held = bound.find(rows.term(rows.passes[1].reduces[0]).operands[0]);
  if (held == bound.end()) return;
  const Value own = held->second;
  held->second = own * b.value(number("factor"));
  if (const auto product = share()) bound[product->first] = own * b.value(number("share"));
}

Value RowProgram::masked(int id, Value value) const {
  const RowTerm& term = rows.term(id);
  for (size_t d = 0; d < rows.dims.size() && term.masked; ++d) {
    const size_t axis = rows.dims[d];
    const int64_t size = rows.size(axis);
    const int64_t blocks = axis == rows.row.back() ? cluster : 1;
    if (axis == rows.tiled_outer || tiles(axis) * at.extent[axis] * blocks == size) continue;
    // Near the end, where it matters, the difference is exact in fp32, however long the row.
    const Value inside =
        less(tile::coordinate(static_cast<int>(d), at.origin[axis] - size), tile::constant(0));
    value = where(inside, std::move(value), tile::constant(identity_of(term.op)));
  }
  return value;
}

void RowProgram::store(bool along) {
  for (size_t i = 0; i < out.size(); ++i) {
    const Access& access = rows.nest.outputs[i].place;
    if (rows.is_along_row(access) != along) continue;
    const auto emit = [&] {
      std::vector<bool> varies(start.size(), along);
      varies[rows.tiled_outer] = true;
      const TensorId y = reg(fmt::format("y{}", i), varies, access.dtype);
      b.map(y, compute(rows.results[i]));
      b.copy(b.all(y), out[i].at(at), 0, streaming && along);
    };
    if (along || cluster == 1)
      emit();
    else
      b.if_less(rank(), 1, emit);
  }
}

std::vector<int> RowProgram::last_loads(size_t held_by) const {
  std::vector<int> loads;
  std::set<int> seen;
  const auto visit = [&](const auto& self, int id) -> void {
    const RowTerm& term = rows.term(id);
    if (!term.along_row || rows.passes[held_by].kept.contains(id) || !seen.insert(id).second)
      return;
    for (const int arg : term.operands) self(self, arg);
    if (term.kind == Kind::load) loads.push_back(id);
  };
  for (const int root : rows.passes.back().roots(rows)) visit(visit, root);
  return loads;
}

void RowProgram::in_registers() {
  at.origin = start;
  const size_t last = rows.passes.size() - 1;
  // What the last pass alone loads comes while rows are reduced, where registers are left for it.
  std::map<int, Value> ready;
  const auto load_last = [&] {
    const std::vector<int> loads = last_loads(last - 1);
    const auto bytes = [&](const std::vector<bool>& varies, Dtype dtype) {
      int64_t elements = bytes_of(dtype);
      for (const size_t axis : rows.dims)
        elements *= axis >= varies.size() || varies[axis] ? at.extent[axis] : 1;
      return elements;
    };
    int64_t taken = rows.kept_sets() * bytes({}, Dtype::f32);
    for (const int id : loads)
      taken += bytes(rows.term(id).varies, rows.loaded(rows.term(id)).dtype);
    if (taken > kRegisterBytes * threads) return;
    for (const int id : loads)
      if (!bound.contains(id)) ready[id] = compute(id);
  };
  for (size_t p = 0; p < last; ++p) {
    settle(p);
    hold(p, true);
    fetch = {};
    if (p == 0) load_last();
    for (const int id : rows.passes[p].reduces) {
      const Value inside = masked(id, bound.at(rows.term(id).operands[0]));
      const bool plain = inside.kind == Value::Kind::tensor;
      if (!plain) b.map(whole("inside"), inside);  // nothing past the row's end
      reduce(id, plain ? inside.tensor : whole("inside"), ahead());
    }
    if (ahead()) go_ahead(p);
    std::erase_if(bound, [&](const auto& each) {
      return rows.term(each.first).along_row && !rows.passes[p].kept.contains(each.first);
    });
  }
  bound.insert(ready.begin(), ready.end());
  settle(last);
  if (ahead()) {
    go_ahead(last);
    catch_up();
  }
  store(true);
  store(false);
}

void RowProgram::walk(const std::function<void(const Index&)>& body) {
  const auto turn = [&, outside = bound](const Index& i) {
    go_along(i);
    body(i);
    bound = outside;
  };
  if (!in_pieces) return b.for_("i", 0, tiles(rows.row), 1, turn);
  for (piece = 0; piece < tiles(rows.row); ++piece) turn(piece);
  piece = 0;
}

tile::Tile RowProgram::keep(int slot) {
  const auto [found, added] = kept.try_emplace(slot);
  std::vector<int64_t> shape;
  std::vector<int64_t> extents;
  std::vector<Index> offset;
  for (const size_t axis : rows.dims) {
    const bool across = axis == rows.tiled_outer;
    extents.push_back(at.extent[axis]);
    shape.push_back(at.extent[axis] * (across ? 1 : tiles(axis)));
    offset.push_back(across ? Index(0) : at.origin[axis] - start[axis]);
  }
  if (added)
    found->second = b.shared(slot == 0 ? "kept" : fmt::format("kept{}", slot), Dtype::f32, shape);
  return b.tile(found->second, offset, extents);
}

void RowProgram::take(size_t pass) {
  for (const auto& [id, slot] : rows.passes[pass].kept) {
    const TensorId to = whole(slot_name(slot));
    if (!in_pieces) b.copy(keep(slot), b.all(to));
    bound[id] = b.value(to);
  }
}
}  // namespace warploom::kernels
