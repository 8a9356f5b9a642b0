#include "search/explore.h"
#include <deque>
#include <future>
#include "archive/archive.h"
#include "base/file.h"
#include "base/process.h"
#include "kernels/config/reader.h"
#include "runtime/executor.h"

namespace warploom::search {
namespace {
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr size_t kFinalists = 4;  // measured again with more repeats, beside the reference
constexpr size_t kKept = 100;     // of the right ones, at least the fastest so many

// Which build of this program this is: another one may emit other source for the same schedule.
std::string build_stamp() {
  std::error_code ignored;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const auto written = std::filesystem::last_write_time(self, ignored).time_since_epoch().count();
  return "build " +
         hash_hex(fmt::format("{} {}", written, std::filesystem::file_size(self, ignored)))
             .substr(0, 8);
}

// CompileAhead: builds and compiles schedules on threads of its own, so many at once, ahead of the
// measuring, and hands them out in the order they were put in. Compilers themselves run in child
// processes under a clock (runtime/compile.h).
struct Compiled {
  kernels::KernelConfig schedule;
  Result<LaunchList> list = LaunchList{};
  std::string compiler;
};

class CompileAhead {
 public:
  using Build = std::function<Result<LaunchList>(const kernels::KernelConfig&)>;

  CompileAhead(Build build, int threads, milliseconds limit)
      : build_(std::move(build)), limit_(limit), turns_(std::max(1, threads)) {}

  // Compilers that are still running end with all that they started; builders are waited for.
  ~CompileAhead() { stopped_ = true; }

  // A thread each, which waits for its turn and lives as long as the compiler that it starts: that
  // dies with it. One that needs no compiler keeps its place in the order.
  void put(kernels::KernelConfig schedule, bool compiles) {
    const auto work = [this, compiles, schedule = std::move(schedule)] {
      Compiled made{schedule};
      if (!compiles) return made;
      end_processes_with(&stopped_);
      turns_.acquire();
      if (!stopped_) compile(made);
      turns_.release();
      return made;
    };
    entries_.push_back(
        {Clock::now(), std::async(compiles ? std::launch::async : std::launch::deferred, work)});
  }

  size_t pending() const { return entries_.size(); }  // put and not taken

  // The first one put, once it is ready; after `patience` any that is ready; nothing when `wait`
  // has passed.
  std::optional<Compiled> take(milliseconds wait, milliseconds patience) {
    const auto start = Clock::now();
    const auto ready = [](const Entry& entry) {
      return entry.result.wait_for(milliseconds(0)) != std::future_status::timeout;
    };
    while (!entries_.empty()) {
      const bool any = Clock::now() - entries_.front().put >= patience;
      const auto last = any ? entries_.end() : entries_.begin() + 1;
      if (const auto found = std::find_if(entries_.begin(), last, ready); found != last) {
        Compiled out = found->result.get();
        entries_.erase(found);
        return out;
      }
      if (Clock::now() - start >= wait) break;
      entries_.front().result.wait_for(milliseconds(5));  // the others are looked at as often
    }
    return std::nullopt;
  }

 private:
  struct Entry {
    Clock::time_point put;
    std::future<Compiled> result;
  };

  void compile(Compiled& made) {
    made.list = build_(made.schedule);
    if (!made.list) return;
    Result<runtime::Binary> binary =
        runtime::compile(*made.list, {.time = limit_, .turns = &turns_, .ended = &stopped_});
    if (binary)
      made.compiler = binary->compiler;
    else
      made.list = fail(binary.error());
  }

  Build build_;
  milliseconds limit_;
  runtime::Turns turns_;
  std::atomic<bool> stopped_ = false;
  std::deque<Entry> entries_;  // in the order they were put; the last member, so that the threads
                               // end before what they use
};

class TuningSession {
 public:
  TuningSession(const Problem& problem, const Options& options)
      : problem_(problem), options_(options) {}

