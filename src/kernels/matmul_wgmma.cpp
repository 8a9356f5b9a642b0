// Matmul for sm_90a: one producer warpgroup drives the copy engine through a ring of shared-memory
// slots, one or two consumer warpgroups multiply from shared memory. Blocks are persistent: each
// takes tile after tile, and the producer runs ahead into the next tile while the consumers still
// store the last one.
//
// Where tiles do not fill the last wave, `stream` shares those of the last two between all blocks
// (stream-K): each takes as much of k, from within one tile to within another. It begins with the
// tile that the next block goes on with, and leaves that block its sums, which are long there when
// they are waited for: sums are always of the same terms in the same order.
//
// The matrix unit reads tf32 operands from shared memory along k alone. One that lies along rows
// instead is read across, into registers, where it is rounded.
//
// Operands that are scaled by blocks along k are multiplied slot by slot, each slot within a block,
// and every slot's sum is scaled as it is added to those before. In a `run` of slots the next one's
// product is computed meanwhile, in registers of its own.
//
// Where rows of the result are reduced behind the sums (softmax, norms), the blocks of a cluster
// hold whole rows, beside each other.
//
// A convolution is one as well, its operands in window order (window_order.h): rows are output
// channels, columns a patch of pixels, y of them along the second axis; or the other way round.
#include "kernels/loop_nest_tiling.h"
#include "kernels/window_order.h"

namespace warploom::kernels {
namespace {
// Between the rows of an operand that is read across, so that the 8 rows and 4 depths that a warp
// reads at once lie in 32 banks.
constexpr int64_t kApart = 8;
constexpr int64_t kMostBeside = 8;  // blocks of a cluster that any sm_90a GPU runs

// The choices of both families: a convolution's differ from a matmul's in the patch of pixels.
struct Choices : MatmulWgmmaConfig {
  int64_t tile_p = 1;
};

using F = MatmulWgmmaConfig::Field;

void once(Values& values, int64_t value) {
  if (std::ranges::count(values, value) == 0) values.push_back(value);
}

class WgmmaFamily : public Family {
 public:
  WgmmaFamily(const ConfigType& type, const Contraction& contraction,
              std::optional<WindowOrder> windows, const Precision& precision,
              const Capabilities& capabilities)
      : Family(type, capabilities, Specialization::fastest),
        windows_(std::move(windows)),
        c_(windows_ ? windows_->contraction : contraction),
        p_(precision) {}

  Result<Programs> programs(const KernelConfig& config) const override {
    return programs_of(choices_of(config));
  }

 protected:
  virtual Choices choices_of(const KernelConfig& config) const = 0;

  // What both offer.
  Values split_values() const {
    const int64_t bytes = bytes_of(p_.operand);
    const int64_t steps = slots_of(c_, 128 / bytes);
    const int64_t rows = second_ ? c_.nest.axes[*second_] : 1;
    const int64_t tiles = ceil_div(c_.nest.axes[c_.row], 128) *
                          ceil_div(c_.nest.axes[c_.column] * rows, 128) * others_of(c_).second;
    Values splits = {1};
    for (int64_t s = 2; s <= 32 && s * 4 <= steps && is_float(p_.operand) && c_.reductions.empty();
         s *= 2)
      if (s * tiles <= 2 * capabilities_.num_sms) splits.push_back(s);
    return splits;
  }

  static Values schedulers(const Values& splits) {
    if (splits.size() == 1) return choices(Scheduler::data_parallel, Scheduler::stream_k);
    return choices(Scheduler::data_parallel, Scheduler::split_k, Scheduler::stream_k);
  }

  Values epilogues() const {
    return bytes_of(c_.nest.outputs[0].place.dtype) == 2
               ? choices(Epilogue::smem, Epilogue::direct)
               : choices(Epilogue::direct, Epilogue::smem);
  }

  // Whole runs of k where scales change along it.
  Values depths_of_scales() const {
    const int64_t bytes = bytes_of(p_.operand);
    const int64_t run = c_.nest.axes[*c_.channel];
    return {std::clamp<int64_t>(power_of_two_above(run), 32 / bytes, 128 / bytes)};
  }

  // The constraints of the kernel, by the fields of MatmulWgmmaConfig.
  FailedConstraints constraints_of(const Choices& s) const {
    Checks<MatmulWgmmaConfig> checks;
    check_tile(checks, s);
    check_loop(checks, s);
    check_epilogue(checks, s);
    check_scheduler(checks, s);
    check_memory(checks, s);
    return std::move(checks).failed();
  }

 private:
  using Kernel = Checks<MatmulWgmmaConfig>;

  const Contraction& contraction_of(const Choices& s) const { return s.swap_ab ? swapped_ : c_; }

