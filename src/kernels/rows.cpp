#include "kernels/rows.h"
#include <numeric>
#include "kernels/match_chain.h"
namespace warploom::kernels {
namespace {
using Kind = RowTerm::Kind;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::size_t at(int id) { return static_cast<std::size_t>(id); }

// The axis that a dimension steps along, by one; -1: none.
std::optional<int> axis_of(const Affine& affine) {
  int axis = -1;
  for (std::size_t i = 0; i < affine.steps.size(); ++i) {
    if (affine.steps[i] == 0) continue;
    if (axis >= 0 || affine.steps[i] != 1) return std::nullopt;
    axis = static_cast<int>(i);
  }
  return axis;
}

class Reader {
 public:
  explicit Reader(Nest nest) { rows_.nest = std::move(nest); }

  std::optional<Rows> read() {
    if (!find_axes() || !find_terms()) return std::nullopt;
    find_passes();
    choose_fills();
    find_joint();
    return std::move(rows_);
  }

 private:
  bool in_row(std::size_t axis) const { return std::find(rows_.row.begin(), rows_.row.end(), axis) != rows_.row.end(); }

  bool find_axes() {
    Nest& nest = rows_.nest;
    const NestValue* reduce = nullptr;
    for (const NestValue& value : nest.values) {
      if (value.kind != NestValue::Kind::reduce) continue;
      if (!reduce_op(value.op) || (reduce && reduce->axes != value.axes)) return false;
      reduce = &value;
    }
    if (!reduce || reduce->axes.empty()) return false;
    rows_.row.assign(reduce->axes.begin(), reduce->axes.end());
    for (std::size_t i = 0; i < nest.axes.size(); ++i)
      if (!in_row(i)) rows_.outer.push_back(i);

    // The load with the most elements says how axes lie in memory.
    std::vector<std::int64_t> stride(nest.axes.size() + 1, 0);
    std::int64_t most = 0;
    for (const Access& load : nest.loads) {
      if (graph::element_count(load.shape) <= most) continue;
      most = graph::element_count(load.shape);
      std::fill(stride.begin(), stride.end(), 0);
      for (std::size_t d = 0; d < load.at.size(); ++d)
        if (const auto axis = axis_of(load.at[d]); axis && *axis >= 0) stride[at(*axis)] = load.strides[d];
    }
    std::stable_sort(rows_.row.begin(), rows_.row.end(), [&](auto a, auto b) { return stride[a] > stride[b]; });
    rows_.across = rows_.outer.empty() ? nest.axes.size() : rows_.outer.back();
    for (const std::size_t axis : rows_.outer)
      if (stride[axis] == 1) rows_.across = axis, rows_.lanes_outside = true;
    rows_.dims = rows_.row;
    rows_.dims.insert(rows_.lanes_outside ? rows_.dims.end() : rows_.dims.begin(), rows_.across);

    const auto simple = [&](const Access& access) {
      std::vector<bool> seen(nest.axes.size(), false);
      for (const Affine& dim : access.at) {
        const auto axis = axis_of(dim);
        if (!axis || (*axis >= 0 && seen[at(*axis)])) return false;
        if (*axis >= 0) seen[at(*axis)] = true;
      }
      return is_computed_float(access.dtype);
    };
    for (const Access& load : nest.loads)
      if (!simple(load)) return false;
    for (const Nest::Output& output : nest.outputs) {
      if (!simple(output.place)) return false;
      bool whole = rows_.along(output.place) || !nest.values[at(output.value)].varies[rows_.row[0]];
      for (const std::size_t axis : rows_.outer) whole = whole && output.place.uses(axis);
      for (const std::size_t axis : rows_.row) whole = whole && output.place.uses(axis) == rows_.along(output.place);
      if (!whole) return false;
    }
    // Dimensions in the order of a tile's.
    const auto order = [&](Access& access) {
      const auto place = [&](std::size_t d) {
        const int axis = *axis_of(access.at[d]);
        return axis < 0 ? -1 : std::find(rows_.dims.begin(), rows_.dims.end(), at(axis)) - rows_.dims.begin();
      };
      std::vector<std::size_t> by(access.at.size());
      std::iota(by.begin(), by.end(), 0);
      std::stable_sort(by.begin(), by.end(), [&](auto a, auto b) {
        const bool tiled_a = place(a) < std::ssize(rows_.dims), tiled_b = place(b) < std::ssize(rows_.dims);
        return tiled_a != tiled_b ? tiled_b : tiled_a && place(a) < place(b);
      });
      const Access from = access;
      for (std::size_t d = 0; d < by.size(); ++d)
        access.at[d] = from.at[by[d]], access.shape[d] = from.shape[by[d]], access.strides[d] = from.strides[by[d]];
    };
    for (Access& load : nest.loads) order(load);
    for (Nest::Output& output : nest.outputs) order(output.place);
    return true;
  }

