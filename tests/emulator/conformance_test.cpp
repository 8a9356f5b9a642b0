#include "conformance.h"
#include <gtest/gtest.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>
#include "emulator.h"
#include "harness.h"
#include "tensor_map.h"

namespace warploom::emulator::testing {
namespace {
std::string run_case(const Library& lib, const Conformance& c, Options options) {
  std::vector<uint32_t> in = c.in;
  std::vector<uint32_t> out(c.want.size());
  const auto map = [](std::vector<uint32_t>& data, const MapShape& m) {
    return matrix_map(data.data() + m.offset, 2, m.rows, m.cols, m.cols, m.box_rows, m.box_cols,
                      m.swizzle);
  };
  wl::TensorMap map_in = map(in, c.map_in);
  wl::TensorMap map_out = map(out, c.map_out);
  const void* pin = in.data();
  void* pout = out.data();
  void* args[] = {&map_in, &map_out, &pin, &pout};
  Launch l;
  l.entry = lib.entry(c.kernel);
  std::copy_n(c.grid, 3, l.grid);
  l.cluster[0] = c.cluster;
  l.cooperative = c.cooperative;
  l.block = c.threads;
  l.registers = 128;
  l.shared_bytes = c.shared_bytes;
  l.args = args;
  l.options = options;
  l.allocations = {{in.data(), in.size() * 4, "in"},
                   {out.data(), out.size() * 4, "out", true, true}};
  const Report r = run(l);
  if (!r.clean()) return c.kernel + " (seed " + std::to_string(options.seed) + "):\n" + r.text();
  return compare(c, out);
}

TEST(Conformance, EveryFunctionAnswersAsItsTableSays) {
  const Library lib({conformance_text()});
  for (const Conformance& c : conformance_cases())
    for (uint64_t seed = 0; seed < 3; ++seed)
      EXPECT_EQ(run_case(lib, c, {.seed = seed, .timing = static_cast<Timing>(seed)}), "");
}

TEST(Conformance, EveryKernelOfTheTextHasACase) {
  const std::string text = conformance_text();
  size_t exports = 0;
  for (size_t at = text.find("\nWL_EXPORT("); at != std::string::npos;
       at = text.find("\nWL_EXPORT(", at + 1))
    ++exports;
  for (const char* macro : {"\nMULTIPLY_CASE(", "\nWGMMA_CASE(", "\nWGMMA_RS_CASE("})
    for (size_t at = text.find(macro); at != std::string::npos; at = text.find(macro, at + 1))
      ++exports;
  EXPECT_EQ(conformance_cases().size(), exports);
}
}  // namespace
}  // namespace warploom::emulator::testing
