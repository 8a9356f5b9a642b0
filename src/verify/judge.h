// Judge: what runs inside the evaluator process. Holds the device, inputs, their FP64 truth and the vendor's kernel, and turns a
// request into a verdict. Within the room only.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "runtime/executor.h"
#include "runtime/timing.h"
#include "verify/evaluator.h"
#include "verify/memory.h"
#include "verify/oracle.h"
#include "verify/tolerance.h"

namespace warploom::verify {

// Told before the candidate's own code runs (with how long that should take at most, beyond one launch) and again when it is
// done: the parent's clock differs between the two.
using Announce = std::function<void(bool candidate, double expected_ms)>;

class Judge {
 public:
  static Result<std::unique_ptr<Judge>> open(Setup setup, Announce announce);
  ~Judge();
  const Ready& ready() const { return ready_; }
  // Never fails: what goes wrong is a refusal, or an error of the machine within the verdict.
  Verdict judge(const Request& request);
  // Whether this process should be replaced after the last verdict.
  bool tainted() const { return tainted_; }

 private:
  struct Inputs;     // one family's tensors, their truth, the vendor's error on them
  struct Candidate;  // a loaded candidate with its outputs
  Judge(Setup setup, Announce announce) : setup_(std::move(setup)), announce_(std::move(announce)) {}

  Status prepare();
  Result<std::shared_ptr<Inputs>> inputs_of(InputFamily family, double check_ms);
  Status judge_vendor(Inputs& inputs);
  Status bind_vendor(const Inputs& inputs);
  bool vendor_bound_to(const Inputs& inputs) const;
  Result<std::unique_ptr<Candidate>> load(const Request& request);
  Status bind_candidate(Candidate& candidate, const Inputs& inputs, bool poisoned);
  Status run_candidate(Candidate& candidate, const Inputs& inputs);
  Status check_run(Candidate& candidate, Inputs& inputs, bool whole);
  Result<Evidence> check_family(Candidate& candidate, Inputs& inputs, const Request& request, double check_ms);
  Status compare_block(Comparison& sum, Candidate& candidate, const Block& block);
  Status time_candidate(Candidate& candidate, const Request& request, Verdict& verdict);
  Status against_vendor(const std::vector<Guarded>& found, const std::vector<Guarded>& vendor, Inputs& inputs);
  Result<std::vector<Guarded>> make_outputs();
  Result<runtime::Bindings> vendor_bindings(const Inputs& inputs, const std::vector<Guarded>& outputs) const;
  Status judge_into(const Request& request, Verdict& verdict);

  Setup setup_;
  Announce announce_;
  std::unique_ptr<runtime::Executor> device_;
  std::unique_ptr<runtime::Runnable> vendor_;
  std::vector<Guarded> outputs_, vendor_outputs_;  // candidate's and vendor's; the same memory where it is scarce
  std::vector<std::shared_ptr<Inputs>> kept_;
  std::vector<void*> vendor_bound_;  // the addresses of the inputs it is bound to
  std::vector<Tolerance> tolerances_;
  std::int64_t input_bytes_ = 0, output_bytes_ = 0;
  bool shared_outputs_ = false;
  bool tainted_ = false;
  Ready ready_;
};

}  // namespace warploom::verify
