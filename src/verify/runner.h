// Runner: the executor of CPU candidates, whose code runs in a cell (cell.h).
//
//   WARPLOOM_TRY(const auto runner, Runner::open(*here));  // an Executor: allocate() gives memory
//                                                          // of which a cell can map parts
//   runner->begin({.seed = 7, .limit_ms = 10'000});        // a candidate
//   WARPLOOM_TRY(Runnable gemm, runner->load(list, binary));
//   WARPLOOM_TRY(Call call, gemm.bind(…));
//   call();                                                // launches wait, as a GPU's do, until
//   runner->synchronize();                                 // here: a checked call
//   runner->time_us(call, 1);                              // a timed one; 12: a series of twelve
//
// Every call is the first. Before it all that a cell can write to is as new: the outputs and
// workspaces are poisoned, what lies round them is as it was, scratch and stacks hold what the seed
// says, and the inputs are copied from buffers that the cell does not map. (In some calls of
// foreign kernels outputs hold ordinary numbers, not poison.) What a list prepares
// (codegen/prepare.h) is put back to what the preparation made of it. After a checked call the
// inputs' copies must be as they were, and so must what lies round all buffers.
//
// A checked call runs each kernel's blocks in a random order, cut into a few rounds at random, on a
// random number of threads. A timed call runs them in order, all at once, on all cores; its time is
// this process's clock's, less what letting go and standing still take without work (the median of
// rounds without work before it). A series runs a call again and again without any of
// this between: for kernels that Warploom itself wrote in this process, which are too short for one
// call's time.
//
// Calls of `here`, the vendor's, run in this process. Within the room only.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "base/random.h"
#include "codegen/launch_list.h"
#include "runtime/executor.h"
#include "verify/cell.h"
#include "verify/shared_memory.h"

namespace warploom::verify {
struct RunnerOptions {
  uint64_t seed = 1;                   // of orders, patterns, addresses
  double limit_ms = 10'000;            // of one launch
  bool foreign = false;                // a text that Warploom did not write in this process
  std::set<std::string> outputs = {};  // what of a list\'s outputs is looked at: no workspaces
};

class Runner final : public runtime::Executor {
 public:
  static Result<std::unique_ptr<Runner>> open(runtime::Executor& here);

  // From here on another candidate's, in a cell of its own.
  void begin(const RunnerOptions& options);

  // What holds the last candidate: "no system calls (seccomp), …"; empty: none ran yet.
  const std::string& sandbox() const { return sandbox_; }

  int process() const;  // of the cell; 0: none

  // What a launch of a timed call takes without work, and how far most such rounds lie apart, us;
  // and how many of them a call was made of, from each of which that was taken off.
  struct Overhead {
    double us = 0;
    double spread_us = 0;
    int64_t rounds = 1;
  };

  Overhead overhead() const;
  // How far the median of so many timed calls may be off for what was taken off, us. Where every
  // core has a thread of the kernel, one of them starts on the core of this thread: what that takes
  // differs with what the others do meanwhile, so that half of it is doubtful.
  double doubt_us(int calls) const;

  Result<int64_t> free_memory() override { return here_.free_memory(); }

  // Whether a candidate keeps something from call to call, though nothing of it is there in any
  // other call. `calls` do the same on different inputs. candidate-keeps-state where, in a chain of
  // them between which nothing is renewed, an output is not that of a first call; or where calls
  // on memory that one on the same inputs left are faster than on memory as new.
  Status look_for_state(const std::vector<runtime::Call>& calls, bool same_bits);

  // In how many other places of a process its memory has lain.
  int64_t worlds() const { return worlds_; }

  // What a call of a candidate reads, each of its kernels once, with one thread:
  // candidate-forbidden where that is not its buffers, its scratch, its stack or its constants. How
  // many of the instructions that read were seen, and of how many.
  struct Reads {
    size_t seen = 0;
    size_t watched = 0;
    size_t left_out = 0;  // functions for which there was no time
  };

  Result<Reads> look_at_reads(const runtime::Call& call);

  Result<runtime::Buffer> allocate(int64_t bytes) override;
  Status fill(const runtime::Buffer& buffer, uint32_t word) override;
  Status synchronize() override;
  Result<double> time_us(const runtime::Call& work, int times) override;

 private:
  // A list's kernels, some of which are called on these buffers.
  struct Work {
    std::shared_ptr<const LaunchList> list;
    std::vector<size_t> kernels;
    runtime::Bindings buffers;
  };

  static constexpr int64_t kMargin = 64 << 10;  // bytes on both sides of an input's copy
  static constexpr int64_t kMostElsewhere = int64_t{1} << 30;  // bytes that are copied for it
  static constexpr int64_t kCallsOfFirstWorld = 3;
  static constexpr int64_t kPlaces = 4;  // of other worlds

