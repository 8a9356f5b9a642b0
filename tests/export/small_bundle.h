// A bundle of one small kernel, y = -x, for tests of what happens around bundles.
#pragma once
#include <gtest/gtest.h>
#include <filesystem>
#include "../graph/builder.h"
#include "base/file.h"
#include "export/bundle.h"

namespace warploom::export_ {
struct Small {
  graph::Graph graph;
  LaunchList list;
};

// Of 8 x 4 elements; `operation` stands before x[i].
inline Small small(const std::string& operation = "-", const std::string& input = "x") {
  graph::Builder builder("neg");
  builder.output(builder.add(graph::OpKind::Neg, {builder.input(input, Dtype::f32, {8, 4})}));
  auto graph = builder.finish();
  EXPECT_TRUE(graph) << describe(graph.error());
  LaunchList list{.engine = Engine::cpu, .arch = "x86-64"};
  const std::string y = graph->tensor(graph->outputs[0]).name;
  list.inputs = {{input, Dtype::f32, {8, 4}}};
  list.outputs = {{y, Dtype::f32, {8, 4}}};
  list.kernels = {
      {.name = "negate",
       .source = "#include \"wl_cpu.h\"\n"
                 "extern \"C\" void negate(void* const* buffers, long long task, void*) {\n"
                 "  for (long i = task * 4; i < task * 4 + 4; ++i)\n"
                 "    static_cast<float*>(buffers[1])[i] = " +
                 operation + "static_cast<const float*>(buffers[0])[i];\n}\n",
       .grid = {8, 1, 1},
       .threads = 1,
       .args = {{input}, {y}}}};
  return {*std::move(graph), std::move(list)};
}

// Its files as they are, neither built nor checked.
inline Status lay_out_small(const std::filesystem::path& folder, const std::string& name = "neg") {
  const Small made = small();
  WARPLOOM_TRY(const auto files,
               bundle_files({.name = name, .summary = "A test.", .plan = {{"track", "fp32"}}},
                            made.list, made.graph));
  for (const BundleFile& file : files) {
    WARPLOOM_CHECK(make_folders((folder / file.path).parent_path()));
    WARPLOOM_CHECK(write_file(folder / file.path, file.text));
  }
  return ok();
}

inline Result<Delivered> deliver_small(const std::filesystem::path& folder,
                                       const std::string& name = "neg",
                                       const std::string& operation = "-") {
  const Small made = small(operation);
  return write_bundle(folder, {.name = name, .summary = "A test.", .plan = {{"track", "fp32"}}},
                      made.list, made.graph);
}
}  // namespace warploom::export_
