// Whether a candidate keeps something from call to call, asked where it may find it.
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"
#include "runtime/executor.h"
#include "runtime/noise.h"
#include "verify/bytes.h"
#include "verify/cell.h"
#include "verify/oracle.h"
#include "verify/runner.h"

namespace warploom::verify {
using runtime::Call;

Runner::Kept Runner::kept_of(const Work& work) const {
  Kept kept;
  for (const auto& [name, buffer] : work.buffers)
    if (!is_input(work, name) && !options_.outputs.contains(name))
      kept.workspaces[name].assign(static_cast<const char*>(buffer.address()),
                                   as_size(buffer.bytes()));
  for (const auto& scratch : scratch_)
    kept.scratch.emplace_back(static_cast<const char*>(scratch.get()), as_size(scratch_bytes_));
  return kept;
}

void Runner::put_back(const Work& work, const Kept& kept) {
  for (const auto& [name, bytes] : kept.workspaces)
    copy_bytes(work.buffers.at(name).address(), bytes.data(), std::ssize(bytes));
  for (size_t i = 0; i < scratch_.size(); ++i)
    copy_bytes(scratch_[i].get(), kept.scratch[i].data(), std::ssize(kept.scratch[i]));
}

uint64_t Runner::hash_of_outputs(const Work& work) const {
  uint64_t hash = 0;
  for (const std::string& name : options_.outputs) {
    const auto found = work.buffers.find(name);
    if (found == work.buffers.end()) continue;
    const auto* const bytes = static_cast<const char*>(found->second.address());
    hash = 3 * hash + hash64({bytes, as_size(found->second.bytes())});
  }
  return hash;
}

namespace {
tl::unexpected<Error> keeps_state(const std::string& found) {
  return fail({ErrorCode::kCandidateKeepsState,
               "a candidate keeps something in memory from call to call", "",
               "the same time and output, whatever a call before left in memory", found,
               "compute from the inputs alone, in every call"});
}
}  // namespace

Status Runner::look_for_state(const std::vector<Call>& calls, bool same_bits) {
  for (const Call& call : calls)
    WARPLOOM_CHECK(call());
  const std::vector<Work> works = std::exchange(waiting_, {});
  if (works.empty()) return ok();
  come_home();
  if (same_bits) WARPLOOM_CHECK(look_at_chain(works));
  if (same_bits) WARPLOOM_CHECK(look_at_changes(works[0]));
  return look_at_pairs(works[0], same_bits);
}

// As a program would call it: single calls and short series in turn, on changing inputs, in memory
// as the calls before left it. The outputs hold poison where a series begins.
Status Runner::look_at_chain(const std::vector<Work>& works) {
  constexpr std::array kSeries = {1, 6, 1, 6, 1, 4};
  constexpr double kPatienceMs = 2000;
  std::vector<uint64_t> expected;
  double longest_us = 0;
  for (const Work& work : works) {
    WARPLOOM_TRY(const double us, timed_call(work));
    longest_us = std::max(longest_us, us);
    expected.push_back(hash_of_outputs(work));
  }
  const int64_t calls = std::reduce(kSeries.begin(), kSeries.end());
  const double needed_ms = longest_us * as_double(calls) / 1e3;
  renew(works[0]);
  cell_->go_on();
  for (const int length : kSeries) {
    for (const std::string& name : options_.outputs)
      if (const auto output = works[0].buffers.find(name); output != works[0].buffers.end())
        fill_words(output->second.address(), runtime::kPoison, output->second.bytes());
    for (int call = 0; call < length; ++call) {
      const size_t which = random_.below(works.size());
      renew_inputs(works[which]);
      WARPLOOM_CHECK(time_launches(works[which]));
      if (hash_of_outputs(works[which]) != expected[which])
        return keeps_state("another output in a call that others went before");
      if (needed_ms > kPatienceMs && length > 1) break;
    }
  }
  return ok();
}

// Words of each input's copy trade places: what an input means is kept.
void Runner::perturb(uint64_t seed, int64_t swaps) {
  constexpr int64_t kWord = 8;
  for (const auto& [name, copy] : copies_) {
    if (!copy.of_input) continue;
    Random random(seed, name);
    const int64_t words = copy.bytes / kWord;
    char* const data = copy.data();
    for (int64_t i = 0; i < swaps && words > 1; ++i) {
      const auto draw = [&] { return data + kWord * as_int64(random.below(as_uint64(words))); };
      char* const one = draw();
      char* const other = draw();
      std::swap_ranges(one, one + kWord, other);
    }
  }
}

// A call on inputs of which a little is otherwise than in the call before, in memory as that left
// it, gives what a first call on them gives.
Status Runner::look_at_changes(const Work& work) {
  for (const int64_t swaps : {1, 1, 16, 256}) {
    const uint64_t seed = random_.next();
    renew(work);
    perturb(seed, swaps);
    WARPLOOM_CHECK(time_launches(work));
    const uint64_t expected = hash_of_outputs(work);
    WARPLOOM_CHECK(timed_call(work));
    renew_inputs(work);
    perturb(seed, swaps);
    cell_->go_on();
    WARPLOOM_CHECK(time_launches(work));
    if (hash_of_outputs(work) != expected)
      return keeps_state("another output in a call on inputs that differ a little");
  }
  return ok();
}

namespace {
// Times of calls, on memory as new and on memory as a call left it.
struct Pairs {
  std::vector<double> fresh_us;
  std::vector<double> left_us;