  void check_tile(Kernel& checks, const Choices& s) const {
    const Contraction& c = contraction_of(s);
    const Access& b = c.nest.loads[c.b];
    const int64_t n = s.block_n;
    const int64_t accumulators = s.block_m * n / (128 * s.num_math_warpgroups);
    const int bytes = bytes_of(precision(s).operand);
    const bool along_n = !windows_ && (b.stride(c.column) == 1 || b.stride(*c.channel) != 1);
    checks.require(s.block_m % (64 * s.num_math_warpgroups) == 0,
                   {F::block_m, F::num_math_warpgroups},
                   "block_m a multiple of 64 rows a math warpgroup", s.block_m);
    checks.require(
        accumulators <= accumulators_of(turns_of(s) > 1),
        {F::block_m, F::block_n, F::num_math_warpgroups, F::promotion_interval, F::a_source},
        "at most 128 accumulators a thread, 96 with a second set, 64 with a third", accumulators);
    checks.require(n % 8 == 0 && n <= 256, {F::block_n}, "8 to 256 columns, a multiple of 8", n);
    checks.require(p_.operand != Dtype::i8 || n % 16 == 0 || n <= 24, {F::block_n},
                   "block_n a multiple of 16 for integers", n);
    checks.require(!along_n || bytes != 2 || n % 16 == 0,
                   {F::block_n, F::swap_ab, F::fp32_emulation}, "block_n of whole 32-byte panels",
                   n);
    checks.require(
        s.ctas_per_sm <= 1 || (s.num_math_warpgroups <= 1 && s.cluster_m * beside_of(s) <= 1),
        {F::ctas_per_sm, F::num_math_warpgroups, F::cluster_m, F::block_n},
        "ctas_per_sm=1 with two math warpgroups or a cluster", s.ctas_per_sm);
  }

  void check_loop(Kernel& checks, const Choices& s) const {
    const int64_t steps = slots_of(c_, s.block_k);
    const int64_t interval = s.promotion_interval;
    const Precision used = precision(s);
    checks.require(steps >= interval && (!windows_ || steps % interval == 0),
                   {F::block_k, F::promotion_interval},
                   "promotion_interval=1 where k has fewer stages, or windows no whole runs",
                   interval);
    checks.require(used.operand != Dtype::tf32 || s.block_k * bytes_of(used.operand) <= 128,
                   {F::block_k, F::fp32_emulation}, "block_k of at most 128 bytes of tf32",
                   s.block_k);
    checks.require((p_.terms > 1) == (s.fp32_emulation != Emulation::none), {F::fp32_emulation},
                   "fp32_emulation=tf32x3 or fp16x3 for fp32 products, none for others", p_.terms);
  }

  void check_epilogue(Kernel& checks, const Choices& s) const {
    if (s.epilogue != Epilogue::smem) return;
    const Contraction& c = contraction_of(s);
    checks.require(s.block_n * stored_bytes(s) % 32 == 0 && c.nest.outputs[0].place.uses(c.column),
                   {F::epilogue, F::block_n, F::split_k, F::swap_ab},
                   "epilogue=direct for narrow tiles", s.block_n);
    checks.require(!windows_ || (!s.swap_ab && std::has_single_bit(at(s.block_n))),
                   {F::epilogue, F::block_n, F::swap_ab},
                   "epilogue=direct where columns are no power of two", s.block_n);
  }

  void check_scheduler(Kernel& checks, const Choices& s) const {
    const int64_t split = s.split_k;
    const int64_t steps = slots_of(c_, s.block_k);
    const int64_t turns = turns_of(s);
    checks.require((split > 1) == (s.scheduler == Scheduler::split_k), {F::split_k, F::scheduler},
                   "split_k=1, or scheduler=split_k and parts of at least 2", split);
    checks.require(split <= 1 || (split - 1) * round_up(ceil_div(steps, split), turns) < steps,
                   {F::split_k, F::block_k, F::promotion_interval, F::a_source},
                   "a split_k that leaves every part some of k", split);
    if (s.scheduler != Scheduler::stream_k) return;
    const int64_t count =
        TileScheduler{contraction_of(s), tile_of(contraction_of(s), s), 1}.count();
    checks.require(s.cluster_m <= 1 && s.ctas_per_sm <= 1,
                   {F::scheduler, F::cluster_m, F::ctas_per_sm},
                   "cluster_m=1 ctas_per_sm=1 with scheduler=stream_k", s.cluster_m);
    checks.require(c_.domain_constraints.empty(), {F::scheduler},
                   "another scheduler than stream_k where a triangle bounds the sum", 1);
    checks.require(count >= capabilities_.num_sms && count % capabilities_.num_sms != 0,
                   {F::scheduler, F::block_m, F::block_n, F::swap_ab},
                   "another scheduler than stream_k where tiles fill every wave, or not even the "
                   "first",
                   count);
  }

  void check_memory(Kernel& checks, const Choices& s) const {
    const Precision used = precision(s);
    const auto whole = [&](int64_t rows) {  // swizzle atoms repeat every 1024 bytes
      return round_up(rows * s.block_k * bytes_of(used.operand), 1024);
    };
    const int64_t padding = s.a_source == OperandSource::registers ? kApart : 0;
    const int64_t stage =
        (whole(s.block_m + padding) + whole(s.block_n)) * (used.terms > 1 ? 2 : 1);
    const int64_t staging =
        s.epilogue == Epilogue::smem ? s.block_m * s.block_n * stored_bytes(s) : 0;
    const int64_t beside = beside_of(s);
    const int64_t sent =  // by the CTAs of a cluster to each other
        beside > 1 ? std::ssize(c_.reductions) * 8 * beside * s.block_m : 0;
    checks.require_fits(s.ctas_per_sm * (stage * s.stages + staging + sent + 1024),
                        capabilities_.shared_bytes,
                        {F::block_m, F::block_n, F::block_k, F::stages, F::ctas_per_sm, F::split_k,
                         F::epilogue, F::a_source, F::fp32_emulation});
  }

