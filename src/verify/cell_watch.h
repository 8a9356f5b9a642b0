// Watch: ends a process when something of it takes too long. It is asked every few milliseconds by
// a thread of its own, so that arming it costs nothing.
//
//   Watch watch(process);
//   watch.arm(10'000);  // milliseconds from now
//   …                   // waits for the process
//   watch.disarm();
//   if (watch.has_struck()) …  // it was killed
//
// Within the room only.
#pragma once
#include <signal.h>
#include <sys/types.h>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace warploom::verify {
class Watch {
 public:
  explicit Watch(pid_t process) : process_(process), thread_([this] { serve(); }) {}

  ~Watch() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    woken_.notify_all();
    thread_.join();
  }

  void arm(double ms) {
    const auto length = std::chrono::duration<double, std::milli>(ms);
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(length);
    deadline_ = end.time_since_epoch().count();
  }

  void disarm() { deadline_ = 0; }

  bool has_struck() const { return struck_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kAsk = std::chrono::milliseconds(20);

  void serve() {
    std::unique_lock lock(mutex_);
    while (!woken_.wait_for(lock, kAsk, [this] { return over_; })) {
      const Clock::rep deadline = deadline_;
      if (deadline == 0 || Clock::now().time_since_epoch().count() < deadline) continue;
      deadline_ = 0;
      struck_ = true;
      ::kill(process_, SIGKILL);
    }
  }

  pid_t process_;
  std::atomic<Clock::rep> deadline_ = 0;  // 0: none
  std::atomic<bool> struck_ = false;
  std::mutex mutex_;
  std::condition_variable woken_;
  bool over_ = false;
  std::thread thread_;  // last: it uses all others
};
}  // namespace warploom::verify
