// GpuTurn: who times calls on a GPU has it alone; who only works there shares it. Several processes
// of this program may use one GPU, of one search or of two: what one evaluates in FP64 must not be
// in the time of what another measures.
//
//   GpuTurn turn("0000:1b:00.0");                  // where the GPU sits: one GPU, one turn
//   {
//     const GpuTurn::Held working = turn.share();  // inputs, truth, comparisons
//   }
//   const GpuTurn::Held timing = turn.alone();     // waits until nobody works
//
// A Held ends with its scope. One within another of the same process changes nothing: who has the
// GPU alone compares outputs between timed calls as before.
//
// The turn is an advisory lock on a file of the cache folder (flock(2)), which the kernel takes
// back when a process ends, however that is. It is a courtesy, not a promise: nobody waits longer
// than kPatience, and where there is no such file nobody waits at all. Programs of others do not
// know of it; the noise of a measurement tells of them.
//
// Not thread-safe: of the thread that judges. Within the room only.
#pragma once
#include <chrono>
#include <string>

namespace warploom::verify {
class GpuTurn {
 public:
  static constexpr std::chrono::milliseconds kPatience{5000};

  class Held {
   public:
    explicit Held(GpuTurn* turn) : turn_(turn) {}

    ~Held() {
      if (turn_) turn_->leave();
    }

    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

   private:
    GpuTurn* turn_;  // null: another Held round it leaves the turn
  };

  // `place`: of the GPU; empty: nobody waits for anybody. `patience`: how long this one waits.
  explicit GpuTurn(const std::string& place = "", std::chrono::milliseconds patience = kPatience);
  ~GpuTurn();
  GpuTurn(const GpuTurn&) = delete;
  GpuTurn& operator=(const GpuTurn&) = delete;

  Held share() { return Held(take(false)); }

  Held alone() { return Held(take(true)); }

 private:
  GpuTurn* take(bool alone);
  void leave();

  std::chrono::milliseconds patience_;
  int file_ = -1;
  bool held_ = false;
};
}  // namespace warploom::verify
