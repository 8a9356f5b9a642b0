#include "codegen/launch_check.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "codegen/launch_list.h"
#include "layout/memory_layout.h"

namespace warploom {
namespace {
using nlohmann::json;

// What a field may be at least and at most. Those of a GPU are CUDA's ("Technical Specifications
// per Compute Capability", cuTensorMapEncodeTiled), the others far beyond any machine's.
struct Range {
  int64_t least;
  int64_t most;
};

constexpr Range kSize{0, int64_t{1} << 40};  // of a dimension
constexpr Range kGridX{1, 0x7fffffff};
constexpr Range kGridYZ{1, 65535};
constexpr Range kCpuGrid{1, int64_t{1} << 40};
constexpr Range kCluster{1, 16};
constexpr Range kThreads{1, 1024};
constexpr Range kSharedBytes{0, int64_t{1} << 30};
constexpr Range kScratchBytes{0, int64_t{1} << 36};
constexpr Range kMapSize{1, int64_t{1} << 32};
constexpr Range kMapStride{16, (int64_t{1} << 40) - 1};
constexpr Range kMapBox{1, 256};
constexpr int64_t kMostBytes = int64_t{1} << 46;  // of all buffers together
constexpr size_t kMostRank = 64;
constexpr size_t kMostMapRank = 5;
constexpr size_t kMostName = 4096;
constexpr size_t kMostBuffers = 50'000;  // of each kind, and kernels; networks have a few thousand
constexpr size_t kMostArguments = 1024;  // CUDA takes 4 KB of them

constexpr const char* kMakeAgain = "make it again with `warploom optimize`";

tl::unexpected<Error> unfit(std::string place, std::string expected, std::string found) {
  return fail({ErrorCode::kPlanInvalid, "a launch list cannot be launched", std::move(place),
               std::move(expected), std::move(found), kMakeAgain});
}

Status within(const std::string& place, int64_t value, Range range) {
  if (value >= range.least && value <= range.most) return ok();
  const std::string expected = fmt::format("{} to {}", range.least, range.most);
  return unfit(place, expected, std::to_string(value));
}

// The product where it is at most `most`; numbers are not below 0.
std::optional<int64_t> product(const auto& numbers, int64_t most) {
  int64_t out = 1;
  for (const int64_t number : numbers)
    if (number == 0) return 0;
  for (const int64_t number : numbers) {
    if (number > most / out) return std::nullopt;
    out *= number;
  }
  return out;
}

bool is_symbol(const std::string& name) {
  const auto fits = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  if (name.empty() || name.size() > 1024) return false;
  const bool begins_with_digit = std::isdigit(static_cast<unsigned char>(name[0])) != 0;
  return !begins_with_digit && std::ranges::all_of(name, fits);
}

class Check {
 public:
  explicit Check(const LaunchList& list) : list_(list), gpu_(list.engine == Engine::cuda) {}

  Status whole() {
    WARPLOOM_CHECK(architecture());
    WARPLOOM_CHECK(counts());
    WARPLOOM_CHECK(buffers("inputs", list_.inputs));
    WARPLOOM_CHECK(buffers("outputs", list_.outputs));
    WARPLOOM_CHECK(buffers("workspaces", list_.workspaces));
    if (list_.kernels.empty()) return unfit("kernels", "at least one", "none");
    if (list_.outputs.empty()) return unfit("outputs", "at least one", "none");
    for (size_t i = 0; i < list_.kernels.size(); ++i)
      WARPLOOM_CHECK(kernel(fmt::format("kernels[{}]", i), list_.kernels[i]));
    return prepare();
  }

 private:
  Status counts() const {
    const std::pair<const char*, size_t> kinds[] = {
        {"inputs", list_.inputs.size()},         {"outputs", list_.outputs.size()},
        {"workspaces", list_.workspaces.size()}, {"kernels", list_.kernels.size()},
        {"constants", list_.constants.size()},   {"prepare", list_.prepare.size()}};
    for (const auto& [kind, count] : kinds)
      if (count > kMostBuffers) return too_many(kind, kMostBuffers, count);
    for (const Kernel& kernel : list_.kernels)
      if (kernel.args.size() > kMostArguments)
        return too_many("kernels.args", kMostArguments, kernel.args.size());
    return ok();
  }

  static tl::unexpected<Error> too_many(const char* place, size_t most, size_t found) {
    return fail({ErrorCode::kPlanTooLarge, "a launch list has more of a kind than any model", place,
                 fmt::format("at most {}", most), std::to_string(found),
                 "make it again with `warploom optimize`"});
  }

