#include "kernels/direct_form.h"
#include "kernels/contraction.h"
namespace warploom::kernels::direct {
int fastest(const Access& access) {
  int best = -1;
  const int axes = access.at.empty() ? 0 : static_cast<int>(access.at[0].steps.size());
  for (int a = 0; a < axes; ++a)
    if (const auto stride = stride_along(access, a); stride > 0 && (best < 0 || stride < stride_along(access, best))) best = a;
  return best;
}
namespace {
std::optional<Form::Product> product_of(const Form& form) {
  const Nest& n = form.nest;
  const auto c = contraction_of(n);
  if (!c || form.roles.y < 0 || c->scaled || !c->triangles.empty()) return std::nullopt;
  const std::size_t x = at(form.roles.x), y = at(form.roles.y);
  const Access &a = n.loads[c->a], &b = n.loads[c->b];
  if (!a.inside || !a.uses(y) || a.uses(x) || b.uses(y) || !b.uses(x)) return std::nullopt;
  Form::Product found{a, b, {c->a, c->b}, static_cast<int>(c->k[0]), 1, c->bounds, part_within(*c)};
  for (const Affine& coordinate : b.at)  // of a window with one channel: no box holds both
    if (coordinate.steps[c->k[0]] != 0 && coordinate.steps[x] != 0) return std::nullopt;
  Access& flat = found.a;
  std::int64_t size = 1, stride = 0;
  for (std::size_t d = a.at.size(); d-- > 0;) {
    if (!steps_along(a.at[d], c->k)) continue;
    if (a.at[d].begin != 0) return std::nullopt;  // backwards, as in transposed convolutions
    if (size == 1) stride = a.strides[d];
    if (a.strides[d] != stride * size) return std::nullopt;
    size *= a.shape[d];
    flat.erase(d);
  }
  for (const std::size_t axis : c->k) found.taps *= n.axes[axis];
  if (size != found.taps) return std::nullopt;
  found.taps /= n.axes[c->k[0]];
  flat.shape.push_back(size), flat.strides.push_back(stride);
  flat.at.push_back(along(at(found.k), n.axes.size(), found.taps));
  return found;
}

std::optional<Form> form_of(Nest nest, bool gpu) {
  Form form{.nest = std::move(nest)};
  const Nest& n = form.nest;
  form.reduced = n.reduced();
  std::vector<bool> behind(n.values.size(), false);  // a reduction
  const std::vector<int>* over = nullptr;
  for (std::size_t v = 0; v < n.values.size(); ++v) {
    const NestValue& value = n.values[v];
    for (const int operand : value.operands) behind[v] = behind[v] || behind[at(operand)];
    if (value.kind == Kind::reduce) {
      if (behind[v] || (over && *over != value.axes)) return std::nullopt;
      over = &value.axes;
      behind[v] = true;
    }
    for (std::size_t a = 0; a < n.axes.size(); ++a)
      if (behind[v] && value.varies[a] && form.reduced[a]) return std::nullopt;
  }
  if (const NestValue* scan = n.scan()) {
    for (const NestValue& value : n.values)
      if (value.kind == Kind::reduce ||
          (value.kind == Kind::scan && std::tie(value.axes, value.reverse) != std::tie(scan->axes, scan->reverse)))
        return std::nullopt;
    form.scanned = scan->axes[0], form.reverse = scan->reverse;
  }
  for (const auto& output : n.outputs)
    for (std::size_t a = 0; a < n.axes.size(); ++a)
      if (form.reduced[a] && (output.place.uses(a) || n.values[at(output.value)].varies[a])) return std::nullopt;
  Roles& roles = form.roles;
  for (std::size_t a = 0; a < n.axes.size(); ++a)
    if (!form.reduced[a] && n.axes[a] > 1) roles.x = static_cast<int>(a);
  for (const Access& load : n.loads) {
    const int own = fastest(load);
    if (own < 0 || own == roles.x) continue;
    if (!form.reduced[at(own)]) roles.y = own;
    else if (const auto stride = stride_along(load, roles.x); stride == 0 || (stride > 8 && n.loads.size() == 1))
      roles.lanes = own;
  }
  for (const Access& load : n.loads)  // reused along an axis that another varies along
    for (const Access& other : n.loads)
      for (int a = roles.x - 1; a >= 0 && over && roles.y < 0; --a)
        if (!form.reduced[at(a)] && load.uses(at(roles.x)) && !load.uses(at(a)) && other.uses(at(a)) && !other.uses(at(roles.x)))
          roles.y = a;
  for (int a = roles.x - 1; a >= 0 && roles.y < 0; --a)
    if (!form.reduced[at(a)] && n.axes[at(a)] > 1) roles.y = a;
  if (form.scanned >= 0 && form.scanned != roles.x) roles.y = form.scanned;
  std::int64_t longest = 1;
  for (std::size_t a = 0; a < n.axes.size(); ++a)
    if (form.reduced[a]) roles.window *= n.axes[a], longest = std::max(longest, n.axes[a]);
  if (roles.window > longest) roles.window /= longest;
  if (!gpu) form.product = product_of(form);
  for (int a = 0; a < roles.x && form.product; ++a)
    if (!form.reduced[at(a)] && form.product->b.uses(at(a)) && !form.product->a.uses(at(a))) roles.z = a;
  return form;
}

bool is_box(const Access& access, const std::vector<std::int64_t>& tile, const std::vector<std::int64_t>& axes) {
  std::vector<int> used(tile.size(), 0);
  for (const Affine& c : access.at) {
    const bool gathered = access.lookup_dim >= 0 && &c == &access.at[at(access.lookup_dim)];
    int along = 0, all = 0;
    bool whole = true;
    for (std::size_t a = 0; a < tile.size(); ++a) {
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
}  // namespace
std::vector<Form> forms_of(const Region& region, const Capabilities& capabilities) {
  std::vector<Form> forms;
  for (const Nest& nest : region.nests()) {
    auto form = form_of(nest, capabilities.gpu);
    const bool converts = capabilities.gpu && capabilities.fp8_tflops > 0;  // floats of 8 bits
    const auto loaded = [&](const Access& access) {
      return is_computed(access.dtype) || (converts && is_float(access.dtype) && bits_of(access.dtype) == 8);
    };
    const auto stored = [](const Nest::Output& output) { return is_computed(output.place.dtype); };
    if (!form || !std::ranges::all_of(nest.loads, loaded) || !std::ranges::all_of(nest.outputs, stored)) return {};
    // A CPU holds all in floats, large integers that are only moved as well.
    for (const auto& [value, place] : nest.outputs)
      if (!capabilities.gpu && is_integer(place.dtype) && bits_of(place.dtype) > 8 && nest.values[at(value)].kind == Kind::load)
        return {};
    forms.push_back(std::move(*form));
  }
  return forms;
}

void add_program(Family::Programs& out, const std::string& name, Nest nest, std::int64_t y, std::int64_t x,
                 const Capabilities& capabilities) {
  const Form form = *form_of(normal_form(std::move(nest)), capabilities.gpu);
  const auto up_to = [&](std::int64_t most, int axis) {
    std::int64_t size = 1;
    while (axis >= 0 && size < most && size < form.nest.axes[at(axis)]) size *= 2;
    return size;
  };
  const std::int64_t high = up_to(y, form.roles.y);
  std::int64_t elements = 1, wide = up_to(form.roles.y < 0 ? y * x : x, form.roles.x);
  for (std::size_t a = 0; a < form.nest.axes.size(); ++a) elements *= form.reduced[a] ? 1 : form.nest.axes[a];
  while (wide > 64 && elements < high * wide * capabilities.processors) wide /= 2;  // a tile for everyone
  const std::int64_t warps = std::clamp<std::int64_t>(high * wide / 128, 1, 8);
  add_program(out, form, {"direct", {{"x", wide}, {"y", high}, {"lanes", 1}, {"unroll", 32}, {"warps", warps}}}, capabilities,
              name);
}

std::vector<std::int64_t> tile_of(const Form& form, const Schedule& s) {
  std::vector<std::int64_t> tile(form.nest.axes.size(), 1);
  const auto set = [&](int axis, const char* name) {
    if (axis >= 0) tile[at(axis)] = field(s, name);
  };
  set(form.roles.x, "x"), set(form.roles.y, field(s, "rows") == 1 ? "rows" : "y"), set(form.roles.lanes, "lanes");
  return tile;
}

bool takes_boxes(const Form& form, const std::vector<std::int64_t>& tile) {
  const auto fits = [&](const Access& access) { return is_box(access, tile, form.nest.axes); };
  return std::ranges::all_of(form.nest.loads, fits) &&
         std::ranges::all_of(form.nest.outputs, [&](const auto& output) { return fits(output.place); });
}
}  // namespace warploom::kernels::direct
