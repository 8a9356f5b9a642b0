#include "graph/tensor_view.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/integers.h"
#include "graph/box.h"
#include "graph/graph.h"
#include "graph/parallel.h"

namespace warploom::graph {
void Storage::fill(double with) {
  std::ranges::fill(value, with);
  std::ranges::fill(magnitude, 0.0);
  std::ranges::fill(integers, saturated_integer(Dtype::i64, with));
}

View packed(const Box& box, const std::shared_ptr<Storage>& in) {
  View view;
  view.owner = in;
  view.strides = strides_of(box.size);
  if (in && in->is_whole) {
    view.data = in->integers.data();
    view.dtype = Dtype::i64;
  } else if (in) {
    view.data = in->value.data();
    view.magnitude = in->error(0);
  }
  view.origin = -address(view, box.begin);
  return view;
}

int64_t address(const View& view, const Shape& at) {
  int64_t offset = view.origin;
  for (size_t i = 0; i < at.size(); ++i)
    offset += at[i] * view.strides[i];
  return offset;
}

void load(const View& view, int64_t offset, int64_t stride, int64_t count, double* to,
          double* magnitude) {
  load_run(view.dtype, view.data, offset, stride, count, to);
  if (magnitude == nullptr) return;
  if (view.magnitude == nullptr)
    std::fill_n(magnitude, count, 0.0);
  else
    load_run(Dtype::f64, view.magnitude, offset, stride, count, magnitude);
}

void load(const View& view, const Shape& at, int64_t count, double* to, double* magnitude) {
  load(view, address(view, at), view.last_stride(), count, to, magnitude);
}

void load(const View& view, int64_t offset, int64_t stride, int64_t count, int64_t* to) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = load_whole(view.dtype, view.data, offset + i * stride);
}

void load(const View& view, const Shape& at, int64_t count, int64_t* to) {
  load(view, address(view, at), view.last_stride(), count, to);
}

int64_t load_whole(Dtype dtype, const void* data, int64_t place) {
  if (is_integer(dtype)) return load_integer(dtype, data, place);
  return saturated_integer(Dtype::i64, load_as_double(dtype, data, place));
}

void for_runs(const Box& box, int threads, const RunBody& body) {
  if (volume(box) == 0) return;
  const int64_t last = box.size.empty() ? 1 : box.size.back();
  const int64_t rows = volume(box) / last;
  const int64_t pieces = ceil_div(last, kRun);
  // Short rows share a task, so that its cost is small beside theirs.
  const int64_t rows_a_task = std::max<int64_t>(1, kRun / last);
  const int64_t row_tasks = ceil_div(rows, rows_a_task);
  parallel_for(row_tasks * pieces, threads, [&](int64_t task) {
    const int64_t first_row = task / pieces * rows_a_task;
    const int64_t end_row = std::min(rows, first_row + rows_a_task);
    const int64_t begin = task % pieces * kRun;
    const int64_t count = std::min(kRun, last - begin);
    Shape outer = box.size;
    if (!outer.empty()) outer.back() = 1;
    for (int64_t row = first_row; row < end_row; ++row) {
      Shape at = coordinates_of(outer, row);
      for (size_t i = 0; i < at.size(); ++i)
        at[i] += box.begin[i];
      if (!at.empty()) at.back() += begin;
      body(row * last + begin, count, at);
    }
  });
}

std::vector<int64_t> offsets(const Shape& sizes, const std::vector<int64_t>& strides) {
  std::vector<int64_t> all = {0};
  for (size_t i = 0; i < sizes.size(); ++i) {
    std::vector<int64_t> next;
    for (int64_t at : all)
      for (int64_t k = 0; k < sizes[i]; ++k)
        next.push_back(at + k * strides[i]);
    all = std::move(next);
  }
  return all;
}
}  // namespace warploom::graph
