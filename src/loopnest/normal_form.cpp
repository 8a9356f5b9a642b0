// The normal form of a nest: coordinates complete, unused values dropped, one dimension an axis,
// neighbouring axes merged where all that reads and writes along them allows it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "loopnest/affine.h"
#include "loopnest/loop_nest.h"

namespace warploom::loopnest {
namespace {
std::vector<Access*> accesses_of(LoopNest& nest) {
  std::vector<Access*> all;
  for (Access& load : nest.loads)
    all.push_back(&load);
  for (LoopNest::Output& output : nest.outputs)
    all.push_back(&output.place);
  return all;
}

// Gives each coordinate a step for every axis, and drops dimensions of size 1 that stay at 0.
void complete_access(Access& access, size_t rank) {
  const Affine origin{0, std::vector<int64_t>(rank)};
  for (size_t d = access.shape.size(); d-- > 0;) {
    access.at[d].steps.resize(rank);
    if (access.is_gather_dim(d)) continue;
    if (access.shape[d] == 1 && access.at[d] == origin) access.erase(d);
  }
}

void complete_value(LoopNest& nest, Expr& value) {
  const size_t rank = nest.axes.size();
  value.at.steps.resize(rank);
  value.varies.assign(rank, false);
  for (size_t a = 0; a < rank; ++a) {
    bool varies = false;
    if (value.kind == Kind::load) varies = nest.load_of(value).uses(a);
    if (value.kind == Kind::index) varies = value.at.steps[a] != 0;
    for (const int operand : value.operands)
      varies = varies || nest.value(operand).varies[a];
    value.varies[a] = varies;
  }
  for (const size_t axis : value.axes)
    value.varies[axis] = value.kind == Kind::scan;
}

void complete(LoopNest& nest) {
  for (Access* const access : accesses_of(nest))
    complete_access(*access, nest.axes.size());
  for (Expr& value : nest.values)
    complete_value(nest, value);
}

// By value: whether an output is made of it.
std::vector<bool> needed_values(const LoopNest& nest) {
  std::vector<bool> needed(nest.values.size(), false);
  for (const LoopNest::Output& output : nest.outputs)
    needed[as_size(output.value)] = true;
  for (size_t v = nest.values.size(); v-- > 0;) {
    if (!needed[v]) continue;
    for (const int operand : nest.values[v].operands)
      needed[as_size(operand)] = true;
  }
  return needed;
}

void drop_unused(LoopNest& nest) {
  const auto needed = needed_values(nest);
  std::vector<int> renamed(nest.values.size());
  const auto rename = [&](int& id) { id = renamed[as_size(id)]; };
  std::vector<Access> loads;
  std::vector<Expr> values;
  for (size_t v = 0; v < nest.values.size(); ++v) {
    if (!needed[v]) continue;
    Expr& value = nest.values[v];
    renamed[v] = as_int(values.size());
    std::ranges::for_each(value.operands, rename);
    if (value.kind == Kind::load) {
      loads.push_back(std::move(nest.loads[as_size(value.load)]));
      value.load = as_int(loads.size()) - 1;
    }
    values.push_back(std::move(value));
  }
  for (LoopNest::Output& output : nest.outputs)
    rename(output.value);
  nest.loads = std::move(loads);
  nest.values = std::move(values);
}

// Two neighbouring axes, `outer` and the one after it.
struct AxisPair {
  size_t outer;
  int64_t outer_size;
  int64_t inner_size;

  size_t inner() const { return outer + 1; }

  AxisPair(const LoopNest& nest, size_t first)
      : outer(first), outer_size(nest.axes[first]), inner_size(nest.axes[first + 1]) {}

  // Whether a coordinate steps along the two as along one.
  bool are_one_in(const Affine& c) const { return c.steps[outer] == c.steps[inner()] * inner_size; }
};

void erase_axis(Affine& affine, size_t axis) {
  affine.steps.erase(affine.steps.begin() + as_int64(axis));
}

// The dimension of an access whose coordinate is the index along an axis, and whose size is that of
// the axis.
std::optional<size_t> dimension_of_axis(const Access& access, size_t axis, int64_t size) {
  for (size_t d = 0; d < access.at.size(); ++d) {
    const Affine alone = along(axis, access.at[d].steps.size());
    const bool is_axis = access.at[d] == alone;
    if (access.shape[d] == size && !access.is_gather_dim(d) && is_axis) return d;
  }
  return std::nullopt;
}

// The dimensions that are the two axes: they are merged as the axes are.
struct DimPair {
  std::optional<size_t> outer;
  std::optional<size_t> inner;

