// Any nest with at most one level of reduction, for GPUs and CPUs: out = epilogue(reduce over loops
// (prologue(loads))); or with scans along one axis: a block goes along it tile by tile, and takes
// along what it has passed.
//
// A block computes one tile of the output: `x` elements along its fastest axis, `y` along a second
// one (that along which another tensor is fastest, as in a transpose; or along which an operand of
// a product is used again), one along all others. Reduced axes are loops, except that `lanes`
// elements of the one that lies fastest in memory are taken at once and brought together at the
// end, and that short ones (a window's) may be written out. Where a tensor is read outside, the
// copy's fill is its value.
#include "kernels/kernel_builder.h"
#include "kernels/loop_nest_tiling.h"
#include "loopnest/contraction.h"

namespace warploom::kernels {
namespace direct {
int fastest(const Access& access) {
  int best = -1;
  const int axes = access.at.empty() ? 0 : static_cast<int>(access.at[0].steps.size());
  for (int a = 0; a < axes; ++a)
    if (const auto stride = stride_along(access, a);
        stride > 0 && (best < 0 || stride < stride_along(access, best)))
      best = a;
  return best;
}

std::vector<int64_t> tile_of(const LoopNestTiling& form, const Schedule& s) {
  std::vector<int64_t> tile(form.nest.axes.size(), 1);
  const auto set = [&](int axis, const char* name) {
    if (axis >= 0) tile[at(axis)] = field(s, name);
  };
  int64_t rest = field(s, "x");
  for (const int axis : form.wide) {
    const bool last = axis == form.wide.back();
    tile[at(axis)] = last ? rest : std::min(rest, power_of_two_above(form.nest.axes[at(axis)]));
    rest /= tile[at(axis)];
  }
  set(form.roles.y, field(s, "rows") == 1 ? "rows" : "y");
  set(form.roles.lanes, "lanes");
  return tile;
}

int64_t widest(const LoopNestTiling& form) {
  int64_t elements = 1;
  for (const int axis : form.wide)
    elements *= axis == form.wide.back() ? form.nest.axes[at(axis)]
                                         : power_of_two_above(form.nest.axes[at(axis)]);
  return elements;
}

namespace {
std::optional<LoopNestTiling::Product> product_of(const LoopNestTiling& form) {
  const LoopNest& n = form.nest;
  const auto c = contraction_of(n);
  if (!c || form.roles.y < 0 || c->scaled || !c->triangles.empty()) return std::nullopt;
  const size_t x = at(form.roles.x);
  const size_t y = at(form.roles.y);
  const Access& a = n.loads[c->a];
  const Access& b = n.loads[c->b];
  if (!a.inside || !a.uses(y) || a.uses(x) || b.uses(y) || !b.uses(x)) return std::nullopt;
  LoopNestTiling::Product found{a, b,         {c->a, c->b},   static_cast<int>(c->k[0]),
                                1, c->bounds, part_within(*c)};
  for (const Affine& coordinate : b.at)  // of a window with one channel: no box holds both
    if (coordinate.steps[c->k[0]] != 0 && coordinate.steps[x] != 0) return std::nullopt;
  Access& flat = found.a;
  int64_t size = 1;
  int64_t stride = 0;
  for (size_t d = a.at.size(); d-- > 0;) {
    if (!steps_along(a.at[d], c->k)) continue;
    if (a.at[d].begin != 0) return std::nullopt;  // backwards, as in transposed convolutions
    if (size == 1) stride = a.strides[d];
    if (a.strides[d] != stride * size) return std::nullopt;
    size *= a.shape[d];
    flat.erase(d);
  }
  for (const size_t axis : c->k) found.taps *= n.axes[axis];
  if (size != found.taps) return std::nullopt;
  found.taps /= n.axes[c->k[0]];
  flat.shape.push_back(size);
  flat.strides.push_back(stride);
  flat.at.push_back(along(at(found.k), n.axes.size(), found.taps));
  return found;
}

std::optional<LoopNestTiling> form_of(LoopNest nest, bool gpu) {
  LoopNestTiling form{.nest = std::move(nest)};
  const LoopNest& n = form.nest;
  form.reduced = n.reduced();
  std::vector<bool> behind(n.values.size(), false);  // a reduction
  const std::vector<int>* over = nullptr;
  for (size_t v = 0; v < n.values.size(); ++v) {
    const Expr& value = n.values[v];
    for (const int operand : value.operands) behind[v] = behind[v] || behind[at(operand)];
    if (value.kind == Kind::reduce) {
      if (behind[v] || (over && *over != value.axes)) return std::nullopt;
      over = &value.axes;
      behind[v] = true;
    }
    for (size_t a = 0; a < n.axes.size(); ++a)
      if (behind[v] && value.varies[a] && form.reduced[a]) return std::nullopt;
  }
  if (const Expr* scan = n.scan()) {
    for (const Expr& value : n.values)
      if (value.kind == Kind::reduce ||
          (value.kind == Kind::scan &&
           std::tie(value.axes, value.reverse) != std::tie(scan->axes, scan->reverse)))
        return std::nullopt;
    form.scanned = scan->axes[0];
    form.reverse = scan->reverse;
  }
  for (const auto& output : n.outputs)
    for (size_t a = 0; a < n.axes.size(); ++a)
      if (form.reduced[a] && (output.place.uses(a) || n.values[at(output.value)].varies[a]))
        return std::nullopt;
  TilingRoles& roles = form.roles;
  for (size_t a = 0; a < n.axes.size(); ++a)
    if (!form.reduced[a] && n.axes[a] > 1) roles.x = static_cast<int>(a);
  for (const Access& load : n.loads) {
    const int own = fastest(load);
    if (own < 0 || own == roles.x) continue;
    if (!form.reduced[at(own)])
      roles.y = own;
    else if (const auto stride = gpu && n.has_integers() ? 1 : stride_along(load, roles.x);
             stride == 0 || (stride > 8 && n.loads.size() == 1))
      roles.lanes = own;
  }
  for (const Access& load : n.loads)  // reused along an axis that another varies along
    for (const Access& other : n.loads)
      for (int a = roles.x - 1; a >= 0 && over && roles.y < 0; --a)
        if (!form.reduced[at(a)] && load.uses(at(roles.x)) && !load.uses(at(a)) &&
            other.uses(at(a)) && !other.uses(at(roles.x)))
          roles.y = a;
  for (int a = roles.x - 1; a >= 0 && roles.y < 0; --a)
    if (!form.reduced[at(a)] && n.axes[at(a)] > 1) roles.y = a;
  if (form.scanned >= 0 && form.scanned != roles.x) roles.y = form.scanned;
  const auto backwards = [&](size_t a) {  // no box goes along it
    return std::ranges::any_of(n.loads, [&](const Access& load) {
      return std::ranges::any_of(load.at,
                                 [&](const Affine& coordinate) { return coordinate.steps[a] < 0; });
    });
  };
  const auto together =
      [&](int a, int b) {  // a dimension follows both, of which no box has several elements then
        return std::ranges::any_of(n.loads, [&](const Access& load) {
          return std::ranges::any_of(
              load.at, [&](const Affine& c) { return c.steps[at(a)] != 0 && c.steps[at(b)] != 0; });
        });
      };
  const bool moves = gpu && form.scanned < 0 && std::ranges::count(form.reduced, true) == 0;
  for (int a = roles.x; moves && a >= 0; --a)
    if (!form.reduced[at(a)] && n.axes[at(a)] > 1 && a != roles.y && !backwards(at(a)) &&
        (roles.y < 0 || !together(a, roles.y)) &&
        std::ranges::none_of(form.wide, [&](int other) { return together(a, other); }))
      form.wide.push_back(a);
  if (form.wide.empty() && roles.x >= 0) form.wide.push_back(roles.x);
  int64_t longest = 1;
  for (size_t a = 0; a < n.axes.size(); ++a)
    if (form.reduced[a]) {
      roles.window *= n.axes[a];
      longest = std::max(longest, n.axes[a]);
    }
  if (roles.window > longest) roles.window /= longest;
  if (!gpu) form.product = product_of(form);
  for (int a = 0; a < roles.x && form.product; ++a)
    if (!form.reduced[at(a)] && form.product->b.uses(at(a)) && !form.product->a.uses(at(a)))
      roles.z = a;
  return form;
}

bool is_box(const Access& access, const std::vector<int64_t>& tile,
            const std::vector<int64_t>& axes) {
  std::vector<int> used(tile.size(), 0);
  for (const Affine& c : access.at) {
    const bool gathered = access.lookup_dim >= 0 && &c == &access.at[at(access.lookup_dim)];
    int along = 0;
    int all = 0;
    bool whole = true;
    for (size_t a = 0; a < tile.size(); ++a) {
      all += c.steps[a] != 0;
      if (c.steps[a] == 0 || tile[a] == 1) continue;
      ++along;
      whole = whole && axes[a] % tile[a] == 0;
      if (++used[a] > 1 || c.steps[a] < 0 || (gathered && c.steps[a] != 1)) return false;
    }
    // Beyond the axis the next element of another one may lie.
    if (along > 1 || (along == 1 && all > 1 && access.inside && !whole)) return false;
  }
  return true;
}

// Of all nests of a region; none where one of them has more than a level of reductions or scans, or
// types that the target does not compute with.
std::vector<LoopNestTiling> forms_of(const Region& region, const Capabilities& capabilities) {
  std::vector<LoopNestTiling> forms;
  for (const LoopNest& nest : region.nests()) {
    auto form = form_of(nest, capabilities.gpu);
    const bool converts = !capabilities.gpu || capabilities.fp8_tflops > 0;  // floats of 8 bits
    const auto loaded = [&](const Access& access) {
      return is_computed(access.dtype) ||
             (converts && is_float(access.dtype) && bits_of(access.dtype) == 8);
    };
    const auto stored = [&](const LoopNest::Output& output) {
      const Dtype dtype = output.place.dtype;
      return is_computed(dtype) || (!capabilities.gpu && is_float(dtype) && bits_of(dtype) == 8);
    };
    if (!form || !std::ranges::all_of(nest.loads, loaded) ||
        !std::ranges::all_of(nest.outputs, stored))
      return {};
    // Threads of a GPU combine floats alone.
    const auto combines = [](const Expr& value) {
      return value.integers && value.kind == Kind::scan;
    };
    if (capabilities.gpu && std::ranges::any_of(nest.values, combines)) return {};
    forms.push_back(std::move(*form));
  }
  return forms;
}

// Whether a box of every tensor is what a tile of these extents takes: each dimension follows one
// axis, forwards.
bool takes_boxes(const LoopNestTiling& form, const std::vector<int64_t>& tile) {
  const auto fits = [&](const Access& access) { return is_box(access, tile, form.nest.axes); };
  return std::ranges::all_of(form.nest.loads, fits) &&
         std::ranges::all_of(form.nest.outputs,
                             [&](const auto& output) { return fits(output.place); });
}

constexpr int64_t kResident = 4;  // blocks a multiprocessor that walk together

class Direct final : public Family {
 public:
  Direct(std::vector<LoopNestTiling> forms, const Capabilities& capabilities)
      : Family("direct", capabilities, Specialization::general), forms_(std::move(forms)) {}

