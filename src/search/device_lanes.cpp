#include "search/device_lanes.h"
#include <fmt/format.h>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include "base/error.h"
#include "search/budget.h"
#include "verify/evaluator.h"
#include "verify/setup.h"

namespace warploom::search {
namespace {
class EvaluatorDevice : public MeasuringDevice {
 public:
  EvaluatorDevice(std::string device, const std::atomic<bool>* ended)
      : device_(std::move(device)), ended_(ended) {}

  Result<std::string> start(const verify::Setup& setup, const Budget& budget) override {
    WARPLOOM_TRY(evaluator_,
                 verify::Evaluator::start(
                     setup, {.device = device_, .interrupted = ended_, .until = budget.until()}));
    return evaluator_->ready().device;
  }

  Result<verify::Verdict> judge(const verify::Request& request) override {
    return evaluator_->judge(request);
  }

 private:
  std::string device_;
  const std::atomic<bool>* ended_;
  std::optional<verify::Evaluator> evaluator_;
};
}  // namespace

MakeDevice evaluators_on() {
  return [](const std::string& device, const std::atomic<bool>* ended) {
    return std::make_unique<EvaluatorDevice>(device, ended);
  };
}

DeviceLanes::DeviceLanes(const std::vector<std::string>& devices, MakeDevice make)
    : make_(std::move(make)) {
  for (const std::string& device : devices) {
    lanes_.push_back(std::make_unique<Lane>());
    lanes_.back()->device = device;
  }
}

DeviceLanes::~DeviceLanes() {
  end();
}

void DeviceLanes::end() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  for (const auto& lane : lanes_)
    if (lane->thread.joinable()) lane->thread.join();
}

std::vector<DeviceLanes::Job> DeviceLanes::give_back() {
  end();
  std::vector<Job> out;
  for (Done& done : done_)
    out.push_back(std::move(done.job));
  for (const auto& lane : lanes_)
    for (Job& job : lane->waiting)
      out.push_back(std::move(job));
  done_.clear();
  for (const auto& lane : lanes_)
    lane->waiting.clear();
  pending_ = 0;
  return out;
}

void DeviceLanes::start(const verify::Setup& setup, const Budget& budget,
                        const std::string& model) {
  if (std::exchange(started_, true)) return;
  for (const auto& lane : lanes_)
    lane->thread = std::thread(
        [this, &one = *lane, setup, budget, model] { serve(one, setup, budget, model); });
}

// A device's thread, from its set-up to its end.
void DeviceLanes::serve(Lane& lane, const verify::Setup& setup, const Budget& budget,
                        const std::string& model) {
  const auto device = make_(lane.device, &ended_);
  const Result<std::string> found = device->start(setup, budget);
  if (!found) return leave_out(lane, describe(found.error()));
  if (*found != model)
    return leave_out(lane, fmt::format("it is of another model, {}, than the first, {}: times of "
                                       "the two do not compare",
                                       *found, model));
  {
    const std::lock_guard lock(mutex_);
    lane.ready = true;
  }
  while (std::optional<Job> job = next_of(lane)) {
    const auto before = std::chrono::steady_clock::now();
    Result<verify::Verdict> verdict = device->judge(job->request);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - before;
    const bool is_lost = !verdict && verdict.error().code != ErrorCode::kInterrupted;
    const std::string why = is_lost ? describe(verdict.error()) : "";
    {
      const std::lock_guard lock(mutex_);
      lane.busy = false;
      done_.push_back({*std::move(job), std::move(verdict), took.count(), lane.device});
    }
    if (is_lost) return leave_out(lane, why);
  }
}

// What it has not begun comes back as lost.
void DeviceLanes::leave_out(Lane& lane, const std::string& why) {
  const std::lock_guard lock(mutex_);
  lane.ready = false;
  notes_.push_back(fmt::format("device {} is left out: {}", lane.device, why));
  for (Job& job : lane.waiting)
    done_.push_back({std::move(job),
                     fail({ErrorCode::kEvaluatorLost, "its device was lost before it was judged"}),
                     0, lane.device});
  lane.waiting.clear();
}

// Waits for one; nothing at the end.
std::optional<DeviceLanes::Job> DeviceLanes::next_of(Lane& lane) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ended_ || !lane.waiting.empty(); });
  if (ended_) return std::nullopt;
  Job job = std::move(lane.waiting.front());
  lane.waiting.pop_front();
  lane.busy = true;
  return job;
}

DeviceLanes::Lane* DeviceLanes::least_loaded() const {
  Lane* least = nullptr;
  for (const auto& lane : lanes_)
    if (lane->ready && (!least || lane->load() < least->load())) least = lane.get();
  return least;
}

bool DeviceLanes::has_idle() const {
  const std::lock_guard lock(mutex_);
  const Lane* const least = least_loaded();
  return least && least->load() == 0;
}

bool DeviceLanes::has_room() const {
  const std::lock_guard lock(mutex_);
  const Lane* const least = least_loaded();
  return least && least->load() < 2;
}

void DeviceLanes::put(Job job) {
  {
    const std::lock_guard lock(mutex_);
    ++pending_;
    if (Lane* const least = least_loaded())
      least->waiting.push_back(std::move(job));
    else
      done_.push_back({std::move(job), fail({ErrorCode::kEvaluatorLost, "no device is left"}), 0});
  }
  changed_.notify_all();
}

std::optional<DeviceLanes::Done> DeviceLanes::take() {
  const std::lock_guard lock(mutex_);
  if (done_.empty()) return std::nullopt;
  Done out = std::move(done_.front());
  done_.pop_front();
  --pending_;
  return out;
}

size_t DeviceLanes::pending() const {
  const std::lock_guard lock(mutex_);
  return pending_;
}

std::vector<std::string> DeviceLanes::notes() const {
  const std::lock_guard lock(mutex_);
  return notes_;
}
}  // namespace warploom::search
