#include <fmt/format.h>
#include <onnx/onnx.pb.h>
#include <algorithm>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/rows.h"
#include "graph/graph.h"
#include "onnx/model.h"

namespace warploom::onnx_import {
using graph::Tensor;
using onnx::TensorProto;

std::string place_of(const Source& source, std::string_view kind, std::string_view name) {
  return fmt::format("{}: {} '{}'", source.place, kind, name);
}

// Tensors with their bytes: raw, typed or in a file beside the model.
namespace {
static_assert(std::endian::native == std::endian::little, "raw_data is little-endian");
constexpr int kUint4 = 21;  // TensorProto.DataType, of which older headers have no names
constexpr int kInt4 = 22;
using Bytes = std::vector<std::byte>;
namespace fs = std::filesystem;

tl::unexpected<Error> external_error(const TensorProto& proto, const Source& source,
                                     std::string message, std::string found) {
  Error error{ErrorCode::kOnnxExternalData, std::move(message)};
  error.place = place_of(source, "tensor", proto.name());
  error.expected = "a regular file inside the model's folder, long enough";
  error.found = std::move(found);
  error.remedy = "keep the model's data files beside it, or beside the file that its link names";
  return fail(error);
}

constexpr std::string_view kLfsPointer = "version https://git-lfs.github.com/spec/";

bool lies_below(const fs::path& file, const fs::path& folder) {
  const fs::path below = file.lexically_relative(folder);
  return !below.empty() && *below.begin() != "..";
}

// The file that `location` names, if it is a regular one whose real path is below the folder in
// which the model was named, or below that of the file that its name is a link to. Names count in
// both, in this order:
//
//   snapshots/REV/model.onnx → ../../blobs/a1     snapshots/REV/w.bin → ../../blobs/b2
//
// reads blobs/b2, which lies beside the real model, under the name that the snapshot gives it.
Result<fs::path> inside_folder(const TensorProto& proto, const Source& source,
                               const std::string& location) {
  const fs::path relative(location);
  if (source.folders.empty())
    return external_error(proto, source, "external data of a model that is not in a file",
                          location);
  const bool has_zero_byte = location.find('\0') != std::string::npos;
  bool climbs = location.empty() || relative.is_absolute() || has_zero_byte;
  for (const fs::path& part : relative)
    climbs = climbs || part == "..";
  if (climbs)
    return external_error(proto, source, "external data outside the model's folder", location);
  std::error_code error;
  std::vector<fs::path> folders;
  for (const fs::path& folder : source.folders) {
    folders.push_back(fs::canonical(folder, error));
    if (error)
      return external_error(proto, source, "the model's folder cannot be resolved",
                            folder.string());
  }
  for (const fs::path& folder : folders) {
    const fs::path file = fs::canonical(folder / relative, error);
    if (error) continue;
    const auto holds_it = [&](const fs::path& one) { return lies_below(file, one); };
    if (std::ranges::none_of(folders, holds_it))
      return external_error(proto, source, "external data outside the model's folder",
                            file.string());
    if (!fs::is_regular_file(file, error))
      return external_error(proto, source, "external data is no regular file", location);
    return file;
  }
  return external_error(proto, source, "external data is missing", location);
}

// A file that git-lfs left where the data should be.
bool is_lfs_pointer(const fs::path& file) {
  std::string begin(kLfsPointer.size(), '\0');
  std::ifstream stream(file, std::ios::binary);
  return stream.read(begin.data(), std::ssize(begin)) && begin == kLfsPointer;
}

Result<Bytes> read_external(const TensorProto& proto, const Source& source, int64_t bytes) {
  std::string location;
  int64_t offset = 0;
  int64_t length = bytes;
  for (const auto& entry : proto.external_data()) {
    int64_t* number = nullptr;
    if (entry.key() == "offset") number = &offset;
    if (entry.key() == "length") number = &length;
    if (entry.key() == "location") location = entry.value();
    if (number == nullptr) continue;
    const std::string& digits = entry.value();
    const char* end = digits.data() + digits.size();
    const auto [stopped, error] = std::from_chars(digits.data(), end, *number);
    const bool is_number = error == std::errc{} && stopped == end;
    if (!is_number || *number < 0) {
      const std::string message = fmt::format("{} of external data is no size", entry.key());
      return external_error(proto, source, message, entry.value());
    }
  }
  WARPLOOM_TRY(const fs::path file, inside_folder(proto, source, location));
  if (is_lfs_pointer(file)) {
    Error error{ErrorCode::kOnnxExternalData, "external data is a git-lfs pointer, not the data"};
    error.place = place_of(source, "tensor", proto.name());
    error.expected = "the data itself";
    error.found = file.string();
    error.remedy = "fetch it with `git lfs pull` where the model was cloned";
    return fail(error);
  }
  std::error_code error;
  const auto size = as_int64(fs::file_size(file, error));
  if (error || length != bytes || offset > size || size - offset < bytes) {
    const std::string found =
        fmt::format("{} bytes at {} of {}, tensor of {} bytes", length, offset, size, bytes);
    const std::string message = "external data has another length than the tensor";
    return external_error(proto, source, message, found);
  }
  Bytes data(bytes);
  std::ifstream stream(file, std::ios::binary);
  stream.seekg(offset);
  stream.read(reinterpret_cast<char*>(data.data()), bytes);
  if (!stream) return external_error(proto, source, "external data cannot be read", file.string());
  return data;
}

// The bytes of a typed field, one element each, narrowed to the tensor's type.
template <class Narrow, class Field> Bytes narrowed(const Field& field) {
  const std::vector<Narrow> values(field.begin(), field.end());
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

Bytes typed_bytes(const TensorProto& proto, Dtype dtype) {
  switch (dtype) {
    case Dtype::f32: return narrowed<float>(proto.float_data());
    case Dtype::f64: return narrowed<double>(proto.double_data());
    case Dtype::i64: return narrowed<int64_t>(proto.int64_data());
    case Dtype::i32: return narrowed<int32_t>(proto.int32_data());
    default: break;
  }
  // Everything narrower lies in int32_data, floats as their bits.
  if (bits_of(dtype) == 16) return narrowed<uint16_t>(proto.int32_data());
  return narrowed<uint8_t>(proto.int32_data());
}

// The bytes of a tensor, as they are stored or as its typed field says them.
Result<Bytes> stored_bytes(const TensorProto& proto, Dtype dtype, int64_t bytes,
                           const Source& source) {
  if (proto.data_location() == TensorProto::EXTERNAL) return read_external(proto, source, bytes);
  if (!proto.has_raw_data()) return typed_bytes(proto, dtype);
  const auto* raw = reinterpret_cast<const std::byte*>(proto.raw_data().data());
  return Bytes(raw, raw + proto.raw_data().size());
}

// Numbers of 4 bits, two to a byte and the first in the low ones, as bytes.
Bytes widened(const Bytes& packed, int64_t count, bool has_sign) {
  Bytes wide(as_size(count));
  for (size_t i = 0; i < wide.size(); ++i) {
    const auto byte = std::to_integer<int>(packed[i / 2]);
    const int number = i % 2 == 0 ? byte % 16 : byte / 16;
    wide[i] = static_cast<std::byte>(has_sign && number > 7 ? number - 16 : number);
  }
  return wide;
}
}  // namespace

bool is_of_four_bits(const TensorProto& proto) {
  return proto.data_type() == kUint4 || proto.data_type() == kInt4;
}

Result<Tensor> to_tensor(const TensorProto& proto, const Source& source) {
  const std::string place = place_of(source, "tensor", proto.name());
  Dtype dtype = proto.data_type() == kInt4 ? Dtype::i8 : Dtype::u8;
  const bool halves = is_of_four_bits(proto);
  if (!halves) {
    WARPLOOM_TRY(dtype, graph::checked_dtype(proto.data_type(), "a tensor's element type", place));
  }
  if (proto.has_segment())
    return fail({ErrorCode::kOnnxType, "tensors in segments are not supported", place});
  const auto& dims = proto.dims();
  const graph::Shape shape(dims.begin(), dims.end());
  Tensor tensor{{proto.name(), dtype, shape}, std::nullopt};
  WARPLOOM_CHECK(graph::checked_element_count(tensor.shape, place));
  const int64_t count = graph::element_count(shape);
  const int64_t bytes = halves ? ceil_div(count, 2) : graph::byte_count(tensor);
  WARPLOOM_TRY(Bytes data, stored_bytes(proto, dtype, bytes, source));
  const auto given = as_int64(data.size());
  if (given != bytes) {
    Error error{given < bytes ? ErrorCode::kOnnxTooLarge : ErrorCode::kOnnxShape};
    error.message = "a tensor's shape and the bytes that are there do not agree";
    error.place = place;
    const std::string text = graph::to_text(tensor.shape);
    error.expected = fmt::format("{} bytes for {} {}", bytes, name_of(dtype), text);
    error.found = fmt::format("{} bytes", given);
    return fail(error);
  }
  if (halves) data = widened(data, count, dtype == Dtype::i8);
  if (dtype == Dtype::boolean)
    for (std::byte& value : data)
      value = value == std::byte{0} ? value : std::byte{1};
  tensor.constant = std::move(data);
  return tensor;
}

Result<TensorProto> constant_value(const onnx::AttributeProto& attribute,
                                   const std::string& place) {
  using Kind = onnx::AttributeProto;
  constexpr std::pair<std::string_view, Kind::AttributeType> kForms[] = {
      {"value", Kind::TENSOR},
      {"value_float", Kind::FLOAT},
      {"value_floats", Kind::FLOATS},
      {"value_int", Kind::INT},
      {"value_ints", Kind::INTS}};
  const std::pair form(std::string_view(attribute.name()), attribute.type());
  if (!contains(kForms, form)) {
    Error error{ErrorCode::kOnnxAttribute};
    error.message = "a Constant's value is of a kind that is not supported";
    error.place = place;
    error.expected = "value, value_float, value_floats, value_int or value_ints";
    error.found = attribute.name();
    return fail(error);
  }
  TensorProto value = attribute.t();
  if (attribute.type() == Kind::TENSOR) return value;
  const bool real = attribute.type() == Kind::FLOAT || attribute.type() == Kind::FLOATS;
  value.set_data_type(real ? TensorProto::FLOAT : TensorProto::INT64);
  *value.mutable_float_data() = attribute.floats();
  *value.mutable_int64_data() = attribute.ints();
  if (attribute.type() == Kind::FLOAT)
    value.add_float_data(attribute.f());
  else if (attribute.type() == Kind::INT)
    value.add_int64_data(attribute.i());
  else
    value.add_dims(real ? attribute.floats_size() : attribute.ints_size());
  return value;
}
}  // namespace warploom::onnx_import
