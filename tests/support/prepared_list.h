// A launch list of which a part is prepared: y = x + 2 w on a CPU, where w is constant, so that
// t = 2 w is made once for all calls.
#pragma once
#include <cstdint>
#include <string>
#include "codegen/launch_list.h"

namespace warploom::test {
// A kernel's text that does `statement` for each of `count` elements i; at(n) is its buffer n.
inline std::string elementwise_text(const std::string& name, int64_t count,
                                    const std::string& statement) {
  return "#include \"wl_cpu.h\"\nextern \"C\" void " + name +
         "(void* const* b, long long, void*) {\n"
         "  auto at = [&](int n) { return static_cast<float*>(b[n]); };\n"
         "  for (int i = 0; i < " +
         std::to_string(count) + "; ++i) " + statement + ";\n}\n";
}

// Of `count` elements; `result` is the output's name.
inline LaunchList prepared_list(const std::string& arch, int64_t count,
                                const std::string& result = "y") {
  LaunchList list{.engine = Engine::cpu, .arch = arch};
  list.inputs = {{"x", Dtype::f32, {count}}, {"w", Dtype::f32, {count}}};
  list.outputs = {{result, Dtype::f32, {count}}};
  list.workspaces = {{"t", Dtype::f32, {count}}};
  list.kernels = {{.name = "twice",
                   .source = elementwise_text("twice", count, "at(1)[i] = 2 * at(0)[i]"),
                   .threads = 1,
                   .args = {{"w"}, {"t"}}},
                  {.name = "add",
                   .source = elementwise_text("add", count, "at(2)[i] = at(0)[i] + at(1)[i]"),
                   .threads = 1,
                   .args = {{"x"}, {"t"}, {result}}}};
  list.constants = {"w"};
  list.prepare = {0};
  return list;
}
}  // namespace warploom::test
