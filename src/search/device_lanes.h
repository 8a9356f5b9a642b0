// DeviceLanes: further devices of one machine, each of which judges candidates one after another by
// itself, beside the one that a measurer has.
//
//   DeviceLanes lanes({"1", "2"}, evaluators_on());       // of CUDA_VISIBLE_DEVICES
//   lanes.start(setup, budget, "NVIDIA H200");            // they get ready by themselves
//   if (lanes.has_idle()) lanes.put({candidate, list, request});
//   while (auto done = lanes.take()) …                    // never waits
//
// Times compare within one model of device alone. A device of another model than the first is left
// out, and so is one that cannot be had; notes() says which and why. What was with a device that is
// lost comes back with that error: the first can judge it.
//
// A device has a thread, to which its evaluator belongs, and one candidate at most that waits for
// the one at work: so it does not stand idle while whoever hands them out is busy.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "search/budget.h"
#include "search/candidate.h"
#include "verify/evaluator.h"
#include "verify/setup.h"

namespace warploom::search {
// What judges on one device. Used by one thread.
class MeasuringDevice {
 public:
  virtual ~MeasuringDevice() = default;
  // Ready for a problem: its model, "NVIDIA H200". kInterrupted once the budget is over.
  virtual Result<std::string> start(const verify::Setup& setup, const Budget& budget) = 0;
  virtual Result<verify::Verdict> judge(const verify::Request& request) = 0;
};

// `ended`: set, it gives up.
using MakeDevice = std::function<std::unique_ptr<MeasuringDevice>(const std::string& device,
                                                                  const std::atomic<bool>* ended)>;

// Evaluator processes, each of which sees the one GPU of that number.
MakeDevice evaluators_on();

class DeviceLanes {
 public:
  struct Job {
    Candidate candidate;
    LaunchList list;
    verify::Request request;
  };

  struct Done {
    Job job;
    Result<verify::Verdict> verdict;
    double seconds = 0;
    std::string device;
  };

  DeviceLanes(const std::vector<std::string>& devices, MakeDevice make);
  // What is at work is given up.
  ~DeviceLanes();
  DeviceLanes(const DeviceLanes&) = delete;
  DeviceLanes& operator=(const DeviceLanes&) = delete;

  // `model`: of the first device.
  void start(const verify::Setup& setup, const Budget& budget, const std::string& model);

  bool is_started() const { return started_; }

  bool has_idle() const;  // a device that is ready and has nothing to do
  bool has_room() const;  // or one with nothing that waits
  void put(Job job);      // to the one with least to do
  std::optional<Done> take();
  // The end: whatever was put and not taken, judged or not.
  std::vector<Job> give_back();

  size_t pending() const;  // put and not taken

  std::vector<std::string> notes() const;  // "device 1 is left out: …"

 private:
  struct Lane {
    std::string device;
    bool ready = false;
    bool busy = false;
    std::deque<Job> waiting;
    std::thread thread;

    size_t load() const { return waiting.size() + (busy ? 1 : 0); }
  };

  void end();
  void serve(Lane& lane, const verify::Setup& setup, const Budget& budget,
             const std::string& model);
  void leave_out(Lane& lane, const std::string& why);
  std::optional<Job> next_of(Lane& lane);
  Lane* least_loaded() const;

  MakeDevice make_;
  std::atomic<bool> ended_ = false;
  bool started_ = false;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Done> done_;
  size_t pending_ = 0;
  std::vector<std::string> notes_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};
}  // namespace warploom::search
