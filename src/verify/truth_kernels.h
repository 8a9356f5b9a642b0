// TruthKernels: the kernels of resources/truth/ on a device, by their names, each told what to do
// by a record of resources/truth/tasks.h. Their text is the same for both engines: tests hold it to
// the CPU's oracle where there is no GPU. Within the room only.
//
//   WARPLOOM_TRY(TruthKernels kernels, TruthKernels::load(device, work));
//   WARPLOOM_CHECK(kernels.launch("truth_copy", task));    // behind what was launched before
//
// The element types and the value operations of the text are made of their lists (base/dtype.def,
// base/value_ops.def): what an operation means is said there alone.
//
// Errors: the compiler's (runtime/compile.h) and the executor's.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include "base/value_op.h"
#include "codegen/launch_list.h"
#include "runtime/executor.h"
#include "verify/truth_work.h"

namespace warploom::verify {
namespace tasks {
#include "../../resources/truth/tasks.h"
}  // namespace tasks

inline int64_t address_of(const runtime::Buffer& buffer) {
  return reinterpret_cast<int64_t>(buffer.address());
}

class TruthKernels {
 public:
  // The work's kernels are compiled at once, others when they are first launched.
  static Result<TruthKernels> load(runtime::Executor& device, const TruthWork& work);

  template <class Task> Status launch(const char* kernel, const Task& task) {
    WARPLOOM_CHECK(device_->upload(task_, &task, sizeof task));
    return call(kernel);
  }

  int64_t blocks() const { return blocks_; }  // that each kernel has

 private:
  explicit TruthKernels(runtime::Executor& device) : device_(&device) {}

  Status call(const std::string& kernel);
  Status compile(const std::set<std::string>& kernels);

  runtime::Executor* device_;
  runtime::Buffer task_;
  LaunchList list_;
  std::map<std::string, std::string> images_;   // of those that are compiled
  std::map<std::string, runtime::Call> calls_;  // of those that were launched
  int64_t blocks_ = 0;
};

// The work's kernels, into the cache: for a GPU of that architecture with so many multiprocessors,
// which another process opens meanwhile. What cannot be compiled here says so there.
void compile_truth_kernels(const TruthWork& work, const std::string& arch, int num_sms);

// All kernels for an engine, of so many blocks each.
LaunchList truth_list(Engine engine, const std::string& arch, int64_t blocks,
                      const std::set<ValueOp>& operations);
}  // namespace warploom::verify
