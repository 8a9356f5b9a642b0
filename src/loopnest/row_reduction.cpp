#include "loopnest/row_reduction.h"
#include <numeric>

namespace warploom::loopnest {
namespace {
class Reader {
 public:
  explicit Reader(LoopNest nest) { rows_.nest = std::move(nest); }

  std::optional<RowReduction> read() {
    if (!find_axes() || !find_terms()) return std::nullopt;
    find_passes();
    choose_fills();
    find_pairs();
    return std::move(rows_);
  }

 private:
  // Of a type to compute with, and each dimension a step of one along an axis of its own.
  static bool plain(const Access& access) {
    std::set<size_t> axes;
    for (const Affine& dim : access.at) {
      const auto others = dim.steps.size() - at(static_cast<int>(std::ranges::count(dim.steps, 0)));
      for (size_t i = 0; i < dim.steps.size(); ++i)
        if (dim.steps[i] != 0 && (dim.steps[i] != 1 || others > 1 || !axes.insert(i).second))
          return false;
    }
    return is_computed(access.dtype);
  }

  bool find_axes() {
    LoopNest& nest = rows_.nest;
    const std::vector<bool> reduced = nest.reduced();
    for (size_t i = 0; i < nest.axes.size(); ++i)
      (reduced[i] ? rows_.row : rows_.outer).push_back(i);
    if (nest.scan() || nest.has_integers() || rows_.row.empty() || std::ranges::count(nest.axes, 0))
      return false;
    for (const Expr& value : nest.values)
      if (value.kind == Kind::reduce &&
          (!reduce_op(value.op) || value.axes.size() != rows_.row.size()))
        return false;
    for (const Access& load : nest.loads)
      if (!plain(load)) return false;
    const auto used = [](const Access& access,
                         const std::vector<size_t>& axes) {  // how many of them
      return std::ranges::count_if(axes, [&](size_t axis) { return access.uses(axis); });
    };
    const auto outer = std::ssize(rows_.outer);
    const auto row = std::ssize(rows_.row);
    for (const auto& [value, place] : nest.outputs)
      if (!plain(place) || used(place, rows_.outer) != outer ||
          used(place, rows_.row) != (rows_.along(place) ? row : 0))
        return false;

    // A load along all axes says how they lie in memory; without one this is a contraction, which
    // reads too much row by row.
    const auto all = std::ranges::find_if(nest.loads, [&](const Access& load) {
      return used(load, rows_.outer) + used(load, rows_.row) == outer + row;
    });
    if (all == nest.loads.end()) return false;
    const auto stride = [&, all = *all](size_t axis) { return all.stride(axis); };
    std::ranges::stable_sort(rows_.row, [&](auto a, auto b) { return stride(a) > stride(b); });
    rows_.across = rows_.outer.empty() ? nest.axes.size() : rows_.outer.back();
    for (const size_t axis : rows_.outer)
      if (stride(axis) == 1) {
        rows_.across = axis;
        rows_.lanes_outside = true;
      }
    rows_.dims = rows_.row;
    rows_.dims.insert(rows_.lanes_outside ? rows_.dims.end() : rows_.dims.begin(), rows_.across);
    return true;
  }

  int add(Expr value) {
    const auto old =
        std::ranges::find_if(rows_.terms, [&](const RowTerm& term) { return term.same(value); });
    if (old != rows_.terms.end()) return static_cast<int>(old - rows_.terms.begin());
    RowTerm term{std::move(value)};
    for (const int operand : term.operands) {
      RowTerm& from = rows_.terms[at(operand)];
      ++from.uses;
      term.phase = std::max(term.phase, from.phase);
      if (term.kind == Kind::apply) term.nodes = std::min(term.nodes + from.nodes, 1 << 20);
    }
    term.phase += term.kind == Kind::reduce;
    for (const size_t axis : rows_.row) term.along = term.along || term.varies[axis];
    rows_.terms.push_back(std::move(term));
    return static_cast<int>(rows_.terms.size()) - 1;
  }

