#include "verify/runner.h"
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "base/rows.h"
#include "codegen/launch_list.h"
#include "codegen/prepare.h"
#include "cpu/pool.h"
#include "runtime/executor.h"
#include "runtime/noise.h"
#include "verify/cell.h"
#include "verify/cell_code.h"
#include "verify/shared_memory.h"

namespace warploom::verify {
using runtime::Bindings, runtime::Buffer, runtime::Call, runtime::LoadedKernel;

namespace {
constexpr int kMostRounds = 4;                    // that a checked kernel's blocks are cut into
constexpr int64_t kMostMixed = int64_t{1} << 31;  // blocks whose order can be mixed
constexpr size_t kIdleRounds = 31;                // without work, that are remembered
constexpr size_t kFirstIdleRounds = 7;            // that are made at once

int cores() {
  return as_int(wl::allowed_cores().size());
}

}  // namespace

Result<std::unique_ptr<Runner>> Runner::open(runtime::Executor& here) {
  // For each byte that is free now: buffers come and go in many sizes.
  constexpr int64_t kAddresses = 8;
  std::unique_ptr<Runner> made(new Runner(here));
  WARPLOOM_TRY(const int64_t room, here.free_memory());
  made->memory_ = SharedMemory::make(kAddresses * room);
  if (!made->memory_)
    return fail({ErrorCode::kOutOfMemory, "no memory can be shared with a candidate's process", "",
                 fmt::format("{} bytes", room), std::strerror(errno), "raise ulimit -v"});
  return made;
}

void Runner::begin(const RunnerOptions& options) {
  restore_margins();  // a candidate that changed some was refused for it
  options_ = options;
  random_ = Random(options.seed, "runner");
  images_.clear();
  waiting_.clear();
  cell_.reset();
  cell_list_.reset();
  prepared_.clear();
  copies_.clear();
  margins_.clear();
  scratch_.clear();
  is_elsewhere_ = false;
  calls_here_ = 0;
  calls_of_world_ = kCallsOfFirstWorld;
  worlds_ = 0;
  changes_ = 0;
  first_place_ = as_int64(random_.below(as_uint64(kPlaces)));
}

int Runner::process() const {
  return cell_ ? cell_->process() : 0;
}

Result<Buffer> Runner::allocate(int64_t bytes) {
  WARPLOOM_TRY(const int64_t room, here_.free_memory());
  return runtime::host_buffer(bytes, room, [&](int64_t size) { return memory_->allocate(size); });
}

// What waits poisons its buffers itself.
Status Runner::fill(const Buffer& buffer, uint32_t word) {
  return here_.fill(buffer, word);
}

Result<LoadedKernel> Runner::load_kernel(const Kernel& kernel, const std::string& image) {
  images_[&kernel] = image;
  return LoadedKernel();  // bound() knows it by its place in the list
}

Result<Call> Runner::bound(const std::shared_ptr<const LaunchList>& list,
                           const std::vector<LoadedKernel>&, const std::vector<size_t>& numbers,
                           const Bindings& buffers) {
  for (const size_t number : numbers)
    for (const Argument& argument : list->kernels[number].args)
      if (!buffers.contains(argument.buffer))
        return fail({ErrorCode::kPlanInvalid, "a buffer is not bound", argument.buffer,
                     "a buffer of that name", "none", "bind every constant and workspace"});
  return Call([this, work = Work{list, numbers, buffers}] {
    waiting_.push_back(work);
    return ok();
  });
}

Status Runner::synchronize() {
  for (const Work& work : std::exchange(waiting_, {}))
    WARPLOOM_CHECK(check_call(work));
  return ok();
}

Result<double> Runner::time_us(const Call& work, int times) {
  WARPLOOM_CHECK(synchronize());
  // The vendor's calls launch nothing here: they have run when this is over.
  const auto once = here_.time_us(work, 1);
  const std::vector<Work> works = std::exchange(waiting_, {});
  if (!once || works.empty()) return once && times > 1 ? here_.time_us(work, times) : once;
  return times == 1 && works.size() == 1 ? timed_call(works[0]) : series(works, times);
}

bool Runner::is_input(const Work& work, const std::string& name) const {
  const bool written = contains(work.list->outputs, name, &BufferSpec::name) ||
                       contains(work.list->workspaces, name, &BufferSpec::name);
  return !written;
}

bool Runner::is_preparation(const Work& work) const {
  return !work.kernels.empty() && warploom::prepares(*work.list, work.kernels[0]);
}

std::vector<SharedMemory::Extent> Runner::extents_of(const Work& work) const {
  std::map<int64_t, int64_t> found;  // bytes, by their beginnings
  for (const auto& [name, buffer] : work.buffers) {
    if (is_input(work, name)) continue;
    const SharedMemory::Extent extent = memory_->extent_of(buffer.address());
    found[extent.offset] = extent.bytes;
  }
  std::vector<SharedMemory::Extent> all;
  for (const auto& [offset, bytes] : found)
    all.push_back({offset, bytes});
  return all;
}

// Now and then a foreign candidate is called in another world: its memory lies where other programs
// have theirs, no buffer at the beginning of a page. So that who tells the judge by where things
// lie is seen to be wrong elsewhere.
void Runner::choose_world(const Work& work) {
  if (!options_.foreign || calls_here_++ < calls_of_world_) return;
  calls_here_ = 1;
  // First each place has its turn.
  if (++changes_ >= 2 * kPlaces) calls_of_world_ *= 2;
  is_elsewhere_ = !is_elsewhere_ && bytes_of(work) <= kMostElsewhere;
  worlds_ += is_elsewhere_;
  cell_.reset();
}

int64_t Runner::bytes_of(const Work& work) {
  int64_t bytes = 0;
  for (const auto& [name, buffer] : work.buffers)
    bytes += buffer.bytes();
  return bytes;
}

// As programs that time a kernel would have it.
void Runner::come_home() {
  if (std::exchange(is_elsewhere_, false)) cell_.reset();
}

Status Runner::hold(const Work& work) {
  auto wanted = extents_of(work);
  const auto same = [](const SharedMemory::Extent& a, const SharedMemory::Extent& b) {
    return a.offset == b.offset && a.bytes == b.bytes;
  };
  const bool fits = cell_ && cell_list_ == work.list && std::ranges::equal(wanted, extents_, same);
  if (fits && cell_->process() > 0) return ok();
  cell_.reset();
  cell_list_ = work.list;
  extents_ = std::move(wanted);
  WARPLOOM_CHECK(make_copies(work));
  note_margins(work);
  int threads = 1;
  CellOptions options{.seed = random_.next(),
                      .elsewhere = is_elsewhere_ ? as_int(first_place_ + worlds_) : 0};
  if (!is_elsewhere_)
    for (const SharedMemory::Extent& extent : extents_)
      options.mapped.push_back({extent});
  for (const Kernel& kernel : work.list->kernels) {
    WARPLOOM_TRY(std::string image, read_file(images_.at(&kernel)));
    options.functions.push_back({std::move(image), kernel.name});
    const int64_t blocks = kernel.grid[0] * kernel.grid[1] * kernel.grid[2];
    threads = std::max(threads, as_int(std::min<int64_t>(blocks, cores())));
  }
  WARPLOOM_CHECK(take_scratch(*work.list, threads));
  options.threads = threads;
  for (const auto& [name, copy] : copies_)
    options.mapped.push_back(
        {memory_->extent_of(copy.memory.get()), copy.of_input ? name : std::string()});
  for (const auto& scratch : scratch_)
    options.mapped.push_back({memory_->extent_of(scratch.get())});
  WARPLOOM_TRY(cell_, Cell::start(memory_, options));
  sandbox_ = cell_->held();
  idle_us_.clear();
  return ok();
}

std::vector<CellLaunch> Runner::launches_of(const Work& work) const {
  std::vector<CellLaunch> launches;
  const auto address_of = [&](const std::string& name) {
    const auto copy = copies_.find(name);
    if (copy == copies_.end()) return cell_->address_of(work.buffers.at(name).address());
    return cell_->address_of(copy->second.data());
  };
  for (const size_t number : work.kernels) {
    const Kernel& kernel = work.list->kernels[number];
    CellLaunch launch{.function = as_int(number)};
    launch.blocks = kernel.grid[0] * kernel.grid[1] * kernel.grid[2];
    launch.end = launch.blocks;
    for (const Argument& argument : kernel.args) {
      launch.buffers.push_back(address_of(argument.buffer) + as_uint64(argument.offset));
      if (!argument.zeroed) continue;
      const int64_t rest = work.buffers.at(argument.buffer).bytes() - argument.offset;
      const auto bytes = as_uint64(argument.bytes != 0 ? argument.bytes : rest);
      const int64_t pieces = ceil_div(as_int64(bytes), kFillPiece);
      launches.push_back({.function = CellLaunch::kFill,
                          .buffers = {launch.buffers.back(), bytes, 0},
                          .blocks = pieces,
                          .end = pieces});
    }
    launches.push_back(std::move(launch));
  }
  return launches;
}

std::vector<uint64_t> Runner::scratch_addresses() const {
  std::vector<uint64_t> addresses;
  for (const auto& scratch : scratch_)
    addresses.push_back(cell_->address_of(scratch.get()));
  return addresses;
}

int Runner::most_threads(const Work& work) const {
  int most = 1;
  for (const CellLaunch& launch : launches_of(work))
    most = std::max(most, threads_of(launch));
  return most;
}

int Runner::threads_of(const CellLaunch& launch) const {
  return as_int(std::clamp<int64_t>(launch.blocks, 1, cores()));
}

Status Runner::launch_whole(const CellLaunch& launch) {
  WARPLOOM_CHECK(cell_->run({.launches = {launch},
                             .threads = threads_of(launch),
                             .scratch = scratch_addresses(),
                             .limit_ms = options_.limit_ms}));
  return ok();
}

void Runner::mix_blocks(CellLaunch& launch) {
  const int64_t blocks = launch.blocks;
  if (blocks <= 1 || blocks >= kMostMixed) return;
  const auto below = [&](int64_t bound) { return as_int64(random_.below(as_uint64(bound))); };
  launch.first = below(blocks);
  do
    launch.stride = 1 + below(blocks);
  while (std::gcd(launch.stride, blocks) != 1);
}

// In a random order, in rounds cut at random, each on a random number of threads.
Status Runner::launch_mixed(CellLaunch launch) {
  const int64_t blocks = launch.blocks;
  const auto below = [&](int64_t bound) { return as_int64(random_.below(as_uint64(bound))); };
  mix_blocks(launch);
  std::set<int64_t> cuts = {blocks};
  for (int64_t more = below(kMostRounds); more > 0; --more)
    cuts.insert(1 + below(blocks));
  launch.begin = 0;
  for (const int64_t cut : cuts) {
    launch.end = cut;
    const auto threads = 1 + as_int(below(threads_of(launch)));
    WARPLOOM_CHECK(cell_->run({.launches = {launch},
                               .threads = threads,
                               .scratch = scratch_addresses(),
                               .limit_ms = options_.limit_ms}));
    launch.begin = cut;
  }
  return ok();
}

Status Runner::check_call(const Work& work) {
  choose_world(work);
  WARPLOOM_CHECK(hold(work));
  renew(work);
  // Some as timed calls are made: a kernel that sees how must not know by it what is looked at.
  const bool as_timed = random_.below(3) == 0;
  for (const CellLaunch& launch : launches_of(work))
    WARPLOOM_CHECK(as_timed ? launch_whole(launch) : launch_mixed(launch));
  WARPLOOM_CHECK(look_at_inputs(work));
  WARPLOOM_CHECK(look_at_margins());
  fetch_moved(work);
  if (is_preparation(work)) keep_prepared(work);
  return ok();
}

Status Runner::measure_overhead(int threads) {
  std::vector<double>& known = idle_us_[threads];
  const size_t wanted = known.empty() ? kFirstIdleRounds : 1;
  for (size_t i = 0; i < wanted; ++i) {
    const CellLaunch nothing{.blocks = threads, .end = threads};
    WARPLOOM_TRY(const double us, cell_->run({.launches = {nothing}, .threads = threads}));
    known.push_back(us);
    if (known.size() > kIdleRounds) known.erase(known.begin());
  }
  return ok();
}

// Of the rounds without work the median: of what is left of many calls it makes the median right.
double Runner::without_overhead(double us, int threads) const {
  const double idle = runtime::quantile_of(idle_us_.at(threads), 0.5);
  return us > idle ? us - idle : us;
}

Runner::Overhead Runner::overhead() const {
  Overhead most;
  for (const auto& [threads, known] : idle_us_) {
    const double spread = runtime::quantile_of(known, 0.9) - runtime::quantile_of(known, 0.1);
    if (spread >= most.spread_us) most = {runtime::quantile_of(known, 0.5), spread};
  }
  most.rounds = rounds_;
  return most;
}

double Runner::doubt_us(int calls) const {
  const Overhead known = overhead();
  const auto rounds = static_cast<double>(known.rounds);
  const double by_chance = known.spread_us * std::sqrt(rounds / std::max(1, calls));
  const bool apart = cell_ && cell_->leaves_a_core(idle_us_.empty() ? 1 : idle_us_.rbegin()->first);
  return apart ? by_chance : by_chance + 0.5 * known.us * rounds;
}

Result<double> Runner::timed_call(const Work& work) {
  come_home();
  WARPLOOM_CHECK(hold(work));
  timed_ = true;
  renew(work);
  timed_ = false;
  WARPLOOM_TRY(const double us, time_launches(work));
  WARPLOOM_CHECK(look_at_margins());
  if (is_preparation(work)) keep_prepared(work);
  return us;
}

Result<double> Runner::time_launches(const Work& work) {
  double all_us = 0;
  const std::vector<CellLaunch> launches = launches_of(work);
  if (!is_preparation(work)) rounds_ = std::ssize(launches);
  for (const CellLaunch& launch : launches) {
    const int threads = threads_of(launch);
    WARPLOOM_CHECK(measure_overhead(threads));
    WARPLOOM_TRY(const double us, cell_->run({.launches = {launch},
                                              .threads = threads,
                                              .scratch = scratch_addresses(),
                                              .limit_ms = options_.limit_ms}));
    all_us += without_overhead(us, threads);
  }
  return all_us;
}
}  // namespace warploom::verify