  // Bytes of an element as the kernel stores it: parts of k are sums.
  int64_t stored_bytes(const Choices& s) const {
    return s.split_k > 1 ? 4 : bytes_of(c_.nest.outputs[0].place.dtype);
  }

  Result<Programs> programs_of(const Choices& s) const {
    Programs out;
    const Contraction c = filled(out, contraction_of(s), capabilities_);
    const size_t k = *c.channel;
    const auto operand = [&](const char* name, const Access& from, size_t row) {
      const bool is_a = row == c_.row;  // before they were exchanged
      if (windows_)
        return (is_a ? windows_->a : windows_->b).lay({out, is_a ? "a" : "b", p_, capabilities_});
      return OperandPacking{out, name, precision(s), capabilities_}.for_copies(from, row, k);
    };
    const Access& first = c.nest.loads[c.a];
    const Prepared a =
        s.a_source == OperandSource::registers ? Prepared{first, {}} : operand("a", first, c.row);
    const Prepared b = operand("b", c.nest.loads[c.b], c.column);
    const auto split = s.split_k;
    if (split == 1) {
      multiply(out, c, a, b, s);
      return out;
    }
    // Parts lie one after another, each as the result does, whichever of the two ways the product
    // is computed.
    const auto [others, batch] = others_of(c_);
    Access parts{.name = "parts", .shape = {split * batch}};
    const std::vector<size_t> tiled = axes_of({second_, c_.row, c_.column});
    for (const size_t axis : tiled) parts.shape.push_back(c_.nest.axes[axis]);
    graph::Shape padded = parts.shape;
    padded.back() = round_up(padded.back(), 4);
    parts.strides = graph::strides_of(padded);
    out.workspaces.push_back({"parts", Dtype::f32, {parts.shape[0] * parts.strides[0]}});
    const auto parts_along = [&, &elsewhere = others, &count = batch](size_t part) {
      const size_t axes = c.nest.axes.size() + 1;
      Access made = parts;
      made.at = {along(part, axes, count)};
      int64_t below = count;
      for (const size_t other : elsewhere) made.at[0].steps[other] = below /= c.nest.axes[other];
      for (const size_t axis : tiled) made.at.push_back(along(axis, axes));
      return made;
    };
    Contraction part = c;
    part.nest.axes.push_back(split);
    part.nest.outputs = {{static_cast<int>(c.sum), parts_along(c.nest.axes.size())}};
    multiply(out, part, a, b, s);
    // The same nest with parts in the place of products and of k, in a fixed order.
    LoopNest sum = c_.nest;
    for (const size_t axis : c_.k) sum.axes[axis] = axis == k ? split : 1;
    sum.values[at(sum.values[c_.sum].operands[0])] = {.kind = Expr::Kind::load,
                                                      .load = static_cast<int>(sum.loads.size())};
    sum.loads.push_back(parts_along(k));
    direct::add_program(out, "sum_parts", std::move(sum), 4, 256, capabilities_);
    return out;
  }

 protected:
  Precision precision(const Choices& s) const {
    return p_.halves() && s.fp32_emulation != Emulation::fp16x3 ? Precision{Dtype::tf32, 3} : p_;
  }

  // The axes of the result that no tile has several elements of, and how many there are along them.
  std::pair<std::vector<size_t>, int64_t> others_of(const Contraction& c) const {
    std::pair<std::vector<size_t>, int64_t> out{{}, 1};
    for (size_t a = 0; a < c.nest.axes.size(); ++a)
      if (a != c.row && a != c.column && a != second_ && std::ranges::count(c.k, a) == 0) {
        out.first.push_back(a);
        out.second *= c.nest.axes[a];
      }
    return out;
  }

  // Whether TMA can read the first operand as it lies, along rows, for tf32 products: transposed on
  // its way into registers.
  bool transposes(const Contraction& c) const {
    const Access& a = c.nest.loads[c.a];
    bool readable = !windows_ && p_.operand == Dtype::tf32 && p_.terms == 1 &&
                    a.stride(c.row) == 1 && a.stride(*c.channel) != 1;
    for (size_t d = 0; d < a.at.size(); ++d)
      readable &= a.at[d].steps[c.row] != 0 || a.strides[d] % 4 == 0;
    return readable;
  }

  // A slot's part of an output tile.
  TileCoord tile_of(const Contraction& c, const Choices& s) const {
    const auto y = std::max<int64_t>(s.tile_p, 1);
    TileCoord tile(
        c.nest, {{c.row, s.block_m}, {c.column, s.block_n}, {c.channel, s.block_k}, {second_, y}});
    if (second_) tile.extent[c_.column] = std::max<int64_t>(tile.extent[c_.column] / y, 1);
    return tile;
  }