  int add(RowTerm term) {
    const std::size_t rank = rows_.nest.axes.size();
    term.varies.assign(rank, false);
    for (std::size_t i = 0; i < rank; ++i) {
      if (term.kind == Kind::load) term.varies[i] = rows_.nest.loads[at(term.load)].uses(i);
      if (term.kind == Kind::index) term.varies[i] = term.at.steps[i] != 0;
      for (const int arg : term.args)
        if (rows_.term(arg).varies[i]) term.varies[i] = term.kind != Kind::reduce || !in_row(i);
      term.along = term.along || (term.varies[i] && in_row(i));
    }
    for (const int arg : term.args) term.phase = std::max(term.phase, rows_.term(arg).phase);
    if (term.kind == Kind::reduce) ++term.phase;
    for (std::size_t i = 0; i < rows_.terms.size(); ++i) {
      const RowTerm& old = rows_.terms[i];
      if (old.kind == term.kind && old.value == term.value && old.load == term.load && old.at == term.at && old.op == term.op &&
          old.dtype == term.dtype && old.args == term.args)
        return static_cast<int>(i);
    }
    rows_.terms.push_back(std::move(term));
    return static_cast<int>(rows_.terms.size()) - 1;
  }

  int apply(ValueOp op, std::vector<int> args) {
    if (op == ValueOp::reciprocal && rows_.term(args[0]).kind == Kind::constant)
      return add({.kind = Kind::constant, .value = 1 / rows_.term(args[0]).value});
    if (op == ValueOp::div && rows_.term(args[0]).along && !rows_.term(args[1]).along)
      return apply(ValueOp::mul, {args[0], apply(ValueOp::reciprocal, {args[1]})});
    return add({.kind = Kind::apply, .op = op, .args = std::move(args)});
  }

  bool find_terms() {
    std::vector<int> of;
    for (std::size_t v = 0; v < rows_.nest.values.size(); ++v) {
      const NestValue value = rows_.nest.values[v];
      if (value.kind == NestValue::Kind::load) {
        of.push_back(add({.kind = Kind::load, .load = value.load}));
      } else if (value.kind == NestValue::Kind::index) {
        const auto axis = axis_of(value.at);
        if (!axis || (*axis >= 0 && std::find(rows_.dims.begin(), rows_.dims.end(), at(*axis)) == rows_.dims.end())) return false;
        of.push_back(add({.kind = Kind::index, .at = value.at}));
      } else if (value.kind == NestValue::Kind::reduce) {
        of.push_back(add({.kind = Kind::reduce, .op = value.op, .args = {of[at(value.operands[0])]}}));
      } else {
        std::vector<int> terms;
        for (const graph::Term& term : value.expression.terms) {
          if (term.kind == graph::Term::Kind::input) terms.push_back(of[at(value.operands[at(term.input)])]);
          else if (term.kind == graph::Term::Kind::constant) terms.push_back(add({.kind = Kind::constant, .value = term.value}));
          else {
            std::vector<int> args;
            for (int i = 0; i < arity_of(term.op); ++i) args.push_back(terms[at(term.args[at(i)])]);
            terms.push_back(apply(term.op, args));
          }
        }
        const bool used = std::any_of(rows_.nest.values.begin(), rows_.nest.values.end(), [&](const NestValue& other) {
          return std::find(other.operands.begin(), other.operands.end(), static_cast<int>(v)) != other.operands.end();
        });
        if (used && value.dtype != Dtype::f32) terms.push_back(add({.kind = Kind::round, .dtype = value.dtype, .args = {terms.back()}}));
        of.push_back(terms.back());
      }
    }
    for (const Nest::Output& output : rows_.nest.outputs) rows_.results.push_back(of[at(output.value)]);
    return true;
  }

