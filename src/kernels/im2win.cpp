// Convolution for sm_90a from the input as it lies. A slot holds a patch of the input, planes of
// rows of pixels, and the weights that go with it. Consumers read the windows of the patch, which
// overlap, from shared memory into the registers of the matrix instruction, and round or split them
// there: no window is ever written to memory, and what lies outside counts as the copy engine fills
// it, 0.
//
//   x [100,3,224,224], w [96,3,11,11], strides 4     64 x 2 pixels a tile, 1 channel and 4 rows of
//   the window a slot patch [9, 232]  the rows 4p - 2 .. 4p + 6 of one plane       windows [2, 64,
//   1, 4, 12] at strides [928, 4, 2088, 232, 1] weights [9, 96, 48]  by slots, 11 elements of a row
//   of the window and a zero; channels fastest where a slot has 8 or more
//
// The idea of window order is im2win's (Lu, Chu, Liu, 2023); here it is a view. Operands are tf32,
// or of the fp32 track halves.
#include "kernels/gpu_matmul.h"
#include "kernels/halves.h"
#include "kernels/loop_nest_tiling.h"
#include "layout/memory_layout.h"

namespace warploom::kernels {
namespace {
constexpr int64_t kGroup = 8;       // rows of tiles taken together
constexpr int64_t kMostRows = 256;  // of a box of the copy engine

class Im2win : public Family {
 public:
  // Pixels are rows of the accumulators: the product with its sides exchanged.
  Im2win(const Contraction& contraction, const Precision& precision,
         const Capabilities& capabilities)
      : Family("im2win", capabilities, Specialization::fastest),
        c_(exchanged(contraction)),
        precision_(precision),
        second_(second_column(contraction)) {}

  // Whether the copy engine can fetch patches: pixels are neighbours in memory, all else lies at
  // multiples of 16 bytes.
  bool reads() const {
    const Access& from = input();
    const Access& weights = c_.nest.loads[c_.b];
    const auto plane = from.dim_of(*c_.channel);
    if (!x_ || !plane || plane == x_ || plane == y_ || x_ == y_ || (down_ && !y_) ||
        from.at.size() > 5)
      return false;
    if (from.lookup_dim >= 0 || weights.lookup_dim >= 0 || from.fill != 0 || weights.fill != 0)
      return false;
    if (from.strides[*x_] != 1 || from.at[*x_].steps[c_.row] < 1 || from.at[*plane].begin != 0)
      return false;
    for (size_t d = 0; d < from.at.size(); ++d) {
      const auto& steps = from.at[d].steps;
      const auto moves = std::ranges::count_if(steps, [](int64_t step) { return step != 0; });
      if (std::ranges::min(steps) < 0 || (d != *x_ && from.strides[d] % 4 != 0) ||
          moves > (d == x_ || d == y_ ? 2 : 1))
        return false;
    }
    return weights.dim_of(c_.column) && weights.dim_of(*c_.channel) && weights.dim_of(*c_.window);
  }

  Space space() const override {
    const int64_t columns = size(c_.row);
    const int64_t rows = second_ ? size(second_) : 1;
    const int64_t channels = size(c_.channel);
    const int64_t down = size(down_);
    const int64_t all = round_up(size(c_.column), 8);
    const bool halves = precision_.halves();
    Values across;
    Values deep;
    Values taps = {down};
    Values wide;
    Values ys = {2, 4, 3, 6, 8, 12, 16, 1};
    for (const int64_t x : {64, 32, 16, 8})  // the widest that adds few pixels
      if (x == 8 || round_up(columns, x) * 4 <= columns * 5) across.push_back(x);
    const int64_t neighbours = halves ? 16 : 8;  // channels of an instruction
    for (const int64_t each : {16, 32, 8, 1, 2, 4})
      if (channels % each == 0 && (each >= neighbours || channels % neighbours != 0))
        deep.push_back(each);
    for (int64_t parts = 2; parts <= down; ++parts)
      if (const auto part = ceil_div(down, parts); part < taps.back()) taps.push_back(part);
    for (int64_t part = round_up(down, 4); halves && part > 0; part -= 4)
      if (std::ranges::count(taps, part) == 0) taps.push_back(part);
    for (const int64_t n : {all, int64_t{128}, int64_t{64}, int64_t{32}})
      if (n <= std::min<int64_t>(all, 256) && std::ranges::count(wide, n) == 0) wide.push_back(n);
    std::erase_if(ys, [&](int64_t y) { return y > 1 && y >= 2 * rows; });
    return {
        name(),
        {{"x", across,
          "pixels of a tile along a row; with 64 pixels each consumer has a tile of its own"},
         {"y", ys, "rows of pixels"},
         {"block_n", wide, "output channels of a tile"},
         {"channels", deep, "planes of a slot's patch"},
         {"taps", taps, "rows of the window that a slot takes"},
         {"stages", {4, 3, 6, 5, 2}, "slots of the ring"},
         {"consumers", {2, 3, 1}, "warpgroups that multiply"},
         {"through_shared",
          {1, 0},
          "1: results leave through shared memory, whole rows of pixels at a time, 0: from "
          "registers"},
         {"cluster", {1, 2}, "blocks that fetch the weights of a slot together"},
         {"stay", {1, 0}, "1: all weights stay in shared memory, 0: those of a slot come with it"},
         {"apart",
          {1, 0},
          "1: consumers of 64 pixels begin parts of a tile one after another, so that one "
          "multiplies while another stores"}}};
  }

