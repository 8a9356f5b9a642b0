// The parts of a bundle, each a file or a folder of files, as text. bundle.cpp puts them together.
#pragma once
#include "base/device_headers.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
namespace warploom::export_ {
struct BundleFile {
  std::string path;  // below the bundle's folder
  std::string text;
};

// A buffer of the launch list as the launcher's parameter.
struct Parameter {
  BufferSpec buffer;
  std::string variable;  // a C identifier
  std::string type;      // what it points to, without const
  bool input = false;
};

// What all parts know of the bundle.
struct Frame {
  std::string name;     // a C identifier
  std::string summary;  // a sentence
  const LaunchList& list;
  std::vector<Parameter> parameters;  // inputs, then outputs
};
Frame make_frame(const std::string& name, const std::string& summary, const LaunchList& list);

bool on_gpu(const LaunchList& list);
// "const float* A, const float* B, float* C", a comma after each.
std::string declare_parameters(const Frame& frame);

// One line a parameter for people: "//   A  input, bf16 [4096,4096]".
std::string describe_parameters(const Frame& frame);

// Where each workspace lies in the one workspace the caller passes: bytes, multiples of 256; last comes the sum.
std::vector<std::int64_t> workspace_offsets(const LaunchList& list);
// How the launcher spells the address of `buffer`: "C", "bytes + 4096". plan-invalid when the list has no such buffer.
Result<std::string> address_of(const Frame& frame, const std::string& buffer);
std::int64_t bytes_of(const Frame& frame, const std::string& buffer);

// NAME.cu or NAME_kernels.cpp. Kernels of one text stay one text; several texts each get a namespace, their includes in front.
BundleFile kernel_file(const Frame& frame);
// The device headers that the bundle's files include, directly or through others.
std::vector<BundleFile> device_files(const LaunchList& list, const std::vector<BundleFile>& files);

Result<std::vector<BundleFile>> cuda_launcher(const Frame& frame);  // NAME.h, NAME_host.cpp
Result<std::vector<BundleFile>> cpu_launcher(const Frame& frame);

// check/: inputs and expected outputs, or for large problems the seed and samples, and check.cpp.
Result<std::vector<BundleFile>> check_files(const Frame& frame, const graph::Graph& graph, std::uint64_t seed, double tolerance);
// check.cpp: feeds the launcher, compares with FP64 and says how long a call takes. A row of `inputs` is {"NAME", FILE, SEED,
// ELEMENTS, TYPE}, of `outputs` {"NAME", VALUES, INDICES, ELEMENTS, TYPE}, each followed by a comma.
std::string check_source(const Frame& frame, double tolerance, const std::string& inputs, const std::string& outputs);

BundleFile makefile(const Frame& frame);
BundleFile readme(const Frame& frame, double tolerance);

// Small pieces for writing source text: placeholders, C identifiers, comments.

// `text` with every @NAME@ replaced by its value: fill_in("int @F@();", {{"F", "run"}}) is "int run();".
using Values = std::vector<std::pair<std::string_view, std::string>>;
std::string fill_in(std::string_view text, const Values& values);

// `name` as an identifier of C and C++: other characters become '_', a keyword or a leading digit gets one in front. Different
// from all of `taken`, to which it is added.
std::string identifier(std::string_view name, std::vector<std::string>& taken);

// `text` as lines of `// ` comment no wider than 100 columns.
std::string comment(std::string_view text);
}  // namespace warploom::export_
