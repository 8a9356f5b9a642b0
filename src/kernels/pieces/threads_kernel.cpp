#include "kernels/pieces/threads_kernel.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "kernels/config/configs.h"
#include "kernels/family.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/epilogue.h"
#include "kernels/pieces/promotion.h"
#include "kernels/pieces/tile_scheduler.h"
#include "loopnest/contraction.h"
#include "loopnest/loop_nest.h"
#include "loopnest/pool.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::kernels {
namespace {
using tile::Tile;

// Added to the index along an axis it puts every coordinate that steps along it outside its tensor.
int64_t outside(const Contraction& c) {
  int64_t far = 1;
  for (const Access* access : {&c.nest.loads[c.a], &c.nest.loads[c.b]})
    for (size_t d = 0; d < access->at.size(); ++d) {
      const int64_t reach = access->shape[d] + std::abs(access->at[d].begin);
      far = std::max(far, 2 * reach);
    }
  return far;
}

// A tile with all places of a pool's windows.
TileCoord with_places(TileCoord tile, const PooledContraction* pooled) {
  if (pooled == nullptr) return tile;
  for (const size_t axis : pooled->pool.places)
    tile.extent[axis] = pooled->c.nest.axes[axis];
  return tile;
}
}  // namespace

ThreadsKernel::ThreadsKernel(const Contraction& contraction, const PooledContraction* pooled,
                             const Access& a, std::optional<size_t> second, const ThreadsMath& math,
                             const MatmulMmaConfig& s)
    : c_(contraction),
      pooled_(pooled),
      nest_(contraction.nest),
      s_(s),
      math_(math),
      columns_(s.block_n * s.tile_p),
      depth_(s.block_k * s.filter_taps_per_stage),
      result_(axes_of({c_.row, second, c_.column})),
      summed_(stage_axes(c_)),
      tile_(nest_, {{c_.row, s.block_m},
                    {c_.column, s.block_n},
                    {second, s.tile_p},
                    {c_.channel, s.block_k}}),
      order_{c_, with_places(tile_, pooled), s.raster_group_m},
      stage_(order_.at(tile::block(0))),
      global_a_(draft_, "A", nest_, a, axes_of({c_.row, c_.channel})),
      global_b_(draft_, "B", nest_, nest_.loads[c_.b], axes_of({c_.channel, second, c_.column})) {
  stage_.extent = tile_.extent;
  tile_ = stage_;
  if (c_.window) stage_.extent[*c_.window] = s.filter_taps_per_stage;
}

void ThreadsKernel::add_to(Family::Programs& out) {
  t_.grid(order_.count()).warps(as_int(s_.warps));
  const Dtype a = t_.dtype_of(draft_.named.at("A"));
  const Dtype b = nest_.loads[c_.b].dtype;
  const int64_t stages = stage_.count(nest_, summed_);
  const bool splits = math_.precision.terms > 1;
  const bool chains = math_.promotes && math_.precision.operand == Dtype::f32;
  if (chains) stages_of_part_ = std::max<int64_t>(promotion::kLongestChain / depth_, 1);
  compensates_ = chains || (splits && promotion::compensates(stages, depth_));
  shared_a_ = t_.shared("a", a, {s_.block_m, depth_});
  add_places();
  a_ = t_.reg("fa", a, {s_.block_m, math_.k_step});
  b_ = t_.reg("fb", b, {math_.k_step, columns_});
  for (const Place& place : places_)
    t_.fill(place.acc, 0);
  if (compensates_) total_ = t_.reg("total", Dtype::f32, {s_.block_m, columns_});
  const size_t k = c_.channel.value_or(c_.k[0]);
  const auto [begin, end] = stage_.stages_within(c_.domain_constraints, k, 0, stages);
  for (int64_t stage = 0; stage + 1 < s_.stages; ++stage)
    produce(begin + stage);
  sum(begin, end);
  std::vector<TensorId> acc;
  for (const Place& place : places_)
    acc.push_back(place.acc);
  if (pooled_ != nullptr)
    store_pooled(draft_, *pooled_, acc, tile_, result_);
  else
    store(draft_, c_, acc[0], tile_, result_);
  draft_.finish(out);
}

// What lies in shared memory for each place, in the circular buffer of all, and in registers.
void ThreadsKernel::add_places() {
  const int64_t count = pooled_ == nullptr ? 1 : pooled_->pool.place_count();
  std::vector<TensorId> buffers = {shared_a_};
  for (int64_t i = 0; i < count; ++i) {
    Place place;
    if (pooled_ != nullptr) place.at = pooled_->pool.indices_of(i);
    place.b = t_.shared(KernelBuilder::name("b", i), nest_.loads[c_.b].dtype, {depth_, columns_});
    buffers.push_back(place.b);
    places_.push_back(std::move(place));
  }
  stages_ = t_.pipeline("pipe", as_int(s_.stages), buffers);
  const Dtype sums = math_.precision.accumulator();
  const std::vector<int64_t> shape = {s_.block_m, columns_};
  for (int64_t i = 0; i < count; ++i) {
    Place& place = places_[as_size(i)];
    place.acc = t_.reg(KernelBuilder::name("acc", i), c_.scales.empty() ? sums : Dtype::f32, shape);
    // Parts that carry nothing over to the next stage are used again, place after place.
    const bool shares_part = i > 0 && math_.promotes && !compensates_;
    place.part = place.acc;
    if (shares_part)
      place.part = places_[0].part;
    else if (math_.promotes)
      place.part = t_.reg(KernelBuilder::name("part", i), sums, shape);
  }
}

