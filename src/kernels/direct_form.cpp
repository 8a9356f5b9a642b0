#include "kernels/direct_form.h"
namespace warploom::kernels::direct {
using target::Capabilities;
using Kind = NestValue::Kind;

std::int64_t stride_along(const Access& access, int axis) {
  std::int64_t sum = 0;
  for (std::size_t d = 0; d < access.at.size() && axis >= 0; ++d) sum += access.at[d].steps[at(axis)] * access.strides[d];
  return std::abs(sum);
}
int fastest(const Access& access) {
  int best = -1;
  for (std::size_t d = 0; d < access.at.size(); ++d)
    for (std::size_t a = 0; a < access.at[d].steps.size(); ++a)
      if (const auto stride = stride_along(access, static_cast<int>(a)); stride > 0)
        if (best < 0 || stride < stride_along(access, best)) best = static_cast<int>(a);
  return best;
}
namespace {
bool computes_with(Dtype dtype, const Capabilities& capabilities) {
  const bool integer = dtype == Dtype::i8 || dtype == Dtype::u8 || dtype == Dtype::i32;
  return dtype == Dtype::f32 || dtype == Dtype::bf16 || dtype == Dtype::f16 || (capabilities.gpu && integer);
}

std::optional<Form::Product> product_of(const Form& form) {
  const Nest& n = form.nest;
  std::optional<Form::Product> found;
  for (const NestValue& sum : n.values) {
    if (sum.kind != Kind::reduce) continue;
    const NestValue& term = n.values[at(sum.operands[0])];
    if (found || sum.op != ValueOp::add || form.roles.y < 0 || term.kind != Kind::map || term.operands.size() != 2)
      return std::nullopt;
    if (term.expression.terms.size() != 3 || term.expression.terms[2].op != ValueOp::mul) return std::nullopt;
    const NestValue *a = &n.values[at(term.operands[0])], *b = &n.values[at(term.operands[1])];
    if (a->kind != Kind::load || b->kind != Kind::load) return std::nullopt;
    if (n.loads[at(a->load)].lookup_dim >= 0 || n.loads[at(b->load)].lookup_dim >= 0) return std::nullopt;
    if (!a->varies[at(form.roles.y)]) std::swap(a, b);
    if (!a->varies[at(form.roles.y)] || a->varies[at(form.roles.x)] || b->varies[at(form.roles.y)] ||
        !b->varies[at(form.roles.x)])
      return std::nullopt;
    found = Form::Product{n.loads[at(a->load)], n.loads[at(b->load)], {a->load, b->load}, sum.axes[0], 1};
    for (const Affine& c : found->b.at)  // of a window with one channel: no box holds both
      if (c.steps[at(found->k)] != 0 && c.steps[at(form.roles.x)] != 0) return std::nullopt;
    Access flat = found->a;
    flat.shape.clear(), flat.strides.clear(), flat.at.clear();
    std::int64_t size = 1, stride = 0;
    for (std::size_t d = found->a.at.size(); d-- > 0;) {
      const Affine& c = found->a.at[d];
      const bool summed = std::any_of(sum.axes.begin(), sum.axes.end(), [&](int axis) { return c.steps[at(axis)] != 0; });
      if (!summed) {
        flat.shape.push_back(found->a.shape[d]), flat.strides.push_back(found->a.strides[d]), flat.at.push_back(c);
      } else {
        if (c.begin != 0) return std::nullopt;  // backwards, as in transposed convolutions
        if (stride == 0) stride = found->a.strides[d];
        if (found->a.strides[d] != stride * size) return std::nullopt;
        size *= found->a.shape[d];
      }
    }
    std::int64_t all = 1;
    for (const int axis : sum.axes) all *= n.axes[at(axis)];
    if (size != all || !found->a.inside) return std::nullopt;
    found->taps = all / n.axes[at(found->k)];
    Affine along{0, std::vector<std::int64_t>(n.axes.size())};
    along.steps[at(found->k)] = found->taps;
    flat.shape.push_back(size), flat.strides.push_back(stride), flat.at.push_back(along);
    found->a = std::move(flat);
  }
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
  std::vector<const NestValue*> loads;
  for (const NestValue& value : n.values)
    if (value.kind == Kind::load) loads.push_back(&value);
  for (const NestValue* load : loads) {
    const int own = fastest(n.loads[at(load->load)]);
    if (own < 0 || own == roles.x) continue;
    if (!form.reduced[at(own)]) roles.y = own;
    else if (const auto stride = stride_along(n.loads[at(load->load)], roles.x); stride == 0 || (stride > 8 && loads.size() == 1))
      roles.lanes = own;
  }
  for (const NestValue* load : loads)  // reused along an axis that another varies along
    for (const NestValue* other : loads)
      for (int a = roles.x - 1; a >= 0 && over && roles.y < 0; --a)
        if (!form.reduced[at(a)] && load->varies[at(roles.x)] && !load->varies[at(a)] && other->varies[at(a)] &&
            !other->varies[at(roles.x)])
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
  set(form.roles.x, "x"), set(form.roles.y, "y"), set(form.roles.lanes, "lanes");
  return tile;
}

bool takes_boxes(const Form& form, const std::vector<std::int64_t>& tile) {
  const auto fits = [&](const Access& access) { return is_box(access, tile, form.nest.axes); };
  return std::all_of(form.nest.loads.begin(), form.nest.loads.end(), fits) &&
         std::all_of(form.nest.outputs.begin(), form.nest.outputs.end(), [&](const auto& output) { return fits(output.place); });
}
}  // namespace warploom::kernels::direct
