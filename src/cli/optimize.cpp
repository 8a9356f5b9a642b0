#include <unistd.h>
#include "base/file.h"
#include "base/quoted.h"
#include "cli/command.h"
#include "export/bundle.h"
#include "graph/weights.h"
#include "onnx/load.h"
#include "search/headline.h"
#include "verify/tolerance.h"

namespace warploom::cli {
namespace {
namespace fs = std::filesystem;

struct Flags {
  std::string file;
  std::string out;
  std::string track;
  std::string strategy = "automatic";
  search::Options search;  // what of it is not worked out of the others
  ModelOptions model;
  std::vector<std::string> constants;
  std::optional<int> candidates;
  bool no_resume = false;
};

const std::vector<std::string> kStrategies(std::begin(search::kStrategyNames),
                                           std::end(search::kStrategyNames));
// A model of more text, or more bytes of constants, is not copied into plan.json.
constexpr int64_t kMostModelText = 8 << 20;

// The search that the flags ask for.
Result<search::Options> options_of(const Flags& flags, const graph::Graph& graph) {
  if (flags.candidates.value_or(1) < 1)
    return fail({ErrorCode::kFlagsContradict, "a search of no candidates finds nothing",
                 "--candidates", "at least one", std::to_string(*flags.candidates),
                 "leave it out for no limit but the budget"});
  if (flags.search.force_search && flags.no_resume)
    return fail({ErrorCode::kFlagsContradict, "a run cannot both go on and start anew",
                 "--resume, --no-resume", "one of them", "both", "give one of them"});
  search::Options options = flags.search;
  WARPLOOM_TRY(options.track, track_for(graph, flags.track));
  options.strategy = static_cast<search::Strategy>(std::ranges::find(kStrategies, flags.strategy) -
                                                   kStrategies.begin());
  options.max_candidates = flags.candidates.value_or(0);
  options.resume = !flags.no_resume;
  options.interrupted = &interrupted();
  options.constants = {flags.constants.begin(), flags.constants.end()};
  return options;
}

std::string summary_of(const graph::Graph& graph, const search::Outcome& outcome) {
  const auto name = [](const graph::Node& node) { return graph::name_of(node.op); };
  const auto tensor = [&](graph::TensorId id) { return graph::to_text(graph.tensor(id)); };
  return fmt::format("{} of {}, for {} ({}), precision track {}.", listed(graph.nodes, name, " + "),
                     listed(graph.inputs, tensor), outcome.target, outcome.device,
                     name_of(outcome.track));
}

// What `make check` allows: the track's bound, or twice what was seen where that is more (its
// inputs are others).
double check_tolerance(const graph::Graph& graph, const search::Outcome& outcome) {
  double bound = 2 * std::max(outcome.verdict.error, outcome.verdict.reference_error);
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const double frobenius =
        verify::tolerance_of(graph, outcome.track, static_cast<int>(i)).frobenius;
    if (std::isfinite(frobenius)) bound = std::max(bound, frobenius);
  }
  return bound > 0 ? bound : 1e-4;
}

// The closing table. What of it people read is worked out from what programs read.
std::string table_of(const nlohmann::json& outcome) {
  return text_of("outcome", search::with_words(outcome));
}

// The model's text, "" for a large one.
Result<std::string> model_text(const Flags& flags, const graph::Graph& graph) {
  int64_t bytes = 0;
  for (const auto& tensor : graph.tensors) bytes += tensor.constant ? graph::byte_count(tensor) : 0;
  if (bytes > kMostModelText) return "";
  WARPLOOM_TRY(std::string text, onnx_text(flags.file, flags.model));
  return static_cast<int64_t>(text.size()) <= kMostModelText ? std::move(text) : "";
}

// What adopt() of the bundle's PyTorch module needs, to take other weights. A model of which that
// cannot be said is still right with its own.
void add_weights(export_::BundleInfo& info, const Flags& flags, const graph::Graph& primitive,
                 const LaunchList& list) {
  const Result<OpenModel> open = open_onnx(flags.file, flags.model);
  if (!open) return;
  std::vector<graph::Tensor> held;
  for (const BufferSpec& input : list.inputs) {
    const auto id = primitive.tensor_named(input.name);
    if (id && primitive.tensor(*id).constant) held.push_back(primitive.tensor(*id));
  }
  const graph::Making making = graph::making_of(open->graph, open->weights, held);
  Result<std::string> outline = onnx_outline(flags.file, making.carried);
  if (!outline) return;
  info.weights = graph::to_json(making, open->weights);
  info.outline = *std::move(outline);
}

Result<export_::Delivered> write_outcome(const fs::path& folder, const Flags& flags,
                                         const std::string& model, const graph::Graph& graph,
                                         const search::Outcome& outcome) {
  export_::BundleInfo info{.name = fs::path(flags.file).stem().string(),
                           .summary = summary_of(graph, outcome),
                           .plan = search::to_json(outcome),
                           .tolerance = check_tolerance(graph, outcome),
                           .seed = outcome.seed};
  info.headline = search::headline(info.plan);
  info.plan["headline"] = info.headline;
  info.plan["warploom"] = kVersion;
  if (outcome.regions.size() == 1) info.plan["schedule"] = kernels::to_json(outcome.schedule);
  if (!model.empty()) info.plan["model"] = model;
  // Of a model named when the plan is verified.
  if (!flags.model.assume.empty()) info.plan["assume"] = flags.model.assume;
  if (!flags.model.dims.empty()) info.plan["dim"] = flags.model.dims;
  if (!flags.constants.empty()) info.plan["constant"] = flags.constants;
  WARPLOOM_TRY(const graph::Graph primitive,
               graph::decompose(graph));  // whose constants kernels may read
  add_weights(info, flags, primitive, outcome.list);
  return export_::write_bundle(folder, info, outcome.list, primitive);
}

Result<Answer> optimize(const Flags& flags, const Session& session) {
  if (session.on_progress)
    session.on_progress(
        {.budget_seconds = flags.search.budget_seconds, .phase = "reading the model"});
  WARPLOOM_TRY(const graph::Graph graph, load_onnx(flags.file, flags.model));
  WARPLOOM_TRY(search::Options options, options_of(flags, graph));
  WARPLOOM_TRY(const std::string model, model_text(flags, graph));
  const std::string name = fs::path(flags.file).stem().string();  // the bundle's
  const fs::path folder = flags.out.empty() ? fs::path("out") / name : fs::path(flags.out);
  WARPLOOM_CHECK(export_::may_deliver(folder));  // rather than after the search
  options.on_progress = session.on_progress;
  catch_interrupts();
  Result<search::Outcome> found = search::optimize(graph, options);
  options.on_progress = {};
  if (!found) return tl::unexpected(found.error());
  const search::Outcome& outcome = *found;

  if (session.on_progress)
    session.on_progress({.budget_seconds = flags.search.budget_seconds,
                         .phase = "building the bundle and running its check"});
  const auto written = write_outcome(folder, flags, model, graph, outcome);
  nlohmann::json json = search::to_json(outcome);
  if (!written) {  // what was found is not lost with the folder it should have gone to
    const std::string text = table_of(json) + "\n" + describe(written.error()) + "\n";
    json["bundle"] = nullptr;
    return Answer{{{"error", to_json(written.error())}, {"outcome", json}},
                  text,
                  exit_status(written.error().code)};
  }
  json["bundle"] = folder.string();
  json["notes"] = written->notes;
  if (const CacheFolder cache = find_cache_folder(); !cache.passed_over.empty())
    json["notes"].push_back(fmt::format("compiled kernels and the archive {} {}; {}",
                                        cache.kept ? "are kept in" : "are not kept, but lay in",
                                        cache.path.string(), fmt::join(cache.passed_over, "; ")));
  json["headline"] = search::headline(json);
  return Answer{json, table_of(json),
                outcome.interrupted ? exit_status(ErrorCode::kInterrupted) : 0};
}
}  // namespace