  // The most accumulators a thread: of one set beside others.
  int64_t accumulators_of(bool turns) const {
    return (promotes() && turns) || sets_ > 1 ? 64 : promotes() ? 96 : 128;
  }

  // Blocks that hold a row of the result together.
  int64_t beside_of(const Choices& s) const {
    return c_.reductions.empty() ? 1 : ceil_div(c_.nest.axes[c_.column], s.block_n);
  }

  // Slots of k that a round of a consumer's loop multiplies.
  static int64_t turns_of(const Choices& s) {
    return std::max<int64_t>(s.a_source == OperandSource::registers ? 2 : 1, s.promotion_interval);
  }

  bool promotes() const { return p_.promotes() || !c_.scales.empty(); }

  // Slots of a sum.
  static int64_t slots_of(const Contraction& c, int64_t depth) {
    return TileCoord(c.nest, {{c.channel, depth}}).count(c.nest, c.k);
  }

  void multiply(Programs& out, const Contraction& c, const Prepared& a, const Prepared& b,
                const Choices& s) const {
    const LoopNest& nest = c.nest;
    const auto bm = s.block_m;
    const auto bn = s.block_n;
    const auto bk = s.block_k;
    const auto cluster = s.cluster_m;
    const int consumers = static_cast<int>(s.num_math_warpgroups);
    const bool split = p_.terms > 1;
    const bool across = s.a_source == OperandSource::registers;
    const TileCoord whole = tile_of(c, s);
    // Where pixels are of two axes, they are so on the side that they take.
    const AxisIfAny above = c.row == c_.column ? second_ : std::nullopt;
    const AxisIfAny beside = above ? std::nullopt : second_;
    const auto result = axes_of({above, c.row, beside, c.column});
    const auto a_axes = axes_of({above, c.row, c.channel});
    const auto b_axes = axes_of({beside, c.column, c.channel});
    const std::vector<size_t> summed = slot_axes(c);
    const size_t row_axes = above ? 2 : 1;
    // The blocks of a cluster take tiles below each other, so that one tile of b serves them all.
    const int64_t parts = s.split_k;
    const int64_t row_blocks = beside_of(s);
    const int64_t blocks = cluster * row_blocks;  // of a cluster
    const TileScheduler order{c, whole, s.raster_group_m, cluster, row_blocks};
    TileCoord together =
        whole;  // what the blocks of a cluster compute: all of them go through the same slots
    together.extent[c.row] *= cluster;
    const TileScheduler clusters{c, together, s.raster_group_m, 1, row_blocks};
    const int64_t turns = turns_of(s);
    const int64_t steps = round_up(whole.count(nest, summed), turns);
    const int64_t part_steps = round_up(ceil_div(steps, parts), turns);
    const int64_t count = order.count() * parts;
    const int64_t at_once = capabilities_.clusters_at_once(blocks, s.ctas_per_sm);
    const int64_t workers = std::clamp<int64_t>(at_once, 1, count);

    KernelBuilder draft("matmul");
    auto& t = draft.b;
    t.grid(workers * blocks).cluster(blocks).warps(4 + 4 * consumers);
    // Slots hold a as [m, k] and b as [n, k], whichever of the two axes is contiguous.
    std::vector<TensorTile> from;
    std::vector<TensorId> slots;
    const auto add_operand = [&](const char* name, const char* slot, const Access& access,
                                 const std::vector<size_t>& axes, int64_t rows) {
      from.emplace_back(draft, name, nest, access, axes);
      slots.push_back(t.shared(slot, precision(s).operand, {rows, bk}));
    };
    if (across) {
      from.emplace_back(draft, "A", nest, a.high, axes_of({c.channel, c.row}));
      slots.push_back(t.shared("a", Dtype::f32, {bk, bm + kApart}));
    } else {
      add_operand("A", "a", a.high, a_axes, bm);
    }
    add_operand("B", "b", b.high, b_axes, bn);
    if (split) {
      add_operand("A_rest", "a_rest", a.low, a_axes, bm);
      add_operand("B_rest", "b_rest", b.low, b_axes, bn);
    }
    const auto ring = t.pipeline("ring", static_cast<int>(s.stages), slots);
    const TensorId lines =
        across ? t.windows("lines", slots[0], 0, {bm, bk}, {1, bm + kApart}) : -1;
    const auto box_of = [&](size_t i, const TileCoord& tile) {
      tile::Tile box = from[i].at(tile);
      if (across && i == 0) {
        box.extent.back() += kApart;
        box.step.clear();
      }
      return box;
    };
    const TensorId staging = s.epilogue == Epilogue::smem
                                 ? t.shared("staging", nest.outputs[0].place.dtype, {bm, bn})
                                 : -1;

    // What blocks leave for the next ones.
    const bool stream = s.scheduler == Scheduler::stream_k;
    const Dtype sums = c.scales.empty() ? p_.accumulator() : Dtype::f32;
    const Index worker = tile::block(0);
    TensorId left = -1;
    TensorId flags = -1;
    if (stream) {
      left = draft.workspace("Left", "left_sums", sums, {workers, bm, bn});
      flags = t.zeroed(draft.workspace("flags", "left_flags", Dtype::i32, {workers}));
      t.cooperative();
    }

    // Tile after tile; with parts of k, all tiles of one part, then of the next. `shared`: of a
    // tile that is of two blocks.
    const int64_t alone = stream ? (count / workers - 1) * workers : count;
    const int64_t of_tile = steps / turns;
    const int64_t rest = (count - alone) * of_tile;
    const auto tiles = [&](const std::function<void(TileCoord, const Index& begin, const Index& end,
                                                    bool shared)>& body) {
      const auto compute = [&](const Index& linear) {
        const Index number = parts == 1 ? linear : linear % order.count();
        const Index part = parts == 1 ? Index(0) : linear / order.count();
        const Index begin = part * part_steps;
        const Index end = tile::min(begin + part_steps, Index(steps));
        const auto [first, last] =
            clusters.at(number).slots_within(c.domain_constraints, *c.channel, begin, end, turns);
        TileCoord tile = order.at(number);
        if (parts > 1) tile.origin.back() = part;
        body(tile, first, last, false);
      };
      t.for_("tile", tile::block(0) / blocks, alone, workers, [&](const Index& turn) {
        if (c.domain_constraints.empty()) return compute(turn);
        const Index number = from_both_ends(turn, count, workers);
        t.for_("number", number, number + 1, 1, compute);
      });
      if (!stream) return;
      // As much each, the first few one slot more: products of both counts would be too large for
      // long sums.
      const auto start = [&](const Index& block) {
        return block * (rest / workers) + tile::min(block, Index(rest % workers));
      };
      const Index low = start(worker);
      const Index high = start(worker + 1);
      t.for_("back", 0, 3, 1, [&](const Index& back) {
        const Index number = (high - 1) / of_tile - back;
        const Index first = number * of_tile;
        const Index begin = tile::max(low - first, Index(0)) * turns;
        const Index end = tile::min(high - first, Index(of_tile)) * turns;
        t.if_less(begin, end, [&] { body(order.at(number + alone), begin, end, true); });
      });
    };
    t.roles([&] {
      t.role("producer", 4, consumers > 1 ? 40 : 0, [&] {
        tiles([&](TileCoord tile, const Index& begin, const Index& end, bool) {
          t.for_("k", begin, end, 1, [&](const Index& k) {
            tile.place(nest, summed, k);
            t.produce(ring, [&] {
              for (size_t i = 0; i < slots.size(); ++i)  // those of b serve all blocks of a cluster
                if (cluster > 1 && i % 2 == 1)
                  t.multicast(box_of(i, tile), t.all(slots[i]), "x");
                else
                  t.copy(box_of(i, tile), t.all(slots[i]));
            });
          });
        });
      });
      t.role("consumer", 4 * consumers, consumers > 1 ? 232 : 0, [&] {
        const bool promotes = this->promotes();
        const TensorId acc = t.reg("acc", sums, {bm, bn});
        const bool meanwhile =
            promotes &&
            turns > 1;  // the set before is added while this one is multiplied, a third set
        struct Set {
          std::string name;
          TensorId part;
          std::vector<TensorId> scales;
        };
        std::vector<Set> sets = {
            {"", promotes ? t.reg("part", p_.accumulator(), {bm, bn}) : acc, {}}};
        if (turns > 1)
          sets.push_back(
              {"_next", meanwhile ? t.reg("part_next", p_.accumulator(), {bm, bn}) : acc, {}});
        const auto promote = [&](const Set& set) {
          t.map(acc, promoted(draft, acc, set.part, set.scales));
        };
        const auto multiply_slot = [&](const TileCoord& slot, Set& set) {
          const auto add = [&](TensorId x, size_t y) {
            t.mma(set.part, t.all(x), t.all(slots[y]), false, true);
          };
          set.scales = load_scales(draft, c, slot, result, row_axes, set.name);
          if (promotes) t.fill(set.part, 0);
          t.consume(ring, promotes && !meanwhile ? 0 : 1, [&] {
            if (split) {
              add(slots[2], 1);
              add(slots[0], 3);
            }
            if (!across) return add(slots[0], 1);
            const TensorId seen = draft.reg("seen", Dtype::f32, {bm, bk});
            const TensorId x = draft.reg("x" + set.name, Dtype::tf32, {bm, bk});
            t.copy(t.all(lines), t.all(seen));
            t.map(x, t.value(seen));
            add(x, 1);
          });
        };
        const auto left_by = [&](const Index& block) {
          return t.tile(left, {block, 0, 0}, {1, bm, bn});
        };
        tiles([&](const TileCoord& tile, const Index& begin, const Index& end, bool shared) {
          t.fill(acc, 0);
          if (shared)
            t.if_less(0, begin, [&] {
              t.add(tile::Wait{t.tile(flags, {worker - 1}, {1}), 1});
              t.copy(left_by(worker - 1), t.all(acc));
            });
          // Of two sets of registers one is filled, or added, while the other is multiplied; a slot
          // beyond k holds zeros. None are under way from one round to the next: there ptxas would
          // wait for them before they are read.
          t.for_("k", begin, end, turns, [&, slot = tile](const Index& k) mutable {
            for (int64_t i = 0; i < turns; ++i) {
              slot.place(nest, summed, k + i);
              multiply_slot(slot, sets[at(i) % sets.size()]);
              if (promotes && meanwhile == (i > 0))
                promote(sets[at(meanwhile ? i - 1 : i) % sets.size()]);
            }
            if (meanwhile) promote(sets[at(turns - 1) % sets.size()]);
          });
          const auto finish = [&] {
            if (precision(s).halves())
              scale_back(draft, c, acc, {&a.most, &b.most}, tile, result, row_axes);
            store(draft, c, acc, tile, result, row_axes, staging, row_blocks);
          };
          if (!shared) return finish();
          t.if_less(end, steps, [&] {
            t.copy(t.all(acc), left_by(worker));
            t.add(tile::Signal{t.tile(flags, {worker}, {1}), 1});
          });
          t.if_less(steps - 1, end, finish);
        });
      });
    });
    draft.finish(out);
  }