// Stages go through the filter, taps of its last axis together, at one set of channels after
// another.
void ThreadsKernel::produce(const Index& k) {
  stage_.place(nest_, summed_, k);
  tile_.origin = stage_.origin;
  t_.produce(stages_, [&] { produce_taps(); });
}

void ThreadsKernel::produce_taps() {
  const int64_t taps = s_.filter_taps_per_stage;
  const int64_t channels = s_.block_k;
  const Index first = c_.window ? tile_.origin[*c_.window] : Index(0);
  const int64_t places = c_.window ? nest_.axes[*c_.window] : 1;
  for (int64_t tap = 0; tap < taps; ++tap) {
    if (c_.window) {
      const Index place = first + tap;
      // Places beyond the filter lie outside every tensor.
      const bool over = places % taps != 0;
      tile_.origin[*c_.window] = over ? place + place / places * outside(c_) : place;
    }
    const int64_t at = tap * channels;
    t_.copy(global_a_.at(tile_), t_.tile(shared_a_, {0, at}, {s_.block_m, channels}));
    for (const Place& place : places_) {
      for (size_t i = 0; i < place.at.size(); ++i)
        tile_.origin[pooled_->pool.places[i]] = place.at[i];
      t_.copy(global_b_.at(tile_), t_.tile(place.b, {at, 0}, {channels, columns_}));
    }
  }
  if (pooled_ == nullptr) return;
  for (const size_t axis : pooled_->pool.places)
    tile_.origin[axis] = 0;
}

void ThreadsKernel::sum(const Index& begin, const Index& end) {
  for (const Place& place : places_)
    if (compensates_) t_.fill(place.part, 0);
  t_.for_("k", begin, end, 1, [&](const Index& k) {
    TileCoord here = tile_;
    here.place(nest_, summed_, k);
    const std::vector<TensorId> scales = load_scales(draft_, c_, here, result_);
    const bool is_part = math_.promotes && stages_of_part_ == 1;
    t_.consume(stages_, 0, [&] {
      for (const Place& place : places_) {
        if (math_.promotes && !compensates_) t_.fill(place.part, 0);
        multiply_stage(place);
        if (is_part && places_.size() > 1) promote(place, scales);
      }
    });
    if (is_part && places_.size() == 1) promote(places_[0], scales);
    if (stages_of_part_ > 1)
      t_.if_less(stages_of_part_ - 2, k % stages_of_part_, [&] {
        for (const Place& place : places_)
          promote(place, scales);
      });
    produce(k + (s_.stages - 1));
  });
  if (stages_of_part_ <= 1) return;
  // What the last whole part left, or the part that has not ended.
  for (const Place& place : places_)
    t_.map(place.acc, t_.value(place.acc) + t_.value(place.part));
}

void ThreadsKernel::promote(const Place& place, const std::vector<TensorId>& scales) {
  const bool splits = math_.precision.terms > 1;
  const auto overflow = splits ? promotion::Overflow::unasked : promotion::Overflow::stays;
  if (compensates_)
    promotion::add_compensated(t_, place.acc, place.part, total_, overflow);
  else
    t_.map(place.acc, promoted(draft_, place.acc, place.part, scales));
}

// part += fa · fb: as they are, rounded to tf32, or as three products of two-part splits.
void ThreadsKernel::multiply_stage(const Place& place) {
  const int64_t step = math_.k_step;
  for (int64_t inner = 0; inner < depth_; inner += step) {
    const Tile from_a = t_.tile(shared_a_, {0, inner}, {s_.block_m, step});
    const Tile from_b = t_.tile(place.b, {inner, 0}, {step, columns_});
    t_.copy(from_a, t_.all(a_));
    t_.copy(from_b, t_.all(b_));
    if (math_.precision.operand == Dtype::tf32)
      multiply_tf32(place);
    else
      t_.mma(place.part, t_.all(a_), t_.all(b_));
  }
}

void ThreadsKernel::multiply_tf32(const Place& place) {
  const std::vector<int64_t> rows = {s_.block_m, math_.k_step};
  const std::vector<int64_t> columns = {math_.k_step, columns_};
  const TensorId a = draft_.reg("fa_tf32", Dtype::tf32, rows);
  const TensorId b = draft_.reg("fb_tf32", Dtype::tf32, columns);
  t_.copy(t_.all(a_), t_.all(a));
  t_.copy(t_.all(b_), t_.all(b));
  if (math_.precision.terms > 1) {
    const TensorId a_rest = draft_.reg("fa_rest", Dtype::tf32, rows);
    const TensorId b_rest = draft_.reg("fb_rest", Dtype::tf32, columns);
    t_.map(a_rest, t_.value(a_) - t_.value(a));
    t_.map(b_rest, t_.value(b_) - t_.value(b));
    t_.mma(place.part, t_.all(a_rest), t_.all(b));
    t_.mma(place.part, t_.all(a), t_.all(b_rest));
  }
  t_.mma(place.part, t_.all(a), t_.all(b));
}
}  // namespace warploom::kernels
