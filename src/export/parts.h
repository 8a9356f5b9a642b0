// The parts of a bundle, each a file or a folder of files, as text. bundle.cpp puts them together. What is the same in every
// bundle stands in resources/bundle; here is what fills it in.
#pragma once
#include "base/embedded.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
namespace warploom::export_ {
struct BundleFile {
  std::string path;  // below the bundle's folder
  std::string text;
};

// What stands for which @NAME@ in a text; fill_in below.
using Values = std::vector<std::pair<std::string_view, std::string>>;

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
// resources/bundle/cuda/FILE or resources/bundle/cpu/FILE.
const std::string& engine_resource(const LaunchList& list, const std::string& file);
// How the launcher spells the address of `buffer`: "C", "bytes + 4096". plan-invalid when the list has no such buffer.
Result<std::string> address_of(const Frame& frame, const std::string& buffer);
std::int64_t bytes_of(const Frame& frame, const std::string& buffer);

// NAME.cu or NAME_kernels.cpp. Kernels of one text stay one text; several texts each get a namespace, their includes in front.
BundleFile kernel_file(const Frame& frame);
// The device headers that the bundle's files include, directly or through others.
std::vector<BundleFile> device_files(const LaunchList& list, const std::vector<BundleFile>& files);

Result<std::vector<BundleFile>> cuda_launcher(const Frame& frame);  // NAME.h, NAME_host.cpp
Result<std::vector<BundleFile>> cpu_launcher(const Frame& frame);
// Both from the engine's host.h and host.cpp, by the values that the engine has and those that every launcher has.
std::vector<BundleFile> launcher_files(const Frame& frame, Values values);

// Where check/ keeps the bytes of an input, which python_module() also reads where they are the model's own.
std::string input_file(std::size_t input);
bool held(const graph::Graph& graph, const BufferSpec& input);  // by the model itself
// check/: inputs and expected outputs, or for large problems the seed and samples, and check.cpp.
Result<std::vector<BundleFile>> check_files(const Frame& frame, const graph::Graph& graph, std::uint64_t seed, double tolerance);

BundleFile makefile(const Frame& frame);
BundleFile python_module(const Frame& frame, const graph::Graph& graph);  // NAME.py
BundleFile readme(const Frame& frame, double tolerance);

// Small pieces for writing source text: placeholders, C identifiers, comments.

// `text` with every @NAME@ replaced by its value: fill_in("int @F@();", {{"F", "run"}}) is "int run();". A name alone on its line
// stands for whole lines: it leaves no line behind where its value is empty.
std::string fill_in(std::string_view text, const Values& values);

// `name` as an identifier of C and C++: other characters become '_', a word that the source has another use for or a leading digit
// gets one in front. Different from all of `taken`, to which it is added.
std::string identifier(std::string_view name, std::vector<std::string>& taken);

// `text` as lines of `// ` comment no wider than 100 columns.
std::string comment(std::string_view text);
}  // namespace warploom::export_
