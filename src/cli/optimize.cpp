#include "search/optimize.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdlib.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/file.h"
#include "base/rows.h"
#include "cli/command.h"
#include "cli/model_flags.h"
#include "codegen/launch_list.h"
#include "export/bundle.h"
#include "export/delivery.h"
#include "graph/graph.h"
#include "graph/rewrite.h"
#include "graph/track.h"
#include "graph/weights.h"
#include "kernels/config/kernel_config.h"
#include "onnx/load.h"
#include "plan/boundary_change.h"
#include "search/action/own_action.h"
#include "search/budget.h"
#include "search/headline.h"
#include "search/options.h"
#include "search/outcome.h"
#include "search/plan_choice.h"
#include "search/policy/policy.h"
#include "search/policy/weights.h"
#include "search/strategy/strategy.h"
#include "search/timeline.h"
#include "verify/evaluator.h"
#include "verify/tolerance.h"

namespace warploom::cli {
namespace {
using export_::BundleInfo;
using graph::Graph;
using nlohmann::json;
using search::kStrategyNames;

namespace fs = std::filesystem;

struct Flags {
  std::string file;
  std::string out;
  std::string track;
  std::string strategy = "automatic";
  std::string policy = "analytic";
  search::Options search;  // what of it is not worked out of the others
  ModelOptions model;
  std::vector<std::string> constants;
  std::vector<std::string> rewrites;
  std::vector<std::string> actions;
  std::string boundaries;
  std::string devices;
  std::optional<int> candidates;
  bool no_resume = false;
  ModelFlags writer;
};

const std::vector<std::string> kStrategies(std::begin(kStrategyNames), std::end(kStrategyNames));
const std::vector<std::string> kPolicies(std::begin(search::kPolicyNames),
                                         std::end(search::kPolicyNames));
constexpr const char* kNoRewrites = "none";
constexpr const char* kAsFused = "fused";
// A model of more text, or more bytes of constants, is not copied into plan.json.
constexpr int64_t kMostModelText = 8 << 20;

// Weights that no policy reads are a mistake; those that are broken are found before the search.
Status check_weights(const Flags& flags) {
  if (flags.policy != "learned") {
    Error error{ErrorCode::kFlagsContradict, "only the learned policy has weights"};
    error.place = "--weights";
    error.expected = "--policy learned";
    error.found = "--policy " + flags.policy;
    error.remedy = "name that policy, or leave the weights out";
    return fail(error);
  }
  WARPLOOM_CHECK(search::read_weights(flags.search.weights));
  return ok();
}

// The GPUs of a list "0,1". This process sees the first of them alone, and so do those that it
// starts; evaluators of the others are told.
Result<std::vector<std::string>> devices_of(const Flags& flags) {
  std::vector<std::string> out;
  std::stringstream list(flags.devices);
  for (std::string one; std::getline(list, one, ',');)
    out.push_back(one);
  if (out.empty()) return out;
  const bool is_cpu = flags.search.target == "cpu";
  const bool is_double = std::set<std::string>(out.begin(), out.end()).size() < out.size();
  if (is_cpu || is_double || contains(out, "")) {
    Error error{ErrorCode::kFlagsContradict, "this is no list of GPUs to search on", "--device"};
    error.expected = "GPUs, each once, as CUDA_VISIBLE_DEVICES names them: 0,1";
    error.found = is_cpu ? "--target cpu" : flags.devices;
    error.remedy = "see them with nvidia-smi, or leave --device out for the first";
    return fail(error);
  }
  ::setenv("CUDA_VISIBLE_DEVICES", out[0].c_str(), 1);
  return out;
}

// What the flags say of the whole plan; nothing: the search chooses.
Result<std::optional<search::PlanChoice>> choice_of(const std::vector<std::string>& rewrites) {
  if (rewrites.empty()) return std::nullopt;
  search::PlanChoice choice;
  if (rewrites == std::vector<std::string>{kNoRewrites}) return choice;
  for (const std::string& text : rewrites) {
    WARPLOOM_TRY(graph::Rewrite one, graph::rewrite_from_text(text));
    choice.rewrites.push_back(std::move(one));
  }
  return choice;
}

// Actions that the user adds; a strategy that takes none would not try them.
Result<std::shared_ptr<const search::OwnActions>> own_actions_of(const Flags& flags) {
  if (flags.actions.empty()) return nullptr;
  const std::vector<std::string> taking = {"linear", "branch", "tree", "evolution"};
  if (!contains(taking, flags.strategy)) {
    Error error{ErrorCode::kFlagsContradict, "the strategy takes no actions", "--actions"};
    error.expected = "--strategy " + listed(taking, {}, ", ");
    error.found = "--strategy " + flags.strategy;
    error.remedy = "name one of these strategies, or leave the actions out";
    return fail(error);
  }
  WARPLOOM_TRY(search::OwnActions own, search::read_own_actions(flags.actions));
  return std::make_shared<const search::OwnActions>(std::move(own));
}

// What they say of its regions; nothing: the search chooses.
Result<std::optional<plan::BoundaryChanges>> boundaries_of(const std::string& text) {
  if (text.empty()) return std::nullopt;
  if (text == kAsFused) return plan::BoundaryChanges();
  WARPLOOM_TRY(plan::BoundaryChanges changes, plan::boundaries_from_text(text));
  return changes;
}

// The search that the flags ask for.
Result<search::Options> options_of(const Flags& flags, const Graph& graph) {
  if (flags.candidates.value_or(1) < 1) {
    Error error{ErrorCode::kFlagsContradict, "a search of no candidates finds nothing"};
    error.place = "--candidates";
    error.expected = "at least one";
    error.found = std::to_string(*flags.candidates);
    error.remedy = "leave it out for no limit but the budget";
    return fail(error);
  }
  if (flags.search.force_search && flags.no_resume) {
    Error error{ErrorCode::kFlagsContradict, "a run cannot both resume a search and start anew"};
    error.place = "--resume, --no-resume";
    error.expected = "one of them";
    error.found = "both";
    error.remedy = "give one of them";
    return fail(error);
  }
  auto options = flags.search;
  if (!options.weights.empty()) WARPLOOM_CHECK(check_weights(flags));
  WARPLOOM_TRY(options.track, track_for(graph, flags.track));
  options.strategy = *row_where<search::Strategy>(kStrategies, flags.strategy);
  options.policy = *row_where<search::PolicyKind>(kPolicies, flags.policy);
  options.max_candidates = flags.candidates.value_or(0);
  WARPLOOM_CHECK(use_model(flags.writer, options));
  options.resume = !flags.no_resume && !options.exact;
  options.interrupted = &interrupted();
  options.constants = {flags.constants.begin(), flags.constants.end()};
  WARPLOOM_TRY(options.choice, choice_of(flags.rewrites));
  WARPLOOM_TRY(options.own_actions, own_actions_of(flags));
  WARPLOOM_TRY(options.boundaries, boundaries_of(flags.boundaries));
  WARPLOOM_TRY(options.devices, devices_of(flags));
  return options;
}

std::string summary_of(const Graph& graph, const search::Outcome& outcome) {
  const auto name = [](const graph::Node& node) { return graph::name_of(node.op); };
  const auto tensor = [&](graph::TensorId id) { return graph::to_text(graph.tensor(id)); };
  const std::string operators = listed(graph.nodes, name, " + ");
  const std::string inputs = listed(graph.inputs, tensor);
  const std::string_view track = name_of(outcome.track);
  return fmt::format("{} of {}, for {} ({}), precision track {}.", operators, inputs,
                     outcome.target, outcome.device, track);
}

// What `make check` allows: the track's bound, or twice what was seen where that is more (its
// inputs are others).
double check_tolerance(const Graph& graph, const search::Outcome& outcome) {
  double bound = 2 * std::max(outcome.verdict.error, outcome.verdict.reference_error);
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const int output = as_int(i);
    const auto tolerance = verify::tolerance_of(graph, outcome.track, output);
    if (std::isfinite(tolerance.frobenius)) bound = std::max(bound, tolerance.frobenius);
  }
  return bound > 0 ? bound : 1e-4;
}

// The closing table. What of it people read is worked out from what programs read.
std::string table_of(const json& outcome) {
  return text_of("outcome", search::with_words(outcome));
}

// The model's text, "" for a large one.
Result<std::string> model_text(const Flags& flags, const Graph& graph) {
  int64_t bytes = 0;
  for (const auto& tensor : graph.tensors)
    if (tensor.constant) bytes += graph::byte_count(tensor);
  if (bytes > kMostModelText) return "";
  WARPLOOM_TRY(std::string text, onnx_text(flags.file, flags.model));
  if (std::ssize(text) > kMostModelText) return "";
  return text;
}

// What adopt() of the bundle's PyTorch module needs, to take other weights. A model of which that
// cannot be said is still right with its own.
void add_weights(BundleInfo& info, const Flags& flags, const Graph& primitive,
                 const LaunchList& list) {
  const auto open = open_onnx(flags.file, flags.model);
  if (!open) return;
  std::vector<graph::Tensor> held;
  for (const BufferSpec& input : list.inputs) {
    const auto id = primitive.tensor_named(input.name);
    if (id && primitive.tensor(*id).constant) held.push_back(primitive.tensor(*id));
  }
  const auto making = graph::making_of(open->graph, open->weights, held);
  auto outline = onnx_outline(flags.file, making.carried);
  if (!outline) return;
  info.weights = graph::to_json(making, open->weights);
  info.outline = *std::move(outline);
}

Result<export_::Delivered> write_outcome(const fs::path& folder, const Flags& flags,
                                         const std::string& model, const graph::Graph& graph,
                                         const search::Outcome& outcome,
                                         const export_::Until& until) {
  export_::BundleInfo info;
  info.name = fs::path(flags.file).stem().string();
  info.summary = summary_of(graph, outcome);
  info.plan = search::to_json(outcome);
  info.tolerance = check_tolerance(graph, outcome);
  info.seed = outcome.seed;
  info.headline = search::headline(info.plan);
  info.plan["headline"] = info.headline;
  info.plan["warploom"] = kVersion;
  if (outcome.regions.size() == 1) info.plan["schedule"] = kernels::to_json(outcome.schedule);
  if (!model.empty()) info.plan["model"] = model;
  // Of a model named when the plan is verified.
  if (!flags.model.assume.empty()) info.plan["assume"] = flags.model.assume;
  if (!flags.model.dims.empty()) info.plan["dim"] = flags.model.dims;
  if (!flags.constants.empty()) info.plan["constant"] = flags.constants;
  // Kernels may read its constants.
  WARPLOOM_TRY(const Graph primitive, graph::decompose(graph));
  add_weights(info, flags, primitive, outcome.list);
  return export_::write_bundle(folder, info, outcome.list, primitive, until);
}

// Says what the command is busy with, and keeps when that began.
void announce(const Session& session, const Flags& flags, search::Timeline& timeline,
              const char* phase) {
  timeline.enter(phase);
  if (!session.on_progress) return;
  session.on_progress({.budget_seconds = flags.search.budget_seconds, .phase = phase});
}

// Where results are kept, in words, where that is not the usual place; else "".
std::string cache_note() {
  const CacheFolder cache = find_cache_folder();
  if (cache.passed_over.empty()) return "";
  const char* const kept = cache.kept ? "are kept in" : "are not kept, but lay in";
  const std::string passed_over = fmt::format("{}", fmt::join(cache.passed_over, "; "));
  return fmt::format("compiled kernels and the archive {} {}; {}", kept, cache.path.string(),
                     passed_over);
}

// Where outputs were not compared whole for want of time; else "".
std::string parts_note(const verify::Verdict& verdict) {
  int64_t in_parts = 0;
  double least = 1;
  for (const verify::Evidence& one : verdict.evidence) {
    const bool is_whole = one.rows_checked >= one.rows || one.sums_checked > 0;  // of all lines
    if (is_whole) continue;
    ++in_parts;
    least = std::min(least, as_double(one.rows_checked) / as_double(one.rows));
  }
  if (in_parts == 0) return "";
  return fmt::format(
      "of {} of {} kinds of inputs the outputs were compared with FP64 in parts, at least {:.2g} % "
      "of their rows: a larger budget compares more",
      in_parts, verdict.evidence.size(), 100 * least);
}

// A search whose bundle could not be written: what was found is not lost with the folder that it
// should have gone to.
Answer without_bundle(json outcome, const Error& error) {
  const std::string text = table_of(outcome) + "\n" + describe(error) + "\n";
  outcome["bundle"] = nullptr;
  json record;
  record["error"] = to_json(error);
  record["outcome"] = std::move(outcome);
  return {std::move(record), text, exit_status(error.code)};
}

constexpr double kLeft = 0.03;  // of the budget, for moving the bundle to its place

// What building a bundle and running its check take, by the slowest kernel's compilation: the
// kernels once more, the launcher and the check; nvcc reads each for the host as well. A bundle's
// Makefile knows no precompiled headers: g++ takes three times as long by it.
double delivery_seconds(const search::Options& options, double compile_seconds) {
  constexpr double kLeastCompile = 0.7;
  constexpr double kLeastOfCpu = 1;
  constexpr double kWithoutHeaders = 3;
  constexpr double kOtherTexts = 2;  // the launcher and the check, whatever the kernel is
  constexpr double kTextsOfNvcc = 6;
  const auto capabilities = search::resolve_target(options.target);
  const bool gpu = capabilities && capabilities->gpu;
  if (gpu) return kTextsOfNvcc * std::max(kLeastCompile, compile_seconds);
  const double kernel = std::max(kLeastOfCpu, kWithoutHeaders * compile_seconds);
  return kernel + kOtherTexts * kLeastOfCpu;
}

Result<Answer> optimize(const Flags& flags, const Session& session) {
  const search::Budget budget(flags.search.budget_seconds);
  search::Timeline timeline;
  announce(session, flags, timeline, "reading the model");
  WARPLOOM_TRY(const graph::Graph graph, load_onnx(flags.file, flags.model));
  WARPLOOM_TRY(search::Options options, options_of(flags, graph));
  WARPLOOM_TRY(const std::string model, model_text(flags, graph));
  const std::string name = fs::path(flags.file).stem().string();  // the bundle's
  fs::path folder(flags.out);
  if (folder.empty()) folder = fs::path("out") / name;
  WARPLOOM_CHECK(export_::may_deliver(folder));  // rather than after the search
  options.on_progress = [&](const search::Progress& progress) {
    timeline.see(progress);
    if (session.on_progress) session.on_progress(progress);
  };
  options.begun_seconds = budget.spent();
  const double moving = kLeft * budget.seconds();
  options.delivery_seconds = [&](double slowest) {
    return delivery_seconds(options, slowest) + moving;
  };
  catch_interrupts();
  auto found = search::optimize(graph, options);
  options.on_progress = {};
  if (!found) return tl::unexpected(found.error());
  const search::Outcome& outcome = *found;
  const search::Budget kept = budget.less(moving);
  // What would not end is not begun.
  constexpr double kNearly = 0.9;  // of what it would take: the search itself ends a little late
  const bool is_enough = budget.left() >= kNearly * outcome.delivery_seconds;
  announce(session, flags, timeline,
           is_enough ? "building the bundle and running its check" : "writing the bundle");
  const export_::Until until = is_enough ? kept.until() : budget.part(0).until();
  const auto written = write_outcome(folder, flags, model, graph, outcome, until);
  json record = search::to_json(outcome);
  record["timeline"] = timeline.to_json();
  if (!written) return without_bundle(std::move(record), written.error());
  record["bundle"] = folder.string();
  record["notes"] = written->notes;
  for (const std::string& note : outcome.device_notes)
    record["notes"].push_back(note);
  for (const std::string& note :
       {parts_note(outcome.verdict), cache_note(), outcome.boundaries.note})
    if (!note.empty()) record["notes"].push_back(note);
  if (outcome.card.is_object() && outcome.card.value("estimated", false))
    record["notes"].push_back("the peaks of this card are estimated: cards.def does not list it");
  record["headline"] = search::headline(record);
  const int status = outcome.interrupted ? exit_status(ErrorCode::kInterrupted) : 0;
  return Answer{record, table_of(record), status};
}
}  // namespace

