#include "search/task_archive.h"
#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>
#include "archive/archive.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/rows.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/config/kernel_config.h"
#include "kernels/config/reader.h"
#include "kernels/family.h"
#include "llm/exchange.h"
#include "runtime/compile.h"
#include "runtime/executor.h"
#include "runtime/machine.h"
#include "runtime/noise.h"
#include "search/action/action.h"
#include "search/candidate.h"
#include "search/coder/written.h"
#include "search/compile_pool.h"
#include "search/near.h"
#include "search/options.h"
#include "search/problem_record.h"
#include "search/strategy/strategy.h"
#include "search/task.h"
#include "verify/evaluator.h"
#include "verify/setup.h"

namespace warploom::search {
namespace {
std::filesystem::path own_file() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored);
}

// When this program was linked, in seconds since 1970; 0: not known.
int64_t time_of_build() {
  std::error_code fault;
  const auto written = std::filesystem::last_write_time(own_file(), fault);
  if (fault) return 0;
  const auto since_1970 = std::chrono::file_clock::to_sys(written).time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(since_1970).count();
}

// What the archive keeps of a figure: nothing where 0 stands for what was not measured.
std::optional<double> known(double figure) {
  return figure > 0 ? std::optional(figure) : std::nullopt;
}

archive::Stage stage_of(const Candidate& candidate) {
  if (!candidate.verdict.accepted) return archive::Stage::refused;
  return candidate.promoted ? archive::Stage::promoted : archive::Stage::screened;
}

// The latest run that tells something: it asked for long enough, or has not come to its end.
std::optional<archive::Run> latest(const std::vector<archive::Run>& runs, const auto& tells) {
  const auto found = std::find_if(runs.rbegin(), runs.rend(), tells);
  return found == runs.rend() ? std::nullopt : std::optional(*found);
}
}  // namespace

std::string build_stamp() {
  std::error_code ignored;
  const std::filesystem::path self = own_file();
  const auto written = std::filesystem::last_write_time(self, ignored).time_since_epoch().count();
  const std::string text = fmt::format("{} {}", written, std::filesystem::file_size(self, ignored));
  return "build " + hash_hex(text).substr(0, 8);
}

TaskArchive::TaskArchive(const Task& task, const Options& options)
    : task_(task), options_(options), stamp_(build_stamp()) {}

Status TaskArchive::open() {
  WARPLOOM_TRY(const runtime::DeviceInfo info, runtime::Executor::describe(task_.setup.engine));
  const std::string& arch = task_.space.capabilities.arch;
  if (!runtime::runs_on(arch, info.arch))
    return fail(
        {ErrorCode::kWrongMachine, "the target's kernels do not run on this machine", "--target",
         arch, info.arch,
         fmt::format("take --target {}, or look at what would be made: warploom show", info.arch)});
  ready_ = {info.name, info.arch, info.driver};
  std::filesystem::path path(options_.archive);
  if (path.empty()) path = cache_folder() / "archive.sqlite";
  WARPLOOM_TRY(archive_, archive::Archive::open(path));
  run_.problem = key();
  const auto& graph = task_.setup.graph;
  problem_.key = run_.problem;
  problem_.name = graph.name;
  problem_.track = name_of(options_.track);
  problem_.target = task_.space.capabilities.arch;
  problem_.device = ready_.device;
  problem_.text = graph::to_text(graph);
  note_problem(problem_, task_.space);
  if (task_.bound.us > 0)
    problem_.bound = {{"us", task_.bound.us}, {"of", std::string(task_.bound.of)}};
  return archive_->add_problem(problem_);
}

