// Judge: what runs inside the evaluator process. Holds the device, inputs, their FP64 truth and the vendor's kernel, and turns a
// request into a verdict. Within the room only.
#pragma once
#include "graph/parallel.h"
#include "runtime/timing.h"
#include "verify/evaluator.h"
#include "verify/oracle.h"
#include "verify/tolerance.h"
namespace warploom::verify {
// Buffers with guard bytes round them.
inline constexpr std::int64_t kGuardBytes = 64 << 10;

struct Guarded {
  runtime::Buffer whole, data;  // data starts kGuardBytes into whole and ends kGuardBytes before its end
};

Result<Guarded> allocate_guarded(runtime::Executor& device, std::int64_t bytes);
// `bytes` of a buffer from `from` on, on the host: without a copy where they lie there anyway, else in `copy`.
Result<const std::byte*> on_host(runtime::Executor& device, const runtime::Buffer& data, std::int64_t from, std::int64_t bytes,
                                 std::vector<std::byte>& copy);
// ok, or candidate-wrote-input naming the buffer and the side.
Status check_guards(runtime::Executor& device, const Guarded& buffer, const std::string& name);
// Fills the data with poison, so that what is left unwritten shows.
Status poison(runtime::Executor& device, const Guarded& buffer);

// Told before the candidate's own code runs (with how long that should take at most, beyond one launch) and again when it is
// done: the parent's clock differs between the two.
using Announce = std::function<void(bool candidate, double expected_ms)>;

// Input families of a screening: the first is also the one timed.
inline constexpr std::array kScreening = {InputFamily::normal, InputFamily::shifted};
inline constexpr std::int64_t kKeepBytes = 1LL << 30;    // inputs of several families stay resident up to this
inline constexpr std::int64_t kPiece = 8LL << 20;        // bytes of an input that are hashed together
inline constexpr std::int64_t kScanBytes = 256LL << 20;  // outputs that are downloaded and scanned whole in a screening

// The four files judge*.cpp: setting up and judging; inputs and the vendor's kernel; checks; timing.
class Judge {
 public:
  static Result<std::unique_ptr<Judge>> open(Setup setup, Announce announce);
  ~Judge() { vendor_.reset(); }  // before the device
  const Ready& ready() const { return ready_; }
  // Never fails: what goes wrong is a refusal, or an error of the machine within the verdict.
  Verdict judge(const Request& request);
  // Whether this process should be replaced after the last verdict.
  bool tainted() const { return tainted_; }

 private:
  // One family's tensors, their truth, the vendor's error on them.
  struct Inputs {
    InputFamily family = InputFamily::normal;
    std::vector<Guarded> tensors;
    std::vector<std::vector<std::byte>> host;  // GPU only; on the CPU the tensors themselves are read
    std::vector<graph::Bytes> bytes;
    std::vector<std::vector<std::uint64_t>> hashes;  // of each tensor's pieces
    std::optional<Oracle> oracle;
    double vendor_error = -1;
  };
  // A loaded candidate with its workspaces.
  struct Candidate {
    LaunchList list;  // with its workspaces turned into outputs, so that they are guarded and poisoned as well
    std::vector<Guarded> workspaces;
    std::unique_ptr<runtime::Runnable> kernel;
  };
  // More buffers, so that short calls can be timed in series on data that no cache holds.
  struct Series {
    std::vector<Guarded> inputs, outputs, vendor_outputs;
  };
  Judge(Setup setup, Announce announce) : setup_(std::move(setup)), announce_(std::move(announce)) {}

  Status prepare();
  Result<std::shared_ptr<Inputs>> inputs_of(InputFamily family, double check_ms);
  Status judge_vendor(Inputs& inputs);
  Status bind_vendor(const Inputs& inputs);
  Status run_vendor(int set = 0);
  Result<Guarded> make_input(std::size_t input, InputFamily family, std::uint64_t seed, std::vector<std::byte>* host,
                             Guarded buffer = {});
  Status bind_set(Candidate& candidate, const std::vector<Guarded>& inputs, const std::vector<Guarded>& outputs, bool poisoned,
                  int set = 0);
  bool vendor_bound_to(const Inputs& inputs) const { return vendor_ && vendor_bound_ == inputs.tensors[0].data.address(); }
  Result<std::unique_ptr<Candidate>> load(const Request& request);
  Status run_candidate(Candidate& candidate, const Inputs& inputs);
  Status check_run(Candidate& candidate, Inputs& inputs, bool whole);
  Result<Evidence> check_family(Candidate& candidate, Inputs& inputs, const Request& request, double check_ms);
  Status compare_block(Comparison& sum, const std::vector<Guarded>& outputs, const Block& block);
  // The outputs against the truth that is held of them.
  Result<std::vector<Comparison>> compared(const Inputs& inputs, const std::vector<Guarded>& outputs);
  Status scan_output(Comparison& sum, const Guarded& output, Dtype dtype);
  Status make_series();
  Status bind_series(Candidate& candidate, bool vendor);
  Status check_series(Inputs& inputs);
  Status time_candidate(Candidate& candidate, const Request& request, Verdict& verdict);
  Status against_vendor(const std::vector<Guarded>& found, const std::vector<Guarded>& vendor, Inputs& inputs);
  Result<std::vector<Guarded>> make_outputs();
  runtime::Bindings by_name(const std::vector<Guarded>& inputs, const std::vector<Guarded>& outputs) const;
  Result<runtime::Bindings> vendor_bindings(const std::vector<Guarded>& inputs, const std::vector<Guarded>& outputs) const;
  Status judge_into(const Request& request, Verdict& verdict);

  Setup setup_;
  Announce announce_;
  std::vector<graph::TensorId> given_;  // what candidates read: the graph's inputs, then its constants
  std::unique_ptr<runtime::Executor> device_;
  std::unique_ptr<runtime::Runnable> vendor_;
  std::vector<Guarded> outputs_, vendor_outputs_;  // candidate's and vendor's; the same memory where it is scarce
  std::vector<std::shared_ptr<Inputs>> kept_;
  void* vendor_bound_ = nullptr;  // the address of the first input it is bound to
  std::vector<Tolerance> tolerances_;
  std::vector<Series> series_;
  bool vendor_in_series_ = false;
  std::int64_t input_bytes_ = 0, output_bytes_ = 0;
  bool shared_outputs_ = false;
  bool tainted_ = false;
  Ready ready_;
};
}  // namespace warploom::verify
