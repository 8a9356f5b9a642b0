#include "kernels/pieces/im2win_kernel.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "kernels/config/configs.h"
#include "kernels/family.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/im2win_math.h"
#include "kernels/pieces/im2win_stage.h"
#include "kernels/pieces/operand_packing.h"
#include "loopnest/affine.h"
#include "loopnest/loop_nest.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::kernels {
namespace {
using tile::Tile;

constexpr int64_t kGroup = 8;  // rows of tiles taken together
}  // namespace

int im2win_registers(int64_t num_math_warpgroups) {
  switch (num_math_warpgroups) {
    case 1: return 255;
    case 2: return 232;
    default: return 160;
  }
}

Im2winKernel::Im2winKernel(const Im2winProduct& product, const Im2winStage& stage,
                           const Prepared& weights, const Im2winConfig& s,
                           const Capabilities& capabilities)
    : product_(product),
      c_(product.c),
      stage_(stage),
      packed_(weights),
      s_(s),
      own_(stage.tiles),
      order_{c_,
             TileCoord(c_.nest,
                       {{c_.row, s.tile_q}, {product.second, s.tile_p}, {c_.column, s.block_n}}),
             kGroup},
      rounds_(ceil_div(order_.count(), own_ * s.cluster_m)),
      workers_(std::clamp<int64_t>(capabilities.clusters_at_once(s.cluster_m), 1, rounds_)),
      weight_rows_(s.weights_stationary ? stage.count() * s.block_n : s.block_n) {}

void Im2winKernel::add_to(Family::Programs& out) {
  const int64_t math = s_.num_math_warpgroups;
  const int warps = as_int(4 + 4 * math);
  t_.grid(workers_ * s_.cluster_m).cluster(s_.cluster_m).warps(warps);
  add_tensors();
  const int consumer_warps = as_int(4 * math / own_);
  const int registers = math > 1 ? im2win_registers(math) : 0;
  t_.roles([&] {
    t_.role("producer", 4, math > 1 ? 32 : 0, [&] { produce(); });
    for (int64_t i = 0; i < own_; ++i) {
      const std::string name = draft_.name("consumer", i);
      t_.role(name, consumer_warps, registers, [&] { Im2winMath(*this, i).run(); });
    }
  });
  draft_.finish(out);
}

// The input's planes, rows and pixels come last.
void Im2winKernel::add_tensors() {
  Access input = product_.input();
  input.at[*product_.x].begin = stage_.begin;
  const auto axes = axes_of({c_.channel, product_.filter_rows, c_.window});
  input_.emplace(draft_, "A", c_.nest, input, axes);
  const std::vector<int64_t> patch = {stage_.planes * stage_.rows, stage_.width};
  for (int64_t i = 0; i < own_; ++i)
    patches_.push_back(t_.shared(draft_.name("patch", i), Dtype::f32, patch));
  add_weights();
  const int stages = as_int(s_.stages);
  for (int64_t i = 0; i < own_; ++i) {
    const std::string name = draft_.name("pipe", i);
    patch_stages_.push_back(t_.pipeline(name, stages, {patches_[at(i)]}));
  }
  beside_ = t_.pipeline("beside", s_.weights_stationary ? 1 : stages, weights_);
  for (int64_t i = 0; i < own_; ++i) {
    const std::string name = draft_.name("windows", i);
    windows_.push_back(stage_.windows(t_, patches_[at(i)], name));
  }
}

// Those of a stage, or all of them in a stage of their own.
void Im2winKernel::add_weights() {
  const Dtype dtype = product_.precision.operand;
  const int64_t columns = product_.size(c_.column);
  for (const Access* access : {&packed_.high, &packed_.low}) {
    if (access->name.empty()) continue;
    const bool first = from_.empty();
    const std::string name = first ? "B" : "B_rest";
    const char* shared_name = first ? "b" : "b_rest";
    draft_.buffers[name] = access->name;
    from_.push_back(t_.global(name, dtype, {stage_.count() * columns, stage_.depth}));
    weights_.push_back(t_.shared(shared_name, dtype, {weight_rows_, stage_.depth}));
  }
}

