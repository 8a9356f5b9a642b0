#include "cli/tensor_file.h"
#include <cstring>
#include <regex>
#include "base/file.h"
namespace warploom::cli {
namespace {
constexpr std::string_view kMagic = "\x93NUMPY";

// NumPy's name of a type; "" where it has none.
std::string descr_of(Dtype dtype) {
  if (is_float(dtype) && dtype != Dtype::f64 && dtype != Dtype::f32 && dtype != Dtype::f16) return "";
  if (bits_of(dtype) < 8) return "";
  const char kind = dtype == Dtype::boolean ? 'b' : is_float(dtype) ? 'f' : is_signed(dtype) ? 'i' : 'u';
  return fmt::format("{}{}{}", bytes_of(dtype) == 1 ? '|' : '<', kind, bytes_of(dtype));
}

// "(2, 3)" as Python writes it, "(7,)" and "()".
std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

// What a header says, in the words of write_tensor(), so that they compare: its keys stand in any order and spacing.
std::string canonical(std::string header) {
  // Python's text is JSON but for its quotes, truth, round brackets and commas behind the last.
  const std::pair<const char*, const char*> spellings[] = {{"'", "\""},      {"\\(", "["},       {",?\\s*\\)", "]"},
                                                           {"True", "true"}, {"False", "false"}, {",\\s*\\}", "}"}};
  for (const auto& [python, json] : spellings) header = std::regex_replace(header, std::regex(python), json);
  const auto said = nlohmann::json::parse(header, nullptr, false);
  try {
    if (said.at("fortran_order").get<bool>()) return "columns first (Fortran order)";
    return said.at("descr").get<std::string>() + " " + shape_text(said.at("shape"));
  } catch (const nlohmann::json::exception&) { return "no header of NumPy's"; }
}
}  // namespace
Result<std::string> read_tensor(const std::filesystem::path& path, const BufferSpec& tensor) {
  WARPLOOM_TRY(std::string bytes, read_file(path));
  const auto unfit = [&](const std::string& expected, const std::string& found) {
    return fail({ErrorCode::kPlanInvalid, "a tensor's file does not fit", path.string(),
                 fmt::format("{}: {}", tensor.name, expected), found, "write the file as the model's input is"});
  };
  if (path.extension() == ".npy") {
    const std::string expected = descr_of(tensor.dtype) + " " + shape_text(tensor.shape);
    if (!bytes.starts_with(kMagic) || bytes.size() < 12) return unfit(expected, "no .npy file");
    std::uint32_t length = 0;
    const bool wide = bytes[6] > 1;
    std::memcpy(&length, bytes.data() + 8, wide ? 4 : 2);
    const std::size_t begin = wide ? 12 : 10;
    if (length > bytes.size() - begin) return unfit(expected, "a header that ends behind the file");
    if (const std::string found = canonical(bytes.substr(begin, length)); found != expected) return unfit(expected, found);
    bytes.erase(0, begin + length);
  }
  if (std::ssize(bytes) != tensor.bytes())
    return unfit(fmt::format("{} bytes", tensor.bytes()), fmt::format("{} bytes", bytes.size()));
  return bytes;
}

Result<std::filesystem::path> write_tensor(const std::filesystem::path& folder, const BufferSpec& tensor,
                                           std::string_view bytes) {
  const std::string descr = descr_of(tensor.dtype);
  std::string text;
  if (!descr.empty()) {
    std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr, shape_text(tensor.shape));
    header.append(63 - (header.size() + 10) % 64, ' ');
    header += '\n';  // the data begins at a multiple of 64
    const std::uint16_t length = static_cast<std::uint16_t>(header.size());
    text =
        fmt::format("{}{}{}{}", kMagic, std::string("\x01\0", 2), std::string(reinterpret_cast<const char*>(&length), 2), header);
  }
  std::string name = tensor.name;
  std::ranges::replace(name, '/', '_');
  const std::filesystem::path path = folder / (name + (descr.empty() ? ".bin" : ".npy"));
  WARPLOOM_CHECK(write_file(path, text.append(bytes)));
  return path;
}
}  // namespace warploom::cli