  std::optional<WindowOrder> windows_;
  Contraction c_;
  Contraction swapped_ = with_swapped_ab(c_);
  Precision p_;
  size_t sets_ =
      c_.reductions.empty() ? 1 : std::ranges::max(row_steps(c_), {}, &RowStep::set).set + 1;
  std::optional<size_t> second_ =
      windows_ ? second_column(c_) : std::nullopt;  // of pixels, the slower axis of a patch
};

class MatmulWgmma final : public WgmmaFamily {
 public:
  MatmulWgmma(const Contraction& contraction, const Precision& precision,
              const Capabilities& capabilities)
      : WgmmaFamily(MatmulWgmmaConfig::type(), contraction, std::nullopt, precision, capabilities) {
  }

  bool reduces_rows() const {
    return fuses_rows(c_, p_, kMostBeside * std::min<int64_t>(256, 2 * accumulators_of(false)),
                      capabilities_);
  }

  Space space() const override {
    const bool reduces = !c_.reductions.empty();
    const bool swaps = !reduces && (skinny() || (transposes(swapped_) && !transposes(c_)));
    const Values splits = split_values();
    Space space{
        name(),
        {offered<Table>(F::block_m, {128, 256, 64}),
         offered<Table>(F::block_n, reduces ? columns_of_rows() : columns()),
         offered<Table>(F::block_k, depths()), offered<Table>(F::stages, {4, 3, 2, 5, 6, 8}),
         offered<Table>(F::num_math_warpgroups, {2, 1}), offered<Table>(F::ctas_per_sm, {1, 2}),
         offered<Table>(F::raster_group_m, {8, 16, 4, 1}),
         offered<Table>(F::cluster_m, reduces ? Values{1} : Values{1, 2}),
         offered<Table>(F::split_k, splits),
         offered<Table>(F::scheduler,
                        reduces ? choices(Scheduler::data_parallel) : schedulers(splits)),
         offered<Table>(F::swap_ab, swap_values(swaps)), offered<Table>(F::epilogue, epilogues())}};
    if (transposes(c_) || transposes(swapped_))
      space.fields.push_back(offered<Table>(
          F::a_source, transposes(swaps ? swapped_ : c_)
                           ? choices(OperandSource::registers, OperandSource::smem)
                           : choices(OperandSource::smem, OperandSource::registers)));
    if (promotes()) space.fields.push_back(offered<Table>(F::promotion_interval, {1, 4, 8}));
    if (p_.halves())
      space.fields.push_back(offered<Table>(
          F::fp32_emulation, enough_for_halves() ? choices(Emulation::fp16x3, Emulation::tf32x3)
                                                 : choices(Emulation::tf32x3, Emulation::fp16x3)));
    return space;
  }