  Result<Outcome> run() {
    WARPLOOM_CHECK(look_up());
    WARPLOOM_TRY(const bool known, remember());
    if (known) return conclude();
    WARPLOOM_CHECK(prepare());
    Status done = search();
    if (done) done = final_rounds();
    if (!done && done.error().code != ErrorCode::kInterrupted) {
      finish("failed");
      Error why = done.error();
      if (best_us_ > 0)
        why.found += fmt::format("; the best so far: {}, {:.1f} us", run_.best, best_us_);
      return fail(why);
    }
    return conclude();
  }

 private:
  struct Entry {
    kernels::KernelConfig schedule;
    LaunchList list;  // empty for one that the archive knows and that was not built again
    verify::Verdict verdict;
    std::vector<std::string> parents;
    std::string compiler;
    bool here = false;  // judged in this search
    bool promoted = false;
    bool finalist = false;  // measured again, in turns with the reference
    double screened_us = 0;
  };

  double now() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  bool interrupted() const { return options_.interrupted && options_.interrupted->load(); }

  // Seconds kept back for the last rounds: a fresh evaluator's start, its whole judgement, and the
  // finalists' measurements.
  double reserve() const {
    const double wanted =
        1.3 * start_seconds_ + 2 * judge_seconds_ + std::min(4.0, 0.07 * options_.budget_seconds);
    return std::min(wanted, 0.6 * options_.budget_seconds);
  }

  double left() const { return problem_.recorded ? HUGE_VAL : options_.budget_seconds - now(); }

  Status look_up() {
    WARPLOOM_TRY(const runtime::DeviceInfo info,
                 runtime::Executor::describe(problem_.setup.engine));
    ready_ = {info.name, info.arch, info.driver};
    const auto path = options_.archive.empty() ? cache_folder() / "archive.sqlite"
                                               : std::filesystem::path(options_.archive);
    WARPLOOM_TRY(archive_, archive::Archive::open(path));
    // The graph and what its inputs are: seeds and references may change between runs.
    const auto bytes = nlohmann::json::to_cbor(verify::to_json(
        verify::Setup{.graph = problem_.setup.graph, .ranges = problem_.setup.ranges}));
    const std::string& target = problem_.catalogue.capabilities.arch;
    run_.problem = hash_hex(fmt::format(
        "{}|{}|{}|{}|{}", hash_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()}),
        name_of(options_.track), target, ready_.device, problem_.catalogue.capabilities.num_sms));
    WARPLOOM_CHECK(archive_->add_problem({run_.problem, problem_.setup.graph.name,
                                          std::string(name_of(options_.track)), target,
                                          ready_.device, graph::to_text(problem_.setup.graph)}));
    return ok();
  }

  // Whether the archive has the answer, which is then the only entry.
  Result<bool> remember() {
    if (!options_.resume || options_.onward || limited()) return false;
    WARPLOOM_TRY(const std::vector<archive::Run> runs, archive_->runs(run_.problem));
    const auto tells = [&](const archive::Run&
                               run) {  // the latest that is long enough, or has not come to its end
      return run.seed == options_.seed && run.environment == environment("") &&
             (run.status == "done" ? run.budget_seconds >= asked() : run.budget_seconds > 0);
    };
    const auto run = std::find_if(runs.rbegin(), runs.rend(), tells);
    WARPLOOM_TRY(const std::optional<archive::Candidate> best, archive_->best(run_.problem));
    if (run == runs.rend() || run->status != "done" || !best ||
        best->stage != archive::Stage::promoted)
      return false;
    const auto schedule = config_of(*best);
    const auto verdict = verify::verdict_from_json(best->verdict);
    if (!schedule || !verdict || !verdict->accepted || verdict->median_us < problem_.setup.floor_us)
      return false;
    const auto list = problem_.catalogue.build(*schedule);
    if (!list || hash_of(*list) != best->source_hash) return false;
    const auto binary = runtime::compile(*list);
    if (!binary || environment(binary->compiler) != best->environment) return false;
    ready_.reference = run->reference;
    run_.reference_us = run->reference_us;
    entries_.push_back({*schedule, *list, *verdict, best->parents, binary->compiler, true, true,
                        false, best->screened_us.value_or(0)});
    recalled_ = true;
    return true;
  }