// The graph, and what its inputs are and which hold the same in every call: seeds and references
// may change between runs.
std::string TaskArchive::key() const {
  verify::Setup same;
  same.graph = task_.setup.graph;
  same.ranges = task_.setup.ranges;
  same.constants = task_.setup.constants;
  const auto bytes = nlohmann::json::to_cbor(verify::to_json(same));
  const auto* const text = reinterpret_cast<const char*>(bytes.data());
  const std::string graph = hash_hex({text, bytes.size()});
  const std::string_view track = name_of(options_.track);
  const auto& target = task_.space.capabilities;
  return hash_hex(
      fmt::format("{}|{}|{}|{}|{}", graph, track, target.arch, ready_.device, target.num_sms));
}

bool TaskArchive::is_limited() const {
  return options_.max_candidates > 0 || options_.strategy != Strategy::automatic ||
         task_.recorded != nullptr || options_.has_model() || options_.own_actions;
}

double TaskArchive::asked_seconds() const {
  return options_.asked_seconds > 0 ? options_.asked_seconds : options_.budget_seconds;
}

bool TaskArchive::is_answer(const archive::Run& run) const {
  if (run.seed != options_.seed || run.environment != environment("")) return false;
  return run.status == "done" ? run.budget_seconds >= asked_seconds() : run.budget_seconds > 0;
}

// Of the latest run that tells something, if that came to its end; its figures are then this run's.
Result<std::optional<archive::Candidate>> TaskArchive::best_of_finished_run() {
  using None = std::optional<archive::Candidate>;
  WARPLOOM_TRY(const std::vector<archive::Run> runs, archive_->runs(run_.problem));
  const auto run = latest(runs, [&](const archive::Run& one) { return is_answer(one); });
  if (!run || run->status != "done") return None();
  WARPLOOM_TRY(std::optional<archive::Candidate> best, archive_->best(run_.problem));
  if (!best || best->stage != archive::Stage::promoted) return None();
  ready_.reference = run->reference;
  run_.reference_us = run->reference_us;
  return best;
}

// The config of a record, whose text and data agree; nothing where no family here knows it, or
// holds it to be legal.
std::optional<kernels::KernelConfig> TaskArchive::config_of(const archive::Candidate& row) const {
  const auto raw = kernels::read_raw(row.fields);
  const auto text = kernels::read_raw(row.schedule);
  if (!raw || !text || raw->family != text->family || raw->fields != text->fields)
    return std::nullopt;
  const auto& families = task_.space.families;
  if (task_.texts && !row.source.empty()) {
    const kernels::KernelConfig written = task_.texts->add(row.source);
    return written.text() == row.schedule ? std::optional(written) : std::nullopt;
  }
  const auto family = std::ranges::find(families, raw->family, &kernels::Family::name);
  if (family == families.end()) return std::nullopt;
  const auto config = kernels::config_of(*raw, (*family)->type());
  return config && (*family)->validate(*config) ? std::optional(*config) : std::nullopt;
}

// The step that led to a row; nothing where none was told, or none that this program knows.
std::optional<Action> TaskArchive::action_of(const archive::Candidate& row) const {
  if (row.action.is_null()) return std::nullopt;
  auto action = action_from_json(row.action, task_.space);
  return action ? std::optional(*std::move(action)) : std::nullopt;
}

// The candidate of a row, if it is still built to the same text by the same compiler.
std::optional<Candidate> TaskArchive::rebuilt(const archive::Candidate& row) const {
  const auto config = config_of(row);
  const auto verdict = verify::verdict_from_json(row.verdict);
  if (!config || !verdict || !verdict->accepted) return std::nullopt;
  if (verdict->median_us < task_.setup.floor_us) return std::nullopt;
  const auto list = task_.space.build(*config);
  if (!list || hash_of_texts(*list) != row.source_hash) return std::nullopt;
  const auto binary = runtime::compile(*list);
  if (!binary || environment(binary->compiler) != row.environment) return std::nullopt;
  Candidate out;
  out.config = *config;
  out.list = *list;
  out.verdict = *verdict;
  out.parents = row.parents;
  out.action = action_of(row);
  out.proposed = row.proposed;
  out.compiler = binary->compiler;
  out.judged_here = true;
  out.promoted = true;
  out.screened_us = row.screened_us.value_or(0);
  return out;
}