  FailedConstraints constraints(const KernelConfig& config) const override {
    const Choices s = choices_of(config);
    FailedConstraints failed = constraints_of(s);
    Checks<Table> checks;
    check_rows(checks, s);
    check_source(checks, s);
    check_cluster(checks, s);
    std::ranges::move(std::move(checks).failed(), std::back_inserter(failed));
    return failed;
  }

 private:
  using Table = MatmulWgmmaConfig;

  Choices choices_of(const KernelConfig& config) const override {
    return {config.as<MatmulWgmmaConfig>()};
  }

  Values swap_values(bool first) const {
    if (!c_.reductions.empty()) return choices(false);
    return first ? choices(true, false) : choices(false, true);
  }

  // Few rows: weights on the matrix unit's 64-row side, rows on its narrow side.
  bool skinny() const {
    const int64_t m = c_.nest.axes[c_.row];
    return m < 128 && m < c_.nest.axes[c_.column];
  }

  Values columns() const {
    if (skinny()) return {16, 32, 64, 128, 8, 256};
    Values columns = {256, 128, 192, 64, 32, 160, 96};
    // And one whose tiles leave the fewest multiprocessors without work in the last wave. A tile is
    // some 24 columns' time besides its own.
    const auto work = [&](int64_t width) {
      const int64_t tiles = ceil_div(c_.nest.axes[c_.row], 128) *
                            ceil_div(c_.nest.axes[c_.column], width) * others_of(c_).second;
      return ceil_div(tiles, capabilities_.num_sms) * (width + 24);
    };
    int64_t best = promotes() ? 192 : 256;
    for (int64_t width = best; width >= 96; width -= 16)
      best = work(width) < work(best) ? width : best;
    once(columns, best);
    return columns;
  }