  bool find_terms() {
    std::vector<int> of;
    std::vector<int> users(rows_.nest.values.size());
    for (const Expr& value : rows_.nest.values)
      for (const int operand : value.operands) ++users[at(operand)];
    for (size_t v = 0; v < rows_.nest.values.size(); ++v) {
      Expr value = rows_.nest.values[v];
      for (int& operand : value.operands) operand = of[at(operand)];
      for (size_t i = 0; value.kind == Kind::index && i < value.at.steps.size(); ++i)
        if (value.at.steps[i] != 0 && std::ranges::count(rows_.dims, i) == 0) return false;
      if (value.kind == Kind::apply && value.op == ValueOp::div &&
          rows_.term(value.operands[0]).along) {
        const RowTerm& divisor = rows_.term(value.operands[1]);
        Expr inverse{.kind = Kind::apply,
                     .op = ValueOp::reciprocal,
                     .operands = {value.operands[1]},
                     .varies = divisor.varies};
        if (divisor.kind == Kind::constant)
          inverse = {.value = 1 / divisor.value, .varies = divisor.varies};
        if (!divisor.along) {
          value.op = ValueOp::mul;
          value.operands[1] = add(std::move(inverse));
        }
      }
      // What is rounded last, is when it is stored.
      of.push_back(value.kind == Kind::round && users[v] == 0 ? value.operands[0]
                                                              : add(std::move(value)));
    }
    for (const LoopNest::Output& output : rows_.nest.outputs)
      rows_.results.push_back(of[at(output.value)]);
    return true;
  }

  // Whether computing `from` reads `what`, terms in `known` being at hand.
  bool reads(int from, int what, const std::map<int, int>& known) const {
    std::set<int> seen;
    const auto visit = [&](const auto& self, int t) -> bool {
      if (t == what) return true;
      if (!seen.insert(t).second || known.contains(t) || rows_.term(t).kind == Kind::reduce)
        return false;
      return std::ranges::any_of(rows_.term(t).operands, [&](int arg) { return self(self, arg); });
    };
    return visit(visit, from);
  }

  void find_passes() {
    for (int t = 0; t < static_cast<int>(rows_.terms.size()); ++t)
      if (rows_.term(t).kind == Kind::reduce) {
        const size_t pass = at(rows_.term(t).phase) - 1;
        rows_.passes.resize(std::max(rows_.passes.size(), pass + 1));
        rows_.passes[pass].reduces.push_back(t);
      }
    rows_.passes.emplace_back();

    constexpr size_t kNever = 1000;
    std::vector<size_t> first(rows_.terms.size(), kNever);  // the pass that computes a term
    for (size_t p = 0; p < rows_.passes.size(); ++p) {
      const auto mark = [&](const auto& self, int t) -> void {
        if (!rows_.term(t).along || first[at(t)] <= p) return;
        first[at(t)] = p;
        for (const int arg : rows_.term(t).operands) self(self, arg);
      };
      for (const int root : rows_.passes[p].roots(rows_)) mark(mark, root);
    }
    std::map<int, int> before;  // held by the pass before
    for (size_t p = 0; p + 1 < rows_.passes.size(); ++p) {
      std::map<int, int> held;
      std::set<int> seen;
      const auto stop = [&](const auto& self, int t) -> void {
        if (!rows_.term(t).along || rows_.term(t).kind == Kind::index) return;
        if (!seen.insert(t).second) return;
        if (first[at(t)] <= p)
          held.emplace(t, -1);
        else
          for (const int arg : rows_.term(t).operands) self(self, arg);
      };
      for (size_t q = p + 1; q < rows_.passes.size(); ++q)
        for (const int root : rows_.passes[q].roots(rows_)) stop(stop, root);
      // A slot: the one that it had; else a new one or that of a term which nobody reads any more,
      // but perhaps it.
      std::map<int, int> known = before;
      std::vector<int> computed = rows_.passes[p].roots(rows_);
      for (const auto& [t, slot] : held) computed.push_back(t);
      for (auto& [t, slot] : held)
        if (const auto old = before.find(t); old != before.end()) slot = old->second;
      for (auto& [t, slot] : held) {
        const auto taken = [&, t = t](int number) {
          for (const auto& [other, its] : held)
            if (its == number && other != t) return true;
          for (const auto& [old, its] : before)
            for (const int later : computed)
              if (its == number && later > t && reads(later, old, known)) return true;
          return false;
        };
        known.emplace(t, slot);
        if (slot < 0)
          for (slot = 0; taken(slot);) ++slot;
      }
      before = rows_.passes[p].held = std::move(held);
    }
  }