Command optimize_command() {
  const auto flags = std::make_shared<Flags>();
  return {
      "optimize",
      "search for the fastest kernel that is proven right, and write its bundle",
      "warploom optimize examples/conv_relu_maxpool.textproto --budget 60s",
      {{"FILE", &flags->file, "an ONNX model, binary or .textproto"},
       {"--out", &flags->out, "the bundle's folder; default out/NAME"},
       {"--dim", &flags->model.dims, kDimHelp},
       {"--assume", &flags->model.assume, kAssumeHelp},
       {"--constant", &flags->constants, kConstantHelp},
       {"--budget", &flags->search.budget_seconds,
        "time to search: 500ms, 60s, 2m; as long again, at least 10s, where nothing is right yet"},
       {"--candidates", &flags->candidates, "at most so many candidates of a region"},
       {"--target", &flags->search.target, kTargetHelp},
       {"--track", &flags->track, kTrackHelp},
       {"--strategy", &flags->strategy, "how to search", kStrategies},
       {"--seed", &flags->search.seed, "of every random choice"},
       {"--jobs", &flags->search.jobs, "compilations at once; default: one a core", {}, 1, 1024},
       {"--archive", &flags->search.archive, "the archive file; default: in the cache folder"},
       {"--no-resume", &flags->no_resume, "do not use what the archive knows of the problem"},
       {"--resume", &flags->search.force_search,
        "search on, even where a search of this budget is done there and would be the answer"}},
      [flags](const Session& session) { return optimize(*flags, session); }};
}
}  // namespace warploom::cli