  Status legal(const Schedule& s) const override {
    const Slot slot(*this, s);
    const auto consumers = field(s, "consumers");
    const auto m = slot.x * slot.y;
    const auto own = slot.tiles;
    const auto n = field(s, "block_n");
    const auto cluster = field(s, "cluster", 1);
    const auto accumulators = m * n * own / (128 * consumers);
    const auto held = m * slot.depth * own / (128 * consumers);
    const bool split = precision_.terms > 1;
    WARPLOOM_CHECK(check_constraints(
        s,
        {{size(c_.channel) % slot.planes != 0, "channels that divide those of the input",
          slot.planes},
         {m != 64 && m % (64 * consumers) != 0,
          "x times y 64, or a multiple of 64 pixels a consumer", m},
         {own * cluster > 1 && n < size(c_.column),
          "tiles of all output channels where consumers, or blocks, have their own", n},
         {cluster > 1 && (field(s, "stay") || n % (8 * cluster) != 0),
          "cluster=1 where weights stay, or are too few", cluster},
         {field(s, "apart") && (own == 1 || slot.count() < own || !field(s, "stay")),
          "apart=0 where consumers share tiles, tiles have fewer slots, or weights come with these",
          own},
         {slot.y > 1 && !second_, "y=1 where rows of pixels lie apart", slot.y},
         {!slot.planes_first && m > 64 * consumers,
          "64 pixels a consumer where slots have few channels", m},
         {(accumulators + held) * (split ? 2 : 1) + (split ? 0 : held) > registers(consumers) - 16,
          "accumulators and windows that fit in a thread's registers", accumulators + held},
         {slot.width > 256 || slot.planes * slot.rows > kMostRows,
          "a patch of at most 256 rows of 256 elements", slot.width},
         {field(s, "stay") && n != size(c_.column), "stay=0, or a tile of all output channels", n},
         {precision_.halves() && !slot.planes_first && slot.taps % 4 != 0,
          "16 planes, or 4 rows of the window, in a slot of halves", slot.taps},
         {slot.depth % (split ? 16 : 8) != 0 || n % 8 != 0,
          "slots of whole instructions of the sum, and 8 columns", slot.depth}}));
    const int64_t stay = field(s, "stay");
    const int64_t stages = field(s, "stages");
    const int64_t patch = own * round_up(slot.planes * slot.rows * slot.width * 4, 128);
    const int64_t weights =
        round_up(n * slot.depth * bytes_of(precision_.operand) * (stay ? slot.count() : 1), 1024) *
        (split ? 2 : 1);
    return fits(s, patch * stages + weights * (stay ? 1 : stages) +
                       (field(s, "through_shared") ? m * n * own * 4 : 0) + 512);
  }