Command optimize_command() {
  const auto flags = std::make_shared<Flags>();
  auto& search = flags->search;
  Command command;
  command.name = "optimize";
  command.help = "search for the fastest kernel that is proven right, and write its bundle";
  command.example = "warploom optimize examples/conv_relu_maxpool.textproto --budget 60s";
  command.flags = {
      {"FILE", &flags->file, "an ONNX model, binary or .textproto"},
      {"--out", &flags->out, "the bundle's folder; default out/NAME"},
      {"--dim", &flags->model.dims, kDimHelp},
      {"--assume", &flags->model.assume, kAssumeHelp},
      {"--constant", &flags->constants, kConstantHelp},
      {"--device", &flags->devices,
       "the GPUs that judge candidates, each one at a time, as CUDA_VISIBLE_DEVICES names them: "
       "0,1; the best is confirmed on the first; default: the first alone"},
      {"--actions", &flags->actions,
       "a file with an action of your own that the strategy may take (docs/search.md); several "
       "times for several"},
      {"--rewrite", &flags->rewrites,
       "carry out this rewrite of the graph, as `warploom show FILE --what rewrites` names it, and "
       "no other; none: leave the graph as it is; default: the search chooses"},
      {"--boundaries", &flags->boundaries,
       "change these boundaries between regions, as `warploom show FILE --what boundaries` names "
       "the changes (\"cut_region t3; join_regions t7 + y\"), and no other; fused: none; default: "
       "the search chooses"},
      {"--budget", &search.budget_seconds,
       "wall time for all of it, the bundle's check included: 500ms, 60s, 2m"},
      {"--candidates", &flags->candidates, "at most so many candidates of a region"},
      {"--target", &search.target, kTargetHelp},
      {"--track", &flags->track, kTrackHelp},
      {"--strategy", &flags->strategy, "how to search", kStrategies},
      {"--policy", &flags->policy, "what weighs the actions of linear, branch, tree and evolution",
       kPolicies},
      {"--weights", &search.weights,
       "of the learned policy, as warploom train writes them; default: the program's own"},
      {"--seed", &search.seed, "of every random choice"},
      {"--jobs", &search.jobs, "compilations at once; default: one a core", {}, 1, 1024},
      {"--archive", &search.archive, "the archive file; default: in the cache folder"},
      {"--exact", &search.exact,
       "only kernels that are right for infinities and NaN, too; the archive is not asked"},
      {"--no-resume", &flags->no_resume, "do not use what the archive knows of the problem"},
      {"--resume", &search.force_search,
       "search on, even where a search of this budget is done there and would be the answer"}};
  add_model_flags(command.flags, flags->writer);
  command.action = [flags](const Session& session) { return optimize(*flags, session); };
  return command;
}
}  // namespace warploom::cli
