// Tracks: the precision contract under which candidates and references compete.
//
//   fp32       strict: relative Frobenius error against FP64 at most max(the vendor's strict fp32
//   on the same inputs, 4.8e-7) tf32       products of operands rounded to 10 mantissa bits, fp32
//   sums bf16, fp16 operands and results in that type, fp32 sums fp8        8-bit operands, scaled
//   tolerance  KernelBench's own rule: 1e-4 for fp32 models, 1e-2 for 16-bit ones, absolute and
//   relative
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include "base/rows.h"

namespace warploom {
enum class Track : uint8_t { fp32, tf32, bf16, fp16, fp8, tolerance };

inline constexpr std::array<std::string_view, 6> kTrackNames = {"fp32", "tf32", "bf16",
                                                                "fp16", "fp8",  "tolerance"};

inline std::string_view name_of(Track track) {
  return kTrackNames[static_cast<size_t>(track)];
}

inline std::optional<Track> track_named(std::string_view name) {
  return row_where<Track>(kTrackNames, name);
}
}  // namespace warploom