  using Past = std::map<int, std::optional<double>>;  // of terms that were asked for

  // A term past the row's end, where loads along all of the row give `fill`: a number; NaN: some
  // finite one; nothing: anything.
  std::optional<double> past(int t, double fill, Past& known) const {
    if (const auto found = known.find(t); found != known.end()) return found->second;
    return known[t] = worked_out(t, fill, known);
  }

  std::optional<double> worked_out(int t, double fill, Past& asked) const {
    constexpr double kSome = std::numeric_limits<double>::quiet_NaN();
    const RowTerm& term = rows_.term(t);
    if (term.kind == Kind::constant) return term.value;
    if (term.kind == Kind::load) {
      const Access& load = rows_.nest.loads[at(term.load)];
      return ends_outside(load) ? rounded(load.dtype, fill) : kSome;  // integers hold no infinity
    }
    if (term.kind == Kind::round) return past(term.operands[0], fill, asked);
    if (term.kind != Kind::apply) return kSome;
    std::array<double, 3> args = {0, 0, 0};
    bool known = true;
    bool infinite = false;
    for (size_t i = 0; i < term.operands.size(); ++i) {
      const auto arg = past(term.operands[i], fill, asked);
      if (!arg) return std::nullopt;
      args[i] = *arg;
      known = known && !std::isnan(*arg);
      infinite = infinite || std::isinf(*arg);
    }
    const auto [a, b, c] = args;
    if (known) {
      const double out = warploom::apply(term.op, a, b, c);
      return std::isnan(out) ? std::nullopt : std::optional(out);
    }
    if (!infinite) return term.op == ValueOp::mul && (a == 0 || b == 0) ? 0 : kSome;
    if (term.op == ValueOp::add || term.op == ValueOp::sub)
      return std::isinf(a) ? a : term.op == ValueOp::add ? b : -b;
    return std::nullopt;
  }

  // Whether what tiles read past the row's end lies outside the tensor.
  bool ends_outside(const Access& load) const {
    return load.inside &&
           std::ranges::all_of(rows_.row, [&](size_t axis) { return load.uses(axis); });
  }

  void choose_fills() {
    double chosen = 0;
    ptrdiff_t fewest = std::ssize(rows_.terms) + 1;
    const auto needs_mask = [&](const RowTerm& term, double fill) {
      Past known;
      return term.kind == Kind::reduce &&
             past(term.operands[0], fill, known) != identity_of(term.op);
    };
    for (const double fill : {0.0, -HUGE_VAL, HUGE_VAL}) {
      const auto masks =
          std::ranges::count_if(rows_.terms, [&](const auto& t) { return needs_mask(t, fill); });
      if (masks < fewest) {
        fewest = masks;
        chosen = fill;
      }
    }
    for (RowTerm& term : rows_.terms) term.masked = needs_mask(term, chosen);
    for (const Access& load : rows_.nest.loads)
      rows_.fills.push_back(load.inside ? chosen : load.fill);
  }

  // The operands of a term, where it is this operation.
  std::vector<int> made_by(ValueOp op, int t) const {
    const RowTerm& term = rows_.term(t);
    return term.kind == Kind::apply && term.op == op ? term.operands : std::vector<int>{};
  }

  bool is(int t, double value) const {
    return rows_.term(t).kind == Kind::constant && rows_.term(t).value == value;
  }