  DimPair(const Access& access, const AxisPair& axes)
      : outer(dimension_of_axis(access, axes.outer, axes.outer_size)),
        inner(dimension_of_axis(access, axes.inner(), axes.inner_size)) {}
};

bool can_merge(const Access& access, const AxisPair& axes) {
  const DimPair dims(access, axes);
  for (size_t d = 0; d < access.at.size(); ++d) {
    const bool merged = d == dims.outer || d == dims.inner;
    if (!merged && !axes.are_one_in(access.at[d])) return false;
  }
  if (!dims.outer || !dims.inner) return dims.outer == dims.inner;
  return access.strides[*dims.outer] == access.strides[*dims.inner] * axes.inner_size;
}

bool can_merge(const Expr& value, const AxisPair& axes) {
  if (value.kind == Kind::index && !axes.are_one_in(value.at)) return false;
  const auto goes_over = [&](size_t axis) {
    return std::ranges::find(value.axes, axis) != value.axes.end();
  };
  if (value.varies[axes.outer] != value.varies[axes.inner()]) return false;
  return goes_over(axes.outer) == goes_over(axes.inner());
}

void merge(Access& access, const AxisPair& axes) {
  const DimPair dims(access, axes);
  if (dims.outer) {
    access.shape[*dims.inner] *= axes.outer_size;
    access.erase(*dims.outer);
  }
  for (Affine& c : access.at)
    erase_axis(c, axes.outer);
}

void merge(Expr& value, const AxisPair& axes) {
  erase_axis(value.at, axes.outer);
  value.varies.erase(value.varies.begin() + as_int64(axes.outer));
  std::erase(value.axes, axes.outer);
  for (size_t& axis : value.axes)
    if (axis > axes.outer) --axis;
}

// Merges axis `outer` and the one after it where everything allows it.
void merge_axes(LoopNest& nest, size_t outer) {
  const AxisPair axes(nest, outer);
  if (axes.outer_size > kLongestAxis / std::max<int64_t>(axes.inner_size, 1)) return;
  const auto accesses = accesses_of(nest);
  for (const Access* const access : accesses)
    if (!can_merge(*access, axes)) return;
  for (const Expr& value : nest.values)
    if (!can_merge(value, axes)) return;
  for (Access* const access : accesses)
    merge(*access, axes);
  for (Expr& value : nest.values)
    merge(value, axes);
  nest.axes[axes.inner()] *= axes.outer_size;
  nest.axes.erase(nest.axes.begin() + as_int64(outer));
}

// Whether a coordinate may leave its dimension, or goes backwards, or is looked up.
bool may_leave(const LoopNest& nest, const Access& access, size_t dim) {
  const Affine& c = access.at[dim];
  const bool forwards = std::ranges::all_of(c.steps, [](int64_t step) { return step >= 0; });
  if (!forwards || c.begin < 0 || access.is_gather_dim(dim)) return true;
  return nest.range(c).second >= access.shape[dim];
}

void add_dimension(Access& access, int64_t size, int64_t stride, Affine coordinate) {
  access.shape.push_back(size);
  access.strides.push_back(stride);
  access.at.push_back(std::move(coordinate));
}

// Dimensions that are never left become one for each axis that they step along, and a first one of
// two elements where they do not begin at 0.
void one_dimension_an_axis(Access& access, const LoopNest& nest, bool is_output) {
  const size_t rank = nest.axes.size();
  int64_t begin = 0;  // elements
  std::vector<int64_t> strides(rank, 0);
  std::vector<size_t> others;
  for (size_t d = 0; d < access.at.size(); ++d) {
    const Affine& c = access.at[d];
    if (may_leave(nest, access, d) || (is_output && c.begin != 0)) {
      others.push_back(d);
      continue;
    }
    begin += c.begin * access.strides[d];
    for (size_t a = 0; a < rank; ++a)
      strides[a] += c.steps[a] * access.strides[d];
  }
  Access plain = access;
  plain.shape.clear();
  plain.strides.clear();
  plain.at.clear();
  if (begin != 0) add_dimension(plain, 2, begin, {1, std::vector<int64_t>(rank)});
  for (size_t a = 0; a < rank; ++a)
    if (strides[a] != 0) add_dimension(plain, nest.axes[a], strides[a], along(a, rank));
  for (const size_t d : others) {
    if (access.is_gather_dim(d)) plain.gather_dim = as_int(plain.at.size());
    add_dimension(plain, access.shape[d], access.strides[d], access.at[d]);
  }
  access = std::move(plain);
}
}  // namespace

LoopNest normal_form(LoopNest nest) {
  complete(nest);
  drop_unused(nest);
  for (Access& load : nest.loads)
    one_dimension_an_axis(load, nest, false);
  for (LoopNest::Output& output : nest.outputs)
    one_dimension_an_axis(output.place, nest, true);
  for (size_t a = nest.axes.size(); a-- > 1;)
    merge_axes(nest, a - 1);
  return nest;
}
}  // namespace warploom::loopnest