  Space space() const override {
    Space space{name(), {}};
    const bool gpu = capabilities_.gpu;
    const int64_t vector = gpu ? 32 : capabilities_.lanes();
    int64_t x = 1;
    int64_t y = 1;
    int64_t lanes = 1;
    int64_t window = 1;
    bool in_turn = true;
    for (const LoopNestTiling& form : forms_) {
      in_turn = in_turn && (form.scanned < 0 || form.scanned != form.roles.y);
      const auto grow = [&](int64_t& size, int axis) {
        if (axis >= 0) size = std::max(size, form.nest.axes[at(axis)]);
      };
      x = std::max(x, widest(form));
      grow(y, form.roles.y);
      grow(lanes, form.roles.lanes);
      window = std::max(window, form.roles.window);
    }
    const auto fitting = [&](int64_t size, Values values) {
      std::erase_if(values, [&](int64_t value) {
        return value > 1 && (gpu ? value / 2 >= size : value > size);
      });
      if (!gpu && size <= 4096 && std::ranges::find(values, size) == values.end())
        values.insert(values.begin(), size);
      return values;
    };
    const LoopNestTiling& form = forms_[0];
    Values wide =
        gpu ? Values{256, 128, 512, 64, 1024, 32, 16, 8, 4, 2, 1}
            : Values{2048, 1024, 512, 256, 4096, 128, 64, 4 * vector, 2 * vector, vector, 1};
    if (gpu && form.scanned >= 0 && form.scanned == form.roles.x)
      wide.insert(wide.end(), {2048, 4096, 8192, 16384});
    space.fields = {
        {"x", fitting(x, wide), "elements of a tile along the output's fastest axis"},
        {"y", fitting(y, {1, 2, 4, 8, 16, 32, 64}), "elements of a tile along a second axis"},
        {"lanes", fitting(lanes, lanes == 1 ? Values{1} : wide),
         "elements of the reduced axis that lies fastest in memory, taken at once"},
        {"unroll", window > 1 && window <= 49 ? Values{8, 1} : Values{1},
         "reduced axes of at most this many elements are written out"}};
    if (gpu) space.fields.push_back({"warps", {4, 8, 2, 1, 16}, "warps a block"});
    if (gpu && forms_.size() == 1 && forms_[0].scanned >= 0) {
      Values together = {1};
      int64_t lines = 1;
      for (size_t a = 0; a < form.nest.axes.size(); ++a)
        if (!form.walked(a))
          lines *= static_cast<int>(a) == form.roles.x ? ceil_div(form.nest.axes[a], 32)
                                                       : form.nest.axes[a];
      for (int64_t blocks = 2; blocks * lines <= kResident * capabilities_.num_sms; blocks *= 2)
        together.insert(together.begin(), blocks);
      if (3 * lines > capabilities_.num_sms) together = {1};
      space.fields.push_back(
          {"together", together,
           "blocks that walk along a line of scans together, and look back at each other"});
    }
    if (!gpu && is_large())
      space.fields.push_back(
          {"streaming",
           {1, 0},
           "1: the result is written past the caches, in vectors that it fills whole"});
    if (!gpu)
      space.fields.push_back({"rows", y > 1 && in_turn ? Values{1, 0} : Values{0},
                              "1: the rows of a tile are taken one after another, each in "
                              "registers from memory to memory"});
    if (gpu || forms_.size() > 1 || !form.product) return space;
    space.fields[1].values = fitting(y, {64, 128, 256, 32, 16, 8, 4, 1});
    Values rows = {1};
    for (const int64_t count : {2, 4, 7, 8, 14, 16, 28})
      if (form.roles.z >= 0 && count <= form.nest.axes[at(form.roles.z)]) rows.push_back(count);
    space.fields.push_back(
        {"product", {1, 0}, "1: sums of products are matrix products of blocks in scratch memory"});
    space.fields.push_back({"z", rows, "rows of x taken together in a product"});
    space.fields.push_back({"depth", depths_of(form),
                            "elements of the longest summed axis taken at once in a product"});
    return space;
  }

