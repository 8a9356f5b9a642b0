// Any nest with at most one level of reduction, for GPUs and CPUs: out = epilogue(reduce over loops (prologue(loads))).
//
// A block computes one tile of the output: `x` elements along its fastest axis, `y` along a second one (that along which another
// tensor is fastest, as in a transpose; or along which an operand of a product is used again), one along all others. Reduced axes are
// loops, except that `lanes` elements of the one that lies fastest in memory are taken at once and brought together at the end, and
// that short ones (a window's) may be written out. Where a tensor is read outside, the copy's fill is its value.
#include "kernels/direct_form.h"
#include "kernels/families.h"
#include "kernels/pieces.h"
namespace warploom::kernels {
namespace direct {
namespace {
using target::Capabilities;
using Kind = NestValue::Kind;

class Direct final : public Family {
 public:
  std::string name() const override { return "direct"; }
  bool general() const override { return true; }

  bool covers(const Region& region, const Capabilities& capabilities) const override {
    return !forms_of(region, capabilities).empty();
  }

  Space space(const Region& region, const Capabilities& capabilities) const override {
    Space space{name(), {}};
    const auto forms = forms_of(region, capabilities);
    if (forms.empty()) return space;
    const bool gpu = capabilities.gpu;
    const std::int64_t vector = gpu ? 32 : std::max(4, capabilities.vector_bytes / 4);
    std::int64_t x = 1, y = 1, lanes = 1, window = 1;
    for (const Form& form : forms) {
      const auto grow = [&](std::int64_t& size, int axis) {
        if (axis >= 0) size = std::max(size, form.nest.axes[at(axis)]);
      };
      grow(x, form.roles.x), grow(y, form.roles.y), grow(lanes, form.roles.lanes);
      window = std::max(window, form.roles.window);
    }
    const auto fitting = [&](std::int64_t size, std::vector<std::int64_t> values) {
      std::erase_if(values, [&](std::int64_t value) { return value > 1 && (gpu ? value / 2 >= size : value > size); });
      if (!gpu && size <= 4096 && std::find(values.begin(), values.end(), size) == values.end())
        values.insert(values.begin(), size);
      return values;
    };
    const std::vector<std::int64_t> wide =
        gpu ? std::vector<std::int64_t>{256, 128, 512, 64, 1024, 32, 16, 8, 4, 2, 1}
            : std::vector<std::int64_t>{2048, 1024, 512, 256, 4096, 128, 64, 4 * vector, 2 * vector, vector, 1};
    space.fields = {{"x", fitting(x, wide), "elements of a tile along the output's fastest axis"},
                    {"y", fitting(y, {1, 2, 4, 8, 16, 32, 64}), "elements of a tile along a second axis"},
                    {"lanes", fitting(lanes, lanes == 1 ? std::vector<std::int64_t>{1} : wide),
                     "elements of the reduced axis that lies fastest in memory, taken at once"},
                    {"unroll", window > 1 && window <= 49 ? std::vector<std::int64_t>{8, 1} : std::vector<std::int64_t>{1},
                     "reduced axes of at most this many elements are written out"}};
    if (gpu) space.fields.push_back({"warps", {4, 8, 2, 1, 16}, "warps a block"});
    if (gpu || forms.size() > 1 || !forms[0].product) return space;
    const Form& form = forms[0];
    space.fields[1].values = fitting(y, {64, 128, 256, 32, 16, 8, 4, 1});
    std::vector<std::int64_t> rows = {1};
    for (const std::int64_t count : {2, 4, 7, 8, 14, 16, 28})
      if (form.roles.z >= 0 && count <= form.nest.axes[at(form.roles.z)]) rows.push_back(count);
    space.fields.push_back({"product", {1, 0}, "1: sums of products are matrix products of blocks in scratch memory"});
    space.fields.push_back({"z", rows, "rows of x taken together in a product"});
    space.fields.push_back({"depth", depths_of(form), "elements of the longest summed axis taken at once in a product"});
    return space;
  }

