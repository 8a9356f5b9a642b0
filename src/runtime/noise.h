// Noise: what else a machine did while something was timed on it.
//
// A figure that was taken while others used the machine is not a property of what was timed. So a
// measurement is watched: what other processes took of its cores, how long its own threads could
// have run and waited for a core instead, what a hypervisor or a quota took away, and how far the
// samples lie apart. Each is a fact that may be unknown (a kernel may not tell), each has a limit,
// and a machine with any fact beyond its limit is busy.
//
//   NoiseWatch watch({runner});                 // this process and these are the measured ones
//   auto samples = measure(…);
//   Noise noise = watch.since_start();
//   noise.spread = spread_of(samples);
//   noise.busy();                               // true
//   noise.text();   // "busy (load 4.1 on 2 cores, waited 31 % of its time for a core)"
//
// Nothing here fails: what cannot be read is unknown.
#pragma once
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace warploom::runtime {
struct Noise {
  bool watched = false;          // false: nobody looked, and nothing is known
  int cores = 0;                 // that the process may use
  std::optional<double> load;    // processes that ran or waited, mean of the last minute
  std::optional<double> others;  // of those cores, so many were taken by others
  // Share of our threads' time spent waiting for a core that others had.
  std::optional<double> run_delay;
  std::optional<double> stolen;              // share of the cores' time that a hypervisor kept
  std::optional<double> throttled;           // share of the time that a quota stopped us
  std::optional<double> switches;            // involuntary, a second
  std::optional<double> spread;              // see spread_of()
  std::optional<double> reference_slowdown;  // its time over its best one in the archive

  bool busy() const;                         // some fact is beyond its limit
  std::vector<std::string> reasons() const;  // those facts, in words; empty where it is not
  std::string text() const;                  // "quiet", "busy (…)" or "not known"
};

// {"busy": true, "text": "busy (…)", "cores": 2, "load": 4.1, …}; null where a fact is not known.
nlohmann::json to_json(const Noise& noise);
// The inverse; what is missing or null is not known.
Noise noise_from_json(const nlohmann::json& json);
// Of several measurements what was worst.
Noise worse_of(Noise a, const Noise& b);

// The width of the middle 80 % of samples over their median: 0.02 on a quiet machine. Unknown of
// fewer than five.
std::optional<double> spread_of(std::span<const double> samples);

// Where each value lies as a share of the sorted ones: 0.1 is the lower decile.
double quantile_of(std::span<const double> samples, double share);

// Counters of the system and of processes, read twice: when it is made, and since_start().
class NoiseWatch {
 public:
  // This process is always among the watched ones. `cpu` says that what is timed runs on this
  // machine's cores; else their being taken says little, and only the load is told.
  NoiseWatch(std::vector<int> processes, bool cpu);
  Noise since_start() const;

  // What is read, all in seconds since their own beginnings; unknown where a file is missing.
  struct Counters {
    // of the cores that may be used, from /proc/stat
    std::optional<double> busy;
    std::optional<double> stolen;
    // of the watched threads, from schedstat
    std::optional<double> ran;
    std::optional<double> waited;
    std::optional<double> throttled;  // by a quota, from cpu.stat
    std::optional<double> switches;   // a number: involuntary, of the watched threads
    std::chrono::steady_clock::time_point at;
  };

 private:
  std::vector<int> processes_;
  bool cpu_;
  Counters start_;
};

// The facts that two readings give: the part of NoiseWatch that reads nothing.
Noise noise_between(const NoiseWatch::Counters& start, const NoiseWatch::Counters& end, int cores);
}  // namespace warploom::runtime
