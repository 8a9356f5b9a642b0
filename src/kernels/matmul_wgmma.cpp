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

class MatmulWgmma : public Family {
 public:
  MatmulWgmma(const Contraction& contraction, std::optional<WindowOrder> windows,
              const Precision& precision, const Capabilities& capabilities)
      : Family("matmul_wgmma", capabilities, Specialization::fastest),
        windows_(std::move(windows)),
        c_(windows_ ? windows_->contraction : contraction),
        p_(precision) {}

  bool reduces_rows() const {
    return !windows_ &&
           fuses_rows(c_, p_, kMostBeside * std::min<int64_t>(256, 2 * accumulators_of(false)),
                      capabilities_);
  }

  Space space() const override {
    const Contraction& c = c_;
    const int bytes = bytes_of(p_.operand);
    const int64_t m = c.nest.axes[c.row];
    const int64_t n = c.nest.axes[c.column];
    const int64_t run = c.nest.axes[*c.channel];
    const int64_t steps = slots_of(c, 128 / bytes);
    // Few rows: weights on the matrix unit's 64-row side, rows on its narrow side.
    const bool skinny = m < 128 && m < n;
    const bool narrow = bytes_of(c.nest.outputs[0].place.dtype) == 2;
    Values splits = {1};
    const int64_t rows = second_ ? c.nest.axes[*second_] : 1;
    const int64_t tiles = ceil_div(m, 128) * ceil_div(n * rows, 128) * others_of(c).second;
    for (int64_t s = 2; s <= 32 && s * 4 <= steps && is_float(p_.operand) && c.reductions.empty();
         s *= 2)
      if (s * tiles <= 2 * capabilities_.num_sms) splits.push_back(s);
    Values columns =
        skinny ? Values{16, 32, 64, 128, 8, 256} : Values{256, 128, 192, 64, 32, 160, 96};
    Values depths = p_.halves()  ? Values{64, 32}
                    : bytes == 2 ? Values{64, 128}
                                 : Values{128 / bytes};
    Values ys = {8, 16, 4, 1, 2, 32};
    const auto once = [](Values& values, int64_t value) {
      if (std::ranges::count(values, value) == 0) values.push_back(value);
    };
    if (!windows_ && !skinny) {  // and one whose tiles leave the fewest multiprocessors without
                                 // work in the last wave
      const auto work = [&](int64_t width) {  // a tile is some 24 columns' time besides its own
        return ceil_div(ceil_div(m, 128) * ceil_div(n, width) * others_of(c).second,
                        capabilities_.num_sms) *
               (width + 24);
      };
      int64_t best = promotes() ? 192 : 256;
      for (int64_t width = best; width >= 96; width -= 16)
        best = work(width) < work(best) ? width : best;
      once(columns, best);
    }
    if (!c.reductions.empty()) {  // parts of a row, one a block of a cluster
      columns.clear();
      for (int64_t blocks = 1; blocks <= kMostBeside; ++blocks)
        if (const auto width = round_up(ceil_div(n, blocks), 16);
            width <= 256 && (width >= 64 || blocks == 1))
          once(columns, width);
    }
    if (windows_) {  // depths that cover the run with the least beyond it
      columns = {128, 256, 64, 192, 96, 112, 224, 32};
      if (m % 8 == 0 && m <= 256) once(columns, m);
      depths = {128 / bytes, 64 / bytes, 32 / bytes};
      if (run * bytes <= 512) once(depths, round_up(run, 32 / bytes));
      std::ranges::stable_sort(depths, {}, [&](int64_t depth) {
        return round_up(run, depth) * 64 + ceil_div(run, depth);
      });
      depths.resize(std::min<size_t>(depths.size(), 3));
      std::erase_if(ys, [&](int64_t y) { return y > 1 && y >= 2 * rows; });
      for (const int64_t part : {1, 2, 4})
        if (rows % part == 0 && rows / part <= 32) once(ys, rows / part);
    }
    if (!c.scales.empty())
      depths = {
          std::clamp<int64_t>(power_of_two_above(run), 32 / bytes, 128 / bytes)};  // within a block
    const bool exchange = c.reductions.empty() &&
                          (skinny || (windows_ && m < 128) || (across(exchanged_) && !across(c_)));
    Space space{
        name(),
        {{"block_m", {128, 256, 64}, "rows of an output tile"},
         {"block_n", columns, "columns of an output tile"},
         {"block_k", depths, "depth of one slot"},
         {"stages", {4, 3, 2, 5, 6, 8}, "slots of the ring"},
         {"consumers", {2, 1}, "warpgroups that multiply"},
         {"resident", {1, 2}, "blocks of a multiprocessor: one multiplies while another stores"},
         {"group", {8, 16, 4, 1}, "rows of tiles taken together"},
         {"cluster", windows_ || !c.reductions.empty() ? Values{1} : Values{1, 2},
          "blocks below each other that fetch one tile of the second operand together"},
         {"split", splits, "parts of k computed apart and summed by a program of its own"},
         {"stream",
          {0, 1},
          "1: the tiles of the last two waves are shared between all blocks by parts of k"},
         {"exchange", exchange ? Values{1, 0} : Values{0, 1},
          "1: the transposed product, second operand first"},
         {"through_shared", narrow ? Values{1, 0} : Values{0, 1},
          "1: results leave through shared memory, whole rows at a time, 0: from registers"}}};
    for (Field& each : space.fields)
      if (!c.reductions.empty() && (each.name == "stream" || each.name == "exchange"))
        each.values = {0};
    if (across(c_) || across(exchanged_))
      space.fields.push_back({"across",
                              across(exchange ? exchanged_ : c_) ? Values{1, 0} : Values{0, 1},
                              "1: the first operand is read across, 0: a program lays it along k"});
    if (promotes())
      space.fields.push_back(
          {"run",
           {1, 4, 8},
           "slots of which each is multiplied while the sums of the one before are added"});
    if (p_.halves())
      space.fields.push_back({"halves", enough_for_halves() ? Values{1, 0} : Values{0, 1},
                              "1: operands are pairs of 16-bit floats, 0: of tf32"});
    if (windows_)
      space.fields.push_back({"y", ys, "pixels of an output tile along the slower axis"});
    return space;
  }

