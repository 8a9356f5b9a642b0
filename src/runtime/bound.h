// Launch lists with buffers: what the loaded kernels of both executors have in common.
#pragma once
#include "runtime/driver.h"
#include "runtime/executor.h"
namespace warploom::runtime {
// What workspaces are filled with when they are bound: a NaN in every floating-point type, so that a kernel which reads what no
// kernel wrote is seen.
inline constexpr std::uint32_t kWorkspaceFill = 0xffedffedu;

// The buffer called `spec.name`, or plan-invalid where there is none or it is too small.
Result<Buffer> named_buffer(const Bindings& buffers, const BufferSpec& spec);

// What something that runs keeps of each buffer set.
template <class Set>
class WithSets : public Runnable {
 public:
  int sets() const final { return static_cast<int>(sets_.size()); }

 protected:
  Result<Set*> kept(int set) {
    if (set >= 0 && set < sets()) return &sets_[static_cast<std::size_t>(set)];
    return fail({ErrorCode::kInternal, "a buffer set was never bound", name(), fmt::format("a set below {}", sets()),
                 fmt::format("{}", set), "bind buffer sets in order from 0, before the launch"});
  }
  Status keep(int set, Set bound) {
    if (set == sets()) sets_.emplace_back();
    WARPLOOM_TRY(Set* const place, kept(set));
    *place = std::move(bound);
    return ok();
  }
  std::vector<Set> sets_;
};

struct LoadedSet {
  Bindings buffers;
  std::vector<std::vector<void*>> addresses, parameters;  // by kernel and argument
  std::vector<std::shared_ptr<void>> kept;                // what lives as long as the set
};
static_assert(std::is_nothrow_move_constructible_v<LoadedSet>, "parameters point into addresses, so sets move, never copy");

// Binds and checks the buffer sets of kernels; a workspace belongs to its set.
class LoadedList : public WithSets<LoadedSet> {
 public:
  LoadedList(Executor& device, const LaunchList& list) : device_(device), list_(list) {}
  std::string name() const final { return list_.kernels.empty() ? "nothing" : list_.kernels.back().name; }
  Status load(const Binary& binary);
  Status bind(const Bindings& buffers, int set) final;
  Status launch(int set) final;

 protected:
  using Kept = decltype(LoadedSet::kept);
  // What the kernel is handed for an argument over the memory at `address`, a variable of the buffer set.
  virtual Result<void*> parameter(const Kernel& kernel, const Argument& argument, void*& address, Kept& kept) = 0;
  virtual Status run(std::size_t kernel, void** parameters) = 0;
  virtual Status add(const Kernel& kernel, const std::string& image) = 0;  // the next one

  Executor& device_;
  LaunchList list_;
};

// What stands behind `field` on its line of a /proc file, or "".
std::string proc_value(const char* path, const char* field);

// The two executors.
Result<std::unique_ptr<Executor>> open_gpu();
Result<std::unique_ptr<Executor>> open_cpu(int threads);
}  // namespace warploom::runtime
