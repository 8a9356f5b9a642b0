// Judge: what runs inside the evaluator process. Holds the device, inputs, their FP64 truth and the
// vendor's kernel, and turns a request into a verdict. Within the room only.
#pragma once
#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include "base/random.h"
#include "graph/parallel.h"
#include "runtime/timing.h"
#include "vendor/make.h"
#include "verify/device_truth.h"
#include "verify/evaluator.h"
#include "verify/gpu_scrub.h"
#include "verify/gpu_turn.h"
#include "verify/judge_parts.h"
#include "verify/oracle.h"
#include "verify/runner.h"
#include "verify/tolerance.h"
#include "verify/turns.h"

namespace warploom::verify {
Result<Guarded> allocate_guarded(runtime::Executor& device, int64_t bytes);
// ok, or candidate-wrote-input naming the buffer and the side.
Status check_guards(runtime::Executor& device, const Guarded& buffer, const std::string& name);

// Waits until as much memory is free as is wanted, or no more comes for 60 pauses (what an ended
// process had comes back in seconds), and gives what is free then.
Result<int64_t> await_memory(const std::function<Result<int64_t>()>& free_memory, int64_t wanted,
                             std::chrono::milliseconds pause = std::chrono::milliseconds(50));

uint64_t hash_of_bytes(const std::byte* data, int64_t count);

// Whether the order of a candidate's sums, and so their last bits, may change from call to call.
bool declares_atomic_sums(const LaunchList& list);

// Told before the candidate's own code runs (with how long that should take at most, beyond one
// launch) and again when it is done: the parent's clock differs between the two.
using Announce = std::function<void(bool candidate, double expected_ms)>;

// Input families of a screening: the first is also the one timed.
inline constexpr std::array kScreening = {InputFamily::normal, InputFamily::shifted};
// Inputs of several families are kept up to this.
inline constexpr int64_t kKeepBytes = 1LL << 30;
// Bytes of an input that are hashed together.
inline constexpr int64_t kPiece = 8LL << 20;
// Operations that sums of a product may take: a second.
inline constexpr double kMostSums = 1e9;
// Outputs that are downloaded and scanned whole in a screening.
inline constexpr int64_t kScanBytes = 256LL << 20;

// What an evaluator opens before it knows its problem (evaluator_pool.h). Empty: nothing yet.
struct Ahead {
  std::unique_ptr<DeviceTruth> truth;  // its process is there
  std::unique_ptr<runtime::Executor> device;
};

// Of a GPU; what cannot be had is asked for again with the problem, which says why.
Ahead open_ahead();

// The files judge*.cpp: setting up and judging; inputs, and what runs on them; the reference;
// checks; timing; and truth, which is a GPU's where there is one and it can (device_truth.h), else
// that of this machine's cores (oracle.h): judge_truth.cpp chooses.
class Judge {
 public:
  Judge(Setup setup, Announce announce, Ahead ahead = {})
      : setup_(std::move(setup)), announce_(std::move(announce)), ahead_(std::move(ahead)) {}

  Result<Ready> prepare();  // first
  // Never fails: what goes wrong is a refusal, or an error of the machine within the verdict.
  Verdict judge(const Request& request);

 private:
  using Tensors = judging::Tensors;
  using Inputs = judging::Inputs;
  using Contender = judging::Contender;
  using Set = judging::Set;
  using Reference = judging::Reference;
  using MoreCalls = judging::MoreCalls;
  using Contest = judging::Contest;
  using HostCopy = judging::HostCopy;

  Status reserve_memory();

  // Notes what the time since the last note, or since the beginning, went to (SetUpPart).
  void note_part(Ready& ready, const char* name, bool once = false);

  // Truth (judge_truth.cpp).
  void launch_truth();
  void start_truth();
  void await_truth();
  void give_up_truth(const Error& why);

  bool is_on_gpu(const Inputs& inputs) const { return truth_ && inputs.set >= 0; }

  static std::vector<Looked> looked(const Tensors& tensors);

  // What was asked of it, noted where it failed: that is no fault of a candidate's.
  template <class T> Result<T> told(Result<T> answer) {
    if (!answer) truth_lost_ = answer.error();
    return answer;
  }

  Status draw(Inputs& made, uint64_t seed);
  Status make_truth(Inputs& made, uint64_t seed, double budget_ms);
  // What is known of what the outputs should be, or of part of it (CompareScope), held against
  // them.
  Status compare_outputs(std::vector<Comparison>& seen, const Tensors& outputs,
                         const Inputs& inputs, std::span<const Block> blocks,
                         const CompareScope& scope = {});

