// What several commands read from their flags: durations, tracks, schedules.
#pragma once

#include <optional>
#include <string>
#include "base/error.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/family.h"
#include "target/capabilities.h"

namespace warploom::cli {

// "60s", "2m", "500ms", "1.5h"; a bare number is seconds. usage when it is none of these or not above zero.
Result<double> parse_seconds(const std::string& text, const std::string& place);

// The track that was named, or the model's own for "". unknown-track when it is none or cannot hold for the model's types.
Result<Track> track_for(const graph::Graph& graph, const std::string& name);

// "matmul_wgmma block_m=128 stages=4": the inverse of Schedule::text(). plan-invalid with the word that cannot be read.
Result<kernels::Schedule> parse_schedule(const std::string& text);

// The most promising legal schedule of any family, by the families' own guess.
Result<kernels::Schedule> default_schedule(const kernels::Region& region, const target::Capabilities& capabilities);

}  // namespace warploom::cli