Result<std::optional<Candidate>> TaskArchive::lookup_result() {
  if (!options_.resume || options_.force_search || is_limited()) return std::optional<Candidate>();
  const verify::Ready before = ready_;
  WARPLOOM_TRY(const std::optional<archive::Candidate> best, best_of_finished_run());
  std::optional<Candidate> found = best ? rebuilt(*best) : std::nullopt;
  if (found) return found;
  ready_ = before;
  run_.reference_us.reset();
  return found;
}

Status TaskArchive::begin(const verify::Ready& ready) {
  ready_ = ready;
  archive::Run run;
  run.problem = run_.problem;
  run.seed = options_.seed;
  run.reference = ready_.reference;
  run.reference_us = known(ready_.reference_us);
  run.environment = environment("");
  run.budget_seconds = is_limited() ? 0 : asked_seconds();
  run.known = run_.known;
  run.known_best = run_.known_best;
  run.near = run_.near;
  run_ = std::move(run);
  return note_references();
}

void TaskArchive::note_ready(const verify::Ready& ready) {
  if (!ready_.reference.empty() || ready.reference.empty()) return;
  ready_ = ready;
  run_.reference = ready.reference;
}

Status TaskArchive::start() {
  WARPLOOM_TRY(run_id_, archive_->begin_run(run_));
  return ok();
}

// What the reference has been capable of on this machine: slower by far, it is disturbed.
Status TaskArchive::note_references() {
  WARPLOOM_TRY(const std::vector<archive::Run> runs, archive_->runs(run_.problem));
  for (const archive::Run& run : runs)
    if (run.status == "done" && run.reference == ready_.reference)
      note_reference(run.reference_us.value_or(0));
  return ok();
}

void TaskArchive::note_reference(double us) {
  if (us <= 0) return;
  if (reference_known_us_ <= 0 || us < reference_known_us_) reference_known_us_ = us;
}

// `stopped_here`: recorded by the very search that goes on. Nothing for a config of an older
// program.
std::optional<Remembered> TaskArchive::remembered(const archive::Candidate& row,
                                                  bool stopped_here) const {
  const auto config = config_of(row);
  if (!config) return std::nullopt;
  double us = row.screened_us.value_or(0);
  if (us <= 0 && row.stage != archive::Stage::refused) us = row.median_us.value_or(0);
  // A stranger's text is judged anew in every search.
  const bool same_program = row.environment.ends_with(stamp_) && !is_written(*config);
  Remembered out;
  out.candidate.config = *config;
  out.candidate.verdict.accepted = us > 0;
  out.candidate.verdict.median_us = us;
  out.candidate.parents = row.parents;
  out.candidate.action = action_of(row);
  out.candidate.proposed = row.proposed;
  out.candidate.judged_here = same_program && stopped_here;
  out.candidate.screened_us = us;
  out.same_program = same_program;
  out.best = row.schedule == run_.known_best;
  return out;
}

Result<std::vector<Remembered>> TaskArchive::resume() {
  WARPLOOM_TRY(const std::vector<archive::Candidate> rows, archive_->candidates(run_.problem));
  WARPLOOM_TRY(const std::vector<archive::Run> runs, archive_->runs(run_.problem));
  WARPLOOM_TRY(const std::optional<archive::Candidate> best, archive_->best(run_.problem));
  const archive::Run* const last = runs.empty() ? nullptr : &runs.back();
  const bool is_unfinished = last != nullptr && last->status != "done";
  const bool goes_on =
      is_unfinished && last->seed == options_.seed && last->environment.ends_with(stamp_);
  run_.known = goes_on ? last->known : rows.size();
  const std::string best_now = best ? best->schedule : "";
  run_.known_best = goes_on ? last->known_best : best_now;
  if (goes_on)
    run_.near = last->near;
  else
    WARPLOOM_CHECK(find_near(!rows.empty()));
  std::vector<Remembered> all;
  for (size_t i = 0; i < rows.size(); ++i)
    if (auto one = remembered(rows[i], i >= run_.known)) all.push_back(*std::move(one));
  return all;
}