  Status legal(const Schedule& s) const override {
    const bool gpu = capabilities_.gpu;
    const int64_t lanes = field(s, "lanes");
    const int64_t unroll = field(s, "unroll");
    const int64_t warps = field(s, "warps", !gpu);
    const int64_t threads = warps * 32;
    const int64_t z = field(s, "z");
    const int64_t depth = field(s, "depth");
    const int64_t rows = field(s, "rows");
    const int64_t together = field(s, "together", 1);
    const int64_t least = std::min({field(s, "x"), field(s, "y"), lanes, unroll, warps, together});
    WARPLOOM_CHECK(check_constraints(
        s, {{least < 1, "x, y, lanes, unroll and, on a GPU, warps of at least 1", least},
            {gpu && field(s, "streaming"), "streaming=0 on a GPU", 1}}));
    for (const LoopNestTiling& form : forms_) {
      const auto tile = tile_of(form, s);
      const bool product = form.product && field(s, "product") == 1;
      int64_t elements = 1;
      int64_t written = 1;
      bool within = true;
      for (size_t a = 0; a < tile.size(); ++a) {
        const int64_t size = form.nest.axes[a];
        within &= tile[a] == 1 || (gpu ? tile[a] / 2 < size : tile[a] <= size);
        elements *= tile[a];
        if (form.reduced[a] && size <= unroll) written *= size;
      }
      if (together > 1) WARPLOOM_CHECK(legal_together(form, s, tile));
      const int y = form.roles.y;
      const bool apart = y < 0 || (y != form.scanned && field(s, "y") <= form.nest.axes[at(y)]);
      WARPLOOM_CHECK(check_constraints(
          s, {{rows == 1 && (gpu || product || !apart || field(s, "y") < 2 || z > 1),
               "rows=1 on a CPU without products, of 2 rows or more that no scan goes along",
               field(s, "y")}}));
      if (product) {
        WARPLOOM_CHECK(legal_product(form, s, tile));
        elements = 1;
      }
      const bool multiplies = std::ranges::any_of(form.nest.values, [](const Expr& v) {
        return v.kind == Kind::reduce && v.op == ValueOp::mul;
      });
      WARPLOOM_CHECK(check_constraints(
          s, {{!within, "a tile no larger than its axes", elements},
              {!product && (z > 1 || depth > 0) && (z != 1 || depth != depths_of(form).front()),
               "z and depth as they come without products", depth},
              {written > 64, "at most 64 bodies written out", written},
              {multiplies && form.roles.lanes >= 0 && lanes > 1,
               "lanes=1 for a product of all elements", lanes},
              {!takes_boxes(form, tile), "tiles that are boxes of every tensor", elements},
              {gpu && (elements > threads * 32 || (elements < threads && warps > 1)),
               "1 to 32 elements a thread", elements},
              {!gpu && elements > 8192, "at most 8192 elements a tile", elements}}));
    }
    return ok();
  }

