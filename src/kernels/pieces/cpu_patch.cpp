// The box of the input that a tile's windows take.
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "kernels/pieces/cpu_convolution.h"
#include "loopnest/affine.h"
#include "loopnest/loop_nest.h"

namespace warploom::kernels {
PatchShape::PatchShape(const CpuConvolution& convolution, const std::vector<int64_t>& extent) {
  const Access& input = convolution.input;
  std::vector<size_t> axes = convolution.pixels;
  axes.insert(axes.end(), convolution.depth.begin(), convolution.depth.end());
  std::vector<size_t> moving = axes;
  moving.insert(moving.end(), convolution.pool.places.begin(), convolution.pool.places.end());
  dims.resize(input.at.size());
  std::iota(dims.begin(), dims.end(), size_t{0});
  std::ranges::stable_sort(dims, {}, [&](size_t d) { return -input.strides[d]; });
  for (const size_t d : dims) {
    const Affine& coordinate = input.at[d];
    int64_t last = 0;
    int64_t every = 0;
    for (const size_t axis : moving) {
      last += coordinate.steps[axis] * (extent[axis] - 1);
      if (extent[axis] > 1) every = std::gcd(every, coordinate.steps[axis]);
    }
    steps.push_back(std::max<int64_t>(every, 1));
    extents.push_back(last / steps.back() + 1);
    elements *= extents.back();
  }
  const auto stride_of = [&](size_t axis) {
    const size_t d = *input.dim_of(axis);
    const auto place = as_size(std::ranges::find(dims, d) - dims.begin());
    int64_t stride = input.at[d].steps[axis] / steps[place];
    for (size_t i = place + 1; i < dims.size(); ++i)
      stride *= extents[i];
    return extent[axis] > 1 ? stride : 0;
  };
  for (const size_t axis : axes) {
    windows.push_back(extent[axis]);
    strides.push_back(stride_of(axis));
  }
  begins = {0};
  for (const size_t axis : convolution.pool.places) {
    std::vector<int64_t> all;
    for (const int64_t begin : begins)
      for (int64_t i = 0; i < extent[axis]; ++i)
        all.push_back(begin + i * stride_of(axis));
    begins = std::move(all);
  }
}
}  // namespace warploom::kernels
