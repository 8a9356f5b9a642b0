// RowProgram::in_passes: rows that are walked over tile by tile, once for each of their passes.
// Every lane keeps its own results; they are joined after the pass.
#include "kernels/row_program.h"

namespace warploom::kernels {
namespace {
using tile::ReduceOp;

struct Passes {
  RowProgram& p;
  const bool stays;  // what a pass holds
  const RowReduction& rows = p.rows;
  tile::Builder& b = p.b;
  const size_t last = rows.passes.size() - 1;
  const int64_t part = p.tiles(rows.row) * p.at.extent[rows.row.back()];
  // A block's own mean will do for its squared differences: how far it lies from the row's is added
  // when blocks meet, once for both.
  const bool spread = rows.centered_squares && stays && p.cluster > 1 &&
                      p.cluster* part == rows.row_size();
  const bool ahead = stays && p.ahead();
  std::map<int, Value> ready =
      {};  // what the last pass loads anew of a piece, before the one before it is stored

  void run() {
    p.settle(0);
    for (int slot = 0; stays && slot < rows.kept_sets(); ++slot) p.whole(p.slot_name(slot));
    size_t done = 0;
    if (!stays && rows.online_softmax && !p.compensated) {
      online_softmax();
      done = 2;
    } else if (!stays && rows.index_of_extreme >= 0) {
      online_place();
      done = 2;
    }
    for (; done < last; ++done) reduce(done);
    p.settle(last);
    if (ahead) p.go_ahead(last);
    if (!rows.passes[last].roots(rows).empty())
      p.walk([&](const Index&) {
        p.bound.insert(ready.begin(), ready.end());
        load_ahead(p.piece + 1);
        if (stays) p.take(spread ? 0 : last - 1);
        if (ahead) p.catch_up();
        p.store(true);
      });
    p.at.origin = p.start;
    p.store(false);
  }

 private:
  int first() const { return rows.passes[0].reduces[0]; }

  int second() const { return rows.passes[1].reduces[0]; }

  int operand(int reduction) const { return rows.term(reduction).operands[0]; }

  Value scaled(TensorId sum) const {
    return b.value(sum) * tile::constant(1.0 / static_cast<double>(part));
  }

  // The first pass's operand, in a register where its users are many.
  Value element() {
    const int x = operand(first());
    return p.masked(first(),
                    rows.term(x).kind == Kind::load ? p.compute(x) : b.value(p.put(x, "x")));
  }

  void declare_element() {
    if (const int x = operand(first()); rows.term(x).kind == Kind::load) p.register_of(x);
  }

  // A lane's sum is of exponentials of differences to its own maximum so far.
  void online_softmax() {
    const auto exp = [&](Value v) {
      return tile::apply(rows.term(operand(second())).op, {std::move(v)});
    };
    declare_element();
    const TensorId highest = p.whole("highest");
    const TensorId higher = p.whole("higher");
    const TensorId sums = p.whole("sums");
    b.fill(
        highest,
        std::numeric_limits<float>::lowest());  // finite: the difference of infinities is no number
    b.fill(sums, 0);
    p.walk([&](const Index&) {
      const Value v = element();
      b.map(higher, max(b.value(highest), v));
      b.map(sums,
            b.value(sums) * exp(b.value(highest) - b.value(higher)) + exp(v - b.value(higher)));
      b.map(highest, b.value(higher));
    });
    p.reduce(first(), highest);
    b.map(sums, b.value(sums) * exp(b.value(highest) - p.bound.at(first())));
    p.reduce(second(), sums);
  }

  // A lane's extreme so far goes along with its place.
  void online_place() {
    const ValueOp op = rows.term(first()).op;
    declare_element();
    const TensorId best = p.whole("best");
    const TensorId places = p.whole("places");
    p.go_along(0);
    b.fill(best, identity_of(op));
    b.map(places, p.at.value_at(rows.term(rows.index_of_extreme).at,
                                rows.dims));  // what all of a lane may be equal to
    p.walk([&](const Index&) {
      const Value v = element();
      const Value old = b.value(best);
      const Value beyond =
          op == ValueOp::max ? less(old, v) : less(v, old);  // a number equals itself
      const Value better =
          where(beyond, tile::constant(1), where(equal(v, v), tile::constant(0), equal(old, old)));
      b.map(places, where(better, p.compute(rows.index_of_extreme), b.value(places)));
      b.map(best, tile::apply(op, {old, v}));
    });
    p.reduce(first(), best);
    const auto outside = p.bound;
    p.bound[operand(first())] = b.value(best);
    p.bound[rows.index_of_extreme] = b.value(places);
    b.map(places, p.compute(operand(second())));
    p.bound = outside;
    p.reduce(second(), places);
  }