  // The config of a record, whose text and data agree; nothing where no family here knows it, or
  // holds it to be legal.
  std::optional<kernels::KernelConfig> config_of(const archive::Candidate& row) const {
    const auto raw = kernels::read_raw(row.fields);
    const auto text = kernels::read_raw(row.schedule);
    if (!raw || !text || raw->family != text->family || raw->fields != text->fields)
      return std::nullopt;
    const auto& families = problem_.catalogue.families;
    const auto family = std::ranges::find(families, raw->family, &kernels::Family::name);
    if (family == families.end()) return std::nullopt;
    const auto config = kernels::config_of(*raw, (*family)->type());
    return config && (*family)->validate(*config) ? std::optional(*config) : std::nullopt;
  }

  double asked() const {
    return options_.asked_seconds > 0 ? options_.asked_seconds : options_.budget_seconds;
  }

  bool limited() const {
    return options_.max_candidates > 0 || options_.strategy != Strategy::automatic ||
           problem_.recorded != nullptr;
  }

  Status prepare() {
    const double before = now();
    enter("working out in FP64 what is right, and timing the reference");
    // Schedules are ranked while the evaluator starts: it belongs to this thread, with which it
    // would end.
    auto ranked = std::async(std::launch::async, [&] {
      Limits limits = Limits::of_budget(options_.budget_seconds, start_, options_.interrupted);
      if (problem_.recorded) limits.until.reset();
      proposer_.emplace(problem_.catalogue, options_.strategy, options_.seed, limits);
    });
    auto started = verify::Evaluator::start(problem_.setup, {.interrupted = options_.interrupted});
    start_seconds_ = now() - before;
    ranked.get();
    WARPLOOM_TRY(evaluator_, std::move(started));
    ready_ = evaluator_->ready();
    run_ = {.problem = run_.problem,
            .seed = options_.seed,
            .reference = ready_.reference,
            .reference_us = known(ready_.reference_us),
            .environment = environment(""),
            .budget_seconds = limited() ? 0 : asked()};
    WARPLOOM_CHECK(look_up_reference());
    if (options_.resume) WARPLOOM_CHECK(recall());
    WARPLOOM_TRY(run_id_, archive_->begin_run(run_));
    return ok();
  }

  // What the reference has been capable of on this machine: slower by far, it is disturbed.
  Status look_up_reference() {
    WARPLOOM_TRY(const std::vector<archive::Run> runs, archive_->runs(run_.problem));
    for (const archive::Run& run : runs)
      if (run.status == "done" && run.reference == ready_.reference)
        remember_reference(run.reference_us.value_or(0));
    return ok();
  }

  void remember_reference(double us) {
    if (us > 0 && (reference_known_us_ <= 0 || us < reference_known_us_)) reference_known_us_ = us;
  }

  // What earlier runs learned: times guide the proposals, the best is judged again first, and the
  // rest is not tried again unless another build of the program judged it.
  //
  // A search that did not come to its end is done again instead, from what was known when it began:
  // the same proposals come in the same order, and what it recorded stands for judging them. So it
  // goes on exactly where it stopped, wherever that was.
  Status recall() {
    WARPLOOM_TRY(const std::vector<archive::Candidate> rows, archive_->candidates(run_.problem));
    WARPLOOM_TRY(const std::vector<archive::Run> runs, archive_->runs(run_.problem));
    WARPLOOM_TRY(const std::optional<archive::Candidate> best, archive_->best(run_.problem));
    const auto same = [&](const archive::Run& run) {
      return run.seed == options_.seed && run.environment.ends_with(stamp_);
    };
    const bool again = !runs.empty() && runs.back().status != "done" && same(runs.back());
    run_.known = again ? runs.back().known : rows.size();
    run_.known_best = again ? runs.back().known_best : best ? best->schedule : "";
    for (size_t i = 0; i < rows.size(); ++i) {
      const archive::Candidate& row = rows[i];
      const auto schedule = config_of(row);
      if (!schedule) continue;
      double us = row.screened_us.value_or(0);
      if (us <= 0 && row.stage != archive::Stage::refused) us = row.median_us.value_or(0);
      const bool right = us > 0;
      const bool ours = row.environment.ends_with(stamp_);
      Entry entry{*schedule,   {},    {.accepted = right, .median_us = us},
                  row.parents, {},    ours && i >= run_.known,
                  false,       false, us};
      if (entry.here) {
        answered_.emplace(schedule->text(), std::move(entry));
        continue;
      }
      if (ours) proposer_->skip(*schedule);
      if (right) {
        proposer_->learn(*schedule, us);
        entries_.push_back(std::move(entry));
      }
      if (row.schedule == run_.known_best) proposer_->suggest(*schedule);
    }
    return ok();
  }