  // Whether computing `from` reads `what`, terms in `known` being at hand.
  bool reads(int from, int what, const std::map<int, int>& known) const {
    if (from == what) return true;
    if (known.contains(from) || rows_.term(from).kind == Kind::reduce) return false;
    const auto& args = rows_.term(from).args;
    return std::any_of(args.begin(), args.end(), [&](int arg) { return reads(arg, what, known); });
  }

  void find_passes() {
    for (int t = 0; t < static_cast<int>(rows_.terms.size()); ++t)
      if (rows_.term(t).kind == Kind::reduce) {
        const std::size_t pass = at(rows_.term(t).phase) - 1;
        rows_.passes.resize(std::max(rows_.passes.size(), pass + 1));
        rows_.passes[pass].reduces.push_back(t);
      }
    rows_.passes.emplace_back();

    constexpr std::size_t kNever = 1000;
    std::vector<std::size_t> first(rows_.terms.size(), kNever);  // the pass that computes a term
    for (std::size_t p = 0; p < rows_.passes.size(); ++p) {
      const auto mark = [&](const auto& self, int t) -> void {
        if (!rows_.term(t).along || first[at(t)] <= p) return;
        first[at(t)] = p;
        for (const int arg : rows_.term(t).args) self(self, arg);
      };
      for (const int root : rows_.passes[p].roots(rows_)) mark(mark, root);
    }
    std::map<int, int> before;  // held by the pass before
    for (std::size_t p = 0; p + 1 < rows_.passes.size(); ++p) {
      std::map<int, int> held;
      const auto stop = [&](const auto& self, int t) -> void {
        if (!rows_.term(t).along || rows_.term(t).kind == Kind::index) return;
        if (first[at(t)] <= p) held.emplace(t, -1);
        else
          for (const int arg : rows_.term(t).args) self(self, arg);
      };
      for (std::size_t q = p + 1; q < rows_.passes.size(); ++q)
        for (const int root : rows_.passes[q].roots(rows_)) stop(stop, root);
      // Slots: its own if it was held before; else that of a term that nobody reads any more, perhaps for it the last time.
      std::map<int, int> known = before;
      std::vector<int> computed = rows_.passes[p].roots(rows_);
      for (const auto& [t, slot] : held) computed.push_back(t);
      std::sort(computed.begin(), computed.end());
      for (auto& [t, slot] : held) {
        if (const auto old = before.find(t); old != before.end()) slot = old->second;
        known[t] = slot;
      }
      for (auto& [t, slot] : held) {
        for (const auto& [old, its] : before) {
          bool taken = held.contains(old) || slot >= 0;
          for (const auto& [other, theirs] : held) taken = taken || theirs == its;
          for (const int later : computed) taken = taken || (later != t && later > t && reads(later, old, known));
          if (!taken) slot = its;
        }
        for (int free = 0; slot < 0; ++free) {
          const auto has = [&](const auto& pair) { return pair.second == free; };
          if (std::none_of(held.begin(), held.end(), has) && std::none_of(before.begin(), before.end(), has)) slot = free;
        }
      }
      before = rows_.passes[p].held = std::move(held);
    }
  }