  void reduce(size_t pass) {
    const bool own_mean = spread && pass == 1;
    if (!own_mean) p.settle(pass);
    const auto& reduces = rows.passes[pass].reduces;
    std::vector<TensorId> lanes;
    std::vector<TensorId> lost;
    for (const int id : reduces) {
      const bool exact = p.compensated && rows.term(id).op == ValueOp::add;
      lost.push_back(exact ? p.whole(fmt::format("lost{}", lost.size())) : -1);
      lanes.push_back(p.whole(fmt::format("lanes{}", lanes.size())));
      b.fill(lanes.back(), identity_of(rows.term(id).op));
      if (exact) b.fill(lost.back(), 0);
    }
    p.walk([&](const Index&) {
      if (stays && pass > 0) p.take(pass - 1);
      if (stays && !own_mean) hold(pass);
      for (size_t i = 0; i < lanes.size(); ++i)
        add(reduces[i], lanes[i], lost[i],
            own_mean ? off_own_mean() : p.masked(reduces[i], p.compute(operand(reduces[i]))));
    });
    p.fetch = {};
    const auto load_first = [&] { load_ahead(0); };
    if (pass + 1 == last && p.in_memory)
      p.meanwhile.insert(p.meanwhile.begin(), load_first);
    else if (pass + 1 == last)
      load_first();
    for (size_t i = 0; i < lanes.size(); ++i) {
      if (lost[i] >= 0) b.map(lanes[i], b.value(lanes[i]) + tile::finite_or_0(b.value(lost[i])));
      p.reduce(reduces[i], lanes[i], spread || ahead);
    }
    if (ahead) p.go_ahead(pass);
    if (spread && pass == 0) {
      b.map(p.number("middle"), scaled(p.bound.at(first()).tensor));
      if (!p.in_memory) b.cluster_reduce(p.bound.at(first()).tensor, ReduceOp::sum);
    }
    if (own_mean) join_spreads();
  }

  // What the pass holds, of which what the pass before did not goes where it stays.
  void hold(size_t pass) {
    p.hold(pass, false);
    for (const auto& [id, slot] : rows.passes[pass].kept)
      if (!p.in_pieces && (pass == 0 || !rows.passes[pass - 1].kept.contains(id)))
        b.copy(b.all(p.whole(p.slot_name(slot))), p.keep(slot));
  }

  void add(int reduction, TensorId lane, TensorId lost, const Value& each) {
    const Value all = b.value(lane);
    if (lost < 0) return b.map(lane, tile::apply(rows.term(reduction).op, {all, each}));
    const TensorId term = p.whole("term");
    const TensorId total = p.whole("total");
    b.map(term, each);
    b.map(total, all + b.value(term));
    b.map(lost, b.value(lost) + (b.value(term) - (b.value(total) - all)));
    b.map(lane, b.value(total));
  }

  Value off_own_mean() {
    const Value off = p.compute(operand(first())) - b.value(p.number("middle"));
    return off * off;
  }

  // Σ (x - M)² over the row = Σ over blocks of their own + part · (own mean - M)².
  void join_spreads() {
    const TensorId sum = p.bound.at(first()).tensor;
    const TensorId squares = p.bound.at(second()).tensor;
    std::vector<TensorId> all = {p.number("middle"), squares};
    if (p.in_memory) {
      all = p.meet({sum, squares});
      b.reduce(sum, all[0], p.row_dim(), ReduceOp::sum);
      b.map(all[0], scaled(all[0]));
    }
    p.settle(1);
    const Value mean = p.compute(rows.term(operand(operand(second()))).operands[1]);
    b.map(all[0], b.value(all[0]) - mean);
    b.map(all[1], b.value(all[1]) + b.value(all[0]) * b.value(all[0]) *
                                        tile::constant(static_cast<double>(part)));
    if (p.in_memory)
      b.reduce(squares, all[1], p.row_dim(), ReduceOp::sum);
    else
      b.cluster_reduce(squares, ReduceOp::sum);
  }

  // For the last pass: the first piece before blocks meet, each next before the one before it is
  // stored.
  void load_ahead(int64_t piece) {
    if (!p.in_pieces || piece == p.tiles(rows.row)) return;
    const int64_t here = std::exchange(p.piece, piece);
    p.go_along(piece);
    ready.clear();
    for (const int id : p.last_loads(spread ? 0 : last - 1)) {
      const RowTerm& term = rows.term(id);
      const TensorId to = p.reg(fmt::format("in{}_{}", term.load, p.piece % 2), term.varies,
                                rows.loaded(term).dtype);
      p.read(term, to);
      ready[id] = b.value(to);
    }
    p.piece = here;
    p.go_along(here);
  }
};
}  // namespace

void RowProgram::in_passes(bool keep) {
  Passes{*this, keep}.run();
}
}  // namespace warploom::kernels