  // The index of where(where(x == extreme, 1, where(x == x, 0, 1)), index, beyond), the least of
  // which is the first place.
  int first_place(const RowTerm& first, int extreme, const RowTerm& second) const {
    const int x = first.operands[0];
    const bool extremes = first.op == ValueOp::max || first.op == ValueOp::min;
    const auto chosen = made_by(ValueOp::where, second.operands[0]);
    if (!extremes || second.op != ValueOp::min || chosen.empty() ||
        rows_.term(chosen[1]).kind != Kind::index)
      return -1;
    if (rows_.row.size() != 1 || rows_.term(chosen[1]).at.steps[rows_.row[0]] <= 0)
      return -1;  // lanes walk from the first on
    const auto found = made_by(ValueOp::where, chosen[0]);
    if (found.empty() || made_by(ValueOp::equal, found[0]) != std::vector{x, extreme} ||
        !is(found[1], 1))
      return -1;
    const auto number = made_by(ValueOp::where, found[2]);
    const bool numbers = !number.empty() && made_by(ValueOp::equal, number[0]) == std::vector{x, x};
    return numbers && is(number[1], 0) && is(number[2], 1) &&
                   rows_.term(chosen[2]).kind == Kind::constant
               ? chosen[1]
               : -1;
  }

  // Passes 0 and 1 of one reduction each, the second over what is made of x and a number:
  // RowReduction::joint, first_place and spread.
  void find_pairs() {
    const auto& passes = rows_.passes;
    if (passes.size() < 3 || passes[0].reduces.size() != 1 || passes[1].reduces.size() != 1) return;
    const int number = passes[0].reduces[0];
    const RowTerm& first = rows_.term(number);
    const RowTerm& second = rows_.term(passes[1].reduces[0]);
    const RowTerm& made = rows_.term(second.operands[0]);
    rows_.first_place = first_place(first, number, second);
    if (second.op != ValueOp::add || made.kind != Kind::apply) return;
    const RowTerm& off = rows_.term(made.operands[0]);
    if (off.kind != Kind::apply || off.op != ValueOp::sub || off.operands[0] != first.operands[0])
      return;
    const auto stored = [&](int t) { return std::ranges::count(rows_.results, t) > 0; };
    // Not where one of them is a result: kernels bend them for rows of -infinity.
    rows_.joint = first.op == ValueOp::max &&
                  (made.op == ValueOp::exp || made.op == ValueOp::fast_exp) &&
                  off.operands[1] == number && !stored(number) && !stored(passes[1].reduces[0]) &&
                  !stored(second.operands[0]);
    rows_.spread = passes.size() == 3 && first.op == ValueOp::add && made.op == ValueOp::mul &&
                   made.operands[0] == made.operands[1] && !rows_.term(off.operands[1]).along;
  }

  RowReduction rows_;
};
}  // namespace

std::vector<int> RowPass::roots(const RowReduction& rows) const {
  std::vector<int> out;
  for (const int reduce : reduces) out.push_back(rows.term(reduce).operands[0]);
  for (size_t i = 0; reduces.empty() && i < rows.results.size(); ++i)
    if (rows.along(rows.nest.outputs[i].place)) out.push_back(rows.results[i]);
  return out;
}

int64_t RowReduction::count(const std::vector<size_t>& axes) const {
  return std::accumulate(axes.begin(), axes.end(), int64_t{1},
                         [&](auto n, auto axis) { return n * size(axis); });
}

int64_t RowReduction::slots() const {
  int count = 0;
  for (const RowPass& pass : passes)
    for (const auto& [id, slot] : pass.held) count = std::max(count, slot + 1);
  return count;
}

bool RowReduction::fills_tile(const std::vector<bool>& varies) const {
  return std::ranges::all_of(dims,
                             [&](size_t axis) { return axis >= varies.size() || varies[axis]; });
}

std::optional<RowReduction> read_rows(const std::vector<LoopNest>& nests) {
  const auto gathers = [](const Access& load) { return load.lookup_dim >= 0; };
  if (nests.size() != 1 || std::ranges::any_of(nests[0].loads, gathers)) return std::nullopt;
  return Reader(nests[0]).read();
}
}  // namespace warploom::loopnest
