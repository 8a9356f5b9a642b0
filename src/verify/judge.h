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

// Told before the candidate's own code runs (with how long that should take at most, beyond one launch) and again when it is
// done: the parent's clock differs between the two.
using Announce = std::function<void(bool candidate, double expected_ms)>;

// Input families of a screening: the first is also the one timed.
inline constexpr std::array kScreening = {InputFamily::normal, InputFamily::shifted};
inline constexpr std::int64_t kKeepBytes = 1LL << 30;    // inputs of several families stay resident up to this
inline constexpr std::int64_t kPiece = 8LL << 20;        // bytes of an input that are hashed together
inline constexpr std::int64_t kScanBytes = 256LL << 20;  // outputs that are downloaded and scanned whole in a screening

// The four files judge*.cpp: setting up and judging; inputs, and what runs on them; checks; timing.
class Judge {
 public:
  Judge(Setup setup, Announce announce) : setup_(std::move(setup)), announce_(std::move(announce)) {}
  Result<Ready> prepare();  // first
  // Never fails: what goes wrong is a refusal, or an error of the machine within the verdict.
  Verdict judge(const Request& request);

 private:
  using Tensors = std::vector<Guarded>;
  // One family's tensors, their truth, the vendor's error on them.
  struct Inputs {
    InputFamily family = InputFamily::normal;
    Tensors tensors;
    std::vector<std::vector<std::byte>> host;  // GPU only; on the CPU the tensors themselves are read
    std::vector<graph::Bytes> bytes;
    std::vector<std::vector<std::uint64_t>> hashes;  // of each tensor's pieces
    Truth truth;
    double vendor_error = -1;
  };
  // What runs: the candidate or the vendor's kernel, and where it writes.
  struct Contender {
    runtime::Runnable kernel;
    std::map<std::string, std::string> names;  // of the tensors, by those of its buffers; empty: they are the same
    Tensors outputs;
    std::map<std::string, Guarded> workspaces;
  };
  // More buffers, so that short calls can be timed in series on data that no cache holds.
  struct Series {
    Tensors inputs, outputs, vendor_outputs;
  };

  Result<Contender> load(const Request& request);
  Status judge_into(const Request& request, Verdict& verdict);

  Result<Tensors> make_outputs();
  Result<graph::Bytes> make_input(std::size_t input, InputFamily family, std::uint64_t seed, Guarded& buffer,
                                  std::vector<std::byte>& host);
  Result<std::shared_ptr<Inputs>> inputs_of(InputFamily family, double check_ms);
  Result<runtime::Call> bind(const Contender& who, const Tensors& inputs, const Tensors& outputs);
  Status poison(const Contender& who, const Tensors& outputs);
  Status run(const Contender& who, const Tensors& inputs, const Tensors& outputs);

  Status check_run(const Contender& candidate, const Inputs& inputs, bool whole);
  Result<Evidence> check_family(const Contender& candidate, Inputs& inputs, const Request& request, double check_ms);
  Status compare_block(Comparison& sum, const Tensors& outputs, const Block& block);
  // The outputs against the truth that is held of them.
  Result<std::vector<Comparison>> compared(const Inputs& inputs, const Tensors& outputs);
  Status scan_output(Comparison& sum, const Guarded& output, Dtype dtype);
  Status against_vendor(const Tensors& found, const Tensors& vendor, const Inputs& inputs);

  Status make_series();
  Status check_series(const Inputs& inputs);
  Status time_candidate(const Contender& candidate, const Request& request, Verdict& verdict);

  Setup setup_;
  Announce announce_;
  std::vector<graph::TensorId> given_;  // what candidates read: the graph's inputs, then its constants
  std::unique_ptr<runtime::Executor> device_;
  Tensors outputs_;   // the candidate's
  Contender vendor_;  // without a kernel where there is none; its outputs are the candidate's where memory is scarce
  std::vector<std::shared_ptr<Inputs>> kept_;
  std::vector<Tolerance> tolerances_;
  std::vector<Series> series_;
  std::int64_t input_bytes_ = 0, output_bytes_ = 0;
  bool shared_outputs_ = false;
};
}  // namespace warploom::verify