  // The fastest of what else computes the graph, and why others are not it (judge_reference.cpp).
  Status choose_reference(Ready& ready);
  Result<Set> first_set(double truth_ms);
  Result<std::optional<Reference>> fastest_reference(const Set& set, Ready& ready);
  // Makes one the vendor's kernel and checks it: its time (0: not `timed`), or why it is none.
  tl::expected<double, std::string> try_reference(const vendor::Candidate& candidate,
                                                  const Set& set, bool timed);
  // How far it is from FP64; nothing where it leaves elements unwritten or not finite.
  Result<std::optional<double>> error_of_reference(const Set& set);
  Result<std::string> fault_of_reference(const Set& set);  // empty: none
  Result<double> time_of_reference(const Set& set);
  bool is_too_slow(double us) const;

  bool is_candidate(const Contender& who) const { return &who != &vendor_; }

  const graph::Tensor& output(size_t i) const {
    return setup_.graph.tensor(setup_.graph.outputs[i]);
  }

  const Tensors& outputs_of(const Contender& who, const Set& set) const {
    return is_candidate(who) ? set.outputs : set.vendor_outputs;
  }

  std::set<std::string> names_of_outputs() const;
  Result<Contender> load(const Request& request);
  // On a GPU (judge_gpu.cpp): a list's images are gated, and a foreign one's first launch waits for
  // what is before it; and before each call of a foreign one what it could find is filled anew.
  Status gate_on_gpu(LaunchList& list, const runtime::Binary& binary, bool foreign,
                     Contender& made) const;
  Status forget(const Contender& who, std::span<const Set> sets);
  Status fill_as_found(const Contender& who, std::span<const Set> sets);
  Status allocate_workspaces(const LaunchList& list, Contender& made);
  Status judge_into(const Request& request, Verdict& verdict);
  std::vector<InputFamily> families_for(const Request& request, bool roomy, Verdict& verdict) const;
  Status check_speed(const Contender& candidate, const Set& set, const Request& request,
                     double first_call_ms);
  double ms_for_set(const Request& request, const judging::FamilyTime& time) const;

  Result<Tensors> make_outputs(runtime::Executor& device);
  Status fill_inputs(Inputs& made, uint64_t seed);
  Result<Set> set_of(InputFamily family, double check_ms);
  bool has_more_to_make(const Inputs& inputs, double check_ms) const;
  Result<runtime::Call> bind(const Contender& who, const Set& set);
  Status poison(const Contender& who, const Set& set, bool prepared);
  Status run_call(const Contender& who, const runtime::Call& call);
  Status run(const Contender& who, const Set& set);
  // Makes what the candidate keeps of constants, of those that the set holds now.
  Status prepare(Contender& who, const Set& set);
  Result<runtime::Call> bind_with(const Contender& who, const Set& set,
                                  const runtime::Runnable::Bind& bind);
  // The candidate once more for each set, with a preparation of its own where it has one.
  Result<std::vector<Contender>> contenders_for(const Contender& candidate, const LaunchList& list,
                                                size_t sets);
  Status check_constants(const LaunchList& list) const;

  // `bytes` of a buffer from `from` on, on the host: without a copy where they lie there anyway,
  // else in `copy`.
  Result<const std::byte*> on_host(const runtime::Buffer& data, int64_t from, int64_t bytes,
                                   HostCopy& copy);
  Status check_run(const Contender& candidate, const Set& set, bool whole);
  // Whether the input holds what it was filled with.
  Result<bool> is_unchanged(size_t input, const Set& set, bool whole);
  Result<Evidence> check_family(const Contender& candidate, const Set& set, const Request& request,
                                double check_ms);
  // Whether all rows were compared.
  Result<bool> compare_family(std::vector<Comparison>& seen, const Set& set, const Request& request,
                              double check_ms, Evidence& evidence);
  Status accept_output(size_t n, const Set& set, const Comparison& seen, bool everything,
                       Evidence& evidence);
  // What of the outputs the blocks tell the truth of.
  Status compare_blocks(std::vector<Comparison>& seen, const Tensors& outputs,
                        std::span<const Block> blocks, InputFamily family);
  Status scan_output(Comparison& sum, size_t n, const runtime::Buffer& data);
  Status against_vendor(const Set& set);
  Result<std::vector<std::vector<double>>> sums_of(const Inputs& inputs);
  Result<bool> check_sums(size_t n, const runtime::Buffer& data, const Inputs& inputs,
                          const Truth& truth, const Comparison& seen, const std::string& place);

  // Timed calls, on sets of inputs in turn (judge_timing.cpp).
  Status make_ring(const Request& request);
  int64_t sets_of_ring() const;
  Result<Set> other_set(int64_t number);
  Result<const Truth*> truth_of(Inputs& inputs);