  // Of lines that several blocks walk along.
  Status legal_together(const LoopNestTiling& form, const Schedule& s,
                        const std::vector<int64_t>& tile) const {
    const bool scans = capabilities_.gpu && form.scanned >= 0 && forms_.size() == 1;
    const int64_t together = field(s, "together");
    const int64_t along = scans ? tile[at(form.scanned)] : 1;
    int64_t blocks = together;
    int64_t beside = 1;
    for (size_t a = 0; a < tile.size(); ++a) {
      if (!form.walked(a)) {
        blocks *= ceil_div(form.nest.axes[a], tile[a]);
        beside *= tile[a];
      }
    }
    const int64_t resident = ceil_div(blocks, capabilities_.num_sms);
    return check_constraints(
        s, {{!scans, "together=1 without scans, or on a CPU", together},
            {form.scanned == form.roles.x && beside > 1,
             "y=1 where lines along x are walked along together", beside},
            {along < 2 || (together - 1) * along >= form.nest.axes[at(std::max(form.scanned, 0))],
             "together=1, or a tile of the line for every block", along},
            {resident > kResident || resident * field(s, "warps") > 32,
             "no more blocks that walk together than multiprocessors hold: 4 and 32 warps each",
             blocks}});
  }

  // Of a sum of products by blocks.
  Status legal_product(const LoopNestTiling& form, const Schedule& s,
                       const std::vector<int64_t>& tile) const {
    const int64_t m = tile[at(form.roles.y)];
    const int64_t x = tile[at(form.roles.x)];
    const int64_t z = field(s, "z");
    const int64_t depth = field(s, "depth");
    const int64_t elements = m * x * z;
    const int axis = form.roles.z;
    const bool apart = std::ranges::any_of(form.nest.values, [&](const Expr& value) {
      return value.kind == Kind::index ||
             (axis >= 0 && value.varies[at(axis)] && !value.varies[at(form.roles.x)]);
    });
    WARPLOOM_CHECK(check_constraints(
        s, {{m == 1 || x == 1 || field(s, "unroll") != 1 || field(s, "lanes") != 1 || z < 1 ||
                 depth < 1 || elements > 32768,
             "x and y of at least 2, unroll=1 lanes=1, at most 32768 elements", elements},
            {z > 1 && (axis < 0 || z > form.nest.axes[at(axis)]), "z within its axis", z},
            {z > 1 && apart, "z=1 where a value varies along z and not along x", z}}));
    return fits(s, 4 * (m + x * z + 32) * depth * form.product->taps + 8192);
  }