  // A copy within the cell, with a margin on both sides: of an input, and where the candidate's
  // memory lies elsewhere than its buffers do of an output or a workspace.
  struct Copy {
    std::shared_ptr<void> memory;
    int64_t bytes = 0;   // of the buffer
    int64_t before = 0;  // of the margin in front of it
    int64_t whole = 0;   // of the memory, margins included
    bool of_input = true;

    char* data() const { return static_cast<char*>(memory.get()) + before; }
  };

  // What lies in mapped memory round the buffers: bytes that nobody may change.
  struct Margin {
    char* begin = nullptr;
    std::string bytes;
    std::string name;  // of a buffer beside it
  };

  // Contents of what a call may keep something in.
  struct Kept {
    std::map<std::string, std::string> workspaces;
    std::vector<std::string> scratch;
  };

  Kept kept_of(const Work& work) const;
  void put_back(const Work& work, const Kept& kept);
  uint64_t hash_of_outputs(const Work& work) const;
  void choose_world(const Work& work);
  void come_home();
  static int64_t bytes_of(const Work& work);
  std::string margin_of(const std::string& name, int64_t bytes, Random& margin) const;
  void renew_copies(const Work& work, bool inputs_alone);
  void fetch_moved(const Work& work);
  void renew_inputs(const Work& work);
  Status look_at_reads(const Work& work, size_t number, bool every, Reads& all);
  Result<ReadReport> reads_of(const Work& work, const CellLaunch& launch, bool every);
  std::vector<Readable> readable_by(const Work& work, const CellLaunch& launch) const;
  Status look_at_chain(const std::vector<Work>& works);
  Status look_at_changes(const Work& work);
  void perturb(uint64_t seed, int64_t swaps);
  Status look_at_pairs(const Work& work, bool same_bits);

  explicit Runner(runtime::Executor& here)
      : Executor(Engine::cpu, here.info()), here_(here), random_(1) {}

  Result<runtime::LoadedKernel> load_kernel(const Kernel& kernel,
                                            const std::string& image) override;
  Result<runtime::Call> bound(const std::shared_ptr<const LaunchList>& list,
                              const std::vector<runtime::LoadedKernel>& kernels,
                              const std::vector<size_t>& numbers,
                              const runtime::Bindings& buffers) override;

  // A cell of the list on these buffers: the one that runs, or another.
  Status hold(const Work& work);
  Status make_copies(const Work& work);
  Status take_scratch(const LaunchList& list, int threads);
  std::vector<SharedMemory::Extent> extents_of(const Work& work) const;
  void note_margins(const Work& work);

  bool is_input(const Work& work, const std::string& name) const;
  bool is_preparation(const Work& work) const;
  void renew(const Work& work);
  void keep_prepared(const Work& work);
  Status look_at_inputs(const Work& work) const;
  Status look_at_margins() const;
  void restore_margins();

  std::vector<CellLaunch> launches_of(const Work& work) const;
  std::vector<uint64_t> scratch_addresses() const;
  Status check_call(const Work& work);
  Status launch_whole(const CellLaunch& launch);
  Status launch_mixed(CellLaunch launch);
  void mix_blocks(CellLaunch& launch);
  Result<double> timed_call(const Work& work);
  Result<double> series(const std::vector<Work>& works, int times);
  Status measure_overhead(int threads);
  double without_overhead(double us, int threads) const;
  // The launches of a call, timed, on memory as it is.
  Result<double> time_launches(const Work& work);
  int threads_of(const CellLaunch& launch) const;
  int most_threads(const Work& work) const;

  runtime::Executor& here_;
  std::shared_ptr<SharedMemory> memory_;
  RunnerOptions options_;
  Random random_;
  std::map<const Kernel*, std::string> images_;  // of kernels that were loaded: paths
  std::vector<Work> waiting_;
  bool timed_ = false;  // the call that memory is made as new for

  // Of the cell that runs.
  std::unique_ptr<Cell> cell_;
  std::shared_ptr<const LaunchList> cell_list_;
  std::vector<SharedMemory::Extent> extents_;
  std::map<std::string, Copy> copies_;
  bool is_elsewhere_ = false;  // it runs in another world (choose_world)
  int64_t calls_here_ = 0;     // checked ones, since it does or does not
  int64_t calls_of_world_ = kCallsOfFirstWorld;
  int64_t worlds_ = 0;   // other ones, of this candidate
  int64_t changes_ = 0;  // of worlds
  int64_t first_place_ = 0;
  uint64_t margin_seed_ = 0;                    // of what lies round them
  std::vector<Margin> margins_;                 // of buffers that live as long as they are bound
  std::vector<std::shared_ptr<void>> scratch_;  // a thread's
  int64_t scratch_bytes_ = 0;
  std::map<std::string, std::string> prepared_;  // contents, by workspace
  std::map<int, std::vector<double>> idle_us_;   // rounds without work, by threads
  int64_t rounds_ = 1;                           // of the last timed call
  std::string sandbox_;
};
}  // namespace warploom::verify