  Status legal(const Region& region, const Schedule& s, const Capabilities& capabilities) const override {
    const auto refuse = [&](const std::string& expected, const std::string& found) { return fail(illegal(s, expected, found)); };
    for (const char* name : {"x", "y", "lanes", "unroll", "warps"})
      if (field(s, name, !capabilities.gpu && name == std::string("warps")) < 1) return refuse("a value of at least 1", name);
    for (const Form& form : forms_of(region, capabilities)) {
      const auto tile = tile_of(form, s);
      std::int64_t elements = 1, written = 1;
      for (std::size_t a = 0; a < tile.size(); ++a) {
        elements *= tile[a];
        const std::int64_t size = form.nest.axes[a];
        if (capabilities.gpu ? tile[a] / 2 >= size && tile[a] > 1 : tile[a] > size)
          return refuse(fmt::format("a tile no larger than the axis of {}", size), fmt::format("{}", tile[a]));
        if (form.reduced[a] && size <= field(s, "unroll")) written *= size;
      }
      if (form.product && field(s, "product") == 1) {
        const std::int64_t m = tile[at(form.roles.y)], x = tile[at(form.roles.x)], rows = field(s, "z"),
                           depth = field(s, "depth"), scratch = 4 * (m + x * rows + 32) * depth * form.product->taps + 8192;
        if (m == 1 || x == 1 || field(s, "unroll") != 1 || field(s, "lanes") != 1 || rows < 1 || depth < 1 ||
            m * x * rows > 32768)
          return refuse("x and y of at least 2, unroll=1 lanes=1, at most 32768 elements", s.text());
        if (rows > 1 && (form.roles.z < 0 || rows > form.nest.axes[at(form.roles.z)]))
          return refuse("z within its axis", s.text());
        if (scratch > capabilities.shared_bytes)
          return fail({ErrorCode::kResourceLimit, "the blocks of a product do not fit in a core's L2 cache", s.text(),
                       fmt::format("at most {} bytes", capabilities.shared_bytes), fmt::format("{} bytes", scratch),
                       "take a smaller depth, z or y"});
        for (const NestValue& value : form.nest.values)
          if (rows > 1 && (value.kind == Kind::index || (value.varies[at(form.roles.z)] && !value.varies[at(form.roles.x)])))
            return refuse("z=1 where a value varies along z and not along x", s.text());
        elements = 1;
      } else if (field(s, "z") > 1 || field(s, "depth") > 0) {
        if (field(s, "z") != 1 || field(s, "depth") != depths_of(form).front())
          return refuse("z and depth as they come without products", s.text());
      }
      if (written > 64) return refuse("at most 64 bodies written out", fmt::format("{}", written));
      for (const NestValue& value : form.nest.values)
        if (value.kind == Kind::reduce && value.op == ValueOp::mul && form.roles.lanes >= 0 && field(s, "lanes") > 1)
          return refuse("lanes=1 for a product of all elements", fmt::format("{}", field(s, "lanes")));
      if (!takes_boxes(form, tile)) return refuse("tiles that are boxes of every tensor", s.text());
      if (capabilities.gpu) {
        const std::int64_t threads = field(s, "warps") * 32;
        if (elements > threads * 32 || (elements < threads && field(s, "warps") > 1))
          return refuse("1 to 32 elements a thread", fmt::format("{} elements, {} threads", elements, threads));
      } else if (elements > 8192) {
        return refuse("at most 8192 elements a tile", fmt::format("{}", elements));
      }
    }
    return ok();
  }

  static std::vector<std::int64_t> depths_of(const Form& form) {
    const std::int64_t size = form.nest.axes[at(form.product->k)];
    std::vector<std::int64_t> out;
    for (const std::int64_t count : {256, 384, 512, 128, 64, 32, 16, 8, 4})
      if (count * form.product->taps <= 600 && count < size && (count <= 256 || size % count == 0)) out.push_back(count);
    if (size * form.product->taps <= 600 || out.empty()) out.insert(out.begin(), std::min<std::int64_t>(size, 600));
    return out;
  }