  Result<Programs> programs(const Schedule& s) const override {
    const Slot slot(*this, s);
    Programs out;
    const Prepared laid = lay_weights(out, slot);
    const bool split = precision_.terms > 1;
    const int64_t consumers = field(s, "consumers");
    const int64_t m = slot.x * slot.y;
    const int64_t n = field(s, "block_n");
    const TileCoord whole(c_.nest, {{c_.row, slot.x}, {second_, slot.y}, {c_.column, n}});
    const TileCoord taken(c_.nest, {{c_.channel, slot.planes}, {down_, slot.taps}});
    const TileScheduler order{c_, whole, kGroup};
    const int64_t own = slot.tiles;
    const int64_t cluster = field(s, "cluster", 1);
    const int64_t turns = ceil_div(order.count(), own * cluster);
    const int64_t workers = std::clamp<int64_t>(capabilities_.clusters_at_once(cluster), 1, turns);

    KernelBuilder draft("convolution");
    auto& t = draft.b;
    t.grid(workers * cluster).cluster(cluster).warps(static_cast<int>(4 + 4 * consumers));
    // The input's planes, rows and pixels come last.
    Access input = this->input();
    input.at[*x_].begin = slot.begin;
    const TensorTile A(draft, "A", c_.nest, input, axes_of({c_.channel, down_, c_.window}));
    const auto patch_of = [&](TileCoord tile, const Index& k) {
      tile.extent = taken.extent;
      tile.place(c_.nest, axes_of({c_.channel, down_}), k);
      tile::Tile box = A.at(tile);
      box.extent.back() = slot.width;
      box.step.clear();
      if (y_) box.extent.end()[-2] = slot.rows;
      return box;
    };
    // of the tiles that a slot serves
    std::vector<TensorId> patches;
    std::vector<TensorId> windows;
    for (int64_t i = 0; i < own; ++i)
      patches.push_back(
          t.shared(draft.name("patch", i), Dtype::f32, {slot.planes * slot.rows, slot.width}));
    // The weights of a slot, or all of them in a slot of their own that stays.
    const bool stay = field(s, "stay") != 0;
    const int64_t rows = stay ? slot.count() * n : n;
    const int64_t columns = size(c_.column);
    const int stages = static_cast<int>(field(s, "stages"));
    std::vector<TensorId> from;
    std::vector<TensorId> weights;
    for (const Access& access : {laid.high, laid.low}) {
      if (access.name.empty()) continue;
      const std::string name = from.empty() ? "B" : "B_rest";
      draft.buffers[name] = access.name;
      from.push_back(t.global(name, precision_.operand, {slot.count() * columns, slot.depth}));
      weights.push_back(
          t.shared(weights.empty() ? "b" : "b_rest", precision_.operand, {rows, slot.depth}));
    }
    std::vector<tile::PipelineId> rings;
    for (int64_t i = 0; i < own; ++i)
      rings.push_back(t.pipeline(draft.name("ring", i), stages, {patches[at(i)]}));
    const auto beside = t.pipeline("beside", stay ? 1 : stages, weights);
    const auto fetch = [&](const Index& row) {
      t.produce(beside, [&] {
        for (size_t i = 0; i < from.size(); ++i)
          t.multicast(t.tile(from[i], {row, 0}, {rows, slot.depth}), t.all(weights[i]),
                      cluster > 1 && !stay ? "x" : "");
      });
    };
    for (int64_t i = 0; i < own; ++i)
      windows.push_back(slot.windows(t, patches[at(i)], draft.name("windows", i)));

    // The first tile of a turn's.
    const auto first_of = [&](const Index& turn) {
      return (cluster > 1 ? turn * cluster + tile::cluster_rank() : turn) * own;
    };
    const auto all_turns = [&](const std::function<void(const Index&)>& body) {
      t.for_("turn", tile::block(0) / cluster, turns, workers, body);
    };
    // How many slots of the first consumer come before the first one of another.
    const auto late = [&](int64_t number) {
      return field(s, "apart", 0) ? slot.count() * number / own : 0;
    };
    t.roles([&] {
      t.role("producer", 4, consumers > 1 ? 32 : 0, [&] {
        if (stay) fetch(0);
        const auto produce = [&](int64_t i, const Index& first, const Index& k) {
          t.produce(rings[at(i)],
                    [&] { t.copy(patch_of(order.at(first + i), k), t.all(patches[at(i)])); });
        };
        if (late(1) > 0) {
          const Index mine =
              (Index(turns + workers - 1) - tile::block(0) / cluster) / workers * slot.count();
          return t.for_("number", 0, mine + late(own - 1), 1, [&](const Index& number) {
            for (int64_t i = 0; i < own; ++i) {
              const Index of = number - late(i);
              const auto begun = [&] {
                produce(i, first_of(tile::block(0) / cluster + of / slot.count() * workers),
                        of % slot.count());
              };
              const auto not_ended = [&] {
                i > 0 ? t.if_less(late(i) - 1, number, begun) : begun();
              };
              i < own - 1 ? t.if_less(number, mine + late(i), not_ended) : not_ended();
            }
          });
        }
        all_turns([&](const Index& turn) {
          const Index first = first_of(turn);
          t.for_("k", 0, slot.count(), 1, [&](const Index& k) {
            for (int64_t i = 0; i < own; ++i) produce(i, first, k);
            if (!stay)
              fetch(k * columns + (n < columns ? order.at(first).origin[c_.column] : Index(0)));
          });
        });
      });
      const auto consume = [&](int64_t number) {  // of the tiles that a slot serves
        const std::vector<int64_t> operand = {m, slot.depth};
        const TensorId staging = field(s, "through_shared")
                                     ? t.shared(draft.name("staging", number), Dtype::f32, {m, n})
                                     : -1;
        draft.role = number;
        const TensorId acc = draft.reg("acc", Dtype::f32, {m, n});
        const TensorId part = split ? draft.reg("part", Dtype::f32, {m, n}) : acc;
        const TensorId seen = draft.reg("seen", Dtype::f32, operand);
        const auto reg = [&](const char* stem, Dtype dtype, int64_t wide) {
          return draft.reg(stem, dtype, {m, wide});
        };
        const TensorId a = reg("a", precision_.operand, slot.depth);
        const TensorId rest = split ? reg("a_rest", precision_.operand, slot.depth) : a;
        // What a row's windows are multiplied by, and its products then: of the slot that is read,
        // and of the one that is multiplied.
        const TensorId unit = split ? reg("unit", Dtype::f32, 1) : a;
        const TensorId next_back = split ? reg("next_back", Dtype::f32, 1) : a;
        const TensorId back = split ? reg("back", Dtype::f32, 1) : a;
        // A slot's windows are read while those of the one before are multiplied, a tile's first
        // beside the last of the tile before.
        const auto look = [&] {
          // Where their largest is looked for next, all reads have to end at once.
          t.consume(rings[at(number)], split ? 0 : 1,
                    [&] { t.copy(t.all(windows[at(number)]), t.all(seen)); });
          if (!split) return;
          const TensorId size = reg("size", Dtype::f32, slot.depth);
          t.map(size, tile::apply(ValueOp::abs, {t.value(seen)}));
          t.reduce(unit, size, 1, tile::ReduceOp::max);
          t.map(next_back, halves::back_of(t.value(unit)));
          t.map(unit, halves::unit_of(t.value(unit)));
        };
        const auto add_up = [&] {
          t.map(acc, tile::apply(ValueOp::fma, {t.value(part), t.value(back), t.value(acc)}));
        };
        const auto multiply = [&](const Index& turn, const Index& k) {
          const auto add = [&](TensorId x, size_t which) {
            t.mma(part, t.all(x), t.tile(weights[which], {stay ? k * n : 0, 0}, {n, slot.depth}),
                  false, true);
          };
          const auto add_all =
              [&] {  // the small products first: the matrix unit truncates as it adds
                if (split) {
                  add(rest, 0);
                  add(a, 1);
                }
                add(a, 0);
              };
          if (split) {
            t.map(seen, t.value(seen) * t.value(unit));
            t.map(back, t.value(next_back));
          }
          t.map(a, t.value(seen));
          if (split) t.map(rest, t.value(seen) - t.value(a));
          stay ? add_all() : t.consume(beside, 1, add_all);
          t.if_less((k + 1 - slot.count()) * workers, Index(turns - workers) - turn,
                    look);  // unless it is the last turn's last
        };
        const auto multiply_all = [&] {
          look();
          all_turns([&](const Index& turn) {
            const Index tile = first_of(turn) + number;
            t.fill(acc, 0);
            if (split) {
              t.fill(part, 0);
              t.fill(back, 0);
            }
            t.for_("sum", 0, slot.count(), 1, [&](const Index& k) {
              if (split) {
                add_up();
                t.fill(part, 0);
              }
              multiply(turn, k);
            });
            if (split) add_up();
            const auto finish = [&] {
              const auto axes = axes_of({second_, c_.row, c_.column});
              if (split)
                scale_back(draft, c_, acc, {&laid.most}, order.at(tile), axes, second_ ? 2 : 1);
              store(draft, c_, acc, order.at(tile), axes, second_ ? 2 : 1, staging);
            };
            if (order.count() % (own * cluster) == 0)
              finish();
            else
              t.if_less(tile, order.count(), finish);
          });
        };
        stay ? t.consume(beside, 0, multiply_all) : multiply_all();
      };
      for (int64_t i = 0; i < own; ++i)
        t.role(draft.name("consumer", i), static_cast<int>(4 * consumers / own),
               consumers > 1 ? registers(consumers) : 0, [&] { consume(i); });
    });
    draft.finish(out);
    return out;
  }