Tile Im2winKernel::patch_of(TileCoord tile, const Index& k) const {
  const TileCoord taken(c_.nest,
                        {{c_.channel, stage_.planes}, {product_.filter_rows, stage_.taps}});
  tile.extent = taken.extent;
  tile.place(c_.nest, axes_of({c_.channel, product_.filter_rows}), k);
  Tile box = input_->at(tile);
  box.extent.back() = stage_.width;
  box.step.clear();
  if (product_.y) box.extent.end()[-2] = stage_.rows;
  return box;
}

Index Im2winKernel::first_of(const Index& round) const {
  const int64_t cluster = s_.cluster_m;
  Index group = round;
  if (cluster > 1) group = round * cluster + tile::cluster_rank();
  return group * own_;
}

void Im2winKernel::all_rounds(const Body& body) {
  t_.for_("turn", tile::block(0) / s_.cluster_m, rounds_, workers_, body);
}

int64_t Im2winKernel::late(int64_t number) const {
  return s_.staggered_consumers ? stage_.count() * number / own_ : 0;
}

void Im2winKernel::fetch_weights(const Index& row) {
  const bool shared = s_.cluster_m > 1 && !s_.weights_stationary;
  const char* along = shared ? "x" : "";
  t_.produce(beside_, [&] {
    for (size_t i = 0; i < from_.size(); ++i) {
      const Tile from = t_.tile(from_[i], {row, 0}, {weight_rows_, stage_.depth});
      t_.multicast(from, t_.all(weights_[i]), along);
    }
  });
}

void Im2winKernel::produce_patch(int64_t number, const Index& first, const Index& k) {
  const TensorId patch = patches_[at(number)];
  t_.produce(patch_stages_[at(number)], [&] {
    const TileCoord tile = order_.at(first + number);
    t_.copy(patch_of(tile, k), t_.all(patch));
  });
}

void Im2winKernel::produce() {
  if (s_.weights_stationary) fetch_weights(0);
  if (late(1) > 0) return produce_staggered();
  const int64_t columns = product_.size(c_.column);
  all_rounds([&](const Index& round) {
    const Index first = first_of(round);
    t_.for_("k", 0, stage_.count(), 1, [&](const Index& k) {
      for (int64_t i = 0; i < own_; ++i)
        produce_patch(i, first, k);
      if (s_.weights_stationary) return;
      const bool all = s_.block_n >= columns;
      const Index column = all ? Index(0) : order_.at(first).origin[c_.column];
      fetch_weights(k * columns + column);
    });
  });
}

// Stage after stage of all math warpgroups, each beginning so much later than the first.
void Im2winKernel::produce_staggered() {
  const Index behind = Index(rounds_ + workers_ - 1) - tile::block(0) / s_.cluster_m;
  const Index mine = behind / workers_ * stage_.count();  // stages of a math warpgroup
  t_.for_("number", 0, mine + late(own_ - 1), 1, [&](const Index& number) {
    for (int64_t i = 0; i < own_; ++i) {
      const auto unless_ended = [&] { produce_started(i, number); };
      if (i < own_ - 1)
        t_.if_less(number, mine + late(i), unless_ended);
      else
        unless_ended();
    }
  });
}

void Im2winKernel::produce_started(int64_t number, const Index& time) {
  const Index stage = time - late(number);
  const auto started = [&] {
    const Index round = tile::block(0) / s_.cluster_m + stage / stage_.count() * workers_;
    produce_patch(number, first_of(round), stage % stage_.count());
  };
  if (number > 0)
    t_.if_less(late(number) - 1, time, started);
  else
    started();
}
}  // namespace warploom::kernels
