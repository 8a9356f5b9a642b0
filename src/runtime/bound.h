// Launch lists with buffers: what the loaded kernels of both executors have in common.
#pragma once

#include <memory>
#include <vector>
#include "runtime/executor.h"

namespace warploom::runtime {

// What workspaces are filled with when they are bound: a NaN in every floating-point type, so that a kernel which reads what no
// kernel wrote is seen.
inline constexpr std::uint32_t kWorkspaceFill = 0xffedffedu;

// The buffer called `spec.name`, or plan-invalid where there is none or it is too small.
Result<Buffer> named_buffer(const Bindings& buffers, const BufferSpec& spec);

// Binds, numbers and checks buffer sets; a workspace belongs to its set.
class LoadedList : public Runnable {
 public:
  LoadedList(Executor& device, const LaunchList& list) : device_(device), list_(list) {}
  std::string name() const final { return list_.kernels.empty() ? "nothing" : list_.kernels.back().name; }
  int sets() const final { return static_cast<int>(sets_.size()); }
  Status bind(const Bindings& buffers, int set) final;
  Status launch(int set) final;

 protected:
  using Kept = std::vector<std::shared_ptr<void>>;  // what lives as long as its buffer set
  // What the kernel is handed for an argument over the memory at `address`, a variable of the buffer set.
  virtual Result<void*> parameter(const Kernel& kernel, const Argument& argument, void*& address, Kept& kept) = 0;
  virtual Status run(std::size_t kernel, void** parameters) = 0;
  // ok when the binary's images are those of the list.
  Status check_images(const Binary& binary) const;

  Executor& device_;
  LaunchList list_;

 private:
  struct Set {
    Bindings buffers;
    std::vector<std::vector<void*>> addresses, parameters;  // by kernel and argument
    Kept kept;
  };
  static_assert(std::is_nothrow_move_constructible_v<Set>, "parameters point into addresses, so sets move, never copy");
  Status check_set(int set, int end) const;
  std::vector<Set> sets_;
};

}  // namespace warploom::runtime
