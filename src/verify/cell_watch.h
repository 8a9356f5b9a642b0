// Watch: ends a process when something of it takes too long: when it has computed for so long, or
// ten times as long has passed on a machine that others use. It is asked every few milliseconds by
// a thread of its own, so that arming it costs next to nothing.
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
#include <time.h>
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
    limit_ms_ = ms;
    computed_ms_ = computed_ms();
    begun_ = now_ms();
  }

  void disarm() { begun_ = 0; }

  bool has_struck() const { return struck_; }

 private:
  static constexpr auto kAsk = std::chrono::milliseconds(20);
  static constexpr double kPatience = 10;  // times the limit, in all

  static double now_ms() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::milli>(now).count();
  }

  // By all threads of the process since it began; 0 where that is not known.
  double computed_ms() const {
    clockid_t clock{};
    timespec time{};
    if (::clock_getcpuclockid(process_, &clock) != 0 || ::clock_gettime(clock, &time) != 0)
      return 0;
    return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
  }

  bool is_over() const {
    const double begun = begun_;
    const double passed = now_ms() - begun;
    if (begun == 0 || passed < limit_ms_) return false;
    return computed_ms() - computed_ms_ >= limit_ms_ || passed >= kPatience * limit_ms_;
  }

  void serve() {
    std::unique_lock lock(mutex_);
    while (!woken_.wait_for(lock, kAsk, [this] { return over_; })) {
      if (!is_over()) continue;
      begun_ = 0;
      struck_ = true;
      ::kill(process_, SIGKILL);
    }
  }

  pid_t process_;
  std::atomic<double> limit_ms_ = 0;
  std::atomic<double> computed_ms_ = 0;  // when it was armed
  std::atomic<double> begun_ = 0;        // 0: it is not armed
  std::atomic<bool> struck_ = false;
  std::mutex mutex_;
  std::condition_variable woken_;
  bool over_ = false;
  std::thread thread_;  // last: it uses all others
};
}  // namespace warploom::verify