  // What runs once reads constants, and what it made of them; it writes no output.
  Status prepare() const {
    std::set<std::string> inputs;
    std::set<std::string> workspaces;
    for (const BufferSpec& input : list_.inputs)
      inputs.insert(input.name);
    for (const BufferSpec& workspace : list_.workspaces)
      workspaces.insert(workspace.name);
    const std::set<std::string> constants(list_.constants.begin(), list_.constants.end());
    for (const std::string& name : list_.constants)
      if (!inputs.contains(name)) return unfit("constants", "names of inputs", name);
    for (size_t i = 0; i < list_.prepare.size(); ++i) {
      const std::string place = fmt::format("prepare[{}]", i);
      const size_t number = list_.prepare[i];
      if (number >= list_.kernels.size() || (i > 0 && number <= list_.prepare[i - 1]))
        return unfit(place, "numbers of kernels, ascending", std::to_string(number));
      for (const Argument& arg : list_.kernels[number].args) {
        if (!constants.contains(arg.buffer) && !workspaces.contains(arg.buffer))
          return unfit(place, "a kernel of constants and workspaces alone", arg.buffer);
      }
    }
    return ok();
  }

  Status architecture() const {
    const auto fits = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
    };
    const bool named = list_.arch.starts_with(gpu_ ? "sm_" : "");
    if (named && list_.arch.size() <= 64 && std::ranges::all_of(list_.arch, fits)) return ok();
    return unfit("arch", "the name of an architecture", list_.arch);
  }

  Status buffers(const char* kind, const std::vector<BufferSpec>& specs) {
    for (size_t i = 0; i < specs.size(); ++i)
      WARPLOOM_CHECK(buffer(fmt::format("{}[{}]", kind, i), specs[i]));
    return ok();
  }

  Status buffer(const std::string& place, const BufferSpec& spec) {
    const size_t length = spec.name.size();
    if (length == 0 || length > kMostName) {
      const std::string expected = fmt::format("1 to {} bytes", kMostName);
      return unfit(place + ".name", expected, fmt::format("{} bytes", length));
    }
    const size_t rank = spec.shape.size();
    if (rank > kMostRank) {
      const std::string expected = fmt::format("at most {} dimensions", kMostRank);
      return unfit(place + ".shape", expected, std::to_string(rank));
    }
    for (const int64_t size : spec.shape)
      WARPLOOM_CHECK(within(place + ".shape", size, kSize));
    const auto elements = product(spec.shape, kMostBytes);
    const int64_t bytes = elements ? bytes_of(spec.dtype, *elements) : kMostBytes;
    total_bytes_ += bytes;
    if (bytes >= kMostBytes || total_bytes_ > kMostBytes)
      return fail({ErrorCode::kPlanTooLarge, "a launch list needs more memory than any machine has",
                   place + ".shape", fmt::format("at most {} bytes of all buffers", kMostBytes),
                   fmt::format("[{}]", fmt::join(spec.shape, ", ")), kMakeAgain});
    if (!buffers_.emplace(spec.name, bytes).second)
      return unfit(place + ".name", "a name that no other buffer has", spec.name);
    return ok();
  }

  Status kernel(const std::string& place, const Kernel& kernel) const {
    if (!is_symbol(kernel.name)) return unfit(place + ".name", "a C identifier", kernel.name);
    std::array<Range, 3> grid = {kCpuGrid, kCpuGrid, kCpuGrid};
    if (gpu_) grid = {kGridX, kGridYZ, kGridYZ};
    for (size_t i = 0; i < 3; ++i)
      WARPLOOM_CHECK(within(place + ".grid", kernel.grid[i], grid[i]));
    if (!gpu_ && !product(kernel.grid, kCpuGrid.most)) {
      const std::string expected = fmt::format("at most {} blocks", kCpuGrid.most);
      return unfit(place + ".grid", expected, fmt::format("{}", fmt::join(kernel.grid, " x ")));
    }
    for (const int64_t size : kernel.cluster)
      WARPLOOM_CHECK(within(place + ".cluster", size, gpu_ ? kCluster : Range{1, 1}));
    const int64_t blocks = kernel.cluster[0] * kernel.cluster[1] * kernel.cluster[2];
    WARPLOOM_CHECK(within(place + ".cluster", blocks, kCluster));
    WARPLOOM_CHECK(within(place + ".threads", kernel.threads, kThreads));
    const Range memory = gpu_ ? kSharedBytes : kScratchBytes;
    WARPLOOM_CHECK(within(place + ".shared_bytes", kernel.shared_bytes, memory));
    for (size_t i = 0; i < kernel.args.size(); ++i)
      WARPLOOM_CHECK(argument(fmt::format("{}.args[{}]", place, i), kernel.args[i]));
    return ok();
  }

