#include "runtime/noise.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "cpu/pool.h"
#include "runtime/executor.h"

namespace warploom::runtime {
namespace {
using nlohmann::json;
namespace fs = std::filesystem;

// A fact: its key in JSON, from where on it disturbs, and its words, in which {0} is its number,
// {1} the same as a percentage and {2} how many cores there are.
struct Fact {
  const char* key;
  std::optional<double> Noise::* value;
  double limit;
  const char* words;
};

constexpr double kNoLimit = 1e300;  // is told, but says alone nothing about these samples
constexpr Fact kFacts[] = {
    {"load", &Noise::load, kNoLimit, "load {0:.1f} on {2} cores"},
    {"others", &Noise::others, 0.3, "others used {0:.1f} of {2} cores"},
    {"run_delay", &Noise::run_delay, 0.05, "run delay {1:.0f} %"},
    {"stolen", &Noise::stolen, 0.02, "the hypervisor took {1:.0f} % of the cores' time"},
    {"throttled", &Noise::throttled, 0.02, "a quota stopped it {1:.0f} % of the time"},
    {"switches", &Noise::switches, kNoLimit, "{0:.0f} involuntary switches a second"},
    {"spread", &Noise::spread, 0.35, "samples spread over {0:.1f} times their median"},
    {"reference_slowdown", &Noise::reference_slowdown, 1.5,
     "the reference was {0:.1f} times as fast before"}};

std::string words_of(const Fact& fact, const Noise& noise) {
  const double value = *(noise.*fact.value);
  return fmt::format(fmt::runtime(fact.words), value, 100 * value, noise.cores);
}

bool beyond(const Fact& fact, const Noise& noise) {
  const std::optional<double>& value = noise.*fact.value;
  return value && *value > fact.limit;
}

// The numbers of a line that follow its first word.
std::vector<double> numbers_after(const std::string& line) {
  std::istringstream words(line);
  std::string name;
  words >> name;
  std::vector<double> numbers;
  for (double number = 0; words >> number;)
    numbers.push_back(number);
  return numbers;
}

// Of the cores that this process may use: user, nice, system, idle, iowait, irq, softirq, steal.
void read_cores(NoiseWatch::Counters& into) {
  constexpr size_t kIdle = 3;
  constexpr size_t kWaiting = 4;
  constexpr size_t kSteal = 7;
  std::set<std::string> names;
  for (const int core : wl::allowed_cores())
    names.insert(fmt::format("cpu{}", core));
  std::ifstream file("/proc/stat");
  const double tick = 1.0 / as_double(::sysconf(_SC_CLK_TCK));
  for (std::string line; std::getline(file, line);) {
    if (!names.contains(line.substr(0, line.find(' ')))) continue;
    const auto ticks = numbers_after(line);
    if (ticks.size() <= kSteal) continue;
    into.stolen = into.stolen.value_or(0) + tick * ticks[kSteal];
    double busy = 0;
    for (size_t i = 0; i < kSteal; ++i)
      if (i != kIdle && i != kWaiting) busy += tick * ticks[i];
    into.busy = into.busy.value_or(0) + busy;
  }
}

// "1234 567 8": nanoseconds that a thread ran, that it waited for a core, and its time slices.
void read_thread(const fs::path& folder, NoiseWatch::Counters& into) {
  double ran = 0;
  double waited = 0;
  if (std::ifstream file(folder / "schedstat"); file >> ran >> waited) {
    into.ran = into.ran.value_or(0) + 1e-9 * ran;
    into.waited = into.waited.value_or(0) + 1e-9 * waited;
  }
  const std::string switches =
      proc_value((folder / "status").c_str(), "nonvoluntary_ctxt_switches:");
  if (!switches.empty())
    into.switches = into.switches.value_or(0) + std::strtod(switches.c_str(), nullptr);
}

// Of this process's control group, by the second version's interface and the first's.
void read_quota(NoiseWatch::Counters& into) {
  for (const auto& [path, field, unit] :
       {std::tuple("/sys/fs/cgroup/cpu.stat", "throttled_usec", 1e-6),
        std::tuple("/sys/fs/cgroup/cpu/cpu.stat", "throttled_time", 1e-9)}) {
    const std::string found = proc_value(path, field);
    if (!found.empty()) into.throttled = unit * std::strtod(found.c_str(), nullptr);
  }
}

NoiseWatch::Counters counters_of(const std::vector<int>& processes) {
  NoiseWatch::Counters counters;
  read_cores(counters);
  read_quota(counters);
  for (const int process : processes) {
    std::error_code none;
    const fs::path threads = fmt::format("/proc/{}/task", process);
    for (const auto& thread : fs::directory_iterator(threads, none))
      read_thread(thread.path(), counters);
  }
  counters.at = std::chrono::steady_clock::now();
  return counters;
}

// What was counted between two readings; unknown where either is.
std::optional<double> grown(const std::optional<double>& from, const std::optional<double>& to) {
  if (!from || !to) return std::nullopt;
  return std::max(0.0, *to - *from);
}
}  // namespace

bool Noise::busy() const {
  return std::ranges::any_of(kFacts, [this](const Fact& fact) { return beyond(fact, *this); });
}

std::vector<std::string> Noise::reasons() const {
  std::vector<std::string> out;
  for (const Fact& fact : kFacts)
    if (beyond(fact, *this)) out.push_back(words_of(fact, *this));
  return out;
}

std::string Noise::text() const {
  if (!watched) return "not known";
  auto said = reasons();
  if (said.empty()) return "quiet";
  if (load) said.insert(said.begin(), words_of(kFacts[0], *this));
  return fmt::format("busy ({})", fmt::join(said, ", "));
}

json to_json(const Noise& noise) {
  if (!noise.watched) return nullptr;
  json out;
  out["busy"] = noise.busy();
  out["text"] = noise.text();
  out["cores"] = noise.cores;
  for (const Fact& fact : kFacts) {
    const std::optional<double>& value = noise.*fact.value;
    out[fact.key] = value ? json(*value) : json();
  }
  return out;
}

Noise noise_from_json(const json& text) {
  Noise noise;
  if (!text.is_object()) return noise;
  noise.watched = true;
  const auto cores = text.find("cores");
  constexpr int64_t kMostCores = 1 << 20;
  const bool known = cores != text.end() && cores->is_number_integer();
  if (known) noise.cores = as_int(std::clamp<int64_t>(*cores, 0, kMostCores));
  for (const Fact& fact : kFacts)
    if (const auto at = text.find(fact.key); at != text.end() && at->is_number())
      noise.*fact.value = at->get<double>();
  return noise;
}

Noise worse_of(Noise a, const Noise& b) {
  a.watched |= b.watched;
  a.cores = std::max(a.cores, b.cores);
  for (const Fact& fact : kFacts) {
    std::optional<double>& mine = a.*fact.value;
    const std::optional<double>& other = b.*fact.value;
    if (other && (!mine || *other > *mine)) mine = other;
  }
  return a;
}

double quantile_of(std::span<const double> samples, double share) {
  std::vector<double> sorted(samples.begin(), samples.end());
  std::ranges::sort(sorted);
  if (sorted.empty()) return 0;
  const double last = as_double(sorted.size() - 1);
  return sorted[as_size(share * last + 0.5)];
}

std::optional<double> spread_of(std::span<const double> samples) {
  if (samples.size() < 5) return std::nullopt;
  const double median = quantile_of(samples, 0.5);
  if (median <= 0) return std::nullopt;
  return (quantile_of(samples, 0.9) - quantile_of(samples, 0.1)) / median;
}

NoiseWatch::NoiseWatch(std::vector<int> processes, bool cpu)
    : processes_(std::move(processes)), cpu_(cpu) {
  processes_.push_back(::getpid());
  if (cpu_) start_ = counters_of(processes_);
}

Noise NoiseWatch::since_start() const {
  const int cores = as_int(wl::allowed_cores().size());
  Noise noise;
  if (cpu_) noise = noise_between(start_, counters_of(processes_), cores);
  noise.watched = true;
  noise.cores = cores;
  double load = 0;
  if (std::ifstream("/proc/loadavg") >> load) noise.load = load;
  return noise;
}

Noise noise_between(const NoiseWatch::Counters& start, const NoiseWatch::Counters& end, int cores) {
  // Counters of a core grow by whole ticks, of who happens to run then: some tens of them are off
  // by a few.
  constexpr double kShortest = 0.5;
  Noise noise;
  noise.watched = true;
  noise.cores = cores;
  const double seconds = std::chrono::duration<double>(end.at - start.at).count();
  const auto ran = grown(start.ran, end.ran);
  const auto busy = grown(start.busy, end.busy);
  auto waited = grown(start.waited, end.waited);
  // Our own threads wait for each other, too: others can have kept them from a core no longer than
  // others ran.
  if (waited && busy && ran) waited = std::min(*waited, std::max(0.0, *busy - *ran));
  if (ran && waited && *ran + *waited > 0) noise.run_delay = *waited / (*ran + *waited);
  if (seconds <= 0) return noise;
  const auto switches = grown(start.switches, end.switches);
  if (switches) noise.switches = *switches / seconds;
  if (seconds < kShortest) return noise;
  if (busy && ran) noise.others = std::max(0.0, *busy - *ran) / seconds;
  const auto stolen = grown(start.stolen, end.stolen);
  if (stolen && cores > 0) noise.stolen = *stolen / (seconds * cores);
  const auto throttled = grown(start.throttled, end.throttled);
  if (throttled) noise.throttled = *throttled / seconds;
  return noise;
}
}  // namespace warploom::runtime