  static Values depths_of(const LoopNestTiling& form) {
    const int64_t size = form.nest.axes[at(form.product->k)];
    Values out;
    for (const int64_t count : {256, 384, 512, 128, 64, 32, 16, 8, 4})
      if (count * form.product->taps <= 600 && count < size && (count <= 256 || size % count == 0))
        out.push_back(count);
    if (size * form.product->taps <= 600 || out.empty())
      out.insert(out.begin(), std::min<int64_t>(size, 600));
    return out;
  }

  // Cycles of the busiest core: vectors of every value, loads that are no vectors, and the handing
  // out of tasks.
  double guess(const Schedule& s) const override {
    double all = 0;
    for (const LoopNestTiling& form : forms_) {
      const auto extents = tile_of(form, s);
      const std::vector<double> tile(extents.begin(), extents.end());
      const bool product = form.product && field(s, "product") == 1;
      const bool in_turn = form.in_turn(s);
      std::vector<double> taken = tile;  // by a task
      if (product && form.roles.z >= 0)
        taken[at(form.roles.z)] = static_cast<double>(field(s, "z"));
      if (in_turn) taken[at(form.roles.y)] = static_cast<double>(field(s, "y"));
      double tasks = 1;
      double trips = 1;
      double task = 0;
      for (size_t a = 0; a < tile.size(); ++a)
        (form.walked(a) ? trips : tasks) *=
            std::ceil(static_cast<double>(form.nest.axes[a]) / taken[a]);
      if (product)
        task = cycles_of_product(form, s, tile, trips);
      else
        for (const Expr& value : form.nest.values) task += cycles_of(form, value, tile, trips);
      if (in_turn) task *= taken[at(form.roles.y)];
      all += std::ceil(tasks / capabilities_.num_sms) * (task + 30);
    }
    return is_large() && field(s, "streaming") == 0 ? all * 1.1 : all;
  }

