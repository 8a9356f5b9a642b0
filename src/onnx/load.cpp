#include "onnx/load.h"
#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/text_format.h>
#include <onnx/onnx.pb.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <new>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/file.h"
#include "base/quoted.h"
#include "base/rows.h"
#include "graph/graph.h"
#include "graph/weights.h"
#include "onnx/model.h"
#include "onnx/weights.h"

namespace warploom {
namespace {
using graph::Graph;
using graph::Tensor;
using onnx::GraphProto;
using onnx::ModelProto;
using onnx::NodeProto;
using onnx::TensorProto;
using onnx::ValueInfoProto;
using onnx_import::Source, onnx_import::to_graph, onnx_import::to_tensor;
constexpr std::uintmax_t kMaxFile = (std::uintmax_t{1} << 31) - 1;
constexpr int kMaxNesting = 100;
// What git-lfs leaves in the place of a file that was not fetched begins with this.
constexpr std::string_view kLfsPointer = "version https://git-lfs.github.com/spec/";

// A text has no control characters; a binary model has one within its first few bytes (the tag of
// ir_version is 8).
bool looks_like_text(std::string_view content) {
  const auto is_text = [](unsigned char c) {
    return c >= 32 || c == '\n' || c == '\r' || c == '\t';
  };
  return std::ranges::all_of(content.substr(0, 1024), is_text);
}

struct FirstError : google::protobuf::io::ErrorCollector {
  std::string text;

