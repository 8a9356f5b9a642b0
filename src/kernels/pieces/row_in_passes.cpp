// Rows that are walked over tile by tile, once for each of their passes.
#include <fmt/format.h>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>
#include "base/value_op.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/row_kernel.h"
#include "kernels/pieces/row_split_squares.h"
#include "loopnest/loop_nest.h"
#include "tile/build.h"

namespace warploom::kernels {
namespace {
class Passes {
 public:
  Passes(RowKernel& kernel, bool keeps)
      : kernel_(kernel),
        keeps_(keeps),
        squares_(kernel, keeps),
        splits_softmax_(keeps && kernel.split_softmax) {}

  void run() {
    terms_.compute_scalars(0);
    for (int set = 0; keeps_ && set < rows_.kept_sets(); ++set)
      terms_.set_register(set);
    for (size_t pass = reduce_two_at_once(); pass < last_; ++pass)
      reduce(pass);
    terms_.compute_scalars(last_);
    if (splits_softmax_) kernel_.split_softmax.before_last_pass();
    if (!rows_.passes[last_].roots(rows_).empty())
      terms_.for_each_tile([&](const Index&) { write_tile(); });
    tiles_.go_to_first_tile();
    terms_.store_scalars();
  }

 private:
  // How many passes one walk over the row did.
  size_t reduce_two_at_once() {
    if (keeps_) return 0;
    if (rows_.online_softmax && !tiles_.options.compensated_sums) {
      reduce_online_softmax(kernel_);
      return 2;
    }
    if (rows_.index_of_extreme >= 0) {
      reduce_index_of_extreme(kernel_);
      return 2;
    }
    return 0;
  }

  // What each thread combines of a reduction; and where sums are compensated what rounding lost.
  struct ThreadResult {
    int reduction;
    TensorId sum;
    std::optional<TensorId> lost;
  };

  void reduce(size_t pass) {
    const bool by_own_mean = squares_ && pass == 1;
    if (!by_own_mean) terms_.compute_scalars(pass);
    const auto results = start_results(pass);
    terms_.for_each_tile([&](const Index&) {
      if (keeps_ && pass > 0) terms_.load_kept(pass - 1);
      if (keeps_ && !by_own_mean) keep(pass);
      for (const ThreadResult& result : results)
        add(result, by_own_mean ? squares_.off_own_mean() : operand(result.reduction));
    });
    terms_.set_source({});
    if (pass + 1 == last_) load_first_ahead();
    for (const ThreadResult& result : results)
      join_threads(result);
    if (splits_softmax_ && pass == 0) kernel_.split_softmax.after_maximum();
    if (splits_softmax_ && pass == 1) kernel_.split_softmax.after_sum();
    if (squares_ && pass == 0) squares_.after_sum();
    if (by_own_mean) squares_.join();
  }

  std::vector<ThreadResult> start_results(size_t pass) {
    std::vector<ThreadResult> results;
    for (const int reduction : rows_.passes[pass].reduces) {
      const ValueOp op = rows_.term(reduction).op;
      const size_t number = results.size();
      const bool compensated = tiles_.options.compensated_sums && op == ValueOp::add;
      std::optional<TensorId> lost;
      if (compensated) lost = tiles_.tile_reg(fmt::format("lost{}", number));
      const TensorId sum = tiles_.tile_reg(fmt::format("lanes{}", number));
      b_.fill(sum, identity_of(op));
      if (lost) b_.fill(*lost, 0);
      results.push_back({reduction, sum, lost});
    }
    return results;
  }

  Value operand(int reduction) {
    return terms_.masked(reduction, terms_.compute(rows_.term(reduction).operands[0]));
  }

  void add(const ThreadResult& result, const Value& each) {
    const Value sum = b_.value(result.sum);
    if (!result.lost) {
      b_.map(result.sum, tile::apply(rows_.term(result.reduction).op, {sum, each}));
      return;
    }
    const TensorId term = tiles_.tile_reg("term");
    const TensorId total = tiles_.tile_reg("total");
    b_.map(term, each);
    b_.map(total, sum + b_.value(term));
    const Value added = b_.value(total) - sum;
    const Value lost = b_.value(*result.lost);
    b_.map(*result.lost, lost + (b_.value(term) - added));
    b_.map(result.sum, b_.value(total));
  }

  void join_threads(const ThreadResult& result) {
    if (result.lost) {
      const Value lost = tile::finite_or_0(b_.value(*result.lost));
      b_.map(result.sum, b_.value(result.sum) + lost);
    }
    if (squares_ || splits_softmax_)
      kernel_.all_reduce.reduce_own_part(result.reduction, result.sum);
    else
      kernel_.all_reduce.reduce(result.reduction, result.sum);
  }

  // What the pass keeps, of which what the pass before did not goes to scratch.
  void keep(size_t pass) {
    terms_.keep(pass, false);
    if (tiles_.options.unrolled) return;
    for (const auto& [term, set] : rows_.passes[pass].kept)
      if (pass == 0 || !rows_.passes[pass - 1].kept.contains(term))
        b_.copy(b_.all(terms_.set_register(set)), terms_.scratch_of(set));
  }

  // The pass whose kept terms the last pass goes on from.
  size_t kept_by() const { return squares_ ? 0 : last_ - 1; }

  void write_tile() {
    terms_.bind_all(ready_);
    load_ahead(tiles_.unrolled_tile() + 1);
    if (keeps_) terms_.load_kept(kept_by());
    if (splits_softmax_) kernel_.split_softmax.rescale_kept();
    terms_.store_rows();
  }

  // The loads of the last pass for an unrolled tile: of the first before CTAs exchange results, of
  // each next before the one before it is stored.
  void load_first_ahead() {
    const auto load_first = [this] { load_ahead(0); };
    if (tiles_.options.exchange_in_memory)
      kernel_.all_reduce.do_first_while_waiting(load_first);
    else
      load_first();
  }

  void load_ahead(int64_t tile) {
    if (!tiles_.options.unrolled || tile == tiles_.tiles_of_a_row()) return;
    tiles_.at_unrolled_tile(tile, [&] {
      ready_.clear();
      for (const int id : terms_.loads_of_last_pass(kept_by())) {
        const RowTerm& load = rows_.term(id);
        const std::string name = fmt::format("in{}_{}", load.load, tile % 2);
        const TensorId to = tiles_.reg(name, load.varies, rows_.loaded(load).dtype);
        terms_.read(id, to);
        ready_[id] = b_.value(to);
      }
    });
  }

  RowKernel& kernel_;
  RowTiles& tiles_ = kernel_.tiles;
  RowTerms& terms_ = kernel_.terms;
  const RowReduction& rows_ = kernel_.rows();
  tile::Builder& b_ = kernel_.tiles.b;
  const size_t last_ = rows_.passes.size() - 1;
  const bool keeps_;
  RowSplitSquares squares_;
  const bool splits_softmax_;
  RowTerms::Bindings ready_;  // of the last pass's loads, for the tile that comes
};
}  // namespace

void compute_in_passes(RowKernel& kernel, bool keeps) {
  Passes(kernel, keeps).run();
}
}  // namespace warploom::kernels
