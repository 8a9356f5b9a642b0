#include "kernels/direct_form.h"
#include "kernels/contraction.h"
namespace warploom::kernels::direct {
using target::Capabilities;
using Kind = NestValue::Kind;

int fastest(const Access& access) {
  int best = -1;
  const int axes = access.at.empty() ? 0 : static_cast<int>(access.at[0].steps.size());
  for (int a = 0; a < axes; ++a)
    if (const auto stride = stride_along(access, a); stride > 0 && (best < 0 || stride < stride_along(access, best))) best = a;
  return best;
}
namespace {
bool computes_with(Dtype dtype, const Capabilities& capabilities) {
  const bool integer = dtype == Dtype::i8 || dtype == Dtype::u8 || dtype == Dtype::i32;
  return is_computed_float(dtype) || (capabilities.gpu && integer);
}

std::optional<Form::Product> product_of(const Form& form) {
  const Nest& n = form.nest;
  const auto c = contraction_of(n);
  if (!c || form.roles.y < 0 || c->scaled) return std::nullopt;
  const std::size_t x = at(form.roles.x), y = at(form.roles.y);
  const Access &a = n.loads[c->a], &b = n.loads[c->b];
  if (!a.inside || !a.uses(y) || a.uses(x) || b.uses(y) || !b.uses(x)) return std::nullopt;
  Form::Product found{a, b, {c->a, c->b}, static_cast<int>(c->k[0]), 1};
  for (const Affine& coordinate : b.at)  // of a window with one channel: no box holds both
    if (coordinate.steps[c->k[0]] != 0 && coordinate.steps[x] != 0) return std::nullopt;
  Access& flat = found.a;
  std::int64_t size = 1, stride = 0;
  for (std::size_t d = a.at.size(); d-- > 0;) {
    if (std::ranges::none_of(c->k, [&](std::size_t axis) { return a.at[d].steps[axis] != 0; })) continue;
    if (a.at[d].begin != 0) return std::nullopt;  // backwards, as in transposed convolutions
    if (size == 1) stride = a.strides[d];
    if (a.strides[d] != stride * size) return std::nullopt;
    size *= a.shape[d];
    const auto where = static_cast<std::ptrdiff_t>(d);
    flat.shape.erase(flat.shape.begin() + where), flat.strides.erase(flat.strides.begin() + where);
    flat.at.erase(flat.at.begin() + where);
  }
  for (const std::size_t axis : c->k) found.taps *= n.axes[axis];
  if (size != found.taps) return std::nullopt;
  found.taps /= n.axes[c->k[0]];
  Affine along{0, std::vector<std::int64_t>(n.axes.size())};
  along.steps[c->k[0]] = found.taps;
  flat.shape.push_back(size), flat.strides.push_back(stride), flat.at.push_back(std::move(along));
  return found;
}

std::optional<Form> form_of(Nest nest, const Capabilities& capabilities) {
  Form form{std::move(nest), {}, {}, {}};
  const Nest& n = form.nest;
  form.reduced = n.reduced();
  form.behind.assign(n.values.size(), false);
  const std::vector<int>* over = nullptr;
  for (std::size_t v = 0; v < n.values.size(); ++v) {
    const NestValue& value = n.values[v];
    if (value.kind == Kind::load && !computes_with(n.loads[at(value.load)].dtype, capabilities)) return std::nullopt;
    for (const int operand : value.operands) form.behind[v] = form.behind[v] || form.behind[at(operand)];
    if (value.kind == Kind::reduce) {
      if (form.behind[v] || (over && *over != value.axes)) return std::nullopt;
      over = &value.axes;
      form.behind[v] = true;
    }
    for (std::size_t a = 0; a < n.axes.size(); ++a)
      if (form.behind[v] && value.varies[a] && form.reduced[a]) return std::nullopt;
  }
  for (const auto& output : n.outputs) {
    if (!computes_with(output.place.dtype, capabilities)) return std::nullopt;
    for (std::size_t a = 0; a < n.axes.size(); ++a)
      if (form.reduced[a] && (output.place.uses(a) || n.values[at(output.value)].varies[a])) return std::nullopt;
  }
  Roles& roles = form.roles;
  for (std::size_t a = 0; a < n.axes.size(); ++a)
    if (!form.reduced[a]) roles.x = static_cast<int>(a);
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
    if (!form.reduced[at(a)]) roles.y = a;
  std::int64_t longest = 1;
  for (std::size_t a = 0; a < n.axes.size(); ++a)
    if (form.reduced[a]) roles.window *= n.axes[a], longest = std::max(longest, n.axes[a]);
  if (roles.window > longest) roles.window /= longest;
  if (!capabilities.gpu) form.product = product_of(form);
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
  for (Nest nest : region.nests()) {
    auto form = form_of(std::move(nest), capabilities);
    if (!form) return {};
    forms.push_back(std::move(*form));
  }
  return forms;
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
  return std::all_of(form.nest.loads.begin(), form.nest.loads.end(), fits) &&
         std::all_of(form.nest.outputs.begin(), form.nest.outputs.end(), [&](const auto& output) { return fits(output.place); });
}
}  // namespace warploom::kernels::direct