  // A term past the row's end, where full loads give `fill`; nothing if it is not known, but finite.
  std::optional<double> past(int t, double fill) const {
    const RowTerm& term = rows_.term(t);
    if (term.kind == Kind::constant) return term.value;
    if (term.kind == Kind::load) {
      const Access& load = rows_.nest.loads[at(term.load)];
      for (const std::size_t axis : rows_.row) {
        bool ends = false;
        for (std::size_t d = 0; d < load.at.size(); ++d)
          ends = ends || (load.at[d].steps[axis] == 1 && load.at[d].begin + rows_.size(axis) == load.shape[d]);
        if (!ends || !load.inside) return std::nullopt;
      }
      return fill;
    }
    if (term.kind == Kind::round) return past(term.args[0], fill);
    if (term.kind != Kind::apply) return std::nullopt;
    std::vector<std::optional<double>> args;
    for (const int arg : term.args) args.push_back(past(arg, fill));
    const auto is = [&](std::size_t i, double value) { return i < args.size() && args[i] == value; };
    const auto infinite = [&](std::size_t i) { return is(i, kInfinity) || is(i, -kInfinity); };
    std::optional<double> out;
    if (std::all_of(args.begin(), args.end(), [](const auto& arg) { return arg.has_value(); }))
      out = warploom::apply(term.op, *args[0], args.size() > 1 ? *args[1] : 0, args.size() > 2 ? *args[2] : 0);
    else if ((term.op == ValueOp::add || term.op == ValueOp::sub) && infinite(0)) out = args[0];
    else if (term.op == ValueOp::add && infinite(1)) out = args[1];
    else if (term.op == ValueOp::sub && infinite(1)) out = -*args[1];
    else if (term.op == ValueOp::mul && (is(0, 0) || is(1, 0))) out = 0;
    return out && std::isnan(*out) ? std::nullopt : out;
  }

  void choose_fills() {
    double chosen = 0;
    std::ptrdiff_t fewest = std::ssize(rows_.terms) + 1;
    const auto needs_mask = [&](const RowTerm& term, double fill) {
      return term.kind == Kind::reduce && past(term.args[0], fill) != identity_of(term.op);
    };
    for (const double fill : {0.0, -kInfinity, kInfinity}) {
      const auto masks = std::count_if(rows_.terms.begin(), rows_.terms.end(), [&](const auto& t) { return needs_mask(t, fill); });
      if (masks < fewest) fewest = masks, chosen = fill;
    }
    for (RowTerm& term : rows_.terms) term.masked = needs_mask(term, chosen);
    for (const Access& load : rows_.nest.loads) rows_.fills.push_back(load.inside ? chosen : load.fill);
  }

  void find_joint() {
    if (rows_.passes.size() < 3 || rows_.passes[0].reduces.size() != 1 || rows_.passes[1].reduces.size() != 1) return;
    const int high = rows_.passes[0].reduces[0];
    const RowTerm &top = rows_.term(high), &sum = rows_.term(rows_.passes[1].reduces[0]), &e = rows_.term(sum.args[0]);
    if (top.op != ValueOp::max || sum.op != ValueOp::add || e.kind != Kind::apply || e.op != ValueOp::exp) return;
    const RowTerm& difference = rows_.term(e.args[0]);
    rows_.joint = difference.kind == Kind::apply && difference.op == ValueOp::sub && difference.args[0] == top.args[0] &&
                  difference.args[1] == high;
  }

  Rows rows_;
};
}  // namespace
std::vector<int> RowPass::roots(const Rows& rows) const {
  std::vector<int> out;
  for (const int reduce : reduces) out.push_back(rows.term(reduce).args[0]);
  for (std::size_t i = 0; reduces.empty() && i < rows.results.size(); ++i)
    if (rows.along(rows.nest.outputs[i].place)) out.push_back(rows.results[i]);
  return out;
}

std::int64_t Rows::row_size() const {
  return std::accumulate(row.begin(), row.end(), std::int64_t{1}, [&](auto n, auto axis) { return n * size(axis); });
}
std::int64_t Rows::row_count() const {
  return std::accumulate(outer.begin(), outer.end(), std::int64_t{1}, [&](auto n, auto axis) { return n * size(axis); });
}
std::int64_t Rows::slots() const {
  int count = 0;
  for (const RowPass& pass : passes)
    for (const auto& [id, slot] : pass.held) count = std::max(count, slot + 1);
  return count;
}
bool Rows::along(const Access& output) const { return output.uses(row[0]); }

std::optional<Rows> read_rows(const graph::Graph& graph) {
  auto nest = nest_of(graph);
  return nest ? Reader(std::move(*nest)).read() : std::nullopt;
}
}  // namespace warploom::kernels
