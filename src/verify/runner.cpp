#include "verify/runner.h"
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "codegen/launch_list.h"
#include "runtime/executor.h"
#include "verify/channel.h"
#include "verify/oracle.h"

namespace warploom::verify {
using nlohmann::json, runtime::Buffer, runtime::Call;

namespace {
constexpr int64_t kPage = 4096;
constexpr int64_t kHuge = int64_t{2} << 20;
#if !defined(MADV_COLLAPSE)
constexpr int MADV_COLLAPSE =
    25;  // Linux 6.1: huge pages now, whatever the setting for shared memory
#endif
}  // namespace

char* SharedMemory::map(int file) {
  struct stat facts{};
  ::fstat(file, &facts);
  const auto size = static_cast<size_t>(facts.st_size);
  void* room =
      ::mmap(nullptr, size + kHuge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return nullptr;
  auto* const base =
      reinterpret_cast<char*>(round_up(reinterpret_cast<std::intptr_t>(room), kHuge));
  void* made =
      ::mmap(base, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file, 0);
  return made == MAP_FAILED ? nullptr : base;
}

std::shared_ptr<SharedMemory> SharedMemory::make(int64_t bytes) {
  auto made = std::make_shared<SharedMemory>();
  made->bytes_ = round_up(bytes, kHuge);
  made->file_ = ::memfd_create("warploom", MFD_CLOEXEC);
  if (made->file_ < 0 || ::ftruncate(made->file_, made->bytes_) != 0) return nullptr;
  made->base_ = map(made->file_);
  return made->base_ ? made : nullptr;
}

SharedMemory::~SharedMemory() {
  if (base_) ::munmap(base_, bytes_);
  if (file_ >= 0) ::close(file_);
}

std::shared_ptr<void> SharedMemory::allocate(int64_t bytes) {
  const int64_t pages = round_up(std::max<int64_t>(bytes, 1), kPage);
  const int64_t alignment = pages >= 2 * kHuge ? kHuge : kPage;
  const int64_t wanted = round_up(pages, alignment);
  int64_t at = round_up(used_, alignment);
  if (auto& free = free_[wanted]; !free.empty()) {
    at = free.back();
    free.pop_back();
  } else if (at + wanted <= bytes_)
    used_ = at + wanted;
  else
    return nullptr;
  if (alignment == kHuge) ::madvise(base_ + at, wanted, MADV_COLLAPSE);
  return {base_ + at, [this, at, wanted](void*) {
            ::madvise(base_ + at, wanted, MADV_REMOVE);
            free_[wanted].push_back(at);
          }};
}

bool peer_main(const char* command, int words, int argc, char** argv, int* status,
               const std::function<int(Channel&, char* memory)>& work) {
  if (argc < 2 || std::strcmp(argv[1], command) != 0) return false;
  *status = 2;
  if (argc != words) return true;
  set_cache_folder(argv[3]);
  Channel channel(std::atoi(argv[2]));
  ::fcntl(std::atoi(argv[2]), F_SETFD,
          FD_CLOEXEC);  // compilers and candidates have no business with it
  const int file = words > 4 ? std::atoi(argv[4]) : -1;
  char* const memory = file >= 0 ? SharedMemory::map(file) : nullptr;
  if (file >= 0) ::close(file);
  if (file < 0 || memory) *status = work(channel, memory);
  return true;
}

Result<std::unique_ptr<Runner>> Runner::open(runtime::Executor& here) {
  constexpr int64_t kAddresses =
      8;  // for each byte that is free now: buffers come and go in many sizes
  std::unique_ptr<Runner> made(new Runner(here));
  WARPLOOM_TRY(const int64_t room, here.free_memory());
  made->memory_ = SharedMemory::make(kAddresses * room);
  if (!made->memory_)
    return fail({ErrorCode::kOutOfMemory, "no memory can be shared with a candidate's process", "",
                 fmt::format("{} bytes", room), std::strerror(errno), "raise ulimit -v"});
  WARPLOOM_CHECK(made->renew());
  return made;
}

Status Runner::renew() {
  process_.end(true);
  sandbox_.clear();
  return process_.start("/proc/self/exe", kRunCommand, memory_->file(), true);
}

Result<json> Runner::ask(const json& message) {
  if (sandbox_.empty())  // its greeting, which nobody waits for before there is something to say
    if (const auto greeting = process_.channel->receive(-1))
      sandbox_ = greeting->value("sandbox", "");
  process_.channel->send(message);
  std::optional<json> answer;
  while (!answer && !process_.channel->closed()) answer = process_.channel->receive(-1);
  if (answer && answer->contains("error")) return fail(error_from_json(answer->at("error")));
  if (answer) return std::move(*answer);
  const int status = process_.end(false);
  if (WIFEXITED(status)) ::_exit(WEXITSTATUS(status));
  ::signal(WTERMSIG(status), SIG_DFL);
  ::raise(WTERMSIG(status));
  ::_exit(1);
}

Result<Buffer> Runner::allocate(int64_t bytes) {
  WARPLOOM_TRY(const int64_t room, here_.free_memory());
  return runtime::host_buffer(bytes, room, [&](int64_t size) { return memory_->allocate(size); });
}

Status Runner::fill(const Buffer& buffer, uint32_t word) {
  if (!recording_ && waiting_.empty()) return here_.fill(buffer, word);
  waiting_.push_back(
      {kFill, memory_->offset(buffer.address()), buffer.bytes(), static_cast<int64_t>(word)});
  return ok();
}

Result<runtime::LoadedKernel> Runner::load_kernel(const Kernel& kernel, const std::string& image) {
  untimed_ = 0;
  const int64_t blocks = kernel.grid[0] * kernel.grid[1] * kernel.grid[2];
  WARPLOOM_TRY(const json loaded, ask({{"load", image},
                                       {"name", kernel.name},
                                       {"blocks", blocks},
                                       {"scratch", kernel.shared_bytes}}));
  return [this, id = loaded.value("kernel", int64_t{0})](
             const std::vector<void*>& addresses) -> Result<Call> {
    Step step = {id};
    for (const void* address : addresses) step.push_back(memory_->offset(address));
    return [this, step] {
      waiting_.push_back(step);
      return ok();
    };
  };
}

Result<double> Runner::carry_out(const std::vector<Step>& steps, int times, bool backwards) {
  json message = disturbances_;
  message.update({{"steps", steps}, {"times", times}, {"backwards", backwards}, {"seed", seed_}});
  WARPLOOM_TRY(const json done, ask(message));
  return done.value("us", 0.0);
}

Status Runner::synchronize() {
  if (waiting_.empty()) return ok();
  WARPLOOM_CHECK(carry_out(std::exchange(waiting_, {}), 1, ++untimed_ % 2 == 1));
  return ok();
}

void Runner::disturb(const std::vector<Buffer>& inputs, const std::vector<Buffer>& outputs,
                     uint64_t seed) {
  const auto words = [&](const std::vector<Buffer>& buffers, int64_t size) {
    std::vector<Words> all;
    for (const Buffer& buffer : buffers)
      if (buffer.bytes() >= size)
        all.emplace_back(memory_->offset(buffer.address()), buffer.bytes() / size);
    return all;
  };
  disturbances_ = {{"swapped", words(inputs, 8)}, {"poked", words(outputs, 4)}};
  seed_ = seed;
}

Result<double> Runner::time_us(const Call& work, int times) {
  WARPLOOM_CHECK(synchronize());
  recording_ = true;
  const Result<double> once =
      here_.time_us(work, 1);  // of work that launches nothing there, and ran here
  recording_ = false;
  const std::vector<Step> steps = std::exchange(waiting_, {});
  if (!once || steps.empty()) return once && times > 1 ? here_.time_us(work, times) : once;
  ++seed_;
  const auto start = std::chrono::steady_clock::now();
  // What a message and the disturbances take without the work, by both clocks; no more is granted
  // than they can take.
  WARPLOOM_TRY(const double disturbed_us, carry_out({}, times));
  const double idle_ms = std::min(ms_since(start), 0.3 + 1e-3 * times);
  const double from_ms = ms_since(start);
  WARPLOOM_TRY(const double us, carry_out(steps, times));
  const double inside = std::max(0.0, us - std::min<double>(disturbed_us, times));
  const double outside = 1e3 * (ms_since(start) - from_ms - idle_ms);
  constexpr double kWay = 50;
  constexpr double kShare = 0.1;  // what may lie between the clocks: of a message, us; of the work
  const bool agree = outside <= (1 + kShare) * inside + kWay;
  // A short one that disagrees tells nothing. One that agrees counts, or of short calls those alone
  // would that were disturbed.
  if (agree || outside > 10 * kWay) {
    ++samples_;
    agreeing_ += agree;
  }
  return (agree ? inside : outside) / times;
}
}  // namespace warploom::verify