  Status legal(const Schedule& s) const override {
    const Contraction& c = field(s, "exchange") ? exchanged_ : c_;
    const Access& b = c.nest.loads[c.b];
    const auto m = field(s, "block_m");
    const auto n = field(s, "block_n");
    const auto k = field(s, "block_k");
    const auto consumers = field(s, "consumers");
    const auto y = field(s, "y", 1);
    const auto along = (field(s, "exchange") ? m : n) / std::max<int64_t>(y, 1);
    const auto split = field(s, "split", 1);
    const auto cluster = field(s, "cluster", 1);
    const auto resident = field(s, "resident", 1);
    const auto across = field(s, "across");
    const auto accumulators = m * n / (128 * consumers);
    const auto steps = slots_of(c, k);
    const auto run = field(s, "run", 1);
    const auto turns = turns_of(s);
    const auto tiles = ceil_div(c.nest.axes[c.row], m);
    const auto beside = beside_of(s);
    const int64_t most = accumulators_of(turns > 1);
    const Precision precision = this->precision(s);
    const int bytes = bytes_of(precision.operand);
    const int stored = split > 1 ? 4 : bytes_of(c.nest.outputs[0].place.dtype);
    const bool through_shared = field(s, "through_shared") != 0;
    const bool along_n = !windows_ && (b.stride(c.column) == 1 || b.stride(*c.channel) != 1);
    WARPLOOM_CHECK(check_constraints(
        s,
        {{m % (64 * consumers) != 0, "block_m a multiple of 64 rows a consumer", m},
         {accumulators > most,
          "at most 128 accumulators a thread, 96 with a second set, 64 with a third", accumulators},
         {beside > kMostBeside, "whole rows in a cluster of at most 8 blocks", beside},
         {!c.reductions.empty() &&
              (field(s, "exchange") || split > 1 || field(s, "stream") || cluster > 1),
          "exchange=0 split=1 stream=0 cluster=1 where rows are reduced", split},
         {steps < run || (windows_ && steps % run != 0),
          "run=1 where k has fewer slots, or windows no whole runs", run},
         {y < 1 || (y > 1 && !second_), "y=1 where pixels are of one axis", y},
         {windows_ && (along * y != (field(s, "exchange") ? m : n) || along % 8 != 0),
          "patches of whole groups of 8 pixels", along},
         {n % 8 != 0 || n > 256, "8 to 256 columns, a multiple of 8", n},
         {across != 0 && !this->across(c),
          "across=0 where the first operand does not lie along rows", across},
         {across != 0 && m + kApart > 256, "a patch of at most 256 elements", m + kApart},
         {resident > 1 && (consumers > 1 || cluster * beside > 1),
          "resident=1 with two consumers or a cluster", resident},
         {windows_ && cluster > 1, "cluster=1 for convolutions", cluster},
         {cluster > 1 && (tiles < cluster || c.m.size() > 1),
          "cluster=1 where fewer tiles lie below each other", tiles},
         {cluster > 1 && n % (8 * cluster) != 0, "cluster=1 where tiles are too narrow to share",
          n},
         {precision.operand == Dtype::tf32 && k * bytes > 128,
          "block_k of at most 128 bytes of tf32", k},
         {p_.operand == Dtype::i8 && n % 16 && n > 24, "block_n a multiple of 16 for integers", n},
         {along_n && bytes == 2 && n % 16, "block_n of whole 32-byte panels", n},
         {split > 1 && (split - 1) * round_up(ceil_div(steps, split), turns) >= steps,
          "a split that leaves every part some of k", split},
         {through_shared && (n * stored % 32 || !c.nest.outputs[0].place.uses(c.column)),
          "through_shared=0 for narrow tiles", n},
         {through_shared && windows_ && (field(s, "exchange") || !std::has_single_bit(at(n))),
          "through_shared=0 where columns are no power of two", n}}));
    const int64_t count = TileScheduler{c, tile_of(c, s), 1}.count();
    const int64_t stream = field(s, "stream");
    WARPLOOM_CHECK(check_constraints(
        s, {{stream && (split > 1 || cluster > 1 || resident > 1),
             "split=1 cluster=1 resident=1 with stream", split},
            {stream && !c.bounds.empty(), "stream=0 where a triangle bounds the sum", stream},
            {stream && (count < capabilities_.num_sms || count % capabilities_.num_sms == 0),
             "stream=0 where tiles fill every wave, or not even the first", count}}));
    const auto whole = [&](int64_t rows) {
      return round_up(rows * k * bytes, 1024);
    };  // patterns repeat every 1024 bytes
    const auto slot = (whole(m + across * kApart) + whole(n)) * (p_.terms > 1 ? 2 : 1);
    const auto staging = through_shared ? m * n * stored : 0;
    const auto met =
        beside > 1 ? std::ssize(c.reductions) * 8 * beside * m : 0;  // that a cluster's blocks send
    return fits(s, resident * (slot * field(s, "stages") + staging + met + 1024));
  }