  verify::Request quick_request() const {
    // A schedule much slower than what is known is of no use; waiting for it costs the others their
    // turn.
    const double known_us = std::max(best_us_, run_.reference_us.value_or(0));
    return {.check_ms = std::clamp(20 * options_.budget_seconds, 200.0, 1500.0),
            .beside_reference = false,
            .min_samples = 3,
            .max_samples = 30,
            .timing_ms = 60,
            .candidate_limit_ms =
                known_us > 0 ? std::clamp(known_us / 1e3 * 40, 2'000.0, 60'000.0) : 10'000};
  }

  Status search() {
    const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    const int threads = options_.jobs > 0 ? options_.jobs : cores;
    const auto lookahead = static_cast<size_t>(threads) + 2;
    const auto limit =
        std::clamp(milliseconds(static_cast<long long>(options_.budget_seconds * 500)),
                   milliseconds(10'000), milliseconds(60'000));
    enter("compiling the first candidates");
    compile_ = std::make_unique<CompileAhead>(problem_.catalogue.build, threads, limit);
    const int most =
        options_.max_candidates > 0 ? options_.max_candidates : std::numeric_limits<int>::max();
    bool exhausted = false;
    int put = 0;
    while (!interrupted() && run_.candidates < most) {
      while (!exhausted && compile_->pending() < lookahead && put < most) {
        if (const auto schedule = proposer_->next()) {
          ++put;
          compile_->put(*schedule, !answered_.contains(schedule->text()));
        } else
          exhausted = true;
      }
      if (compile_->pending() == 0) break;
      // Where nothing is right yet the budget holds only after the search's patience: a small one
      // may go before anything is judged. The first candidate's compiler has a clock of its own.
      if (left() < reserve() + judge_seconds_ &&
          (best_us_ > 0 || (left() <= -options_.patience_seconds && run_.candidates > 0)))
        break;
      std::optional<Compiled> compiled =
          compile_->take(milliseconds(100), milliseconds(problem_.recorded ? 3'600'000 : 3'000));
      if (!compiled) continue;
      WARPLOOM_CHECK(judge(*compiled));
      // New results may open new neighbours.
      exhausted = exhausted && entries_.empty();
    }
    return interrupted()
               ? fail({ErrorCode::kInterrupted, "interrupted", "", "", "", "run again to go on"})
               : ok();
  }

  Status judge(Compiled& compiled) {
    const std::string text = compiled.schedule.text();
    Entry entry{
        std::move(compiled.schedule), {}, {}, proposer_->parents_of(text), compiled.compiler};
    if (auto known = answered_.extract(text)) {
      entry = std::move(known.mapped());
    } else {
      const double before = now();
      const bool built = compiled.list.has_value();
      WARPLOOM_CHECK(settle(entry, std::move(compiled.list), *evaluator_, quick_request()));
      ++run_.candidates;
      // The first judgement makes what later ones find ready.
      const double took = now() - before;
      if (built) judge_seconds_ = judge_calls_++ < 2 ? took : 0.7 * judge_seconds_ + 0.3 * took;
    }
    if (const double us = entry.verdict.median_us; entry.verdict.accepted) {
      proposer_->learn(entry.schedule, us);
      if (best_us_ == 0 || us < best_us_) {
        best_us_ = us;
        run_.best = text;
      }
      std::erase_if(entries_, [&](const Entry& e) { return e.schedule == entry.schedule; });
      entry.list =
          {};  // made again for the few that are asked for again: there may be a hundred thousand
      entry.verdict.evidence = {};
      entries_.push_back(std::move(entry));
      if (entries_.size() > 2 * kKept) {
        sort_entries();
        entries_.erase(entries_.begin() + kKept, entries_.end());
      }
    } else {
      proposer_->refuse(entry.schedule);
    }
    enter("");
    return ok();
  }

  // Judges an entry as its list allows, and records and counts what came of it. Fails with what no
  // other would escape.
  Status settle(Entry& entry, Result<LaunchList> list, verify::Evaluator& judge,
                verify::Request request, bool promotes = false) {
    verify::Verdict& verdict = entry.verdict;
    if (list) {
      request.list = entry.list = std::move(*list);
      // What an earlier run compiled is cached: by whom, remember() will ask.
      if (promotes && entry.compiler.empty() && !problem_.recorded)
        if (const auto binary = runtime::compile(entry.list)) entry.compiler = binary->compiler;
      WARPLOOM_TRY(verdict, problem_.recorded ? problem_.recorded(entry.schedule, request)
                                              : judge.judge(request));
    } else {
      verdict = {.error_found = list.error()};
    }
    if (!verdict.accepted && is_fatal(verdict.error_found.code)) return fail(verdict.error_found);
    entry.here = true;
    entry.promoted = promotes && verdict.accepted;
    if (entry.screened_us == 0 && verdict.accepted) entry.screened_us = verdict.median_us;
    if (!verdict.accepted) {
      ++refused_by_code_[std::string(code_text(verdict.error_found.code))];
      if (refused_++ == 0)
        first_refusal_ = fmt::format("; the first: {}: {} {}", entry.schedule.text(),
                                     verdict.error_found.message, verdict.error_found.found);
    }
    return record(entry);
  }

  // What the archive keeps of a figure: nothing where 0 stands for what was not measured.
  static std::optional<double> known(double figure) {
    return figure > 0 ? std::optional(figure) : std::nullopt;
  }

  static archive::Stage stage_of(const Entry& entry) {
    if (!entry.verdict.accepted) return archive::Stage::refused;
    return entry.promoted ? archive::Stage::promoted : archive::Stage::screened;
  }

  Status record(const Entry& entry) {
    const verify::Verdict& v = entry.verdict;
    const bool judged = !v.evidence.empty();
    return archive_->record(
        {.problem = run_.problem,
         .schedule = entry.schedule.text(),
         .fields = kernels::to_json(entry.schedule),
         .family = entry.schedule.family(),
         .parents = entry.parents,
         .stage = stage_of(entry),
         .error_code = v.accepted ? "" : std::string(code_text(v.error_found.code)),
         .median_us = known(v.median_us),
         .low_us = known(v.low_us),
         .high_us = known(v.high_us),
         .reference_us = known(v.reference_us),
         .reference_low_us = known(v.reference_low_us),
         .reference_high_us = known(v.reference_high_us),
         .speedup = known(v.speedup.median),
         .speedup_low = known(v.speedup.low),
         .speedup_high = known(v.speedup.high),
         .machine = runtime::to_json(v.noise),
         .error = judged ? std::optional(v.error) : std::nullopt,
         .max_error = judged ? std::optional(v.max_error) : std::nullopt,
         .seed = judged ? v.evidence.front().seed : problem_.setup.seed,
         .source_hash = hash_of(entry.list),
         .environment = environment(entry.compiler),
         .verdict = verify::to_json(v),
         .screened_us = known(entry.screened_us)});
  }

  static std::string hash_of(const LaunchList& list) {
    std::string sources;
    for (const auto& kernel : list.kernels) sources += kernel.source;
    return hash_hex(sources);
  }

  std::string environment(const std::string& compiler) const {
    std::vector<std::string> parts = {ready_.environment, compiler, stamp_};
    std::erase(parts, "");
    return listed(parts, {}, "; ");
  }

  void report() const {
    if (!options_.on_progress) return;
    options_.on_progress({.seconds = now(),
                          .budget_seconds = options_.budget_seconds,
                          .candidates = run_.candidates,
                          .refused = refused_,
                          .best_us = best_us_,
                          .reference_us = run_.reference_us.value_or(0),
                          .best = run_.best,
                          .phase = phase_});
  }

  // What the search is busy with from now on; "" while it tries candidates.
  void enter(const char* phase) {
    phase_ = phase;
    report();
  }

  // The fastest few, measured again beside the reference; then the best of them judged whole in a
  // fresh process.
  Status final_rounds() {
    compile_.reset();
    for (auto& [text, entry] : answered_)  // that other flags than before did not lead to
      if (entry.verdict.accepted) entries_.push_back(std::move(entry));
    enter("measuring the best few again");
    sort_entries();
    const double last_round = 1.2 * start_seconds_ + 2 * judge_seconds_;
    const size_t finalists = std::min(entries_.size(), kFinalists);
    for (size_t i = 0; finalists > 1 && i < finalists && left() > last_round + judge_seconds_;
         ++i) {
      if (interrupted()) return ok();
      verify::Request request = quick_request();
      request.beside_reference = true;
      request.min_samples = 5;
      request.max_samples = 100;
      request.timing_ms = std::clamp(20 * options_.budget_seconds, 100.0, 500.0);
      request.reference_known_us = reference_known_us_;
      WARPLOOM_CHECK(settle(entries_[i], built(entries_[i]), *evaluator_, request));
      entries_[i].finalist = true;
      remember_reference(entries_[i].verdict.reference_us);
    }
    // Refused ones go; those measured again come first, since a quick figure does not compare with
    // theirs.
    std::erase_if(entries_, [](const Entry& e) { return !e.verdict.accepted; });
    std::ranges::stable_sort(
        entries_, {}, [](const Entry& e) { return std::pair(!e.finalist, e.verdict.median_us); });
    if (entries_.empty() || interrupted()) return ok();
    evaluator_.reset();  // its memory is wanted
    enter("judging the best whole, in a fresh process");
    verify::Setup fresh = problem_.setup;
    fresh.seed = options_.seed ^ kFreshSeed;
    fresh.time_reference = false;
    if (fresh.reference) fresh.reference->chosen = ready_.reference_choice;
    WARPLOOM_TRY(verify::Evaluator judge,
                 verify::Evaluator::start(fresh, {.interrupted = options_.interrupted}));
    for (Entry& entry : entries_) {
      if (interrupted()) return ok();
      const double limit_ms = std::max(10'000.0, quick_request().candidate_limit_ms);
      verify::Request request = whole_request({}, left(), limit_ms);
      request.reference_known_us = reference_known_us_;
      WARPLOOM_CHECK(settle(entry, built(entry), judge, request, true));
      if (!entry.promoted) continue;
      best_us_ = entry.verdict.median_us;
      run_.best = entry.schedule.text();
      run_.reference_us = known(entry.verdict.reference_us);  // the pair that is told is of one run
      report();
      break;
    }
    return ok();
  }

  void sort_entries() {
    std::ranges::stable_sort(entries_, {}, [](const Entry& e) { return e.verdict.median_us; });
  }

  Result<LaunchList> built(const Entry& entry) const {
    return entry.list.kernels.empty() ? problem_.catalogue.build(entry.schedule) : entry.list;
  }

  void finish(const char* status) {
    run_.status = status;
    run_.seconds = now();
    if (archive_ && run_id_ > 0)
      (void)archive_->finish_run(run_id_, run_);  // the outcome is worth more than this row
  }

  // The promoted entry, or after an interrupt the fastest that this search judged.
  const Entry* winner() const {
    const Entry* best = nullptr;
    const auto key = [](const Entry& entry) {
      return std::pair(!entry.promoted, entry.verdict.median_us);
    };
    for (const Entry& entry : entries_)
      if (entry.verdict.accepted && entry.here && (entry.promoted || interrupted()) &&
          (!best || key(entry) < key(*best)))
        best = &entry;
    return best;
  }

  std::string summary() const {
    const auto counted = [](const auto& code) {
      return fmt::format("{} {}", code.second, code.first);
    };
    return refused_by_code_.empty() ? "none was judged"
                                    : listed(refused_by_code_, counted) + first_refusal_;
  }

  Result<Outcome> conclude() {
    compile_.reset();
    const Entry* best = winner();
    finish(interrupted() ? "interrupted" : best ? "done" : "failed");
    if (!best && interrupted())
      return fail({ErrorCode::kInterrupted, "interrupted before a correct candidate was found",
                   problem_.setup.graph.name, "", summary(),
                   "run again to go on where it stopped"});
    if (!best)
      return fail({ErrorCode::kNoCorrectCandidate, "the search ended without a correct candidate",
                   problem_.setup.graph.name, "a candidate that is right", summary(),
                   "give it more time with --budget"});
    Outcome out{.problem = problem_.setup.graph.name,
                .target = problem_.catalogue.capabilities.arch,
                .device = ready_.device,
                .track = options_.track,
                .reference = ready_.reference,
                .verdict = best->verdict,
                .candidates = run_.candidates,
                .refused = refused_,
                .seed = options_.seed,
                .interrupted = interrupted(),
                .recalled = recalled_,
                .schedule = best->schedule,
                .key = run_.problem};
    out.proven = best->promoted;
    WARPLOOM_TRY(out.list, built(*best));
    return out;
  }

  const Problem& problem_;
  const Options& options_;
  const Clock::time_point start_ = Clock::now();
  std::optional<verify::Evaluator> evaluator_;
  std::optional<archive::Archive> archive_;
  std::optional<SearchStrategy> proposer_;
  std::unique_ptr<CompileAhead> compile_;
  verify::Ready ready_;
  archive::Run run_;  // its figures so far
  int64_t run_id_ = 0;
  const std::string stamp_ = build_stamp();
  std::string first_refusal_;
  std::string phase_;
  std::vector<Entry> entries_;  // the fastest accepted ones
  std::map<std::string, Entry>
      answered_;  // by their schedules' texts: what the search recorded before it was stopped
  std::map<std::string, int> refused_by_code_;
  bool recalled_ = false;
  int refused_ = 0;
  int judge_calls_ = 0;
  double start_seconds_ = 0;
  double judge_seconds_ = 0;
  double best_us_ = 0;
  double reference_known_us_ = 0;  // its best median on this machine; 0: none is known
};
}  // namespace

verify::Request whole_request(const LaunchList& list, double seconds, double limit_ms) {
  return {.list = list,
          .whole = true,
          .check_ms = std::clamp(0.5 * seconds, 0.5, 60.0) * 1e3,
          .min_samples = 10,
          .max_samples = 200,
          .timing_ms = std::clamp(0.15 * seconds, 0.1, 2.0) * 1e3,
          .candidate_limit_ms = limit_ms};
}

bool is_fatal(ErrorCode code) {
  constexpr std::array kFatal = {
      ErrorCode::kNoCompiler,     ErrorCode::kNoDriver,      ErrorCode::kNoGpu,
      ErrorCode::kNoNvrtc,        ErrorCode::kGpuTooOld,     ErrorCode::kDiskFull,
      ErrorCode::kFileUnwritable, ErrorCode::kEvaluatorLost, ErrorCode::kInterrupted};
  return contains(kFatal, code);
}

Result<Outcome> explore(const Problem& problem, const Options& options) {
  return TuningSession(problem, options).run();
}
}  // namespace warploom::search