  // Cycles of the busiest core: vectors of every value, loads that are no vectors, and the handing out of tasks.
  double guess(const Region& region, const Schedule& s, const Capabilities& capabilities) const override {
    if (!legal(region, s, capabilities)) return HUGE_VAL;
    const double vector = std::max(4, capabilities.vector_bytes / 4);
    double all = 0;
    for (const Form& form : forms_of(region, capabilities)) {
      const auto tile = tile_of(form, s);
      const bool product = form.product && field(s, "product") == 1;
      const double rows = product ? static_cast<double>(field(s, "z")) : 1;
      double tasks = 1, trips = 1, task = 30;
      for (std::size_t a = 0; a < tile.size(); ++a) {
        const double size = static_cast<int>(a) == form.roles.z ? std::max(rows, static_cast<double>(tile[a]))
                                                                : static_cast<double>(tile[a]),
                     count = std::ceil(static_cast<double>(form.nest.axes[a]) / size);
        (form.reduced[a] ? trips : tasks) *= count;
      }
      if (product) {
        const double m = static_cast<double>(tile[at(form.roles.y)]), x = static_cast<double>(tile[at(form.roles.x)]),
                     wide = std::ceil(x * rows / vector);
        task +=
            trips *
                (m * wide *
                     (0.5 + 1.5 / static_cast<double>(form.product->taps * (form.product->taps > 1 ? 1 : field(s, "depth")))) +
                 2 * m / vector + rows * (std::ceil(x / vector) * (form.product->b.inside ? 2 : 4) + 1)) +
            m * wide * 4;
      }
      for (const NestValue& value : form.nest.values) {
        double elements = 1, times = 1, row = 1;
        for (std::size_t a = 0; a < tile.size(); ++a) {
          if (value.varies[a] && tile[a] > 1) elements *= static_cast<double>(tile[a]), row = static_cast<double>(tile[a]);
          if (value.varies[a] && form.reduced[a]) times = trips;
        }
        // What lies in one row of whole vectors shares a loop and stays in registers.
        const bool fused = elements == row && std::fmod(row, vector) == 0;
        const double vectors = elements / row * std::ceil(row / vector);
        double cycles = vectors * (fused ? 1 : 3) + 2;
        if (value.kind == Kind::load) {
          const Access& load = form.nest.loads[at(value.load)];
          const int own = fastest(load), inner = form.roles.lanes >= 0 ? form.roles.lanes : form.roles.x;
          const bool blocks =
              own == form.roles.y && tile[at(own)] % 8 == 0 && std::fmod(row, vector) == 0;  // transposed in registers
          if (elements > 1 && (own != inner || stride_along(load, own) != 1 || tile[at(own)] == 1))
            cycles = elements * (blocks ? 0.4 : stride_along(load, own) == 2 && own == inner ? 0.3 : 1.5);
          if (!load.inside) cycles = cycles * 2 + 10;
        }
        if (value.kind == Kind::map) cycles *= static_cast<double>(value.expression.terms.size()) / 3;
        if (!product) task += times * cycles;
      }
      all += std::ceil(tasks / capabilities.processors) * task;
    }
    return all;
  }

  Result<Programs> programs(const Region& region, const Schedule& s, const Capabilities& capabilities) const override {
    WARPLOOM_CHECK(legal(region, s, capabilities));
    Programs out;
    for (const Form& form : forms_of(region, capabilities))
      out.programs.push_back(program_of(form, s, capabilities,
                                        out.programs.empty() ? "direct" : fmt::format("direct_part{}", out.programs.size()),
                                        out.buffers.emplace_back()));
    return out;
  }
};
}  // namespace
}  // namespace direct
const Family& direct_family() {
  static const direct::Direct family;
  return family;
}
}  // namespace warploom::kernels