  // Whether the second kind is faster by more than a warm cache makes a call of either kind: both
  // the best of all and the best quarter, since what disturbs calls only makes them slower.
  // `noise_us`: how far rounds without work lie apart.
  bool are_far_apart(double noise_us) const {
    constexpr double kFaster = 0.85;
    constexpr double kLeastUs = 1;
    const double least_us = kLeastUs + noise_us;
    const auto faster = [&](double share) {
      return runtime::quantile_of(left_us, share) <
             kFaster * runtime::quantile_of(fresh_us, share) - least_us;
    };
    return faster(0) && faster(0.25);
  }
};
}  // namespace

// Pairs of calls on the same inputs, one on memory as new, one on memory as a call left it. A
// machine that others use makes times differ by chance: who is suspected is asked twice more.
Status Runner::look_at_pairs(const Work& work, bool same_bits) {
  constexpr std::array kPairs = {7, 20, 40};  // in all, after each asking
  constexpr double kPatienceMs = 5000;
  const auto start = std::chrono::steady_clock::now();
  WARPLOOM_CHECK(timed_call(work));
  const uint64_t output = hash_of_outputs(work);
  const Kept left = kept_of(work);
  cell_->keep();
  renew(work);
  const Kept fresh = kept_of(work);
  const auto timed = [&](bool as_left) -> Result<double> {
    renew(work);
    put_back(work, as_left ? left : fresh);
    if (as_left)
      cell_->renew_as_left();
    else
      cell_->renew_as_new();
    return time_launches(work);
  };
  Pairs pairs;
  const auto time_pair = [&]() -> Status {
    const bool first = random_.below(2) == 0;
    for (const bool as_left : {first, !first}) {
      WARPLOOM_TRY(const double us, timed(as_left));
      (as_left ? pairs.left_us : pairs.fresh_us).push_back(us);
      if (same_bits && hash_of_outputs(work) != output) return keeps_state("another output");
    }
    return ok();
  };
  for (const int wanted : kPairs) {
    while (std::ssize(pairs.left_us) < wanted && ms_since(start) <= kPatienceMs)
      WARPLOOM_CHECK(time_pair());
    // Few pairs decide nothing.
    const bool enough = std::ssize(pairs.left_us) >= wanted;
    if (!enough || !pairs.are_far_apart(overhead().spread_us)) return ok();
  }
  return keeps_state(fmt::format("{:.1f} us after {:.1f} us, the best of {} each",
                                 runtime::quantile_of(pairs.left_us, 0),
                                 runtime::quantile_of(pairs.fresh_us, 0), pairs.left_us.size()));
}
}  // namespace warploom::verify