  Result<Programs> programs(const Schedule& s) const override {
    Programs out;
    const Contraction c = filled(out, field(s, "exchange") ? exchanged_ : c_, capabilities_);
    const size_t k = *c.channel;
    const auto operand = [&](const char* name, const Access& from, size_t row) {
      const bool is_a = row == c_.row;  // before they were exchanged
      if (windows_)
        return (is_a ? windows_->a : windows_->b).lay({out, is_a ? "a" : "b", p_, capabilities_});
      return OperandPacking{out, name, precision(s), capabilities_}.for_copies(from, row, k);
    };
    const Access& first = c.nest.loads[c.a];
    const Prepared a = field(s, "across") ? Prepared{first, {}} : operand("a", first, c.row);
    const Prepared b = operand("b", c.nest.loads[c.b], c.column);
    const auto split = field(s, "split", 1);
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

 private:
  Precision precision(const Schedule& s) const {
    return p_.halves() && !field(s, "halves") ? Precision{Dtype::tf32, 3} : p_;
  }

  // Whether multiplying takes longer than measuring the operands' rows before, some 10 µs.
  bool enough_for_halves() const {
    double flops = 2;
    for (const int64_t size : c_.nest.axes) flops *= static_cast<double>(size);
    return flops > 2e9;
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

  // Whether the copy engine can read the first operand as it lies, along rows, for tf32 products.
  bool across(const Contraction& c) const {
    const Access& a = c.nest.loads[c.a];
    bool readable = !windows_ && p_.operand == Dtype::tf32 && p_.terms == 1 &&
                    a.stride(c.row) == 1 && a.stride(*c.channel) != 1;
    for (size_t d = 0; d < a.at.size(); ++d)
      readable &= a.at[d].steps[c.row] != 0 || a.strides[d] % 4 == 0;
    return readable;
  }

  // A slot's part of an output tile.
  TileCoord tile_of(const Contraction& c, const Schedule& s) const {
    const auto y = field(s, "y", 1);
    TileCoord tile(c.nest, {{c.row, field(s, "block_m")},
                            {c.column, field(s, "block_n")},
                            {c.channel, field(s, "block_k")},
                            {second_, y}});
    if (second_) tile.extent[c_.column] /= y;
    return tile;
  }

  // The most accumulators a thread: of one set beside others.
  int64_t accumulators_of(bool turns) const {
    return (promotes() && turns) || sets_ > 1 ? 64 : promotes() ? 96 : 128;
  }

  // Blocks that hold a row of the result together.
  int64_t beside_of(const Schedule& s) const {
    return c_.reductions.empty() ? 1 : ceil_div(c_.nest.axes[c_.column], field(s, "block_n"));
  }

  // Slots of k that a round of a consumer's loop multiplies.
  static int64_t turns_of(const Schedule& s) {
    return std::max(1 + field(s, "across"), field(s, "run", 1));
  }

  bool promotes() const { return p_.promotes() || !c_.scales.empty(); }

  // Slots of a sum.
  static int64_t slots_of(const Contraction& c, int64_t depth) {
    return TileCoord(c.nest, {{c.channel, depth}}).count(c.nest, c.k);
  }

  void multiply(Programs& out, const Contraction& c, const Prepared& a, const Prepared& b,
                const Schedule& s) const {
    const LoopNest& nest = c.nest;
    const auto bm = field(s, "block_m");
    const auto bn = field(s, "block_n");
    const auto bk = field(s, "block_k");
    const auto cluster = field(s, "cluster", 1);
    const int consumers = static_cast<int>(field(s, "consumers"));
    const bool split = p_.terms > 1;
    const bool across = field(s, "across") != 0;
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
    const int64_t parts = field(s, "split", 1);
    const int64_t row_blocks = beside_of(s);
    const int64_t blocks = cluster * row_blocks;  // of a cluster
    const TileScheduler order{c, whole, field(s, "group"), cluster, row_blocks};
    TileCoord together =
        whole;  // what the blocks of a cluster compute: all of them go through the same slots
    together.extent[c.row] *= cluster;
    const TileScheduler clusters{c, together, field(s, "group"), 1, row_blocks};
    const int64_t turns = turns_of(s);
    const int64_t steps = round_up(whole.count(nest, summed), turns);
    const int64_t part_steps = round_up(ceil_div(steps, parts), turns);
    const int64_t count = order.count() * parts;
    const int64_t at_once = capabilities_.clusters_at_once(blocks, field(s, "resident", 1));
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
    const auto ring = t.pipeline("ring", static_cast<int>(field(s, "stages")), slots);
    const TensorId lines =
        across ? t.as_strided("lines", slots[0], 0, {bm, bk}, {1, bm + kApart}) : -1;
    const auto box_of = [&](size_t i, const TileCoord& tile) {
      tile::Tile box = from[i].at(tile);
      if (across && i == 0) {
        box.extent.back() += kApart;
        box.step.clear();
      }
      return box;
    };
    const TensorId staging = field(s, "through_shared")
                                 ? t.shared("staging", nest.outputs[0].place.dtype, {bm, bn})
                                 : -1;

    // What blocks leave for the next ones.
    const bool stream = field(s, "stream") != 0;
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
            clusters.at(number).slots_within(c.bounds, *c.channel, begin, end, turns);
        TileCoord tile = order.at(number);
        if (parts > 1) tile.origin.back() = part;
        body(tile, first, last, false);
      };
      t.for_("tile", tile::block(0) / blocks, alone, workers, [&](const Index& turn) {
        if (c.bounds.empty()) return compute(turn);
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
  Contraction exchanged_ = exchanged(c_);
  Precision p_;
  size_t sets_ =
      c_.reductions.empty() ? 1 : std::ranges::max(row_steps(c_), {}, &RowStep::set).set + 1;
  std::optional<size_t> second_ =
      windows_ ? second_column(c_) : std::nullopt;  // of pixels, the slower axis of a patch
};
}  // namespace

FamilyPtr matmul_wgmma_family(const Region& region, const Capabilities& capabilities) {
  auto c = capabilities.has_wgmma && capabilities.has_tma ? contraction_of(region.nests(), true)
                                                          : std::nullopt;
  if (!c || !c->channel) return nullptr;
  const Access& a = c->nest.loads[c->a];
  const Access& b = c->nest.loads[c->b];
  const bool strided = c->n.size() > 1 && b.stride(c->column) != 1 && b.stride(*c->channel) != 1;
  const bool runs = (c->k.size() > 1 && c->scales.empty()) || strided;
  auto windows = runs ? window_order_of(*c) : std::nullopt;
  const auto precision = precision_of(a.dtype, b.dtype, region.track, !windows);
  if (!precision || !stores_whole(*c)) return nullptr;
  if (windows ? !c->triangles.empty()
              : runs || std::max(a.at.size(), b.at.size()) > 5 || !is_whole(a) || !is_whole(b))
    return nullptr;
  const bool plain = c->reductions.empty();
  auto family =
      std::make_shared<MatmulWgmma>(*std::move(c), std::move(windows), *precision, capabilities);
  return plain || family->reduces_rows() ? family : nullptr;
}
}  // namespace warploom::kernels
