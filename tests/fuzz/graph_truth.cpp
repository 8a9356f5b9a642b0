#include "fuzz/graph_truth.h"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "fuzz/graph_case.h"
#include "fuzz/run_list.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "verify/tolerance.h"

namespace warploom::fuzz {
Expected expected_of(const GraphCase& c) {
  Expected expected;
  for (size_t o = 0; o < c.graph.outputs.size(); ++o) {
    const auto output = static_cast<int>(o);
    const int64_t rows = graph::rows_of(c.graph, output).count;
    expected.outputs.push_back(
        *graph::evaluate_magnitude_rows(c.graph, bytes_of(c), output, 0, rows, 1));
  }
  return expected;
}

std::string difference(const GraphCase& c, const Expected& expected, const Storage& made) {
  for (size_t o = 0; o < expected.outputs.size(); ++o) {
    const graph::Tensor& tensor = c.graph.tensor(c.graph.outputs[o]);
    const auto& [value, magnitude, integers, overflowed, marked] = expected.outputs[o];
    if (overflowed || marked) continue;
    const verify::Tolerance tolerance = verify::tolerance_of(c.graph, c.track, static_cast<int>(o));
    verify::Comparison seen;
    verify::compare(seen, tolerance, tensor.dtype, made.at(tensor.name).data(), value.data(),
                    magnitude.data(), 0, std::ssize(value));
    // Errors of narrow types may grow where what they add to cancels, as those of f32 may
    // (stand_in); what is expected of many elements is a guess for few.
    const double ratio =
        seen.reference_squares > 0 ? std::sqrt(seen.magnitude_squares / seen.reference_squares) : 0;
    const double expected_error =
        tolerance.stand_in ? std::max(verify::kFp32Floor, 0.6 * unit_roundoff(Dtype::f32) * ratio)
                           : (tolerance.per_magnitude + tolerance.relative) * ratio;
    const double grown = expected_error * (1 + 3 / std::sqrt(static_cast<double>(value.size())));
    if (const auto accepted = verify::accept(seen, tolerance, grown, tensor.name); !accepted)
      return describe(accepted.error());
  }
  return "";
}

void poison(std::vector<std::byte>& bytes, int64_t size) {
  bytes.resize(static_cast<size_t>(size + 3));
  for (size_t i = 0; i + 4 <= bytes.size(); i += 4)
    std::memcpy(bytes.data() + i, &verify::kPoison, 4);
  bytes.resize(static_cast<size_t>(size));
}
}  // namespace warploom::fuzz