 private:
  int64_t size(std::optional<size_t> axis) const { return axis ? c_.nest.axes[*axis] : 1; }

  const Access& input() const { return c_.nest.loads[c_.a]; }

  static int registers(int64_t consumers) {
    return consumers == 1 ? 255 : consumers == 2 ? 232 : 160;
  }

  // The window's slower axis.
  std::optional<size_t> other_window() const {
    const auto other = std::ranges::find_if(
        c_.k, [&](size_t axis) { return axis != c_.channel && axis != c_.window; });
    return other == c_.k.end() ? std::nullopt : std::optional(*other);
  }

  // What a slot of the ring holds.
  struct Slot {
    Slot(const Im2win& family, const Schedule& schedule) : of(family), s(schedule) {
      if (down) rows = (y - 1) * move_y + (taps - 1) * apart_y + 1;
      if (y > 1 && move_y == 0)
        rows = kMostRows + 1;  // rows of pixels that are not those of one plane
      // Pixels beyond a row's end read on into the next row, which the last one needs too.
      const int64_t pixels = (down ? std::min(x, of.size(of.c_.row)) : x) - 1;
      const int64_t needed = round_up(first + pixels * move_x + (across - 1) * apart_x + 1, 4);
      for (bool inside = false; !inside; rows += inside ? 0 : 1) {
        width = needed;
        int least = conflicts(needed);
        for (int64_t wider = needed + 4; least > 1 && wider < needed + 32; wider += 4)
          if (const int ways = conflicts(wider); ways < least) {
            width = wider;
            least = ways;
          }
        inside = first + (x - 1) * move_x + (across - 1) * apart_x +
                     ((y - 1) * move_y + (taps - 1) * apart_y) * width <
                 rows * width;
        if (inside && least > 1 && planes_first && rows % 2 == 0)
          inside = false;  // planes of whole lines of banks
      }
      const Term plane{of.c_.channel, planes, rows * width};
      const Term tap{of.down_, taps, apart_y * width};
      const Term element{of.c_.window, across, apart_x};
      const auto add = [&](const Term& term, int64_t extent, int64_t every = 1) {
        terms.push_back({term.axis, extent, term.apart * every, every});
      };
      if (!of.precision_.halves())
        terms = planes_first ? std::vector{tap, element, plane} : std::vector{plane, tap, element};
      else if (planes_first) {
        add(tap, taps);
        add(element, across);
        add(plane, planes / 8, 8);
        add(plane, 4);
        add(plane, 2, 4);
      } else {
        add(plane, planes);
        add(element, across / 4, 4);
        add(tap, taps / 2, 2);
        add(element, 4);
        add(tap, 2);
      }
    }