Status TaskArchive::find_near(bool is_known) {
  WARPLOOM_TRY(const auto starts, near_starts(*archive_, problem_, task_.space, is_known));
  run_.near = nlohmann::json::array();
  for (const NearStart& start : starts)
    run_.near.push_back(start.origin);
  return ok();
}

std::vector<kernels::KernelConfig> TaskArchive::near() const {
  std::vector<kernels::KernelConfig> out;
  for (const nlohmann::json& origin : run_.near) {
    const auto raw = kernels::read_raw(origin.value("schedule", ""));
    if (!raw) continue;
    const auto& families = task_.space.families;
    const auto family = std::ranges::find(families, raw->family, &kernels::Family::name);
    if (family == families.end()) continue;
    const auto config = kernels::config_of(*raw, (*family)->type());
    if (config && (*family)->validate(*config)) out.push_back(*config);
  }
  return out;
}

Status TaskArchive::record(const Candidate& candidate) {
  const auto& v = candidate.verdict;
  const bool judged = !v.evidence.empty();
  archive::Candidate row;
  row.problem = run_.problem;
  row.schedule = candidate.config.text();
  row.fields = kernels::to_json(candidate.config);
  row.family = candidate.config.family();
  row.parents = candidate.parents;
  if (candidate.action) row.action = to_json(*candidate.action);
  row.proposed = candidate.proposed;
  row.stage = stage_of(candidate);
  if (!v.accepted) row.error_code = code_text(v.error_found.code);
  row.median_us = known(v.median_us);
  row.low_us = known(v.low_us);
  row.high_us = known(v.high_us);
  row.reference_us = known(v.reference_us);
  row.reference_low_us = known(v.reference_low_us);
  row.reference_high_us = known(v.reference_high_us);
  row.speedup = known(v.speedup.median);
  row.speedup_low = known(v.speedup.low);
  row.speedup_high = known(v.speedup.high);
  row.machine = runtime::to_json(v.noise);
  if (judged) {
    row.error = v.error;
    row.max_error = v.max_error;
  }
  row.seed = judged ? v.evidence.front().seed : task_.setup.seed;
  row.source_hash = hash_of_texts(candidate.list);
  row.environment = environment(candidate.compiler);
  row.built = time_of_build();
  row.verdict = verify::to_json(v);
  row.screened_us = known(candidate.screened_us);
  if (task_.texts) row.source = task_.texts->text_of(candidate.config);
  return archive_->record(row);
}

Status TaskArchive::record(const llm::Exchange& exchange) {
  return archive_->add_exchange(run_.problem, llm::to_json(exchange));
}

Result<std::vector<llm::Exchange>> TaskArchive::exchanges() {
  std::vector<llm::Exchange> out;
  WARPLOOM_TRY(const auto rows, archive_->exchanges(run_.problem));
  for (const nlohmann::json& row : rows) {
    WARPLOOM_TRY(llm::Exchange one, llm::exchange_from_json(row));
    out.push_back(std::move(one));
  }
  return out;
}

void TaskArchive::finish(const char* status, double seconds) {
  run_.status = status;
  run_.seconds = seconds;
  if (archive_ && run_id_ > 0)
    (void)archive_->finish_run(run_id_, run_);  // the outcome is worth more than this row
}

std::string TaskArchive::environment(const std::string& compiler) const {
  std::vector<std::string> parts = {ready_.environment, compiler, stamp_};
  std::erase(parts, "");
  return listed(parts, {}, "; ");
}
}  // namespace warploom::search