  // Whether no cache holds the results.
  bool is_large() const {
    double bytes = 0;
    for (const LoopNestTiling& form : forms_)
      for (const auto& output : form.nest.outputs)
        bytes += 4 * static_cast<double>(graph::element_count(output.place.shape));
    return bytes > 32e6;
  }

  double cycles_of_product(const LoopNestTiling& form, const Schedule& s,
                           const std::vector<double>& tile, double trips) const {
    const double m = tile[at(form.roles.y)];
    const double x = tile[at(form.roles.x)];
    const double rows = static_cast<double>(field(s, "z"));
    const double taps = static_cast<double>(form.product->taps);
    const double deep = taps > 1 ? taps : static_cast<double>(field(s, "depth"));
    const double wide = std::ceil(x * rows / lanes_);
    const double copied = std::ceil(x / lanes_) * (form.product->b.inside ? 2 : 4) + 1;
    return trips * form.product->part *
               (m * wide * (0.5 + 1.5 / deep) + 2 * m / lanes_ + rows * copied) +
           m * wide * 4;
  }

  double cycles_of(const LoopNestTiling& form, const Expr& value, const std::vector<double>& tile,
                   double trips) const {
    if (value.kind == Kind::constant) return 0;
    double elements = 1;
    double times = 1;
    double row = 1;
    for (size_t a = 0; a < tile.size(); ++a) {
      if (value.varies[a] && tile[a] > 1) {
        elements *= tile[a];
        row = tile[a];
      }
      if (value.varies[a] && form.walked(a)) times = trips;
    }
    const bool fused =
        elements == row;  // what lies in one row shares a loop and stays in registers
    const double vectors = elements / row * std::ceil(row / lanes_);
    double cycles = vectors * (fused ? 1 : 3) + 2;
    if (value.kind == Kind::load) {
      const Access& load = form.nest.loads[at(value.load)];
      const int own = fastest(load);
      const int inner = form.roles.lanes >= 0 ? form.roles.lanes : form.roles.x;
      if (elements > 1 && (own != inner || stride_along(load, own) != 1 || tile[at(own)] == 1)) {
        const bool pairs = own == inner && stride_along(load, own) == 2;
        const bool turned = own == form.roles.y && std::fmod(tile[at(own)], 8) == 0 &&
                            std::fmod(row, lanes_) == 0;  // in registers
        cycles = pairs && fused ? 3 * vectors : elements * (turned ? 0.4 : pairs ? 0.3 : 1.5);
      }
      if (!load.inside) cycles = fused ? cycles + 2 * vectors : cycles * 2 + 10;
    }
    if (value.kind == Kind::scan) cycles = 5 * vectors + 20;
    return times * (value.kind == Kind::apply ? cycles * 2 / 3 : cycles);
  }