    int64_t count() const { return groups * parts; }

    // How many words of one bank the 8 pixels and 4 elements of the sum that a warp reads at once
    // want.
    int conflicts(int64_t wide) const {
      const int64_t next = planes_first ? rows * wide : apart_x;
      return layout::bank_conflict_ways({{8, 4}, {{4, {0, 1}}, {8, {1, 0}}}, {}},
                                        {{{{8, move_x}}, {{4, next}}}, {}, 32}, 4);
    }

    TensorId windows(tile::Builder& t, TensorId patch, const std::string& name) const {
      std::vector<int64_t> shape = {y, x};
      std::vector<int64_t> strides = {move_y * width, move_x};
      for (const Term& term : terms) {
        shape.push_back(term.extent);
        strides.push_back(term.apart);
      }
      return t.as_strided(name, patch, static_cast<int>(first), shape, strides);
    }

    const Im2win& of;
    const Schedule& s;
    // pixels of a tile
    int64_t x = field(s, "x");
    int64_t y = field(s, "y");
    int64_t planes = field(s, "channels");
    int64_t taps = field(s, "taps");  // channels, rows of the window
    // Of tiles that it serves: one a consumer where they have 64 pixels, so that few lie beyond the
    // image.
    int64_t tiles = x * y == 64 ? field(s, "consumers") : 1;
    bool planes_first = planes % (of.precision_.halves() ? 16 : 8) ==
                        0;  // of the elements of the sum, channels are neighbours
    int64_t groups = of.size(of.c_.channel) / planes;
    int64_t parts = ceil_div(of.size(of.down_), taps);  // of the window's rows
    int64_t across = planes_first ? of.size(of.c_.window)
                                  : round_up(of.size(of.c_.window), 4);  // elements of one
    int64_t depth = planes * taps * across;
    const Affine& along = of.input().at[*of.x_];
    const Affine* down = of.y_ ? &of.input().at[*of.y_] : nullptr;
    int64_t move_x = along.steps[of.c_.row];
    int64_t move_y = down && of.second_ ? down->steps[*of.second_] : 0;  // from pixel to pixel
    int64_t apart_x = along.steps[*of.c_.window];
    int64_t apart_y = down ? down->steps[*of.down_] : 0;  // between the window's elements
    int64_t first = along.begin & 3;
    int64_t begin =
        along.begin - first;  // the first window's place in a row, where the patch begins
    int64_t rows = 1;
    int64_t width = 1;