  // Parts of a row that is reduced, one a CTA of a cluster.
  Values columns_of_rows() const {
    const int64_t n = c_.nest.axes[c_.column];
    Values columns;
    for (int64_t blocks = 1; blocks <= kMostBeside; ++blocks)
      if (const auto width = round_up(ceil_div(n, blocks), 16);
          width <= 256 && (width >= 64 || blocks == 1))
        once(columns, width);
    return columns;
  }

  Values depths() const {
    const int64_t bytes = bytes_of(p_.operand);
    if (!c_.scales.empty()) return depths_of_scales();
    if (p_.halves()) return {64, 32};
    return bytes == 2 ? Values{64, 128} : Values{128 / bytes};
  }

  // Whether multiplying takes longer than measuring the operands' rows before, some 10 µs.
  bool enough_for_halves() const {
    double flops = 2;
    for (const int64_t size : c_.nest.axes) flops *= static_cast<double>(size);
    return flops > 2e9;
  }

  // Where rows of the result are reduced.
  void check_rows(Checks<Table>& checks, const Choices& s) const {
    const int64_t beside = beside_of(s);
    checks.require(beside <= kMostBeside, {F::block_n}, "whole rows in a cluster of at most 8 CTAs",
                   beside);
    const bool plain = !s.swap_ab && s.scheduler == Scheduler::data_parallel && s.cluster_m == 1;
    checks.require(c_.reductions.empty() || plain, {F::swap_ab, F::scheduler, F::cluster_m},
                   "swap_ab=0 scheduler=data_parallel cluster_m=1 where rows are reduced", beside);
  }

  void check_source(Checks<Table>& checks, const Choices& s) const {
    if (s.a_source != OperandSource::registers) return;
    checks.require(transposes(s.swap_ab ? swapped_ : c_), {F::a_source, F::swap_ab},
                   "a_source=smem where the first operand does not lie along rows", s.swap_ab);
    checks.require(s.block_m + kApart <= 256, {F::a_source, F::block_m},
                   "a patch of at most 256 elements", s.block_m + kApart);
  }

  void check_cluster(Checks<Table>& checks, const Choices& s) const {
    if (s.cluster_m <= 1) return;
    const Contraction& c = s.swap_ab ? swapped_ : c_;
    const int64_t tiles = ceil_div(c.nest.axes[c.row], s.block_m);
    checks.require(tiles >= s.cluster_m && c.m.size() <= 1, {F::cluster_m, F::block_m, F::swap_ab},
                   "cluster_m=1 where fewer tiles lie below each other", tiles);
    checks.require(s.block_n % (8 * s.cluster_m) == 0, {F::cluster_m, F::block_n},
                   "cluster_m=1 where tiles are too narrow to share", s.block_n);
  }
};

// Operands in window order: rows are output channels, columns a patch of pixels.
class ConvWgmma final : public WgmmaFamily {
 public:
  ConvWgmma(WindowOrder windows, const Precision& precision, const Capabilities& capabilities)
      : WgmmaFamily(ConvWgmmaConfig::type(), windows.contraction, windows, precision,
                    capabilities) {}

  Space space() const override {
    const bool swaps = c_.nest.axes[c_.row] < 128;
    const Values splits = split_values();
    Space space{
        name(),
        {offered<Table>(Field::block_m, {128, 256, 64}), offered<Table>(Field::block_n, columns()),
         offered<Table>(Field::block_k, depths()),
         offered<Table>(Field::stages, {4, 3, 2, 5, 6, 8}),
         offered<Table>(Field::num_math_warpgroups, {2, 1}),
         offered<Table>(Field::ctas_per_sm, {1, 2}),
         offered<Table>(Field::raster_group_m, {8, 16, 4, 1}),
         offered<Table>(Field::split_k, splits),
         offered<Table>(Field::scheduler, schedulers(splits)),
         offered<Table>(Field::swap_ab, swaps ? choices(true, false) : choices(false, true)),
         offered<Table>(Field::epilogue, epilogues())}};
    if (promotes()) space.fields.push_back(offered<Table>(Field::promotion_interval, {1, 4, 8}));
    space.fields.push_back(offered<Table>(Field::tile_p, pixel_rows()));
    return space;
  }

  FailedConstraints constraints(const KernelConfig& config) const override {
    const Choices s = choices_of(config);
    FailedConstraints failed;
    for (const FailedConstraint& one : constraints_of(s)) failed.push_back(of_table(one));
    Checks<Table> checks;
    const int64_t pixels = s.swap_ab ? s.block_m : s.block_n;
    const int64_t along = pixels / std::max<int64_t>(s.tile_p, 1);
    checks.require(s.tile_p >= 1 && (s.tile_p == 1 || second_), {Field::tile_p},
                   "tile_p=1 where pixels are of one axis", s.tile_p);
    checks.require(along * s.tile_p == pixels && along % 8 == 0,
                   {Field::tile_p, Field::swap_ab, Field::block_m, Field::block_n},
                   "patches of whole groups of 8 pixels", along);
    std::ranges::move(std::move(checks).failed(), std::back_inserter(failed));
    return failed;
  }

