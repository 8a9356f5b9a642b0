#include "export/bundle.h"
#include <regex>
#include "base/hash.h"
#include "base/quoted.h"
#include "base/random.h"
#include "export/delivery.h"
#include "export/names.h"
#include "graph/parallel.h"
#include "graph/reference.h"
#include "runtime/compilers.h"
#include "runtime/plan_file.h"
#include "runtime/type_codes.h"
#include "verify/inputs.h"
#include "verify/tolerance.h"

namespace warploom::export_ {
namespace fs = std::filesystem;

namespace {
using nlohmann::json;

// All that is text stands in resources/bundle and is filled in (base/rendered.h) from one record;
// what is computed beside it is here.

// 16- and 8-bit floats by CUDA's own names on the GPU, by their bits on the CPU.
std::string parameter_type(Dtype dtype, bool gpu) {
  const int bits = bits_of(dtype);
  if (!is_float(dtype) || bits > 16) return std::string(cpu_type(dtype));
  if (!gpu) return fmt::format("std::uint{}_t", bits);
  return bits == 8              ? fmt::format("__nv_fp8_{}", name_of(dtype))
         : dtype == Dtype::bf16 ? "__nv_bfloat16"
                                : "__half";
}

// Those the kernels were judged with, less what makes them a shared library.
std::string cpu_flags() {
  std::vector<std::string> flags = runtime::kCpuCompileFlags;
  std::erase_if(flags, [](const std::string& flag) {
    return flag == "-shared" || flag == "-fPIC" || flag.starts_with("-std=");
  });
  return listed(flags, {}, " ");
}

// With which the PyTorch module compiles the sources: those of the Makefile.
std::string module_flags(const LaunchList& list) {
  if (list.engine == Engine::cpu) return "-std=c++20 -pthread " + cpu_flags();
  return fmt::format("-std=c++17 -O3 -gencode arch=compute_{0},code=sm_{0}", list.arch.substr(3));
}

// How the launcher spells a buffer's address, and how many bytes lie there.
struct Place {
  std::string address;
  int64_t bytes;
};

// What the texts of resources/bundle name:
//   bundle, summary, comment, gpu, engine, arch, …   of the whole
//
//   inputs, outputs   {index, name, variable, called, type, dtype, shape, …}: the launcher's
//                     parameters, `type` what they point to, `called` the model's name as a C
//                     string
//   kernels           as in the launch list; arguments with their address as the launcher spells it
//                     ("wl_tensors[2]", "static_cast<char*>(wl_workspace) + 4096")
//
// Text that the model's author chose comes in the form of the language it goes into
// (base/quoted.h): summary_markdown, called; as it is, in plan.json alone, which the PyTorch module
// reads it from.
json record_of(const BundleInfo& info, const LaunchList& list) {
  const bool gpu = list.engine == Engine::cuda;
  std::vector<std::string> taken;
  const std::string name = identifier(info.name, taken, Named::bundle);
  json record = {
      {"bundle", name},
      {"summary_markdown", markdown_text(info.summary)},
      {"headline_markdown", info.headline.empty() ? "" : markdown_text(info.headline)},
      {"comment", comment(info.summary)},
      {"gpu", gpu},
      {"engine", gpu ? "ptx" : "cpu"},
      {"engine_text", resource(gpu ? "bundle/cuda/engine.cpp" : "bundle/cpu/engine.cpp")},
      {"gpu_arch", gpu ? list.arch : ""},
      {"arch_number", list.arch.starts_with("sm_") ? list.arch.substr(3) : list.arch},
      {"cpu_flags", cpu_flags()},
      {"compiler", gpu ? "nvcc" : "g++ or what CXX names"},
      {"device", gpu ? "an " + list.arch + " GPU" : "the CPU"},
      {"module_flags", module_flags(list)},
      {"kernel_file", name + (gpu ? ".cu" : "_kernels.cpp")},
      {"result", list.outputs.size() == 1 ? "y" : "outputs"},
      {"kernels", to_json(list)["kernels"]}};
  taken.clear();
  std::map<std::string, Place> places;
  std::set<std::string> types;  // of which pointers need only the names
  for (const auto& [key, buffers] :
       {std::pair("inputs", &list.inputs), std::pair("outputs", &list.outputs)})
    for (const BufferSpec& buffer : *buffers) {
      const std::string type = parameter_type(buffer.dtype, gpu);
      const std::string variable = identifier(buffer.name, taken);
      record[key].push_back(
          {{"index", taken.size() - 1},
           {"name", buffer.name},
           {"called", c_string(buffer.name)},
           {"renamed", variable != buffer.name},
           {"variable", variable},
           {"type", type},
           {"dtype", name_of(buffer.dtype)},
           {"shape", buffer.shape},
           {"elements", buffer.elements()},
           {"text", fmt::format("{} {}", name_of(buffer.dtype), graph::to_text(buffer.shape))}});
      places.emplace(buffer.name,
                     Place{fmt::format("wl_tensors[{}]", taken.size() - 1), buffer.bytes()});
      if (type.starts_with("__")) types.insert(type);
    }
  record["types"] = types;
  int64_t offset =
      0;  // of each workspace in the one that the caller passes: bytes, multiples of 256
  for (const BufferSpec& workspace : list.workspaces) {
    places.emplace(
        workspace.name,
        Place{fmt::format("static_cast<char*>(wl_workspace) + {}", offset), workspace.bytes()});
    offset += round_up(workspace.bytes(), 256);
  }
  record["workspace_bytes"] = offset;
  std::string sources;
  for (size_t k = 0; k < list.kernels.size(); ++k) {
    const Kernel& kernel = list.kernels[k];
    sources += kernel.source;
    json& row = record["kernels"][k];
    row.erase("source");
    row.update({{"index", k},
                {"grid", fmt::format("{}", fmt::join(kernel.grid, ", "))},
                {"cluster", fmt::format("{}", fmt::join(kernel.cluster, ", "))},
                {"blocks", kernel.grid[0] * kernel.grid[1] * kernel.grid[2]},
                {"cooperative", int{kernel.cooperative}},
                {"overlaps", int{kernel.programmatic_launch}}});
    for (size_t i = 0; i < kernel.args.size(); ++i) {
      const Argument& arg = kernel.args[i];
      const Place& place = places.at(arg.buffer);
      row["args"][i].update({{"index", i}, {"address", place.address}, {"bytes", place.bytes}});
      if (!arg.tensor_map) continue;
      record["maps"] = true;
      const int64_t swizzle = arg.map.swizzle_bytes;
      row["args"][i]["tensor_map"].update(
          {{"type", runtime::codes_of(arg.map.dtype).map_name},
           {"rank", arg.map.dims.size()},
           {"swizzle", swizzle == 0 ? "NONE" : fmt::format("{}B", swizzle)}});
    }
  }
  record["hash"] = hash_hex(sources).substr(0, 8);
  return record;
}

// Lines as `#include "name"` or `#include <name>`, and the name.
const std::regex kInclude("^[ \\t]*#include\\s*[\"<]([^\">]+)[\">].*\\n",
                          std::regex::ECMAScript | std::regex::multiline);
using Includes = std::sregex_iterator;

// What stands above a kernel text's own code: includes, and what they are told.
const std::regex kPreamble("^[ \\t]*#(?:include\\s*[\"<][^\">]+[\">]|define WL_VECTOR_BYTES ).*\\n",
                           std::regex::ECMAScript | std::regex::multiline);

// Several texts in one file: preambles first, each line once; `between`; then each text in a
// namespace of its own, so that their constants and helpers cannot meet. Kernels keep C linkage.
std::string joined(const std::vector<std::string>& texts, const std::string& between) {
  std::string head;
  std::string body;
  std::set<std::string> seen;
  for (size_t i = 0; i < texts.size(); ++i) {
    for (Includes line(texts[i].begin(), texts[i].end(), kPreamble), end; line != end; ++line)
      if (seen.insert(line->str()).second) head += line->str();
    body += fmt::format("\nnamespace part_{0} {{\n{1}}}  // namespace part_{0}\n", i,
                        std::regex_replace(texts[i], kPreamble, ""));
  }
  return head + between + body;
}

// One text stays as it is, but for `between` below its preamble.
std::string parted(const std::string& text, const std::string& between) {
  size_t at = 0;
  for (Includes line(text.begin(), text.end(), kPreamble), end; line != end; ++line)
    at = static_cast<size_t>(line->position() + line->length());
  return text.substr(0, at) + between + text.substr(at);
}

// Kernels of several bundles often have one name (`direct`), and their symbols would meet in a
// program that links them, or worse, in its libraries. So the kernel file calls each by the
// bundle's name as well, unless a text uses the name for something else, too.
std::map<std::string, std::string> symbols_of(const std::string& bundle, const LaunchList& list,
                                              const std::vector<std::string>& texts) {
  std::map<std::string, std::string> symbols;  // by the kernel's name
  for (const Kernel& kernel : list.kernels) {
    if (symbols.contains(kernel.name)) continue;
    const std::regex otherwise(fmt::format("(::|\\.|->)\\s*{}\\b", kernel.name));
    const bool used = std::ranges::any_of(
        texts, [&](const std::string& text) { return std::regex_search(text, otherwise); });
    symbols[kernel.name] = used ? kernel.name : bundle + "_" + kernel.name;
  }
  return symbols;
}

// Kernels of one text stay one text; several texts each get a namespace. Adds kernel_text, and to
// every kernel its `symbol` and `part`, the namespace it is in.
void add_kernel_text(json& record, const LaunchList& list) {
  std::vector<std::string> texts;  // each once
  for (const Kernel& kernel : list.kernels)
    if (!contains(texts, kernel.source)) texts.push_back(kernel.source);
  const auto symbols = symbols_of(record["bundle"], list, texts);
  std::string names;
  for (const auto& [name, symbol] : symbols)
    if (symbol != name) names += fmt::format("#define {} {}\n", name, symbol);
  const bool several = texts.size() > 1;
  record["kernel_text"] = several ? joined(texts, names) : parted(texts[0], names);
  for (size_t i = 0; i < list.kernels.size(); ++i) {
    const auto part = std::ranges::find(texts, list.kernels[i].source) - texts.begin();
    record["kernels"][i]["part"] = several ? fmt::format("part_{}::", part) : "";
    record["kernels"][i]["symbol"] = symbols.at(list.kernels[i].name);
  }
}

// The device headers that the bundle's files include, directly or through others.
std::vector<BundleFile> device_files(const LaunchList& list, const std::vector<BundleFile>& files) {
  const std::string folder = list.engine == Engine::cuda ? "ptx/" : "cpu/";
  std::vector<BundleFile> found;
  std::set<std::string> seen;
  const std::function<void(const std::string&)> look = [&](const std::string& text) {
    for (Includes line(text.begin(), text.end(), kInclude), end; line != end; ++line) {
      const std::string name = (*line)[1];
      for (const auto& header : device_headers()) {
        if ((header.path != folder + name && header.path != "common/" + name) ||
            !seen.insert(header.path).second)
          continue;
        found.push_back({"device/" + header.path, header.text});
        look(header.text);
      }
    }
  };
  for (const BundleFile& file : files) look(file.text);
  return found;
}

// What `make check` compares with: inputs, and outputs by the FP64 reference, whole or sampled.
//
// Inputs are made again anywhere from a seed: element i is SplitMix64's i-th number, of which as
// many leading bits are kept as the type's significand holds, as a fraction in [-1, 1), times a
// power of two where it is the weights of a network, without its sign where it is a variance; of
// integers, and of what else has two ends (an index counts from either end of its axis), one of the
// numbers between them. So every value is exact in its type, and a bundle's check.cpp makes the
// same bits without any rounding.
constexpr int64_t kMostBytes = 64 << 20;  // of stored data; more is sampled
constexpr int64_t kSampledRows = 16;
constexpr int64_t kSamplesPerRow = 4096;
constexpr double kMostAllowed = 1e-4;  // however ill-conditioned

uint64_t input_seed(uint64_t seed, size_t input) {
  Random random(seed);
  while (input-- > 0) random.next();
  return random.next();
}

// The leading bits that a generated value keeps, the sign among them; of floats.
int kept_bits(Dtype dtype) {
  return is_float(dtype) ? std::min(24, -std::ilogb(unit_roundoff(dtype))) : 0;
}

// What an input's elements are drawn from.
struct Drawn {
  double scale = 1;
  bool positive = false;
  verify::Lattice lattice = {};
};

std::vector<std::byte> generate(Dtype dtype, uint64_t seed, int64_t elements, const Drawn& from) {
  std::vector<std::byte> bytes(elements * bytes_of(dtype));
  const int kept = kept_bits(dtype);
  const double unit = std::ldexp(from.scale, 1 - kept);
  const verify::Lattice& lattice = from.lattice;
  const auto count = static_cast<uint64_t>(lattice.count);
  constexpr int64_t kPart = 1 << 18;
  graph::parallel_for(ceil_div(elements, kPart), 0, [&](int64_t part) {
    Random random(seed);
    random.skip(static_cast<uint64_t>(part * kPart));
    for (int64_t i = part * kPart; i < std::min(elements, (part + 1) * kPart); ++i) {
      const uint64_t bits = random.next();
      const double value =
          count > 0 ? lattice.low + lattice.step * static_cast<double>((bits >> 11) % count)
                    : static_cast<double>(static_cast<int64_t>(bits) >> (64 - kept)) * unit;
      store_from_double(dtype, bytes.data(), i, from.positive ? std::fabs(value) : value);
    }
  });
  return bytes;
}

std::string packed(const auto& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof values[0]};
}

// `most` of the numbers below `count` at random, or all of them; ascending, each once.
std::vector<int64_t> chosen(int64_t most, int64_t count, Random& random) {
  std::vector<int64_t> out(std::min(most, count));
  std::iota(out.begin(), out.end(), 0);
  if (count > most)
    for (int64_t& number : out)
      number = static_cast<int64_t>(random.below(static_cast<uint64_t>(count)));
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// Some elements of some rows, or all of them (no indices): their flat indices, ascending, and
// values.
struct Samples {
  std::vector<int64_t> indices;
  std::vector<double> values;
  verify::Comparison seen;  // how the values' rounding may add up
};

Result<Samples> samples_of(const graph::Graph& graph, std::span<const graph::Bytes> inputs,
                           int output, uint64_t seed, bool whole) {
  const graph::Rows rows = graph::rows_of(graph, output);
  Random random(seed, "bundle samples");
  Samples samples;
  for (const int64_t row :
       whole ? std::vector<int64_t>{0} : chosen(kSampledRows, rows.count, random)) {
    WARPLOOM_TRY(auto made, graph::evaluate_magnitude_rows(graph, inputs, output, row,
                                                           whole ? rows.count : row + 1));
    verify::compare(samples.seen, {}, Dtype::f64, made.value.data(), made.value.data(),
                    made.magnitude.data(), 0, std::ssize(made.value));
    if (whole)
      samples.values = std::move(made.value);
    else
      for (const int64_t column : chosen(kSamplesPerRow, rows.elements, random)) {
        samples.indices.push_back(row * rows.elements + column);
        samples.values.push_back(made.value[column]);
      }
  }
  return samples;
}

// check/: inputs and expected outputs, or for large problems the seed and samples. Adds to inputs
// and outputs what check.cpp says of them, to an input whether the model itself holds it (`held`)
// and then where its bytes lie (`stored`), which NAME.py reads, too; and as `given` the inputs that
// it does not. An output may differ by `tolerance`, or by what plain fp32 arithmetic is expected to
// where that is more.
Result<std::vector<BundleFile>> check_data(json& record, const LaunchList& list,
                                           const graph::Graph& graph, double tolerance,
                                           uint64_t seed) try {
  int64_t bytes = 0;
  for (const auto& input : list.inputs) bytes += input.bytes();
  for (const auto& output : list.outputs)
    bytes += output.elements() * static_cast<int64_t>(sizeof(double));
  const bool whole = bytes <= kMostBytes;

  std::vector<BundleFile> files;
  const auto stored = [&](const std::string& name,
                          std::string text) {  // how check.cpp spells the file's name
    files.push_back({"check/" + name, std::move(text)});
    return "\"" + name + "\"";
  };
  const auto add = [](json& row, Dtype dtype, const json& more) {
    row.update({{"element", cpu_type(dtype)}, {"kept", kept_bits(dtype)}});
    row.update(more);
  };
  // Inputs are made from the seed; a tensor whose bytes the model holds keeps them.
  std::map<std::string, std::vector<std::byte>> made;
  std::vector<std::string> given;  // those that the model does not hold
  const std::vector<graph::InputRole> roles = graph::input_roles(graph);
  const graph::Ranges ranges = graph::ranges_of(graph);
  for (size_t i = 0; i < list.inputs.size(); ++i) {
    const BufferSpec& input = list.inputs[i];
    const auto& held = graph.tensor(*graph.tensor_named(input.name)).constant;
    const auto at =
        std::ranges::find(graph.inputs, *graph.tensor_named(input.name)) - graph.inputs.begin();
    const graph::InputRole role = held ? graph::InputRole{} : roles[at];
    Drawn from{.scale = verify::weight_scale(role.terms, 0, 0.577, input.dtype)};
    if (!held) {
      const graph::Range range = graph::range_in(ranges, input.name);
      from.positive = role.variance || (range.low == 0 && !std::isfinite(range.high));
      from.lattice = verify::lattice_of(input.dtype, range);
      // Of divisors those above 0 alone.
      if (range.nonzero) from.lattice = {from.lattice.step, from.lattice.step, 7};
    }
    const auto& values = made[input.name] =
        held ? *held : generate(input.dtype, input_seed(seed, i), input.elements(), from);
    const std::string name = fmt::format("input_{}.bin", i);
    add(record["inputs"][i], input.dtype,
        {{"held", held.has_value()},
         {"stored", name},
         {"scale", fmt::format("{:a}", from.scale)},
         {"positive", from.positive ? "true" : "false"},
         {"low", fmt::format("{:a}", from.lattice.low)},
         {"step", fmt::format("{:a}", from.lattice.step)},
         {"count", static_cast<uint64_t>(from.lattice.count)},
         {"file", whole || held ? stored(name, packed(values)) : "nullptr"},
         {"seed", input_seed(seed, i)}});
    if (!held) given.push_back(record["inputs"][i]["variable"]);
  }
  record["given"] = listed(given);
  std::vector<graph::Bytes> of_graph;  // in the graph's order of inputs
  for (const auto id : graph.inputs) of_graph.emplace_back(made.at(graph.tensor(id).name));
  for (size_t i = 0; i < list.outputs.size(); ++i) {
    WARPLOOM_TRY(const Samples samples,
                 samples_of(graph, of_graph, static_cast<int>(i), seed, whole));
    // A network's layers each hold the track's bound; what their errors come to together is for
    // these inputs to say.
    const double plain = std::min(verify::plain_error(samples.seen), kMostAllowed);
    const double allowed = is_float(list.outputs[i].dtype) ? std::max(tolerance, plain) : 0;
    add(record["outputs"][i], list.outputs[i].dtype,
        {{"allowed", fmt::format("{:.3e}", allowed)},
         {"file", stored(fmt::format("output_{}.f64", i), packed(samples.values))},
         {"indices",
          whole ? "nullptr" : stored(fmt::format("output_{}.i64", i), packed(samples.indices))}});
  }
  return files;
} catch (const std::bad_alloc&) {
  return fail({ErrorCode::kOutOfMemory, "the bundle's check data do not fit in memory",
               record["bundle"].get<std::string>(), "memory for all inputs", "not enough",
               "write the bundle on a machine with more memory"});
}
}  // namespace

std::string comment(std::string_view text) {
  // As many words as fit, or a longer one.
  static const std::regex line("(\\S{97,}|\\S.{0,96})(?:\\s+|$)");
  const std::string words = printable(text);
  std::string out;
  for (std::sregex_iterator found(words.begin(), words.end(), line), end; found != end; ++found)
    out += "// " + c_comment((*found)[1].str()) + "\n";
  return out;
}

Result<std::vector<BundleFile>> bundle_files(const BundleInfo& info, const LaunchList& list,
                                             const graph::Graph& graph) {
  json record = record_of(info, list);
  WARPLOOM_TRY(std::vector<BundleFile> files,
               check_data(record, list, graph, info.tolerance, info.seed));
  add_kernel_text(record, list);
  const std::string engine = list.engine == Engine::cuda ? "cuda/" : "cpu/";
  const std::pair<const char*, std::string> kTexts[] = {
      {"{{kernel_file}}", "kernels.cpp"},
      {"{{bundle}}.h", engine + "host.h"},
      {"{{bundle}}_host.cpp", engine + "host.cpp"},
      {"check/check.cpp", "check.cpp"},
      {"Makefile", engine + "Makefile"},
      {"{{bundle}}.py", "module.py"},
      {"README.md", "README.md"}};
  for (const auto& [path, text] : kTexts)
    files.push_back({rendered(path, record), rendered(resource("bundle/" + text), record)});
  for (const EmbeddedFile& part : resources())  // of the PyTorch module, as they are
    if (part.path.starts_with("bundle/python/"))
      files.push_back(
          {rendered("{{bundle}}_torch/", record) + fs::path(part.path).filename().string(),
           part.text});
  std::ranges::move(device_files(list, files), std::back_inserter(files));
  if (!info.outline.empty()) files.push_back({"check/outline.onnx", info.outline});
  json plan = info.plan.is_object() ? info.plan : json::object();
  plan.update(
      {{"name", record["bundle"]},
       {"summary", info.summary},
       {"tolerance", info.tolerance},
       {"check_seed", info.seed},
       {"kernel_file", record["kernel_file"]},
       {"launch_list", to_json(list)},
       {"weights", info.weights},
       {"constants", json::object()}});  // the files of those inputs that the model itself holds
  for (const auto& input : record["inputs"])
    if (input["held"])
      plan["constants"][input["name"].get<std::string>()] =
          "check/" + input["stored"].get<std::string>();
  for (const BundleFile& file : files) plan["files"][file.path] = hash_hex(file.text);
  runtime::seal_plan(plan);
  // Last: its presence says that the bundle is whole.
  files.push_back({"plan.json", plan.dump(2, ' ', false, json::error_handler_t::replace) + "\n"});
  return files;
}

Result<Delivered> write_bundle(const fs::path& folder, const BundleInfo& info,
                               const LaunchList& list, const graph::Graph& graph) {
  WARPLOOM_TRY(const std::vector<BundleFile> files, bundle_files(info, list, graph));
  return deliver(folder, files, list.engine);
}
}  // namespace warploom::export_