    struct Term {
      std::optional<size_t> axis;
      // in the patch
      int64_t extent;
      int64_t apart;
      int64_t every = 1;  // along the axis
    };

    // Of the sum, slowest first. Lanes that read at once take 4 neighbours; of halves each has a
    // pair, whose other one lies elsewhere.
    std::vector<Term> terms;
  };

  // Weights slot by slot, with zeros where a slot reaches beyond the window.
  Prepared lay_weights(Programs& out, const Slot& slot) const {
    const Access& from = c_.nest.loads[c_.b];
    graph::Shape axes = {slot.groups, slot.parts, size(c_.column)};
    for (const auto& term : slot.terms) axes.push_back(term.extent);
    Access source = from;
    Access made = {.shape = axes, .strides = graph::strides_of(axes)};
    for (Affine& place : source.at) {
      const std::vector<int64_t> steps =
          std::exchange(place.steps, std::vector<int64_t>(axes.size()));
      const auto follow = [&](std::optional<size_t> old, size_t axis, int64_t times = 1) {
        if (old) place.steps[axis] += steps[*old] * times;
      };
      follow(c_.channel, 0, slot.planes);
      follow(down_, 1, slot.taps);
      follow(c_.column, 2);
      for (size_t i = 0; i < slot.terms.size(); ++i)
        follow(slot.terms[i].axis, 3 + i, slot.terms[i].every);
    }
    source.inside = false;
    for (size_t axis = 0; axis < axes.size(); ++axis) made.at.push_back(along(axis, axes.size()));
    std::vector<size_t> over = {0, 1};
    for (size_t axis = 3; axis < axes.size(); ++axis) over.push_back(axis);
    Prepared laid = OperandPacking{out, "b", precision_, capabilities_}.written(
        axes, over, source, made, graph::element_count(axes), 128);
    laid.most.at = {along(c_.column, c_.nest.axes.size())};
    return laid;
  }

  Contraction c_;
  Precision precision_;
  std::optional<size_t> second_;
  std::optional<size_t> down_ = other_window();  // the slower axes of pixels and of the window
  std::optional<size_t> x_ = input().dim_of(*c_.window);  // dimensions of the input
  std::optional<size_t> y_ = down_ ? input().dim_of(*down_) : std::nullopt;
};
}  // namespace

FamilyPtr im2win_family(const Region& region, const Capabilities& capabilities) {
  const auto c = capabilities.has_wgmma && capabilities.has_tma ? contraction_of(region.nests())
                                                                : std::nullopt;
  if (!c || !c->channel || !c->window || c->k.size() > 3 || c->m.size() > 1 || !c->batch.empty())
    return nullptr;
  const Access& input = c->nest.loads[c->b];
  const Access& weights = c->nest.loads[c->a];
  const auto precision = precision_of(weights.dtype, input.dtype, region.track, true);
  if (!precision || weights.dtype != Dtype::f32 || !stores_whole(*c)) return nullptr;
  auto family = std::make_shared<Im2win>(*c, *precision, capabilities);
  return family->reads() ? family : nullptr;
}
}  // namespace warploom::kernels