  // The set of the ring that a sample's one call is made on, or of a series' many is looked at: no
  // candidate can know.
  size_t drawn(size_t sets) const {
    Random random(setup_.seed + sample_, "drawn");
    return random.below(sets);
  }

  runtime::Buffer part_of(const runtime::Buffer& whole) const;
  Status before_sample(const Contender& who, size_t calls);
  Status after_sample(const Contender& candidate, const Request& request, size_t calls);
  Status same_bits(const Request& request, const Set& set);

  // More whole calls (judge_again.cpp); `whole`: outputs of a family were compared whole.
  Status check_again(const Contender& candidate, const Request& request, bool whole,
                     Verdict& verdict);
  Result<MoreCalls> first_again(const Contender& candidate, const Request& request, Set& fresh,
                                Random& random);
  Status check_fresh(const Contender& candidate, Set& set, uint64_t seed);
  Status check_repeated(const Contender& candidate, const Set& set);
  Result<uint64_t> hash_of(const Tensors& outputs);

  Status check_ring();
  Status check_whole(const Set& set);
  Result<Turns> take_turns(const Contest& contest);
  Status second_clock(Contest contest);
  Result<Contest> contest_of(std::vector<Contender>& contenders, const Request& request);
  Status before_candidate(std::vector<Contender>& contenders, size_t calls);
  runtime::MeasureOptions measuring(const Request& request, bool strictly) const;
  Status time_strictly(const Contest& contest, Verdict& verdict);
  Status look_at_reads(const Contender& candidate, const Request& request, Verdict& verdict);
  Status look_for_state(const Contest& contest, const Request& request, Verdict& verdict);
  Status time_in_series(Contest contest, const Request& request, Verdict& verdict);
  Status time_candidate(const Contender& candidate, const Request& request, Verdict& verdict);
  Status time_prepare(Contender& candidate, const Set& set, const Request& request,
                      Verdict& verdict);

  Setup setup_;
  Announce announce_;
  Ahead ahead_;
  std::chrono::steady_clock::time_point noted_ = std::chrono::steady_clock::now();
  std::unique_ptr<GpuTurn> turn_ = std::make_unique<GpuTurn>();
  std::unique_ptr<DeviceTruth> truth_;  // null: this machine's cores
  std::optional<Error> truth_lost_;     // why it is no more to be asked
  std::string truth_by_ = "CPU cores";  // for verdicts
  int sets_ = 0;                        // of inputs that were drawn there
  int64_t rows_ = 0;                    // of all outputs
  std::shared_ptr<Inputs> fresh_;       // for calls on inputs of their own
  // What candidates read: the graph's inputs, then its constants.
  std::vector<graph::TensorId> given_;

  // Where the vendor's kernel runs.
  runtime::Executor& here() { return here_ ? *here_ : *device_; }

  std::unique_ptr<runtime::Executor> here_;    // the CPU's cores within this process
  std::unique_ptr<runtime::Executor> device_;  // where candidates run: the GPU, or the runner
  Runner* runner_ = nullptr;                   // the same, where it is one
  // of every set but a series'
  Tensors outputs_;
  Tensors vendor_outputs_;
  HostCopy copy_;
  HostCopy vendors_copy_;
  Contender vendor_;  // without a kernel where there is none
  // By libraries alone: then its error is a standard, and its output is compared with.
  bool by_libraries_ = false;
  ReferenceKnown vendor_known_;
  double first_call_ms_ = 0;           // of the reference that was tried last
  std::optional<double> first_error_;  // likewise
  std::vector<std::shared_ptr<Inputs>> kept_;
  std::vector<Tolerance> tolerances_;  // of each output
  // Likewise, of those that are linear in a product's operand.
  std::vector<std::optional<graph::Projection>> projections_;
  graph::EvalOptions truth_options_;  // of the FP64 truth

  graph::EvalOptions options_for(InputFamily family) const {
    graph::EvalOptions options = truth_options_;
    options.marks = is_wide(family);
    return options;
  }

  std::vector<Set> ring_;      // what timed calls are made on; the first is of the screening
  bool own_outputs_ = false;   // of each set of the ring
  uint64_t judged_ = 0;        // candidates so far
  uint64_t sample_ = 0;        // samples so far
  uint64_t first_sample_ = 0;  // the measurement's first
  double looked_at_ms_ = 0;    // spent on the truth of the ring's sets
  double sums_ms_ = 0;         // and on the last sums
  double calls_ms_ = 0;        // and on calls, of the candidate and the vendor
  int64_t input_bytes_ = 0;
  int64_t output_bytes_ = 0;
  bool shared_outputs_ = false;  // the vendor's are the candidate's
  std::optional<GpuScrub> scrub_;
  uint64_t forgotten_ = 0;  // calls of the candidate that forget() came before
};
}  // namespace warploom::verify
