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
#include "kernels/pieces/loop_kernel.h"

namespace warploom::kernels {
namespace direct {
namespace {
std::vector<int64_t> tile_of(const LoopNestTiling& form, const Schedule& s) {
  std::vector<int64_t> tile(form.nest.axes.size(), 1);
  const auto set = [&](MaybeAxis axis, const char* name) {
    if (axis) tile[*axis] = field(s, name);
  };
  int64_t rest = field(s, "x");
  for (const size_t axis : form.wide) {
    const bool last = axis == form.wide.back();
    tile[axis] = last ? rest : std::min(rest, power_of_two_above(form.nest.axes[axis]));
    rest /= tile[axis];
  }
  set(form.roles.y, field(s, "rows") == 1 ? "rows" : "y");
  set(form.roles.reduction, "lanes");
  return tile;
}

LoopKernelOptions options_of(const LoopNestTiling& form, const Schedule& s,
                             const Capabilities& capabilities) {
  LoopKernelOptions options;
  options.extents = tile_of(form, s);
  if (field(s, "rows") == 1 && form.roles.y) options.rows_in_turn = field(s, "y");
  options.unroll = field(s, "unroll");
  options.multiplies = field(s, "product") == 1;
  options.rows_per_product = std::max<int64_t>(1, field(s, "z"));
  options.block_k = field(s, "depth");
  if (form.scanned) options.ctas_per_scan = field(s, "together", 1);
  options.nontemporal_store = field(s, "streaming") == 1;
  if (capabilities.gpu) options.warps = static_cast<int>(field(s, "warps"));
  return options;
}

// Of all nests of a region; none where one of them has more than a level of reductions or scans, or
// types that the target does not compute with.
std::vector<LoopNestTiling> forms_of(const Region& region, const Capabilities& capabilities) {
  std::vector<LoopNestTiling> forms;
  for (const LoopNest& nest : region.nests()) {
    auto form = tiling_of(nest, capabilities.gpu);
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
      in_turn = in_turn && (!form.scanned || form.scanned != form.roles.y);
      const auto grow = [&](int64_t& size, MaybeAxis axis) {
        if (axis) size = std::max(size, form.nest.axes[*axis]);
      };
      x = std::max(x, widest(form));
      grow(y, form.roles.y);
      grow(lanes, form.roles.reduction);
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
    if (gpu && form.scanned && form.scanned == form.roles.x)
      wide.insert(wide.end(), {2048, 4096, 8192, 16384});
    space.fields = {
        {"x", fitting(x, wide), "elements of a tile along the output's fastest axis"},
        {"y", fitting(y, {1, 2, 4, 8, 16, 32, 64}), "elements of a tile along a second axis"},
        {"lanes", fitting(lanes, lanes == 1 ? Values{1} : wide),
         "elements of the reduced axis that lies fastest in memory, taken at once"},
        {"unroll", window > 1 && window <= 49 ? Values{8, 1} : Values{1},
         "reduced axes of at most this many elements are written out"}};
    if (gpu) space.fields.push_back({"warps", {4, 8, 2, 1, 16}, "warps a block"});
    if (gpu && forms_.size() == 1 && forms_[0].scanned) {
      Values together = {1};
      int64_t lines = 1;
      for (size_t a = 0; a < form.nest.axes.size(); ++a)
        if (!form.is_walked(a))
          lines *= a == form.roles.x ? ceil_div(form.nest.axes[a], 32) : form.nest.axes[a];
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
      if (form.roles.z && count <= form.nest.axes[*form.roles.z]) rows.push_back(count);
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
      const MaybeAxis y = form.roles.y;
      const bool apart = !y || (y != form.scanned && field(s, "y") <= form.nest.axes[*y]);
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
              {multiplies && form.roles.reduction && lanes > 1,
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
    const bool scans = capabilities_.gpu && form.scanned && forms_.size() == 1;
    const int64_t together = field(s, "together");
    const int64_t along = scans ? tile[*form.scanned] : 1;
    int64_t blocks = together;
    int64_t beside = 1;
    for (size_t a = 0; a < tile.size(); ++a) {
      if (!form.is_walked(a)) {
        blocks *= ceil_div(form.nest.axes[a], tile[a]);
        beside *= tile[a];
      }
    }
    const int64_t resident = ceil_div(blocks, capabilities_.num_sms);
    return check_constraints(
        s, {{!scans, "together=1 without scans, or on a CPU", together},
            {form.scanned == form.roles.x && beside > 1,
             "y=1 where lines along x are walked along together", beside},
            {along < 2 || (together - 1) * along >= form.nest.axes[form.scanned.value_or(0)],
             "together=1, or a tile of the line for every block", along},
            {resident > kResident || resident * field(s, "warps") > 32,
             "no more blocks that walk together than multiprocessors hold: 4 and 32 warps each",
             blocks}});
  }

  // Of a sum of products by blocks.
  Status legal_product(const LoopNestTiling& form, const Schedule& s,
                       const std::vector<int64_t>& tile) const {
    const int64_t m = tile[*form.roles.y];
    const int64_t x = tile[*form.roles.x];
    const int64_t z = field(s, "z");
    const int64_t depth = field(s, "depth");
    const int64_t elements = m * x * z;
    const MaybeAxis axis = form.roles.z;
    const bool apart = std::ranges::any_of(form.nest.values, [&](const Expr& value) {
      return value.kind == Kind::index ||
             (axis && value.varies[*axis] && !value.varies[*form.roles.x]);
    });
    WARPLOOM_CHECK(check_constraints(
        s, {{m == 1 || x == 1 || field(s, "unroll") != 1 || field(s, "lanes") != 1 || z < 1 ||
                 depth < 1 || elements > 32768,
             "x and y of at least 2, unroll=1 lanes=1, at most 32768 elements", elements},
            {z > 1 && (!axis || z > form.nest.axes[*axis]), "z within its axis", z},
            {z > 1 && apart, "z=1 where a value varies along z and not along x", z}}));
    return fits(s, 4 * (m + x * z + 32) * depth * form.product->taps + 8192);
  }

  static Values depths_of(const LoopNestTiling& form) {
    const int64_t size = form.nest.axes[form.product->k];
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
      const bool in_turn = field(s, "rows") == 1 && form.roles.y;
      std::vector<double> taken = tile;  // by a task
      if (product && form.roles.z) taken[*form.roles.z] = static_cast<double>(field(s, "z"));
      if (in_turn) taken[*form.roles.y] = static_cast<double>(field(s, "y"));
      double tasks = 1;
      double trips = 1;
      double task = 0;
      for (size_t a = 0; a < tile.size(); ++a)
        (form.is_walked(a) ? trips : tasks) *=
            std::ceil(static_cast<double>(form.nest.axes[a]) / taken[a]);
      if (product)
        task = cycles_of_product(form, s, tile, trips);
      else
        for (const Expr& value : form.nest.values) task += cycles_of(form, value, tile, trips);
      if (in_turn) task *= taken[*form.roles.y];
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
    const double m = tile[*form.roles.y];
    const double x = tile[*form.roles.x];
    const double rows = static_cast<double>(field(s, "z"));
    const double taps = static_cast<double>(form.product->taps);
    const double deep = taps > 1 ? taps : static_cast<double>(field(s, "depth"));
    const double wide = std::ceil(x * rows / lanes_);
    const double copied = std::ceil(x / lanes_) * (form.product->b.in_bounds ? 2 : 4) + 1;
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
      if (value.varies[a] && form.is_walked(a)) times = trips;
    }
    const bool fused =
        elements == row;  // what lies in one row shares a loop and stays in registers
    const double vectors = elements / row * std::ceil(row / lanes_);
    double cycles = vectors * (fused ? 1 : 3) + 2;
    if (value.kind == Kind::load) {
      const Access& load = form.nest.loads[at(value.load)];
      const MaybeAxis own = fastest(load);
      const MaybeAxis inner = form.roles.reduction ? form.roles.reduction : form.roles.x;
      if (elements > 1 && (own != inner || stride_along(load, own) != 1 || tile[*own] == 1)) {
        const bool pairs = own == inner && stride_along(load, own) == 2;
        const bool turned = own == form.roles.y && std::fmod(tile[*own], 8) == 0 &&
                            std::fmod(row, lanes_) == 0;  // in registers
        cycles = pairs && fused ? 3 * vectors : elements * (turned ? 0.4 : pairs ? 0.3 : 1.5);
      }
      if (!load.in_bounds) cycles = fused ? cycles + 2 * vectors : cycles * 2 + 10;
    }
    if (value.kind == Kind::scan) cycles = 5 * vectors + 20;
    return times * (value.kind == Kind::apply ? cycles * 2 / 3 : cycles);
  }

  Result<Programs> programs(const Schedule& s) const override {
    Programs out;
    for (const LoopNestTiling& form : forms_) {
      const std::string own =
          out.programs.empty() ? name() : fmt::format("direct_part{}", out.programs.size());
      add_loop_kernel(out, form, options_of(form, s, capabilities_), capabilities_, own);
    }
    return out;
  }

 private:
  std::vector<LoopNestTiling> forms_;
  double lanes_ = capabilities_.lanes();
};
}  // namespace

void add_program(Family::Programs& out, const std::string& name, LoopNest nest, int64_t y,
                 int64_t x, const Capabilities& capabilities) {
  const LoopNestTiling form = *tiling_of(normal_form(std::move(nest)), capabilities.gpu);
  const auto up_to = [](int64_t most, int64_t all) {
    int64_t size = 1;
    while (size < most && size < all) size *= 2;
    return size;
  };
  const int64_t high = up_to(y, form.roles.y ? form.nest.axes[*form.roles.y] : 1);
  int64_t elements = 1;
  int64_t wide = up_to(form.roles.y ? x : y * x, widest(form));
  for (size_t a = 0; a < form.nest.axes.size(); ++a)
    elements *= form.reduced[a] ? 1 : form.nest.axes[a];
  while (wide > 64 && elements < high * wide * capabilities.num_sms)
    wide /= 2;  // a tile for everyone
  const int64_t warps = std::clamp<int64_t>(high * wide / 128, 1, 8);
  const Schedule s{"direct",
                   {{"x", wide}, {"y", high}, {"lanes", 1}, {"unroll", 32}, {"warps", warps}}};
  add_loop_kernel(out, form, options_of(form, s, capabilities), capabilities, name);
}
}  // namespace direct

FamilyPtr direct_family(const Region& region, const Capabilities& capabilities) {
  auto forms = direct::forms_of(region, capabilities);
  return forms.empty() ? nullptr : std::make_shared<direct::Direct>(std::move(forms), capabilities);
}
}  // namespace warploom::kernels
