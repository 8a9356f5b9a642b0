#include "graph/track.h"

#include <array>
#include <cstddef>

namespace warploom {
namespace {
constexpr std::array<std::string_view, 6> kNames = {"fp32", "tf32", "bf16", "fp16", "fp8", "tolerance"};
}

std::string_view name_of(Track track) { return kNames[static_cast<std::size_t>(track)]; }
std::optional<Track> track_named(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<Track>(i);
  return std::nullopt;
}

}  // namespace warploom
