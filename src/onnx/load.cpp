#include "onnx/load.h"
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/text_format.h>
#include <new>
#include "base/file.h"
#include "onnx/model.h"
namespace warploom {
namespace onnx_import {
namespace {
constexpr std::uintmax_t kMaxFile = (std::uintmax_t{1} << 31) - 1;
constexpr int kMaxNesting = 100;

// A text has no control characters; a binary model has one within its first few bytes (the tag of ir_version is 8).
bool looks_like_text(std::string_view content) {
  return std::all_of(content.begin(), content.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(content.size(), 1024)),
                     [](char c) { return static_cast<unsigned char>(c) >= 32 || c == '\n' || c == '\r' || c == '\t'; });
}

struct FirstError : google::protobuf::io::ErrorCollector {
  int line = -1, column = -1;
  std::string text;
  void AddError(int at_line, int at_column, const std::string& message) override {
    if (line >= 0) return;
    line = at_line;
    column = at_column;
    text = fmt::format("line {}, column {}: {}", line + 1, column + 1, message);
  }
};

tl::unexpected<Error> too_large(std::string place, std::uintmax_t bytes) {
  return fail({ErrorCode::kOnnxTooLarge, "the model file is too large", std::move(place), "at most 2 GiB",
               fmt::format("{} bytes", bytes), "store the weights as external data"});
}

Result<onnx::ModelProto> parse_text(std::string_view content, const Source& source) {
  onnx::ModelProto model;
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.SetRecursionLimit(kMaxNesting);
  if (parser.ParseFromString(std::string(content), &model)) return model;
  // Broken off: the first complaint comes at the very end of a text that starts as a model does.
  const std::string_view body = content.substr(0, content.find_last_not_of(" \t\r\n") + 1);
  const auto last_line = std::count(body.begin(), body.end(), '\n');
  const auto last_length = static_cast<std::int64_t>(body.size() - (body.rfind('\n') + 1));  // npos + 1 is 0
  const bool is_model = body.find("ir_version") != std::string_view::npos && body.find("graph") != std::string_view::npos;
  const bool at_end = error.line > last_line || (error.line == last_line && error.column + 1 >= last_length);
  if (is_model && at_end)
    return fail({ErrorCode::kOnnxTruncated, "the text of the model breaks off", source.place, "closing braces", error.text});
  return fail({ErrorCode::kOnnxNotOnnx, "the file is a text, and not that of an ONNX model", source.place,
               "a ModelProto in protobuf text form", error.text, "export the model to ONNX"});
}

google::protobuf::io::CodedInputStream stream_of(std::string_view content) {
  return google::protobuf::io::CodedInputStream(reinterpret_cast<const std::uint8_t*>(content.data()),
                                                static_cast<int>(content.size()));
}

// Reads the outermost fields of a message. True if they are a model's up to one that ends beyond the content.
bool is_cut_model(std::string_view content) {
  auto stream = stream_of(content);
  for (int fields = 0; stream.CurrentPosition() < static_cast<int>(content.size()); ++fields) {
    const std::uint32_t tag = stream.ReadTag(), field = tag >> 3, type = tag & 7;
    if (tag == 0) return fields > 0 && stream.CurrentPosition() == static_cast<int>(content.size());
    const bool number = field == 1 || field == 5;  // ir_version, model_version
    const bool known = number || (field >= 2 && field <= 8) || field == 14 || field == 20 || field == 25 || field == 26;
    if (!known || type != (number ? 0u : 2u)) return false;
    std::uint64_t value = 0;
    if (!stream.ReadVarint64(&value)) return fields > 0 && stream.CurrentPosition() == static_cast<int>(content.size());
    if (!number && (value > content.size() || !stream.Skip(static_cast<int>(value)))) return fields > 0;
  }
  return false;
}

Result<onnx::ModelProto> parse_binary(std::string_view content, const Source& source) {
  onnx::ModelProto model;
  auto stream = stream_of(content);
  stream.SetRecursionLimit(kMaxNesting);
  const bool parsed = model.ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
  if (parsed && model.has_graph()) return model;
  if (is_cut_model(content))
    return fail({ErrorCode::kOnnxTruncated, "the model ends before its own lengths say", source.place, "the rest of the file",
                 fmt::format("{} bytes", content.size()), "copy or export the file again"});
  return fail({ErrorCode::kOnnxNotOnnx, "the file is no ONNX model", source.place,
               "a ModelProto with a graph, in protobuf's binary or text form",
               parsed ? "a message without a graph" : "something else", "export the model to ONNX"});
}
}  // namespace
Result<onnx::ModelProto> parse_model(std::string_view content, const Source& source) {
  [[maybe_unused]] static const auto silenced = google::protobuf::SetLogHandler(nullptr);
  if (content.empty()) return fail({ErrorCode::kOnnxEmpty, "the model file is empty", source.place});
  if (content.size() > kMaxFile) return too_large(source.place, content.size());
  return looks_like_text(content) ? parse_text(content, source) : parse_binary(content, source);
}
}  // namespace onnx_import
Result<graph::Graph> parse_onnx(std::string_view content, std::string_view place, const std::filesystem::path& folder) {
  const onnx_import::Source source{std::string(place), folder};
  try {
    WARPLOOM_TRY(const onnx::ModelProto model, onnx_import::parse_model(content, source));
    return onnx_import::to_graph(model, source);
  } catch (const std::bad_alloc&) { return fail({ErrorCode::kOutOfMemory, "the model does not fit in memory", source.place}); }
}
namespace {
struct ModelFile {
  std::string content;
  onnx_import::Source source;
};
Result<ModelFile> read_model(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) return fail({ErrorCode::kFileMissing, "the model file does not exist", path.string()});
  if (!std::filesystem::is_regular_file(status))
    return fail({ErrorCode::kFileUnreadable, "the model is no regular file", path.string(), "a file"});
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (!error && size > onnx_import::kMaxFile) return onnx_import::too_large(path.string(), size);
  WARPLOOM_TRY(std::string content, read_file(path));
  return ModelFile{std::move(content), {path.string(), path.has_parent_path() ? path.parent_path() : "."}};
}
}  // namespace
Result<graph::Graph> load_onnx(const std::filesystem::path& path) {
  WARPLOOM_TRY(const ModelFile file, read_model(path));
  return parse_onnx(file.content, file.source.place, file.source.folder);
}

Result<std::string> onnx_text(const std::filesystem::path& path) {
  WARPLOOM_TRY(const ModelFile file, read_model(path));
  WARPLOOM_TRY(onnx::ModelProto model, onnx_import::parse_model(file.content, file.source));
  model.DiscardUnknownFields();  // of a newer ONNX: they would print as numbers, which no reader of texts takes
  const auto embed = [&](onnx::TensorProto& tensor) -> Status {
    if (tensor.data_location() != onnx::TensorProto::EXTERNAL) return ok();
    WARPLOOM_TRY(const graph::Tensor read, onnx_import::to_tensor(tensor, file.source));
    tensor.set_raw_data(read.constant->data(), read.constant->size());
    tensor.clear_external_data();
    tensor.clear_data_location();
    return ok();
  };
  for (auto& initializer : *model.mutable_graph()->mutable_initializer()) WARPLOOM_CHECK(embed(initializer));
  for (auto& node : *model.mutable_graph()->mutable_node())
    for (auto& attribute : *node.mutable_attribute())
      if (attribute.has_t()) WARPLOOM_CHECK(embed(*attribute.mutable_t()));
  std::string text;
  google::protobuf::TextFormat::PrintToString(model, &text);
  return text;
}
}  // namespace warploom