  Status argument(const std::string& place, const Argument& arg) const {
    const auto buffer = buffers_.find(arg.buffer);
    if (buffer == buffers_.end())
      return unfit(place + ".buffer", "the name of an input, output or workspace", arg.buffer);
    const bool is_part = arg.offset != 0 || arg.bytes != 0;
    const Range within_buffer = {0, is_part && arg.prepacked.empty() ? buffer->second : 0};
    WARPLOOM_CHECK(within(place + ".offset", arg.offset, within_buffer));
    const int64_t bytes = arg.bytes != 0 ? arg.bytes : buffer->second - arg.offset;
    WARPLOOM_CHECK(within(place + ".bytes", bytes, {0, buffer->second - arg.offset}));
    WARPLOOM_CHECK(packed(place + ".packed", arg, bytes));
    if (!arg.tensor_map) return ok();
    if (!gpu_) return unfit(place + ".tensor_map", "none on a CPU", "one");
    return tensor_map(place + ".tensor_map", arg.map, bytes);
  }

  // Where its digits lead stays within the buffer.
  static Status packed(const std::string& place, const Argument& arg, int64_t bytes) {
    int64_t furthest = 0;
    for (const auto& digits : arg.prepacked)
      for (const layout::MemoryMode& digit : digits) {
        WARPLOOM_CHECK(within(place, digit.extent, {1, kMostBytes}));
        WARPLOOM_CHECK(within(place, digit.stride, {0, kMostBytes}));
        const auto reach = product(std::array{digit.extent - 1, digit.stride}, 8 * kMostBytes);
        furthest = reach && furthest <= 8 * bytes ? furthest + *reach : 8 * kMostBytes;
      }
    if (arg.prepacked.empty()) return ok();
    return within(place, furthest, {0, 8 * bytes - 1});
  }

  static Status tensor_map(const std::string& place, const TensorMapSpec& map, int64_t bytes) {
    const size_t rank = map.dims.size();
    const size_t boxes = map.box.size();
    const size_t strides = map.strides_bytes.size();
    if (rank < 1 || rank > kMostMapRank || strides + 1 != rank || boxes != rank)
      return unfit(place, "1 to 5 dims, as many in box, one less in strides_bytes",
                   fmt::format("{}, {} and {}", rank, boxes, strides));
    WARPLOOM_CHECK(within(place + ".dims", map.dims[0], kMapSize));
    int64_t last = bytes_of(map.dtype, map.dims[0]);  // one past the last byte
    for (size_t i = 0; i < rank; ++i) {
      WARPLOOM_CHECK(within(place + ".dims", map.dims[i], kMapSize));
      WARPLOOM_CHECK(within(place + ".box", map.box[i], kMapBox));
      if (i == 0) continue;
      const int64_t stride = map.strides_bytes[i - 1];
      WARPLOOM_CHECK(within(place + ".strides_bytes", stride, kMapStride));
      const auto reach = product(std::array{map.dims[i] - 1, stride}, kMostBytes);
      if (!reach) return unfit(place, fmt::format("{} bytes of the buffer", bytes), "more");
      last += *reach;
    }
    WARPLOOM_CHECK(within(place, last, {0, bytes}));
    constexpr std::array kSwizzles = {0, 32, 64, 128};
    if (std::ranges::find(kSwizzles, map.swizzle_bytes) == kSwizzles.end())
      return unfit(place + ".swizzle_bytes", "0, 32, 64 or 128", std::to_string(map.swizzle_bytes));
    return ok();
  }

  const LaunchList& list_;
  bool gpu_;
  std::map<std::string, int64_t> buffers_;  // bytes
  int64_t total_bytes_ = 0;
};

Status check_number(const json& number, const std::string& place) {
  constexpr int64_t kMost = int64_t{1} << 62;
  const bool narrow = place.ends_with(".threads") || place.ends_with(".swizzle_bytes");
  const int64_t most = narrow ? std::numeric_limits<int>::max() : kMost;
  bool fits = false;
  if (number.is_number_unsigned())
    fits = number.get<uint64_t>() <= as_uint64(most);
  else if (number.is_number_integer())
    fits = number.get<int64_t>() >= -most;
  if (fits) return ok();
  return unfit(place, fmt::format("a whole number of at most {}", most), number.dump());
}

Status check_numbers_in(const json& value, const std::string& place) {
  if (value.is_number()) return check_number(value, place);
  if (value.is_object())
    for (const auto& [key, inside] : value.items())
      WARPLOOM_CHECK(check_numbers_in(inside, place + "." + key));
  if (value.is_array())
    for (size_t i = 0; i < value.size(); ++i)
      WARPLOOM_CHECK(check_numbers_in(value[i], fmt::format("{}[{}]", place, i)));
  return ok();
}
}  // namespace

Status check_numbers(const json& list) {
  return check_numbers_in(list, "launch_list");
}

Status check_launches(const LaunchList& list) {
  return Check(list).whole();
}
}  // namespace warploom
