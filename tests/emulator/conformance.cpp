#include "conformance.h"
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>
#include "conformance_parts.h"
#include "harness.h"

namespace warploom::emulator::testing {
std::string conformance_text() {
  std::string text;
  for (const char* part : {"conformance", "conformance_products", "conformance_clusters"})
    text += read_kernel(part);
  return text;
}

std::vector<Conformance> conformance_cases() {
  std::vector<Conformance> all;
  for (const auto& part :
       {move_cases(), value_cases(), product_cases(), box_cases(), sharing_cases()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::string compare(const Conformance& c, const Words& got) {
  for (size_t i = 0; i < c.want.size(); ++i) {
    if (got[i] == c.want[i]) continue;
    const double w = number(c.want[i]);
    const double g = number(got[i]);
    if (c.tolerance >= 0 &&
        ((std::isnan(w) && std::isnan(g)) ||
         std::abs(g - w) <= c.tolerance * std::abs(w) + 1.2e-38 || (w == 0 && g == 0)))
      continue;
    return c.kernel + ": word " + std::to_string(i) + " is " + std::to_string(got[i]) + " (" +
           std::to_string(g) + "), not " + std::to_string(c.want[i]) + " (" + std::to_string(w) +
           ")";
  }
  return "";
}
}  // namespace warploom::emulator::testing