  void AddError(int line, int column, const std::string& message) override {
    if (text.empty()) text = fmt::format("line {}, column {}: {}", line + 1, column + 1, message);
  }
};

tl::unexpected<Error> too_large(std::string place, std::uintmax_t bytes) {
  Error error{ErrorCode::kOnnxTooLarge, "the model file is too large", std::move(place)};
  error.expected = "at most 2 GiB";
  error.found = fmt::format("{} bytes", bytes);
  error.remedy = "store the weights as external data";
  return fail(error);
}

Result<ModelProto> parse_text(std::string_view content, const Source& source) {
  ModelProto model;
  FirstError complaint;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&complaint);
  parser.SetRecursionLimit(kMaxNesting);
  if (parser.ParseFromString(std::string(content), &model)) return model;
  // What was read before the complaint is a model's, and some of its braces are still open: it
  // breaks off.
  const auto open = std::ranges::count(content, '{') - std::ranges::count(content, '}');
  const bool breaks_off = open > 0 && open < kMaxNesting;
  if (model.has_ir_version() && model.has_graph() && breaks_off) {
    Error error{ErrorCode::kOnnxTruncated, "the text of the model breaks off", source.place};
    error.expected = "closing braces";
    error.found = complaint.text;
    return fail(error);
  }
  Error error{ErrorCode::kOnnxNotOnnx, "the file is a text, and not that of an ONNX model"};
  error.place = source.place;
  error.expected = "a ModelProto in protobuf text form";
  error.found = complaint.text;
  error.remedy = "export the model to ONNX";
  return fail(error);
}

Result<ModelProto> parse_binary(std::string_view content, const Source& source) {
  ModelProto model;
  const auto* const bytes = reinterpret_cast<const uint8_t*>(content.data());
  const int size = as_int(content.size());
  google::protobuf::io::CodedInputStream stream(bytes, size);
  stream.SetRecursionLimit(kMaxNesting);
  const bool parsed = model.ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
  if (parsed && model.has_graph()) return model;
  const bool at_end = as_size(stream.CurrentPosition()) == content.size();
  const bool has_part = model.opset_import_size() > 0 || model.has_graph();
  if (!parsed && model.has_ir_version() && has_part && at_end) {
    Error error{ErrorCode::kOnnxTruncated, "the model ends before its own lengths say"};
    error.place = source.place;
    error.expected = "the rest of the file";
    error.found = fmt::format("{} bytes", content.size());
    error.remedy = "copy or export the file again";
    return fail(error);
  }
  Error error{ErrorCode::kOnnxNotOnnx, "the file is no ONNX model", source.place};
  error.expected = "a ModelProto with a graph, in protobuf's binary or text form";
  error.found = parsed ? "a message without a graph" : "something else";
  error.remedy = "export the model to ONNX";
  return fail(error);
}

Result<ModelProto> parse_model(std::string_view content, const Source& source) {
  [[maybe_unused]] static const auto silenced = google::protobuf::SetLogHandler(nullptr);
  if (content.empty())
    return fail({ErrorCode::kOnnxEmpty, "the model file is empty", source.place});
  if (content.size() > kMaxFile) return too_large(source.place, content.size());
  if (content.starts_with(kLfsPointer)) {
    Error error{ErrorCode::kOnnxNotOnnx, "the file is a git-lfs pointer, not the model"};
    error.place = source.place;
    error.expected = "the model itself";
    error.found = content.substr(0, content.find('\n'));
    error.remedy = "fetch it with `git lfs pull` where it was cloned";
    return fail(error);
  }
  return looks_like_text(content) ? parse_text(content, source) : parse_binary(content, source);
}

// What a user declares of a model's inputs, said in the model itself: what is proven of it
// afterwards holds of any input. Each is NAME=lower or NAME=upper, of an input; both: a diagonal.
//
//   A=lower      →      Trilu(A, upper=0) in front of all that read A
Status assume(ModelProto& model, const std::vector<std::string>& assumptions) {
  GraphProto& graph = *model.mutable_graph();
  for (const std::string& assumption : std::set(assumptions.begin(), assumptions.end())) {
    const auto wrong = [&](std::string message, std::string expected) {
      Error error{ErrorCode::kUsage, std::move(message), "--assume " + assumption};
      error.expected = std::move(expected);
      error.found = assumption;
      error.remedy = "name an input and what its matrices are: --assume A=lower";
      return fail(error);
    };
    const size_t sign = assumption.rfind('=');
    const std::string name = assumption.substr(0, sign);
    const std::string form = sign == std::string::npos ? "" : assumption.substr(sign + 1);
    if (form != "lower" && form != "upper")
      return wrong("an assumption cannot be read", "NAME=lower or NAME=upper");
    if (!contains(graph.input(), name, &ValueInfoProto::name)) {
      const std::string inputs = listed(graph.input(), &ValueInfoProto::name);
      return wrong("an assumption is of no input", "one of " + inputs);
    }
    for (NodeProto& node : *graph.mutable_node())
      for (std::string& input : *node.mutable_input())
        if (input == name) input = assumption;  // the name of what counts
    NodeProto& trilu = *graph.add_node();
    const std::string text = fmt::format(
        "op_type: 'Trilu' attribute {{ name: 'upper' type: INT i: {:d} }}", form == "upper");
    google::protobuf::TextFormat::ParseFromString(text, &trilu);
    trilu.add_input(name);
    trilu.set_name(assumption);
    trilu.add_output(assumption);
    auto& nodes = *graph.mutable_node();
    std::rotate(nodes.begin(), nodes.end() - 1, nodes.end());
  }
  return ok();
}

// ONNX's names are UTF-8, and so are the files that a name goes to: plans, the archive, JSON.
Status check_names(const Graph& graph, const Source& source) {
  for (const Tensor& tensor : graph.tensors) {
    if (is_utf8(tensor.name)) continue;
    Error error{ErrorCode::kOnnxName, "a tensor's name is no text", source.place, "UTF-8"};
    error.found = printable(tensor.name);
    error.remedy = "rename the tensor where the model is exported";
    return fail(error);
  }
  return ok();
}

// The message, with what the user says of the model said in it.
Result<ModelProto> message_of(std::string_view content, const Source& source,
                              const ModelOptions& options) {
  WARPLOOM_TRY(ModelProto model, parse_model(content, source));
  WARPLOOM_CHECK(onnx_import::bind_dims(model, options.dims));
  WARPLOOM_CHECK(assume(model, options.assume));
  onnx_import::separate_merged(model);
  return model;
}

Result<Graph> graph_of(std::string_view content, const Source& source,
                       const ModelOptions& options) {
  try {
    WARPLOOM_TRY(const ModelProto model, message_of(content, source, options));
    WARPLOOM_TRY(Graph graph, to_graph(model, source));
    WARPLOOM_CHECK(check_names(graph, source));
    return graph;
  } catch (const std::bad_alloc&) {
    return fail({ErrorCode::kOutOfMemory, "the model does not fit in memory", source.place});
  }
}

struct ModelFile {
  std::string content;
  Source source;
};

Result<ModelFile> read_model(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error))
    return fail(
        {ErrorCode::kFileUnreadable, "the model is no regular file", path.string(), "a file"});
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (!error && size > kMaxFile) return too_large(path.string(), size);
  WARPLOOM_TRY(std::string content, read_file(path));
  Source source{path.string(), {path.has_parent_path() ? path.parent_path() : "."}};
  if (std::filesystem::is_symlink(path, error))
    if (const auto real = std::filesystem::canonical(path, error); !error)
      source.folders.push_back(real.parent_path());
  return ModelFile{std::move(content), std::move(source)};
}