  Result<Programs> programs(const Schedule& s) const override {
    Programs out;
    for (const LoopNestTiling& form : forms_)
      add_program(
          out, form, s, capabilities_,
          out.programs.empty() ? name() : fmt::format("direct_part{}", out.programs.size()));
    return out;
  }

 private:
  std::vector<LoopNestTiling> forms_;
  double lanes_ = capabilities_.lanes();
};
}  // namespace

void add_program(Family::Programs& out, const std::string& name, LoopNest nest, int64_t y,
                 int64_t x, const Capabilities& capabilities) {
  const LoopNestTiling form = *form_of(normal_form(std::move(nest)), capabilities.gpu);
  const auto up_to = [](int64_t most, int64_t all) {
    int64_t size = 1;
    while (size < most && size < all) size *= 2;
    return size;
  };
  const int64_t high = up_to(y, form.roles.y < 0 ? 1 : form.nest.axes[at(form.roles.y)]);
  int64_t elements = 1;
  int64_t wide = up_to(form.roles.y < 0 ? y * x : x, widest(form));
  for (size_t a = 0; a < form.nest.axes.size(); ++a)
    elements *= form.reduced[a] ? 1 : form.nest.axes[a];
  while (wide > 64 && elements < high * wide * capabilities.num_sms)
    wide /= 2;  // a tile for everyone
  const int64_t warps = std::clamp<int64_t>(high * wide / 128, 1, 8);
  add_program(
      out, form,
      DirectConfig{
          .tile_x = wide, .tile_y = high, .reduction_tile = 1, .unroll = 32, .warps = warps},
      capabilities, name);
}
}  // namespace direct

FamilyPtr direct_family(const Region& region, const Capabilities& capabilities) {
  auto forms = direct::forms_of(region, capabilities);
  return forms.empty() ? nullptr : std::make_shared<direct::Direct>(std::move(forms), capabilities);
}
}  // namespace warploom::kernels