 private:
  using Table = ConvWgmmaConfig;
  using Field = Table::Field;

  Choices choices_of(const KernelConfig& config) const override {
    const auto& s = config.as<ConvWgmmaConfig>();
    return {{.block_m = s.block_m,
             .block_n = s.block_n,
             .block_k = s.block_k,
             .stages = s.stages,
             .num_math_warpgroups = s.num_math_warpgroups,
             .ctas_per_sm = s.ctas_per_sm,
             .raster_group_m = s.raster_group_m,
             .split_k = s.split_k,
             .scheduler = s.scheduler,
             .swap_ab = s.swap_ab,
             .epilogue = s.epilogue,
             .promotion_interval = s.promotion_interval,
             .fp32_emulation = p_.terms > 1 ? Emulation::tf32x3 : Emulation::none},
            s.tile_p};
  }

  // The kernel's constraint by this family's fields; of a tile tile_p says where it lies.
  static FailedConstraint of_table(const FailedConstraint& one) {
    FailedConstraint out = one;
    out.fields = {static_cast<size_t>(Field::tile_p)};
    for (const size_t field : one.fields)
      if (const auto same = Table::type().find(MatmulWgmmaConfig::type().fields[field].name))
        out.fields.push_back(*same);
    return out;
  }

  Values columns() const {
    const int64_t m = c_.nest.axes[c_.row];
    Values columns = {128, 256, 64, 192, 96, 112, 224, 32};
    if (m % 8 == 0 && m <= 256) once(columns, m);
    return columns;
  }

  // Those that cover the run with the least beyond it.
  Values depths() const {
    if (!c_.scales.empty()) return depths_of_scales();
    const int64_t bytes = bytes_of(p_.operand);
    const int64_t run = c_.nest.axes[*c_.channel];
    Values depths = {128 / bytes, 64 / bytes, 32 / bytes};
    if (run * bytes <= 512) once(depths, round_up(run, 32 / bytes));
    std::ranges::stable_sort(depths, {}, [&](int64_t depth) {
      return round_up(run, depth) * 64 + ceil_div(run, depth);
    });
    depths.resize(std::min<size_t>(depths.size(), 3));
    return depths;
  }

  Values pixel_rows() const {
    const int64_t rows = second_ ? c_.nest.axes[*second_] : 1;
    Values ys = {8, 16, 4, 1, 2, 32};
    std::erase_if(ys, [&](int64_t y) { return y > 1 && y >= 2 * rows; });
    for (const int64_t part : {1, 2, 4})
      if (rows % part == 0 && rows / part <= 32) once(ys, rows / part);
    return ys;
  }
};

// What wgmma multiplies, where every tensor is stored whole.
std::optional<Contraction> product_of(const Region& region, const Capabilities& capabilities) {
  auto c = capabilities.warpgroup_mma && capabilities.tensor_copy
               ? contraction_of(region.nests(), true)
               : std::nullopt;
  return c && c->channel && stores_whole(*c) ? std::move(c) : std::nullopt;
}

// Whether a sum runs over several axes, or an operand's columns lie apart: what window order is
// for.
bool wants_windows(const Contraction& c) {
  const Access& b = c.nest.loads[c.b];
  const bool strided = c.n.size() > 1 && b.stride(c.column) != 1 && b.stride(*c.channel) != 1;
  return (c.k.size() > 1 && c.scales.empty()) || strided;
}

std::optional<Precision> precision_under(Track track, const Contraction& c, bool halves) {
  return precision_of(c.nest.loads[c.a].dtype, c.nest.loads[c.b].dtype, track, halves);
}
}  // namespace

FamilyPtr matmul_wgmma_family(const Region& region, const Capabilities& capabilities) {
  const auto c = product_of(region, capabilities);
  if (!c || wants_windows(*c)) return nullptr;
  const Access& a = c->nest.loads[c->a];
  const Access& b = c->nest.loads[c->b];
  const auto precision = precision_under(region.track, *c, true);
  if (!precision || std::max(a.at.size(), b.at.size()) > 5 || !is_whole(a) || !is_whole(b))
    return nullptr;
  auto family = std::make_shared<MatmulWgmma>(*c, *precision, capabilities);
  return c->reductions.empty() || family->reduces_rows() ? family : nullptr;
}

FamilyPtr conv_wgmma_family(const Region& region, const Capabilities& capabilities) {
  const auto c = product_of(region, capabilities);
  if (!c || !wants_windows(*c) || !c->triangular_operands.empty() || !c->reductions.empty())
    return nullptr;
  auto windows = window_order_of(*c);
  const auto precision = precision_under(region.track, *c, false);
  if (!windows || !precision) return nullptr;
  return std::make_shared<ConvWgmma>(*std::move(windows), *precision, capabilities);
}
}  // namespace warploom::kernels