// Tensors in files of their own become tensors of the message, those of functions and branches
// too.
Status embed(TensorProto& tensor, const Source& source) {
  if (tensor.data_location() != TensorProto::EXTERNAL) return ok();
  WARPLOOM_TRY(const Tensor read, to_tensor(tensor, source));
  tensor.set_raw_data(read.constant->data(), read.constant->size());
  tensor.clear_external_data();
  tensor.clear_data_location();
  return ok();
}

Status embed(GraphProto& graph, const Source& source);

Status embed(NodeProto& node, const Source& source) {
  for (auto& attribute : *node.mutable_attribute())
    if (attribute.has_t()) WARPLOOM_CHECK(embed(*attribute.mutable_t(), source));
  Status status = ok();
  onnx_import::for_subgraphs(node, [&](GraphProto& graph) {
    if (status) status = embed(graph, source);
  });
  return status;
}

Status embed(GraphProto& graph, const Source& source) {
  for (auto& initializer : *graph.mutable_initializer())
    WARPLOOM_CHECK(embed(initializer, source));
  for (auto& node : *graph.mutable_node())
    WARPLOOM_CHECK(embed(node, source));
  return ok();
}
}  // namespace

Result<Graph> parse_onnx(std::string_view content, const std::string& place,
                         const ModelOptions& options) {
  return graph_of(content, {place}, options);
}

Result<Graph> load_onnx(const std::filesystem::path& path, const ModelOptions& options) {
  WARPLOOM_TRY(const ModelFile file, read_model(path));
  return graph_of(file.content, file.source, options);
}

Result<OpenModel> open_onnx(const std::filesystem::path& path, const ModelOptions& options) {
  WARPLOOM_TRY(const ModelFile file, read_model(path));
  WARPLOOM_TRY(const ModelProto model, message_of(file.content, file.source, options));
  // Some operators want single numbers to be constants.
  Result<OpenModel> opened;
  for (const int64_t least_elements : {1, 2}) {
    ModelProto open = model;
    WARPLOOM_TRY(auto weights, onnx_import::take_weights(open, file.source, least_elements));
    auto inferred = to_graph(open, file.source, false);
    Result<Graph> graph = inferred ? graph::written_out(*std::move(inferred)) : inferred;
    if (graph) return OpenModel{*std::move(graph), std::move(weights)};
    opened = tl::unexpected(graph.error());
  }
  return opened;
}

Result<std::string> onnx_outline(const std::filesystem::path& path,
                                 const std::set<std::string>& carried) {
  WARPLOOM_TRY(const ModelFile file, read_model(path));
  WARPLOOM_TRY(ModelProto model, parse_model(file.content, file.source));
  onnx_import::separate_merged(model);
  WARPLOOM_CHECK(onnx_import::drop_bytes(model, file.source, carried));
  return model.SerializeAsString();
}

Result<std::string> onnx_text(const std::filesystem::path& path, const ModelOptions& options) {
  WARPLOOM_TRY(const ModelFile file, read_model(path));
  WARPLOOM_TRY(ModelProto model, message_of(file.content, file.source, options));
  model.DiscardUnknownFields();  // of a newer ONNX: they would print as numbers, which no reader of
                                 // texts takes
  WARPLOOM_CHECK(embed(*model.mutable_graph(), file.source));
  for (auto& function : *model.mutable_functions())
    for (auto& node : *function.mutable_node())
      WARPLOOM_CHECK(embed(node, file.source));
  std::string text;
  google::protobuf::TextFormat::PrintToString(model, &text);
  return text;
}
}  // namespace warploom
